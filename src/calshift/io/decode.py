"""Columns of a file as numpy arrays: numbers, labels, times; errors name the first bad value."""

from __future__ import annotations

from typing import Any

import numpy as np

from calshift.errors import InvalidInput
from calshift.io.columns import quote
from calshift.io.times import parse_times


def decode_numbers(column: Any, name: str, file: str, start: int) -> np.ndarray:
    """(n,) floats, or (n, K) of a column of lists."""
    if not isinstance(column, np.ndarray):
        column = _numbers_from_arrow(column, name, file, start)
    if column.dtype.kind not in "fiub":
        msg = f"{file}: column {name!r} must contain numbers; it contains {_kind(column)}"
        raise InvalidInput(msg)
    return np.asarray(column)


def _numbers_from_arrow(column: Any, name: str, file: str, start: int) -> np.ndarray:
    import pyarrow.types as kinds

    _check_complete(column, name, file, start)
    if kinds.is_list(column.type) or kinds.is_large_list(column.type):
        return _equal_lists(column, name, file, start)
    if kinds.is_fixed_size_list(column.type):
        return _reshaped(column, column.type.list_size, name, file, start)
    if kinds.is_decimal(column.type):
        column = column.cast("float64")
    if not (kinds.is_floating(column.type) or kinds.is_integer(column.type)):
        shown = next((value.as_py() for value in column[:1]), None)
        msg = (
            f"{file}: column {name!r} must contain numbers; it contains {column.type}, "
            f"as in row {start}: {shown!r}"
        )
        raise InvalidInput(msg)
    return _as_numpy(column)


def _as_numpy(column: Any) -> np.ndarray:
    """An arrow column; `to_numpy` would import pandas, and an interrupt may get lost in that."""
    import pyarrow.types as kinds

    number = kinds.is_floating(column.type) or kinds.is_integer(column.type)
    if number and not column.null_count:
        return np.asarray(np.from_dlpack(column))
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _equal_lists(column: Any, name: str, file: str, start: int) -> np.ndarray:
    lengths = np.diff(_as_numpy(column.offsets))
    if len(lengths) and (lengths != lengths[0]).any():
        row = int(np.argmax(lengths != lengths[0]))
        msg = (
            f"{file}: lists in column {name!r} must have one number a class; row {start} has "
            f"{lengths[0]}, row {start + row} has {lengths[row]}"
        )
        raise InvalidInput(msg)
    return _reshaped(column, int(lengths[0]) if len(lengths) else 0, name, file, start)


def _reshaped(column: Any, width: int, name: str, file: str, start: int) -> np.ndarray:
    """(rows, width) of the numbers in lists."""
    inside = column.flatten()
    if _is_nested(inside.type):
        msg = f"{file}: lists in column {name!r} must contain numbers; they contain {inside.type}"
        raise InvalidInput(msg)
    _check_complete(inside, name, file, start, max(width, 1))
    return _numbers_from_arrow(inside, name, file, start).reshape(len(column), width)


def decode_labels(column: Any, name: str, file: str, start: int) -> np.ndarray:
    """Labels as written: numbers or texts."""
    if isinstance(column, np.ndarray):
        if column.ndim == 2:
            raise InvalidInput(_list_labels_message(column, name, file))
        if column.dtype.kind not in "fiubU":
            msg = (
                f"{file}: labels in {name!r} must be one column of numbers or names; "
                f"got {column.dtype} of shape {column.shape}"
            )
            raise InvalidInput(msg)
        return np.asarray(column)
    names, index = _encode_arrow(column, name, file, start)
    return np.asarray(np.array(names, dtype=str)[index])


def distinct_labels(column: Any, name: str, file: str, start: int) -> tuple[list[str], np.ndarray]:
    """Labels as texts, each once (some perhaps unused), and which of them each row has."""
    if not isinstance(column, np.ndarray):
        if not _is_integer(column.type):
            return _encode_arrow(column, name, file, start)
        _check_complete(column, name, file, start)
        column = _as_numpy(column)
    column = decode_labels(column, name, file, start)
    if column.dtype.kind in "iu" and len(column):
        low, high = int(column.min()), int(column.max())
        if high - low <= 2 * len(column):  # counting is faster than sorting
            return [str(value) for value in range(low, high + 1)], (column - low).astype(np.intp)
    kinds, index = np.unique(column, return_inverse=True)
    return [str(kind) for kind in kinds.tolist()], index


