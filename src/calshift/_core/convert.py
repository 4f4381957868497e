"""Conversion of lists, tensors, frames and series to numpy, and of numbers and arrays to JSON."""

from __future__ import annotations

from typing import Any

import numpy as np

from calshift.errors import InvalidInput


def to_numpy(value: Any, name: str) -> tuple[np.ndarray, tuple[Any, ...] | None]:
    """The value as a plain numpy array without masked values, and its column names if any."""
    if isinstance(value, np.ndarray):
        return _plain_array(value, name), None
    try:
        if hasattr(value, "detach") and hasattr(value, "cpu"):
            return _from_tensor(value), None
        if isinstance(value, list | tuple) or np.isscalar(value):
            return _from_sequence(value, name), None
        return _from_frame(value, name)
    except (InvalidInput, MemoryError):
        raise
    except Exception as problem:  # of the library that the value comes from
        msg = f"{name} cannot be converted to a numpy array ({problem}): convert it first"
        raise InvalidInput(msg) from problem


def split_column(frame: Any, column: str) -> tuple[Any, np.ndarray]:
    """A data frame without one of its columns, and that column."""
    import narwhals as nw  # late: most inputs are arrays

    try:
        native = nw.from_native(frame, pass_through=True)
    except nw.exceptions.NarwhalsError as error:  # such as two columns of one name
        msg = f"the data frame that has column {column!r} cannot be read: {error}"
        raise InvalidInput(msg) from None
    if isinstance(native, nw.LazyFrame):
        native = native.collect()
    if not isinstance(native, nw.DataFrame):
        msg = f"column {column!r} must be in a data frame; got {type(frame)!r}"
        raise InvalidInput(msg)
    if column not in native.columns:
        names = ", ".join(map(repr, native.columns))
        msg = f"column {column!r} must be in the data frame; it has {names}"
        raise InvalidInput(msg)
    return native.drop(column).to_native(), native[column].to_numpy()


def as_double(array: np.ndarray) -> np.ndarray:
    """Numbers in double precision; those beyond its range become infinite."""
    with np.errstate(over="ignore", invalid="ignore"):  # a NaN may be a signal
        return array.astype(np.float64, copy=False)


def plain(value: Any) -> Any:
    """Lists and floats for JSON, with None in place of NaN and infinity."""
    if value is None or isinstance(value, float):
        return float(value) if value is not None and np.isfinite(value) else None
    return [plain(item if isinstance(item, np.ndarray) else float(item)) for item in value]


def softmax(logits: Any, axis: int = -1) -> np.ndarray:
    """Probabilities exp(z) / sum exp(z) along an axis, without overflow.

    The input may be logits or log-probabilities; float32 stays float32.

    Examples
    --------
    >>> import calshift
    >>> calshift.softmax([[0.0, 0.0], [1000.0, 0.0]])
    array([[0.5, 0.5],
           [1. , 0. ]])
    """
    z = to_numpy(logits, "logits")[0]
    if z.dtype.kind not in "fiub" or z.size == 0 or z.ndim == 0:
        msg = f"logits must be an array of numbers; got dtype {z.dtype}, shape {z.shape}"
        raise InvalidInput(msg)
    if z.dtype != np.float32:
        z = z.astype(np.float32) if z.dtype == np.float16 else as_double(z)
    whole = isinstance(axis, int | np.integer) and not isinstance(axis, bool | np.timedelta64)
    if not (whole and -z.ndim <= axis < z.ndim):
        msg = f"axis must be one of the {z.ndim} axes of logits; got {axis!r}"
        raise InvalidInput(msg)
    top = z.max(axis=axis, keepdims=True)
    if not np.isfinite(top).all():  # NaN, +inf, or -inf all along
        where = tuple(int(k) for k in np.argwhere(~np.isfinite(top))[0])
        msg = (
            "logits must be finite, or -inf beside finite ones; "
            f"the largest at {where} is {top[where]}"
        )
        raise InvalidInput(msg)
    with np.errstate(over="ignore"):  # a gap beyond the largest float is a probability of 0
        odds = np.exp(z - top)
    return np.asarray(odds / odds.sum(axis=axis, keepdims=True))


def _plain_array(value: np.ndarray, name: str) -> np.ndarray:
    """The array itself, without a subclass such as a matrix or a mask."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        row = int(np.argwhere(np.ma.getmaskarray(value))[0][0]) if value.ndim else 0
        raise InvalidInput(_masked_message(name, row))
    return np.asarray(value)


def _masked_message(name: str, row: int) -> str:
    return f"{name} must have no masked values; row {row} has one: fill them or drop the rows"


def _from_tensor(tensor: Any) -> np.ndarray:
    tensor = tensor.detach().cpu()
    try:
        return np.asarray(tensor.numpy())
    except TypeError:  # bfloat16 has no numpy counterpart
        return np.asarray(tensor.float().numpy())


def _from_sequence(value: Any, name: str) -> np.ndarray:
    for row, item in enumerate(value if isinstance(value, list | tuple) else ()):
        if isinstance(item, np.ma.MaskedArray) and np.ma.is_masked(item):
            raise InvalidInput(_masked_message(name, row))
    try:
        return np.asarray(value)
    except ValueError:
        msg = f"{name} must be a rectangular array; its rows have different lengths"
        raise InvalidInput(msg) from None


def _from_frame(value: Any, name: str) -> tuple[np.ndarray, tuple[Any, ...] | None]:
    import narwhals as nw  # late: most inputs are arrays

    try:
        native = nw.from_native(value, allow_series=True, pass_through=True)
        if isinstance(native, nw.LazyFrame):
            native = native.collect()
    except nw.exceptions.NarwhalsError as error:  # such as two columns of one name
        msg = f"{name} must be a frame with one column a class: {error}"
        raise InvalidInput(msg) from None
    if isinstance(native, nw.Series):
        return native.to_numpy(), None
    if isinstance(native, nw.DataFrame):
        found = native.to_numpy()
        if found.dtype == object and all(kind.is_numeric() for kind in native.schema.values()):
            found = np.stack([column.to_numpy() for column in native.iter_columns()], axis=1)
        return found, tuple(native.columns)
    array = np.asarray(value)
    if array.ndim == 0:
        sparse = ": use its toarray()" if hasattr(value, "toarray") else ""
        what = "an array, a list, a tensor or a data frame"
        msg = f"{name} must be {what}; got {type(value)!r}{sparse}"
        raise InvalidInput(msg)
    return array, None
