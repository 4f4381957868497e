"""Outputs of the commands: files, standard output and standard error."""

from __future__ import annotations

import os
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import click

from calshift._core.atomic_write import encode_text
from calshift._core.outputs import Outputs, StagedOutput, check_writable
from calshift._core.text import printable
from calshift._core.validate import validate_path
from calshift.cli.options import combine_options
from calshift.errors import InvalidInput, UnreliableWeights
from calshift.io.formats.base import PACKINGS
from calshift.io.paths import expand_paths
from calshift.report import (
    render_html,
    render_json,
    render_markdown,
    render_metrics_markdown,
    render_metrics_prometheus,
    render_prometheus,
    render_text,
)

WIDTH = 98
Formats = dict[str, Callable[[dict[str, Any]], str]]
FORMATS: Formats = {
    "report": render_html, "json": render_json, "markdown": render_markdown,
    "prometheus": render_prometheus,
}  # fmt: skip
FORMATS_OF_METRICS: Formats = {
    "json": render_json, "markdown": render_metrics_markdown,
    "prometheus": render_metrics_prometheus,
}  # fmt: skip
COLOURS = {"fine": "green", "breached": "red", "untrusted": "yellow"}

json_option = click.option(
    "--json", metavar="FILE", help="Write the results as JSON; - is standard output."
)
text_options = combine_options(
    json_option,
    click.option("--markdown", metavar="FILE", help="Write a Markdown block for a model card."),
    click.option(
        "--prometheus", metavar="FILE", help="Write metrics for Prometheus' textfile collector."
    ),
    click.option("--quiet", "-q", is_flag=True, help="Print the verdict only."),
)
output_options = combine_options(
    click.option("--report", metavar="FILE", help="Write a report page (HTML)."), text_options
)
plot_option = click.option("--plot", metavar="FILE", help="Draw the result (png, svg, pdf).")


def check_outputs(
    options: dict[str, Any], names: tuple[str, ...] = tuple(FORMATS), read: tuple[str, ...] = ()
) -> None:
    """Refuse, before the computation, outputs that cannot be written or would replace an input."""
    asked = [options[name] for name in names if options[name] is not None]
    if asked.count("-") > 1:
        msg = "only one output can be - (standard output)"
        raise InvalidInput(msg)
    if "-" in asked and sys.__stdout__ is None:
        msg = "an output is -, and standard output is closed: name a file"
        raise InvalidInput(msg)
    paths = [path for path in asked if path != "-"]
    places = [os.path.realpath(path) for path in paths]
    if len(set(places)) < len(places):
        msg = f"two outputs have the same path: {', '.join(paths)}"
        raise InvalidInput(msg)
    given = (options.get(name) for name in ("weights", "label", "cost"))  # each may be a file
    read = (*read, *(name for name in given if name and os.path.isfile(name)))
    for name in read:
        validate_path(name, "an input")
    inputs = {os.path.realpath(file) for name in read for file in _input_files(name)}
    for path, place in zip(paths, places, strict=True):
        if place in inputs:
            msg = f"{path} is an input; choose another output path"
            raise InvalidInput(msg)
        check_writable(path)


def _input_files(name: str) -> list[Any]:
    """The files of an input, or its name if there are none."""
    try:
        return list(expand_paths(name))
    except InvalidInput:
        return [name]


def check_same_extension(output: str, read: str) -> None:
    """Refuse an output in another format than its input."""
    endings = [Path(path).name.lower().partition(".")[2].split(".")[-2:] for path in (output, read)]
    last = [parts if f".{parts[-1]}" in PACKINGS else parts[-1:] for parts in endings]
    if output != "-" and last[0] != last[1]:
        extension = ".".join(["", *last[1]])
        msg = (
            f"{output} must have the extension of {read} ({extension}), because it is written in "
            "the same format"
        )
        raise InvalidInput(msg)


def write_outputs(report: dict[str, Any], options: dict[str, Any]) -> None:
    """Write the files, then print the verdict and the tables."""
    with Outputs() as files:
        stage_report(files, report, options)
    print_report(report, options)


def stage_report(
    files: Outputs, report: dict[str, Any], options: dict[str, Any], formats: Formats = FORMATS
) -> None:
    """Write the formats that were asked for."""
    for name, render in formats.items():
        if options[name] is not None:
            stage_text(files, options[name], render(report))


def print_report(
    report: dict[str, Any],
    options: dict[str, Any],
    formats: Formats = FORMATS,
    render: Callable[[dict[str, Any]], str] = render_text,
) -> None:
    """Print the verdict and the tables."""
    to_stderr = "-" in (options[name] for name in formats)
    print_verdict(report["verdict"], report["status"] if _is_judged(report) else None, to_stderr)
    if not options["quiet"]:
        echo("\n" + render(report), to_stderr)


def _is_judged(report: dict[str, Any]) -> bool:
    """Whether a limit or a requirement was stated, or the result is not reliable."""
    section = report["metrics"] if "threshold" in report else report
    required = section is not None and bool(section["requirements"])
    return required or report.get("threshold") is not None or report["status"] != "fine"


def stage_text(files: Outputs, path: str | None, content: str) -> None:
    """Write text to an output; nothing without a path."""
    if path == "-":
        coding = sys.stdout.encoding or "utf-8"
        stage(files, path).write(content.encode(coding, "backslashreplace"))
    elif path is not None:
        stage(files, path).write(encode_text(content))


def stage(files: Outputs, path: str) -> StagedOutput:
    """A binary file for an output, which is standard output where the path is -."""
    return files.open_standard_output() if path == "-" else files.open(path)


def print_verdict(verdict: str, status: str | None, to_stderr: bool) -> None:
    """Print the verdict in bold, wrapped, in the colour of its status."""
    colour = None if status is None else COLOURS[status]
    echo(click.style(wrap(verdict), fg=colour, bold=True), to_stderr)


def wrap(text: str) -> str:
    """Printable lines that fit the terminal."""
    return textwrap.fill(printable(text), WIDTH)


def echo(message: str, to_stderr: bool = False, newline: bool = True) -> None:
    """Print, in colour on a terminal only."""
    stream = sys.stderr if to_stderr else sys.stdout
    colourless = "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
    with suppress(OSError) if to_stderr else nullcontext():  # then the output itself is complete
        click.echo(message, file=stream, nl=newline, color=False if colourless else None)


@contextmanager
def ignore_warnings() -> Iterator[None]:
    """Leave out Python warnings that the report repeats."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnreliableWeights)
        yield
