"""What all recalibrators share: fit, transform, JSON, and scikit-learn's manners."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar, TypeVar

import numpy as np

from calshift.checks import check_same_names
from calshift.conversion import plain
from calshift.errors import InvalidInput
from calshift.predictions import Predictions, as_pair, as_predictions, as_source
from calshift.results import ClassWeights

FORMAT, VERSION = "calshift recalibrator", 1
Self = TypeVar("Self", bound="Recalibrator")


class Recalibrator:
    """Mends probabilities: `fit` on a labelled source, with or without a target, then `transform`.

    A subclass says in `_learn` what it learns, by the names of `_learned`, and in `_mend` what it
    does to a matrix of probabilities. What is learned is plain numbers and lists of them, so that
    `to_dict` can be written as JSON.

    Attributes
    ----------
    keeps_ranking : whether the order of the classes within a row always stays, and with it accuracy
    n_classes_, classes_ : how many classes it was fitted to, and their names or None
    """

    keeps_ranking: ClassVar[bool] = False
    _learned: ClassVar[tuple[str, ...]] = ()

    def _learn(
        self, source: Predictions, target: Predictions | None, weights: Any
    ) -> dict[str, Any]:
        """Values of the names in `_learned`."""
        raise NotImplementedError

    def _mend(self, p: np.ndarray) -> np.ndarray:
        """(n, K) -> (n, K)."""
        raise NotImplementedError

    def _start_like(self, other: Recalibrator) -> None:
        """Search near what another of its kind found on similar rows: faster, the same answer."""

    def fit(
        self: Self,
        p_source: Any,
        y_source: Any = None,
        p_target: Any = None,
        *,
        weights: Any = None,
    ) -> Self:
        """Fit to labelled source rows, for the target's mix where it is given or known.

        Parameters
        ----------
        p_source, y_source : predictions and labels of the source, or a `Predictions` alone
        p_target : predictions of the target, without labels
        weights : class weights, a method's name, a vector or a ClassWeights; in the place of the
            constructor's. A name needs ``p_target``; None with a ``p_target`` estimates them.
        """
        if p_target is None:
            source, target = as_source(p_source, y_source), None
        else:
            source, target = as_pair(p_source, y_source, p_target)
        asked = getattr(self, "weights", None) if weights is None else weights
        if target is None and isinstance(asked, str):
            msg = f"weights={asked!r} needs a p_target, from which it estimates them"
            raise InvalidInput(msg)
        learned = self._learn(source, target, asked)
        self.__dict__.update({name: learned[name] for name in self._learned})
        self.n_classes_, self.classes_ = source.n_classes, source.classes
        return self

    def transform(self, p: Any) -> Any:
        """Mended probabilities, each row by itself; a `Predictions` comes back as one."""
        given = as_predictions(p, labelled=False)
        self._check_classes(given)
        # one layout, so that a row's sums do not depend on how the others lie in memory
        mended = self._mend(np.array(given.matrix, dtype=float, order="C"))
        mended = mended[:, 1] if given.p.ndim == 1 else mended
        mended = mended.astype(given.p.dtype, copy=False)
        if not isinstance(p, Predictions):
            return mended
        return Predictions(mended, p.y, classes=p.classes, sample_weight=p.sample_weight)

    def fit_transform(
        self,
        p_source: Any,
        y_source: Any = None,
        p_target: Any = None,
        *,
        weights: Any = None,
    ) -> Any:
        """`fit`, then `transform` of the source, as pipelines ask for."""
        return self.fit(p_source, y_source, p_target, weights=weights).transform(p_source)

    def _check_classes(self, given: Predictions) -> None:
        if not self.__sklearn_is_fitted__():
            msg = f"{type(self).__name__} is not fitted: call fit first"
            raise InvalidInput(msg)
        if given.n_classes != self.n_classes_:
            msg = f"p must have {self.n_classes_} classes, as at fit; it has {given.n_classes}"
            raise InvalidInput(msg)
        names = [
            None if of is None else tuple(map(str, of)) for of in (self.classes_, given.classes)
        ]
        check_same_names(names[0], names[1], ("the recalibrator", "p"))

    # JSON -----------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Everything, in plain values that JSON can hold; `from_dict` reads it."""
        if not self.__sklearn_is_fitted__():
            msg = f"{type(self).__name__} is not fitted: there is nothing to save"
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
        """The recalibrator that `to_dict` described; on `Recalibrator` of any kind."""
        kinds = {kind.__name__: kind for kind in Recalibrator.__subclasses__()}
        if not isinstance(saved, dict) or saved.get("format") != FORMAT:
            msg = f"saved must be what to_dict gave, with format {FORMAT!r}"
            raise InvalidInput(msg)
        if saved.get("version") != VERSION or saved.get("name") not in kinds:
            msg = (
                f"saved is version {saved.get('version')!r} of {saved.get('name')!r}; this "
                f"calshift reads version {VERSION} of {', '.join(sorted(kinds))}"
            )
            raise InvalidInput(msg)
        kind = kinds[saved["name"]]
        if not issubclass(kind, cls):
            msg = f"saved is a {saved['name']}, not a {cls.__name__}: use Recalibrator.from_dict"
            raise InvalidInput(msg)
        return kind._restored(saved)

    @classmethod
    def _restored(cls: type[Self], saved: dict[str, Any]) -> Self:
        made, K = cls(**cls._parameters_from(saved)), saved.get("n_classes")
        learned, names = saved.get("learned"), saved.get("classes")
        if not (isinstance(K, int) and K >= 2 and isinstance(learned, dict)):
            msg = "saved is not whole: n_classes or what was learned is missing"
            raise InvalidInput(msg)
        if set(learned) != set(cls._learned) or (names is not None and len(names) != K):
            msg = f"saved must hold {', '.join(cls._learned)} of {K} classes"
            raise InvalidInput(msg)
        made.__dict__.update({name: made._revived(name, learned[name]) for name in cls._learned})
        made.n_classes_, made.classes_ = K, None if names is None else tuple(names)
        with np.errstate(all="ignore"):
            made._prove()
        return made

    @classmethod
    def _parameters_from(cls, saved: dict[str, Any]) -> dict[str, Any]:
        given = saved.get("parameters")
        known = inspect.signature(cls).parameters
        if not isinstance(given, dict) or set(given) - set(known):
            msg = f"saved must hold the parameters of {cls.__name__}: {', '.join(known) or 'none'}"
            raise InvalidInput(msg)
        return given

    def _revived(self, name: str, value: Any) -> Any:
        """What was learned, from JSON: numbers stay, lists of numbers become arrays."""
        try:
            return np.array(value, dtype=float) if isinstance(value, list) else float(value)
        except (TypeError, ValueError):
            msg = f"saved holds no numbers in the place of {name}"
            raise InvalidInput(msg) from None

    def _prove(self) -> None:
        """What was read must mend probabilities into probabilities."""
        K = self.n_classes_
        rows = np.vstack([np.full(K, 1 / K), np.eye(K)[0]])
        try:
            mended = self._mend(rows)
            good = mended.shape == rows.shape and np.allclose(mended.sum(axis=1), 1)
        except (ValueError, IndexError, TypeError, AttributeError):
            good = False
        if not (good and (mended >= 0).all()):
            msg = f"saved does not make a {type(self).__name__} of {K} classes"
            raise InvalidInput(msg)

    # scikit-learn ---------------------------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's parameters."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self: Self, **parameters: Any) -> Self:
        """Set some of the constructor's parameters."""
        known = self.get_params(deep=False)
        for name, value in parameters.items():
            if name not in known:
                msg = f"{type(self).__name__} has no parameter {name!r}; it has {sorted(known)}"
                raise InvalidInput(msg)
            setattr(self, name, value)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_classes_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags  # only if asked

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
    """Numbers, lists and texts in the place of arrays, class weights and recalibrators."""
    if isinstance(value, Recalibrator):
        return value.to_dict()
    if isinstance(value, ClassWeights):
        return plain(value.values)
    if isinstance(value, np.ndarray):
        return plain(value)
    if isinstance(value, list | tuple):
        return [plain_value(item) for item in value]
    return float(value) if isinstance(value, np.floating) else value
