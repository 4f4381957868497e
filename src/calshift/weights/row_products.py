"""Products of influence functions, summed over rows, from those of the features that they use.

An influence function is linear in features of a row but for a constant, phi = sum_k A_k x_k + c,
the constant of a source row being that of its label. So sum phi psi' follows for all functions of
the same features from the sums of x_k x_l', and of x_k by label: one pass, without rows of phi.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from calshift._core.addable import Tally
from calshift._core.linalg import sum_groups
from calshift._core.predictions import Predictions
from calshift.engines.base import Engine
from calshift.engines.plan import plan

Features = Callable[[Predictions], np.ndarray]  # batch -> (rows, L), not to be written to


@dataclass(frozen=True, eq=False)
class LinearTerms:
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
    more : another sum over the rows of the last pass, if one was asked for
    """

    rows: np.ndarray
    sums: dict[int, np.ndarray]
    squares: dict[tuple[int, int], np.ndarray]
    features: tuple[Features, ...]
    more: Tally = field(default_factory=Tally)

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

    def __or__(self, other: RowProducts | None) -> RowProducts:
        """What both know of the same rows."""
        if other is None:
            return self
        return RowProducts(
            self.rows,
            self.sums | other.sums,
            self.squares | other.squares,
            self.features + other.features,
        )

    def pair(self, x: Features, y: Features) -> np.ndarray:
        """Sum of x y'."""
        known = self.squares.get((id(x), id(y)))
        return self.squares[id(y), id(x)].T if known is None else known


def sum_products(
    engine: Engine,
    pairs: Iterable[tuple[Features, Features]],
    seen: np.ndarray | None = None,
    known: RowProducts | None = None,
    more: WithFeatures | None = None,
) -> RowProducts:
    """Products of these pairs of features over all rows, in one pass; none if all are known.

    With ``seen``, the classes of a source, sums are by label, and a row of weight below 1 counts by
    its square; otherwise rows count by their weights. ``more`` is summed in the same pass.
    """
    return ProductPass(pairs, seen, known, more).total(engine)


class ProductPass:
    """`sum_products`, which can be planned along with another pass."""

    def __init__(
        self,
        pairs: Iterable[tuple[Features, Features]],
        seen: np.ndarray | None = None,
        known: RowProducts | None = None,
        more: WithFeatures | None = None,
    ) -> None:
        self.known = RowProducts(np.zeros(0), {}, {}, ()) if known is None else known
        there = self.known.squares.keys()
        missing = [(x, y) for x, y in pairs if not {(id(x), id(y)), (id(y), id(x))} & there]
        wanted = () if more is None else more.features
        features = {id(x): x for x in (*(x for pair in missing for x in pair), *wanted)}
        self.keys, self.features = tuple(features), tuple(features.values())
        places = ((self.keys.index(id(x)), self.keys.index(id(y))) for x, y in missing)
        self.which = tuple(dict.fromkeys(places))
        self.summand: _Products | None = None
        if known is None or missing or more is not None:
            self.summand = _Products(self.features, self.which, seen, self.known.sums.keys(), more)

    def plan(self, engine: Engine) -> None:
        """Make the sums along with the next pass over files or a Spark table."""
        if self.summand is not None:
            plan(engine, self.summand)

    def total(self, engine: Engine) -> RowProducts:
        """What was known, and the new sums over the rows."""
        if self.summand is None:
            return self.known
        sums: Tally = engine.total(self.summand)
        squares = {
            (self.keys[k], self.keys[j]): sums["squares"][i] for i, (k, j) in enumerate(self.which)
        }
        return RowProducts(
            sums["rows"],
            self.known.sums | {self.keys[k]: one for k, one in sums["sums"].items()},
            self.known.squares | squares,
            self.known.features + self.features,
            sums.get("more", Tally()),
        )


class WithFeatures(Protocol):
    """A sum over rows that uses features, which are evaluated once."""

    @property
    def features(self) -> tuple[Features, ...]:
        """x_k, whose values are handed on."""

    def __call__(self, batch: Predictions, others: list[np.ndarray]) -> Tally:
        """The sums over a batch."""


class _Products:
    """Summand: rows, sums and products of features; and ``more``."""

    def __init__(
        self,
        features: tuple[Features, ...],
        pairs: tuple[tuple[int, int], ...],
        seen: np.ndarray | None,
        known: Collection[int],
        more: WithFeatures | None,
    ) -> None:
        self.features, self.pairs, self.seen, self.more = features, pairs, seen, more
        self.summed = [k for k, one in enumerate(features) if id(one) not in known]
        keys = [id(one) for one in features]
        self.places = [] if more is None else [keys.index(id(one)) for one in more.features]

    def __call__(self, batch: Predictions) -> Tally:
        code, labels, f = np.zeros(len(batch), np.intp), 1, batch.sample_weight
        if self.seen is not None:
            code, labels = batch.codes(self.seen), int(self.seen.sum())
            f = None if f is None else batch.squared_frequency
        root = None if f is None else np.sqrt(f)
        plain = [one(batch) for one in self.features]
        x = plain if root is None else [one * root[:, None] for one in plain]
        sums = Tally((k, sum_groups(code, x[k], labels, root)) for k in self.summed)
        squares = Tally(enumerate(x[k].T @ x[j] for k, j in self.pairs))
        rows = np.bincount(code, f, labels).astype(float)
        found = Tally(rows=rows, sums=sums, squares=squares)
        if self.more is not None:
            found["more"] = self.more(batch, [plain[k] for k in self.places])
        return found
