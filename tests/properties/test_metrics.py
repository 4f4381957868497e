"""What must be true of the metrics of any sample."""

from __future__ import annotations

import json
import pickle
import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import calshift
from tests.metrics.samples import labelled_metrics, pair, target_metrics, values

OVERALL = [
    "accuracy", "balanced_accuracy", "log_loss", "brier_score", "cohen_kappa",
    "matthews_corrcoef", "f1_macro", "precision_weighted", "recall_micro", "specificity_macro",
    "npv_weighted", "roc_auc_ovr", "roc_auc_ovr_weighted", "top_2_accuracy",
]  # fmt: skip
BY_CLASS = ["recall", "f1", "npv", "roc_auc", "oe_ratio"]
NAMES = [*OVERALL, *(f"{name}_per_class" for name in BY_CLASS)]
OF_TWO = [name for name in NAMES if name != "top_2_accuracy"] + [
    "prevalence", "alarm_rate", "missed_cases", "false_alarms", "precision", "roc_auc",
]  # fmt: skip


def numbers(result: Any, level: float = 0.9) -> np.ndarray:
    """Estimates, standard errors, ends of intervals, and the same of the source."""
    found = []
    for one in result.values():
        row = [one.estimate]
        if one.has_interval:
            row += [one.standard_error, *one.confidence_interval(level)]
        if one.source is not None:
            row += [one.source, one.difference]
            if one.has_interval:
                row += [one.source_standard_error, *one.source_interval(level)]
                row += one.difference_interval(level)
        found.append(row)
    return np.array(found)


def agree(one: Any, other: Any, tolerance: float = 1e-9) -> None:
    assert list(one) == list(other)
    np.testing.assert_allclose(numbers(one), numbers(other), rtol=tolerance, atol=tolerance)
    assert one.trusted == other.trusted


@pytest.mark.parametrize("K", [2, 3])
def test_the_order_of_rows_does_not_matter(K):
    p, y, q = pair(1, K)
    names = OF_TWO if K == 2 else NAMES
    rng = np.random.default_rng(0)
    i, j = rng.permutation(len(p)), rng.permutation(len(q))
    agree(target_metrics(p, y, q, metrics=names), target_metrics(p[i], y[i], q[j], metrics=names))
    agree(labelled_metrics(p, y, metrics=names), labelled_metrics(p[i], y[i], metrics=names))


@pytest.mark.parametrize("weights", ["em", "bbse-soft", "auto", [0.6, 0.8, 1.5]])
def test_the_order_of_classes_does_not_matter(weights):
    """1e-6 where weights are solved by iteration; else rounding."""
    p, y, q = pair(2)
    order = np.array([2, 0, 1])  # the new class k is the old class order[k]
    place = np.argsort(order)
    tolerance, turned = 1e-6, weights
    if not isinstance(weights, str):
        tolerance, turned = 1e-9, np.array(weights)[order]
    one = target_metrics(p, y, q, metrics=NAMES, weights=weights)
    other = target_metrics(p[:, order], place[y], q[:, order], metrics=NAMES, weights=turned)
    first, second = values(one), values(other)
    for name in OVERALL:
        assert first[name] == pytest.approx(second[name], abs=tolerance), name
    for name in BY_CLASS:
        for k in range(3):
            label = f"{name}[{order[k]}]", f"{name}[{k}]"
            assert first[label[0]] == pytest.approx(second[label[1]], abs=tolerance)
            errors = one[label[0]].standard_error, other[label[1]].standard_error
            assert errors[0] == pytest.approx(errors[1], rel=max(tolerance, 1e-5))


def test_the_order_of_classes_does_not_matter_with_labels():
    p, y, _ = pair(2)
    order = np.array([2, 0, 1])
    place = np.argsort(order)
    one = labelled_metrics(p, y, metrics=NAMES)
    other = labelled_metrics(p[:, order], place[y], metrics=NAMES)
    for name in OVERALL:
        assert one[name].estimate == pytest.approx(other[name].estimate, abs=1e-12), name
        assert one[name].standard_error == pytest.approx(other[name].standard_error, abs=1e-12)
    for name in BY_CLASS:
        for k in range(3):
            expected = other[f"{name}[{k}]"].estimate
            assert one[f"{name}[{order[k]}]"].estimate == pytest.approx(expected, abs=1e-12)


