"""What is applied where the recalibration asked for is not trusted, or makes a score worse.

A calibration fitted to the source as it is, which does not follow the class distribution of the
target; or none. docs/mathematics.md section 11.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from calshift.recalibration.assessment.scores import ClassDistribution, Scores, Strata
from calshift.recalibration.base import Recalibrator
from calshift.recalibration.cross_fit import FoldedSample, fit_folds
from calshift.recalibration.scalings import TemperatureScaling, Unchanged, VectorScaling


class Fallback(NamedTuple):
    """The recalibrator that is applied instead: "source" or "unchanged"."""

    name: str
    recalibrator: Recalibrator


def choose_fallback(
    folded: FoldedSample, source: Strata, before: Scores, target: ClassDistribution
) -> Fallback:
    """The best calibration on the source that its labels support, cross-fitted.

    A temperature must clearly lower the source's log loss, and vector scaling that of the
    temperature. Neither may make accuracy or log loss clearly worse with equal class priors, nor
    with those estimated for the target, trusted or not: what is better for the source's classes
    together can be worse for each of the target's.
    """
    best: Recalibrator = Unchanged()
    scores, others = before, (source.even, target)
    for model in _candidates():
        fits = fit_folds(model, folded, None, None, None)
        found = Scores.of(folded.recalibrate(fits))
        gain = source.changes(scores, found, source.source)
        harm = gain.worse or any(source.changes(scores, found, of).worse for of in others)
        if gain.log_loss.is_better() and not harm:
            best, scores = model, found
    name = "unchanged" if isinstance(best, Unchanged) else "source"
    return Fallback(name, best.fit_rows(folded.rows, None, None))


def _candidates() -> Iterator[Recalibrator]:
    """From few parameters to many."""
    yield TemperatureScaling()
    yield VectorScaling()
