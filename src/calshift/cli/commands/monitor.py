"""calshift monitor: the calibration error for each window of time."""

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
from calshift.report import monitoring_dict, render_json

BREACHES = {"lower": "above the limit", "upper": "not shown to be within the limit"}


@click.command()
@opt.file_options
@click.option("--time", metavar="COLUMN", help="Column of the target with the time of each row.")
@click.option("--window", metavar="LENGTH", help="Length of a window, such as 12h, 1d, 1w or 1mo.")
@click.option("--rows", type=int, metavar="N", help="Rows in each window, instead of --window.")
@opt.choice_option("--alert", ("any", "last"), "Which windows determine the exit status.")
@opt.estimate_options
@opt.gate_options
@out.json_option
@click.option("--plot", metavar="FILE", help="Draw the series (png, svg, pdf).")
@opt.debug_option
def monitor(source: str, target: str, **options: Any) -> int:
    """Estimate the calibration error for each window of TARGET.

    Windows are defined by time (--time and --window) or by a number of rows (--rows).
    """
    window, rows = options["window"], options["rows"]
    if window is not None and (options["time"] is None or rows is not None):
        msg = "--window requires --time COLUMN and cannot be combined with --rows"
        raise InvalidInput(msg)
    out.check_outputs(options, ("json", "plot"), (source, target))
    if options["plot"] is not None:
        check_drawable(options["plot"])
    gate = opt.gate_option(options)
    opened, times = open_windows(source, target, opt.column_spec(options, options["time"]))
    asked = opt.estimate_arguments(options, opened)
    with out.ignore_warnings(), progress_bar("windows") as progress:
        found = monitor_windows(
            opened.source, None, opened.target, times, window=window, rows=rows,
            progress=progress, **asked,
        )  # fmt: skip
    report = monitoring_dict(
        found, gate, options["alert"], **opt.provenance(source, target), drawn=opt.drawn(options)
    )
    with Outputs() as files:
        out.stage_text(files, options["json"], render_json(report))
        if options["plot"] is not None:
            axes = found.plot(level=gate.level, max_error=gate.max_error)
            write_figure(options["plot"], axes.figure, files.open(options["plot"]))
    to_stderr = options["json"] == "-"
    out.print_verdict(report["verdict"], report["status"], to_stderr)
    words = {"breached": BREACHES[gate.side], "fine": ""}
    statuses = [window["status"] for window in report["windows"]]
    notes = [words.get(*pair) for pair in zip(statuses, found.reasons, strict=True)]
    out.echo("\n" + found.table(gate.level, notes), to_stderr)
    return int(report["exit_code"])
