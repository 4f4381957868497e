"""Labels and columns that do not belong together are named; honest weak models are not accused."""

from __future__ import annotations

import numpy as np
import pytest

import calshift
from calshift.diagnostics.label_order import check_label_order
from calshift.diagnostics.label_tables import tabulate_labels
from calshift.engines.open import open_source
from calshift.simulate import GaussianSimulation


def order(p, y, **options):
    sample = calshift.Predictions(p, y, **options)
    return check_label_order(tabulate_labels(open_source(sample, None), means=False))


@pytest.fixture(scope="module")
def ten():
    simulation = GaussianSimulation(n_classes=10, dimensions=8, imbalance=3, seed=1)
    return (*simulation.source(2000, rng=1), simulation.target(2000, rng=2)[0])


def test_the_right_order_passes(ten):
    found = order(*ten[:2])
    assert (found.passed, found.limit) == (True, 0.001)


@pytest.mark.parametrize(("offset", "words"), [(1, "one"), (9, "one"), (3, "3")])
def test_shifted_labels_are_named(ten, offset, words):
    p, y, q = ten
    with pytest.warns(calshift.UnreliableWeights, match=f"labels look shifted by {words} against"):
        result = calshift.calibration_error(p, (y + offset) % 10)
    assert not result.trusted
    with pytest.warns(calshift.UnreliableWeights):
        result = calshift.target_calibration_error(p, (y + offset) % 10, q)
    assert result.warnings[0].startswith(f"labels look shifted by {words} against")
    assert not result.trusted


def test_two_swapped_classes_of_ten_are_named(ten):
    p, y, q = ten
    swapped = np.where(y == 3, 7, np.where(y == 7, 3, y))
    with pytest.warns(calshift.UnreliableWeights):
        result = calshift.target_calibration_error(p, swapped, q)
    assert result.warnings[0].startswith("classes 3 and 7 look swapped")
    assert not result.trusted
    named = order(p, swapped, classes=[*"abcdefghij"])
    assert named.text.startswith("classes d and h look swapped")


def test_two_pairs_and_a_permutation_are_named(ten):
    p, y, _ = ten
    pairs = np.arange(10)[[1, 0, 3, 2, 4, 5, 6, 7, 8, 9]]
    assert order(p, pairs[y]).text.startswith("classes 0 and 1, classes 2 and 3 look swapped")
    permuted = np.random.default_rng(5).permutation(10)
    assert order(p, permuted[y]).text.startswith("labels and columns look permuted")


def test_a_reversed_score_is_named():
    simulation = GaussianSimulation(n_classes=2, imbalance=3, seed=1)
    p, y = simulation.source(1000, rng=1)
    q, _ = simulation.target(1000, rng=2)
    for score, other in ((p[:, 1], q[:, 1]), (p, q)):
        with pytest.warns(calshift.UnreliableWeights):
            result = calshift.target_calibration_error(score, 1 - y, other)
        assert not result.trusted
        assert "is it the probability of the other class?" in result.warnings[0]


def test_it_can_be_waived(ten):
    p, y, _ = ten
    result = calshift.calibration_error(p, (y + 1) % 10, waive=["label-order"])
    assert result.trusted
    assert "labels look shifted" in result.warnings[0]


def test_the_auc_is_that_of_the_definition():
    """Within half the share of pairs in one step of log-odds, .018 wide."""
    rng = np.random.default_rng(0)
    p = rng.beta(1, 8, 300)
    y = (rng.random(300) < p).astype(int)
    above = p[y == 1][:, None] > p[y == 0]
    found = float(order(p, y).text.split()[-1])
    assert found == pytest.approx(above.mean(), abs=0.003)


def test_few_rows_do_not_accuse():
    """All of 4 rows wrong: no significance after the search."""
    p = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.7, 0.2, 0.1]])
    assert order(p, [1, 2, 0, 1]).passed
    assert order([0.9, 0.8, 0.1], [0, 0, 1]).passed


def false_alarms(draws, K, rows, strength, share):
    """How many calibrated weak models, which favour a class, fail."""
    rng = np.random.default_rng([K, rows])
    base = np.log(np.r_[share, np.full(K - 1, (1 - share) / (K - 1))])
    count = 0
    for _ in range(draws):
        z = base + strength * rng.normal(size=(rows, K))
        p = np.exp(z - z.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        y = np.minimum((rng.random(rows)[:, None] > p.cumsum(axis=1)).sum(axis=1), K - 1)
        count += not order(p[:, 1] if K == 2 else p, y).passed
    return count


@pytest.mark.parametrize("strength", [0.02, 0.5])
@pytest.mark.parametrize(("K", "share"), [(2, 0.5), (2, 0.98), (4, 0.95), (10, 0.1), (10, 0.6)])
def test_calibrated_weak_models_raise_no_false_alarm(K, share, strength):
    """At a rate of .001 three or more alarms in 300 draws have a probability of .004."""
    assert false_alarms(300, K, 300, strength, share) <= 2


def test_a_model_far_from_the_class_shares_is_not_accused():
    """Its main class is predicted too seldom: exchanged columns have more accuracy, less recall."""
    rng = np.random.default_rng(2)
    y = np.where(rng.random(3000) < 0.97, 0, rng.integers(1, 4, 3000))
    z = 1.5 * np.eye(4)[y] + rng.normal(size=(3000, 4)) - [2.5, 0, 1, 1]
    p = np.exp(0.6 * z)
    p /= p.sum(axis=1, keepdims=True)
    predicted = p.argmax(axis=1)
    exchanged = np.array([1, 0, 2, 3])[predicted]
    assert (exchanged == y).mean() > (predicted == y).mean() + 0.1
    assert order(p, y).passed


def test_thousands_of_classes_are_not_checked():
    p, y = np.full((2, 2001), 1 / 2001), [0, 1]
    found = order(p, y)
    assert (found.passed, found.value) == (False, None)


@pytest.mark.parametrize("K", [2, 5])
def test_batches_give_the_same_outcome(K):
    simulation = GaussianSimulation(n_classes=K, seed=4)
    p, y = simulation.source(700, rng=1)
    whole = tabulate_labels(open_source(calshift.Predictions(p, y), None), means=True)
    parts = [calshift.Predictions(p[i : i + 100], y[i : i + 100]) for i in range(0, 700, 100)]
    found = tabulate_labels(open_source(calshift.scan(parts), None), means=True)
    assert np.array_equal(whole.confusion, found.confusion)
    assert np.allclose(whole.means, found.means, rtol=1e-12)
    assert np.allclose(whole.spreads, found.spreads, rtol=1e-9)
    assert check_label_order(whole) == check_label_order(found)
