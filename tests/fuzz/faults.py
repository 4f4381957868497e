"""Faults planted in calshift, one for each oracle: a harness that misses them is at fault."""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import calshift
from calshift import compiled
from calshift.io.formats import FORMATS
from tests.fuzz import functions

# the function or format that is replaced, and the signature by which the fault must be found
EXPECTED = {
    "reliability_curve": "ReliabilityCurve: numbers are not finite",
    "check_label_shift": "ZeroDivisionError",
    "softmax": "input changed by softmax",
    "resample_label_shift": "no answer",
    "variance_algorithm1": "died by SIGSEGV",
    "weights_from_labels": "TimeLimit",
    "calibration_error": "order of rows: calibration_error",
    "label_shift_weights": "not repeatable",
    "accumulate": "warning RuntimeWarning",
    "recalibrate": "MemoryError",
    "read_error": "message is empty",
    "predictions": "accepted: p",
    "sum_groups": "numpy differs from compiled",
    ".csv": "ImportError in planted.py",
    ".npy": "died by SIGSEGV: .npy",
    ".parquet": "files are left by",
    ".feather": "message of a command is long or a traceback",
}


def _fail(kind: type[Exception], *arguments: Any) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> Any:
        raise kind(*arguments)

    return fail


def plant() -> None:
    """Replace functions of calshift by faulty ones."""
    for name, fault in FAULTS.items():
        original = getattr(functions, name)
        made = fault(original)
        setattr(functions, name, made)
        if getattr(calshift, name, None) is original:
            setattr(calshift, name, made)
    plant_compiled()
    plant_formats()


def plant_compiled() -> None:
    """Make a compiled function differ from its numpy version."""
    module = compiled.compiled_functions()
    if module is None:
        return
    original = module.sum_groups
    module.sum_groups = lambda *arguments: original(*arguments) * 1.001


def plant_formats() -> None:
    """Replace readers of files."""
    FORMATS[".csv"] = _as_library(_fail(ImportError, "no symbol"))  # others are damaged files
    FORMATS[".npy"] = lambda *_: os.kill(os.getpid(), signal.SIGSEGV)
    FORMATS[".parquet"] = _leave_file
    FORMATS[".feather"] = _fail(calshift.InvalidInput, "Traceback (most recent call last)")


def _leave_file(path: Path, role: str, label: str | None) -> None:
    path.with_name(".partial").write_bytes(b"half")
    msg = f"{path} is damaged"
    raise calshift.InvalidInput(msg)


def _as_library(function: Callable[..., Any]) -> Callable[..., Any]:
    """The fault looks as if it were in a file of calshift, so that its frame is counted."""
    code = function.__code__
    path = os.path.join(os.path.dirname(calshift.__file__), "planted.py")
    function.__code__ = code.replace(co_filename=path)
    return function


def _nan(original: Callable[..., Any]) -> Callable[..., Any]:
    def curve(*arguments: Any, **options: Any) -> Any:
        found = original(*arguments, **options)
        return replace(found, mass=found.mass * np.nan)

    return curve


def _divide(original: Callable[..., Any]) -> Callable[..., Any]:
    return _as_library(lambda *arguments, **options: 1 / 0)


def _mutate(original: Callable[..., Any]) -> Callable[..., Any]:
    def softmax(logits: Any, axis: Any = -1) -> Any:
        found = original(logits, axis)
        if isinstance(logits, np.ndarray) and logits.flags.writeable:
            logits.flat[0] = 0.125
        return found

    return softmax


def _sleep(original: Callable[..., Any]) -> Callable[..., Any]:
    """Waits without using the processor, as a deadlock does."""

    def sleep(*arguments: Any, size: Any = None, **options: Any) -> Any:
        if size not in (5, 50):  # a few such calls are enough
            return original(*arguments, size=size, **options)
        signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))
        return signal.sigwait([signal.SIGUSR2])

    return sleep


def _crash(original: Callable[..., Any]) -> Callable[..., Any]:
    def crash(*arguments: Any, sampled: Any = False, **options: Any) -> Any:
        if sampled is True:
            os.kill(os.getpid(), signal.SIGSEGV)
        return original(*arguments, sampled=sampled, **options)

    return crash


def _spin(original: Callable[..., Any]) -> Callable[..., Any]:
    def spin(*arguments: Any, n_classes: Any = None, **options: Any) -> Any:
        while n_classes == 300:
            pass
        return original(*arguments, n_classes=n_classes, **options)

    return spin


def _first_row(original: Callable[..., Any]) -> Callable[..., Any]:
    def error(p: Any, y: Any = None, **options: Any) -> Any:
        found = original(p, y, **options)
        first = float(np.ravel(p.p[0] if isinstance(p, calshift.Predictions) else 0.0)[0])
        return replace(found, estimate=found.estimate + 1e-3 * first)

    return error


def _random(original: Callable[..., Any]) -> Callable[..., Any]:
    def weights(*arguments: Any, **options: Any) -> Any:
        found = original(*arguments, **options)
        return replace(found, values=found.values * (1 + 1e-12 * np.random.default_rng().random()))

    return weights


def _warn(original: Callable[..., Any]) -> Callable[..., Any]:
    def accumulate(**arguments: Any) -> Any:
        warnings.warn("overflow", RuntimeWarning, stacklevel=1)
        return original(**arguments)

    return accumulate


def _allocate(original: Callable[..., Any]) -> Callable[..., Any]:
    return _as_library(lambda *arguments, **options: np.ones(2**30))


def _accept(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda **arguments: calshift.Predictions([[0.5, 0.5]])


FAULTS: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "reliability_curve": _nan, "check_label_shift": _divide, "softmax": _mutate,
    "resample_label_shift": _sleep, "variance_algorithm1": _crash, "weights_from_labels": _spin,
    "calibration_error": _first_row, "label_shift_weights": _random, "accumulate": _warn,
    "recalibrate": _allocate, "predictions": _accept,
    "read_error": lambda original: _as_library(_fail(calshift.InvalidInput, "")),
}  # fmt: skip
