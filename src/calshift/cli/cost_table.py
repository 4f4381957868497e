"""Costs of decisions: a table by predicted and true class, or of two classes by outcome."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import numpy as np

from calshift.errors import InvalidInput
from calshift.io.formats.base import check_file
from calshift.metrics.decision_rule import OUTCOMES

EXAMPLE = "'false_positive=1,false_negative=20'"
LARGEST = 100_000_000  # bytes


def read_cost(asked: str | None, classes: tuple[Any, ...] | None, K: int) -> Any:
    """(K, K) costs by predicted and true class of a file, or a mapping of outcomes."""
    if asked is None:
        return None
    if "=" in asked and not Path(asked).exists():
        if K != 2:
            msg = f"--cost {asked!r} is for two classes; there are {K}: name a csv file"
            raise InvalidInput(msg)
        return _read_outcomes(asked)
    return _read_table(Path(asked), classes, K)


def _read_outcomes(asked: str) -> dict[str, float]:
    """From "false_positive=1,false_negative=20"."""
    found: dict[str, float] = {}
    for part in asked.split(","):
        name, _, value = (one.strip() for one in part.partition("="))
        if name not in OUTCOMES or name in found or _number(value) is None:
            msg = (
                f"--cost must be a csv file, or of two classes numbers such as {EXAMPLE} for some "
                f"of {', '.join(OUTCOMES)}; got {part.strip()!r}"
            )
            raise InvalidInput(msg)
        found[name] = float(value)
    return found


def _read_table(path: Path, classes: tuple[Any, ...] | None, K: int) -> np.ndarray:
    """The table of a file, with the classes in their order."""
    rows = _read_cells(path)
    names = [str(name) for name in (range(K) if classes is None else classes)]
    columns = lines = list(range(K))
    if {len(row) for row in rows} == {K + 1} and len(rows) == K + 1:
        columns = _find(path, "header", rows[0][1:], names)
        lines = _find(path, "first column", [row[0] for row in rows[1:]], names)
        rows = [row[1:] for row in rows[1:]]
    elif {len(row) for row in rows} != {K} or len(rows) != K:
        msg = (
            f"{path} must have {K} rows of {K} costs, by predicted (row) and true class (column), "
            f"or the same with a header and a first column that name the classes; it has "
            f"{len(rows)} rows of {len(rows[0]) if rows else 0} cells"
        )
        raise InvalidInput(msg)
    return np.array([[_cost(path, rows[i], i, j) for j in columns] for i in lines])


def _read_cells(path: Path) -> list[list[str]]:
    check_file(path)
    if path.stat().st_size > LARGEST:
        msg = f"{path} is too large for a table of costs"
        raise InvalidInput(msg)
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            text = file.read()
        separator = max(",;\t", key=text.split("\n", 1)[0].count)
        rows = list(csv.reader(text.splitlines(), delimiter=separator))
    except (OSError, ValueError, csv.Error) as problem:
        msg = f"{path} cannot be read as a csv table of costs: {problem}"
        raise InvalidInput(msg) from problem
    return [[cell.strip() for cell in row] for row in rows if any(cell.strip() for cell in row)]


def _find(path: Path, where: str, named: list[str], names: list[str]) -> list[int]:
    """The place of each class in the header or the first column."""
    if sorted(named) != sorted(names):
        shown = ", ".join(names[:10])
        odd = next((one for one in named if one not in names), None)
        what = "names a class twice" if odd is None else f"has {odd!r}"
        msg = f"{path}: its {where} must name each of the classes {shown} once; it {what}"
        raise InvalidInput(msg)
    return [named.index(name) for name in names]


def _cost(path: Path, row: list[str], i: int, j: int) -> float:
    value = _number(row[j])
    if value is None:
        msg = f"{path}: the cost in row {i}, column {j} must be a number; it is {row[j]!r}"
        raise InvalidInput(msg)
    return value


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
