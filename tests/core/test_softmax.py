"""softmax of logits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax

import calshift


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("axis", [0, -1])
def test_softmax_is_scipys_and_leaves_its_input_alone(dtype, axis):
    logits = np.random.default_rng(0).normal(0, 5, (6, 4)).astype(dtype)
    before = logits.copy()
    found = calshift.softmax(logits, axis=axis)
    assert found.dtype == logits.dtype
    np.testing.assert_allclose(found, softmax(before, axis=axis), rtol=1e-5)
    np.testing.assert_array_equal(logits, before)
