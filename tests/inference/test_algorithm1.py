"""variance_algorithm1: drawn as computed, its laws, its answer, and what it refuses."""

from __future__ import annotations

import copy
import json
import pickle

import numpy as np
import pytest

import calshift
from calshift import AlgorithmVariance, InvalidInput, Predictions
from calshift.inference.algorithm1 import Bin, variance_of
from calshift.simulate import BetaSimulation, GaussianSimulation
from tests.properties.samples import pair

BETA = BetaSimulation()
KINDS = ("binary", "classwise")
NORMS = (1, 1.5, 2, 3)
pytestmark = pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")


def free(p, y, q, w, **options) -> AlgorithmVariance:
    return calshift.variance_algorithm1(p, y, q, weights=w, **options)


def both(p, y, q, w, **options):
    """The variance with labels, the paper's without, and the corrected one."""
    shifted = free(p, y, q, w, **options)
    return float(calshift.variance_algorithm1(p, y, **options)), float(shifted), shifted.corrected


# --- drawn and computed


@pytest.mark.slow
@pytest.mark.parametrize("norm", [1, 2, 2.5])
@pytest.mark.parametrize("kind", KINDS)
def test_drawing_gives_the_computed_variance_on_average(kind, norm):
    """Mean of 150 seeded runs within 4 of its own standard errors; the quadrature adds 1e-3."""
    p, y, q, w = pair(3, kind, n=150, m=120)
    computed = np.array(both(p, y, q, w, norm=norm, bins=6, kind=kind))
    runs = np.array(
        [
            both(p, y, q, w, norm=norm, bins=6, kind=kind, sampled=True, rng=seed)
            for seed in range(150)
        ]
    )
    error = runs.std(axis=0, ddof=1) / np.sqrt(150)
    assert (np.abs(runs.mean(axis=0) - computed) < 4 * error + 1e-3 * computed).all()
    assert (error < 0.1 * computed).all()  # or the line above would allow anything


def test_a_large_sample_needs_no_averaging():
    """One run at 20 000 rows. In a bin of M = 1333 the covariance has a standard error of about
    Var(Z) / sqrt(M). With labels scores spread more than R does, and the sum over bins has one of
    8% (60 seeds); without it has 2%. Four of them are allowed."""
    p, y = BETA.source(20_000, rng=1)
    q, _ = BETA.target(20_000, rng=2)
    asked = (p, y, q, BETA.class_weights)
    drawn, computed = both(*asked, sampled=True, rng=3, norm=1), both(*asked, norm=1)
    assert (np.abs(np.divide(drawn, computed) - 1) < [0.32, 0.08, 0.08]).all()


def test_seeds_decide_the_draws():
    p, y, q, w = pair(3, "classwise")
    first = free(p, y, q, w, sampled=True, rng=1)
    assert first == free(p, y, q, w, sampled=True, rng=1)
    assert float(first) != float(free(p, y, q, w, sampled=True, rng=2))
    assert free(p, y, q, w, rng=1) == free(p, y, q, w, rng=2)  # nothing is drawn


# --- what it predicts


def beta_draws(n, draws, fixed):
    """Estimates (p = 1, true weights), and the means of the paper's and the corrected variance."""
    estimates, variances = [], []
    for seed in range(draws):
        rng = np.random.default_rng([seed, n])
        samples = [BETA.source(n, rng), BETA.target(n, rng)]
        if fixed:
            samples = [by_class(rng, n, prior) for prior in (BETA.prior_source, BETA.prior_target)]
        (p, y), (q, _) = samples
        asked = {"weights": BETA.class_weights, "norm": 1}
        estimates.append(
            calshift.target_calibration_error(p, y, q, estimator="paper", **asked).estimate
        )
        found = calshift.variance_algorithm1(p, y, q, stratified=fixed, **asked)
        variances.append([float(found), found.corrected])
    return np.var(estimates, ddof=1), *np.mean(variances, axis=0)


