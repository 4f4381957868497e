"""Whether weights agree with those of a method that assumes nothing but label shift.

The reference matches the mean predictions as they are (bbse-soft). The squared distance of the two
target priors is a sum of squared normal variables, with the covariance of the difference from the
influence of every row on both; its tail is that of a chi-square with the same mean and variance.
docs/mathematics.md section 7.
"""

from __future__ import annotations

import numpy as np

from calshift._core.predictions import Predictions
from calshift.engines.base import Engine
from calshift.weights.influence import WeightFit, prior_influence


def agreement_p_value(
    fit: WeightFit, reference: WeightFit, source: Engine, target: Engine, sizes: tuple[float, float]
) -> float:
    """p-value of equal target priors; ``sizes``: n, and the effective size of the target."""

    def of_source(batch: Predictions) -> np.ndarray:
        apart = prior_influence(fit, batch) - prior_influence(reference, batch)
        return np.asarray((apart * batch.squared_frequency[:, None]).T @ apart)

    def of_target(batch: Predictions) -> np.ndarray:
        apart = fit.base * fit.influence.target(batch)
        apart -= reference.base * reference.influence.target(batch)
        return np.asarray((apart * batch.frequency[:, None]).T @ apart)

    n, m = sizes
    covariance = source.total(of_source) / n**2 + target.total(of_target) / (
        target.summary.size * m
    )
    return _tail(fit.prior - reference.prior, covariance)


def _tail(gap: np.ndarray, covariance: np.ndarray) -> float:
    """P(|z|^2 >= |gap|^2) for a normal z with this covariance (Satterthwaite's approximation)."""
    from scipy.special import chdtrc  # late: importing calshift must be fast

    mean, square = float(np.trace(covariance)), float((covariance**2).sum())
    if not (mean > 0 and square > 0):
        return 1.0
    return float(chdtrc(mean**2 / square, float(gap @ gap) * mean / square))
