"""Sums of many values are made in place, and no value that was added is changed."""

from __future__ import annotations

import numpy as np
import pytest

from calshift._core.addable import Tally, add_up


def tally(k: int) -> Tally:
    inner = Tally(a=np.full(3, k), b=[k])
    return Tally(whole=inner, number=float(k), matrix=np.full((2, 2), k + 0.5))


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_values_stay_as_they_were(count):
    values = [tally(k) for k in range(count)]
    total = add_up(values)
    assert total["whole"]["b"] == list(range(count))
    np.testing.assert_array_equal(total["whole"]["a"], np.full(3, sum(range(count))))
    np.testing.assert_array_equal(total["matrix"], sum(tally(k)["matrix"] for k in range(count)))
    for k, one in enumerate(values):
        np.testing.assert_array_equal(one["whole"]["a"], np.full(3, k))
        np.testing.assert_array_equal(one["matrix"], np.full((2, 2), k + 0.5))


def test_arrays_of_other_shapes_and_types_are_added_too():
    assert add_up([]) == 0
    assert add_up([1, 2, 3]) == 6
    found = add_up([np.ones(1, int), np.ones(1, int), np.full(3, 0.5), np.ones(3, int)])
    np.testing.assert_array_equal(found, np.full(3, 3.5))
