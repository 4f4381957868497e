"""Class weights from a file that `calshift weights --json` wrote."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from calshift.errors import InvalidInput
from calshift.io.formats.base import check_file
from calshift.results import ClassWeights

LARGEST = {"weight": 1e15, "prior_source": 1.0, "prior_target": 1.0}


def read_weights_file(path: Path, classes: tuple[Any, ...] | None, K: int) -> ClassWeights:
    """The weights of these classes, matched by name."""
    check_file(path)
    try:
        written = json.loads(path.read_text(encoding="utf-8"))
        records = {record["class"]: record for record in written["classes"]}
        method, n = str(written["weights"]["method"]), float(written["weights"]["n_source"])
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError) as problem:
        msg = f"{path} is not a file of class weights: write one with `calshift weights --json`"
        raise InvalidInput(msg) from problem
    names = [str(name) for name in (range(K) if classes is None else classes)]
    missing = [name for name in names if records.get(name, {}).get("weight") is None]
    n_records = len(written["classes"])
    if missing or n_records != K:
        what = f"has no weight for {missing[0]!r}" if missing else f"has {n_records} classes"
        msg = f"{path} must have one weight for each of the {K} classes; it {what}"
        raise InvalidInput(msg)
    if not 0 < n < math.inf:
        msg = f"{path}: n_source must be a positive number; it is {n}"
        raise InvalidInput(msg)
    values, prior_source, prior_target = (
        np.array([_read(path, records[name], key) for name in names]) for key in LARGEST
    )
    return ClassWeights(values, prior_source, prior_target, n, method)


def _read(path: Path, record: dict[str, Any], key: str) -> float:
    value: Any = record.get(key)
    known = isinstance(value, int | float) and not isinstance(value, bool)
    if not (known and 0 <= value <= LARGEST[key]):  # a NaN fails too
        shown = str(value)[:40] if known else repr(value)[:40]
        msg = (
            f"{path}: {key} of class {record['class']!r} must be a number from 0 to "
            f"{LARGEST[key]:g}; it is {shown}"
        )
        raise InvalidInput(msg)
    return float(value)
