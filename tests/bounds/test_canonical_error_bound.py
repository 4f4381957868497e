"""The lower bound of the canonical error: its identity, its sums, its coverage, its input."""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass

import numpy as np
import pytest

import calshift
from calshift import Predictions
from calshift.bounds.recalibration_gain import labelled_gain, loss_differences, shifted_gain
from calshift.simulate import GaussianSimulation

# A discrete model: five predictions with probabilities SHARE, of labels distributed as TRUTH.
MODEL = np.array(
    [[0.7, 0.2, 0.1], [0.2, 0.5, 0.3], [0.1, 0.1, 0.8], [0.3, 0.4, 0.3], [0.6, 0.3, 0.1]]
)
TRUTH = np.array(
    [[0.5, 0.3, 0.2], [0.3, 0.4, 0.3], [0.2, 0.2, 0.6], [0.1, 0.5, 0.4], [0.6, 0.3, 0.1]]
)
SHARE = np.array([0.3, 0.2, 0.2, 0.1, 0.2])
ERROR = {
    "brier": float(SHARE @ ((TRUTH - MODEL) ** 2).sum(axis=1)),
    "log": float(SHARE @ (TRUTH * np.log(TRUTH / MODEL)).sum(axis=1)),
}


def population(p):
    """Every prediction with every label, as often as they occur together; MODEL as given by p."""
    rows, labels = np.repeat(p, 3, axis=0), np.tile(np.arange(3), len(p))
    return Predictions(rows, labels, sample_weight=(SHARE[:, None] * TRUTH).ravel())


def gain_of(g, loss):
    return labelled_gain(
        loss_differences(population(MODEL), population(g), loss), population(g)
    ).value


@pytest.mark.parametrize(("loss", "tolerance"), [("brier", 1e-12), ("log", 5e-6)])
def test_the_largest_gain_of_any_map_is_the_canonical_error(loss, tolerance):
    # the log loss mixes g with 1e-6 of the uniform distribution: at most 1e-6 / (3 * .1)
    assert gain_of(TRUTH, loss) == pytest.approx(ERROR[loss], abs=tolerance)
    assert ERROR[loss] > 0.02
    rng = np.random.default_rng(0)
    for _ in range(200):
        g = TRUTH + rng.normal(0, 0.05, TRUTH.shape)
        g = np.maximum(g, 1e-3) / np.maximum(g, 1e-3).sum(axis=1, keepdims=True)
        assert gain_of(g, loss) < gain_of(TRUTH, loss)


def test_a_labelled_gain_is_a_mean_with_its_standard_error():
    rng = np.random.default_rng(1)
    psi, rows = rng.normal(size=40), Predictions(rng.uniform(size=40), rng.integers(0, 2, 40))
    found = labelled_gain(psi, rows)
    assert found.value == pytest.approx(psi.mean())
    assert found.standard_error == pytest.approx(psi.std() / np.sqrt(40))
    twice = rows.with_frequency(np.full(40, 2.0))
    assert labelled_gain(psi, twice).standard_error == pytest.approx(psi.std() / np.sqrt(80))


@dataclass(frozen=True)
class ToyInfluence:
    """Weights that depend on the class and on the first probability of rows of both samples."""

    slope: np.ndarray
    outside: np.ndarray

    def source(self, batch):
        return np.sin(5 * batch.matrix[:, :1]) * self.slope + (batch.labels[:, None] == [0, 1, 2])

    def target(self, batch):
        return batch.matrix[:, :1] ** 2 * self.slope


