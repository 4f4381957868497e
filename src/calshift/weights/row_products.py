"""Products of influence functions, summed over rows, from those of the features that they use.

An influence function is linear in features of a row but for a constant, phi = sum_k A_k x_k + c, the
constant of a source row being that of its label. So sum phi psi' follows for all functions of the
same features from the sums of x_k x_l', and of x_k by label: one pass, and no row of phi is formed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from calshift._core.addable import Tally
from calshift._core.frozen import Frozen
from calshift._core.linalg import sum_groups
from calshift._core.predictions import Predictions
from calshift.engines.base import Engine

Features = Callable[[Predictions], np.ndarray]  # batch -> (rows, L), not to be written to


@dataclass(frozen=True, eq=False)
class LinearTerms(Frozen):
    """phi = sum_k A_k x_k + c.

    Attributes
    ----------
    features : x_k
    matrices : A_k, (S, L_k)
    constant : c, (labels, S) by label of a source row, or (1, S) for all rows
    """

    features: tuple[Features, ...]
    matrices: tuple[np.ndarray, ...]
    constant: np.ndarray

    def evaluate(self, batch: Predictions, code: np.ndarray | None = None) -> np.ndarray:
        """(rows, S) phi, from the places of the labels among the constants."""
        total = self.constant[code] if code is not None else np.zeros((len(batch), 1))
        total = total if code is not None else total + self.constant
        for feature, matrix in zip(self.features, self.matrices, strict=True):
            total += feature(batch) @ matrix.T
        return np.asarray(total)

    def times(self, factor: np.ndarray | float) -> LinearTerms:
        """The terms of factor * phi, factor (S,) or a number."""
        by_row = np.broadcast_to(factor, self.constant.shape[1])[:, None]
        matrices = tuple(by_row * matrix for matrix in self.matrices)
        return LinearTerms(self.features, matrices, self.constant * factor)

    def mapped(self, matrix: np.ndarray) -> LinearTerms:
        """The terms of matrix' phi, matrix (S, M)."""
        matrices = tuple(matrix.T @ one for one in self.matrices)
        return LinearTerms(self.features, matrices, self.constant @ matrix)

    def __add__(self, other: LinearTerms) -> LinearTerms:
        """The terms of the sum."""
        found = dict(zip(map(id, self.features), self.matrices, strict=True))
        for feature, matrix in zip(other.features, other.matrices, strict=True):
            found[id(feature)] = found.get(id(feature), 0) + matrix
        features = {id(one): one for one in (*self.features, *other.features)}
        constant = self.constant + other.constant
        return LinearTerms(tuple(features.values()), tuple(found.values()), constant)


@dataclass(frozen=True)
class RowProducts:
    """Sums over rows of products of features, and of the features themselves.

    Attributes
    ----------
    rows : (labels,) sum of the rows' weights, by label of the source or in all
    sums : by feature, (labels, L)
    squares : by pair of features, (L, M)
    features : whose identities are the keys
    """

    rows: np.ndarray
    sums: dict[int, np.ndarray]
    squares: dict[tuple[int, int], np.ndarray]
    features: tuple[Features, ...]

    def product(self, first: LinearTerms, second: LinearTerms) -> np.ndarray:
        """(S, T) sum of phi psi'."""
        c, d = first.constant, second.constant
        total = c.T @ (self.rows[:, None] * d)
        for y, B in zip(second.features, second.matrices, strict=True):
            total += (c.T @ self.sums[id(y)]) @ B.T
        for x, A in zip(first.features, first.matrices, strict=True):
            inner = self.sums[id(x)].T @ d
            for y, B in zip(second.features, second.matrices, strict=True):
                inner = inner + self.pair(x, y) @ B.T
            total += A @ inner
        return np.asarray(total)

    def lengths(self, terms: LinearTerms) -> np.ndarray:
        """(S,) sum of phi^2."""
        c = terms.constant
        total = self.rows @ c**2
        for x, A in zip(terms.features, terms.matrices, strict=True):
            inner = 2 * (c.T @ self.sums[id(x)])
            for y, B in zip(terms.features, terms.matrices, strict=True):
                inner += B @ self.pair(y, x)
            total += np.einsum("sl,sl->s", A, inner)
        return np.asarray(total)

    def pair(self, x: Features, y: Features) -> np.ndarray:
        """Sum of x y'."""
        known = self.squares.get((id(x), id(y)))
        return self.squares[id(y), id(x)].T if known is None else known


def sum_products(
    engine: Engine,
    pairs: Iterable[tuple[Features, Features]],
    seen: np.ndarray | None = None,
    known: RowProducts | None = None,
) -> RowProducts:
    """Products of these pairs of features over all rows, in one pass; none if all are known.

    With ``seen``, the classes of a source, sums are by label, and a row of weight below 1 counts by
    its square; otherwise rows count by their weights.
    """
    before = RowProducts(np.zeros(0), {}, {}, ()) if known is None else known
    there = before.squares.keys()
    pairs = [(x, y) for x, y in pairs if not {(id(x), id(y)), (id(y), id(x))} & there]
    if known is not None and not pairs:
        return known
    features = {id(one): one for pair in pairs for one in pair}
    keys, kept = tuple(features), tuple(features.values())
    which = tuple(dict.fromkeys((keys.index(id(x)), keys.index(id(y))) for x, y in pairs))
    rows, sums, squares = engine.total(_Products(kept, which, seen)).values()
    return RowProducts(
        rows,
        before.sums | dict(zip(keys, sums.values(), strict=True)),
        before.squares | {(keys[k], keys[j]): squares[i] for i, (k, j) in enumerate(which)},
        before.features + kept,
    )


@dataclass(frozen=True)
class _Products:
    """Summand: rows, sums and products of features."""

    features: tuple[Features, ...]
    pairs: tuple[tuple[int, int], ...]
    seen: np.ndarray | None

    def __call__(self, batch: Predictions) -> Tally:
        code, labels, f = np.zeros(len(batch), np.intp), 1, batch.sample_weight
        if self.seen is not None:
            code, labels = batch.codes(self.seen), int(self.seen.sum())
            f = None if f is None else batch.squared_frequency
        root = None if f is None else np.sqrt(f)
        x = [one(batch) if root is None else one(batch) * root[:, None] for one in self.features]
        sums = Tally(enumerate(self._sum(code, labels, one, root) for one in x))
        squares = Tally(enumerate(x[k].T @ x[j] for k, j in self.pairs))
        return Tally(rows=np.bincount(code, f, labels).astype(float), sums=sums, squares=squares)

    def _sum(
        self, code: np.ndarray, labels: int, x: np.ndarray, root: np.ndarray | None
    ) -> np.ndarray:
        if self.seen is None:
            return np.asarray((np.ones(len(x)) if root is None else root) @ x)[None]
        return sum_groups(code, x, labels, root)
