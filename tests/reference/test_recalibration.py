"""Recalibrators against brute force from their definitions, and against known truth."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from sklearn.isotonic import IsotonicRegression

import calshift
from calshift import Predictions
from calshift.recalibration.joint.fit import fit_jointly
from calshift.recalibration.joint.likelihood import JointLikelihood
from calshift.recalibration.joint.prior import JointPrior
from calshift.scaling.calibrator import LEAST_PROBABILITY
from calshift.simulate import GaussianSimulation

pytestmark = pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")

OVERCONFIDENT = GaussianSimulation(n_classes=3, dimensions=3, temperature=0.5, imbalance=5, seed=1)
TILT = np.array([0.5, -0.3, -0.2])  # of the log-probabilities, for the biases to mend
W = np.array([0.5, 0.9, 1.6])


def softmax(z):
    p = np.exp(z - z.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def log_loss(p, y, f=None):
    return np.average(-np.log(p[np.arange(len(y)), y]), weights=f)


def tilted(n, rng):
    """Overconfident predictions with a bias too, and labels."""
    p, y = OVERCONFIDENT.source(n, rng=rng)
    return softmax(np.log(p) + TILT), y


# --- temperature, bias-corrected temperature and vector scaling -----------------------------------


def best_temperature(p, y, f=None):
    found = minimize_scalar(
        lambda t: log_loss(softmax(np.log(p) / np.exp(t)), y, f), bounds=(-2, 2), method="bounded",
        options={"xatol": 1e-9},
    )  # fmt: skip
    return np.exp(found.x)


# The prior of 1 / T has precision 0.01 around 1, the rows an information of 4000 x 0.02 or more: it
# moves 1 / T = 2.5 by 0.01 x 1.5 / 80 = 2e-4. Measured: below 2e-4 of T.
@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.5])
@pytest.mark.parametrize("K", [2, 3, 10])
def test_temperature_scaling_has_the_largest_likelihood(K, temperature):
    p, y = GaussianSimulation(K, temperature=temperature, dimensions=3).source(4000, rng=K)
    found = calshift.TemperatureScaling().fit(p, y)
    best = best_temperature(p, y)
    assert found.temperature_ == pytest.approx(best, rel=5e-4)
    assert best == pytest.approx(1 / temperature, rel=0.1)
    np.testing.assert_allclose(found.transform(p), softmax(np.log(p) / best), atol=1e-4)
    if K == 2:
        binary = calshift.TemperatureScaling().fit(p[:, 1], y)
        assert binary.temperature_ == pytest.approx(best, rel=5e-4)


@pytest.mark.parametrize("kind", ["class weights", "sample weights", "both"])
def test_weighted_temperature_scaling_has_the_largest_weighted_likelihood(kind):
    p, y = tilted(4000, 2)
    f = np.random.default_rng(3).integers(1, 9, len(y)) * (y + 1.0)
    f = np.ones(len(y)) if kind == "class weights" else f
    w = np.ones(3) if kind == "sample weights" else W
    source = Predictions(p, y, sample_weight=f)
    found = calshift.TemperatureScaling().fit(source, weights=w).temperature_
    assert found == pytest.approx(best_temperature(p, y, f * w[y]), rel=5e-4)
    assert abs(found / best_temperature(p, y) - 1) > 0.01


def best_scaling(p, y, f, one_slope):
    """Slopes and biases of least weighted log loss, without any prior."""
    x, hit, K = np.log(p), np.eye(p.shape[1])[y], p.shape[1]
    slopes = 1 if one_slope else K

    def loss(eta):
        c = softmax(eta[:slopes] * x + eta[slopes:])
        missed = (f / f.sum())[:, None] * (c - hit)
        by_slope = (missed * x).sum(axis=0)
        by_slope = by_slope.sum(keepdims=True) if one_slope else by_slope
        return log_loss(c, y, f), np.append(by_slope, missed.sum(axis=0))

    start = np.append(np.ones(slopes), np.zeros(K))
    eta = minimize(loss, start, jac=True, method="BFGS", options={"gtol": 1e-8}).x
    return softmax(eta[:slopes] * x + eta[slopes:])


# Six parameters or fewer, whose noise costs d / 2n < 2e-4 in log loss; a prior of largest evidence
# takes back less than that. Measured: below 2e-5.
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("made", "one_slope"),
    [(calshift.BiasCorrectedTemperatureScaling, True), (calshift.VectorScaling, False)],
)
def test_scaling_with_biases_has_the_largest_likelihood(made, one_slope, weighted):
    p, y = tilted(20_000, 4)
    p = p ** np.array([1.0, 1.0, 1.0 if one_slope else 0.6])
    p /= p.sum(axis=1, keepdims=True)
    f = W[y] if weighted else np.ones(len(y))
    mended = made().fit(p, y, weights=W if weighted else None).transform(p)
    best = best_scaling(p, y, f, one_slope)
    assert 0 <= log_loss(mended, y, f) - log_loss(best, y, f) + 1e-9 < 1e-4
    np.testing.assert_allclose(mended, best, atol=0.01)
    simpler = calshift.TemperatureScaling().fit(p, y, weights=W if weighted else None)
    assert log_loss(simpler.transform(p), y, f) > log_loss(best, y, f) + 1e-3


# --- isotonic regression --------------------------------------------------------------------------


def by_definition(score, hit, f, at):
    """Blocks of scikit-learn's regression, a row at the mean score of each, and regressed again."""

    def blocks(x, value, weight):
        level = IsotonicRegression().fit_transform(x, value, sample_weight=weight)
        return np.append(0, np.cumsum(np.diff(level) > 1e-12))

    order = np.argsort(score)
    score, hit, f = score[order], hit[order].astype(float), f[order]
    block = blocks(score, hit, f)
    mass = np.bincount(block, f)
    level = (np.bincount(block, f * hit) + np.bincount(block, f * score) / mass) / (mass + 1)
    joined = blocks(np.arange(len(mass)), level, mass + 1)
    level = np.bincount(joined, (mass + 1) * level) / np.bincount(joined, mass + 1)
    return np.interp(at, score, level[joined[block]])


