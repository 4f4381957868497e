"""How light it is: time to import, to show help, to run the demo; size of the wheel.

    python benchmarks/startup.py

Run it with the python of an environment into which pip installed the package: pip compiles it, an
editable tree is compiled at every start where Python may not write bytecode (about 0.1 s more).
New interpreters in turns, the best of 15 each (3 of the demo), so that the ratios are of one run.
Limits: importing at most 1.6 x `import numpy, scipy.linalg`; help at most 0.5 s more than
`python -c pass`; the demo under 30 s; the wheel under 2 MB.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tables import write_table

ROOT = Path(__file__).parents[1]
RUNS = 15
COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "import numpy, scipy.linalg": ["-c", "import numpy, scipy.linalg"],
    "import calshift": ["-c", "import calshift"],
    "calshift --help": ["-m", "calshift", "--help"],
}


def timed(arguments: list[str], folder: str) -> float:
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, *arguments], capture_output=True, check=True, cwd=folder, timeout=120
    )
    return time.perf_counter() - start


def wheel_size(folder: str) -> int:
    asked = ["-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, str(ROOT)]
    subprocess.run([sys.executable, *asked], capture_output=True, check=True)
    return next(Path(folder).glob("*.whl")).stat().st_size


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        turns = [[timed(code, folder) for code in COMMANDS.values()] for _ in range(RUNS)]
        best = dict(zip(COMMANDS, map(min, zip(*turns, strict=True)), strict=True))
        demo = min(timed(["-m", "calshift", "demo"], folder) for _ in range(3))
        size = wheel_size(folder)
    rows = [[name, f"{seconds:.3f} s", "", ""] for name, seconds in best.items()]
    ratio = best["import calshift"] / best["import numpy, scipy.linalg"]
    more = best["calshift --help"] - best["python -c pass"]
    rows[2][2:] = [f"{ratio:.2f} x numpy and scipy.linalg", "1.6 x"]
    rows[3][2:] = [f"{more:.3f} s more than nothing", "0.5 s"]
    rows.append(["calshift demo", f"{demo:.1f} s", "", "30 s"])
    rows.append(["wheel", f"{size / 1e6:.2f} MB", "", "2 MB"])
    write_table("startup", __doc__, ["what", "time or size", "that is", "limit"], rows)


if __name__ == "__main__":
    main()
