"""The --weights option: a method, numbers, or a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from calshift.errors import InvalidInput
from calshift.results import ClassWeights
from calshift.weights import METHODS


def read_weights(asked: str, classes: tuple[Any, ...] | None, K: int) -> Any:
    """The name of a method, or one weight a class, matched by name where both have names."""
    if asked in METHODS:
        return asked
    if asked.endswith(".json"):
        return _from_file(Path(asked), classes, K)
    try:
        values = np.array([float(part) for part in asked.split(",")])
    except ValueError:
        msg = (
            f"--weights must be one of {', '.join(METHODS)}, numbers separated by commas, or a "
            f"file of `calshift weights --json`; got {asked!r}"
        )
        raise InvalidInput(msg) from None
    if len(values) != K:
        msg = f"--weights must be {K} numbers, in the order of the classes; got {len(values)}"
        raise InvalidInput(msg)
    return values


def _from_file(path: Path, classes: tuple[Any, ...] | None, K: int) -> ClassWeights:
    try:
        written = json.loads(path.read_text(encoding="utf-8"))
        weights = {record["class"]: record["weight"] for record in written["classes"]}
        records = {record["class"]: record for record in written["classes"]}
        method, n = str(written["weights"]["method"]), float(written["weights"]["n_source"])
    except (OSError, ValueError, KeyError, TypeError) as problem:
        msg = f"{path} is not a file of class weights: write one with `calshift weights --json`"
        raise InvalidInput(msg) from problem
    names = [str(name) for name in (range(K) if classes is None else classes)]
    missing = [name for name in names if weights.get(name) is None]
    if missing or len(weights) != K:
        what = f"has no weight for {missing[0]!r}" if missing else f"has {len(weights)} classes"
        msg = f"{path} must have one weight for each of the {K} classes; it {what}"
        raise InvalidInput(msg)
    values, prior_source, prior_target = (
        np.array([float(records[name][key]) for name in names])
        for key in ("weight", "prior_source", "prior_target")
    )
    return ClassWeights(values, prior_source, prior_target, n, method)
