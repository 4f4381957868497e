"""Recalibrators by name; one file for each family."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from calshift._core.validate import validate_choice
from calshift.recalibration.base import Recalibrator
from calshift.recalibration.chain import Chain
from calshift.recalibration.ensemble import EnsembleTemperatureScaling
from calshift.recalibration.isotonic import IsotonicScaling
from calshift.recalibration.label_free import LabelFreeTemperatureScaling
from calshift.recalibration.prior import PriorCorrection
from calshift.recalibration.scalings import (
    BiasCorrectedTemperatureScaling,
    TemperatureScaling,
    VectorScaling,
)
from calshift.recalibration.shift import ShiftScaling

RECALIBRATORS: dict[str, Callable[[], Recalibrator]] = {
    "shift": ShiftScaling,
    "temperature": TemperatureScaling,
    "bcts": BiasCorrectedTemperatureScaling,
    "vector": VectorScaling,
    "isotonic": IsotonicScaling,
    "ensemble": EnsembleTemperatureScaling,
    "label-free": LabelFreeTemperatureScaling,
    "prior": PriorCorrection,
    "temperature+prior": lambda: Chain([TemperatureScaling(), PriorCorrection()]),
    "bcts+prior": lambda: Chain([BiasCorrectedTemperatureScaling(), PriorCorrection()]),
    "vector+prior": lambda: Chain([VectorScaling(), PriorCorrection()]),
}
DEFAULT_RECALIBRATOR = "shift"  # why: docs/mathematics.md section 11, benchmarks/recalibration.py


def make_recalibrator(method: Any) -> Recalibrator:
    """A recalibrator that is not fitted, from a method's name or another recalibrator."""
    if isinstance(method, Recalibrator):
        return method._clone()
    return RECALIBRATORS[validate_choice(method, "method", RECALIBRATORS, ", or a recalibrator")]()


__all__ = [
    "DEFAULT_RECALIBRATOR", "RECALIBRATORS", "BiasCorrectedTemperatureScaling", "Chain",
    "EnsembleTemperatureScaling", "IsotonicScaling", "LabelFreeTemperatureScaling",
    "PriorCorrection", "ShiftScaling", "TemperatureScaling", "VectorScaling",
    "make_recalibrator",
]  # fmt: skip
