"""Lack of fit: whether target means of functions of the predictions are those that weights imply.

Under label shift the target mean of any function f of the predictions is that of the source's
classes, sum_y q_y E_s[f | y]. These differences are standardised, for log predictions, confidence,
and the shares of rows with a confidence above some levels; the largest counts. It is small under
label shift, and more where the samples differ in another way too. docs/mathematics.md section 7.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from calshift._core.addable import Tally
from calshift._core.linalg import row_sum, sum_groups
from calshift._core.predictions import Predictions
from calshift.engines.base import Engine
from calshift.scaling.calibrator import LEAST_PROBABILITY, log_probabilities
from calshift.weights.row_products import Features, LinearTerms, RowProducts

LEAST_COMPARED = 1e-4  # probability of which the logarithm is taken
NO_NOISE = 1e-12  # variance of a mean, below which its function is constant
CONFIDENCES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)  # shares of rows above them are compared
OF_EACH_CLASS = (0.5, 0.7, 0.8, 0.9, 0.95)  # and, of two classes, shares of predictions above them


def dense_features(batch: Predictions) -> np.ndarray:
    """(rows, D) log predictions around their mean over the classes, and confidence.

    Of two classes the other log prediction is the negative.
    """
    every = np.ones(batch.n_classes, dtype=bool)
    logs = log_probabilities(batch, every, LEAST_PROBABILITY)
    two, K = batch.n_classes == 2, batch.n_classes
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
    for p in batch.matrix.T if batch.n_classes == 2 else ():
        code *= len(OF_EACH_CLASS) + 1
        code += _count_below(OF_EACH_CLASS, p)
    return code.astype(np.intp)


def _count_below(levels: tuple[float, ...], values: np.ndarray) -> np.ndarray:
    """How many of the levels each value exceeds."""
    values, found = values.astype(float), np.zeros(len(values), np.int16)
    for level in levels:
        found += values > level
    return found


def level_table(two: bool) -> np.ndarray:
    """(codes, features) whether a row of this code is above each level."""
    sizes = [len(CONFIDENCES) + 1, *[len(OF_EACH_CLASS) + 1] * (2 if two else 0)]
    digits = np.unravel_index(np.arange(np.prod(sizes)), sizes)
    above = [np.greater.outer(d, np.arange(size - 1)) for d, size in zip(digits, sizes, strict=True)]
    return np.hstack(above).astype(float)


@dataclass(frozen=True)
class FeatureMeans:
    """Summand: sums of the features, by label of the classes ``seen``, or over all rows."""

    seen: np.ndarray | None = None

    def __call__(self, batch: Predictions) -> Tally:
        label, labels = _label_codes(batch, self.seen)
        f, codes = batch.sample_weight, len(level_table(batch.n_classes == 2))
        by_level = np.bincount(label * codes + level_codes(batch), f, labels * codes)
        return Tally(
            rows=np.bincount(label, f, labels).astype(float),
            dense=sum_groups(label, dense_features(batch), labels, f),
            levels=by_level.reshape(labels, codes).astype(float),
        )


def feature_means(sums: Tally, two: bool) -> np.ndarray:
    """(labels, F) means of the features."""
    both = np.hstack([sums["dense"], sums["levels"] @ level_table(two)])
    return np.asarray(both / sums["rows"][:, None])


@dataclass(frozen=True)
class Deviations:
    """Summand: sums of the features times a factor of the label, and times other features."""

    factor: np.ndarray  # (labels,)
    others: tuple[Features, ...]
    seen: np.ndarray | None = None

    def __call__(self, batch: Predictions) -> Tally:
        label, labels = _label_codes(batch, self.seen)
        f = batch.sample_weight if self.seen is None else _squared(batch)
        d, code = dense_features(batch), level_codes(batch)
        codes, once = len(level_table(batch.n_classes == 2)), self.factor[label]
        weight = once if f is None else once * f
        weighted = d * weight[:, None]
        out = Tally(
            rows=np.bincount(label, f, labels).astype(float),
            dense=sum_groups(label, d, labels, f),
            squares=np.einsum("id,id->d", weighted, d * once[:, None]),
            levels=np.bincount(label * codes + code, f, labels * codes).reshape(labels, codes),
        )
        for k, other in enumerate(self.others):
            x = other(batch)
            out[f"dense {k}"] = weighted.T @ x
            out[f"levels {k}"] = sum_groups(code, x, codes, weight)
        return out


def deviation_variance(
    sums: Tally,
    deviations: Deviations,
    terms: LinearTerms,
    products: RowProducts,
    mean: np.ndarray,
    of_label: np.ndarray,
) -> np.ndarray:
    """(F,) sum over rows of the squares of  factor (f - mean) - phi . of_label.

    From the sums of `Deviations` of the features of phi; ``mean`` (labels, F), ``of_label`` (S, F).
    """
    a, table = deviations.factor, level_table(of_label.shape[1] == TWO_CLASSES)
    first = np.hstack([sums["dense"], sums["levels"] @ table])  # (labels, F) sums of f
    squares = np.append(sums["squares"], (a**2) @ (sums["levels"] @ table))
    own = squares - (a**2) @ (2 * mean * first) + (a**2 * sums["rows"]) @ mean**2
    cross = (first * a[:, None]).T @ terms.constant
    total = sums["rows"][:, None] * terms.constant  # of phi, by label
    for k, (x, A) in enumerate(zip(terms.features, terms.matrices, strict=True)):
        cross += np.vstack([sums[f"dense {k}"], table.T @ sums[f"levels {k}"]]) @ A.T
        total = total + products.sums[id(x)] @ A.T
    cross -= (mean * a[:, None]).T @ total
    both = np.einsum("fs,sf->f", cross, of_label)
    implied = np.einsum("sf,sf->f", of_label, products.product(terms, terms) @ of_label)
    return np.asarray(own - 2 * both + implied)


TWO_CLASSES = 2 + len(CONFIDENCES) + 2 * len(OF_EACH_CLASS)  # features of two classes


def _label_codes(batch: Predictions, seen: np.ndarray | None) -> tuple[np.ndarray, int]:
    """Places of the labels among the classes seen, and how many there are; or all the same."""
    if seen is None:
        return np.zeros(len(batch), np.intp), 1
    return batch.codes(seen), int(seen.sum())


def _squared(batch: Predictions) -> np.ndarray | None:
    return None if batch.sample_weight is None else batch.squared_frequency
