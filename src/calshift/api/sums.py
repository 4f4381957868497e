"""Sums that add up over batches: edges, and counts on them."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from calshift._core.labels import check_same_names
from calshift.binning.edges import BinEdges
from calshift.binning.events import select_binned_events
from calshift.binning.find_edges import find_edges
from calshift.binning.statistics import ShiftStatistics, source_kernel, target_kernel
from calshift.engines.open import is_engine, open_engine, open_source
from calshift.engines.sample_summary import SampleSummary
from calshift.errors import InvalidInput, NoRows

MOST_CELLS = 20_000_000  # of ShiftStatistics, events x bins x strata


def bin_edges(
    p_target: Any, *, kind: str = "classwise", bins: Any = "auto", binning: str = "mass"
) -> BinEdges:
    """The edges on which `accumulate` counts: one array of inner edges an event.

    Equal mass: ``unique(s[ceil(k m / B)], k = 1..B-1)`` above ``s[0]``, with s the sorted scores;
    a bin contains its lower edge, and equal scores are never split.

    Examples
    --------
    >>> import calshift
    >>> calshift.bin_edges([0.1, 0.2, 0.3, 0.4], bins=2)[0]
    array([0.3])
    """
    target = open_engine(p_target, labelled=False, name_p="p_target")
    return find_edges(target, select_binned_events(kind, target.summary), bins, binning)


def accumulate(
    p_source: Any = None, y_source: Any = None, p_target: Any = None, *, edges: BinEdges
) -> ShiftStatistics:
    """Sums over a batch of source rows, target rows, both or none, on given edges.

    Count, sum of scores and of squared scores by event, bin and label: batches add up with ``+``
    or ``sum()`` to the same numbers as one pass over all rows; an empty batch adds nothing. Many
    classes need fewer bins: events x bins x labels is limited to 20 million.

    Examples
    --------
    >>> import calshift
    >>> edges = calshift.bin_edges([0.1, 0.2, 0.3, 0.4], bins=2)
    >>> batches = [([0.1], [0]), ([0.3], [1])]
    >>> sum(calshift.accumulate(p, y, edges=edges) for p, y in batches).size_source
    2.0
    """
    if not isinstance(edges, BinEdges):
        msg = f"edges must come from bin_edges; got {type(edges)!r}"
        raise InvalidInput(msg)
    cells = len(edges) * edges.max_bins * len(edges.events.stratum_label)
    if cells > MOST_CELLS:
        most = MOST_CELLS * edges.max_bins // cells
        msg = f"edges make {cells:,} sums; with bins={most} or fewer they fit ({MOST_CELLS:,})"
        raise InvalidInput(msg)
    if p_source is None and y_source is not None:
        msg = "y_source needs a p_source to be the labels of"
        raise InvalidInput(msg)
    statistics = ShiftStatistics.zero(edges)
    if p_source is not None and not _is_empty(p_source):
        with suppress(NoRows):
            source = open_source(p_source, y_source)
            _check_classes(source.summary, edges, "p_source")
            statistics += source.total(source_kernel(edges))
    if p_target is not None and not _is_empty(p_target):
        with suppress(NoRows):
            target = open_engine(p_target, labelled=False, name_p="p_target")
            _check_classes(target.summary, edges, "p_target")
            statistics += target.total(target_kernel(edges))
    return statistics


def _is_empty(p: Any) -> bool:
    """Whether it has no rows; what has no length is judged when it is opened."""
    if is_engine(p) or isinstance(p, str | Path):
        return False
    try:
        return len(p) == 0
    except Exception:  # of the library that it comes from
        return False


def _check_classes(predictions: SampleSummary, edges: BinEdges, name: str) -> None:
    if predictions.n_classes != edges.events.n_classes:
        msg = (
            f"{name} must have the classes of the edges; "
            f"it has {predictions.n_classes}, the edges {edges.events.n_classes}"
        )
        raise InvalidInput(msg)
    check_same_names(predictions.classes, edges.classes, (name, "the edges"))
