"""Options that several commands share, and the arguments made from them."""

from __future__ import annotations

import hashlib
import os
import shlex
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol, TypeVar

import click
import numpy as np

from calshift.binning.events import KINDS
from calshift.cli.samples import ENGINES, OpenedSamples
from calshift.cli.weights_file import read_weights_file
from calshift.diagnostics.conditions import LABEL_FREE
from calshift.errors import InvalidInput
from calshift.inference.options import ESTIMATORS
from calshift.io.columns import ColumnSpec
from calshift.io.paths import expand_paths
from calshift.report.verdict import GATES, Gate
from calshift.weights import DEFAULT, METHODS

MOST_HASHED = 2_000_000_000  # bytes above which the sha256 of an input is left out
Command = TypeVar("Command", bound=Callable[..., Any])


class Decorator(Protocol):
    """A decorator that keeps the type of a command."""

    def __call__(self, command: Command, /) -> Command: ...


def combine_options(*options: Callable[[Any], Any]) -> Decorator:
    """Several options as one decorator, in the order of the help page."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def value_option(name: str, default: Any, about: str, **more: Any) -> Decorator:
    """An option whose default is shown in the help."""
    return click.option(name, default=default, show_default=True, help=about, **more)


def choice_option(name: str, among: tuple[str, ...], about: str) -> Decorator:
    """An option with a few values, the first by default."""
    return value_option(name, among[0], about, type=click.Choice(among))


def method_option(among: Iterable[str], default: str, about: str) -> Decorator:
    """The method of a command, listed in the help."""
    help_text = f"{', '.join(among)}. {about}"
    return value_option("--method", default, help_text, type=click.Choice([*among]), metavar="NAME")


debug_option = click.option(
    "--debug", is_flag=True, expose_value=False, help="Show the traceback of an error."
)

column_options = combine_options(
    click.option(
        "--columns",
        metavar="NAMES",
        help="Columns of the probabilities: 'a,b,c', a pattern like 'score_*', or one column of "
        "lists. By default p_*, prob_*, proba_* or the only column of lists.",
    ),
    click.option("--logits", is_flag=True, help="The columns are logits or log-probabilities."),
)

sample_weight_option = click.option(
    "--sample-weight",
    metavar="COLUMN",
    help="Column of frequency weights, which SOURCE and TARGET must have: 2 counts as two rows, 0 "
    "removes the row.",
)

recalibrated_option = click.option(
    "--output", "-o", metavar="FILE", required=True,
    help="TARGET with recalibrated probabilities, in the same format.",
)  # fmt: skip

file_options = combine_options(
    click.argument("source", type=click.Path()),
    click.argument("target", type=click.Path()),
    click.option(
        "--label", metavar="COLUMN", help="Column of the source's labels; for .npy a second file."
    ),
    column_options,
    sample_weight_option,
)


def weights_option(default: str | None, about: str = "") -> Decorator:
    """Class weights, estimated by a method or given."""
    return click.option(
        "--weights",
        default=default,
        show_default=default is not None,
        metavar="METHOD",
        help=f"How the target class priors are estimated: {', '.join(METHODS)}; or known class "
        f"weights as '0.5,1.5' in the order of SOURCE's classes, or a file of "
        f"`calshift weights --json`.{about}",
    )


seed_option = value_option("--seed", 0, "Seed of random numbers.")
level_option = value_option("--level", 0.95, "Confidence level of the intervals.")
jobs_option = value_option(
    "--jobs", 1, "Bootstrap processes, or threads for batches; at most one for each processor."
)
no_check_option = click.option(
    "--no-check",
    is_flag=True,
    help="Do not test label shift (that only class priors changed): waives its conditions.",
)

waive_option = click.option(
    "--waive",
    metavar="NAME",
    multiple=True,
    help=f"A condition of a reliable result to do without; repeatable: {', '.join(LABEL_FREE)}.",
)

drift_option = value_option(
    "--drift", 0.0, "Share of TARGET outside label shift that the interval allows for (0 to 1)."
)

estimate_options = combine_options(
    weights_option(DEFAULT),
    click.option(
        "--kind", type=click.Choice(KINDS), help="Kind of calibration error.  [default: classwise]"
    ),
    value_option("--norm", 2.0, "Norm p: 2 is the RMS error, 1 the ECE."),
    choice_option("--estimator", ESTIMATORS, "Estimator of the calibration error."),
    value_option("--bins", "auto", "'auto' or the number of bins."),
    choice_option("--binning", ("mass", "width"), "Bins of equal mass or of equal width."),
    choice_option(
        "--interval", ("auto", "influence", "bootstrap"), "'auto': influence if it is available."
    ),
    value_option("--draws", 500, "Draws of the bootstrap."),
    jobs_option,
    seed_option,
    no_check_option,
    drift_option,
    waive_option,
)

engine_options = combine_options(
    choice_option(
        "--engine", ENGINES,
        "'batches' reads files in passes, never all rows at once; 'auto' does so above 1 GiB; "
        "'spark' reads tables, or folders of parquet.",
    ),
    click.option(
        "--checkpoint",
        metavar="FILE",
        help="Save the state here when interrupted; the same command continues from it.",
    ),
)  # fmt: skip

gate_options = combine_options(
    level_option,
    click.option(
        "--max-error", type=float, metavar="X", help="Limit: the largest error allowed (0 to 1)."
    ),
    choice_option("--gate", GATES, "The end of the interval that must not exceed the limit."),
)


def column_spec(options: dict[str, Any], time: str | None = None) -> ColumnSpec:
    """The columns that the file options describe."""
    label, weight = options["label"], options["sample_weight"]
    return ColumnSpec(options["columns"], label, time, options["logits"], weight=weight)


def gate_option(options: dict[str, Any]) -> Gate:
    """The limit of the gate options."""
    return Gate(options["max_error"], options["gate"], options["level"])


def estimate_arguments(options: dict[str, Any], samples: OpenedSamples) -> dict[str, Any]:
    """Keyword arguments of `target_calibration_error` and `monitor`."""
    kind = options["kind"] or ("binary" if samples.one_column else "classwise")
    return {
        "weights": read_weights(options["weights"], samples.classes, samples.n_classes),
        "kind": kind,
        "norm": options["norm"],
        "estimator": options["estimator"],
        "bins": _bins(options["bins"]),
        "binning": options["binning"],
        "interval": _interval(options, kind, samples.in_passes),
        "n_boot": options["draws"],
        "n_jobs": options["jobs"],
        "rng": options["seed"],
        "check": not options["no_check"],
        "drift": options["drift"],
        "waive": options["waive"],
    }


def _bins(asked: str) -> str | int:
    if asked == "auto":
        return asked
    try:
        return int(asked)
    except ValueError:
        msg = f"--bins must be 'auto' or a whole number; got {asked!r}"
        raise InvalidInput(msg) from None


def _interval(options: dict[str, Any], kind: str, in_passes: bool) -> str | None:
    """ "influence" where it is available; the bootstrap needs all rows at once."""
    if options["interval"] != "auto":
        return str(options["interval"])
    if options["norm"] in (1, 2) and options["estimator"] != "paper" and kind != "canonical":
        return "influence"
    return None if in_passes else "bootstrap"


def provenance(source: str, target: str) -> dict[str, Any]:
    """The input files and the command line, for the report."""
    return {
        "inputs": {"source": _describe_input(source), "target": _describe_input(target)},
        "command": command_line(),
    }


def drawn(options: dict[str, Any]) -> dict[str, Any]:
    """The settings of random numbers, for the report."""
    return {"seed": options["seed"], "draws": options["draws"]}


def _describe_input(name: str) -> dict[str, Any]:
    """Total size and joint digest of all files of an input."""
    paths = [path for path in expand_paths(name) if path.exists()]  # a cluster's table is no file
    size, digest = sum(path.stat().st_size for path in paths), None
    if paths and size <= MOST_HASHED:
        found = hashlib.sha256()
        for path in paths:
            with open(path, "rb") as file:
                hashlib.file_digest(file, lambda: found)  # adds to what came before
        digest = found.hexdigest()
    return {"path": name, "bytes": size, "sha256": digest}


def command_line() -> str:
    """The command as it was typed."""
    return shlex.join(["calshift", *sys.argv[1:]])


def read_weights(asked: str, classes: tuple[Any, ...] | None, K: int) -> Any:
    """The name of a method, or one weight a class, matched by name where both have names."""
    if asked in METHODS:
        return asked
    if asked.endswith(".json") or os.path.exists(asked):
        return read_weights_file(Path(asked), classes, K)
    try:
        values = np.array([float(part) for part in asked.split(",")])
    except ValueError:
        msg = (
            f"--weights must be one of {', '.join(METHODS)}, numbers separated by commas, or a "
            f"file of `calshift weights --json`; got {asked!r}"
        )
        raise InvalidInput(msg) from None
    if len(values) != K:
        msg = f"--weights must be {K} numbers, in the order of the classes; got {len(values)}"
        raise InvalidInput(msg)
    return values
