"""Average precision: the mean of the precision at the scores of the rows of a class.

With P(s) and A(s) the shares of all rows with a score of at least s, of the class and of any,

    AP = (1 / q) integral of P(s) / A(s) over the rows of the class,        q: their share

Adding a row of score t changes it, to first order, by

    1{of the class} [P(t) / A(t) + sum_{s <= t} 1 / A(s) - AP] / q - sum_{s <= t} P(s) / A(s)^2 / q

where sums are over rows of the class. Equal scores are one threshold, as in scikit-learn.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from calshift._core.frozen import Frozen
from calshift._core.score_grid import cell_of
from calshift.metrics.curves.ranking import ScoreRanks, ranked_score
from calshift.metrics.row_scores import DecidedRows, RowScore


@dataclass(frozen=True, eq=False)
class PrecisionTerm(Frozen, RowScore):
    """The influence of rows on the average precision of a class."""

    label: int
    ranks: ScoreRanks

    @cached_property
    def value(self) -> float:
        """AP."""
        hits, alarms = self._upwards
        precision = hits / np.where(alarms > 0, alarms, 1.0)
        return float(self.ranks.inside @ precision)

    def at(self, rows: DecidedRows, y: np.ndarray) -> np.ndarray:
        """(n,) the part that depends on the label."""
        return np.asarray(np.where(y == self.label, self._parts(rows)[0], 0.0))

    def expected(self, rows: DecidedRows, v: np.ndarray) -> np.ndarray:
        """(n,) sum over labels of v times that."""
        return np.asarray(v[:, self.label] * self._parts(rows)[0])

    def alone(self, rows: DecidedRows) -> np.ndarray:
        """(n,) the part that does not."""
        return np.asarray(self._parts(rows)[1])

    def _parts(self, rows: DecidedRows) -> np.ndarray:
        """(2, n) of a row of the class, and of any row; kept with the rows."""
        if id(self) not in rows.kept:
            rows.kept[id(self)] = self._look_up(rows)
        return rows.kept[id(self)]

    def _look_up(self, rows: DecidedRows) -> np.ndarray:
        q, scores = self.ranks.prior, self.ranks.scores
        if scores is None:
            place = cell_of(np.ascontiguousarray(rows.p[:, self.label]))
            last = place + 1
        else:
            score = ranked_score(rows.batch, self.label)
            place = np.searchsorted(scores, score, "left")
            last = np.searchsorted(scores, score, "right")
        hits, alarms = (np.append(one, 0.0)[place] for one in self._upwards)
        precision = np.divide(hits, alarms, out=np.ones(len(hits)), where=alarms > 0)
        first, second = (one[last] for one in self._below)
        return np.stack([(precision + first - self.value) / q, -second / q])

    @cached_property
    def _upwards(self) -> tuple[np.ndarray, np.ndarray]:
        """(G,) P and A at each score."""
        q = self.ranks.prior
        mass = q * self.ranks.inside, (1 - q) * self.ranks.outside
        hits, others = (np.cumsum(one[::-1])[::-1] for one in mass)
        return hits, hits + others

    @cached_property
    def _below(self) -> tuple[np.ndarray, np.ndarray]:
        """(G + 1,) sums over rows of the class of 1 / A and P / A^2, up to each place."""
        hits, alarms = self._upwards
        inside = self.ranks.prior * self.ranks.inside
        each = np.divide(inside, alarms, out=np.zeros(len(inside)), where=alarms > 0)
        share = np.divide(hits, alarms, out=np.zeros(len(inside)), where=alarms > 0)
        return tuple(np.append(0.0, np.cumsum(one)) for one in (each, each * share))  # type: ignore[return-value]
