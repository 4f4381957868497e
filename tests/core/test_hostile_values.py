"""Values that are no plain arrays, numbers or words: read as what they mean, or refused."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import calshift
from calshift import InvalidInput, Predictions

simulation = calshift.simulate.GaussianSimulation(n_classes=3, imbalance=4)
p, y = simulation.source(300, rng=1)
q, _ = simulation.target(300, rng=3)  # label shift is not rejected, so that no call warns
ONE_MASKED = np.arange(300) == 7


class Device:
    """An array of a device, which numpy must not convert."""

    ndim, shape, dtype = 2, (300, 3), np.dtype(float)

    def __array__(self, *arguments: object, **options: object) -> np.ndarray:
        msg = "implicit conversion is not allowed"
        raise TypeError(msg)


def refuse(*words: str):
    return pytest.raises(InvalidInput, match="(?s)" + ".*".join(words))


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda m: Predictions(np.ma.array(p, mask=np.outer(m, [1, 0, 0]).astype(bool)), y), "p"),
        (lambda m: Predictions(list(np.ma.array(p, mask=np.stack([m] * 3, 1))), y), "p"),
        (lambda m: Predictions(p, np.ma.array(y, mask=m)), "y"),
        (lambda m: Predictions(p, list(np.ma.array(y, mask=m))), "y"),
        (lambda m: Predictions(p, y, sample_weight=np.ma.array(np.ones(300), mask=m)), "sample_w"),
        (lambda m: calshift.target_calibration_error(p, np.ma.array(y, mask=m), q), "y_source"),
        (lambda m: calshift.softmax(np.ma.array(p, mask=np.stack([m] * 3, 1))), "logits"),
        (lambda m: calshift.weights_from_labels(np.ma.array(y, mask=m), y), "y_source"),
        (lambda m: calshift.monitor(p, y, q, np.ma.array(np.arange(300) + 2e8, mask=m)), "time"),
    ],
)
def test_masked_values_are_refused_and_an_empty_mask_is_none(call, name):
    with refuse(name, "masked values", "row 7"):
        call(ONE_MASKED)
    call(np.zeros(300, bool))


def test_a_masked_weight_of_a_class_is_refused():
    with refuse("weights", "masked"):
        calshift.target_calibration_error(p, y, q, weights=np.ma.array([1, 1, 1], mask=[0, 1, 0]))


@pytest.mark.parametrize(
    ("classes", "labels"),
    [
        ([1.0, 0.0], [1.0, 0.0, 0.0]),
        ([1.0, 0.0], [1, 0, 0]),
        ([1, 0], [1.0, 0.0, 0.0]),
        ([np.float32(1), np.float32(0)], [1, 0, 0]),
        (np.array([1.5, 0.5]), [1.5, 0.5, 0.5]),
        (["1", "0"], [True, False, False]),
        (["1", "0"], [1.0, 0.0, 0.0]),
        (["1.0", "0.0"], [1, 0, 0]),
        ([np.True_, np.False_], [True, False, False]),
        ([True, False], [1, 0, 0]),
        (["True", "False"], [True, False, False]),
        ([3, "x"], np.array([3, "x", "x"], dtype=object)),
    ],
)
def test_labels_are_matched_with_classes_of_any_type(classes, labels):
    made = Predictions([[0.9, 0.1], [0.2, 0.8], [0.3, 0.7]], np.array(labels), classes=classes)
    assert made.labels.tolist() == [0, 1, 1]


def test_columns_of_a_frame_that_are_floats_name_classes():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame([[0.9, 0.1], [0.2, 0.8]], columns=[1.0, 0.0])
    assert Predictions(frame, [1.0, 0.0]).labels.tolist() == [0, 1]


def test_names_that_are_no_numbers_leave_labels_as_places():
    two = [[0.9, 0.1], [0.2, 0.8]]
    assert Predictions(two, [0, 1], classes=["b", "a"]).labels.tolist() == [0, 1]
    assert Predictions(two, [False, True], classes=["ill", "well"]).labels.tolist() == [0, 1]
    assert Predictions(two, [0, 1], classes=["1.5", "2.5"]).labels.tolist() == [0, 1]
    assert Predictions(two, [0, 1], classes=["²", "².0"]).labels.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("classes", "labels"),
    [
        (["1", "01"], [1, 1]),
        ([1, "1"], [1, 1]),
        ([1, 1.0], [1, 1]),
        ([1, True], [1, 1]),
        ([np.nan, 1.0], [1.0, 1.0]),
        ([None, 1], [1, 1]),
        ([[1], [2]], [1, 2]),
        ([(1, []), (2, [])], [1, 2]),
        (3, [1, 2]),
        (np.array(3), [1, 2]),
        ({"a", "b"}, ["a", "b"]),
        (["a", "b"], np.array([["a"], ["b"]], dtype=object)),
        (["a", "b"], np.array([["a"], ["b"], 3], dtype=object)[:2]),
        ([10, 20], [0, 1]),
        ([10.0, 20.0], [10.0, np.nan]),
    ],
)
def test_names_that_are_ambiguous_or_unknown_are_refused(classes, labels):
    with refuse("classes|label"):
        Predictions([[0.9, 0.1], [0.2, 0.8]], labels, classes=classes)


def test_the_first_unknown_label_is_named():
    with refuse("row 2 is 7"):
        Predictions([[0.9, 0.1]] * 4, [10, 20, 7, 3], classes=[10, 20])


@pytest.mark.parametrize(
    ("labels", "advice"),
    [
        (np.eye(3)[[0, 1, 2, 0]], "argmax"),
        (np.array([[1, 1, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]]), "by itself"),
        (np.array([[0, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]]), "by itself"),
        (np.array([[0], [1], [2], [0]]), "ravel"),
    ],
)
def test_labels_in_a_matrix_get_the_advice_that_fits(labels, advice):
    with refuse("y must have one label a row", advice) as caught:
        Predictions(np.full((4, 3), 1 / 3), labels)
    assert ("argmax" in str(caught.value)) == (advice == "argmax")


def test_a_matrix_is_read_as_an_array():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        found = calshift.target_calibration_error(np.matrix(p), y, np.matrix(q))
        with refuse("y_source", r"got \(1, 300\)"):
            calshift.target_calibration_error(p, np.matrix(y), q)
    assert found.estimate == calshift.target_calibration_error(p, y, q).estimate


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.longdouble])
def test_labels_in_any_precision_raise_no_warning(kind):
    assert (Predictions(p, y.astype(kind)).labels == y).all()


def test_arrays_of_other_libraries_are_refused_in_words():
    sparse = pytest.importorskip("scipy.sparse")
    for value in (Device(), sparse.csr_matrix(p), sparse.coo_array(p)):
        for call in (
            lambda v: Predictions(v, y),
            lambda v: Predictions(p, v),
            lambda v: Predictions(p, y, sample_weight=v),
            lambda v: calshift.target_calibration_error(p, y, v),
            calshift.softmax,
        ):
            with refuse("convert|must be an array"):
                call(value)


def test_tensors_without_data_are_refused_in_words():
    torch = pytest.importorskip("torch")
    for value in (torch.empty(300, 3, device="meta"), torch.eye(3).to_sparse()):
        with refuse("cannot be converted"):
            Predictions(value, y)
    assert Predictions(torch.tensor(p[:4]), y[:4], classes=torch.tensor([2, 1, 0])).classes == (
        2,
        1,
        0,
    )


@pytest.mark.parametrize("axis", [True, 2, -3, 1.0, None, "1", np.timedelta64(1, "D")])
def test_softmax_takes_an_axis_that_exists(axis):
    with refuse("axis must be"):
        calshift.softmax(p, axis=axis)
    assert np.array_equal(calshift.softmax(p, axis=np.int64(1)), calshift.softmax(p))


HOSTILE = {
    "timedelta": np.timedelta64(3, "s"), "array": np.array([1, 2]), "huge": 10**400,
    "nan": float("nan"), "object": object(), "bytes": b"x", "complex": 1 + 1j, "dict": {},
    "too long to show": 10**5000,
}  # fmt: skip
OPTIONS = (
    "kind", "norm", "estimator", "binning", "kernel", "bandwidth", "interval", "n_boot", "n_jobs",
    "check", "stratified", "progress", "weights", "bins",
)  # fmt: skip


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("value", HOSTILE)
def test_options_are_refused_by_name(option, value):
    if (option, value) == ("bins", "array"):
        return  # edges
    with refuse(option) as caught:
        calshift.target_calibration_error(p, y, q, **{option: HOSTILE[value]})
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("option", [*OPTIONS, "rng"])
def test_a_missing_value_of_pandas_is_refused_by_name(option):
    pandas = pytest.importorskip("pandas")
    with refuse(option):
        calshift.target_calibration_error(p, y, q, **{option: pandas.NA})


@pytest.mark.parametrize(
    "level",
    [np.longdouble(1) - np.finfo(np.longdouble).eps, np.timedelta64(1, "D"), 10**400, [0.9]],
)
def test_a_level_must_be_a_float_below_1(level):
    result = calshift.target_calibration_error(p, y, q)
    for call in (
        lambda: result.confidence_interval(level),
        lambda: calshift.check_label_shift(p, y, q, level=level),
        lambda: calshift.write_report(result, "unused.html", level=level),
    ):
        with refuse("level"):
            call()


def test_accumulate_names_what_it_cannot_read():
    edges = calshift.bin_edges(q)
    with refuse("p_source"):
        calshift.accumulate(0.5, y, edges=edges)
    with refuse("p_target"):
        calshift.accumulate(p_target=0.5, edges=edges)


def test_a_lazy_frame_is_read():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(p, schema=["a", "b", "c"])
    edges = calshift.bin_edges(frame)
    lazy = calshift.accumulate(frame.lazy(), y, frame.lazy(), edges=edges)
    assert lazy.size_source == lazy.size_target == 300


def test_classes_of_a_scan_must_be_names():
    with refuse("classes must name"):
        calshift.scan([p], classes=3)


def test_many_bins_are_refused_before_memory_is_taken():
    for binning in ("mass", "width"):
        with refuse("bins must be a whole number of at least 1 and at most 1,000,000"):
            calshift.target_calibration_error(p, y, q, bins=10**12, binning=binning)


def test_many_bins_of_many_classes_are_refused_before_memory_is_taken():
    wide = np.full((50, 1000), 1e-3)
    with refuse("bins must be at most 20,000 for 1,000 classes"):
        calshift.calibration_error(wide, np.arange(50), bins=10**6, binning="width")


@pytest.mark.parametrize("path", [None, 3, b"a.html", "", "a\0b.html", "a\ud800.html", ["a"]])
def test_paths_that_are_none_are_refused(path):
    result = calshift.target_calibration_error(p, y, q)
    with refuse("path"):
        calshift.write_report(result, path)
    if isinstance(path, str) and path:
        with refuse("path"):
            calshift.target_calibration_error(p, y, path)
        with refuse("path"):
            calshift.scan(path)


def test_a_long_message_is_shortened_in_its_middle():
    with refuse("no such file") as caught:
        calshift.scan("x/" * 1000 + "a.csv")
    assert len(str(caught.value)) < 1100


def test_other_arguments_of_odd_types_are_refused_by_name(tmp_path):
    path = tmp_path / "s.csv"
    path.write_text("p_a,p_b,label\n" + "0.5,0.5,a\n0.25,0.75,b\n" * 20)
    for columns in (3, [3], {"p_a": 1}, object()):
        with refuse("columns must be names"):
            calshift.scan(path, columns=columns)
    for checkpoint in ("", "a\0b", "a\ud800"):
        with refuse("checkpoint"):
            calshift.calibration_error(calshift.scan(path), checkpoint=checkpoint)
    result = calshift.target_calibration_error(p, y, q, check=False)
    calshift.write_report(result, tmp_path / "a.html", level=np.longdouble("0.9"))
    assert (tmp_path / "a.html").exists()


def test_a_nested_tensor_is_refused():
    torch = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nested = torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)])
    with refuse("cannot be converted"):
        calshift.accumulate(nested, y, edges=calshift.bin_edges(q))


def test_as_many_bins_as_fit_into_two_bytes_and_more(tmp_path):
    path = tmp_path / "s.npz"
    np.savez(path, p=p, label=y)
    for bins in (2**16 - 1, 2**16, 2**16 + 1, 100_000):
        from_rows = calshift.calibration_error(p, y, bins=bins, binning="width", interval=None)
        from_file = calshift.calibration_error(path, bins=bins, binning="width", interval=None)
        assert from_file.estimate == pytest.approx(from_rows.estimate, rel=1e-9)
    assert calshift.bin_edges(path, bins=10**6) == calshift.bin_edges(p, bins=10**6)
    with refuse("fewer than 1,000,000 edges"):
        calshift.calibration_error(p, y, bins=np.linspace(0, 1, 10**6 + 2))


@pytest.mark.parametrize("kind", ["double[pyarrow]", "float[pyarrow]", "Float64", "float32"])
def test_frames_of_numbers_in_any_storage_are_read(kind):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(p, columns=list("abc")).astype(kind)
    np.testing.assert_allclose(Predictions(frame).p, p, rtol=1e-6)
    frame.iloc[7, 1] = None
    with refuse("p must", "row 7"):
        Predictions(frame)


def test_a_class_for_each_number_has_a_limit():
    with refuse("n_classes must be", "at most 10,000,000"):
        calshift.weights_from_labels([0, 1], [0, 1], n_classes=10**9)
