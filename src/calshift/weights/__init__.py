"""Class weights: the methods of estimation by name, and weights given by the user."""

from __future__ import annotations

from functools import partial
from typing import Any

from calshift._core.validate import validate_choice
from calshift.engines import Blocks
from calshift.engines.base import Engine
from calshift.results import ClassWeights
from calshift.weights.confusion import bbse, rlls
from calshift.weights.elsa_kmm import elsa, kmm
from calshift.weights.given import make_given_weights, weights_from_counts
from calshift.weights.influence import Method
from calshift.weights.likelihood import em
from calshift.weights.quality import diagnose_weights

METHODS: dict[str, Method] = {
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
}
DEFAULT = "em-bcts"  # why: docs/mathematics.md section 7 and benchmarks/weights_recovery.py


def resolve_class_weights(weights: Any, source: Engine, target: Engine) -> ClassWeights:
    """Class weights from what a user passed: a method's name, a vector, or a ClassWeights."""
    if isinstance(weights, str) or weights is None:
        return estimate_weights(weights, source, target, "weights")
    before, after = source.summary, target.summary
    known = before.class_counts.all() and not isinstance(weights, ClassWeights)
    predicted = None if known else after.mean_prediction  # a further pass over the target
    return make_given_weights(weights, before.class_counts, predicted, before.classes)


def estimate_weights(
    method: Any, source: Engine, target: Engine, name: str = "method"
) -> ClassWeights:
    """The class weights estimated by the method of this name; ``name`` is that of the argument."""
    validate_choice(method, name, METHODS, ", or class weights" if name == "weights" else "")
    blocks, before, after = (Blocks(source), Blocks(target)), source.summary, target.summary
    counts = before.class_counts
    solution = METHODS[method](*blocks, counts)
    sizes = before.size, after.effective_size
    return diagnose_weights(
        solution, method, blocks[0], sizes, counts, after.mean_prediction, before.classes
    )


__all__ = [
    "DEFAULT", "METHODS", "estimate_weights", "make_given_weights", "resolve_class_weights",
    "weights_from_counts",
]  # fmt: skip
