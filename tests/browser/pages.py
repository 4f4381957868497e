"""Report pages of every kind, as `calshift.write_report` writes them, from little data."""

from __future__ import annotations

import copy
import tempfile
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import calshift
from calshift import Predictions, UnreliableWeights
from calshift.report import render_html, summarize
from calshift.results import CalibrationErrorResult, MetricsResult
from calshift.simulate import BetaSimulation, GaussianSimulation

ROWS = 300
NAMES = ("cat", "dog", "ferret", "horse")
SCRIPT = "<script>alert(1)</script>"
IMAGE = '"><img src=x onerror=alert(1)>'
LONG = "x" * 200
RIGHT_TO_LEFT = "שלום עולם"
EMOJI = "🦊 fox"
ODD_NAMES = (SCRIPT, IMAGE, LONG, RIGHT_TO_LEFT, EMOJI)
SHOWN_NAMES = (SCRIPT, IMAGE, LONG[:57] + "...", RIGHT_TO_LEFT, EMOJI)


def written(result: CalibrationErrorResult, **options: Any) -> str:
    """The text of the page that write_report writes."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "report.html"
        calshift.write_report(result, place, **options)
        return place.read_text(encoding="utf-8")


def samples(names: tuple[str, ...]) -> tuple[Predictions, np.ndarray]:
    """A labelled source with these classes, and a target whose class priors differ."""
    simulation = GaussianSimulation(n_classes=len(names))
    p_source, y_source = simulation.source(ROWS, rng=1)
    return Predictions(p_source, y_source, classes=names), simulation.target(ROWS, rng=3)[0]


def without(source: Predictions, label: int) -> Predictions:
    """The same source, without the rows of one class."""
    kept = source.labels != label
    return Predictions(source.p[kept], source.labels[kept], classes=source.classes)


def estimated(source: Predictions, p_target: np.ndarray, **options: Any) -> CalibrationErrorResult:
    """The label-free error; that it may be unreliable is for the page to say."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnreliableWeights)
        return calshift.target_calibration_error(source, None, p_target, **options)


@cache
def plain_result() -> CalibrationErrorResult:
    return estimated(*samples(NAMES))


@cache
def odd_result() -> CalibrationErrorResult:
    """Of classes with the oddest names, one of which the source lacks: warnings name it."""
    source, p_target = samples(ODD_NAMES)
    return estimated(without(source, 1), p_target)


def untrusted_result() -> CalibrationErrorResult:
    """More than the class priors changed: the target has predictions of other classes, sharper."""
    source, p_target = samples(NAMES)
    sharper = p_target[:, [1, 0, 2, 3]] ** 3
    return estimated(source, sharper / sharper.sum(axis=1, keepdims=True))


def binary_result() -> CalibrationErrorResult:
    simulation = BetaSimulation()
    source = Predictions(*simulation.source(ROWS, rng=1))
    return estimated(source, simulation.target(ROWS, rng=3)[0])


def missing_result() -> CalibrationErrorResult:
    source, p_target = samples(NAMES)
    return estimated(without(source, 2), p_target)


def metrics_of(kind: str) -> MetricsResult | None:
    """The metrics on the page of a kind, if it has any."""
    if kind not in WITH_METRICS:
        return None
    source, target = WITH_METRICS[kind]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnreliableWeights)
        names = None if source.n_classes == 2 else MANY_METRICS
        return calshift.target_metrics(source, None, target, metrics=names)


def screening_samples() -> tuple[Predictions, np.ndarray]:
    """A rare disease that became more frequent."""
    rng = np.random.default_rng(1)
    scores = []
    for rows, prevalence in ((20_000, 0.02), (4000, 0.1)):
        y = (rng.random(rows) < prevalence).astype(int)
        z = rng.normal(2.5 * y, 1)
        scores.append((1 / (1 + np.exp(4 + 3.1 - 2.5 * z)), y))
    return Predictions(*scores[0], classes=("healthy", "ill")), scores[1][0]


def sharper_samples() -> tuple[Predictions, np.ndarray]:
    """Of more than the class priors, which changed too."""
    source, p_target = screening_samples()
    return source, 1 - (1 - p_target) ** 5


def many_samples() -> tuple[Predictions, np.ndarray]:
    return samples(NAMES)


def odd_samples() -> tuple[Predictions, np.ndarray]:
    return samples(ODD_NAMES)


MANY_METRICS = ("accuracy", "balanced_accuracy", "f1_macro", "log_loss", "precision_per_class")
WITH_METRICS = {
    "metrics": screening_samples,
    "metrics untrusted": sharper_samples,
    "metrics of many": many_samples,
    "metrics of odd names": odd_samples,
}


KINDS = {
    "plain": plain_result,
    "untrusted": untrusted_result,
    "binary": binary_result,
    "missing class": missing_result,
    "no interval": lambda: estimated(*samples(NAMES), norm=3, interval=None),
    "given weights": lambda: estimated(*samples(NAMES), weights=np.ones(4)),
    "unchecked": lambda: estimated(*samples(NAMES), check=False),
    "odd names": odd_result,
    **{name: (lambda make=make: estimated(*make())) for name, make in WITH_METRICS.items()},
}


@cache
def page_of(kind: str) -> str:
    """The page of a kind of result."""
    return written(KINDS[kind](), metrics=metrics_of(kind))


@cache
def page_with_status(status: str) -> str:
    """A page that is "fine", "breached" or "untrusted"."""
    if status == "untrusted":
        return page_of("untrusted")
    return written(plain_result(), max_error=0.9 if status == "fine" else 0.001)


def plain_report() -> dict[str, Any]:
    """A report's dict, free to be changed."""
    return copy.deepcopy(summarize(plain_result()))


def page_of_classes(**columns: list[Any]) -> str:
    """The plain page, with these values in the records of its four classes."""
    report = plain_report()
    for name, values in columns.items():
        for one, value in zip(report["classes"], values, strict=True):
            one[name] = value
    return render_html(report)


def report_of_many(count: int) -> dict[str, Any]:
    """A dict with that many classes, every number at full length and every class in doubt."""
    report, rng = plain_report(), np.random.default_rng(0)
    record, row = report["classes"][0], report["assumption"]["by_class"][0]
    report["classes"] = [
        {**_random_numbers(record, rng), "class": f"class {c}", "doubt": "too few source rows"}
        for c in range(count)
    ]
    report["assumption"]["by_class"] = [
        {**_random_numbers(row, rng), "predicted": f"class {c}"} for c in range(count)
    ]
    return report


def _random_numbers(record: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    def drawn(value: Any) -> Any:
        if isinstance(value, list):
            return sorted(rng.random(len(value)).tolist())
        return float(rng.random()) if isinstance(value, float) else value

    return {name: drawn(value) for name, value in record.items()}


def result_of_a_thousand_classes() -> CalibrationErrorResult:
    """An estimate over 1000 classes and 2000 rows; two bins, to be fast."""
    rng = np.random.default_rng(0)
    p = np.maximum(rng.dirichlet(np.full(1000, 0.02), 2000), 1e-9)
    p /= p.sum(axis=1, keepdims=True)
    y = (p.cumsum(axis=1) > rng.random((2000, 1))).argmax(axis=1)
    return estimated(Predictions(p, y), p[::-1], weights=np.ones(1000), check=False, bins=2)
