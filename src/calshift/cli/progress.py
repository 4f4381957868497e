"""Progress bars on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any

import click

UNKNOWN = 10**15  # length of a bar before the rows were counted

Progress = Callable[[int, int], Any]


@contextmanager
def progress_bar(label: str) -> Iterator[Progress]:
    """A callback that shows a bar on a terminal from its first call."""
    with ExitStack() as stack:
        bars: list[Any] = []

        def update(done: int, total: int) -> None:
            if not sys.stderr.isatty():
                return
            if not bars:
                bar = click.progressbar(length=total, label=label, file=sys.stderr)
                bars.append(stack.enter_context(bar))
            bars[0].update(done - bars[0].pos)

        yield update


@contextmanager
def pass_bar() -> Iterator[Progress]:
    """A callback that shows a bar with the number of the pass on a terminal."""
    with ExitStack() as stack:
        yield _PassBar(stack)


def estimate_progress(in_passes: bool, interval: Any) -> AbstractContextManager[Progress | None]:
    """A bar for what takes long: passes over files, or a bootstrap."""
    if in_passes:
        return pass_bar()
    return progress_bar("bootstrap") if interval == "bootstrap" else nullcontext()


class _PassBar:
    """One bar that every pass fills again; a pass begins when the number of rows falls."""

    def __init__(self, stack: ExitStack) -> None:
        self.stack = stack
        self.bar: Any = None
        self.count = self.done = 0

    def __call__(self, done: int, total: int) -> None:
        if not sys.stderr.isatty():
            return
        if self.bar is None:
            self.bar = click.progressbar(length=UNKNOWN, file=sys.stderr)
            self.stack.enter_context(self.bar)
        if self.count == 0 or done <= self.done:
            self._begin(total)
        self.done = done
        self.bar.label = f"pass {self.count}" + ("" if total else f", {done:,} rows")
        self.bar.update(done - self.bar.pos)

    def _begin(self, total: int) -> None:
        """Empty the bar; in the first pass, before the rows are counted, it has no end."""
        self.count += 1
        self.bar.pos, self.bar.length, self.bar.finished = 0, total or UNKNOWN, False
        self.bar.show_percent = self.bar.show_eta = bool(total)
