"""Bias of averages of ratios over many classes.

The error of an average over the classes shrinks with their number, the bias of each ratio does not.
To second order a ratio N / D of estimates is too large by

    (N / D Var(D) - Cov(N, D)) / D^2

N and D are linear in the shares of hits h, of predicted rows b and of actual rows a of the class,
whose covariances follow from the influence of rows as in metrics/products.py. D^2 + Var(D) in the
place of D^2 keeps the correction bounded. docs/mathematics.md section 13.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calshift._core.addable import Tally
from calshift._core.frozen import Frozen
from calshift._core.predictions import Predictions
from calshift.engines import Blocks
from calshift.engines.base import Engine
from calshift.metrics.class_counts import RATIOS, ClassRatio, ClassShares
from calshift.metrics.decision_rule import DecisionRule
from calshift.metrics.efficient_shares import EfficientShares
from calshift.metrics.products import combine_products, sum_products
from calshift.metrics.row_scores import Margins

BIASED = ("f1", "precision")
MOST_CLASSES = 300  # beyond which the covariances take too long


@dataclass(frozen=True, eq=False)
class _ClassRows(Frozen):
    """The parts of the shares h, b and a of all classes, (n, K) each, and their products."""

    rule: DecisionRule
    weights: np.ndarray
    shares: EfficientShares
    influence: Any
    margins: Margins

    def source(self, batch: Predictions) -> Tally:
        """Summand over source rows."""
        K, W = batch.n_classes, self.weights[batch.labels][:, None]
        predicted, actual = np.eye(K)[self.rule(batch)], np.eye(K)[batch.labels]
        r, c = self.margins
        at = predicted * (actual - c) + r * c
        e = at - self._expected(batch, predicted)
        design = [np.ones((len(batch), 1)), W]
        if self.influence is not None:
            design.append(self.influence.source(batch))
        columns = {"h": W * e, "a": W * actual}
        sums = sum_products(batch, np.concatenate(design, axis=1), columns)
        counted = actual * batch.frequency[:, None]
        return Tally(e=counted.T @ e, **sums)

    def target(self, batch: Predictions) -> Tally:
        """Summand over target rows."""
        K, design = batch.n_classes, np.ones((len(batch), 1))
        predicted = np.eye(K)[self.rule(batch)]
        if self.influence is not None:
            design = np.concatenate([design, self.influence.target(batch)], axis=1)
        r, c = self.margins
        hit = predicted * c - r * c + self._expected(batch, predicted)
        f = batch.frequency
        sums = sum_products(batch, design, {"h": hit, "b": predicted})
        return Tally(hit=f @ hit, predicted=f @ predicted, **sums)

    def _expected(self, batch: Predictions, predicted: np.ndarray) -> np.ndarray:
        """The part of hits that is estimated from the shares v, as in `CellScore`."""
        v, (r, c) = self.shares(batch), self.margins
        whole = v.sum(axis=1, keepdims=True)
        return np.asarray(v * predicted - v * r - whole * (predicted * c - r * c))


def class_covariances(
    source: Engine,
    target: Engine,
    rule: DecisionRule,
    weights: np.ndarray,
    scale: float,
    shares: EfficientShares,
    influence: Any,
    margins: Margins,
) -> np.ndarray:
    """(3, 3, K) covariances of the estimated h, b and a of each class."""
    rows = _ClassRows(rule, weights, shares, influence, margins)
    before, after = Blocks(source).total(rows.source), Blocks(target).total(rows.target)
    n, m, counts = source.summary.size, target.summary.size, source.summary.class_counts
    extra, prior = weights @ before["e"] / n, weights * counts / n
    seen = counts > 0
    through = [
        (sums - counts[:, None] * mean)[seen] / (n * scale)
        for sums, mean in ((before["e"], extra), (np.diag(counts), prior))
    ]
    if influence is None:
        through = [one[:0] for one in through]
    zero = np.zeros((1, len(counts)))
    first = {
        "h": np.vstack([zero, -extra[None], through[0]]),
        "a": np.vstack([zero, -prior[None], through[1]]),
    }
    second = {
        "h": np.vstack([-after["hit"][None] / m, through[0]]),
        "b": np.vstack([-after["predicted"][None] / m, 0 * through[0]]),
        "a": np.vstack([zero, through[1]]),
    }
    after = _with_zeros(after, "a", len(counts))
    found = np.zeros((3, 3, len(counts)))
    names = ("h", "b", "a")
    for k, one in enumerate(names):
        for j, other in enumerate(names[k:], k):
            value = combine_products(after, one, second[one], other, second[other]) / m**2
            if one in first and other in first:
                value += combine_products(before, one, first[one], other, first[other]) / n**2
            found[k, j] = found[j, k] = value
    return found


def _with_zeros(sums: Tally, name: str, K: int) -> Tally:
    """Sums with a further column that is 0 for every row."""
    more = {"u" + name: np.zeros((len(sums["uu"]), K)), name + name: np.zeros(K)}
    crossed = {one + name: np.zeros(K) for one in ("h", "b")}
    return Tally(**sums, **more, **crossed)


def ratio_of(function: Any) -> str | None:
    """The ratio of which a metric is the plain average over the classes, if it is biased; or None.

    Recall is not: hits and actual rows of a class have errors in proportion. Those of specificity
    and NPV have large denominators.
    """
    macro = isinstance(function, ClassRatio) and function.average == "macro"
    return function.name if macro and function.name in BIASED else None


def average_bias(name: str, shares: ClassShares, covariance: np.ndarray) -> float:
    """By how much the average of a ratio over the classes is too large."""
    top, bottom = (np.asarray(one, dtype=float) for one in RATIOS[name])
    whole = shares.stacked
    above, below = top @ whole, bottom @ whole
    spread = np.einsum("i,ijk,j->k", bottom[:3], covariance, bottom[:3])
    joint = np.einsum("i,ijk,j->k", top[:3], covariance, bottom[:3])
    used = shares.occurring & (below > 0)
    ratio = np.divide(above, below, out=np.zeros(len(below)), where=used)
    size = np.where(used, below**2 + spread, 1.0)
    return float(((ratio * spread - joint) / size)[used].sum()) / max(int(used.sum()), 1)