@pytest.mark.parametrize("weighted", [False, True])
def test_isotonic_scaling_is_its_definition(weighted):
    p, y = tilted(800, 5)
    q, _ = tilted(300, 6)
    f = np.random.default_rng(7).uniform(1, 3, len(y))  # so that no two blocks are equal
    source = Predictions(p, y, sample_weight=f)
    found = calshift.IsotonicScaling().fit(source, weights=W if weighted else None).transform(q)
    if weighted:  # as many rows as they are worth
        f = f * W[y] * (f @ W[y]) / (f @ W[y] ** 2)
    by_class = [by_definition(p[:, c], y == c, f, q[:, c]) for c in range(3)]
    expected = np.stack(by_class, axis=1)
    np.testing.assert_allclose(found, expected / expected.sum(axis=1, keepdims=True), atol=1e-9)


def test_isotonic_scaling_of_large_blocks_is_isotonic_regression():
    """Of two classes, whose regressions mirror each other, so that rows sum to 1 before."""
    p, y = GaussianSimulation(2, temperature=0.5, dimensions=2).source(20_000, rng=8)
    score = (np.floor(p[:, 1] * 20) + 0.5) / 20
    model = IsotonicRegression().fit(score, y)
    at = np.unique(score)
    smallest = np.unique(score, return_counts=True)[1].min()
    assert smallest > 100
    found = calshift.IsotonicScaling().fit(score, y).transform(at)
    # one row more in a block moves its frequency by less than 1 / its rows
    np.testing.assert_allclose(found, model.predict(at), atol=1 / smallest)
    between = (at[1:] + at[:-1]) / 2
    np.testing.assert_allclose(
        calshift.IsotonicScaling().fit(score, y).transform(between),
        model.predict(between), atol=1 / smallest,
    )  # fmt: skip
    assert np.abs(model.predict(at) - at).max() > 0.05


# --- ensemble temperature scaling -----------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("noise", [0.0, 0.2], ids=["plain", "noisy labels"])
def test_shares_of_an_ensemble_have_the_largest_likelihood(noise, weighted):
    p, y = GaussianSimulation(3, temperature=0.8, dimensions=3, spread=1.3).source(3000, rng=9)
    rng = np.random.default_rng(10)
    y = np.where(rng.random(len(y)) < noise, rng.integers(3, size=len(y)), y)
    w = W if weighted else np.ones(3)
    found = calshift.EnsembleTemperatureScaling().fit(p, y, weights=w)
    assert found.shares_.min() >= 0
    assert found.shares_.sum() == pytest.approx(1, abs=1e-12)
    assert found.temperature_ == pytest.approx(best_temperature(p, y, w[y]), rel=5e-4)
    members = softmax(np.log(p) / found.temperature_), p, np.full_like(p, 1 / 3)

    def loss(shares):
        return log_loss(sum(s * part for s, part in zip(shares, members, strict=True)), y, w[y])

    steps = np.linspace(0, 1, 26)
    grid = [(a, b, max(1 - a - b, 0)) for a, b in itertools.product(steps, steps) if a + b < 1.001]
    best = min(map(loss, grid))
    assert loss(found.shares_) <= best + 1e-9
    assert loss(found.shares_) == pytest.approx(best, abs=1e-3)  # the grid comes near
    assert (loss((1, 0, 0)) > best + 0.01) == (noise > 0)  # a temperature alone is as good, or not
    np.testing.assert_allclose(
        found.transform(p), np.tensordot(found.shares_, np.stack(members), 1), atol=1e-12
    )


