"""Input validation: data of users is taken as it is, and errors name what is wrong."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import calshift
from calshift import InvalidInput, Predictions
from calshift.engines.arrays import in_blocks

MATRIX = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.25, 0.25, 0.5], [0.0, 1.0, 0.0]])
SCORES = np.array([0.2, 0.3, 0.6, 0.9])
LABELS = [0, 1, 2, 1]
BINARY = [0, 0, 1, 1]
NAMES = ["cat", "dog", "owl"]


class Tensor:
    """Looks like a torch tensor that still carries its graph: no __array__ before detach."""

    def __init__(self, array, *, detached=False, dtype_known=True):
        self.array, self.detached, self.dtype_known = np.asarray(array), detached, dtype_known

    def detach(self):
        return Tensor(self.array, detached=True, dtype_known=self.dtype_known)

    def cpu(self):
        return self

    def float(self):
        return Tensor(self.array.astype(np.float32), detached=self.detached)

    def numpy(self):
        if not self.detached:
            msg = "Can't call numpy() on Tensor that requires grad."
            raise RuntimeError(msg)
        if not self.dtype_known:
            msg = "Got unsupported ScalarType BFloat16"
            raise TypeError(msg)
        return self.array

    def __array__(self, dtype=None, copy=None):
        msg = "Can't call numpy() on Tensor that requires grad."
        raise RuntimeError(msg)


FRAMES = {
    "pandas": lambda: pd.DataFrame(MATRIX, columns=NAMES),
    "pandas nullable": lambda: pd.DataFrame(MATRIX, columns=NAMES).astype("Float64"),
    "polars": lambda: pl.DataFrame(MATRIX, schema=NAMES),
    "polars lazy": lambda: pl.DataFrame(MATRIX, schema=NAMES).lazy(),
    "arrow": lambda: pa.table(dict(zip(NAMES, MATRIX.T, strict=True))),
}
CONTAINERS = {
    "numpy": lambda: MATRIX,
    "list": lambda: MATRIX.tolist(),
    "tuple": lambda: tuple(map(tuple, MATRIX)),
    "list of arrays": lambda: list(MATRIX),
    "tensor": lambda: Tensor(MATRIX),
    **FRAMES,
}
COLUMNS = {
    "pandas": pd.Series,
    "polars": pl.Series,
    "arrow": lambda values: pa.chunked_array([values]),
    "tensor": Tensor,
    "list": list,
    "tuple": tuple,
    "numpy": np.array,
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_containers_hold_the_same_probabilities(container):
    read = Predictions(CONTAINERS[container](), LABELS)
    assert type(read.p) is np.ndarray
    assert read.p.dtype == np.float64
    np.testing.assert_array_equal(read.p, MATRIX)
    np.testing.assert_array_equal(read.y, LABELS)
    assert (len(read), read.n_classes, read.size) == (4, 3, 4.0)


@pytest.mark.parametrize("column", COLUMNS)
def test_columns_serve_as_scores_labels_and_weights(column):
    make = COLUMNS[column]
    read = Predictions(make(SCORES), make(BINARY), sample_weight=make([1.0, 2.0, 1.0, 3.0]))
    np.testing.assert_array_equal(read.p, SCORES)
    np.testing.assert_array_equal(read.y, BINARY)
    np.testing.assert_array_equal(read.sample_weight, [1, 2, 1, 3])


@pytest.mark.parametrize("frame", FRAMES)
def test_columns_of_a_frame_name_the_classes(frame):
    read = Predictions(FRAMES[frame](), ["cat", "dog", "owl", "dog"])
    assert read.classes == tuple(NAMES)
    np.testing.assert_array_equal(read.y, LABELS)


def test_integer_columns_of_a_frame_are_names_too():
    frame = pd.DataFrame(SCORES[:, None] * [1, -1] + [0, 1], columns=[1, 0])
    by_frame = Predictions(frame, [0, 1, 1, 0])
    by_hand = Predictions(frame.to_numpy(), [0, 1, 1, 0], classes=[1, 0])
    np.testing.assert_array_equal(by_hand.y, [1, 0, 0, 1])
    np.testing.assert_array_equal(by_frame.y, by_hand.y)


def test_a_tensor_without_numpy_dtype_comes_as_float32():
    read = Predictions(Tensor(MATRIX, dtype_known=False), Tensor(LABELS))
    assert read.p.dtype == np.float32
    np.testing.assert_array_equal(read.p, MATRIX.astype(np.float32))


def test_one_column_is_the_probability_of_class_1():
    read = Predictions(SCORES, BINARY)
    assert read.n_classes == 2
    np.testing.assert_array_equal(read.matrix, np.stack([1 - SCORES, SCORES], axis=1))
    one, two = calshift.calibration_error(SCORES, BINARY), calshift.calibration_error(read)
    assert one.kind == "binary"
    assert one.estimate == two.estimate


# --- precision and memory


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "layout",
    [np.ascontiguousarray, np.asfortranarray, lambda p: p[::-1], lambda p: p[::3], Tensor],
    ids=["C", "Fortran", "reversed", "every third", "tensor"],
)
def test_floats_are_kept_without_a_copy(dtype, layout):
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(5), 60_000).astype(dtype)
    given = layout(p)
    read = Predictions(given, np.zeros(60_000 if layout is Tensor else len(given), dtype=int))
    held = given.array if layout is Tensor else given
    assert read.p.dtype == dtype
    assert np.shares_memory(read.p, held)
    assert read.p.shape == held.shape
    assert read.p.strides == held.strides


def test_integer_labels_are_not_copied():
    y = np.arange(60_000) % 3
    assert np.shares_memory(Predictions(np.full((60_000, 3), 1 / 3), y).y, y)


@pytest.mark.parametrize(
    ("dtype", "kept"),
    [(np.float16, np.float32), (int, np.float64), (bool, np.float64), (">f8", np.float64)],
)
def test_other_numbers_become_floats(dtype, kept):
    p = np.eye(3)[[0, 2, 1]].astype(dtype)
    read = Predictions(p)
    assert read.p.dtype == np.dtype(kept)
    np.testing.assert_array_equal(read.p, p.astype(float))


def test_rows_are_never_renormalised():
    p = np.array([[0.5, 0.5008], [0.3, 0.6993]])
    kept = p.copy()
    np.testing.assert_array_equal(Predictions(p).p, kept)
    np.testing.assert_array_equal(p, kept)


@pytest.mark.parametrize(
    ("dtype", "K", "off", "accepted"),
    [
        (np.float64, 2, 0.9e-3, True),
        (np.float64, 2, 1.2e-3, False),
        (np.float64, 100, 0.9e-3, True),
        (np.float64, 100, 1.2e-3, False),
        (np.float32, 100, 1.2e-3, False),
        (np.float16, 50, 0.03, True),  # 50 x 2^-10 = .049
        (np.float16, 50, 0.07, False),
        (np.float16, 2, 0.006, False),
    ],
)
@pytest.mark.parametrize("sign", [1, -1])
def test_tolerance_of_row_sums(dtype, K, off, accepted, sign):
    p = np.full((3, K), (1 + sign * off) / K).astype(dtype)
    if accepted:
        assert len(Predictions(p)) == 3
    else:
        with pytest.raises(InvalidInput, match=r"row 0 sums to"):
            Predictions(p)


def test_users_arrays_stay_writable_and_untouched():
    p, y, weight = MATRIX.copy(), np.array(LABELS), np.array([1.0, 0.0, 2.0, 1.0])
    kept = p.copy(), y.copy(), weight.copy()
    read = Predictions(p, y, sample_weight=weight)
    calshift.calibration_error(read)
    for array, before in zip((p, y, weight), kept, strict=True):
        assert array.flags.writeable
        np.testing.assert_array_equal(array, before)
    p[0] = [1.0, 0.0, 0.0]


def test_read_only_arrays_are_welcome():
    p, y = MATRIX.copy(), np.array(LABELS)
    p.flags.writeable = y.flags.writeable = False
    assert np.shares_memory(Predictions(p, y).p, p)


@pytest.mark.parametrize(
    "again",
    [lambda x: x, lambda x: pickle.loads(pickle.dumps(x)), copy.copy, copy.deepcopy],
    ids=["new", "pickled", "copied", "deepcopied"],
)
def test_predictions_are_frozen(again):
    read = again(Predictions(MATRIX.copy(), LABELS, classes=NAMES, sample_weight=[1, 2, 1, 1]))
    assert read == Predictions(MATRIX, LABELS, classes=NAMES, sample_weight=[1, 2, 1, 1])
    assert read != Predictions(MATRIX, LABELS, classes=NAMES, sample_weight=[1, 2, 1, 2])
    for array in (read.p, read.y, read.sample_weight):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(dataclasses.FrozenInstanceError):
        read.p = MATRIX
    with pytest.raises(dataclasses.FrozenInstanceError):
        read.other = 1


# --- labels and weights


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64, float, np.float32])
def test_whole_numbers_are_labels(dtype):
    y = Predictions(MATRIX, np.array(LABELS, dtype=dtype)).y
    assert y.dtype.kind == "i"
    np.testing.assert_array_equal(y, LABELS)


def test_truth_values_are_binary_labels():
    np.testing.assert_array_equal(Predictions(SCORES, [False, True, True, False]).y, [0, 1, 1, 0])


NAMED = {
    "list": list,
    "numpy text": np.array,
    "numpy objects": lambda y: np.array(y, dtype=object),
    "pandas": pd.Series,
    "pandas categories": lambda y: pd.Series(y, dtype="category"),
    "polars": pl.Series,
    "polars categories": lambda y: pl.Series(y, dtype=pl.Categorical),
    "arrow": lambda y: pa.chunked_array([y]),
}


@pytest.mark.parametrize("column", NAMED)
@pytest.mark.parametrize("classes", [list, tuple, np.array], ids=["list", "tuple", "numpy"])
def test_names_are_looked_up_in_classes(column, classes):
    read = Predictions(
        MATRIX, NAMED[column](["owl", "cat", "owl", "dog"]), classes=classes(["dog", "owl", "cat"])
    )
    np.testing.assert_array_equal(read.y, [1, 2, 1, 0])
    assert read.classes == ("dog", "owl", "cat")


def test_integer_names_and_codes():
    np.testing.assert_array_equal(
        Predictions(MATRIX, [30, 10, 20, 10], classes=[10, 20, 30]).y, [2, 0, 1, 0]
    )
    np.testing.assert_array_equal(Predictions(MATRIX, LABELS, classes=NAMES).y, LABELS)


def test_sample_weight_counts_rows():
    read = Predictions(MATRIX, LABELS, sample_weight=[1, 2.5, 0, 3])
    assert len(read) == 3
    assert read.size == 6.5
    np.testing.assert_array_equal(read.p, MATRIX[[0, 1, 3]])
    np.testing.assert_array_equal(read.class_counts, [1, 5.5, 0])


@pytest.mark.parametrize("estimator", ["debiased", "plugin", "paper"])
@pytest.mark.parametrize("kind", ["classwise", "top-label", "canonical"])
def test_a_weight_of_zero_removes_the_row(kind, estimator):
    rng = np.random.default_rng(1)
    p, y = rng.dirichlet(np.ones(3), 40), np.arange(40) % 3
    kept = np.arange(40) % 4 > 0
    weighted = Predictions(p, y, sample_weight=kept)
    assert (
        calshift.calibration_error(weighted, kind=kind, estimator=estimator).estimate
        == calshift.calibration_error(p[kept], y[kept], kind=kind, estimator=estimator).estimate
    )


# --- what is refused, in words that name the argument, the rule, the row and the value

NAN, INF = np.nan, np.inf
REFUSED_P = {
    "nan": ([[0.5, 0.5], [NAN, 1.0]], ["in [0, 1]", "row 1, column 0 is nan"]),
    "nan in scores": ([0.5, NAN], ["in [0, 1]", "row 1 is nan"]),
    "null": (pl.DataFrame({"a": [0.5, None], "b": [0.5, 0.5]}), ["row 1, column 0 is nan"]),
    "missing": (pd.DataFrame({"a": [0.5, None], "b": 0.5}).astype("Float64"), ["row 1", "nan"]),
    "inf": ([[0.5, 0.5], [INF, 0.0]], ["in [0, 1]", "row 1, column 0 is inf"]),
    "minus inf": ([[0.5, 0.5], [0.0, -INF]], ["in [0, 1]", "row 1, column 1 is -inf"]),
    "negative": ([[0.5, 0.5], [1.25, -0.25]], ["in [0, 1]", "row 1, column 0 is 1.25"]),
    "negative score": ([0.5, 0.1, -0.25], ["in [0, 1]", "row 2 is -0.25"]),
    "above 1": ([0.5, 0.1, 1.01], ["in [0, 1]", "row 2 is 1.01"]),
    "above 1 in float32": (np.array([0.5, 1.001], np.float32), ["in [0, 1]", "row 1 is 1.001"]),
    "huge": ([[0.5, 0.5], [1e308, 1e308]], ["in [0, 1]", "row 1, column 0 is 1e+308"]),
    "sum": ([[0.5, 0.5], [0.3, 0.182]], ["sum to 1 in each row", "row 1 sums to 0.482"]),
    "sum above": ([[0.5, 0.5], [0.9, 0.8]], ["sum to 1 in each row", "row 1 sums to 1.7"]),
    "sum just off": ([[0.5, 0.5], [0.5, 0.502]], ["sum to 1", "row 1 sums to 1.002"]),
    "zeros": ([[0.5, 0.5], [0.0, 0.0]], ["sum to 1 in each row", "row 1 sums to 0"]),
    "logits": ([[2.0, -3.0], [0.1, 0.4]], ["in [0, 1]", "row 0", "logits", "calshift.softmax"]),
    "logits off 1": ([[0.9, 4.0], [0.1, 0.4]], ["row 0, column 1 is 4", "calshift.softmax"]),
    "log": (np.log([[0.5, 0.5], [0.1, 0.9]]), ["log-probabilities", "exp"]),
    "percentages": ([[50.0, 50.0], [90.0, 10.0]], ["percentages", "100"]),
    "scalar": (0.5, ["shape", "()"]),
    "text": ("0.5", ["p must"]),
    "nothing": (None, ["p must", "NoneType"]),
    "mapping": ({"a": 1}, ["p must", "dict"]),
    "generator": ((p for p in [0.1, 0.2]), ["p must", "generator"]),
    "ragged": ([[0.5, 0.5], [1.0]], ["p must", "rectangular"]),
    "three dimensions": (np.full((2, 2, 2), 0.5), ["shape", "(2, 2, 2)"]),
    "one class": (np.ones((3, 1)), ["K >= 2", "(3, 1)"]),
    "one column": (pl.DataFrame({"a": [0.5, 0.1]}), ["K >= 2", "(2, 1)"]),
    "empty": ([], ["at least one row", "(0,)"]),
    "no rows": (np.zeros((0, 3)), ["at least one row", "(0, 3)"]),
    "no columns": (np.zeros((3, 0)), ["p must", "(3, 0)"]),
    "empty frame": (pd.DataFrame(), ["p must", "(0, 0)"]),
    "words": ([["a", "b"]], ["numbers", "<U1"]),
    "objects": (np.array([[0.5, None]]), ["numbers", "object"]),
    "complex": ([0.5 + 0j], ["numbers", "complex128"]),
    "mixed frame": (pd.DataFrame({"a": [0.5], "b": ["x"]}), ["numbers", "object"]),
    "masked": (np.ma.masked_array([0.5, 0.2], [False, True]), ["p must"]),
    "same names": (pd.DataFrame([[0.5, 0.5]], columns=["a", "a"]), ["'a'"]),
}
REFUSED_Y = {
    "too large": ([0, 1, 3, 1], ["0..2", "row 2 is 3"]),
    "negative": ([0, -1, 2, 1], ["0..2", "row 1 is -1"]),
    "too large unsigned": (np.array([0, 1, 2**63, 0], np.uint64), ["0..2", f"row 2 is {2**63}"]),
    "fraction": ([0, 1, 0.5, 1], ["integer labels", "row 2 is 0.5"]),
    "nan": ([0, 1, 2, NAN], ["integer labels", "row 3 is nan"]),
    "inf": ([0, INF, 2, 1], ["integer labels", "row 1 is inf"]),
    "huge": ([0, 1, 1e300, 1], ["row 2 is 1e+300"]),
    "null": (pl.Series([0, 1, None, 1]), ["integer labels", "row 2 is nan"]),
    "none": ([0, 1, None, 1], ["y "]),
    "short": ([0, 1, 2], ["one label a row", "(4,)", "(3,)"]),
    "long": ([0, 1, 2, 1, 1], ["one label a row", "(4,)", "(5,)"]),
    "empty": ([], ["one label a row", "(0,)"]),
    "scalar": (1, ["one label a row", "()"]),
    "text": ("cat", ["one label a row", "()"]),
    "one-hot": (np.eye(3)[LABELS], ["one label a row", "(4, 3)", "argmax"]),
    "ragged": ([[0], [1], [1, 2], [0]], ["y must", "rectangular"]),
    "names": (["cat", "dog", "owl", "dog"], ["names", "cat", "classes="]),
    "dates": (np.array(["2020"] * 4, "M8[Y]"), ["integer labels", "datetime64"]),
    "complex": ([0j, 1j, 0, 0], ["integer labels", "complex128"]),
    "generator": ((k for k in LABELS), ["y must", "generator"]),
}
REFUSED_WEIGHT = {
    "negative": ([1, 1, -2, 1], ["not negative", "row 2 is -2"]),
    "nan": ([1, NAN, 2, 1], ["finite", "row 1 is nan"]),
    "inf": ([1, 1, 2, INF], ["finite", "row 3 is inf"]),
    "zero": ([0, 0, 0, 0], ["all zero"]),
    "short": ([1, 1, 1], ["one a row", "(3,)"]),
    "column": ([[1], [1], [1], [1]], ["one a row", "(4, 1)"]),
    "scalar": (2.0, ["one a row", "()"]),
    "empty": ([], ["one a row", "(0,)"]),
    "words": (["1"] * 4, ["numbers", "<U1"]),
    "mapping": ({}, ["sample_weight must", "dict"]),
}
REFUSED_CLASSES = {
    "short": (["a", "b"], ["3 different classes", "('a', 'b')"]),
    "twice": (["a", "b", "a"], ["3 different classes", "('a', 'b', 'a')"]),
    "number": (3, ["classes must"]),
    "unhashable": ([["a"], ["b"], ["c"]], ["classes must"]),
}


def refusal(call, *fragments):
    """The message of the InvalidInput that the call must end in."""
    with pytest.raises(InvalidInput) as caught:
        call()
    message = str(caught.value)
    assert isinstance(caught.value, ValueError)
    missing = [fragment for fragment in fragments if fragment not in message]
    assert not missing, f"{missing} not in {message!r}"
    return message


@pytest.mark.parametrize("case", REFUSED_P)
def test_refused_probabilities(case):
    p, fragments = REFUSED_P[case]
    message = refusal(lambda: Predictions(p), *fragments)
    assert message.startswith(("p must ", "classes must "))


@pytest.mark.parametrize("case", REFUSED_Y)
def test_refused_labels(case):
    y, fragments = REFUSED_Y[case]
    message = refusal(lambda: Predictions(MATRIX, y), *fragments)
    assert message.startswith("y ")


@pytest.mark.parametrize("case", REFUSED_WEIGHT)
def test_refused_weights(case):
    weight, fragments = REFUSED_WEIGHT[case]
    message = refusal(lambda: Predictions(MATRIX, LABELS, sample_weight=weight), *fragments)
    assert message.startswith("sample_weight must ")


@pytest.mark.parametrize("case", REFUSED_CLASSES)
def test_refused_classes(case):
    classes, fragments = REFUSED_CLASSES[case]
    refusal(lambda: Predictions(MATRIX, classes=classes), *fragments)


def test_refused_names():
    refusal(
        lambda: Predictions(MATRIX, ["cat", "dog", "cow", "dog"], classes=NAMES),
        *("y must", "classes", "row 2 is 'cow'"),
    )
    refusal(
        lambda: Predictions(MATRIX, [10, 20, 30, 3], classes=[10, 20, 30]),
        *("y must", "classes", "row 3 is 3"),
    )


def test_the_likely_cause_is_not_guessed_where_there_is_none():
    message = refusal(lambda: Predictions([0.5, 1.1]))
    assert "softmax" not in message
    message = refusal(lambda: Predictions([[0.5, 0.4], [0.5, 0.5]]))
    assert "softmax" not in message
    assert "percent" not in message


# --- the same door in every public function, under the name of its own argument

OFF, GOOD = [[0.5, 0.5], [0.3, 0.182], [0.1, 0.9]], [[0.5, 0.5], [0.3, 0.7], [0.1, 0.9]]
EDGES = calshift.bin_edges(GOOD, bins=2)
ONES = [1.0, 1.0]
NAMED_ARGUMENTS = {
    "calibration_error p": ("p", lambda: calshift.calibration_error(OFF, [0, 1, 1])),
    "target source": (
        "p_source",
        lambda: calshift.target_calibration_error(OFF, [0, 1, 1], GOOD, weights=ONES),
    ),
    "target target": (
        "p_target",
        lambda: calshift.target_calibration_error(GOOD, [0, 1, 1], OFF, weights=ONES),
    ),
    "curve source": ("p_source", lambda: calshift.reliability_curve(OFF, [0, 1, 1])),
    "curve target": (
        "p_target",
        lambda: calshift.reliability_curve(GOOD, [0, 1, 1], OFF, weights=ONES),
    ),
    "bin_edges": ("p_target", lambda: calshift.bin_edges(OFF)),
    "accumulate source": ("p_source", lambda: calshift.accumulate(OFF, [0, 1, 1], edges=EDGES)),
    "accumulate target": ("p_target", lambda: calshift.accumulate(p_target=OFF, edges=EDGES)),
}
NAMED_LABELS = {
    "calibration_error": ("y", lambda y: calshift.calibration_error(GOOD, y)),
    "target": (
        "y_source",
        lambda y: calshift.target_calibration_error(GOOD, y, GOOD, weights=ONES),
    ),
    "curve": ("y_source", lambda y: calshift.reliability_curve(GOOD, y)),
    "shifted curve": (
        "y_source",
        lambda y: calshift.reliability_curve(GOOD, y, GOOD, weights=ONES),
    ),
    "accumulate": ("y_source", lambda y: calshift.accumulate(GOOD, y, edges=EDGES)),
    "weights source": (
        "y_source",
        lambda y: calshift.weights_from_labels(y, [0, 1, 1], n_classes=2),
    ),
    "weights target": (
        "y_target",
        lambda y: calshift.weights_from_labels([0, 1, 1], y, n_classes=2),
    ),
    "resample": ("y", lambda y: calshift.resample_label_shift(y, prior=[0.5, 0.5])),
}


@pytest.mark.parametrize("case", NAMED_ARGUMENTS)
def test_probabilities_are_named_as_the_caller_names_them(case):
    name, call = NAMED_ARGUMENTS[case]
    message = refusal(call, "sum to 1 in each row", "row 1 sums to 0.482")
    assert message.startswith(f"{name} must ")


@pytest.mark.parametrize("case", NAMED_LABELS)
@pytest.mark.parametrize(
    ("y", "fragment"),
    [([0, 1, 2], "row 2 is 2"), ([0, 0.5, 1], "row 1 is 0.5"), ([0, -1, 1], "row 1 is -1")],
)
def test_labels_are_named_as_the_caller_names_them(case, y, fragment):
    name, call = NAMED_LABELS[case]
    assert refusal(lambda: call(y), fragment).startswith(f"{name} must ")


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("y", lambda: calshift.calibration_error(GOOD)),
        ("y", lambda: calshift.calibration_error(Predictions(GOOD))),
        ("y_source", lambda: calshift.reliability_curve(GOOD)),
        ("y_source", lambda: calshift.accumulate(GOOD, edges=EDGES)),
        ("y_source", lambda: calshift.target_calibration_error(GOOD, None, GOOD, weights=ONES)),
    ],
    ids=["calibration_error", "Predictions", "curve", "accumulate", "target"],
)
def test_missing_labels(name, call):
    assert refusal(call).startswith(f"{name} must be given")


def test_labels_come_with_predictions_or_beside_them_but_not_twice():
    refusal(lambda: calshift.calibration_error(Predictions(GOOD, [0, 1, 1]), [0, 1, 1]), "y must")


@pytest.mark.parametrize(
    "call",
    [
        lambda p, y, q: calshift.target_calibration_error(p, y, q, weights=ONES),
        lambda p, y, q: calshift.reliability_curve(p, y, q, weights=ONES),
    ],
    ids=["error", "curve"],
)
def test_source_and_target_must_fit(call):
    refusal(lambda: call(MATRIX, LABELS, GOOD), "p_source", "p_target", "3", "2")
    refusal(lambda: call(GOOD, [0, 1, 1], MATRIX), "p_source", "p_target", "3", "2")
    refusal(lambda: call(SCORES, BINARY, MATRIX), "p_source", "p_target", "3", "2")
    ordered = Predictions(GOOD, [0, 1, 1], classes=["a", "b"])
    swapped = Predictions(GOOD, classes=["b", "a"])
    refusal(lambda: call(ordered, None, swapped), "same order", "('a', 'b')", "('b', 'a')")


@pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")
def test_one_class_only():
    same = [1, 1, 1]
    refusal(
        lambda: calshift.target_calibration_error(GOOD, same, GOOD, weights=ONES),
        *("y_source must", "two classes", "1"),
    )
    refusal(lambda: calshift.reliability_curve(GOOD, same, GOOD, weights=ONES), "two classes")
    removed = Predictions(GOOD, [0, 1, 1], sample_weight=[0, 1, 1])
    refusal(
        lambda: calshift.target_calibration_error(removed, None, GOOD, weights=ONES), "two classes"
    )
    sums = calshift.accumulate(GOOD, same, GOOD, edges=EDGES)
    refusal(lambda: calshift.target_calibration_error_from(sums, weights=ONES), "two classes")


@pytest.mark.parametrize("estimator", ["debiased", "plugin", "paper"])
def test_one_class_only_is_allowed_with_labels(estimator):
    result = calshift.calibration_error(GOOD, [1, 1, 1], estimator=estimator)
    assert np.isfinite(result.estimate)
    assert np.isfinite(calshift.reliability_curve(GOOD, [1, 1, 1]).frequency).all()


def test_a_single_row_tells_nothing():
    message = refusal(lambda: calshift.calibration_error([0.5], [1]), "at least two rows")
    assert message.startswith("p must ")
    message = refusal(
        lambda: calshift.target_calibration_error(SCORES, BINARY, [0.5], weights=ONES),
        "at least two rows",
    )
    assert message.startswith("p_target must ")


def test_columns_named_by_digits_are_matched_with_integer_labels():
    import pandas as pd

    frame = pd.DataFrame([[0.1, 0.2, 0.7]] * 3, columns=["2", "0", "1"])
    assert Predictions(frame, [0, 1, 2]).y.tolist() == [1, 2, 0]
    assert Predictions(frame, ["0", "1", "2"]).y.tolist() == [1, 2, 0]
    assert Predictions(frame, [0.0, 1.0, 2.0]).y.tolist() == [1, 2, 0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "canonical", "bins": 5}, "exclude each other"),
        ({"kernel": "triweight", "bins": 5}, "exclude each other"),
        ({"bandwidth": 0.1}, "needs a kernel"),
    ],
)
def test_options_that_would_do_nothing_are_refused(options, message):
    with pytest.raises(calshift.InvalidInput, match=message):
        calshift.calibration_error([[0.2, 0.8], [0.7, 0.3]], [0, 1], **options)


def test_views_refer_to_their_origin():
    whole = Predictions(np.full((10, 3), 1 / 3), np.arange(10) % 3)
    view = whole.rows(2, 8)
    inner = view.rows(1, 30)
    assert inner.y.tolist() == whole.y[3:8].tolist()
    for one, first in ((view, 2), (inner, 3)):
        assert one._origin[0] is whole
        assert one._origin[1] == first
    others = (whole, view.take([0, 1]), view.unlabelled(), view.with_probabilities(view.p))
    assert all(one._origin is None for one in others)


def test_copies_of_views_are_no_views():
    view = Predictions(np.full((10, 3), 1 / 3)).rows(2, 8)
    for other in (pickle.loads(pickle.dumps(view)), copy.copy(view), copy.deepcopy(view)):
        assert other._origin is None
        assert other == view
        assert view == other


def test_a_block_that_suffices_is_the_sample_itself():
    whole = Predictions(np.full((10, 3), 1 / 3))
    assert list(whole.blocks(10)) == [whole]
    assert next(whole.blocks(10)) is whole
    assert in_blocks(whole)[0] is whole
    assert [len(block) for block in whole.blocks(4)] == [4, 4, 2]
    assert [block._origin[1] for block in whole.blocks(4)] == [0, 4, 8]
