"""A lower confidence bound of the canonical error for any number of classes."""

from __future__ import annotations

import warnings as python_warnings
from typing import Any

import numpy as np

from calshift._core.predictions import Predictions
from calshift._core.validate import (
    is_number,
    validate_choice,
    validate_flag,
    validate_integer,
    validate_rng,
)
from calshift.api.label_shift import CHECK_DRAWS, CHECK_LEVEL
from calshift.bounds.recalibration_gain import LOSSES, labelled_gain, loss_differences, shifted_gain
from calshift.diagnostics.conditions import WEIGHTS, settle, validate_waive
from calshift.diagnostics.label_order import check_label_order
from calshift.diagnostics.label_shift_check import label_shift_check
from calshift.diagnostics.label_tables import tabulate_labels
from calshift.diagnostics.sample_conditions import check_sample_size
from calshift.diagnostics.trust import announce, collect_warnings, prior_conditions
from calshift.diagnostics.weight_conditions import are_estimated
from calshift.engines import Arrays
from calshift.engines.base import rows_in_memory
from calshift.engines.open import open_source, rows_of_pair
from calshift.errors import InvalidInput, UnreliableWeights
from calshift.recalibration import DEFAULT_RECALIBRATOR, make_recalibrator
from calshift.recalibration.base import Recalibrator
from calshift.recalibration.cross_fit import FoldedSample, fit_folds
from calshift.results import CanonicalErrorBound
from calshift.weights import DEFAULT, resolve_class_weights


def canonical_error_bound(
    p: Any,
    y: Any = None,
    p_target: Any = None,
    *,
    loss: str = "brier",
    method: Any = DEFAULT_RECALIBRATOR,
    weights: Any = None,
    folds: int = 5,
    rng: Any = 0,
    check: bool = True,
) -> CanonicalErrorBound:
    """A lower confidence bound of the canonical calibration error, for any number of classes.

    No map g of the probability vector lowers the expected Brier score by more than the canonical
    error: ``E |E[Y | f] - f|^2 = max_g (Brier(f) - Brier(g(f)))``. So what a recalibrator fitted to
    other rows gains is a lower bound, and the mean gain has a standard error.

    Parameters
    ----------
    p, y : labelled predictions; or a `Predictions` or the path of files, and None
    p_target : predictions after a label shift, without labels: the bound is then of their error.
        None: of the error of ``p``
    loss : "brier", or "log" for the mean Kullback-Leibler divergence of f from E[Y | f]
    method : the recalibrator, as in `recalibrate`. The closer it comes to E[Y | f], the higher the
        bound; it is valid for any
    weights : class weights (a method's name, a vector or a ClassWeights) for the recalibrator and
        for the gain; None leaves them to the recalibrator, and the gain has "auto"
    folds : number of folds of the cross-fitting
    rng : seed of the folds, and of the test
    check : whether to test that only the class priors changed (`check_label_shift`)

    Returns
    -------
    CanonicalErrorBound

    Notes
    -----
    Each fold is recalibrated by a fit to the other folds of both samples. Estimated class weights
    are cross-fitted through their influence function, and their uncertainty is part of the
    standard error. ``.gain`` may be below 0, for a calibrated model. The bound relies on the normal
    approximation of a mean, which losses with a few very large values reach slowly.

    Examples
    --------
    >>> import calshift
    >>> simulation = calshift.simulate.GaussianSimulation(n_classes=10, seed=1)
    >>> p, y = simulation.source(3000, rng=1)
    >>> q, _ = simulation.target(3000, rng=2)
    >>> labelled = calshift.canonical_error_bound(p, y)
    >>> bound = calshift.canonical_error_bound(p, y, q)
    >>> 0 < labelled.root_lower_bound() < bound.root_lower_bound()
    True
    """
    validate_choice(loss, "loss", LOSSES)
    folds, check = validate_integer(folds, "folds", 2), validate_flag(check, "check")
    generator, model = validate_rng(rng), make_recalibrator(method)
    if p_target is None:
        if weights is not None:
            msg = "weights needs a p_target: labelled rows are not weighted"
            raise InvalidInput(msg)
        rows = rows_in_memory(open_source(p, y), "this")
        return _bound_labelled(rows, model, loss, folds, generator)
    samples = rows_of_pair(p, y, p_target)
    seed = int(rng) if is_number(rng) else int(generator.integers(2**31))
    found = _bound_shifted(samples, model, loss, weights, folds, generator, seed if check else None)
    announce(found.class_weights, found.assumption)
    return found


