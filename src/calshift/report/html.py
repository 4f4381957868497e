"""The report as one self-contained HTML page, and as a fragment for notebooks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from calshift._core.atomic_write import write_atomically
from calshift._core.text import percent
from calshift._core.validate import show
from calshift.errors import InvalidInput
from calshift.report.page.document import describe_inputs, security_policy
from calshift.report.page.metrics_view import view_metrics
from calshift.report.page.templates import load_template, read_template
from calshift.report.summary import summarize
from calshift.report.svg import reliability_diagram
from calshift.report.verdict import Gate
from calshift.results import CalibrationErrorResult, MetricsResult

MOST_CLASSES = 800  # in the page's table; JSON has all. Keeps it below 500 KB
MOST_PRIORS = 25  # classes whose priors are drawn
MOST_RESIDUALS = 100


def write_report(
    result: CalibrationErrorResult,
    path: str | Path,
    *,
    level: float = 0.95,
    max_error: float | None = None,
    gate: str = "lower",
    metrics: MetricsResult | None = None,
) -> None:
    """Write the report on a label-free calibration error as one self-contained HTML file.

    Parameters
    ----------
    result : CalibrationErrorResult
        of `target_calibration_error`
    path : str or Path
        where to write; an existing file is replaced atomically
    level : float, default 0.95
        confidence level of the intervals
    max_error : float, optional
        the largest calibration error allowed, in units of probability (of ``result.root``)
    gate : {"lower", "upper"}, default "lower"
        the end of the interval that must not be above ``max_error``
    metrics : MetricsResult, optional
        of `target_metrics` on the same samples: the page shows how good the model is now

    Raises
    ------
    InvalidInput
        if the result has no target, an option is out of range, or the file cannot be written

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
        needed = "target_calibration_error, without target labels"
        msg = f"result must come from {needed}; got {show(result)}"
        raise InvalidInput(msg)
    known = None if metrics is None else _validate_metrics(metrics, result)
    report = summarize(result, Gate(max_error, gate, level), metrics=known)
    write_atomically(path, render_html(report))


def _validate_metrics(metrics: Any, result: CalibrationErrorResult) -> MetricsResult:
    """Metrics that are of a target of the same size."""
    if not isinstance(metrics, MetricsResult) or metrics.n_target is None:
        msg = f"metrics must come from target_metrics; got {show(metrics)}"
        raise InvalidInput(msg)
    sizes = (metrics.n_source, metrics.n_target), (result.n_source, result.n_target)
    if sizes[0] != sizes[1]:
        shown = " and ".join("{:,.10g} source and {:,.10g} target rows".format(*n) for n in sizes)
        msg = f"metrics and result must be of the same samples; got {shown}"
        raise InvalidInput(msg)
    return metrics


def render_html(report: dict[str, Any]) -> str:
    """A page that loads nothing from elsewhere; its content security policy forbids it."""
    diagrams = [reliability_diagram(curves) for curves in report["curves"]]
    script = read_template("page.js")
    style = read_template("page.css") + read_template("metrics.css")
    more = {"diagrams": diagrams, "style": style, "script": script, "checked": _checked(report)}
    context = {**_context(report), **more, "policy": security_policy(script)}
    return str(load_template("page.html").render(context))


def _checked(report: dict[str, Any]) -> str:
    """What was checked: names of files, or numbers of rows."""
    rows = [report[role]["rows"] for role in ("target", "source") if report[role]]
    return describe_inputs(report["inputs"], rows)


def fragment(result: CalibrationErrorResult) -> str:
    """The summary of a result for a notebook; plain text where jinja2 is not installed."""
    from html import escape  # late: importing calshift must be fast

    try:
        if result.n_target is not None:
            context = _context(summarize(result, curves=False))
            return str(load_template("fragment.html").render(context))
    except ImportError:
        pass
    return f"<pre>{escape(str(result))}</pre>"


def _context(report: dict[str, Any]) -> dict[str, Any]:
    """Variables of the templates: the report, and classes in the order they are shown."""
    with_errors = bool(report["classes"]) and "root" in report["classes"][0]
    by = "root" if with_errors else "prior_target"
    classes = sorted(report["classes"], key=lambda one: -(-1.0 if one[by] is None else one[by]))
    shown = classes[:MOST_CLASSES]
    known = [one for one in report["classes"] if one["prior_target"] is not None]
    changed = sorted(known, key=lambda one: -abs(_prior_change(one)))[:MOST_PRIORS]
    return {
        "report": report,
        "metrics": view_metrics(report.get("metrics"), report["warnings"]),
        "conditions": sorted(report["diagnostics"], key=_urgency),
        "classes": shown,
        "hidden": len(classes) - len(shown),
        "with_errors": with_errors,
        "with_intervals": with_errors and any(one["root_interval"] for one in shown),
        "with_prior_intervals": any(one["prior_target_interval"] for one in shown),
        "with_notes": any(one["doubt"] for one in shown),
        "given": report["weights"] is not None and report["weights"]["method"] == "given",
        "known_priors": len(known),
        "power": "squared error" if report["settings"]["norm"] == 2 else "p-th power",
        "changed": sorted(changed, key=_prior_change),
        "most": max([_largest_prior(one) for one in changed], default=1.0) or 1.0,
        "residuals": _largest_residuals(report["assumption"]),
        "level": percent(report["level"]),
    }


def _urgency(condition: dict[str, Any]) -> int:
    """Failed conditions come first, then waived ones."""
    return (not condition["failed"]) + bool(condition["passed"] and not condition["waived"])


def _prior_change(one: dict[str, Any]) -> float:
    return float(one["prior_target"] - one["prior_source"])


def _largest_prior(one: dict[str, Any]) -> float:
    """The largest prior that is drawn for a class, intervals included."""
    ends = [one["prior_source_interval"], one["prior_target_interval"]]
    known = [pair[1] for pair in ends if pair is not None]
    return float(max(one["prior_source"], one["prior_target"], *known))


def _largest_residuals(check: dict[str, Any] | None) -> list[dict[str, Any]]:
    if check is None:
        return []
    return sorted(check["by_class"], key=lambda one: -abs(one["residual"] or 0.0))[:MOST_RESIDUALS]
