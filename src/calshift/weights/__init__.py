"""Class weights: the methods of estimation by name, and weights given by the user."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from calshift._core.validate import validate_choice
from calshift.engines import Blocks
from calshift.engines.base import Engine
from calshift.results import ClassWeights
from calshift.weights.agreement import expected_distance, plan_comparison
from calshift.weights.auto import auto
from calshift.weights.confusion import bbse, plan_bbse, rlls
from calshift.weights.elsa_kmm import elsa, kmm
from calshift.weights.given import make_given_weights, weights_from_counts
from calshift.weights.influence import Method, WeightFit
from calshift.weights.likelihood import em
from calshift.weights.matched import matched
from calshift.weights.quality import diagnose_weights

METHODS: dict[str, Method] = {
    "auto": auto,
    "bbse": partial(bbse, soft=False),
    "bbse-soft": partial(bbse, soft=True),
    "rlls": partial(rlls, soft=False),
    "rlls-soft": partial(rlls, soft=True),
    "em": em,
    "em-ts": partial(em, calibrator="ts"),
    "em-bcts": partial(em, calibrator="bcts"),
    "em-vs": partial(em, calibrator="vs"),
    "em-nbvs": partial(em, calibrator="nbvs"),
    "map": partial(em, calibrator="bcts", prior=True),
    "elsa": elsa,
    "kmm": kmm,
    "matched": matched,
}
REFERENCE = "bbse-soft"  # which weights are compared with; itself with matched ones
DEFAULT = "auto"  # why: docs/mathematics.md section 7 and benchmarks/weights_recovery.py


Compared = Callable[[], ClassWeights]  # weights with their comparison, once it is needed


def resolve_class_weights(
    weights: Any, source: Engine, target: Engine, *, compare: bool = False
) -> ClassWeights:
    """Class weights from what a user passed: a method's name, a vector, or a ClassWeights.

    With ``compare`` estimated weights are compared with those of another method.
    """
    found, compared = plan_class_weights(weights, source, target, compare=compare)
    return compared() if compare else found


def plan_class_weights(
    weights: Any, source: Engine, target: Engine, *, compare: bool = True
) -> tuple[ClassWeights, Compared]:
    """`resolve_class_weights`, and the comparison for later: after passes made in the meantime."""
    if isinstance(weights, str) or weights is None:
        return plan_weights(weights, source, target, "weights", compare=compare)
    before, after = source.summary, target.summary
    known = before.class_counts.all() and not isinstance(weights, ClassWeights)
    predicted = None if known else after.mean_prediction  # a further pass over the target
    found = make_given_weights(weights, before.class_counts, predicted, before.classes)
    return found, lambda: found


def estimate_weights(
    method: Any, source: Engine, target: Engine, name: str = "method", *, compare: bool = False
) -> ClassWeights:
    """The class weights estimated by the method of this name; ``name`` is that of the argument."""
    found, compared = plan_weights(method, source, target, name, compare=compare)
    return compared() if compare else found


def plan_weights(
    method: Any, source: Engine, target: Engine, name: str, *, compare: bool
) -> tuple[ClassWeights, Compared]:
    """`estimate_weights`, and the comparison with another method for later."""
    validate_choice(method, name, METHODS, ", or class weights" if name == "weights" else "")
    blocks, before, after = (Blocks(source), Blocks(target)), source.summary, target.summary
    counts, sizes = before.class_counts, (before.size, after.effective_size)
    fit_reference = _plan_reference(method, *blocks, counts) if compare else None
    solution = METHODS[method](*blocks, counts)
    found = diagnose_weights(
        solution, method, blocks[0], sizes, counts, after.mean_prediction, before.classes
    )
    if fit_reference is None:
        return found, lambda: found
    reference, fit = fit_reference(), solution.consistent or solution
    comparison = plan_comparison(fit, reference, *blocks, sizes)

    def compared() -> ClassWeights:
        p, lack_of_fit = comparison()
        predicted = after.mean_prediction[counts > 0]
        distance = expected_distance(fit, reference, *blocks, sizes, predicted)
        return replace(found, agreement_p_value=p, lack_of_fit=lack_of_fit, prior_distance=distance)

    return found, compared


def _plan_reference(
    method: str, source: Engine, target: Engine, counts: np.ndarray
) -> Callable[[], WeightFit]:
    """The fit that weights of a method are compared with."""
    if method == REFERENCE:
        return partial(matched, source, target, counts)
    return plan_bbse(source, target, counts, soft=True)


__all__ = [
    "DEFAULT", "METHODS", "estimate_weights", "make_given_weights", "plan_class_weights",
    "resolve_class_weights", "weights_from_counts",
]  # fmt: skip
