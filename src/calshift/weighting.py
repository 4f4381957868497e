"""Class weights as the fits use them, and by how much each row moved them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calshift.influence import WeightInfluence
from calshift.predictions import Predictions


@dataclass(frozen=True)
class Weighting:
    """Class weights as the fits use them (largest 1), and how each row moved them."""

    values: np.ndarray  # (K,), 0 for classes that are left out
    seen: np.ndarray  # (K,) bool
    scale: float  # what the weights were divided by
    influence: WeightInfluence | None
    sizes: tuple[float, float]  # n, m

    @staticmethod
    def of(
        class_weights: np.ndarray, influence: WeightInfluence | None, sizes: tuple[float, float]
    ) -> Weighting:
        """From weights with NaN for classes that are left out."""
        seen = ~np.isnan(class_weights)
        values = np.where(seen, class_weights, 0.0)
        scale = float(values.max())
        return Weighting(values / scale, seen, scale, influence, sizes)

    def source_moves(self, batch: Predictions) -> np.ndarray:
        """(rows, S) by how much each source row moved the weights; (rows, 0) if they are given."""
        if self.influence is None:
            return np.zeros((len(batch), 0))
        return np.asarray(self.influence.source(batch) / (self.scale * self.sizes[0]))

    @property
    def outside_moves(self) -> np.ndarray:
        """(rows, S) by how much observations of neither sample moved them; (0, 0) if given."""
        if self.influence is None:
            return np.zeros((0, 0))
        return np.asarray(self.influence.outside / self.scale)

    def target_moves(self, batch: Predictions) -> np.ndarray:
        """(rows, S) by how much each target row moved the weights; (rows, 0) if they are given."""
        if self.influence is None:
            return np.zeros((len(batch), 0))
        return np.asarray(self.influence.target(batch) / (self.scale * self.sizes[1]))