def by_class(rng, n, prior):
    """n scores and labels with round(n prior) rows of class 1."""
    y = (np.arange(n) < round(n * prior)).astype(int)
    return np.where(y == 1, rng.beta(*BETA.positive, n), rng.beta(*BETA.negative, n)), y


@pytest.mark.slow
@pytest.mark.parametrize(("n", "draws"), [(500, 500), (1000, 300)])
@pytest.mark.parametrize("fixed", [False, True])
def test_the_corrected_variance_is_near_the_truth_where_the_papers_is_half(n, draws, fixed):
    """The paper's simulation, p = 1 (docs/mathematics.md): the corrected variance is right within
    a quarter (counts of different bins lean against each other, edges move), plus four standard
    errors of the Monte Carlo variance."""
    monte_carlo, papers, corrected = beta_draws(n, draws, fixed)
    assert corrected == pytest.approx(monte_carlo, rel=0.25 + 4 * np.sqrt(2 / draws))
    assert papers < 0.65 * monte_carlo


@pytest.mark.slow
def test_classes_of_a_shifted_error_are_nearly_independent():
    """Corrected variance of the mean over 4 classes against 300 draws: .9 in
    benchmarks/results/algorithm1.md; four standard errors are 33%."""
    simulation = GaussianSimulation(n_classes=4, imbalance=5, seed=1)
    estimates, corrected = [], []
    for seed in range(300):
        p, y = simulation.source(1000, rng=[seed, 1])
        q, _ = simulation.target(1000, rng=[seed, 2])
        asked = {"weights": simulation.class_weights, "norm": 1}
        estimates.append(
            calshift.target_calibration_error(p, y, q, estimator="paper", **asked).estimate
        )
        corrected.append(calshift.variance_algorithm1(p, y, q, **asked).corrected)
    assert np.mean(corrected) == pytest.approx(np.var(estimates, ddof=1), rel=0.43)


# --- laws


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("tied", [False, True])
def test_order_of_rows_does_not_matter(kind, norm, tied):
    p, y, q, w = pair(5, kind, tied=tied)
    rng = np.random.default_rng(0)
    a, b = rng.permutation(len(p)), rng.permutation(len(q))
    asked = {"kind": kind, "norm": norm, "bins": 7}
    np.testing.assert_allclose(
        both(p[a], y[a], q[b], w, **asked), both(p, y, q, w, **asked), rtol=1e-9
    )


@pytest.mark.parametrize("norm", NORMS)
def test_names_of_classes_do_not_matter(norm):
    p, y, q, w = pair(5, "classwise", K=4)
    turn = np.array([2, 0, 3, 1])
    renamed = free(p[:, turn], np.argsort(turn)[y], q[:, turn], w[turn], norm=norm)
    plain = free(p, y, q, w, norm=norm)
    np.testing.assert_allclose(renamed.per_class, plain.per_class[turn], rtol=1e-9)
    assert float(renamed) == pytest.approx(float(plain))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("tied", [False, True])
def test_whole_sample_weights_are_repetition_and_zero_is_removal(kind, norm, tied):
    p, y, q, w = pair(6, kind, tied=tied)
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 4, len(p)), rng.integers(0, 4, len(q))
    a[:8], b[:8] = 1, 1
    asked = {"kind": kind, "norm": norm, "bins": 6}
    repeated = both(np.repeat(p, a, axis=0), np.repeat(y, a), np.repeat(q, b, axis=0), w, **asked)
    source, target = Predictions(p, y, sample_weight=a), Predictions(q, sample_weight=b)
    np.testing.assert_allclose(both(source, None, target, w, **asked), repeated, rtol=1e-9)


def test_weighted_rows_are_drawn_as_often_as_they_stand_for():
    """Scores 0 and 1 with R at 0: Z is 0 or 1, of variance .9 x .1 here and 1/4 if drawn alike.
    The relative standard error of 2 x 40 000 draws is below 1.5%."""
    bin_ = Bin(np.array([0.0, 1.0]), np.array([0.9, 0.1]), 40_000, 0.0, 0.0)
    within, shared = variance_of(1, np.random.default_rng(0))(bin_)
    assert within == pytest.approx(0.09, rel=0.06)
    assert abs(shared) < 4 * 0.09 / np.sqrt(40_000)


