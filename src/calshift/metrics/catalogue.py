"""Metrics by name. Names and averages are those of scikit-learn where it has them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, NamedTuple

import numpy as np

from calshift._core.frozen import Frozen
from calshift._core.validate import show
from calshift.errors import InvalidInput
from calshift.metrics.class_counts import (
    AVERAGES,
    RATIOS,
    ClassRatio,
    CountFunction,
    balanced_accuracy,
    cohen_kappa,
    matthews_corrcoef,
)
from calshift.metrics.row_scores import (
    BrierScore,
    CellScore,
    Cost,
    Custom,
    LogLoss,
    RowScore,
    TopHit,
)

SHARE, UNBOUNDED, POSITIVE = (0.0, 1.0), (-np.inf, np.inf), (0.0, np.inf)
OF_TWO = (
    "prevalence", "alarm_rate", "accuracy", "balanced_accuracy", "precision", "recall",
    "specificity", "npv", "f1", "missed_cases", "roc_auc", "log_loss", "brier_score", "oe_ratio",
)  # fmt: skip
OF_MANY = ("accuracy", "balanced_accuracy", "f1_macro", "log_loss", "brier_score")
OF_CLASS = (
    "precision", "recall", "f1", "specificity", "npv", "roc_auc", "average_precision", "oe_ratio",
    "calibration_slope", "calibration_intercept",
)  # fmt: skip
COUNTED: dict[str, tuple[CountFunction, tuple[float, float]]] = {
    "balanced_accuracy": (balanced_accuracy, SHARE),
    "cohen_kappa": (cohen_kappa, (-1.0, 1.0)),
    "matthews_corrcoef": (matthews_corrcoef, (-1.0, 1.0)),
}
RANKED = ("roc_auc_ovr", "roc_auc_ovr_weighted")
POSITIVE_ONLY = ("prevalence", "alarm_rate", "missed_cases", "false_alarms")
PLAIN = ("accuracy", "log_loss", "brier_score", "top_k_accuracy", "expected_cost")
TITLES = {
    "alarm_rate": "alarm rate (share predicted positive)",
    "brier_score": "Brier score",
    "false_alarms": "false alarms (share of all rows)",
    "f1": "F1",
    "missed_cases": "missed cases (share of all rows)",
    "npv": "negative predictive value (NPV)",
    "oe_ratio": "observed / expected positives (O:E)",
    "precision": "precision (positive predictive value, PPV)",
    "prevalence": "prevalence",
    "recall": "recall (sensitivity)",
    "roc_auc": "area under the ROC curve (AUC)",
}


class Setting(NamedTuple):
    """What metrics depend on: the classes, the positive one, and the costs."""

    n_classes: int
    classes: tuple[Any, ...] | None
    positive: int | None
    cost: np.ndarray | None


@dataclass(frozen=True, eq=False)
class Metric(Frozen):
    """A metric by name.

    Attributes
    ----------
    name : as asked for
    bounds : its least and largest value
    score : of a mean over rows
    function : of the confusion matrix
    areas : classes whose areas under ROC curves are averaged
    weighted : whether these are weighted by class prior
    n_classes : K, of areas
    ratio : class whose actual rows are counted relative to those expected
    precision_of : class of an average precision
    line : class of a line of calibration, and whether its slope is meant
    """

    name: str
    bounds: tuple[float, float] = SHARE
    score: RowScore | None = None
    function: CountFunction | None = None
    areas: tuple[int, ...] = ()
    weighted: bool = False
    n_classes: int = 0
    ratio: int | None = None
    precision_of: int | None = None
    line: tuple[int, bool] | None = None

    @property
    def is_average(self) -> bool:
        """Whether it is an average over classes, of which some may be undefined."""
        return len(self.areas) > 1 or getattr(self.function, "average", None) is not None

    @property
    def title(self) -> str:
        """The name in words."""
        name, _, label = self.name.partition("[")
        text = TITLES.get(name, name.replace("_", " "))
        return f"{text}, class {label[:-1]}" if label else text


def make_metrics(metrics: Any, setting: Setting) -> tuple[Metric, ...]:
    """The metrics asked for: names, a mapping of names to functions, or None for the usual ones."""
    if metrics is None:
        names: tuple[str, ...] = OF_TWO if setting.n_classes == 2 else OF_MANY
        names = (*names, "expected_cost") if setting.cost is not None else names
        return tuple(one for name in names for one in _named(name, setting))
    asked = (metrics,) if isinstance(metrics, str) else metrics
    if getattr(asked, "ndim", 0) == 1:  # an array, or an index of a frame
        asked = list(asked)
    if not isinstance(asked, list | tuple | Mapping):
        msg = f"metrics must be names, or a mapping of names to functions; got {show(metrics)}"
        raise InvalidInput(msg)
    found = tuple(one for each in _entries(asked) for one in _make(*each, setting))
    if not found:
        msg = "metrics must name at least one metric"
        raise InvalidInput(msg)
    return tuple({one.name: one for one in found}.values())


def _entries(asked: Any) -> Iterator[tuple[Any, Any]]:
    """Names with functions, or None: of a mapping, or of a list that may contain mappings."""
    if isinstance(asked, Mapping):
        yield from asked.items()
        return
    for one in asked:
        yield from one.items() if isinstance(one, Mapping) else ((one, None),)


def _make(name: Any, function: Any, setting: Setting) -> Iterable[Metric]:
    if not isinstance(name, str) or not name:
        msg = f"a metric must have a name; got {show(name)}"
        raise InvalidInput(msg)
    if function is None:
        return _named(name, setting)
    if not callable(function):
        msg = f"metric {name!r} must be a function of p and y; got {show(function)}"
        raise InvalidInput(msg)
    return (Metric(name, UNBOUNDED, Custom(name, function)),)


def _named(name: str, setting: Setting) -> Iterable[Metric]:
    """The metrics of a name; of "..._per_class" there are several."""
    stem, _, label = name.partition("[")
    if name in PLAIN or re.fullmatch(r"top_\d+_accuracy", name):
        return (_plain(name, setting),)
    if name in COUNTED:
        function, bounds = COUNTED[name]
        return (Metric(name, bounds, function=function),)
    if name in RANKED:
        K = setting.n_classes
        return (Metric(name, areas=tuple(range(K)), weighted=name == RANKED[1], n_classes=K),)
    if name.endswith("_per_class") and name[:-10] in OF_CLASS:
        names = range(setting.n_classes) if setting.classes is None else setting.classes
        return [_of_class(name[:-10], k, f"[{one}]", setting) for k, one in enumerate(names)]
    if label.endswith("]") and stem in OF_CLASS:
        number = _class_number(label[:-1], name, setting)
        return (_of_class(stem, number, f"[{label}", setting),)
    if name in OF_CLASS or name in POSITIVE_ONLY:
        return (_of_positive(name, setting),)
    stem, _, average = name.rpartition("_")
    if stem in RATIOS and average in AVERAGES:
        return (Metric(name, function=ClassRatio(stem, average=average)),)
    raise InvalidInput(_unknown(name))


def _plain(name: str, setting: Setting) -> Metric:
    """A mean over rows, whatever the classes."""
    if name == "accuracy":
        return Metric(name, SHARE, CellScore.make(setting.n_classes, hits=1.0))
    if name == "log_loss":
        return Metric(name, POSITIVE, LogLoss())
    if name == "brier_score":
        two = setting.n_classes == 2
        return Metric(name, (0.0, 1.0 if two else 2.0), BrierScore(0.5 if two else 1.0))
    if name == "expected_cost":
        if setting.cost is None:
            msg = 'metric "expected_cost" needs cost=, a matrix by predicted and true class'
            raise InvalidInput(msg)
        ends = float(setting.cost.min()), float(setting.cost.max())
        return Metric(name, ends, Cost(setting.cost))
    k = 2 if name == "top_k_accuracy" else int(name.split("_")[1])
    if not 1 <= k < setting.n_classes:
        msg = f"{name} needs k from 1 to {setting.n_classes - 1}, fewer than there are classes"
        raise InvalidInput(msg)
    return Metric(name, SHARE, TopHit(k))


def _of_class(name: str, label: int, suffix: str, setting: Setting) -> Metric:
    """A metric of one class."""
    if name == "roc_auc":
        return Metric(name + suffix, areas=(label,), n_classes=setting.n_classes)
    if name == "oe_ratio":
        return Metric(name + suffix, POSITIVE, ratio=label)
    if name == "average_precision":
        return Metric(name + suffix, precision_of=label)
    if name in ("calibration_slope", "calibration_intercept"):
        return Metric(name + suffix, UNBOUNDED, line=(label, name == "calibration_slope"))
    return Metric(name + suffix, function=ClassRatio(name, label))


def _of_positive(name: str, setting: Setting) -> Metric:
    """A metric of the positive class."""
    label = setting.positive
    if label is None:
        others = f"{name}_macro, {name}_micro, {name}_weighted, " if name in RATIOS else ""
        others += f"{name}_per_class, " if name in OF_CLASS else ""
        others = f"ask for {others}or name" if others else "name"
        msg = f"{name} is of one class: {others} the class by positive="
        raise InvalidInput(msg)
    if name not in POSITIVE_ONLY:
        return _of_class(name, label, "", setting)
    values = {
        "prevalence": {"actual": 1.0},
        "alarm_rate": {"predicted": 1.0},
        "missed_cases": {"actual": 1.0, "hits": -1.0},
        "false_alarms": {"predicted": 1.0, "hits": -1.0},
    }[name]
    return Metric(name, SHARE, CellScore.of_class(label, setting.n_classes, **values))


def _class_number(label: str, name: str, setting: Setting) -> int:
    names = range(setting.n_classes) if setting.classes is None else setting.classes
    texts = [str(one) for one in names]
    if label not in texts:
        msg = f"metric {name!r} must name one of the classes {', '.join(texts[:10])}"
        raise InvalidInput(msg)
    return texts.index(label)


def known_names() -> list[str]:
    """All names, without those by number or class."""
    averaged = [f"{stem}_{average}" for stem in RATIOS for average in AVERAGES]
    by_class = [f"{stem}_per_class" for stem in OF_CLASS]
    return sorted({*PLAIN, *COUNTED, *RANKED, *OF_CLASS, *POSITIVE_ONLY, *averaged, *by_class})


SYNONYMS = {
    "accuracy_score": "accuracy", "auc": "roc_auc", "auc_pr": "average_precision",
    "auprc": "average_precision", "auroc": "roc_auc", "brier": "brier_score",
    "brier_score_loss": "brier_score", "f1_score": "f1",
    "kappa": "cohen_kappa", "mcc": "matthews_corrcoef", "ppv": "precision",
    "precision_score": "precision", "recall_score": "recall", "roc_auc_score": "roc_auc",
    "sensitivity": "recall", "tnr": "specificity", "tpr": "recall",
}  # fmt: skip


def _unknown(name: str) -> str:
    meant = SYNONYMS.get(name.lower(), name.lower())
    if meant in known_names():
        return f"there is no metric {name!r}: it is called {meant} here"
    near = get_close_matches(name, known_names(), 3, 0.5)
    advice = f"did you mean {' or '.join(near)}?" if near else f"one of {', '.join(known_names())}"
    return f"there is no metric {name!r}: {advice}"
