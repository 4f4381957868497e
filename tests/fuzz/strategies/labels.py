"""Labels, names of classes and sample weights, in valid and in hostile forms."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.fuzz.strategies.arrays import Maker, _negative_strides, _read_only, masked
from tests.fuzz.strategies.containers import (
    BrokenArray,
    DeviceArray,
    _arrow,
    _pandas,
    _polars,
    _sparse,
    _tensor,
)
from tests.fuzz.strategies.samples import Rng, chance, pick


def _with(value: Any) -> Maker:
    """Labels of numbers with one replaced."""

    def make(rng: Rng, y: np.ndarray) -> np.ndarray:
        y = y.astype(float)
        y[int(rng.integers(len(y)))] = value
        return y

    return make


def _objects(value: Any) -> Maker:
    def make(rng: Rng, y: np.ndarray) -> np.ndarray:
        y = y.astype(object)
        y[int(rng.integers(len(y)))] = value
        return y

    return make


def _pandas_missing(rng: Rng, y: np.ndarray) -> Any:
    import pandas as pd

    return pd.Series([None, *y[1:].tolist()], dtype=pick(rng, ("Int64", "float", "object")))


def _category(rng: Rng, y: np.ndarray) -> Any:
    import pandas as pd

    return pd.Series(pd.Categorical(y))


def _odd_labels(rng: Rng, y: np.ndarray) -> Any:
    choices = (object(), 1, "1", None, {}, y[None], y[:, None, None], y[:0], y[:-1], len,
               BrokenArray("runtime"), DeviceArray(y), "labels.csv", "a\0b")  # fmt: skip
    return pick(rng, choices)


LABELS: dict[str, tuple[Maker, str]] = {
    "list": (lambda rng, y: y.tolist(), "equal"),
    "floats": (lambda rng, y: y.astype(float), "equal"),
    "float16": (lambda rng, y: y.astype(np.float16), "equal"),
    "int8": (lambda rng, y: y.astype(np.int8), "equal"),
    "uint64": (lambda rng, y: y.astype(np.uint64), "equal"),
    "read-only": (_read_only, "equal"),
    "negative strides": (_negative_strides, "equal"),
    "pandas": (_pandas, "equal"),
    "polars": (_polars, "equal"),
    "arrow": (_arrow, "equal"),
    "tensor": (lambda rng, y: _tensor(rng, y.astype(float)), "equal"),
    "objects": (lambda rng, y: y.astype(object), "either"),
    "categories": (_category, "either"),
    "masked": (masked, "refuse"),
    "masked without a mask": (lambda rng, y: np.ma.MaskedArray(y), "either"),
    "matrix": (lambda rng, y: np.asmatrix(y), "refuse"),
    "NaN": (_with(np.nan), "refuse"),
    "infinite": (_with(np.inf), "refuse"),
    "fractional": (_with(0.5), "refuse"),
    "negative": (_with(-1), "refuse"),
    "out of range": (_with(1e6), "refuse"),
    "beyond integers": (_with(1e300), "refuse"),
    "None": (_objects(None), "refuse"),
    "text among numbers": (_objects("1"), "refuse"),
    "missing in pandas": (_pandas_missing, "refuse"),
    "texts": (lambda rng, y: y.astype(str), "refuse"),
    "bytes": (lambda rng, y: y.astype("S"), "refuse"),
    "complex": (lambda rng, y: y.astype(complex), "refuse"),
    "times": (lambda rng, y: y.astype("M8[s]"), "refuse"),
    "one-hot": (lambda rng, y: np.eye(int(y.max()) + 1)[y], "refuse"),
    "sparse": (lambda rng, y: _sparse(rng, y), "refuse"),
    "one class": (lambda rng, y: np.zeros_like(y), "any"),
    "bools": (lambda rng, y: y.astype(bool), "any"),
    "odd": (_odd_labels, "any"),
}
SAMPLE_WEIGHTS: dict[str, tuple[Maker, str]] = {
    "list": (lambda rng, w: w.tolist(), "equal"),
    "tensor": (_tensor, "equal"),
    "pandas": (_pandas, "equal"),
    "masked": (masked, "refuse"),
    "masked without a mask": (lambda rng, w: np.ma.MaskedArray(w), "either"),
    "matrix": (lambda rng, w: np.asmatrix(w), "refuse"),
    "NaN": (_with(np.nan), "refuse"),
    "infinite": (_with(np.inf), "refuse"),
    "negative": (_with(-1.0), "refuse"),
    "huge": (_with(1e300), "refuse"),
    "large": (lambda rng, w: w * pick(rng, (1e12, 1e95)), "any"),
    "tiny": (lambda rng, w: w * pick(rng, (1e-9, 1e-95)), "any"),
    "zeros": (lambda rng, w: w * 0, "refuse"),
    "many zeros": (lambda rng, w: w * (rng.random(len(w)) < 0.3), "any"),
    "texts": (lambda rng, w: w.astype(str), "refuse"),
    "objects": (lambda rng, w: w.astype(object), "either"),
    "wrong length": (lambda rng, w: np.append(w, 1.0), "refuse"),
    "float16": (lambda rng, w: w.astype(np.float16), "any"),
    "odd": (_odd_labels, "any"),
}


def draw_sample_weight(rng: Rng, n: int) -> np.ndarray:
    """Whole numbers of rows, or fractions, one of them 0 in some cases."""
    w = rng.integers(1, 4, n).astype(float) if chance(rng, 0.5) else rng.uniform(0.2, 3, n)
    if chance(rng, 0.3):
        w[int(rng.integers(n))] = 0.0
    return w


def draw_classes(rng: Rng, K: int) -> tuple[str, list[Any]]:
    """Names of K classes, different by Python's equality, in an order that is not sorted."""
    order = [int(k) for k in rng.permutation(K)]
    makers = {
        "integers": int, "floats": float, "texts": lambda k: f"name {k}", "digits": str,
        "padded digits": lambda k: f"{k:02d}", "integers from 5": lambda k: k + 5,
        "numpy integers": np.int64, "halves": lambda k: k / 2, "bytes": lambda k: b"%d" % k,
    }  # fmt: skip
    if K == 2 and chance(rng, 0.2):
        return "bools", [bool(k) for k in order]
    kind = pick(rng, makers)
    return kind, [makers[kind](k) for k in order]


def name_labels(rng: Rng, y: np.ndarray, classes: list[Any]) -> Any:
    """The labels as values of ``classes``, in a container of their own type."""
    named = [classes[k] for k in y]
    if chance(rng, 0.4):
        return named
    if chance(rng, 0.3):
        made = np.empty(len(named), object)
        made[:] = named
        return made
    return np.array(named)


def spoil_classes(rng: Rng, classes: list[Any]) -> Any:
    """Names that are not K different ones."""
    K = len(classes)
    pool = (
        [classes[0]] * K, classes[:-1], [*classes, "more"], "abc"[:K], K, None, {"a": 1}, object(),
        [[1]] * K, np.array(classes, object)[:, None], [None] * K, [1, "1", 1.0, True][:K],
        [float("nan")] * K, set(map(str, classes)), iter(classes), np.ma.masked_array(range(K)),
    )  # fmt: skip
    return pick(rng, pool)
