"""calshift weights: class priors of the target, and class weights."""

from __future__ import annotations

from typing import Any

import click

from calshift.api import label_shift_weights
from calshift.cli.options import (
    column_spec,
    debug_option,
    engine_options,
    file_options,
    jobs_option,
    level_option,
    method_option,
)
from calshift.cli.outputs import (
    check_outputs,
    echo,
    ignore_warnings,
    json_option,
    print_verdict,
    write_text,
)
from calshift.cli.progress import pass_bar
from calshift.cli.samples import keep_checkpoint_until_written, open_samples
from calshift.diagnostics.warnings import collect_warnings
from calshift.report import render_json, weights_dict
from calshift.weights import DEFAULT, METHODS

UNTESTED = "label shift is assumed, not tested (calshift check tests it)"


@click.command()
@file_options
@method_option(METHODS, DEFAULT, "How the class priors are estimated.")
@level_option
@engine_options
@jobs_option
@json_option
@debug_option
def weights(source: str, target: str, **options: Any) -> int:
    """Estimate the target class priors (prevalence).

    Prints the class weights too, without using target labels. Exit status 3 if the estimates are
    not reliable. Label shift (that only the class priors changed) is assumed; `calshift check`
    tests it.
    """
    check_outputs(options, ("json", "checkpoint"), (source, target))
    with keep_checkpoint_until_written(options["checkpoint"]) as checkpoint:
        samples = open_samples(source, target, column_spec(options), options)
        with ignore_warnings(), pass_bar() as progress:
            found = label_shift_weights(
                samples.source, None, samples.target, method=options["method"], progress=progress,
                checkpoint=checkpoint,
            )  # fmt: skip
        size = samples.target.summary.size
        notes, trusted = collect_warnings(found, None, (0.0, 0.0), 0, n_target=size)
        if options["json"] is not None:
            write_text(options["json"], render_json(weights_dict(found, options["level"], trusted)))
    to_stderr = options["json"] == "-"
    if not trusted:
        print_verdict(f"Not reliable: {notes[0]}", "untrusted", to_stderr)
        echo("", to_stderr)
    echo(f"{found}\n{UNTESTED}", to_stderr)
    return 0 if trusted else 3
