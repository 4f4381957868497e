"""The peers' environment of benchmarks/run.py, made in a folder when it is first needed."""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from pathlib import Path

NEEDED = Path(__file__).parent / "speed_peers.txt"


class PeersEnvironment:
    """The interpreter of speed_peers.txt."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def make(self) -> Path:
        """The interpreter, of an environment that is there."""
        ready, wanted = self.folder / NEEDED.name, NEEDED.read_text(encoding="utf-8")
        if ready.exists() and ready.read_text(encoding="utf-8") == wanted:
            return self.python
        print(f"making {self.folder}", file=sys.stderr, flush=True)
        if not self.python.exists():
            venv.create(self.folder, with_pip=True)
        lines = [line for line in wanted.splitlines() if not line.startswith("#")]
        self._install(lines[0])  # torch, of exactly this version, or gigabytes of CUDA come
        if not self._install("-r", str(NEEDED)):
            for line in lines[1:]:  # what cannot be installed fails alone
                self._install(lines[0], line)
        ready.write_text(wanted, encoding="utf-8")
        return self.python

    def _install(self, *what: str) -> bool:
        asked = [str(self.python), "-m", "pip", "install", "--quiet", *what]
        return subprocess.run(asked, stdout=sys.stderr).returncode == 0

    def versions(self) -> str:
        """Of what is compared with, in a line."""
        asked = [str(self.make()), "-m", "pip", "list", "--format=json"]
        done = subprocess.run(asked, capture_output=True, text=True)
        names = {line.split("=")[0] for line in NEEDED.read_text("utf-8").splitlines()}
        there = json.loads(done.stdout) if done.returncode == 0 else []
        return ", ".join(
            f"{found['name']} {found['version']}"
            for found in there
            if found["name"].lower() in names
        )
