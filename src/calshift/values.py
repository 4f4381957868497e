"""Columns of a file as numpy arrays: numbers, labels, times; the first bad value is named."""

from __future__ import annotations

from typing import Any

import numpy as np

from calshift.errors import InvalidInput

MICROSECONDS = "datetime64[us]"


def numbers_of(column: Any, name: str, file: str, start: int) -> np.ndarray:
    """(n,) floats, or (n, K) of a column of lists."""
    if not isinstance(column, np.ndarray):
        column = _numbers_from_arrow(column, name, file, start)
    if column.dtype.kind not in "fiub":
        msg = f"{file}: column {name!r} must hold numbers; it holds {_kind(column)}"
        raise InvalidInput(msg)
    return np.asarray(column)


def _numbers_from_arrow(column: Any, name: str, file: str, start: int) -> np.ndarray:
    import pyarrow.types as kinds

    _check_whole(column, name, file, start)
    if kinds.is_list(column.type) or kinds.is_large_list(column.type):
        return _rectangle(column, name, file, start)
    if kinds.is_fixed_size_list(column.type):
        return _numbers_from_arrow(column.flatten(), name, file, start).reshape(len(column), -1)
    if kinds.is_decimal(column.type):
        column = column.cast("float64")
    if not (kinds.is_floating(column.type) or kinds.is_integer(column.type)):
        shown = next((value.as_py() for value in column[:1]), None)
        msg = (
            f"{file}: column {name!r} must hold numbers; it holds {column.type}, "
            f"as in row {start}: {shown!r}"
        )
        raise InvalidInput(msg)
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _rectangle(column: Any, name: str, file: str, start: int) -> np.ndarray:
    lengths = column.value_lengths().to_numpy(zero_copy_only=False)
    if len(lengths) and (lengths != lengths[0]).any():
        row = int(np.argmax(lengths != lengths[0]))
        msg = (
            f"{file}: lists in column {name!r} must have one number a class; row {start} has "
            f"{lengths[0]}, row {start + row} has {lengths[row]}"
        )
        raise InvalidInput(msg)
    inside = _numbers_from_arrow(column.flatten(), name, file, start)
    return inside.reshape(len(column), -1) if len(column) else inside.reshape(0, 0)


def labels_of(column: Any, name: str, file: str, start: int) -> np.ndarray:
    """Labels as they were written: numbers or texts."""
    if isinstance(column, np.ndarray):
        if column.ndim != 1 or column.dtype.kind not in "fiubU":
            msg = (
                f"{file}: labels in {name!r} must be one column of numbers or names; "
                f"got {column.dtype} of shape {column.shape}"
            )
            raise InvalidInput(msg)
        return np.asarray(column)
    _check_whole(column, name, file, start)
    coded = column.dictionary_encode()
    names = np.array([str(value) for value in coded.dictionary.to_pylist()], dtype=str)
    return np.asarray(names[coded.indices.to_numpy(zero_copy_only=False)])


def times_of(column: Any, name: str, file: str, start: int) -> np.ndarray:
    """Times in microseconds, in UTC where a zone is given; numbers are seconds since 1970."""
    if isinstance(column, np.ndarray):
        values = column
    else:
        _check_whole(column, name, file, start)
        values = _times_from_arrow(column, name, file)
    if values.dtype.kind in "iuf":
        return np.asarray((values * 1e6).astype("int64").view(MICROSECONDS))
    try:
        return values.astype(MICROSECONDS)
    except ValueError:
        msg = f"{file}: column {name!r} must hold times such as 2026-01-31T12:00:00"
        raise InvalidInput(msg) from None


def _times_from_arrow(column: Any, name: str, file: str) -> np.ndarray:
    import pyarrow as pa

    text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    kinds = (pa.float64(), pa.timestamp("us"), pa.timestamp("us", "UTC")) if text else (None,)
    for kind in kinds:
        try:
            values = (column if kind is None else column.cast(kind)).to_numpy(zero_copy_only=False)
        except pa.ArrowInvalid:
            continue
        if values.dtype.kind in "Mfiu":
            return np.asarray(values)
    shown = column[0].as_py()
    msg = f"{file}: column {name!r} must hold times such as 2026-01-31T12:00:00; one is {shown!r}"
    raise InvalidInput(msg)


def _check_whole(column: Any, name: str, file: str, start: int) -> None:
    """No value is missing."""
    if column.null_count:
        row = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        place = f"row {start + row}" if len(column) else "a row"
        msg = f"{file}: column {name!r} has no value in {place}: fill it or drop the row"
        raise InvalidInput(msg)


def _kind(column: np.ndarray) -> str:
    return f"text ({str(column.flat[0])!r})" if column.dtype.kind in "US" else str(column.dtype)
