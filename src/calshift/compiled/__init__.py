"""Optional compiled versions of a few functions, made with numba (`pip install calshift[fast]`).

CALSHIFT_COMPILED=0 turns them off. benchmarks/run.py shows what they save.
"""

from __future__ import annotations

import logging
import os
from functools import cache
from importlib.util import find_spec
from types import ModuleType

SWITCH = "CALSHIFT_COMPILED"


@cache
def loops() -> ModuleType | None:
    """The compiled functions, or None where they are turned off or numba cannot be imported."""
    if os.environ.get(SWITCH, "1") == "0" or find_spec("numba") is None:
        return None
    try:
        from calshift.compiled import rows  # late: importing numba takes half a second
    except ImportError as error:  # a numba that does not fit its own dependencies
        logging.getLogger(__name__).debug("compiled functions are off: %s", error)
        return None
    return rows
