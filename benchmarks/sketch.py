"""How near the sketch of what classes share of |S|^2 comes to the whole of it.

    python benchmarks/sketch.py

T = |S|^2 decides how wide an interval is near an error of 0. Gaussian classes, weights given; the
same sample with its classes in 20 other orders, which changes the sketch and nothing else.
"""

from __future__ import annotations

import numpy as np
from tables import write_table

import calshift
from calshift.inference import row_influence as moves

ORDERS = 20


def second(p: np.ndarray, y: np.ndarray, q: np.ndarray, w: np.ndarray) -> float:
    found = calshift.target_calibration_error(p, y, q, weights=w, check=False)
    return float(found._distribution.second)


def compared(K: int, n: int, temperature: float) -> list[str]:
    simulation = calshift.simulate.GaussianSimulation(
        n_classes=K, dimensions=min(K, 10), temperature=temperature
    )
    p, y = simulation.source(n, rng=1)
    q, _ = simulation.target(n, rng=2)
    w = simulation.class_weights / simulation.class_weights[y].mean()
    rng, ratios = np.random.default_rng(0), []
    usual = moves.EXACT_WORK
    moves.EXACT_WORK = np.inf
    whole = second(p, y, q, w)
    moves.EXACT_WORK = 0.0
    for _ in range(ORDERS):
        order = rng.permutation(K)
        ratios.append(second(p[:, order], np.argsort(order)[y], q[:, order], w[order]) / whole)
    moves.EXACT_WORK = usual
    spread = (
        f"{np.mean(ratios):.3f}",
        f"{np.std(ratios, ddof=1):.3f}",
        f"{np.max(np.abs(np.subtract(ratios, 1))):.3f}",
    )
    return [str(K), str(n), f"{temperature:g}", f"{whole:.3g}", *spread]


def main() -> None:
    cases = [
        (K, n, t) for K, n in ((3, 2000), (10, 2000), (10, 10_000), (40, 4000)) for t in (1.0, 0.6)
    ]
    rows = [compared(*case) for case in cases]
    head = ["classes", "rows", "temperature", "T", "sketch / T, mean", "spread", "largest miss"]
    write_table("sketch", __doc__, head, rows)


if __name__ == "__main__":
    main()
