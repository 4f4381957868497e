"""Speed: time and memory of calshift, beside limits and beside other packages in the same run.

    python benchmarks/run.py [--quick] [--only PART] [--peers DIR]

Parts: classwise, labelled, label-free, growth, streamed. Every case is a process of its own with
one thread, warmed up on few rows: the best of 5 runs or more, of fewer where they take over 40 s.
"memory" is the most that the first run held beside the inputs. Data: softmax of normal logits in
float32, too confident, n = m rows in source and target; the class weights given are mild. Ours come
with an interval, no peer's do. Their environment is made in DIR, torch first; speed_peers.py says
what each of them computes. A peer is stopped after 120 s. "answer": the root of the squared error,
ECE where the peer has L1, or the first class's share. Limits are for the full sizes; with --quick
or --only the table goes to benchmarks/cache.
"""

from __future__ import annotations

import argparse
import os
import platform
from pathlib import Path

import numpy as np
import tables
from speed_children import HERE, Measured, Peers, in_turns, ours

MOST_SORTS, MOST_BYTES, LEAST_AUTHORS, MOST_GROWTH = 3, 600e6, 300, 1.2  # the limits
MOST_BINARY, MOST_PARQUET, LEAST_ROWS = 1e9, 1.5e9, 3e6  # of streams: bytes, rows a second
PEERS = ("scikit-learn", "torchmetrics", "netcal", "MAPIE", "uncertainty-calibration")
HEAD = ["what", "size", "time", "memory", "answer", "ratio", "limit", "met"]
SIZES = {
    "classwise": [(50_000, 1000)],
    "labelled": [(10_000, 10), (10_000, 100), (50_000, 1000)],
    "label-free": [(10_000, 10), (5_000, 100)],
    "growth": [(10**5, 2), (10**6, 2), (10**7, 2)],
    "streamed": [(10**8, 2), (10**7, 100)],
}
QUICK = {
    "classwise": [(2_000, 50)],
    "labelled": [(1_000, 10), (2_000, 50)],
    "label-free": [(1_000, 5)],
    "growth": [(10**4, 2), (10**5, 2)],
    "streamed": [(10**6, 2), (10**5, 100)],
}
STREAMS = {
    "binary": "binary target made on the fly, source 1e6, weights given, check=False",
    "binary-default": "the same, default weights and check",
    "parquet": "target in parquet, source 1e5, weights given, check=False",
}
Row = list[str]
Sizes = list[tuple[int, int]]


def row(what: str, n: int, K: int, found: Measured, *more: str) -> Row:
    """A line of the table; more: ratio, limit, met. A failure has none."""
    more = more if more and not np.isnan(found.seconds) else ("", "", "")
    return [what, f"{n:,} x {K}" if K > 2 else f"{n:,}", *found.cells(), *more]


def said(met: bool) -> str:
    return "yes" if met else "no"


def compared(what: str, n: int, K: int, found: Measured, mine: Measured, least: float = 1) -> Row:
    """A peer's line: how many times our time, and whether that is enough."""
    ratio = found.over(mine)
    if np.isnan(ratio):
        return row(what, n, K, found)
    more = "> " if found.failed else ""
    limit = f"≥ {least:g} x" if least > 1 else "> 1 x"
    return row(what, n, K, found, f"{more}{ratio:.1f} x ours", limit, said(ratio > least))


def classwise_rows(sizes: Sizes, peers: Peers) -> list[Row]:
    rows = []
    for n, K in sizes:
        mine, by_sorting = in_turns("classwise", n, K, "ours", "sort")
        ratio = mine.over(by_sorting)
        met = ratio <= MOST_SORTS and mine.bytes <= MOST_BYTES
        limit = f"≤ {MOST_SORTS} x, ≤ {MOST_BYTES / 1e6:.0f} MB"
        what = "classwise L2 with interval, weights given, check=False"
        rows.append(row(what, n, K, mine, f"{ratio:.2f} x np.sort", limit, said(met)))
        rows.append(row("np.sort(axis=0) of both matrices", n, K, by_sorting))
        mine, by_sorting = in_turns("classwise", n, K, "ours", "sort", CALSHIFT_COMPILED="0")
        ratio = f"{mine.over(by_sorting):.2f} x np.sort"
        rows.append(row("the same in numpy alone, without numba", n, K, mine, ratio, "", ""))
    return rows


