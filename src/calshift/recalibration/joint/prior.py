"""The prior of slopes, biases and shifts together.

docs/mathematics.md section 11.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from calshift.scaling.fit import LEAST_STRENGTH, log_share_design

LARGEST_STRENGTH = 1e4  # a standard deviation of .01
MOST_DENSE = 60  # parameters


@dataclass(frozen=True, eq=False)
class Form:
    """The quadratic form |(I - U U') sum_b x_b|^2 of blocks b of the parameters.

    Attributes
    ----------
    blocks : where they are, K parameters each
    free : (K, r) orthonormal columns U, the directions that the form leaves free
    """

    blocks: tuple[slice, ...]
    free: np.ndarray

    @property
    def rank(self) -> int:
        """Of the form."""
        return int(len(self.free) - self.free.shape[1])

    def reduce(self, values: np.ndarray) -> np.ndarray:
        """(K,) the projected sum of the blocks of values (N,)."""
        total = sum(values[block] for block in self.blocks)
        return np.asarray(total - self.free @ (self.free.T @ total))

    def add_to(self, matrix: np.ndarray, strength: float) -> None:
        """Add the form times its strength to a matrix (N, N)."""
        less = (strength * self.free) @ self.free.T
        for one in self.blocks:
            for other in self.blocks:
                matrix[one, other] -= less
                np.einsum("ii->i", matrix[one, other])[:] += strength


class Volume(NamedTuple):
    """Twice the log normalisation of the prior, with derivatives by the logs of its strengths."""

    value: float
    gradient: np.ndarray
    curvature: np.ndarray


@dataclass(frozen=True, eq=False)
class JointPrior:
    """A normal prior with precision ``least + sum_k strength_k form_k``.

    Biases and shifts vary around multiples of the log class shares, their sum around a constant.
    The sum is the difference between the target's probabilities and those of the model: where it is
    constant, a temperature corrects them. Several slopes vary around a common one.

    Attributes
    ----------
    class_counts : (K,) rows of the source, all positive
    slopes : K, or one slope of all classes
    """

    class_counts: np.ndarray
    slopes: int

    @property
    def size(self) -> int:
        """Number of parameters: slopes, biases, shifts."""
        return self.slopes + 2 * len(self.class_counts)

    @cached_property
    def centre(self) -> np.ndarray:
        """(N,) slopes of 1, no biases, no shifts."""
        return np.repeat([1.0, 0.0], [self.slopes, self.size - self.slopes])

    @cached_property
    def forms(self) -> tuple[Form, ...]:
        """Of slopes if there are several, biases, shifts and sums."""
        K, a = len(self.class_counts), self.slopes
        biases, shifts = slice(a, a + K), slice(a + K, a + 2 * K)
        ones = np.full((K, 1), K**-0.5)
        shares = _orthonormalize(log_share_design(self.class_counts))
        last = Form((biases,), shares), Form((shifts,), shares), Form((biases, shifts), ones)
        return last if a == 1 else (Form((slice(0, a),), ones), *last)

    @cached_property
    def dense(self) -> np.ndarray | None:
        """(forms, N, N) their matrices where these are small, which saves many small steps."""
        if self.size > MOST_DENSE:
            return None
        found = np.zeros((len(self.forms), self.size, self.size))
        for form, matrix in zip(self.forms, found, strict=True):
            form.add_to(matrix, 1.0)
        return found

    @cached_property
    def _dense_least(self) -> np.ndarray:
        return self._add_least(np.zeros((self.size, self.size)))

    def add_precision(self, matrix: np.ndarray, strength: np.ndarray) -> np.ndarray:
        """A matrix (N, N) with the precision added in place."""
        if self.dense is not None:
            matrix += self._dense_least + np.tensordot(strength, self.dense, 1)
            return matrix
        self._add_least(matrix)
        for form, size in zip(self.forms, strength, strict=True):
            form.add_to(matrix, size)
        return matrix

    def _add_least(self, matrix: np.ndarray) -> np.ndarray:
        """A matrix with the part of the precision that has no strength added in place."""
        np.einsum("ii->i", matrix)[:] += LEAST_STRENGTH
        biases = self.forms[-3].blocks[0]  # a constant in all biases has no effect
        matrix[biases, biases] += self.class_counts.mean()
        return matrix

    def multiply(self, strength: np.ndarray, values: np.ndarray) -> np.ndarray:
        """(N,) the precision times values."""
        if self.dense is not None:
            return np.asarray(self._dense_least @ values + strength @ (self.dense @ values))
        product = LEAST_STRENGTH * values
        biases = self.forms[-3].blocks[0]
        product[biases] += self.class_counts.mean() * values[biases].sum()
        for form, size in zip(self.forms, strength, strict=True):
            reduced = size * form.reduce(values)
            for block in form.blocks:
                product[block] += reduced
        return product

    def volume(self, log_strength: np.ndarray) -> Volume:
        """Of the parts with strengths, in closed form.

        In the directions off the log shares biases, shifts and sums of strengths B, S, N have the
        determinant BS + BN + SN. Between the log shares and a constant there are sums alone.
        """
        R, ones, first = self.forms[-3].rank, self.forms[-1].rank, len(self.forms) - 3
        pairs = np.array([[1, 1, 0], [1, 0, 1], [0, 1, 1]])
        terms = pairs @ log_strength[first:]
        share = np.exp(terms - terms.max())
        total = share.sum()
        share /= total
        gradient = np.concatenate([np.full(first, ones), R * share @ pairs + [0, 0, ones - R]])
        curvature = np.zeros((len(gradient),) * 2)
        curvature[first:, first:] = R * pairs.T @ (np.diag(share) - np.outer(share, share)) @ pairs
        value = R * (terms.max() + np.log(total)) + (ones - R) * log_strength[-1]
        return Volume(float(value + ones * log_strength[:first].sum()), gradient, curvature)


def _orthonormalize(columns: np.ndarray) -> np.ndarray:
    """(K, r) an orthonormal basis of their span."""
    basis, size, _ = np.linalg.svd(columns, full_matrices=False)
    return np.asarray(basis[:, size > 1e-6 * size[0]])
