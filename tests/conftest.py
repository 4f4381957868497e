"""One thread for linear algebra, before numpy is loaded: the matrices here are small."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "agg")
