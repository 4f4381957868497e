"""A recalibration as one plain dict; its keys are promised by schemas/recalibration.json."""

from __future__ import annotations

from typing import Any

from calshift._core.text import percent
from calshift.report.verdict import EXIT_CODES, MEANING, Gate, beside_limit
from calshift.results import RecalibrationResult

WORDS = {
    "Better": "falls from {before} to {after}",
    "Worse": "rises from {before} to {after}: keep the probabilities as they were",
    "No clear change": "is {before} before and {after} after",
}


def recalibration_dict(
    found: RecalibrationResult, gate: Gate, about: dict[str, Any]
) -> dict[str, Any]:
    """What was found and what it comes to.

    ``about`` has the errors before and after as dicts, and tells where it all comes from.
    """
    useless = not found.trusted or found.gist(gate.level) == "Worse"
    status = "untrusted" if useless else gate.status(found.after)
    return {
        "schema": "calshift-recalibration",
        "status": status,
        "exit_code": EXIT_CODES[status],
        "verdict": _verdict(found, gate),
        "notes": _notes(found),
        "level": gate.level,
        "max_error": gate.max_error,
        "gate": gate.side,
        **found.to_dict(gate.level),
        **about,
    }


def _verdict(found: RecalibrationResult, gate: Gate) -> str:
    low, high = found.after.confidence_interval(gate.level, root=True)
    roots = {
        "before": f"{found.before.root:.4f}",
        "after": f"{found.after.root:.4f} ({percent(gate.level)} interval {low:.4f} to {high:.4f})",
    }
    if not found.trusted:
        return (
            f"No answer to rely on: {found.warnings[0]}. The mended probabilities may be worse "
            f"than the model's own (error {roots['before']} before, {roots['after']} after)."
        )
    gist = found.gist(gate.level)
    words = WORDS[gist].format(**roots)
    return f"{gist}: the error on the target {words}.{beside_limit(found.after, gate)}"


def _notes(found: RecalibrationResult) -> list[str]:
    kept = "keeps" if found.recalibrator.keeps_ranking else "may change"
    return [
        f"Errors are {MEANING[found.after.norm]}. The one after is of rows mended by fits to other "
        f"rows, {found.folds} parts in turn.",
        f"The recalibrator, {type(found.recalibrator).__name__}, {kept} which class is the most "
        "probable one.",
        *(f"! {note}" for note in found.warnings),
    ]
