"""What same_numbers.py records of an answer, and how far two records are apart.

Only public attributes and methods of the results are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import isfinite
from typing import Any

import numpy as np

import calshift

LEVELS = (0.5, 0.9, 0.95, 0.99)
WHOLE = 64  # numbers of an array up to which all of them are recorded
SHOWN = 24  # numbers recorded of a larger one, beside its sums

# Differences are relative to the larger of both numbers, but to nothing smaller than a floor, since
# a number that is the difference of larger ones has their rounding. Errors lie in [0, 1], and a
# debiased one subtracts noise of about 1e-3 from a number of that size, so its rounding is 1e-19
# or more however near to 0 the result is: with a floor of 1e-6 that is a difference of 1e-13. A
# root near 0 multiplies the rounding of its square. Within an array or an interval the floor is
# also 1e-4 of the largest number: entries far below it are rounded like the larger ones.
FLOORS = {"estimate": 1e-6, "root": 1e-4, "statistic": 1e-3, "variance": 1e-12, "corrected": 1e-12}
FLOOR, FLOOR_IN_ARRAY = 1e-7, 1e-4
# Texts are never compared. Of numbers these are not: counts of steps, which rounding may change
# where nothing else changes, versions of formats, and sizes of files.
IGNORED = {"iterations", "version", "schema_version", "bytes"}

Leaf = Any  # a number, a bool, None, or a list of these


def values_of(answer: Any) -> Any:
    """The numbers of an answer, in plain dicts and lists."""
    for kind, read in READERS.items():
        if isinstance(answer, kind):
            return values_of(read(answer))
    if isinstance(answer, dict):
        return {str(name): values_of(value) for name, value in answer.items()}
    if isinstance(answer, np.generic):
        return answer.item()
    if isinstance(answer, np.ndarray) or (_numeric(answer) and len(answer) > WHOLE):
        return _array(np.asarray(answer, dtype=float))
    if isinstance(answer, list | tuple):
        return [values_of(value) for value in answer]
    return answer


def leaves(tree: Any, path: str = "") -> Iterator[tuple[str, Leaf]]:
    """Each value with its path; lists of numbers stay lists, others are told by their length."""
    if isinstance(tree, dict):
        for name, value in tree.items():
            if name not in IGNORED:
                yield from leaves(value, f"{path}.{name}".strip("."))
    elif isinstance(tree, list) and not _numeric(tree):
        yield f"{path}.length", len(tree)
        for k, value in enumerate(tree):
            yield from leaves(value, f"{path}[{k}]")
    else:
        yield path, tree


def difference(path: str, recorded: Leaf, found: Leaf) -> float:
    """How far two values of the same name are apart; infinite if they are not of one kind."""
    floor = FLOORS.get(path.rpartition(".")[2], FLOOR)
    if not (isinstance(recorded, list) and isinstance(found, list)):
        return _apart(recorded, found, floor)
    if len(recorded) != len(found):
        return float("inf")
    sizes = [abs(one) for one in recorded if _is_number(one) and isfinite(one)]
    floor = max([floor, *(FLOOR_IN_ARRAY * size for size in sizes)])
    return max((_apart(*both, floor) for both in zip(recorded, found, strict=True)), default=0.0)


def _apart(a: Any, b: Any, floor: float) -> float:
    if a == b and isinstance(a, bool) == isinstance(b, bool):
        return 0.0
    if not (_is_number(a) and _is_number(b)):
        return float("inf")
    if not (isfinite(a) and isfinite(b)):
        return 0.0 if a != a and b != b else float("inf")
    return abs(a - b) / max(abs(a), abs(b), floor)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _numeric(values: Any) -> bool:
    """Whether it is a list of plain values that are no texts."""
    return isinstance(values, list | tuple) and all(
        value is None or isinstance(value, int | float) for value in values
    )


def _array(values: np.ndarray) -> dict[str, Any]:
    """All of a small array; of a large one its sums, and some of its numbers."""
    flat = values.ravel()
    if flat.size <= WHOLE:
        return {"shape": list(values.shape), "entries": flat.tolist()}
    some = flat[np.linspace(0, flat.size - 1, SHOWN).astype(int)]
    sums = [float(np.nansum(flat)), float(np.nansum(np.abs(flat))), float(np.nansum(flat**2))]
    missing = int(np.isnan(flat).sum())
    shape = list(values.shape)
    return {"shape": shape, "entries": some.tolist(), "sums": sums, "missing": missing}


def _or_none(ask: Callable[[], Any]) -> Any:
    """None where a result has no such number."""
    try:
        return ask()
    except calshift.InvalidInput:
        return None


def _intervals(result: Any) -> dict[str, Any]:
    return {
        f"{level:g}{' root' if root else ''}": _or_none(
            lambda level=level, root=root: list(result.confidence_interval(level, root=root))
        )
        for level in LEVELS
        for root in (False, True)
    }


def _class_intervals(result: Any) -> dict[str, Any]:
    asked = {"plain": {}, "root": {"root": True}, "together": {"simultaneous": True}}
    return {
        name: _or_none(lambda options=options: list(result.class_intervals(0.9, **options)))
        for name, options in asked.items()
    }


def _named(result: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """Attributes; one that there is no longer is left out, and is told by the comparison."""
    return {name: getattr(result, name) for name in names if hasattr(result, name)}


def _error(result: Any) -> dict[str, Any]:
    names = ("estimate", "root", "per_class", "merged_bins", "trusted", "n_source", "n_target")
    return {
        **_named(result, names),
        "standard_error": _or_none(lambda: result.standard_error),
        "interval": _intervals(result),
        "class_intervals": _class_intervals(result),
        "class_weights": None if result.class_weights is None else result.class_weights.values,
        "source": result.source,
        "assumption": result.assumption,
        "warnings": list(result.warnings),
    }


def _class_weights(found: Any) -> dict[str, Any]:
    names = (
        "values", "prior_source", "prior_target", "standard_error", "values_error", "covariance",
        "smallest_singular_value", "ess", "unseen_share", "converged", "predicted",
    )  # fmt: skip
    number = found.condition_number
    return {
        **_named(found, names),
        "inverse_condition": None if number is None else 1 / number,  # large ones are noise
        "interval": _or_none(lambda: list(found.confidence_interval(0.9))),
        "untrusted": sorted(found.untrusted),
        "warnings": list(found.warnings),
    }


def _check(found: Any) -> dict[str, Any]:
    names = (
        "statistic", "df", "p_value", "draws", "level", "rejected", "residuals", "observed",
        "expected", "class_residuals", "verdict",
    )  # fmt: skip
    return {**_named(found, names), "warnings": list(found.warnings)}


def _curve(found: Any) -> dict[str, Any]:
    names = ("score", "frequency", "mass", "edges", "standard_error", "worth", "label", "shifted")
    bands = {f"band {level:g}": list(found.band(level)) for level in LEVELS}
    return {**_named(found, names), **bands}


def _difference(found: Any) -> dict[str, Any]:
    names = ("estimate", "root", "standard_error", "correlation")
    return {**_named(found, names), "interval": _intervals(found)}


def _variance(found: Any) -> dict[str, Any]:
    names = (
        "variance", "corrected", "largest", "per_class", "corrected_per_class", "merged_bins",
        "standard_error", "corrected_standard_error",
    )  # fmt: skip
    return {**_named(found, names), "warnings": list(found.warnings)}


def _recalibration(found: Any) -> dict[str, Any]:
    names = ("probabilities", "recalibrator", "before", "after", "change", "folds", "trusted")
    return {**_named(found, names), "warnings": list(found.warnings)}


def _series(found: Any) -> dict[str, Any]:
    low, high = _or_none(found.band) or (None, None)
    places = [*found.windows, *(one.window for one in found.skipped)]
    return {
        "roots": found.roots,
        "band": [low, high],
        "windows": [[_place(one.start), _place(one.end), one.rows] for one in places],
        "results": list(found.results),
    }


def _place(place: Any) -> int:
    """A time in microseconds since 1970, or a row's number."""
    moment = isinstance(place, np.datetime64)
    return int(place.astype("datetime64[us]").astype(int) if moment else place)


READERS: dict[type, Callable[[Any], Any]] = {
    calshift.CalibrationErrorResult: _error,
    calshift.ClassWeights: _class_weights,
    calshift.LabelShiftCheck: _check,
    calshift.ReliabilityCurve: _curve,
    calshift.Difference: _difference,
    calshift.AlgorithmVariance: _variance,
    calshift.RecalibrationResult: _recalibration,
    calshift.MonitoringResult: _series,
    calshift.Recalibrator: lambda fitted: fitted.to_dict()["learned"],
    calshift.Predictions: lambda rows: {"p": rows.p, "y": rows.y, "weight": rows.sample_weight},
    calshift.BinEdges: lambda edges: [np.asarray(edges[k]) for k in range(len(edges))],
    calshift.ShiftStatistics: lambda sums: {
        "source": sums.source, "target": sums.target, "rows": sums.rows,
        "sizes": [sums.size_source, sums.size_target],
    },
}  # fmt: skip
