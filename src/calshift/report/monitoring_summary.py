"""A monitored series as one plain dict; its keys are promised by schemas/monitoring.json."""

from __future__ import annotations

from typing import Any

from calshift.report.verdict import EXIT_CODES, Gate
from calshift.results import MonitoringResult


def monitoring_dict(
    found: MonitoringResult, gate: Gate, alert: str, about: dict[str, Any]
) -> dict[str, Any]:
    """One record a window, what each of them comes to, and the worst of those that count.

    ``about`` tells where it comes from: the schema's version, time, settings, inputs, command and
    versions.
    """
    statuses = [gate.status(result) for result in found.results]
    counted = statuses[-1:] if alert == "last" else statuses
    if alert == "last" and newest_skipped(found):
        counted = ["untrusted"]  # the newest window has no answer, and an older one is none
    worst = max(counted, key=lambda status: EXIT_CODES[status])
    plain = found.to_dict(gate.level)
    for record, status in zip(plain["windows"], statuses, strict=True):
        record["status"] = status
    return {
        "schema": "calshift-monitoring",
        "status": worst,
        "exit_code": EXIT_CODES[worst],
        "alert": alert,
        "verdict": _verdict(found, statuses, gate),
        "max_error": gate.max_error,
        "gate": gate.side,
        **plain,
        **about,
    }


def newest_skipped(found: MonitoringResult) -> bool:
    """Whether the last window has too few rows."""
    starts = [one.window.start for one in found.skipped]
    return bool(starts) and bool(max(starts) > found.windows[-1].start)


def _verdict(found: MonitoringResult, statuses: list[str], gate: Gate) -> str:
    count, last = len(found), found.results[-1]
    parts = [f"{count} window{'s' if count > 1 else ''}"]
    if gate.max_error is not None:
        words = "above" if gate.side == "lower" else "not shown to be within"
        parts.append(f"{statuses.count('breached')} {words} the {gate.max_error:g} allowed")
    if "untrusted" in statuses:
        parts.append(f"{statuses.count('untrusted')} not to be trusted")
    if found.skipped:
        parts.append(f"{len(found.skipped)} more with too few rows")
    ends = ""
    if last.has_interval:
        ends = " ({:.4f} to {:.4f})".format(*last.confidence_interval(gate.level, root=True))
    newest = "the last with an answer" if newest_skipped(found) else "the last"
    where = f"{newest}, {found.windows[-1].name}, has an error of {last.root:.4f}{ends}"
    return f"{', '.join(parts)}; {where}."
