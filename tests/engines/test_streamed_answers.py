"""Samples read in passes give the answers of the same rows in memory."""

from __future__ import annotations

import numpy as np
import pytest

import calshift
from calshift import InvalidInput
from calshift.simulate import BetaSimulation, GaussianSimulation
from calshift.weights import METHODS
from tests.engines.samples import P_SOURCE, P_TARGET, Y_SOURCE, cut, folder_of, source_batches
from tests.prediction_files import NAMES, named, table, write

pytestmark = pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")

SCORES, FRAUD = BetaSimulation().source(1500, rng=3)
SCORES_NOW = BetaSimulation().target(1300, rng=4)[0]
SAMPLES = {
    "classes": (P_SOURCE, Y_SOURCE, P_TARGET),
    "scores": (SCORES, FRAUD, SCORES_NOW),
    "float32": (P_SOURCE.astype(np.float32), Y_SOURCE, P_TARGET.astype(np.float32)),
}


def streamed(p_source, y_source, p_target, **more):
    source = zip(cut(p_source), cut(y_source), strict=True)
    return calshift.scan(list(source), **more), calshift.scan(cut(p_target), **more)


def close(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize("method", METHODS)
def test_class_weights(sample, method):
    whole = calshift.label_shift_weights(*SAMPLES[sample], method=method)
    source, target = streamed(*SAMPLES[sample])
    found = calshift.label_shift_weights(source, None, target, method=method)
    close(found.values, whole.values)
    close(found.standard_error, whole.standard_error)
    assert found.warnings == whole.warnings


@pytest.mark.parametrize("sample", SAMPLES)
def test_the_test_of_label_shift(sample):
    whole = calshift.check_label_shift(*SAMPLES[sample])
    source, target = streamed(*SAMPLES[sample])
    found = calshift.check_label_shift(source, None, target)
    assert (found.p_value, found.df) == (whole.p_value, whole.df)
    close(found.statistic, whole.statistic)
    close(found.residuals, whole.residuals)


OPTIONS = [
    {}, {"norm": 1}, {"norm": 3, "interval": None}, {"bins": 10}, {"bins": 10, "binning": "width"},
    {"bins": [0.2, 0.5, 0.9]}, {"estimator": "plugin"}, {"estimator": "paper", "interval": None},
    {"weights": "bbse"}, {"stratified": True}, {"kind": "top-label"},
]  # fmt: skip


@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize("asked", OPTIONS, ids=str)
def test_the_error_on_the_target(sample, asked):
    if asked.get("kind") == "top-label" and sample == "scores":
        asked = {"kind": "binary"}
    whole = calshift.target_calibration_error(*SAMPLES[sample], **asked)
    source, target = streamed(*SAMPLES[sample], jobs=2)
    found = calshift.target_calibration_error(source, None, target, **asked)
    close(found.estimate, whole.estimate)
    close(found.source.estimate, whole.source.estimate)
    assert found.trusted == whole.trusted
    if asked.get("interval", "influence") is not None:
        close(found.confidence_interval(), whole.confidence_interval())
        close(found.source.confidence_interval(), whole.source.confidence_interval())


@pytest.mark.parametrize("asked", [{}, {"norm": 1}, {"bins": 7}], ids=str)
def test_the_error_with_labels(asked):
    whole = calshift.calibration_error(P_SOURCE, Y_SOURCE, **asked)
    found = calshift.calibration_error(calshift.scan(source_batches(90)), **asked)
    close(found.estimate, whole.estimate)
    close(found.confidence_interval(), whole.confidence_interval())


def test_one_sample_may_be_in_memory():
    whole = calshift.target_calibration_error(*SAMPLES["classes"])
    source, target = streamed(*SAMPLES["classes"])
    for one, y, other in ((source, None, P_TARGET), (P_SOURCE, Y_SOURCE, target)):
        close(calshift.target_calibration_error(one, y, other).estimate, whole.estimate)


@pytest.mark.parametrize(
    ("asked", "what"),
    [({"interval": "bootstrap"}, "bootstrap"), ({"kernel": "triweight", "interval": None}, "kern")],
)
def test_what_needs_all_rows_at_once_says_so(asked, what):
    source, target = streamed(*SAMPLES["classes"])
    with pytest.raises(InvalidInput, match=f"{what}.*needs all rows at once"):
        calshift.target_calibration_error(source, None, target, **asked)


# --- paths in the place of arrays


def test_paths_are_opened_and_their_classes_matched_by_name(tmp_path):
    source = folder_of(tmp_path / "source", P_SOURCE, Y_SOURCE)
    order = [2, 0, 1]
    turned = table(P_TARGET[:, order], named(np.zeros(1300, int)), [NAMES[k] for k in order])
    target = write(tmp_path / "target.csv", turned)
    whole = calshift.target_calibration_error(*SAMPLES["classes"])
    for one, other in (
        (source, target),
        (tmp_path / "source", tmp_path / "target.csv"),
        (calshift.scan(source), calshift.scan(target, labelled=False)),
        (calshift.scan(source), target),
    ):
        found = calshift.target_calibration_error(one, None, other)
        close(found.estimate, whole.estimate)
        close(found.class_weights.values, whole.class_weights.values)
        assert found.classes == NAMES
    labelled = calshift.calibration_error(source)
    close(labelled.estimate, calshift.calibration_error(P_SOURCE, Y_SOURCE).estimate)


def test_names_of_the_target_s_classes_serve_labels_of_the_source(tmp_path):
    source = write(tmp_path / "s.jsonl", {"p": P_SOURCE.tolist(), "label": named(Y_SOURCE)})
    target = write(tmp_path / "t.csv", table(P_TARGET))
    found = calshift.label_shift_weights(source, None, target)
    close(found.values, calshift.label_shift_weights(P_SOURCE, Y_SOURCE, P_TARGET).values)
    assert found.classes == NAMES


def test_names_given_to_the_source_put_the_target_in_order(tmp_path):
    source = write(tmp_path / "s.jsonl", {"p": P_SOURCE.tolist(), "label": named(Y_SOURCE)})
    order = [2, 0, 1]
    turned = table(P_TARGET[:, order], names=[NAMES[k] for k in order])
    target = write(tmp_path / "t.csv", turned)
    found = calshift.label_shift_weights(calshift.scan(source, classes=NAMES), None, target)
    close(found.values, calshift.label_shift_weights(P_SOURCE, Y_SOURCE, P_TARGET).values)


def test_classes_that_do_not_match_are_named(tmp_path):
    source = write(tmp_path / "s.csv", table(P_SOURCE, named(Y_SOURCE)))
    target = write(tmp_path / "t.csv", table(P_TARGET, names=("ant", "bee", "yak")))
    with pytest.raises(InvalidInput, match=r"only .*s\.csv has 'cow'; only .*t\.csv has 'yak'"):
        calshift.label_shift_weights(source, None, target)
    with pytest.raises(InvalidInput, match="y_source must be None when p_source is a path"):
        calshift.label_shift_weights(source, Y_SOURCE, target)
    with pytest.raises(InvalidInput, match="y_source must be None when p_source was scanned"):
        calshift.label_shift_weights(calshift.scan(source), Y_SOURCE, target)
    with pytest.raises(InvalidInput, match="y_source must be given: p_source has no labels"):
        calshift.label_shift_weights(calshift.scan(source, labelled=False), None, P_TARGET)


def test_sums_of_scanned_samples_add_up(tmp_path):
    source, target = streamed(*SAMPLES["classes"])
    edges = calshift.bin_edges(target, bins=[0.2, 0.5, 0.9])
    sums = calshift.accumulate(source, None, target, edges=edges)
    path = write(tmp_path / "t.csv", table(P_TARGET))
    assert calshift.accumulate(p_target=path, edges=edges).size_target == 1300
    whole = calshift.accumulate(P_SOURCE, Y_SOURCE, P_TARGET, edges=edges)
    close(sums.source, whole.source)
    close(sums.target, whole.target)


@pytest.mark.slow
@pytest.mark.parametrize("size", [3, 97, 1299, 5000])
@pytest.mark.parametrize("asked", [{}, {"norm": 1, "bins": 10}, {"kind": "top-label"}])
def test_batches_of_any_size_and_empty_ones_between_them(size, asked):
    whole = calshift.target_calibration_error(P_SOURCE, Y_SOURCE, P_TARGET, **asked)
    nothing = P_SOURCE[:0], Y_SOURCE[:0]
    batches = [nothing] + [one for some in source_batches(size) for one in (some, nothing)]
    source, target = calshift.scan(batches), calshift.scan([P_TARGET[:0], *cut(P_TARGET, size)])
    found = calshift.target_calibration_error(source, None, target, **asked)
    answers_agree(found, whole)


def answers_agree(found, whole):
    for one, other in ((found, whole), (found.source, whole.source)):
        close(one.estimate, other.estimate)
        close(one.standard_error, other.standard_error)
        close(one.confidence_interval(0.9), other.confidence_interval(0.9))


@pytest.mark.parametrize("asked", [{"bins": 12}, {"bins": 10, "norm": 1}, {"estimator": "paper"}])
def test_batches_of_single_and_double_precision(asked):
    """In memory they would be one array in double precision."""
    single = [np.float32 if k % 2 else np.float64 for k in range(9)]
    p, q = (
        [one.astype(kind) for one, kind in zip(cut(x, 200), single, strict=False)]
        for x in (P_SOURCE, P_TARGET)
    )
    asked = {"interval": None, "weights": "bbse", **asked}
    whole = calshift.target_calibration_error(
        np.concatenate(p), Y_SOURCE, np.concatenate(q), **asked
    )
    source = calshift.scan(list(zip(p, cut(Y_SOURCE, 200), strict=True)))
    found = calshift.target_calibration_error(source, None, calshift.scan(q), **asked)
    close(found.per_class, whole.per_class)
    close(found.source.per_class, whole.source.per_class)


def test_a_sign_does_not_hang_on_rounding():
    """Without one of its rows, 12 of 40 at a score of .3 come true, which is no error at all."""
    p = np.repeat([0.3, 0.9], [41, 200])
    y = np.repeat([1, 0], [13, 28]).tolist() + [0, 1] * 100
    asked = {"norm": 1, "bins": [0.7], "kind": "binary"}
    whole = calshift.calibration_error(p, y, **asked)
    for size in (3, 20, 30):
        batches = [(p[k : k + size], y[k : k + size]) for k in range(0, 241, size)]
        found = calshift.calibration_error(calshift.scan(batches), **asked)
        close(found.confidence_interval(), whole.confidence_interval())
        close(found.standard_error, whole.standard_error)
    counted = calshift.Predictions(
        [0.3, 0.3, 0.9, 0.9], [1, 0, 0, 1], sample_weight=[13, 28, 100, 100]
    )
    found = calshift.calibration_error(counted, **asked)
    close(found.confidence_interval(), whole.confidence_interval())


def test_sums_of_parts_without_rows_are_zero(tmp_path):
    edges = calshift.bin_edges(P_TARGET, bins=[0.2, 0.5])
    path = write(tmp_path / "t.csv", table(P_TARGET[:0]))
    nothing = calshift.scan([(P_SOURCE[:0], Y_SOURCE[:0])])
    sums = calshift.accumulate(nothing, None, path, edges=edges)
    assert (sums.size_source, sums.size_target) == (0, 0)
    whole = calshift.accumulate(P_SOURCE, Y_SOURCE, P_TARGET, edges=edges)
    close((sums + whole).source, whole.source)


def test_lists_of_paths_are_files_and_paths_among_batches_are_named(tmp_path):
    path = write(tmp_path / "t.csv", table(P_TARGET))
    found = calshift.label_shift_weights(P_SOURCE, Y_SOURCE, [path])
    close(found.values, calshift.label_shift_weights(P_SOURCE, Y_SOURCE, P_TARGET).values)
    for data in (tmp_path.glob("*.csv"), iter([path]), [path, P_TARGET]):
        with pytest.raises(InvalidInput, match=r"batch 0: it is a path, .*t\.csv': pass a list"):
            _ = calshift.scan(data).summary


def test_results_of_passes_cannot_be_compared_and_say_why():
    source, target = streamed(*SAMPLES["classes"])
    found = calshift.target_calibration_error(source, None, target)
    with pytest.raises(InvalidInput, match="of rows in memory"):
        calshift.compare(found, found.source)


# Edges of 10 000 of 40 000 rows instead of all. benchmarks/sampled_edges.py tells the moves in
# standard errors: .02 to .1 in the mean. A quarter is what the design allows; the lower end of an
# L1 interval is a bound of its own kind that may jump, and is not asked for.
@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("K", [2, 6])
def test_edges_of_a_sample_move_less_than_a_quarter_of_the_standard_error(K, norm):
    simulation = GaussianSimulation(n_classes=K, imbalance=4, temperature=0.7, seed=2)
    (p, y), (q, _) = simulation.source(40_000, rng=5), simulation.target(40_000, rng=6)
    drawn = np.random.default_rng(7).choice(len(q), 10_000, replace=False)
    edges = calshift.bin_edges(q[drawn], kind="classwise")
    asked = {"weights": simulation.class_weights, "check": False, "norm": norm}
    whole = calshift.target_calibration_error(p, y, q, **asked)
    target = calshift.scan(cut(q, 9000))
    found = calshift.target_calibration_error(p, y, target, bins=edges, **asked)
    assert found.estimate != whole.estimate
    moved = abs(np.subtract(found.confidence_interval(), whole.confidence_interval()))
    most = whole.standard_error / 4
    assert abs(found.estimate - whole.estimate) < most
    assert moved[1] < most
    assert norm == 1 or moved[0] < most


# --- progress


@pytest.mark.parametrize("where", ["scan", "call"])
@pytest.mark.parametrize(
    "ask",
    [
        calshift.label_shift_weights,
        calshift.check_label_shift,
        calshift.target_calibration_error,
        lambda source, y, target, **more: calshift.calibration_error(source, **more),
    ],
)
def test_progress_is_told_row_by_row_of_every_pass(ask, where):
    told: list[tuple[int, int]] = []

    def progress(done, total):
        told.append((done, total))

    given = {"progress": progress}
    source, target = streamed(*SAMPLES["classes"], **(given if where == "scan" else {}))
    ask(source, None, target, **(given if where == "call" else {}))
    assert told[:4] == [(400, 0), (800, 0), (1200, 0), (1500, 0)]
    assert (1500, 1500) in told
    later = [one for one in told if one[1]]
    assert {total for _, total in later} <= {1300, 1500}
    assert all(done in (400, 800, 1200, total) for done, total in later)


def test_progress_must_be_callable():
    with pytest.raises(InvalidInput, match="progress must be callable"):
        calshift.check_label_shift(P_SOURCE, Y_SOURCE, P_TARGET, progress=3)
