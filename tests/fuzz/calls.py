"""Calls of public functions: valid arguments, of which about half have one hostile value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.fuzz import functions
from tests.fuzz.strategies import makers
from tests.fuzz.strategies.arrays import LAYOUTS, TYPES, VALUES
from tests.fuzz.strategies.containers import CONTAINERS
from tests.fuzz.strategies.labels import LABELS, SAMPLE_WEIGHTS, spoil_classes
from tests.fuzz.strategies.options import draw_edges, draw_hostile, spoil_class_weights
from tests.fuzz.strategies.samples import Rng, chance, pick
from tests.fuzz.strategies.times import TIMES, draw_window

SHARE_HOSTILE = 0.55
PROBABILITIES = ("p", "p_source", "p_target", "logits", "data")
LABEL_NAMES = ("y", "y_source", "y_target")
ANY_LABELS = ("list", "read-only", "masked", "matrix", "objects", "categories", "None", "odd")
SAMPLE_DATA = (*PROBABILITIES, *LABEL_NAMES, "sample_weight", "time")
OTHER_DATA = {"sample_weight": SAMPLE_WEIGHTS, "time": TIMES}


@dataclass
class Call:
    """A function with keyword arguments, and what is expected of it.

    ``expected`` is "any", "refuse", "equal" or "either" (`strategies/arrays.py`); the last two
    compare with a call of the arguments ``plain``.
    """

    name: str
    function: Callable[..., Any]
    arguments: dict[str, Any]
    changed: str = ""
    expected: str = "any"
    plain: dict[str, Any] = field(default_factory=dict)

    @property
    def changed_data(self) -> str:
        """What was changed, without the name of the argument."""
        slot, _, what = self.changed.partition(": ")
        return f"{'labels' if slot in LABEL_NAMES else slot.partition('_')[0]}: {what}"

    def run(self) -> Any:
        """The result of the call."""
        return self.function(**self.arguments)

    def run_plain(self) -> Any:
        """The result with the argument before it was changed."""
        return self.function(**self.plain)


def draw_call(seed: int, number: int) -> Call:
    """The call of this number; it depends on nothing but the seed and the number."""
    rng = np.random.default_rng([seed, number, 0])
    names, shares = zip(*makers.SHARES.items(), strict=True)
    name = names[int(np.searchsorted(np.cumsum(shares) / sum(shares), rng.random()))]
    call = Call(name, getattr(functions, name), makers.MAKERS[name](rng))
    if chance(rng, SHARE_HOSTILE) and call.arguments and name not in makers.HOSTILE_ALREADY:
        _spoil(rng, call)
        if chance(rng, 0.08):
            _spoil(rng, call, call.changed.partition(":")[0])
            call.expected, call.plain = "any", {}
    return call


def _spoil(rng: Rng, call: Call, kept: str = "") -> None:
    """Replace one argument, but not the one that is kept."""
    data = [name for name in call.arguments if name in SAMPLE_DATA and name != kept]
    slot = pick(rng, data) if data and chance(rng, 0.55) else pick(rng, call.arguments)
    if slot == kept:
        return
    call.plain = dict(call.arguments)
    old = call.arguments[slot]
    if slot in SAMPLE_DATA and isinstance(old, np.ndarray):
        what, value, call.expected = _spoil_data(rng, slot, old)
        call.expected = _expect(call, what, slot)
    else:
        what, value, call.expected = "option", _spoil_option(rng, slot, call), "any"
    call.arguments[slot] = value
    call.changed = f"{call.changed} {slot}: {what}".strip()


def _spoil_data(rng: Rng, slot: str, old: np.ndarray) -> tuple[str, Any, str]:
    containers = CONTAINERS if old.ndim < 3 else LAYOUTS  # frames have two dimensions
    variants = pick(rng, (LAYOUTS, TYPES, VALUES, containers, containers))
    if slot in LABEL_NAMES:
        whole = old.dtype.kind in "iu"
        variants = LABELS if whole else {name: LABELS[name] for name in ANY_LABELS}
    elif slot in OTHER_DATA:
        variants = OTHER_DATA[slot]
    what = pick(rng, variants)
    make, expected = variants[what]
    return what, make(rng, old), expected


def _expect(call: Call, what: str, slot: str) -> str:
    """What is expected of a function that accepts more than probabilities and labels."""
    if call.name == "softmax":  # takes any finite numbers; some of them have another meaning here
        kept = ("masked", "NaN", "texts", "complex", "times")
        # a matrix or frame of a vector has another axis
        return call.expected if what in kept or call.expected == "equal" else "any"
    if what in ("out of range", "one class") and call.name in functions.LABELS_ALONE:
        return "any"  # the number of classes follows from the labels
    if slot == "y" and call.arguments.get("classes") is not None:
        masked = what == "masked"
        return call.expected if masked else "any"  # a label may be the name of a class
    return call.expected


def _spoil_option(rng: Rng, slot: str, call: Call) -> Any:
    K = _count_classes(call)
    if slot == "weights" and chance(rng, 0.85):
        return spoil_class_weights(rng, K)
    if slot == "window" and chance(rng, 0.8):
        return draw_window(rng)
    if slot == "bins" and chance(rng, 0.6):
        return draw_edges(rng, K)
    if slot == "classes" and chance(rng, 0.8):
        return spoil_classes(rng, list(call.arguments["classes"] or ["a", "b"]))
    return draw_hostile(rng)


def _count_classes(call: Call) -> int:
    for name in PROBABILITIES:
        p = call.arguments.get(name)
        if isinstance(p, np.ndarray) and p.ndim == 2:
            return p.shape[1]
    return 2
