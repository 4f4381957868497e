"""What is called: public functions, and short programs of several of them, by their names."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import calshift
from calshift import (  # noqa: F401  called by name
    calibration_error,
    check_label_shift,
    label_shift_weights,
    labelled_metrics,
    monitor,
    recalibrate,
    reliability_curve,
    resample_label_shift,
    softmax,
    target_calibration_error,
    target_metrics,
    variance_algorithm1,
    weights_from_labels,
)
from calshift.recalibration import RECALIBRATORS

LABELS_ALONE = ("weights_from_labels", "resample_label_shift")


def predictions(**arguments: Any) -> Any:
    """Predictions of any input."""
    return calshift.Predictions(**arguments)


def weighted_error(p: Any, y: Any, sample_weight: Any, **options: Any) -> Any:
    """The error of labelled rows with sample weights."""
    return calshift.calibration_error(
        calshift.Predictions(p, y, sample_weight=sample_weight), **options
    )


def long_monitor(**arguments: Any) -> Any:
    """Hundreds of windows; a function of its own, because it takes longer."""
    return calshift.monitor(**arguments)


def sums(p_source: Any, y_source: Any, p_target: Any, kind: Any, bins: Any, **options: Any) -> Any:
    """Edges, sums of two batches and of the target, and the error from them."""
    edges = calshift.bin_edges(p_target, kind=kind, bins=bins)
    found = calshift.accumulate(p_source, y_source, p_target, edges=edges)
    return calshift.target_calibration_error_from(found, **options)


def accumulate(**arguments: Any) -> Any:
    """Sums on edges of other data."""
    edges = calshift.bin_edges(np.linspace(0.05, 0.95, 20), bins=4)
    return calshift.accumulate(**{"edges": edges, **arguments})


def scan(data: Any, y: Any, p_target: Any, **options: Any) -> Any:
    """Class weights of a scanned source of two batches."""
    half = len(y) // 2 if hasattr(y, "__len__") else 1
    batches = [(data[:half], y[:half]), (data[half:], y[half:])]
    source = calshift.scan(batches, **options)
    return calshift.label_shift_weights(source, None, p_target, method="bbse-soft")


def scan_options(data: Any, **options: Any) -> Any:
    """A scan of anything; its summary takes a pass."""
    return calshift.scan(data, **options).summary.rows


def fit_transform(
    method: Any, p_source: Any, y_source: Any, p_target: Any, weights: Any, p: Any
) -> Any:
    """A recalibrator fitted to both samples, and what it makes of other rows."""
    made = RECALIBRATORS[method]() if isinstance(method, str) else method
    made.fit(p_source, y_source, p_target, weights=weights)
    restored = calshift.Recalibrator.from_dict(json.loads(json.dumps(made.to_dict())))
    assert np.array_equal(np.asarray(restored.transform(p)), np.asarray(made.transform(p)))
    return made.transform(p)


def fit_source(method: Any, p_source: Any, y_source: Any, weights: Any) -> Any:
    """A recalibrator fitted without a target, for given weights."""
    return RECALIBRATORS[method]().fit(p_source, y_source, weights=weights).transform(p_source)


def restore(saved: Any, p: Any) -> Any:
    """A saved recalibrator, read and applied."""
    return calshift.Recalibrator.from_dict(saved).transform(p)


def compare(p_source: Any, y_source: Any, p_target: Any, **options: Any) -> Any:
    """The errors of target and source, compared."""
    found = calshift.target_calibration_error(p_source, y_source, p_target, **options)
    return calshift.compare(found, found.source)


def read_error(p: Any, y: Any, level: Any, root: Any, simultaneous: Any) -> Any:
    """What an error says of itself at a level."""
    found = calshift.calibration_error(p, y)
    found.to_dict(level)
    found.class_intervals(level, root=root, simultaneous=simultaneous)
    ends = found.confidence_interval(level, root=root)
    assert 0 <= ends[0] <= ends[1]
    return found


def read_others(p_source: Any, y_source: Any, p_target: Any, level: Any) -> Any:
    """Weights, a curve and a test at a level."""
    found = calshift.label_shift_weights(p_source, y_source, p_target)
    low, high = found.confidence_interval(level)
    assert (low <= high).all()
    low, high = calshift.reliability_curve(p_source, y_source).band(level)
    assert (low <= high).all()
    return calshift.check_label_shift(p_source, y_source, p_target, level=level)


def open_path(data: Any) -> Any:
    """The rows of files at a path."""
    return calshift.scan(data).summary.rows


def open_target(p_source: Any, y_source: Any, p_target: Any) -> Any:
    """Class weights of a target that is a path."""
    return calshift.label_shift_weights(p_source, y_source, p_target)


def write_report(
    result: Any, path: Any, p_source: Any, y_source: Any, p_target: Any, weights: Any
) -> Any:
    """A report in a temporary folder; a text is the name of a file there."""
    found = calshift.target_calibration_error(p_source, y_source, p_target, weights=weights)
    with tempfile.TemporaryDirectory() as folder:
        place = f"{folder}/{path}" if isinstance(path, str) else path
        calshift.write_report(found if isinstance(result, str) else result, place)
        return float(any(file.stat().st_size for file in Path(folder).glob("*")))


def simulate(kind: Any, n: Any, rng: Any, arguments: Any) -> Any:
    """Probabilities of a simulated source."""
    return getattr(calshift.simulate, kind)(**arguments).source(n, rng=rng)[0]
