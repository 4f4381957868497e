"""A frequency weight of k counts as k rows, also in intervals over many classes."""

from __future__ import annotations

import numpy as np
import pytest

import calshift


@pytest.mark.parametrize("bins", ["auto", 1000])
@pytest.mark.parametrize("seed", range(4))
def test_intervals_over_many_classes_count_weights_as_rows(seed, bins):
    """Above 20 classes rows of little influence are left out of a term of the variance."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(24, 0.3), 100)
    y = (p.cumsum(axis=1) < rng.random((100, 1))).sum(axis=1).clip(max=23)
    k = rng.integers(1, 4, 100)
    weighted = calshift.calibration_error(calshift.Predictions(p, y, sample_weight=k), bins=bins)
    repeated = calshift.calibration_error(np.repeat(p, k, axis=0), np.repeat(y, k), bins=bins)
    assert weighted.estimate == pytest.approx(repeated.estimate, rel=1e-9)
    assert weighted.standard_error == pytest.approx(repeated.standard_error, rel=1e-9)
