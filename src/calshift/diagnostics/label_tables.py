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
from calshift.engines.base import Engine, Summand
from calshift.engines.plan import plan

MOST_CLASSES = 2000  # of a confusion matrix
STEPS, LARGEST_LOG_ODDS = 4096, 37.0  # of the scores of two classes
BLOCK = 2**13  # scores whose log-odds are computed at once: their arrays stay in the cache


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
    rows = Blocks(source) if means else source  # these alone need arrays as large as the rows
    sums = rows.total(_label_sums(means, residuals))
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


def plan_label_tables(source: Engine, *, means: bool) -> None:
    """Sum the tables up along with the next pass over files or a Spark table."""
    if source.summary.n_classes <= MOST_CLASSES:
        plan(Blocks(source), _label_sums(means, residuals=True))


def _label_sums(means: bool, residuals: bool) -> Summand:
    return partial(_label_terms, means=means, residuals=residuals)


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

    n, K, y, p = len(batch), batch.n_classes, batch.labels, batch.matrix
    if K == 2:
        columns = p.T.astype(float, order="C")
        scores = _sum_by_two_labels(columns, y, batch.sample_weight)
        squares = np.square(columns, out=columns)
        return {"scores": scores, "squares": _sum_by_two_labels(squares, y, batch.sample_weight)}
    p = p.astype(float, copy=False)
    hits = csr_array((batch.frequency, y, np.arange(n + 1)), shape=(n, K)).T
    return {"scores": np.asarray((hits @ p).T), "squares": np.asarray((hits @ p**2).T)}


def _sum_by_two_labels(columns: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """(..., 2) sums of the columns (..., n) over the rows of each label."""
    whole = columns.sum(axis=-1) if weight is None else columns @ weight
    ones = columns @ (y.astype(float) if weight is None else y * weight)
    return np.stack([whole - ones, ones], axis=-1)


@fastest
def sum_residuals(p: np.ndarray, y: np.ndarray, frequency: np.ndarray | None) -> np.ndarray:
    """(2, K) sums of |1_y - p|^2 and of its square over the rows of each label."""
    r = 1 - 2 * p[np.arange(len(p)), y].astype(float) + np.einsum("nk,nk->n", p, p, dtype=float)
    both = (r, r**2) if frequency is None else (r * frequency, r**2 * frequency)
    return np.stack([np.bincount(y, one, p.shape[1]) for one in both])


def _step(score: np.ndarray) -> np.ndarray:
    """(n,) the step of the log-odds of a score."""
    steps = np.empty(len(score), np.intp)
    for start in range(0, len(score), BLOCK):
        here = slice(start, start + BLOCK)
        p = np.maximum(score[here], 1e-16, dtype=float)
        np.minimum(p, 1 - 2**-53, out=p)
        share = np.log(p)
        share -= np.log1p(np.negative(p, out=p), out=p)
        share /= 2 * LARGEST_LOG_ODDS
        share += 0.5
        share *= STEPS
        steps[here] = share  # from 0, as 1e-16 has log-odds above -37
    return np.minimum(steps, STEPS - 1, out=steps)