def weighted(p: Any, y: Any, f: Any) -> calshift.Predictions:
    return calshift.Predictions(p, y, sample_weight=f)


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("weights", ["auto", "em", "given"])
def test_a_whole_weight_is_a_repetition_and_0_removes_a_row(K, weights):
    p, y, q = pair(3, K)
    names = OF_TWO if K == 2 else NAMES
    rng = np.random.default_rng(1)
    f, g = rng.integers(0, 4, len(p)), rng.integers(0, 4, len(q))
    again, again_q = np.repeat(np.arange(len(p)), f), np.repeat(np.arange(len(q)), g)
    used = np.linspace(1.4, 0.6, K) if weights == "given" else weights
    one = target_metrics(weighted(p, y, f), None, weighted(q, None, g), metrics=names, weights=used)
    other = target_metrics(p[again], y[again], q[again_q], metrics=names, weights=used)
    agree(one, other, 1e-6)
    one = labelled_metrics(weighted(p, y, f), metrics=names)
    agree(one, labelled_metrics(p[again], y[again], metrics=names))


def batches(p: Any, y: Any = None) -> Any:
    cuts = [0, 1, 130, 131, len(p)]
    parts = [slice(a, b) for a, b in pairwise(cuts)]
    return calshift.scan([p[s] if y is None else (p[s], y[s]) for s in parts])


def test_batches_give_the_numbers_of_arrays_but_for_areas():
    """An area of batches counts scores as equal that are in the same cell of the grid."""
    p, y, q = pair(4)
    for found, whole in (
        (
            target_metrics(batches(p, y), None, batches(q), metrics=NAMES, drift=0.02),
            target_metrics(p, y, q, metrics=NAMES, drift=0.02),
        ),
        (labelled_metrics(batches(p, y), metrics=NAMES), labelled_metrics(p, y, metrics=NAMES)),
    ):
        assert any("count as equal" in note for note in found.warnings)
        assert not any("count as equal" in note for note in whole.warnings)
        for name, one in whole.items():
            other = found[name]
            tolerance = 0.002 if "roc" in name else 1e-10
            assert other.estimate == pytest.approx(one.estimate, abs=tolerance), name
            ends = one.confidence_interval(), other.confidence_interval()
            if "roc" not in name:
                assert ends[0] == pytest.approx(ends[1], abs=1e-9), name
            else:
                assert ends[0] == pytest.approx(ends[1], abs=0.01), name


def test_files_give_the_numbers_of_arrays(tmp_path):
    p, y, q = pair(5)
    names = [name for name in NAMES if "roc" not in name]
    for number, (a, b) in enumerate(((0, 250), (250, 400))):
        columns = [p[a:b, 0], p[a:b, 1], p[a:b, 2], y[a:b]]
        text = "p_0,p_1,p_2,label\n" + "\n".join(
            ",".join(map(repr, [*map(float, row[:3]), int(row[3])]))
            for row in zip(*columns, strict=True)
        )
        (tmp_path / f"part-{number}.csv").write_text(text, encoding="utf-8")
    found = labelled_metrics(calshift.scan(tmp_path), metrics=names)
    agree(found, labelled_metrics(p, y, metrics=names))
    found = target_metrics(calshift.scan(tmp_path), None, q, metrics=names)
    agree(found, target_metrics(p, y, q, metrics=names))


def test_the_scale_of_given_weights_does_not_matter():
    p, y, q = pair(6)
    w = np.array([1.5, 0.9, 0.6])
    one, other = (target_metrics(p, y, q, metrics=NAMES, weights=c * w) for c in (1, 37.5))
    agree(one, other)


def test_weights_from_labels_have_the_estimates_of_their_values_and_more_error():
    p, y, q = pair(7)
    rng = np.random.default_rng(2)
    used = calshift.weights_from_labels(y, rng.choice(3, 80, p=[0.5, 0.3, 0.2]))
    one = target_metrics(p, y, q, metrics=NAMES, weights=used)
    other = target_metrics(p, y, q, metrics=NAMES, weights=used.values)
    first, second = values(one), values(other)
    for name in first:  # an average of ratios is less a bias, which grows with the variance
        close = 1e-3 if name in ("f1_macro", "precision_macro") else 1e-10
        assert first[name] == pytest.approx(second[name], abs=close), name
    wider = [
        one[name].standard_error > other[name].standard_error for name in ("accuracy", "f1[0]")
    ]
    assert all(wider)


