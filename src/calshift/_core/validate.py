"""Validation of arguments; errors name the argument, the row and the value."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from calshift._core.convert import as_double, to_numpy
from calshift.errors import InvalidInput

LARGEST_SIZE = 1e100  # sum of frequency weights; squares stay finite
LEAST_SIZE = 1e-100
LARGEST_INTEGER = 2**1000  # which a float contains
MOST = 10**9  # of whatever is counted
LONGEST_SHOWN = 80  # characters of a value in a message


def is_number(value: Any) -> bool:
    """Whether it is one real number within the range of a float; NaN and infinity included."""
    if isinstance(value, np.ndarray) and value.ndim == 0 and not np.ma.isMaskedArray(value):
        value = value[()]
    if isinstance(value, int):
        return not isinstance(value, bool) and abs(value) < LARGEST_INTEGER
    real = isinstance(value, float | np.integer | np.floating)
    return real and not isinstance(value, np.timedelta64)


def validate_level(level: Any) -> float:
    """The level of an interval or a test, in (0, 1)."""
    if not is_number(level) or not 0 < float(level) < 1:
        msg = f"level must lie between 0 and 1; got {show(level)}"
        raise InvalidInput(msg)
    return float(level)


def validate_number(value: Any, name: str, low: float, high: float) -> float:
    """A number from ``low`` to ``high``."""
    if not is_number(value) or not low <= float(value) <= high:
        msg = f"{name} must be a number from {low:g} to {high:g}; got {show(value)}"
        raise InvalidInput(msg)
    return float(value)


def validate_choice(value: Any, name: str, choices: Iterable[str | None], other: str = "") -> Any:
    """One of a few words; ``other`` says what else is allowed."""
    words = list(choices)
    if not (value is None or isinstance(value, str)) or value not in words:
        shown = ", ".join("None" if word is None else word for word in words)
        msg = f"{name} must be one of {shown}{other}; got {show(value)}"
        raise InvalidInput(msg)
    return value


def validate_flag(value: Any, name: str) -> bool:
    """True or False."""
    if not isinstance(value, bool | np.bool_):
        msg = f"{name} must be True or False; got {show(value)}"
        raise InvalidInput(msg)
    return bool(value)


def validate_integer(value: Any, name: str, least: int, most: int = MOST) -> int:
    """A whole number of at least ``least``, and at most ``most``."""
    number = float(value) if is_number(value) else np.nan
    if not (number.is_integer() and least <= number <= most):
        limit = f" and at most {most:,}" if number > most else ""
        msg = f"{name} must be a whole number of at least {least}{limit}; got {show(value)}"
        raise InvalidInput(msg)
    return int(value)


def validate_jobs(value: Any, name: str) -> int:
    """Processes or threads: as many as asked for, but no more than there are processors, or 2."""
    jobs = validate_integer(value, name, 1)
    return jobs if jobs <= 2 else min(jobs, max(2, os.cpu_count() or 1))


def validate_path(path: Any, name: str = "path") -> Path:
    """The path of a file or folder, such as the system accepts."""
    if not isinstance(path, str | os.PathLike):
        msg = f"{name} must be the path of a file or folder; got {show(path)}"
        raise InvalidInput(msg)
    if str(path) == "":
        msg = f"{name}: the path is empty; name a file, or a folder (. is this one)"
        raise InvalidInput(msg)
    try:
        wrong = b"\0" in os.fsencode(path)
    except UnicodeEncodeError:
        wrong = True
    if wrong:
        msg = f"{name} has a character that no path has; got {show(os.fspath(path))}"
        raise InvalidInput(msg)
    return Path(path)


def validate_rng(rng: Any) -> np.random.Generator:
    """A random generator from a seed, or the one given."""
    try:
        if isinstance(rng, np.datetime64 | np.timedelta64):
            raise TypeError
        return np.random.default_rng(rng)
    except (TypeError, ValueError) as problem:
        what = "None, a whole number that is not negative, or a Generator"
        msg = f"rng must be {what}; got {show(rng)}"
        raise InvalidInput(msg) from problem


def validate_sample_weight(
    sample_weight: Any, n: int, name: str = "sample_weight", start: int = 0
) -> np.ndarray:
    """(n,) frequency weights; messages use the name, and count rows from ``start``."""
    weight = np.asarray(to_numpy(sample_weight, name)[0])
    if weight.shape != (n,) or weight.dtype.kind not in "fiub":
        msg = f"{name} must be {n} numbers, one a row; got {weight.dtype} {weight.shape}"
        raise InvalidInput(msg)
    weight = as_double(weight)
    wrong = ~(np.isfinite(weight) & (weight >= 0))
    if wrong.any():
        row = int(np.argmax(wrong))
        msg = f"{name} must be finite and not negative; row {start + row} is {weight[row]:.6g}"
        raise InvalidInput(msg)
    if not LEAST_SIZE < weight.sum(dtype=np.longdouble) < LARGEST_SIZE:
        msg = (
            f"{name} must not be all zero, nor add up to {LARGEST_SIZE:g} rows or more "
            f"or {LEAST_SIZE:g} or less; "
            f"the sum is {weight.sum(dtype=np.longdouble):.6g}"
        )
        raise InvalidInput(msg)
    return weight


def show(value: Any) -> str:
    """What was given, shortened for a message."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # whatever its own repr raises
        return f"a {type(value).__name__}"
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."


def format_value(names: Any) -> str:
    """The first names of several."""
    names_shown = ", ".join(show(name) for name in names[:4])
    return f"({names_shown}, ...)" if len(names) > 4 else f"({names_shown})"
