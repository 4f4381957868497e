"""Models whose recalibration would rest on the assumption of label shift alone.

A model that predicts one class for nearly all rows shows little of a change of the class priors,
and a small change of its predictions for another reason is taken for a large one. The error with an
interval may still be trusted; recalibrated decisions would all be new, and are not taken.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from calshift._core.predictions import Predictions
from calshift.results import CalibrationErrorResult

# benchmarks/recalibration_harm.py
MAJORITY = 0.85  # of the source's rows with one predicted class, above which decisions are untried
MOST_AMPLIFIED = 2.5  # change of the class priors relative to that of the mean prediction
MOST_CHANGED = 0.25  # of the class priors, in total variation
MOST_LACK_OF_FIT = 2.5  # standard errors


def describe_fragility(source: Predictions, before: CalibrationErrorResult) -> str:
    """Why the class priors are not followed, or ""."""
    counts = np.bincount(source.predicted, source.frequency, source.n_classes)
    share = float(counts.max() / counts.sum())
    reason, name = next(_reasons(before), ("", ""))
    if share <= MAJORITY or not reason:
        return ""
    return (
        f"the model predicts one class for {share:.0%} of the source's rows, and {reason}: a "
        "recalibration that follows the class priors may do harm if label shift does not hold "
        f'exactly (waive "{name}" to apply it)'
    )


def _reasons(before: CalibrationErrorResult) -> Iterator[tuple[str, str]]:
    """Reasons, with the condition that has to be waived."""
    values = {one.name: one.value or 0.0 for one in before.diagnostics if not one.waived}
    factor, lack_of_fit = values.get("amplification"), values.get("lack-of-fit", 0.0)
    weights = before.class_weights
    assert weights is not None
    if factor is not None:
        limits = f"(limit {MOST_AMPLIFIED:g})", f"(limit {MOST_CHANGED:.0%})"
        change = float(np.abs(weights.prior_target - weights.prior_source).sum()) / 2
        if factor > MOST_AMPLIFIED:
            text = f"the class priors change {factor:.1f} times as much as the mean prediction"
            yield f"{text} {limits[0]}", "amplification"
        if change > MOST_CHANGED:
            yield f"the class priors change by {change:.0%} {limits[1]}", "amplification"
    if lack_of_fit > MOST_LACK_OF_FIT:
        text = f"means of the target differ by {lack_of_fit:.1f} standard errors"
        yield f"{text} from what label shift implies (limit {MOST_LACK_OF_FIT:g})", "lack-of-fit"
