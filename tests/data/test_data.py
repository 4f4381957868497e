"""The predictions that come along."""

from __future__ import annotations

from importlib.resources import files

import numpy as np

import calshift


def test_they_are_what_their_origin_says():
    source, target = calshift.data.fashion_mnist()
    origin = calshift.data.origin()
    assert origin["data"] == "fashion-mnist"
    for sample, role in ((source, "source"), (target, "target")):
        right = (sample.p.argmax(axis=1) == sample.y).mean()
        # kept as float16: rounding may turn a tie, in one row of thousands
        assert abs(right - origin["accuracy"][role]) < 1e-3


def test_the_source_is_long_tailed_and_the_target_balanced():
    source, target = calshift.data.fashion_mnist()
    counts = np.bincount(source.y)
    assert counts[0] == 1200
    assert counts[-1] == 120
    assert (np.diff(counts) < 0).all()
    assert np.bincount(target.y).tolist() == [1000] * 10


def test_rows_are_on_the_simplex_to_the_last_digit():
    for sample in calshift.data.fashion_mnist():
        assert np.abs(sample.p.sum(axis=1) - 1).max() < 1e-12


def test_they_are_small():
    folder = files("calshift.data")
    assert sum(len(part.read_bytes()) for part in folder.iterdir() if part.is_file()) < 600_000


def test_as_csv_is_read_back_as_it_was(tmp_path):
    from calshift.cli.samples import read_pair

    source, target = calshift.data.fashion_mnist()
    for name, sample in (("source", source), ("target", target.unlabelled())):
        (tmp_path / f"{name}.csv").write_text(calshift.data.as_csv(sample), encoding="utf-8")
    pair = read_pair(tmp_path / "source.csv", tmp_path / "target.csv")
    assert np.array_equal(pair.source.y, source.y)
    assert pair.source.classes == source.classes
    assert np.abs(pair.target.p - target.p).max() < 1e-6
