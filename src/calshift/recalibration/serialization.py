"""Validation of the values that a recalibrator reads from JSON.

A value of another form raises ValueError, which `Recalibrator.from_dict` explains.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from calshift._core.validate import is_number
from calshift.errors import InvalidInput

Check = Callable[[Any, int], Any]  # saved value, number of classes -> value


LARGEST = 1e6  # of a slope, bias or temperature: products with logarithms stay finite


def read_positive(value: Any, K: int) -> float:
    """A number above 0, such as a temperature."""
    if not (is_number(value) and 1 / LARGEST <= float(value) <= LARGEST):
        raise ValueError
    return float(value)


def read_vector(value: Any, length: int) -> np.ndarray:
    """Numbers of moderate size, one for each class unless another length is meant."""
    found = _read_numbers(value, length)
    if not (np.abs(found) <= LARGEST).all():
        raise ValueError
    return found


def _read_numbers(value: Any, length: int) -> np.ndarray:
    """So many finite numbers."""
    if not isinstance(value, list) or len(value) != length or not all(map(is_number, value)):
        raise ValueError
    found = np.array([float(item) for item in value])
    if not np.isfinite(found).all():
        raise ValueError
    return found


def read_slopes(value: Any, K: int) -> np.ndarray:
    """One number for each class, or one for all."""
    return read_vector(value, 1 if isinstance(value, list) and len(value) == 1 else K)


def read_class_weights(value: Any, K: int) -> np.ndarray:
    """One number for each class, none negative, not all 0."""
    found = _read_numbers(value, K)
    if (found < 0).any() or not found.any():  # their scale does not matter
        raise ValueError
    return found


def read_floors(value: Any, K: int) -> np.ndarray:
    """One probability for each class, 0 where there is no floor."""
    found = _read_numbers(value, K)
    if not ((found >= 0) & (found < 1)).all():
        raise ValueError
    return found


def read_shares(value: Any, K: int) -> np.ndarray:
    """Three shares that sum to 1."""
    found = read_vector(value, 3)
    if (found < 0).any() or abs(found.sum() - 1) > 1e-6:
        raise ValueError
    return found


def read_corners(value: Any, K: int) -> list[np.ndarray]:
    """One increasing list of probabilities for each class, which may be empty."""
    if not isinstance(value, list) or len(value) != K:
        raise ValueError
    found = [read_vector(part, len(part) if isinstance(part, list) else -1) for part in value]
    for part in found:
        if len(part) and not (part[0] >= 0 and part[-1] <= 1 and (np.diff(part) >= 0).all()):
            raise ValueError
    return found


def read_class_names(value: Any, K: int) -> tuple[str, ...] | None:
    """Names of the classes, or None."""
    if value is None:
        return None
    good = isinstance(value, list) and len(value) == K == len(set(map(str, value)))
    if not good or not all(isinstance(name, str) for name in value):
        msg = f"saved must have different names for all of its {K} classes, or null"
        raise InvalidInput(msg)
    return tuple(value)