def _encode_arrow(column: Any, name: str, file: str, start: int) -> tuple[list[str], np.ndarray]:
    """`distinct_labels` of an arrow column."""
    _check_complete(column, name, file, start)
    if _is_nested(column.type):
        raise InvalidInput(_list_labels_message(_rectangle(column), name, file, column.type))
    coded = column.dictionary_encode()
    names = [str(value) for value in coded.dictionary.to_pylist()]
    return names, _as_numpy(coded.indices)


def _rectangle(column: Any) -> np.ndarray:
    """Lists of equal lengths as a matrix; empty where they are none, or contain no numbers."""
    try:
        return np.array(column.to_pylist(), dtype=float)
    except (TypeError, ValueError):
        return np.empty(0)


def _list_labels_message(values: np.ndarray, name: str, file: str, kind: Any = "lists") -> str:
    """Labels that are lists, with advice for one-hot labels and for several classes a row."""
    msg = f"{file}: labels in {name!r} must be one number or name a row; they are {kind}"
    if values.ndim != 2 or values.dtype.kind not in "fiub" or not np.isin(values, (0, 1)).all():
        return msg
    if (values.sum(axis=1) == 1).all():
        return f"{msg}: of one-hot labels take the argmax"
    return f"{msg} of several classes or none: check each class on its own, as binary scores"


def _is_nested(kind: Any) -> bool:
    import pyarrow.types as kinds

    return bool(kinds.is_nested(kind))


def _is_integer(kind: Any) -> bool:
    """Whether numpy can count the values; arrow's functions take long to import."""
    import pyarrow.types as kinds

    return bool(kinds.is_integer(kind))


def decode_times(column: Any, name: str, file: str, start: int) -> np.ndarray:
    """Times in microseconds, in UTC where a zone is given; numbers are seconds since 1970."""
    if not isinstance(column, np.ndarray):
        _check_complete(column, name, file, start)
        column = np.asarray(column.to_numpy(zero_copy_only=False))
    return parse_times(column, f"{file}: column {name!r}", start)


def _check_complete(column: Any, name: str, file: str, start: int, width: int = 1) -> None:
    """Check that no value is missing; a row has ``width`` values."""
    if column.null_count:
        row = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False))) // width
        place = f"row {start + row}" if len(column) else "a row"
        msg = f"{file}: column {name!r} has no value in {place}: fill it or drop the row"
        raise InvalidInput(msg)


def _kind(column: np.ndarray) -> str:
    return f"text ({str(column.flat[0])!r})" if column.dtype.kind in "US" else str(column.dtype)


def encode_label_column(y: np.ndarray, classes: tuple[str, ...] | None, where: str) -> np.ndarray:
    """Labels by the names of the classes if all of them are such names, else as whole numbers."""
    kinds, index = np.unique(y, return_inverse=True)
    texts = [str(kind) for kind in kinds.tolist()]
    if classes is not None and set(texts) <= set(classes):
        return np.array(texts)[index]
    if classes is not None and len(classes) == 2 and classes[0] == f"not {classes[1]}":
        texts = [{"true": "1", "false": "0"}.get(text.lower(), text) for text in texts]
        if len(texts) == 2 and classes[1] in texts:
            return np.array([int(text == classes[1]) for text in texts])[index]
    whole = [_whole(text) for text in texts]
    if None in whole:
        if classes is None:
            msg = (
                f"{where}: labels are names ({texts[0]!r}) but the probabilities have none: name a "
                "column p_NAME for each class, or write labels as numbers 0, 1, ..."
            )
        else:
            strange = [text for text in texts if text not in classes]
            unknown = next((text for text in strange if _whole(text) is None), strange[0])
            msg = (
                f"{where}: label {unknown!r} is not one of the classes "
                f"{quote(classes)}: correct it, or drop its rows"
            )
        raise InvalidInput(msg)
    return np.array(whole)[index]


def _whole(text: str) -> int | None:
    """3 for '3' and '3.0', 1 for 'true'; None for a name."""
    if text.lower() in ("true", "false"):
        return int(text.lower() == "true")
    try:
        value = float(text)
    except ValueError:
        return None
    return int(value) if value.is_integer() else None
