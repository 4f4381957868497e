"""How far the target's cells are from the nearest mixture, in total variation.

docs/mathematics.md, "Is it label shift at all?".
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from calshift.diagnostics.overidentification_test import CellMixture

BOUND = 0.95  # confidence of the upper bound
POWER = 0.8  # of the detectable distance
NORMAL = 1e6  # J above which its distribution is taken as normal


class CellDistance(NamedTuple):
    """Total variation between the target's cells and the nearest mixture.

    estimate is corrected for sampling noise, bound is an upper confidence bound, and any distance
    of at least detectable is found with a probability of 80%.
    """

    estimate: float
    bound: float
    detectable: float


def measure_distance(fit: CellMixture, scale: float, level: float) -> CellDistance:
    """The distance of the first of the tables; J / scale is chi-square under label shift.

    sum_l |gamma_l| / 2 <= sqrt(lambda sum_l D_l) / 2 with lambda = sum_l gamma_l^2 / D_l, the
    noncentrality of J. At level / 2 of J alone, both tests together reject.
    """
    from scipy.special import chdtri

    df, J = max(int(fit.df[0]), 1), float(fit.statistic[0]) / max(scale, np.finfo(float).tiny)
    unit = np.sqrt(scale * fit.noise[0].sum()) / 2
    found = np.abs(fit.residual[0]).sum() / 2 * np.sqrt(max(1 - df / J, 0.0) if J > 0 else 0.0)
    bound = unit * np.sqrt(_noncentrality(max(J, df), df, 1 - BOUND))
    least = unit * np.sqrt(_noncentrality(float(chdtri(df, level / 2)), df, 1 - POWER))
    return CellDistance(float(found), min(max(bound, float(found)), 1.0), min(least, 1.0))


def _noncentrality(J: float, df: int, tail: float) -> float:
    """The noncentrality for which a smaller value than J has this probability."""
    from scipy.special import chndtrinc, ndtri

    if J <= NORMAL:
        return float(chndtrinc(J, df, tail))
    z = ndtri(tail) ** 2
    middle = J - df + 2 * z
    return float(middle + np.sqrt(middle**2 - (J - df) ** 2 + 2 * z * df))
