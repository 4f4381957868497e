"""Estimate and interval together, by influence functions or by the bootstrap."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from calshift._core.predictions import Predictions
from calshift.binning.events import Events
from calshift.engines import Arrays
from calshift.engines.base import Engine, rows_in_memory
from calshift.engines.open import check_pair
from calshift.inference.bootstrap import Bootstrap
from calshift.inference.estimate import event_errors
from calshift.inference.event_estimates import EventEstimates
from calshift.inference.kept_curves import plan_curves
from calshift.inference.options import Options
from calshift.results import ClassWeights
from calshift.weights import METHODS, resolve_class_weights


@dataclass(frozen=True)
class BootstrapStatistic:
    """The error of samples drawn again, with weights refitted where they were estimated."""

    events: Events
    options: Options
    weights: Any  # a method's name, or the weights themselves

    def __call__(self, source: Predictions, target: Predictions | None) -> np.ndarray:
        rows = Arrays(source)
        if target is None:
            return event_errors(rows, None, self.events, self.options, self.weights).values
        others = Arrays(target)
        check_pair(rows.summary, others.summary)
        found = resolve_class_weights(self.weights, rows, others)
        return event_errors(
            rows, others, self.events, self.options, found.values, found.influence
        ).values


def estimated(
    source: Engine,
    target: Engine,
    events: Events,
    options: Options,
    weights: Any,
    draws: Bootstrap | None,
) -> tuple[EventEstimates, ClassWeights]:
    """Without target labels: the errors with their distributions, and the weights used."""
    found = resolve_class_weights(weights, source, target)
    in_memory = source.in_memory is not None and target.in_memory is not None
    errors = event_errors(
        source, target, events, options, found.values, found.influence,
        interval=options.interval == "influence",
        curves=partial(plan_curves, source, target, events.kind) if in_memory else None,
    )  # fmt: skip
    if options.interval != "bootstrap":
        return errors, found
    assert draws is not None  # a bootstrap comes with them
    refit = found.method if found.influence is not None and found.method in METHODS else found
    recipe = BootstrapStatistic(events, options, refit)
    return _with_draws(errors, draws, recipe, source, target), found


def labelled(
    sample: Engine,
    events: Events,
    options: Options,
    ones: np.ndarray,
    draws: Bootstrap | None,
) -> EventEstimates:
    """With labels; a class with NaN in the place of a one is left out.

    Without draws, as the error beside a bootstrap, it has the interval in closed form.
    """
    if options.interval != "bootstrap" or draws is None:
        closed = options.interval is not None
        return event_errors(sample, None, events, options, ones, interval=closed)
    errors = event_errors(sample, None, events, options, ones)
    return _with_draws(errors, draws, BootstrapStatistic(events, options, ones), sample, None)


def _with_draws(
    errors: EventEstimates,
    draws: Bootstrap,
    recipe: BootstrapStatistic,
    source: Engine,
    target: Engine | None,
) -> EventEstimates:
    what = 'interval="bootstrap"'
    rows = rows_in_memory(source, what)
    others = None if target is None else rows_in_memory(target, what)
    distribution, event_distributions = draws.distributions(recipe, rows, others, errors.values)
    return replace(errors, distribution=distribution, event_distributions=event_distributions)