# --- the temperature of least label-free error ----------------------------------------------------


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("K", [2, 3, 10])
def test_label_free_temperature_has_about_the_least_error(K, given):
    simulation = GaussianSimulation(K, temperature=0.5, dimensions=4, imbalance=5, seed=2)
    p, y = simulation.source(4000, rng=11)
    q, _ = simulation.target(4000, rng=12)
    w = simulation.class_weights if given else None
    found = calshift.LabelFreeTemperatureScaling().fit(p, y, q, weights=w)
    if given:
        np.testing.assert_allclose(found.class_weights_, w)

    def error(temperature, interval=None):
        tempered = (softmax(np.log(part) / temperature) for part in (p, q))
        one, two = tempered
        return calshift.target_calibration_error(
            one, y, two, weights=found.class_weights_, interval=interval, check=False
        )

    grid = found.temperature_ * np.exp(np.linspace(-0.6, 0.6, 25))
    least = min(error(t).estimate for t in grid)
    at = error(found.temperature_, "influence")
    assert at.estimate <= least + at.standard_error
    assert error(1.0).estimate > least + at.standard_error  # it was not so before


# --- slopes, biases and weights together ----------------------------------------------------------


def joint(parameters, p, y, q, f, g):
    """Labels of the source, and which rows are the target's; f and g are sample weights."""
    K = p.shape[1]
    a, b, s = parameters[:K], parameters[K : 2 * K], parameters[2 * K :]
    one, two = softmax(a * np.log(p) + b), softmax(a * np.log(q) + b)
    labels = f @ np.log(one[np.arange(len(y)), y])
    odds = g.sum() / f.sum()
    outside = -(f @ np.log1p(odds * (one @ np.exp(s))))
    inside = odds * (two @ np.exp(s))
    return labels + outside + g @ np.log(inside / (1 + inside))


def joint_sample():
    p, y = tilted(400, 13)
    q = softmax(np.log(OVERCONFIDENT.target(500, rng=14)[0]) + TILT)
    rng = np.random.default_rng(15)
    return p, y, q, rng.uniform(0.5, 2, 400), rng.uniform(0.5, 2, 500)


def found_together(p, y, q, f, g):
    """The fit, with the library's likelihood and prior."""
    source, target = Predictions(p, y, sample_weight=f), Predictions(q, sample_weight=g)
    found = fit_jointly(source, target, source.class_counts)
    likelihood = JointLikelihood.of(source, target, 3, LEAST_PROBABILITY)
    return found, likelihood, JointPrior(source.class_counts, 3)


def differences(function, at, step=1e-5):
    moves = step * np.eye(len(at))
    return np.array([(function(at + d) - function(at - d)) / (2 * step) for d in moves])


