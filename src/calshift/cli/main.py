"""The command line's entry: every mistake ends in one line and an exit status."""

from __future__ import annotations

import errno
import os
import sys
import traceback

from calshift._core.text import printable
from calshift.errors import InvalidInput

EXTRAS = ("click", "jinja2", "matplotlib", "pyarrow")
IN_PYTHON = {
    "use calshift.softmax": "pass --logits",
    "use numpy.exp": "pass --logits",
    "n_boot must": "--draws must",
    "n_jobs must": "--jobs must",
    "rng must": "--seed must",
    'ask for interval="bootstrap", which serves everything, or "influence" for': (
        "ask for --interval bootstrap, which serves everything, or influence for"
    ),
    "1 / (1 + exp(-z)) makes them probabilities": "pass --logits",
    "pass logits=True": "pass --logits",
    "columns=": "--columns",
    "label=": "--label",
    "checkpoint needs data that is scanned (calshift.scan); these rows are in memory": (
        "--checkpoint needs --engine batches"
    ),
    "checkpoint must": "--checkpoint must",
    "pass arrays, not batches or a Spark table": "use --engine arrays",
}
USAGE, FAULT, STOPPED = 2, 4, 130


def main() -> None:
    """Entry point of `calshift` and `python -m calshift`."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif hasattr(getattr(sys, name), "reconfigure"):  # no class name breaks a narrow terminal
            getattr(sys, name).reconfigure(errors="backslashreplace")
    sys.exit(status(sys.argv[1:]))


def status(arguments: list[str]) -> int:
    """Run the command: its exit status, with whatever went wrong said in one line."""
    debug = "--debug" in arguments
    try:
        return _run(arguments)
    except ImportError as problem:
        return _said(debug, _lacking(problem), USAGE if _name(problem) in EXTRAS else FAULT)
    except InvalidInput as problem:
        return _said(debug, _for_files(str(problem)), USAGE)
    except MemoryError:
        what = "not enough memory for these files: use --engine batches, or fewer rows"
        return _said(debug, what, USAGE)
    except KeyboardInterrupt as stop:
        return _said(debug, str(stop) or "stopped", STOPPED)
    except OSError as problem:
        _silence()
        what = f"the output cannot be written ({problem.strerror or problem})"
        return USAGE if problem.errno == errno.EPIPE else _said(debug, what, USAGE)
    except Exception as problem:
        return _said(debug, _fault(problem), FAULT)


def _run(arguments: list[str]) -> int:
    import click

    from calshift.cli.commands import run

    try:
        found = run.main(arguments, prog_name="calshift", standalone_mode=False)
    except click.Abort as stop:
        why = stop.__cause__.args if isinstance(stop.__cause__, KeyboardInterrupt) else ()
        raise KeyboardInterrupt(*why) from None
    except SystemExit:  # click's own answer to a reader that left; it would be 1, a breach
        raise BrokenPipeError(errno.EPIPE, "the reader left") from None
    except click.ClickException as problem:
        problem.show()
        return USAGE
    sys.stdout.flush()
    return int(found or 0)


def _silence() -> None:
    """Standard output leads nowhere any more: what is left in it must not complain at exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError, AttributeError):
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


def _for_files(message: str) -> str:
    """Hints that speak of Python, in the words of the command line."""
    for spoken, written in IN_PYTHON.items():
        message = message.replace(spoken, written)
    return message


def _lacking(problem: ImportError) -> str:
    name = _name(problem)
    if name in EXTRAS:
        return f"this needs {name}: pip install 'calshift[cli]'"
    return _fault(problem)


def _name(problem: ImportError) -> str:
    return (problem.name or "").split(".")[0]


def _fault(problem: Exception) -> str:
    what = " ".join(str(problem).split())
    return (
        f"a fault in calshift, not in your files ({type(problem).__name__}: {what}); "
        "please report it with what --debug shows"
    )


def _said(debug: bool, message: str, code: int) -> int:
    if debug:
        traceback.print_exc()
    sys.stderr.write(f"calshift: {printable(' '.join(message.split()))}\n")
    return code
