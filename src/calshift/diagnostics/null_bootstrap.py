"""P-values of J and of its contrast by the parametric bootstrap.

docs/mathematics.md, "Is it label shift at all?".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calshift.diagnostics.cell_tables import Tables, fit_tables, sample_tables

STOP = 20  # draws as extreme as the data, at which the bootstrap ends
MOST_DRAWN = 1_000_000  # counts drawn at once
DRAWN_AT_ONCE = 50  # pairs of tables: under label shift, few more are needed


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
    tails: np.ndarray,
    null: tuple[np.ndarray, np.ndarray],
    draws: int,
    rng: np.random.Generator,
) -> NullDraws:
    """The p-values of tails (2,) of the data.

    (1 + those as extreme) / (1 + draws); or 20 / l, if the l-th is the 20th as extreme (Besag and
    Clifford's sequential test: a p-value of the same validity). No more are drawn when this is so
    for both. Cells are merged anew in every draw, because those of the data were merged by their
    counts.
    """
    draw = sample_tables(tables, *null)
    at_once = int(np.clip(MOST_DRAWN // tables.source.size, 1, DRAWN_AT_ONCE))
    found, J, df = tails[:, None], 0.0, 0
    while found.shape[1] <= draws and np.sum(found[:, 1:] <= found[:, :1], axis=1).min() < STOP:
        count = min(at_once, draws + 1 - found.shape[1])
        fit = fit_tables(tables, *draw(count, rng), null[1]).mixture
        found = np.hstack([found, fit.tails])
        J, df = J + float(fit.statistic[fit.df > 0].sum()), df + int(fit.df.sum())
    whole, directed = (_sequential_p_value(one[1:] <= one[0], draws) for one in found)
    p_values = whole[0], directed[0], _joint_p_value(found)
    return NullDraws(p_values, max(whole[1], directed[1]), J / df if df else 1.0)


def _joint_p_value(tails: np.ndarray) -> float:
    """The p-value of the smaller rank of the data, in the first column, among the draws.

    Ranks, because a tail of J may be far smaller than its p-value.
    """
    ranks = [np.searchsorted(np.sort(one), one, side="right") for one in tails]
    least = np.minimum(*ranks)
    return float(np.mean(least <= least[0]))


def _sequential_p_value(extreme: np.ndarray, draws: int) -> tuple[float, int]:
    """The p-value, and how many of the draws it takes."""
    if extreme.sum() >= STOP:
        taken = int(np.flatnonzero(extreme)[STOP - 1]) + 1
        return STOP / taken, taken
    return (1 + int(extreme.sum())) / (1 + draws), draws
