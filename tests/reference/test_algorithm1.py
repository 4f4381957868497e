"""Algorithm 1 against its definition, and against what it claims to predict.

Brute force: the law of R bin by bin as docs/mathematics.md has it, and integrals over R by adaptive
quadrature. Monte Carlo: samples redrawn where the assumptions hold, and where they do not.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from brute_force import binned_places, mass_edges, rows, sample, scores_and_events
from scipy import integrate

import calshift
from calshift.inference.algorithm1 import Bin, absolute, by_quadrature, square, variance_of

pytestmark = pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")
NORMS = (1, 1.5, 2, 3, 4)
KINDS = ("binary", "classwise")


# --- brute force ----------------------------------------------------------------------------------


def normal_mean(function, mean, variance, folds):
    """E function(R) of R normal, integrated between the folds."""
    s = math.sqrt(variance)
    if s == 0:
        return function(mean)

    def integrand(u):
        return function(mean + s * u) * math.exp(-u * u / 2) / math.sqrt(2 * math.pi)

    inside = sorted({min(max((fold - mean) / s, -10.0), 10.0) for fold in folds})
    ends = [-10.0, *inside, 10.0]
    return sum(
        integrate.quad(integrand, low, high, epsabs=1e-15, epsrel=1e-11)[0]
        for low, high in itertools.pairwise(ends)
        if high > low
    )


def sum_variance(f, mean, variance, norm):
    """Var(sum_j |R - f_j|^p), R shared and every f_j drawn anew: M Var(Z) + M (M - 1) Cov."""
    M = len(f)

    def gap(R, power):
        return sum(abs(R - f_j) ** power for f_j in f) / M

    first = normal_mean(lambda R: gap(R, norm), mean, variance, f)
    second = normal_mean(lambda R: gap(R, 2 * norm), mean, variance, f)
    shared = normal_mean(lambda R: gap(R, norm) ** 2, mean, variance, f)
    return M * (second - first**2) + M * (M - 1) * (shared - first**2)


def brute_force(kind, norm, bins, p, y, p_target=None, w=None, trials="bin"):
    """Variance of every event; ``trials``: what S_b is a binomial count of (bin, all, class)."""
    here = scores_and_events(kind, p, y)
    there = here if p_target is None else scores_and_events(kind, p_target)
    weight = None if w is None else ([w[1]] if kind == "binary" else w)
    variances = []
    for c, ((f, event), (f_target, _)) in enumerate(zip(here, there, strict=True)):
        at, at_target, _ = binned_places(f, f_target, mass_edges(f_target, bins), None)
        n, m, total = len(f), len(f_target), 0.0
        for b in sorted(set(at_target)):
            inside = [f_j for f_j, place in zip(f_target, at_target, strict=True) if place == b]
            n_b = sum(1 for place in at if place == b)
            S = sum(e for e, place in zip(event, at, strict=True) if place == b)
            if p_target is None:
                mean, variance = S / n_b, S / n_b * (1 - S / n_b) / (n_b - 1)
            else:
                a = weight[c] / n * (m - 1) / (len(inside) - 1)
                of = {"bin": n_b, "all": n, "class": sum(event)}[trials]
                mean, variance = a * S, a**2 * S * (1 - S / of) if S else 0.0
            total += sum_variance(inside, mean, variance, norm)
        variances.append(total / m**2)
    return variances


def of_the_mean(variances):
    return sum(variances) / len(variances) ** 2


def agrees(value, norm):
    """To rounding, but for the quadrature's norms: within 1e-3 where scores spread."""
    return pytest.approx(value, rel=1e-3 if norm in (1.5, 3) else 1e-8)


@pytest.mark.parametrize("tied", [False, True], ids=["smooth", "tied"])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_with_labels(kind, norm, tied):
    p, y, *_ = sample(kind, seed=1, tied=tied, n=60)
    found = calshift.variance_algorithm1(p, y, kind=kind, norm=norm, bins=6)
    expected = brute_force(kind, norm, 6, rows(p), rows(y))
    assert float(found) == agrees(of_the_mean(expected), norm)
    assert found.corrected is None
    if kind == "classwise":
        assert found.per_class == agrees(expected, norm)


