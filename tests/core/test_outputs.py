"""Outputs are put into place together, and only what was made here is deleted."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import threading

import pytest

from calshift._core.atomic_write import write_content
from calshift._core.outputs import Outputs
from calshift.errors import InvalidInput


def test_a_temporary_file_of_another_process_is_left_alone(tmp_path):
    stale = tmp_path / f".out.json.{os.getpid()}.part"
    stale.write_text("of another process")
    write_content(tmp_path / "out.json", b"new")
    assert (tmp_path / "out.json").read_bytes() == b"new"
    assert stale.read_text() == "of another process"


def test_two_writers_of_one_file_do_not_meet(tmp_path):
    place, failures = tmp_path / "out", []

    def write(number: int) -> None:
        try:
            for _ in range(30):
                write_content(place, bytes([number]) * 1000)
        except Exception as problem:
            failures.append(problem)

    threads = [threading.Thread(target=write, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(set(place.read_bytes())) == 1
    assert list(tmp_path.iterdir()) == [place]


def test_names_of_many_bytes_can_be_written(tmp_path):
    place = tmp_path / ("\U0001f600" * 62 + ".csv")  # 252 bytes of the 255 allowed
    write_content(place, b"new")
    assert place.read_bytes() == b"new"


def test_permissions_and_links_stay(tmp_path):
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("before")
    real.chmod(0o604)
    link.symlink_to(real)
    write_content(link, b"new")
    assert link.is_symlink()
    assert real.read_bytes() == b"new"
    assert stat.S_IMODE(real.stat().st_mode) == 0o604


def test_a_pipe_without_a_reader_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    code = f"""
from calshift._core.atomic_write import write_content
from calshift._core.outputs import Outputs
from calshift.errors import InvalidInput
try:
    write_content({str(tmp_path / "pipe")!r}, b"new")
except InvalidInput as problem:
    print(problem)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20)
    assert "is a pipe that no program reads: start its reader first" in done.stdout


def test_a_pipe_with_a_reader_gets_everything(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE) as reader:
        content = os.urandom(3_000_000)  # more than a pipe takes at once
        writer = threading.Thread(target=retry, args=(tmp_path / "pipe", content))
        writer.start()
        found = reader.stdout.read()
        writer.join()
    assert found == content


def retry(path, content: bytes) -> None:
    """Write as soon as the reader has opened the pipe."""
    while True:
        try:
            return write_content(path, content)
        except InvalidInput:
            continue


def write_all(folder, names: str, problem: type[Exception] | None = None) -> None:
    with Outputs() as files:
        for name in names:
            files.open(folder / name).write(b"new")
        if problem is not None:
            raise problem


def test_several_outputs_are_put_into_place_together(tmp_path):
    (tmp_path / "a").write_text("before")
    with pytest.raises(KeyError):
        write_all(tmp_path, "ab", KeyError)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_text() == "before"
    write_all(tmp_path, "ab")
    found = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert found == {"a": "new", "b": "new"}


def test_a_rename_that_fails_lists_what_was_written(tmp_path, monkeypatch):
    replace = os.replace

    def fail(before, after):
        if os.path.basename(after) == "b":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        replace(before, after)

    monkeypatch.setattr("os.replace", fail)
    message = r"b cannot be written \(Input/output error\); written before: .*a$"
    with pytest.raises(InvalidInput, match=message):
        write_all(tmp_path, "abc")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
