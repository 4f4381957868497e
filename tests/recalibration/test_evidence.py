"""Prior strengths of largest evidence, and where the search for the joint fit starts."""

from __future__ import annotations

import numpy as np
import pytest

import calshift
from calshift import Predictions
from calshift.recalibration.joint.evidence import RANGE, QuadraticModel, maximize_evidence
from calshift.recalibration.joint.fit import fit_jointly
from calshift.recalibration.joint.likelihood import JointLikelihood
from calshift.recalibration.joint.prior import JointPrior
from calshift.simulate import GaussianSimulation

COUNTS = np.array([40.0, 90.0, 20.0, 70.0])


def quadratic_model(slopes: int, seed: int = 0) -> QuadraticModel:
    """Of an arbitrary information matrix."""
    rng = np.random.default_rng(seed)
    prior = JointPrior(COUNTS, slopes)
    rows = rng.normal(size=(60, prior.size))
    return QuadraticModel(prior, rows.T @ rows, 20 * rng.normal(size=prior.size))


def dense_forms(prior: JointPrior) -> list[np.ndarray]:
    """The (N, N) matrices of the forms."""
    found = []
    for form in prior.forms:
        found.append(np.zeros((prior.size,) * 2))
        form.add_to(found[-1], 1.0)
    return found


@pytest.fixture(params=[True, False])
def dense(request, monkeypatch):
    """Both ways to compute with the forms, of few and of many parameters."""
    monkeypatch.setattr("calshift.recalibration.joint.prior.MOST_DENSE", 60 if request.param else 0)


