"""The calls of same_numbers.py on rows in memory that mend, watch and draw, by group."""

from __future__ import annotations

import json
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from same_numbers_calls import RECALIBRATORS, Calls
from same_numbers_samples import batches, pair

import calshift

CLASSES = {
    "shift": calshift.ShiftScaling,
    "temperature": calshift.TemperatureScaling,
    "bcts": calshift.BiasCorrectedTemperatureScaling,
    "vector": calshift.VectorScaling,
    "isotonic": calshift.IsotonicScaling,
    "ensemble": calshift.EnsembleTemperatureScaling,
    "label-free": calshift.LabelFreeTemperatureScaling,
    "prior": calshift.PriorCorrection,
    "chain": lambda: calshift.Chain([calshift.VectorScaling(), calshift.PriorCorrection()]),
}
NEEDS_TARGET = ("label-free", "prior", "chain")


def variances() -> Calls:
    """variance_algorithm1 with labels and without."""
    for name, norm in product(("beta", "3 classes", "unseen classes"), (1, 2, 3)):
        p, y, q, _ = pair(name)
        yield f"{name}, norm {norm}", partial(calshift.variance_algorithm1, p, y, norm=norm)
        asked = partial(
            calshift.variance_algorithm1, p, y, q, weights="bbse", norm=norm, bins=8,
            stratified=norm == 3,
        )  # fmt: skip
        yield f"{name}, norm {norm}, target", asked
    sample = pair("beta").shifted
    drawn = partial(calshift.variance_algorithm1, *sample, weights=[0.7, 1.9], sampled=True, rng=4)
    yield "drawn", drawn


def mended() -> Calls:
    """recalibrate by method, kind and norm."""
    for name, method in product(("beta", "3 classes", "10 classes"), RECALIBRATORS):
        yield f"{name}, {method}", partial(calshift.recalibrate, *pair(name).shifted, method=method)
    asked: list[tuple[str, dict[str, Any]]] = [
        ("fractions", {"folds": 3, "rng": 9}),
        ("unseen classes", {"norm": 1, "check": False}),
        ("3 classes, float32", {"kind": "top-label"}),
        ("3 classes", {"weights": "bbse-soft", "method": "vector+prior"}),
        ("beta", {"weights": [0.7, 1.9], "kind": "binary"}),
        ("3 classes, flattened", {}),
    ]
    for name, options in asked:
        called = f"{name}, {options}"
        yield called, partial(calshift.recalibrate, *pair(name).shifted, **options)


def recalibrators() -> Calls:
    """Each class, fitted to the source alone and for the target."""
    for name, (kind, made) in product(("beta", "fractions"), CLASSES.items()):
        p, y, q, _ = pair(name)
        if kind not in NEEDS_TARGET:
            yield f"{name}, {kind}, source", partial(_fitted, made, p, y, None, q)
        yield f"{name}, {kind}, target", partial(_fitted, made, p, y, q, q)
    for name in ("10 classes", "unseen classes", "100 classes"):
        p, y, q, _ = pair(name)
        yield f"{name}, shift", partial(_fitted, calshift.ShiftScaling, p, y, q, q)


def _fitted(made: Any, p: Any, y: Any, q: Any, rows: Any) -> Any:
    fitted = made().fit(p, y, q)
    again = calshift.Recalibrator.from_dict(json.loads(json.dumps(fitted.to_dict())))
    return {"learned": fitted, "mended": fitted.transform(rows), "again": again.transform(rows)}


def series() -> Calls:
    """monitor by rows and by time."""
    sample = pair("3 classes, many").shifted
    size = len(sample[2])
    times = np.datetime64("2024-03-01") + 17 * np.arange(size).astype("timedelta64[m]")
    yield "rows", partial(calshift.monitor, *sample, rows=800)
    yield "rows, weights", partial(calshift.monitor, *sample, rows=600, weights="rlls", norm=1)
    yield "days", partial(calshift.monitor, *sample, times, window="1w", check=False)
    shuffled = times[np.random.default_rng(1).permutation(size)]
    yield "days, not in order", partial(calshift.monitor, *sample, shuffled, window="1w", bins=10)
    seconds = times.astype("datetime64[s]").astype(float)
    yield "seconds", partial(calshift.monitor, *sample, seconds, window="1mo", kind="top-label")
    fractions = pair("fractions").shifted
    yield "fractions", partial(calshift.monitor, *fractions, rows=250, interval=None)
    beta = pair("beta").shifted
    boot = {"interval": "bootstrap", "n_boot": 20, "rng": 1, "norm": 3}
    yield "bootstrap", partial(calshift.monitor, *beta, rows=300, **boot)
    scanned = calshift.scan(batches(sample[2], None), labelled=False)
    yield "scanned", partial(calshift.monitor, *sample[:2], scanned, times, window="1w")


def draws() -> Calls:
    """What makes data: resample_label_shift, softmax, the truths of simulations."""
    y = pair("10 classes").y
    resample, rng = calshift.resample_label_shift, np.random.default_rng(3)
    yield "imbalance", lambda: resample(y, imbalance_factor=10, rng=0)
    yield "prior", lambda: resample(y[y < 3], prior=[0.2, 0.3, 0.5], size=300, rng=1)
    logits = rng.normal(size=(40, 5))
    yield "softmax", lambda: calshift.softmax(logits)
    beta = calshift.simulate.BetaSimulation()
    yield "beta", lambda: [beta.true_error(norm) for norm in (1, 2, 3)]
    gaussian = calshift.simulate.GaussianSimulation(n_classes=4)
    yield "gaussian", lambda: [gaussian.true_error(norm, rows=20_000) for norm in (1, 2)]
    yield "gaussian, draw", lambda: list(gaussian.draw(50, rng=1))


def refused() -> Calls:
    """What ends in an exception: its type is recorded."""
    sample = pair("3 classes").shifted
    target = partial(calshift.target_calibration_error, *sample)
    yield "kind", partial(target, kind="binary")
    yield "kernel and bins", partial(target, kernel="triweight", bins=15)
    yield "canonical bins", partial(target, kind="canonical", bins=15)
    yield "weights", partial(target, weights=[1.0, 2.0])
    yield "labels", partial(calshift.calibration_error, sample[0], sample[1] + 1)
    yield "sums", partial(calshift.calibration_error, sample[0] * 1.1, sample[1])
