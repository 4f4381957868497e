"""Calls that failed once, with what is expected: "refuse", "accept", or "any" of both."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np

import calshift
from calshift import Predictions, Recalibrator, VectorScaling
from tests.fuzz.strategies.containers import BrokenArray, DeviceArray

RNG = np.random.default_rng(0)
P = RNG.dirichlet(np.full(3, 0.7), 90)
Y = (P.cumsum(axis=1) < RNG.random((90, 1))).sum(axis=1).clip(0, 2)
Q = RNG.dirichlet(np.full(3, 0.7), 80)
MATRIX = P.view(np.matrix)  # numpy.matrix itself warns
MASK = np.arange(90) < 10
DAY = np.timedelta64(1, "D")
SOME = np.array([True, False])


def error(p: Any = P, y: Any = Y, **options: Any) -> Any:
    """The error with labels."""
    return calshift.calibration_error(p, y, **options)


def target(**options: Any) -> Any:
    """The error without labels."""
    return calshift.target_calibration_error(P, Y, Q, **{"check": False, **options})


def transform(recalibrator: Any, **options: Any) -> Any:
    """Probabilities of the target by a recalibrator fitted to the source."""
    return recalibrator.fit(P, Y, **options).transform(Q)


def tampered(name: str, value: Any) -> Any:
    """Probabilities by a saved recalibrator with another value."""
    saved = VectorScaling().fit(P, Y).to_dict()
    saved["learned"][name][0] = value
    return Recalibrator.from_dict(saved).transform(Q)


def renamed(key: str, value: Any) -> Any:
    """A saved recalibrator with another value beside the learned ones."""
    return Recalibrator.from_dict({**VectorScaling().fit(P, Y).to_dict(), key: value})


def nested(depth: int) -> Any:
    """A number in many lists."""
    value: Any = 1.0
    for _ in range(depth):
        value = [value]
    return value


def temperature(value: Any) -> Any:
    """Probabilities by a saved temperature."""
    saved = calshift.TemperatureScaling().fit(P, Y).to_dict()
    saved["learned"]["temperature_"] = value
    return Recalibrator.from_dict(saved).transform(Q)


def lazy() -> Any:
    """A polars LazyFrame of the source."""
    import polars as pl

    return pl.DataFrame({f"c{k}": P[:, k] for k in range(3)}).lazy()


def tensor(how: str) -> Any:
    """A torch tensor that has no numpy array."""
    import torch

    return torch.tensor(P).to("meta") if how == "meta" else torch.tensor(P).to_sparse()


def pandas_na() -> Any:
    """The missing value of pandas, which is neither true nor false."""
    import pandas as pd

    return pd.NA


def long_series() -> Any:
    """More windows than a test with 4000 draws can decide on."""
    many = np.tile(Q[:30], (230, 1))
    options = {"rows": 30, "weights": np.ones(3), "interval": None}
    return calshift.monitor(P, Y, many, **options)


def report(path: Any) -> Any:
    """A report at a path."""
    return calshift.write_report(target(weights=np.ones(3)), path)


CALLS: dict[str, tuple[str, Any]] = {
    "masked labels": ("refuse", lambda: error(y=np.ma.MaskedArray(Y, MASK))),
    "labels masked nowhere": ("any", lambda: error(y=np.ma.MaskedArray(Y))),
    "masked sample weights": (
        "refuse", lambda: Predictions(P, Y, sample_weight=np.ma.MaskedArray(np.ones(90), MASK)),
    ),
    "masked class weights": (
        "refuse", lambda: target(weights=np.ma.MaskedArray([1, 1, 1], [1, 0, 0])),
    ),
    "softmax of a masked array": (
        "refuse", lambda: calshift.softmax(np.ma.MaskedArray(np.zeros(3), [1, 0, 0])),
    ),
    "softmax along True": ("refuse", lambda: calshift.softmax(P, axis=True)),
    "a matrix": ("any", lambda: error(MATRIX)),
    "a matrix of Predictions": ("any", lambda: Predictions(MATRIX, Y)),
    "float16 labels": ("accept", lambda: error(y=Y.astype(np.float16))),
    "weights of 1e-300": (
        "any", lambda: transform(calshift.TemperatureScaling(), weights=[1e-300] * 3),
    ),
    "weights of 5e-324": ("any", lambda: transform(VectorScaling(), weights=[5e-324] * 3)),
    "weights of 1e155": ("any", lambda: transform(calshift.IsotonicScaling(), weights=[1e155] * 3)),
    "weights of 6e299": (
        "any", lambda: transform(calshift.EnsembleTemperatureScaling(), weights=[6e299] * 3),
    ),
    "paper with weights of 6e299": (
        "any", lambda: target(estimator="paper", interval=None, weights=[6e299] * 3),
    ),
    "paper with a norm of 100": (
        "any", lambda: target(estimator="paper", interval=None, norm=100, weights=[1, 1e300, 1]),
    ),
    "a slope of -1e308": ("any", lambda: tampered("slopes_", -1e308)),
    "a slope of 400 digits": ("refuse", lambda: tampered("slopes_", 10**400)),
    "a temperature of 400 digits": ("refuse", lambda: temperature(10**400)),
    "a version of 5000 characters": ("refuse", lambda: renamed("version", "x" * 5000)),
    "a name nested 5000 deep": ("refuse", lambda: renamed("name", nested(5000))),
    "10**12 bins": ("any", lambda: error(bins=10**12)),
    "10**12 bins of equal width": ("any", lambda: error(bins=10**12, binning="width")),
    "1e308 bins": ("any", lambda: error(bins=1e308)),
    "bins of text": ("refuse", lambda: error(bins=np.array("x"))),
    "30000 classes": (
        "any", lambda: calshift.weights_from_labels([0, 1], [0, 1], n_classes=30_000),
    ),
    "1e308 classes": (
        "refuse", lambda: calshift.weights_from_labels([0, 1], [0, 1], n_classes=1e308),
    ),
    "check of an array": ("refuse", lambda: target(check=SOME)),
    "check of pandas.NA": ("refuse", lambda: target(check=pandas_na())),
    "interval of an array": ("refuse", lambda: error(interval=SOME)),
    "kind of an array": ("refuse", lambda: error(kind=SOME)),
    "binning of an array": ("refuse", lambda: error(binning=SOME)),
    "rng of a day": (
        "refuse", lambda: calshift.resample_label_shift(Y, imbalance_factor=2, rng=DAY),
    ),
    "list of masked rows": ("refuse", lambda: error(list(np.ma.MaskedArray(P, P > 0.9)))),
    "classes 1 and 1.0": ("refuse", lambda: Predictions(P[:, :2], classes=[1, 1.0])),
    "norm of a day": ("refuse", lambda: error(norm=DAY)),
    "bandwidth of a day": (
        "refuse", lambda: error(kernel="triweight", bandwidth=DAY, interval=None),
    ),
    "bandwidth of 400 digits": (
        "refuse", lambda: error(kernel="triweight", bandwidth=10**400, interval=None),
    ),
    "bandwidth of float32": (
        "accept", lambda: error(kernel="triweight", bandwidth=np.float32(0.3), interval=None),
    ),
    "simultaneous of an array": ("refuse", lambda: error().class_intervals(simultaneous=SOME)),
    "scan of 3 classes": ("refuse", lambda: calshift.scan([P], classes=3)),
    "scan of a function of arguments": ("refuse", lambda: calshift.scan(len).summary),
    "accumulate a number": (
        "refuse", lambda: calshift.accumulate(0.5, edges=calshift.bin_edges(Q)),
    ),
    "accumulate a LazyFrame": (
        "any", lambda: calshift.accumulate(lazy(), Y, edges=calshift.bin_edges(Q)),
    ),
    "report at None": ("refuse", lambda: report(None)),
    "report at a path with NUL": ("refuse", lambda: report("a\0b.html")),
    "scan of a path with NUL": ("refuse", lambda: calshift.scan("a\0b.csv")),
    "scan of a lone surrogate": ("refuse", lambda: calshift.scan("\ud800.csv")),
    "scan of a long path": ("refuse", lambda: calshift.scan("x" * 5000 + ".csv")),
    "an array of a device": ("any", lambda: error(DeviceArray(P))),
    "a conversion that fails": ("refuse", lambda: error(BrokenArray("runtime"))),
    "230 windows": ("accept", long_series),
    "-1 simulated rows": ("refuse", lambda: calshift.simulate.BetaSimulation().source(-1)),
}  # fmt: skip

if importlib.util.find_spec("torch"):
    CALLS |= {
        "a tensor without data": ("refuse", lambda: error(tensor("meta"))),
        "a sparse tensor": ("any", lambda: error(tensor("sparse"))),
    }
