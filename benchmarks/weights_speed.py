"""How long class weights take, beside quapy and cvxpy in the same run.

    OPENBLAS_NUM_THREADS=1 python benchmarks/weights_speed.py

A Gaussian simulation with n = 14 000, m = 31 000 and K = 619. Needs benchmarks/peers.txt. Ours come
with standard errors, theirs without. "prior": sum of |error| of the target's shares. "MB": how far
the method raised the largest memory of the process, which holds the inputs, above those before it.
"""

from __future__ import annotations

import os
import resource
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np
from peers import cvxpy_rlls, quapy_emq_bcts
from tables import write_table

import calshift
from calshift.weights import METHODS


def main() -> None:
    n, m, K = 14_000, 31_000, 619
    simulation = calshift.simulate.GaussianSimulation(
        n_classes=K, dimensions=16, spread=1.3, temperature=0.7, imbalance=5, long_tail="source"
    )
    p, y = simulation.source(n, rng=1)
    q, labels = simulation.target(m, rng=2)
    target = np.bincount(labels, minlength=K) / m
    warnings.simplefilter("ignore")
    ours = {name: _ours(name, p, y, q) for name in METHODS}
    others: dict[str, Callable[[], np.ndarray]] = {
        "quapy EMQ-BCTS": lambda: quapy_emq_bcts(p, y, q),
        "cvxpy rlls": lambda: cvxpy_rlls(p, y, q) * np.bincount(y, minlength=K) / n,
    }
    inputs = (p.nbytes + q.nbytes) / 2**20
    base, rows, seconds = _peak(), [], {}
    for name, run in {**ours, **others}.items():
        start = time.perf_counter()
        prior = run()
        seconds[name] = time.perf_counter() - start
        error = np.abs(prior - target).sum()
        rows.append([name, f"{seconds[name]:.1f}", f"{error:.3f}", f"{_peak() - base:.0f}"])
        print(*rows[-1], flush=True)
    ratios = (
        f"quapy EMQ-BCTS / em-bcts: {seconds['quapy EMQ-BCTS'] / seconds['em-bcts']:.1f} x; "
        f"cvxpy rlls / rlls: {seconds['cvxpy rlls'] / seconds['rlls']:.1f} x"
    )
    print(ratios)
    threads = os.environ.get("OPENBLAS_NUM_THREADS", "?")
    about = f"""{__doc__}
BLAS threads: {threads}. Inputs: {inputs:.0f} MB; n K K doubles would be {n * K**2 >> 27} GB.
{ratios}."""
    write_table("weights_speed", about, ["method", "seconds", "prior", "MB"], rows)


def _ours(name: str, p: np.ndarray, y: np.ndarray, q: np.ndarray) -> Callable[[], np.ndarray]:
    return lambda: calshift.label_shift_weights(p, y, q, method=name).prior_target


def _peak() -> float:
    scale = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / scale


if __name__ == "__main__":
    main()