def _bound_labelled(
    rows: Predictions, model: Recalibrator, loss: str, folds: int, rng: np.random.Generator
) -> CanonicalErrorBound:
    of = _draw_folds(rows, folds, rng, "p")
    folded, fits = FoldedSample(rows, of), []
    for fold in range(len(folded.sizes)):
        with folded.without(fold) as others:
            fits.append(model._clone().fit(others))
    gain = labelled_gain(loss_differences(rows, folded.recalibrate(fits), loss), rows)
    order = check_label_order(tabulate_labels(Arrays(rows), means=False))
    size = check_sample_size(rows.size, np.inf, "sample")
    met = settle((order, size), frozenset())
    return CanonicalErrorBound(
        gain.value, gain.standard_error, loss, repr(model), len(fits), rows.size,
        warnings=collect_warnings(met), trusted=not any(one.failed for one in met),
    )  # fmt: skip


def _bound_shifted(
    samples: tuple[Predictions, Predictions],
    model: Recalibrator,
    loss: str,
    weights: Any,
    folds: int,
    rng: np.random.Generator,
    seed: int | None,
) -> CanonicalErrorBound:
    """``seed`` of the test of label shift, or None without it."""
    source, target = samples
    engines = Arrays(source), Arrays(target)
    checked = None
    if seed is not None:
        checked = label_shift_check(*engines, CHECK_LEVEL, CHECK_DRAWS, seed)
    asked = DEFAULT if weights is None else weights
    used = resolve_class_weights(asked, *engines, compare=True)
    folds = max(2, min(folds, len(source), len(target)))  # as many in both
    of = _draw_folds(source, folds, rng, "p"), _draw_folds(target, folds, rng, "p_target")
    folded = FoldedSample(source, of[0])
    with python_warnings.catch_warnings():
        python_warnings.simplefilter("ignore", UnreliableWeights)  # said of the weights used
        fits = fit_folds(model, folded, FoldedSample(target, of[1]), weights, None)
    psi = loss_differences(source, folded.recalibrate(fits), loss)
    gain = shifted_gain(psi, samples, of, used.values, used.influence)
    tables = tabulate_labels(engines[0], means=are_estimated(used))
    waived = validate_waive((), WEIGHTS, seed is not None)
    met = settle(prior_conditions(used, checked, tables, target.size), waived)
    return CanonicalErrorBound(
        gain.value, gain.standard_error, loss, repr(model), len(fits), source.size, target.size,
        used, checked, collect_warnings(met, used), not any(one.failed for one in met),
    )  # fmt: skip


def _draw_folds(rows: Predictions, folds: int, rng: np.random.Generator, name: str) -> np.ndarray:
    """The fold of each row, drawn without regard to labels.

    Folds with the same class shares would not be independent of each other: a recalibrator that
    follows the class shares of its own folds by chance would follow those of the others too.
    """
    folds = min(folds, len(rows))
    if folds < 2:
        msg = f"{name} must have at least two rows for cross-fitting; got {len(rows)}"
        raise InvalidInput(msg)
    of = rng.permutation(np.resize(np.arange(folds), len(rows)))
    few = rows.y is not None and any(
        len(np.unique(rows.y[of != fold])) < 2 for fold in range(folds)
    )
    if few:
        msg = f"{name} must have rows of at least two classes in every fold but one"
        raise InvalidInput(msg)
    return of
