"""One recalibrator after another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

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

    _learned: ClassVar = {"steps_": lambda value, K: _steps(value, K)}
    steps_: list[Recalibrator]

    def __init__(self, steps: Sequence[Recalibrator]) -> None:
        self.steps = steps

    @property
    def keeps_ranking(self) -> bool:  # type: ignore[override]
        """Whether all of its steps do."""
        return all(step.keeps_ranking for step in self._checked())

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

    @classmethod
    def _parameters_from(cls, saved: dict[str, Any]) -> dict[str, Any]:
        if saved["parameters"] != {}:
            msg = "saved must hold the parameters of Chain: none, its steps tell theirs"
            raise InvalidInput(msg)
        return {"steps": ()}

    @classmethod
    def _restored(cls, saved: dict[str, Any]) -> Chain:
        made = super()._restored(saved)
        made.steps = [_fresh(step) for step in made.steps_]
        return made


def _steps(value: Any, K: int) -> list[Recalibrator]:
    """Steps from JSON, each of K classes."""
    if not isinstance(value, list) or not value:
        raise ValueError
    steps = [Recalibrator.from_dict(step) for step in value]
    if any(step.n_classes_ != K for step in steps):
        raise ValueError
    return steps


def _fresh(step: Recalibrator) -> Recalibrator:
    """The same, not fitted."""
    parameters = step.get_params(deep=False)
    if isinstance(step, Chain):
        parameters = {"steps": [_fresh(inner) for inner in step.steps]}
    return type(step)(**parameters)
