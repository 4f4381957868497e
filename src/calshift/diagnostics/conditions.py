"""The conditions of trust: their names, which call needs which, and waivers.

docs/trust.md has the table of conditions and calls.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from calshift._core.validate import show
from calshift.errors import InvalidInput
from calshift.results import Diagnostic

LABEL_SHIFT = ("label-shift-test", "label-shift-direction", "label-shift-distance")
LACK_OF_FIT = "lack-of-fit"  # check=False waives it too
LABELLED = ("label-order", "sample-size", "interval-width")
WEIGHTS = (
    "label-order", "sample-size", "unseen-classes", *LABEL_SHIFT, "discrimination", "class-weights",
    "effective-sample-size", "conditioning", "boundary", "agreement", "lack-of-fit",
    "amplification",
)  # fmt: skip
GIVEN = (
    "label-order", "sample-size", "unseen-classes", *LABEL_SHIFT, "effective-sample-size",
    "residual-rows", "overlap", "interval-width",
)  # fmt: skip
METRICS = (*WEIGHTS, "residual-rows", "interval-width")
LABELLED_METRICS = (*LABELLED, "residual-rows")
LABEL_FREE = (
    *WEIGHTS,
    "residual-rows",
    "overlap",
    "interval-width",
)  # the order in which reasons are reported


def validate_waive(waive: Any, among: tuple[str, ...], check: bool = True) -> frozenset[str]:
    """The names to waive; without the check of label shift its conditions are among them.

    Waiving "label-shift-test" is ``check=False``: the test is not made.
    """
    names = (waive,) if isinstance(waive, str) else waive
    try:
        names = tuple(names)
    except TypeError:
        names = (waive,)
    for name in names:
        if not isinstance(name, str) or name not in among:
            msg = f"waive must name conditions among {', '.join(among)}; got {show(name)}"
            raise InvalidInput(msg)
    if not check or LABEL_SHIFT[0] in names:
        names = (*names, *(name for name in (*LABEL_SHIFT, LACK_OF_FIT) if name in among))
    return frozenset(names)


def unchecked(name: str, limit: float | None, reason: str) -> Diagnostic:
    """The outcome of a condition that was not checked, which counts as failed."""
    return Diagnostic(name, None, limit, False, f'{reason} (waive "{name}" to accept this)')


def settle(found: Iterable[Diagnostic], waive: frozenset[str]) -> tuple[Diagnostic, ...]:
    """The outcomes in the order of the conditions, those to be waived marked as such."""
    marked = (replace(one, waived=one.name in waive) for one in found)
    return tuple(sorted(marked, key=lambda one: LABEL_FREE.index(one.name)))


def reasons(diagnostics: Iterable[Diagnostic]) -> list[str]:
    """Texts of conditions that are not met: failed ones first, those not checked after others.

    Waived ones that were checked follow; where the caller wanted no check there is no text.
    """
    failed = [one for one in diagnostics if one.failed]
    failed.sort(key=lambda one: one.value is None)
    waived = [one for one in diagnostics if one.waived and not one.passed and one.value is not None]
    return [one.text for one in (*failed, *waived)]
