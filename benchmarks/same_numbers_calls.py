"""The calls of same_numbers.py on rows in memory, by group."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations, product
from typing import Any

import numpy as np
from same_numbers_samples import pair

import calshift

Calls = Iterator[tuple[str, Callable[[], Any]]]  # names, and what to call
Chosen = dict[str, Any]

METHODS = (
    "bbse", "bbse-soft", "rlls", "rlls-soft", "em", "em-ts", "em-bcts", "em-vs", "em-nbvs", "map",
    "elsa", "kmm",
)  # fmt: skip
KINDS = ("classwise", "binary", "top-label", "canonical")
RECALIBRATORS = (
    "shift", "temperature", "bcts", "vector", "isotonic", "ensemble", "label-free", "prior",
    "temperature+prior", "bcts+prior", "vector+prior",
)  # fmt: skip
EDGES = [0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.95]
SMOOTHINGS: dict[str, dict[str, Any]] = {
    "auto": {},
    "15 mass": {"bins": 15},
    "15 width": {"bins": 15, "binning": "width"},
    "edges": {"bins": EDGES},
    "bin_edges, 10": {},  # made from the target
    "bin_edges, auto": {},
    "dirichlet": {"kernel": "dirichlet"},
    "triweight": {"kernel": "triweight"},
    "bandwidth 0.1": {"kernel": "triweight", "bandwidth": 0.1},
}
KERNELS = ("dirichlet", "triweight", "bandwidth 0.1")
TWO = ("beta", "beta, float32", "beta, tied")
SEVERAL = ("3 classes", "3 classes, float32", "fractions", "weights of 0")
OTHERS = ("2 columns", "beta, fractions", "whole weights", "polars", "pandas", "unseen classes")
LARGE = ("10 classes", "10 classes, float32", "10 classes, tail", "30 classes", "100 classes")
AXES: dict[str, tuple[Any, ...]] = {
    "kind": KINDS,
    "norm": (1, 2, 3),
    "estimator": ("debiased", "plugin", "paper"),
    "smoothing": tuple(SMOOTHINGS),
    "interval": ("influence", "bootstrap", None),
    "sample": TWO + SEVERAL,
    "stratified": (False, True),
}
WEIGHTS = ("em-bcts", "bbse", "map", "vector", "ClassWeights", "labels")


def _possible(asked: Chosen) -> bool:
    """Whether calshift answers; what it refuses has calls of its own."""
    binary, canonical = asked["kind"] == "binary", asked["kind"] == "canonical"
    if binary and asked["sample"] not in TWO:
        return False
    return not (canonical and asked["smoothing"] not in ("auto", *KERNELS))


def _selected(axes: dict[str, tuple[Any, ...]], seed: int) -> list[Chosen]:
    """Combinations in which every possible pair of values occurs."""
    rng, chosen, covered = random.Random(seed), [], set()
    pairs = [
        ((a, one), (b, two))
        for a, b in combinations(axes, 2)
        for one, two in product(axes[a], axes[b])
    ]
    rng.shuffle(pairs)
    for both in pairs:
        if both in covered:
            continue
        tries = [{name: rng.choice(values) for name, values in axes.items()} for _ in range(60)]
        tries = [one for one in ({**one, **dict(both)} for one in tries) if _possible(one)]
        if tries:
            best = max(tries, key=lambda one: len(_pairs(one) - covered))
            covered |= _pairs(best)
            chosen.append(best)
    return chosen


def _pairs(asked: Chosen) -> set[Any]:
    return set(combinations(asked.items(), 2))


def _options(asked: Chosen) -> dict[str, Any]:
    """Keyword arguments of the two errors."""
    names = ("kind", "norm", "estimator", "interval", "stratified")
    found = {name: asked[name] for name in names}
    found |= SMOOTHINGS[asked["smoothing"]]
    if asked["smoothing"].startswith("bin_edges"):
        bins = "auto" if asked["smoothing"].endswith("auto") else 10
        found["bins"] = calshift.bin_edges(pair(asked["sample"]).q, kind=asked["kind"], bins=bins)
    return {**found, "n_boot": 20, "rng": 3} if asked["interval"] == "bootstrap" else found


def _labelled(asked: Chosen) -> Any:
    sample = pair(asked["sample"])
    return calshift.calibration_error(sample.p, sample.y, **_options(asked))


def _shifted(asked: Chosen) -> Any:
    sample = pair(asked["sample"])
    weights = _weights(asked["weights"], asked["sample"])
    return calshift.target_calibration_error(*sample.shifted, weights=weights, **_options(asked))


def _weights(name: str, sample: str) -> Any:
    """A method, a vector, a ClassWeights, or those of the labels."""
    found = pair(sample)
    if name in METHODS:
        return name
    if name == "ClassWeights":
        return calshift.label_shift_weights(*found.shifted, method="bbse-soft")
    y = found.p.y if found.y is None else found.y
    known = calshift.weights_from_labels(y, found.z, max(2, int(found.z.max()) + 1))
    return np.nan_to_num(known.values, nan=1.0) if name == "vector" else known


def labelled_errors() -> Calls:
    """calibration_error, in pairs of options."""
    for asked in _selected(AXES, 1):
        yield ", ".join(map(str, asked.values())), partial(_labelled, asked)
    for name, norm in product(("beta, many", *OTHERS, *LARGE), (1, 2)):
        asked = partial(calshift.calibration_error, *pair(name)[:2], norm=norm)
        yield f"{name}, norm {norm}", asked


def shifted_errors() -> Calls:
    """target_calibration_error, in pairs of options."""
    for asked in _selected({**AXES, "weights": WEIGHTS}, 2):
        yield ", ".join(map(str, asked.values())), partial(_shifted, asked)
    several = ("beta, many", "3 classes, calibrated", "3 classes, flattened", "fashion", *LARGE)
    for name, kind, norm in product(several, ("classwise", "top-label"), (1, 2)):
        asked = partial(
            calshift.target_calibration_error, *pair(name).shifted, kind=kind, norm=norm
        )
        yield f"{name}, {kind}, norm {norm}", asked
    for name in OTHERS:
        yield name, partial(calshift.target_calibration_error, *pair(name).shifted)
    for method in METHODS:
        asked = partial(
            calshift.target_calibration_error, *pair("3 classes, many").shifted, weights=method
        )
        yield f"3 classes, many, {method}", asked


def class_weights() -> Calls:
    """label_shift_weights by method, and weights_from_labels."""
    samples = (
        "beta", "3 classes", "3 classes, float32", "fractions", "unseen classes", "10 classes",
        "30 classes",
    )  # fmt: skip
    for name, method in product(samples, METHODS):
        asked = partial(calshift.label_shift_weights, *pair(name).shifted, method=method)
        yield f"{name}, {method}", asked
    for method in ("bbse-soft", "em-bcts", "map"):
        asked = partial(calshift.label_shift_weights, *pair("100 classes").shifted, method=method)
        yield f"100 classes, {method}", asked
    for name in ("beta", "3 classes", "unseen classes", "100 classes"):
        yield f"{name}, labels", partial(_weights, "labels", name)


def checks() -> Calls:
    """check_label_shift."""
    names = (
        "beta, many", "beta, tied", "3 classes", "3 classes, flattened", "whole weights",
        "fractions", "unseen classes", "10 classes", "30 classes", "100 classes", "fashion",
    )  # fmt: skip
    for name in names:
        yield name, partial(calshift.check_label_shift, *pair(name).shifted)
    sample = pair("3 classes, flattened").shifted
    yield "level .01", partial(calshift.check_label_shift, *sample, level=0.01, n_boot=400, rng=7)


def curves() -> Calls:
    """reliability_curve with and without a target."""
    asked = [
        ("beta", "binary", None), ("2 columns", "classwise", 0), ("2 columns", "binary", None),
        ("3 classes", "classwise", None), ("3 classes", "classwise", 2),
        ("3 classes", "top-label", None), ("fractions", "classwise", 1),
        ("10 classes, float32", "top-label", None), ("fashion", "classwise", 3),
    ]  # fmt: skip
    for (name, kind, label), bins in product(asked, ("auto", 10, EDGES)):
        p, y, q, _ = pair(name)
        options = {"kind": kind, "label": label, "bins": bins}
        called = f"{name}, {kind}, {label}, {bins if bins != EDGES else 'edges'}"
        yield called, partial(calshift.reliability_curve, p, y, **options)
        yield f"{called}, target", partial(calshift.reliability_curve, p, y, q, **options)


def comparisons() -> Calls:
    """compare: the target with the source, and two models on the same rows."""
    for name, norm in product(("beta", "3 classes", "fractions", "10 classes"), (1, 2)):
        yield f"{name}, norm {norm}", partial(_with_source, name, norm)
        yield f"{name}, norm {norm}, two models", partial(_two_models, name, norm)


def _with_source(name: str, norm: int) -> Any:
    result = calshift.target_calibration_error(*pair(name).shifted, norm=norm, check=False)
    return calshift.compare(result, result.source)


def _two_models(name: str, norm: int) -> Any:
    p, y, q, _ = pair(name)
    other = calshift.TemperatureScaling().fit(p, y)
    mended = [other.transform(rows) for rows in (p, q)]
    asked = [(p, y, q), (mended[0], y, mended[1])]
    found = [calshift.target_calibration_error(*one, norm=norm, weights="bbse") for one in asked]
    return calshift.compare(*found)


def sums() -> Calls:
    """bin_edges, accumulate and target_calibration_error_from."""
    asked = [
        ("beta", "binary"), ("beta, float32", "binary"), ("3 classes", "classwise"),
        ("fractions", "top-label"), ("10 classes", "classwise"),
    ]  # fmt: skip
    for (name, kind), bins in product(asked, ("auto", 12)):
        yield f"{name}, {kind}, {bins}, edges", partial(_edges, name, kind, bins)
        yield f"{name}, {kind}, {bins}, sums", partial(_sums, name, kind, bins)
        for norm, estimator in ((1, "debiased"), (2, "debiased"), (3, "plugin"), (2, "paper")):
            if estimator != "paper" or bins != "auto":
                called = f"{name}, {kind}, {bins}, norm {norm}, {estimator}"
                yield called, partial(_from_sums, name, kind, bins, norm, estimator)


def _edges(name: str, kind: str, bins: Any) -> Any:
    return calshift.bin_edges(pair(name).q, kind=kind, bins=bins)


def _sums(name: str, kind: str, bins: Any) -> Any:
    p, y, q, _ = pair(name)
    edges = _edges(name, kind, bins)
    if y is None:  # it carries weights of rows, and its labels
        return calshift.accumulate(p, None, q, edges=edges)
    parts = [slice(0, 250), slice(250, None)]
    return sum(calshift.accumulate(p[part], y[part], q[part], edges=edges) for part in parts)


def _from_sums(name: str, kind: str, bins: Any, norm: int, estimator: str) -> Any:
    return calshift.target_calibration_error_from(
        _sums(name, kind, bins), weights=_weights("vector", name), norm=norm, estimator=estimator
    )
