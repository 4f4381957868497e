"""Valid arguments for each function of `functions.py`, and how often it is called."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from calshift.weights import METHODS
from tests.fuzz.strategies.labels import draw_classes, draw_sample_weight, name_labels
from tests.fuzz.strategies.options import (
    LEVELS,
    draw_bins,
    draw_class_weights,
    draw_estimate,
    draw_metrics,
    draw_recalibrator,
)
from tests.fuzz.strategies.recalibrators import draw_saved
from tests.fuzz.strategies.samples import Rng, Sample, chance, draw_sample, pick

Arguments = dict[str, Any]
DRIFTS = (0.0, 0.01, 0, 1, np.float32(0.1))


def _three(sample: Sample) -> Arguments:
    return {"p_source": sample.p, "y_source": sample.y, "p_target": sample.q}


def make_labelled(rng: Rng) -> Arguments:
    sample = draw_sample(rng)
    return {"p": sample.p, "y": sample.y, **draw_estimate(rng, sample)}


def make_target(rng: Rng) -> Arguments:
    sample = draw_sample(rng)
    weights, asked = draw_class_weights(rng, sample.K), draw_estimate(rng, sample)
    if asked["interval"] == "influence":
        asked["drift"] = DRIFTS[len(sample.q) % len(DRIFTS)]
    return {**_three(sample), "weights": weights, "check": chance(rng, 0.3), **asked}


def make_labelled_metrics(rng: Rng) -> Arguments:
    sample = draw_sample(rng)
    return {"p": sample.p, "y": sample.y, **draw_metrics(rng, sample)}


def make_target_metrics(rng: Rng) -> Arguments:
    sample = draw_sample(rng)
    weights, asked = draw_class_weights(rng, sample.K), draw_metrics(rng, sample)
    if asked["interval"] == "influence":
        asked["drift"] = DRIFTS[len(sample.q) % len(DRIFTS)]
    return {**_three(sample), "weights": weights, "check": chance(rng, 0.3), **asked}


def make_weights(rng: Rng) -> Arguments:
    return {**_three(draw_sample(rng)), "method": pick(rng, METHODS)}


def make_check(rng: Rng) -> Arguments:
    return {
        **_three(draw_sample(rng)),
        "level": pick(rng, (0.01, 0.05, 0.5)),
        "n_boot": 20,
        "rng": 0,
    }


def make_label_weights(rng: Rng) -> Arguments:
    sample = draw_sample(rng)
    n_classes = pick(rng, (None, sample.K, sample.K + 3, np.int16(sample.K), 300))
    return {"y_source": sample.y, "y_target": sample.y[::-1].copy(), "n_classes": n_classes}


def make_curve(rng: Rng) -> Arguments:
    sample = draw_sample(rng)
    asked: Arguments = {
        "kind": "binary" if sample.binary else pick(rng, ("classwise", "top-label"))
    }
    if asked["kind"] == "classwise":
        asked["label"] = pick(rng, (None, 0, sample.K - 1))
    if chance(rng, 0.5):
        asked |= {"p_target": sample.q, "weights": draw_class_weights(rng, sample.K)}
    return {"p_source": sample.p, "y_source": sample.y, "bins": draw_bins(rng, sample.K), **asked}


def make_variance(rng: Rng) -> Arguments:
    sample = draw_sample(rng)
    asked: Arguments = {"norm": pick(rng, (1, 2, 3)), "bins": pick(rng, (5, 15, [0.3, 0.6]))}
    asked["kind"] = "binary" if sample.binary else "classwise"
    if chance(rng, 0.6):
        asked |= {"p_target": sample.q, "weights": draw_class_weights(rng, sample.K)}
    asked |= {"sampled": chance(rng, 0.3), "rng": 3}
    return {"p_source": sample.p, "y_source": sample.y, **asked}


def make_sums(rng: Rng) -> Arguments:
    sample = draw_sample(rng)
    kind = "binary" if sample.binary else pick(rng, ("classwise", "top-label"))
    return {
        **_three(sample), "kind": kind, "bins": draw_bins(rng, sample.K),
        "weights": rng.uniform(0.3, 2, sample.K), "norm": pick(rng, (1, 2, 3)),
        "estimator": pick(rng, ("debiased", "plugin")),
    }  # fmt: skip


def make_batch(rng: Rng) -> Arguments:
    return _three(draw_sample(rng, binary=True))


def make_monitor(rng: Rng) -> Arguments:
    sample = draw_sample(rng, (60, 150))
    step = pick(rng, (np.timedelta64(1, "h"), np.timedelta64(1, "D")))
    time = np.datetime64("2024-01-31T12", "s") + np.arange(len(sample.q)) * step
    asked: Arguments = pick(
        rng, ({"time": time, "window": "1mo"}, {"rows": 40}, {"time": time, "rows": 50}, {})
    )
    return {**_three(sample), **asked, "check": chance(rng, 0.3), "weights": pick(rng, METHODS)}


def make_long_monitor(rng: Rng) -> Arguments:
    """More windows than the least number of draws of a test can decide on."""
    small, windows = draw_sample(rng, (40, 60), binary=True), int(rng.integers(190, 230))
    p_target = np.tile(small.q, windows)[: 30 * windows]
    return {"p_source": small.p, "y_source": small.y, "p_target": p_target, "rows": 30,
            "weights": np.ones(2), "check": True, "interval": None}  # fmt: skip


def make_recalibrate(rng: Rng) -> Arguments:
    sample = draw_sample(rng, (40, 120))
    weights = pick(rng, (None, draw_class_weights(rng, sample.K)))
    kind = "binary" if sample.binary else pick(rng, ("classwise", "top-label"))
    return {
        **_three(sample), "method": draw_recalibrator(rng), "weights": weights, "kind": kind,
        "norm": pick(rng, (1, 2)), "folds": pick(rng, (2, 3)), "rng": 0, "check": False,
    }  # fmt: skip


def make_fit(rng: Rng) -> Arguments:
    sample = draw_sample(rng, (20, 120))
    weights = pick(rng, (None, draw_class_weights(rng, sample.K)))
    return {**_three(sample), "method": draw_recalibrator(rng), "weights": weights, "p": sample.q}


def make_fit_source(rng: Rng) -> Arguments:
    sample = draw_sample(rng, (20, 120))
    method = pick(rng, ("shift", "temperature", "bcts", "vector", "isotonic", "ensemble", "prior"))
    weights = pick(rng, (rng.uniform(0.3, 3, sample.K), np.ones(sample.K)))
    return {"p_source": sample.p, "y_source": sample.y, "method": method, "weights": weights}


def make_softmax(rng: Rng) -> Arguments:
    shape = pick(rng, ((5,), (7, 3), (2, 3, 4), (1, 2), (40, 2)))
    scale = pick(rng, (1.0, 50.0, 1e4, 1e300))
    return {"logits": rng.normal(size=shape) * scale, "axis": pick(rng, (-1, 0, len(shape) - 1))}


def make_predictions(rng: Rng) -> Arguments:
    sample = draw_sample(rng, (2, 40))
    asked: Arguments = {"p": sample.p, "y": sample.y}
    if chance(rng, 0.6):
        asked["classes"] = draw_classes(rng, sample.K)[1]
        if chance(rng, 0.8):
            asked["y"] = name_labels(rng, sample.y, asked["classes"])
    if chance(rng, 0.5):
        asked["sample_weight"] = draw_sample_weight(rng, len(sample.p))
    return asked


def make_weighted(rng: Rng) -> Arguments:
    sample = draw_sample(rng)
    asked = draw_estimate(rng, sample)
    weight = draw_sample_weight(rng, len(sample.p))
    return {"p": sample.p, "y": sample.y, "sample_weight": weight, **asked}


def make_scan(rng: Rng) -> Arguments:
    sample = draw_sample(rng)
    classes = pick(rng, (None, [f"c{k}" for k in range(sample.K)]))
    return {"data": sample.p, "y": sample.y, "p_target": sample.q, "classes": classes,
            "batch_rows": pick(rng, (None, 7)), "labelled": pick(rng, (None, True))}  # fmt: skip


def make_scan_options(rng: Rng) -> Arguments:
    sample = draw_sample(rng, (2, 30))
    logits = chance(rng, 0.3)
    batch = np.log(sample.p + 1e-9) if logits and sample.p.ndim == 2 else sample.p
    return {"data": [batch, batch], "logits": logits and sample.p.ndim == 2, "jobs": 1,
            "classes": None, "labelled": None, "batch_rows": None}  # fmt: skip


def make_compare(rng: Rng) -> Arguments:
    sample = draw_sample(rng)
    return {**_three(sample), "weights": draw_class_weights(rng, sample.K), "check": False}


def make_read(rng: Rng) -> Arguments:
    sample = draw_sample(rng)
    return {"p": sample.p, "y": sample.y, "level": pick(rng, LEVELS), "root": chance(rng, 0.5),
            "simultaneous": chance(rng, 0.5)}  # fmt: skip


def make_read_others(rng: Rng) -> Arguments:
    return {**_three(draw_sample(rng)), "level": pick(rng, LEVELS)}


def make_report(rng: Rng) -> Arguments:
    path = pick(rng, ("a.html", "a.html", "x" * 300, "no/such/folder.html", "a\0b.html"))
    sample = draw_sample(rng)
    weights = draw_class_weights(rng, sample.K)
    return {"result": "error", "path": path, **_three(sample), "weights": weights}


def make_path(rng: Rng) -> Arguments:
    paths = ("a\0b.csv", "no such.csv", "", ".", "*.csv", "~", "x" * 5000 + ".csv", "\ud800",
             Path("a\0b.parquet"), Path("/dev/null"), ["a\0b.csv"], ["a.csv", "b.csv"], [], [""],
             "/dev/null", "s3://a/b.csv", "a\nb.csv", "**/[", "nul.npz")  # fmt: skip
    return {"data": pick(rng, paths)}


def make_path_target(rng: Rng) -> Arguments:
    return {**_three(draw_sample(rng, (20, 40))), "p_target": make_path(rng)["data"]}


def make_resampled(rng: Rng) -> Arguments:
    sample = draw_sample(rng)
    if chance(rng, 0.5):
        return {"y": sample.y, "imbalance_factor": pick(rng, (1, 2, 10.0)), "rng": 1}
    prior = rng.dirichlet(np.ones(sample.K))
    return {"y": sample.y, "prior": prior, "size": pick(rng, (None, 5, 50)), "rng": 1}


def make_simulation(rng: Rng) -> Arguments:
    kind = pick(rng, ("BetaSimulation", "GaussianSimulation"))
    arguments = {} if kind == "BetaSimulation" else {"n_classes": int(rng.integers(2, 6))}
    return {"kind": kind, "n": 50, "rng": 1, "arguments": arguments}


def make_restored(rng: Rng) -> Arguments:
    _, saved, p = draw_saved(rng)
    return {"saved": saved, "p": p}


MAKERS: dict[str, Callable[[Rng], Arguments]] = {
    "calibration_error": make_labelled, "target_calibration_error": make_target,
    "labelled_metrics": make_labelled_metrics, "target_metrics": make_target_metrics,
    "label_shift_weights": make_weights, "check_label_shift": make_check,
    "weights_from_labels": make_label_weights, "reliability_curve": make_curve,
    "variance_algorithm1": make_variance, "sums": make_sums, "accumulate": make_batch,
    "monitor": make_monitor, "long_monitor": make_long_monitor,
    "recalibrate": make_recalibrate, "fit_transform": make_fit,
    "fit_source": make_fit_source, "softmax": make_softmax, "predictions": make_predictions,
    "weighted_error": make_weighted, "scan": make_scan, "scan_options": make_scan_options,
    "compare": make_compare, "read_error": make_read, "read_others": make_read_others,
    "write_report": make_report, "resample_label_shift": make_resampled,
    "open_path": make_path, "open_target": make_path_target,
    "simulate": make_simulation, "restore": make_restored,
}  # fmt: skip
SHARES = {
    "calibration_error": 14, "target_calibration_error": 16, "label_shift_weights": 8,
    "labelled_metrics": 6, "target_metrics": 8,
    "check_label_shift": 4, "weights_from_labels": 3, "reliability_curve": 5,
    "variance_algorithm1": 4, "sums": 4, "accumulate": 2, "monitor": 3,
    "long_monitor": 0.1, "recalibrate": 2,
    "fit_transform": 5, "fit_source": 6, "softmax": 5, "predictions": 8, "weighted_error": 6,
    "scan": 3, "scan_options": 2, "compare": 2, "read_error": 3, "read_others": 2,
    "write_report": 1, "resample_label_shift": 2, "simulate": 1, "restore": 8,
    "open_path": 1, "open_target": 1,
}  # fmt: skip
HOSTILE_ALREADY = ("restore", "open_path", "open_target")
