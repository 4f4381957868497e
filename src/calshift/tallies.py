"""Sums over rows of how they moved the errors: the kernels of bias, variance and interval.

docs/mathematics.md section 8; `calshift.moves` has the moves themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from calshift.engines import Tally
from calshift.moves import Moves, Rows
from calshift.predictions import Predictions


@dataclass(frozen=True)
class Signs:
    """Mean |g| as a weighted mean of u sign(g) over the source.

    Attributes
    ----------
    mean : (E,) sum w u sign(g) / sum w
    mass : sum w
    by_weight : (S, E) how the mean moves with the class weights
    gap, mean_gap : (E, B) |d| freed of noise, and (E,) its mean over the target
    """

    mean: np.ndarray
    mass: float
    by_weight: np.ndarray
    gap: np.ndarray = field(default_factory=lambda: np.zeros(0))
    mean_gap: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @staticmethod
    def of(moves: Moves) -> Signs:
        """From the cells of the fits; the gaps come later."""
        K, seen = len(moves.weighting.values), moves.weighting.seen
        mass = float(moves.fits[0].cells.weight @ moves.fits[0].cells.rows)
        mean, slopes = [], []
        for fit in moves.fits:
            cells, sign = fit.cells, np.sign(fit.value[fit.cells.bin])
            mean.append(float(cells.weight @ (cells.residual * sign)) / mass)
            excess = cells.residual * sign - mean[-1] * cells.rows
            slopes.append(np.bincount(cells.label, excess, K)[seen] / mass)
        known = moves.weighting.influence is None
        by_weight = np.zeros((0, len(mean))) if known else np.stack(slopes, axis=1)
        return Signs(np.array(mean), mass, by_weight)

    def with_gaps(self, moves: Moves, gaps: list[np.ndarray]) -> Signs:
        """Together with |d| of each bin, freed of all noise."""
        mean = [fit.cells.share @ gap for fit, gap in zip(moves.fits, gaps, strict=True)]
        return replace(self, gap=moves.table(gaps), mean_gap=np.array(mean))


def source_noise(batch: Predictions, moves: Moves) -> Tally:
    """What estimated weights add to S: sums of N phi' and phi phi', N = w e / sqrt(1 - l).

    N phi' has a row for each bin of each event, so that phi is shortened where it is long.
    """
    return _noise(batch, moves, moves.rows(batch), moves.weighting.source_moves(batch))


def _noise(batch: Predictions, moves: Moves, rows: Rows, phi: np.ndarray) -> Tally:
    counted = phi * batch.squared_frequency[:, None]
    return Tally(
        cross=rows.sparse.T @ moves.shortened(counted),
        square=counted.T @ phi,
        phi_by_label=_by_label(batch, moves, phi),
    )


def target_noise(batch: Predictions, moves: Moves) -> np.ndarray:
    """Sum of phi phi' over the target."""
    phi = moves.weighting.target_moves(batch)
    return np.asarray((phi * batch.squared_frequency[:, None]).T @ phi)


def source_tally(batch: Predictions, moves: Moves, signs: Signs | None) -> Tally:
    """Noise, S in some directions, and the moves of |a|^2; with signs also those of mean |g|."""
    rows, phi = moves.rows(batch), moves.weighting.source_moves(batch)
    g = moves.value.ravel()[rows.where]
    x = rows.sparse @ moves.sketch + phi @ moves.sketch_by_weight
    moved = rows.left_out * moves.slope.ravel()[rows.where] + phi @ moves.slope_by_weight
    if moves.labelled:
        moved += (g**2 - moves.plug) / moves.weighting.sizes[1]
    tally = Tally(
        whole=x.T @ (x * batch.squared_frequency[:, None]),
        whole_by_label=_by_label(batch, moves, x),
        squared=_moved(batch, moves, moved),
        **_noise(batch, moves, rows, phi),
    )
    if signs is not None:
        tally.update(_absolute(batch, moves, rows, phi, signs))
    return tally


def _absolute(
    batch: Predictions, moves: Moves, rows: Rows, phi: np.ndarray, signs: Signs
) -> dict[str, Any]:
    """Mean of u with the signs of left-out fits, and the moves of that with all signs."""
    g = moves.value.ravel()[rows.where]
    others = np.sign(g - (1 - rows.slack) / rows.slack * rows.excess)  # without the row itself
    least = batch.frequency @ (rows.weight * rows.residual * others) / signs.mass
    moved = rows.weight * (rows.residual * np.sign(g) - signs.mean) / signs.mass
    moved += phi @ signs.by_weight  # u sign(g) varies with |g| too: labelled rows need no more
    return {"least": least, "absolute": _moved(batch, moves, moved)}


def target_tally(batch: Predictions, moves: Moves, signs: Signs | None) -> Tally:
    """The target's moves of |a|^2, and with signs those of mean |g|."""
    where, phi = moves.located(batch), moves.weighting.target_moves(batch)
    m = moves.weighting.sizes[1]
    moved = (moves.value.ravel()[where] ** 2 - moves.plug) / m + phi @ moves.slope_by_weight
    tally = Tally(squared=_moved(batch, moves, moved, labelled=False))
    if signs is not None:
        apart = (signs.gap.ravel()[where] - signs.mean_gap) / m + phi @ signs.by_weight
        tally["absolute"] = _moved(batch, moves, apart, labelled=False)
    return tally


def _moved(batch: Predictions, moves: Moves, moved: np.ndarray, *, labelled: bool = True) -> Tally:
    """Squares of the moves of each event, and the moves of their mean, row by row."""
    count = batch.squared_frequency
    return Tally(
        variance=count @ moved**2,
        rows=[moved.mean(axis=1) * np.sqrt(count)],
        by_label=_by_label(batch, moves, moved) if labelled else 0.0,
    )


def _by_label(batch: Predictions, moves: Moves, values: np.ndarray) -> Any:
    """(K, ...) rows of values summed by label, 0 unless class counts were fixed."""
    if moves.counts is None:
        return 0.0
    from scipy.sparse import csr_matrix

    n, K = len(batch), len(moves.counts)
    one_hot = csr_matrix((batch.frequency, batch.labels, np.arange(n + 1)), (n, K))
    return one_hot.T @ values
