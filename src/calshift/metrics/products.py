"""Means of the terms of all metrics over both samples, and their variances.

The influence of a source row on a metric is ``W (e - E) + phi D``, that of a target row
``a - mean a + phi D``, with

    e = psi - sum_y v_y psi(x, y)     W: class weight of the row, of mean 1; E: weighted mean of e
    a = the part of psi without label + sum_y v_y psi(x, y)
    D_y = sum over rows of class y of (e - E) / n, phi: influence of the row on the class weights

Both are linear in (1, W, phi) and (1, phi), so that one pass sums all products.
docs/mathematics.md section 13.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calshift._core.addable import Tally
from calshift._core.frozen import Frozen
from calshift._core.predictions import Predictions
from calshift.metrics.decision_rule import DecisionRule
from calshift.metrics.efficient_shares import EfficientShares
from calshift.metrics.row_scores import DecidedRows


@dataclass(frozen=True, eq=False)
class SourceRows(Frozen):
    """What a source row contributes.

    ``columns`` has e, W e and the terms of the metrics of the source itself, (n, M) each, and the
    design (1, W, phi).
    """

    rule: DecisionRule
    shifted: Sequence[Any]  # terms of the metrics on the target
    own: Sequence[Any]  # of those on the source
    weights: np.ndarray  # (K,) of mean 1
    shares: EfficientShares
    influence: Any  # of the class weights, or None

    def columns(self, batch: Predictions) -> tuple[np.ndarray, ...]:
        """e, W e, own, and the design."""
        rows, y = DecidedRows(batch, self.rule), batch.labels
        v, W = self.shares(batch), self.weights[y]
        e = np.stack([one.at(rows, y) - one.expected(rows, v) for one in self.shifted], axis=1)
        own = np.stack([one.at(rows, y) + one.alone(rows) for one in self.own], axis=1)
        design = [np.ones((len(batch), 1)), W[:, None]]
        if self.influence is not None:
            design.append(self.influence.source(batch))
        return e, W[:, None] * e, own, np.concatenate(design, axis=1)

    def __call__(self, batch: Predictions) -> Tally:
        """Summand: means by label, and products."""
        e, weighted, own, design = self.columns(batch)
        f, K = batch.frequency, batch.n_classes
        by_label = [np.bincount(batch.labels, f * one, K) for one in e.T]
        sums = Tally(e=np.stack(by_label, axis=1), own=f @ own)
        return Tally(**sums, **sum_products(batch, design, {"t": weighted, "s": own}))


@dataclass(frozen=True, eq=False)
class TargetRows(Frozen):
    """What a target row contributes: a, and the design (1, phi)."""

    rule: DecisionRule
    shifted: Sequence[Any]
    shares: EfficientShares
    influence: Any

    def columns(self, batch: Predictions) -> tuple[np.ndarray, np.ndarray]:
        """a, and the design."""
        rows, v = DecidedRows(batch, self.rule), self.shares(batch)
        a = np.stack([one.alone(rows) + one.expected(rows, v) for one in self.shifted], axis=1)
        design = np.ones((len(batch), 1))
        if self.influence is not None:
            design = np.concatenate([design, self.influence.target(batch)], axis=1)
        return a, design

    def __call__(self, batch: Predictions) -> Tally:
        """Summand: means, and products."""
        a, design = self.columns(batch)
        return Tally(a=batch.frequency @ a, **sum_products(batch, design, {"t": a}))


@dataclass(frozen=True, eq=False)
class LabelledRows(Frozen):
    """What a labelled row contributes to the metrics of its own sample."""

    rule: DecisionRule
    own: Sequence[Any]

    def columns(self, batch: Predictions) -> tuple[np.ndarray, np.ndarray]:
        """The terms, and the design (1,)."""
        rows, y = DecidedRows(batch, self.rule), batch.labels
        own = np.stack([one.at(rows, y) + one.alone(rows) for one in self.own], axis=1)
        return own, np.ones((len(batch), 1))

    def __call__(self, batch: Predictions) -> Tally:
        """Summand: means, and products."""
        own, design = self.columns(batch)
        return Tally(own=batch.frequency @ own, **sum_products(batch, design, {"s": own}))


def sum_products(batch: Predictions, design: np.ndarray, columns: dict[str, np.ndarray]) -> Tally:
    """Products of the design with itself and the columns, and of the columns of a metric."""
    r = batch.squared_frequency[:, None]
    scaled = design * r
    found = Tally(uu=scaled.T @ design)
    names = list(columns)
    for k, one in enumerate(names):
        found["u" + one] = scaled.T @ columns[one]
        for other in names[k:]:
            both = np.einsum("nm,nm->m", columns[one] * r, columns[other])
            found[one + other] = both
    return found


def combine_products(
    sums: Tally, one: str, by_one: np.ndarray, other: str, by_other: np.ndarray
) -> np.ndarray:
    """(M,) sum over rows of (x + u . c)(y + u . d), from sums of the products.

    x and y are the columns called ``one`` and ``other``; c = by_one and d = by_other, (U, M).
    """
    crossed = np.einsum("um,um->m", by_one, sums["u" + other])
    crossed += np.einsum("um,um->m", by_other, sums["u" + one])
    return np.asarray(
        sums[one + other] + crossed + np.einsum("um,um->m", by_one, sums["uu"] @ by_other)
    )
