"""Lack of fit: whether target means of functions of the predictions are those that weights imply.

Under label shift the target mean of any function f of the predictions is that of the source's
classes, sum_y q_y E_s[f | y]. These differences are standardised, for log predictions, confidence,
and the shares of rows with a confidence above some levels; the largest counts. It is small under
label shift, and more where the samples differ in another way too. docs/mathematics.md section 7.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from calshift._core.addable import Tally
from calshift._core.frozen import read_only
from calshift._core.linalg import row_sum, sum_groups
from calshift._core.predictions import Predictions
from calshift.scaling.calibrator import LEAST_PROBABILITY, column_dot, log_probabilities
from calshift.weights.row_products import Features, LinearTerms, RowProducts

LEAST_COMPARED = 1e-4  # probability of which the logarithm is taken
TWO = 2  # classes, and dense features of them
NO_NOISE = 1e-12  # variance of a mean, below which its function is constant
CONFIDENCES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)  # shares of rows above them are compared
OF_EACH_CLASS = (0.5, 0.7, 0.8, 0.9, 0.95)  # and, of two classes, shares of predictions above them


def dense_features(batch: Predictions) -> np.ndarray:
    """(rows, D) log predictions around their mean over the classes, and confidence.

    Of two classes the other log prediction is the negative.
    """
    every = np.ones(batch.n_classes, dtype=bool)
    logs = log_probabilities(batch, every, LEAST_PROBABILITY)
    K = batch.n_classes
    two = K == TWO
    found = np.empty((2 if two else K + 1, len(batch))).T
    scores = np.maximum(logs, np.log(LEAST_COMPARED))
    if two:
        np.subtract(scores[:, 1], scores[:, 0], out=found[:, 0])
        found[:, 0] /= 2
    else:
        np.subtract(scores, (row_sum(scores) / K)[:, None], out=found[:, :K])
    found[:, -1] = batch.confidence
    return found


def level_codes(batch: Predictions) -> np.ndarray:
    """(rows,) how many of the levels the confidence exceeds; of two classes, also each of them."""
    return batch.derived("levels", _find_codes)


def _find_codes(batch: Predictions) -> np.ndarray:
    code = _count_below(CONFIDENCES, batch.confidence)
    for p in batch.matrix.T if batch.n_classes == TWO else ():
        code *= len(OF_EACH_CLASS) + 1
        code += _count_below(OF_EACH_CLASS, p)
    return code.astype(np.intp)


def _count_below(levels: tuple[float, ...], values: np.ndarray) -> np.ndarray:
    """How many of the levels each value exceeds."""
    values, found = values.astype(float), np.zeros(len(values), np.int16)
    for level in levels:
        found += values > level
    return found


def level_table(values: Predictions | np.ndarray) -> np.ndarray:
    """(codes, features) whether a row of a code is above each level.

    Of predictions, or of their dense features (rows, D): of two classes these are two.
    """
    columns = values.n_classes if isinstance(values, Predictions) else values.shape[1]
    return _level_table(columns == TWO)


@cache
def _level_table(two: bool) -> np.ndarray:
    sizes = [len(CONFIDENCES) + 1, *[len(OF_EACH_CLASS) + 1] * (2 if two else 0)]
    digits = np.unravel_index(np.arange(np.prod(sizes)), sizes)
    above = [
        np.greater.outer(digit, np.arange(size - 1))
        for digit, size in zip(digits, sizes, strict=True)
    ]
    return read_only(np.hstack(above).astype(float))


@dataclass(frozen=True)
class Deviations:
    """Sums of the compared features over rows, and of these times a factor of the label.

    Those for variances count a source row of weight below 1 by its square. The products with other
    ``features``, of an influence function, are those of the features times the factor.
    """

    factor: np.ndarray  # (labels,)
    features: tuple[Features, ...]
    seen: np.ndarray | None = None

    def __call__(self, batch: Predictions, others: list[np.ndarray]) -> Tally:
        label, labels = _label_codes(batch, self.seen)
        f = batch.sample_weight
        d, code, codes = dense_features(batch), level_codes(batch), len(level_table(batch))
        out = Tally(means=_sum_by_label(label, labels, d, code, codes, f))
        if self.seen is not None and f is not None:
            f = batch.squared_frequency
            out["sums"] = _sum_by_label(label, labels, d, code, codes, f)
        weight = self.factor[label] if f is None else self.factor[label] * f
        weighted = d * weight[:, None]
        once = d if self.seen is None else d * self.factor[label][:, None]
        out["squares"] = column_dot(weighted, once)
        for k, x in enumerate(others):
            out[f"dense {k}"] = weighted.T @ x
            out[f"levels {k}"] = sum_groups(code, x, codes, weight)
        return out


def _sum_by_label(
    label: np.ndarray,
    labels: int,
    dense: np.ndarray,
    code: np.ndarray,
    codes: int,
    frequency: np.ndarray | None,
) -> Tally:
    """Rows, dense features, and rows of each level, by label."""
    levels = np.bincount(label * codes + code, frequency, labels * codes)
    levels = levels.reshape(labels, codes).astype(float)
    dense = sum_groups(label, dense, labels, frequency)
    return Tally(rows=levels.sum(axis=1), dense=dense, levels=levels)


def feature_means(sums: Tally) -> np.ndarray:
    """(labels, F) means of the features."""
    means = sums["means"]
    return np.asarray(_widen(means) / means["rows"][:, None])


def _widen(sums: Tally) -> np.ndarray:
    """(labels, F) sums of the features, from those of dense ones and of levels."""
    return np.hstack([sums["dense"], sums["levels"] @ level_table(sums["dense"])])


def deviation_variance(
    deviations: Deviations,
    products: RowProducts,
    terms: LinearTerms,
    square: np.ndarray,
    mean: np.ndarray,
    of_label: np.ndarray,
) -> np.ndarray:
    """(F,) sum over rows of the squares of  factor (f - mean) - phi . of_label.

    ``products`` are those of the features of phi, with the sums of `Deviations`, and ``square`` is
    the sum of phi phi'; ``mean`` is (labels, F), ``of_label`` (S, F).
    """
    found, a = products.more, deviations.factor
    sums = found.get("sums", found["means"])
    table, first = level_table(sums["dense"]), _widen(sums)
    squares = np.append(found["squares"], a**2 @ (sums["levels"] @ table))
    own = squares - a**2 @ (2 * mean * first) + (a**2 * sums["rows"]) @ mean**2
    cross = (first * a[:, None]).T @ terms.constant
    total = sums["rows"][:, None] * terms.constant  # of phi, by label
    for k, (x, A) in enumerate(zip(terms.features, terms.matrices, strict=True)):
        cross += np.vstack([found[f"dense {k}"], table.T @ found[f"levels {k}"]]) @ A.T
        total = total + products.sums[id(x)] @ A.T
    cross -= (mean * a[:, None]).T @ total
    both = np.einsum("fs,sf->f", cross, of_label)
    implied = np.einsum("sf,sf->f", of_label, square @ of_label)
    return np.asarray(own - 2 * both + implied)


def _label_codes(batch: Predictions, seen: np.ndarray | None) -> tuple[np.ndarray, int]:
    """Places of the labels among the classes seen, and how many there are; or all the same."""
    if seen is None:
        return np.zeros(len(batch), np.intp), 1
    return batch.codes(seen), int(seen.sum())
