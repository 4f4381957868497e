"""A run: schedules cases, collects reports, keeps one finding for each signature."""

from __future__ import annotations

import json
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from tests.fuzz import api, files, workers
from tests.fuzz.api import Report
from tests.fuzz.oracles.outcomes import Finding
from tests.fuzz.workers import Worker

GROUPS = {"API": 400, "FILE": 25}  # cases of a process
SLOWEST = 5


@dataclass
class Totals:
    """Counts and times of a run, and the first case of each signature."""

    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    names: Counter[str] = field(default_factory=Counter)
    signatures: Counter[str] = field(default_factory=Counter)
    first: dict[str, tuple[Report, Finding]] = field(default_factory=dict)
    slowest: list[tuple[float, str, str]] = field(default_factory=list)
    processor: float = 0.0
    memory: int = 0  # kilobytes

    def add(self, kind: str, report: Report) -> None:
        """Count a report."""
        self.outcomes[kind, report.outcome] += 1
        self.names[report.name] += 1
        self.slowest.append((report.seconds, report.case, report.name))
        self.slowest = sorted(self.slowest, reverse=True)[:SLOWEST]
        for finding in report.findings:
            self.signatures[finding.signature] += 1
            self.first.setdefault(finding.signature, (report, finding))

    def count(self, kind: str) -> int:
        """Cases of a kind that have been run."""
        return sum(n for (one, _), n in self.outcomes.items() if one == kind)


class Session:
    """Cases of one seed, run in several processes until the counts or the time are reached."""

    def __init__(
        self, seed: int, counts: dict[str, float], deadline: float, jobs: int, mode: str,
        corpus: files.Corpus | None, patience: float = workers.PATIENCE,
    ) -> None:  # fmt: skip
        self.seed, self.deadline, self.jobs, self.totals = seed, deadline, jobs, Totals()
        self.examine = {
            "API": partial(api.examine, seed, mode=mode),
            "FILE": partial(files.examine, seed, corpus=corpus),
        }
        self.patience = patience
        self.left, self.next = dict(counts), dict.fromkeys(counts, 0)
        self.spent = dict.fromkeys(counts, 0.0)
        self.active: list[Worker] = []
        self.suspects: dict[tuple[str, int], tuple[str, str]] = {}
        self.waiting: list[tuple[str, list[int]]] = []  # rests of groups, and cases to repeat

    def run(self) -> Totals:
        """Run everything."""
        shown = time.monotonic()
        while self._fill() or self.active:
            for ready in wait([worker.connection for worker in self.active], timeout=1.0):
                self._hear(next(w for w in self.active if w.connection is ready))
            for worker in [worker for worker in self.active if worker.silent]:
                worker.kill()
                self._bury(worker, "no answer")
            if time.monotonic() - shown > 10:
                shown = time.monotonic()
                self._show()
        return self.totals

    def _fill(self) -> bool:
        """Start processes for what is left to do."""
        while len(self.active) < self.jobs:
            task = self.waiting.pop() if self.waiting else self._next_group()
            if task is None:
                return False
            kind, numbers = task
            worker = workers.start(kind, self.seed, numbers, self.examine[kind])
            worker.patience = self.patience
            self.active.append(worker)
        return True

    def _next_group(self) -> tuple[str, list[int]] | None:
        """The next numbers of the kind that has used less time."""
        kinds = [kind for kind, left in self.left.items() if left > 0]
        if not kinds or time.monotonic() > self.deadline:
            return None
        kind = min(kinds, key=lambda one: self.spent[one])
        size = int(min(GROUPS[kind], self.left[kind]))
        numbers = list(range(self.next[kind], self.next[kind] + size))
        self.next[kind] += size
        self.left[kind] -= size
        self.spent[kind] += 1e-3  # so that kinds alternate at the start
        return kind, numbers

    def _hear(self, worker: Worker) -> None:
        worker.heard = time.monotonic()
        try:
            number, report = worker.connection.recv()
        except (EOFError, OSError):
            self._bury(worker, None)
            return
        if number is None:
            self._finish(worker, report)
        elif report is None:
            worker.at = number
        else:
            worker.done.append(number)
            worker.at = None
            self.totals.add(worker.kind, report)

    def _finish(self, worker: Worker, usage: Any) -> None:
        text = worker.close()
        case = worker.kind, worker.numbers[0]
        if len(worker.numbers) == 1 and case in self.suspects:  # it lives alone: memory was damaged
            death, group = self.suspects.pop(case)
            self._report_death(*case, f"{death} after other cases", group + text)
        self.active.remove(worker)
        self.spent[worker.kind] += time.monotonic() - worker.started
        self.totals.processor += usage.ru_utime + usage.ru_stime
        self.totals.memory = max(self.totals.memory, usage.ru_maxrss)

    def _bury(self, worker: Worker, why: str | None) -> None:
        """A process that died: its case is a finding if it dies alone too."""
        worker.process.join()
        death, text = why or workers.describe_death(worker), worker.close()
        self.active.remove(worker)
        self.spent[worker.kind] += time.monotonic() - worker.started
        if worker.at is None:
            return
        if worker.remaining:
            self.waiting.append((worker.kind, worker.remaining))
        if len(worker.numbers) > 1:
            self.suspects[worker.kind, worker.at] = death, f"{worker.numbers}\n{text}"
            self.waiting.append((worker.kind, [worker.at]))  # again, alone
        else:
            self.suspects.pop((worker.kind, worker.at), None)
            self._report_death(worker.kind, worker.at, death, text)

    def _report_death(self, kind: str, number: int, death: str, text: str) -> None:
        case, name = f"{kind}:{self.seed}:{number}", self._name(kind, number)
        finding = Finding(f"{death}: {name}", text)
        self.totals.add(kind, Report(case, name, "failed", 0.0, [finding], name))

    def _name(self, kind: str, number: int) -> str:
        """A short name of a case that cannot report itself; drawn in a process of its own."""
        if kind == "API":
            return str(workers.ask(partial(api.name_case, self.seed, number)))
        corpus = self.examine["FILE"].keywords["corpus"]
        return str(workers.ask(partial(files.name_case, self.seed, number, corpus)))

    def _show(self) -> None:
        counts = ", ".join(f"{self.totals.count(kind)} {kind}" for kind in self.left)
        sys.stderr.write(f"{counts}; {len(self.totals.first)} signatures\n")
        sys.stderr.flush()


