"""Kernels against scipy, and the bandwidth's likelihood against a plain loop."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import calshift
from calshift.estimators import kernel as smoothed
from calshift.estimators import smoothing_kernels as kernels

RNG = np.random.default_rng(0)
POINTS = RNG.dirichlet([1.0, 2.0, 0.5], 40)


def test_dirichlet_kernel_is_the_density_of_scipy():
    log = kernels.log_dirichlet(POINTS[:5], POINTS, 0.2)
    for j, i in ((0, 3), (4, 17), (2, 2)):
        assert log[j, i] == pytest.approx(stats.dirichlet(POINTS[i] / 0.2 + 1).logpdf(POINTS[j]))


def test_triweight_kernel_is_a_power_of_the_distance():
    log = kernels.log_triweight(POINTS[:5], POINTS, 0.4)
    for j, i in ((0, 3), (4, 17), (2, 2)):
        square = ((POINTS[i] - POINTS[j]) ** 2).sum()
        expected = max(1 - square / 0.16, 0) ** 3 / 0.4**2
        assert np.exp(log[j, i]) == pytest.approx(expected)


@pytest.mark.parametrize("name", list(kernels.KERNELS))
def test_left_out_likelihood_is_the_plain_sum(name):
    weight = np.ones(len(POINTS))
    dense = np.exp(kernels.log_kernel(name)(POINTS, POINTS, 0.8))
    expected = np.mean(
        [np.log(sum(dense[j, i] for i in range(40) if i != j)) for j in range(len(POINTS))]
    )
    assert kernels.left_out_likelihood(name, POINTS, weight, 0.8) == pytest.approx(expected)


def test_chosen_bandwidth_beats_the_rest_of_the_grid():
    h = kernels.choose_bandwidth("triweight", POINTS, np.ones(len(POINTS)))
    weight = np.ones(len(POINTS))
    best = kernels.left_out_likelihood("triweight", POINTS, weight, h)
    for other in (0.02, 0.1, 0.5, 1.4):
        assert best >= kernels.left_out_likelihood("triweight", POINTS, weight, other) - 0.2
    wide = kernels.left_out_likelihood("triweight", POINTS, weight, 1.4)
    assert best > wide  # a choice was made


@pytest.mark.parametrize("estimator", ["paper", "plugin", "debiased"])
@pytest.mark.parametrize("labels", [False, True])
def test_blocks_of_rows_do_not_change_the_answer(monkeypatch, estimator, labels):
    p, y = POINTS, RNG.integers(0, 3, 40)
    y[:3] = [0, 1, 2]

    def answer() -> float:
        options = {"kind": "canonical", "estimator": estimator, "bandwidth": 0.4}
        if labels:
            return calshift.calibration_error(p, y, **options).estimate
        q = POINTS[::-1][:31]
        return calshift.target_calibration_error(p, y, q, weights=[1, 1, 1], **options).estimate

    whole = answer()
    monkeypatch.setattr(smoothed, "rows_per_block", lambda columns: 7)
    assert answer() == pytest.approx(whole, rel=1e-10)


def test_points_out_of_reach_take_their_nearest_and_are_reported():
    p = np.array([[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.1, 0.9]])
    q = np.array([[0.9, 0.1], [0.89, 0.11], [0.5, 0.5]])
    for estimator in ("paper", "plugin", "debiased"):
        result = calshift.target_calibration_error(
            p, [0, 0, 1, 1], q, weights=[1, 1], kind="canonical", kernel="triweight",
            bandwidth=0.05, estimator=estimator,
        )  # fmt: skip
        assert np.isfinite(result.estimate)
        # the paper's ratio needs one neighbour in the target, a variance two in the source
        expected = f"{1 if estimator == 'paper' else 3} rows have too few"
        assert any(expected in note for note in result.warnings)


def test_pairs_are_never_held_all_at_once():
    """10 000 x 10 000 pairs of 10 classes would be 80 GB; a block holds 4 million numbers."""
    assert kernels.rows_per_block(10_000) * 10_000 <= 4_000_000


def test_unknown_kernel_lists_the_kernels():
    with pytest.raises(calshift.InvalidInput, match="dirichlet, triweight"):
        calshift.calibration_error([0.1, 0.9], [0, 1], kernel="gauss")


def rounded_sample(seed, n=80, K=5):
    """Rows with many equal distances, because probabilities have two decimals."""
    rng = np.random.default_rng(seed)
    p = np.round(rng.dirichlet([0.1] * K, n), 2)
    p /= p.sum(axis=1, keepdims=True)
    return p, np.array([rng.choice(K, p=row) for row in p])


def kernel_error(source, target, kernel, kind, estimator):
    return calshift.target_calibration_error(
        source, None, target, weights=np.linspace(0.5, 1.5, 5), kernel=kernel, kind=kind,
        estimator=estimator, interval=None, check=False,
    ).estimate  # fmt: skip


@pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")  # weights do not fit the source
# Both sides add the same numbers in another order: 80 rows of residuals of at most 1, amplified
# by 1e9 where a variance has no second row (SMALLEST_GAP), so 1e9 * 80 * 1e-16 ~ 1e-5 at worst.
@pytest.mark.parametrize("kind", ["classwise", "canonical", "top-label"])
@pytest.mark.parametrize("estimator", ["debiased", "paper"])
@pytest.mark.parametrize("kernel", ["triweight", "dirichlet"])
@pytest.mark.parametrize("seed", [2, 15, 37, 52])
def test_neither_the_order_of_rows_nor_their_repetition_matters(seed, kernel, estimator, kind):
    (p, y), (q, _), rng = rounded_sample(seed), rounded_sample(seed + 1), np.random.default_rng(9)
    order, other = rng.permutation(80), rng.permutation(80)
    a, b = rng.integers(1, 4, 80), rng.integers(1, 4, 80)
    plain = kernel_error(calshift.Predictions(p, y), q, kernel, kind, estimator)
    moved = kernel_error(
        calshift.Predictions(p[order], y[order]), q[other], kernel, kind, estimator
    )
    assert moved == pytest.approx(plain, rel=1e-12, abs=1e-5)
    weighted = calshift.Predictions(p, y, sample_weight=a), calshift.Predictions(q, sample_weight=b)
    repeated = calshift.Predictions(p.repeat(a, 0), y.repeat(a)), q.repeat(b, 0)
    expected = kernel_error(*repeated, kernel, kind, estimator)
    assert kernel_error(*weighted, kernel, kind, estimator) == pytest.approx(
        expected, rel=1e-12, abs=1e-5
    )


def test_a_point_at_the_edge_of_the_kernel_is_outside_whatever_the_rounding():
    at, centres = np.array([[0.1, 0.9], [0.4, 0.6]]), np.array([[0.4, 0.6], [0.1, 0.9]])
    for h in (0.3 * 2**0.5, np.nextafter(0.3 * 2**0.5, 1), np.nextafter(0.3 * 2**0.5, 0)):
        log = kernels.log_triweight(at, centres, h)
        assert np.isinf(np.diag(log)).all()
        assert np.isfinite(log[0, 1])


@pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")
def test_a_correction_beyond_any_error_is_bounded():
    """The model knows nothing, so that the noise of estimated weights exceeds the largest error."""
    rng = np.random.default_rng(3)
    p, q = rng.dirichlet([50] * 5, 107), rng.dirichlet([50] * 5, 50)
    y = rng.integers(0, 5, 107)
    for method in ("em-nbvs", "bbse", "bbse-soft", "em-vs"):
        found = calshift.target_calibration_error(p, y, q, weights=method, check=False)
        assert -1 <= found.estimate <= 1
        assert (np.abs(found.per_class) <= 1).all()


@pytest.mark.parametrize("kernel", ["triweight", "dirichlet"])
def test_an_absurd_ratio_leaves_draws_of_the_bootstrap_finite(kernel):
    """The paper's ratio is bounded before its power, also with more target than source rows."""
    rng = np.random.default_rng(0)
    three = rng.dirichlet(np.full(5, 0.7), 3)
    p, q = three[rng.integers(0, 3, 25)], rng.dirichlet(np.full(5, 0.7), 199)
    y = np.arange(25) % 5
    found = calshift.target_calibration_error(
        p, y, q, kind="canonical", kernel=kernel, bandwidth=0.1, estimator="paper", norm=100,
        weights=np.ones(5), check=False, interval="bootstrap", n_boot=20, rng=0,
    )  # fmt: skip
    assert np.isfinite(found.standard_error)
    assert found.estimate < 1e131
