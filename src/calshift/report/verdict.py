"""The answer in a sentence, whether it passes a threshold, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from calshift._core.text import class_names, percent
from calshift._core.validate import is_number, validate_level
from calshift.diagnostics.warnings import LEAST_TARGET
from calshift.errors import InvalidInput
from calshift.inference.compare import difference
from calshift.results import CalibrationErrorResult, Difference

GATES = ("lower", "upper")
EXIT_CODES = {"fine": 0, "breached": 1, "untrusted": 3}
MEANING = {1.0: "on average", 2.0: "root mean square"}
WIDE = 0.5  # of the estimate: an interval that reaches so far on one side calls for more rows
NOTICEABLE = 0.01  # an interval for an error below this is narrow enough, whatever its ratio


@dataclass(frozen=True)
class Gate:
    """The largest error allowed, in units of probability, and which end of the interval decides.

    "lower": a breach is an interval that lies above it as a whole, so that noise raises no alarm.
    "upper": a breach is an interval that reaches above it, so that a pass is a proof.
    """

    max_error: float | None = None
    side: str = "lower"
    level: float = 0.95

    def __post_init__(self) -> None:
        validate_level(self.level)
        if self.side not in GATES:
            msg = f"gate must be one of {', '.join(GATES)}; got {self.side!r}"
            raise InvalidInput(msg)
        good = self.max_error is None or (is_number(self.max_error) and 0 <= self.max_error <= 1)
        if not good:
            msg = f"max_error must be a probability from 0 to 1, like 0.05; got {self.max_error!r}"
            raise InvalidInput(msg)

    def breached(self, result: CalibrationErrorResult) -> bool:
        """Whether the error is too large; without a largest one it never is."""
        if self.max_error is None:
            return False
        place = self.place(result)
        return place == "above" or (self.side == "upper" and place == "open")

    def place(self, result: CalibrationErrorResult) -> str | None:
        """Where the whole interval lies: "above" the limit, "within" it, or "open": on neither."""
        if self.max_error is None:
            return None
        low, high = result.confidence_interval(self.level, root=True)
        if low > self.max_error:
            return "above"
        # no spread at all is no proof
        return "within" if high <= self.max_error and result.standard_error > 0 else "open"

    def status(self, result: CalibrationErrorResult) -> str:
        """ "untrusted", which outranks "breached", or "fine"."""
        if not result.trusted:
            return "untrusted"
        return "breached" if self.breached(result) else "fine"


def change(result: CalibrationErrorResult) -> Difference | None:
    """The target's error less the source's, where their intervals allow it."""
    if result.source is None or result._influence is None or result.source._influence is None:
        return None
    return difference(result, result.source)


def verdict(result: CalibrationErrorResult, gate: Gate) -> str:
    """One or two sentences that say it all."""
    if not result.trusted:
        return (
            f"No answer to rely on: {result.warnings[0]}. "
            f"The estimate, {_error(result, gate)}, may be plainly wrong."
        )
    found = f"{gist(result, gate)} on the target: its error is {_error(result, gate)}"
    return f"{found}{_beside_source(result, gate)}.{beside_limit(result, gate)}"


def gist(result: CalibrationErrorResult, gate: Gate) -> str:
    """The verdict in a few words."""
    if not result.trusted:
        return "Not to be trusted"
    place = gate.place(result)
    if place in ("above", "within"):
        return f"{place.capitalize()} the limit"
    if place == "open" and gate.side == "upper":
        return "Not shown to be within the limit"
    if not result.has_interval or result.estimator != "debiased":
        return "An estimate"  # other estimators leave noise in the number
    low, _ = result.confidence_interval(gate.level)
    return "Miscalibrated" if low > 0 else "No miscalibration seen"


def _error(result: CalibrationErrorResult, gate: Gate) -> str:
    meaning = MEANING.get(result.norm, f"L{result.norm:g}")
    if not result.has_interval:
        return f"{result.root:.4f} ({meaning}; no interval)"
    low, high = result.confidence_interval(gate.level, root=True)
    return f"{result.root:.4f} ({meaning}; {percent(gate.level)} interval {low:.4f} to {high:.4f})"


def _beside_source(result: CalibrationErrorResult, gate: Gate) -> str:
    difference = change(result)
    if result.source is None:
        return ""
    before = f"the source's {result.source.root:.4f}"
    if difference is None:
        return f", beside {before}"
    low, high = difference.confidence_interval(gate.level, root=True)
    if low > 0:
        return f", more than {before}"
    return f", less than {before}" if high < 0 else f", not clearly different from {before}"


def beside_limit(result: CalibrationErrorResult, gate: Gate) -> str:
    """A sentence on the largest error allowed, with a space before it; nothing without a limit."""
    limit, place = gate.max_error, gate.place(result)
    if place is None:
        return ""
    if place != "open":
        return f" That is {place} the {limit:g} allowed."
    ruling = "not counted as a breach" if gate.side == "lower" else "counted as a breach"
    where = "lies inside the interval" if result.standard_error > 0 else "is not proven"
    return f" The {limit:g} allowed {where}: {ruling} (gate: {gate.side})."


def advice(result: CalibrationErrorResult, gate: Gate) -> list[str]:
    """What to do next, most pressing first."""
    return list(_advice(result, gate))


def _advice(result: CalibrationErrorResult, gate: Gate) -> Iterator[str]:
    check, weights = result.assumption, result.class_weights
    if weights is not None and np.isnan(weights.values).any():
        unseen = class_names(np.flatnonzero(np.isnan(weights.values)), result.classes)
        yield f"Collect labelled rows of {unseen}: nothing is known of the error there."
    if check is not None and check.rejected:
        yield (
            "Find out what else changed: the residuals by predicted class, on the report page, say "
            "where. Label a few hundred random target rows and measure the error on them; nothing "
            "that rests on label shift can be trusted here."
        )
    if result.n_target is not None and result.n_target < LEAST_TARGET:
        yield "Collect more target rows: these say nothing of its mix."
        return
    doubts = [] if weights is None else [c for c in weights.untrusted if weights.values[c] >= 0]
    if doubts:
        doubted = class_names(np.array(doubts), result.classes)
        yield f"Collect labelled source rows of {doubted}: their weights are uncertain."
    if result.trusted and result.has_interval:
        yield from _by_size(result, gate)


def _by_size(result: CalibrationErrorResult, gate: Gate) -> Iterator[str]:
    low, high = result.confidence_interval(gate.level, root=True)
    if high - result.root > max(WIDE * result.root, NOTICEABLE):
        yield "The interval is wide: more rows on either side would narrow it."
    if gate.place(result) == "within":
        yield "Nothing calls for a change: the error is within the limit. Run it again on new rows."
    elif low > 0:
        yield (
            "Do not act on the probabilities as they stand: mend them (`calshift recalibrate`, or "
            "calshift.recalibrate in Python), or choose thresholds with the error in mind."
        )
    else:
        yield f"Nothing calls for a change yet; errors up to {high:.2g} are not excluded."
