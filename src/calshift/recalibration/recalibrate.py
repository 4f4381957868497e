"""Recalibrated probabilities, with cross-fitted calibration errors before and after."""

from __future__ import annotations

import warnings as python_warnings
from dataclasses import replace
from typing import Any

import numpy as np

from calshift._core.predictions import Predictions
from calshift._core.validate import is_number, show, validate_integer, validate_rng
from calshift.api import target_calibration_error
from calshift.engines import Arrays
from calshift.engines.open import rows_of_pair
from calshift.errors import InvalidInput, UnreliableWeights
from calshift.inference.assemble import target_result
from calshift.inference.options import Options, Progress
from calshift.recalibration import DEFAULT_RECALIBRATOR, make_recalibrator
from calshift.recalibration.base import Recalibrator
from calshift.results import RecalibrationResult
from calshift.results.difference import compare_results
from calshift.weights import DEFAULT

FEW_CERTAIN, MOST_CERTAIN = 0.01, 0.5  # shares of certain rows: a warning; not usable


def recalibrate(
    p_source: Any,
    y_source: Any,
    p_target: Any,
    *,
    method: Any = DEFAULT_RECALIBRATOR,
    weights: Any = None,
    kind: str = "classwise",
    norm: float = 2,
    folds: int = 5,
    rng: Any = 0,
    check: bool = True,
    progress: Progress | None = None,
) -> RecalibrationResult:
    """Recalibrate the target's probabilities without its labels.

    Parameters
    ----------
    p_source, y_source, p_target : predictions and labels before, predictions after the shift
    method : "shift" (default, `ShiftScaling`), "temperature", "bcts", "vector", "isotonic",
        "ensemble", "label-free", "prior", "temperature+prior", "bcts+prior", "vector+prior", or a
        recalibrator
    weights : class weights (a method's name, a vector or a ClassWeights) for the recalibrator and
        for both errors; None leaves them to the recalibrator, and the errors have "em-bcts"
    kind, norm : of the errors; norm 1 or 2
    folds : number of folds of the cross-fitting for ``.after``
    rng : seed of the folds, and of the test
    check : whether to test that only the class distribution has changed
    progress : callback ``progress(done, total)``, in fits

    Returns
    -------
    RecalibrationResult

    Notes
    -----
    ``.after`` is cross-fitted: each fold of both samples is recalibrated by a fit to the other
    folds, and the label-free error is that of all folds together. The recalibrator returned, fitted
    to all rows, should be slightly better. An error of estimated class weights is largely common to
    the recalibration and to its assessment: it is part of the interval of ``.after``, not of the
    estimate. Both errors and the recalibration assume label shift: where ``.trusted`` is False, do
    not use the probabilities.

    Examples
    --------
    >>> import calshift
    >>> model = calshift.simulate.GaussianSimulation(n_classes=3, dimensions=3, seed=4)
    >>> p, y = model.source(3000, rng=0)
    >>> q, _ = model.target(3000, rng=1)
    >>> result = calshift.recalibrate(p, y, q)
    >>> result.after.root < result.before.root / 3
    True
    >>> result.probabilities.shape
    (3000, 3)
    """
    samples = list(rows_of_pair(p_source, y_source, p_target))
    target = samples[1]
    found = recalibrate_samples(
        samples, method=method, weights=weights, kind=kind, norm=norm, folds=folds, rng=rng,
        check=check, progress=progress,
    )  # fmt: skip
    return replace(found, probabilities=found.recalibrator.transform(target).p)


