"""The base of the recalibrators: fit, transform, JSON, and the scikit-learn estimator API."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar, TypeVar

import numpy as np

from calshift._core.convert import plain
from calshift._core.labels import check_same_names
from calshift._core.predictions import Predictions, as_predictions
from calshift._core.validate import show
from calshift.engines.base import rows_in_memory
from calshift.engines.open import open_source, rows_of_pair
from calshift.errors import InvalidInput
from calshift.recalibration.serialization import Check, read_class_names
from calshift.results import ClassWeights

FORMAT, VERSION = "calshift recalibrator", 1
BLOCK_CELLS = 2**18  # probabilities that are recalibrated at once
Self = TypeVar("Self", bound="Recalibrator")


class Recalibrator:
    """Recalibrates probabilities: `fit` on a labelled source and an optional target, `transform`.

    A subclass implements `_fit`, which returns the fitted values named in `_learned`, and
    `_transform` of a matrix of probabilities. Fitted values are numbers and arrays, so that
    `to_dict` can be written as JSON; `_learned` has the function that validates each when read.

    Parameters
    ----------
    weights : class weights for `fit`, unless it is given others

    Attributes
    ----------
    keeps_ranking : whether the order of the classes within a row, and so accuracy, never changes
    n_classes_, classes_ : number of classes at fit, and their names or None
    """

    weights: Any
    keeps_ranking: ClassVar[bool] = False
    _learned: ClassVar[dict[str, Check]] = {}
    _search: Any = None  # where a search starts, or ended

    def __init__(self, weights: Any = None) -> None:
        self.weights = weights

    def _fit(self, source: Predictions, target: Predictions | None, weights: Any) -> dict[str, Any]:
        """The fitted values, by the names of `_learned`."""
        raise NotImplementedError

    def _transform(self, p: np.ndarray) -> np.ndarray:
        """(n, K) -> (n, K)."""
        raise NotImplementedError

    def _clone(self: Self) -> Self:
        """A recalibrator with the same parameters that is not fitted."""
        return type(self)(**self.get_params(deep=False))

    def fit(
        self: Self,
        p_source: Any,
        y_source: Any = None,
        p_target: Any = None,
        *,
        weights: Any = None,
    ) -> Self:
        """Fit to labelled source rows, for the class distribution of the target if it is known.

        Parameters
        ----------
        p_source, y_source : predictions and labels of the source, or a `Predictions` alone
        p_target : predictions of the target, without labels
        weights : class weights, a method's name, a vector or a ClassWeights, instead of those of
            the constructor. A name needs ``p_target``; None with a ``p_target`` estimates them.
        """
        if p_target is None:
            source, target = rows_in_memory(open_source(p_source, y_source), "fit"), None
        else:
            source, target = rows_of_pair(p_source, y_source, p_target)
        asked = getattr(self, "weights", None) if weights is None else weights
        if target is None and isinstance(asked, str):
            msg = f"weights={show(asked)} needs a p_target, from which the weights are estimated"
            raise InvalidInput(msg)
        self._search = None
        learned = self._fit(source, target, asked)
        if target is not None:
            self._warn(source, target, asked)
        return self._keep(source, learned)

    def fit_rows(
        self: Self,
        source: Predictions,
        target: Predictions | None,
        weights: Any,
        near: Recalibrator | None = None,
    ) -> Self:
        """`fit` to validated rows, without the warnings that take another computation.

        A search starts where that of a fit ``near``, to similar rows, ended.
        """
        asked = getattr(self, "weights", None) if weights is None else weights
        self._search = None if near is None else near._search
        learned = self._fit(source, target, asked)
        return self._keep(source, learned)

    def _warn(self, source: Predictions, target: Predictions, weights: Any) -> None:
        """Warnings that the fit itself does not give."""

    def _keep(self: Self, source: Predictions, learned: dict[str, Any]) -> Self:
        self.__dict__.update({name: learned[name] for name in self._learned})
        self.n_classes_, self.classes_ = source.n_classes, source.classes
        self._search = learned.get("search")
        return self

    def transform(self, p: Any) -> Any:
        """Recalibrated probabilities, row by row; a `Predictions` for a `Predictions`."""
        given = as_predictions(p, labelled=False)
        self._check_classes(given)
        q, done = np.empty(given.p.shape, given.p.dtype), 0
        for block in given.blocks(max(1, BLOCK_CELLS // given.n_classes)):
            q[done : done + len(block)] = self._transform_block(block)
            done += len(block)
        return given.with_probabilities(q, keep_classes=True) if isinstance(p, Predictions) else q

    def _transform_block(self, block: Predictions) -> np.ndarray:
        """Recalibrated probabilities, (n, K) or (n,) as they were given."""
        # one memory layout, so that the sum of a row does not depend on the others
        rows = np.array(block.matrix, dtype=float, order="C")
        q = self._transform(rows / rows.sum(axis=1, keepdims=True))
        return q[:, 1] if block.p.ndim == 1 else q

    def fit_transform(
        self, p_source: Any, y_source: Any = None, p_target: Any = None, *, weights: Any = None
    ) -> Any:
        """`fit`, then `transform` of the source, for pipelines."""
        return self.fit(p_source, y_source, p_target, weights=weights).transform(p_source)

    def _check_classes(self, given: Predictions) -> None:
        if not self.__sklearn_is_fitted__():
            msg = f"{type(self).__name__} is not fitted: call fit first"
            raise InvalidInput(msg)
        if given.n_classes != self.n_classes_:
            msg = f"p must have {self.n_classes_} classes, as at fit; got {given.n_classes}"
            raise InvalidInput(msg)
        fitted, other = (
            None if names is None else tuple(map(str, names))
            for names in (self.classes_, given.classes)
        )
        check_same_names(fitted, other, ("the recalibrator", "p"))

    # JSON -----------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """The recalibrator as plain values for JSON; `from_dict` restores it."""
        if not self.__sklearn_is_fitted__():
            msg = f"{type(self).__name__} is not fitted: call fit before to_dict"
            raise InvalidInput(msg)
        names = None if self.classes_ is None else [str(name) for name in self.classes_]
        return {
            "format": FORMAT,
            "version": VERSION,
            "name": type(self).__name__,
            "n_classes": self.n_classes_,
            "classes": names,
            "parameters": self._plain_parameters(),
            "learned": {name: plain_value(getattr(self, name)) for name in self._learned},
        }

    def _plain_parameters(self) -> dict[str, Any]:
        return {name: plain_value(value) for name, value in self.get_params(deep=False).items()}

    @classmethod
    def from_dict(cls: type[Self], saved: Any) -> Self:
        """The recalibrator saved by `to_dict`; called on `Recalibrator`, of any subclass."""
        kinds = {kind.__name__: kind for kind in Recalibrator.__subclasses__()}
        if not isinstance(saved, dict) or saved.get("format") != FORMAT:
            msg = f"saved must be the result of to_dict, with format {FORMAT!r}"
            raise InvalidInput(msg)
        name, version = saved.get("name"), saved.get("version")
        if version is True or version != VERSION or not (isinstance(name, str) and name in kinds):
            msg = (
                f"saved is version {show(version)} of {show(name)}; this calshift reads "
                f"version {VERSION} of {', '.join(sorted(kinds))}"
            )
            raise InvalidInput(msg)
        kind: Any = kinds[name]
        if not issubclass(kind, cls):
            msg = f"saved is a {name}, not a {cls.__name__}: use Recalibrator.from_dict"
            raise InvalidInput(msg)
        restored: Self = kind._restore(saved)
        return restored

    @classmethod
    def _restore(cls: type[Self], saved: dict[str, Any]) -> Self:
        K, learned = saved.get("n_classes"), saved.get("learned")
        complete = {"n_classes", "classes", "parameters", "learned"} <= set(saved)
        if not (complete and type(K) is int and K >= 2 and isinstance(learned, dict)):
            msg = "saved must have n_classes of at least 2, classes, parameters and learned"
            raise InvalidInput(msg)
        if set(learned) != set(cls._learned):
            msg = f"saved must have {', '.join(cls._learned)} of a {cls.__name__} in learned"
            raise InvalidInput(msg)
        made = cls(**cls._parameters_from(saved))
        for name, check in cls._learned.items():
            try:
                setattr(made, name, check(learned[name], K))
            except ValueError as problem:
                why = f": {problem}" if isinstance(problem, InvalidInput) else ""
                msg = f"saved has no valid {name} of a {cls.__name__} of {K} classes{why}"
                raise InvalidInput(msg) from None
        made.n_classes_, made.classes_ = K, read_class_names(saved["classes"], K)
        return made

    @classmethod
    def _parameters_from(cls, saved: dict[str, Any]) -> dict[str, Any]:
        given, known = saved["parameters"], inspect.signature(cls).parameters
        if not isinstance(given, dict) or set(given) - set(known):
            msg = f"saved must have the parameters of {cls.__name__}: {', '.join(known) or 'none'}"
            raise InvalidInput(msg)
        weights = given.get("weights")
        if isinstance(weights, list):  # None is the NaN of a class not in the source
            given = {**given, "weights": [np.nan if w is None else w for w in weights]}
        return given

    # scikit-learn ---------------------------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's parameters."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self: Self, **parameters: Any) -> Self:
        """Set some of the constructor's parameters."""
        known = self.get_params(deep=False)
        for name, value in parameters.items():
            if name not in known:
                msg = f"{type(self).__name__} has no parameter {show(name)}; it has {sorted(known)}"
                raise InvalidInput(msg)
            setattr(self, name, value)
        return self

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other) or not isinstance(other, Recalibrator):
            return NotImplemented
        fitted = self.__sklearn_is_fitted__(), other.__sklearn_is_fitted__()
        if fitted == (True, True):
            return self.to_dict() == other.to_dict()
        return fitted == (False, False) and self._plain_parameters() == other._plain_parameters()

    __hash__ = None  # type: ignore[assignment]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_classes_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import (
            InputTags,
            Tags,
            TargetTags,
            TransformerTags,
        )  # optional dependency

        return Tags(
            estimator_type="transformer",
            target_tags=TargetTags(required=True),
            transformer_tags=TransformerTags(),
            input_tags=InputTags(positive_only=True),
        )

    def __repr__(self) -> str:
        shown = [f"{k}={v!r}" for k, v in self.get_params().items() if v is not None]
        return f"{type(self).__name__}({', '.join(shown)})"


def plain_value(value: Any) -> Any:
    """Numbers, lists and strings for arrays, class weights and recalibrators."""
    if isinstance(value, Recalibrator):
        return value.to_dict()
    if isinstance(value, ClassWeights):
        return plain(value.values)
    if isinstance(value, list | tuple):
        return [plain_value(item) for item in value]
    if isinstance(value, np.generic):
        return value.item()
    return plain(np.asarray(value)) if hasattr(value, "__array__") else value
