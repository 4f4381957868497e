"""calshift demo: check and recalibrate the predictions that come with the package."""

from __future__ import annotations

from typing import Any

import click

from calshift import data
from calshift._core.outputs import Outputs, check_writable
from calshift._core.validate import validate_path
from calshift.api import calibration_error, target_calibration_error
from calshift.cli.options import command_line, debug_option
from calshift.cli.outputs import (
    FORMATS,
    check_outputs,
    echo,
    ignore_warnings,
    print_report,
    stage_report,
    stage_text,
)
from calshift.recalibration.recalibrate import recalibrate
from calshift.report import summarize
from calshift.results import CalibrationErrorResult

INTRODUCTION = """\
Predictions of a ResNet-20 trained on long-tailed Fashion-MNIST (ten classes).
Source: {source:,} labelled images with the class priors of the training set.
Target: {target:,} images with equal class priors; their labels are used only to check the result.
"""


@click.command()
@click.option(
    "--report", default="calshift-report.html", show_default=True, help="Path of the report page."
)
@click.option(
    "--files", metavar="FOLDER", help="Also write the data there as source.csv and target.csv."
)
@debug_option
def demo(report: str, files: str | None) -> int:
    """Check and recalibrate the predictions of a real network.

    The estimates are compared with those made with the target's labels.
    """
    options: dict[str, Any] = {**dict.fromkeys(FORMATS), "report": report, "quiet": False}
    check_outputs(options)
    if files is not None:
        validate_path(files, "--files")
    paths = [] if files is None else [f"{files}/{name}.csv" for name in ("source", "target")]
    for path in paths:
        check_writable(path)
    source, target = data.fashion_mnist()
    unlabelled = target.unlabelled()
    echo(INTRODUCTION.format(source=len(source), target=len(target)))
    with ignore_warnings():
        result = target_calibration_error(source, None, unlabelled)
        found = recalibrate(source, None, unlabelled, check=False)
    summary = summarize(result, command=command_line())
    with Outputs() as written:
        stage_report(written, summary, options)
        for path, sample in zip(paths, (source, unlabelled), strict=False):
            stage_text(written, path, data.as_csv(sample))
    print_report(summary, options)
    echo(f"\n{'RMS error on the target':25}{'without its labels':28}with its labels")
    recalibrated = calibration_error(found.probabilities, target.labels)
    for name, estimate, truth in (
        ("as predicted", result, calibration_error(target)),
        ("recalibrated", found.after, recalibrated),
    ):
        echo(f"{name:25}{_format(estimate):28}{_format(truth)}")
    if paths:
        pair = " ".join(paths)
        echo(f"\nNow try: calshift check {pair}")
        echo(f"and: calshift recalibrate {pair} -o {files}/recalibrated.csv")
    echo(f"\nReport: {report}")
    return int(summary["exit_code"])


def _format(result: CalibrationErrorResult) -> str:
    low, high = result.confidence_interval(root=True)
    return f"{result.root:.4f} ({low:.4f} to {high:.4f})"
