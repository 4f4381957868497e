"""Inputs of `findings/`, which failed once, examined again in processes of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from tests.fuzz import files, workers
from tests.fuzz.api import Report
from tests.fuzz.findings.calls import CALLS
from tests.fuzz.oracles.outcomes import Finding, judge, observe
from tests.fuzz.workers import Worker


def replay(folder: Path, corpus: files.Corpus) -> Iterator[tuple[str, list[Finding]]]:
    """The name of each input with its findings: files of a folder, then calls."""
    known = {file.extension for file in corpus}
    for path in sorted(path for path in folder.iterdir() if "".join(path.suffixes) in known):
        yield path.name, _run_alone(partial(files.replay, path, corpus))
    for name in CALLS:
        yield name, _run_alone(partial(examine_call, name))


def examine_call(name: str) -> Report:
    """What is wrong with the outcome of a call."""
    expected, call = CALLS[name]
    outcome = observe(call)
    found = list(judge(name, outcome))
    if expected == "refuse" and not outcome.refused:
        found.append(Finding("it is not refused", repr(outcome.result)[:300]))
    if expected == "accept" and outcome.error is not None:
        found.append(Finding("it is not accepted", str(outcome.error)))
    return Report(name, name, "replayed", outcome.seconds, found)


def _run_alone(examine: Callable[[], Report]) -> list[Finding]:
    """The findings of a case in its own process, whose death is one."""
    worker = workers.start("REPLAY", 0, [0], lambda number: examine())
    report = _last_report(worker)
    if report is None:
        worker.process.kill()
        worker.process.join()
        return [Finding(workers.describe_death(worker), worker.close())]
    worker.close()
    return report.findings


def _last_report(worker: Worker) -> Report | None:
    """Its report; None if it dies or does not answer."""
    found = None
    try:
        while worker.connection.poll(worker.patience):
            number, report = worker.connection.recv()
            if number is None:
                return found
            found = report or found
    except (EOFError, OSError):
        pass
    return None
