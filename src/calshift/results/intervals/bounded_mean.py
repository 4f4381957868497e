"""Intervals of estimates that cannot leave a range, from their standard errors.

Between two bounds, the score interval of Wilson (1927): all values t with

    |estimate - t| <= z sqrt(t (1 - t) / size),        size = estimate (1 - estimate) / error^2

after scaling the range to (0, 1); it never leaves the range, and has a width at its ends too. Above
0 alone the interval is normal for the logarithm if the error is at most half the estimate, and
otherwise for the estimate itself.
"""

from __future__ import annotations

import numpy as np

FEW_EVENTS = 5.0  # rows that differ from the others, for a standard error to be relied on
ROUNDING = 1e-7  # of a standard error, the root of the rounding of a variance
MOST_RELATIVE = 0.5  # of a standard error, beyond which a logarithm is not nearly normal


def bounded_interval(
    estimate: float, error: float, level: float, bounds: tuple[float, float], rows: float
) -> tuple[float, float]:
    """Lower and upper end.

    ``rows`` is the effective number of rows behind an estimate at a bound, whose error may be 0.
    """
    z, (least, most) = normal_quantile(level), bounds
    if np.isfinite(least) and np.isfinite(most):
        share = float(np.clip((estimate - least) / (most - least), 0.0, 1.0))
        low, high = score_interval(share, error / (most - least), z, rows)
        return least + (most - least) * low, least + (most - least) * high
    if least == 0 and 0 < error <= MOST_RELATIVE * estimate:
        factor = float(np.exp(z * error / estimate))
        return estimate / factor, estimate * factor
    low, high = estimate - z * error, estimate + z * error
    return max(low, least), min(high, most)


def has_few_events(value: float, bounds: tuple[float, float], rows: float) -> bool:
    """Whether an estimate is nearer to a bound than a few of its rows."""
    width = bounds[1] - bounds[0]
    if not np.isfinite(width):
        return False
    share = (value - bounds[0]) / width
    return bool(min(share, 1 - share) * rows < FEW_EVENTS)


def score_interval(share: float, error: float, z: float, rows: float) -> tuple[float, float]:
    """Of a share in [0, 1] with this standard error.

    Nearer to a bound than its error, a share has a size of 1 / error: the interval is then about
    z^2 errors wide. A share of few rows has at most their size: that all of them are predicted
    correctly does not make a model perfect.
    """
    few = has_few_events(share, (0.0, 1.0), rows)
    if error <= ROUNDING and not few:
        return share, share
    size = np.inf if error <= ROUNDING else max(share * (1 - share) / error**2, 1 / error)
    if few:
        size = min(size, max(rows, 1.0))
    middle = (share + z**2 / (2 * size)) / (1 + z**2 / size)
    reach = z / (1 + z**2 / size) * np.sqrt(share * (1 - share) / size + z**2 / (4 * size**2))
    return max(float(middle - reach), 0.0), min(float(middle + reach), 1.0)


def normal_quantile(level: float) -> float:
    """The z beyond which, on both sides, a standard normal variable lies with 1 - level."""
    from scipy.special import ndtri  # late: importing calshift must be fast

    return float(ndtri((1 + level) / 2))
