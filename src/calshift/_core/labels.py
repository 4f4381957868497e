"""Names of classes and labels of rows, validated; errors name the argument, the row, the value."""

from __future__ import annotations

from typing import Any

import numpy as np

from calshift._core.convert import as_double, to_numpy
from calshift._core.validate import format_value, show
from calshift.errors import InvalidInput

MOST_CLASSES = 10_000_000


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


def validate_classes(classes: Any, K: int | None = None) -> tuple[Any, ...] | None:
    """Names of the K classes, or of any number of them; their texts must differ too."""
    if classes is None:
        return None
    count = "the" if K is None else K
    msg = f"classes must name {count} different classes in order, one a column; got "
    names = _list_names(classes)
    if names is None:
        raise InvalidInput(msg + show(classes))
    wrong = K is not None and len(names) != K
    different = min(len(set(names)), len({str(name) for name in names}))  # 1 equals 1.0 and True
    if wrong or different < len(names) or any(map(_is_missing, names)):
        raise InvalidInput(msg + format_value(names))
    return names


def _list_names(classes: Any) -> tuple[Any, ...] | None:
    """Hashable names as Python values; None if they are not a sequence of such."""
    if hasattr(classes, "detach") or isinstance(classes, np.ndarray):
        classes = to_numpy(classes, "classes")[0]
        classes = classes.tolist() if classes.ndim == 1 else None
    unordered = isinstance(classes, str | bytes | set | frozenset | dict)
    if unordered or not hasattr(classes, "__iter__"):
        return None
    names = tuple(map(_plain_name, classes))
    try:
        hash(names)
    except TypeError:
        return None
    return names


def _plain_name(name: Any) -> Any:
    """Numbers, booleans and texts of numpy or a tensor as those of Python."""
    if isinstance(name, np.datetime64 | np.timedelta64) or getattr(name, "ndim", 1) != 0:
        return name
    return name.item() if hasattr(name, "item") else name


def _is_missing(name: Any) -> bool:
    """Whether it is None, NaN, NaT or NA, which no label equals."""
    same = name == name
    return name is None or not (isinstance(same, bool) and same)


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
    """Labels as integers 0..K-1; rows are counted from ``start``.

    Texts and objects are names of classes. Numbers are names if a class is a number or all are
    texts of whole numbers, else places among the classes.
    """
    if y.shape != (n,):
        msg = f"{name} must have one label a row, shape ({n},); got {y.shape}{_shape_hint(y)}"
        raise InvalidInput(msg)
    if y.dtype.kind in "OUST":
        return _encode_names(y, classes, name, start)
    values = _numbers_meant(classes, y.dtype.kind)
    if values is not None and y.dtype.kind in "iubf":
        kinds, index = np.unique(y, return_inverse=True)
        return _encode_names(kinds, values, name, start, y)[index]
    if y.dtype.kind not in "iub":
        y = _whole_numbers(y, name, start)
    if y.min() < 0 or y.max() >= K:
        row = int(np.argmax((y < 0) | (y >= K)))
        msg = f"{name} must be labels 0..{K - 1}; row {start + row} is {y[row]}"
        raise InvalidInput(msg)
    return y.astype(np.intp, copy=False)


def _shape_hint(y: np.ndarray) -> str:
    """What to do with labels in a matrix."""
    if y.ndim != 2:
        return ""
    if 1 in y.shape:
        return ": use ravel() to make it one-dimensional"
    if y.dtype.kind not in "iubf" or not ((y == 0) | (y == 1)).all():
        return ""
    if (y.sum(axis=1) == 1).all():
        return ": one-hot labels? use y.argmax(axis=1)"
    return ": rows with several labels, or none? Check each class by itself: p[:, c] and y[:, c]"


def _numbers_meant(classes: tuple[Any, ...] | None, kind: str) -> tuple[Any, ...] | None:
    """The numbers that the class names are, for labels of this kind; None if they are not."""
    if classes is None:
        return None
    if any(isinstance(name, int | float) for name in classes):
        return classes
    if not all(isinstance(name, str) for name in classes):
        return None
    if kind == "b" and {name.lower() for name in classes} == {"true", "false"}:
        return tuple(name.lower() == "true" for name in classes)
    numbers = tuple(map(_whole_number, classes))
    if None in numbers:
        return None
    if len(set(numbers)) < len(numbers):
        msg = f"classes must differ as numbers where labels are; got {format_value(classes)}"
        raise InvalidInput(msg)
    return numbers


def _whole_number(text: str) -> int | float | None:
    """The whole number that a text such as 3 or 3.0 means."""
    if text.isascii() and text.isdigit():
        return int(text) if len(text) < 20 else None
    whole, point, zeros = text.partition(".")
    plain = point and whole.isascii() and whole.isdigit() and set(zeros) == {"0"}
    return float(whole) if plain else None


def _encode_names(
    y: np.ndarray,
    classes: tuple[Any, ...] | None,
    name: str,
    start: int,
    rows: np.ndarray | None = None,
) -> np.ndarray:
    """The place of each label among the classes; ``rows`` are all labels if ``y`` has each once."""
    labels = y.tolist()
    if classes is None:
        shown = show(labels[0])
        msg = f"{name} are names ({shown}): list them in column order with Predictions(classes=)"
        raise InvalidInput(msg)
    code = {label: k for k, label in enumerate(classes)}
    codes = np.array([_code_of(label, code) for label in labels], dtype=np.intp)
    if (codes < 0).any():
        rows = y if rows is None else rows
        row = int(np.argmax(np.isin(rows, y[codes < 0]) if rows is not y else codes < 0))
        where = f"row {start + row} is {show(rows[row : row + 1].tolist()[0])}"
        msg = f"{name} must be names in classes; {where}"
        raise InvalidInput(msg)
    return codes


def _code_of(label: Any, code: dict[Any, int]) -> int:
    try:
        return code.get(label, -1)
    except TypeError:  # a list is no name
        return -1


def _whole_numbers(y: np.ndarray, name: str, start: int) -> np.ndarray:
    if y.dtype.kind != "f":
        msg = f"{name} must be integer labels, or names with classes=; got dtype {y.dtype}"
        raise InvalidInput(msg)
    y = as_double(y)
    wrong = ~((np.abs(y) < 2**53) & (y == np.floor(y)))  # a NaN is wrong too
    if wrong.any():
        row = int(np.argmax(wrong))
        where = f"row {start + row} is {y[row]:.6g}"
        msg = f"{name} must be integer labels, or names with classes=; {where}"
        raise InvalidInput(msg)
    return y.astype(np.int64)
