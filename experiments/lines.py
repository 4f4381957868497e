"""Lines of the paper's tables: printed there, its estimator here, and the default one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.measures import METHODS, TRUE
from experiments.running import hundred, table

HEAD = ["data", "model", "", "accuracy s", "accuracy t", "CE_s", "CE_t"]


def tabled(
    rows: Mapping[str, dict[str, Any]],
    printed: Mapping[str, Mapping[str, Any]],
    weights: Sequence[str] = (TRUE, *METHODS),
) -> str:
    """100 x CE_p^p: three lines a model, of which the paper has printed the first if it has it.

    ``rows`` by "data model", as in ``printed``; models that were not run have the first line alone.
    """
    names = [*rows, *(name for name in printed if name not in rows)]
    lines: list[list[str]] = []
    for name in names:
        data, _, model = name.partition(" ")
        blocks = [] if name not in printed else [papers(printed[name], weights)]
        if name in rows:
            blocks += [ours(rows[name], "paper", weights), ours(rows[name], "default", weights)]
        lines += [[data, model, *cells] for cells in blocks]
    return table([*HEAD, *weights], lines)


def papers(found: Mapping[str, Any], weights: Sequence[str]) -> list[str]:
    """As printed in the paper."""
    keys = ("accuracy_source", "accuracy_target", "source", "target", *weights)
    return ["paper", *(as_printed(found.get(key)) for key in keys)]


def as_printed(value: float | None) -> str:
    if value is None:
        return "--"
    return f"{value:.3f}" if value < 0.1 else f"{value:.2f}"


def ours(row: Mapping[str, Any], estimator: str, weights: Sequence[str]) -> list[str]:
    """Found here with one of the estimators."""
    found = row[estimator]
    digits = 3 if found["target"]["estimate"] < 1e-3 else 2
    values = [found["source"], found["target"], *(found["without"].get(w) for w in weights)]
    name = "paper's estimator, here" if estimator == "paper" else "default, here"
    errors = [hundred(None if v is None else v["estimate"], digits) or "--" for v in values]
    name += " (resampled)" if row.get("resampled") else ""
    return [name, *(f"{100 * a:.2f}" for a in row["accuracy"]), *errors]


def intervals(rows: Mapping[str, dict[str, Any]], weights: str) -> str:
    """The default estimate without labels and its interval, beside that with labels."""
    lines = []
    for name, row in rows.items():
        found, known = row["default"]["without"].get(weights), row["default"]["target"]
        if found is not None:
            ends = " to ".join(hundred(end, 3) for end in found["interval"])
            truth = " to ".join(hundred(end, 3) for end in known["interval"])
            known_value = hundred(known["estimate"], 3)
            lines.append([name, hundred(found["estimate"], 3), ends, known_value, truth])
    head = ["data and model", f"without labels ({weights})", "95% interval", "with labels"]
    return table([*head, "95% interval"], lines)