def labelled_rows(sizes: Sizes, peers: Peers) -> list[Row]:
    rows = []
    for n, K in sizes:
        mine = ours("labelled", n, K)
        rows.append(row("calibration_error(p, y)", n, K, mine))
        rows += [compared(name, n, K, peers.measured(name, n, K), mine) for name in PEERS]
    for n, K in sizes:
        mine = ours("top-label", n, K)
        rows.append(row('calibration_error(p, y, kind="top-label")', n, K, mine))
        found = peers.measured("top-label", n, K)
        rows.append(compared("torchmetrics, top label", n, K, found, mine))
    return rows + prior_rows(sizes, peers)


def prior_rows(sizes: Sizes, peers: Peers) -> list[Row]:
    """quapy has no calibration error of labelled predictions, but class priors."""
    rows = []
    for n, K in sizes:
        mine = ours("priors", n, K)
        rows.append(row('label_shift_weights(method="em")', n, K, mine))
        for name, what in (("quapy", "quapy EMQ"), ("quapy to 1e-8", "quapy EMQ, epsilon=1e-8")):
            rows.append(compared(what, n, K, peers.measured(name, n, K), mine))
    return rows


def label_free_rows(sizes: Sizes, peers: Peers) -> list[Row]:
    rows = []
    for n, K in sizes:
        mine = ours("label-free", n, K)
        rows.append(row("label-free with interval, weights given, check=False", n, K, mine))
        found = peers.measured("authors", n, K)
        rows.append(compared("the authors' loop, no interval", n, K, found, mine, LEAST_AUTHORS))
    return rows


def growth_rows(sizes: Sizes, peers: Peers) -> list[Row]:
    """Time per row beside the least of the smaller sizes."""
    rows = []
    for case in ("binary, weights given, check=False", "binary, default weights and check"):
        least = np.inf
        for n, K in sizes:
            mine = ours("binary" if "given" in case else "binary-default", n, K)
            each = mine.seconds / n
            more = [f"{each * 1e9:.0f} ns a row", "", ""]
            if np.isfinite(least):
                more[0] += f", {each / least:.2f} x"
                more[1:] = f"≤ {MOST_GROWTH} x a row", said(each <= MOST_GROWTH * least)
            rows.append(row(case, n, K, mine, *more))
            least = np.fmin(least, each)
    return rows


def streamed_rows(sizes: Sizes, peers: Peers) -> list[Row]:
    """Runs on more rows than are held: the target is read batch by batch, in every pass."""
    rows = []
    for case, what in STREAMS.items():
        for n, K in sizes[1:] if case == "parquet" else sizes[:1]:
            mine = ours(case, n, K, "speed_streams.py")
            speed = n / mine.seconds
            most, least = (MOST_PARQUET, 0.0) if case == "parquet" else (MOST_BINARY, LEAST_ROWS)
            limit = f"≤ {most / 1e6:.0f} MB" + (f", ≥ {least / 1e6:g} M rows/s" if least else "")
            met = said(mine.bytes <= most and speed >= least)
            rows.append(row(what, n, K, mine, f"{speed / 1e6:.2f} M rows/s", limit, met))
    return rows


PARTS = {
    "classwise": classwise_rows,
    "labelled": labelled_rows,
    "label-free": label_free_rows,
    "growth": growth_rows,
    "streamed": streamed_rows,
}


def machine() -> str:
    load = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start"
    return f"Python {platform.python_version()}, numpy {np.__version__}; {load}."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--peers", type=Path, default=HERE / "cache" / "peers", metavar="DIR")
    asked = parser.parse_args()
    sizes, peers, rows = QUICK if asked.quick else SIZES, Peers(asked.peers), []
    about = f"{__doc__}\n{machine()}\n"
    for name in [asked.only] if asked.only else PARTS:
        rows += PARTS[name](sizes.get(name, []), peers)
    if asked.quick or asked.only:
        tables.RESULTS = HERE / "cache"
    tables.write_table("speed", about + peers.versions(), HEAD, rows)


if __name__ == "__main__":
    main()
