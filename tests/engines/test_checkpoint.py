"""A call that is interrupted goes on where it stopped, and gives the very same numbers."""

from __future__ import annotations

import os
from contextlib import suppress

import numpy as np
import pytest

import calshift
from calshift import InvalidInput
from calshift.io.file_reader import FileReader
from tests.engines.samples import P_SOURCE, P_TARGET, Y_SOURCE, cut, folder_of, source_batches

pytestmark = pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")


class Stumbling:
    """Batches that can be read again, until the n-th of all that are read."""

    def __init__(self, batches, left: list[int], problem: type[BaseException] = KeyboardInterrupt):
        self.batches, self.left, self.problem = batches, left, problem

    def __iter__(self):
        for batch in self.batches:
            if self.left[0] == 0:
                raise self.problem
            self.left[0] -= 1
            yield batch


def error(source, target, **more):
    found = calshift.target_calibration_error(source, None, target, **more)
    return {
        **found.to_dict(),
        "bands": [list(map(float, ends)) for ends in found.class_intervals()],
    }


def weights(source, target, **more):
    return calshift.label_shift_weights(source, None, target, **more).to_dict()


def check(source, target, **more):
    return calshift.check_label_shift(source, None, target, **more).to_dict()


def labelled(source, target, **more):
    return calshift.calibration_error(source, **more).to_dict()


QUESTIONS = {"error": error, "weights": weights, "check": check, "labelled": labelled}


