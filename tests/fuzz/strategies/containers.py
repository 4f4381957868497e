"""The same numbers in lists, tensors, frames and objects that only look like arrays."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np

from tests.fuzz.strategies.arrays import Maker, masked
from tests.fuzz.strategies.samples import Rng, pick


class DeviceArray:
    """Like an array of CuPy: implicit conversion is a TypeError."""

    def __init__(self, values: np.ndarray) -> None:
        self.values, self.shape, self.dtype, self.ndim = values, values.shape, values.dtype, 2

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        msg = "Implicit conversion to a NumPy array is not allowed."
        raise TypeError(msg)

    def __len__(self) -> int:
        return len(self.values)

    def get(self) -> np.ndarray:
        """The numbers in memory."""
        return self.values


class BrokenArray:
    """An object whose conversion fails, or returns something else."""

    def __init__(self, how: str) -> None:
        self.how = how

    def __array__(self, *_: Any, **__: Any) -> Any:
        if self.how == "not an array":
            return [0.5, 0.5]
        msg = "the conversion failed"
        raise {"runtime": RuntimeError, "attribute": AttributeError}[self.how](msg)


def _names(p: np.ndarray) -> list[str]:
    return [f"c{k}" for k in range(p.shape[1] if p.ndim == 2 else 1)]


def _columns(p: np.ndarray) -> dict[str, np.ndarray]:
    return {name: np.array(p.reshape(len(p), -1)[:, k]) for k, name in enumerate(_names(p))}


def _pandas(rng: Rng, p: np.ndarray) -> Any:
    import pandas as pd

    return pd.Series(p) if p.ndim == 1 else pd.DataFrame(_columns(p))


def _pandas_extension(rng: Rng, p: np.ndarray) -> Any:
    return _pandas(rng, p).astype(pick(rng, ("Float64", "double[pyarrow]")))


def _pandas_missing(rng: Rng, p: np.ndarray) -> Any:
    frame = _pandas(rng, p).astype(pick(rng, ("Float64", "object", "float64", "double[pyarrow]")))
    frame.iloc[int(rng.integers(len(p)))] = None
    return frame


def _pandas_duplicates(rng: Rng, p: np.ndarray) -> Any:
    frame = _pandas(rng, p)
    if p.ndim == 2:
        frame.columns = ["c"] * p.shape[1]
    return frame


def _pandas_odd(rng: Rng, p: np.ndarray) -> Any:
    import pandas as pd

    frame = _pandas(rng, p)
    if pick(rng, (True, False)) or p.ndim == 1:
        return frame.astype(object)
    frame.columns = pd.MultiIndex.from_product([["a"], _names(p)])
    return frame


def _pandas_category(rng: Rng, p: np.ndarray) -> Any:
    return _pandas(rng, p).astype("category")


def _polars(rng: Rng, p: np.ndarray) -> Any:
    import polars as pl

    return pl.Series(p) if p.ndim == 1 else pl.DataFrame(_columns(p))


def _polars_lazy(rng: Rng, p: np.ndarray) -> Any:
    import polars as pl

    return pl.DataFrame(_columns(p)).lazy()


def _polars_missing(rng: Rng, p: np.ndarray) -> Any:
    import polars as pl

    lists = [[None, *values[1:].tolist()] for values in _columns(p).values()]
    return (
        pl.Series(lists[0])
        if p.ndim == 1
        else pl.DataFrame(dict(zip(_names(p), lists, strict=True)))
    )


def _arrow(rng: Rng, p: np.ndarray) -> Any:
    import pyarrow as pa

    return pa.chunked_array([p]) if p.ndim == 1 else pa.table(_columns(p))


def _arrow_missing(rng: Rng, p: np.ndarray) -> Any:
    import pyarrow as pa

    lists = [pa.array([None, *values[1:].tolist()]) for values in _columns(p).values()]
    return lists[0] if p.ndim == 1 else pa.table(lists, names=_names(p))


def _arrow_odd(rng: Rng, p: np.ndarray) -> Any:
    import pyarrow as pa

    lists = pa.array(p.reshape(len(p), -1).tolist())
    return pick(rng, (lists, pa.RecordBatch.from_arrays([lists], ["p"]), pa.table({"p": lists})))


def _tensor(rng: Rng, p: np.ndarray) -> Any:
    if not importlib.util.find_spec("torch"):
        return p
    import torch

    return torch.tensor(p).requires_grad_(pick(rng, (True, False)))


def _tensor_odd(rng: Rng, p: np.ndarray) -> Any:
    if not importlib.util.find_spec("torch"):
        return p
    import torch

    t = torch.tensor(p)
    made = (t.bfloat16(), t.half(), t.to("meta"), t.to_sparse(), t.to(torch.complex64), t.to(int))
    return pick(rng, made)


def _sparse(rng: Rng, p: np.ndarray) -> Any:
    from scipy import sparse

    return pick(rng, (sparse.csr_matrix, sparse.coo_array, sparse.csc_matrix))(np.atleast_2d(p))


def _ragged(rng: Rng, p: np.ndarray) -> Any:
    return [*p.tolist()[:-1], [0.5] * 7]


def _mixed(rng: Rng, p: np.ndarray) -> Any:
    return [pick(rng, (None, "x", {}, b"1", 1j)), *p.tolist()[1:]]


def _odd_object(rng: Rng, p: np.ndarray) -> Any:
    broken = [BrokenArray(how) for how in ("runtime", "attribute", "not an array")]
    others = (object(), None, 0.5, "p.csv", "a\0b.csv", b"abc", {}, {1, 2}, iter([1]), len, p.dtype)
    return pick(rng, (*broken, *others))


CONTAINERS: dict[str, tuple[Maker, str]] = {
    "list": (lambda rng, p: p.tolist(), "equal"),
    "list of masked rows": (lambda rng, p: list(masked(rng, p)), "refuse"),
    "tuple": (lambda rng, p: tuple(map(tuple, p)) if p.ndim == 2 else tuple(p), "equal"),
    "list of arrays": (lambda rng, p: list(p), "equal"),
    "array of objects in a list": (_mixed, "refuse"),
    "ragged list": (_ragged, "refuse"),
    "pandas": (_pandas, "equal"),
    "pandas extension type": (_pandas_extension, "either"),
    "pandas with a missing value": (_pandas_missing, "refuse"),
    "pandas with equal names": (_pandas_duplicates, "either"),
    "pandas of objects": (_pandas_odd, "either"),
    "pandas categories": (_pandas_category, "either"),
    "polars": (_polars, "equal"),
    "polars lazy": (_polars_lazy, "either"),
    "polars with a null": (_polars_missing, "refuse"),
    "arrow": (_arrow, "equal"),
    "arrow with a null": (_arrow_missing, "refuse"),
    "arrow lists": (_arrow_odd, "any"),
    "tensor": (_tensor, "equal"),
    "odd tensor": (_tensor_odd, "any"),
    "device array": (lambda rng, p: DeviceArray(p), "either"),
    "sparse": (_sparse, "either"),
    "odd object": (_odd_object, "any"),
}
