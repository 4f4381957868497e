"""Metrics to first order: each is a mean of terms of rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from calshift._core.addable import Tally
from calshift._core.frozen import Frozen
from calshift._core.predictions import Predictions
from calshift.engines import Blocks
from calshift.engines.base import Engine
from calshift.errors import InvalidInput
from calshift.metrics.catalogue import Metric
from calshift.metrics.class_counts import ROUNDING, ClassShares
from calshift.metrics.curves.calibration_line import CalibrationLine, LineTerm, fit_line
from calshift.metrics.curves.precision_curve import PrecisionTerm
from calshift.metrics.curves.ranking import RankTerm, ScoreRanks, rank_scores
from calshift.metrics.decision_rule import DecisionRule
from calshift.metrics.efficient_shares import EfficientShares
from calshift.metrics.row_scores import CellScore, Cost, DecidedRows, Margins, NoScore, RowScore

MOST_CLASSES = 2000  # of a confusion matrix


@dataclass(frozen=True)
class ExpectedRatioTerm(RowScore):
    """The derivative of the share of a class relative to its mean prediction."""

    label: int
    value: float
    mean: float

    def at(self, rows: DecidedRows, y: np.ndarray) -> np.ndarray:
        """(n,) for these labels."""
        return np.asarray((y == self.label) / self.mean)

    def expected(self, rows: DecidedRows, v: np.ndarray) -> np.ndarray:
        """(n,) 0: it depends on the label alone."""
        return np.zeros(len(rows))

    def alone(self, rows: DecidedRows) -> np.ndarray:
        """(n,) of the prediction."""
        return np.asarray(-self.value / self.mean * rows.p[:, self.label].astype(float))


@dataclass(frozen=True, eq=False)
class Linearised(Frozen):
    """A metric to first order.

    Attributes
    ----------
    term : of each row, up to a constant
    value : of a function of the confusion matrix or of areas; 0 for the mean of a score
    is_mean : whether the metric is the mean of the term
    shifts : whether the mean of the term is added to the value
    undefined : classes whose ratio counts as 0
    """

    term: RowScore | RankTerm
    value: float = 0.0
    is_mean: bool = False
    shifts: bool = False
    undefined: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class ClassTables(Frozen):
    """(K, K) shares by predicted and true class, (K,) class priors and mean predictions."""

    confusion: np.ndarray
    prior: np.ndarray
    mean: np.ndarray
    known: np.ndarray | None = None  # (K,) bool, classes with source rows; None for all

    def mean_of(self, score: RowScore) -> float | None:
        """The mean of a score of the cells, with which the confusion matrix agrees; else None."""
        if isinstance(score, CellScore):
            three = zip(
                (score.hits, score.predicted, score.actual), self.shares.stacked, strict=False
            )
            return float(sum(one @ share for one, share in three))
        return float((score.matrix * self.confusion).sum()) if isinstance(score, Cost) else None

    @property
    def margins(self) -> Margins:
        """Shares of predicted and actual classes."""
        return Margins(self.confusion.sum(axis=1), self.prior)

    @property
    def shares(self) -> ClassShares:
        """What metrics depend on."""
        predicted = self.confusion.sum(axis=1)
        return ClassShares.of(np.diag(self.confusion), predicted, self.prior, self.known)


def linearise(
    metrics: tuple[Metric, ...], tables: ClassTables | None, fitted: SourceFits
) -> list[Linearised]:
    """The metrics at these tables, ranks and lines."""
    return [_linearise(metric, tables, fitted) for metric in metrics]


def _linearise(metric: Metric, tables: ClassTables | None, fitted: SourceFits) -> Linearised:
    if metric.score is not None:
        value, score = None if tables is None else tables.mean_of(metric.score), metric.score
        if tables is not None and isinstance(score, CellScore | Cost):
            score = score.centred(tables.margins)
        return Linearised(score, value or 0.0, is_mean=True, shifts=value is None)
    if metric.areas:
        return _linearise_areas(metric, fitted.ranks)
    if metric.precision_of is not None:
        return _linearise_precision(metric.precision_of, fitted.ranks[metric.precision_of])
    if metric.line is not None:
        return _linearise_line(fitted.lines[metric.line])
    assert tables is not None
    if metric.ratio is not None:
        label = metric.ratio
        mean = float(tables.mean[label])
        if mean <= ROUNDING:
            return Linearised(ExpectedRatioTerm(label, 0.0, np.inf), 0.0, undefined=(label,))
        value = float(tables.prior[label]) / mean
        return Linearised(ExpectedRatioTerm(label, value, mean), value)
    assert metric.function is not None
    value, gradient, undefined = metric.function(tables.shares)
    term = CellScore(gradient[0], gradient[1], gradient[2], tables.margins)
    return Linearised(term, value, undefined=tuple(undefined.tolist()))


def _linearise_areas(metric: Metric, ranks: dict[int, ScoreRanks]) -> Linearised:
    """A mean of areas over the classes that exist."""
    known = [label for label in metric.areas if 0 < ranks[label].prior < 1]
    missing = tuple(label for label in metric.areas if label not in known)
    used = tuple(ranks[label] for label in known)
    prior = np.array([one.prior for one in used])
    share = prior / prior.sum() if metric.weighted else np.full(len(used), 1 / max(len(used), 1))
    value = float(share @ np.array([one.area for one in used]))
    term = RankTerm(tuple(known), used, share, metric.weighted, value, metric.n_classes)
    return Linearised(term, value, shifts=True, undefined=missing)


def _linearise_precision(label: int, ranks: ScoreRanks) -> Linearised:
    """The average precision of a class, 0 if it has no rows."""
    term = PrecisionTerm(label, ranks)
    if not 0 < ranks.prior < 1:
        return Linearised(NoScore(), undefined=(label,))
    return Linearised(term, term.value, shifts=True)


def _linearise_line(line: CalibrationLine) -> Linearised:
    """A slope or an intercept; of no number where the class is separable or absent."""
    if not line.converged:
        return Linearised(NoScore(), undefined=(line.label,))
    return Linearised(LineTerm(line), line.value, shifts=True)


def needs_tables(metrics: tuple[Metric, ...]) -> bool:
    """Whether any metric depends on the confusion matrix or on mean predictions."""
    return any(one.function is not None or one.ratio is not None for one in metrics)


@dataclass(frozen=True, eq=False)
class SourceFits(Frozen):
    """What metrics need of the source's rows, weighted by class: ranks by class, and lines."""

    ranks: dict[int, ScoreRanks]
    lines: dict[tuple[int, bool], CalibrationLine]

    @staticmethod
    def of(metrics: tuple[Metric, ...], source: Engine, weights: np.ndarray) -> SourceFits:
        """With class weights of mean 1."""
        ranked = {label for one in metrics for label in one.areas}
        ranked |= {one.precision_of for one in metrics if one.precision_of is not None}
        labels = tuple(sorted(ranked))
        ranks = rank_scores(source, labels, weights) if labels else []
        lines = {one.line for one in metrics if one.line is not None}
        blocks = Blocks(source)
        return SourceFits(
            dict(zip(labels, ranks, strict=True)),
            {line: fit_line(blocks, *line, weights) for line in sorted(lines)},
        )


