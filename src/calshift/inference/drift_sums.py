"""Sums over the target's rows for the sensitivity to drift. (docs/mathematics.md 8)

A row of scores p and label y, of a distribution outside label shift, changes estimate - error by
h - psi to first order. With g the fitted residuals, u the residuals and t the influence by way of
the class weights, all means over the events,

    norm 2:  h - psi = 2 g (g - u) + t         second order of the error: (u - g)^2
    norm 1:  h - psi = |d| - sign(g) u + t     and |u| in the place of sign(g) u for the least
"""

from __future__ import annotations

import numpy as np

from calshift._core.predictions import Predictions
from calshift.binning.placement import ScoreBlock
from calshift.compiled import fastest
from calshift.estimators.regression import sign
from calshift.inference.row_influence import InfluenceTables
from calshift.inference.signed_residuals import SignedResiduals
from calshift.results.drift import count_sizes


@fastest
def add_drift(
    score: np.ndarray, bins: np.ndarray, slope: np.ndarray, gap: np.ndarray, rows: np.ndarray
) -> None:
    """Add to ``rows`` (5, n): sums of h - psi and of second order, extremes of g, least |u - g|.

    Without a label of these events; ``slope`` and ``gap`` (E, B) are g and nothing for norm 2, and
    for norm 1 the sign of g and |d|.
    """
    for here, part in ScoreBlock(0, score, bins, slope.shape[1]).tiles():
        first, other, least, most, nearest = rows[:, here]
        g, near = part.at_bins(slope), part.score.astype(float)
        if gap.shape[1]:
            d = part.at_bins(gap)
            first += (d + g * near).sum(axis=0)
            other += (near - d).sum(axis=0)
        else:
            near += g
            first += 2 * np.einsum("en,en->n", g, near)
            other += np.einsum("en,en->n", near, near)
        np.minimum(least, g.min(axis=0), out=least)
        np.maximum(most, g.max(axis=0), out=most)
        np.minimum(nearest, near.min(axis=0), out=nearest)


@fastest
def find_changes(
    rows: np.ndarray, through: np.ndarray, up: float, down: float, absolute: bool, events: int
) -> np.ndarray:
    """(3, n) the largest change upwards, downwards, and of second order, from `add_drift`.

    ``through`` (n,) is the influence by way of the class weights, ``up`` and ``down`` its extremes
    over labels; ``absolute`` is for norm 1.
    """
    first, other, least, most, nearest = rows
    own = 1 - 2 * nearest  # of the label's event, beyond that of all others
    if absolute:
        found = first - least + through, other + own - through, 0 * own
    else:
        found = first - 2 * least + through, 2 * most - first - through, other + own
    changes = np.stack(found)
    changes[0] += up
    changes[1] += down
    changes /= events
    return changes


class DriftTerms:
    """Sums over events, for each row of a batch, and the extremes over its labels.

    A label changes u by 1 in at most one event; none where the label has no event of its own.
    """

    def __init__(
        self, batch: Predictions, tables: InfluenceTables, signs: SignedResiduals | None
    ) -> None:
        self.batch, self.tables, self.signs = batch, tables, signs
        edges, g = tables.locator.edges, tables.fits.value
        no_event = edges.events.count == 1 or len(edges.which) < edges.events.count
        none, nearest = (0.0, 0.5) if no_event else (np.inf, np.inf)
        self.rows = np.empty((5, len(batch)))
        self.rows[:] = np.array([0.0, 0.0, none, -none, nearest])[:, None]
        self.first, self.other, self.least, self.most, self.nearest = self.rows
        self.slope, self.gap = (g, g[:, :0]) if signs is None else (sign(g), signs.gap)

    def add(self, block: ScoreBlock) -> None:
        """Some more events."""
        here = block.events
        assert block.bins is not None
        add_drift(block.score, block.bins, self.slope[here], self.gap[here], self.rows)

    def histograms(self, phi: np.ndarray) -> np.ndarray:
        """(3, 2, C) of the largest change upwards, downwards, and of second order."""
        return count_sizes(self.largest(phi), self.batch.frequency)

    def largest(self, phi: np.ndarray) -> np.ndarray:
        """(3, n) of each row, with the label for which it is largest."""
        through, by_label = self._through_weights(phi)
        ends = by_label.max(), -by_label.min()
        events = len(self.tables.fits.value)
        return find_changes(self.rows, through, *ends, self.signs is not None, events)

    def _through_weights(self, phi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(n,) influence by way of the class weights, and (labels,) by that of known labels."""
        if not phi.shape[1]:
            return np.zeros(len(phi)), np.zeros(1)
        scaled = self.tables.scaled_weights
        by = self.tables.gradient_by_weight if self.signs is None else self.signs.by_weight
        whole = by.sum(axis=1)
        return phi @ whole * scaled.sizes[1], scaled.label_influence @ whole
