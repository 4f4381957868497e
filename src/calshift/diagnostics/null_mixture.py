"""The most likely mixture under label shift, by EM.

docs/mathematics.md, "Is it label shift at all?".
"""

from __future__ import annotations

import numpy as np

EM_STEPS, SETTLED = 300, 1e-4  # at most, and the sum of changes of the shares at which they end
ADDED = 0.05  # rows a class: without them, cells with few rows are missing from the bootstrap
LARGE, SPARSE = 200_000, 0.1  # counts, and share of non-zeros, that make sparse products faster


def likeliest_mixture(source: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A (cells, S) and q (S,) of about the largest likelihood of both tables under label shift.

    EM, from columns to which a twentieth of a row is added, distributed as both samples together:
    a class may have target rows in cells where it has no source rows.
    """
    n, pooled = source.sum(axis=0), source.sum(axis=1) + target
    added = ADDED / pooled.sum() * pooled
    sparse = source.size > LARGE and np.count_nonzero(source) < SPARSE * source.size
    rows = (SparseRows if sparse else DenseRows)(source, added)
    whole, least = target.sum(), np.finfo(float).tiny
    q = n / n.sum()
    unit = q / (n + ADDED)
    for _ in range(EM_STEPS):
        ratio = target / np.maximum(rows.mixed(unit), least)
        gained = unit * rows.summed(ratio)  # target rows by class
        rows.update(ratio, unit)
        q, before = gained / whole, q
        size = n + gained
        unit = q / size
        if np.abs(q - before).sum() < SETTLED:
            break
    return rows.table / size, q


class DenseRows:
    """Rows of both samples by cell and class: those of the source, and shares of the target's."""

    def __init__(self, source: np.ndarray, added: np.ndarray) -> None:
        self.source = source
        self.table = source + added[:, None]

    def mixed(self, unit: np.ndarray) -> np.ndarray:
        """(cells,) sums over classes."""
        return np.asarray(self.table.dot(unit))

    def summed(self, ratio: np.ndarray) -> np.ndarray:
        """(S,) sums over cells."""
        return np.asarray(ratio.dot(self.table))

    def update(self, ratio: np.ndarray, unit: np.ndarray) -> None:
        """The source's rows, and those before times ratio and unit."""
        self.table *= ratio[:, None]
        self.table *= unit
        self.table += self.source


class SparseRows:
    """The same as the source's non-zeros and a matrix of rank one.

    What was added to the source at first stays a matrix of rank one: it is only multiplied.
    """

    def __init__(self, source: np.ndarray, added: np.ndarray) -> None:
        from scipy.sparse import csr_array  # late: importing calshift must be fast

        self.source = csr_array(source)
        self.rows = self.source.copy()
        self.columns = self.rows.T  # of the same numbers
        self.cell = np.repeat(np.arange(len(source)), np.diff(self.source.indptr))
        self.left, self.right = added, np.ones(source.shape[1])

    def mixed(self, unit: np.ndarray) -> np.ndarray:
        """(cells,) sums over classes."""
        return np.asarray(self.rows @ unit + self.left * (self.right @ unit))

    def summed(self, ratio: np.ndarray) -> np.ndarray:
        """(S,) sums over cells."""
        return np.asarray(self.columns @ ratio + self.right * (self.left @ ratio))

    def update(self, ratio: np.ndarray, unit: np.ndarray) -> None:
        """The source's rows, and those before times ratio and unit."""
        rows, mean = self.rows, float(unit.max())
        rows.data *= ratio[self.cell]
        rows.data *= unit[rows.indices]
        rows.data += self.source.data
        self.left, self.right = self.left * (ratio * mean), self.right * (unit / mean)

    @property
    def table(self) -> np.ndarray:
        """(cells, S)"""
        return np.asarray(self.rows.toarray() + np.outer(self.left, self.right))
