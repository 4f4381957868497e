"""Draws of the target prior from its sampling distribution, for the bias of what depends on it.

Gamma marginals with the estimated means and standard errors, joined by the estimated correlations
(a Gaussian copula): no share is negative, so that nothing that depends on the draws can explode.
docs/mathematics.md section 8.
"""

from __future__ import annotations

import numpy as np

FEWEST, MOST, SHARES = 20, 100, 3000  # pairs of antithetic draws, and shares drawn in all
LARGEST = 8.2  # of a normal variable, beyond which its tail probability is 0 in double precision


def draw_prior_ratios(prior: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """(draws, S) the drawn shares relative to the estimated ones; 1 where a share is 0.

    Their errors are smaller than those of ``covariance`` near 0, below which no estimate lies. The
    draws do not depend on the order of the classes.
    """
    from scipy.special import gammaincinv, ndtr  # late: importing calshift must be fast

    error = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    known = (prior > 0) & (error > 0)
    pairs = int(np.clip(SHARES // len(prior), FEWEST, MOST))
    ratios = np.ones((2 * pairs, len(prior)))
    if not known.any():
        return ratios
    q, error = prior[known], error[known]
    correlation = covariance[np.ix_(known, known)] / np.outer(error, error)
    shape = (q / (error * truncated_error(q / error))) ** 2
    z = _correlated_normals(correlation, np.lexsort((error, q)), pairs)
    tail = ndtr(np.clip(z, -LARGEST, LARGEST))
    ratios[:, known] = gammaincinv(shape, tail) / shape
    total = ratios @ prior
    return np.asarray(ratios * (prior.sum() / np.where(total > 0, total, 1.0))[:, None])


def truncated_error(distance: np.ndarray) -> np.ndarray:
    """The root mean square error of max(z, 0), z normal with this mean and a variance of 1."""
    from scipy.special import ndtr  # late: importing calshift must be fast

    density = np.exp(-(distance**2) / 2) / np.sqrt(2 * np.pi)
    below = distance**2 * ndtr(-distance)
    return np.asarray(np.sqrt(ndtr(distance) - distance * density + below))


def _correlated_normals(correlation: np.ndarray, order: np.ndarray, pairs: int) -> np.ndarray:
    """(draws, S) normal variables in antithetic pairs; classes take their numbers in this order."""
    size, vectors = np.linalg.eigh(correlation)
    root = (vectors * np.sqrt(np.maximum(size, 0.0))) @ vectors.T
    z = np.empty((pairs, len(order)))
    z[:, order] = np.random.default_rng(0).standard_normal(z.shape)
    z = z @ root
    return np.concatenate([z, -z])
