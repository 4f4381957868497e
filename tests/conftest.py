"""One thread for linear algebra, before numpy is loaded: the matrices here are small.

Hypothesis measures no time: what comes first in a process may compile loops.
"""

import os

from hypothesis import settings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "agg")

settings.register_profile("calshift", deadline=None)
settings.load_profile("calshift")
