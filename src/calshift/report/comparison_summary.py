"""Two models on the same rows as a plain dict, and as a table; schemas/comparison.json."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from calshift._core.text import note_lines, percent
from calshift.report.metrics_summary import unit_of
from calshift.report.text import METRIC, format_name, format_number
from calshift.report.verdict import EXIT_CODES, error_name
from calshift.results import CalibrationErrorResult, Difference, MetricsComparison

ERROR = "calibration error"


def comparison_dict(
    error: Difference,
    metrics: MetricsComparison,
    level: float = 0.95,
    *,
    asked: Collection[str] = (),
    origin: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """The calibration error and the metrics of models A and B, and the differences A - B.

    A metric ``asked`` for by name must be trusted itself. ``origin`` is how to reproduce it.
    """
    trusted = error.a.trusted and error.b.trusted and metrics.trusted
    trusted = trusted and all(metrics[name].trusted for name in asked if name in metrics)
    status = "fine" if trusted else "untrusted"
    return {
        "schema": "calshift-comparison",
        "status": status,
        "exit_code": EXIT_CODES[status],
        "verdict": _verdict(error, metrics, asked, level),
        "trusted": trusted,
        "level": level,
        "calibration_error": _error(error, level),
        "metrics": [{**one.to_dict(level), "unit": unit_of(one.a)} for one in metrics.values()],
        "decision": {"a": metrics.a.decision, "b": metrics.b.decision},
        "warnings": _warnings(error, metrics),
        **(origin or {}),
    }


def _error(error: Difference, level: float) -> dict[str, Any]:
    """Roots, in units of probability."""
    low, high = error.confidence_interval(level, root=True)
    settings = {name: getattr(error.a, name) for name in ("kind", "norm", "estimator")}
    return {
        "name": ERROR, **settings, "a": error.a.root, "b": error.b.root, "difference": error.root,
        "interval": [low, high], "correlation": error.correlation, "clear": not low <= 0 <= high,
        "trusted": error.a.trusted and error.b.trusted, "unit": "number",
    }  # fmt: skip


def _warnings(error: Difference, metrics: MetricsComparison) -> list[str]:
    """Of both models, each once."""
    pairs = (("A", (error.a, metrics.a)), ("B", (error.b, metrics.b)))
    found = [f"{name}: {note}" for name, both in pairs for one in both for note in one.warnings]
    return list(dict.fromkeys(found))


def _verdict(
    error: Difference, metrics: MetricsComparison, asked: Collection[str], level: float
) -> str:
    """The difference of the errors in a sentence, or why it is not reliable."""
    for name, result in (("A", error.a), ("B", error.b), ("A", metrics.a), ("B", metrics.b)):
        if not result.trusted:
            return f"Not reliable, model {name}: {result.warnings[0]}. Differences may be wrong."
    wide = [name for name in asked if name in metrics and not metrics[name].trusted]
    doubtful = f" Not reliable: {', '.join(wide)}." if wide else ""
    low, high = error.confidence_interval(level, root=True)
    numbers = f"{error.a.root:.4f} and {error.b.root:.4f}, difference {error.root:+.4f}"
    ends = f"{percent(level)} interval {low:+.4f} to {high:+.4f}"
    return f"{_gist(error.a, low, high)} on the target: {numbers} ({ends}).{doubtful}"


def _gist(result: CalibrationErrorResult, low: float, high: float) -> str:
    if low <= 0 <= high:
        return f"No clear difference of the {error_name(result)}"
    return f"Model A has a {'larger' if low > 0 else 'smaller'} {error_name(result)} than model B"


def render_comparison_text(report: dict[str, Any]) -> str:
    """A table of at most 100 columns, and the warnings."""
    notes = note_lines(tuple(report["warnings"]))
    return "\n".join([*_lines(report), *([""] if notes else []), *notes])


def _lines(report: dict[str, Any]) -> Iterator[str]:
    interval = f"{percent(report['level'])} interval"
    yield f"{'target':{METRIC}} {'A':>9} {'B':>9} {'A - B':>10}   {interval}"
    shown = [report["calibration_error"], *report["metrics"]]
    for one in shown:
        yield _line(one)
    rules = report["decision"]
    yield f"predicted class: {rules['a']}" + (
        "" if rules["a"] == rules["b"] else f"; B: {rules['b']}"
    )
    if any(one["clear"] for one in shown):
        yield f"* the {interval} of the difference does not contain 0"


def _line(one: dict[str, Any]) -> str:
    scale = 1000.0 if one["unit"] == "per 1000" else 1.0
    values = (format_number(one[name], scale) for name in ("a", "b"))
    change = format_number(one["difference"], scale, "+") + ("*" if one["clear"] else " ")
    ends = " to ".join(format_number(end, scale, "+") for end in one["interval"])
    line = f"{format_name(one['name'], scale):{METRIC}} {' '.join(f'{one:>9}' for one in values)}"
    line += f" {change:>11}  {ends:<22}"
    return (line if one["trusted"] else f"{line} not trusted").rstrip()
