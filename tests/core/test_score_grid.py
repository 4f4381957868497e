"""The grid of cells: ordered, symmetric, the same in both precisions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from calshift._core.score_grid import (
    ANGLE,
    CELLS,
    CENTRE,
    MIDDLE,
    STEPS,
    cell_of,
    first_nearer,
    lowest_score,
)

SPECIAL = [0.0, 5e-324, 2.0**-60, 2.0**-40, 2.0**-39, 0.25, 0.5, 0.75, 1 - 2.0**-53, 1.0]


def spread_scores(kind: str) -> np.ndarray:
    rng = np.random.default_rng(0)
    near = 10 ** rng.uniform(-15, 0, 20_000)
    return np.concatenate([rng.random(20_000), near, 1 - near, SPECIAL]).astype(kind)


@pytest.mark.parametrize("kind", ["f4", "f8"])
def test_cells_are_ordered_and_begin_where_they_say(kind):
    f = spread_scores(kind)
    cell = cell_of(f)
    assert cell.min() >= 0
    assert cell.max() < CELLS
    assert (np.diff(cell[np.argsort(f, kind="stable")]) >= 0).all()
    low = lowest_score(np.arange(CELLS))
    assert (np.diff(low) > 0).all()
    np.testing.assert_array_equal(np.searchsorted(low, f.astype(float), side="right") - 1, cell)


def test_a_score_has_one_cell_in_both_precisions():
    f = spread_scores("f4")
    np.testing.assert_array_equal(cell_of(f), cell_of(f.astype(float)))


@given(st.integers(-(2**30), 2**30).map(lambda k: k / 2**31 + 0.5))  # 1 - f is exact for these
def test_the_grid_is_symmetric(f):
    both = cell_of(np.array([f, 1 - f]))
    assert both.sum() == 2 * CENTRE


def test_an_octave_has_so_many_cells_and_the_half_one_of_its_own():
    edges = cell_of(np.array([0.125, 0.25, 0.5, np.nextafter(0.5, 1), 0.75, 0.875]))
    assert edges[1] - edges[0] == edges[2] - edges[1] == STEPS
    assert edges[2] == CENTRE
    assert edges[3] == CENTRE + 1
    assert edges[5] - edges[4] == STEPS


def test_a_score_just_above_one_is_in_the_last_cell():
    top = np.array([1.0, 1 + 1e-6], dtype=np.float32)
    assert cell_of(top).tolist() == [CELLS - 1, CELLS - 1]


def test_angles_lie_within_their_cells():
    low = np.arcsin(np.sqrt(lowest_score(np.arange(CELLS))))
    assert (np.diff(ANGLE) > 0).all()
    assert (low - 1e-12 <= ANGLE).all()
    assert (ANGLE[:-1] <= low[1:] + 1e-12).all()


@example((CENTRE - STEPS - 2, CENTRE - STEPS))  # the cell between them is halfway
@example((CENTRE + STEPS, CENTRE + STEPS + 2))
@given(st.tuples(*[st.integers(0, CELLS - 1)] * 2).filter(lambda pair: pair[0] < pair[1]))
def test_empty_cells_go_to_the_nearer_of_two_and_so_in_the_mirror(pair):
    left, right = np.array(pair[:1]), np.array(pair[1:])
    (cut,) = first_nearer(left, right)
    a, b, before, after = (Fraction(float(MIDDLE[k])) for k in (*pair, cut - 1, cut))
    assert before - a <= b - before
    assert after - a >= b - after
    assert left[0] < cut <= right[0]
    if a + b != 1:  # then the cell of 1/2 lies halfway, and has no mirror image but itself
        assert first_nearer(2 * CENTRE - right, 2 * CENTRE - left) == [2 * CENTRE + 1 - cut]
