"""A monitored series as one plain dict; its keys are promised by schemas/monitoring.json."""

from __future__ import annotations

from typing import Any

from calshift.results import MonitoringResult
from calshift.verdicts import EXIT_CODES, Gate

SCHEMA_VERSION = 1


def monitoring_dict(
    found: MonitoringResult, gate: Gate, alert: str, about: dict[str, Any]
) -> dict[str, Any]:
    """One record a window, what each of them comes to, and the worst of those that count.

    ``about`` tells where it comes from: time, settings, inputs, command and versions.
    """
    statuses = [gate.status(result) for result in found.results]
    counted = statuses[-1:] if alert == "last" else statuses
    worst = max(counted, key=lambda status: EXIT_CODES[status])
    plain = found.to_dict(gate.level)
    for record, status in zip(plain["windows"], statuses, strict=True):
        record["status"] = status
    return {
        "schema": "calshift-monitoring",
        "schema_version": SCHEMA_VERSION,
        "status": worst,
        "exit_code": EXIT_CODES[worst],
        "alert": alert,
        "verdict": _verdict(found, statuses, gate),
        "max_error": gate.max_error,
        "gate": gate.side,
        **plain,
        **about,
    }


def _verdict(found: MonitoringResult, statuses: list[str], gate: Gate) -> str:
    count = len(found)
    windows = f"{count} window{'s' if count > 1 else ''}"
    parts = []
    if gate.max_error is not None:
        parts.append(f"{statuses.count('breached')} above the {gate.max_error:g} allowed")
    parts.append(f"{statuses.count('untrusted')} not to be trusted")
    last = f"the last error is {found.results[-1].root:.4f}"
    return f"{windows}: {', '.join(parts)}; {last}."
