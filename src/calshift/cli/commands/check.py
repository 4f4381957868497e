"""calshift check: the calibration error on the target."""

from __future__ import annotations

from typing import Any

import click

from calshift.api import target_calibration_error
from calshift.cli.options import (
    column_spec,
    debug_option,
    drawn,
    engine_options,
    estimate_arguments,
    estimate_options,
    file_options,
    gate_option,
    gate_options,
    provenance,
)
from calshift.cli.outputs import (
    FORMATS,
    check_outputs,
    ignore_warnings,
    output_options,
    write_outputs,
)
from calshift.cli.progress import pass_bar, progress_bar
from calshift.cli.samples import keep_checkpoint_until_written, open_samples
from calshift.report import summarize


@click.command()
@file_options
@estimate_options
@engine_options
@gate_options
@output_options
@debug_option
def check(source: str, target: str, **options: Any) -> int:
    """Estimate the calibration error on TARGET, without its labels.

    SOURCE has labelled predictions, TARGET unlabelled ones: parquet, csv, arrow, feather, jsonl,
    npz or npy files, folders of them, or 'quoted/*.patterns'. Classes are matched by name.
    """
    check_outputs(options, (*FORMATS, "checkpoint"), (source, target))
    gate = gate_option(options)
    with keep_checkpoint_until_written(options["checkpoint"]) as checkpoint:
        samples = open_samples(source, target, column_spec(options), options)
        asked = estimate_arguments(options, samples)
        bar = pass_bar() if samples.in_passes else progress_bar("bootstrap")
        with ignore_warnings(), bar as progress:
            result = target_calibration_error(
                samples.source, None, samples.target, progress=progress, checkpoint=checkpoint,
                **asked,
            )  # fmt: skip
        report = summarize(
            result, gate, **provenance(source, target), drawn=drawn(options),
            curves=options["report"] is not None or options["json"] is not None,
        )  # fmt: skip
        write_outputs(report, options)
    return int(report["exit_code"])