def test_a_target_like_the_source_with_unit_weights_gives_the_labelled_means():
    """For every v the target's mean cancels that of the source: psi is left, with its mean."""
    p, y, _ = pair(8)
    names = ["accuracy", "log_loss", "brier_score", "top_2_accuracy", "expected_cost"]
    names += ["prevalence", "alarm_rate", "missed_cases", "recall_macro", "roc_auc_ovr"]
    options: dict[str, Any] = {"metrics": names, "positive": 1, "cost": np.arange(9).reshape(3, 3)}
    found = target_metrics(p, y, p, weights=np.ones(3), **options)
    for name, one in labelled_metrics(p, y, **options).items():
        assert found[name].estimate == pytest.approx(one.estimate, abs=1e-12), name
        assert found[name].source == pytest.approx(one.estimate, abs=1e-12), name
    assert found.confusion == pytest.approx(found.confusion_source, abs=1e-12)


@pytest.mark.parametrize("K", [2, 3])
def test_metrics_agree_with_the_confusion_matrix_that_is_reported(K):
    p, y, q = pair(9, K)
    names = ["accuracy", "recall_micro", "recall[1]", "precision[0]", "expected_cost"]
    cost = np.arange(K * K).reshape(K, K)
    result = target_metrics(p, y, q, metrics=names, cost=cost)
    table = result.confusion
    expected = {
        "accuracy": np.trace(table),
        "recall_micro": np.trace(table),
        "recall[1]": table[1, 1] / table[:, 1].sum(),
        "precision[0]": table[0, 0] / table[0].sum(),
        "expected_cost": np.sum(table * cost),
    }
    assert values(result) == pytest.approx(expected, abs=1e-10)
    assert table.sum() == pytest.approx(1, abs=1e-12)


def results() -> dict[str, calshift.MetricsResult]:
    p, y, q = pair(10)
    b, yb, qb = pair(10, 2)
    options: dict[str, Any] = {"interval": "bootstrap", "n_boot": 30, "rng": 3}
    return {
        "labelled": labelled_metrics(p, y, metrics=NAMES),
        "labelled, bootstrap": labelled_metrics(p, y, metrics=NAMES, **options),
        "target": target_metrics(p, y, q, metrics=NAMES),
        "target, checked": target_metrics(p, y, q, metrics=NAMES, check=True),
        "target, drift": target_metrics(p, y, q, metrics=NAMES, drift=0.05),
        "target, bootstrap": target_metrics(p, y, q, metrics=NAMES, **options),
        "two": target_metrics(b, yb, qb, metrics=OF_TWO),
        "none": target_metrics(p, y, q, metrics=NAMES, interval=None),
    }


@pytest.fixture(scope="module")
def made():
    return results()


KINDS = ["labelled", "labelled, bootstrap", "target", "target, checked", "target, drift"]
KINDS += ["target, bootstrap", "two"]


@pytest.mark.parametrize("kind", [*KINDS, "none"])
def test_results_are_pickled_and_are_plain_numbers(made, kind):
    result = made[kind]
    again = pickle.loads(pickle.dumps(result))
    assert again.to_dict() == result.to_dict()
    assert json.loads(json.dumps(result.to_dict(), allow_nan=False))["trusted"] == result.trusted
    assert str(result)
    assert repr(result)
    assert result.table(0.9)


def inside(inner: Any, outer: Any) -> bool:
    return bool(outer[0] <= inner[0] and inner[1] <= outer[1])


@pytest.mark.parametrize("kind", KINDS)
def test_intervals_nest_hold_the_estimate_and_stay_within_bounds(made, kind):
    levels = (0.05, 0.5, 0.8, 0.95, 0.999)
    for name, one in made[kind].items():
        ends = [one.confidence_interval(level) for level in levels]
        others = [ends]
        if one.source is not None:
            others.append([one.source_interval(level) for level in levels])
        for chain in others:
            assert all(inside(a, b) for a, b in pairwise(chain)), name
            assert inside(chain[-1], one.bounds), name
        if one.source is not None:
            chain = [one.difference_interval(level) for level in levels]
            assert all(inside(a, b) for a, b in pairwise(chain)), name
        if "bootstrap" not in kind:  # quantiles around the mean of draws need not hold it
            assert all(inside((one.estimate,) * 2, each) for each in ends), name
        else:
            assert inside((one.estimate,) * 2, ends[-1]), name


