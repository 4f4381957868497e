"""Recalibrated probabilities, with cross-fitted calibration errors before and after."""

from __future__ import annotations

import warnings as python_warnings
from typing import Any

import numpy as np

from calshift._core.predictions import Predictions
from calshift._core.validate import is_number, validate_integer, validate_rng
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
    options = Options(
        kind=kind, norm=norm, estimator="debiased", bins="auto", binning="mass", kernel=None,
        bandwidth="auto", interval="influence",
    )  # fmt: skip
    if options.norm not in (1.0, 2.0) or kind == "canonical":
        msg = f"norm must be 1 or 2 and kind not canonical; got {norm!r} and {kind!r}"
        raise InvalidInput(msg)
    source, target = rows_of_pair(p_source, y_source, p_target)
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
        first, second = _cross_fit(fitted, (source, target), folds_of_rows, weights, progress)
        after = target_result(Arrays(first), Arrays(second), options, used, None, before.assumption)
    notes, usable = _recalibration_notes(target, weights)
    return RecalibrationResult(
        probabilities=fitted.transform(target).p,
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
    order = order[np.argsort(source.labels[order], kind="stable")]
    of_source = np.empty(len(source), dtype=int)
    of_source[order] = np.arange(len(source)) % folds
    if any(len(np.unique(source.labels[of_source != fold])) < 2 for fold in range(folds)):
        msg = "y_source must have at least two rows of at least two classes for cross-fitting"
        raise InvalidInput(msg)
    return of_source, rng.permutation(np.arange(len(target)) % folds)


def _cross_fit(
    fitted: Recalibrator,
    samples: tuple[Predictions, Predictions],
    folds: tuple[np.ndarray, np.ndarray],
    weights: Any,
    progress: Progress | None,
) -> list[Predictions]:
    """Both samples, each fold recalibrated by a fit to the others."""
    found, count = [np.empty(sample.p.shape) for sample in samples], int(folds[0].max()) + 1
    for fold in range(count):
        source, target = (
            sample.take(np.flatnonzero(of != fold))
            for sample, of in zip(samples, folds, strict=True)
        )
        other = fitted._clone().fit(source, None, target, weights=weights)
        for p, sample, of in zip(found, samples, folds, strict=True):
            p[of == fold] = other.transform(sample.take(np.flatnonzero(of == fold))).p
        if progress is not None:
            progress(fold + 1, count)
    return [
        sample.with_probabilities(p, keep_classes=True)
        for sample, p in zip(samples, found, strict=True)
    ]