def samples(left: list[int], problem=KeyboardInterrupt):
    return (
        calshift.scan(Stumbling(source_batches(300), left, problem)),
        calshift.scan(Stumbling(cut(P_TARGET, 300), left, problem)),
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.parametrize("problem", [KeyboardInterrupt, OSError])
def test_interrupted_anywhere_it_goes_on_to_the_same_numbers(name, problem, tmp_path):
    ask, path = QUESTIONS[name], tmp_path / "run.npz"
    left = [10**9]
    whole = ask(*samples(left))
    read = 10**9 - left[0]
    stops = {1, 4, 5, 9, 13, read // 3, read // 2, read - 1}
    assert read > max(stops)  # so that each of them interrupts
    for stop in stops:
        with pytest.raises(problem):
            ask(*samples([stop], problem), checkpoint=path)
        assert path.exists()
        left = [10**9]
        assert ask(*samples(left), checkpoint=path) == whole
        assert not path.exists()


def test_interrupted_again_and_again_it_comes_to_an_end(tmp_path):
    path, whole = tmp_path / "run.npz", weights(*samples([10**9]))
    found, tries = None, 0
    while found is None and tries < 60:
        tries += 1
        with suppress(KeyboardInterrupt):
            found = weights(*samples([11]), checkpoint=path)
    assert found == whole
    assert tries > 2


def test_what_was_summed_up_is_not_read_again(tmp_path):
    path, left = tmp_path / "run.npz", [10**9]
    error(*samples(left))
    read = 10**9 - left[0]
    with pytest.raises(KeyboardInterrupt):
        error(*samples([read - 3]), checkpoint=path)
    left = [10**9]
    error(*samples(left), checkpoint=path)
    assert 10**9 - left[0] < 12


def test_the_same_scans_asked_again_go_on_too(tmp_path):
    """Their first passes are known by then, and still have their place in the row."""
    path, left = tmp_path / "run.npz", [10**9]
    source, target = samples(left)
    whole = weights(source, target)
    read = 10**9 - left[0]
    for stop in (12, 20, 40):
        left[0] = stop
        with pytest.raises(KeyboardInterrupt):
            weights(source, target, checkpoint=path)
        left[0] = 10**9
        assert weights(source, target, checkpoint=path) == whole
        left[0] = stop
        with pytest.raises(KeyboardInterrupt):
            weights(source, target, checkpoint=path)
        left[0] = 10**9
        assert weights(*samples(left), checkpoint=path) == whole
        assert 10**9 - left[0] < read - stop + 6  # what was skipped is at most a pass


def test_it_is_the_same_in_threads(tmp_path):
    path = tmp_path / "run.npz"
    whole = weights(*samples([10**9]))

    def threaded(left):
        source = calshift.scan(Stumbling(source_batches(300), left), jobs=3)
        return source, calshift.scan(Stumbling(cut(P_TARGET, 300), left), jobs=3)

    with pytest.raises(KeyboardInterrupt):
        weights(*threaded([33]), checkpoint=path)
    assert weights(*threaded([10**9]), checkpoint=path) == whole


# --- which run it is


@pytest.fixture
def stopped(tmp_path, monkeypatch):
    """A checkpoint of a question about two folders, and the question asked again."""
    source = folder_of(tmp_path / "source", P_SOURCE, Y_SOURCE)
    target = folder_of(tmp_path / "target", P_TARGET)
    path = tmp_path / "run.npz"

    def ask(stop=None, **more):
        asked = {"weights": [1.1, 1.0, 0.9], "check": False, **more}
        with monkeypatch.context() as patched:
            if stop is not None:
                patched.setattr(FileReader, "_validate", _stumbling(stop))
            scanned = calshift.scan(source, labelled=True), calshift.scan(target, labelled=False)
            return error(*scanned, checkpoint=path, **asked)

    with pytest.raises(KeyboardInterrupt):
        ask(stop=11)
    assert path.exists()
    return ask


def _stumbling(stop):
    """What checks so many batches, and then is interrupted."""
    real, left = FileReader._validate, [stop]

    def checked(self, rows, number):
        if left[0] == 0:
            raise KeyboardInterrupt
        left[0] -= 1
        return real(self, rows, number)

    return checked


def test_the_same_question_goes_on(stopped, tmp_path):
    assert stopped()["n_source"] == 1500
    assert not (tmp_path / "run.npz").exists()


@pytest.mark.parametrize(
    "other",
    [
        {"norm": 1}, {"kind": "top-label"}, {"bins": [0.5]}, {"check": True}, {"weights": "bbse"},
        {"weights": [1.1, 1.0, 0.8]}, {"interval": None}, {"estimator": "plugin"},
        {"stratified": True},
    ],
    ids=str,
)  # fmt: skip
def test_another_question_is_refused(stopped, other, tmp_path):
    with pytest.raises(InvalidInput, match="checkpoint of another run"):
        stopped(**other)
    assert (tmp_path / "run.npz").exists()


@pytest.mark.parametrize("change", ["time", "size", "more", "version"])
def test_other_data_or_another_version_is_refused(stopped, change, tmp_path, monkeypatch):
    part = tmp_path / "target" / "part-1.parquet"
    if change == "time":
        os.utime(part, (1, 1))
    elif change == "size":
        part.write_bytes((tmp_path / "target" / "part-3.parquet").read_bytes())
    elif change == "more":
        (tmp_path / "target" / "part-9.parquet").write_bytes(part.read_bytes())
    else:
        monkeypatch.setattr("importlib.metadata.version", lambda name: "9.9")
    with pytest.raises(InvalidInput, match="checkpoint of another run"):
        stopped()


def test_another_function_is_refused(stopped, tmp_path):
    with pytest.raises(InvalidInput, match="checkpoint of another run"):
        calshift.label_shift_weights(
            tmp_path / "source", None, tmp_path / "target", checkpoint=tmp_path / "run.npz"
        )


def test_one_sample_may_be_in_memory_and_is_recognised(tmp_path):
    path = tmp_path / "run.npz"
    target = Stumbling(cut(P_TARGET, 300), [9])
    with pytest.raises(KeyboardInterrupt):
        calshift.label_shift_weights(P_SOURCE, Y_SOURCE, calshift.scan(target), checkpoint=path)
    other = calshift.scan(cut(P_TARGET, 300))
    with pytest.raises(InvalidInput, match="another run"):
        calshift.label_shift_weights(P_SOURCE, 2 - Y_SOURCE, other, checkpoint=path)
    found = calshift.label_shift_weights(P_SOURCE, Y_SOURCE, other, checkpoint=path)
    whole = calshift.label_shift_weights(P_SOURCE, Y_SOURCE, other)
    np.testing.assert_array_equal(found.values, whole.values)


@pytest.mark.parametrize("other", [{"batch_rows": 50}, {"classes": ["a", "b", "c"]}], ids=str)
@pytest.mark.parametrize("once", [False, True])
def test_batches_read_another_way_are_refused(other, once, tmp_path):
    path = tmp_path / "run.npz"
    batches = cut(P_TARGET, 300)

    def stop(done, rows):
        if rows:
            raise KeyboardInterrupt

    scanned = calshift.scan(iter(batches) if once else batches, batch_rows=100)
    with pytest.raises(KeyboardInterrupt):
        calshift.label_shift_weights(P_SOURCE, Y_SOURCE, scanned, progress=stop, checkpoint=path)
    again = calshift.scan(iter(batches) if once else batches, **{"batch_rows": 100, **other})
    with pytest.raises(InvalidInput, match="another run"):
        calshift.label_shift_weights(P_SOURCE, Y_SOURCE, again, checkpoint=path)


def test_rows_in_memory_need_no_checkpoint(tmp_path):
    for ask in (calshift.label_shift_weights, calshift.target_calibration_error):
        with pytest.raises(InvalidInput, match="checkpoint needs data that is scanned"):
            ask(P_SOURCE, Y_SOURCE, P_TARGET, checkpoint=tmp_path / "run.npz")
    with pytest.raises(InvalidInput, match="checkpoint must be the path of a file"):
        calshift.check_label_shift(*samples([99])[:1], None, P_TARGET, checkpoint=3)


@pytest.mark.parametrize("pattern", ["source", "source/*.npz"])
def test_it_does_not_lie_among_the_data(pattern, tmp_path):
    folder_of(tmp_path / "source", P_SOURCE, Y_SOURCE, "npz")
    with pytest.raises(InvalidInput, match="must not be inside the data"):
        calshift.label_shift_weights(
            str(tmp_path / pattern), None, P_TARGET, checkpoint=tmp_path / "source" / "run.npz"
        )
