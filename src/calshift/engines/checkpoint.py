"""Checkpoints: the sums of a long run in a file, so that an interrupted run can be continued.

A run is a sequence of passes over its samples. The sums of the completed passes and the partial sum
of the current one are all there is to keep: arrays in one npz file, kilobytes if classes are few.
"""

from __future__ import annotations

import io
import json
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from calshift._core.addable import Tally
from calshift._core.atomic_write import write_content
from calshift._core.outputs import check_writable
from calshift.errors import InvalidInput
from calshift.io.formats.base import check_regular

EVERY = 30.0  # seconds between two savings
VERSION = 2
MOST_BYTES = 2**26  # of a sum that is kept; writing a larger one takes longer than its pass
KINDS = {"tally": Tally, "list": list, "tuple": tuple}

Completed = tuple[str, Any]  # the name of a pass, and its sum; None where that cannot be kept
Current = tuple[int, str, int, Any]  # number and name of a pass, batches so far, their sum
NOTHING: Current = (-1, "", 0, 0)


class Checkpoint:
    """The passes of one run; without a ``path`` nothing is kept.

    ``fingerprint`` identifies the run: a file with the sums of other data or options is refused.
    """

    def __init__(self, path: str | Path | None = None, fingerprint: str = "") -> None:
        self.path = None if path is None else Path(path)
        self.fingerprint = fingerprint
        self.earlier: list[Completed] = []  # the passes of an interrupted run
        self.interrupted = NOTHING  # the pass it stopped in
        self.completed: list[Completed] = []
        self.current = NOTHING
        self.saved = time.monotonic()
        if self.path is not None:
            check_writable(self.path)
            if self.path.exists():
                check_regular(self.path, self.path.stat().st_mode)
                self._load()

    def begin(self, name: str = "") -> tuple[bool, int, Any]:
        """Whether the pass that begins was completed before, batches to skip, and their sum.

        Passes come in the same order in every run; the first that differs from the earlier run
        ends what can be used of it.
        """
        number = len(self.completed)
        self.current = (number, name, 0, 0)
        if number < len(self.earlier):
            before, total = self.earlier[number]
            if before == name and total is not None:
                return True, 0, total
            if before != name:
                self.earlier, self.interrupted = self.earlier[:number], NOTHING
        if self.interrupted[:2] == (number, name):
            self.current = self.interrupted
        return False, self.current[2], self.current[3]

    def note(self, batches: int, total: Any) -> None:
        """Record the sum of so many batches of this pass; a failure to save it ends no run."""
        self.current = (*self.current[:2], batches, total)
        if self.path is not None and time.monotonic() - self.saved > EVERY:
            self.saved = time.monotonic()
            with suppress(InvalidInput):
                self.save()

    def end(self, total: Any, name: str = "") -> None:
        """Record the sum of the completed pass."""
        kept = self.path is not None and _pack(total, {}) is not None
        self.completed.append((name, total if kept else None))

    def save(self) -> None:
        """Write all sums so far in one step; nothing if no batch was read."""
        completed = self.completed + self.earlier[len(self.completed) :]
        current = self.current if self.current[0] == len(completed) else self.interrupted
        if self.path is None or not (completed or current[2]):
            return
        arrays: dict[str, np.ndarray] = {}
        partial = _pack(current[3], arrays) if current[0] == len(completed) else None
        contents = {
            "version": VERSION,
            "fingerprint": self.fingerprint,
            "completed": [[name, _pack(total, arrays)] for name, total in completed],
            "current": None if partial is None else [*current[:3], partial],
        }
        arrays["contents"] = np.array(json.dumps(contents))
        file = io.BytesIO()
        np.savez(file, **arrays)  # type: ignore[arg-type]
        write_content(self.path, file.getvalue())
        self.saved = time.monotonic()

    def close(self) -> None:
        """Delete the file: the run is complete."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)

    def _load(self) -> None:
        assert self.path is not None
        try:
            with open(self.path, "rb") as file, np.load(file, allow_pickle=False) as arrays:
                contents = json.loads(str(arrays["contents"]))
                same = (contents["version"], contents["fingerprint"]) == (VERSION, self.fingerprint)
                completed, current = contents["completed"], contents["current"]
                earlier = [(name, one and _unpack(one, arrays)) for name, one in completed]
                interrupted = current and (*current[:3], _unpack(current[3], arrays))
        except Exception as problem:
            msg = f"{self.path} is not a checkpoint of calshift: delete it, or choose another path"
            raise InvalidInput(msg) from problem
        if not same:
            msg = (
                f"{self.path} is the checkpoint of another run (other data, options or version): "
                "delete it, or choose another path"
            )
            raise InvalidInput(msg)
        self.earlier, self.interrupted = earlier, interrupted or NOTHING


def _pack(total: Any, arrays: dict[str, np.ndarray]) -> Any:
    """The structure of a sum as plain values, its arrays added to ``arrays``.

    None if it is too large or contains values of other types: its pass is made again.
    """
    own: dict[str, np.ndarray] = {}
    try:
        packed = _pack_value(total, own, f"{len(arrays)}-")
    except TypeError:
        return None
    if sum(array.nbytes for array in own.values()) > MOST_BYTES:
        return None
    arrays.update(own)
    return packed


def _pack_value(value: Any, arrays: dict[str, np.ndarray], prefix: str) -> Any:
    for name, kind in KINDS.items():
        if type(value) is kind:
            parts = value.items() if isinstance(value, dict) else enumerate(value)
            packed = [[key, _pack_value(one, arrays, prefix)] for key, one in parts]
            return {"kind": name, "parts": packed}
    numeric = isinstance(value, np.ndarray | np.generic | float)
    if numeric and np.asarray(value).dtype.kind in "fiub":
        name = f"{prefix}{len(arrays)}"
        arrays[name] = np.asarray(value)
        return {"kind": "array" if isinstance(value, np.ndarray) else "number", "name": name}
    if isinstance(value, int | bool | str):
        return {"kind": "plain", "value": value}
    raise TypeError(type(value))


def _unpack(packed: Any, arrays: Any) -> Any:
    kind = packed["kind"]
    if kind == "plain":
        return packed["value"]
    if kind in ("array", "number"):
        value = arrays[packed["name"]]
        return value if kind == "array" else value[()]
    parts = [(key, _unpack(one, arrays)) for key, one in packed["parts"]]
    return Tally(parts) if kind == "tally" else KINDS[kind](value for _, value in parts)