def check_class_count(n_classes: int) -> None:
    """Refuse a confusion matrix of too many classes."""
    if n_classes > MOST_CLASSES:
        msg = (
            f"{n_classes:,} classes are too many for a confusion matrix (at most "
            f"{MOST_CLASSES:,}): ask for accuracy, log_loss, brier_score or top_5_accuracy"
        )
        raise InvalidInput(msg)


def tabulate_source(source: Engine, rule: DecisionRule) -> ClassTables:
    """Of labelled rows."""
    about = source.summary
    table = Blocks(source).total(partial(_confusion, rule)) / about.size
    return ClassTables(table, about.class_counts / about.size, about.mean_prediction)


def _confusion(rule: DecisionRule, batch: Predictions) -> np.ndarray:
    """Summand: (K, K) rows by predicted and true class."""
    K = batch.n_classes
    cells = rule(batch) * K + batch.labels
    return np.bincount(cells, batch.sample_weight, K * K).reshape(K, K).astype(float)


def tabulate_target(
    source: Engine,
    target: Engine,
    rule: DecisionRule,
    weights: np.ndarray,
    shares: EfficientShares,
    own: ClassTables,
) -> ClassTables:
    """Of the target, from labelled source rows with weights of mean 1 and unlabelled target rows.

    The shares of predicted classes are those of the target's rows, the class priors those of the
    weights; the efficient estimates of the cells are shifted to these margins.
    """
    n, m = source.summary.size, target.summary.size
    after = Blocks(target).total(partial(_shares_by_predicted, rule, shares))
    before = Blocks(source).total(partial(_weigh_by_label, rule, shares, weights))
    cells = after["shares"] / m + own.confusion * weights - before["shares"] / n
    prior = own.prior * weights
    table = shift_to_margins(cells, after["rows"] / m, prior)
    seen = source.summary.class_counts > 0
    known = None if seen.all() else seen
    return ClassTables(table, prior, target.summary.mean_prediction, known)


def _shares_by_predicted(
    rule: DecisionRule,
    shares: EfficientShares,
    batch: Predictions,
    weight: np.ndarray | None = None,
) -> Tally:
    """Summand: (K, K) shares v by predicted class, and (K,) rows."""
    from scipy.sparse import csr_array  # late: importing calshift must be fast

    predicted, f = rule(batch), batch.frequency
    f = f if weight is None else f * weight
    place = np.arange(len(batch) + 1)
    hits = csr_array((f, predicted, place), shape=(len(batch), batch.n_classes))
    rows = np.bincount(predicted, f, batch.n_classes)
    return Tally(shares=np.asarray(hits.T @ shares(batch)), rows=rows)


def _weigh_by_label(
    rule: DecisionRule, shares: EfficientShares, weights: np.ndarray, batch: Predictions
) -> Tally:
    """Summand: the same of labelled rows, weighted by label."""
    return _shares_by_predicted(rule, shares, batch, weights[batch.labels])


def shift_to_margins(table: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """The table with these sums of rows and columns; of two classes, without negatives.

    What a row lacks is divided among its cells by the columns, and the reverse: cells of rare
    classes are changed little.
    """
    by_row, by_column = rows - table.sum(axis=1), columns - table.sum(axis=0)
    both = np.outer(by_row, columns) + np.outer(rows, by_column)
    table = table + both - by_row.sum() * np.outer(rows, columns)
    if len(table) == 2:
        hit = np.clip(table[1, 1], max(0.0, rows[1] - columns[0]), min(rows[1], columns[1]))
        table = np.array([[columns[0] - rows[1] + hit, columns[1] - hit], [rows[1] - hit, hit]])
    return np.asarray(table)
