"""A result as one plain dict: the content of the JSON output and of every other format.

The keys are promised by schemas/report.json, whose version is SCHEMA_VERSION.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import numpy as np

from calshift._core.convert import plain
from calshift._core.validate import validate_level
from calshift.report.metrics_summary import metrics_section
from calshift.report.reliability_data import reliability_dicts
from calshift.report.requirements import REPORTED, Requirement, judge
from calshift.report.verdict import EXIT_CODES, Gate, advice, change, gist, verdict
from calshift.results import (
    CalibrationErrorResult,
    ClassWeights,
    LabelShiftCheck,
    MetricsResult,
    wilson_interval,
)

SCHEMA_VERSION = 2


def summarize(
    result: CalibrationErrorResult,
    gate: Gate | None = None,
    *,
    inputs: dict[str, Any] | None = None,
    command: str | None = None,
    drawn: dict[str, Any] | None = None,
    curves: bool = True,
    metrics: MetricsResult | None = None,
    requirements: Iterable[Requirement] = (),
) -> dict[str, Any]:
    """A label-free error with its weights, test and verdict in plain values; NaN is None.

    inputs, command and ``drawn`` (seed and draws of a bootstrap) record how to reproduce it.
    ``metrics`` of the same samples are a part of it, and the status includes their requirements.
    """
    gate = gate or Gate()
    outcomes = judge(requirements, metrics, gate.level)
    statuses = [gate.status(result), *(REPORTED[one.status] for one in outcomes)]
    status = max(statuses, key=EXIT_CODES.__getitem__)
    return {
        "schema": "calshift-report",
        "status": status,
        "exit_code": EXIT_CODES[status],
        "gist": gist(result, gate, outcomes),
        "verdict": verdict(result, gate, outcomes),
        "advice": advice(result, gate),
        "trusted": result.trusted,
        "diagnostics": [one.to_dict() for one in result.diagnostics],
        "warnings": list(result.warnings),
        "level": gate.level,
        "threshold": _threshold(result, gate),
        "target": error_dict(result, gate.level),
        "source": None if result.source is None else error_dict(result.source, gate.level),
        "change": _change(result, gate.level),
        "drift": _drift(result, gate),
        "classes": _classes(result, gate.level),
        "weights": None if result.class_weights is None else _weights(result.class_weights),
        "assumption": _assumption(result.assumption),
        "metrics": None if metrics is None else metrics_section(metrics, gate.level, outcomes),
        "curves": reliability_dicts(result, gate.level) if curves else [],
        **provenance(result, drawn, inputs, command),
    }


def weights_dict(weights: ClassWeights, level: float) -> dict[str, Any]:
    """Class weights alone; its keys are promised by schemas/weights.json."""
    columns = _priors(weights, validate_level(level))
    return {
        "schema": "calshift-weights",
        "schema_version": SCHEMA_VERSION,
        "created": _now(),
        "trusted": weights.trusted,
        "diagnostics": [one.to_dict() for one in weights.diagnostics],
        "assumption": _assumption(weights.assumption),
        "level": level,
        "weights": _weights(weights),
        "classes": _records(weights, weights.classes, columns),
        "versions": _versions(),
    }


def render_json(report: dict[str, Any]) -> str:
    """A dict without NaN as JSON text."""
    import json  # late: importing calshift must be fast

    return json.dumps(report, allow_nan=False, indent=2) + "\n"


def provenance(
    result: CalibrationErrorResult,
    drawn: dict[str, Any] | None,
    inputs: dict[str, Any] | None,
    command: str | None,
) -> dict[str, Any]:
    """Settings, inputs, command, versions and time of a summary."""
    settings = {"kind": result.kind, "norm": result.norm, "estimator": result.estimator}
    settings |= {**dict(result.settings), "merged_bins": result.merged_bins, **(drawn or {})}
    return {**origin(inputs, command), "settings": settings}


def origin(inputs: dict[str, Any] | None, command: str | None) -> dict[str, Any]:
    """Version of the schema, inputs, command, versions of packages and time."""
    return {
        "schema_version": SCHEMA_VERSION,
        "created": _now(),
        "inputs": inputs,
        "command": command,
        "versions": _versions(),
    }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def error_dict(result: CalibrationErrorResult, level: float) -> dict[str, Any]:
    """One error with its interval."""
    rows = result.n_source if result.n_target is None else result.n_target
    known = result.has_interval
    return {
        "rows": rows,
        "estimate": plain(result.estimate),
        "root": plain(result.root),
        "standard_error": plain(result.standard_error) if known else None,
        "interval": list(result.confidence_interval(level)) if known else None,
        "root_interval": list(result.confidence_interval(level, root=True)) if known else None,
    }


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


def _drift(result: CalibrationErrorResult, gate: Gate) -> dict[str, Any] | None:
    """The drift allowed for, the sensitivity to it (or to 1%), and the least that is too much.

    The last is None if no drift is.
    """
    if not result.has_drift_sensitivity:
        return None
    enough = result.break_even_drift(gate.max_error, level=gate.level)
    return {
        "stated": result.drift,
        "sensitivity": result.drift_sensitivity(result.drift or 0.01).to_dict(),
        "break_even": enough if math.isfinite(enough) else None,
    }


def _classes(result: CalibrationErrorResult, level: float) -> list[dict[str, Any]]:
    """One record a class: priors, weight, errors on source and target."""
    if result.class_weights is None:
        return []
    columns = _priors(result.class_weights, level) | _errors(result, level, "")
    if result.source is not None:
        columns |= _errors(result.source, level, "source_")
    return _records(result.class_weights, result.classes, columns)


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


def _priors(weights: ClassWeights, level: float) -> dict[str, list[Any]]:
    unknown, unseen = [None] * len(weights), np.isnan(weights.values)
    ends = wilson_interval(weights.prior_source, weights.n_source, level)
    found: dict[str, list[Any]] = {
        "prior_source": plain(weights.prior_source),
        "prior_source_interval": _pairs(*ends),
        "prior_target": plain(np.where(unseen, np.nan, weights.prior_target)),
        "prior_target_interval": unknown,
        "weight": plain(weights.values),
        "weight_error": unknown if weights.values_error is None else plain(weights.values_error),
    }
    if weights.standard_error is not None:
        found["prior_target_interval"] = _pairs(
            *np.where(unseen, np.nan, weights.confidence_interval(level))
        )
    return found


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


def _weights(weights: ClassWeights) -> dict[str, Any]:
    return {
        "method": weights.method,
        "ess": plain(weights.ess),
        "n_source": weights.n_source,
        "converged": weights.converged,
        "iterations": weights.iterations,
        "condition_number": plain(weights.condition_number),
        "smallest_singular_value": plain(weights.smallest_singular_value),
        "discrimination": plain(weights.discrimination),
        "agreement_p_value": plain(weights.agreement_p_value),
        "lack_of_fit": plain(weights.lack_of_fit),
        "untrusted": len(weights.untrusted),
        "warnings": list(weights.warnings),
    }


def _assumption(check: LabelShiftCheck | None) -> dict[str, Any] | None:
    if check is None:
        return None
    found = check.to_dict()
    left_out = ("n_source", "n_target", "residuals", "classes")
    return {name: value for name, value in found.items() if name not in left_out}


def _versions() -> dict[str, str]:
    """Of Python and of the packages that compute."""
    import platform  # late, as the next: importing calshift must be fast
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": platform.python_version(), "platform": platform.platform(terse=True)}
    for name in ("calshift", "numpy", "scipy", "narwhals", "pyarrow"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
