"""The source's own error, worked out when it is looked at."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import pytest

import calshift
from calshift.inference import assemble as answers


@pytest.fixture
def asked(monkeypatch):
    """How often the labelled error was worked out."""
    calls = []
    original = answers.labelled_result

    def counting(*arguments):
        calls.append(1)
        return original(*arguments)

    monkeypatch.setattr(answers, "labelled_result", counting)
    return calls


def estimated():
    simulation = calshift.simulate.BetaSimulation()
    p, y = simulation.source(500, rng=1)
    q, _ = simulation.target(400, rng=2)
    w = simulation.class_weights / simulation.class_weights[y].mean()
    return p, y, calshift.target_calibration_error(p, y, q, weights=w, check=False)


def test_it_is_worked_out_once_and_only_if_asked_for(asked):
    p, y, result = estimated()
    assert not asked
    first = result.source
    assert result.source is first
    assert len(asked) == 1
    assert first.estimate == calshift.calibration_error(p, y).estimate


@pytest.mark.parametrize(
    "again",
    [lambda r: pickle.loads(pickle.dumps(r)), copy.copy, copy.deepcopy, replace],
    ids=["pickle", "copy", "deepcopy", "replace"],
)
def test_copies_have_it(again):
    _, _, result = estimated()
    other = again(result)
    assert other.source.estimate == result.source.estimate
    assert other == result


def test_equality_looks_at_it():
    _, _, result = estimated()
    other = replace(result, _source=lambda: replace(result.source, estimate=7.0))
    assert other != result
