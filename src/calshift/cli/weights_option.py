"""Class weights as the command line takes them: a method, numbers, or a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from calshift.errors import InvalidInput
from calshift.results import ClassWeights
from calshift.weights import METHODS


def read_weights(asked: str, classes: tuple[Any, ...] | None, K: int) -> Any:
    """A method's name as it is; else one weight a class, by name where both sides have names."""
    if asked in METHODS:
        return asked
    if asked.endswith(".json"):
        return _from_file(Path(asked), classes, K)
    try:
        values = np.array([float(part) for part in asked.split(",")])
    except ValueError:
        msg = (
            f"--weights must be one of {', '.join(METHODS)}, numbers with commas, or a file of "
            f"`calshift weights --json`; got {asked!r}"
        )
        raise InvalidInput(msg) from None
    if len(values) != K:
        msg = f"--weights must be {K} numbers, one a class in the source's order; got {len(values)}"
        raise InvalidInput(msg)
    return values


def _from_file(path: Path, classes: tuple[Any, ...] | None, K: int) -> ClassWeights:
    try:
        written = json.loads(path.read_text(encoding="utf-8"))
        found = {record["class"]: record["weight"] for record in written["classes"]}
        shares = {record["class"]: record for record in written["classes"]}
        method, n = str(written["weights"]["method"]), float(written["weights"]["n_source"])
    except (OSError, ValueError, KeyError, TypeError) as problem:
        msg = f"{path} is no file of weights: make one with `calshift weights --json`"
        raise InvalidInput(msg) from problem
    names = [str(name) for name in (range(K) if classes is None else classes)]
    missing = [name for name in names if found.get(name) is None]
    if missing or len(found) != K:
        what = f"has no weight for {missing[0]!r}" if missing else f"has {len(found)} classes"
        msg = f"{path} must hold one weight for each of the {K} classes; it {what}"
        raise InvalidInput(msg)
    values, before, now = (
        np.array([float(shares[name][key]) for name in names])
        for key in ("weight", "prior_source", "prior_target")
    )
    return ClassWeights(values, before, now, n, method)
