"""The exact rule of bins, against a literal reading of it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calshift
from calshift.binning.edges import equal_mass_edges, merge_sparse_bins

scores = st.lists(
    st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.25, 0.5, 1.0])), min_size=1, max_size=60
)


def literal_edges(f: list[float], B: int) -> list[float]:
    s, m = sorted(f), len(f)
    picked = [s[math.ceil(k * m / B)] for k in range(1, B) if math.ceil(k * m / B) < m]
    return sorted({e for e in picked if e > s[0]})


@given(f=scores, B=st.integers(1, 20))
def test_equal_mass_edges_follow_the_rule_to_the_letter(f, B):
    assert equal_mass_edges(np.array(f), None, B).tolist() == literal_edges(f, B)


@given(f=scores, B=st.integers(1, 20), data=st.data())
def test_weighted_edges_are_those_of_repeated_scores(f, B, data):
    weight = data.draw(st.lists(st.integers(1, 4), min_size=len(f), max_size=len(f)))
    repeated = np.repeat(f, weight)
    weighted = equal_mass_edges(np.array(f), np.array(weight, dtype=float), B)
    assert weighted.tolist() == equal_mass_edges(repeated, None, B).tolist()
    rows = calshift.Predictions(f, sample_weight=weight)
    fine = calshift.bin_edges(rows, kind="binary")[0]
    assert fine.tolist() == calshift.bin_edges(repeated, kind="binary")[0].tolist()


@given(f=scores, B=st.integers(1, 20), smooth=st.booleans())
def test_every_point_is_in_one_bin_and_ties_stay_together(f, B, smooth):
    edges = calshift.bin_edges(f, kind="binary", bins="auto" if smooth else B)
    inner = edges[0]
    bins = edges.locate(0, np.array(f))
    assert bins.min() == 0
    assert bins.max() == len(inner)  # no bin is empty: every edge is a score
    for value in set(f):
        lower, upper = [-np.inf, *inner], [*inner, np.inf]
        holding = [b for b in range(len(inner) + 1) if lower[b] <= value < upper[b]]
        assert holding == [bins[f.index(value)]]


def test_equal_mass_bins_hold_equal_mass():
    f = np.random.default_rng(0).random(1000)
    edges = calshift.bin_edges(f, kind="binary", bins=15)
    count = np.bincount(edges.locate(0, f))
    assert len(count) == 15
    assert count.min() >= 66
    assert count.max() <= 67


def test_constant_scores_make_one_bin():
    for bins in ("auto", 15):
        assert len(calshift.bin_edges([0.3] * 9, kind="binary", bins=bins)[0]) == 0


def test_fine_bins_resolve_both_the_crowd_near_zero_and_the_rare_high_scores():
    rng = np.random.default_rng(0)
    f = np.concatenate([rng.beta(0.2, 30, 9900), rng.uniform(0.5, 1, 100)])
    inner = calshift.bin_edges(f, kind="binary")[0]
    assert (inner > 0.5).sum() > 40  # 1% of the mass
    assert (inner < np.median(f)).sum() > 40


def test_width_and_given_edges():
    f = [0.1, 0.9]
    width = calshift.bin_edges(f, kind="binary", bins=4, binning="width")
    assert width[0].tolist() == [0.25, 0.5, 0.75]
    given_edges = calshift.bin_edges(f, kind="binary", bins=[0, 0.25, 0.5, 0.75, 1])
    assert given_edges[0].tolist() == [0.25, 0.5, 0.75]
    assert given_edges.locate(0, np.array([0.0, 0.25, 1.0])).tolist() == [0, 1, 3]
    p = [[0.5, 0.5], [0.2, 0.8]]
    each = calshift.bin_edges(p, bins=[[0.5], [0.3, 0.6]])
    assert [edges.tolist() for edges in each] == [[0.5], [0.3, 0.6]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bins": 0}, "at least 1"),
        ({"bins": 2.5}, "whole number"),
        ({"bins": True}, "a number of bins"),
        ({"bins": "fine"}, '"auto"'),
        ({"bins": [0.5, 0.2]}, "increasing"),
        ({"bins": [0.5, float("nan")]}, "finite"),
        ({"bins": [[0.5], [0.5], [0.5]]}, "1 lists"),
        ({"binning": "height"}, "mass, width"),
        ({"binning": "width"}, "number of bins"),
        ({"kind": "canonical"}, "pairs of rows"),
    ],
)
def test_bad_bins_are_named(options, message):
    with pytest.raises(calshift.InvalidInput, match=message):
        calshift.bin_edges([0.2, 0.7], **{"kind": "binary", **options})


def literal_joining(*counts: list[int]) -> list[list[int]]:
    """Thin bins join the left neighbour; the first, while thin, takes the next one in."""
    groups = [[0]]
    for b in range(1, len(counts[0])):
        thin = any(count[b] < 2 for count in counts)
        first_thin = len(groups) == 1 and any(sum(c[k] for k in groups[0]) < 2 for c in counts)
        if thin or first_thin:
            groups[-1].append(b)
        else:
            groups.append([b])
    return groups


@given(counts=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=12))
@settings(max_examples=200)
def test_thin_bins_join_their_neighbours(counts):
    a, b = (list(column) for column in zip(*counts, strict=True))
    starts = merge_sparse_bins(np.array(a), np.array(b))
    assert starts.tolist() == [group[0] for group in literal_joining(a, b)]


def test_joined_bins_are_counted_and_nothing_is_lost():
    p, y = [0.1, 0.2, 0.8, 0.9], [0, 1, 0, 1]
    result = calshift.target_calibration_error(
        p, y, [0.1, 0.2, 0.6, 0.7, 0.75, 0.9], weights=[1, 1], bins=[0.3, 0.65, 0.72]
    )
    # target counts by bin: 2, 1, 1, 2; source counts 2, 0, 0, 2: bins 1 and 2 join bin 0
    assert result.merged_bins == 2
    residual = np.mean([0 - 0.1, 1 - 0.2]), np.mean([0 - 0.8, 1 - 0.9])
    plugin = calshift.target_calibration_error(
        p, y, [0.1, 0.2, 0.6, 0.7, 0.75, 0.9], weights=[1, 1], bins=[0.3, 0.65, 0.72],
        estimator="plugin",
    )  # fmt: skip
    assert plugin.estimate == pytest.approx(4 / 6 * residual[0] ** 2 + 2 / 6 * residual[1] ** 2)


def test_edges_within_the_last_cell_of_the_grid():
    """Scores next to 1 in double precision, as softmax gives them, are told apart by edges."""
    p = np.repeat([0.3, 1 - 1e-13, 1.0], [20, 10, 10])
    y = [0, 1] * 10 + [0] * 10 + [1] * 10
    found = calshift.calibration_error(p, y, bins=[0.5, 1 - 5e-14], estimator="plugin")
    np.testing.assert_allclose(found.estimate, (20 * 0.2**2 + 10 * 1 + 10 * 0) / 40, rtol=1e-9)


def test_fine_edges_are_a_sequence_of_read_only_arrays():
    p = np.random.default_rng(0).dirichlet(np.ones(3), 300)
    for edges in (calshift.bin_edges(p), calshift.bin_edges(p, bins=7)):
        assert [len(one) for one in edges[1:3]] == [len(edges[1]), len(edges[2])]
        assert not edges[0].flags.writeable
        assert not edges.inner[0].flags.writeable
