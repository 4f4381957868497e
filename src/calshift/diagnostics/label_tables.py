"""Sums over the labelled source by predicted class and label, in one pass."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from calshift._core.addable import Tally
from calshift._core.frozen import Frozen
from calshift._core.predictions import Predictions
from calshift.compiled import fastest
from calshift.engines import Blocks
from calshift.engines.base import Engine

MOST_CLASSES = 2000  # of a confusion matrix
STEPS, LARGEST_LOG_ODDS = 4096, 37.0  # of the scores of two classes


@dataclass(frozen=True, eq=False)
class LabelTables(Frozen):
    """Sums over the labelled source.

    Attributes
    ----------
    confusion : (K, K) rows by predicted class and label
    means, spreads : (K, K) mean and variance of the predictions of each class (row) by label
        (column), NaN for a label without rows; None if not asked for
    steps : (F, 2) rows by step of log-odds and label, for two classes; else None
    residuals : (2, K) sums of |1_y - p|^2 and of its square, by label; None if not asked for
    counts : (K,) rows by label
    share : effective rows a row, below 1 where sample weights are
    classes : names, or None
    """

    confusion: np.ndarray
    means: np.ndarray | None
    spreads: np.ndarray | None
    steps: np.ndarray | None
    residuals: np.ndarray | None
    counts: np.ndarray
    share: float
    classes: tuple[object, ...] | None


def tabulate_labels(source: Engine, *, means: bool, residuals: bool = True) -> LabelTables | None:
    """The tables, by a pass over the source; None for thousands of classes."""
    about = source.summary
    if about.n_classes > MOST_CLASSES:
        return None
    sums = Blocks(source).total(partial(_label_terms, means=means, residuals=residuals))
    counts = about.class_counts
    size = np.where(counts > 0, counts, np.nan)
    mean = sums["scores"] / size if means else None
    return LabelTables(
        sums["confusion"],
        mean,
        None if mean is None else np.maximum(sums["squares"] / size - mean**2, 0.0),
        sums.get("steps"),
        sums.get("residuals"),
        counts,
        about.effective_size / about.size,
        about.classes,
    )


def _label_terms(batch: Predictions, means: bool, residuals: bool) -> Tally:
    K, y, f = batch.n_classes, batch.labels, batch.sample_weight
    confusion = np.bincount(batch.predicted * K + y, f, K * K).reshape(K, K)
    sums = Tally(confusion=confusion.astype(float))
    if residuals:
        sums["residuals"] = sum_residuals(batch.matrix, y, batch.sample_weight)
    if means:
        sums |= _sums_of_predictions(batch)
    if K == 2:
        score = batch.p if batch.p.ndim == 1 else batch.p[:, 1]
        sums["steps"] = np.bincount(_step(score) * 2 + y, f, 2 * STEPS).reshape(-1, 2).astype(float)
    return sums


def _sums_of_predictions(batch: Predictions) -> dict[str, np.ndarray]:
    """(K, K) sums of the predictions of each class (row) over the rows of each label (column)."""
    from scipy.sparse import csr_array  # late: importing calshift must be fast

    n, p = len(batch), batch.matrix.astype(float, copy=False)
    hits = csr_array((batch.frequency, batch.labels, np.arange(n + 1)), shape=(n, batch.n_classes))
    return {"scores": np.asarray((hits.T @ p).T), "squares": np.asarray((hits.T @ p**2).T)}


@fastest
def sum_residuals(p: np.ndarray, y: np.ndarray, frequency: np.ndarray | None) -> np.ndarray:
    """(2, K) sums of |1_y - p|^2 and of its square over the rows of each label."""
    r = 1 - 2 * p[np.arange(len(p)), y].astype(float) + np.einsum("nk,nk->n", p, p, dtype=float)
    both = (r, r**2) if frequency is None else (r * frequency, r**2 * frequency)
    return np.stack([np.bincount(y, one, p.shape[1]) for one in both])


def _step(score: np.ndarray) -> np.ndarray:
    """The step of the log-odds of a score."""
    p = np.clip(score, 1e-16, 1 - 2**-53, dtype=float)
    share = (np.log(p) - np.log1p(-p)) / (2 * LARGEST_LOG_ODDS) + 0.5
    return np.asarray(np.clip((STEPS * share).astype(np.intp), 0, STEPS - 1))