def test_the_joint_likelihood_and_its_gradient():
    sample = joint_sample()
    _, likelihood, _ = found_together(*sample)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        at = np.concatenate([rng.uniform(0.3, 1.2, 3), rng.normal(0, 0.4, 6)])
        here = likelihood(at, informed=False)
        assert here.value == pytest.approx(joint(at, *sample), rel=1e-10)
        numeric = differences(lambda there: joint(there, *sample), at)
        np.testing.assert_allclose(here.gradient, numeric, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("slopes", [1, 3])
@pytest.mark.parametrize("weighted", [True, False])
def test_the_expected_information_of_the_joint_likelihood(slopes, weighted):
    p, y, q, f, g = joint_sample()
    f, g = (f, g) if weighted else (np.ones(len(p)), np.ones(len(q)))
    weights = (f, g) if weighted else (None, None)
    source = Predictions(p, y, sample_weight=weights[0])
    target = Predictions(q, sample_weight=weights[1])
    likelihood = JointLikelihood.of(source, target, slopes, LEAST_PROBABILITY)
    rng = np.random.default_rng(4)
    at = np.concatenate([rng.uniform(0.3, 1.2, slopes), rng.normal(0, 0.4, 6)])
    a, b, s = np.repeat(at[:slopes], 3 // slopes), at[slopes:-3], at[-3:]

    def log_odds(rows):
        """Of the target, and their gradient by all parameters."""
        c = softmax(a * np.log(rows) + b)
        rho = c * np.exp(s) / (c @ np.exp(s))[:, None]
        by_slope = (rho - c) * np.log(rows)
        by_slope = by_slope if slopes == 3 else by_slope.sum(axis=1, keepdims=True)
        odds = g.sum() / f.sum() * (c @ np.exp(s))
        return odds / (1 + odds), np.hstack([by_slope, rho - c, rho]), c

    expected = np.zeros((slopes + 6, slopes + 6))
    for rows, frequency in ((p, f), (q, g)):
        m, x, c = log_odds(rows)
        expected += x.T @ (x * (frequency * m * (1 - m))[:, None])
    for row, c, frequency in zip(p, log_odds(p)[2], f, strict=True):
        by_slope = np.diag(np.log(row)) if slopes == 3 else np.log(row)[:, None]
        x = np.hstack([by_slope, np.eye(3), np.zeros((3, 3))])
        expected += frequency * x.T @ (np.diag(c) - np.outer(c, c)) @ x
    found = likelihood(at, informed=True).information
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_the_fit_of_all_parameters_is_a_maximum_of_the_penalised_likelihood():
    sample = joint_sample()
    found, likelihood, prior = found_together(*sample)
    assert found.converged
    at, strength = found.parameters, np.exp(found.log_strength)
    precision = prior.add_precision(np.zeros((9, 9)), strength)

    def penalised(at):
        return joint(at, *sample) - (at - prior.centre) @ precision @ (at - prior.centre) / 2

    assert np.linalg.eigvalsh(precision).min() > 0
    information = likelihood(at, informed=True).information + precision
    slope = differences(penalised, at)
    # what another Newton step would add, against the library's own limit of 1e-10 a row
    assert slope @ np.linalg.solve(information, slope) < 2e-10 * 900
    rng = np.random.default_rng(0)
    spread = np.sqrt(np.diag(np.linalg.inv(information)))
    for _ in range(30):
        assert penalised(at + 0.1 * spread * rng.normal(size=9)) < penalised(at)


def test_shift_scaling_uses_what_was_found_together():
    p, y, q, f, g = joint_sample()
    found, *_ = found_together(p, y, q, f, g)
    source, target = Predictions(p, y, sample_weight=f), Predictions(q, sample_weight=g)
    fitted = calshift.ShiftScaling().fit(source, None, target)
    a, b, s = found.parameters.reshape(3, 3)
    np.testing.assert_allclose(fitted.transform(q), softmax(a * np.log(q) + b + s), atol=1e-10)


@pytest.mark.parametrize(("K", "dimensions"), [(3, 3), (10, 10)])
def test_shift_scaling_comes_near_the_truth(K, dimensions):
    simulation = GaussianSimulation(K, 20.0, 0.5, dimensions, spread=0.9, seed=3)
    p, y = simulation.source(20_000, rng=16)
    q, z, truth = simulation.draw(20_000, rng=17)
    mended = calshift.ShiftScaling().fit(p, y, q).transform(q)
    best = log_loss(truth, z)
    # 3 K parameters at most, whose noise costs about 3 K / 2n = 7.5e-4
    assert abs(log_loss(mended, z) - best) < 2e-3
    assert np.abs(mended - truth).mean() < 0.01
    temperature = calshift.TemperatureScaling().fit(p, y, q).transform(q)
    assert log_loss(temperature, z) > best + 0.02


# --- nothing to mend ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "made",
    [
        calshift.ShiftScaling,
        calshift.TemperatureScaling,
        calshift.BiasCorrectedTemperatureScaling,
        calshift.VectorScaling,
        calshift.EnsembleTemperatureScaling,
        calshift.LabelFreeTemperatureScaling,
        calshift.PriorCorrection,
    ],
)
def test_a_calibrated_model_without_shift_loses_little(made):
    """Less than the noise of the log loss on 2000 rows, even a fifth of it.

    Twenty parameters cost 20 / 2n = 0.005 without a prior, the standard error is 0.018.
    """
    simulation = GaussianSimulation(10, temperature=1.0, imbalance=1.0)
    q, z = simulation.target(20_000, rng=18)
    before = -np.log(q[np.arange(len(z)), z])
    lost = []
    for seed in range(20):
        p, y = simulation.source(2000, rng=[19, seed])
        target, _ = simulation.target(2000, rng=[20, seed])
        lost.append(log_loss(made().fit(p, y, target).transform(q), z) - before.mean())
    assert np.mean(lost) < 0.2 * before.std() / np.sqrt(2000)
    assert np.std(lost) > 0  # it did something
