"""Rules that turn probabilities into predicted classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from calshift._core.convert import as_double, to_numpy
from calshift._core.frozen import Frozen
from calshift._core.labels import encode_labels
from calshift._core.predictions import Predictions
from calshift._core.validate import is_number, show
from calshift.errors import InvalidInput

LARGEST_COST = 1e100  # so that squares stay finite
OUTCOMES = {  # of two classes -> (predicted, true), 1 being the positive class
    "true_negative": (0, 0),
    "false_negative": (0, 1),
    "false_positive": (1, 0),
    "true_positive": (1, 1),
}


@dataclass(frozen=True, eq=False)
class DecisionRule(Frozen):
    """A rule for the predicted class of a row.

    Attributes
    ----------
    kind : "argmax", "threshold", "cost" or "function"
    threshold : of "threshold": the least probability of the positive class to predict it
    positive : of "threshold": the positive class of two
    cost : of "cost": (K, K) by predicted and true class; the least expected cost decides
    function : of "function": probabilities (n, K) -> classes (n,)
    """

    kind: str
    threshold: float | None = None
    positive: int = 1
    cost: np.ndarray | None = None
    function: Callable[[np.ndarray], Any] | None = None

    def __call__(self, batch: Predictions) -> np.ndarray:
        """(n,) the predicted classes."""
        if self.threshold is not None:
            above = batch.matrix[:, self.positive] >= self.threshold
            return np.where(above, self.positive, 1 - self.positive)
        if self.cost is not None:
            return np.asarray((batch.matrix @ self.cost.T).argmin(axis=1))
        if self.function is not None:
            return self._call_function(batch)
        return batch.predicted

    def _call_function(self, batch: Predictions) -> np.ndarray:
        assert self.function is not None
        found = encode_labels(self.function(batch.matrix), "decision(p)", batch.n_classes)
        if len(found) != len(batch):
            msg = f"decision(p) must return {len(batch)} classes, one a row; got {len(found)}"
            raise InvalidInput(msg)
        return found

    @property
    def description(self) -> str:
        """What is predicted, in a few words."""
        if self.threshold is not None:
            return f"positive at a probability of at least {self.threshold:.6g}"
        names = {"cost": "least expected cost", "function": "a function of the probabilities"}
        return names.get(self.kind, "most probable class")


def make_decision_rule(
    decision: Any, n_classes: int, positive: int | None, cost: np.ndarray | None
) -> DecisionRule:
    """The rule that ``decision`` asks for.

    Parameters
    ----------
    decision : "argmax", "cost", a threshold of the probability of the positive class of two, or a
        function of probabilities (n, K) that returns classes
    n_classes : K
    positive : the positive class, None if there are more than two and none was named
    cost : the matrix for "cost"
    """
    if isinstance(decision, DecisionRule):
        return decision
    if callable(decision):
        return DecisionRule("function", function=decision)
    if is_number(decision):
        return _make_threshold(float(decision), n_classes, positive)
    if decision == "cost" and isinstance(decision, str):
        if cost is None:
            msg = 'decision="cost" needs cost=, a matrix by predicted and true class'
            raise InvalidInput(msg)
        return DecisionRule("cost", cost=cost)
    if isinstance(decision, str) and decision == "argmax":
        return DecisionRule("argmax")
    what = '"argmax", "cost", a threshold from 0 to 1, or a function of the probabilities'
    msg = f"decision must be {what}; got {show(decision)}"
    raise InvalidInput(msg)


def _make_threshold(threshold: float, n_classes: int, positive: int | None) -> DecisionRule:
    if n_classes != 2:
        msg = f"a threshold decides between two classes; there are {n_classes}: pass a function"
        raise InvalidInput(msg)
    if not 0 <= threshold <= 1:
        msg = f"decision must be a threshold from 0 to 1; got {threshold:g}"
        raise InvalidInput(msg)
    return DecisionRule("threshold", threshold, 1 if positive is None else positive)


def validate_positive(positive: Any, n_classes: int, classes: tuple[Any, ...] | None) -> int | None:
    """The number of the positive class: by default the second of two, and none of more."""
    if positive is None:
        return 1 if n_classes == 2 else None
    if classes is not None:
        texts = [str(name) for name in classes]
        if str(positive) in texts:
            return texts.index(str(positive))
    if isinstance(positive, bool | np.bool_) and n_classes == 2:
        return int(positive)
    number = is_number(positive) and float(positive).is_integer()
    if number and 0 <= int(positive) < n_classes:
        return int(positive)
    names = range(n_classes) if classes is None else classes
    shown = ", ".join(str(name) for name in list(names)[:10])
    msg = f"positive must be one of the classes {shown}; got {show(positive)}"
    raise InvalidInput(msg)


def validate_cost(
    cost: Any, n_classes: int, positive: int | None, classes: tuple[Any, ...] | None = None
) -> np.ndarray | None:
    """(K, K) costs by predicted (row) and true class (column).

    A frame whose rows and columns are named is matched by the names of classes. Of two classes
    also a mapping with "false_positive", "false_negative", "true_positive" and "true_negative", of
    which those left out cost nothing.
    """
    if cost is None:
        return None
    if isinstance(cost, Mapping):
        return _cost_of_outcomes(cost, n_classes, positive)
    if hasattr(cost, "columns") and hasattr(cost, "index"):
        cost = _match_names(cost, classes)
    values, _ = to_numpy(cost, "cost")
    if values.dtype.kind not in "fiub" or values.shape != (n_classes, n_classes):
        shape = f"({n_classes}, {n_classes}), by predicted (row) and true class (column)"
        msg = f"cost must be numbers of shape {shape}; got {values.dtype} {values.shape}"
        raise InvalidInput(msg)
    return _check_costs(as_double(values))


def _match_names(cost: Any, classes: tuple[Any, ...] | None) -> Any:
    """The frame in the order of the classes; refused if it has other names than numbers from 0."""
    texts = [str(name) for name in (range(len(cost)) if classes is None else classes)]
    order = []
    for names in (cost.index, cost.columns):
        found = [str(name) for name in names]
        if sorted(found) != sorted(texts):
            if found == [str(k) for k in range(len(found))]:
                found = texts  # without names: in order
            else:
                msg = f"cost must have the classes {', '.join(texts[:10])}; it has {found[:10]}"
                raise InvalidInput(msg)
        order.append([found.index(name) for name in texts])
    return cost.iloc[order[0], order[1]]


def _cost_of_outcomes(cost: Mapping[Any, Any], K: int, positive: int | None) -> np.ndarray:
    unknown = [name for name in cost if name not in OUTCOMES]
    if K != 2 or positive is None or unknown or not all(map(is_number, cost.values())):
        msg = (
            "cost must be a (K, K) matrix, or for two classes a mapping from "
            f"{', '.join(OUTCOMES)} to numbers; got {show(dict(cost))} for {K} classes"
        )
        raise InvalidInput(msg)
    values = np.zeros((2, 2))
    for name, value in cost.items():
        at = OUTCOMES[name] if positive == 1 else tuple(1 - one for one in OUTCOMES[name])
        values[at] = float(value)
    return _check_costs(values)


def _check_costs(values: np.ndarray) -> np.ndarray:
    if not (np.abs(values) <= LARGEST_COST).all() or np.ptp(values) == 0:
        what = f"finite, of at most {LARGEST_COST:g}, and not all the same"
        msg = f"cost must be {what}; got values from {values.min():g} to {values.max():g}"
        raise InvalidInput(msg)
    return values
