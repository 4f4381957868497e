"""Sums made along with the next pass: the same numbers by fewer passes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

import calshift
from calshift._core.predictions import Predictions
from calshift.engines import Arrays, Blocks
from calshift.engines.checkpoint import Checkpoint
from calshift.engines.plan import plan
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
    plan(sample, Power(2))
    plan(sample, Power(3))
    plan(sample, Power(2))
    first = Blocks(sample).total(Power(1))
    assert batches.passes == 1
    second, third = sample.total(Power(2)), sample.total(Power(3))
    assert batches.passes == 1
    alone = calshift.scan(Counted())
    assert [first, second, third] == [alone.total(Power(k)) for k in (1, 2, 3)]


def test_it_is_given_once_and_then_made_again():
    batches = Counted()
    sample = calshift.scan(batches)
    plan(sample, Power(2))
    sample.total(Power(1))
    plan(sample, Power(2))  # it is there
    assert sample.total(Power(2)) == sample.total(Power(2))
    assert batches.passes == 2


def test_a_planned_sum_that_comes_next_is_made_alone():
    batches = Counted()
    sample = calshift.scan(batches)
    plan(sample, Power(2))
    assert isinstance(sample.total(Power(2)), float)
    assert isinstance(sample.total(Power(1)), float)
    assert batches.passes == 2


def test_an_interrupted_run_makes_both_again(tmp_path):
    read = []

    def run(stop: bool) -> list[float]:
        batches = Counted()
        with Run(tmp_path / "run.npz") as of:
            (sample,) = of.open(calshift.scan(batches))
            plan(sample, Power(2))
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


def power(batch: Predictions, exponent: int) -> float:
    return float((batch.p**exponent).sum())


def test_partial_functions_of_equal_arguments_are_the_same_sum():
    batches = Counted()
    sample = calshift.scan(batches)
    plan(sample, partial(power, exponent=2))
    plan(Blocks(sample), partial(power, exponent=3))
    sample.total(Power(1))
    assert sample.total(partial(power, exponent=2)) == calshift.scan(Counted()).total(Power(2))
    Blocks(sample).total(partial(power, exponent=3))
    assert batches.passes == 1
    sample.total(partial(power, exponent=2))
    Blocks(sample).total(partial(power, exponent=4))
    assert batches.passes == 3


@pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")
@pytest.mark.parametrize("asked", [{}, {"check": False}, {"kind": "top-label"}, {"bins": 5}])
def test_the_grid_and_the_tables_of_labels_come_along_with_another_pass(asked, monkeypatch):
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
    monkeypatch.setattr("calshift.api.calibration.plan_label_tables", lambda *_, **__: None)
    more = passes()
    saved = 0 if "bins" in asked else 1
    assert np.subtract(more, few).tolist() == [saved + 1, saved]


def test_rows_in_memory_need_no_plan():
    sample = Arrays(Predictions(P_TARGET))
    plan(sample, Power(2))
    assert isinstance(sample.total(Power(1)), float)


@pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")
def test_a_default_call_reads_a_large_target_eight_times():
    """One pass for sizes and cells, four or five of Newton's method, and two or three others."""
    simulation = calshift.simulate.GaussianSimulation(n_classes=3, seed=2)
    (p, y), (q, _) = simulation.source(4000, rng=1), simulation.target(40_000, rng=2)
    source, target = Counted([(p, y)]), Counted([q[:15_000], q[15_000:]])
    scanned = calshift.scan(source), None, calshift.scan(target, labelled=False)
    found = calshift.target_calibration_error(*scanned)
    assert target.passes <= 8
    whole = calshift.target_calibration_error(p, y, q)
    assert found.estimate == pytest.approx(whole.estimate, rel=1e-9)
    assert found.trusted == whole.trusted


def test_a_run_with_known_counts_has_the_passes_of_the_first(tmp_path, monkeypatch):
    """The first pass has more than the counts, which are known when the run is resumed."""
    source, target = Counted(source_batches()), Counted()
    samples = calshift.scan(source), None, calshift.scan(target)
    expected = calshift.check_label_shift(P_SOURCE, Y_SOURCE, P_TARGET)
    resumed = Checkpoint.begin
    passes = []

    def begin(self, name):
        passes.append(name)
        if len(passes) == 3:
            raise KeyboardInterrupt
        return resumed(self, name)

    monkeypatch.setattr(Checkpoint, "begin", begin)
    with pytest.raises(KeyboardInterrupt):
        calshift.check_label_shift(*samples, checkpoint=tmp_path / "run.npz")
    monkeypatch.setattr(Checkpoint, "begin", resumed)
    read = target.passes
    found = calshift.check_label_shift(*samples, checkpoint=tmp_path / "run.npz")
    assert found.p_value == expected.p_value
    assert found.statistic == pytest.approx(expected.statistic, rel=1e-12)
    assert target.passes == read  # what the first run had summed is in the checkpoint


@pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")
def test_metrics_count_the_cells_of_the_test_in_the_first_pass(monkeypatch):
    def passes() -> int:
        source, target = Counted(source_batches()), Counted()
        samples = calshift.scan(source), None, calshift.scan(target)
        found = calshift.target_metrics(*samples, metrics=["accuracy"])["accuracy"]
        assert found.estimate == pytest.approx(whole.estimate, rel=1e-9)
        return target.passes

    whole = calshift.target_metrics(P_SOURCE, Y_SOURCE, P_TARGET, metrics=["accuracy"])["accuracy"]
    few = passes()
    monkeypatch.setattr("calshift.api.metrics.plan_cells", lambda _: None)
    assert passes() == few + 1
