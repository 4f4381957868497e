"""The other methods of benchmarks/metrics_peers.py, on what is known without them."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import nnls

import calshift

metrics = pytest.importorskip("sklearn.metrics", reason="the peers use scikit-learn")

with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(str(Path(__file__).parents[1] / "benchmarks"))
    peers = import_module("metrics_peer_methods")
    tables = import_module("metrics_peer_tables")


def drawn(K: int, rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Calibrated predictions with labels."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(K, 0.4), rows)
    return p, (p.cumsum(axis=1) < rng.random((rows, 1))).sum(axis=1)


def population(K: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rates (K, K) of predictions given the class, a target prior, and the target's table."""
    rng = np.random.default_rng(seed)
    rates = 0.7 * np.eye(K) + 0.3 * rng.dirichlet(np.ones(K), K)
    prior = rng.dirichlet(np.ones(K))
    return rates, prior, rates * prior[:, None]


@pytest.mark.parametrize("K", [2, 4])
def test_metrics_of_a_table_are_those_of_scikit_learn(K):
    p, y = drawn(K, 300, 1)
    y[y == K - 1] = 0  # a class that is predicted and is not there
    accuracy, f1 = peers.table_metrics(peers.contingency_table(p, y))
    assert accuracy == pytest.approx(metrics.accuracy_score(y, p.argmax(axis=1)))
    assert f1 == pytest.approx(metrics.f1_score(y, p.argmax(axis=1), average="macro"))


def test_a_class_that_does_not_occur_is_left_out_of_macro_f1():
    table = np.diag([0.6, 0.4, 0.0])
    assert peers.table_metrics(table) == (1, 1)


def test_repeated_rows_are_class_weights():
    p, y = drawn(3, 200, 2)
    again = np.repeat(np.arange(200), np.array([1, 2, 5])[y])
    weighted = peers.contingency_table(p, y, np.array([1.0, 2.0, 5.0]))
    np.testing.assert_allclose(weighted, peers.contingency_table(p[again], y[again]))


def test_reweighted_follows_the_shift():
    simulation = calshift.simulate.GaussianSimulation(10, dimensions=3, imbalance=20, seed=3)
    (p, y), (q, z) = simulation.source(4000, rng=1), simulation.target(4000, rng=2)
    truth, _ = peers.table_metrics(peers.contingency_table(q, z))
    # two samples of 4000 rows of accuracy .58, one with weights: a standard error of about .013
    assert peers.reweighted(p, y, q)[0] == pytest.approx(truth, abs=0.04)
    assert peers.source(p, y, q)[0] < truth - 0.05


def test_atc_by_hand():
    scores = np.array([0.9, 0.5, 0.7, 0.6, 0.8])  # sorted: .5 .6 .7 .8 .9
    right = np.array([True, False, True, False, True])  # 2 of 5 are wrong: t = .7
    target = np.array([0.95, 0.7, 0.69, 0.1])
    assert peers.thresholded(scores, right, target) == 0.5


def test_atc_finds_the_accuracy_of_its_source():
    p, y = drawn(4, 500, 3)
    accuracy = np.mean(p.argmax(axis=1) == y)
    assert peers.atc(p, y, p)[0] == pytest.approx(accuracy)
    assert peers.atc_confidence(p, y, p)[0] == pytest.approx(accuracy)


def test_atc_of_a_source_that_is_all_wrong():
    p = drawn(3, 50, 4)[0]
    y = (p.argmax(axis=1) + 1) % 3
    assert peers.atc_confidence(p, y, p)[0] == pytest.approx(1 / 50)


def test_negative_entropy_by_hand():
    found = peers.negative_entropy(np.array([[1.0, 0.0], [0.5, 0.5]]))
    np.testing.assert_allclose(found, [0, -np.log(2)])


def test_doc_adds_the_difference_of_confidences(monkeypatch):
    monkeypatch.setattr(peers, "tempered", lambda p, y, q: (p, q))
    p = np.array([[0.9, 0.1], [0.3, 0.7]])  # confidence .8, accuracy .5
    q = np.array([[0.6, 0.4], [0.25, 0.75]])  # confidence .675
    assert peers.doc(p, np.array([0, 0]), q)[0] == pytest.approx(0.5 - 0.8 + 0.675)


@pytest.mark.parametrize("K", [2, 5])
def test_cbpe_without_calibration_is_the_mean_confidence(K, monkeypatch):
    monkeypatch.setattr(peers, "needs_calibration", lambda scores, labels: False)
    (p, y), (q, _) = drawn(K, 200, 5), drawn(K, 300, 6)
    accuracy, f1 = peers.cbpe(p, y, q)
    assert accuracy == pytest.approx(q.max(axis=1).mean())
    expected = []
    for c in range(K):  # expected counts, from the definition
        chosen = q.argmax(axis=1) == c
        tp, fp, fn = q[chosen, c].sum(), (1 - q[chosen, c]).sum(), q[~chosen, c].sum()
        expected.append(tp / (tp + (fp + fn) / 2))
    assert f1 == pytest.approx(np.mean(expected))


