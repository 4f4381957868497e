"""The bootstrap: reproducible, told to its caller, and refitted from the ground up."""

from __future__ import annotations

import numpy as np
import pytest

import calshift
from calshift import Predictions

from .samples import BINNED, drawn, result_of

SMALL = {"interval": "bootstrap", "n_boot": 24}


@pytest.mark.parametrize("options", [{}, {"norm": 3}, {"estimator": "paper"}, {"stratified": True}])
def test_same_rng_same_bits_for_any_number_of_processes(options):
    p, y, q, _ = drawn(1, n=150, m=120)
    kinds = {
        "seed": lambda: 7,
        "generator": lambda: np.random.default_rng(7),
        "sequence": lambda: np.random.SeedSequence(7),
    }
    for make in kinds.values():
        one, two = (
            result_of(p, y, q, "bbse-soft", rng=make(), n_jobs=jobs, **SMALL, **options)
            for jobs in (1, 2)
        )
        np.testing.assert_array_equal(one._distribution.draws, two._distribution.draws)
        np.testing.assert_array_equal(
            one._class_distributions.draws, two._class_distributions.draws
        )
        assert one.confidence_interval() == two.confidence_interval()
        assert len(np.unique(one._distribution.draws)) == 24  # each draw has a seed of its own
    other = result_of(p, y, q, "bbse-soft", rng=8, **SMALL, **options)
    assert not np.isin(other._distribution.draws, one._distribution.draws).any()


@pytest.mark.parametrize("jobs", [1, 2])
def test_progress_is_told_of_every_draw_in_order(jobs):
    p, y, q, w = drawn(2, n=60, m=60)
    told = []
    result_of(p, y, q, w, progress=lambda *call: told.append(call), n_jobs=jobs, **SMALL)
    assert told == [(done, 24) for done in range(1, 25)]
    told.clear()
    calshift.calibration_error(p, y, progress=lambda *call: told.append(call), n_jobs=jobs, **SMALL)
    assert told == [(done, 24) for done in range(1, 25)]


def test_interval_is_the_spread_of_the_draws_around_the_estimate():
    """low and high lie as far from the estimate as the quantiles of the draws from their mean."""
    p, y, q, w = drawn(3)
    result = result_of(p, y, q, w, rng=1, **SMALL)
    draws = result._distribution.draws
    assert draws.shape == (24,)
    assert result._class_distributions.draws.shape == (24, 3)
    assert result._class_distributions.draws.mean(axis=1) == pytest.approx(draws)
    assert result.standard_error == pytest.approx(np.std(draws, ddof=1))
    for level in (0.5, 0.9):
        around = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2]) - draws.mean()
        expected = np.maximum(result.estimate + around, 0)
        assert result.confidence_interval(level) == pytest.approx(expected)
    assert result.estimate == result_of(p, y, q, w, interval=None).estimate


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"norm": 1}, {"estimator": "plugin"}, {"bins": 4}])
@pytest.mark.parametrize("weights", ["bbse-soft", "em-bcts", "given"])
def test_each_draw_is_the_estimate_of_rows_counted_again(weights, options):
    """Poisson counts of the source's rows, then of the target's, from the seed of the draw."""
    p, y, q, w = drawn(9, n=200, m=150)
    weights = w if weights == "given" else weights
    result = result_of(p, y, q, weights, rng=3, **SMALL, **options)
    seeds = np.random.SeedSequence(3).spawn(24)
    for k in range(0, 24, 8):
        rng, found = np.random.default_rng(seeds[k]), result._distribution.draws[k]
        source = Predictions(p, y, sample_weight=rng.poisson(1, len(p)))
        target = Predictions(q, sample_weight=rng.poisson(1, len(q)))
        again = result_of(source, None, target, weights, interval=None, **options)
        assert found == pytest.approx(again.estimate, rel=1e-9, abs=1e-13)


@pytest.mark.parametrize("method", ["given", "em-bcts"])
def test_stratified_draws_keep_the_counts_of_the_classes(method):
    """One row of a class is drawn every time, so that no draw lacks a class."""
    p, y, q, w = drawn(10, n=60, m=60)
    keep = (y != 2) | (np.arange(60) == np.flatnonzero(y == 2)[0])
    options = {"interval": "bootstrap", "n_boot": 30, "rng": 0, "bins": 2}
    asked = w if method == "given" else method
    result = result_of(p[keep], y[keep], q, asked, stratified=True, **options)
    assert result._class_distributions.draws.shape == (30, 3)
    assert np.isfinite(result._class_distributions.draws).all()


def test_samples_too_small_to_be_drawn_again_are_refused():
    with pytest.raises(calshift.InvalidInput, match="too small"):
        calshift.calibration_error([0.2, 0.8], [0, 1], bins=1, rng=0, **SMALL)


EDGES = [0.2, 0.4, 0.6, 0.8]
SIZES = {"binary": (900, 700), "classwise": (2000, 1500), "top-label": (2000, 1500)}


@pytest.mark.slow
@pytest.mark.parametrize("stratified", [False, True], ids=["drawn", "stratified"])
@pytest.mark.parametrize("kind", BINNED)
@pytest.mark.parametrize("method", ["given", "bbse-soft"])
def test_spread_of_the_draws_is_what_the_moves_of_the_rows_give(kind, method, stratified):
    """Draws lie around the fit a that was found: |a + noise|^2 has variance V1 + 2 T.

    120 draws know a spread to 1 / sqrt(240) = 6.5%: within 4 of these. Edges are given, since
    those that follow the rows drawn add noise of their own.
    """
    p, y, q, w = drawn(5, kind, *SIZES[kind])
    options = {"kind": kind, "bins": EDGES, "stratified": stratified}
    asked = w if method == "given" else method
    law = result_of(p, y, q, asked, **options)._distribution
    law = getattr(law, "whole", law)  # the linear part of one with drawn weights
    boot = result_of(p, y, q, asked, interval="bootstrap", n_boot=120, rng=0, **options)
    assert boot.standard_error == pytest.approx(np.sqrt(law.first + 2 * law.second), rel=0.26)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["bbse-soft", "em-bcts"])
