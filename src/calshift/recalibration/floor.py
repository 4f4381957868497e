"""The floor of probabilities: what a predicted probability of 0, or nearly 0, means.

docs/mathematics.md section 11.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from calshift._core.predictions import Predictions, concatenate_rows
from calshift.scaling.calibrator import LEAST_PROBABILITY
from calshift.scaling.fit import LEAST_STRENGTH, MOST_STEPS, make_identity

HALF_A_ROW = 0.5  # of a class to which its row gives a probability of 0
LARGEST_SHARE = 0.5  # of 1 / K: the floor is below it
TOLERANCE = 0.1  # of the log of minus the log of the floor
LEAST_GAIN = 0.01  # of the log-likelihood, below which the slope is found
MOST_ROWS = 5_000  # evenly spaced, of which the floor is chosen


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
        self.rows, self.share_of_zeros, self.slope = rows, None, 1.0
        self.start = make_identity("ts", self.counts)
        # without zeros, a floor below the probabilities of all labels only takes from them
        self.least_hit = float(hit.min())
        if cells.any():
            missed = float(rows.frequency @ (hit <= 0))
            self.share_of_zeros = (missed + HALF_A_ROW) / float(cells.sum() + 2 * HALF_A_ROW)
            self.least_hit = 0.0
            # at a temperature all zeros of a row have the same probability: any label will do
            half = rows._replace(y=zeros.argmax(axis=1))
            half = half.with_frequency(HALF_A_ROW * cells / cells.sum())
            self.rows = concatenate_rows([rows, half])

    def likelihood(self, floor: float) -> float:
        """Penalised log-likelihood of the labels, by Newton's method from the last slope."""
        fitted = replace(self.start, floor=floor)
        scores = self.rows.with_probabilities(fitted.scores(self.rows))
        for _ in range(MOST_STEPS):
            slope = self.slope
            here = replace(fitted, parameters=np.array([slope])).likelihood(scores)
            gradient = here["gradient"][0] - LEAST_STRENGTH * (slope - 1)
            information = here["information"][0, 0] + LEAST_STRENGTH
            gain = gradient**2 / (2 * information)
            if gain < LEAST_GAIN:
                break
            self.slope = float(np.clip(slope + gradient / information, slope / 4, 4 * slope))
        return float(here["value"] - LEAST_STRENGTH * (slope - 1) ** 2 / 2 + gain)
