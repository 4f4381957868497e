"""Want of memory, and memory that libraries keep."""

from __future__ import annotations

import sys
from contextlib import suppress

TEXTS = ("allocate memory", "failed to map segment", "failed to launch worker thread")


def is_memory_error(problem: BaseException) -> bool:
    """Whether there was no memory for data, for a library or for a thread."""
    text = str(problem).lower()
    return isinstance(problem, MemoryError) or any(part in text for part in TEXTS)


def release_memory() -> None:
    """Return to the system what pyarrow and the allocator of C keep after a computation."""
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
    if sys.platform.startswith("linux"):
        with suppress(Exception):  # an allocator that has no such function
            import ctypes

            ctypes.CDLL(None).malloc_trim(0)
