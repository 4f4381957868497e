"""P-values of J and of its contrast by the parametric bootstrap.

docs/mathematics.md, "Is it label shift at all?".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calshift.diagnostics.cell_tables import Tables, fit_tables, sample_tables
from calshift.diagnostics.overidentification_test import CellMixture

STOP, LATEST_STOP = 10, 20  # draws as extreme as the data, at which the bootstrap ends
FIRST = 50, 100  # draws, by the size of the tables: under label shift, few more are needed
SMALL = 5000  # counts drawn first, where tables are small
MOST_DRAWN = 500_000  # counts drawn at once


@dataclass(frozen=True)
class NullDraws:
    """What tables drawn under label shift say of the data.

    Attributes
    ----------
    p_values : of J, of its contrast, and of the smaller of these two
    draws : made
    scale : mean of J over mean degrees of freedom: 1 where J is chi-square
    """

    p_values: tuple[float, float, float]
    draws: int
    scale: float


def draw_p_values(
    tables: Tables,
    fit: CellMixture,
    null: tuple[np.ndarray, np.ndarray],
    draws: int,
    rng: np.random.Generator,
    level: float,
) -> NullDraws:
    """The p-values of the data, whose nearest mixture is ``fit``.

    (1 + those as extreme) / (1 + draws); or s / l, if the l-th is the s-th as extreme (Besag and
    Clifford's sequential test: a p-value of the same validity). No more are drawn when this is so
    for both. Cells are merged anew in every draw, because those of the data were merged by their
    counts.
    """
    draw, stop, size = sample_tables(tables, *null), _stop_at(level, draws), tables.source.size
    found, J, df = fit.tails[:, :1], 0.0, 0
    count, most = int(np.clip(SMALL // size, *FIRST)), max(1, MOST_DRAWN // size)
    while found.shape[1] <= draws and np.sum(found[:, 1:] <= found[:, :1], axis=1).min() < stop:
        count = min(max(count, found.shape[1] - 1), most, draws + 1 - found.shape[1])
        one = fit_tables(tables, draw(count, rng), null[1], fit.shares[0] > 0).mixture
        found = np.hstack([found, one.tails])
        J, df = J + float(one.statistic[one.df > 0].sum()), df + int(one.df.sum())
    whole, directed = (_sequential_p_value(one[1:] <= one[0], draws, stop) for one in found)
    p_values = whole[0], directed[0], _joint_p_value(found)
    return NullDraws(p_values, max(whole[1], directed[1]), J / df if df else 1.0)


def _stop_at(level: float, draws: int) -> int:
    """How many extreme draws end the bootstrap.

    With so many of them, no number of further draws would make the p-value as low as the level,
    unless more than 20 are needed for that.
    """
    return int(np.clip(np.floor(level * (1 + draws)), STOP, LATEST_STOP))


def _joint_p_value(tails: np.ndarray) -> float:
    """The p-value of the smaller rank of the data, in the first column, among the draws.

    Ranks, because a tail of J may be far smaller than its p-value.
    """
    ranks = [np.searchsorted(np.sort(one), one, side="right") for one in tails]
    least = np.minimum(*ranks)
    return float(np.mean(least <= least[0]))


def _sequential_p_value(extreme: np.ndarray, draws: int, stop: int) -> tuple[float, int]:
    """The p-value, and how many of the draws it takes."""
    if np.count_nonzero(extreme) >= stop:
        taken = int(np.flatnonzero(extreme)[stop - 1]) + 1
        return stop / taken, taken
    return (1 + int(extreme.sum())) / (1 + draws), draws