def test_two_columns_asked_as_binary_are_the_second_alone():
    p, y, q, w = pair(7, "binary")
    one = free(p, y, q, w)
    two = free(np.column_stack([1 - p, p]), y, np.column_stack([1 - q, q]), w, kind="binary")
    assert one.kind == two.kind == "binary"
    assert float(one) == pytest.approx(float(two))


def test_the_weight_of_the_class_scales_the_noise():
    """In a bin far below R, p = 1: Cov = Var R, so four times the weight is 16 times the noise."""
    p, y, q = np.full(400, 0.01), np.arange(400) % 2, np.full(300, 0.01)
    low, high = (free(p, y, q, [1.0, w], norm=1) for w in (1.0, 4.0))
    assert float(high) == pytest.approx(16 * float(low), rel=1e-6)
    assert float(low) == pytest.approx(200 * (1 - 1 / 2) / 400**2, rel=1e-6)
    assert low.corrected == pytest.approx(float(low))  # one bin: n_b is n
    fixed = free(p, y, q, [1.0, 1.0], stratified=True)
    assert fixed.corrected < 1e-30  # all of the class in one bin, and their number fixed


@pytest.mark.parametrize("weights", ["bbse", "rlls", [2 / 3, 2.0], "class weights"])
def test_weights_may_be_named_given_or_carried(weights):
    p, y = BETA.source(400, rng=1)
    q, _ = BETA.target(400, rng=2)
    if weights == "class weights":
        weights = calshift.label_shift_weights(p, y, q, method="bbse")
    found = free(p, y, q, weights)
    values = weights if isinstance(weights, list) else found.class_weights.values
    assert float(found) == float(free(p, y, q, np.array(values)))


# --- the answer


def test_the_answer_is_a_frozen_value():
    p, y, q, w = pair(8, "classwise")
    found = free(p, y, q, w)
    assert float(found) == found.variance == found.standard_error**2
    assert found.corrected == pytest.approx(found.corrected_standard_error**2)
    assert found.variance == pytest.approx(found.per_class.sum() / 9)
    assert found.corrected == pytest.approx(found.corrected_per_class.sum() / 9)
    assert found.largest == pytest.approx(np.sqrt(found.per_class).mean() ** 2)
    assert found.variance <= found.largest
    assert pickle.loads(pickle.dumps(found)) == copy.deepcopy(found) == found
    with pytest.raises(AttributeError):
        found.variance = 0
    with pytest.raises(ValueError, match="read-only"):
        found.per_class[0] = 0


@pytest.mark.parametrize("kind", KINDS)
def test_the_answer_prints_and_becomes_json(kind):
    p, y, q, w = pair(8, kind)
    shifted, labelled = free(p, y, q, w), calshift.variance_algorithm1(p, y)
    for found in (shifted, labelled):
        written = json.loads(json.dumps(found.to_dict(), allow_nan=False))
        assert written["variance"] == float(found)
        assert written["corrected"] == found.corrected
        assert all(len(line) <= 100 and line == line.rstrip() for line in str(found).splitlines())
        assert f"{float(found):.3g}" in str(found)
        assert repr(found).startswith(f"AlgorithmVariance({float(found):.6g}")
    assert "corrected" in str(shifted)
    assert "corrected" not in str(labelled)
    assert labelled.corrected_standard_error is None


def test_unseen_classes_are_left_out_and_named():
    rng = np.random.default_rng(0)
    p, q = rng.dirichlet(np.ones(12), 80), rng.dirichlet(np.ones(12), 70)
    y = np.arange(80) % 11
    with pytest.warns(calshift.UnreliableWeights, match="lacks class 11"):
        found = free(p, y, q, np.ones(12))
    assert np.isnan(found.per_class[11])
    assert np.isnan(found.corrected_per_class[11])
    assert found.variance == pytest.approx(np.nansum(found.per_class) / 11**2)
    assert found.to_dict()["per_class"][11] is None
    assert "2 more classes" in str(found)
    assert any("lacks class 11" in note for note in found.warnings)


