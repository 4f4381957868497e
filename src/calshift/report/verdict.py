"""The verdict on a calibration error, whether it exceeds a limit, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from calshift._core.text import class_names, percent
from calshift._core.validate import is_number, show, validate_choice, validate_level
from calshift.diagnostics.sample_conditions import LEAST_TARGET
from calshift.errors import InvalidInput
from calshift.report.requirements import REPORTED, VIOLATED, Outcome, outcome_sentence
from calshift.results import CalibrationErrorResult, Difference
from calshift.results.difference import compare_results

GATES = ("lower", "upper")
EXIT_CODES = {"fine": 0, "breached": 1, "untrusted": 3}
ERROR_NAMES = {1.0: "ECE", 2.0: "RMS calibration error"}
WIDE = 0.5  # of the estimate: an interval that is wider than this above it needs more rows
LEAST_SHOWN = 0.001  # share of the target rows that is shown as a number
NOTICEABLE = 0.01  # an interval for an error below this is narrow enough, whatever its ratio


@dataclass(frozen=True)
class Gate:
    """The largest error allowed, in units of probability, and which end of the interval decides.

    "lower": the limit is exceeded if the whole interval is above it, so that noise raises no alarm.
    "upper": it is exceeded if any of the interval is above it, so that a pass is a proof.
    """

    max_error: float | None = None
    side: str = "lower"
    level: float = 0.95

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", validate_level(self.level))
        validate_choice(self.side, "gate", GATES)
        good = self.max_error is None or (is_number(self.max_error) and 0 <= self.max_error <= 1)
        if not good:
            got = show(self.max_error)
            msg = f"max_error must be a probability from 0 to 1, like 0.05; got {got}"
            raise InvalidInput(msg)

    def breached(self, result: CalibrationErrorResult) -> bool:
        """Whether the error exceeds the limit; False without a limit."""
        if self.max_error is None:
            return False
        place = self.place(result)
        return place == "above" or (self.side == "upper" and place == "open")

    def place(self, result: CalibrationErrorResult) -> str | None:
        """Where the interval is: "above" the limit, "within" it, or "open" if on both sides."""
        if self.max_error is None:
            return None
        low, high = result.confidence_interval(self.level, root=True)
        if low > self.max_error:
            return "above"
        # a standard error of 0 is no proof
        return "within" if high <= self.max_error and result.standard_error > 0 else "open"

    def status(self, result: CalibrationErrorResult) -> str:
        """One of "untrusted", which outranks "breached", and "fine"."""
        if not result.trusted:
            return "untrusted"
        return "breached" if self.breached(result) else "fine"


def error_name(result: CalibrationErrorResult) -> str:
    """What the root of the error is called: "ECE" for norm 1."""
    return ERROR_NAMES.get(result.norm, f"L{result.norm:g} calibration error")


def with_interval(result: CalibrationErrorResult, level: float) -> str:
    """The root of the error and its interval."""
    if not result.has_interval:
        return f"{result.root:.4f} (no interval)"
    low, high = result.confidence_interval(level, root=True)
    return f"{result.root:.4f} ({percent(level)} interval {low:.4f} to {high:.4f})"


def change(result: CalibrationErrorResult) -> Difference | None:
    """The difference target - source, where both have the influence of each row."""
    if result.source is None or result._influence is None or result.source._influence is None:
        return None
    return compare_results(result, result.source)


def verdict(result: CalibrationErrorResult, gate: Gate, outcomes: Sequence[Outcome] = ()) -> str:
    """The result in one or two sentences, and one on the requirements of metrics."""
    return f"{_verdict(result, gate)} {outcome_sentence(outcomes, gate.level)}".rstrip()


def _verdict(result: CalibrationErrorResult, gate: Gate) -> str:
    error = f"{error_name(result)} {with_interval(result, gate.level)}"
    if not result.trusted:
        return f"Not reliable: {result.warnings[0]}. The estimate, {error}, may be wrong."
    found = f"{_gist(result, gate)} on the target: {error}{_beside_source(result, gate)}."
    return found + limit_sentence(result, gate) + drift_sentence(result, gate)


def gist(result: CalibrationErrorResult, gate: Gate, outcomes: Sequence[Outcome] = ()) -> str:
    """The verdict in a few words; requirements that are not met come first."""
    statuses = {REPORTED[one.status] for one in outcomes}
    if not result.trusted or "untrusted" in statuses:
        return "Not reliable"
    if "breached" in statuses and not gate.breached(result):
        violated = any(one.status == VIOLATED for one in outcomes)
        return "Requirement violated" if violated else "Requirement not shown to be met"
    return _gist(result, gate)


def _gist(result: CalibrationErrorResult, gate: Gate) -> str:
    """The calibration error in a few words."""
    place = gate.place(result)
    if place in ("above", "within"):
        return f"{place.capitalize()} the limit"
    if place == "open" and gate.side == "upper":
        return "Not shown to be within the limit"
    if not result.has_interval or result.estimator != "debiased":
        return "Estimate"  # other estimators are biased upwards by noise
    low, _ = result.confidence_interval(gate.level)
    return "Miscalibrated" if low > 0 else "No miscalibration detected"


def _beside_source(result: CalibrationErrorResult, gate: Gate) -> str:
    if result.source is None:
        return ""
    before, found = f"the source's {result.source.root:.4f}", change(result)
    if found is None:
        return f", compared with {before}"
    low, high = found.confidence_interval(gate.level, root=True)
    if low > 0:
        return f", larger than {before}"
    return f", smaller than {before}" if high < 0 else f", not clearly different from {before}"


def limit_sentence(result: CalibrationErrorResult, gate: Gate) -> str:
    """A sentence on the limit, with a space before it; empty without a limit."""
    place = gate.place(result)
    if place is None:
        return ""
    limit = f"limit of {gate.max_error:g}"
    if place != "open":
        return f" That is {place} the {limit}."
    ruling = "not counted as a breach" if gate.side == "lower" else "counted as a breach"
    where = "is inside the interval" if result.standard_error > 0 else "cannot be tested"
    return f" The {limit} {where}: {ruling} (gate: {gate.side})."


def drift_sentence(result: CalibrationErrorResult, gate: Gate) -> str:
    """A sentence on drift, with a space before it: what is allowed for, what would be too much."""
    if not result.has_drift_sensitivity:
        return ""
    stated = f" The interval allows for {percent(result.drift)} of the target rows"
    stated = f"{stated} outside label shift." if result.drift > 0 else ""
    enough = result.break_even_drift(gate.max_error, level=gate.level)
    if enough <= result.drift or enough == float("inf") or result.standard_error == 0:
        return stated
    what = "0" if gate.max_error is None else "the limit"
    share = f"{enough:.1%}" if enough >= LEAST_SHOWN else f"less than {LEAST_SHOWN:.1%}"
    rows = f"If {share} of the target rows came from another distribution"
    return f"{stated} {rows}, the interval could include {what}."


def advice(result: CalibrationErrorResult, gate: Gate) -> list[str]:
    """What to do next, most important first."""
    return list(_advice(result, gate))


def _advice(result: CalibrationErrorResult, gate: Gate) -> Iterator[str]:
    check, weights = result.assumption, result.class_weights
    if weights is not None and np.isnan(weights.values).any():
        unseen = class_names(np.flatnonzero(np.isnan(weights.values)), result.classes)
        yield f"Collect labelled rows of {unseen}: without them calibration is unknown there."
    if check is not None and check.rejected:
        yield (
            "Find out what else changed: the residuals by predicted class (on the report page) "
            "show where. Label a few hundred random target rows and measure the calibration error "
            "on them: estimates that assume label shift are not reliable here."
        )
    if result.n_target is not None and result.n_target < LEAST_TARGET:
        yield "Collect more target rows: these are too few to estimate the class priors."
        return
    untrusted = [] if weights is None else [c for c in weights.untrusted if weights.values[c] >= 0]
    if untrusted:
        named = class_names(np.array(untrusted), result.classes)
        yield f"Collect labelled source rows of {named}: their weights are uncertain."
    if result.trusted and result.has_interval:
        yield from _advice_by_size(result, gate)


def _advice_by_size(result: CalibrationErrorResult, gate: Gate) -> Iterator[str]:
    low, high = result.confidence_interval(gate.level, root=True)
    if high - result.root > max(WIDE * result.root, NOTICEABLE):
        yield "The interval is wide: more source or target rows would narrow it."
    if gate.place(result) == "within":
        yield "No action needed: the error is within the limit. Check again on new rows."
    elif low > 0:
        yield (
            "Recalibrate the probabilities before they are used (`calshift recalibrate`, or "
            "calshift.recalibrate in Python), or allow for the error in decision thresholds."
        )
    else:
        yield f"No action needed yet; errors up to {high:.2g} are not excluded."
