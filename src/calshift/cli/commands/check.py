"""calshift check: two samples, one answer."""

from __future__ import annotations

from typing import Any

import click

from calshift.api import target_calibration_error
from calshift.cli.options import (
    column_spec,
    command_line,
    debug_option,
    engine_options,
    estimate_arguments,
    estimate_options,
    file_options,
    gate_option,
    gate_options,
    inputs,
)
from calshift.cli.outputs import FACES, check_outputs, deliver, output_options, quietly
from calshift.cli.progress import pass_bar, progress_bar
from calshift.cli.samples import keep_checkpoint_until_written, open_samples
from calshift.report import summary


@click.command()
@file_options
@estimate_options
@engine_options
@gate_options
@output_options
@debug_option
def check(source: str, target: str, **options: Any) -> int:
    """Estimate the calibration error on TARGET, which has no labels, from SOURCE, which has.

    Files: parquet, csv, arrow, feather, jsonl, npz, npy; folders of them and 'quoted/*.patterns'
    too. Classes are matched by name.
    """
    check_outputs(options, (*FACES, "checkpoint"), (source, target))
    gate = gate_option(options)
    with keep_checkpoint_until_written(options["checkpoint"]) as checkpoint:
        samples = open_samples(source, target, column_spec(options), options)
        asked = estimate_arguments(options, samples)
        bar = pass_bar() if samples.in_passes else progress_bar("bootstrap")
        with quietly(), bar as told:
            result = target_calibration_error(
                samples.source, None, samples.target, progress=told, checkpoint=checkpoint, **asked
            )
        report = summary(
            result, gate, inputs=inputs(source, target), command=command_line(),
            drawn={"seed": options["seed"], "draws": options["draws"]},
            curves=options["report"] is not None or options["json"] is not None,
        )  # fmt: skip
        deliver(report, options)
    return int(report["exit_code"])
