"""The commands, defined with click."""

from __future__ import annotations

import click

from calshift import __version__
from calshift.cli.commands.apply import apply
from calshift.cli.commands.check import check
from calshift.cli.commands.compare import compare
from calshift.cli.commands.demo import demo
from calshift.cli.commands.metrics import metrics
from calshift.cli.commands.monitor import monitor
from calshift.cli.commands.recalibrate import recalibrate
from calshift.cli.commands.threshold import threshold
from calshift.cli.commands.weights import weights
from calshift.cli.options import debug_option

EXIT = """\b
Exit status: 0 limits kept; 1 error above --max-error, a requirement of --require not shown to be
met, or no threshold that keeps the metric; 2 wrong usage or a file that cannot be read or written;
3 result not reliable (outranks 1); 4 not enough memory, or internal error of calshift; 130 stopped
by Ctrl-C; 129 by SIGHUP; 143 by SIGTERM."""


@click.group(epilog=EXIT, context_settings={"max_content_width": 100}, invoke_without_command=True)
@click.version_option(__version__, prog_name="calshift")
@debug_option
@click.pass_context
def run(context: click.Context) -> int:
    """Is a classifier still calibrated after the class priors changed (label shift)?

    Estimates come from labelled predictions (the source) and unlabelled ones (the target).
    """
    if context.invoked_subcommand is None:  # what click does differs between its versions
        click.echo(context.get_help(), err=True)
        return 2
    return 0


for _command in (demo, check, metrics, threshold, compare, weights, recalibrate, apply, monitor):
    run.add_command(_command)
run.add_command(weights, "prevalence")  # the same under the name that others look for
