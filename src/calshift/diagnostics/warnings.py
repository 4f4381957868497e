"""What a statistician would object to, in plain words, worst first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calshift._core.text import small_ess_warning

if TYPE_CHECKING:
    from calshift.results import ClassWeights, LabelShiftCheck

SMALL_ESS = 100.0  # source rows of equal weight, below which any error is vague
TOO_SMALL_ESS = 20.0
THIN_SHARE = (0.5, 0.1)  # of the error, of the target: so much may rest on few source rows
TIE = 1e-9  # which is rounding, not more
MOST_THIN = 0.5  # of the target without source rows: beyond it an error is extrapolated
LEAST_TARGET = 30.0  # rows; fewer say nothing, whatever the formula answers
FEW_A_CLASS = 15.0  # source rows for each class of a classwise error (benchmarks/coverage_study.py)
UNSEEN_SHARE = 0.05  # of the target in classes that the source lacks: that comes first
DOUBTED_SHARE = 0.25  # of the target in classes whose weight is not trusted


def collect_warnings(
    weights: ClassWeights | None,
    assumption: LabelShiftCheck | None,
    thin: tuple[float, float],
    isolated: int,
    rows_a_class: float = np.inf,
    n_target: float | None = None,
) -> tuple[tuple[str, ...], bool]:
    """Warnings, and whether the answer can be trusted all the same."""
    fatal: list[str] = []
    grave: list[str] = []
    if n_target is not None and n_target < LEAST_TARGET:
        fatal.append(f"the target has {n_target:g} rows, too few for an answer")
    if assumption is not None and assumption.rejected:
        fatal.append(
            f"more than the mix of classes has changed (p = {assumption.p_value:.3g}): "
            "the error on the target may be another"
        )
    if assumption is not None and assumption.p_value is None:
        grave.append("whether only the mix of classes has changed could not be tested")
    unseen = 0.0 if weights is None else weights.unseen_share
    if weights is not None:
        ess = weights.ess
        known = [c for c in weights.untrusted if not np.isnan(weights.values[c])]
        doubted = min(sum(float(weights.prior_target[c]) for c in known) + unseen, 1.0)
        if doubted > DOUBTED_SHARE:
            fatal.append(f"{doubted:.0%} of the target is of classes whose weight is not trusted")
        if ess < TOO_SMALL_ESS:
            fatal.append(small_ess_warning(ess))
        (grave if weights.converged else fatal).extend(weights.warnings)
        if TOO_SMALL_ESS <= ess < SMALL_ESS:
            grave.append(small_ess_warning(ess))
    for share, most, what in zip(thin, THIN_SHARE, ("error", "target"), strict=True):
        if share > most + TIE:
            note = f"{share:.0%} of the {what} lies where the source has hardly a row"
            (fatal if what == "target" and share > MOST_THIN + TIE else grave).append(note)
    if rows_a_class < FEW_A_CLASS:
        grave.append(
            f"{rows_a_class:.0f} source rows a class are few: part of the error may go unseen, "
            "and its interval is rough"
        )
    if isolated:
        grave.append(
            f"{isolated} rows have too few neighbours within the bandwidth; their nearest stood in"
        )
    first: list[str] = []  # classes that the source lacks explain much of what else is odd
    if unseen > UNSEEN_SHARE:
        first = [note for note in fatal + grave if note.startswith("the source lacks")]
    return tuple(dict.fromkeys(first + fatal + grave)), not fatal