def test_weights_are_refitted_in_every_draw(method):
    """A small target tells little of the mix: most noise is that of the weights.

    It is three times that of known weights by the influence; 40 draws know a spread to 11%.
    """
    p, y, q, _ = drawn(5, "binary", n=3000, m=100)
    found = calshift.label_shift_weights(p, y, q, method=method)
    for interval in ("influence", "bootstrap"):
        how = {"interval": interval, "n_boot": 40, "rng": 0, "bins": [0.3, 0.6]}
        known = result_of(p, y, q, found.values, **how).standard_error
        estimated = result_of(p, y, q, method, **how).standard_error
        assert estimated > 2 * known
        again = result_of(p, y, q, found, **how)  # ClassWeights know how they were made
        assert again.standard_error == pytest.approx(estimated, rel=1e-9)


@pytest.mark.parametrize("side", ["source", "target"])
def test_both_sides_are_drawn_again(side):
    """The other side is so large that nearly all noise comes from this one.

    60 draws know a spread to 1 / sqrt(120) = 9%: within 4 of these, and of 2 T, which is little.
    """
    sizes = {"n": 300, "m": 20_000} if side == "source" else {"n": 20_000, "m": 100}
    p, y, q, w = drawn(6, "binary", **sizes)
    first_order = result_of(p, y, q, w, bins=EDGES)
    moves = getattr(first_order._influence, side)
    own = moves @ moves
    assert first_order._distribution.first < 1.2 * own  # else this tests nothing
    boot = result_of(p, y, q, w, bins=EDGES, interval="bootstrap", n_boot=60, rng=0)
    expected = np.sqrt(own + 2 * first_order._distribution.second)
    assert boot.standard_error == pytest.approx(expected, rel=0.4)


@pytest.mark.parametrize("options", [{"norm": 3}, {"norm": 2.5, "bins": 6}, {"estimator": "paper"}])
def test_it_serves_what_has_no_closed_form(options):
    p, y, q, w = drawn(7, n=200, m=200)
    for result in (
        result_of(p, y, q, w, rng=0, **SMALL, **options),
        calshift.calibration_error(p, y, rng=0, **SMALL, **options),
    ):
        low, high = result.confidence_interval()
        assert 0 <= low < result.estimate < high
        assert result.standard_error > 0
        assert ("bias included" in result.interval_of) == ("estimator" in options)


@pytest.mark.parametrize(
    "options", [{"n_boot": 5}, {"n_jobs": 0}, {"progress": 3}, {"n_boot": 2.5}]
)
def test_bad_requests_are_named(options):
    p, y, q, w = drawn(8, n=60, m=60)
    with pytest.raises(calshift.InvalidInput, match=next(iter(options))):
        result_of(p, y, q, w, interval="bootstrap", **options)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["em-bcts", "bbse", "rlls", "elsa", "kmm", "map", "given"])
@pytest.mark.parametrize(("n", "m"), [(12, 8), (300, 5), (300, 2), (6, 200)])
def test_small_samples_have_an_interval_or_say_that_they_are_too_small(method, n, m):
    p, y, q, w = drawn(3, n=n, m=m, K=3)
    try:
        result = result_of(p, y, q, w if method == "given" else method, rng=0, **SMALL)
    except calshift.InvalidInput as said:
        assert "too small" in str(said)  # noqa: PT017
    else:
        assert np.isfinite(result.confidence_interval()).all()


def test_a_seed_sequence_can_be_used_twice():
    p, y, q, w = drawn(2, n=60, m=60)
    sequence = np.random.SeedSequence(3)
    one, two = (result_of(p, y, q, w, rng=sequence, **SMALL) for _ in range(2))
    np.testing.assert_array_equal(one._distribution.draws, two._distribution.draws)


@pytest.mark.parametrize("rng", [1.5, "abc", -1, [1.5]])
def test_bad_seeds_are_named(rng):
    p, y, q, w = drawn(2, n=60, m=60)
    for call in (
        lambda: result_of(p, y, q, w, rng=rng, **SMALL),
        lambda: calshift.check_label_shift(p, y, q, rng=rng),
        lambda: calshift.variance_algorithm1(
            p, y, q, weights=np.ones(len(w)), sampled=True, rng=rng
        ),
        lambda: calshift.resample_label_shift(y, imbalance_factor=2, rng=rng),
    ):
        with pytest.raises(calshift.InvalidInput, match="rng"):
            call()


def test_whole_numbers_may_be_written_as_floats():
    p, y, q, w = drawn(2, n=60, m=60)
    one = result_of(p, y, q, w, rng=1, interval="bootstrap", n_boot=24.0, n_jobs=1.0)
    two = result_of(p, y, q, w, rng=1, **SMALL)
    assert one.confidence_interval() == two.confidence_interval()


def test_the_source_beside_a_bootstrap_has_its_interval_in_closed_form():
    p, y, q, w = drawn(2, n=200, m=150)
    beside = result_of(p, y, q, w, rng=1, **SMALL).source
    assert beside.confidence_interval() == calshift.calibration_error(p, y).confidence_interval()
    with pytest.raises(calshift.InvalidInput, match="interval"):
        result_of(p, y, q, w, rng=1, norm=3, **SMALL).source.confidence_interval()
