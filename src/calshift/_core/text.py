"""Texts shared by several results."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np


def note_lines(warnings: tuple[str, ...]) -> list[str]:
    """Warnings as marked lines, wrapped to fit a terminal."""
    return [
        line
        for note in warnings
        for line in textwrap.wrap(printable(note), 96, initial_indent="! ", subsequent_indent="  ")
    ]


def unseen_classes_warnings(
    seen: np.ndarray, predicted: np.ndarray | None, classes: tuple[Any, ...] | None
) -> tuple[str, ...]:
    """The warning about classes without source rows, if there are any.

    ``predicted`` is the target's mean prediction, which gives the mass of these classes.
    """
    if seen.all():
        return ()
    share = "" if predicted is None else f", to which predictions give {predicted[~seen].sum():.1%}"
    missing = class_names(np.flatnonzero(~seen), classes)
    return (f"the source lacks {missing}{share}: left out, calibration unknown there",)


def small_ess_warning(ess: float) -> str:
    """The warning about a small effective sample size."""
    return f"effective sample size of the weighted source is {ess:.0f}"


def class_names(which: np.ndarray, classes: tuple[Any, ...] | None = None, most: int = 10) -> str:
    """'class 3', 'classes 3, 5 and 9', or the first ten and how many more."""
    shown = [str(int(c) if classes is None else classes[c]) for c in which[:most]]
    if len(which) == 1:
        return f"class {shown[0]}"
    if len(which) > most:
        return f"classes {', '.join(shown)} and {len(which) - most} more"
    return f"classes {', '.join(shown[:-1])} and {shown[-1]}"


def percent(level: float) -> str:
    """'95%', '99.5%'."""
    return f"{100 * level:.6g}%"


def printable(text: str) -> str:
    """The text with control characters and line breaks escaped."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def shorten(text: str, most: int = 60) -> str:
    """The text cut to a length."""
    return text if len(text) <= most else text[: most - 3] + "..."
