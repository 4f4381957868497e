"""Simulations of exact label shift with classifiers that are wrong in different ways.

    python benchmarks/shift_simulations.py

Features given the class have the same distribution in source and target; only the class priors
differ. Each classifier is trained once, on rows of its own with the source's priors. Half of the
cases ("choose") may be used to choose methods, the other half ("judge") only to judge them: the
last five of the first half were moved there when faults were found with them.
Prints a line for each case: accuracy and root of the true calibration error on the target.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeClassifier

import calshift

TRUTHS = Path(__file__).parent / "results" / "shift_truths.json"
ROWS, ENTRIES = 500_000, 20_000_000  # at most, in the pool for the true error
Sample = tuple[np.ndarray, np.ndarray]  # p, y
Model = Callable[[np.ndarray], np.ndarray]  # x to p


def tail(K: int, factor: float) -> np.ndarray:
    """Class shares with factor^(-c / (K - 1)); 1 is even, below 1 the last class is largest."""
    share = factor ** (-np.arange(K) / (K - 1))
    return np.asarray(share / share.sum())


@dataclass(frozen=True)
class World:
    """Features given the class, with parameters drawn once from the seed.

    Noise is normal, or t with ``df``; ``scales`` is the largest over the smallest standard
    deviation; ``parts`` is the number of components of each class. With ``dispersion`` features
    are counts, negative binomial with that shape.
    """

    classes: int
    dimensions: int
    spread: float  # standard deviation of the centres
    seed: int
    df: float | None = None
    scales: float = 1.0
    correlation: float = 0.0
    parts: int = 1
    dispersion: float | None = None

    def draw(self, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Features of rows with these labels."""
        centres, scale = parameters(self)
        centre = centres[y, rng.integers(self.parts, size=len(y))]
        if self.dispersion is not None:
            gamma = rng.gamma(self.dispersion, 1 / self.dispersion, centre.shape)
            return rng.poisson(np.exp(1 + centre) * gamma).astype(float)
        return np.asarray(centre + scale[y] * self.noise(centre.shape, rng))

    def noise(self, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        """Of unit scale, with equal correlations."""
        if self.df is not None:
            return rng.standard_t(self.df, shape)
        shared = rng.normal(size=(shape[0], 1)) if self.correlation else 0.0
        own = rng.normal(size=shape)
        return np.asarray(self.correlation**0.5 * shared + (1 - self.correlation) ** 0.5 * own)


@cache
def parameters(world: World) -> tuple[np.ndarray, np.ndarray]:
    """(K, parts, d) centres and (K, d) scales."""
    rng = np.random.default_rng(world.seed)
    shape = (world.classes, world.parts, world.dimensions)
    centres = rng.normal(size=shape)
    centres -= centres.mean(axis=(0, 1))
    freedom = (world.classes * world.parts - 1) * world.dimensions
    centres *= world.spread / np.sqrt((centres**2).sum() / freedom)
    power = rng.uniform(-0.5, 0.5, (world.classes, world.dimensions))
    return centres, world.scales**power


class PoissonNB:
    """Naive Bayes of counts that are taken to be Poisson."""

    def fit(self, x: np.ndarray, y: np.ndarray) -> PoissonNB:
        """Learn the rates and shares of the classes."""
        self.classes_ = np.unique(y)
        self.share = np.log(np.bincount(y) / len(y))
        self.rate = np.array([x[y == c].mean(axis=0) for c in range(len(self.share))]) + 0.01
        return self

    def predict_proba(self, x: np.ndarray) -> np.ndarray:
        """(rows, K)."""
        return calshift.softmax(x @ np.log(self.rate).T - self.rate.sum(axis=1) + self.share)


LEARNERS: dict[str, Callable[[], Any]] = {
    "linear": LinearDiscriminantAnalysis,
    "logistic": lambda: LogisticRegression(max_iter=2000),
    "one-vs-rest": lambda: OneVsRestClassifier(LogisticRegression(max_iter=2000)),
    "tree": lambda: DecisionTreeClassifier(max_depth=5, random_state=0),
    "forest": lambda: RandomForestClassifier(40, max_depth=10, random_state=0),
    "neighbours": lambda: KNeighborsClassifier(15),
    "naive": GaussianNB,
    "poisson": PoissonNB,
    "boosting": lambda: HistGradientBoostingClassifier(max_iter=25, random_state=0),
    "network": lambda: MLPClassifier((30,), alpha=1e-5, max_iter=400, random_state=0),
}  # and "posterior", the exact one of unit Gaussians


def normalise(p: np.ndarray) -> np.ndarray:
    """Rows that sum to 1."""
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def scaled(slope: float, bias: float = 0.0) -> Model:
    """softmax(slope log p + b), where b goes from -bias to bias over the classes."""
    return lambda p: normalise(p**slope * np.exp(np.linspace(-bias, bias, p.shape[1])))


def leaning(p: np.ndarray) -> np.ndarray:
    """0.75 p, and 0.25 for class 0."""
    return np.asarray(0.75 * p + 0.25 * np.eye(p.shape[1])[0])


CHANGES: dict[str, Model] = {  # of the probabilities after the model
    "none": normalise,
    "sharp": scaled(2.5),
    "sharp-biased": scaled(1.6, 0.4),
    "soft": scaled(0.6),
    "soft-biased": scaled(0.75, -0.5),
    "slopes": lambda p: normalise(p ** np.linspace(0.5, 1.8, p.shape[1])),
    "wiggly": lambda p: normalise(p * (1 + 0.4 * np.sin(6 * np.pi * p))),
    "floor": lambda p: normalise(np.maximum(p, 1e-3)),
    "hundredths": lambda p: normalise(np.round(p, 2)),
    "tenths": lambda p: normalise(np.round(p, 1)),
    "leaning": leaning,
}


@dataclass(frozen=True)
class Case:
    """One simulation: a world, a classifier, two priors and the sizes of the samples."""

    name: str
    half: str  # "choose" or "judge"
    n: int
    m: int
    world: World
    learner: str
    change: str = "none"
    tails: tuple[float, float] = (1.0, 5.0)  # largest over smallest share: source, target
    rows: int = 3000  # of the training sample
    seen: int | None = None  # features that the model sees, None: all

    @property
    def classes(self) -> int:
        """K."""
        return self.world.classes

    @property
    def bcts(self) -> bool:
        """Whether P_s(y | p) is exactly a temperature-and-bias transform of p."""
        exact = ("none", "sharp", "sharp-biased", "soft", "soft-biased")
        return self.learner == "posterior" and self.change in exact

    def prior(self, sample: str) -> np.ndarray:
        """Class shares of "source" or "target"."""
        return tail(self.classes, self.tails[("source", "target").index(sample)])

    def draw(self, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        """p and y of n source rows, then p and y of m target rows."""
        return *self.sample("source", self.n, rng), *self.sample("target", self.m, rng)

    def pool(self, size: int, rng: np.random.Generator) -> Sample:
        """Predictions and labels of target rows."""
        return self.sample("target", size, rng)

    def sample(self, sample: str, size: int, rng: np.random.Generator) -> Sample:
        """Predictions and labels of rows of the source or the target."""
        y = rng.choice(self.classes, size, p=self.prior(sample))
        return CHANGES[self.change](model(self)(self.world.draw(y, rng))), y

    def true_error(self) -> float:
        """Classwise CE_2^2 on the target."""
        return float(truth(self)["error"])


@cache
def model(case: Case) -> Model:
    """The classifier, trained on source rows of its own."""
    if case.learner == "posterior":
        return posterior(case)
    rng = np.random.default_rng([case.world.seed, 1])
    y = rng.choice(case.classes, case.rows, p=case.prior("source"))
    x = case.world.draw(y, rng)[:, : case.seen]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a network that did not converge is meant
        fitted = LEARNERS[case.learner]().fit(x, y)
    assert list(fitted.classes_) == list(range(case.classes)), f"{case.name}: a class was not drawn"
    return lambda x: np.asarray(fitted.predict_proba(x[:, : case.seen]), dtype=float)


def posterior(case: Case) -> Model:
    """P_s(y | x) of unit Gaussians."""
    world, prior = case.world, np.log(case.prior("source"))
    plain = World(world.classes, world.dimensions, world.spread, world.seed)
    assert world == plain, f"{case.name}: the posterior is that of unit Gaussians"
    means = parameters(world)[0][:, 0]
    return lambda x: calshift.softmax(x @ means.T - (means**2).sum(axis=1) / 2 + prior)


@cache
def truth(case: Case) -> dict[str, Any]:
    """Error, its standard error, and accuracy on a large target pool; kept on disk.

    What was kept counts only for the same description of the case. Delete the file after a change
    of the code of a world, learner or change.
    """
    kept = json.loads(TRUTHS.read_text(encoding="utf-8")) if TRUTHS.exists() else {}
    if kept.get(case.name, {}).get("case") != repr(case):
        kept[case.name] = {"case": repr(case), **measure(case)}
        beside = TRUTHS.with_suffix(".part")
        beside.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
        beside.replace(TRUTHS)
    return dict(kept[case.name])


def measure(case: Case) -> dict[str, float]:
    """The truth from labelled target rows."""
    rng = np.random.default_rng([case.world.seed, 2])
    p, y = case.pool(min(ROWS, ENTRIES // case.classes), rng)
    found = calshift.calibration_error(p, y)
    accuracy = float(np.mean(p.argmax(axis=1) == y))
    error, standard_error = float(found.estimate), float(found.standard_error)
    return {"error": error, "standard_error": standard_error, "accuracy": accuracy}


def half(name: str, rows: list[tuple]) -> tuple[Case, ...]:
    """The cases of one half, from rows (name, n, m, world, learner, ...)."""
    return tuple(Case(row[0], name, *row[1:]) for row in rows)


CHOOSE = [
    ("t-linear-5", 2000, 2000, World(5, 4, 1.2, 101, df=4, scales=3), "linear", "none", (1, 4)),
    ("tree-4", 2000, 1500, World(4, 5, 0.8, 102), "tree", "floor", (1, 5)),
    ("forest-5", 2000, 2000, World(5, 6, 0.8, 103), "forest", "hundredths", (2, 0.3), 1500),
    ("neighbours-3", 1500, 1500, World(3, 4, 0.7, 104), "neighbours", "none", (1, 6), 1000),
    ("naive-3", 2000, 4000, World(3, 5, 0.7, 105, correlation=0.4), "naive", "none", (1, 5)),
    ("naive-100", 5000, 5000, World(100, 12, 1.0, 106, correlation=0.3), "naive", "none", (1, 5)),
    ("poisson-4", 2000, 2000, World(4, 6, 0.6, 107, dispersion=1.5), "poisson", "none", (1, 5)),
    ("slopes-3", 2000, 2000, World(3, 3, 0.9, 108), "posterior", "slopes", (1, 5)),
    ("sharp-10", 2000, 2000, World(10, 8, 0.8, 109), "posterior", "sharp", (1, 10)),
    ("rare-2-in-100", 3000, 2000, World(2, 3, 0.8, 110, scales=5), "logistic", "none", (49, 9)),
    ("rare-1-in-100", 5000, 5000, World(2, 2, 0.9, 111, scales=3), "logistic", "none", (99, 19)),
    ("covariances-4", 2000, 1000, World(4, 4, 1.0, 112, scales=6), "logistic", "none", (1, 8)),
    ("partial-6", 3000, 3000, World(6, 8, 2, 113, parts=2), "logistic", "none", (2, 0.4), 3000, 6),
    ("gaussian-2", 1000, 1000, World(2, 2, 0.9, 114), "posterior", "sharp-biased", (1, 4)),
    ("gaussian-10", 1000, 3000, World(10, 8, 0.8, 115), "posterior", "soft-biased", (2, 0.3)),
    ("gaussian-50", 4000, 4000, World(50, 12, 0.9, 116), "posterior", "sharp-biased", (1, 10)),
    ("gaussian-200", 5000, 5000, World(200, 20, 0.9, 117), "posterior", "sharp-biased", (1, 5)),
    ("boosting-6", 2000, 2000, World(6, 6, 0.9, 118, df=4), "boosting", "none", (1, 0.1), 1500),
    ("network-4", 2000, 2000, World(4, 6, 0.7, 119), "network", "none", (1, 5), 300),
    ("wiggly-2", 2000, 2000, World(2, 2, 0.9, 120), "posterior", "wiggly", (1, 5)),
    ("ties-2", 2000, 2000, World(2, 3, 0.8, 121, scales=3), "logistic", "tenths", (1, 6)),
    ("one-vs-rest-5", 2000, 1000, World(5, 2, 2.0, 122), "one-vs-rest", "none", (1, 0.2)),
    ("weak-4", 2000, 2000, World(4, 3, 0.3, 123, scales=2), "logistic", "leaning", (3, 10)),
    ("covariances-30", 3000, 3000, World(30, 8, 1.2, 124, scales=4), "logistic", "none", (1, 30)),
    ("gaussian-3", 2000, 1000, World(3, 3, 0.8, 214), "posterior", "soft-biased", (1, 6)),
    ("gaussian-20", 2000, 2000, World(20, 10, 0.8, 215), "posterior", "sharp-biased", (1, 10)),
    ("tree-3", 3000, 3000, World(3, 4, 0.8, 202), "tree", "floor", (2, 0.5)),
    ("wiggly-4", 2500, 2500, World(4, 3, 0.9, 220), "posterior", "wiggly", (1, 0.2)),
    ("rare-10-in-100", 2000, 4000, World(2, 2, 1.0, 211, scales=4), "logistic", "none", (9, 99)),
]
JUDGE = [
    ("t-linear-3", 2000, 2000, World(3, 4, 1.2, 201, df=3, scales=4), "linear", "none", (1, 5)),
    ("tree-6", 2500, 2500, World(6, 5, 0.9, 228), "tree", "floor", (1, 5)),
    ("forest-8", 2500, 2500, World(8, 8, 0.8, 203), "forest", "hundredths", (1, 8), 2000),
    ("neighbours-5", 2000, 1000, World(5, 4, 0.9, 204), "neighbours", "none", (1, 0.25), 1500),
    ("naive-6", 2000, 2000, World(6, 6, 0.8, 205, correlation=0.5), "naive", "none", (1, 0.1)),
    ("slopes-50", 4000, 4000, World(50, 10, 1.0, 206), "posterior", "slopes", (1, 6)),
    ("poisson-3", 1500, 3000, World(3, 5, 0.6, 207, dispersion=2.0), "poisson", "none", (2, 0.5)),
    ("slopes-6", 2000, 2000, World(6, 5, 0.9, 208), "posterior", "slopes", (1, 0.2)),
    ("sharp-10-even", 3000, 1500, World(10, 6, 0.9, 209), "posterior", "sharp", (5, 1)),
    ("rare-20-in-100", 2000, 5000, World(2, 3, 0.8, 210, scales=3), "logistic", "none", (4, 99)),
    ("rare-15-in-100", 2000, 4000, World(2, 2, 1.0, 230, scales=3), "logistic", "none", (6, 66)),
    ("covariances-3", 1500, 1500, World(3, 3, 1.0, 212, scales=8), "logistic", "none", (1, 6)),
    ("partial-4", 2000, 2000, World(4, 6, 2, 213, parts=2), "logistic", "none", (1, 5), 3000, 4),
    ("gaussian-4", 2000, 1000, World(4, 3, 0.9, 226), "posterior", "soft-biased", (1, 6)),
    ("gaussian-15", 2000, 2000, World(15, 9, 0.8, 227), "posterior", "sharp-biased", (1, 10)),
    ("gaussian-20-soft", 1500, 5000, World(20, 8, 0.9, 216), "posterior", "soft", (2, 0.2)),
    ("gaussian-100", 5000, 5000, World(100, 15, 0.9, 217), "posterior", "sharp-biased", (1, 10)),
    ("boosting-3", 1500, 3000, World(3, 5, 0.9, 218, df=4), "boosting", "none", (1, 5), 800),
    ("network-6", 2000, 1500, World(6, 8, 0.6, 219), "network", "none", (1, 4), 500),
    ("wiggly-3", 2500, 2500, World(3, 3, 0.9, 229), "posterior", "wiggly", (1, 0.2)),
    ("ties-2-reverse", 1000, 2000, World(2, 3, 0.8, 221, scales=4), "logistic", "tenths", (3, 0.5)),
    ("one-vs-rest-8", 2500, 2500, World(8, 2, 2.5, 222), "one-vs-rest", "none", (1, 6)),
    ("weak-4-even", 2000, 3000, World(4, 4, 0.28, 223, scales=2), "logistic", "leaning", (4, 1)),
    ("covariances-40", 4000, 2000, World(40, 10, 1.2, 224, scales=4), "logistic", "none", (1, 20)),
]
CASES = half("choose", CHOOSE) + half("judge", JUDGE)
assert len({case.name for case in CASES}) == len(CASES)


def cases(name: str) -> tuple[Case, ...]:
    """Those of one half, "choose" or "judge"."""
    return tuple(case for case in CASES if case.half == name)


def main() -> None:
    """Print a line for each case."""
    print("case             half     K    n    m  bcts accuracy     CE")
    for case in CASES:
        found = truth(case)
        sizes = f"{case.classes:3} {case.n:4} {case.m:4} {case.bcts!s:>5}"
        measured = f"{found['accuracy']:8.3f} {max(found['error'], 0) ** 0.5:6.4f}"
        print(f"{case.name:16} {case.half:6} {sizes} {measured}", flush=True)


if __name__ == "__main__":
    main()
