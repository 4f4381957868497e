"""A recalibration as a plain dict; its keys are promised by schemas/recalibration.json."""

from __future__ import annotations

from typing import Any

from calshift.report.metrics_summary import class_names, small_confusion
from calshift.report.reliability_data import changed_curves
from calshift.report.summary import error_dict, provenance
from calshift.report.verdict import EXIT_CODES, Gate, error_name, limit_sentence, with_interval
from calshift.results import RecalibrationResult

WORDS = {
    "Better": "falls from {before} to {after}",
    "Worse": "is {before} before and {after} after recalibration, and {what} clearly worse",
    "No clear change": "is {before} before and {after} after recalibration",
}


def recalibration_dict(
    found: RecalibrationResult,
    gate: Gate,
    *,
    inputs: dict[str, Any] | None = None,
    command: str | None = None,
    seed: int | None = None,
    predicted: dict[str, Any] | None = None,
    curves: bool = False,
) -> dict[str, Any]:
    """Errors before and after, the recalibrator, the verdict and how to reproduce them.

    ``predicted`` are the rows that change their predicted class; ``curves`` adds reliability.
    """
    useless = found.fallback is not None or found.gist(gate.level) in ("Not reliable", "Worse")
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
        "classes": class_names(found.metrics_after),
        "confusion": {
            "before": small_confusion(found.metrics_before),
            "after": small_confusion(found.metrics_after),
        },
        "predicted_classes": predicted,
        "curves": changed_curves(found.before, found.after, gate.level) if curves else [],
        "diagnostics": {
            name: [one.to_dict() for one in error.diagnostics]
            for name, error in (("before", found.before), ("after", found.after))
        },
        "before": error_dict(found.before, gate.level),
        "after": error_dict(found.after, gate.level),
        **provenance(found.before, {"seed": seed}, inputs, command),
    }


def _verdict(found: RecalibrationResult, gate: Gate) -> str:
    roots = {"before": f"{found.before.root:.4f}", "after": with_interval(found.after, gate.level)}
    if not found.trusted:
        return (
            f"Not reliable: {found.warnings[0]}. The estimates (error {roots['before']} before, "
            f"{roots['after']} after) may be wrong. {found.applied}"
        ).rstrip()
    gist, worse = found.gist(gate.level), found.worse(gate.level) or found.worse()
    what = " and ".join(worse) + (" is" if len(worse) == 1 else " are")
    name, words = error_name(found.after), WORDS[gist].format(**roots, what=what)
    if gist == "Worse":
        advice = found.applied or "Keep the model's own probabilities."
        return f"{gist}: the {name} on the target {words}. {advice}"
    return f"{gist}: the {name} on the target {words}.{limit_sentence(found.after, gate)}"


def _notes(found: RecalibrationResult) -> list[str]:
    kept = "keeps" if found.recalibrator.keeps_ranking else "may change"
    return [
        f"The error after recalibration is cross-fitted ({found.folds} folds).",
        f"{type(found.recalibrator).__name__} {kept} the most probable class of a row.",
        *(f"! {note}" for note in found.warnings),
    ]
