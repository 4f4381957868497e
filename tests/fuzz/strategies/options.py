"""Options of the public functions: valid ones, and hostile values for any of them."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

import calshift
from calshift.metrics.catalogue import known_names
from calshift.recalibration import RECALIBRATORS
from calshift.weights import METHODS
from tests.fuzz.strategies.samples import Rng, Sample, chance, pick

LEVELS = (0.5, 0.9, 0.95, 0.999, 1e-6, 1 - 1e-12, np.float32(0.9), np.float64(0.8))
HOSTILE: tuple[Callable[[], Any], ...] = (  # functions, since some of the values can change
    lambda: None, lambda: True, lambda: False, lambda: 0, lambda: 1, lambda: -1, lambda: 2.5,
    lambda: 10**12, lambda: 10**400, lambda: -(10**30), lambda: float("nan"), lambda: float("inf"),
    lambda: -float("inf"), lambda: 1e308, lambda: 5e-324, lambda: "", lambda: "auto",
    lambda: "0.95", lambda: "no such", lambda: "a\0b", lambda: b"mass", list, dict,
    lambda: (), lambda: {1}, lambda: [1, 2], lambda: [[0.5]], lambda: object(), lambda: len,
    lambda: np.array([1, 2]), lambda: np.array([True, False]), lambda: np.array(5),
    lambda: np.array(0.9), lambda: np.array("x"), lambda: np.float16(0.9),
    lambda: np.longdouble("0.95"), lambda: np.longdouble("1e4000"), lambda: np.int8(7),
    lambda: np.uint64(2**63), lambda: np.bool_(True), lambda: np.timedelta64(1, "D"),
    lambda: np.timedelta64("NaT", "D"), lambda: np.datetime64("2020-01-01"), lambda: Decimal("0.9"),
    lambda: Decimal("NaN"), lambda: Fraction(9, 10), lambda: 1j, lambda: datetime.timedelta(1),
    lambda: np.str_("mass"), lambda: np.ma.masked, lambda: np.array([0.5, np.nan]),
    lambda: np.random.default_rng(0), lambda: _pandas_na(), lambda: range(3), lambda: 500,
)  # fmt: skip


def _pandas_na() -> Any:
    import pandas as pd

    return pd.NA


def draw_bins(rng: Rng, K: int) -> Any:
    """A number of bins, "auto", or edges."""
    edges = np.sort(np.round(rng.uniform(0.01, 0.99, int(rng.integers(1, 6))), 2))
    some = np.unique(edges)
    return pick(rng, ("auto", "auto", 1, 2, 5, 15, np.int32(7), 4.0, 1000, some, some.tolist()))


def draw_estimate(rng: Rng, sample: Sample) -> dict[str, Any]:
    """Options that most estimates take; a few combinations are not valid."""
    kind = "binary" if sample.binary else pick(rng, ("classwise", "classwise", "top-label"))
    kind = "canonical" if chance(rng, 0.1) and not sample.binary else kind
    asked: dict[str, Any] = {"kind": kind, "norm": pick(rng, (2, 2, 2, 1, 1, 1.5, 3, 100))}
    asked["estimator"] = pick(rng, ("debiased", "debiased", "plugin", "paper"))
    if kind == "canonical" or chance(rng, 0.12):
        asked["kernel"] = pick(rng, ("triweight", "dirichlet"))
        asked["bandwidth"] = pick(rng, ("auto", 0.1, 0.5, 2.0, np.float32(0.3)))
    else:
        asked["bins"] = draw_bins(rng, sample.K)
        asked["binning"] = pick(rng, ("mass", "mass", "width"))
    asked.update(_draw_interval(rng, asked))
    return asked


def _draw_interval(rng: Rng, asked: dict[str, Any]) -> dict[str, Any]:
    closed = asked["norm"] in (1, 2) and asked["estimator"] != "paper" and "kernel" not in asked
    interval = "influence" if closed else None
    if chance(rng, 0.06):
        return {"interval": "bootstrap", "n_boot": 20, "rng": int(rng.integers(100))}
    return {"interval": interval, "stratified": chance(rng, 0.2)}


def draw_metrics(rng: Rng, sample: Sample) -> dict[str, Any]:
    """Options that metrics take."""
    K = 2 if sample.binary else sample.K
    every = known_names()
    names = [pick(rng, every) for _ in range(int(rng.integers(1, 5)))]
    asked: dict[str, Any] = {"metrics": pick(rng, (None, names, names, names))}
    asked["positive"] = int(rng.integers(K)) if K > 2 or chance(rng, 0.3) else None
    asked["cost"] = rng.normal(size=(K, K))
    rules = ("argmax", "argmax", "cost", 0.3) if K == 2 else ("argmax", "argmax", "cost")
    return {**asked, "decision": pick(rng, rules), **_draw_ways(rng)}


def _draw_ways(rng: Rng) -> dict[str, Any]:
    if chance(rng, 0.06):
        return {"interval": "bootstrap", "n_boot": 20, "rng": int(rng.integers(100))}
    return {"interval": pick(rng, ("influence", "influence", "influence", None))}


def draw_class_weights(rng: Rng, K: int) -> Any:
    """A method's name, or a valid vector."""
    if chance(rng, 0.6):
        return pick(rng, METHODS)
    w = rng.uniform(0.2, 3, K)
    if chance(rng, 0.3):
        w[int(rng.integers(K))] = 0.0
    made = calshift.ClassWeights(w, np.full(K, 1 / K), np.full(K, 1 / K), 100.0)
    return pick(rng, (w, w, w.tolist(), w.astype(np.float32), made))


def spoil_class_weights(rng: Rng, K: int) -> Any:
    """Vectors of extreme or invalid numbers."""
    w = rng.uniform(0.2, 3, K)
    one = w.copy()
    one[int(rng.integers(K))] = pick(
        rng, (np.nan, np.inf, -1.0, 1e300, 1e155, 6e299, 1e-300, 5e-324, 1e16, 0.0)
    )
    scale = pick(rng, (1e-300, 5e-324, 1e155, 1e300, 6e299, 0.0, np.nan, np.inf, -1.0, 1e-160))
    pool = (
        one, one, one, np.full(K, scale), np.full(K, scale), w * scale, w[:-1], np.append(w, 1.0),
        w.astype(str), w[None], np.ma.MaskedArray(w, [True] + [False] * (K - 1)), np.asmatrix(w),
        w.astype(complex), w.astype(object), "no such", None, 1.0, {}, [None] * K, object(),
    )  # fmt: skip
    return pick(rng, pool)


def draw_recalibrator(rng: Rng) -> Any:
    """The name of a recalibration method."""
    return pick(rng, RECALIBRATORS)


def draw_hostile(rng: Rng) -> Any:
    """A value that almost no option takes."""
    return pick(rng, HOSTILE)()


def draw_edges(rng: Rng, K: int) -> Any:
    """Bins that are not valid, or only just."""
    pool = (
        10**12, 10**7, 2**63, 0, -1, 1.5, [0.5, 0.2], [0.0, 1.0], [np.nan], [-1.0, 2.0], [],
        [[0.5]] * K, [0.5, 0.5], np.zeros((2, 2, 2)), np.array(["a"]), [[0.1], []], "15",
        np.linspace(0, 1, 9),
    )  # fmt: skip
    return pick(rng, pool)
