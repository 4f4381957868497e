"""The part of benchmarks/run.py that compares with other packages."""

from __future__ import annotations

from speed_children import Series, Worker, measured_in_turns, started
from speed_rows import Row, alone, comparison
from speed_setup import NUMBA, SOURCE, Asked, Setup

CLASSWISE = ("scikit-learn", "torchmetrics", "netcal", "MAPIE", "uncertainty-calibration")
PEERS = {  # our call: the peers' cases, and what they are called
    "top-label as peers": {"top-label": "torchmetrics"},
    "binary as peers": {"binary": "torchmetrics"},
    "classwise as peers": {name: name for name in CLASSWISE},
    "given as peers": {"authors": "the authors' loop"},
    "priors as peers": {"quapy": "quapy EMQ", "quapy to 1e-8": "quapy EMQ, epsilon=1e-8"},
}
NAMES = {
    "top-label as peers": 'calibration_error(kind="top-label")',
    "binary as peers": 'calibration_error(kind="binary")',
    "classwise as peers": "calibration_error",
    "given as peers": "target_calibration_error, weights given, check=False",
    "priors as peers": 'label_shift_weights(method="em")',
}
LIMITS = {  # the most times the peer's CPU time, with numba; without there is none
    "top-label as peers": "1.5",
    "binary as peers": "1.5",
    "classwise as peers": "1",
    "given as peers": "1/300",
    "priors as peers": "1",
}
FEW, FEW_LIMIT = 1000, "4"  # rows of the smallest samples, and their limit beside torchmetrics
FLOOR = 0.0008  # seconds of a call of 100 rows
MOST_SORTS, MOST_BYTES = "3", 600e6


def peer_rows(setup: Setup) -> list[Row]:
    """Ours with an interval, each peer's, in its own environment, without (speed_peers.py). The
    data are softmax of normal logits, too confident. Answers: the root of the squared error, ECE
    where the peer has L1, or the first class's share. At the end calls of few rows, and np.sort of
    source and target.
    """
    rows = []
    for what in setup.sizes["peers"]:
        for case, name in PEERS[what[0]].items():
            rows += compared(what, name, beside_peer(setup, what, case))
    return rows + floor_rows(setup) + sort_rows(setup)


def beside_peer(setup: Setup, what: Asked, case: str) -> list[Series]:
    """Ours with numba, ours without, and the peer, in processes of their own."""
    ours = [Worker.of_version(SOURCE, numba) for numba in NUMBA]
    with started(*ours, Worker.of_peer(setup.peers.make(), case)) as workers:
        return measured_in_turns(workers, [what], setup.pairs)[0]


def compared(what: Asked, peer: str, found: list[Series]) -> list[Row]:
    few = what[1] <= FEW and what[0] in ("top-label as peers", "binary as peers")
    limit = FEW_LIMIT if few else LIMITS[what[0]]
    shown = (NAMES[what[0]], *what[1:])
    return [
        comparison(shown, numba, peer, mine, found[-1], limit if numba else "")
        for numba, mine in zip(NUMBA, found, strict=False)
    ]


def floor_rows(setup: Setup) -> list[Row]:
    """Calls of few rows."""
    rows = []
    with setup.this_version() as workers:
        for what in setup.sizes["floor"]:
            (found,) = measured_in_turns(workers, [what], setup.pairs)
            for numba, mine in zip(NUMBA, found, strict=True):
                rows.append(alone((NAMES[what[0]], *what[1:]), numba, mine, FLOOR))
    return rows


def sort_rows(setup: Setup) -> list[Row]:
    """Given weights beside np.sort of both matrices."""
    rows = []
    for _, n, K in setup.sizes["sort"]:
        asked = [(case, n, K) for case in ("given as peers", "sort")]
        with setup.this_version() as workers:
            found = zip(NUMBA, *measured_in_turns(workers, asked, setup.pairs), strict=True)
        for numba, mine, its in found:
            limits = {"limit": MOST_SORTS, "most": MOST_BYTES} if numba else {}
            name = (NAMES["given as peers"], n, K)
            rows.append(comparison(name, numba, "np.sort", mine, its, **limits))
    return rows
