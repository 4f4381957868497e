"""Options that several commands share, and what becomes of them."""

from __future__ import annotations

import hashlib
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from calshift.bootstrap import Progress
from calshift.columns import Asked
from calshift.errors import InvalidInput
from calshift.events import KINDS
from calshift.files import Pair
from calshift.options import ESTIMATORS
from calshift.verdicts import GATES, Gate
from calshift.weights import DEFAULT, METHODS
from calshift.written_weights import read_weights

HASHED = 2_000_000_000  # bytes up to which an input's sha256 is worth the time
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
    click.option("--jobs", default=1, show_default=True, help="Processes of the bootstrap."),
    seed_option,
    no_check_option,
)  # fmt: skip

gate_options = together(
    click.option("--level", default=0.95, show_default=True, help="Of the intervals."),
    click.option(
        "--max-error", type=float, metavar="X", help="Largest error allowed, as a probability."
    ),
    _choice("--gate", GATES, "The end of the interval that must not lie above it."),
)


def asked_columns(options: dict[str, Any], time: str | None = None) -> Asked:
    """What the file options say about columns."""
    return Asked(options["columns"], options["label"], time, options["logits"])


def asked_gate(options: dict[str, Any]) -> Gate:
    """The threshold."""
    return Gate(options["max_error"], options["gate"], options["level"])


def estimate_arguments(options: dict[str, Any], pair: Pair) -> dict[str, Any]:
    """Keyword arguments of `target_calibration_error` and `monitor`."""
    classes = pair.source.classes
    kind = options["kind"] or ("binary" if pair.source.p.ndim == 1 else "classwise")
    return {
        "weights": read_weights(options["weights"], classes, pair.source.n_classes),
        "kind": kind,
        "norm": options["norm"],
        "estimator": options["estimator"],
        "bins": _bins(options["bins"]),
        "binning": options["binning"],
        "interval": _interval(options, kind),
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


def _interval(options: dict[str, Any], kind: str) -> str:
    """The closed form where there is one."""
    if options["interval"] != "auto":
        return str(options["interval"])
    closed = options["norm"] in (1, 2) and options["estimator"] != "paper" and kind != "canonical"
    return "influence" if closed else "bootstrap"


@contextmanager
def progress_bar(label: str) -> Iterator[Progress]:
    """A bar on a terminal, from the first time that there is something to tell."""
    with ExitStack() as stack:
        bars: list[Any] = []

        def told(done: int, total: int) -> None:
            if not sys.stderr.isatty():
                return
            if not bars:
                bar = click.progressbar(length=total, label=label, file=sys.stderr)
                bars.append(stack.enter_context(bar))
            bars[0].update(done - bars[0].pos)

        yield told


def inputs(source: str, target: str) -> dict[str, Any]:
    """Which files were read, so that they can be recognised."""
    return {"source": _input(source), "target": _input(target)}


def _input(path: str) -> dict[str, Any]:
    size, digest = Path(path).stat().st_size, None
    if size <= HASHED:
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"path": path, "bytes": size, "sha256": digest}


def command_line() -> str:
    """What was typed."""
    return shlex.join(["calshift", *sys.argv[1:]])
