"""Fuzzing of the public functions and of the readers of files.

`python -m tests.fuzz --minutes 30 --seed 1` draws calls and damaged files, runs them in forked
processes, and checks every outcome:

- `strategies/` draws what is passed: samples, hostile arrays and containers, labels, options, saved
  recalibrators, files and their mutations. A case depends on its seed and number alone
- `calls.py` combines them into calls of public functions; `relations.py` has pairs of calls whose
  results must agree (order of rows, batches, repeated rows, compiled functions)
- `files.py` opens a damaged file by the Python functions or by a command
- `oracles/` says what an outcome may be (`outcomes.py`): a result that follows the rules of its
  class (`results.py`), or an error that names the argument
- `workers.py` runs cases in forked processes with limits of time and memory, so that a crash is a
  finding and not the end; `session.py` schedules them, and keeps one finding for each signature
- `faults.py` plants faults, which `test_fuzz.py` must find; `findings/` has inputs that failed
  once, which `replays.py` and `test_regressions.py` run again

`--case API:SEED:NUMBER` or `--case FILE:SEED:NUMBER` repeats one case with its traceback.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("POLARS_MAX_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "agg")