def test_without_an_interval_asking_for_one_says_what_to_do():
    p, y, q = pair(11)
    for one in (
        target_metrics(p, y, q, metrics="f1_macro", interval=None)["f1_macro"],
        labelled_metrics(p, y, metrics="f1_macro", interval=None)["f1_macro"],
    ):
        assert not one.has_interval
        for ask in (one.confidence_interval, lambda one=one: one.standard_error):
            with pytest.raises(calshift.InvalidInput, match="interval="):
                ask()
    for ask in (one.difference_interval, one.source_interval, lambda: one.difference):
        with pytest.raises(calshift.InvalidInput):
            ask()


def test_the_bootstrap_is_repeated_by_rng_and_as_wide_as_the_influence():
    """The standard error of 100 draws has a relative error of 1 / sqrt(200) = 0.07: 4 of them,
    and as much for what linear terms leave out."""
    p, y, q = pair(12, n=500, m=500)
    names = ["accuracy", "f1_macro", "log_loss", "roc_auc_ovr", "oe_ratio[0]"]
    options: dict[str, Any] = {"interval": "bootstrap", "n_boot": 100, "metrics": names}
    one, again, other = (target_metrics(p, y, q, rng=rng, **options) for rng in (5, 5, 6))
    assert np.array_equal(numbers(one), numbers(again))
    assert not np.array_equal(numbers(one), numbers(other))
    closed = target_metrics(p, y, q, metrics=names)
    for name in names:
        assert one[name].estimate == closed[name].estimate
        ratio = one[name].standard_error / closed[name].standard_error
        assert 0.65 < ratio < 1.5, name
        ratio = one[name].source_standard_error / closed[name].source_standard_error
        assert 0.7 < ratio < 1.4, name
    kept = [labelled_metrics(p, y, rng=5, n_jobs=jobs, **options) for jobs in (1, 2)]
    assert np.array_equal(numbers(kept[0]), numbers(kept[1]))


def test_a_drift_widens_intervals_and_more_of_it_widens_them_more():
    p, y, q = pair(13)
    names = [*NAMES, "prevalence", "alarm_rate", {"own": lambda p, y: p[np.arange(len(y)), y]}]
    found = [
        target_metrics(p, y, q, metrics=names, positive=1, drift=drift)
        for drift in (0.0, 0.01, 0.05, 0.3)
    ]
    for name in found[0]:
        ends = [one[name].confidence_interval() for one in found]
        assert all(inside(a, b) for a, b in pairwise(ends)), name
        if name != "alarm_rate":
            assert ends[1] != ends[0], name
        assert len({one[name].estimate for one in found}) == 1, name
    assert (
        found[3]["alarm_rate"].confidence_interval() == found[0]["alarm_rate"].confidence_interval()
    )


def test_a_drift_moves_a_difference_as_far_as_the_metric():
    """The source does not drift: what it adds is not cancelled by a correlation.

    Few source rows and many target rows make the correlation of both estimates large.
    """
    p, y, _ = pair(14, n=200)
    _, _, q = pair(15, m=3000)
    options: dict[str, Any] = {"metrics": ["accuracy", "f1_macro", "log_loss"]}
    for drift in (0.02, 0.05):
        before, after = (
            target_metrics(p, y, q, weights=np.ones(3), drift=share, **options)
            for share in (0.0, drift)
        )
        for name, one in after.items():
            low, high = before[name].difference_interval()
            assert inside((low, high), one.difference_interval()), name


def test_a_benign_shift_is_trusted():
    simulation = calshift.simulate.GaussianSimulation(4, imbalance=4)
    p, y = simulation.source(3000, rng=1)
    q, _ = simulation.target(3000, rng=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = calshift.target_metrics(p, y, q)
    assert result.trusted
    assert all(one.trusted for one in result.values())


def test_another_distribution_of_scores_is_not_trusted():
    simulation = calshift.simulate.GaussianSimulation(4, imbalance=4)
    p, y = simulation.source(3000, rng=1)
    q = calshift.simulate.GaussianSimulation(4, imbalance=4, seed=1, temperature=2).target(3000, 2)[
        0
    ]
    with pytest.warns(calshift.UnreliableWeights):
        result = calshift.target_metrics(p, y, q)
    assert not result.trusted
    assert not any(one.trusted for one in result.values())
