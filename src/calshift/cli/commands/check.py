"""calshift check: the calibration error on the target."""

from __future__ import annotations

from typing import Any

import click

from calshift.cli import options as opt
from calshift.cli import outputs as out
from calshift.cli.estimates import estimate_error
from calshift.cli.metric_options import (
    MetricRequest,
    metric_options,
    read_requirements,
    request_metrics,
    usual_metrics,
)
from calshift.cli.progress import estimate_progress
from calshift.cli.samples import OpenedSamples, keep_checkpoint_until_written, open_samples
from calshift.report import summarize


@click.command()
@opt.file_options
@opt.estimate_options
@metric_options
@opt.engine_options
@opt.gate_options
@out.output_options
@opt.debug_option
def check(source: str, target: str, **options: Any) -> int:
    """Estimate the calibration error on TARGET, without its labels.

    SOURCE has labelled predictions, TARGET unlabelled ones: parquet, csv, arrow, feather, jsonl,
    npz or npy files, folders of them, or 'quoted/*.patterns'. Classes are matched by name.
    Metrics such as accuracy and precision are added with --report, --metric or --require.
    """
    out.check_outputs(options, (*out.FORMATS, "checkpoint"), (source, target))
    gate, requirements = opt.gate_option(options), read_requirements(options)
    with keep_checkpoint_until_written(options["checkpoint"]) as checkpoint:
        samples = open_samples(source, target, opt.column_spec(options), options)
        asked = opt.estimate_arguments(options, samples)
        request = _request(options, samples)
        bar = estimate_progress(samples.in_passes, asked["interval"])
        with out.ignore_warnings(), bar as progress:
            found = estimate_error(samples, asked, request, progress, checkpoint)
        report = summarize(
            found[0], gate, **opt.provenance(source, target), drawn=opt.drawn(options),
            curves=options["report"] is not None or options["json"] is not None,
            metrics=found[1], requirements=requirements,
        )  # fmt: skip
        out.write_outputs(report, options)
    return int(report["exit_code"])


def _request(options: dict[str, Any], samples: OpenedSamples) -> MetricRequest | None:
    """The metrics of the report, if it is written, and those asked for; None without either."""
    if not (options["report"] or options["metric"] or options["require"]):
        return None
    return request_metrics(options, samples, usual_metrics(samples.n_classes, report=True))
