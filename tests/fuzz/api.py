"""One case of the Python functions: a call with all that is checked of it, or a relation."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import calshift
from tests.fuzz.calls import Call, draw_call
from tests.fuzz.oracles.numbers import is_undetermined, largest_difference, same_bits
from tests.fuzz.oracles.outcomes import Finding, Outcome, checksum, judge, observe
from tests.fuzz.relations import draw_relation, use_numpy

OPTION_NAMES = {
    name
    for function in (calshift.target_calibration_error, calshift.monitor, calshift.recalibrate)
    for name, parameter in inspect.signature(function).parameters.items()
    if parameter.kind is inspect.Parameter.KEYWORD_ONLY
}
EVERY_RELATION = 5  # of all cases, one in so many is a relation
EVERY_REPEAT = 4  # of accepted calls, one in so many is repeated


@dataclass
class Report:
    """What happened in a case, as it is sent to the parent process."""

    case: str
    name: str
    outcome: str
    seconds: float = 0.0
    findings: list[Finding] = field(default_factory=list)
    described: str = ""


def examine(seed: int, number: int, mode: str) -> Report:
    """Run the case of this number."""
    case = f"API:{seed}:{number}"
    if number % EVERY_RELATION == EVERY_RELATION - 1:
        relation = draw_relation(seed, number)
        outcome, found = relation.examine()
        described = f"relation {relation.name}: {relation.asked}"
        return _report(case, f"relation {relation.name}", outcome, found, described)
    call = draw_call(seed, number)
    before = checksum(call.arguments)
    outcome = observe(call.run)
    found = list(_check(seed, number, call, outcome, mode))
    if before != checksum(call.arguments):
        found.append(Finding(f"input changed by {call.name}", call.changed))
    return _report(case, call.name, outcome, found, describe(call) if found else "")


def _report(case: str, name: str, outcome: Outcome, found: list[Finding], described: str) -> Report:
    how = "refused" if outcome.refused else "accepted"
    if outcome.error is not None and not outcome.refused:
        how = "failed" if found else "not called"  # an argument that the harness cannot pass on
    return Report(case, name, how, outcome.seconds, found, described if found else "")


def _check(seed: int, number: int, call: Call, outcome: Outcome, mode: str) -> Iterator[Finding]:
    yield from judge(call.name, outcome)
    if outcome.error is not None:
        yield from _check_named(call, outcome)
        if call.expected == "equal" and outcome.refused:
            yield from _compare_plain(call, outcome)
        return
    if call.expected == "refuse":
        yield Finding(f"accepted: {call.changed_data}", f"{call.name}: {outcome.result!r}"[:300])
    if call.expected in ("equal", "either"):
        yield from _compare_plain(call, outcome)
    if call.name == "predictions":
        yield from _check_labels(call, outcome.result)
    if number % EVERY_REPEAT == 0 and isinstance(call.arguments.get("rng", 0), int):
        yield from _repeat(seed, number, call, outcome, mode)


def _check_named(call: Call, outcome: Outcome) -> Iterator[Finding]:
    """An error must not ask for another value of an option that the caller did not pass."""
    named = re.match(r"(\w+) must ", str(outcome.error))
    if call.name == "read_others":
        return  # a level that needs more draws than the default, as the error says
    if named and named[1] in OPTION_NAMES and named[1] not in call.arguments:
        signature = f"{call.name} asks for another {named[1]}, which was not passed"
        yield Finding(signature, str(outcome.error)[:500])


def _compare_plain(call: Call, outcome: Outcome) -> Iterator[Finding]:
    """The same numbers in another container have the same result."""
    plain = observe(call.run_plain)
    if plain.error is not None:
        if plain.refused and outcome.error is None:
            yield Finding(f"refused as a plain array: {call.changed_data}", str(plain.error))
        return
    if outcome.error is not None:
        yield Finding(f"refused: {call.changed_data}", str(outcome.error)[:500])
        return
    if any(map(is_undetermined, getattr(outcome.result, "results", (outcome.result,)))):
        return  # weights that the samples do not determine are rounding, amplified
    gap = largest_difference(outcome.result, plain.result)
    if gap is not None:
        yield Finding(f"another result: {call.changed_data}", f"differs by {gap:.3g}")


def _repeat(seed: int, number: int, call: Call, outcome: Outcome, mode: str) -> Iterator[Finding]:
    again = observe(draw_call(seed, number).run)
    if again.error is not None or not same_bits(outcome.result, again.result):
        yield Finding(f"not repeatable: {call.name}", repr(again.error or again.result)[:500])
    if mode != "both":
        return
    with use_numpy():
        other = observe(draw_call(seed, number).run)
    gap = np.inf if other.error else largest_difference(outcome.result, other.result, 1e-7)
    if gap is not None:
        yield Finding(f"numpy differs from compiled: {call.name}", f"by {gap:.3g}, {other.error!r}")


def _check_labels(call: Call, found: Any) -> Iterator[Finding]:
    """A label that equals a class and has its type is that class."""
    y, classes = call.arguments.get("y"), call.arguments.get("classes")
    if (
        {"y", "sample_weight"} & set(re.findall(r"\w+", call.changed))
        or not isinstance(classes, list)
        or y is None
    ):
        return
    values, names = (part.tolist() for part in (np.array(y, object), np.array(classes, object)))
    values, names = (
        [getattr(v, "item", lambda v=v: v)() for v in part] for part in (values, names)
    )
    place = {(type(name), name): k for k, name in enumerate(names)}
    if not all((type(value), value) in place for value in values):
        return
    expected = np.array([place[type(value), value] for value in values])
    weight = call.arguments.get("sample_weight")
    if weight is not None:
        expected = expected[np.asarray(weight, dtype=float) > 0]
    if not np.array_equal(expected, found.y):
        kind = type(names[0]).__name__
        yield Finding(f"labels are not matched with classes ({kind})", f"{classes!r}"[:300])


def describe(call: Call) -> str:
    """The call in words, with short arguments."""
    lines = [f"{call.name}({call.changed or 'valid'}), expected: {call.expected}"]
    for name, value in call.arguments.items():
        try:
            shown = repr(value)
        except Exception as error:  # an object whose repr fails
            shown = f"<{type(value).__name__}, no repr: {type(error).__name__}>"
        lines.append(f"  {name} = {type(value).__name__} {shown[:2000]}")
    return "\n".join(lines)


def name_case(seed: int, number: int) -> str:
    """The function of a case."""
    if number % EVERY_RELATION == EVERY_RELATION - 1:
        return draw_relation(seed, number).asked.partition("(")[0]
    return draw_call(seed, number).name