@pytest.mark.parametrize("tied", [False, True], ids=["smooth", "tied"])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_without_labels(kind, norm, tied):
    p, y, q, w = sample(kind, seed=2, tied=tied, n=70, m=50)
    data, asked = tuple(map(rows, (p, y, q, w))), {"weights": w, "kind": kind, "norm": norm}
    found = calshift.variance_algorithm1(p, y, q, bins=6, **asked)
    fixed = calshift.variance_algorithm1(p, y, q, bins=6, stratified=True, **asked)
    expected = {t: brute_force(kind, norm, 6, *data, trials=t) for t in ("bin", "all", "class")}
    assert float(found) == float(fixed) == agrees(of_the_mean(expected["bin"]), norm)
    assert found.corrected == agrees(of_the_mean(expected["all"]), norm)
    assert fixed.corrected == agrees(of_the_mean(expected["class"]), norm)
    if kind == "classwise":
        assert found.per_class == agrees(expected["bin"], norm)
        assert found.corrected_per_class == agrees(expected["all"], norm)


# --- one bin --------------------------------------------------------------------------------------

BINS = {
    "narrow": (np.linspace(0.3, 0.32, 9), 0.5, 0.1**2),
    "wide": (np.linspace(0, 1, 40) ** 2, 0.3, 0.05**2),
    "sure": (np.linspace(0.2, 0.6, 7), 0.35, 1e-7**2),
    "certain": (np.linspace(0.2, 0.6, 7), 0.35, 0.0),
    "on a score": (np.array([0.2, 0.4, 0.4, 0.4, 0.9]), 0.4, 0.2**2),
    "equal": (np.full(5, 0.25), 0.25, 0.1**2),
    "beyond 1": (np.linspace(0.9, 1, 12), 2.3, 0.7**2),
}


def as_bin(f, mean, variance):
    return Bin(f, np.full(len(f), 1 / len(f)), len(f), mean, variance)


@pytest.mark.parametrize("name", BINS)
@pytest.mark.parametrize(("norm", "exact"), [(1, absolute), (2, square)])
def test_closed_forms_of_one_bin(name, norm, exact):
    f, mean, variance = BINS[name]
    within, shared = exact(as_bin(f, mean, variance))
    M = len(f)
    expected = sum_variance(f.tolist(), mean, variance, norm)
    assert M * within + M * (M - 1) * shared == pytest.approx(expected, rel=1e-7, abs=1e-14)
    assert 0 <= shared <= within + 1e-15


@pytest.mark.parametrize("name", BINS)
@pytest.mark.parametrize("norm", [2, 4, 6])
def test_the_quadrature_is_exact_for_even_norms(name, norm):
    f, mean, variance = BINS[name]
    within, shared = by_quadrature(as_bin(f, mean, variance), norm)
    M = len(f)
    expected = sum_variance(f.tolist(), mean, variance, norm)
    assert M * within + M * (M - 1) * shared == pytest.approx(expected, rel=1e-7, abs=1e-14)


@pytest.mark.parametrize(("norm", "error"), [(1.2, 0.012), (1.5, 0.0025), (3, 2e-5)])
def test_the_quadrature_is_good_where_all_scores_fold_at_one_point(norm, error):
    """The accuracy its docstring states, in its worst case."""
    f, mean, variance = BINS["equal"]
    within, shared = by_quadrature(as_bin(f, mean, variance), norm)
    expected = sum_variance(f.tolist(), mean, variance, norm) / len(f) ** 2
    assert within == pytest.approx(shared)
    assert within == pytest.approx(expected, rel=error)