@pytest.mark.usefixtures("dense")
@pytest.mark.parametrize("slopes", [1, 4])
def test_the_derivatives_of_the_evidence(slopes):
    model = quadratic_model(slopes)
    at = np.linspace(-1.0, 2.0, len(model.prior.forms))
    moves = 1e-5 * np.eye(len(at))
    ends = [(model.evaluate(at + d), model.evaluate(at - d)) for d in moves]
    here = model.evaluate(at)
    gradient = [(up.value - down.value) / 2e-5 for up, down in ends]
    curvature = [(up.gradient - down.gradient) / 2e-5 for up, down in ends]
    np.testing.assert_allclose(here.gradient, gradient, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(here.curvature, curvature, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("slopes", [1, 4])
def test_the_volume_of_the_prior_is_the_determinant_of_its_forms(slopes):
    prior = JointPrior(COUNTS, slopes)
    forms = dense_forms(prior)

    def log_determinant(log_strength):
        total = sum(np.exp(one) * form for one, form in zip(log_strength, forms, strict=True))
        sizes = np.linalg.eigvalsh(total)
        return np.log(sizes[sizes > 1e-9]).sum()

    one, other = np.linspace(-1.0, 1.5, len(forms)), np.linspace(1.0, 0.3, len(forms))
    change = prior.volume(one).value - prior.volume(other).value
    assert change == pytest.approx(log_determinant(one) - log_determinant(other))


@pytest.mark.usefixtures("dense")
@pytest.mark.parametrize("slopes", [1, 4])
def test_products_with_the_precision(slopes):
    prior = JointPrior(COUNTS, slopes)
    strength = np.linspace(0.5, 3.0, len(prior.forms))
    values = np.random.default_rng(1).normal(size=prior.size)
    matrix = prior.add_precision(np.zeros((prior.size,) * 2), strength)
    np.testing.assert_allclose(prior.multiply(strength, values), matrix @ values, rtol=1e-10)
    forms = zip(strength, dense_forms(prior), strict=True)
    least = matrix - sum(size * form for size, form in forms)
    a, K = slopes, len(COUNTS)
    expected = 0.01 * np.eye(prior.size)
    expected[a : a + K, a : a + K] += COUNTS.mean()
    np.testing.assert_allclose(least, expected, atol=1e-12)


@pytest.mark.parametrize("start", [-3.0, 0.0, 5.0])
@pytest.mark.parametrize(("slopes", "seed"), [(1, 0), (4, 1), (4, 2)])
def test_strengths_of_largest_evidence_are_those_of_mackay(slopes, seed, start):
    model = quadratic_model(slopes, seed)
    forms, prior = dense_forms(model.prior), model.prior
    found = maximize_evidence(model, np.full(len(forms), start), 1e-10).logs
    strength = np.exp(found)
    covariance = np.linalg.inv(
        model.information + prior.add_precision(np.zeros((prior.size,) * 2), strength)
    )
    offset = covariance @ model.pull
    total = np.linalg.pinv(sum(s * form for s, form in zip(strength, forms, strict=True)), 1e-10)
    for size, log_size, form in zip(strength, found, forms, strict=True):
        freedom = size * np.trace(form @ total)
        fixed = (freedom - size * np.trace(form @ covariance)) / (offset @ form @ offset)
        if RANGE[0] < log_size < RANGE[1]:
            assert fixed == pytest.approx(size, rel=1e-3)
        else:
            assert (fixed > size) == (log_size == RANGE[1])


def samples(n: int, K: int):
    simulation = GaussianSimulation(K, dimensions=K, imbalance=4, seed=2)
    p, y = simulation.source(n, rng=1)
    return Predictions(p, y), Predictions(simulation.target(n, rng=2)[0])


@pytest.mark.parametrize("K", [2, 5])
def test_a_search_from_another_fit_ends_at_the_same_maximum(K):
    source, target = samples(800, K)
    fewer = source.take(slice(0, 600)), target.take(slice(100, 800))
    near = fit_jointly(source, target, source.class_counts)
    cold = fit_jointly(*fewer, fewer[0].class_counts)
    warm = fit_jointly(*fewer, fewer[0].class_counts, near=near)
    assert cold.converged
    assert warm.converged
    np.testing.assert_allclose(warm.parameters, cold.parameters, atol=3e-4)
    assert np.abs(warm.parameters - near.parameters).max() > 1e-3


def test_a_search_from_another_fit_is_shorter(monkeypatch):
    passes = []
    inner = JointLikelihood.__call__

    def counted(self, parameters, informed):
        passes.append(informed)
        return inner(self, parameters, informed)

    monkeypatch.setattr(JointLikelihood, "__call__", counted)
    source, target = samples(5000, 40)
    near = fit_jointly(source, target, source.class_counts)
    fewer = source.take(slice(0, 4000)), target.take(slice(0, 4000))
    counts = np.maximum(fewer[0].class_counts, 0.5)
    lengths = []
    for start in (None, near):
        passes.clear()
        fit_jointly(*fewer, counts, near=start)
        lengths.append((len(passes), sum(passes)))
    assert lengths[1][0] < lengths[0][0]
    assert lengths[1][1] < lengths[0][1]


def test_a_fit_by_the_user_does_not_depend_on_a_former_one():
    source, target = samples(500, 3)
    other = samples(300, 3)
    once = calshift.ShiftScaling().fit(source, None, target)
    again = calshift.ShiftScaling().fit(other[0], None, other[1]).fit(source, None, target)
    np.testing.assert_array_equal(once.class_weights_, again.class_weights_)


def test_strengths_are_those_of_largest_evidence_at_the_maximum():
    """Also where the information there makes them go to and fro."""
    simulation = GaussianSimulation(20, imbalance=3, temperature=0.7, seed=29)
    p, y = simulation.source(60, rng=29)
    source, target = Predictions(p, y), Predictions(simulation.target(300, rng=1029)[0])
    counts = np.maximum(source.class_counts, 0.5)
    found = fit_jointly(source, target, counts, 1e-12)
    prior = JointPrior(counts, 20)
    here = JointLikelihood.of(source, target, 20, 1e-12)(found.parameters, informed=True)
    pull = here.gradient + here.information @ (found.parameters - prior.centre)
    slope = QuadraticModel(prior, here.information, pull).evaluate(found.log_strength).gradient
    inside = (found.log_strength > RANGE[0]) & (found.log_strength < RANGE[1])
    assert found.converged
    assert inside.any()
    np.testing.assert_allclose(slope[inside], 0, atol=0.01)
