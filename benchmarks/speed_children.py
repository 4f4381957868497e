"""The processes of benchmarks/run.py: one for each version and setting, which measure in turns."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).parent
STOPPED, PATIENCE = 200, 1800  # seconds for a peer to answer, and for calshift
THREADS = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
Answer = dict[str, Any]


class Worker:
    """A process that measures the cases of a script, one after another."""

    def __init__(
        self, python: Path, script: str, most: int, case: str | None = None, **settings: str
    ) -> None:
        dropped = {"PYTHONPATH", "CALSHIFT_COMPILED"}
        around = {name: value for name, value in os.environ.items() if name not in dropped}
        self.most, self.case = most, case
        self.process = subprocess.Popen(
            [str(python), str(HERE / script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**around, **THREADS, **settings},
        )

    @classmethod
    def of_version(cls, source: Path, numba: bool) -> Worker:
        """A version of calshift, with compiled functions or without."""
        setting = {} if numba else {"CALSHIFT_COMPILED": "0"}
        script, path = "speed_ours.py", str(source.resolve())
        return cls(Path(sys.executable), script, PATIENCE, PYTHONPATH=path, **setting)

    @classmethod
    def of_peer(cls, python: Path, case: str) -> Worker:
        """A peer, which measures one case in place of whatever is asked for."""
        return cls(python, "speed_peers.py", STOPPED, case)

    def measured(self, case: str, n: int, K: int) -> Answer:
        """Times and memory of a case, or why it failed."""
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            print(json.dumps([self.case or case, n, K, self.most]), file=stdin, flush=True)
        except BrokenPipeError:
            return {"failed": "ended"}
        if line := stdout.readline():
            return dict(json.loads(line))
        stopped = self.process.wait() == -signal.SIGALRM
        return {"failed": f"> {self.most} s" if stopped else "ended"}

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()


@dataclass(frozen=True)
class Series:
    """What was measured of a case, turn by turn."""

    turns: tuple[Answer, ...]

    @property
    def failed(self) -> str:
        """Why there is nothing, short, and without what breaks a table."""
        reasons = [turn["failed"] for turn in self.turns if "failed" in turn]
        return (
            "" if not reasons else "failed: " + " ".join(reasons[0].split()).replace("|", "/")[:70]
        )

    @property
    def slow(self) -> bool:
        """Whether it was measured once, and taken for every turn."""
        return bool(self.turns[0].get("slow"))

    def __getitem__(self, quantity: str) -> float:
        """The median over the turns."""
        return float("nan") if self.failed else median(turn[quantity] for turn in self.turns)

    def ratios(self, other: Series, clock: str = "cpu") -> list[float]:
        """Of each turn, this over the other."""
        if self.failed or other.failed:
            return []
        return [a[clock] / b[clock] for a, b in zip(self.turns, other.turns, strict=True)]


def measured_in_turns(
    workers: Sequence[Worker], asked: Sequence[tuple[str, int, int]], turns: int
) -> list[list[Series]]:
    """Every case of every worker: by case, then by worker. Their order changes with the turn."""
    found: list[list[list[Answer]]] = [[[] for _ in workers] for _ in asked]
    for turn in range(turns):
        for cases, (case, n, K) in zip(found, asked, strict=True):
            print(f"{turn + 1}/{turns} {case} {n:,} x {K}", file=sys.stderr, flush=True)
            both = list(zip(cases, workers, strict=True))
            for answers, worker in both if turn % 2 == 0 else both[::-1]:
                answers.append(worker.measured(case, n, K))
    return [[Series(tuple(answers)) for answers in cases] for cases in found]


@contextmanager
def started(*workers: Worker) -> Iterator[Sequence[Worker]]:
    """Processes that are ended."""
    with ExitStack() as stack:
        yield [stack.enter_context(worker) for worker in workers]
