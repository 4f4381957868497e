"""calshift monitor: an answer for each window of time."""

from __future__ import annotations

import textwrap
from typing import Any

import click

from calshift.cli.options import (
    column_spec,
    command_line,
    debug_option,
    estimate_arguments,
    estimate_options,
    file_options,
    gate_option,
    gate_options,
    inputs,
)
from calshift.cli.outputs import check_outputs, put, quietly, say
from calshift.cli.progress import progress_bar
from calshift.cli.samples import open_windows
from calshift.errors import InvalidInput
from calshift.monitoring import monitor as monitored
from calshift.report import as_json, check_drawable, monitoring_dict, write_figure
from calshift.report.verdict import GATES

COLOURS = {0: "green", 1: "red", 3: "yellow"}
NOTES = {
    ("breached", "lower"): "above the limit",
    ("breached", "upper"): "not shown to be within the limit",
    **{("fine", side): "" for side in GATES},
    **{("untrusted", side): "not trusted" for side in GATES},
}


@click.command()
@file_options
@click.option("--time", metavar="COLUMN", help="When each target row was predicted.")
@click.option("--window", metavar="LENGTH", help="Such as 12h, 1d, 1w or 1mo.")
@click.option("--rows", type=int, metavar="N", help="In its place: rows in each window.")
@click.option(
    "--alert",
    type=click.Choice(("any", "last")),
    default="any",
    show_default=True,
    help="Which windows decide the exit status.",
)
@estimate_options
@gate_options
@click.option("--json", metavar="FILE", help="Write the series as JSON; - is the terminal.")
@click.option("--plot", metavar="FILE", help="Draw it (png, svg, pdf).")
@debug_option
def monitor(source: str, target: str, **options: Any) -> int:
    """Estimate the error for each window of TARGET: by time, or by a number of rows."""
    if options["window"] is not None and options["time"] is None:
        msg = "--window needs --time COLUMN, the times of the target rows"
        raise InvalidInput(msg)
    check_outputs(options, ("json", "plot"), (source, target))
    if options["plot"] is not None:
        check_drawable(options["plot"])
    gate = gate_option(options)
    opened, times = open_windows(source, target, column_spec(options, options["time"]))
    asked = estimate_arguments(options, opened)
    with quietly(), progress_bar("windows") as told:
        found = monitored(
            opened.source, None, opened.target, times, window=options["window"],
            rows=options["rows"], progress=told, **asked,
        )  # fmt: skip
    report = monitoring_dict(
        found,
        gate,
        options["alert"],
        inputs=inputs(source, target),
        command=command_line(),
        drawn={"seed": options["seed"], "draws": options["draws"]},
    )
    if options["json"] is not None:
        put(options["json"], as_json(report))
    if options["plot"] is not None:
        axes = found.plot(level=gate.level, max_error=gate.max_error)
        write_figure(options["plot"], axes.figure)
    aside = options["json"] == "-"
    code = int(report["exit_code"])
    shown = "\n".join(textwrap.wrap(report["verdict"], 98))
    say(click.style(shown, fg=COLOURS[code], bold=True), aside)
    notes = [NOTES[window["status"], gate.side] for window in report["windows"]]
    say("\n" + found.table(gate.level, notes), aside)
    return code
