"""Pairs of calls whose results must agree.

Bootstrap intervals are left out everywhere: their draws choose rows by number. So is `recalibrate`,
because its folds are drawn by number too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

import calshift
from calshift import compiled
from calshift.recalibration import RECALIBRATORS
from calshift.weights import METHODS
from tests.fuzz.oracles.numbers import ABSOLUTE, is_undetermined, largest_difference
from tests.fuzz.oracles.outcomes import Finding, Outcome, judge, observe
from tests.fuzz.strategies.options import draw_class_weights, draw_estimate
from tests.fuzz.strategies.samples import Rng, Sample, chance, draw_sample, pick

UNDETERMINED = re.compile("does not discriminate|undetermined|did not converge")
# fits end where the likelihood changes by less than 1e-9 of itself, about the square root of it in
# probabilities where rows are certain
ABSOLUTE_FIT = 1e-4
Samples = tuple[Any, Any]  # source and target, as Predictions or scanned


@dataclass
class Relation:
    """A function of two samples, and two pairs of samples for which it must be the same."""

    name: str
    function: Callable[[Any, Any], Any]
    asked: str
    first: Samples
    second: Samples

    def examine(self) -> tuple[Outcome, list[Finding]]:
        """The first outcome, and what is wrong with the pair."""
        outcomes = [observe(lambda s=s: self.function(*s)) for s in (self.first, self.second)]
        found = [finding for one in outcomes for finding in judge(f"relation {self.name}", one)]
        return outcomes[0], found + list(self._compare(*outcomes))

    def _compare(self, a: Outcome, b: Outcome) -> Iterator[Finding]:
        if a.error is not None or b.error is not None:
            if (a.error is None) != (b.error is None) and self.name != "batches":
                # batches refuse what needs all rows at once, as documented
                error = a.error or b.error
                yield Finding(f"{self.name}: one is refused, {self._function}", f"{error!r}"[:500])
            return
        if is_undetermined(a.result):
            return  # weights that the samples do not determine are rounding, amplified
        if any(UNDETERMINED.search(str(one.message)) for one in (*a.warnings, *b.warnings)):
            return  # and so are fits to them, which is what their warning says
        gap = largest_difference(a.result, b.result, absolute=self._absolute)
        if gap is not None:
            detail = f"{self.asked}: differs by {gap:.3g}; {a.result!r} {b.result!r}"
            yield Finding(f"{self.name}: {self._function}", detail[:1500])

    @property
    def _absolute(self) -> float:
        return ABSOLUTE_FIT if self.asked.startswith("fit") else ABSOLUTE

    @property
    def _function(self) -> str:
        return self.asked.partition("(")[0]


@contextmanager
def use_numpy() -> Iterator[None]:
    """Turn compiled functions off in this block."""
    before = compiled.compiled_functions
    compiled.compiled_functions = lambda: None  # type: ignore[assignment]
    try:
        yield
    finally:
        compiled.compiled_functions = before  # type: ignore[assignment]


def draw_function(rng: Rng, sample: Sample) -> tuple[Callable[[Any, Any], Any], str]:
    """A function of source and target, and its name with options."""
    asked, K = draw_estimate(rng, sample), sample.K
    asked["interval"] = None if asked["interval"] == "bootstrap" else asked["interval"]
    weights, method = draw_class_weights(rng, K), pick(rng, METHODS)
    recalibrator = pick(rng, RECALIBRATORS)
    curve = {"kind": "binary" if sample.binary else "top-label", "bins": pick(rng, ("auto", 5))}
    probe = sample.q[:10].copy()
    options = {**asked, "weights": weights, "check": chance(rng, 0.2)}
    table: dict[str, tuple[Callable[[Any, Any], Any], Any]] = {
        "calibration_error": (lambda s, t: calshift.calibration_error(s, **asked), asked),
        "target_calibration_error": (
            lambda s, t: calshift.target_calibration_error(s, None, t, **options), options,
        ),
        "label_shift_weights": (
            lambda s, t: calshift.label_shift_weights(s, None, t, method=method), method,
        ),
        "check_label_shift": (
            lambda s, t: calshift.check_label_shift(s, None, t, n_boot=20, rng=0), "",
        ),
        "reliability_curve": (
            lambda s, t: calshift.reliability_curve(s, None, t, weights=weights, **curve), curve,
        ),
        "fit": (
            lambda s, t: RECALIBRATORS[recalibrator]().fit(s, None, t).transform(probe),
            recalibrator,
        ),
    }  # fmt: skip
    shares = ("calibration_error", "calibration_error", "target_calibration_error",
              "target_calibration_error", *table)  # fmt: skip
    name = pick(rng, shares)
    function, shown = table[name]
    named = f" {shown}" if name in ("fit", "label_shift_weights") else f" {_kind(name, asked)}"
    return function, f"{name}{named}({shown!r})"


def _kind(name: str, asked: dict[str, Any]) -> str:
    if name not in ("calibration_error", "target_calibration_error"):
        return ""
    canonical = "canonical " if asked["kind"] == "canonical" else ""
    return f"{canonical}{asked.get('kernel', 'bins')}"


def draw_relation(seed: int, number: int) -> Relation:
    """The relation of this number."""
    rng = np.random.default_rng([seed, number, 2])
    name = pick(rng, RELATIONS)
    sample = draw_sample(rng, (40, 200))
    function, asked = draw_function(rng, sample)
    return Relation(name, function, asked, *RELATIONS[name](rng, sample))


def _plain(sample: Sample) -> Samples:
    return calshift.Predictions(sample.p, sample.y), calshift.Predictions(sample.q)


def _permute(rng: Rng, sample: Sample) -> tuple[Samples, Samples]:
    a, b = rng.permutation(len(sample.p)), rng.permutation(len(sample.q))
    return _plain(sample), _plain(Sample(sample.p[a], sample.y[a], sample.q[b], sample.K))


def _batch(rng: Rng, sample: Sample) -> tuple[Samples, Samples]:
    cuts = np.sort(rng.integers(1, len(sample.p), 2))
    parts = zip(np.split(sample.p, cuts), np.split(sample.y, cuts), strict=True)
    source = calshift.scan([part for part in parts if len(part[0])])
    target = calshift.scan([part for part in np.array_split(sample.q, 3) if len(part)])
    return _plain(sample), (source, target)


def _repeat(rng: Rng, sample: Sample) -> tuple[Samples, Samples]:
    a, b = rng.integers(0, 4, len(sample.p)), rng.integers(0, 4, len(sample.q))
    a[: 2 * sample.K], b[0] = 1, 1
    if chance(rng, 0.3):
        a[:], b[:] = 3, 3
    p, y, q = np.repeat(sample.p, a, axis=0), np.repeat(sample.y, a), np.repeat(sample.q, b, axis=0)
    weighted = calshift.Predictions(sample.p, sample.y, sample_weight=a)
    return (weighted, calshift.Predictions(sample.q, sample_weight=b)), _plain(
        Sample(p, y, q, sample.K)
    )


RELATIONS: dict[str, Callable[[Rng, Sample], tuple[Samples, Samples]]] = {
    "order of rows": _permute, "batches": _batch, "repeated rows": _repeat,
}  # fmt: skip
