"""Faults planted one at a time in a copy of src, and which lane of the tests finds each.

    python benchmarks/planted_faults.py [NAME ...]

A fault is a substitution that must match its file exactly once; one that no longer does ends the
script, so that the list keeps up with the code. For each fault the tests of the folders named with
it are run against the copy, first those of the fast lane, then, if none of them fails, the rest
(but for Spark and the browser). Both run without compiled loops, which would be compiled again for
every copy. Writes benchmarks/results/planted_faults.md if all faults were planted.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "benchmarks" / "results" / "planted_faults.md"
LANES = {
    "fast": "not slow and not spark and not browser",
    "slow": "slow and not spark and not browser",
}
FOUND, NOTHING_FOUND, NO_TESTS = 1, 0, 5  # exit statuses of pytest


@dataclass(frozen=True)
class Fault:
    """A substitution in a file of src/calshift, and the tests that should notice it."""

    name: str
    file: str
    old: str
    new: str
    tests: str


FAULTS = (
    Fault(
        "noise added instead of removed in the debiased error",
        "estimators/folded_normal.py",
        "value**2 - variance",
        "value**2 + variance",
        "estimators reference/test_debiased.py",
    ),
    Fault(
        "sign of the leverage in the noise of a bin",
        "inference/block_sums.py",
        "gap = np.maximum(1 - leverage, least)",
        "gap = np.maximum(1 + leverage, least)",
        "inference reference/test_debiased.py reference/test_intervals.py",
    ),
    Fault(
        "sign of a row's influence on the squared error",
        "inference/row_influence.py",
        "value = self.excess * self.weight / self.gap",
        "value = -self.excess * self.weight / self.gap",
        "inference reference/test_influence.py properties/test_intervals.py",
    ),
    Fault(
        "a score on an edge falls into the bin below",
        "binning/edges.py",
        'np.searchsorted(inner, score, side="right")',
        'np.searchsorted(inner, score, side="left")',
        "binning reference/test_debiased.py",
    ),
    Fault(
        "target priors of given weights not normalised",
        "weights/given.py",
        "np.where(seen, prior * values, 0.0) / mass",
        "np.where(seen, prior * values, 0.0)",
        "weights",
    ),
    Fault(
        "negative class weights accepted",
        "weights/given.py",
        "~(np.isfinite(values) & (values >= 0))",
        "~np.isfinite(values)",
        "weights api",
    ),
    Fault(
        "degrees of freedom of the label-shift test one too few",
        "diagnostics/overidentification_test.py",
        "np.count_nonzero(D, axis=1) - _rank(G, active), 0)",
        "np.count_nonzero(D, axis=1) - _rank(G, active) - 1, 0)",
        "diagnostics reference/test_label_shift_check.py",
    ),
    Fault(
        "standard error of the bootstrap divides by the number of draws",
        "results/intervals/bootstrap.py",
        "np.nanstd(self.draws, axis=0, ddof=1)",
        "np.nanstd(self.draws, axis=0, ddof=0)",
        "results properties/test_bootstrap.py",
    ),
    Fault(
        "source and target swapped in the change of the error",
        "report/verdict.py",
        "return compare_results(result, result.source)",
        "return compare_results(result.source, result)",
        "report cli",
    ),
    Fault(
        "softmax writes into the caller's logits",
        "_core/convert.py",
        "odds = np.exp(z - top)",
        "odds = np.exp(z - top, out=z)",
        "core",
    ),
    Fault(
        "exit status of an answer that is not trusted",
        "report/verdict.py",
        '"untrusted": 3',
        '"untrusted": 1',
        "report cli",
    ),
    Fault(
        "key of the JSON report misspelt",
        "report/summary.py",
        '"exit_code": EXIT_CODES[status]',
        '"exitcode": EXIT_CODES[status]',
        "report cli",
    ),
    Fault(
        "completed passes of a checkpoint made again",
        "engines/checkpoint.py",
        "if before == name and total is not None:",
        "if before != name and total is not None:",
        "engines",
    ),
    Fault(
        "checkpoint of another run accepted",
        "engines/checkpoint.py",
        "if not same:",
        "if not same and not completed:",
        "engines",
    ),
    Fault(
        "classes of the target left in the order of its file",
        "io/file_set.py",
        "return in_order(after, before.classes)",
        "return after",
        "io",
    ),
    Fault(
        "temperature applied as its inverse",
        "recalibration/scalings.py",
        "return temper(p, 1 / self.temperature_)\n",
        "return temper(p, self.temperature_)\n",
        "recalibration reference/test_recalibration.py",
    ),
    Fault(
        "prior correction with the inverse weights",
        "scaling/calibrator.py",
        "p * (weights / weights.max())",
        "p * (weights.min() / weights)",
        "scaling recalibration",
    ),
    Fault(
        "vector scaling without its biases",
        "scaling/calibrator.py",
        '"vs": Kind(one_slope=False, biased=True)',
        '"vs": Kind(one_slope=False, biased=False)',
        "scaling recalibration reference/test_recalibration.py",
    ),
    Fault(
        "penalty of rlls too small by a root of 2",
        "weights/confusion.py",
        "np.sqrt(2 * log / n)",
        "np.sqrt(log / n)",
        "weights reference/test_confusion_weights.py",
    ),
    Fault(
        "last row of each window lost",
        "monitoring/windows.py",
        "int(start), int(start + rows))",
        "int(start), int(start + rows) - 1)",
        "monitoring",
    ),
    Fault(
        "source and target swapped in the plot of errors",
        "plotting.py",
        '("source", SOURCE, result.source), ("target", TARGET, result)',
        '("source", SOURCE, result), ("target", TARGET, result.source)',
        "plotting",
    ),
    Fault(
        "a rejected test of label shift leaves the result trusted",
        "diagnostics/sample_conditions.py",
        "passed = bool(p > level)",
        "passed = True",
        "diagnostics api",
    ),
    Fault(
        "sums of squared deviations of a curve without their weights",
        "inference/reliability_sums.py",
        "for s, values in enumerate((f, once, once * d)):",
        "for s, values in enumerate((f, once, d * d)):",
        "results",
    ),
    Fault(
        "half of the reach of an interval of L1",
        "results/intervals/absolute_l1.py",
        "reach = ndtri((1 + level) / 2) * self.standard_error",
        "reach = ndtri((1 + level) / 2) * self.standard_error / 2",
        "results inference reference/test_intervals.py",
    ),
    Fault(
        "rows resampled with replacement",
        "simulate.py",
        "counts[c], replace=False)",
        "counts[c], replace=True)",
        "simulate",
    ),
)


def plant(fault: Fault, package: Path) -> None:
    """Make the substitution in a copy of the package; anything but one match is an error."""
    path = package / fault.file
    text = path.read_text(encoding="utf-8")
    if text.count(fault.old) != 1:
        msg = f"{fault.name}: {text.count(fault.old)} matches in {fault.file}, not 1"
        raise SystemExit(msg)
    path.write_text(text.replace(fault.old, fault.new), encoding="utf-8")


def first_failure(tests: str, lane: str, source: Path) -> str | None:
    """The first test of a lane that fails with the package in ``source``, if one does."""
    places = [f"tests/{place}" for place in tests.split()]
    options = ["-x", "-q", "--no-header", "--tb=no", "-p", "no:cacheprovider", "-m", LANES[lane]]
    path = os.pathsep.join([str(source), str(ROOT)])
    settings = {"PYTHONPATH": path, "CALSHIFT_COMPILED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *places],
        cwd=ROOT, env=os.environ | settings, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode in (NOTHING_FOUND, NO_TESTS):
        return None
    failed = re.search(r"^(?:FAILED|ERROR) tests/(.+?)(?: - .*)?$", done.stdout, re.M)
    if done.returncode != FOUND or failed is None:
        raise SystemExit(done.stdout + done.stderr)
    return failed[1]


def find(fault: Fault) -> tuple[str, str]:
    """The lane that finds the fault, and the test."""
    with TemporaryDirectory() as folder:
        source = Path(folder)
        ignored = shutil.ignore_patterns("__pycache__")
        package = Path(shutil.copytree(ROOT / "src/calshift", source / "calshift", ignore=ignored))
        plant(fault, package)
        for lane in LANES:
            test = first_failure(fault.tests, lane, source)
            if test is not None:
                if first_failure(test.partition("[")[0], lane, ROOT / "src") is not None:
                    msg = f"{test} fails without a fault too: repair it first"
                    raise SystemExit(msg)
                return lane, test
    return "not caught", ""


def main(names: list[str]) -> None:
    asked = [fault for fault in FAULTS if not names or any(n in fault.name for n in names)]
    with TemporaryDirectory() as folder:  # all must fit before the first is tried
        for k, fault in enumerate(FAULTS):
            copy = Path(folder, str(k), fault.file)
            copy.parent.mkdir(parents=True)
            shutil.copy(ROOT / "src/calshift" / fault.file, copy)
            plant(fault, Path(folder, str(k)))
    lines = ["| fault | file | caught by | first test that fails |", "|---|---|---|---|"]
    print(*lines, sep="\n")
    for fault in asked:
        lane, test = find(fault)
        lines.append(f"| {fault.name} | `{fault.file}` | {lane} | {test and f'`{test}`'} |")
        print(lines[-1], flush=True)
    if len(asked) == len(FAULTS):
        head = "# Planted faults\n\nMade by `benchmarks/planted_faults.py`.\n\n"
        PAGE.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
