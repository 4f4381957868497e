"""calshift metrics: accuracy, precision, F1 and other metrics on the target."""

from __future__ import annotations

from typing import Any

import click

from calshift._core.atomic_write import check_drawable, write_figure
from calshift._core.outputs import Outputs
from calshift._core.validate import validate_level
from calshift.api import target_metrics
from calshift.cli import options as opt
from calshift.cli import outputs as out
from calshift.cli.metric_options import (
    MetricRequest,
    metric_options,
    read_requirements,
    request_metrics,
    usual_metrics,
)
from calshift.cli.progress import estimate_progress
from calshift.cli.samples import OpenedSamples, keep_checkpoint_until_written, open_samples
from calshift.report import metrics_dict, origin, render_metrics_text
from calshift.report.requirements import judge
from calshift.results import MetricsResult
from calshift.weights import DEFAULT


@click.command()
@opt.file_options
@metric_options
@opt.weights_option(DEFAULT)
@opt.choice_option("--interval", ("influence", "bootstrap"), "How intervals are computed.")
@opt.value_option("--draws", 500, "Draws of the bootstrap.")
@opt.jobs_option
@opt.seed_option
@opt.no_check_option
@opt.drift_option
@opt.waive_option
@opt.engine_options
@opt.level_option
@out.text_options
@out.plot_option
@opt.debug_option
def metrics(source: str, target: str, **options: Any) -> int:
    """Estimate accuracy, precision, F1 and other metrics on TARGET, without its labels.

    Each has an interval, and the same metric on SOURCE beside it. Exit status 1 if a requirement is
    not shown to be met, 3 if the metrics, or one asked for by name, are not reliable.
    """
    out.check_outputs(options, (*out.FORMATS_OF_METRICS, "plot", "checkpoint"), (source, target))
    if options["plot"] is not None:
        check_drawable(options["plot"])
    level, requirements = validate_level(options["level"]), read_requirements(options)
    with keep_checkpoint_until_written(options["checkpoint"]) as checkpoint:
        samples = open_samples(source, target, opt.column_spec(options), options)
        first = () if options["metric"] else usual_metrics(samples.n_classes)
        request = request_metrics(options, samples, first)
        found = _estimate(samples, request, options, checkpoint)
        report = metrics_dict(
            found, level, judge(requirements, found, level), asked=request.named,
            origin=origin(**opt.provenance(source, target)),
        )  # fmt: skip
        with Outputs() as files:
            out.stage_report(files, report, options, out.FORMATS_OF_METRICS)
            if options["plot"] is not None:
                axes = found.plot(level=level)
                write_figure(options["plot"], axes.figure, files.open(options["plot"]))
    out.print_report(report, options, out.FORMATS_OF_METRICS, render_metrics_text)
    return int(report["exit_code"])


def _estimate(
    samples: OpenedSamples, request: MetricRequest, options: dict[str, Any], checkpoint: Any
) -> MetricsResult:
    weights = opt.read_weights(options["weights"], samples.classes, samples.n_classes)
    bar = estimate_progress(samples.in_passes, options["interval"])
    with out.ignore_warnings(), bar as progress:
        return target_metrics(
            samples.source, None, samples.target, **request.arguments, weights=weights,
            check=not options["no_check"], waive=options["waive"], drift=options["drift"],
            interval=options["interval"], n_boot=options["draws"], rng=options["seed"],
            n_jobs=options["jobs"], progress=progress, checkpoint=checkpoint,
        )  # fmt: skip
