"""Which columns are read: by convention, name or pattern; a doubt is a question, not a guess."""

from __future__ import annotations

import pytest

from calshift import InvalidInput
from calshift.io.columns import ColumnSpec, find_columns


def found(names, lists=(), **asked):
    return find_columns(names, lists, ColumnSpec(**asked), "file.csv")


def problem(names, lists=(), **asked) -> str:
    with pytest.raises(InvalidInput) as raised:
        found(names, lists, **asked)
    message = str(raised.value)
    assert "file.csv" in message
    assert "\n" not in message
    return message


@pytest.mark.parametrize("prefix", ["p_", "prob_", "proba_"])
def test_a_prefix_by_convention_names_the_classes(prefix):
    columns = found(["id", f"{prefix}ant", f"{prefix}bee", "label"], labelled=True)
    assert columns.probabilities == (f"{prefix}ant", f"{prefix}bee")
    assert columns.classes == ("ant", "bee")
    assert columns.label == "label"


def test_classes_keep_the_order_of_the_file():
    assert found(["p_z", "p_a", "p_10", "p_9"]).classes == ("z", "a", "10", "9")


def test_the_only_column_of_lists_holds_the_probabilities():
    columns = found(["id", "scores_of_mine", "label"], lists=["scores_of_mine"], labelled=True)
    assert columns.probabilities == ("scores_of_mine",)
    assert columns.classes is None


def test_two_columns_of_lists_are_a_question():
    message = problem(["a", "b"], lists=["a", "b"])
    assert "'a', 'b'" in message
    assert "--columns" in message


def test_two_conventions_at_once_are_a_question():
    message = problem(["p_a", "p_b", "prob_a", "prob_b"])
    assert "p_*" in message
    assert "prob_*" in message
    assert "--columns" in message


def test_a_question_is_answered_by_columns():
    names = ["p_a", "p_b", "prob_a", "prob_b"]
    assert found(names, columns="prob_*").probabilities == ("prob_a", "prob_b")


@pytest.mark.parametrize("label", ["label", "labels", "y", "y_true"])
def test_labels_are_found_by_convention(label):
    assert found(["p_a", "p_b", label], labelled=True).label == label


def test_two_columns_that_may_be_labels_are_a_question():
    message = problem(["p_a", "p_b", "label", "y"], labelled=True)
    assert "--label" in message
    assert found(["p_a", "p_b", "label", "y"], label="y", labelled=True).label == "y"


def test_a_target_needs_no_labels():
    assert found(["p_a", "p_b"]).label is None


def test_a_source_without_labels_is_told_how_to_name_them():
    message = problem(["p_a", "p_b", "truth"], labelled=True)
    assert "'truth'" in message
    assert "--label" in message


@pytest.mark.parametrize("option", ["label", "time"])
def test_a_named_column_that_is_not_there_is_named_back_with_what_is(option):
    message = problem(["p_a", "p_b", "truth"], labelled=True, **{"label": "truth", option: "zz"})
    assert f"--{option}" in message
    assert "'zz'" in message
    assert "'p_a'" in message


def test_a_pattern_has_one_star_and_may_end_in_a_suffix():
    names = ["score_a_now", "score_b_now", "score_a_old"]
    columns = found(names, columns="score_*_now")
    assert columns.probabilities == ("score_a_now", "score_b_now")
    assert columns.classes == ("a", "b")


def test_a_pattern_that_fits_nothing_is_a_mistake():
    message = problem(["score_a"], columns="z_*")
    assert "z_*" in message
    assert "'score_a'" in message


def test_a_list_of_columns_gives_their_order_and_names():
    columns = found(["a", "b", "c"], columns="c, a,b")
    assert columns.probabilities == ("c", "a", "b")
    assert columns.classes == ("c", "a", "b")


def test_a_list_of_conventional_columns_drops_their_prefix():
    assert found(["p_a", "p_b"], columns="p_b,p_a").classes == ("b", "a")


def test_one_conventional_column_names_its_class_however_it_was_found():
    by_convention = found(["p_fraud", "label"], labelled=True)
    by_name = found(["p_fraud", "label"], columns="p_fraud", labelled=True)
    assert by_convention.classes == ("fraud",)
    assert by_name == by_convention


def test_a_column_named_twice_is_a_mistake():
    assert "twice" in problem(["a", "b"], columns="a,b,a")


def test_a_name_with_a_comma_can_be_named():
    assert found(["a,b", "c"], lists=["a,b"], columns="a,b").probabilities == ("a,b",)


def test_lists_and_numbers_do_not_mix():
    assert "--columns" in problem(["a", "b"], lists=["b"], columns="a,b")


def test_label_and_time_are_never_probabilities():
    names = ["p_a", "p_b", "p_true", "p_when"]
    columns = found(names, label="p_true", time="p_when", labelled=True)
    assert columns.probabilities == ("p_a", "p_b")


def test_labels_named_by_the_user_are_no_class_of_the_target_either():
    assert found(["p_a", "p_b", "p_true"], label="p_true").probabilities == ("p_a", "p_b")


def test_logits_are_read_only_if_asked():
    names = ["logit_a", "logit_b"]
    assert "--logits" in problem(names)
    assert found(names, logits=True).classes == ("a", "b")
    assert "--logits" in problem(["logits"], lists=["logits"])
    assert found(["logits"], lists=["logits"], logits=True).probabilities == ("logits",)


def test_a_file_without_probabilities_is_told_what_is_looked_for():
    message = problem(["u", "v"])
    assert "p_*" in message
    assert "'u', 'v'" in message
    assert "--columns" in message


def test_hundreds_of_columns_do_not_fill_the_screen():
    message = problem([f"column_{k}" for k in range(500)])
    assert len(message) < 500
    assert "488 more" in message
