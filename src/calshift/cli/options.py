"""Options that several commands share, and what becomes of them."""

from __future__ import annotations

import hashlib
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from calshift.binning.events import KINDS
from calshift.cli.samples import ENGINES, Opened
from calshift.cli.weights_option import read_weights
from calshift.errors import InvalidInput
from calshift.inference.options import ESTIMATORS
from calshift.io.columns import ColumnSpec
from calshift.io.file_set import expand_paths
from calshift.report.verdict import GATES, Gate
from calshift.weights import DEFAULT, METHODS

HASHED = 2_000_000_000  # bytes up to which an input's sha256 is worth the time
BLOCK = 2**20
Command = TypeVar("Command", bound=Callable[..., Any])


def together(*options: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """Several options as one decorator, in the order of the help page."""

    def decorated(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorated


def _choice(name: str, among: tuple[str, ...], about: str | None = None) -> Any:
    """One of several words, the first by default."""
    return click.option(
        name, type=click.Choice(among), default=among[0], show_default=True, help=about
    )


debug_option = click.option(
    "--debug", is_flag=True, expose_value=False, help="Show where an error came from."
)

column_options = together(
    click.option(
        "--columns",
        metavar="NAMES",
        help="Probabilities: 'a,b,c', a pattern like 'score_*', or one column of lists. "
        "By default p_*, prob_*, proba_* or the only column of lists.",
    ),
    click.option("--logits", is_flag=True, help="The columns hold logits or log-probabilities."),
)

file_options = together(
    click.argument("source", type=click.Path()),
    click.argument("target", type=click.Path()),
    click.option("--label", metavar="COLUMN", help="Labels of the source; for .npy a second file."),
    column_options,
)


def weights_option(default: str | None, about: str = "") -> Callable[[Command], Command]:
    """Class weights, by a method or known."""
    return click.option(
        "--weights",
        default=default,
        show_default=default is not None,
        metavar="METHOD",
        help=f"How the new mix of classes is found: {', '.join(METHODS)}; or known weights as "
        f"'0.5,1.5', or a file of `calshift weights --json`.{about}",
    )


seed_option = click.option("--seed", default=0, show_default=True, help="Of all that is drawn.")
jobs_option = click.option(
    "--jobs", default=1, show_default=True, help="Processes of the bootstrap, threads of batches."
)
no_check_option = click.option(
    "--no-check", is_flag=True, help="Do not test that only the mix changed."
)

estimate_options = together(
    weights_option(DEFAULT),
    click.option("--kind", type=click.Choice(KINDS), help="Of error.  [default: classwise]"),
    click.option("--norm", default=2.0, show_default=True, help="p of the error; 1 is the ECE."),
    _choice("--estimator", ESTIMATORS),
    click.option("--bins", default="auto", show_default=True, help="'auto' or how many."),
    _choice("--binning", ("mass", "width")),
    _choice(
        "--interval", ("auto", "influence", "bootstrap"), "'auto': the closed form if there is one."
    ),
    click.option("--draws", default=500, show_default=True, help="Of the bootstrap."),
    jobs_option,
    seed_option,
    no_check_option,
)  # fmt: skip

engine_options = together(
    _choice(
        "--engine", ENGINES,
        "'batches' reads files in passes, never all rows at once; 'auto' does so above 1 GiB; "
        "'spark' takes tables, or folders of parquet.",
    ),
    click.option(
        "--checkpoint",
        metavar="FILE",
        help="Keep sums of passes here when interrupted; the same command goes on from them.",
    ),
)  # fmt: skip

gate_options = together(
    click.option("--level", default=0.95, show_default=True, help="Of the intervals."),
    click.option(
        "--max-error", type=float, metavar="X", help="Largest error allowed, as a probability."
    ),
    _choice("--gate", GATES, "The end of the interval that must not lie above it."),
)


def column_spec(options: dict[str, Any], time: str | None = None) -> ColumnSpec:
    """What the file options say about columns."""
    return ColumnSpec(options["columns"], options["label"], time, options["logits"])


def gate_option(options: dict[str, Any]) -> Gate:
    """The threshold."""
    return Gate(options["max_error"], options["gate"], options["level"])


def estimate_arguments(options: dict[str, Any], samples: Opened) -> dict[str, Any]:
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
    """The closed form where there is one; the bootstrap needs all rows at once."""
    if options["interval"] != "auto":
        return str(options["interval"])
    closed = options["norm"] in (1, 2) and options["estimator"] != "paper" and kind != "canonical"
    if closed:
        return "influence"
    return None if in_passes else "bootstrap"


def inputs(source: str, target: str) -> dict[str, Any]:
    """Which files were read, so that they can be recognised."""
    return {"source": _input(source), "target": _input(target)}


def _input(name: str) -> dict[str, Any]:
    """Bytes of all files together, and the digest of one file after the other."""
    paths = [path for path in expand_paths(name) if path.exists()]  # a cluster's table is no file
    size, digest = sum(path.stat().st_size for path in paths), None
    if paths and size <= HASHED:
        found = hashlib.sha256()
        for path in paths:
            _add(found, path)
        digest = found.hexdigest()
    return {"path": name, "bytes": size, "sha256": digest}


def _add(found: Any, path: Path) -> None:
    with open(path, "rb") as file:
        while block := file.read(BLOCK):
            found.update(block)


def command_line() -> str:
    """What was typed."""
    return shlex.join(["calshift", *sys.argv[1:]])
