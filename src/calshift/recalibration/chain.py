"""Recalibrators applied one after another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from calshift._core.predictions import Predictions
from calshift._core.validate import show
from calshift.errors import InvalidInput
from calshift.recalibration.base import Recalibrator

MOST_NESTED = 10


class Chain(Recalibrator):
    """Recalibrators applied in sequence: calibrate on the source, then correct for the target.

    All but the last are fitted to the source alone; the last one is fitted with the target and the
    weights, to both samples as transformed by the others.

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

    _learned: ClassVar = {"steps_": lambda value, K: _read_steps(value, K)}
    steps_: list[Recalibrator]

    def __init__(self, steps: Sequence[Recalibrator]) -> None:
        self.steps = steps

    @property
    def keeps_ranking(self) -> bool:  # type: ignore[override]
        """Whether every step keeps the ranking."""
        return all(step.keeps_ranking for step in self._validate_steps())

    def _fit(self, source: Predictions, target: Predictions | None, weights: Any) -> dict[str, Any]:
        fitted = [step._clone() for step in self._validate_steps()]
        for step in fitted[:-1]:
            source = _fit_without_target(step, source).transform(source)
            target = None if target is None else step.transform(target)
        fitted[-1].fit(source, None, target, weights=weights)
        return {"steps_": fitted}

    def _clone(self) -> Chain:
        return Chain([step._clone() for step in self._validate_steps()])

    def _transform(self, p: np.ndarray) -> np.ndarray:
        for step in self.steps_:
            p = step._transform(p)
        return p

    def _validate_steps(self) -> list[Recalibrator]:
        steps = list(self.steps) if isinstance(self.steps, list | tuple) else []
        if not steps or not all(isinstance(step, Recalibrator) for step in steps):
            msg = f"steps must be a list of recalibrators; got {show(self.steps)}"
            raise InvalidInput(msg)
        self._check_depth()
        return steps

    def _check_depth(self) -> None:
        """Refuse chains of chains of chains, as `from_dict` does."""
        level: list[Any] = [self]
        for _ in range(MOST_NESTED):
            level = [step for one in level for step in one.steps if isinstance(step, Chain)]
            if not level:
                return
        msg = f"steps must have chains within chains at most {MOST_NESTED} deep"
        raise InvalidInput(msg)

    def _plain_parameters(self) -> dict[str, Any]:
        if self.__sklearn_is_fitted__():
            return {}  # learned has the fitted steps with their parameters
        return {
            "steps": [
                [type(step).__name__, step._plain_parameters()] for step in self._validate_steps()
            ]
        }

    @classmethod
    def _parameters_from(cls, saved: dict[str, Any]) -> dict[str, Any]:
        if saved["parameters"] != {}:
            msg = "saved must have no parameters of Chain: each of its steps has its own"
            raise InvalidInput(msg)
        return {"steps": ()}

    @classmethod
    def _restore(cls, saved: dict[str, Any]) -> Chain:
        _check_nesting(saved)
        made = super()._restore(saved)
        made.steps = [step._clone() for step in made.steps_]
        return made


def _check_nesting(saved: Any) -> None:
    """Refuse chains of chains of chains, which no one makes and which exhaust the stack."""
    level = [saved]
    for _ in range(MOST_NESTED + 1):
        learned = [one["learned"] for one in level if isinstance(one.get("learned"), dict)]
        steps = [step for one in learned for step in _as_list(one.get("steps_"))]
        level = [step for step in steps if isinstance(step, dict)]
        if not level:
            return
    msg = f"saved must have chains within chains at most {MOST_NESTED} deep"
    raise InvalidInput(msg)


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _fit_without_target(step: Recalibrator, source: Predictions) -> Recalibrator:
    try:
        return step.fit(source)
    except InvalidInput as problem:
        if "p_target" not in str(problem):
            raise
        msg = f"only the last step of a Chain is fitted to the target; {step!r} must be last"
        raise InvalidInput(msg) from problem


def _read_steps(value: Any, K: int) -> list[Recalibrator]:
    """Fitted steps, each of K classes."""
    if not isinstance(value, list) or not value:
        raise ValueError
    steps = [Recalibrator.from_dict(step) for step in value]
    if any(step.n_classes_ != K for step in steps):
        raise ValueError
    return steps
