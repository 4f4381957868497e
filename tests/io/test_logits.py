"""Logits in files and batches: what is refused, and precision."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import calshift
from calshift.cli.main import status
from calshift.cli.samples import read_pair
from calshift.errors import InvalidInput
from calshift.io.columns import ColumnSpec
from tests.prediction_files import FRAUD, P_SOURCE, P_TARGET, SCORES, Y_SOURCE, named, table, write


@pytest.mark.parametrize("ending", ["csv", "parquet", "npz"])
def test_probabilities_are_no_logits(ending, tmp_path, capsys):
    source = write(tmp_path / f"s.{ending}", table(P_SOURCE, named(Y_SOURCE)))
    target = write(tmp_path / f"t.{ending}", table(P_TARGET))
    assert status(["check", source, target, "--logits"]) == 2
    err = capsys.readouterr().err
    assert f"{source}: " in err
    assert "probabilities, no logits: leave out --logits" in err


def test_probabilities_are_no_logits_in_python(tmp_path):
    source = write(tmp_path / "s.csv", table(P_SOURCE, named(Y_SOURCE)))
    with pytest.raises(InvalidInput, match="leave out logits=True"):
        calshift.label_shift_weights(calshift.scan(source, logits=True), None, P_TARGET)
    batches = calshift.scan([P_TARGET.astype(np.float32)], logits=True)
    with pytest.raises(InvalidInput, match=r"batch 0: .*leave out logits=True"):
        calshift.label_shift_weights(P_SOURCE, Y_SOURCE, batches)


def test_numbers_that_may_be_logits_are_read():
    for z in (np.log(P_TARGET), P_TARGET * 0.9, P_TARGET - 0.1, P_TARGET * 2):
        sample = calshift.scan([z], logits=True)
        assert sample.summary.n_classes == 3
    np.testing.assert_allclose(calshift.softmax(P_TARGET).sum(axis=1), 1)


def test_logits_in_single_precision_give_the_probabilities_of_double(tmp_path):
    z = (np.log(P_SOURCE) * 8).astype(np.float32)  # many rows are certain in single precision
    paths = []
    for kind in (pa.float32(), pa.float64()):
        columns = {f"p_{k}": pa.array(z[:, k].astype(kind.to_pandas_dtype())) for k in range(3)}
        labels = {"label": Y_SOURCE.tolist()}
        paths.append(write(tmp_path / f"{kind}.parquet", columns | labels))
        target = write(tmp_path / f"t{kind}.parquet", columns)
        paths.append(target)
    single, double = (read_pair(*pair, ColumnSpec(logits=True)) for pair in (paths[:2], paths[2:]))
    for one, other in ((single.source, double.source), (single.target, double.target)):
        assert one.p.dtype == np.float64
        np.testing.assert_array_equal(one.p, other.p)


def test_batches_of_logits_in_single_precision_are_read_in_double():
    z = (np.log(SCORES / (1 - SCORES)) * 4).astype(np.float32)
    found = [
        calshift.calibration_error(calshift.scan([(one, FRAUD)], logits=True), kind="binary")
        for one in (z, z.astype(float))
    ]
    assert found[0].estimate == found[1].estimate


def test_rounded_probabilities_and_percentages_are_no_logits():
    p = np.random.default_rng(0).dirichlet(np.ones(5), 50)
    for values in (p.astype(np.float16), np.round(p, 2), np.round(p * 256) / 256, 100 * p):
        with pytest.raises(InvalidInput, match="no logits"):
            calshift.scan([values], logits=True).summary  # noqa: B018
