"""Difference of two calibration errors of the same rows."""

from __future__ import annotations

import numpy as np

from calshift.errors import InvalidInput
from calshift.results import CalibrationErrorResult, Difference


def difference(a: CalibrationErrorResult, b: CalibrationErrorResult) -> Difference:
    """The difference a - b, with the correlation of their estimates."""
    for name, one in (("a", a), ("b", b)):
        if not isinstance(one, CalibrationErrorResult):
            msg = f"{name} must be a CalibrationErrorResult; got {type(one)!r}"
            raise InvalidInput(msg)
        if one._influence is None:
            msg = (
                f'{name} must have been made with interval="influence" (norm 1 or 2, with bins) '
                "of rows in memory: the influence of rows that are read in passes is not kept"
            )
            raise InvalidInput(msg)
    for name in ("kind", "norm", "estimator"):
        one, other = getattr(a, name), getattr(b, name)
        if one != other:
            msg = f"a and b must have the same {name}; they have {one!r} and {other!r}"
            raise InvalidInput(msg)
    assert a._influence is not None
    assert b._influence is not None
    if not a._influence.has_same_rows(b._influence):
        msg = "a and b must be of the same rows in the same order: their labels or sizes differ"
        raise InvalidInput(msg)
    variance = a._influence.variance * b._influence.variance
    shared = a._influence.with_other(b._influence) / np.sqrt(variance) if variance > 0 else 0.0
    return Difference(a, b, float(np.clip(shared, -1.0, 1.0)))
