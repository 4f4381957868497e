"""calshift weights: class priors of the target, and class weights."""

from __future__ import annotations

from typing import Any

import click

from calshift._core.outputs import Outputs
from calshift.api import label_shift_weights
from calshift.cli import options as opt
from calshift.cli import outputs as out
from calshift.cli.progress import pass_bar
from calshift.cli.samples import keep_checkpoint_until_written, open_samples
from calshift.diagnostics.trust import collect_warnings
from calshift.report import render_json, weights_dict
from calshift.weights import DEFAULT, METHODS

UNTESTED = "label shift is assumed, not tested (calshift check tests it)"


@click.command()
@opt.file_options
@opt.method_option(METHODS, DEFAULT, "How the class priors are estimated.")
@opt.level_option
@opt.engine_options
@opt.jobs_option
@out.json_option
@opt.debug_option
def weights(source: str, target: str, **options: Any) -> int:
    """Estimate the target class priors (prevalence).

    Prints the class weights too, without using target labels. Exit status 3 if the estimates are
    not reliable. Label shift (that only the class priors changed) is assumed; `calshift check`
    tests it.
    """
    out.check_outputs(options, ("json", "checkpoint"), (source, target))
    with keep_checkpoint_until_written(options["checkpoint"]) as checkpoint:
        samples = open_samples(source, target, opt.column_spec(options), options)
        with out.ignore_warnings(), pass_bar() as progress:
            found = label_shift_weights(
                samples.source, None, samples.target, method=options["method"], progress=progress,
                checkpoint=checkpoint,
            )  # fmt: skip
        size = samples.target.summary.size
        notes, trusted = collect_warnings(found, None, (0.0, 0.0), 0, n_target=size)
        if options["json"] is not None:
            with Outputs() as files:
                report = render_json(weights_dict(found, options["level"], trusted))
                out.stage_text(files, options["json"], report)
    to_stderr = options["json"] == "-"
    if not trusted:
        out.print_verdict(f"Not reliable: {notes[0]}", "untrusted", to_stderr)
        out.echo("", to_stderr)
    out.echo(f"{found}\n{UNTESTED}", to_stderr)
    return 0 if trusted else 3
