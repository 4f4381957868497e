"""Entry point of the command line: every error ends in one line and an exit status."""

from __future__ import annotations

import errno
import os
import re
import sys
import traceback
from contextlib import suppress

from calshift._core.memory import is_memory_error
from calshift._core.text import printable
from calshift.cli.process_exit import (
    FAULT,
    NO_MEMORY,
    end_process,
    guard_process,
    interrupt_status,
    stop_on_termination,
)
from calshift.errors import InvalidInput

EXTRAS = ("click", "jinja2", "matplotlib", "pyarrow")
OPTIONS = {
    "n_boot": "draws", "n_jobs": "jobs", "rng": "seed", "max_error": "max-error",
    "decision": "decision-threshold",
    **{name: name for name in ("checkpoint", "cost", "drift", "folds", "gate", "kind", "level",
                               "norm", "positive", "require", "rows", "waive", "weights",
                               "window")},
}  # fmt: skip
FOR_FILES = {
    "use calshift.softmax": "pass --logits",
    "use numpy.exp": "pass --logits",
    "1 / (1 + exp(-z)) makes them probabilities": "pass --logits",
    "pass logits=True": "pass --logits",
    "leave out logits=True": "leave out --logits",
    'ask for interval="bootstrap", which serves everything, or "influence" for': (
        "use --interval bootstrap, which is always available, or influence for"
    ),
    "name the class by positive=": "name the class by --positive",
    "needs cost=, a matrix by": "needs --cost, a table of costs by",
    ": pass a function": ": leave out --decision-threshold",
    ' needs interval="influence"': " needs --interval influence",
    "columns=": "--columns",
    "label=": "--label",
    "checkpoint needs data that is scanned (calshift.scan); these rows are in memory": (
        "--checkpoint needs --engine batches"
    ),
    "pass arrays, not batches or a Spark table": "use --engine arrays",
}
USAGE = 2


def main() -> None:
    """Entry point of `calshift` and `python -m calshift`."""
    guard_process()
    stop_on_termination()
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif hasattr(getattr(sys, name), "reconfigure"):  # for class names that are not ASCII
            getattr(sys, name).reconfigure(errors="backslashreplace")
    end_process(status(sys.argv[1:]))


def status(arguments: list[str]) -> int:
    """Run a command and return its exit status; an error is printed in one line."""
    try:
        return _run(arguments)
    except ModuleNotFoundError as problem:
        name = (problem.name or "").split(".")[0]
        if name not in EXTRAS:
            return _report_fault(arguments, problem)
        return _print_error(arguments, f"this needs {name}: pip install 'calshift[cli]'")
    except InvalidInput as problem:
        return _print_error(arguments, _use_option_names(str(problem)))
    except KeyboardInterrupt as stop:
        return _print_error(arguments, str(stop) or "stopped", interrupt_status())
    except OSError as problem:
        if problem.errno in (None, errno.ENOMEM):  # such as a library that cannot be loaded
            return _report_fault(arguments, problem)
        _discard_output()
        if problem.errno == errno.EPIPE:
            return USAGE
        what = f"standard output cannot be written ({problem.strerror or problem})"
        return _print_error(arguments, what)
    except Exception as problem:
        return _report_fault(arguments, problem)


def _run(arguments: list[str]) -> int:
    import click

    from calshift.cli.commands import run

    try:
        found = run.main(arguments, prog_name="calshift", standalone_mode=False)
    except click.Abort as stop:
        if isinstance(stop.__cause__, EOFError):  # which click takes for the end of a terminal
            raise stop.__cause__ from None
        why = stop.__cause__.args if isinstance(stop.__cause__, KeyboardInterrupt) else ()
        raise KeyboardInterrupt(*why) from None
    except SystemExit:  # raised by click for a closed pipe, with status 1, which means a breach
        raise BrokenPipeError(errno.EPIPE, "the reader left") from None
    except click.ClickException as problem:
        problem.show()
        return USAGE
    sys.stdout.flush()
    return int(found or 0)


def _discard_output() -> None:
    """Replace a standard output that cannot be written, so that flushing it at exit succeeds."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError, AttributeError):
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


def _use_option_names(message: str) -> str:
    """A message of the Python API with the names of command-line options."""
    for python, option in FOR_FILES.items():
        message = message.replace(python, option)
    names = "|".join(OPTIONS)
    return re.sub(rf"^({names})(?= must )", lambda found: f"--{OPTIONS[found[1]]}", message)


def _report_fault(arguments: list[str], problem: Exception) -> int:
    if is_memory_error(problem):
        return _print_error(arguments, NO_MEMORY, FAULT)
    what = f"{type(problem).__name__}: {problem}"
    message = f"internal error ({what}); please report it with the output of --debug"
    return _print_error(arguments, message, FAULT)


def _print_error(arguments: list[str], message: str, code: int = USAGE) -> int:
    with suppress(OSError):  # a standard error that is full leaves the status
        if "--debug" in arguments:
            traceback.print_exc()
        sys.stderr.write(f"calshift: {printable(' '.join(message.split()))}\n")
        sys.stderr.flush()
    return code
