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
from calshift.diagnostics.conditions import LABEL_SHIFT
from calshift.report import render_json, weights_dict
from calshift.report.text import condition_lines
from calshift.weights import DEFAULT, METHODS


@click.command()
@opt.file_options
@opt.method_option(METHODS, DEFAULT, "How the class priors are estimated.")
@opt.level_option
@opt.no_check_option
@opt.waive_option
@opt.engine_options
@opt.jobs_option
@out.json_option
@opt.debug_option
def weights(source: str, target: str, **options: Any) -> int:
    """Estimate the target class priors (prevalence).

    Prints the class weights too, without using target labels. Exit status 3 if the estimates are
    not reliable; label shift (that only the class priors changed) is tested. `calshift weights` and
    `calshift prevalence` are the same command.
    """
    out.check_outputs(options, ("json", "checkpoint"), (source, target))
    waived = (*options["waive"], *(LABEL_SHIFT if options["no_check"] else ()))
    with keep_checkpoint_until_written(options["checkpoint"]) as checkpoint:
        samples = open_samples(source, target, opt.column_spec(options), options)
        with out.ignore_warnings(), pass_bar() as progress:
            found = label_shift_weights(
                samples.source, None, samples.target, method=options["method"], diagnose=True,
                waive=waived, progress=progress, checkpoint=checkpoint,
            )  # fmt: skip
        if options["json"] is not None:
            with Outputs() as files:
                report = render_json(weights_dict(found, options["level"]))
                out.stage_text(files, options["json"], report)
    to_stderr = options["json"] == "-"
    if not found.trusted:
        out.print_verdict(f"Not reliable: {found.warnings[0]}", "untrusted", to_stderr)
        out.echo("", to_stderr)
    conditions = condition_lines([one.to_dict() for one in found.diagnostics])
    out.echo("\n".join([str(found), *conditions]), to_stderr)
    return 0 if found.trusted else 3
