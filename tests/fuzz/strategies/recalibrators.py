"""Saved recalibrators whose values were changed."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np

from calshift.recalibration import RECALIBRATORS
from tests.fuzz.strategies.samples import Rng, chance, draw_sample, pick

Place = tuple[Any, ...]  # keys and positions from the outside in


def _replacements() -> tuple[Any, ...]:
    return (
        None, True, False, 0, 1, -1, 2, 1e308, -1e308, 1e-308, 5e-324, 1e155, 1e300, 10**400,
        -(10**399), 10**30, float("nan"), float("inf"), -float("inf"), "", "1", "x" * 5000, [], {},
        [1.0], [[1.0]], [None], {"a": 1}, [0.5, 0.5], [1e308, 1e308, 1e308], [1] * 10_000, 1.0,
        "calshift recalibrator", "TemperatureScaling", b"x", (1.0, 2.0), {1: 2}, 0.5, 1e16, 700.0,
    )  # fmt: skip


def places(value: Any, at: Place = ()) -> list[Place]:
    """Places of all values within nested dicts and lists."""
    inner = value.items() if isinstance(value, dict) else ()
    inner = enumerate(value) if isinstance(value, list) else inner
    return [at, *(place for key, part in inner for place in places(part, (*at, key)))]


def replace(saved: Any, place: Place, change: Any) -> Any:
    """The value with the part at this place changed by a function."""
    if not place:
        return change(saved)
    holder = saved
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = change(holder[place[-1]])
    return saved


def _remove(saved: Any, place: Place) -> Any:
    if not place:
        return {}
    holder = saved
    for key in place[:-1]:
        holder = holder[key]
    del holder[place[-1]]
    return saved


def _nest(depth: int) -> Any:
    value: Any = 1.0
    for _ in range(depth):
        value = [value]
    return value


def tamper(rng: Rng, saved: dict[str, Any]) -> dict[str, Any]:
    """One or two values removed, replaced, repeated, nested or scaled."""
    for _ in range(1 + chance(rng, 0.3)):
        inside = [place for place in places(saved) if place and place[0] == "learned"]
        place = pick(rng, inside if inside and chance(rng, 0.7) else places(saved))
        how = pick(rng, ("replace", "replace", "replace", "remove", "repeat", "nest", "scale"))
        saved = _change(rng, saved, place, how)
        if not isinstance(saved, dict) or how == "nest":
            break
    return saved


def _change(rng: Rng, saved: Any, place: Place, how: str) -> Any:
    if how == "remove":
        return _remove(saved, place)
    factor = pick(rng, (1e308, -1e308, -1.0, 0.0, 1e-308, 1e155, 2.0, float("nan")))
    new = pick(rng, _replacements())
    changes = {
        "replace": lambda old: new,
        "repeat": lambda old: [old, old],
        "nest": lambda old: _nest(pick(rng, (1, 3, 5000))),
        "scale": lambda old: old * factor if isinstance(old, float) else new,
    }
    return replace(saved, place, changes[how])


def draw_saved(rng: Rng) -> tuple[str, Any, np.ndarray]:
    """The method, a tampered `to_dict` of it, and probabilities to transform."""
    method, sample = pick(rng, RECALIBRATORS), draw_sample(rng, (20, 60))
    while sample.K > 5:
        sample = draw_sample(rng, (20, 60))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = RECALIBRATORS[method]().fit(sample.p, sample.y, sample.q)
    return method, tamper(rng, copy.deepcopy(fitted.to_dict())), sample.q
