"""What a run keeps of its passes: sums as they were, no more than was made, nothing by halves."""

from __future__ import annotations

import numpy as np
import pytest

from calshift import InvalidInput
from calshift._core.addable import Tally
from calshift.engines.checkpoint import Checkpoint

TOTAL = Tally(
    rows=7,
    matrix=np.arange(6.0).reshape(2, 3) / 7,
    parts=Tally(a=np.float64(0.1), b=np.zeros(0), c=3),
    more=[np.array([1, 2]), "text", True, (0.5, 2)],
)


def same(a, b) -> bool:
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    if isinstance(a, dict):
        return type(a) is type(b) and a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return type(a) is type(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return a == b and np.asarray(a).dtype == np.asarray(b).dtype


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.npz"


def made(checkpoint: Checkpoint, what: str, total) -> None:
    """One whole pass."""
    assert checkpoint.begin(what)[0] is False
    checkpoint.end(total, what)


def test_sums_come_back_as_they_were(path):
    checkpoint = Checkpoint(path, "mark")
    made(checkpoint, "first", TOTAL)
    checkpoint.save()
    finished, skip, total = Checkpoint(path, "mark").begin("first")
    assert (finished, skip) == (True, 0)
    assert same(total, TOTAL)


def test_a_pass_goes_on_after_its_last_batch(path):
    checkpoint = Checkpoint(path)
    made(checkpoint, "first", 5)
    checkpoint.begin("second")
    checkpoint.note(3, np.array([0.1, 0.2]))
    checkpoint.save()
    again = Checkpoint(path)
    assert again.begin("first") == (True, 0, 5)
    again.end(5, "first")
    finished, skip, total = again.begin("second")
    assert (finished, skip, total.tolist()) == (False, 3, [0.1, 0.2])


def test_a_pass_that_has_ended_does_not_count_again_in_the_next(path):
    """Ctrl-C may come between the end of a pass and anything else."""
    checkpoint = Checkpoint(path)
    checkpoint.begin("same")
    checkpoint.note(4, 10.0)
    checkpoint.end(10.0, "same")
    checkpoint.save()
    again = Checkpoint(path)
    assert again.begin("same")[0]
    again.end(10.0, "same")
    assert again.begin("same") == (False, 0, 0)


def test_a_run_that_stops_early_the_second_time_loses_nothing(path):
    checkpoint = Checkpoint(path)
    for k in range(3):
        made(checkpoint, f"pass {k}", k)
    checkpoint.begin("pass 3")
    checkpoint.note(2, 2.5)
    checkpoint.save()
    again = Checkpoint(path)
    assert again.begin("pass 0")[0]
    again.end(0, "pass 0")
    again.save()
    third = Checkpoint(path)
    for k in range(3):
        assert third.begin(f"pass {k}") == (True, 0, k)
        third.end(k, f"pass {k}")
    assert third.begin("pass 3") == (False, 2, 2.5)


def test_passes_for_something_else_are_not_used(path):
    checkpoint = Checkpoint(path)
    made(checkpoint, "a", 1)
    made(checkpoint, "b", 2)
    checkpoint.begin("c")
    checkpoint.note(3, 3)
    checkpoint.save()
    again = Checkpoint(path)
    assert again.begin("a")[0]
    again.end(1, "a")
    assert again.begin("other") == (False, 0, 0)
    again.end(7, "other")
    assert again.begin("c") == (False, 0, 0)


def test_sums_of_a_foreign_kind_or_too_large_are_made_again(path, monkeypatch):
    monkeypatch.setattr("calshift.engines.checkpoint.MOST_BYTES", 1000)
    checkpoint = Checkpoint(path)
    made(checkpoint, "foreign", {1, 2})
    made(checkpoint, "large", np.zeros(1000))
    made(checkpoint, "small", np.zeros(10))
    checkpoint.begin("foreign too")
    checkpoint.note(4, {3})
    checkpoint.save()
    again = Checkpoint(path)
    for what, kept in (("foreign", False), ("large", False), ("small", True)):
        assert again.begin(what)[0] is kept
        again.end(0, what)
    assert again.begin("foreign too") == (False, 0, 0)


def test_nothing_is_written_before_a_batch_was_read(path):
    checkpoint = Checkpoint(path)
    checkpoint.save()
    checkpoint.begin("first")
    checkpoint.save()
    assert not path.exists()


def test_it_is_saved_from_time_to_time(path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    checkpoint = Checkpoint(path)
    checkpoint.begin("first")
    for batch, second in enumerate((10, 29, 31, 40, 62), 1):
        now[0] = float(second)
        path.unlink(missing_ok=True)
        checkpoint.note(batch, batch)
        assert path.exists() == (second in (31, 62))


def test_the_end_of_a_run_removes_the_file(path):
    checkpoint = Checkpoint(path)
    made(checkpoint, "first", 1)
    checkpoint.save()
    checkpoint.close()
    assert not path.exists()
    checkpoint.close()


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 half a file", b"text", None])
def test_a_file_of_another_kind_is_refused_and_stays(path, content):
    if content is None:
        np.savez(path, p=np.zeros(3))
    else:
        path.write_bytes(content)
    before = path.read_bytes()
    with pytest.raises(InvalidInput, match=r"run.npz is not a checkpoint of calshift"):
        Checkpoint(path)
    assert path.read_bytes() == before


def test_another_mark_is_refused(path):
    checkpoint = Checkpoint(path, "one")
    made(checkpoint, "first", 1)
    checkpoint.save()
    with pytest.raises(InvalidInput, match="checkpoint of another run"):
        Checkpoint(path, "two")


def test_a_place_that_cannot_be_written_is_said_at_the_beginning(tmp_path):
    with pytest.raises(InvalidInput, match="there is no folder"):
        Checkpoint(tmp_path / "none" / "run.npz")
