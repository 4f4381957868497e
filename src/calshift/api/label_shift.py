"""Class weights under label shift, and the test of that assumption."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from calshift._core.labels import MOST_CLASSES, encode_labels
from calshift._core.validate import is_number, validate_flag, validate_integer
from calshift.binning.confidence_cells import plan_cells
from calshift.diagnostics.conditions import LABEL_SHIFT, WEIGHTS, settle, validate_waive
from calshift.diagnostics.label_shift_check import label_shift_check
from calshift.diagnostics.label_tables import tabulate_labels
from calshift.diagnostics.trust import announce, collect_warnings, prior_conditions
from calshift.engines.base import Engine
from calshift.engines.open import open_pair, start_run
from calshift.inference.options import Progress
from calshift.results import ClassWeights, LabelShiftCheck
from calshift.weights import DEFAULT, estimate_weights, weights_from_counts

CHECK_LEVEL, CHECK_DRAWS = 0.05, 200  # of the test that comes with an estimate


def check_unless_waived(
    samples: tuple[Engine, Engine], waive: frozenset[str], rng: Any
) -> LabelShiftCheck | None:
    """The test of label shift that comes with an estimate; None if it is waived."""
    if LABEL_SHIFT[0] in waive:
        return None
    seed = rng if is_number(rng) else 0
    return label_shift_check(*samples, CHECK_LEVEL, CHECK_DRAWS, seed)


def label_shift_weights(
    p_source: Any,
    y_source: Any,
    p_target: Any,
    *,
    method: str = DEFAULT,
    diagnose: bool = False,
    waive: Iterable[str] = (),
    progress: Progress | None = None,
    checkpoint: str | Path | None = None,
) -> ClassWeights:
    """Class weights ``w_y = p_t(y) / p_s(y)`` without target labels.

    With ``C[a, y]`` the share of source rows predicted as a with label y, ``mu[a]`` the share of
    target rows predicted as a, and ``pi`` the class shares of the source::

        bbse, bbse-soft    C w = mu in least squares,      w >= 0, sum_y pi_y w_y = 1
        rlls, rlls-soft    min |C t - b| + penalty |t|,    w = 1 + t >= 0, b = mu - C 1
        em                 max mean_j log sum_y p_jy q_y / pi_y,    w = q / pi
        em-ts, em-bcts, em-vs, em-nbvs    the same after calibrating both samples on the source
        map                em-bcts with a Dirichlet prior on q around pi
        elsa               C w = mu with features weighted by their noise
        matched            the same with calibrated posterior probabilities, weighted by em-bcts
        auto               an average of matched and em-bcts, by their difference and noise
        kmm                C w = mu with the features of a Gaussian kernel

    "soft" counts probabilities where the plain form counts predicted classes.

    Parameters
    ----------
    p_source, y_source : labelled predictions before the shift; or a `Predictions`, a `scan` or the
        path of files, and None
    p_target : predictions after it
    method : its name
    diagnose : whether to check the conditions for ``.trusted``, the test of label shift among them;
        without it ``.diagnostics`` is empty and ``.trusted`` is False
    waive : names of conditions to do without, as in `target_calibration_error`
    progress, checkpoint : of scanned data, as in `calibration_error`

    Returns
    -------
    ClassWeights
        with both priors, standard errors from the sampling of both sides, and warnings

    Notes
    -----
    "matched" assumes label shift alone; "em-bcts" is more precise, and unbiased where calibration
    by a temperature and biases suffices. "auto" combines both; ``.method`` has the share of each.
    "bbse-soft" and "kmm" assume nothing about calibration either; "map" is shrunk to the source's
    class priors as far as the evidence allows, for weak models and hundreds of classes of few rows.
    docs/mathematics.md section 7 compares them.

    Examples
    --------
    >>> import calshift
    >>> simulation = calshift.simulate.GaussianSimulation(n_classes=3, imbalance=4)
    >>> p_source, y_source = simulation.source(3000, rng=1)
    >>> p_target, _ = simulation.target(3000, rng=2)
    >>> weights = calshift.label_shift_weights(p_source, y_source, p_target)
    >>> weights.prior_target.round(2), simulation.prior("target").round(2)
    (array([0.57, 0.28, 0.15]), array([0.57, 0.29, 0.14]))
    >>> weights.standard_error.round(3)
    array([0.01 , 0.009, 0.007])
    """
    waived = validate_waive(waive, WEIGHTS)
    asked = ("label_shift_weights", method)
    diagnose = validate_flag(diagnose, "diagnose")
    with start_run(checkpoint, progress, (*asked, True) if diagnose else asked) as run:
        source, target = open_pair(p_source, y_source, p_target, run)
        found = estimate_weights(method, source, target, compare=True)
        if diagnose:
            found = _diagnose(found, source, target, waived)
    announce(found, found.assumption, found.diagnostics)
    return found


def _diagnose(
    weights: ClassWeights, source: Engine, target: Engine, waive: frozenset[str]
) -> ClassWeights:
    """The weights with the test of label shift and the outcomes of their conditions."""
    asked = (CHECK_LEVEL, CHECK_DRAWS, 0)
    check = None if LABEL_SHIFT[0] in waive else label_shift_check(source, target, *asked)
    tables = tabulate_labels(source, means=True)
    conditions = prior_conditions(weights, check, tables, target.summary.size)
    diagnostics = settle(conditions, waive)
    notes = collect_warnings(diagnostics, weights)
    return replace(weights, assumption=check, diagnostics=diagnostics, warnings=notes)


def _validate_classes(n_classes: Any) -> int:
    return validate_integer(n_classes, "n_classes", 2, MOST_CLASSES)


def weights_from_labels(y_source: Any, y_target: Any, n_classes: int | None = None) -> ClassWeights:
    """The weights ``w_y = p_t(y) / p_s(y)`` where target labels exist: the oracle w*.

    Intervals of what is made of them include the noise of both sides' labels, if ``y_source`` is
    the source's; with ``interval="bootstrap"`` they are kept as they are.

    Examples
    --------
    >>> import calshift
    >>> calshift.weights_from_labels([0, 0, 0, 1], [0, 1, 1, 1]).values
    array([0.33333333, 3.        ])
    """
    most = MOST_CLASSES if n_classes is None else _validate_classes(n_classes)
    labels = [encode_labels(y_source, "y_source", most), encode_labels(y_target, "y_target", most)]
    K = max(2, *(int(y.max()) + 1 for y in labels)) if n_classes is None else most
    return weights_from_counts(*(np.bincount(y, minlength=K).astype(float) for y in labels))


def check_label_shift(
    p_source: Any,
    y_source: Any,
    p_target: Any,
    *,
    level: float = 0.05,
    n_boot: int = 200,
    rng: Any = 0,
    progress: Progress | None = None,
    checkpoint: str | Path | None = None,
) -> LabelShiftCheck:
    """Test whether only the class priors have changed, without target labels.

    Rows are counted in cells of predicted class and confidence. Under label shift the target's
    shares h of the cells are a mixture ``A q`` of the shares A_y of the source's classes; as there
    are more cells than classes, other changes show::

        J = min_q (h - A q)' S^-1 (h - A q)        q >= 0, S: the sampling noise of both sides
        z = d' (h - A q), standardised             d: high against low confidence, within a class

    J finds any change, z a drift of confidence. The p-values are those of a parametric bootstrap:
    tables drawn under the fitted mixture; label shift is rejected by both tests together at
    ``level``. The size of the change is given too, as a distance with an upper bound, and the
    distance that these samples would show.

    Parameters
    ----------
    p_source, y_source : labelled predictions before the shift; or a `Predictions`, a `scan` or the
        path of files, and None
    p_target : predictions after it
    level : of the test, the share of false alarms
    n_boot : draws of the bootstrap at most; it stops early where the outcome is clear
    rng : seed or generator of the draws; the same seed gives the same p-value
    progress, checkpoint : of scanned data, as in `calibration_error`

    Returns
    -------
    LabelShiftCheck
        with ``.rejected``, ``.verdict`` in words, and residuals by class and confidence

    Notes
    -----
    Not rejecting is no proof: docs/mathematics.md lists what is detected and what is not. Where
    few classes are predicted, their rows are divided among the other classes too. Where there are
    no more cells with enough rows than classes nevertheless, nothing is tested: ``.p_value`` is
    None.
    Fractional sample weights count as fractions of rows.

    Examples
    --------
    >>> import calshift
    >>> simulation = calshift.simulate.GaussianSimulation(n_classes=3, dimensions=3)
    >>> p_source, y_source = simulation.source(5000, rng=1)
    >>> p_target, _ = simulation.target(5000, rng=2)
    >>> calshift.check_label_shift(p_source, y_source, p_target).rejected
    False
    >>> flattened = p_target**0.7 / (p_target**0.7).sum(axis=1, keepdims=True)
    >>> check = calshift.check_label_shift(p_source, y_source, flattened)
    >>> check.rejected, round(check.p_value, 3)
    (True, 0.005)
    """
    with start_run(checkpoint, progress, "check_label_shift") as run:
        source, target = open_pair(p_source, y_source, p_target, run, plan_cells)
        return label_shift_check(source, target, level, n_boot, rng)
