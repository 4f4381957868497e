"""The measuring of benchmarks/run.py, on times that are known."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("resource", reason="CPU time of child processes")

with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(str(Path(__file__).parents[1] / "benchmarks"))
    children = import_module("speed_children")
    clock = import_module("speed_clock")
    rows = import_module("speed_rows")


def answers(*seconds: float) -> tuple[dict, ...]:
    return tuple(
        {"cpu": s, "wall": 2 * s, "bytes": 1e6, "peak": 2e9, "answer": float("nan")}
        for s in seconds
    )


def met(row: list[str]) -> str:
    return row[rows.HEAD.index("met")]


def test_a_limit_is_of_the_median_of_the_ratios_of_each_turn():
    mine = children.Series(answers(1.0, 2.0, 9.0))
    its = children.Series(answers(4.0, 4.0, 9.0))  # ratios .25, .5, 1
    row = rows.comparison(("call", 10, 2), True, "its", mine, its, "1/2")
    assert row[rows.HEAD.index("ratio")] == "0.50"
    assert met(row) == "yes"
    assert met(rows.comparison(("call", 10, 2), True, "", mine, its, "1/3")) == "no"


def test_memory_has_a_limit_of_its_own():
    mine = children.Series(answers(1.0))
    asked = (("call", 10, 2), True, "its", mine, mine)
    assert met(rows.comparison(*asked, most=1e9)) == "yes"
    assert met(rows.comparison(*asked, most=1e9, memory="peak")) == "no"


def test_what_failed_meets_no_limit():
    mine = children.Series(answers(1.0))
    failed = children.Series(({"failed": "ValueError: a | b"},))
    row = rows.comparison(("call", 10, 2), True, "its", mine, failed, "1")
    assert "failed: ValueError: a / b" in row
    assert met(row) == "no"


def test_the_order_of_the_processes_changes_with_the_turn():
    asked: list[str] = []

    def worker(name: str) -> SimpleNamespace:
        def measured(case: str, n: int, K: int) -> dict:
            asked.append(name)
            return {"cpu": float(len(asked))}

        return SimpleNamespace(measured=measured)

    ((a, b),) = children.measured_in_turns([worker("a"), worker("b")], [("x", 1, 1)], 2)
    assert "".join(asked) == "abba"
    assert a.ratios(b) == [1 / 2, 4 / 3]


def test_a_slow_call_is_made_once_and_counted_for_every_turn(monkeypatch):
    calls: list[int] = []

    def make(n: int, K: int):  # type: ignore[no-untyped-def]
        return lambda: calls.append(n) or time.sleep(0.001) or 0.0

    monkeypatch.setattr(clock, "SLOW", 0.0)
    prepared = clock.Prepared(make, 10_000, 2)
    assert prepared.times() == prepared.times()
    assert calls == [clock.FEW_ROWS, 10_000]


def test_processor_time_of_other_threads_is_outside():
    def busy() -> float:
        until = time.thread_time() + 0.05
        while time.thread_time() < until:
            pass
        return 0.0

    def run() -> float:
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(busy).result()

    found = clock.timed(run, 1)
    assert found["outside"] == pytest.approx(found["cpu"], abs=0.02)
    assert clock.timed(busy, 1)["outside"] < 0.02
