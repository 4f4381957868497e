"""One recalibrator after another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calshift.errors import InvalidInput
from calshift.predictions import Predictions
from calshift.recalibrator import Recalibrator


class Chain(Recalibrator):
    """Recalibrators in a row: calibrate on the source, then correct for the target.

    All but the last are fitted to the source as it is; the last one sees the target and the
    weights too, and what the others made of both samples.

    Parameters
    ----------
    steps : recalibrators

    Examples
    --------
    >>> import calshift
    >>> both = calshift.Chain([calshift.TemperatureScaling(), calshift.PriorCorrection()])
    >>> both.keeps_ranking
    False
    """

    _learned = ("steps_",)
    steps_: list[Recalibrator]

    def __init__(self, steps: Sequence[Recalibrator]) -> None:
        self.steps = steps

    @property
    def keeps_ranking(self) -> bool:  # type: ignore[override]
        """Whether all of its steps do."""
        return all(step.keeps_ranking for step in self.steps)

    def _learn(
        self, source: Predictions, target: Predictions | None, weights: Any
    ) -> dict[str, Any]:
        fitted = [_fresh(step) for step in self._checked()]
        for step in fitted[:-1]:
            source = step.fit(source).transform(source)
            target = None if target is None else step.transform(target)
        fitted[-1].fit(source, None, target, weights=weights)
        return {"steps_": fitted}

    def _mend(self, p: np.ndarray) -> np.ndarray:
        for step in self.steps_:
            p = step._mend(p)
        return p

    def _checked(self) -> list[Recalibrator]:
        steps = list(self.steps) if isinstance(self.steps, list | tuple) else []
        if not steps or not all(isinstance(step, Recalibrator) for step in steps):
            msg = f"steps must be a list of recalibrators; got {self.steps!r}"
            raise InvalidInput(msg)
        return steps

    def _plain_parameters(self) -> dict[str, Any]:
        return {}  # its steps are told by what they learned

    def _revived(self, name: str, value: Any) -> Any:
        return [Recalibrator.from_dict(step) for step in value]

    @classmethod
    def _parameters_from(cls, saved: dict[str, Any]) -> dict[str, Any]:
        learned = saved.get("learned")
        steps = learned.get("steps_") if isinstance(learned, dict) else None
        if not isinstance(steps, list):
            msg = "saved must hold the steps of a Chain"
            raise InvalidInput(msg)
        return {"steps": [_fresh(Recalibrator.from_dict(step)) for step in steps]}


def _fresh(step: Recalibrator) -> Recalibrator:
    """The same, not fitted."""
    parameters = step.get_params(deep=False)
    if isinstance(step, Chain):
        parameters = {"steps": [_fresh(inner) for inner in step.steps]}
    return type(step)(**parameters)
