"""A result as one plain dict: what JSON holds, and what every other face of the report is made of.

The keys are promised by schemas/report.json, whose version is SCHEMA_VERSION.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import numpy as np

from calshift._core.convert import plain
from calshift._core.validate import validate_level
from calshift.report.reliability_data import reliability_dicts
from calshift.report.verdict import EXIT_CODES, Gate, advice, change, gist, verdict
from calshift.results import CalibrationErrorResult, ClassWeights

SCHEMA_VERSION = 1


def summary(
    result: CalibrationErrorResult,
    gate: Gate | None = None,
    *,
    inputs: dict[str, Any] | None = None,
    command: str | None = None,
    drawn: dict[str, Any] | None = None,
    curves: bool = True,
) -> dict[str, Any]:
    """Everything that is known about a label-free error, in plain values; NaN is None.

    inputs, command and ``drawn`` (seed and draws of a bootstrap) tell how to get it again.
    """
    gate = gate or Gate()
    status = gate.status(result)
    return {
        "schema": "calshift-report",
        "schema_version": SCHEMA_VERSION,
        "created": now(),
        "status": status,
        "exit_code": EXIT_CODES[status],
        "gist": gist(result, gate),
        "verdict": verdict(result, gate),
        "advice": advice(result, gate),
        "trusted": result.trusted,
        "warnings": list(result.warnings),
        "level": gate.level,
        "threshold": _threshold(result, gate),
        "target": error_dict(result, gate.level),
        "source": None if result.source is None else error_dict(result.source, gate.level),
        "change": _change(result, gate.level),
        "classes": _classes(result, gate.level),
        "weights": _weights(result.class_weights),
        "assumption": _assumption(result),
        "curves": reliability_dicts(result, gate.level) if curves else [],
        "settings": {**settings_dict(result), **(drawn or {})},
        "inputs": inputs,
        "command": command,
        "versions": versions(),
    }


def now() -> str:
    """The time, in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def error_dict(result: CalibrationErrorResult, level: float) -> dict[str, Any]:
    """One error with its interval."""
    rows = result.n_source if result.n_target is None else result.n_target
    found = {"rows": rows, "estimate": plain(result.estimate), "root": plain(result.root)}
    if not result.has_interval:
        return {**found, "standard_error": None, "interval": None, "root_interval": None}
    return {
        **found,
        "standard_error": plain(result.standard_error),
        "interval": list(result.confidence_interval(level)),
        "root_interval": list(result.confidence_interval(level, root=True)),
    }


def settings_dict(result: CalibrationErrorResult) -> dict[str, Any]:
    """What was asked, to ask the same again."""
    asked = {"kind": result.kind, "norm": result.norm, "estimator": result.estimator}
    return {**asked, **dict(result.settings), "merged_bins": result.merged_bins}


def _threshold(result: CalibrationErrorResult, gate: Gate) -> dict[str, Any] | None:
    if gate.max_error is None:
        return None
    return {"max_error": gate.max_error, "gate": gate.side, "breached": gate.breached(result)}


def _change(result: CalibrationErrorResult, level: float) -> dict[str, Any] | None:
    found = change(result)
    if found is None:
        return None
    low, high = found.confidence_interval(level, root=True)
    return {"root": found.root, "root_interval": [low, high], "clear": not low <= 0 <= high}


def _classes(result: CalibrationErrorResult, level: float) -> list[dict[str, Any]]:
    """One record a class: its share before and now, its weight, its error before and now."""
    weights = result.class_weights
    if weights is None:
        return []
    columns = {
        **_shares(weights, level),
        **_errors(result, level, ""),
        **(_errors(result.source, level, "source_") if result.source is not None else {}),
    }
    return _records(weights, result.classes, columns)


def _records(
    weights: ClassWeights, classes: tuple[Any, ...] | None, columns: dict[str, list[Any]]
) -> list[dict[str, Any]]:
    """The columns as one record a class."""
    return [
        {
            "class": str(name),
            **{column: values[c] for column, values in columns.items()},
            "doubt": weights.untrusted.get(c),
        }
        for c, name in enumerate(range(len(weights)) if classes is None else classes)
    ]


def weights_dict(weights: ClassWeights, level: float, trusted: bool) -> dict[str, Any]:
    """Class weights on their own, in the same words."""
    columns = _shares(weights, validate_level(level))
    return {
        "schema": "calshift-weights",
        "schema_version": SCHEMA_VERSION,
        "created": now(),
        "trusted": trusted,
        "level": level,
        "weights": _weights(weights),
        "classes": _records(weights, weights.classes, columns),
        "versions": versions(),
    }


def _shares(weights: ClassWeights, level: float) -> dict[str, list[Any]]:
    unknown, unseen = [None] * len(weights), np.isnan(weights.values)
    found: dict[str, list[Any]] = {
        "prior_source": plain(weights.prior_source),
        "prior_source_interval": _wilson(weights.prior_source, weights.n_source, level),
        "prior_target": plain(np.where(unseen, np.nan, weights.prior_target)),
        "prior_target_interval": unknown,
        "weight": plain(weights.values),
        "weight_error": unknown if weights.values_error is None else plain(weights.values_error),
    }
    if weights.standard_error is not None:
        ends = np.where(unseen, np.nan, weights.confidence_interval(level))
        found["prior_target_interval"] = _pairs(*ends)
    return found


def _wilson(share: np.ndarray, n: float, level: float) -> list[Any]:
    """Intervals of shares that were counted among n rows."""
    from scipy.special import ndtri

    z2 = float(ndtri((1 + level) / 2)) ** 2
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    reach = np.sqrt(z2 * (share * (1 - share) / n + z2 / (4 * n**2))) / (1 + z2 / n)
    return _pairs(np.clip(middle - reach, 0, 1), np.clip(middle + reach, 0, 1))


def _errors(result: CalibrationErrorResult, level: float, prefix: str) -> dict[str, list[Any]]:
    if result.per_class is None:
        return {}
    found = {
        f"{prefix}estimate": plain(result.per_class),
        f"{prefix}root": plain(np.maximum(result.per_class, 0.0) ** (1 / result.norm)),
        f"{prefix}root_interval": [None] * len(result.per_class),
    }
    if result.has_class_intervals:
        found[f"{prefix}root_interval"] = _pairs(*result.class_intervals(level, root=True))
    return found


def _pairs(low: np.ndarray, high: np.ndarray) -> list[Any]:
    return [
        None if math.isnan(a) or math.isnan(b) else [a, b]
        for a, b in zip(low.tolist(), high.tolist(), strict=True)
    ]


def _weights(weights: ClassWeights | None) -> dict[str, Any] | None:
    if weights is None:
        return None
    return {
        "method": weights.method,
        "ess": plain(weights.ess),
        "n_source": weights.n_source,
        "converged": weights.converged,
        "iterations": weights.iterations,
        "condition_number": plain(weights.condition_number),
        "smallest_singular_value": plain(weights.smallest_singular_value),
        "untrusted": len(weights.untrusted),
        "warnings": list(weights.warnings),
    }


def _assumption(result: CalibrationErrorResult) -> dict[str, Any] | None:
    if result.assumption is None:
        return None
    found = result.assumption.to_dict()
    shown = ("statistic", "df", "p_value", "draws", "level", "rejected", "verdict", "by_class")
    return {name: found[name] for name in (*shown, "warnings")}


def versions() -> dict[str, str]:
    """Of Python and of all that computes."""
    import platform  # late, as the next: importing calshift must be fast
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": platform.python_version(), "platform": platform.platform(terse=True)}
    for name in ("calshift", "numpy", "scipy", "narwhals", "pyarrow"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