def test_a_label_free_gain_follows_its_formula():
    rng = np.random.default_rng(2)
    n, m, F, w = 60, 45, 4, np.array([0.5, 1.0, 2.0])
    source = Predictions(rng.dirichlet([1, 1, 1], n), rng.integers(0, 3, n))
    target = Predictions(rng.dirichlet([1, 1, 1], m))
    toy = ToyInfluence(rng.normal(size=3), rng.normal(size=(2, 3)) / 20)
    psi, here, there = rng.normal(size=n), rng.integers(0, F, n), rng.integers(0, F, m)
    found = shifted_gain(psi, (source, target), (here, there), w, toy)

    phi, other, y = toy.source(source), toy.target(target), source.labels
    phi, other = phi - phi.mean(axis=0), other - other.mean(axis=0)
    value, variance, mean_c = 0.0, 0.0, np.zeros(3)
    for k in range(F):
        rows, others = np.flatnonzero(here == k), np.flatnonzero(there == k)
        W = sum(w[y[i]] for i in rows)
        T = sum(w[y[i]] * psi[i] for i in rows) / W
        c = np.array([sum(psi[i] - T for i in rows if y[i] == label) / W for label in range(3)])
        value += len(rows) / n * (T + c @ (phi[rows].mean(axis=0) + other[others].mean(axis=0)))
        for i in rows:
            own = w[y[i]] * (psi[i] - T) * len(rows) / W
            variance += ((own + c @ phi[i]) / n) ** 2
        for j in others:
            variance += (len(rows) / n * (c @ other[j]) / len(others)) ** 2
        mean_c += len(rows) / n * c
    variance += sum((mean_c @ one) ** 2 for one in toy.outside)
    assert found.value == pytest.approx(value, rel=1e-10)
    assert found.standard_error == pytest.approx(np.sqrt(variance), rel=1e-10)
    plain = shifted_gain(psi, (source, target), (here, there), w, None)
    assert plain.value != pytest.approx(value)
    constant = shifted_gain(np.full(n, 0.3), (source, target), (here, there), w, toy)
    assert constant.value == pytest.approx(0.3)


def test_weights_of_one_are_labels():
    rng = np.random.default_rng(3)
    rows = Predictions(rng.dirichlet([1, 1, 1], 60), rng.integers(0, 3, 60))
    psi, of = rng.normal(size=60), np.arange(60) % 5
    labelled, free = (
        labelled_gain(psi, rows),
        shifted_gain(psi, (rows, rows), (of, of), np.ones(3), None),
    )
    assert free.value == pytest.approx(labelled.value)
    # around the mean of each fold, of 12 rows, in place of the mean of all
    assert free.standard_error == pytest.approx(labelled.standard_error, rel=0.1)


def test_a_calibrated_model_with_many_classes_gains_nothing():
    # With folds of equal class shares a recalibrator follows the class shares of the sample, which
    # differ from those of the population by chance, and seems to gain.
    model = GaussianSimulation(n_classes=50, dimensions=10, spread=0.7, temperature=1.0)
    found = [calshift.canonical_error_bound(*model.source(1000, rng=seed)) for seed in range(12)]
    assert np.mean([one.gain for one in found]) < 0
    # at most 5% of the bounds are above 0: three or more of 12 have a probability of 2%
    assert sum(one.lower_bound() > 0 for one in found) < 3


@pytest.mark.parametrize("labels", [True, False])
def test_the_bound_is_below_the_error_and_not_far(labels):
    model = GaussianSimulation(n_classes=3, dimensions=3, seed=2)
    f, _, posterior = model.draw(100_000, "source" if labels else "target", rng=0)
    truth = ((posterior - f) ** 2).sum(axis=1).mean()
    bounds, gains = [], []
    for seed in range(25):
        rows = model.source(1000, rng=[seed, 1])
        if not labels:
            rows = (*rows, model.target(1000, rng=[seed, 2])[0])
        found = calshift.canonical_error_bound(*rows, check=False)
        bounds.append(found.lower_bound())
        gains.append(found.gain / truth)
    # 5% at most are expected above: five or more of 25 have a probability of .7%
    assert np.sum(np.array(bounds) > truth) < 5
    assert 0.8 < np.mean(gains) < 1.1  # .93 with labels, .98 without, each with an error of .05
    assert np.mean(np.sqrt(bounds)) > 0.5 * np.sqrt(truth)


def sample(n=300, m=300, K=3):
    model = GaussianSimulation(n_classes=K, dimensions=3, seed=2)
    return (*model.source(n, rng=1), model.target(m, rng=2)[0])


def test_the_result_shows_its_numbers():
    found = calshift.canonical_error_bound(*sample(1000, 1000))
    low, high = found.confidence_interval(0.9)
    assert low == pytest.approx(found.gain - 1.644854 * found.standard_error, rel=1e-6)
    assert low + high == pytest.approx(2 * found.gain)
    assert found.lower_bound(0.95) == pytest.approx(low)
    assert found.root_lower_bound() == pytest.approx(found.lower_bound() ** 0.5)
    assert found.lower_bound(0.5) == pytest.approx(found.gain)
    shown = json.loads(json.dumps(found.to_dict()))
    assert shown["lower_bound"] == found.lower_bound()
    assert shown["trusted"] is found.trusted
    assert "Canonical error at least" in str(found)
    assert pickle.loads(pickle.dumps(found)) == found
    with pytest.raises(AttributeError):
        found.gain = 1.0