def test_thin_bins_join_and_the_answer_says_so():
    found = calshift.variance_algorithm1([0.1, 0.2, 0.3, 0.9], [0, 1, 0, 1], bins=[0.25, 0.5])
    assert found.merged_bins == 1 + 1
    assert "2 bins had too few rows" in str(found)


@pytest.mark.parametrize("norm", [1, 1.5, 2, 3, 20])
def test_awkward_samples_give_numbers(norm):
    """numpy's warnings are errors here."""
    awkward = [
        ([0.5, 0.5], [0, 1], [0.5, 0.5]),
        ([0.0, 1.0, 0.0, 1.0], [0, 1, 0, 1], [0.0, 0.0, 1.0]),
        (np.linspace(0, 0.1, 30), np.arange(30) % 2, np.linspace(0.9, 1, 30)),
        ([1e-300, 5e-324, 0.5, 1e-17], [0, 1, 0, 1], [1e-310, 5e-324, 0.0, 1.0]),
        (np.float32([0.2, 0.4, 0.6]), [0, 1, 1], np.float32([0.3, 0.3, 0.9])),
    ]
    for p, y, q in awkward:
        for w in ([1.0, 1.0], [1.0, 0.0], [0.0, 1.0]):
            if np.sum(np.array(w)[np.array(y)] > 0) < 2:
                continue
            for sampled in (False, True):
                found = free(p, y, q, w, norm=norm, sampled=sampled, rng=0)
                assert np.isfinite([float(found), found.corrected]).all()
                assert sampled or min(float(found), found.corrected) >= 0


# --- what it refuses


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "top-label"}, 'kind must be "classwise" or "binary" for Algorithm 1'),
        ({"kind": "canonical"}, 'kind must be "classwise" or "binary" for Algorithm 1'),
        ({"kind": "both"}, "kind must be one of"),
        ({"norm": 0.5}, "norm must be a number from 1 to 100"),
        ({"norm": "two"}, "norm must be a number"),
        ({"bins": 0}, "bins must be a whole number of at least 1"),
        ({"bins": "many"}, "bins must be"),
        ({"weights": None}, "weights must be one of auto, bbse"),
        ({"weights": "best"}, "weights must be one of auto, bbse"),
        ({"weights": [1, 1]}, "weights must be 3 numbers"),
        ({"p_target": None}, "weights need a p_target"),
        ({"p_target": None, "weights": None, "stratified": True}, "stratified needs a p_target"),
        ({"p_target": [[0.2, 0.3, 0.5]]}, "p_target must have at least two rows"),
        ({"kind": "binary"}, "needs two classes"),
        ({"y_source": None}, "y_source must be given"),
    ],
)
def test_bad_input(options, message):
    p, y, q, w = pair(9, "classwise")
    asked = {"p_source": p, "y_source": y, "p_target": q, "weights": w, **options}
    with pytest.raises(InvalidInput, match=message):
        calshift.variance_algorithm1(**asked)


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize(("norm", "w"), [(100, 1e3), (2, 1e100), (3, 1e100)])
def test_variances_beyond_all_numbers_are_refused(norm, w, sampled):
    p, y, q, _ = pair(9, "binary")
    with pytest.raises(InvalidInput, match="too large"):
        free(p, y, q, [1.0, w], norm=norm, sampled=sampled, rng=0)


def test_rows_are_counted_so_their_weights_must_be_whole():
    p, y, q, w = pair(9, "binary")
    half = np.where(np.arange(len(q)) == 3, 0.5, 1)
    with pytest.raises(InvalidInput, match=r"p_target must have whole sample weights.* is 0.5"):
        free(p, y, Predictions(q, sample_weight=half), w)
    with pytest.raises(InvalidInput, match="p_source must have whole"):
        calshift.variance_algorithm1(Predictions(p, y, sample_weight=np.full(len(p), 1.5)), None)
