"""Influence of each row on an estimate, for the difference of two."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from calshift._core.frozen import Frozen


@dataclass(frozen=True, eq=False)
class RowInfluence(Frozen):
    """Influence of each row on an error, for the covariance of two errors of the same rows.

    Attributes
    ----------
    source, target : (n,), and (m,) or None for an error with labels
    fingerprint : checksum of the source's labels and weights, which identifies the rows
    outside : influence of observations of neither sample
    """

    source: np.ndarray
    target: np.ndarray | None
    fingerprint: int = 0
    outside: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def has_same_rows(self, other: RowInfluence) -> bool:
        """Whether both are of the same rows, judged by labels and sizes."""
        same = self.fingerprint == other.fingerprint and self.source.shape == other.source.shape
        if self.target is None or other.target is None:
            return same
        return same and self.target.shape == other.target.shape

    @property
    def variance(self) -> float:
        """Of the error, to first order."""
        return self.with_other(self)

    def with_other(self, other: RowInfluence) -> float:
        """Covariance with an error of the same rows; a sample that one lacks is not shared."""
        shared = float(self.source @ other.source)
        if self.outside.shape == other.outside.shape:
            shared += float(self.outside @ other.outside)
        if self.target is None or other.target is None:
            return shared
        return shared + float(self.target @ other.target)
