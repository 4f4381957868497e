"""The floor of probabilities: what a predicted probability of 0, or nearly 0, means.

docs/mathematics.md section 11.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from calshift._core.predictions import Predictions
from calshift.scaling.calibrator import LEAST_PROBABILITY
from calshift.scaling.fit import LEAST_STRENGTH, MOST_STEPS

HALF_A_ROW = 0.5  # of a class to which its row gives a probability of 0
LARGEST_SHARE = 0.5  # of 1 / K: the floor is below it
TOLERANCE = 0.1  # of the log of minus the log of the floor
LEAST_GAIN = 0.01  # of the log-likelihood, below which the slope is found
MOST_ROWS = 5_000  # evenly spaced, of which the floor is chosen
BLOCK_CELLS = 2**16  # probabilities of which temporaries stay in the processor's cache


def least_probability(*samples: Predictions) -> float:
    """The smallest positive probability, at most `LEAST_PROBABILITY`."""
    return min(_least_positive(*samples), LEAST_PROBABILITY)


def _least_positive(*samples: Predictions) -> float:
    least = [np.min(s.matrix, where=s.matrix > 0, initial=1.0) for s in samples]
    return max(float(min(least)), float(np.finfo(float).tiny))


def floor_classes(source: Predictions, floor: float) -> np.ndarray:
    """(K,) the floor of the classes of the source; 0 for the others, of which nothing is known."""
    return np.where(source.class_counts > 0, floor, 0.0)


def choose_floor(source: Predictions, *others: Predictions) -> float:
    """The floor with which a temperature has the largest likelihood of the source's labels.

    Unless another is better by half the logarithm of the number of rows (BIC), it is the smallest
    probability; with exact zeros in the source, the frequency of labels among them, if it is less.
    """
    rows = source.take(np.arange(0, len(source), max(1, len(source) // MOST_ROWS)))
    rows = rows.take(rows.frequency > 0)
    profile, largest = FloorProfile(rows), LARGEST_SHARE / rows.n_classes
    usual = least_probability(source, *others)
    lowest = max(usual, profile.least_hit)
    if profile.share_of_zeros is not None:
        usual = min(_least_positive(source, *others), profile.share_of_zeros, largest)
    if lowest >= largest:
        return usual
    from scipy.optimize import minimize_scalar  # late: importing calshift must be fast

    ends = np.log(-np.log([largest, lowest]))
    found = minimize_scalar(
        lambda x: -profile.likelihood(np.exp(-np.exp(x))),
        bounds=ends, method="bounded", options={"xatol": TOLERANCE},
    )  # fmt: skip
    gain = -found.fun - profile.likelihood(usual)
    return float(np.exp(-np.exp(found.x))) if gain > np.log(profile.size) / 2 else usual


class FloorProfile:
    """The largest likelihood over temperatures, as a function of the floor.

    Where rows have exact zeros, half a row with such a label is added, spread over all of these
    zeros (Krichevsky and Trofimov), so that the floor is above 0 although no label has one.
    """

    def __init__(self, rows: Predictions) -> None:
        self.counts, p = rows.class_counts, rows.matrix
        self.size = float(self.counts.sum())
        hit = p[np.arange(len(rows)), rows.labels]
        zeros = (p <= 0) & (self.counts > 0)
        cells = rows.frequency * zeros.sum(axis=1)
        self.share_of_zeros, self.slope, parts = None, 1.0, [rows]
        # without zeros, a floor below the probabilities of all labels only takes from them
        self.least_hit = float(hit.min())
        if cells.any():
            missed = float(rows.frequency @ (hit <= 0))
            self.share_of_zeros = (missed + HALF_A_ROW) / float(cells.sum() + 2 * HALF_A_ROW)
            self.least_hit = 0.0
            # at a temperature all zeros of a row have the same probability: any label will do
            half = rows._replace(y=zeros.argmax(axis=1))
            parts.append(half.with_frequency(HALF_A_ROW * cells / cells.sum()))
        self.blocks = [block for part in parts for block in _make_blocks(part, self.counts > 0)]

    def likelihood(self, floor: float) -> float:
        """Penalised log-likelihood of the labels, by Newton's method from the last slope."""
        for _ in range(MOST_STEPS):
            slope = self.slope
            value, gradient, information = self._sums(np.log(floor), slope)
            gradient -= LEAST_STRENGTH * (slope - 1)
            information += LEAST_STRENGTH
            gain = gradient**2 / (2 * information)
            if gain < LEAST_GAIN:
                break
            self.slope = float(np.clip(slope + gradient / information, slope / 4, 4 * slope))
        return float(value - LEAST_STRENGTH * (slope - 1) ** 2 / 2 + gain)

    def _sums(self, log_floor: float, slope: float) -> np.ndarray:
        """Log-likelihood, its gradient and minus its second derivative by the slope."""
        sums = np.zeros(3)
        for logs, top, code, frequency in self.blocks:
            floor = log_floor - top
            scores = np.maximum(logs, floor)
            if floor.max() > 0:  # all probabilities of a row are of classes not seen
                scores -= np.maximum(floor, 0)
            hit, one = scores[code, np.arange(len(code))], np.ones(len(scores))
            weight = np.exp(slope * scores)
            total = one @ weight
            weight *= scores
            mean, square = one @ weight, np.einsum("ci,ci->i", weight, scores)
            mean /= total
            rows = slope * hit - np.log(total), hit - mean, square / total - mean**2
            sums += np.stack(rows) @ frequency
        return sums


class Block(NamedTuple):
    """Rows of S classes.

    Attributes
    ----------
    logs : (S, rows) logarithms of the probabilities, less that of the row's largest
    top : (rows,) the latter
    code, frequency : (rows,) the label's place among the classes
    """

    logs: np.ndarray
    top: np.ndarray
    code: np.ndarray
    frequency: np.ndarray


def _make_blocks(sample: Predictions, seen: np.ndarray) -> Iterator[Block]:
    """Small blocks of rows, of the classes seen."""
    for rows in sample.blocks(max(1, BLOCK_CELLS // sample.n_classes)):
        logs = np.array(rows.matrix.T[seen], dtype=float, order="C")
        with np.errstate(divide="ignore"):
            np.log(logs, out=logs)
        top = np.maximum(logs.max(axis=0), np.log(np.finfo(float).tiny))
        yield Block(logs - top, top, rows.codes(seen), rows.frequency)
