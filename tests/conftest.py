"""One thread for linear algebra, before numpy is loaded: the matrices here are small.

Hypothesis measures no time: what comes first in a process may compile loops.

The fast lane, `pytest -m "not slow and not spark and not browser"`, runs a pairwise part of every
cross product of parameters, in which each value of a parameter occurs with each value of every
other one, and at most 6 cases of a test, evenly spaced. The remaining cases are marked `slow` here;
all else that is slow says so where it stands.
"""

from __future__ import annotations

import os
from itertools import combinations

import pytest
from hypothesis import settings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "agg")

settings.register_profile("calshift", deadline=None)
settings.load_profile("calshift")

MOST_CASES = 6  # of a test in the fast lane

Value = tuple[str, tuple[int, ...]]


def pairs_of(item: pytest.Item) -> set[tuple[Value, Value]]:
    """All pairs of values in one case of a test, one value for each of its `parametrize`.

    A value is known by its identity: the cases of a product share the values.
    """
    values = []
    for mark in item.iter_markers("parametrize"):
        names = mark.args[0] if isinstance(mark.args[0], str) else ",".join(mark.args[0])
        params = [item.callspec.params[name.strip()] for name in names.split(",")]
        values.append((names, tuple(map(id, params))))
    return set(combinations(values, 2))


def beyond_pairs(cases: list[pytest.Item]) -> list[pytest.Item]:
    """Cases that are left out when one with the most pairs not yet seen is taken, again and again.

    The first of equals is taken, so that the choice is the same in every process.
    """
    pairs = {case: pairs_of(case) for case in cases}
    missing = set().union(*pairs.values())
    while missing:
        best = max(pairs, key=lambda case: len(pairs[case] & missing))
        missing -= pairs.pop(best)
    return list(pairs) if len(pairs) < len(cases) else []


def beyond_few(cases: list[pytest.Item]) -> list[pytest.Item]:
    """Cases that are left out when a few are taken, evenly spaced."""
    step = -(-len(cases) // MOST_CASES)
    return [case for number, case in enumerate(cases) if number % step]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for cases in tests.values():
        left_out = beyond_pairs(cases)
        others = [case for case in cases if case not in left_out]
        for case in (*left_out, *beyond_few(others)):
            case.add_marker(pytest.mark.slow)
