"""calshift recalibrate: the target's file again, with probabilities that fit its mix."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import click

from calshift._core.text import printable
from calshift.cli.options import (
    column_spec,
    command_line,
    debug_option,
    file_options,
    gate_option,
    gate_options,
    inputs,
    no_check_option,
    seed_option,
    weights_option,
)
from calshift.cli.outputs import (
    COLOURS,
    check_outputs,
    check_same_ending,
    put,
    put_bytes,
    quietly,
    say,
)
from calshift.cli.progress import progress_bar
from calshift.cli.samples import read_pair
from calshift.cli.weights_option import read_weights
from calshift.io.formats.base import check_file
from calshift.recalibration import DEFAULT_RECALIBRATOR, RECALIBRATORS
from calshift.recalibration.recalibrate import recalibrate as recalibrated
from calshift.report import as_json, recalibration_dict
from calshift.report.verdict import EXIT_CODES


@click.command()
@file_options
@click.option(
    "--output", "-o", metavar="FILE", required=True, help="TARGET again, mended; the same ending."
)
@click.option(
    "--method",
    type=click.Choice(list(RECALIBRATORS)),
    default=DEFAULT_RECALIBRATOR,
    show_default=True,
    metavar="NAME",
    help=f"{', '.join(RECALIBRATORS)}. 'shift' calibrates and follows the mix; 'temperature', "
    "'ensemble' and 'label-free' keep the ranking of classes.",
)
@weights_option(None, " By default each method's own.")
@click.option(
    "--folds", default=5, show_default=True, help="Parts of the rows for the error after."
)
@seed_option
@no_check_option
@gate_options
@click.option("--save", metavar="FILE", help="Write the recalibrator as JSON, for new rows.")
@click.option("--json", metavar="FILE", help="Write everything as JSON; - is the terminal.")
@debug_option
def recalibrate(source: str, target: str, **options: Any) -> int:
    """Mend the probabilities of TARGET, which has no labels, with SOURCE, which has.

    The output has all columns and rows of TARGET; only the probabilities differ. The error before
    and after is printed; the one after is of rows that the mending was not fitted to. --max-error
    is held against it.
    """
    check_outputs(options, ("output", "save", "json"), (source, target))
    check_same_ending(options["output"], target)
    gate = gate_option(options)
    check_file(Path(target))  # it is one file that is written again
    pair = read_pair(source, target, column_spec(options))
    weights = options["weights"]
    if weights is not None:
        weights = read_weights(weights, pair.source.classes, pair.source.n_classes)
    with quietly(), progress_bar("fits") as told:
        found = recalibrated(
            pair.source, None, pair.target, method=options["method"], weights=weights,
            folds=options["folds"], rng=options["seed"], check=not options["no_check"],
            progress=told,
        )  # fmt: skip
    report = recalibration_dict(
        found, gate, inputs=inputs(source, target), command=command_line(), seed=options["seed"]
    )
    put_bytes(options["output"], pair.file.rewrite(found.probabilities))
    if options["save"] is not None:
        put(options["save"], as_json(found.recalibrator.to_dict()))
    if options["json"] is not None:
        put(options["json"], as_json(report))
    aside = "-" in (options["json"], options["save"], options["output"])
    shown = textwrap.fill(printable(report["verdict"]), 98)
    say(click.style(shown, fg=COLOURS[report["status"]], bold=True), aside)
    say(f"\n{found.table(gate.level)}\n", aside)
    where = "" if options["output"] == "-" else f"Written to {options['output']}."
    for note in (*report["notes"], where):
        say(textwrap.fill(printable(note), 98), aside)
    return EXIT_CODES[report["status"]]
