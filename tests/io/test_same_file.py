"""A file in both roles is refused: the target would be the source."""

from __future__ import annotations

import os

import numpy as np
import pytest

import calshift
from calshift.cli.main import status
from calshift.errors import InvalidInput
from tests.prediction_files import P_SOURCE, P_TARGET, Y_SOURCE, named, table, write

SAME = "is both in the source and in the target"


@pytest.fixture
def source(tmp_path):
    return write(tmp_path / "source.csv", table(P_SOURCE, named(Y_SOURCE)))


@pytest.mark.parametrize("command", ["check", "weights", "monitor", "recalibrate"])
@pytest.mark.parametrize("how", ["path", "link", "hard link", "folder", "pattern"])
def test_one_file_in_both_roles_is_refused(command, how, source, tmp_path, capsys):
    target = {"path": source, "folder": tmp_path, "pattern": tmp_path / "s*.csv"}.get(how)
    if target is None:
        target = tmp_path / "other.csv"
        (os.symlink if how == "link" else os.link)(source, target)
    if command == "recalibrate" and how in ("folder", "pattern"):
        pytest.skip("recalibrate takes one file")
    more = ["-o", str(tmp_path.parent / "out.csv")] if command == "recalibrate" else []
    assert status([command, source, str(target), *more]) == 2
    assert SAME in capsys.readouterr().err


@pytest.mark.parametrize("engine", ["arrays", "batches"])
def test_both_engines_refuse_it(engine, source, capsys):
    assert status(["check", source, source, "--engine", engine]) == 2
    assert SAME in capsys.readouterr().err


def test_python_refuses_it_too(source, tmp_path):
    with pytest.raises(InvalidInput, match=SAME):
        calshift.target_calibration_error(source, None, source)
    sample = calshift.scan(source)
    with pytest.raises(InvalidInput, match=SAME):
        calshift.label_shift_weights(sample, None, calshift.scan(str(tmp_path), labelled=False))


def test_arrays_of_one_archive_are_compared_by_their_own_names(tmp_path, capsys):
    path = tmp_path / "both.npz"
    np.savez(path, p_source=P_SOURCE, y_source=Y_SOURCE, p_target=P_TARGET)
    assert status(["weights", str(path), str(path)]) == 0
    np.savez(path, p=P_SOURCE, y=Y_SOURCE)
    assert status(["weights", str(path), str(path)]) == 2
    assert SAME in capsys.readouterr().err


def test_other_columns_of_the_same_file_are_another_sample(tmp_path):
    path = write(
        tmp_path / "models.csv", table(P_SOURCE, named(Y_SOURCE)) | table(P_TARGET, prefix="new_")
    )
    old = calshift.scan(path, columns="p_*", label="label")
    new = calshift.scan(path, columns="new_*", labelled=False)
    assert calshift.label_shift_weights(old, None, new).values.shape == (3,)
