"""How long class weights take, beside quapy and cvxpy in the same run.

    OPENBLAS_NUM_THREADS=1 python benchmarks/weights_speed.py

A Gaussian simulation with n = 14 000, m = 31 000 and K = 619. Needs benchmarks/peers.txt. Ours
begin with raw arrays and end with standard errors; quapy begins with the arrays and cvxpy with the
confusion matrix, both without standard errors. "solver" is our solution of the problem that cvxpy
is given. The best of three runs, of one for what takes more than 10 seconds. "prior": sum of
|error| of the target's shares. "MB": the largest memory in use at a time, beside the inputs.
"""

from __future__ import annotations

import os
import time
import tracemalloc
import warnings
from collections.abc import Callable

import numpy as np
from peers import confusion, cvxpy_rlls, quapy_emq_bcts, rlls_penalty
from tables import write_table

import calshift
from calshift.weights import METHODS
from calshift.weights.rlls_solver import minimize_penalised_distance

N, M, K = 14_000, 31_000, 619
RATIOS = (  # slower, faster
    ("quapy EMQ-BCTS", "em-bcts"),
    ("cvxpy rlls", "rlls solver"),
    ("cvxpy rlls", "rlls"),
    ("cvxpy rlls-soft", "rlls-soft solver"),
    ("cvxpy rlls-soft", "rlls-soft"),
)


def main() -> None:
    simulation = calshift.simulate.GaussianSimulation(
        n_classes=K, dimensions=16, spread=1.3, temperature=0.7, imbalance=5, long_tail="source"
    )
    p, y = simulation.source(N, rng=1)
    q, labels = simulation.target(M, rng=2)
    target = np.bincount(labels, minlength=K) / M
    warnings.simplefilter("ignore")
    for run in runs(p[:2000], y[:2000], q[:2000], few=True).values():
        run()  # imports and the like
    rows, seconds = [], {}
    for name, run in runs(p, y, q).items():
        prior, seconds[name] = timed(run)
        error = np.abs(prior / prior.sum() - target).sum()
        memory = "" if name not in METHODS else f"{peak(run):.0f}"
        rows.append([name, f"{seconds[name]:.2f}", f"{error:.3f}", memory])
        print(*rows[-1], flush=True)
    ratios = [f"{a} / {b}: {seconds[a] / seconds[b]:.1f} x" for a, b in RATIOS]
    print(*ratios, sep="\n")
    inputs = (p.nbytes + q.nbytes) / 2**20
    about = (
        f"{__doc__}\nBLAS threads: {os.environ.get('OPENBLAS_NUM_THREADS', '?')}. "
        f"Inputs: {inputs:.0f} MB; n K K doubles would be {N * K**2 >> 27} GB.\n\n"
    )
    write_table(
        "weights_speed", about + "\n".join(ratios), ["method", "seconds", "prior", "MB"], rows
    )


def runs(
    p: np.ndarray, y: np.ndarray, q: np.ndarray, few: bool = False
) -> dict[str, Callable[[], np.ndarray]]:
    """What is timed, each answering with a target prior."""
    share = np.bincount(y, minlength=K) / len(y)
    found: dict[str, Callable[[], np.ndarray]] = {name: ours(name, p, y, q) for name in METHODS}
    for soft, name in ((False, "rlls"), (True, "rlls-soft")):
        C, mu = confusion(p, y, q, soft)
        found[f"{name} solver"] = solver(C, mu, len(y), share)
        found[f"cvxpy {name}"] = peer(C, mu, len(y), share)
    if not few:
        found["quapy EMQ-BCTS"] = lambda: quapy_emq_bcts(p, y, q)
    return found


def ours(name: str, p: np.ndarray, y: np.ndarray, q: np.ndarray) -> Callable[[], np.ndarray]:
    return lambda: calshift.label_shift_weights(p, y, q, method=name).prior_target


def solver(C: np.ndarray, mu: np.ndarray, n: int, share: np.ndarray) -> Callable[[], np.ndarray]:
    penalty = rlls_penalty(K, n)
    return lambda: share * (1 + minimize_penalised_distance(C, mu - C.sum(axis=1), penalty)[0])


def peer(C: np.ndarray, mu: np.ndarray, n: int, share: np.ndarray) -> Callable[[], np.ndarray]:
    return lambda: share * cvxpy_rlls(C, mu, n)


def timed(run: Callable[[], np.ndarray]) -> tuple[np.ndarray, float]:
    best = np.inf
    for _ in range(3):
        start = time.perf_counter()
        answer = run()
        best = min(best, time.perf_counter() - start)
        if best > 10:
            break
    return answer, best


def peak(run: Callable[[], np.ndarray]) -> float:
    tracemalloc.start()
    run()
    size = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return size / 2**20


if __name__ == "__main__":
    main()
