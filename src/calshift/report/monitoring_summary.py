"""A monitored series as a plain dict; its keys are promised by schemas/monitoring.json."""

from __future__ import annotations

from typing import Any

from calshift.report.summary import provenance
from calshift.report.verdict import EXIT_CODES, Gate, error_name
from calshift.results import MonitoringResult


def monitoring_dict(
    found: MonitoringResult,
    gate: Gate,
    alert: str = "any",
    *,
    inputs: dict[str, Any] | None = None,
    command: str | None = None,
    drawn: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """One record a window with its status, and the worst status of the windows that count.

    ``alert``: whether "any" or the "last" window decides. inputs, command and ``drawn`` (seed and
    draws of a bootstrap) record how to reproduce it.
    """
    statuses = [gate.status(result) for result in found.results]
    counted = statuses[-1:] if alert == "last" else statuses
    if alert == "last" and _newest_is_skipped(found):
        counted = ["untrusted"]  # an older window does not stand for the newest
    worst = max(counted, key=lambda status: EXIT_CODES[status])
    windows = found.to_dict(gate.level)
    for record, status in zip(windows["windows"], statuses, strict=True):
        record["status"] = status
    return {
        "schema": "calshift-monitoring",
        "status": worst,
        "exit_code": EXIT_CODES[worst],
        "alert": alert,
        "verdict": _verdict(found, statuses, gate),
        "max_error": gate.max_error,
        "gate": gate.side,
        **windows,
        **provenance(found.results[-1], drawn, inputs, command),
    }


def _newest_is_skipped(found: MonitoringResult) -> bool:
    """Whether the last window has too few rows."""
    starts = [one.window.start for one in found.skipped]
    return bool(starts) and bool(max(starts) > found.windows[-1].start)


def _verdict(found: MonitoringResult, statuses: list[str], gate: Gate) -> str:
    count, last = len(found), found.results[-1]
    parts = [f"{count} window{'s' if count > 1 else ''}"]
    if gate.max_error is not None:
        words = "above" if gate.side == "lower" else "not shown to be within"
        parts.append(f"{statuses.count('breached')} {words} {gate.max_error:g}")
    if "untrusted" in statuses:
        parts.append(f"{statuses.count('untrusted')} not reliable")
    if found.skipped:
        parts.append(f"{len(found.skipped)} more with too few rows")
    ends = ""
    if last.has_interval:
        ends = " ({:.4f} to {:.4f})".format(*last.confidence_interval(gate.level, root=True))
    newest = "the last with an estimate" if _newest_is_skipped(found) else "the last"
    where = f"{newest}, {found.windows[-1].name}, has an {error_name(last)} of {last.root:.4f}"
    return f"{', '.join(parts)}; {where}{ends}."
