"""Which columns of a file hold the probabilities and which the labels: by name or by convention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from calshift.errors import InvalidInput

PREFIXES = ("p_", "prob_", "proba_")  # one column a class, named by what follows
LOGIT_PREFIXES = ("logit_", "logits_")
WHOLE = ("probabilities", "probability", "probs", "prob", "proba", "p", "score", "scores")
LOGITS = ("logits", "logit")
LABELS = ("label", "labels", "y", "y_true", "true_label", "class")
MOST_SHOWN = 12


@dataclass(frozen=True)
class ColumnSpec:
    """What the user said about the columns; None leaves it to the conventions."""

    columns: str | tuple[str, ...] | None = None
    label: str | None = None
    time: str | None = None
    logits: bool = False
    labelled: bool | None = False


@dataclass(frozen=True)
class ResolvedColumns:
    """One column a class, or a single one: lists with a number a class, or scores of two classes.

    classes are named by the columns where these do; label and time are None if not needed.
    """

    probabilities: tuple[str, ...]
    classes: tuple[str, ...] | None = None
    label: str | None = None
    time: str | None = None


def find_columns(
    names: Sequence[str], lists: Sequence[str], asked: ColumnSpec, file: str
) -> ResolvedColumns:
    """The columns to read; ``lists`` are those whose values are lists."""
    if asked.labelled is None:
        known = asked.label is not None or any(name in names for name in LABELS)
        asked = replace(asked, labelled=known)
    label = _label(names, asked, file)
    if asked.time is not None:
        _check_there(asked.time, names, file, "--time")
    free = [name for name in names if name not in (label, asked.time)]
    if asked.columns is None:
        found, classes = _conventional(free, lists, asked.logits, file, names)
    else:
        found, classes = _named(free, lists, asked.columns, file)
    mixed = [name for name in found if name in lists]
    if len(found) > 1 and mixed:
        msg = f"{file}: column {mixed[0]!r} holds lists: name it alone with --columns"
        raise InvalidInput(msg)
    return ResolvedColumns(tuple(found), classes, label if asked.labelled else None, asked.time)


def _label(names: Sequence[str], asked: ColumnSpec, file: str) -> str | None:
    if asked.label is not None:
        if asked.labelled:
            _check_there(asked.label, names, file, "--label")
        return asked.label if asked.label in names else None
    found = [name for name in LABELS if name in names]
    if not asked.labelled or len(found) == 1:
        return found[0] if len(found) == 1 else None
    if found:
        msg = f"{file}: which of {listed(found)} holds the labels? Say it with --label"
    else:
        msg = (
            f"{file}: no column of labels (it has {listed(names)}): the source needs them; "
            "name theirs with --label"
        )
    raise InvalidInput(msg)


def _named(
    names: Sequence[str], lists: Sequence[str], asked: str | tuple[str, ...], file: str
) -> tuple[list[str], tuple[str, ...] | None]:
    """Columns by a pattern with one star, or by a list, which may be a text with commas."""
    if isinstance(asked, str) and asked.count("*") == 1 and asked not in names:
        before, after = asked.split("*")
        long = len(before) + len(after)
        found = [
            name
            for name in names
            if name.startswith(before) and name.endswith(after) and len(name) > long
        ]
        if not found:
            msg = f"{file}: no column fits --columns {asked!r} (it has {listed(names)})"
            raise InvalidInput(msg)
        return found, tuple(name[len(before) : len(name) - len(after)] for name in found)
    found = list(asked) if isinstance(asked, tuple) else _listed(asked, names)
    for name in found:
        _check_there(name, names, file, "--columns")
    if len(set(found)) < len(found):
        msg = f"{file}: --columns names a column twice: {', '.join(found)}"
        raise InvalidInput(msg)
    alone = len(found) == 1 and (found[0] in lists or _stripped(found) == tuple(found))
    return found, None if alone else _stripped(found)


def _listed(asked: str, names: Sequence[str]) -> list[str]:
    return [asked] if asked in names else [name.strip() for name in asked.split(",")]


def _conventional(
    names: Sequence[str], lists: Sequence[str], logits: bool, file: str, there: Sequence[str]
) -> tuple[list[str], tuple[str, ...] | None]:
    """Columns by their names; ``there`` are all that the file has."""
    prefixes = PREFIXES + LOGIT_PREFIXES if logits else PREFIXES
    groups = {prefix: _with_prefix(names, prefix, lists) for prefix in prefixes}
    found = [prefix for prefix in prefixes if groups[prefix]]
    if len(found) > 1:
        patterns = " or ".join(f"'{prefix}*'" for prefix in found)
        msg = f"{file}: columns of more than one kind hold probabilities: say --columns {patterns}"
        raise InvalidInput(msg)
    if found:
        prefix = found[0]
        return groups[prefix], tuple(name[len(prefix) :] for name in groups[prefix])
    wanted = WHOLE + LOGITS if logits else WHOLE
    whole = [name for name in wanted if name in names] or [n for n in names if n in lists]
    if len(whole) > 1:
        msg = f"{file}: which of {listed(whole)} holds the probabilities? Say it with --columns"
        raise InvalidInput(msg)
    if not whole or (whole[0] in LOGITS and not logits):
        raise InvalidInput(_nothing_found(there, file))
    return whole, None


def _nothing_found(names: Sequence[str], file: str) -> str:
    if any(name in LOGITS or name.startswith(LOGIT_PREFIXES) for name in names):
        return f"{file}: no probabilities, only logits: pass --logits"
    return (
        f"{file}: no column p_*, prob_*, proba_* and no column of lists (it has {listed(names)}): "
        "name the probabilities with --columns"
    )


def _with_prefix(names: Sequence[str], prefix: str, lists: Sequence[str]) -> list[str]:
    return [n for n in names if n.startswith(prefix) and n != prefix and n not in lists]


def _stripped(names: list[str]) -> tuple[str, ...]:
    """Class names: the columns' own, without a prefix that all of them share by convention."""
    for prefix in PREFIXES + LOGIT_PREFIXES:
        if all(name.startswith(prefix) and name != prefix for name in names):
            return tuple(name[len(prefix) :] for name in names)
    return tuple(names)


def _check_there(name: str, names: Sequence[str], file: str, option: str) -> None:
    if name not in names:
        msg = f"{file}: {option} names {name!r}, which it lacks (it has {listed(names)})"
        raise InvalidInput(msg)


def listed(names: Sequence[str]) -> str:
    """Some names, quoted."""
    more = f" and {len(names) - MOST_SHOWN} more" if len(names) > MOST_SHOWN else ""
    return ", ".join(repr(name) for name in names[:MOST_SHOWN]) + more if names else "none"
