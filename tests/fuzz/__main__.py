"""Run the fuzzer: `python -m tests.fuzz --minutes 30 --seed 1`."""

from __future__ import annotations

import argparse
import importlib.util
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

from calshift import compiled
from tests.fuzz import api, faults, files, replays, session, workers
from tests.fuzz.api import Report
from tests.fuzz.oracles import outcomes
from tests.fuzz.relations import use_numpy
from tests.fuzz.strategies.corpus import build_corpus

PATIENCE = 6  # times the processor time of a call; the machine may be shared
MODES = ("both", "numpy", "compiled")


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The options; without counts or minutes a short run."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, help="run for so long, files and calls in turn")
    parser.add_argument("--calls", type=int, default=0, help="number of calls")
    parser.add_argument("--files", type=int, default=0, help="number of damaged files")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--mode", choices=MODES, default="both", help="numpy, compiled or both")
    parser.add_argument("--case", help="repeat one case, such as API:1:17 or FILE:1:17")
    parser.add_argument("--findings", type=Path, help="folder for one file a signature")
    parser.add_argument("--seconds", type=float, default=10.0, help="processor time of a call")
    parser.add_argument("--replay", type=Path, help="folder of inputs that failed once")
    parser.add_argument("--plant", action="store_true", help="plant faults that must be found")
    asked = parser.parse_args(arguments)
    if not (asked.minutes or asked.calls or asked.files):
        asked.calls, asked.files = 300, 150
    return asked


def main() -> int:
    """Run, and return 1 if there are findings; files of processes that died are removed."""
    with tempfile.TemporaryDirectory(prefix="calshift-fuzz-") as folder:
        tempfile.tempdir = folder
        return run(parse())


def run(asked: argparse.Namespace) -> int:
    """Run what was asked for."""
    outcomes.SECONDS = asked.seconds
    corpus = workers.ask(build_corpus)
    _warm_up()
    compiled.LEAST_SIZE = 1  # samples are small, and both versions of functions are compared
    if asked.plant:
        faults.plant()
    if asked.mode == "numpy":
        use_numpy().__enter__()
    if asked.case:
        return _replay(asked, corpus)
    if asked.replay:
        return _replay_findings(asked.replay, corpus)
    start, counts = time.monotonic(), {"API": asked.calls, "FILE": asked.files}
    if asked.minutes:
        counts = {kind: n or np.inf for kind, n in counts.items()}
    deadline = start + 60 * (asked.minutes or np.inf)
    one = session.Session(
        asked.seed, counts, deadline, asked.jobs, asked.mode, corpus, PATIENCE * asked.seconds
    )
    totals = one.run()
    sys.stdout.write("\n".join(session.summary_lines(totals, time.monotonic() - start)) + "\n")
    if asked.findings:
        session.write_findings(totals, asked.findings, corpus)
    return int(bool(totals.first))


def _warm_up() -> None:
    """Load what forked processes share: compiled functions and optional packages, no threads."""
    import jinja2  # noqa: F401
    import pandas  # noqa: F401
    import polars  # noqa: F401
    import pyarrow
    import pyarrow.dataset

    import calshift.cli.commands

    pyarrow.set_cpu_count(1)
    pyarrow.set_io_thread_count(1)
    if importlib.util.find_spec("torch"):
        import torch

        torch.set_num_threads(1)
    simulation = calshift.simulate.GaussianSimulation(n_classes=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        p, y = simulation.source(200, rng=0)
        calshift.target_calibration_error(p, y, p)


def _replay_findings(folder: Path, corpus: files.Corpus) -> int:
    """Examine inputs that failed once, and print what is found."""
    found = dict(replays.replay(folder, corpus))
    failed = {name: findings for name, findings in found.items() if findings}
    for name, findings in failed.items():
        for signature in sorted({finding.signature for finding in findings}):
            sys.stdout.write(f"{name}: {signature}\n")
    sys.stdout.write(f"{len(failed)} of {len(found)} inputs have findings\n")
    return int(bool(failed))


def _replay(asked: argparse.Namespace, corpus: files.Corpus) -> int:
    """Run one case here and print everything about it."""
    kind, seed, number = asked.case.split(":")
    workers.limit_process()
    if kind == "API":
        report = api.examine(int(seed), int(number), asked.mode)
    else:
        report = files.examine(int(seed), int(number), corpus)
    sys.stdout.write(format_report(report))
    return int(bool(report.findings))


def format_report(report: Report) -> str:
    """A report in lines."""
    lines = [f"{report.case} {report.name}: {report.outcome}, {report.seconds:.2f} s"]
    lines += [f"{finding.signature}\n{finding.detail}" for finding in report.findings]
    return "\n".join([*lines, report.described, ""])


if __name__ == "__main__":
    sys.exit(main())
