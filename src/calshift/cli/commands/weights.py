"""calshift weights: the new mix of classes."""

from __future__ import annotations

import textwrap
from typing import Any

import click

from calshift._core.text import printable
from calshift.api import label_shift_weights
from calshift.cli.options import (
    column_spec,
    debug_option,
    engine_options,
    file_options,
    jobs_option,
)
from calshift.cli.outputs import check_outputs, put, quietly, say
from calshift.cli.progress import pass_bar
from calshift.cli.samples import keep_checkpoint_until_written, open_samples
from calshift.diagnostics.warnings import collect_warnings
from calshift.report import as_json, weights_dict
from calshift.weights import DEFAULT, METHODS

UNTESTED = "not tested here: whether only the mix of classes changed (calshift check does)"


@click.command()
@file_options
@click.option("--method", type=click.Choice(list(METHODS)), default=DEFAULT, show_default=True)
@click.option("--level", default=0.95, show_default=True, help="Of the intervals.")
@engine_options
@jobs_option
@click.option("--json", metavar="FILE", help="Write them as JSON; - is the terminal.")
@debug_option
def weights(source: str, target: str, **options: Any) -> int:
    """Estimate the mix of classes in TARGET, which has no labels, and the class weights.

    Exit status 3 if they cannot be trusted. That only the mix changed is taken as given here;
    `calshift check` tests it.
    """
    check_outputs(options, ("json", "checkpoint"), (source, target))
    with keep_checkpoint_until_written(options["checkpoint"]) as checkpoint:
        samples = open_samples(source, target, column_spec(options), options)
        with quietly(), pass_bar() as told:
            found = label_shift_weights(
                samples.source, None, samples.target, method=options["method"], progress=told,
                checkpoint=checkpoint,
            )  # fmt: skip
        doubts, trusted = collect_warnings(found, None, (0.0, 0.0), 0, n_target=samples.target_size)
        if options["json"] is not None:
            put(options["json"], as_json(weights_dict(found, options["level"], trusted)))
    aside = options["json"] == "-"
    if not trusted:
        doubt = textwrap.fill(printable(f"Not to be trusted: {doubts[0]}"), 98)
        say(click.style(f"{doubt}\n", fg="yellow", bold=True), aside)
    say(f"{found}\n{UNTESTED}", aside)
    return 0 if trusted else 3
