"""Probabilities, validated: in [0, 1], with rows that sum to 1; errors suggest what they are."""

from __future__ import annotations

import numpy as np

from calshift._core.convert import as_double
from calshift.errors import InvalidInput

AT_ONCE = 2**17  # numbers checked at a time, so that they stay in the cache


def validate_probabilities(p: np.ndarray, name: str, start: int = 0) -> np.ndarray:
    """(n, K) or (n,) floats in [0, 1] whose rows sum to 1; errors name the first bad row.

    Rows are counted from ``start``, the number of the first row in its file.
    """
    if p.ndim not in (1, 2) or (p.ndim == 2 and p.shape[1] == 1):
        hint = ": pass one column of binary scores as a 1-D array" if p.ndim == 2 else ""
        msg = f"{name} must have shape (n, K) with K >= 2, or (n,); got {p.shape}{hint}"
        raise InvalidInput(msg)
    if p.size == 0:
        msg = f"{name} must have at least one row and two classes; got shape {p.shape}"
        raise InvalidInput(msg)
    if p.dtype.kind not in "fiub":
        msg = f"{name} must be numbers; got {p.dtype}"
        raise InvalidInput(msg)
    K = 2 if p.ndim == 1 else p.shape[1]
    rounding = float(np.finfo(p.dtype).eps) if p.dtype.kind == "f" else 0.0
    if p.dtype != np.float32:
        p = p.astype(np.float32) if p.dtype == np.float16 else as_double(p)
    highest, tolerance = 1 + 8 * rounding, max(1e-3, K * rounding)
    step = max(1, AT_ONCE // K)
    for first in range(0, len(p), step):
        rows = p[first : first + step]
        sums = _sum_rows(rows) if rows.min() >= 0 else rows[:0]  # a NaN fails too
        if not (len(sums) and _none_above(highest, rows, sums)):
            raise InvalidInput(_range_message(p, name, highest, start))
        if p.ndim == 2:
            _check_sums(rows, sums, name, tolerance, start + first)
    return p


def _none_above(highest: float, rows: np.ndarray, sums: np.ndarray) -> bool:
    """Whether no number exceeds the highest; none exceeds the sum of its row."""
    return bool(sums.max() <= highest or rows[sums > highest].max() <= highest)


def _sum_rows(rows: np.ndarray) -> np.ndarray:
    """Sums of rows of nonnegative numbers; a product is many times as fast as sum()."""
    if rows.ndim == 1:
        return rows
    with np.errstate(over="ignore"):
        return np.asarray(rows @ np.ones(rows.shape[1], rows.dtype))


def _check_sums(p: np.ndarray, sums: np.ndarray, name: str, tolerance: float, start: int) -> None:
    if sums.max() - 1 > tolerance or 1 - sums.min() > tolerance:
        row = int(np.argmax(np.abs(sums - 1) > tolerance))
        msg = (
            f"{name} must be probabilities that sum to 1 in each row; "
            f"row {start + row} sums to {sums[row]:.6g}{_likely_cause(p, sums)}"
        )
        raise InvalidInput(msg)


def _range_message(p: np.ndarray, name: str, highest: float, start: int) -> str:
    wrong = ~((p >= 0) & (p <= highest))
    where = np.unravel_index(int(np.argmax(wrong)), p.shape)
    place = f"row {start + where[0]}" + (f", column {where[1]}" if p.ndim == 2 else "")
    cause = ""
    if p.ndim == 2 and np.isfinite(p).all():
        cause = _likely_cause(p, p.sum(axis=1, dtype=np.longdouble))
    elif np.isfinite(p).all():
        cause = _cause_of_scores(p)
    return f"{name} must be probabilities in [0, 1]; {place} is {p[where]:.6g}{cause}"


def _likely_cause(p: np.ndarray, sums: np.ndarray) -> str:
    """The likely reason why rows are not on the simplex, in common cases."""
    low, high = p.min(), p.max()
    if high <= 0 and np.allclose(np.exp(p.astype(float)).sum(axis=1), 1, atol=1e-2):
        return " (these look like log-probabilities: use numpy.exp)"
    if low >= 0 and np.allclose(sums, 100, rtol=1e-2):
        return " (these look like percentages: divide by 100)"
    if low < 0 or high > 1.01:
        return " (these look like logits: use calshift.softmax)"
    if high > 1:
        return " (beyond rounding: divide each row by its sum)"
    return " (one score a class that need not add up? pass each class as binary scores)"


def _cause_of_scores(p: np.ndarray) -> str:
    """The likely reason why one column is not probabilities."""
    if p.min() >= 0 and 1.01 < p.max() <= 100:
        return " (these look like percentages: divide by 100)"
    if p.min() < 0:
        return " (these look like logits: 1 / (1 + exp(-z)) makes them probabilities)"
    return ""
