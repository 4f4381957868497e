"""calshift weights: the new mix of classes."""

from __future__ import annotations

import textwrap
from typing import Any

import click

from calshift.api import label_shift_weights
from calshift.arguments import asked_columns, debug_option, file_options
from calshift.files import read_pair
from calshift.objections import objections
from calshift.outputs import check_outputs, put, quietly, say
from calshift.report import as_json, weights_dict
from calshift.weights import DEFAULT, METHODS
from calshift.wording import printable

UNTESTED = "not tested here: whether only the mix of classes changed (calshift check does)"


@click.command()
@file_options
@click.option("--method", type=click.Choice(list(METHODS)), default=DEFAULT, show_default=True)
@click.option("--level", default=0.95, show_default=True, help="Of the intervals.")
@click.option("--json", metavar="FILE", help="Write them as JSON; - is the terminal.")
@debug_option
def weights(source: str, target: str, **options: Any) -> int:
    """Estimate the mix of classes in TARGET, which has no labels, and the class weights.

    Exit status 3 if they cannot be trusted. That only the mix changed is taken as given here;
    `calshift check` tests it.
    """
    check_outputs(options, ("json",), (source, target))
    pair = read_pair(source, target, asked_columns(options))
    with quietly():
        found = label_shift_weights(pair.source, None, pair.target, method=options["method"])
    doubts, trusted = objections(found, None, (0.0, 0.0), 0, n_target=pair.target.size)
    if options["json"] is not None:
        put(options["json"], as_json(weights_dict(found, options["level"], trusted)))
    aside = options["json"] == "-"
    if not trusted:
        doubt = textwrap.fill(printable(f"Not to be trusted: {doubts[0]}"), 98)
        say(click.style(f"{doubt}\n", fg="yellow", bold=True), aside)
    say(f"{found}\n{UNTESTED}", aside)
    return 0 if trusted else 3
