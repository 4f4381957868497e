"""Cholesky factors of positive definite matrices."""

from __future__ import annotations

import numpy as np


class Factor:
    """The Cholesky factor of a positive definite matrix."""

    def __init__(self, lower: np.ndarray) -> None:
        self.lower = lower

    @staticmethod
    def of(matrix: np.ndarray) -> Factor | None:
        """The factor of a matrix, which is overwritten; None if it is singular to rounding."""
        from scipy.linalg.lapack import dpotrf  # late: importing calshift must be fast

        lower, failed = dpotrf(matrix.T, lower=1, overwrite_a=1)
        return None if failed else Factor(lower)

    @property
    def log_determinant(self) -> float:
        """Of the matrix."""
        return 2 * float(np.log(np.diag(self.lower)).sum())

    def solve(self, right: np.ndarray) -> np.ndarray:
        """The inverse times a vector."""
        from scipy.linalg.lapack import dpotrs

        return np.asarray(dpotrs(self.lower, right, lower=1)[0])

    def inverse(self) -> np.ndarray:
        """The inverse of the matrix."""
        from scipy.linalg.lapack import dpotri

        half = dpotri(self.lower, lower=1)[0]
        found = half + half.T
        np.einsum("ii->i", found)[:] /= 2
        return np.asarray(found)
