"""Error of metrics without target labels, relative to the efficiency bound under label shift.

    python benchmarks/metrics_bound.py [--draws 300] [--jobs 2] [--write]

Simulations of shift_simulations.py whose posterior class probabilities are known. For the mean of
psi(x, y) no regular estimator has an asymptotic variance below

    Var_t(h) / m + E_s[w^2 (psi - h)^2] / n,
    h = [sum_y rho_y w_y psi(x, y) + sum_y lam_y rho_y] / [sum_y rho_y w_y + n / m]

with rho the posterior class probabilities of the target and lam such that E_s[h | y] = E_s[psi | y]
for every class; of macro F1, psi is its derivative. Expectations are means over large pools.
"rmse / bound" of default calls of `target_metrics`, over all draws, whether trusted or not; its
standard error is about 0.71 / sqrt(draws). The last column compares with target labels of the same
number. Set OPENBLAS_NUM_THREADS=1.
"""

from __future__ import annotations

import argparse
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
from shift_simulations import CASES, CHANGES, Case, posterior
from tables import write_table

import calshift
from calshift.metrics.class_counts import ClassRatio, ClassShares

NAMES = ("accuracy", "log_loss", "brier_score", "f1_macro")
CHOSEN = ("gaussian-4", "gaussian-15", "sharp-10-even", "gaussian-20-soft")
POOL = 300_000
HEAD = ["case", "K", "n", "m", "metric", "true", "rmse x 100", "rmse / bound", "bound / labels"]


def scores(p: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """(n, K, M) psi of every label."""
    K = p.shape[1]
    hit = np.eye(K)[p.argmax(axis=1)]
    logs = -np.log(np.clip(p, 2e-16, 1.0))
    brier = (p**2).sum(axis=1)[:, None] - 2 * p + 1
    f1 = hit * gradient[0] + gradient[2] + gradient[1][p.argmax(axis=1)][:, None]
    return np.stack([hit, logs, brier, f1], axis=2)


def draw_pool(case: Case, sample: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Predictions, labels and source posterior class probabilities of a large sample."""
    rng = np.random.default_rng([case.world.seed, 7, sample == "target"])
    y = rng.choice(case.classes, POOL, p=case.prior(sample))
    r = posterior(case)(case.world.draw(y, rng))
    return CHANGES[case.change](r), y, r


def bound(case: Case) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(M,) true metrics, the least standard error, and that of labels of the target's rows."""
    (p, y, r), (q, z, s) = draw_pool(case, "source"), draw_pool(case, "target")
    w, K, ratio = case.prior("target") / case.prior("source"), case.classes, case.n / case.m
    hits, alarms, actual = (
        np.bincount(one, minlength=K) / POOL
        for one in (z[q.argmax(axis=1) == z], q.argmax(axis=1), z)
    )
    f1, gradient, _ = ClassRatio("f1", average="macro")(ClassShares(hits, alarms, actual))
    psi, other = scores(p, gradient), scores(q, gradient)
    mean = other[np.arange(POOL), z].mean(axis=0)
    labels = other[np.arange(POOL), z].std(axis=0) / np.sqrt(case.m)

    def features(posterior: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rho = posterior * w
        rho /= rho.sum(axis=1, keepdims=True)
        below = 1 / (rho @ w + ratio)
        return rho * below[:, None], below

    (a, _), (b, _) = features(r), features(s)
    g, f = (np.einsum("nk,nkm->nm", one * w, two) for one, two in ((a, psi), (b, other)))
    own = psi[np.arange(POOL), y]
    by_label = np.stack([a[y == k].mean(axis=0) for k in range(K)])
    lam = np.linalg.solve(by_label, np.stack([(own - g)[y == k].mean(axis=0) for k in range(K)]))
    h, j = g + a @ lam, f + b @ lam
    variance = j.var(axis=0) / case.m + (w[y][:, None] ** 2 * (own - h) ** 2).mean(axis=0) / case.n
    return np.append(mean[:3], f1), np.sqrt(variance), labels


def measure(case: Case, seed: int) -> list[float]:
    """The estimates of one draw."""
    warnings.simplefilter("ignore")
    p, y, q, _ = case.draw(np.random.default_rng([case.world.seed, 8, seed]))
    found = calshift.target_metrics(p, y, q, metrics=NAMES, interval=None, check=False)
    return [one.estimate for one in found.values()]


def main() -> None:
    """Run, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=300)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--write", action="store_true", help="keep the table under results/")
    asked = parser.parse_args()
    table = []
    with ProcessPoolExecutor(asked.jobs) as pool:
        for case in (one for one in CASES if one.name in CHOSEN):
            true, least, labels = bound(case)
            found = np.array(
                list(pool.map(partial(measure, case), range(asked.draws), chunksize=5))
            )
            error = np.sqrt(((found - true) ** 2).mean(axis=0))
            for m, name in enumerate(NAMES):
                row = [case.name, str(case.classes), str(case.n), str(case.m), name]
                sizes = [f"{true[m]:.4f}", f"{100 * error[m]:.3f}", f"{error[m] / least[m]:.2f}"]
                table.append([*row, *sizes, f"{least[m] / labels[m]:.2f}"])
                print("  ".join(table[-1]), flush=True)
    if asked.write:
        write_table("metrics_bound", f"{__doc__}\nDraws: {asked.draws}.", HEAD, table)


if __name__ == "__main__":
    main()
