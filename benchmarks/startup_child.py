"""Where the time of `calshift check SOURCE TARGET` goes: prints CPU seconds by stage as JSON.

Packages are imported one after the other, each with what it needs besides those before it. One
thread of OpenBLAS and few collections, as the command line has them.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import io
import json
import os
import sys
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
gc.set_threshold(50_000)
STAGES = ("numpy", "click", "pyarrow.parquet", "scipy.special", "scipy.sparse")

seconds = {"interpreter": time.process_time()}


def note(what: str) -> None:
    seconds[what] = time.process_time() - sum(seconds.values())


for name in STAGES:
    importlib.import_module(name)
    note(name)
importlib.import_module("calshift.cli.commands")
note("calshift's own modules")
before = set(sys.modules)
from calshift.cli.main import status  # noqa: E402

for _ in ("first", "again"):
    with contextlib.redirect_stdout(io.StringIO()):
        code = status(["check", *sys.argv[1:]])
    assert code in (0, 3), code
    note("computation, with imports that it makes" if _ == "first" else "the same again")
late = sorted({name.split(".")[0] for name in set(sys.modules) - before})
print(json.dumps([seconds, [name for name in late if name in ("numba", "narwhals", "pandas")]]))
