"""Standard errors and intervals of CE_1 against dense matrices over rows. (docs/mathematics.md 8)

Tolerances as for CE_2^2 (1e-9, ends 1e-6), but 2e-5 for what goes through the inverted folded
normal: the library reads it from a table with a relative error of 1e-5.
"""

from __future__ import annotations

import numpy as np
import pytest
from dense import gaps, signed, square_law, within
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
from scipy import stats

import calshift

WEIGHTS = ("given", "auto", "em-bcts", "bbse-soft")


def ends(level, least, estimate, se, square):
    """Lower: left-out signs less z se, 0 if the square may be 0; upper: freed of noise plus z se.

    No mean of |g| exceeds the root of the mean of g^2, which bounds the upper end too. Neither the
    estimate nor that root lie below the lower end.
    """
    z = stats.norm.ppf((1 + level) / 2)
    from_zero, most = square.interval(level)
    high = min(estimate + z * se, np.sqrt(most))
    if from_zero == 0:
        return 0.0, high
    return max(min(least - z * se, estimate, np.sqrt(square.estimate)), 0.0), high


@pytest.mark.parametrize("stratified", [False, True], ids=["drawn", "stratified"])
@pytest.mark.parametrize("heat", [0.7, 1.6], ids=["near-calibrated", "overconfident"])
@pytest.mark.parametrize("bins", BINS)
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("kind", SHAPES)
def test_without_labels(kind, weights, bins, heat, stratified):
    """The variance is of the signed mean over the source, and of |d| over the target."""
    p, y, q, w = sample(kind, seed=3, heat=heat)
    options = {"kind": kind, "bins": bins, "norm": 1, "stratified": stratified}
    result = estimated(p, y, q, w if weights == "given" else weights, **options)
    phi, w = influences(result, p, y, q), result.class_weights.values
    drawn = drawn_weights(result)
    todo, fits = fits_of(kind, p, y, q, w, bins, phi, stratified, drawn)
    parts = [signed(one, fit, w, y, *phi) for one, fit in zip(todo, fits, strict=True)]
    d = [gaps(one, fit) for one, fit in zip(todo, fits, strict=True)]

    def moments(which):
        means = (np.mean([parts[c][k] for c in which], axis=0) for k in range(4))
        least, source, target, outside = means
        gap = np.mean([d[c] for c in which], axis=0)
        source = within(source, y) if stratified else source
        target = target + (gap - gap.mean()) / len(q)
        se = np.sqrt(source @ source + target @ target + outside @ outside)
        return least, gap.mean(), se, square_law([fits[c] for c in which], y)

    least, estimate, se, square = moments(range(len(fits)))
    assert result.estimate == pytest.approx(estimate, rel=2e-5)
    assert result.standard_error == pytest.approx(se, rel=2e-5)
    for level in LEVELS:
        expected = ends(level, least, estimate, se, square)
        assert result.confidence_interval(level) == pytest.approx(expected, rel=2e-5, abs=1e-7)
    if kind == "classwise":
        expected = np.array([ends(0.9, *moments([c])) for c in range(len(fits))]).T
        found = np.array(result.class_intervals(0.9))
        assert found == pytest.approx(expected, rel=2e-5, abs=1e-7)


@pytest.mark.parametrize("stratified", [False, True], ids=["drawn", "stratified"])
@pytest.mark.parametrize("bins", BINS)
@pytest.mark.parametrize("kind", SHAPES)
def test_ends_with_labels(kind, bins, stratified):
    p, y, _, w = sample(kind, seed=4)
    w = np.ones_like(w)
    phi = no_influence(len(p), len(p), len(w))
    todo, fits = fits_of(kind, p, y, p, w, bins, phi, stratified)
    estimate = np.mean([gaps(one, fit) for one, fit in zip(todo, fits, strict=True)])
    least = np.mean([signed(one, fit, w, y, *phi)[0] for one, fit in zip(todo, fits, strict=True)])
    options = {"kind": kind, "bins": bins, "stratified": stratified}
    result = calshift.calibration_error(p, y, norm=1, **options)
    assert result.estimate == pytest.approx(estimate, rel=2e-5)
    assert result._distribution.estimate == pytest.approx(estimate, rel=2e-5)
    square = square_law(fits, y, labelled=True, stratified=stratified)
    for level in LEVELS:
        expected = ends(level, least, estimate, result.standard_error, square)
        assert result.confidence_interval(level) == pytest.approx(expected, rel=2e-5, abs=1e-7)


def test_standard_error_with_labels_is_that_of_a_mean():
    """Of u sign(g), whose spread holds that of |g| already; two scores, wrong by 0 and by .9."""
    rng = np.random.default_rng(0)
    p = np.repeat([0.02, 0.95], [700, 300])
    y = (rng.random(1000) < np.where(p < 0.5, 0.02, 0.05)).astype(int)
    result = calshift.calibration_error(p, y, norm=1)
    gap = np.array([y[p == score].mean() - score for score in (0.02, 0.95)])
    signed_residual = (y - p) * np.sign(gap)[(p > 0.5).astype(int)]
    assert result.standard_error == pytest.approx(signed_residual.std() / np.sqrt(1000), rel=1e-9)


def test_scores_without_any_noise_have_ends():
    """Where scores of 1 leave no noise the variance is 0, or by rounding a little less."""
    y = (np.random.default_rng(0).random(35) < 0.4).astype(int)
    p, q = np.repeat([0.95, 1.0], [18, 17]), np.repeat([0.0, 0.95, 1.0], [1, 12, 14])
    w = np.array([1, 0.5])
    for bins in ("auto", 3, 8, [0.5], [0.5, 0.97]):
        result = estimated(p, y, q, w / w[y].mean(), kind="binary", bins=bins, norm=1)
        low, high = result.confidence_interval()
        assert 0 <= low <= result.estimate <= high <= 1


def test_rows_that_count_less_have_the_noise_of_fewer_rows():
    """A hundred rows of weight 1/4 are 25 rows whose noise averages over a hundred."""
    rng = np.random.default_rng(1)
    p = rng.choice([0.2, 0.4, 0.7], 4000)
    y = (rng.random(4000) < p + 0.02).astype(int)
    ends = []
    for weight in (1.0, 0.25):
        sample = calshift.Predictions(p, y, sample_weight=np.full(4000, weight))
        ends.append(calshift.calibration_error(sample, norm=1, bins=3)._distribution.least)
    assert ends[0] == pytest.approx(ends[1], rel=1e-9)