@pytest.mark.parametrize("name", ["narrow", "wide", "on a score", "beyond 1"])
@pytest.mark.parametrize("norm", [1, 2, 3])
def test_the_sum_of_gaps_has_this_variance(name, norm):
    """R and then M scores drawn 100 000 times: relative error of a variance sqrt((k - 1) / 1e5),
    with a kurtosis k below 20 for every bin here: four standard errors are 5.5%."""
    f, mean, variance = BINS[name]
    M, rng = len(f), np.random.default_rng(5)
    R = rng.normal(mean, math.sqrt(variance), (100_000, 1))
    total = (np.abs(R - rng.choice(f, (100_000, M))) ** norm).sum(axis=1)
    within, shared = variance_of(norm)(as_bin(f, mean, variance))
    assert np.var(total) == pytest.approx(M * within + M * (M - 1) * shared, rel=0.055)


# --- Monte Carlo where the assumptions hold -------------------------------------------------------

SCORES = np.array([0.05, 0.2, 0.35, 0.5, 0.7, 0.9])
TRUTH = np.array([0.2, 0.3, 0.3, 0.65, 0.75, 0.75])  # frequency of class 1 at each score


def redrawn(draws, rows_of_score, target=None, w=None, norm=2, counts_fixed=True):
    """Monte Carlo variance of the paper's estimate, and the mean of the variances reported.

    Labels are redrawn at given scores (``counts_fixed``), or scores and labels together.
    """
    rng, estimates, reported = np.random.default_rng(8), [], []
    asked = {"norm": norm, "bins": SCORES[1:].tolist()}
    for _ in range(draws):
        at = np.repeat(np.arange(len(SCORES)), rows_of_score)
        if not counts_fixed:
            at = rng.choice(at, len(at))
        p, y = SCORES[at], (rng.random(len(at)) < TRUTH[at]).astype(int)
        if target is None:
            result = calshift.calibration_error(p, y, estimator="paper", **asked)
            found = calshift.variance_algorithm1(p, y, **asked)
        else:
            result = calshift.target_calibration_error(
                p, y, target, weights=w, estimator="paper", **asked
            )
            found = calshift.variance_algorithm1(p, y, target, weights=w, **asked)
        estimates.append(result.estimate)
        reported.append([float(found), found.corrected or 0.0])
    return np.var(estimates, ddof=1), *np.mean(reported, axis=0)


@pytest.mark.slow
@pytest.mark.parametrize("norm", [1, 2])
def test_with_labels_it_is_right_at_fixed_scores(norm):
    """Counts of scores fixed, labels binomial: what Algorithm 1 assumes.

    800 draws: four standard errors of a variance are 4 sqrt(2/800) = 20%; leaving one row out and
    plugging in frequencies of 150 rows move either side by some 1/50 more.
    """
    monte_carlo, papers, _ = redrawn(800, [150] * 6, norm=norm)
    assert papers == pytest.approx(monte_carlo, rel=0.22)


@pytest.mark.slow
@pytest.mark.parametrize("norm", [1, 2])
def test_without_labels_it_is_right_if_source_counts_of_the_bins_are_fixed(norm):
    """The n_b the paper takes as given are given here. Tolerance as above."""
    target = np.repeat(SCORES, [40, 60, 80, 100, 120, 140])
    monte_carlo, papers, corrected = redrawn(800, [150] * 6, target, [0.8, 1.2], norm)
    assert papers == pytest.approx(monte_carlo, rel=0.22)
    assert corrected > 1.3 * papers  # for other draws than these


@pytest.mark.slow
@pytest.mark.parametrize("norm", [1, 2])
def test_without_labels_the_corrected_one_is_right_if_they_are_not(norm):
    """Source rows drawn anew, as samples are: n_b varies, and the paper's misses it.

    Counts of different bins lean against each other by S_b / n, which adds up to a few percent less
    variance: 24% tolerance.
    """
    target = np.repeat(SCORES, [40, 60, 80, 100, 120, 140])
    monte_carlo, papers, corrected = redrawn(
        800, [150] * 6, target, [0.8, 1.2], norm, counts_fixed=False
    )
    assert corrected == pytest.approx(monte_carlo, rel=0.24)
    assert papers < 0.75 * monte_carlo
