"""Percent, cases of 1000 and plain numbers as people read them."""

from __future__ import annotations

import numpy as np
import pytest

from calshift.report.page.number_texts import (
    FORMS,
    format_number,
    format_per_1000,
    format_percent,
    split_1000,
)


def one(estimate, source, difference, ends=None):
    return {
        "estimate": estimate,
        "source": source,
        "difference": difference,
        "difference_interval": ends,
    }


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0, "0%"), (1, "100%"), (0.5, "50.0%"), (0.0932, "9.3%"), (0.0099, "0.99%"),
        (0.00012, "0.012%"), (1e-9, "<0.0001%"), (0.9952, "99.52%"), (0.99999, ">99.99%"),
    ],
)  # fmt: skip
def test_percent_has_two_digits_near_its_ends(share, text):
    assert format_percent(share) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0, "0"),
        (1, "1000"),
        (0.0446, "45"),
        (0.0047, "4.7"),
        (0.000047, "0.047"),
        (1e-9, "<0.0001"),
    ],
)
def test_cases_of_1000_are_whole_where_there_are_many(share, text):
    assert format_per_1000(share) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.6287, "0.629"), (0.0077, "0.0077"), (0, "0.000"), (-2.5, "-2.500"), (12345.6, "12,346"),
     (1e9, "1e+09"), (0.00001234, "1.2e-05")],
)  # fmt: skip
def test_plain_numbers(value, text):
    assert format_number(value) == text


def test_rounding_never_makes_certainty():
    for share in np.linspace(0, 1, 100_001)[1:-1]:
        assert format_percent(float(share)) not in ("0%", "100%", "0.0%", "100.0%", "100.00%")


def test_cases_of_1000_add_up():
    rng = np.random.default_rng(0)
    for shares in rng.dirichlet([0.2, 0.3, 1, 5], 500).tolist():
        # each rounded number is exact in at most four decimals; the largest is rounded to a half
        assert sum(float(text.lstrip("<")) for text in split_1000(shares)) == pytest.approx(
            1000, abs=0.51
        )
    assert split_1000([0.0486, 0.0446, 0.0128, 0.8945]) == ["49", "45", "13", "893"]


def test_a_change_has_the_digits_of_its_numbers():
    share = FORMS["share"]
    assert share.change(one(0.0932, 0.0099, 0.0833)) == "+8.3 points"
    assert share.change(one(0.00012, 0.00031, -0.00019)) == "-0.019 points"
    assert share.change(one(1.0, 0.25, 0.75)) == "+75.0 points"
    assert share.change_interval(one(0.75, 0.754, -0.004, [-0.023, 0.0211])) == "-2.3 to +2.1"
    assert FORMS["per 1000"].change(one(0.0446, 0.0047, 0.0399)) == "+40"
    assert FORMS["number"].change(one(0.063, 0.0077, 0.0554)) == "+0.055"


@pytest.mark.parametrize("difference", [-1e-9, 0.0, 1e-9])
def test_no_change_has_no_sign(difference):
    assert FORMS["share"].change(one(0.5, 0.5, difference)) == "0.0 points"
    assert FORMS["number"].change(one(0.5, 0.5, difference)) == "0.000"


def test_what_is_unknown_is_no_number():
    for form in FORMS.values():
        assert form.value(None) == "unknown"
        assert form.interval(None) == form.interval([0.1, None]) == ""
        assert form.change(one(0.5, None, None)) == ""
        assert form.change_interval(one(0.5, 0.5, 0.0, [None, 0.1])) == ""


def test_an_interval_has_its_unit_once():
    assert FORMS["share"].interval([0.081, 0.108]) == "8.1 to 10.8%"
    assert FORMS["share"].interval([0.94, 0.99999]) == "94.0 to >99.99%"
    assert FORMS["share"].interval([1e-9, 0.02]) == "<0.0001% to 2.0%"
