"""Sums of a long run kept in a file, so that an interrupted run goes on where it stopped.

A run is a row of passes over its samples. What a pass has summed up so far, and what earlier ones
found, is all there is to keep: arrays in one npz file, kilobytes if the classes are few.
"""

from __future__ import annotations

import io
import json
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from calshift._core.addable import Sums, Tally
from calshift._core.atomic_write import check_writable, write_content
from calshift.errors import InvalidInput

EVERY = 30.0  # seconds between two savings
VERSION = 1
MOST_BYTES = 2**26  # of a sum that is kept; writing a larger one takes longer than its pass
KINDS = {"sums": Sums, "tally": Tally, "list": list, "tuple": tuple}

Made = tuple[str, Any]  # what a pass was for, and its sum; None where that cannot be kept
Begun = tuple[int, str, int, Any]  # number of the pass, what it is for, batches so far, their sum
NOTHING: Begun = (-1, "", 0, 0)


class Journal:
    """The passes of one run; ``path`` None keeps nothing.

    ``mark`` tells runs apart: sums of other data or another question are refused.
    """

    def __init__(self, path: str | Path | None = None, fingerprint: str = "") -> None:
        self.path = None if path is None else Path(path)
        self.fingerprint = fingerprint
        self.past: list[Made] = []  # the passes of an earlier run
        self.part = NOTHING  # the one it stopped in
        self.done: list[Made] = []
        self.now = NOTHING
        self.saved = time.monotonic()
        if self.path is not None:
            check_writable(self.path)
            if self.path.exists():
                self._load()

    def begin(self, what: str = "") -> tuple[bool, int, Any]:
        """Whether the pass that begins was made before, batches to skip, and their sum.

        Passes come in the same order in every run; one that is for something else than the one
        noted ends what can be used of the earlier run.
        """
        number = len(self.done)
        self.now = (number, what, 0, 0)
        if number < len(self.past):
            before, total = self.past[number]
            if before == what and total is not None:
                return True, 0, total
            if before != what:
                self.past, self.part = self.past[:number], NOTHING
        if self.part[:2] == (number, what):
            self.now = self.part
        return False, self.now[2], self.now[3]

    def note(self, batches: int, total: Any) -> None:
        """So many batches of this pass are in the sum; that they cannot be saved ends no run."""
        self.now = (*self.now[:2], batches, total)
        if self.path is not None and time.monotonic() - self.saved > EVERY:
            self.saved = time.monotonic()
            with suppress(InvalidInput):
                self.save()

    def end(self, total: Any, what: str = "") -> None:
        """The pass is complete."""
        kept = self.path is not None and _packed_or_none(total, {}) is not None
        self.done.append((what, total if kept else None))

    def save(self) -> None:
        """Everything so far, whole or not at all; nothing if no batch was read."""
        done = self.done + self.past[len(self.done) :]
        begun = self.now if self.now[0] == len(done) else self.part
        if self.path is None or not (done or begun[2]):
            return
        arrays: dict[str, np.ndarray] = {}
        part = _packed_or_none(begun[3], arrays) if begun[0] == len(done) else None
        told = {
            "version": VERSION,
            "fingerprint": self.fingerprint,
            "done": [[what, _packed_or_none(total, arrays)] for what, total in done],
            "part": None if part is None else [*begun[:3], part],
        }
        arrays["told"] = np.array(json.dumps(told))
        file = io.BytesIO()
        np.savez(file, **arrays)  # type: ignore[arg-type]
        write_content(self.path, file.getvalue())
        self.saved = time.monotonic()

    def close(self) -> None:
        """The run is over: nothing is left to go on with."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)

    def _load(self) -> None:
        assert self.path is not None
        try:
            with open(self.path, "rb") as file, np.load(file, allow_pickle=False) as arrays:
                told = json.loads(str(arrays["told"]))
                version, fingerprint, part = told["version"], told["fingerprint"], told["part"]
                past = [(what, one and _unpacked(one, arrays)) for what, one in told["done"]]
                begun = part and (*part[:3], _unpacked(part[3], arrays))
        except Exception as problem:
            msg = f"{self.path} is no checkpoint of a run: delete it, or name another file"
            raise InvalidInput(msg) from problem
        if version != VERSION or fingerprint != self.fingerprint:
            msg = (
                f"{self.path} is the checkpoint of another run (other data, options or version): "
                "delete it, or name another file"
            )
            raise InvalidInput(msg)
        self.past, self.part = past, begun or NOTHING


class _ForeignError(Exception):
    """A sum of a kind that is not kept."""


def _packed_or_none(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """None if the sum cannot be kept: its pass is made again."""
    own: dict[str, np.ndarray] = {}
    try:
        packed = _packed(value, own, f"{len(arrays)}-")
    except _ForeignError:
        return None
    if sum(array.nbytes for array in own.values()) > MOST_BYTES:
        return None
    arrays.update(own)
    return packed


def _packed(value: Any, arrays: dict[str, np.ndarray], prefix: str) -> Any:
    """The structure as plain values, with its arrays put aside by name."""
    for name, kind in KINDS.items():
        if type(value) is kind:
            parts = value.items() if isinstance(value, dict) else enumerate(value)
            packed = [[key, _packed(one, arrays, prefix)] for key, one in parts]
            return {"kind": name, "parts": packed}
    numeric = isinstance(value, np.ndarray | np.generic | float)
    if numeric and np.asarray(value).dtype.kind in "fiub":
        name = f"{prefix}{len(arrays)}"
        arrays[name] = np.asarray(value)
        return {"kind": "array" if isinstance(value, np.ndarray) else "number", "name": name}
    if isinstance(value, int | bool | str):
        return {"kind": "plain", "value": value}
    raise _ForeignError


def _unpacked(told: Any, arrays: Any) -> Any:
    if told["kind"] == "plain":
        return told["value"]
    if told["kind"] in ("array", "number"):
        value = arrays[told["name"]]
        return value if told["kind"] == "array" else value[()]
    parts = [(key, _unpacked(one, arrays)) for key, one in told["parts"]]
    if told["kind"] == "tally":
        return Tally(parts)
    return KINDS[told["kind"]](value for _, value in parts)
