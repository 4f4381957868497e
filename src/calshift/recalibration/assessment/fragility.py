"""Models whose recalibration would rest on the assumption of label shift alone.

A model that predicts one class for nearly all rows shows little of a change of the class priors,
and a small change of its predictions for another reason is taken for a large one. The error with an
interval may still be trusted; recalibrated decisions would all be new, and are not taken.
"""

from __future__ import annotations

import numpy as np

from calshift._core.predictions import Predictions
from calshift.results import CalibrationErrorResult

MAJORITY = 0.9  # of the source's rows with one predicted class, above which decisions are untried
MOST_AMPLIFIED = 2.0  # change of the class priors relative to that of the mean prediction


def describe_fragility(source: Predictions, before: CalibrationErrorResult) -> str:
    """Why the class priors are not followed, or ""."""
    found = [one for one in before.diagnostics if one.name == "amplification" and not one.waived]
    factor = max((one.value or 0.0 for one in found), default=0.0)
    counts = np.bincount(source.predicted, source.frequency, source.n_classes)
    share = float(counts.max() / counts.sum())
    if share <= MAJORITY or factor <= MOST_AMPLIFIED:
        return ""
    return (
        f"the model predicts one class for {share:.0%} of the source's rows, and the class priors "
        f"change {factor:.1f} times as much as the mean prediction (limit {MOST_AMPLIFIED:g}): a "
        "recalibration that follows them may do harm if label shift does not hold exactly (waive "
        '"amplification" to apply it)'
    )
