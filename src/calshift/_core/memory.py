"""Errors that come from want of memory, by any library."""

from __future__ import annotations

TEXTS = ("allocate memory", "failed to map segment", "failed to launch worker thread")


def is_memory_error(problem: BaseException) -> bool:
    """Whether there was no memory for data, for a library or for a thread."""
    text = str(problem).lower()
    return isinstance(problem, MemoryError) or any(part in text for part in TEXTS)
