"""A result for people and machines: one dict, and its faces as text, page, Markdown, metrics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from calshift._core.atomic_write import (
    check_drawable,
    check_writable,
    write_atomically,
    write_content,
    write_figure,
)
from calshift.errors import InvalidInput
from calshift.report import html as _page
from calshift.report import monitoring_summary as _series
from calshift.report import recalibration_summary as _mending
from calshift.report.markdown import markdown
from calshift.report.prometheus import prometheus
from calshift.report.summary import (
    SCHEMA_VERSION,
    error_dict,
    now,
    settings_dict,
    summary,
    versions,
    weights_dict,
)
from calshift.report.svg import diagram
from calshift.report.text import text, wrap_verdict
from calshift.report.verdict import Gate
from calshift.results import CalibrationErrorResult, MonitoringResult, RecalibrationResult

__all__ = [
    "SCHEMA_VERSION",
    "as_json",
    "check_drawable",
    "check_writable",
    "fragment",
    "markdown",
    "monitoring_dict",
    "page",
    "prometheus",
    "recalibration_dict",
    "summary",
    "text",
    "weights_dict",
    "wrap_verdict",
    "write_atomically",
    "write_content",
    "write_figure",
    "write_report",
]


def write_report(
    result: CalibrationErrorResult,
    path: str | Path,
    *,
    level: float = 0.95,
    max_error: float | None = None,
    gate: str = "lower",
) -> None:
    """Write the report page of a label-free error: one HTML file that needs nothing else.

    Parameters
    ----------
    result : of `target_calibration_error`
    path : where to write; a file that is there is replaced, in one step
    level : of the intervals
    max_error : the largest error allowed, in units of probability (of ``result.root``)
    gate : the end of the interval that must not lie above it: "lower" or "upper"

    Examples
    --------
    >>> import calshift, tempfile, pathlib
    >>> simulation = calshift.simulate.BetaSimulation()
    >>> p_target, _ = simulation.target(500, rng=2)
    >>> result = calshift.target_calibration_error(*simulation.source(500, rng=1), p_target)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     place = pathlib.Path(folder) / "report.html"
    ...     calshift.write_report(result, place)
    ...     place.read_text(encoding="utf-8")[:15]
    '<!doctype html>'
    """
    if not isinstance(result, CalibrationErrorResult) or result.n_target is None:
        what = "an error with labels" if isinstance(result, CalibrationErrorResult) else result
        msg = f"result must come from target_calibration_error; got {what!r}"
        raise InvalidInput(msg)
    report = summary(result, Gate(max_error, gate, level))
    write_atomically(path, page(report))


def page(report: dict[str, Any]) -> str:
    """The page of a report's dict."""
    return _page.page(report, [diagram(curves) for curves in report["curves"]])


def monitoring_dict(
    found: MonitoringResult,
    gate: Gate,
    alert: str = "any",
    *,
    inputs: dict[str, Any] | None = None,
    command: str | None = None,
    drawn: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """A monitored series as a plain dict; ``alert``: whether any or the last window decides."""
    settings = {**settings_dict(found.results[-1]), **(drawn or {})}
    return _series.monitoring_dict(found, gate, alert, _about(settings, inputs, command))


def recalibration_dict(
    found: RecalibrationResult,
    gate: Gate,
    *,
    inputs: dict[str, Any] | None = None,
    command: str | None = None,
    seed: int | None = None,
) -> dict[str, Any]:
    """A recalibration as a plain dict."""
    settings = {**settings_dict(found.before), "seed": seed}
    errors = {
        name: error_dict(one, gate.level)
        for name, one in (("before", found.before), ("after", found.after))
    }
    about = _about(settings, inputs, command)
    return _mending.recalibration_dict(found, gate, {**errors, **about})


def _about(
    settings: dict[str, Any], inputs: dict[str, Any] | None, command: str | None
) -> dict[str, Any]:
    """Where a dict comes from."""
    return {
        "schema_version": SCHEMA_VERSION,
        "created": now(),
        "settings": settings,
        "inputs": inputs,
        "command": command,
        "versions": versions(),
    }


def fragment(result: CalibrationErrorResult) -> str:
    """What a notebook shows of a result."""
    if result.n_target is None:
        return _page.preformatted(str(result))
    return _page.fragment(summary(result, curves=False), str(result))


def as_json(report: dict[str, Any]) -> str:
    """The dict as text; NaN cannot occur in it."""
    import json  # late, as in all of this folder: importing calshift must be fast

    return json.dumps(report, allow_nan=False, indent=2) + "\n"
