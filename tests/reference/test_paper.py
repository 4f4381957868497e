"""estimator="paper" against loops over all pairs of rows. (docs/mathematics.md 2 and 3)"""

from __future__ import annotations

import numpy as np
import pytest
from brute_force import mass_edges, paper_binned, paper_kernel, rows, sample, width_edges

import calshift

BINNED = ("binary", "classwise", "top-label")
NORMS = (1, 2, 3)
GIVEN = [0.15, 0.3, 0.5, 0.62, 0.8]
CUTS = {  # what the library is asked for, and the edges it then has to use
    "mass-15": ({}, lambda f: mass_edges(f, 15)),
    "mass-7": ({"bins": 7}, lambda f: mass_edges(f, 7)),
    "mass-1": ({"bins": 1}, lambda f: mass_edges(f, 1)),
    "width-10": ({"bins": 10, "binning": "width"}, lambda f: width_edges(10)),
    "width-40": ({"bins": 40, "binning": "width"}, lambda f: width_edges(40)),
    "given": ({"bins": GIVEN}, lambda f: GIVEN),
}


def agrees(value):
    return pytest.approx(value, rel=1e-10, abs=1e-10)


def check(result, errors, kind, norm, joined=None):
    """The mean over events, the classes one by one, the root, and the count of joined bins."""
    mean = sum(errors) / len(errors)
    assert result.estimate == agrees(mean)
    assert result.root == agrees(mean ** (1 / norm))
    if kind == "classwise":
        assert result.per_class == agrees(errors)
    else:
        assert result.per_class is None
    if joined is not None:
        assert result.merged_bins == joined


# --- bins ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("tied", [False, True], ids=["smooth", "tied"])
@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kind", BINNED)
def test_bins_with_labels(kind, norm, cut, tied):
    p, y, *_ = sample(kind, seed=1, tied=tied)
    options, edges_for = CUTS[cut]
    result = calshift.calibration_error(p, y, kind=kind, norm=norm, estimator="paper", **options)
    errors, joined = paper_binned(kind, norm, edges_for, rows(p), rows(y))
    check(result, errors, kind, norm, joined)


@pytest.mark.parametrize("tied", [False, True], ids=["smooth", "tied"])
@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kind", BINNED)
def test_bins_without_labels(kind, norm, cut, tied):
    p, y, p_target, w = sample(kind, seed=2, tied=tied)
    options, edges_for = CUTS[cut]
    result = calshift.target_calibration_error(
        p, y, p_target, weights=w, check=False, kind=kind, norm=norm, estimator="paper", **options
    )
    errors, joined = paper_binned(kind, norm, edges_for, *map(rows, (p, y, p_target, w)))
    check(result, errors, kind, norm, joined)
    errors, joined = paper_binned(kind, norm, edges_for, rows(p), rows(y))
    check(result.source, errors, kind, norm, joined)


def test_bins_of_each_class_may_be_given_apart():
    p, y, p_target, w = sample("classwise", seed=3)
    edges = [[0.2, 0.5], [0.1, 0.3, 0.7], []]
    asked = iter(edges)
    errors, _ = paper_binned("classwise", 2, lambda f: next(asked), *map(rows, (p, y, p_target, w)))
    result = calshift.target_calibration_error(
        p, y, p_target, weights=w, check=False, estimator="paper", bins=edges
    )
    check(result, errors, "classwise", 2)


def test_binary_error_of_two_columns_is_that_of_the_second():
    p, y, p_target, w = sample("binary", seed=4)
    result = calshift.target_calibration_error(
        np.column_stack([1 - p, p]),
        y,
        np.column_stack([1 - p_target, p_target]),
        weights=w,
        check=False,
        kind="binary",
        estimator="paper",
    )
    errors, joined = paper_binned(
        "binary", 2, lambda f: mass_edges(f, 15), *map(rows, (p, y, p_target, w))
    )
    check(result, errors, "binary", 2, joined)


def test_by_hand():
    """Four target scores in two bins, edge s[ceil(4/2)] = .6; n = 5, m = 4.

    Bin 1: one event, R = (4/3 * 1 / 5) / (1/3) = .8; bin 2: two events, R = 1.6.
    """
    p, y, w = [0.1, 0.2, 0.5, 0.6, 0.9], [0, 0, 1, 1, 1], [0.5, 4 / 3]
    p_target = [0.3, 0.4, 0.6, 0.8]
    by_hand = [(0.8 - 0.3) ** 2, (0.8 - 0.4) ** 2, (1.6 - 0.6) ** 2, (1.6 - 0.8) ** 2]
    result = calshift.target_calibration_error(
        p, y, p_target, weights=w, check=False, kind="binary", estimator="paper", bins=2
    )
    assert result.estimate == agrees(sum(by_hand) / 4)


