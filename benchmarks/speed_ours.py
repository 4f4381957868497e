"""What benchmarks/run.py measures of calshift, of the version that PYTHONPATH leads to.

Names of cases are calls, with options after commas: "default, norm=1". The versions are given
simulated Gaussian classes, which both of them have; the names that end with "as peers" are given
the data of the peers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np
from speed_cases import mild_weights, predictions, scores
from speed_clock import Cases, Run, answer_requests
from speed_commands import COMMANDS
from speed_streams import STREAMS

import calshift

MONITORED, WINDOW = 10_000, 1000  # rows of the source, and of a window
Triple = tuple[np.ndarray, np.ndarray, np.ndarray]


@lru_cache(maxsize=2)
def shifted(n: int, m: int, K: int) -> Triple:
    """Source of n rows, its labels, and a target of m rows with other class priors; float32."""
    simulation = calshift.simulate.GaussianSimulation(n_classes=K, imbalance=4)
    p, y = simulation.source(n, rng=1)
    q, _ = simulation.target(m, rng=2)
    return p.astype(np.float32), y, q.astype(np.float32)


def value(found: calshift.CalibrationErrorResult, interval: str | None = "influence") -> float:
    """The root of the squared error, with its interval."""
    if interval is not None:
        found.confidence_interval()
    return found.root


def default(n: int, K: int, **options: Any) -> Run:
    p, y, q = shifted(n, n, K)
    ends = partial(value, interval=options.get("interval", "influence"))
    return lambda: ends(calshift.target_calibration_error(p, y, q, **options))


def given(n: int, K: int, **options: Any) -> Run:
    return default(n, K, weights=np.linspace(0.8, 1.2, K), check=False, **options)


def labelled(n: int, K: int, **options: Any) -> Run:
    p, y, _ = shifted(n, n, K)
    ends = partial(value, interval=options.get("interval", "influence"))
    return lambda: ends(calshift.calibration_error(p, y, **options))


def recalibrate(n: int, K: int) -> Run:
    p, y, q = shifted(n, n, K)
    return lambda: calshift.recalibrate(p, y, q).after.root


def monitor(n: int, K: int) -> Run:
    """Windows of n rows in all."""
    p, y, q = shifted(min(n, MONITORED), n, K)
    return lambda: calshift.monitor(p, y, q, rows=WINDOW).results[0].root


def labelled_as_peers(n: int, K: int, kind: str) -> Run:
    p, y = predictions(n, K, seed=1)
    return lambda: value(calshift.calibration_error(p, y, kind=kind))


def binary_as_peers(n: int, K: int) -> Run:
    p, y = scores(n, seed=1)
    return lambda: value(calshift.calibration_error(p, y, kind="binary"))


def given_as_peers(n: int, K: int) -> Run:
    (p, y), (q, _) = predictions(n, K, seed=1), predictions(n, K, seed=2)
    options: dict[str, Any] = {"weights": mild_weights(y, K), "check": False}
    return lambda: value(calshift.target_calibration_error(p, y, q, **options))


def priors_as_peers(n: int, K: int) -> Run:
    """The answer is the first class's target share."""
    (p, y), (q, _) = predictions(n, K, seed=1), predictions(n, K, seed=2)
    find = calshift.label_shift_weights
    return lambda: float(find(p, y, q, method="em").prior_target[0])


def sort(n: int, K: int) -> Run:
    """np.sort of both matrices."""
    (p, _), (q, _) = predictions(n, K, seed=1), predictions(n, K, seed=2)

    def both() -> float:
        for x in (p, q):
            np.sort(x, axis=0)
        return np.nan

    return both


def with_options(name: str, make: Callable[..., Run]) -> Cases:
    """The call with its own options, and with one other."""
    options = {"interval": None, "norm": 1, "bins": 15, "n_jobs": 2}
    others: Cases = {f"{name}, {k}={v}": partial(make, **{k: v}) for k, v in options.items()}
    return {name: make, **others}


CASES: Cases = {
    **with_options("default", default),
    **with_options("given", given),
    **with_options("labelled", labelled),
    "recalibrate": recalibrate,
    "monitor": monitor,
    "classwise as peers": partial(labelled_as_peers, kind="classwise"),
    "top-label as peers": partial(labelled_as_peers, kind="top-label"),
    "binary as peers": binary_as_peers,
    "given as peers": given_as_peers,
    "priors as peers": priors_as_peers,
    "sort": sort,
    **COMMANDS,
    **STREAMS,
}

if __name__ == "__main__":
    answer_requests(CASES)
