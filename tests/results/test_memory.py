"""A result does not keep the caller's target rows, and pickles stay small."""

from __future__ import annotations

import gc
import pickle
import weakref

import numpy as np
import pytest

import calshift
from calshift.inference import reliability_sums
from calshift.report import summarize
from calshift.weights import METHODS

SIMULATION = calshift.simulate.GaussianSimulation(n_classes=4, imbalance=3, seed=1)


def samples(n: int = 600, m: int = 500) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    p, y = SIMULATION.source(n, rng=1)
    return p, y, SIMULATION.target(m, rng=2)[0]


OPTIONS = [
    {},
    {"norm": 1},
    {"kind": "top-label"},
    {"estimator": "paper", "interval": None},
    {"kind": "canonical", "interval": None},
    {"interval": "bootstrap", "n_boot": 20},
    {"stratified": True},
    *({"weights": method} for method in METHODS),
]


@pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_target_is_not_kept_alive(options):
    p, y, q = samples()
    kept = weakref.ref(q)
    result = calshift.target_calibration_error(p, y, q, **options)
    del q
    gc.collect()
    assert kept() is None
    assert len(summarize(result)["curves"]) >= 1  # from kept sums


def test_the_windows_of_a_monitor_share_the_source():
    p, y, q = samples()
    kept = weakref.ref(q)
    found = calshift.monitor(p, y, q, rows=250, check=False)
    del q
    gc.collect()
    assert kept() is None
    sources = {id(one._curves.source) for one in found.results}
    assert len(sources) == 1


def test_curves_of_kept_sums_are_those_of_rows():
    p, y, q = samples()
    result = calshift.target_calibration_error(p, y, q)
    pairs = result._curves.curves()
    assert [one.kind for one, _ in pairs] == ["top-label"] + 4 * ["classwise"]
    for before, after in pairs:
        asked = {"kind": before.kind, "label": before.label}
        expected = calshift.reliability_curve(p, y, **asked)
        shifted = calshift.reliability_curve(p, y, q, weights=result.class_weights, **asked)
        for found, wanted in ((before, expected), (after, shifted)):
            for name in ("score", "frequency", "mass", "edges", "standard_error"):
                np.testing.assert_allclose(
                    getattr(found, name), getattr(wanted, name), rtol=1e-9, atol=1e-12
                )


@pytest.mark.parametrize("weighted", [False, True])
def test_curves_of_kept_sums_with_sample_weights(weighted):
    p, y, q = samples()
    weight = np.random.default_rng(0).uniform(0.2, 3, len(q)) if weighted else None
    target = calshift.Predictions(q, sample_weight=weight)
    result = calshift.target_calibration_error(p, y, target)
    for _, after in result._curves.curves():
        wanted = calshift.reliability_curve(
            p, y, target, weights=result.class_weights, kind=after.kind, label=after.label
        )
        np.testing.assert_allclose(after.standard_error, wanted.standard_error, rtol=1e-8)


@pytest.mark.parametrize(("n", "m"), [(600, 500), (20_000, 30_000)])
def test_pickles_are_small(n, m):
    result = calshift.target_calibration_error(*samples(n, m))
    size = len(pickle.dumps(result))
    assert size <= 16 * (n + m) + 200_000
    again = pickle.loads(pickle.dumps(result))
    assert again == result
    assert str(again) == str(result)


def test_curves_of_many_rows_are_summed_a_few_at_a_time(monkeypatch):
    p, y, q = samples()
    at_once = calshift.target_calibration_error(p, y, q)._curves.plan
    monkeypatch.setattr(reliability_sums, "SCORES_AT_ONCE", 2 * len(q))  # of five curves
    assert calshift.target_calibration_error(p, y, q)._curves.plan == at_once
