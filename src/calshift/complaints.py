"""What Spark complains of, in one line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from calshift.errors import InvalidInput

LONGEST = 300
LACKING = r"ModuleNotFoundError: No module named '([\w.]+)'"
RAISED = r"^([\w.]+(?:Error|Exception|Input)): (.*)$"
OFTEN = r"failed \d+ times, most recent failure: .*?: (?:[\w.$]+: )?(.*)"


@contextmanager
def plainly(table: str) -> Iterator[None]:
    """What Spark complains of, in one line without its stack traces."""
    try:
        yield
    except Exception as problem:
        if not type(problem).__module__.startswith(("pyspark", "py4j")):
            raise
        raise _in_a_line(str(problem), table) from problem


def _in_a_line(text: str, table: str) -> Exception:
    """One complaint without Java's and Python's stack traces."""
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
        first = next((line for line in text.splitlines() if line.strip()), "it does not say why")
    return InvalidInput(f"{table}: Spark gave up; {first.strip()[:LONGEST]}")
