"""What windows share of the source, what they keep of it, and windows in threads."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import calshift
from calshift import InvalidInput
from calshift.monitoring import window_results

pytestmark = pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")
SIMULATION = calshift.simulate.GaussianSimulation(n_classes=3, dimensions=2)
P, Y = SIMULATION.source(3000, rng=1)
Q = SIMULATION.target(1200, rng=2)[0]


def monitored(**asked) -> calshift.MonitoringResult:
    return calshift.monitor(P, Y, Q, rows=300, **asked)


@pytest.fixture(scope="module")
def series() -> calshift.MonitoringResult:
    return monitored()


def numbers(series: calshift.MonitoringResult) -> list[bytes]:
    """All bits of what windows answer."""
    return [pickle.dumps(one.to_dict()) for one in series.results]


@pytest.mark.parametrize("asked", [{}, {"metrics": "accuracy"}, {"norm": 1, "check": False}])
def test_windows_in_threads_have_the_same_bits_in_the_same_order(asked):
    told = []
    one, several = monitored(**asked), monitored(
        **asked, n_jobs=3, progress=lambda *done: told.append(done)
    )  # fmt: skip
    assert numbers(one) == numbers(several)
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]
    if one.metrics is not None:
        assert [found.to_dict() for found in one.metrics] == [
            found.to_dict() for found in several.metrics
        ]


def test_an_error_in_a_thread_is_raised(monkeypatch):
    original, windows = window_results.target_result, []

    def fails(*asked):
        windows.append(asked)
        if len(windows) == 3:
            raise RuntimeError
        return original(*asked)

    monkeypatch.setattr(window_results, "target_result", fails)
    with pytest.raises(RuntimeError):
        monitored(n_jobs=2)


def test_what_depends_on_the_source_alone_is_computed_once(monkeypatch):
    calls = []
    for name in ("tabulate_labels", "count_steps"):
        original = getattr(window_results, name)

        def counted(*asked, original=original, name=name, **more):
            calls.append(name)
            return original(*asked, **more)

        monkeypatch.setattr(window_results, name, counted)
    found = monitored()
    assert sorted(calls) == ["count_steps", "tabulate_labels"]
    assert all(one.source is found.results[0].source for one in found.results)
    kernel = monitored(kind="canonical", kernel="dirichlet", check=False)
    assert all(one.source is kernel.results[0].source for one in kernel.results)


def test_windows_keep_no_number_for_each_row_of_the_source(series):
    """The source's own error has 24 kB for its 3000 rows, once in all."""
    short = calshift.monitor(P, Y, Q[:300], rows=300)
    more = (len(pickle.dumps(series)) - len(pickle.dumps(short))) / 3
    assert more < 20_000
    for result in series.results:
        parts = vars(result._influence)
        assert parts.keys() == {"variance", "covariance", "of_source"}
        assert parts["of_source"] is result.source._influence


def test_a_window_is_compared_with_its_source(series):
    for k, result in enumerate(series.results):
        alone = calshift.target_calibration_error(P, Y, Q[300 * k : 300 * (k + 1)], check=False)
        expected = calshift.compare(alone, alone.source)
        for one in (result, pickle.loads(pickle.dumps(result))):
            found = calshift.compare(one, one.source)
            assert found.correlation == pytest.approx(expected.correlation, rel=1e-9)
            assert calshift.compare(one.source, one).correlation == found.correlation
        assert 0.01 < abs(found.correlation) < 1


def test_windows_are_not_compared_with_others(series):
    other = calshift.target_calibration_error(P, Y, Q[:300])
    for pair in (series.results[:2], (series.results[0], other), (other, series.results[0])):
        with pytest.raises(InvalidInput, match="its own"):
            calshift.compare(*pair)


def test_results_without_influence_are_windows_too():
    found = monitored(interval=None)
    assert found.results[0]._influence is None
    assert np.isfinite(found.results[0].source.estimate)
