"""calshift monitor: the calibration error, and metrics, for each window of time."""

from __future__ import annotations

from typing import Any

import click

from calshift._core.atomic_write import check_drawable, write_figure
from calshift._core.outputs import Outputs
from calshift.cli import options as opt
from calshift.cli import outputs as out
from calshift.cli.progress import progress_bar
from calshift.cli.samples import open_windows
from calshift.errors import InvalidInput
from calshift.monitoring import monitor as monitor_windows
from calshift.plotting import plot_monitoring_panels
from calshift.report import monitoring_dict, render_json

BREACHES = {"lower": "above the limit", "upper": "not shown to be within the limit"}

metric_options = opt.combine_options(
    click.option(
        "--metric", metavar="NAME", multiple=True,
        help="A metric on the target, with its interval: accuracy, recall, roc_auc, ...; "
        "repeatable.",
    ),
    click.option("--positive", metavar="CLASS", help="The positive class.  [default: the second]"),
    click.option(
        "--decision-threshold", type=click.FloatRange(0, 1), metavar="T",
        help="Predict the positive class at a probability of at least T.  [default: the most "
        "probable class]",
    ),
    click.option(
        "--cost", metavar="COSTS",
        help="Costs of two classes, for the metric expected_cost: "
        "false_positive=1,false_negative=20.",
    ),
)  # fmt: skip

NO_METRICS = {"metrics": None, "positive": None, "decision": "argmax", "cost": None}


def metric_arguments(options: dict[str, Any]) -> dict[str, Any]:
    """Keyword arguments of `monitor` and `recalibrate`."""
    threshold, cost = options["decision_threshold"], options["cost"]
    return {
        "metrics": list(options["metric"]) or None,
        "positive": options["positive"],
        "decision": "argmax" if threshold is None else threshold,
        "cost": None if cost is None else dict(map(_read_cost, cost.split(","))),
    }


def _read_cost(part: str) -> tuple[str, float]:
    """A name and a number."""
    name, _, value = part.partition("=")
    try:
        return name.strip(), float(value)
    except ValueError:
        msg = f"--cost must be like false_positive=1,false_negative=20; got {part!r}"
        raise InvalidInput(msg) from None


@click.command()
@opt.file_options
@click.option("--time", metavar="COLUMN", help="Column of the target with the time of each row.")
@click.option("--window", metavar="LENGTH", help="Length of a window, such as 12h, 1d, 1w or 1mo.")
@click.option("--rows", type=int, metavar="N", help="Rows in each window, instead of --window.")
@opt.choice_option("--alert", ("any", "last"), "Which windows determine the exit status.")
@opt.estimate_options
@metric_options
@opt.gate_options
@out.json_option
@click.option(
    "--plot", metavar="FILE", help="Draw the error, and the first --metric below (png, svg, pdf)."
)
@opt.debug_option
def monitor(source: str, target: str, **options: Any) -> int:
    """Estimate the calibration error for each window of TARGET.

    Windows are defined by time (--time and --window) or by a number of rows (--rows). Limits and
    the exit status are those of the calibration error; metrics are shown beside it.
    """
    window, rows = options["window"], options["rows"]
    if window is not None and (options["time"] is None or rows is not None):
        msg = "--window requires --time COLUMN and cannot be combined with --rows"
        raise InvalidInput(msg)
    out.check_outputs(options, ("json", "plot"), (source, target))
    if options["plot"] is not None:
        check_drawable(options["plot"])
    gate, metrics = opt.gate_option(options), metric_arguments(options)
    if metrics["metrics"] is None and metrics != NO_METRICS:
        msg = "--positive, --decision-threshold and --cost need a --metric NAME"
        raise InvalidInput(msg)
    opened, times = open_windows(source, target, opt.column_spec(options, options["time"]))
    asked = opt.estimate_arguments(options, opened)
    with out.ignore_warnings(), progress_bar("windows") as progress:
        found = monitor_windows(
            opened.source, None, opened.target, times, window=window, rows=rows,
            progress=progress, **asked, **metrics,
        )  # fmt: skip
    report = monitoring_dict(
        found, gate, options["alert"], **opt.provenance(source, target), drawn=opt.drawn(options)
    )
    with Outputs() as files:
        out.stage_text(files, options["json"], render_json(report))
        if options["plot"] is not None:
            figure = plot_monitoring_panels(found, gate.level, gate.max_error)
            write_figure(options["plot"], figure, files.open(options["plot"]))
    to_stderr = options["json"] == "-"
    out.print_verdict(report["verdict"], report["status"], to_stderr)
    words = {"breached": BREACHES[gate.side], "fine": ""}
    statuses = [window["status"] for window in report["windows"]]
    notes = [words.get(*pair) for pair in zip(statuses, found.reasons, strict=True)]
    out.echo("\n" + found.table(gate.level, notes), to_stderr)
    return int(report["exit_code"])
