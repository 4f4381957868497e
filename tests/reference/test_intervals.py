"""Standard errors and intervals of CE_2^2 against dense matrices over rows. (docs/mathematics.md 8)

Tolerances: both sides do the same arithmetic in another order, on matrices whose condition is below
1e4, so numbers agree to 1e-9. Interval ends are roots of a distribution function, found by
bisection on one side and by Brent's method and scipy's own ncx2 on the other: 1e-6.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from dense import SamplingDistribution, square_law
from interval_cases import (
    BINS,
    LEVELS,
    SHAPES,
    drawn_weights,
    estimated,
    fits_of,
    influences,
    no_influence,
    sample,
)

import calshift
from calshift import Predictions
from calshift.results import SquaredErrorDistribution
from calshift.scaling.fit import Prior

WEIGHTS = ("given", "auto", "em-bcts", "bbse-soft", "rlls")
EDGES = [0.1, 0.3, 0.6]


def assert_law(result, law):
    assert result.estimate == pytest.approx(law.estimate, rel=1e-9, abs=1e-13)
    assert result.standard_error == pytest.approx(law.standard_error, rel=1e-9)
    for level in LEVELS:
        expected = law.interval(level)
        assert result.confidence_interval(level) == pytest.approx(expected, rel=1e-6, abs=1e-12)


def assert_class_laws(result, laws):
    """Each on its own at 1 - alpha, all together at 1 - alpha / K."""
    assert result.per_class == pytest.approx([law.estimate for law in laws], rel=1e-9, abs=1e-12)
    for level, simultaneous in ((0.8, False), (0.95, False), (0.9, True)):
        each = 1 - (1 - level) / len(laws) if simultaneous else level
        expected = np.array([law.interval(each) for law in laws]).T
        found = np.array(result.class_intervals(level, simultaneous=simultaneous))
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("stratified", [False, True], ids=["drawn", "stratified"])
@pytest.mark.parametrize("bins", BINS)
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("kind", SHAPES)
def test_without_labels(kind, weights, bins, stratified):
    p, y, q, w = sample(kind, seed=1)
    asked = w if weights == "given" else weights
    options = {"kind": kind, "bins": bins, "stratified": stratified}
    result = estimated(p, y, q, asked, **options)
    phi = influences(result, p, y, q)
    assert (np.abs(phi[0]).max() > 0) == (weights != "given")
    w = result.class_weights.values
    _, fits = fits_of(kind, p, y, q, w, bins, phi, stratified, drawn_weights(result))
    assert_law(result, square_law(fits, y, stratified=stratified))
    if kind == "classwise":
        assert_class_laws(result, [square_law([one], y, stratified=stratified) for one in fits])
    plugin = estimated(p, y, q, asked, estimator="plugin", **options)
    assert plugin.estimate == pytest.approx(np.mean([one.a @ one.a for one in fits]), rel=1e-9)
    assert plugin.confidence_interval() == result.confidence_interval()
    assert plugin.standard_error == result.standard_error
    bare = estimated(p, y, q, asked, interval=None, **options)  # another road to the same number
    assert bare.estimate == pytest.approx(result.estimate, rel=1e-9, abs=1e-13)


@pytest.mark.parametrize("stratified", [False, True], ids=["drawn", "stratified"])
@pytest.mark.parametrize("bins", BINS)
@pytest.mark.parametrize("kind", SHAPES)
def test_with_labels(kind, bins, stratified):
    p, y, q, w = sample(kind, seed=2)
    phi = no_influence(len(p), len(p), len(w))
    _, fits = fits_of(kind, p, y, p, np.ones_like(w), bins, phi, stratified)
    law = square_law(fits, y, labelled=True, stratified=stratified)
    result = calshift.calibration_error(p, y, kind=kind, bins=bins, stratified=stratified)
    assert_law(result, law)
    if kind == "classwise":
        laws = [square_law([fit], y, labelled=True, stratified=stratified) for fit in fits]
        assert_class_laws(result, laws)
    beside = estimated(p, y, q, w, kind=kind, bins=bins, stratified=stratified).source
    assert_law(beside, law)


def test_where_the_guards_bind():
    """A thin source: eigenvalues of A below the floor on hats, leverage above .9 in a bin."""
    p, y, q, _ = sample("classwise", seed=5, sizes=(60, 200, 3))
    w = np.array([0.02, 0.3, 3.0])
    for bins in (12, "auto"):
        todo, fits = fits_of("classwise", p, y, q, w, bins, no_influence(60, 200, 3))
        assert_law(estimated(p, y, q, w, bins=bins), square_law(fits, y))
        if bins == "auto":
            A = [one.X.T @ (w[y][:, None] * one.X) / w[y].sum() for one in todo]
            assert min(np.linalg.eigvalsh(one)[0] for one in A) < 0.5  # M = 1 in this basis
        else:
            assert min(one.slack.min() for one in fits) == 0.1


def test_a_plug_in_that_the_ratios_bias_takes_below_0():
    """The estimate keeps its sign; the law takes the plug-in as 0."""
    rng, w = np.random.default_rng(10), np.array([0.3, 3.0])
    p = rng.uniform(0.3, 0.7, 30)
    y = (rng.uniform(size=30) < p).astype(int)
    p, q = (3 * s / (3 * s + 0.3 * (1 - s)) for s in (p, rng.uniform(0.3, 0.7, 40)))
    _, fits = fits_of("binary", p, y, q, w, 1, no_influence(30, 40, 2))
    law, result = square_law(fits, y), estimated(p, y, q, w, bins=1)
    assert law.plug < 0
    assert result.estimate == pytest.approx(law.estimate, rel=1e-9)
    assert result._distribution.plug == 0
    low, high = result.confidence_interval()
    assert low == 0 <= high < 0.1
    assert result.standard_error == pytest.approx(law.standard_error, rel=1e-9)


@pytest.mark.parametrize("weights", ["bbse-soft", "em-bcts"])
def test_a_class_unseen_in_the_source(weights):
    p, y, q, _ = sample("classwise", seed=6)
    p, y = p[y != 1], y[y != 1]
    result = estimated(p, y, q, weights, bins=4)
    w = np.nan_to_num(result.class_weights.values)
    drawn = drawn_weights(result)
    _, fits = fits_of("classwise", p, y, q, w, 4, influences(result, p, y, q), drawn=drawn)
    kept = [one for c, one in enumerate(fits) if c != 1]
    assert_law(result, square_law(kept, y))
    ends = np.array(result.class_intervals())
    assert np.isnan(ends[:, 1]).all()
    expected = np.array([square_law([one], y).interval(0.95) for one in kept]).T
    assert np.delete(ends, 1, axis=1) == pytest.approx(expected, rel=1e-6, abs=1e-12)
    ends = np.array(result.class_intervals(0.9, simultaneous=True))  # of three intervals, not four
    expected = np.array([square_law([one], y).interval(1 - 0.1 / 3) for one in kept]).T
    assert np.delete(ends, 1, axis=1) == pytest.approx(expected, rel=1e-6, abs=1e-12)
    shown = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert [row[1] for row in shown["class_intervals"]] == [None, None]


@pytest.mark.parametrize("V1", [1e-6, 2e-7, 2e-8])
def test_far_from_0_the_law_is_normal(V1):
    """Noncentrality 6e3, 3e4 and 3e5: the library takes the normal law from 1e4 on.

    A noncentral chi-square has skewness sqrt(8 / noncentrality) or less, .016 at 3e4; by Cornish
    and Fisher the ends move by (z^2 - 1) / 6 of it, .008 standard deviations at z = 1.96.
    """
    plug, bias, T = 0.04, 2e-3, 1e-9
    law = SquaredErrorDistribution(np.array(plug), np.array(bias), np.array(V1), np.array(T))
    expected = SamplingDistribution(plug, bias, V1, T).interval(0.95)
    assert np.array(law.interval(0.95)) == pytest.approx(
        np.array(expected), rel=0, abs=0.008 * np.sqrt(V1)
    )


def test_many_coordinates_are_sketched():
    """40 classes of 8 bins: T = |S|^2 from r'Ss over pairs of 64 random sign vectors.

    A U-statistic over pairs: its variance is at most 4 Var(r'S^2 r) / 64 + 2 Var((r'Ss)^2) / 64^2,
    with Var(r'S^2 r) <= 2 tr S^4 and Var((r'Ss)^2) <= 8 (tr S^2)^2. Asked: within 4 of its sd.
    """
    p, y, q, _ = sample("classwise", seed=8, sizes=(900, 700, 40))
    w = np.linspace(0.7, 1.3, 40)
    result = estimated(p, y, q, w, bins=8)
    _, fits = fits_of("classwise", p, y, q, w, 8, no_influence(900, 700, 40))
    assert sum(len(one.a) for one in fits) > 256
    law = square_law(fits, y)
    x = np.hstack([one.x for one in fits]) / np.sqrt(len(fits))
    S2 = (x.T @ x) @ (x.T @ x)
    sd = np.sqrt(8 * np.sum(S2**2) / 64 + 16 * np.trace(S2) ** 2 / 64**2)
    assert 4 * sd < 0.4 * law.T  # else this tests nothing
    assert abs(result._distribution.second - law.T) < 4 * sd
    assert result._distribution.second != pytest.approx(law.T, rel=1e-9)
    assert (result._distribution.plug, result._distribution.bias) == pytest.approx(
        (law.plug, law.bias), rel=1e-9
    )
    assert result._distribution.first == pytest.approx(law.V1, rel=1e-9)
    assert result.per_class == pytest.approx([square_law([one], y).estimate for one in fits])


# --- the moves themselves -------------------------------------------------------------------------

STEP = 0.01  # of a row's sample weight


def perturbed(p, y, row, more):
    """One row counted more, the size of the sample held: it is a parameter of some methods."""
    f = np.ones(len(p))
    f[row] += more
    return Predictions(p, y, sample_weight=f * len(f) / f.sum())


@pytest.mark.parametrize("weights", [one for one in WEIGHTS if one != "auto"])  # whose share varies
@pytest.mark.parametrize("kind", SHAPES)
def test_moves_are_derivatives_of_the_plug_in(kind, weights, monkeypatch):
    """d plug / d (sample weight of one row), weights estimated again, edges fixed.

    The derivative knows nothing of leverage: 2 a'o (1 / (1 - l) - 1) is added to it, and the same
    for the residuals through which the weights move the fit. A fit as a
    function of one row's weight is a ratio whose third derivative is 6 l^2 times its first, so
    central differences err by a few STEP^2 l^2, with l < .3 below 3e-5 of the largest move. The
    influence functions are exact to 5e-5 of theirs where the calibrator's prior is held, as it is
    in tests/reference/test_influence.py; the rest of it is left out of phi on purpose.
    """
    monkeypatch.setattr(Prior, "update_strength", lambda self, strength, *_: 0 * strength)
    p, y, q, w = sample(kind, seed=11)
    asked = w if weights == "given" else weights
    options = {"kind": kind, "bins": EDGES, "estimator": "plugin"}
    result = estimated(p, y, q, asked, **options)
    w = result.class_weights.values
    _, fits = fits_of(kind, p, y, q, w, EDGES, influences(result, p, y, q))
    leveraged = np.mean([2 * (one.far - one.plain) @ one.a for one in fits], axis=0)
    tolerance = 3e-5 if weights == "given" else 2e-4
    options["interval"] = None

    def slope(side, row):
        ends = []
        for more in (STEP, -STEP):
            source = perturbed(p, y, row, more) if side == "source" else Predictions(p, y)
            target = perturbed(q, None, row, more) if side == "target" else Predictions(q)
            ends.append(estimated(source, None, target, asked, **options).estimate)
        return (ends[0] - ends[1]) / (2 * STEP)

    rows = np.arange(0, 120, 9)
    numeric = np.array([slope("source", row) for row in rows]) + leveraged[rows]
    size = np.abs(result._influence.source).max()
    assert result._influence.source[rows] == pytest.approx(numeric, rel=0, abs=tolerance * size)
    leveraged = np.mean([2 * (one.xt - one.plain_t) @ one.a for one in fits], axis=0)
    numeric = np.array([slope("target", row) for row in rows]) + leveraged[rows]
    size = np.abs(result._influence.target).max()
    assert result._influence.target[rows] == pytest.approx(numeric, rel=0, abs=tolerance * size)


@pytest.mark.parametrize("kind", SHAPES)
def test_moves_with_labels_are_derivatives_too(kind):
    """A row moves both the fit and the mix of scores."""
    p, y, _, w = sample(kind, seed=12)
    options = {"kind": kind, "bins": EDGES, "estimator": "plugin"}
    result = calshift.calibration_error(p, y, **options)
    assert result._influence.target is None
    phi = no_influence(len(p), len(p), len(w))
    _, fits = fits_of(kind, p, y, p, np.ones_like(w), EDGES, phi)
    leveraged = np.mean([2 * (one.far - one.plain) @ one.a for one in fits], axis=0)
    size = np.abs(result._influence.source).max()
    for row in range(0, 120, 9):
        ends = [
            calshift.calibration_error(perturbed(p, y, row, more), interval=None, **options)
            for more in (STEP, -STEP)
        ]
        slope = (ends[0].estimate - ends[1].estimate) / (2 * STEP) + leveraged[row]
        assert result._influence.source[row] == pytest.approx(slope, rel=0, abs=3e-5 * size)