def test_a_log_loss_has_no_root():
    found = calshift.canonical_error_bound(*sample()[:2], loss="log")
    assert found.to_dict()["root_lower_bound"] is None
    assert "log loss" in str(found)
    with pytest.raises(calshift.InvalidInput, match='"brier" only'):
        found.root_lower_bound()


def test_zeros_give_finite_numbers():
    p, y, _ = sample()
    p = np.where(p < 0.2, 0.0, p)
    p /= p.sum(axis=1, keepdims=True)
    for loss in ("brier", "log"):
        found = calshift.canonical_error_bound(p, y, loss=loss)
        assert np.isfinite([found.gain, found.standard_error]).all()


def test_given_weights_are_taken_as_known():
    p, y, q = sample(1000, 1000)
    w = GaussianSimulation(n_classes=3, dimensions=3, seed=2).class_weights
    known = calshift.canonical_error_bound(p, y, q, weights=w)
    assert known.standard_error < calshift.canonical_error_bound(p, y, q).standard_error
    assert known.class_weights.method == "given"


@pytest.mark.parametrize(
    "method", ["temperature", "isotonic", calshift.EnsembleTemperatureScaling()]
)
def test_other_recalibrators_serve(method):
    p, y, q = sample()
    for rows in ((p, y), (p, y, q)):
        assert np.isfinite(calshift.canonical_error_bound(*rows, method=method, check=False).gain)


def test_the_same_call_gives_the_same_number():
    p, y, q = sample()
    found = [calshift.canonical_error_bound(p, y, q, rng=seed, check=False) for seed in (4, 4, 5)]
    assert found[0] == found[1]
    assert found[0].gain != found[2].gain
    as_rows = calshift.canonical_error_bound(Predictions(p, y), None, q, rng=4, check=False)
    assert as_rows.gain == found[0].gain


def test_a_class_that_the_source_lacks_is_left_out():
    p, y, q = sample(600, 300)
    kept = y != 2
    with pytest.warns(calshift.UnreliableWeights, match="lacks class 2"):
        found = calshift.canonical_error_bound(p[kept], y[kept], q, check=False)
    assert np.isfinite([found.gain, found.standard_error]).all()
    assert any("the source lacks class 2" in note for note in found.warnings)


def test_scores_of_two_classes_serve():
    model = calshift.simulate.BetaSimulation()
    p, y = model.source(2000, rng=1)
    truth = 2 * model.true_error(domain="source")  # both coordinates
    found = calshift.canonical_error_bound(p, y)
    assert 0 < found.lower_bound() < truth


def test_a_violated_assumption_is_not_trusted():
    p, y, q = sample(2000, 2000)
    other = np.roll(q, 1, axis=1) * 0.5 + 0.5 / 3
    with pytest.warns(calshift.UnreliableWeights):
        found = calshift.canonical_error_bound(p, y, other)
    assert not found.trusted
    assert str(found).startswith("Not reliable")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "hinge"}, "loss must be"),
        ({"folds": 1}, "folds must be"),
        ({"method": "magic"}, "method must be"),
        ({"weights": "bbse"}, "weights needs a p_target"),
        ({"check": "yes"}, "check must be"),
        ({"method": "prior"}, "target"),
    ],
)
def test_bad_input_is_refused(options, message):
    p, y, _ = sample(50)
    with pytest.raises(calshift.InvalidInput, match=message):
        calshift.canonical_error_bound(p, y, **options)


def test_samples_that_are_too_small_are_refused():
    with pytest.raises(calshift.InvalidInput, match="at least two rows"):
        calshift.canonical_error_bound([[0.5, 0.5]], [0])
    with pytest.raises(calshift.InvalidInput, match="at least two classes"):
        calshift.canonical_error_bound([[0.5, 0.5]] * 4, [0, 0, 0, 1])
    with pytest.raises(calshift.InvalidInput, match="p_target must have at least two rows"):
        calshift.canonical_error_bound([[0.5, 0.5]] * 40, [0, 1] * 20, [[0.5, 0.5]], check=False)
