"""Reliability curves."""

from __future__ import annotations

from typing import Any

import numpy as np

from calshift.binning.events import select_binned_events
from calshift.diagnostics.trust import announce
from calshift.engines.open import open_pair, open_source
from calshift.errors import InvalidInput
from calshift.inference.reliability import reliability_curves
from calshift.results import ReliabilityCurve
from calshift.weights import DEFAULT, resolve_class_weights
from calshift.weights.influence import ScaledWeights


def reliability_curve(
    p_source: Any,
    y_source: Any = None,
    p_target: Any = None,
    *,
    weights: Any = DEFAULT,
    kind: str = "classwise",
    label: int | None = None,
    bins: Any = "auto",
) -> ReliabilityCurve:
    """Frequency of the event against its score, with labels or, given a target, without.

    In a bin the frequency is the mean score plus the mean residual, ``F_b + U_b``: with labels
    the plain frequency, on a target ``F_b`` is the target's and ``U_b`` the weighted source's, kept
    within [0, 1].
    ``.band(level)`` is its interval in each bin, that of estimated weights included.
    ``label`` picks a class; None under "classwise" pools the scores of all classes, where errors
    of opposite sign in different classes can cancel: look at the classes too.

    Examples
    --------
    >>> import calshift
    >>> curve = calshift.reliability_curve([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 0], bins=2)
    >>> curve.score, curve.frequency
    (array([0.15, 0.85]), array([0. , 0.5]))
    """
    if p_target is None:
        source, target = open_source(p_source, y_source), None
        if not (isinstance(weights, str) and weights == DEFAULT):
            msg = "weights need a p_target to be the weights of"
            raise InvalidInput(msg)
        sizes = source.summary.size, source.summary.size
        scaled_weights = ScaledWeights.of(np.ones(source.summary.n_classes), None, sizes)
    else:
        source, target = open_pair(p_source, y_source, p_target)
        found = resolve_class_weights(weights, source, target)
        announce(found)
        sizes = (source.summary.size, target.summary.size)
        scaled_weights = ScaledWeights.of(found.values, found.influence, sizes)
    wanted = [(select_binned_events(kind, source.summary), label)]
    return reliability_curves(source, target, wanted, scaled_weights, bins)[0]
