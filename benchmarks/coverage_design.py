"""The cells of the coverage study: Gaussian simulations in a balanced design.

Six factors: classes, size of the larger sample, ratio of the sizes, shift, model, weights. For each
size the other five follow Taguchi's orthogonal array L18, in which every pair of levels of two
factors meets twice; their levels are turned from size to size, so that other triples meet. Cells
of 100 and 200 classes are added by hand.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

import calshift

SIZES = (500, 2000, 10_000, 50_000)
CLASSES = (2, 10, 50)
RATIOS = ((5, 1), (1, 1), (1, 5))  # n : m
IMBALANCE = (1, 10, 100)  # 1: no shift
TEMPERATURES = (1.0, 0.6, 1.6)  # calibrated on the source, overconfident, underconfident
WEIGHTS = ("true", "auto", "rlls")  # auto is the default
TURNS = (0, 1, 2, 1, 2)  # by which the levels of each factor move from one size to the next
DIMENSIONS = {2: 2, 10: 10, 50: 20, 100: 20, 200: 25}
L18 = [  # five of its columns
    "00000", "01111", "02222", "10011", "11122", "12200", "20102", "21210", "22021",
    "00221", "01002", "02110", "10120", "11201", "12012", "20212", "21020", "22101",
]  # fmt: skip
MANY_CLASSES = [  # classes, n, m, imbalance, temperature, weights
    (100, 2000, 10_000, 10, 0.6, "true"),
    (100, 5000, 5000, 100, 1.0, "auto"),
    (100, 10_000, 2000, 1, 1.6, "auto"),
    (200, 4000, 4000, 10, 0.6, "auto"),
    (200, 5000, 20_000, 10, 1.0, "auto"),
    (200, 10_000, 10_000, 100, 1.6, "true"),
]
SEED = 2026  # of the class means; no constant was chosen on these simulations


@dataclass(frozen=True)
class Cell:
    """One cell of the design."""

    classes: int
    n: int
    m: int
    imbalance: float
    temperature: float
    weights: str

    @property
    def name(self) -> str:
        """Of its file."""
        parts = (self.classes, self.n, self.m, self.imbalance, self.temperature, self.weights)
        return "-".join(str(part) for part in parts)

    def simulation(self, seed: int = SEED) -> calshift.simulate.GaussianSimulation:
        """Draws with a known truth."""
        return calshift.simulate.GaussianSimulation(
            n_classes=self.classes,
            imbalance=self.imbalance,
            temperature=self.temperature,
            dimensions=DIMENSIONS[self.classes],
            seed=seed,
        )


def cells() -> list[Cell]:
    """All 78 of them."""
    found = []
    for k, size in enumerate(SIZES):
        for row in L18:
            levels = [(int(d) + k * turn) % 3 for d, turn in zip(row, TURNS, strict=True)]
            a, b, c, d, e = levels
            n, m = (size * part // max(RATIOS[b]) for part in RATIOS[b])
            found.append(Cell(CLASSES[a], n, m, IMBALANCE[c], TEMPERATURES[d], WEIGHTS[e]))
    return found + [Cell(*values) for values in MANY_CLASSES]


def check_balance() -> None:
    """Every pair of levels of two factors meets equally often."""
    table = np.array([[int(d) for d in row] for row in L18])
    for a, b in combinations(range(table.shape[1]), 2):
        met = sorted(map(tuple, table[:, [a, b]].tolist()))
        assert met == sorted(list(product(range(3), repeat=2)) * 2)


check_balance()
