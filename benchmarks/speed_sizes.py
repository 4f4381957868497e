"""What benchmarks/run.py calls: (case, rows, classes) by part."""

from __future__ import annotations

from speed_setup import Asked

SIZES = [(1_000, 3), (10_000, 10), (10_000, 100), (100_000, 10), (300_000, 2), (10_000, 1000)]
ESTIMATES = ("default", "given", "labelled")
OPTIONS = ("default, norm=1", "default, bins=15")
MOST_CLASSES = 100  # for other options


def estimates(sizes: list[tuple[int, int]]) -> list[Asked]:
    """The calls with and without interval, and the default one with other options."""
    calls = [call + more for call in ESTIMATES for more in ("", ", interval=None")]
    others = [(call, n, K) for call in OPTIONS for n, K in sizes if K <= MOST_CLASSES]
    return [(call, n, K) for call in calls for n, K in sizes] + others


FULL = {
    "default": estimates(SIZES),
    "others": [
        ("recalibrate", 10_000, 10),
        ("recalibrate", 10_000, 100),
        ("recalibrate", 2_000, 1000),
        ("monitor", 20_000, 10),
        ("calshift check", 1_000, 3),
        ("calshift recalibrate", 1_000, 3),
        ("calshift monitor", 1_000, 3),
    ],
    "windows": [("monitor", 365_000, 10)],
    "growth": [("default", 10**5, 2), ("default", 10**6, 2), ("default", 10**7, 2)],
    "peers": [
        ("top-label as peers", 1_000, 2),
        ("top-label as peers", 10_000, 10),
        ("top-label as peers", 10**6, 2),
        ("binary as peers", 1_000, 1),
        ("binary as peers", 10_000, 1),
        ("binary as peers", 10**6, 1),
        ("classwise as peers", 10_000, 10),
        ("classwise as peers", 10_000, 100),
        ("classwise as peers", 50_000, 1000),
        ("priors as peers", 10_000, 10),
        ("priors as peers", 10_000, 100),
        ("priors as peers", 50_000, 1000),
        ("given as peers", 10_000, 10),
        ("given as peers", 5_000, 100),
    ],
    "floor": [
        ("top-label as peers", 100, 10),
        ("binary as peers", 100, 1),
        ("classwise as peers", 100, 10),
    ],
    "sort": [("given as peers", 50_000, 1000)],
    "threads": [("given", 50_000, 1000), ("default", 100_000, 10)],
    "streams": [("parquet", 10**7, 10), ("made, given", 10**8, 2), ("made, default", 10**8, 2)],
}
QUICK = {
    "default": estimates([(1_000, 3), (2_000, 10)]),
    "others": [
        ("recalibrate", 1_000, 3),
        ("monitor", 5_000, 3),
        ("calshift check", 1_000, 3),
        ("calshift recalibrate", 1_000, 3),
        ("calshift monitor", 1_000, 3),
    ],
    "windows": [("monitor", 10_000, 3)],
    "growth": [("default", 10**4, 2), ("default", 10**5, 2)],
    "peers": [
        ("top-label as peers", 1_000, 2),
        ("binary as peers", 1_000, 1),
        ("classwise as peers", 1_000, 5),
        ("priors as peers", 1_000, 5),
        ("given as peers", 1_000, 5),
    ],
    "floor": [("top-label as peers", 100, 10), ("binary as peers", 100, 1)],
    "sort": [("given as peers", 2_000, 50)],
    "threads": [("given", 2_000, 50), ("default", 2_000, 3)],
    "streams": [("parquet", 10**5, 10), ("made, given", 10**6, 2), ("made, default", 10**6, 2)],
}
