"""What a run of benchmarks/run.py is asked for."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from speed_children import HERE, Worker, started
from speed_environment import PeersEnvironment

SOURCE = HERE.parent / "src"
NUMBA = (True, False)
Asked = tuple[str, int, int]  # call, rows, classes


@dataclass(frozen=True)
class Setup:
    """What a run is asked for: calls and sizes by part, pairs, the other version, the peers."""

    sizes: dict[str, list[Asked]]
    pairs: int
    source: Path
    peers: PeersEnvironment

    @property
    def other(self) -> str:
        """The commit of the other version."""
        asked = ["git", "-C", str(self.source), "rev-parse", "--short", "HEAD"]
        return subprocess.run(asked, capture_output=True, text=True).stdout.strip() or "other"

    def versions(self) -> AbstractContextManager[Sequence[Worker]]:
        """This version and the other one, with numba, then both without."""
        both = (SOURCE, self.source)
        return started(*(Worker.of_version(of, numba) for numba in NUMBA for of in both))

    def this_version(self) -> AbstractContextManager[Sequence[Worker]]:
        """With numba, then without."""
        return started(*(Worker.of_version(SOURCE, numba) for numba in NUMBA))
