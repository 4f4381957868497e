"""Where the answers of the command line go: the terminal, and files."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from calshift.cli.options import together
from calshift.errors import InvalidInput, UnreliableWeights
from calshift.io.file_set import expand_paths
from calshift.io.formats.base import PACKINGS
from calshift.report import (
    as_json,
    check_writable,
    markdown,
    page,
    prometheus,
    text,
    wrap_verdict,
    write_atomically,
    write_content,
)

FACES: dict[str, Callable[[dict[str, Any]], str]] = {
    "report": page, "json": as_json, "markdown": markdown, "prometheus": prometheus,
}  # fmt: skip
COLOURS = {"fine": "green", "breached": "red", "untrusted": "yellow"}

output_options = together(
    click.option("--report", metavar="FILE", help="Write the report page (HTML)."),
    click.option("--json", metavar="FILE", help="Write everything as JSON; - is the terminal."),
    click.option("--markdown", metavar="FILE", help="Write a block for a model card."),
    click.option("--prometheus", metavar="FILE", help="Write metrics for a textfile collector."),
    click.option("--quiet", "-q", is_flag=True, help="Print the verdict only."),
)


def check_outputs(
    options: dict[str, Any], faces: tuple[str, ...] = tuple(FACES), read: tuple[str, ...] = ()
) -> None:
    """What can never be written, or would destroy what is read, is said before the work."""
    asked = [options[name] for name in faces if options[name] is not None]
    if asked.count("-") > 1:
        msg = "only one output can be -, the terminal"
        raise InvalidInput(msg)
    paths = [path for path in asked if path != "-"]
    places = [os.path.realpath(path) for path in paths]
    if len(set(places)) < len(places):
        msg = f"two outputs name one file: {', '.join(paths)}"
        raise InvalidInput(msg)
    taken = {os.path.realpath(file) for name in read for file in _files(name)}
    for path, place in zip(paths, places, strict=True):
        if place in taken:
            msg = f"{path} is read: it cannot be written too; name another output"
            raise InvalidInput(msg)
    for path in paths:
        check_writable(path)


def _files(name: str) -> list[Any]:
    """The files that are read under a name, as far as there are any."""
    try:
        return list(expand_paths(name))
    except InvalidInput:
        return [name]


def check_same_ending(output: str, read: str) -> None:
    """A file that is written again has the format of the one that was read."""
    endings = [Path(path).name.lower().partition(".")[2].split(".")[-2:] for path in (output, read)]
    last = [parts if f".{parts[-1]}" in PACKINGS else parts[-1:] for parts in endings]
    if output != "-" and last[0] != last[1]:
        msg = f"{output} must end in .{'.'.join(last[1])}: it is {read} again, mended"
        raise InvalidInput(msg)


def deliver(report: dict[str, Any], options: dict[str, Any]) -> None:
    """Files first, then the terminal: verdict, then the table."""
    ready = {name: FACES[name](report) for name in FACES if options[name] is not None}
    for name, content in ready.items():
        put(options[name], content)
    aside = "-" in (options[name] for name in FACES)
    judged = report["threshold"] is not None or not report["trusted"]
    colour = COLOURS[report["status"]] if judged else None
    say(click.style(wrap_verdict(report), fg=colour, bold=True), aside)
    if not options["quiet"]:
        say("\n" + text(report), aside)


def put(path: str, content: str) -> None:
    """To a file, or to standard output where the path is -."""
    if path == "-":
        say(content, False, end=False)
    else:
        write_atomically(path, content)


def put_bytes(path: str, content: bytes) -> None:
    """The same for a file that is not text."""
    if path != "-":
        write_content(path, content)
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def say(message: str, aside: bool = False, end: bool = True) -> None:
    """Print, in colour on a terminal only; aside means standard error."""
    stream = sys.stderr if aside else sys.stdout
    plain = "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
    click.echo(message, file=stream, nl=end, color=False if plain else None)


@contextmanager
def quietly() -> Iterator[None]:
    """Python's warnings repeat what the report says."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnreliableWeights)
        yield
