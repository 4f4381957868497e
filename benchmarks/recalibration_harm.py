"""Whether `recalibrate` does harm with weak models, judged with the target's labels.

    python benchmarks/recalibration_harm.py [--draws 70] [--wanted 200] [--rows 2000]
        [--first 120]

Four classes with priors of about .85, .08, .05 and .02, weakly informative features, and learners
that predict the majority class for 90 to 98% of the rows; each is trained on 2000 rows of its own.
Label shift: other class priors. Covariate shift: rows drawn by a function of the features, P(y | x)
being the same. Mild, far: the same, a third and five times as strong, as in a stream whose features
drift. Both: label shift, then covariate shift. Limits were chosen on seeds below 120, the first one
here is --first. Draws are made round after round until --draws a
cell, and until --wanted of them are called better (at most four times --draws).

trusted, better, source, unchanged: shares of the draws, the last two of the fallbacks. "edge": how
many trusted results have a share within its standard error of 0 or 1. Accuracy is
in points, with the target's labels. "better: mean" is the mean change among draws called better,
with its standard error, and "lost" how many of them lose more than one point by more than two
paired standard errors. "applied" and "asked" are mean and worst change over all draws: of what was
returned, and of the recalibration asked for, which is returned only without a fallback.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from tables import write_table

import calshift

PRIOR = np.array([0.85, 0.08, 0.05, 0.02])
SHIFTED = np.array([0.70, 0.08, 0.14, 0.08])
DIMENSIONS, TRAINING = 6, 2000
LEARNERS: dict[str, Callable[[], Any]] = {
    "logistic": lambda: LogisticRegression(max_iter=300),
    "forest": lambda: RandomForestClassifier(50, min_samples_leaf=10, random_state=0),
    "naive Bayes": GaussianNB,
}
SHIFTS = ("label", "covariate", "both", "mild", "far")
TILT = {"label": 0.0, "covariate": 0.8, "both": 0.8, "mild": 0.25, "far": 4.0}
STRENGTHS = (0.75, 1.1)  # of the features: the majority class is predicted for 90 to 98% of rows


class Draw(NamedTuple):
    """The figures of one draw."""

    majority: float
    trusted: bool
    edge: bool
    gist: str
    fallback: str | None
    applied: float
    asked: float
    error: float

    @property
    def lost(self) -> bool:
        """Whether it loses more than a point beyond two paired standard errors."""
        return self.applied + 2 * self.error < -1


def population(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Class means, and the direction of the covariate shift."""
    rng = np.random.default_rng([seed, 1])
    means = rng.normal(size=(len(PRIOR), DIMENSIONS)) * STRENGTHS[seed % 2]
    return means, means[-1] - means[0] + rng.normal(size=DIMENSIONS) * 0.5


def drawn(
    rng: np.random.Generator, means: np.ndarray, prior: np.ndarray, tilt: np.ndarray, n: int
) -> tuple[np.ndarray, np.ndarray]:
    """n rows: by class, and then kept with a probability that depends on x alone."""
    y = rng.choice(len(prior), 20 * n if tilt.any() else n, p=prior)
    x = means[y] + rng.standard_t(5, size=(len(y), DIMENSIONS)) * (1 + 0.2 * (y == 0))[:, None]
    if tilt.any():
        score = x @ tilt
        weight = np.exp(np.minimum(score - np.quantile(score, 0.99), 0))
        kept = rng.choice(len(y), n, replace=False, p=weight / weight.sum())
        x, y = x[kept], y[kept]
    return x, y


def one_draw(learner: str, shift: str, seed: int, rows: int) -> Draw:
    rng, (means, direction) = np.random.default_rng(seed), population(seed % 10)
    none = np.zeros(DIMENSIONS)
    model = LEARNERS[learner]().fit(*drawn(rng, means, PRIOR, none, TRAINING))
    x, y = drawn(rng, means, PRIOR, none, rows)
    prior = SHIFTED if shift in ("label", "both") else PRIOR
    z, truth = drawn(rng, means, prior, TILT[shift] * direction / np.linalg.norm(direction), rows)
    p, q = np.round(model.predict_proba(x), 6), np.round(model.predict_proba(z), 6)
    p, q = (a / a.sum(axis=1, keepdims=True) for a in (p, q))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = calshift.recalibrate(p, y, q)
    before = q.argmax(axis=1) == truth
    changes = [
        100 * ((new.argmax(axis=1) == truth).astype(float) - before)
        for new in (found.probabilities, found.requested.transform(q))
    ]
    applied, asked = (float(change.mean()) for change in changes)
    error = float(changes[0].std(ddof=1) / np.sqrt(rows))
    majority = float((p.argmax(axis=1) == 0).mean())
    weights = found.before.class_weights
    shares = weights.prior_target
    edge = bool((np.minimum(shares, 1 - shares) <= weights.standard_error).any())
    return Draw(majority, found.trusted, edge, found.gist(), found.fallback, applied, asked, error)


def row(name: list[str], draws: list[Draw]) -> list[str]:
    better = [d for d in draws if d.gist == "Better"]
    gains = np.array([d.applied for d in better])
    mean = f"{gains.mean():+.2f}" if better else ""
    if len(better) > 1:
        mean += f" ({gains.std(ddof=1) / np.sqrt(len(gains)):.2f})"
    shares = [
        np.mean([d.majority for d in draws]),
        np.mean([d.trusted for d in draws]),
        len(better) / len(draws),
        *(np.mean([d.fallback == kind for d in draws]) for kind in ("source", "unchanged")),
    ]
    edges = str(sum(d.trusted and d.edge for d in draws))
    ends = [
        f"{np.mean(values):+.2f}, {np.min(values):+.1f}"
        for values in ([d.applied for d in draws], [d.asked for d in draws])
    ]
    lost = f"{sum(d.lost for d in better)} of {len(better)}"
    return [*name, str(len(draws)), *(f"{share:.2f}" for share in shares), edges, mean, lost, *ends]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=70)
    parser.add_argument("--wanted", type=int, default=200)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--first", type=int, default=120, help="seed")
    asked = parser.parse_args()
    cells: dict[tuple[str, str], list[Draw]] = {(a, b): [] for a in LEARNERS for b in SHIFTS}
    pool = ProcessPoolExecutor(2)
    for seed in range(4 * asked.draws):
        better = sum(d.gist == "Better" for draws in cells.values() for d in draws)
        if seed >= asked.draws and better >= asked.wanted:
            break
        tasks = [(*cell, asked.first + seed, asked.rows) for cell in cells]
        for draws, found in zip(
            cells.values(), pool.map(one_draw, *zip(*tasks, strict=True)), strict=True
        ):
            draws.append(found)
        print(f"round {seed + 1}: {better} called better before it", file=sys.stderr)
    rows = [row(list(name), draws) for name, draws in cells.items()]
    rows.append(row(["all", ""], [d for draws in cells.values() for d in draws]))
    head = [
        "learner", "shift", "draws", "majority", "trusted", "better", "source", "unchanged",
        "edge", "better: mean", "lost", "applied: mean, worst", "asked: mean, worst",
    ]  # fmt: skip
    about = f"{__doc__}\n{asked.rows} rows of source and target each."
    write_table("recalibration_harm", about, head, rows)


if __name__ == "__main__":
    main()
