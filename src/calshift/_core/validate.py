"""Validation of arguments; errors name the argument, the row and the value."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from calshift._core.convert import to_numpy
from calshift.errors import InvalidInput

LARGEST_SIZE = 1e100  # sum of frequency weights; squares stay finite
LEAST_SIZE = 1e-100
MOST_CLASSES = 10_000_000
AT_ONCE = 2**17  # numbers checked at a time, so that they stay in the cache


def is_number(value: Any) -> bool:
    """Whether it is one real number, of Python or numpy, and not a bool."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def validate_level(level: Any) -> float:
    """The level of an interval or a test, in (0, 1)."""
    if not is_number(level) or not 0 < level < 1:
        msg = f"level must lie between 0 and 1; got {level!r}"
        raise InvalidInput(msg)
    return float(level)


def validate_integer(value: Any, name: str, least: int) -> int:
    """A whole number of at least ``least``."""
    if not is_number(value) or not np.isfinite(value) or value != int(value) or value < least:
        msg = f"{name} must be a whole number of at least {least}; got {value!r}"
        raise InvalidInput(msg)
    return int(value)


def validate_rng(rng: Any) -> np.random.Generator:
    """A random generator from a seed, or the one given."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError) as problem:
        msg = f"rng must be None, a whole number that is not negative, or a Generator; got {rng!r}"
        raise InvalidInput(msg) from problem


def encode_labels(y: Any, name: str, K: int = MOST_CLASSES) -> np.ndarray:
    """Labels without predictions, as integers 0..K-1."""
    raw = to_numpy(y, name)[0]
    if raw.ndim != 1 or raw.size == 0:
        msg = f"{name} must be a list of at least one label; got shape {raw.shape}"
        raise InvalidInput(msg)
    if raw.dtype.kind not in "iubf":
        msg = f"{name} must be integer labels; got dtype {raw.dtype}"
        raise InvalidInput(msg)
    return validate_labels(raw, len(raw), K, None, name)


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
    if p.dtype.kind not in "fiub" or isinstance(p, np.ma.MaskedArray):
        masked = "a masked array: fill or drop its rows" if p.dtype.kind in "fiub" else p.dtype
        msg = f"{name} must be numbers; got {masked}"
        raise InvalidInput(msg)
    K = 2 if p.ndim == 1 else p.shape[1]
    rounding = float(np.finfo(p.dtype).eps) if p.dtype.kind == "f" else 0.0
    if p.dtype not in (np.float32, np.float64):
        p = p.astype(np.float32 if p.dtype == np.float16 else np.float64)
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


def validate_classes(classes: Any, K: int) -> tuple[Any, ...] | None:
    if classes is None:
        return None
    msg = f"classes must name {K} different classes in order, one a column; got "
    if isinstance(classes, str | set | frozenset | dict) or not hasattr(classes, "__iter__"):
        raise InvalidInput(msg + repr(classes))
    names = tuple(classes.tolist() if isinstance(classes, np.ndarray) else classes)
    hashable = all(isinstance(name, Hashable) for name in names)
    if not hashable or len(names) != K or len(set(names)) != K:
        raise InvalidInput(msg + format_value(names))
    return names


def check_same_names(
    a: tuple[Any, ...] | None, b: tuple[Any, ...] | None, where: tuple[str, str]
) -> None:
    """Check that two samples with named classes have the same ones in the same order."""
    if a is not None and b is not None and a != b:
        msg = (
            f"{where[0]} and {where[1]} must name the same classes in the same order; "
            f"got {format_value(a)} and {format_value(b)}: reorder one of them"
        )
        raise InvalidInput(msg)


def validate_labels(
    y: np.ndarray, n: int, K: int, classes: tuple[Any, ...] | None, name: str, start: int = 0
) -> np.ndarray:
    """Labels as integers 0..K-1; rows are counted from ``start``."""
    if y.shape != (n,):
        hint = ": one-hot labels? use y.argmax(axis=1)" if y.ndim == 2 else ""
        msg = f"{name} must have one label a row, shape ({n},); got {y.shape}{hint}"
        raise InvalidInput(msg)
    if classes is not None and y.dtype.kind in "iuf" and all(map(_is_digits, classes)):
        classes = tuple(int(label) for label in classes)  # columns of files have no other names
    if _are_names(y, classes):
        return _encode_names(y, classes, name, start)
    if y.dtype.kind not in "iub":
        y = _whole_numbers(y, name, start)
    if y.min() < 0 or y.max() >= K:
        row = int(np.argmax((y < 0) | (y >= K)))
        msg = f"{name} must be labels 0..{K - 1}; row {start + row} is {y[row]}"
        raise InvalidInput(msg)
    return y.astype(np.intp, copy=False)


def _is_digits(label: Any) -> bool:
    return isinstance(label, str) and label.isascii() and label.isdigit()


def _are_names(y: np.ndarray, classes: tuple[Any, ...] | None) -> bool:
    """Whether labels are names in classes; integers are only if the classes are integers."""
    if y.dtype.kind in "OUST":
        return True
    return classes is not None and all(isinstance(name, int | np.integer) for name in classes)


def _encode_names(
    y: np.ndarray, classes: tuple[Any, ...] | None, name: str, start: int
) -> np.ndarray:
    if classes is None:
        msg = f"{name} are names ({y[0]!r}): list them in column order with Predictions(classes=)"
        raise InvalidInput(msg)
    code = {label: k for k, label in enumerate(classes)}
    codes = np.array([code.get(label, -1) for label in y.tolist()], dtype=np.intp)
    if (codes < 0).any():
        row = int(np.argmax(codes < 0))
        where = f"row {start + row} is {y.tolist()[row]!r}"
        msg = f"{name} must be names in classes; {where}"
        raise InvalidInput(msg)
    return codes


def _whole_numbers(y: np.ndarray, name: str, start: int) -> np.ndarray:
    if y.dtype.kind != "f":
        msg = f"{name} must be integer labels, or names with classes=; got dtype {y.dtype}"
        raise InvalidInput(msg)
    wrong = ~((np.abs(y) < 2**53) & (y == np.floor(y)))  # a NaN is wrong too
    if wrong.any():
        row = int(np.argmax(wrong))
        where = f"row {start + row} is {y[row]:.6g}"
        msg = f"{name} must be integer labels, or names with classes=; {where}"
        raise InvalidInput(msg)
    return y.astype(np.int64)


def validate_sample_weight(sample_weight: Any, n: int) -> np.ndarray:
    weight = np.asarray(to_numpy(sample_weight, "sample_weight")[0])
    if weight.shape != (n,) or weight.dtype.kind not in "fiub":
        msg = f"sample_weight must be {n} numbers, one a row; got {weight.dtype} {weight.shape}"
        raise InvalidInput(msg)
    weight = weight.astype(float)
    wrong = ~(np.isfinite(weight) & (weight >= 0))
    if wrong.any():
        row = int(np.argmax(wrong))
        msg = f"sample_weight must be finite and not negative; row {row} is {weight[row]:.6g}"
        raise InvalidInput(msg)
    if not LEAST_SIZE < weight.sum(dtype=np.longdouble) < LARGEST_SIZE:
        msg = (
            f"sample_weight must not be all zero, nor add up to {LARGEST_SIZE:g} rows or more "
            f"or {LEAST_SIZE:g} or less; "
            f"the sum is {weight.sum(dtype=np.longdouble):.6g}"
        )
        raise InvalidInput(msg)
    return weight


def format_value(names: Any) -> str:
    names_shown = ", ".join(repr(name) for name in names[:4])
    return f"({names_shown}, ...)" if len(names) > 4 else f"({names_shown})"
