"""How far metrics can be off if a share of the target comes from outside label shift.

A row of another distribution, with scores x and label y, changes estimate - metric by h - psi to
first order, with ``h = sum_c v_c psi(x, c) + E + phi D`` as in metrics/products.py. The largest and
smallest values over labels bound it; docs/mathematics.md 8.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calshift._core.frozen import Frozen
from calshift._core.predictions import Predictions
from calshift.engines import Blocks
from calshift.engines.base import Engine
from calshift.metrics.products import TargetRows
from calshift.metrics.row_scores import DecidedRows
from calshift.results.drift import DriftInfluence, count_sizes


@dataclass(frozen=True, eq=False)
class _DriftSizes(Frozen):
    """Summand: (M, 3, 2, C) rows by the size of the largest change up, and down."""

    rows: TargetRows
    extra: np.ndarray  # (M,) E
    by_weight: np.ndarray  # (S, M) D

    def __call__(self, batch: Predictions) -> np.ndarray:
        _, design = self.rows.columns(batch)
        through = self.extra + design[:, 1:] @ self.by_weight
        rows, v = DecidedRows(batch, self.rows.rule), self.rows.shares(batch)
        found = []
        for m, term in enumerate(self.rows.shifted):
            h = term.expected(rows, v) + through[:, m]
            labels = range(batch.n_classes)
            psi = [term.at(rows, np.full(len(rows), label)) for label in labels]
            up, down = h - np.min(psi, axis=0), np.max(psi, axis=0) - h
            found.append(count_sizes(np.stack([up, down, 0 * up]), batch.frequency))
        return np.stack(found)


def drift_influence(
    target: Engine, rows: TargetRows, extra: np.ndarray, by_weight: np.ndarray
) -> list[DriftInfluence]:
    """Of each metric."""
    found = Blocks(target).total(_DriftSizes(rows, extra, by_weight))
    return [DriftInfluence.of(one) for one in found]
