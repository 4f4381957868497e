"""Kernels are sent to executors: none may drag its engine, or rows, along."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import calshift
from calshift.engines import Arrays
from calshift.engines.base import MappedEngine
from calshift.weights import METHODS
from tests.engines.samples import P_SOURCE, P_TARGET, Y_SOURCE

ASKED = [{}, {"norm": 1}, {"kind": "top-label"}, {"stratified": True}, {"bins": 15}]
COSTS = 1.0 - np.eye(P_SOURCE.shape[1])
MOST_BYTES = 2_000_000


class Elsewhere:
    """Rows to which kernels travel, and which cannot travel themselves."""

    in_memory = None

    def __init__(self, p, y=None):
        self.rows = Arrays(calshift.Predictions(p, y))

    @property
    def summary(self):
        return self.rows.summary

    def total(self, kernel):
        from pyspark import cloudpickle

        sent = cloudpickle.dumps(kernel)
        assert len(sent) < MOST_BYTES
        return self.rows.total(pickle.loads(sent))

    def mapped(self, function):
        return MappedEngine(self, function)

    def running(self, name, passes):
        return self

    def __reduce__(self):
        msg = "an engine does not travel"
        raise pickle.PicklingError(msg)


@pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")
@pytest.mark.parametrize("asked", ASKED, ids=str)
@pytest.mark.parametrize("method", METHODS)
def test_kernels_travel_alone(method, asked):
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    asked = {"weights": method, **asked}
    whole = calshift.target_calibration_error(P_SOURCE, Y_SOURCE, P_TARGET, **asked)
    samples = Elsewhere(P_SOURCE, Y_SOURCE), None, Elsewhere(P_TARGET)
    found = calshift.target_calibration_error(*samples, **asked)
    assert found.estimate == pytest.approx(whole.estimate, rel=1e-9)
    assert found.standard_error == pytest.approx(whole.standard_error, rel=1e-9)


@pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")
@pytest.mark.parametrize("metrics", [None, "roc_auc_ovr_weighted", "oe_ratio_per_class"])
def test_kernels_of_metrics_travel_alone(metrics):
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    asked = {"metrics": metrics, "decision": "cost", "cost": COSTS, "drift": 0.01}
    whole = calshift.target_metrics(P_SOURCE, Y_SOURCE, P_TARGET, **asked)
    samples = Elsewhere(P_SOURCE, Y_SOURCE), None, Elsewhere(P_TARGET)
    found = calshift.target_metrics(*samples, **asked)
    for name, one in whole.items():
        close = {"abs": 2e-3} if "roc" in name else {"rel": 1e-9}
        assert found[name].estimate == pytest.approx(one.estimate, **close)
        assert found[name].confidence_interval() == pytest.approx(
            one.confidence_interval(), **close
        )
