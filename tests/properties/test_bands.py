"""The band around a reliability curve."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from scipy import stats

import calshift
from calshift import Predictions

from .samples import BINNED, drawn

EDGES = [0.2, 0.4, 0.6, 0.8]


def curves(seed, kind="binary", bins=EDGES, n=400, m=350):
    """With labels, with known weights, with estimated ones."""
    p, y, q, w = drawn(seed, kind, n, m)
    options = {"kind": kind, "bins": bins}
    yield calshift.reliability_curve(p, y, **options)
    for weights in (w, "bbse-soft"):
        yield calshift.reliability_curve(p, y, q, weights=weights, **options)


@pytest.mark.parametrize("bins", ["auto", 8, EDGES])
@pytest.mark.parametrize("kind", BINNED)
@pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")
def test_band_lies_in_0_to_1_holds_the_frequency_and_nests(kind, bins):
    for curve in curves(1, kind, bins):
        before = None
        for level in (0.5, 0.8, 0.95, 0.999):
            low, high = curve.band(level)
            assert low.shape == high.shape == curve.frequency.shape
            assert ((low >= 0) & (high <= 1)).all()
            assert (low <= curve.frequency + 1e-12).all()
            assert (high >= curve.frequency - 1e-12).all()
            assert (low < high).all()
            if before is not None:
                assert (low <= before[0] + 1e-12).all()
                assert (high >= before[1] - 1e-12).all()
            before = low, high
        shown = json.loads(json.dumps(curve.to_dict(), allow_nan=False))
        assert shown["band"]["low"] == pytest.approx(curve.band(0.95)[0])
        assert shown["band"]["high"] == pytest.approx(curve.band(0.95)[1])
        assert pickle.loads(pickle.dumps(curve)) == curve


@pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")
def test_band_shrinks_with_the_square_root_of_the_rows():
    """16 times the rows, a quarter of the length, up to chance in the frequencies: 30%."""
    for few, many in zip(curves(2, n=500, m=500), curves(3, n=8000, m=8000), strict=True):
        lengths = [np.subtract(*curve.band()[::-1])[1:-1] for curve in (few, many)]
        assert lengths[0] / lengths[1] == pytest.approx(4, rel=0.3)


@pytest.mark.parametrize("level", [0, 1, -1, 95, float("nan")])
def test_bad_levels_are_named(level):
    curve = next(curves(1))
    with pytest.raises(calshift.InvalidInput, match="level"):
        curve.band(level)


def test_with_labels_it_is_wilsons_interval():
    """k of n: the interval of a share, within a hundredth where the share is not extreme."""
    p, y, _, _ = drawn(4, "binary", n=600)
    edges = [0.3, 0.4, 0.5, 0.6]
    curve = calshift.reliability_curve(p, y, kind="binary", bins=edges)
    bins, (low, high) = np.searchsorted(edges, p, side="right"), curve.band(0.9)
    for b in range(5):
        k, n = int(y[bins == b].sum()), int(np.sum(bins == b))
        assert curve.standard_error[b] == pytest.approx(np.sqrt(k * (n - k) / n**3))
        wilson = stats.binomtest(k, n).proportion_ci(0.9, method="wilson")
        if 0.2 < k / n < 0.8:
            assert (low[b], high[b]) == pytest.approx((wilson.low, wilson.high), abs=0.01)
    assert np.sum((curve.frequency > 0.2) & (curve.frequency < 0.8)) >= 2


STEP = 0.02


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")
@pytest.mark.parametrize("weights", ["labels", "given", "bbse-soft", "em"])
@pytest.mark.parametrize("kind", BINNED)
def test_standard_error_is_made_of_derivatives_by_sample_weights(kind, weights):
    """Each row's weight moves each bin's frequency; squares of the moves, summed, are the variance.

    Central differences err by STEP^2 / 6 times a third derivative, 6 l^2 of the first for a row
    with the share l < .5 in a bin: 1e-4. Weights of both sides scaled to the size of the sample.
    """
    p, y, q, w = drawn(5, kind, n=90, m=70)
    asked = w if weights == "given" else weights
    cut = [0.25, 0.6]

    def made(more=None, side=None, row=None):
        f = [np.ones(len(p)), np.ones(len(q))]
        if row is not None:
            f[side][row] += more
        f = [one * len(one) / one.sum() for one in f]
        source = Predictions(p, y, sample_weight=f[0])
        if weights == "labels":
            return calshift.reliability_curve(source, kind=kind, bins=cut)
        target = Predictions(q, sample_weight=f[1])
        return calshift.reliability_curve(source, None, target, weights=asked, kind=kind, bins=cut)

    variance = 0.0
    for side, size in enumerate((len(p), 0 if weights == "labels" else len(q))):
        for row in range(size):
            up, down = (made(more, side, row).frequency for more in (STEP, -STEP))
            variance = variance + ((up - down) / (2 * STEP)) ** 2
    assert made().standard_error == pytest.approx(np.sqrt(variance), rel=1e-3)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")
@pytest.mark.parametrize("weights", ["labels", "given", "em-bcts"])
def test_band_covers_the_frequency_of_the_population(weights):
    """120 draws of 5 bins. The truth is the share of class 1 among scores in a bin.

    600 indicators, nearly independent, of probability .95: their share has a standard deviation of
    .0089. Asked: .93 less 3 of these at least, .97 and 3 of these at most.
    """
    simulation = calshift.simulate.BetaSimulation()
    prior = simulation.prior_source if weights == "labels" else simulation.prior_target
    ends = np.array([0, *EDGES, 1])
    one, zero = (np.diff(stats.beta(*ab).cdf(ends)) for ab in (simulation.positive, (2, 5)))
    truth = prior * one / (prior * one + (1 - prior) * zero)
    inside, total = 0, 0
    for k in range(120):
        p, y = simulation.source(500, rng=[k, 1])
        q, _ = simulation.target(700, rng=[k, 2])
        if weights == "labels":
            curve = calshift.reliability_curve(p, y, kind="binary", bins=EDGES)
        else:
            asked = simulation.class_weights if weights == "given" else weights
            curve = calshift.reliability_curve(p, y, q, weights=asked, kind="binary", bins=EDGES)
        assert len(curve.frequency) == 5
        low, high = curve.band()
        inside, total = inside + np.sum((low <= truth) & (truth <= high)), total + 5
    assert 0.93 - 3 * 0.0089 < inside / total < 0.97 + 3 * 0.0089
