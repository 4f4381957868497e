"""The processes of benchmarks/run.py: the peers' environment, one child for each case."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import venv
from dataclasses import dataclass
from math import isnan
from pathlib import Path

HERE = Path(__file__).parent
NEEDED = HERE / "speed_peers.txt"
STOPPED, PATIENCE = 120, 1200  # seconds for a run of a peer, and for one of ours
THREADS = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@dataclass(frozen=True)
class Measured:
    """Best time, memory beside the inputs, the answer; or why there is none."""

    seconds: float = float("nan")
    bytes: float = float("nan")
    answer: float = float("nan")
    failed: str = ""

    def cells(self) -> list[str]:
        """Time, memory, answer."""
        if self.failed:
            return [self.failed, "", ""]
        time = f"{self.seconds:.2f} s" if self.seconds >= 1 else f"{self.seconds * 1e3:.1f} ms"
        answer = "" if isnan(self.answer) else f"{self.answer:.4f}"
        return [time, f"{self.bytes / 1e6:.1f} MB", answer]

    def over(self, other: Measured) -> float:
        """How many times the other's time; at least that if stopped, nan if failed."""
        return self.seconds / other.seconds


def reason(text: str) -> str:
    """The last line, short, and without what breaks a table."""
    lines = text.strip().splitlines() or ["no answer"]
    return "failed: " + lines[-1].replace("|", "/")[:70]


def child(
    python: Path, script: str, case: str, n: int, K: int, most: int, **settings: str
) -> dict[str, Measured]:
    """What a script measures of a case, under the names it gives; one called "" if it fails."""
    print(f"{script} {case} {n:,} x {K}", file=sys.stderr, flush=True)
    command = [str(python), str(HERE / script), case, str(n), str(K), str(most)]
    environment = {**os.environ, **THREADS, **settings}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode == -signal.SIGALRM:
        return {"": Measured(seconds=most, failed=f"> {most} s")}
    if done.returncode:
        return {"": Measured(failed=reason(done.stderr))}
    found = json.loads(done.stdout.splitlines()[-1])
    if "failed" in found:
        return {"": Measured(failed=reason(found["failed"]))}
    return {name: Measured(**values) for name, values in found.items()}


def ours(case: str, n: int, K: int, script: str = "speed_ours.py") -> Measured:
    return in_turns(case, n, K, "ours", script=script)[0]


def in_turns(
    case: str, n: int, K: int, *names: str, script: str = "speed_ours.py", **settings: str
) -> list[Measured]:
    """Several things of one process, with settings in its environment."""
    found = child(Path(sys.executable), script, case, n, K, PATIENCE, **settings)
    return [found[name] if name in found else found[""] for name in names]


class Peers:
    """The environment of speed_peers.txt in a folder, made when it is first needed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self.python = self.folder / "bin" / "python"

    def measured(self, case: str, n: int, K: int) -> Measured:
        self._make()
        return next(iter(child(self.python, "speed_peers.py", case, n, K, STOPPED).values()))

    def _make(self) -> None:
        ready, wanted = self.folder / NEEDED.name, NEEDED.read_text(encoding="utf-8")
        if ready.exists() and ready.read_text(encoding="utf-8") == wanted:
            return
        print(f"making {self.folder}", file=sys.stderr, flush=True)
        if not self.python.exists():
            venv.create(self.folder, with_pip=True)
        lines = [line for line in wanted.splitlines() if not line.startswith("#")]
        self._install(lines[0])  # torch, of exactly this version, or gigabytes of CUDA come
        if not self._install("-r", str(NEEDED)):
            for line in lines[1:]:  # what cannot be installed fails alone
                self._install(lines[0], line)
        ready.write_text(wanted, encoding="utf-8")

    def _install(self, *what: str) -> bool:
        asked = [str(self.python), "-m", "pip", "install", "--quiet", *what]
        return subprocess.run(asked, stdout=sys.stderr).returncode == 0

    def versions(self) -> str:
        """Of what is compared with, in a line."""
        if not self.python.exists():
            return ""
        asked = [str(self.python), "-m", "pip", "list", "--format=json"]
        done = subprocess.run(asked, capture_output=True, text=True)
        names = {line.split("=")[0] for line in NEEDED.read_text("utf-8").splitlines()}
        there = json.loads(done.stdout) if done.returncode == 0 else []
        return ", ".join(
            f"{found['name']} {found['version']}"
            for found in there
            if found["name"].lower() in names
        )
