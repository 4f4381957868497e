"""One recalibrator after another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from calshift._core.predictions import Predictions
from calshift.errors import InvalidInput
from calshift.recalibration.base import Recalibrator


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

    _learned: ClassVar = {"steps_": lambda value, K: _steps(value, K)}
    steps_: list[Recalibrator]

    def __init__(self, steps: Sequence[Recalibrator]) -> None:
        self.steps = steps

    @property
    def keeps_ranking(self) -> bool:  # type: ignore[override]
        """Whether all of its steps do."""
        return all(step.keeps_ranking for step in self._checked())

    def _fit(self, source: Predictions, target: Predictions | None, weights: Any) -> dict[str, Any]:
        fitted = [step._fresh() for step in self._checked()]
        for step in fitted[:-1]:
            source = _fitted_alone(step, source).transform(source)
            target = None if target is None else step.transform(target)
        fitted[-1].fit(source, None, target, weights=weights)
        return {"steps_": fitted}

    def _fresh(self) -> Chain:
        return Chain([step._fresh() for step in self._checked()])

    def _transform(self, p: np.ndarray) -> np.ndarray:
        for step in self.steps_:
            p = step._transform(p)
        return p

    def _checked(self) -> list[Recalibrator]:
        steps = list(self.steps) if isinstance(self.steps, list | tuple) else []
        if not steps or not all(isinstance(step, Recalibrator) for step in steps):
            msg = f"steps must be a list of recalibrators; got {self.steps!r}"
            raise InvalidInput(msg)
        return steps

    def _plain_parameters(self) -> dict[str, Any]:
        if self.__sklearn_is_fitted__():
            return {}  # its steps are told by what they learned
        return {
            "steps": [[type(step).__name__, step._plain_parameters()] for step in self._checked()]
        }

    @classmethod
    def _parameters_from(cls, saved: dict[str, Any]) -> dict[str, Any]:
        if saved["parameters"] != {}:
            msg = "saved must hold the parameters of Chain: none, its steps tell theirs"
            raise InvalidInput(msg)
        return {"steps": ()}

    @classmethod
    def _restored(cls, saved: dict[str, Any]) -> Chain:
        made = super()._restored(saved)
        made.steps = [step._fresh() for step in made.steps_]
        return made


def _fitted_alone(step: Recalibrator, source: Predictions) -> Recalibrator:
    try:
        return step.fit(source)
    except InvalidInput as problem:
        if "p_target" not in str(problem):
            raise
        msg = f"only the last step of a Chain sees the target: {step!r} needs it, and must be last"
        raise InvalidInput(msg) from problem


def _steps(value: Any, K: int) -> list[Recalibrator]:
    """Steps from JSON, each of K classes."""
    if not isinstance(value, list) or not value:
        raise ValueError
    steps = [Recalibrator.from_dict(step) for step in value]
    if any(step.n_classes_ != K for step in steps):
        raise ValueError
    return steps
