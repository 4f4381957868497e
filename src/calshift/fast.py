"""Whether the innermost loops are compiled: with numba, `pip install calshift[fast]`.

CALSHIFT_COMPILED=0 goes without. benchmarks/run.py shows what it brings.
"""

from __future__ import annotations

import os
from functools import cache
from importlib.util import find_spec
from types import ModuleType

SWITCH = "CALSHIFT_COMPILED"


@cache
def loops() -> ModuleType | None:
    """The compiled loops, or None where they are not wanted or numba is absent."""
    if os.environ.get(SWITCH, "1") == "0" or find_spec("numba") is None:
        return None
    try:
        from calshift import loops as found  # late: importing numba takes half a second
    except Exception:  # a numba that does not fit its own dependencies is as good as none
        return None
    return found
