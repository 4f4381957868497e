"""Sums made along with the next pass: the same numbers by fewer passes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import calshift
from calshift._core.predictions import Predictions
from calshift.engines import Blocks
from calshift.engines.run import Run
from tests.engines.samples import P_SOURCE, P_TARGET, Y_SOURCE, cut, source_batches


@dataclass(frozen=True)
class Power:
    exponent: int

    def __call__(self, batch: Predictions) -> float:
        return float((batch.p**self.exponent).sum())


class Counted:
    """A target that counts how often it is read."""

    def __init__(self, batches=None) -> None:
        self.passes, self.all = 0, batches or cut(P_TARGET)

    def __call__(self):
        self.passes += 1
        yield from self.all


def test_a_planned_sum_needs_no_pass_of_its_own():
    batches = Counted()
    sample = calshift.scan(batches)
    sample.planned.add(Power(2))
    sample.planned.add(Power(3))
    sample.planned.add(Power(2))
    first = Blocks(sample).total(Power(1))
    assert batches.passes == 1
    second, third = sample.total(Power(2)), sample.total(Power(3))
    assert batches.passes == 1
    alone = calshift.scan(Counted())
    assert [first, second, third] == [alone.total(Power(k)) for k in (1, 2, 3)]


def test_it_is_given_once_and_then_made_again():
    batches = Counted()
    sample = calshift.scan(batches)
    sample.planned.add(Power(2))
    sample.total(Power(1))
    sample.planned.add(Power(2))  # it is there
    assert sample.total(Power(2)) == sample.total(Power(2))
    assert batches.passes == 2


def test_a_planned_sum_that_comes_next_is_made_alone():
    batches = Counted()
    sample = calshift.scan(batches)
    sample.planned.add(Power(2))
    assert isinstance(sample.total(Power(2)), float)
    assert isinstance(sample.total(Power(1)), float)
    assert batches.passes == 2


def test_an_interrupted_run_makes_both_again(tmp_path):
    read = []

    def run(stop: bool) -> list[float]:
        batches = Counted()
        with Run(tmp_path / "run.npz") as of:
            (sample,) = of.open(calshift.scan(batches))
            sample.planned.add(Power(2))
            sums = [sample.total(Power(1))]
            if stop:
                raise KeyboardInterrupt
            sums.append(sample.total(Power(2)))
        read.append(batches.passes)
        return sums

    with pytest.raises(KeyboardInterrupt):
        run(stop=True)
    found = run(stop=False)
    assert read == [0]
    assert found == [calshift.scan(Counted()).total(Power(k)) for k in (1, 2)]


@pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")
@pytest.mark.parametrize("asked", [{}, {"check": False}, {"kind": "top-label"}, {"bins": 5}])
def test_the_grid_is_counted_along_with_another_pass(asked, monkeypatch):
    asked = {"weights": "bbse-soft", **asked}

    def passes() -> tuple[int, int]:
        source, target = Counted(source_batches()), Counted()
        samples = calshift.scan(source), None, calshift.scan(target)
        found = calshift.target_calibration_error(*samples, **asked)
        assert found.estimate == pytest.approx(whole.estimate, rel=1e-9)
        assert found.source.estimate == pytest.approx(whole.source.estimate, rel=1e-9)
        return source.passes, target.passes

    whole = calshift.target_calibration_error(P_SOURCE, Y_SOURCE, P_TARGET, **asked)
    few = passes()
    monkeypatch.setattr("calshift.api.calibration.plan_bins", lambda *_: None)
    more = passes()
    saved = 0 if "bins" in asked else 1
    assert np.subtract(more, few).tolist() == [saved, saved]
