"""The likelihood of slopes, biases and log class weights together, with its derivatives.

docs/mathematics.md section 11.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from calshift._core.predictions import Predictions

BLOCK_CELLS = 2**17  # probabilities of a block, so that the arrays of a pass stay small
LEAST_BLOCK = 256  # rows
TINY = np.finfo(float).tiny


class Sums(NamedTuple):
    """Log-likelihood with its gradient and, if it was asked for, the expected information."""

    value: float
    gradient: np.ndarray
    information: np.ndarray | None


class Block(NamedTuple):
    """Rows of the source, or of the target, which has no labels.

    Attributes
    ----------
    scores : (K, rows) logarithms of the probabilities, one class after another
    labels, frequency : (rows,), or None
    """

    scores: np.ndarray
    labels: np.ndarray | None
    frequency: np.ndarray | None


class Membership(NamedTuple):
    """The sample that each row of a block belongs to.

    Attributes
    ----------
    weights : (K,) class weights of the target, the largest of them 1
    mean : (rows,) of the weights, by the probabilities of the row
    share : (rows,) the probability of the target
    value : (rows,) log-likelihood of the row's own sample
    """

    weights: np.ndarray
    mean: np.ndarray
    share: np.ndarray
    value: np.ndarray


@dataclass(frozen=True, eq=False)
class JointLikelihood:
    """A function of slopes (one each or one for all), biases and shifts (K each)."""

    blocks: list[Block]
    slopes: int
    K: int
    odds: float  # target rows for each source row

    @staticmethod
    def of(source: Predictions, target: Predictions, slopes: int, floor: float) -> JointLikelihood:
        """Of the rows of both samples; smaller probabilities are replaced by the floor."""
        blocks = [*_make_blocks(source, floor), *_make_blocks(target.unlabelled(), floor)]
        return JointLikelihood(blocks, slopes, source.n_classes, target.size / source.size)

    def __call__(self, parameters: np.ndarray, informed: bool) -> Sums:
        """The sums over all rows, with the information if it is asked for."""
        gradient, value = self._observed.copy(), 0.0
        information = np.zeros((len(gradient),) * 2) if informed else None
        parts = np.split(parameters, [self.slopes, self.slopes + self.K])
        with np.errstate(over="ignore", invalid="ignore"):  # long steps, which are then halved
            for block in self.blocks:
                value += self._add(block, parts, gradient, information)
        return Sums(value, gradient, information)

    @cached_property
    def _observed(self) -> np.ndarray:
        """(N,) the part of the gradient that depends on the labels alone."""
        found = np.zeros(self.slopes + 2 * self.K)
        for scores, labels, f in self.blocks:
            if labels is not None:
                hit = scores[labels, np.arange(len(labels))]
                by_slope = np.bincount(labels, hit if f is None else f * hit, self.K)
                found[: self.slopes] += by_slope.sum() if self.slopes == 1 else by_slope
                found[self.slopes : -self.K] += np.bincount(labels, f, self.K)
        return found

    def _add(
        self,
        block: Block,
        parts: list[np.ndarray],
        gradient: np.ndarray,
        information: np.ndarray | None,
    ) -> float:
        """The log-likelihood of a block, whose derivatives are added to the others."""
        slope, bias, shift = parts
        p = block.scores * slope[:, None]
        p += bias[:, None]
        p -= p.max(axis=0)
        z_label = 0.0 if block.labels is None else p[block.labels, np.arange(p.shape[1])]
        np.exp(p, out=p)
        total = np.ones(self.K) @ p
        p *= 1 / total
        sample = self._membership(p, shift, block.labels is None)
        value = sample.value if block.labels is None else sample.value + z_label - np.log(total)
        self._add_gradient(block, p, sample, gradient)
        if information is not None:
            self._add_information(block, p, sample, information)
        return float(value.sum() if block.frequency is None else block.frequency @ value)

    def _membership(self, p: np.ndarray, shift: np.ndarray, of_target: bool) -> Membership:
        """The odds of the target are odds . sum_y p_y exp(s_y)."""
        top = shift.max()
        weights = np.exp(shift - top)
        mean = np.maximum(weights @ p, TINY)
        log_odds = np.log(mean) + (top + np.log(self.odds))
        share = (1 + np.tanh(log_odds / 2)) / 2
        value = -np.logaddexp(0.0, -log_odds if of_target else log_odds)
        return Membership(weights, mean, share, value)

    def _add_gradient(
        self, block: Block, p: np.ndarray, sample: Membership, gradient: np.ndarray
    ) -> None:
        """By the shifts q (1[target] - share), by the biases (q - p) (1[target] - share) ...

        q are the posterior probabilities of the target; the labels subtract their expectation p.
        """
        own = (0.0 if block.labels is not None else 1.0) - sample.share
        rest = own + 1 if block.labels is not None else own
        factors = np.stack([own / sample.mean, rest], axis=1)
        if block.frequency is not None:
            factors *= block.frequency[:, None]
        by_shift, less = (p @ factors).T
        gradient[-self.K :] += sample.weights * by_shift
        gradient[self.slopes : -self.K] += sample.weights * by_shift - less
        by_slope, less = ((p * block.scores) @ factors).T
        by_slope = sample.weights * by_slope - less
        gradient[: self.slopes] += by_slope.sum() if self.slopes == 1 else by_slope

    def _add_information(
        self, block: Block, p: np.ndarray, sample: Membership, information: np.ndarray
    ) -> None:
        """Sum m (1 - m) x x', x the gradient of the log-odds, and the information of the labels.

        x is q - p times the scores by the slopes, q - p by the biases, q by the shifts.
        """
        a, K = self.slopes, self.K
        spread = sample.share * (1 - sample.share)
        root = np.sqrt(spread if block.frequency is None else spread * block.frequency)
        x = np.empty((a + 2 * K, p.shape[1]))
        np.multiply(p, root / sample.mean, out=x[-K:])
        x[-K:] *= sample.weights[:, None]
        np.subtract(x[-K:], p * root, out=x[a:-K])
        _times_scores(x[a:-K], block.scores, x[:a])
        information += x @ x.T
        if block.labels is None:
            return
        rooted = p if block.frequency is None else p * np.sqrt(block.frequency)
        x = x[: a + K]
        x[a:] = rooted
        _times_scores(rooted, block.scores, x[:a])
        labels = information[: a + K, : a + K]
        labels -= x @ x.T
        self._add_own(block, p, labels)

    def _add_own(self, block: Block, p: np.ndarray, information: np.ndarray) -> None:
        """The sums of p, p times the scores and p times their squares, by class."""
        a, K = self.slopes, self.K
        fp = p if block.frequency is None else p * block.frequency
        scored = fp * block.scores
        by_bias, square = scored.sum(axis=1), np.einsum("ci,ci->c", scored, block.scores)
        at = np.arange(K)
        information[a + at, a + at] += fp.sum(axis=1)
        if a == 1:
            information[a : a + K, 0] += by_bias
            information[0, a : a + K] += by_bias
            information[0, 0] += square.sum()
        else:
            information[a + at, at] += by_bias
            information[at, a + at] += by_bias
            information[at, at] += square


def _times_scores(values: np.ndarray, scores: np.ndarray, out: np.ndarray) -> None:
    """values times scores, (K, rows), or (1, rows) their sums over the classes."""
    if len(out) == 1:
        np.einsum("ci,ci->i", values, scores, out=out[0])
    else:
        np.multiply(values, scores, out=out)


def _make_blocks(sample: Predictions, floor: float) -> Iterator[Block]:
    """The rows in small blocks."""
    for rows in sample.blocks(max(LEAST_BLOCK, BLOCK_CELLS // sample.n_classes)):
        scores = np.maximum(rows.matrix.T, floor, dtype=float, order="C")
        yield Block(np.log(scores, out=scores), rows.y, rows.sample_weight)
