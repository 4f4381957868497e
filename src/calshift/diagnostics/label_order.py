"""Whether the source's labels and the columns of its predictions belong together.

For more than two classes an assignment of labels to columns is searched that raises the accuracy;
for two classes the ranking of the scores is tested. Both use sums of one pass over the source.
"""

from __future__ import annotations

from math import lgamma, log

import numpy as np

from calshift._core.text import class_names
from calshift.diagnostics.label_tables import MOST_CLASSES, LabelTables
from calshift.results import Diagnostic

NAME, LIMIT = "label-order", 0.001
CLEAR = 0.9  # of the rows in question, whose labels have the same offset from their columns
PAIRS_NAMED = 3


def check_label_order(tables: LabelTables | None) -> Diagnostic:
    """Whether no other assignment of labels to columns fits significantly better."""
    if tables is None:
        text = (
            f"the order of labels and columns was not checked: more than {MOST_CLASSES} classes, "
            f'or no rows (waive "{NAME}" if it is known to be right)'
        )
        return Diagnostic(NAME, None, LIMIT, False, text)
    if tables.steps is not None:
        return _check_scores(tables.steps * tables.share)
    return _check_assignment(tables.confusion * tables.share, tables.classes)


def _check_scores(steps: np.ndarray) -> Diagnostic:
    """One-sided test of AUC >= 1/2: the larger of DeLong's variance and that without any relation.

    DeLong's alone is 0 for separated samples, and too small for a few positives.
    """
    from scipy.special import ndtr

    n = steps.sum(axis=0)
    if n.min() == 0:
        return Diagnostic(NAME, 1.0, LIMIT, True, "all labels are of one class: nothing to compare")
    below = (np.cumsum(steps, axis=0) - steps / 2) / n  # shares of each class below a step
    auc = float(steps[:, 1] @ below[:, 0]) / n[1]
    spread = [
        steps[:, a] @ (below[:, 1 - a] - np.average(below[:, 1 - a], weights=steps[:, a])) ** 2
        / n[a] ** 2
        for a in (0, 1)
    ]  # fmt: skip
    variance = max(sum(spread), (1 / n[0] + 1 / n[1] + 1 / (n[0] * n[1])) / 12)
    p = float(ndtr((auc - 0.5) / np.sqrt(variance)))
    if p >= LIMIT:
        return Diagnostic(NAME, p, LIMIT, True, f"scores rank the labels with an AUC of {auc:.3f}")
    text = (
        f"the score looks reversed (AUC {auc:.3f} on the source): is it the probability of the "
        "other class?"
    )
    return Diagnostic(NAME, p, LIMIT, False, text)


def _check_assignment(C: np.ndarray, classes: tuple[object, ...] | None) -> Diagnostic:
    """Test the cycles of the assignment of labels to columns with the largest accuracy.

    An exchange of labels along a cycle of k columns changes only rows predicted as one of them: b
    become correct, c become wrong. If the columns are right, a row predicted as a has label a at
    least as often as any other label - so for every calibrated model, however weak - and b of
    b + c such rows is binomial with probability 1/2 at most: P(b or more) is at most
    exp(-(b + c) KL(b / (b + c), 1/2)) (Chernoff). The cycle was searched among K! / ((K - k)! k)
    of its length. The level is divided among the lengths by 1 / (k (k - 1)), which sums to 1, and
    within a length equally (Bonferroni): so p, times K! / (K - k)! (k - 1), is valid after the
    search. The mean recall of the classes must not fall either: this protects models whose class
    shares are far from the source's.
    """
    p, found = 1.0, []
    for cycle, to in _cycles(C):
        after, before = C[cycle, to].sum(), C[cycle, cycle].sum()
        size = np.maximum(C.sum(axis=0), 1e-300)
        recall = (C[cycle, to] / size[to]).sum() - (C[cycle, cycle] / size[cycle]).sum()
        bound = float(np.exp(min(0.0, _log_bound(after, before, len(cycle), len(C)))))
        if recall > 0:
            p = min(p, bound)
            if bound < LIMIT:
                found.append((cycle, to))
    if not found:
        return Diagnostic(NAME, p, LIMIT, True, "no other order of the labels fits clearly better")
    cycle, to = (np.concatenate(parts) for parts in zip(*found, strict=True))
    raised = C[cycle, to].sum() - C[cycle, cycle].sum()
    before, total = np.trace(C), C.sum()
    gain = f"from {before / total:.0%} to {(before + raised) / total:.0%}"
    text = f"{_describe(C, found, classes)}: that order has more accuracy on the source ({gain})"
    return Diagnostic(NAME, p, LIMIT, False, text)


def _cycles(C: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Columns and their new labels, for each cycle of the most accurate assignment."""
    here = np.diag(C)
    if (here >= C.max(axis=1)).all():
        return []
    from scipy.optimize import linear_sum_assignment  # late: importing calshift must be fast

    to = linear_sum_assignment(C + 1e-6 * np.eye(len(C)), maximize=True)[1]
    left, cycles = set(np.flatnonzero(to != np.arange(len(C))).tolist()), []
    while left:
        cycle = [min(left)]
        while (following := int(to[cycle[-1]])) != cycle[0]:
            cycle.append(following)
        left -= set(cycle)
        cycles.append((np.array(cycle), to[cycle]))
    return cycles


def _log_bound(after: float, before: float, k: int, K: int) -> float:
    """The logarithm of the bound of the p-value of one cycle."""
    n = after + before
    if after <= before:
        return 0.0
    parts = [part / n for part in (after, before) if part > 0]
    divergence = log(2) + sum(part * log(part) for part in parts)
    return lgamma(K + 1) - lgamma(K - k + 1) + log(k - 1) - n * divergence


def _describe(
    C: np.ndarray, found: list[tuple[np.ndarray, np.ndarray]], classes: tuple[object, ...] | None
) -> str:
    """The likely cause in words."""
    cycle, to = (np.concatenate(parts) for parts in zip(*found, strict=True))
    offset = np.bincount((to - cycle) % len(C), C[cycle, to], len(C))
    step = int(offset.argmax())
    if len(cycle) > 2 and offset[step] >= CLEAR * offset.sum():
        by = min(step, len(C) - step)
        words = "one" if by == 1 else str(by)
        return f"labels look shifted by {words} against the columns"
    if all(len(part) == 2 for part, _ in found):
        pairs = [class_names(np.sort(part), classes) for part, _ in found]
        more = f" and {len(pairs) - PAIRS_NAMED} more pairs" if len(pairs) > PAIRS_NAMED else ""
        return f"{', '.join(pairs[:PAIRS_NAMED])}{more} look swapped"
    order = np.argsort(-C[cycle, to], kind="stable")[:PAIRS_NAMED]
    named = [
        f"rows predicted as {class_names(cycle[[at]], classes)} mostly have the label of "
        f"{class_names(to[[at]], classes)}"
        for at in order
    ]
    return f"labels and columns look permuted ({'; '.join(named)})"