def write_findings(totals: Totals, folder: Path, corpus: files.Corpus | None) -> None:
    """One file a signature, and the damaged file where there is one."""
    folder.mkdir(parents=True, exist_ok=True)
    for signature, (report, finding) in totals.first.items():
        stem = re.sub(r"[^A-Za-z0-9.]+", "-", signature).strip("-")[:80]
        content = {
            "signature": signature, "case": report.case, "times": totals.signatures[signature],
            "detail": finding.detail, "call": report.described,
        }  # fmt: skip
        (folder / f"{stem}.json").write_text(json.dumps(content, indent=1), encoding="utf-8")
        kind, seed, number = report.case.split(":")
        if kind == "FILE" and corpus is not None:
            draw = partial(files.draw_damaged, int(seed), int(number), corpus)
            name, damaged = workers.ask(draw)
            (folder / f"{stem}{name}").write_bytes(damaged)


def summary_lines(totals: Totals, seconds: float) -> Iterator[str]:
    """The table at the end."""
    for kind in ("API", "FILE"):
        parts = ", ".join(
            f"{n} {how}" for (one, how), n in sorted(totals.outcomes.items()) if one == kind
        )
        yield f"{kind}: {totals.count(kind)} cases ({parts})"
    memory = f"largest process {totals.memory >> 10} MB"
    yield f"wall {seconds:.0f} s, processor {totals.processor:.0f} s, {memory}"
    yield "slowest: " + "; ".join(f"{s:.1f} s {case} {name}" for s, case, name in totals.slowest)
    yield f"{len(totals.first)} signatures"
    for signature, count in totals.signatures.most_common():
        yield f"{count:>6}  {totals.first[signature][0].case:<18} {signature}"
