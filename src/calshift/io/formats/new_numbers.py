"""Numbers for the rows of a file that is rewritten, in blocks of any size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from calshift.errors import InvalidInput

Columns = dict[str, np.ndarray]


class NewNumbers:
    """Columns (n,) or (n, K) that come in blocks, and are taken in those of the file."""

    def __init__(self, names: tuple[str, ...], blocks: Iterable[Columns], path: Path) -> None:
        self.names = names
        self.blocks: Iterator[Columns] = iter(blocks)
        self.path = path
        self.waiting: Columns | None = None
        self.taken = 0

    def take(self, rows: int) -> Columns:
        """The columns of the next rows, none of no row; an error if there are fewer."""
        parts: list[Columns] = []
        missing = rows
        while missing and (block := self._next()) is not None:
            parts.append({name: values[:missing] for name, values in block.items()})
            self.waiting = {name: values[missing:] for name, values in block.items()}
            missing -= _count(parts[-1])
        if missing:
            raise self._changed()
        self.taken += rows
        if len(parts) < 2:
            return parts[0] if parts else {}
        return {name: np.concatenate([part[name] for part in parts]) for name in self.names}

    def finish(self) -> int:
        """The number of rows taken; an error if there are more."""
        if self._next() is not None:
            raise self._changed()
        return self.taken

    def _next(self) -> Columns | None:
        """A block of at least one row, which stays if none of it is taken."""
        while self.waiting is None or not _count(self.waiting):
            self.waiting = next(self.blocks, None)
            if self.waiting is None:
                return None
        return self.waiting

    def _changed(self) -> InvalidInput:
        msg = f"{self.path} changed while it was read: it has another number of rows than before"
        return InvalidInput(msg)


def _count(columns: Columns) -> int:
    return len(next(iter(columns.values())))