def test_cbpe_calibrates_what_is_overconfident():
    p, y = drawn(2, 4000, 7)
    sharp = p**3 / (p**3).sum(axis=1, keepdims=True)
    assert peers.needs_calibration(sharp[:, 1], y == 1)
    accuracy = np.mean(sharp.argmax(axis=1) == y)
    # two samples of 4000 rows: a standard error of .009
    (q, _) = drawn(2, 4000, 8)
    found = peers.cbpe(sharp, y, q**3 / (q**3).sum(axis=1, keepdims=True))[0]
    assert found == pytest.approx(accuracy, abs=0.035)
    assert sharp.max(axis=1).mean() > accuracy + 0.05


def test_scores_that_separate_are_not_calibrated():
    scores = np.linspace(0, 1, 100)
    assert not peers.needs_calibration(scores, scores > 0.7)
    assert not peers.needs_calibration(scores, scores > 2)


def test_expected_error_by_hand():
    scores = np.arange(20) / 20  # 10 bins of 2 rows
    labels = np.arange(20) % 2 == 1
    gaps = [abs((4 * b + 1) / 40 - 0.5) for b in range(10)]
    assert peers.expected_error(scores, labels) == pytest.approx(np.mean(gaps))


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("K", [2, 3, 10])
def test_leap_recovers_a_table_from_population_numbers(K, first):
    rates, prior, table = population(K, K)
    found = tables.solved_table(rates, table.sum(axis=0), prior, first)
    np.testing.assert_allclose(found, table, atol=1e-7)


def test_leap_corrects_rates_of_the_first_class_alone():
    """Its equations leave them out: they follow from the other ones."""
    rates, prior, table = population(4, 1)
    rates[0] = rates[0][::-1]
    found = tables.solved_table(rates, table.sum(axis=0), prior, 1)
    np.testing.assert_allclose(found, table, atol=1e-7)


def by_nnls(r: np.ndarray, m: np.ndarray, v: np.ndarray, first: int) -> np.ndarray:
    """The same equations, written out one by one."""
    K = len(m)
    cell = np.eye(K * K).reshape(K, K, K * K)
    rows, values = [np.ones(K * K)], [1.0]
    for c in range(first, K):
        rows += [cell[c, a] - r[c, a] * cell[c].sum(axis=0) for a in range(first, K)]
        values += [0.0] * (K - first)
        rows += [cell[:, c].sum(axis=0), cell[c].sum(axis=0)]
        values += [m[c], v[c]]
    T = nnls(np.array(rows), np.array(values))[0].reshape(K, K)
    return T / T.sum()


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("K", [2, 3, 10])
def test_leap_is_nonnegative_least_squares(K, first):
    rates, prior, table = population(K, K)
    rng = np.random.default_rng(9)
    m = table.sum(axis=0) + rng.normal(scale=0.05, size=K)  # the bound binds
    found = tables.solved_table(rates, m, prior, first)
    expected = by_nnls(rates, m, prior, first)
    assert K == 2 or np.any(expected == 0)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_leap_without_a_class_in_the_source():
    rates, prior, table = population(4, 2)
    rates[3] = np.nan
    found = tables.solved_table(rates, table.sum(axis=0), prior, 0)
    np.testing.assert_allclose(found.sum(axis=1), prior, atol=1e-7)
    np.testing.assert_allclose(found, table, atol=1e-7)


def test_expectation_maximisation_finds_shares():
    """Of two classes whose rows are told apart, and of rows that tell nothing."""
    p, prior = np.repeat([[1.0, 0.0], [0.0, 1.0]], [30, 70], axis=0), np.array([0.5, 0.5])
    np.testing.assert_allclose(tables.maximised_shares(p, prior), [0.3, 0.7], atol=1e-5)
    np.testing.assert_allclose(tables.maximised_shares(np.tile(prior, (9, 1)), prior), prior)


@pytest.mark.parametrize("method", ["quacc_joint", "quacc_by_prediction", "leap", "o_leap"])
def test_tables_of_a_target_without_shift(method):
    (p, y), (q, z) = drawn(3, 4000, 10), drawn(3, 4000, 11)
    truth = peers.table_metrics(peers.contingency_table(q, z))
    # two samples of 4000 rows of accuracy .8: a standard error of .009
    np.testing.assert_allclose(getattr(tables, method)(p, y, q), truth, atol=0.035)


def test_quacc_gives_a_prediction_that_the_source_lacks_to_all_classes():
    p = np.tile([0.6, 0.3, 0.1], (10, 1))
    q = np.vstack([p, np.tile([0.1, 0.3, 0.6], (10, 1))])
    accuracy, _ = tables.quacc_by_prediction(p, np.zeros(10, dtype=int), q)
    assert accuracy == pytest.approx(0.5 + 0.5 / 3)
