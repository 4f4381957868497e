"""How strongly the prior of ShiftScaling should pull to the simple.

    python benchmarks/recalibration_prior.py DIRECTORY [--repeats 8]

The tasks of recalibration.py with ten classes or fewer, on other draws (seeds from 100). For each
number of directions that a form of the prior is credited with beyond those that speak ("spare"),
the log loss of ShiftScaling less that of temperature scaling on the source: mean over all tasks,
and the three tasks in which the default of 1 gains least, with standard errors over the draws.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
from recalibration import OWN, judged, predictions, with_error
from tables import write_table
from weights_tasks import FACTORS, halved

import calshift
from calshift import shifting

SPARES = (0.0, 0.5, 1.0, 2.0)
DEFAULT = SPARES.index(shifting.SPARE)


def gains(name: str, task: str, factor: float, seed: int) -> list[float]:
    """Log loss less that of temperature scaling, for every number of directions."""
    p, y, q, truth = halved(*predictions(name), task, factor, seed)
    plain = judged(calshift.TemperatureScaling().fit(p, y).transform(q), truth)[0]
    found = []
    for spare in SPARES:
        shifting.SPARE = spare
        found.append(judged(calshift.ShiftScaling().fit(p, y, q).transform(q), truth)[0] - plain)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--repeats", type=int, default=8)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    names = [str(path) for path in sorted(asked.directory.glob("*.npz"))] + list(OWN)
    names = [name for name in names if predictions(name)[0].shape[1] <= 10]
    tasks = [(name, task, factor) for name in names for task in "AB" for factor in FACTORS]
    found = []
    for task in tasks:
        found.append([gains(*task, 100 + seed) for seed in range(asked.repeats)])
        print(task, np.mean(found[-1], axis=0).round(4), flush=True)
    values = np.array(found)  # tasks x draws x spares
    worst = np.argsort(values[..., DEFAULT].mean(axis=1))[::-1][:3]
    rows = [
        [f"{spare:g}", with_error(values[..., k].mean(axis=0)),
         *(with_error(values[t, :, k]) for t in worst)]
        for k, spare in enumerate(SPARES)
    ]  # fmt: skip
    head = ["spare", "all tasks", *(" ".join([Path(n).stem, a, f"{f:g}"]) for n, a, f in
                                    (tasks[t] for t in worst))]  # fmt: skip
    write_table("recalibration_prior", f"{__doc__}\nDraws: {asked.repeats}.", head, rows)


if __name__ == "__main__":
    main()
