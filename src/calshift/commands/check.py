"""calshift check: two files, one answer."""

from __future__ import annotations

from typing import Any

import click

from calshift.api import target_calibration_error
from calshift.arguments import (
    asked_columns,
    asked_gate,
    command_line,
    debug_option,
    estimate_arguments,
    estimate_options,
    file_options,
    gate_options,
    inputs,
    progress_bar,
)
from calshift.files import read_pair
from calshift.outputs import check_outputs, deliver, output_options, quietly
from calshift.report import summary


@click.command()
@file_options
@estimate_options
@gate_options
@output_options
@debug_option
def check(source: str, target: str, **options: Any) -> int:
    """Estimate the calibration error on TARGET, which has no labels, from SOURCE, which has.

    Files: parquet, csv, arrow, feather, jsonl, npz, npy. Classes are matched by name.
    """
    check_outputs(options, read=(source, target))
    gate = asked_gate(options)
    pair = read_pair(source, target, asked_columns(options))
    asked = estimate_arguments(options, pair)
    with quietly(), progress_bar("bootstrap") as told:
        result = target_calibration_error(pair.source, None, pair.target, progress=told, **asked)
    report = summary(
        result, gate, inputs=inputs(source, target), command=command_line(),
        drawn={"seed": options["seed"], "draws": options["draws"]},
        curves=options["report"] is not None or options["json"] is not None,
    )  # fmt: skip
    deliver(report, options)
    return int(report["exit_code"])
