"""Mended probabilities, and an honest account of what they are worth."""

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
from calshift.inference.compare import difference
from calshift.inference.options import Options, Progress
from calshift.recalibration import DEFAULT_RECALIBRATOR, make_recalibrator
from calshift.recalibration.base import Recalibrator
from calshift.results import RecalibrationResult
from calshift.weights import DEFAULT

FEW_CERTAIN, MOST_CERTAIN = 0.01, 0.5  # of the target's rows: said; beyond it, not trusted


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
    """Mend the target's probabilities without its labels.

    Parameters
    ----------
    p_source, y_source, p_target : predictions and labels before, predictions after the shift
    method : "shift" (default, `ShiftScaling`), "temperature", "bcts", "vector", "isotonic",
        "ensemble", "label-free", "prior", "temperature+prior", "bcts+prior", "vector+prior", or a
        recalibrator
    weights : class weights (a method's name, a vector or a ClassWeights) for the recalibrator and
        for both errors; None leaves them to the recalibrator, and the errors have "em-bcts"
    kind, norm : of the errors; norm 1 or 2
    folds : in how many parts the rows are divided for ``.after``
    rng : seed of that division, and of the test
    check : whether to test that only the mix of classes has changed
    progress : a callable that is told (fits done, fits in all)

    Returns
    -------
    RecalibrationResult

    Notes
    -----
    ``.after`` is honest: each part of both samples is mended by a recalibrator fitted to the other
    parts, and the label-free error is that of all parts together. The recalibrator returned, fitted
    to all rows, should do a little better. Where the mix is estimated, an error in it is for the
    most part common to the mending and to its assessment: the interval of ``.after`` has it, the
    estimate does not. Both errors rest on label shift, as the mending does: where ``.trusted`` is
    False, do not use the probabilities.

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
    parts = _divided(source, target, validate_integer(folds, "folds", 2), generator)
    fitted, asked = make_recalibrator(method), DEFAULT if weights is None else weights
    before = target_calibration_error(
        source, None, target, weights=asked, kind=kind, norm=norm, check=check,
        rng=int(rng) if is_number(rng) else int(generator.integers(2**31)),
    )  # fmt: skip
    with python_warnings.catch_warnings():
        python_warnings.simplefilter("ignore", UnreliableWeights)  # the error before told them
        fitted.fit(source, None, target, weights=weights)
        other_rows = _cross_fitted(fitted, (source, target), parts, weights, progress)
        mended = Arrays(other_rows[0]), Arrays(other_rows[1])
        after = target_result(*mended, options, asked, None, before.assumption)
    notes, usable = _objections(target, weights)
    return RecalibrationResult(
        probabilities=fitted.transform(target).p,
        recalibrator=fitted,
        before=before,
        after=after,
        change=difference(after, before),
        folds=int(parts[0].max()) + 1,
        notes=notes,
        usable=usable,
    )


def _objections(target: Predictions, weights: Any) -> tuple[tuple[str, ...], bool]:
    """What to know about the mending itself, and whether it can be worth anything."""
    notes, usable = [], True
    certain = float(np.average(target.matrix.max(axis=1) >= 1, weights=target.frequency))
    if certain > FEW_CERTAIN:
        notes.append(
            f"{certain:.0%} of the target's rows give a class a probability of exactly 1: nothing "
            "can mend them; keep more digits, or the scores"
        )
        usable = certain <= MOST_CERTAIN
    if not (weights is None or isinstance(weights, str)):
        notes.append("mended and judged by the weights given, which are not compared with the data")
    return tuple(notes), usable


Division = tuple[np.ndarray, np.ndarray]  # the part of each source row, and of each target row


def _divided(
    source: Predictions, target: Predictions, folds: int, rng: np.random.Generator
) -> Division:
    """Rows in parts of equal size; classes are spread evenly over the parts."""
    if len(target) < 2:
        msg = "p_target must have at least two rows: what mends one part is fitted to the others"
        raise InvalidInput(msg)
    folds = min(folds, len(source), len(target))
    order = rng.permutation(len(source))
    order = order[np.argsort(source.labels[order], kind="stable")]
    of_source = np.empty(len(source), dtype=int)
    of_source[order] = np.arange(len(source)) % folds
    for part in range(folds):
        if len(np.unique(source.labels[of_source != part])) < 2:
            msg = (
                "y_source must hold at least two rows of at least two classes: what mends one "
                "part of the rows is fitted to the others"
            )
            raise InvalidInput(msg)
    return of_source, rng.permutation(np.arange(len(target)) % folds)


def _cross_fitted(
    fitted: Recalibrator,
    samples: tuple[Predictions, Predictions],
    parts: Division,
    weights: Any,
    progress: Progress | None,
) -> tuple[Predictions, Predictions]:
    """Both samples, each part mended by a fit to the others."""
    mended, count = [np.empty(sample.p.shape) for sample in samples], int(parts[0].max()) + 1
    for part in range(count):
        rest, here = (
            [np.flatnonzero((of == part) == held) for of in parts] for held in (False, True)
        )
        other = fitted._fresh()
        source, target = (s.take(rows) for s, rows in zip(samples, rest, strict=True))
        other.fit(source, None, target, weights=weights)
        for p, sample, rows in zip(mended, samples, here, strict=True):
            p[rows] = other.transform(sample.take(rows)).p
        if progress is not None:
            progress(part + 1, count)
    source, target = samples
    return (
        source.with_probabilities(mended[0], keep_classes=True),
        target.with_probabilities(mended[1], keep_classes=True),
    )
