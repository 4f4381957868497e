"""calshift check: the calibration error on the target."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import click

from calshift.api import target_calibration_error
from calshift.cli import options as opt
from calshift.cli import outputs as out
from calshift.cli.progress import Progress, pass_bar, progress_bar
from calshift.cli.samples import keep_checkpoint_until_written, open_samples
from calshift.report import summarize


@click.command()
@opt.file_options
@opt.estimate_options
@opt.engine_options
@opt.gate_options
@out.output_options
@opt.debug_option
def check(source: str, target: str, **options: Any) -> int:
    """Estimate the calibration error on TARGET, without its labels.

    SOURCE has labelled predictions, TARGET unlabelled ones: parquet, csv, arrow, feather, jsonl,
    npz or npy files, folders of them, or 'quoted/*.patterns'. Classes are matched by name.
    """
    out.check_outputs(options, (*out.FORMATS, "checkpoint"), (source, target))
    gate = opt.gate_option(options)
    with keep_checkpoint_until_written(options["checkpoint"]) as checkpoint:
        samples = open_samples(source, target, opt.column_spec(options), options)
        asked = opt.estimate_arguments(options, samples)
        with out.ignore_warnings(), _progress(samples.in_passes, asked) as progress:
            result = target_calibration_error(
                samples.source, None, samples.target, progress=progress, checkpoint=checkpoint,
                **asked,
            )  # fmt: skip
        report = summarize(
            result, gate, **opt.provenance(source, target), drawn=opt.drawn(options),
            curves=options["report"] is not None or options["json"] is not None,
        )  # fmt: skip
        out.write_outputs(report, options)
    return int(report["exit_code"])


def _progress(in_passes: bool, asked: dict[str, Any]) -> AbstractContextManager[Progress | None]:
    """A bar for what takes long: passes over files, or a bootstrap."""
    if in_passes:
        return pass_bar()
    return progress_bar("bootstrap") if asked["interval"] == "bootstrap" else nullcontext()
