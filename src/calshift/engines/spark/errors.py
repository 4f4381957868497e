"""Errors of Spark, shortened to one line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from calshift.errors import InvalidInput

LONGEST = 300
HEADER = "An error occurred while calling"  # a method of Java, of no use to the reader
REASON = r"\[[A-Z][A-Z0-9_.]+\] .*"  # Spark's error class, and a text that names the file
LACKING = r"ModuleNotFoundError: No module named '([\w.]+)'"
RAISED = r"^([\w.]+(?:Error|Exception|Input)): (.*)$"
OFTEN = r"failed \d+ times, most recent failure: .*?: (?:[\w.$]+: )?(.*)"


@contextmanager
def short_errors(table: str) -> Iterator[None]:
    """Raise errors of Spark as one line that names the table, without stack traces."""
    try:
        yield
    except Exception as problem:
        if not type(problem).__module__.startswith(("pyspark", "py4j")):
            raise
        raise _shorten(str(problem), table) from problem


def _shorten(text: str, table: str) -> Exception:
    """An error without the stack traces of Java and Python."""
    if lacking := re.search(LACKING, text):
        return InvalidInput(
            f"{table}: the Python of Spark's executors lacks {lacking[1]}: install calshift[files] "
            "there, or send an environment along (docs/spark.md)"
        )
    raised = re.findall(RAISED, text, re.M)
    if "Traceback" in text and raised:  # of our Python on an executor
        return RuntimeError(f"{table}: a task failed with {raised[-1][0]}: {raised[-1][1]}")
    if often := re.search(OFTEN, text):
        first = f"a task failed again and again: {often[1]}"
    else:
        first = _first_reason(text)
    return InvalidInput(f"{table}: Spark gave up; {first.strip()[:LONGEST]}")


def _first_reason(text: str) -> str:
    """The reason that Spark gives, or else the first informative line."""
    if reason := re.search(REASON, text):
        return reason[0]
    lines = (line.strip(" :") for line in text.splitlines())
    return next((line for line in lines if line and HEADER not in line), "it does not say why")
