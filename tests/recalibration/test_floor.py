"""What a probability of 0, or nearly 0, means, and that it costs no infinite log loss."""

from __future__ import annotations

import numpy as np
import pytest

import calshift
from calshift import Predictions
from calshift.recalibration.floor import choose_floor, least_probability
from calshift.simulate import GaussianSimulation

pytestmark = pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")
MODEL = GaussianSimulation(4, dimensions=3, imbalance=4, temperature=0.7, seed=1)
METHODS = (
    calshift.TemperatureScaling,
    calshift.BiasCorrectedTemperatureScaling,
    calshift.VectorScaling,
    calshift.ShiftScaling,
)
every = pytest.mark.parametrize("method", METHODS)


def drawn(change) -> tuple[np.ndarray, ...]:
    """Source and target with labels, the probabilities changed and normalised."""
    (p, y), (q, z) = MODEL.source(3000, rng=0), MODEL.target(3000, rng=1)
    p, q = (change(a) for a in (p, q))
    return p / p.sum(axis=1, keepdims=True), y, q / q.sum(axis=1, keepdims=True), z


def log_loss(p: np.ndarray, y: np.ndarray) -> float:
    return float(-np.log(np.maximum(p[np.arange(len(y)), y], 1e-15)).mean())


@every
@pytest.mark.parametrize("least", [0.0, 1e-300], ids=["exact zeros", "tiny"])
def test_zeros_cost_little_log_loss(method, least):
    """Probabilities below .02 become 0: what is lost is their order, not 34 nats a label."""
    p, y, q, z = drawn(lambda a: np.where(a < 0.02, least, a))
    whole = drawn(lambda a: a)
    fitted = method().fit(p, y, q)
    full = log_loss(method().fit(*whole[:3]).transform(whole[2]), z)
    # labels with a probability below .02 are at most a few in a hundred, each with a loss of about
    # log(.02/.005) more than before
    assert log_loss(fitted.transform(q), z) < full + 0.03
    assert (fitted.transform(q) > 0).all()


def test_the_floor_of_zeros_without_a_label_is_above_zero_and_small():
    p, y, _, _ = drawn(lambda a: np.where(a < 0.02, 0.0, a))
    kept = p[np.arange(len(y)), y] > 0
    floor = choose_floor(Predictions(p[kept], y[kept]))
    zeros = (p[kept] == 0).sum()
    # half a row among all zeros: the calibrated frequency is .5 / zeros, with a slope from .5 to 2
    assert (0.5 / zeros) ** 2 < floor < (0.5 / zeros) ** 0.5


def test_a_model_without_zeros_keeps_its_smallest_probability():
    p, y, q, _ = drawn(lambda a: a)
    source, target = Predictions(p, y), Predictions(q)
    assert choose_floor(source, target) == least_probability(source, target)


def test_a_class_that_the_source_lacks_keeps_its_zeros():
    p, y, q, _ = drawn(lambda a: np.where(a < 0.02, 0.0, a))
    fitted = calshift.ShiftScaling().fit(p[y != 3], y[y != 3], q)
    mended = fitted.transform(q)
    assert (mended[q[:, 3] == 0, 3] == 0).all()
    assert (mended[:, :3] > 0).all()
