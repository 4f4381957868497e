"""The variance of the paper's estimate by its Algorithm 1."""

from __future__ import annotations

from typing import Any

import numpy as np

from calshift._core.validate import show, validate_flag, validate_rng
from calshift.binning.events import select_events
from calshift.diagnostics.trust import announce
from calshift.engines.base import Engine
from calshift.engines.open import open_pair, open_source
from calshift.errors import InvalidInput
from calshift.inference.algorithm1 import event_variances, variance_of
from calshift.inference.assemble import sum_variances
from calshift.inference.options import Options
from calshift.results import AlgorithmVariance, ClassWeights
from calshift.weights import resolve_class_weights


def variance_algorithm1(
    p_source: Any,
    y_source: Any,
    p_target: Any = None,
    *,
    weights: Any = None,
    kind: str = "classwise",
    norm: float = 2,
    bins: Any = 15,
    stratified: bool = False,
    sampled: bool = False,
    rng: Any = None,
) -> AlgorithmVariance:
    """Variance of ``estimator="paper"`` by Algorithm 1 of the paper, with labels or without.

    In each bin the frequency R is taken as normal, and the M_b gaps ``Z = |R - f|^p`` share it::

        Var(CE_p^p) = sum_b [ M_b Var(Z) + M_b (M_b - 1) Cov(Z, Z') ] / m^2
        with labels:     R ~ N(q, q (1 - q) / (N_b - 1)),         q the frequency in the bin
        without:         R ~ N(a S_b, a^2 S_b (1 - S_b / n_b)),   a = (w / n) (m - 1) / (M_b - 1)
        corrected:       R ~ N(a S_b, a^2 S_b (1 - S_b / n))

    with S_b source rows of the class among the n_b of the bin. Class weights are held fixed.

    Parameters
    ----------
    p_source, y_source : labelled predictions (or a `Predictions` and None)
    p_target : unlabelled predictions after a shift; None asks for the variance of the error
        with labels, on the source
    weights : as in `target_calibration_error`, and required with a target
    kind : "classwise" or "binary"; a 1-D ``p_source`` is binary
    norm, bins : as in `calibration_error`
    stratified : the corrected variance for a source with as many rows of a class as were planned:
        ``S_b / n_c`` in the place of ``S_b / n``
    sampled : draw R and f, as the paper prints it, rather than compute the same numbers
    rng : seed or generator of these draws

    Returns
    -------
    AlgorithmVariance
        ``float()`` of it is the paper's variance; ``.corrected`` stands beside it under shift

    Notes
    -----
    The paper takes n_b as given, though it is random and nothing divides S_b by it; the corrected
    variance does not. Neither includes the noise of estimated weights or of the bins' edges. The
    paper takes classes one at a time, as ``.per_class`` does; ``.variance`` of their mean adds them
    up as if they were independent, and ``.largest`` bounds it whatever their dependence.
    docs/mathematics.md compares all of these with simulations.

    Examples
    --------
    >>> import calshift
    >>> simulation = calshift.simulate.BetaSimulation()
    >>> p_source, y_source = simulation.source(1000, rng=1)
    >>> p_target, _ = simulation.target(1000, rng=2)
    >>> labelled = calshift.variance_algorithm1(p_source, y_source)
    >>> shifted = calshift.variance_algorithm1(p_source, y_source, p_target, weights="bbse")
    >>> [f"{value:.1e}" for value in (float(labelled), float(shifted), shifted.corrected)]
    ['1.6e-05', '3.5e-05', '1.9e-04']
    """
    if isinstance(kind, str) and kind in ("top-label", "canonical"):
        msg = f'kind must be "classwise" or "binary" for Algorithm 1; got {show(kind)}'
        raise InvalidInput(msg)
    options = Options(kind, norm, "paper", bins, "mass", None, "auto", None, stratified)
    source, target, class_weights = _with_weights(p_source, y_source, p_target, weights, stratified)
    events = select_events(kind, source.summary)
    w = np.ones(events.n_classes) if class_weights is None else class_weights.values
    if class_weights is not None:
        announce(class_weights)
    sampled = validate_flag(sampled, "sampled")
    spread = variance_of(options.norm, validate_rng(rng) if sampled else None)
    found, joined = event_variances(source, target, events, options, w, stratified, spread)
    return AlgorithmVariance(
        norm=options.norm,
        n_source=source.summary.size,
        n_target=None if target is None else target.summary.size,
        class_weights=class_weights,
        stratified=options.stratified,
        sampled=sampled,
        warnings=() if class_weights is None else class_weights.warnings,
        merged_bins=joined,
        classes=source.summary.classes,
        **sum_variances(found, events, w),
    )


def _with_weights(
    p_source: Any, y_source: Any, p_target: Any, weights: Any, stratified: bool
) -> tuple[Engine, Engine | None, ClassWeights | None]:
    """Both samples and the weights between them, or the source alone."""
    if p_target is not None:
        source, target = open_pair(p_source, y_source, p_target)
        return source, target, resolve_class_weights(weights, source, target)
    if weights is not None or stratified:
        asked = "weights need" if weights is not None else "stratified needs"
        msg = f"{asked} a p_target: the error with labels on the source has no shift"
        raise InvalidInput(msg)
    return open_source(p_source, y_source), None, None
