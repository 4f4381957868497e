"""Class weights: the methods of estimation by name, and weights given by the user."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from calshift._core.validate import validate_choice
from calshift.engines import Blocks
from calshift.engines.base import Engine
from calshift.results import ClassWeights
from calshift.weights.agreement import compare_fits, expected_distance
from calshift.weights.auto import auto
from calshift.weights.confusion import bbse, rlls
from calshift.weights.elsa_kmm import elsa, kmm
from calshift.weights.given import make_given_weights, weights_from_counts
from calshift.weights.influence import Method
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
REFERENCES = ("bbse-soft", "matched")  # what weights are compared with, and the first itself
DEFAULT = "auto"  # why: docs/mathematics.md section 7 and benchmarks/weights_recovery.py


def resolve_class_weights(
    weights: Any, source: Engine, target: Engine, *, compare: bool = False
) -> ClassWeights:
    """Class weights from what a user passed: a method's name, a vector, or a ClassWeights.

    With ``compare`` estimated weights are compared with those of another method.
    """
    if isinstance(weights, str) or weights is None:
        return estimate_weights(weights, source, target, "weights", compare=compare)
    before, after = source.summary, target.summary
    known = before.class_counts.all() and not isinstance(weights, ClassWeights)
    predicted = None if known else after.mean_prediction  # a further pass over the target
    return make_given_weights(weights, before.class_counts, predicted, before.classes)


def estimate_weights(
    method: Any, source: Engine, target: Engine, name: str = "method", *, compare: bool = False
) -> ClassWeights:
    """The class weights estimated by the method of this name; ``name`` is that of the argument."""
    validate_choice(method, name, METHODS, ", or class weights" if name == "weights" else "")
    blocks, before, after = (Blocks(source), Blocks(target)), source.summary, target.summary
    counts = before.class_counts
    solution = METHODS[method](*blocks, counts)
    sizes = before.size, after.effective_size
    found = diagnose_weights(
        solution, method, blocks[0], sizes, counts, after.mean_prediction, before.classes
    )
    if not compare:
        return found
    reference = METHODS[REFERENCES[method == REFERENCES[0]]](*blocks, counts)
    fit = solution.consistent or solution
    p, lack_of_fit = compare_fits(fit, reference, *blocks, sizes)
    predicted = after.mean_prediction[counts > 0]
    distance = expected_distance(fit, reference, *blocks, sizes, predicted)
    return replace(found, agreement_p_value=p, lack_of_fit=lack_of_fit, prior_distance=distance)


__all__ = [
    "DEFAULT", "METHODS", "estimate_weights", "make_given_weights", "resolve_class_weights",
    "weights_from_counts",
]  # fmt: skip
