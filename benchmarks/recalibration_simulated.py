"""What recalibration is worth where the truth is known, and whether `recalibrate` says so.

    python benchmarks/recalibration_simulated.py [--draws 100] [--jobs 2]

Gaussian classes, n = m. Temperature 1 is a model calibrated on the source, imbalance 1 is no shift.
Log loss and CE (classwise, root) are of the mended probabilities of 100 000 fresh target rows, log
loss as the mean excess over that of the true posteriors, in 1/1000: of the model as it is, after
temperature scaling on the source, and after calshift.recalibrate with its default.
"cost" is the mean difference after less before in units of the standard error that the log loss of
one target sample of that size has: above 1 would be a loss that shows.
"told" is the mean of .after (root of the mean square), beside the true value: "naive" is the
label-free error of the very rows that were fitted to; "covered" is how often the 95% interval of
.after holds the true error of the recalibrator returned.
"""

from __future__ import annotations

import argparse
import warnings
from functools import partial
from multiprocessing import Pool

import numpy as np
from tables import write_table

import calshift

ROWS = 100_000
CASES = [  # K, dimensions, temperature, imbalance, long tail, n
    *((K, d, 1.0, 1.0, "target", n) for K, d in ((2, 2), (10, 8), (50, 12)) for n in (500, 5000)),
    *((K, d, 1.0, 10.0, "target", 3000) for K, d in ((3, 2), (20, 8))),
    *((K, d, 0.6, 1.0, "target", 3000) for K, d in ((3, 2), (20, 8))),
    *((K, d, 0.6, 10.0, side, 3000) for K, d in ((3, 2), (20, 8)) for side in ("target", "source")),
    (20, 8, 1.6, 30.0, "target", 1000),
    (5, 3, 0.4, 30.0, "source", 10_000),
]


def log_losses(p: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.asarray(-np.log(np.maximum(p[np.arange(len(y)), y], 1e-15)))


def one_draw(case: tuple, seed: int) -> dict[str, float]:
    K, d, temperature, imbalance, side, n = case
    warnings.simplefilter("ignore")
    simulation = calshift.simulate.GaussianSimulation(
        n_classes=K, dimensions=d, temperature=temperature, imbalance=imbalance, long_tail=side,
        seed=K,
    )  # fmt: skip
    rng = np.random.default_rng([seed, K, n])
    p, y = simulation.source(n, rng)
    q, _ = simulation.target(n, rng)
    fresh, labels, posterior = simulation.draw(ROWS, "target", rng)
    found = calshift.recalibrate(p, y, q, check=False)
    plain = calshift.TemperatureScaling().fit(p, y)
    mended = found.recalibrator.transform(fresh)
    naive = calshift.target_calibration_error(
        found.recalibrator.transform(p), y, found.recalibrator.transform(q), check=False
    )
    best, before = log_losses(posterior, labels).mean(), log_losses(fresh, labels)
    truth = calshift.calibration_error(mended, labels, interval=None).estimate
    low, high = found.after.confidence_interval()
    return {
        "before": before.mean() - best,
        "temperature": log_losses(plain.transform(fresh), labels).mean() - best,
        "after": log_losses(mended, labels).mean() - best,
        "cost": (log_losses(mended, labels) - before).mean() / (before.std() / np.sqrt(n)),
        "ce before": calshift.calibration_error(fresh, labels, interval=None).estimate,
        "ce after": truth,
        "told": found.after.estimate,
        "naive": naive.estimate,
        "covered": low <= max(truth, 0.0) <= high,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args()
    rows = []
    with Pool(asked.jobs) as pool:
        for case in CASES:
            draws = pool.map(partial(one_draw, case), range(asked.draws), chunksize=5)
            mean = {name: np.mean([draw[name] for draw in draws]) for name in draws[0]}
            roots = [np.sqrt(max(mean[k], 0)) for k in ("ce before", "ce after", "told", "naive")]
            losses = [f"{1000 * mean[k]:.2f}" for k in ("before", "temperature", "after")]
            K, _, temperature, imbalance, side, n = case
            shift = "none" if imbalance == 1 else f"{imbalance:g}, {side}"
            rows.append([str(K), f"{temperature:g}", shift, str(n), *losses, f"{mean['cost']:+.2f}",
                         *(f"{root:.4f}" for root in roots), f"{mean['covered']:.3f}"])  # fmt: skip
            print(*rows[-1], flush=True)
    head = ["K", "temperature", "imbalance", "n = m", "log loss before", "temperature scaling",
            "after", "cost", "CE before", "CE after", "told", "naive", "covered"]  # fmt: skip
    write_table("recalibration_simulated", f"{__doc__}\nDraws: {asked.draws}.", head, rows)


if __name__ == "__main__":
    main()
