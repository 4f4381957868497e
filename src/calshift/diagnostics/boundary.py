"""Class shares at 0 or 1, compared with the mean prediction of the target."""

from __future__ import annotations

import numpy as np

from calshift._core.text import class_names
from calshift.diagnostics.conditions import unchecked
from calshift.diagnostics.label_tables import LabelTables
from calshift.results import ClassWeights, Diagnostic

AT_BOUNDARY = 1.0  # standard errors from 0 or 1, within which a share is at its boundary
SMALL, NEAR = 0.05, 2.58  # so are shares this near to 0 or 1, within this many standard errors
SURPRISING = 3.29  # standard errors of the mean prediction: p = .001, two-sided
NOTICEABLE = 0.05  # of the target: smaller differences of a share do not matter here
FAR, FAR_OF_SEVERAL = 0.15, 0.3  # of the target: from a share at its boundary to the prediction
WEAK = 0.3  # information of predictions, relative to the entropy, for shares near 0
AT_ZERO, WEAK_AT_ZERO = 0.1, 0.5  # standard errors from 0 or 1, and the information that it takes
LEAST_MEAN = 1e-12  # prediction of a class, below which it is not compared with its share
NO_SLOPE = 0.02  # of a mean prediction by a share: with less, small gaps are tolerated too


def check_boundary(
    weights: ClassWeights, tables: LabelTables | None, n_target: float
) -> Diagnostic:
    """Shares at 0 or 1, compared with the target's mean prediction.

    With q the target prior and M[k, y] the source's mean prediction of class k among label y, the
    mean prediction of class k on the target is (M q)_k under label shift, however weak or
    miscalibrated the model. The noise of the gap is that of both means, with the variances of the
    source; q's own error has no part in it, because an efficient q makes the gap smaller, not
    larger (Hausman). Gaps that correspond to a twentieth of the target are tolerated. A weak model
    may predict the same for any prior: a share at its boundary must also be within .15 (of several
    classes, whose shares are near 0 more often: .3) of the mean prediction, corrected by the ratio
    of class share to mean source prediction, and for three or more classes predictions must explain
    .3 of the entropy of the source's labels, and half of it where the share is 0 or 1.
    """
    name, q, error = "boundary", weights.prior_target, weights.standard_error
    if tables is None or tables.means is None or error is None or weights.predicted is None:
        return unchecked(name, None, "class shares of 0 or 1 were not compared with predictions")
    at = (tables.counts > 0) & (np.minimum(q, 1 - q) <= NEAR * error)
    if not at.any():
        return Diagnostic(name, 0.0, None, True, "no class share is within its error of 0 or 1")
    corrected = corrected_prediction(weights.predicted, tables)
    apart = np.where(at & _is_at_boundary(q, error), np.abs(q - corrected), 0.0)
    worst = int(np.argmax(apart))
    several = np.count_nonzero(tables.counts) > 2
    far = FAR_OF_SEVERAL if several else FAR
    if apart[worst] > far:
        which = class_names(np.array([worst]), weights.classes)
        text = (
            f"{which} is estimated at {q[worst]:.0%} of the target, and the mean prediction, "
            f"corrected by the source, is {corrected[worst]:.0%} (difference at most {far:.0%})"
        )
        return Diagnostic(name, float(apart[worst]), far, False, text)
    found = weights.discrimination
    distance = np.where(tables.counts > 0, np.minimum(q, 1 - q), np.inf)
    near = distance <= AT_BOUNDARY * error
    least = WEAK_AT_ZERO if (distance <= AT_ZERO * error).any() else WEAK
    if several and near.any() and found is not None and found < least:
        which = class_names(np.flatnonzero(near), weights.classes)
        text = (
            f"{which} is estimated within its error of 0 or 1, and predictions explain only "
            f"{found:.0%} of the entropy of the labels (at least {least:.0%} needed)"
        )
        return Diagnostic(name, float(found), least, False, text)
    expected, limit = expected_predictions(q, tables, n_target)
    gap = np.abs(weights.predicted - expected)
    worst = int(np.argmax(np.where(at, gap / limit, -1.0)))
    value, most = float(gap[worst]), float(limit[worst])
    which = class_names(np.array([worst]), weights.classes)
    text = (
        f"with a share of {q[worst]:.1%} the mean prediction of {which} would be "
        f"{expected[worst]:.1%} on the target, and it is {weights.predicted[worst]:.1%} "
        f"(difference at most {most:.2%})"
    )
    return Diagnostic(name, value, most, value <= most, text)


def _is_at_boundary(q: np.ndarray, error: np.ndarray) -> np.ndarray:
    """Whether 0 or 1 is within a standard error, or near in both senses."""
    distance = np.minimum(q, 1 - q)
    near = (distance <= SMALL) & (distance <= NEAR * error)
    return np.asarray((distance <= AT_BOUNDARY * error) | near)


def corrected_prediction(predicted: np.ndarray, tables: LabelTables) -> np.ndarray:
    """(K,) mean prediction times the ratio of class share to mean source prediction, normalised."""
    assert tables.means is not None
    pi = tables.counts / tables.counts.sum()
    mean = np.where(tables.counts > 0, tables.means, 0.0) @ pi
    ratio = np.divide(pi, mean, out=np.zeros_like(mean), where=mean > LEAST_MEAN)
    found = predicted * ratio
    return np.asarray(found / max(found.sum(), 1e-300))


def expected_predictions(
    q: np.ndarray, tables: LabelTables, n_target: float
) -> tuple[np.ndarray, np.ndarray]:
    """(K,) mean predictions of a target with the prior q, and how far others may be from them."""
    assert tables.means is not None
    assert tables.spreads is not None
    seen = tables.counts > 0
    pi, size = tables.counts / tables.counts.sum(), np.where(seen, tables.counts, 1.0)
    M, spread = np.where(seen, tables.means, 0.0), np.where(seen, tables.spreads, 0.0)
    with np.errstate(over="ignore", invalid="ignore"):  # sample weights of any size
        spread = spread + M * (1 - M) / (
            size * tables.share
        )  # few rows of a class may be all equal
        expected = M @ q
        drawn = np.where(
            seen, (n_target * q + 1) / (n_target + seen.sum()), 0.0
        )  # none is without noise
        variance = ((spread + M**2) @ drawn - (M @ drawn) ** 2) / n_target
        variance += spread @ (q**2 / (size * tables.share))
    others = (M @ pi - np.diag(M) * pi) / np.maximum(1 - pi, 1e-300)
    slope = np.maximum(np.diag(M) - others, NO_SLOPE)
    return expected, np.maximum(NOTICEABLE * slope, SURPRISING * np.sqrt(np.maximum(variance, 0)))