@pytest.mark.parametrize(
    ("p", "edges", "groups"),
    [
        # the first thin bin joins its right, another its left, empty ones too
        ([0.05, 0.3, 0.35, 0.6, 0.8, 0.9], [0.2, 0.5, 0.7], [[0, 1, 2, 3], [4, 5]]),
        ([0.3, 0.35, 0.8, 0.9], [0.2, 0.5, 0.7], [[0, 1], [2, 3]]),
        # two thin neighbours both go left: they do not make a bin of their own
        ([0.1, 0.15, 0.3, 0.6, 0.8, 0.9], [0.2, 0.5, 0.7], [[0, 1, 2, 3], [4, 5]]),
        # a bin holds its lower edge
        ([0.1, 0.2, 0.3, 0.5, 0.5, 0.9], [0.5], [[0, 1, 2], [3, 4, 5]]),
    ],
)
def test_thin_bins_join(p, edges, groups):
    y = [0, 1, 1, 0, 1, 1][: len(p)]
    squares = []
    for group in groups:
        for j in group:
            others = [y[i] for i in group if i != j]
            squares.append((sum(others) / len(others) - p[j]) ** 2)
    result = calshift.calibration_error(p, y, estimator="paper", bins=edges)
    assert result.estimate == agrees(sum(squares) / len(p))
    assert result.merged_bins == len(edges) + 1 - len(groups)


def test_more_bins_than_rows_join_to_one():
    p, y, *_ = sample("binary", seed=5, n=6)
    result = calshift.calibration_error(p, y, estimator="paper", bins=20)
    errors, joined = paper_binned("binary", 2, lambda f: mass_edges(f, 20), rows(p), rows(y))
    check(result, errors, "binary", 2, joined)


def test_a_class_that_the_source_lacks_is_left_out_of_the_mean():
    p, y, p_target, _ = sample("classwise", seed=6)
    keep = y != 1
    p, y = p[keep], y[keep]
    w = [0.6 / np.mean(y == 0), 1.0, 0.4 / np.mean(y == 2)]
    with pytest.warns(calshift.UnreliableWeights, match=r"class\w* 1"):
        result = calshift.target_calibration_error(
            p, y, p_target, weights=w, check=False, estimator="paper", bins=6
        )
    errors, _ = paper_binned("classwise", 2, lambda f: mass_edges(f, 6), rows(p), rows(y),
                             rows(p_target), w)  # fmt: skip
    assert result.estimate == agrees((errors[0] + errors[2]) / 2)
    assert np.isnan(result.per_class[1])


# --- kernels ------------------------------------------------------------------------------------

KERNELS = [("dirichlet", 0.05), ("dirichlet", 0.4), ("triweight", 0.7), ("triweight", 1.3)]


@pytest.mark.parametrize(("kernel", "h"), KERNELS)
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kind", ["canonical", "binary"])
def test_kernels_with_labels(kind, norm, kernel, h):
    p, y, *_ = sample(kind, seed=7, n=70)
    result = calshift.calibration_error(
        p, y, kind=kind, norm=norm, estimator="paper", kernel=kernel, bandwidth=h
    )
    check(result, paper_kernel(kind, norm, kernel, h, rows(p), rows(y)), kind, norm)


@pytest.mark.parametrize(("kernel", "h"), KERNELS)
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kind", ["canonical", "binary"])
def test_kernels_without_labels(kind, norm, kernel, h):
    p, y, p_target, w = sample(kind, seed=8, n=70, m=60)
    result = calshift.target_calibration_error(
        p,
        y,
        p_target,
        weights=w,
        check=False,
        kind=kind,
        norm=norm,
        estimator="paper",
        kernel=kernel,
        bandwidth=h,
    )
    errors = paper_kernel(kind, norm, kernel, h, *map(rows, (p, y, p_target, w)))
    check(result, errors, kind, norm)
    check(result.source, paper_kernel(kind, norm, kernel, h, rows(p), rows(y)), kind, norm)


@pytest.mark.parametrize(("kernel", "h"), KERNELS[1:3])
@pytest.mark.parametrize("kind", ["classwise", "top-label"])
def test_kernels_on_the_line_of_other_kinds(kind, kernel, h):
    p, y, p_target, w = sample(kind, seed=9, n=60, m=60)
    result = calshift.target_calibration_error(
        p,
        y,
        p_target,
        weights=w,
        check=False,
        kind=kind,
        estimator="paper",
        kernel=kernel,
        bandwidth=h,
    )
    check(result, paper_kernel(kind, 2, kernel, h, *map(rows, (p, y, p_target, w))), kind, 2)


