"""The truths of the simulations, found another way."""

from __future__ import annotations

import numpy as np
import pytest

import calshift
from calshift.simulate import BetaSimulation, GaussianSimulation


@pytest.mark.parametrize(
    ("norm", "domain", "value"),
    [
        (2, "source", 0.029753),
        (2, "target", 0.009517),
        (1, "source", 0.155019),
        (1, "target", 0.080479),
    ],
)
def test_beta_truth_has_the_published_values(norm, domain, value):
    assert BetaSimulation().true_error(norm, domain) == pytest.approx(value, abs=1e-6)


def test_beta_truth_agrees_with_a_draw_of_posteriors():
    simulation = BetaSimulation(0.3, 0.6, (3, 1.5), (1.5, 4))
    from scipy import stats

    p, _ = simulation.target(200_000, rng=0)
    one = 0.6 * stats.beta(3, 1.5).pdf(p)
    gap = (one / (one + 0.4 * stats.beta(1.5, 4).pdf(p)) - p) ** 2
    # mean of 200 000 independent terms: 4 standard errors
    assert abs(gap.mean() - simulation.true_error()) < 4 * gap.std() / np.sqrt(len(gap))


def test_gaussian_truth_of_two_classes_is_an_integral():
    """K = 2 in one dimension: p is a function of x, so E[Y | p] is the posterior itself."""
    simulation = GaussianSimulation(n_classes=2, dimensions=1, imbalance=3, temperature=0.5, seed=4)
    a, b = simulation.means[:, 0]
    x = np.linspace(-9, 9, 200_001)
    prior = simulation.prior("target")
    density = np.stack([np.exp(-((x - c) ** 2) / 2) / np.sqrt(2 * np.pi) for c in (a, b)], axis=1)
    joint = density * prior
    p = calshift.softmax(np.log(density * simulation.prior("source")) / 0.5)
    gap = np.abs(joint / joint.sum(axis=1, keepdims=True) - p)
    for norm in (1, 2):
        expected = ((gap**norm).mean(axis=1) * joint.sum(axis=1)).sum() * (x[1] - x[0])
        # groups of 1000 of 400 000 sorted rows: bias of the grouping and noise below one percent
        assert simulation.true_error(norm, rows=400_000) == pytest.approx(expected, rel=0.01)


def test_a_calibrated_model_has_no_error_on_its_source():
    simulation = GaussianSimulation(n_classes=4, temperature=1.0)
    assert abs(simulation.true_error(domain="source", rows=100_000)) < 1e-12
    assert simulation.true_error(domain="target", rows=100_000) > 1e-3


@pytest.mark.parametrize("tail", ["source", "target"])
def test_weights_and_shares_fit_the_draws(tail):
    simulation = GaussianSimulation(n_classes=5, imbalance=20, long_tail=tail)
    _, y = simulation.source(100_000, rng=0)
    _, z = simulation.target(100_000, rng=1)
    found = calshift.weights_from_labels(y, z).values
    # a share q of 100 000 draws has relative sd sqrt((1-q)/q/1e5) <= 2% for q >= 2.5%
    np.testing.assert_allclose(found, simulation.class_weights, rtol=4 * 0.02 * np.sqrt(2))
    assert simulation.prior(tail)[0] / simulation.prior(tail)[-1] == pytest.approx(20)


def test_same_seed_same_draw():
    for simulation in (BetaSimulation(), GaussianSimulation()):
        for a, b in zip(simulation.source(50, rng=3), simulation.source(50, rng=3), strict=True):
            np.testing.assert_array_equal(a, b)


def test_unknown_domain_is_an_error():
    with pytest.raises(calshift.InvalidInput, match="source, target"):
        BetaSimulation().true_error(domain="test")


def test_posteriors_are_those_of_the_labels():
    """The mean posterior of the labels that came is their mean certainty, to 4 standard errors."""
    p, y, posterior = GaussianSimulation(n_classes=4).draw(20_000, "target", rng=0)
    hit = posterior[np.arange(len(y)), y] - (posterior**2).sum(axis=1)
    assert abs(hit.mean()) < 4 * hit.std() / np.sqrt(len(y))
    assert p.shape == posterior.shape


@pytest.mark.parametrize("rows", [500, 12_345])
def test_a_draw_too_small_for_the_truth_is_refused(rows):
    with pytest.raises(calshift.InvalidInput, match="rows must be"):
        GaussianSimulation().true_error(rows=rows)


@pytest.mark.parametrize("bad", [float("inf"), float("nan"), -1, "many", None, 10**400, 0.5])
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (BetaSimulation, "positive"),
        (BetaSimulation, "n"),
        (calshift.simulate.GaussianSimulation, "n"),
    ]
    + [
        (calshift.simulate.GaussianSimulation, name) for name in ("n_classes", "dimensions", "seed")
    ],
)
def test_parameters_of_simulations_are_refused_by_name(kind, name, bad):
    if name == "seed" and bad in (None, 10**400):
        return  # both are seeds
    with pytest.raises(calshift.InvalidInput, match="rng|seed" if name == "seed" else name):
        kind().source(bad) if name == "n" else kind(**{name: bad})
