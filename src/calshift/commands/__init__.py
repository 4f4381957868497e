"""The commands of the command line, made with click."""

from __future__ import annotations

import click

from calshift import __version__
from calshift.arguments import debug_option
from calshift.commands.check import check
from calshift.commands.demo import demo
from calshift.commands.monitor import monitor
from calshift.commands.weights import weights

EXIT = """\b
Exit status: 0 fine; 1 the error is above --max-error; 2 wrong usage or a file that cannot be
read or written; 3 the answer cannot be trusted (outranks 1); 4 a fault in calshift itself."""


@click.group(epilog=EXIT, context_settings={"max_content_width": 100})
@click.version_option(__version__, prog_name="calshift")
@debug_option
def run() -> None:
    """Are a classifier's probabilities still true after the mix of classes changed?

    From labelled predictions before the change (the source) and unlabelled ones after it (the
    target).
    """


for _command in (demo, check, weights, monitor):
    run.add_command(_command)