def recalibrate_samples(
    samples: list[Predictions],
    *,
    method: Any = DEFAULT_RECALIBRATOR,
    weights: Any = None,
    kind: str = "classwise",
    norm: float = 2,
    folds: int = 5,
    rng: Any = 0,
    check: bool = True,
    progress: Progress | None = None,
) -> RecalibrationResult:
    """`recalibrate` of source and target without the recalibrated probabilities.

    The list is emptied when the rows are not needed any more, so that their memory can be used.
    """
    options = Options(
        kind=kind, norm=norm, estimator="debiased", bins="auto", binning="mass", kernel=None,
        bandwidth="auto", interval="influence",
    )  # fmt: skip
    if options.norm not in (1.0, 2.0) or kind == "canonical":
        msg = f"norm must be 1 or 2 and kind not canonical; got {show(norm)} and {show(kind)}"
        raise InvalidInput(msg)
    source, target = samples
    generator = validate_rng(rng)
    folds_of_rows = _draw_folds(source, target, validate_integer(folds, "folds", 2), generator)
    fitted, used = make_recalibrator(method), DEFAULT if weights is None else weights
    before = target_calibration_error(
        source, None, target, weights=used, kind=kind, norm=norm, check=check,
        rng=int(rng) if is_number(rng) else int(generator.integers(2**31)),
    )  # fmt: skip
    with python_warnings.catch_warnings():
        python_warnings.simplefilter("ignore", UnreliableWeights)  # given with the error before
        fitted.fit(source, None, target, weights=weights)
        fits = _fit_folds(fitted, (source, target), folds_of_rows, weights, progress)
        first = Arrays(_recalibrate_folds(fits, source, folds_of_rows[0]))
        second = Arrays(_recalibrate_folds(fits, target, folds_of_rows[1]))
        notes, usable = _recalibration_notes(target, weights)
        samples.clear()
        del source, target
        after = target_result(first, second, options, used, None, before.assumption)
    return RecalibrationResult(
        probabilities=np.empty((0, fitted.n_classes_)),
        recalibrator=fitted,
        before=before,
        after=after,
        change=compare_results(after, before),
        folds=int(folds_of_rows[0].max()) + 1,
        notes=notes,
        usable=usable,
    )


def _recalibration_notes(target: Predictions, weights: Any) -> tuple[tuple[str, ...], bool]:
    """Warnings about the recalibration itself, and whether its probabilities are usable."""
    notes = []
    certain = float(np.average(target.matrix.max(axis=1) >= 1, weights=target.frequency))
    if certain > FEW_CERTAIN:
        notes.append(
            f"{certain:.0%} of the target's rows give a class a probability of exactly 1, which "
            "cannot be recalibrated: store more digits, or logits"
        )
    if not (weights is None or isinstance(weights, str)):
        notes.append("recalibration and errors use the weights given, not compared with the data")
    return tuple(notes), certain <= MOST_CERTAIN


def _draw_folds(
    source: Predictions, target: Predictions, folds: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """The fold of each source row and of each target row, of equal sizes; stratified by class."""
    if len(target) < 2:
        msg = f"p_target must have at least two rows for cross-fitting; got {len(target)}"
        raise InvalidInput(msg)
    folds = min(folds, len(source), len(target))
    order = rng.permutation(len(source))
    _, first, place = np.unique(source.labels[order], return_index=True, return_inverse=True)
    order = order[np.argsort(first[place], kind="stable")]  # whatever the order of the classes
    of_source = np.empty(len(source), dtype=int)
    of_source[order] = np.arange(len(source)) % folds
    if any(len(np.unique(source.labels[of_source != fold])) < 2 for fold in range(folds)):
        msg = "y_source must have at least two rows of at least two classes for cross-fitting"
        raise InvalidInput(msg)
    of_target = rng.permutation(np.arange(len(target)) % folds)
    small = np.min_scalar_type(folds)
    return of_source.astype(small), of_target.astype(small)


def _fit_folds(
    fitted: Recalibrator,
    samples: tuple[Predictions, Predictions],
    folds: tuple[np.ndarray, np.ndarray],
    weights: Any,
    progress: Progress | None,
) -> list[Recalibrator]:
    """For each fold a fit to the others; copies of their rows end with it."""
    found: list[Recalibrator] = []
    count = int(folds[0].max()) + 1
    for fold in range(count):
        found.append(_fit_without(fitted, samples, [of != fold for of in folds], weights))
        if progress is not None:
            progress(fold + 1, count)
    return found


def _fit_without(
    fitted: Recalibrator,
    samples: tuple[Predictions, Predictions],
    kept: list[np.ndarray],
    weights: Any,
) -> Recalibrator:
    """A fit to the rows that are kept."""
    source, target = (
        sample.take(np.flatnonzero(some)) for sample, some in zip(samples, kept, strict=True)
    )
    return fitted._clone().fit(source, None, target, weights=weights)


def _recalibrate_folds(
    fits: list[Recalibrator], sample: Predictions, of: np.ndarray
) -> Predictions:
    """A sample, each fold recalibrated by the fit to the others."""
    p = np.empty(sample.p.shape)
    for fold, other in enumerate(fits):
        p[of == fold] = other.transform(sample.take(np.flatnonzero(of == fold))).p
    return sample.with_probabilities(p, keep_classes=True)