def test_canonical_takes_the_triweight_kernel_by_itself():
    p, y, *_ = sample("canonical", seed=10, n=60)
    result = calshift.calibration_error(p, y, kind="canonical", estimator="paper", bandwidth=0.9)
    check(result, paper_kernel("canonical", 2, "triweight", 0.9, rows(p), rows(y)), "canonical", 2)


def test_canonical_on_a_grid_where_distances_meet_the_bandwidth():
    """Rows in twentieths, h = .5: d = h exactly is outside, as (1 - d^2/h^2)^3 = 0 says too."""
    p, y, p_target, w = sample("canonical", seed=11, tied=True)
    result = calshift.target_calibration_error(
        p,
        y,
        p_target,
        weights=w,
        check=False,
        kind="canonical",
        estimator="paper",
        kernel="triweight",
        bandwidth=0.5,
    )
    errors = paper_kernel("canonical", 2, "triweight", 0.5, *map(rows, (p, y, p_target, w)))
    check(result, errors, "canonical", 2)


def test_dirichlet_kernel_with_exact_zeros():
    """0 log 0 = 0: rows without class 2 are neighbours of each other and of nobody else."""
    p, y, p_target, w = sample("canonical", seed=12, n=60, m=60)
    p, p_target = 0.8 * p + [0.0, 0.0, 0.2], 0.8 * p_target + [0.0, 0.0, 0.2]
    for side in (p, p_target):
        side[:20, 0], side[:20, 2] = side[:20, 0] + side[:20, 2], 0.0
    result = calshift.target_calibration_error(
        p,
        y,
        p_target,
        weights=w,
        check=False,
        kind="canonical",
        estimator="paper",
        kernel="dirichlet",
        bandwidth=0.3,
    )
    errors = paper_kernel("canonical", 2, "dirichlet", 0.3, *map(rows, (p, y, p_target, w)))
    check(result, errors, "canonical", 2)


def test_dirichlet_kernel_at_an_exact_zero_does_not_see_a_tiny_score():
    """The density of Dirichlet(f_i / h + 1) is 0 where f_j = 0 and f_i > 0, however small f_i."""
    p, y = [0.0, 0.0, 0.0, 1e-4, 2e-4, 3e-4, 0.5, 0.6], [0, 0, 1, 1, 1, 1, 0, 1]
    result = calshift.calibration_error(p, y, estimator="paper", kernel="dirichlet", bandwidth=0.3)
    check(result, paper_kernel("binary", 2, "dirichlet", 0.3, p, y), "binary", 2)


# --- sample weights are repetition ----------------------------------------------------------------

SMOOTHERS = [
    ("binary", {}),
    ("classwise", {"bins": 6}),
    ("top-label", {"bins": 8, "binning": "width"}),
    ("canonical", {"kernel": "dirichlet", "bandwidth": 0.2}),
    ("canonical", {"kernel": "triweight", "bandwidth": 0.9}),
    ("binary", {"kernel": "triweight", "bandwidth": 0.4}),
]


def repeated_errors(kind, options, *sides):
    if "kernel" in options:
        return paper_kernel(kind, 2, options["kernel"], options["bandwidth"], *sides)
    if options.get("binning") == "width":
        return paper_binned(kind, 2, lambda f: width_edges(options["bins"]), *sides)[0]
    return paper_binned(kind, 2, lambda f: mass_edges(f, options.get("bins", 15)), *sides)[0]


@pytest.mark.parametrize(("kind", "options"), SMOOTHERS)
def test_sample_weights_with_labels(kind, options):
    p, y, *_ = sample(kind, seed=13, n=50)
    times = np.random.default_rng(14).integers(0, 4, 50)
    weighted = calshift.Predictions(p, y, sample_weight=times)
    result = calshift.calibration_error(weighted, kind=kind, estimator="paper", **options)
    again = np.repeat(np.arange(50), times)
    check(result, repeated_errors(kind, options, rows(p[again]), rows(y[again])), kind, 2)


@pytest.mark.parametrize(("kind", "options"), SMOOTHERS)
def test_sample_weights_without_labels(kind, options):
    p, y, p_target, _ = sample(kind, seed=15, n=50, m=40)
    rng = np.random.default_rng(16)
    times, times_target = rng.integers(0, 4, 50), rng.integers(0, 4, 40)
    again, again_target = (np.repeat(np.arange(len(t)), t) for t in (times, times_target))
    share = np.bincount(y[again]) / len(again)
    w = np.arange(1, len(share) + 1) / (share @ np.arange(1, len(share) + 1))
    result = calshift.target_calibration_error(
        calshift.Predictions(p, y, sample_weight=times),
        None,
        calshift.Predictions(p_target, sample_weight=times_target),
        weights=w,
        check=False,
        kind=kind,
        estimator="paper",
        **options,
    )
    sides = map(rows, (p[again], y[again], p_target[again_target], w))
    check(result, repeated_errors(kind, options, *sides), kind, 2)
