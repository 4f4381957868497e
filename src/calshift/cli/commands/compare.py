"""calshift compare: two models on the same rows."""

from __future__ import annotations

from typing import Any

import click

from calshift._core.outputs import Outputs
from calshift._core.validate import validate_level
from calshift.api import compare as compare_results
from calshift.binning.events import KINDS
from calshift.cli import options as opt
from calshift.cli import outputs as out
from calshift.cli.estimates import estimate_error
from calshift.cli.metric_options import (
    MetricRequest,
    decision_options,
    metric_option,
    request_metrics,
    usual_metrics,
)
from calshift.cli.model_pair import read_models
from calshift.cli.samples import OpenedSamples
from calshift.errors import InvalidInput
from calshift.report import comparison_dict, origin, render_comparison_text, render_json
from calshift.results import CalibrationErrorResult, MetricsResult
from calshift.weights import DEFAULT

OTHERS = ("other_source", "other_target", "other_columns")


@click.command()
@opt.file_options
@click.option("--other-source", metavar="FILE", help="SOURCE of model B.  [default: SOURCE]")
@click.option("--other-target", metavar="FILE", help="TARGET of model B.  [default: TARGET]")
@click.option(
    "--other-columns",
    metavar="NAMES",
    help="Columns of model B, where both models are in the same files.  [default: --columns]",
)
@metric_option
@decision_options
@opt.weights_option(DEFAULT)
@click.option("--kind", type=click.Choice(KINDS[:3]), help="Kind of calibration error.")
@opt.value_option("--norm", 2.0, "Norm p: 2 is the RMS error, 1 the ECE.")
@opt.seed_option
@opt.no_check_option
@opt.drift_option
@opt.waive_option
@opt.level_option
@out.json_option
@click.option("--quiet", "-q", is_flag=True, help="Print the verdict only.")
@opt.debug_option
def compare(source: str, target: str, **options: Any) -> int:
    """Compare two models on the same rows: calibration error and metrics on TARGET.

    SOURCE and TARGET have the predictions of model A; --other-source and --other-target those of
    model B, in the same order of rows; or --other-columns, if they are in the same files. Prints
    the differences A - B, with intervals that know that the rows are the same.
    """
    if not any(options[name] for name in OTHERS):
        msg = (
            "name model B: --other-source and --other-target, or --other-columns in the same files"
        )
        raise InvalidInput(msg)
    others = options["other_source"] or source, options["other_target"] or target
    out.check_outputs(options, ("json",), (source, target, *others))
    level = validate_level(options["level"])
    models = read_models(
        (source, target), others, opt.column_spec(options), options["other_columns"]
    )
    first = models[0]
    kind = options["kind"] or ("binary" if first.one_column else "classwise")
    request = request_metrics(
        options, first, () if options["metric"] else usual_metrics(first.n_classes)
    )
    a, b = (_estimate(one, request, {**options, "kind": kind}) for one in models)
    report = comparison_dict(
        compare_results(a[0], b[0]), compare_results(a[1], b[1]), level, asked=request.named,
        origin=_origin(source, target, others),
    )  # fmt: skip
    with Outputs() as files:
        out.stage_text(files, options["json"], render_json(report))
    to_stderr = options["json"] == "-"
    status = None if report["trusted"] else report["status"]
    out.print_verdict(report["verdict"], status, to_stderr)
    if not options["quiet"]:
        out.echo("\n" + render_comparison_text(report), to_stderr)
    return int(report["exit_code"])


def _estimate(
    samples: OpenedSamples, request: MetricRequest, options: dict[str, Any]
) -> tuple[CalibrationErrorResult, MetricsResult]:
    """The calibration error and the metrics of one model."""
    asked = {
        "weights": opt.read_weights(options["weights"], samples.classes, samples.n_classes),
        "kind": options["kind"],
        "norm": options["norm"], "interval": "influence", "n_boot": 500, "n_jobs": 1,
        "rng": options["seed"], "check": not options["no_check"], "drift": options["drift"],
        "waive": options["waive"],
    }  # fmt: skip
    with out.ignore_warnings():
        error, metrics = estimate_error(samples, asked, request, None, None)
    assert metrics is not None
    return error, metrics


def _origin(source: str, target: str, others: tuple[str, str]) -> dict[str, Any]:
    """The files of both models."""
    found, other = opt.provenance(source, target), opt.provenance(*others)["inputs"]
    more = {f"other_{name}": described for name, described in other.items()}
    return origin({**found["inputs"], **more}, found["command"])
