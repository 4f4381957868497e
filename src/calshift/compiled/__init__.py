"""Optional compiled versions of a few functions, made with numba (`pip install calshift[fast]`).

A function marked with `fastest` has a version of the same name and signature in
`calshift.compiled.functions`, which is called instead for large arrays where numba can be imported.
CALSHIFT_COMPILED=0 turns all of them off.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from functools import cache, wraps
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, cast

import numpy as np

SWITCH = "CALSHIFT_COMPILED"
LEAST_SIZE = 2**16  # numbers of an array, from which compiled functions are called
GRID_CELLS = 9985  # of calshift._core.score_grid: tables of these are large for few rows too
UNREADABLE: set[str] = set()  # functions whose compiled version failed

Function = TypeVar("Function", bound=Callable[..., Any])


@cache
def compiled_functions() -> ModuleType | None:
    """The module of compiled functions, or None where they are turned off or numba is missing."""
    if os.environ.get(SWITCH, "1") == "0" or find_spec("numba") is None:
        return None
    try:
        from calshift.compiled import functions  # late: importing numba takes half a second
    except ImportError as error:  # a numba that does not match its own dependencies
        logging.getLogger(__name__).debug("compiled functions are off: %s", error)
        return None
    _announce_compilation(functions)
    return functions


def _announce_compilation(functions: ModuleType) -> None:
    """Log that the next calls compile, if numba's folder has nothing newer than the functions."""
    source = Path(functions.__file__ or "")
    folder = Path(functions.factor_band.stats.cache_path)
    made = [file.stat().st_mtime for file in folder.glob(f"{source.stem}.*.nbi")]
    if max(made, default=0.0) < source.stat().st_mtime:
        logging.getLogger(__name__).info(
            "compiling functions for the first time, which takes some seconds once"
        )


def _is_worthwhile(arguments: tuple[Any, ...]) -> bool:
    """Whether an array is so large that compiled code pays.

    That alone decides, so that a call gives the same bits whatever was called before.
    """
    arrays = [one for one in arguments if isinstance(one, np.ndarray)]
    return any(one.size >= LEAST_SIZE and one.shape[-1] != GRID_CELLS for one in arrays)


def fastest(function: Function) -> Function:
    """Replace a numpy function by one that calls its compiled version where there is one.

    The numpy function stays available as ``__wrapped__``. It is called too where machine code
    cannot be read from numba's cache, such as a truncated file.
    """

    @wraps(function)
    def call(*arguments: Any) -> Any:
        module = compiled_functions() if _is_worthwhile(arguments) else None
        if module is None or function.__name__ in UNREADABLE:
            return function(*arguments)
        try:
            return getattr(module, function.__name__)(*arguments)
        except MemoryError:
            raise
        except Exception as problem:
            _report_unreadable(function.__name__, getattr(module, "__file__", ""), problem)
            return function(*arguments)

    return cast(Function, call)


def _report_unreadable(name: str, module: str, problem: Exception) -> None:
    """Log once that compiled code is not used, and what to do."""
    if not UNREADABLE:
        folder = os.environ.get(
            "NUMBA_CACHE_DIR", os.path.join(os.path.dirname(module), "__pycache__")
        )
        logging.getLogger(__name__).warning(
            "compiled functions are not used (%s: %s); delete %s, where numba keeps them",
            type(problem).__name__, problem, folder,
        )  # fmt: skip
    UNREADABLE.add(name)
