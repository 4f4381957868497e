"""What the outcome of a call may be, and what is reported if it is something else."""

from __future__ import annotations

import hashlib
import linecache
import pickle
import re
import signal
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import calshift
from tests.fuzz.oracles.results import check_result

PACKAGE = str(Path(calshift.__file__).parent)
SECONDS = 10.0  # of processor time that a call may take
LONGEST_MESSAGE = 2000
# texts that show the inside of a library, not an argument
BARE = re.compile(r"Traceback|pyarrow\.lib\.|_core\._exceptions")


class TimeLimit(BaseException):
    """The call took more processor time than allowed; no handler of calshift catches it."""


@dataclass
class Finding:
    """Something that is wrong, known by its signature."""

    signature: str
    detail: str


@dataclass
class Outcome:
    """The result of a call or its error, with the warnings and the processor time."""

    result: Any = None
    error: BaseException | None = None
    warnings: list[Any] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def refused(self) -> bool:
        """Whether an error says what is not valid."""
        return isinstance(self.error, calshift.InvalidInput) or _is_signature_error(self.error)


@contextmanager
def limit_time() -> Iterator[None]:
    """Raise `TimeLimit` in the block after so much processor time."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeLimit

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def observe(function: Callable[[], Any]) -> Outcome:
    """Run it within the limit of time, with all warnings recorded."""
    outcome, start = Outcome(), time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with limit_time():
                outcome.result = function()
        except (Exception, TimeLimit) as error:
            outcome.error = error
    outcome.warnings = list(caught)
    outcome.seconds = time.process_time() - start
    return outcome


def judge(name: str, outcome: Outcome) -> Iterator[Finding]:
    """Everything that is wrong with an outcome."""
    yield from _judge_warnings(name, outcome)
    if outcome.error is not None:
        yield from _judge_error(name, outcome.error)
        return
    checked = observe(lambda: check_result(outcome.result))
    yield from _judge_warnings(f"{name}, its result", checked)
    if checked.error is not None:
        yield from _judge_error(f"{name}, its result", checked.error, refusals=False)
        return
    for rule in checked.result:
        kind = type(outcome.result).__name__
        yield Finding(f"{kind}: {rule}", f"{name}: {outcome.result!r}"[:500])


def _judge_warnings(name: str, outcome: Outcome) -> Iterator[Finding]:
    for caught in outcome.warnings:
        if not issubclass(caught.category, calshift.UnreliableWeights):
            place = f"{Path(caught.filename).name}:{caught.lineno}"
            signature = f"warning {caught.category.__name__} at {place}"
            yield Finding(signature, f"{name}: {caught.message}"[:500])


def _judge_error(name: str, error: BaseException, refusals: bool = True) -> Iterator[Finding]:
    frame = innermost_frame(error)
    if frame is None and not isinstance(error, AssertionError | TimeLimit):
        return  # raised by the harness before calshift was called
    if refusals and (isinstance(error, calshift.InvalidInput) or _is_signature_error(error)):
        yield from _judge_message(name, error, frame)
        return
    text = "".join(traceback.format_exception(error))
    yield Finding(f"{type(error).__name__} in {frame or name}", f"{name}\n{text[-3000:]}")


def _judge_message(name: str, error: BaseException, frame: str | None) -> Iterator[Finding]:
    message = str(error)
    wrong = [
        what
        for what, found in (
            ("is empty", not message.strip()),
            ("is too long", len(message) > LONGEST_MESSAGE),
            ("shows the inside of a library", BARE.search(message) is not None),
        )
        if found
    ]
    for what in wrong:
        yield Finding(f"message {what}: {frame}", f"{name}: {message[:1000]}")


def _is_signature_error(error: BaseException | None) -> bool:
    """A TypeError that calshift raises on purpose, or of arguments that no function takes."""
    if not isinstance(error, TypeError):
        return False
    text = str(error)
    if re.search(r"unexpected keyword argument|required (positional|keyword-only) argument", text):
        return True
    last = traceback.extract_tb(error.__traceback__)[-1]
    line = linecache.getline(last.filename, last.lineno or 0).strip()
    return last.filename.startswith(PACKAGE) and line.startswith("raise ")


def innermost_frame(error: BaseException) -> str | None:
    """File and function of calshift in which the error was raised, or None."""
    frames = traceback.extract_tb(error.__traceback__)
    inside = [frame for frame in frames if frame.filename.startswith(PACKAGE)]
    if not inside:
        return None
    return f"{Path(inside[-1].filename).relative_to(PACKAGE)}:{inside[-1].name}"


def checksum(value: Any) -> str:
    """A digest of arguments, with the flag that arrays can be written; "" if there is none."""
    try:
        return hashlib.sha256(b"".join(_bytes_of(value))).hexdigest()
    except Exception:  # generators, functions, broken objects: nothing to compare
        return ""


def _bytes_of(value: Any) -> Iterator[bytes]:
    if isinstance(value, dict | list | tuple):
        for part in value.items() if isinstance(value, dict) else value:
            yield from _bytes_of(part)
    elif isinstance(value, np.ndarray) and not value.dtype.hasobject:
        yield f"{value.dtype}{value.shape}{value.flags.writeable}".encode()
        yield np.ascontiguousarray(value).tobytes()
        if isinstance(value, np.ma.MaskedArray):
            yield np.ma.getmaskarray(value).tobytes()
    else:
        yield from _bytes_of_object(value)


def _bytes_of_object(value: Any) -> Iterator[bytes]:
    if isinstance(value, np.random.Generator) or hasattr(value, "__next__"):
        value = None  # these change by use
    if hasattr(value, "detach"):
        value = value.detach().cpu().float().numpy()
    for plain in ("to_pylist", "to_numpy"):  # frames; their pickles may change by use
        if hasattr(value, plain):
            value = repr(np.asarray(getattr(value, plain)(), dtype=object).tolist())
    try:
        yield pickle.dumps(value)
    except Exception:  # a part that cannot be compared
        yield type(value).__name__.encode()
