"""The engine of Spark's tables gives the numbers of arrays, from any layout of the columns."""

from __future__ import annotations

from functools import partial
from operator import attrgetter

import numpy as np
import pytest

import calshift
from calshift._core.addable import Tally
from calshift.binning.confidence_cells import ConfidenceCells
from calshift.binning.edges import BinEdges
from calshift.binning.events import select_binned_events
from calshift.binning.statistics import ShiftStatistics, source_kernel
from calshift.engines import Arrays, Spark
from calshift.engines.base import Passes
from calshift.engines.checkpoint import Checkpoint
from calshift.engines.sample_summary import summary_terms
from calshift.weights.em_solver import Gradient
from tests.prediction_files import NAMES, SIMULATION, named

pytestmark = [
    pytest.mark.spark,
    pytest.mark.xdist_group("spark"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
P, Y = SIMULATION.source(4000, rng=1)
Q, _ = SIMULATION.target(3000, rng=2)
SCORES, FRAUD = calshift.simulate.BetaSimulation().source(4000, rng=3)
SCORES_NOW = calshift.simulate.BetaSimulation().target(3000, rng=4)[0]


def by_class(p, names=NAMES) -> dict:
    return {f"p_{name}": p[:, k] for k, name in enumerate(names)}


LAYOUTS = {
    "lists": ({"p": P, "y": Y}, P, Y),
    "lists of float32": ({"p": P.astype("f4"), "y": Y.astype("i4")}, P.astype("f4"), Y),
    "columns": (by_class(P) | {"label": named(Y)}, P, Y),
    "columns of float32": (by_class(P.astype("f4")) | {"label": Y}, P.astype("f4"), Y),
    "scores": ({"score": SCORES, "label": FRAUD}, SCORES, FRAUD),
    "scores of float32": ({"p_1": SCORES.astype("f4"), "y": FRAUD}, SCORES.astype("f4"), FRAUD),
}


def flat(value) -> list[np.ndarray]:
    """All numbers of a sum."""
    if isinstance(value, ShiftStatistics):
        return flat([value.source, value.target, value.rows])
    if isinstance(value, Tally):
        return flat(list(value.values()))
    if isinstance(value, list | tuple):
        return [array for one in value for array in flat(one)]
    return [np.asarray(value, dtype=float)]


def same(a, b, tolerance: float) -> bool:
    pairs = list(zip(flat(a), flat(b), strict=True))
    assert pairs
    return all(np.allclose(x, y, rtol=tolerance, atol=1e-12 * tolerance) for x, y in pairs)


def kernels(sample: Arrays):
    """Several kernels as one, so that they take one pass."""
    facts = sample.summary
    events = select_binned_events("binary" if facts.one_column else "classwise", facts)
    inner = (np.linspace(0.1, 0.9, 9),) * events.count
    edges = BinEdges(events, tuple(range(events.count)), inner, False, None)
    group = np.tile(np.arange(64) // 8, (facts.n_classes, 1))
    seen = facts.class_counts > 0
    cells = partial(ConfidenceCells(group, 8).count_labels, seen=seen)
    each = [summary_terms, cells, source_kernel(edges), lambda batch: batch.p.itemsize / len(batch)]
    if not facts.one_column:
        each.append(Gradient(attrgetter("p"), np.linspace(0.5, 1.5, facts.n_classes)))
    return lambda batch: Tally({str(k): kernel(batch) for k, kernel in enumerate(each)})


@pytest.mark.parametrize("layout", LAYOUTS)
def test_sums_are_those_of_arrays(written, layout):
    columns, p, y = LAYOUTS[layout]
    here = Arrays(calshift.Predictions(p, y), rows=1000)  # as many as a partition has
    there = calshift.scan_spark(written(columns, empty=2))
    kernel = kernels(here)
    found = there.total(kernel)
    assert same(found, here.total(kernel), 1e-12)
    assert found["0"]["single"] == (4000 if p.ndim == 1 else 0)


def test_changed_probabilities_are_worked_out_where_the_rows_are(written):
    def squared(batch):
        odds = batch.p**2
        return odds / odds.sum(axis=1, keepdims=True)

    here = Arrays(calshift.Predictions(P, Y)).mapped(squared)
    there = calshift.scan_spark(written({"p": P, "y": Y})).mapped(squared)
    assert same(there.total(summary_terms), here.total(summary_terms), 1e-12)
    assert there.summary.classes is None


def test_many_partitions_are_added_in_groups(written, monkeypatch):
    sample = calshift.scan_spark(written({"p": P, "y": Y}, parts=10, empty=1))
    once = sample.summary
    assert sample.parts == 11  # empty ones too
    monkeypatch.setattr("calshift.engines.spark.engine.MOST_PARTS", 3)
    assert len(sample._sums(summary_terms).collect()) == 4  # groups of 3
    again = sample.total(summary_terms)
    assert (again["rows"], again["size"]) == (once.rows, once.size)
    assert same(again["predicted"], once.predicted, 1e-14)
    assert sample.parts == 11


@pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")
@pytest.mark.parametrize("case", ["three classes", "scores"])
def test_answers_are_those_of_arrays(written, case):
    p, y, q = (P, Y, Q) if case == "three classes" else (SCORES, FRAUD, SCORES_NOW)
    source = calshift.scan_spark(written({"p": p, "y": y}, parts=3))
    target = calshift.scan_spark(written({"p": q, "y": np.zeros(len(q))}, parts=2), labelled=False)
    assert not target.summary.labelled
    found = calshift.label_shift_weights(source, None, target)
    expected = calshift.label_shift_weights(p, y, q)
    assert np.allclose(found.values, expected.values, rtol=1e-9, atol=0)
    assert np.allclose(found.standard_error, expected.standard_error, rtol=1e-9, atol=0)
    tested = calshift.check_label_shift(source, None, target)
    assert tested.p_value == calshift.check_label_shift(p, y, q).p_value
    errors = [
        calshift.target_calibration_error(*pair, weights=found, check=False)
        for pair in ((source, None, target), (p, y, q))
    ]
    assert np.isclose(errors[0].estimate, errors[1].estimate, rtol=1e-9, atol=0)
    intervals = [error.confidence_interval(0.95) for error in errors]
    assert np.allclose(*intervals, rtol=1e-9, atol=1e-15)


@pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")
def test_metrics_are_those_of_arrays(written):
    source = calshift.scan_spark(written({"p": P, "y": Y}, parts=3))
    target = calshift.scan_spark(written({"p": Q}, parts=2), labelled=False)
    asked = {"metrics": ("accuracy", "f1_macro", "log_loss", "expected_cost", "roc_auc_ovr")}
    asked["cost"] = 1.0 - np.eye(P.shape[1])
    found = calshift.target_metrics(source, None, target, check=False, **asked)
    expected = calshift.target_metrics(P, Y, Q, check=False, **asked)
    for name, one in expected.items():
        area = name == "roc_auc_ovr"  # in cells of the score grid
        for value in ("estimate", "source", "standard_error"):
            close = {"abs": 2e-3} if area else {"rel": 1e-9}
            assert getattr(found[name], value) == pytest.approx(getattr(one, value), **close), name
    assert any("count as equal in AUC" in note for note in found.warnings)


def test_classes_are_taken_in_the_order_asked_for(written):
    turned = written(by_class(P[:, ::-1], NAMES[::-1]) | {"label": named(Y)})
    sample = calshift.scan_spark(turned, classes=NAMES)
    assert sample.classes == NAMES
    assert same(
        sample.total(summary_terms), Arrays(calshift.Predictions(P, Y)).total(summary_terms), 1e-12
    )
    assert calshift.scan_spark(turned).classes == NAMES[::-1]


def test_names_may_have_dots_and_quotes(written):
    names = ("a.1", "b`x", "c d")
    table = written(by_class(P, names) | {"the.label": named(Y, names)})
    sample = calshift.scan_spark(table, label="the.label")
    assert sample.classes == names
    assert same(
        sample.total(summary_terms), Arrays(calshift.Predictions(P, Y)).total(summary_terms), 1e-12
    )


def test_vectors_of_sparks_own_classifiers_are_read(spark):
    from pyspark.ml.linalg import Vectors

    rows = [(Vectors.dense(row), int(y)) for row, y in zip(P[:50].tolist(), Y[:50], strict=True)]
    sample = calshift.scan_spark(spark.createDataFrame(rows, ["probability", "label"]))
    expected = Arrays(calshift.Predictions(P[:50], Y[:50])).total(summary_terms)
    assert same(sample.total(summary_terms), expected, 1e-12)


def test_logits_become_probabilities(written):
    sample = calshift.scan_spark(written({"logits": np.log(P), "y": Y}), logits=True)
    expected = Arrays(calshift.Predictions(P, Y)).total(summary_terms)
    assert same(sample.total(summary_terms), expected, 1e-12)


def test_a_column_has_the_weights_of_rows(written):
    n, m = np.arange(4000) % 4, np.full(3000, 0.5)
    n[:1000] = 0  # the whole first partition
    table = written({"p": P, "p_": n, "y": Y})
    source = calshift.scan_spark(table, sample_weight="p_", columns="p")
    arrays = calshift.Predictions(P, Y, sample_weight=n)
    assert same(source.total(summary_terms), Arrays(arrays).total(summary_terms), 1e-12)
    target = calshift.scan_spark(written({"p": Q, "n": m}), sample_weight="n")
    found = calshift.label_shift_weights(source, None, target)
    expected = calshift.label_shift_weights(arrays, None, calshift.Predictions(Q, sample_weight=m))
    assert np.allclose(found.values, expected.values, rtol=1e-9, atol=0)
    with pytest.raises(calshift.InvalidInput, match=r"sample_weight= names 'k'.*'p', 'p_', 'y'"):
        calshift.scan_spark(table, sample_weight="k")
    zeros = calshift.scan_spark(written({"p": Q, "n": m * 0}), sample_weight="n")
    with pytest.raises(calshift.InvalidInput, match="has no row whose 'n' is positive"):
        _ = zeros.summary


def test_finished_passes_are_kept(written, tmp_path):
    table, place = written({"p": P, "y": Y}), tmp_path / "run.npz"
    first = calshift.scan_spark(table).running("source", Passes(Checkpoint(place, "a run")))
    facts = first.summary
    again = calshift.scan_spark(table).running("source", Passes(Checkpoint(place, "a run")))
    again.frame = None  # nothing is read
    assert again.summary == facts
    assert again.parts == 4


def test_an_interrupted_run_goes_on_from_its_checkpoint(written, tmp_path, monkeypatch):
    tables = written({"p": P, "y": Y}, parts=1), written({"p": Q}, parts=1)
    made, stops, real = [], [6], Spark._sum

    def interrupted(sample, kernel):
        made.append(kernel)
        if stops and len(made) == stops[0]:
            stops.clear()
            raise KeyboardInterrupt
        return real(sample, kernel)

    def answer():
        source, target = map(calshift.scan_spark, tables)
        return calshift.target_calibration_error(
            source, None, target, weights=[1, 1, 1], checkpoint=place
        )

    place = tmp_path / "sums.npz"
    monkeypatch.setattr(Spark, "_sum", interrupted)
    with pytest.raises(KeyboardInterrupt):
        answer()
    assert place.exists()
    result = answer()
    assert not place.exists()
    expected = calshift.target_calibration_error(P, Y, Q, weights=[1, 1, 1])
    assert np.isclose(result.estimate, expected.estimate, rtol=1e-9, atol=0)
    both = len(made)
    made.clear()
    answer()
    assert both == len(made) + 1  # only the pass it stopped in was begun twice


def test_settings_of_the_session_stay_as_they_are(spark, written):
    before = spark.conf.getAll
    assert calshift.scan_spark(written({"p": P, "y": Y})).summary.rows == 4000
    assert spark.conf.getAll == before
