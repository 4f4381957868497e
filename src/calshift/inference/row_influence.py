"""How each row moves the fitted residuals of all events.

A source row moves the coefficients of an event's fit by x_i, a target row by x_j:

    x_i = V X w_i e_i / sqrt(1 - l_i) + Gam phi_i / n        x_j = Gam phi_j / m

phi is the influence on the class weights and Gam = V sum_i X e_i 1_{y_i}' the slope of the
coefficients in them. Lengths are taken in M. docs/mathematics.md section 8.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from calshift.binning.edges import BinEdges
from calshift.binning.placement import BinLocator
from calshift.estimators.regression import ResidualRegression, banded_product
from calshift.weights.influence import ScaledWeights

EXACT_WORK = 3e7  # rows times squared coordinates, up to which S of all events is kept whole
SKETCH = 8  # random directions: |S|^2 of 10 or more events within 2 to 5%
MOST_WEIGHTS = 256  # beyond which moves of the weights are shortened where they meet bins
SHORT = 64


@lru_cache(maxsize=1)
def _signs(E: int, R: int) -> np.ndarray:
    """(E, R, D) random signs, the same every time."""
    return 2.0 * np.random.default_rng(0).integers(0, 2, (E, R, SKETCH), np.int8) - 1.0


@dataclass(frozen=True)
class InfluenceTables:
    """The fits of E events, on which rows are laid.

    Attributes
    ----------
    edges, fits : of the events
    weighting : class weights and their influence
    places : where rows lie on the tables by event and bin
    labelled : whether the source stands for the target too
    rows : of the source, or its size if that is more
    counts : what each class of the source is worth in rows if that was fixed by design, else None
    by_label : (E, R, S) X' e by label of the classes seen; None if the weights are given
    """

    edges: BinEdges
    fits: ResidualRegression
    scaled_weights: ScaledWeights
    places: BinLocator
    labelled: bool
    rows: float
    counts: np.ndarray | None = None
    by_label: np.ndarray | None = None

    @cached_property
    def by_weight(self) -> np.ndarray:
        """(E, R, S) Gam, or (E, R, 0) if the weights are given."""
        if self.by_label is None:
            return np.zeros((*self.fits.coefficients.shape, 0))
        return self.fits.times(self.by_label)

    @cached_property
    def slope_by_weight(self) -> np.ndarray:
        """(S, E) 2 Gam' M alpha."""
        if self.by_label is None:
            return np.zeros((0, len(self.fits.coefficients)))
        pulled = banded_product(*self.fits.moments, self.fits.coefficients)
        return np.asarray(2 * np.einsum("ers,er->se", self.by_weight, pulled))

    @cached_property
    def exact(self) -> bool:
        """Whether S of all events together is kept whole, not sketched."""
        coordinates = float(self.fits.layout.count.sum())
        return self.rows * coordinates**2 <= EXACT_WORK

    @cached_property
    def alone(self) -> bool:
        """Whether there is but one event, which shares nothing."""
        return len(self.fits.coefficients) == 1

    @cached_property
    def directions(self) -> np.ndarray:
        """(E, R, D) unit vectors in which M = 1 if coordinates are few, else random signs."""
        return self._directed[0]

    @cached_property
    def turned(self) -> np.ndarray:
        """(E, R, D) V in these directions."""
        return self._directed[1]

    @cached_property
    def _directed(self) -> tuple[np.ndarray, np.ndarray]:
        count, width = self.fits.layout.count, self.fits.layout.width
        if not self.exact:
            return self.fits.directed(_signs(len(count), width))
        unit = np.zeros((len(count), width, int(count.sum())))
        event, knot = np.nonzero(np.arange(width) < count[:, None])
        unit[event, knot, np.arange(len(event))] = 1.0
        return self.fits.directed(unit)

    @cached_property
    def sketch(self) -> np.ndarray:
        """(E B, D) X V in these directions."""
        return np.asarray(self.fits.layout.design @ self.turned.reshape(-1, self.turned.shape[-1]))

    @cached_property
    def sketch_by_weight(self) -> np.ndarray:
        """(S, D) Gam in these directions."""
        if self.by_label is None:
            return np.zeros((0, self.directions.shape[2]))
        return np.asarray(np.einsum("ers,erd->sd", self.by_weight, self.directions))

    @cached_property
    def shortening(self) -> np.ndarray | None:
        """(S, D) random signs by which moves of many weights are shortened, or None for few.

        Products of shortened vectors have the right mean: s' t = E (r's)(r't).
        """
        S = self.by_weight.shape[2]
        if S <= MOST_WEIGHTS:
            return None
        signs = np.random.default_rng(1).choice([-1.0, 1.0], (S, SHORT))
        return np.asarray(signs / np.sqrt(SHORT))

    def shortened(self, moves: np.ndarray) -> np.ndarray:
        """(..., S) moves of the weights in fewer columns, if they are many."""
        return moves if self.shortening is None else np.asarray(moves @ self.shortening)
