"""The columns of probabilities and of labels in a file, by name or by convention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from calshift._core.validate import show
from calshift.errors import InvalidInput

PREFIXES = ("p_", "prob_", "proba_")  # one column a class, named by what follows
LOGIT_PREFIXES = ("logit_", "logits_")
WHOLE = ("probabilities", "probability", "probs", "prob", "proba", "p", "score", "scores")
LOGITS = ("logits", "logit")
LABELS = ("label", "labels", "y", "y_true", "true_label", "class")
MOST_SHOWN = 12


@dataclass(frozen=True)
class ColumnSpec:
    """The columns that the user named; None leaves them to the conventions."""

    columns: str | tuple[str, ...] | None = None
    label: str | None = None
    time: str | None = None
    logits: bool = False
    labelled: bool | None = False
    weight: str | None = None  # of the frequency weights


def column_spec(
    columns: str | Sequence[str] | None,
    label: str | None,
    logits: bool,
    labelled: bool | None,
    sample_weight: str | None = None,
) -> ColumnSpec:
    """The arguments of `scan` and `scan_spark` as a `ColumnSpec`."""
    named = columns if columns is None or isinstance(columns, str) else _validate_names(columns)
    label = None if label is None else str(label)
    weight = validate_weight_column(sample_weight)
    return ColumnSpec(named, label, None, bool(logits), labelled, weight)


def validate_weight_column(sample_weight: Any) -> str | None:
    """The name of a column, or None."""
    if sample_weight is None or isinstance(sample_weight, str):
        return sample_weight
    msg = f"sample_weight must be the name of a column; got {show(sample_weight)}"
    raise InvalidInput(msg)


def _validate_names(columns: Any) -> tuple[str, ...]:
    if not isinstance(columns, Sequence) or not all(isinstance(name, str) for name in columns):
        msg = f"columns must be names, or a pattern such as p_*; got {show(columns)}"
        raise InvalidInput(msg)
    return tuple(columns)


@dataclass(frozen=True)
class ResolvedColumns:
    """One column a class, or a single one: lists with a number a class, or scores of two classes.

    ``classes`` are named by the columns where these do; others are None if not needed.
    """

    probabilities: tuple[str, ...]
    classes: tuple[str, ...] | None = None
    label: str | None = None
    time: str | None = None
    weight: str | None = None


def find_columns(
    names: Sequence[str], lists: Sequence[str], spec: ColumnSpec, file: str
) -> ResolvedColumns:
    """The columns to read; ``lists`` are those whose values are lists."""
    if spec.weight is not None:
        _check_weight(names, lists, spec, file)
    others = [name for name in names if name != spec.weight]
    if spec.labelled is None:
        known = spec.label is not None or any(name in others for name in LABELS)
        spec = replace(spec, labelled=known)
    label = _find_label(others, spec, file)
    if spec.time is not None:
        _check_present(spec.time, names, file, "--time")
    candidates = [name for name in others if name not in (label, spec.time)]
    if spec.columns is None:
        found, classes = _find_by_convention(candidates, lists, spec.logits, file, names)
    else:
        found, classes = _find_by_name(candidates, lists, spec.columns, file)
    mixed = [name for name in found if name in lists]
    if len(found) > 1 and mixed:
        msg = f"{file}: column {mixed[0]!r} contains lists: name it alone with --columns"
        raise InvalidInput(msg)
    label = label if spec.labelled else None
    return ResolvedColumns(tuple(found), classes, label, spec.time, spec.weight)


def _check_weight(names: Sequence[str], lists: Sequence[str], spec: ColumnSpec, file: str) -> None:
    """Check that the column of weights exists, has no lists, and is no other one that was named."""
    _check_present(str(spec.weight), names, file, "--sample-weight")
    if spec.weight in lists:
        msg = f"{file}: --sample-weight names {spec.weight!r}, which contains lists, not numbers"
        raise InvalidInput(msg)
    for name, option in ((spec.label, "--label"), (spec.time, "--time")):
        if name == spec.weight:
            msg = f"{file}: {option} and --sample-weight must name two columns; both are {name!r}"
            raise InvalidInput(msg)


def _find_label(names: Sequence[str], spec: ColumnSpec, file: str) -> str | None:
    if spec.label is not None:
        if spec.labelled:
            _check_present(spec.label, names, file, "--label")
        return spec.label if spec.label in names else None
    found = [name for name in LABELS if name in names]
    if not spec.labelled or len(found) == 1:
        return found[0] if len(found) == 1 else None
    if found:
        msg = f"{file}: the labels may be any of {quote(found)}: choose with --label"
    else:
        msg = (
            f"{file}: no column of labels, which the source needs (it has {quote(names)}): "
            "name it with --label"
        )
    raise InvalidInput(msg)


def _find_by_name(
    names: Sequence[str], lists: Sequence[str], spec: str | tuple[str, ...], file: str
) -> tuple[list[str], tuple[str, ...] | None]:
    """Columns by a pattern with one star, or by a list, which may be a string with commas."""
    if isinstance(spec, str) and spec.count("*") == 1 and spec not in names:
        before, after = spec.split("*")
        long = len(before) + len(after)
        found = [
            name
            for name in names
            if name.startswith(before) and name.endswith(after) and len(name) > long
        ]
        if not found:
            msg = f"{file}: no column matches --columns {spec!r} (it has {quote(names)})"
            raise InvalidInput(msg)
        return found, tuple(name[len(before) : len(name) - len(after)] for name in found)
    if isinstance(spec, str):
        spec = (spec,) if spec in names else tuple(name.strip() for name in spec.split(","))
    found = list(spec)
    for name in found:
        _check_present(name, names, file, "--columns")
    if len(set(found)) < len(found):
        msg = f"{file}: --columns names a column twice: {', '.join(found)}"
        raise InvalidInput(msg)
    alone = len(found) == 1 and (found[0] in lists or _class_names(found) == tuple(found))
    return found, None if alone else _class_names(found)


def _find_by_convention(
    names: Sequence[str], lists: Sequence[str], logits: bool, file: str, there: Sequence[str]
) -> tuple[list[str], tuple[str, ...] | None]:
    """Columns by the conventions for their names; ``there`` are all columns of the file."""
    prefixes = PREFIXES + LOGIT_PREFIXES if logits else PREFIXES
    groups = {prefix: _with_prefix(names, prefix, lists) for prefix in prefixes}
    found = [prefix for prefix in prefixes if groups[prefix]]
    if len(found) > 1:
        patterns = " or ".join(f"'{prefix}*'" for prefix in found)
        msg = f"{file}: several groups of columns may be probabilities: choose --columns {patterns}"
        raise InvalidInput(msg)
    if found:
        prefix = found[0]
        return groups[prefix], tuple(name[len(prefix) :] for name in groups[prefix])
    wanted = WHOLE + LOGITS if logits else WHOLE
    whole = [name for name in wanted if name in names] or [n for n in names if n in lists]
    if len(whole) > 1:
        msg = f"{file}: the probabilities may be any of {quote(whole)}: choose with --columns"
        raise InvalidInput(msg)
    if not whole or (whole[0] in LOGITS and not logits):
        raise InvalidInput(_not_found_message(there, file))
    return whole, None


def _not_found_message(names: Sequence[str], file: str) -> str:
    if any(name in LOGITS or name.startswith(LOGIT_PREFIXES) for name in names):
        return f"{file}: no probabilities, only logits: pass --logits"
    return (
        f"{file}: no column p_*, prob_*, proba_* and no column of lists (it has {quote(names)}): "
        "name the probabilities with --columns"
    )


def _with_prefix(names: Sequence[str], prefix: str, lists: Sequence[str]) -> list[str]:
    return [n for n in names if n.startswith(prefix) and n != prefix and n not in lists]


def _class_names(names: list[str]) -> tuple[str, ...]:
    """Class names: the columns' own, without a prefix that all of them share by convention."""
    for prefix in PREFIXES + LOGIT_PREFIXES:
        if all(name.startswith(prefix) and name != prefix for name in names):
            return tuple(name[len(prefix) :] for name in names)
    return tuple(names)


def _check_present(name: str, names: Sequence[str], file: str, option: str) -> None:
    if name not in names:
        msg = f"{file}: {option} names {name!r}, which is not a column (it has {quote(names)})"
        raise InvalidInput(msg)


def quote(names: Sequence[str]) -> str:
    """The first names, quoted."""
    more = f" and {len(names) - MOST_SHOWN} more" if len(names) > MOST_SHOWN else ""
    return ", ".join(repr(name) for name in names[:MOST_SHOWN]) + more if names else "none"


def check_unique(names: Sequence[str], file: Any) -> None:
    """Check that no two columns have the same name."""
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        msg = f"{file} has two columns named {twice!r}: rename one"
        raise InvalidInput(msg)
