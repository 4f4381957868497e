"""Parts of benchmarks/run.py that measure this version alone: growth, threads, windows."""

from __future__ import annotations

from statistics import median

import numpy as np
from speed_children import measured_in_turns
from speed_rows import Row, alone, first_cells, milliseconds, said, spread
from speed_setup import NUMBA, Setup

A_WINDOW, WINDOW = 0.020, 1000  # seconds, rows
MOST_GROWTH, LEAST_THREADS = 1.2, 1.6


def window_rows(setup: Setup) -> list[Row]:
    """The time of a window, of many: the other version refuses so many."""
    rows = []
    with setup.this_version() as workers:
        for what in setup.sizes["windows"]:
            windows = what[1] // WINDOW
            for numba, series in zip(NUMBA, measured_in_turns(workers, [what], 2)[0], strict=True):
                name = f"monitor, a window of {windows}"
                rows.append(alone((name, *what[1:]), numba, series, A_WINDOW, windows))
    return rows


def growth_rows(setup: Setup) -> list[Row]:
    """Ratio: CPU time of a row over the least of all sizes."""
    asked, rows = setup.sizes["growth"], []
    with setup.this_version() as workers:
        found = measured_in_turns(workers, asked, setup.pairs)
    for k, numba in enumerate(NUMBA):
        each = [series[k]["cpu"] / what[1] for series, what in zip(found, asked, strict=True)]
        for series, what, seconds in zip(found, asked, each, strict=True):
            times = [milliseconds(series[k][clock]) for clock in ("cpu", "wall")]
            ratio = seconds / np.nanmin(each)
            cells = [f"{1e9 * seconds:.0f}", f"{ratio:.2f}", f"≤ {MOST_GROWTH}"]
            memory = f"{series[k]['bytes'] / 1e6:.1f}"
            met = said(ratio <= MOST_GROWTH)
            rows.append([*first_cells(what, numba), *times, *cells, met, memory])
    return rows


def thread_rows(setup: Setup) -> list[Row]:
    """Wall time of n_jobs=1 over that of n_jobs=2, and the share of the latter's CPU time that is
    outside the main thread, which shows the gain that idle processors would bring.
    """
    rows = []
    for what in setup.sizes["threads"]:
        two = (f"{what[0]}, n_jobs=2", *what[1:])
        with setup.this_version() as workers:
            found = measured_in_turns(workers, [what, two], setup.pairs)
        for numba, one, both in zip(NUMBA, *found, strict=True):
            times = [milliseconds(series["wall"]) for series in (one, both)]
            ratios = one.ratios(both, "wall")
            faster = [f"{median(ratios):.2f}", spread(ratios)] if ratios else [both.failed, ""]
            met = said(bool(ratios) and median(ratios) >= LEAST_THREADS)
            share = f"{both['outside'] / both['cpu']:.2f}"
            cells = [*times, *faster, f"≥ {LEAST_THREADS}", met, share]
            rows.append([*first_cells(what, numba), *cells])
    return rows
