"""The paper's tables and figures on tiny predictions: protocols, lines, and what is kept."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import calshift
from experiments import (
    ablations,
    figure2,
    figure3,
    figure7,
    lines,
    measures,
    running,
    saved,
    shifts,
    summary,
)
from experiments.__main__ import main
from experiments.running import PAPER

ROOT = Path(__file__).parents[2]
TEXT = ROOT.parent / "shared" / "paper" / "000_63198a8ff1985392.txt"


def tiny(rows: int, K: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Logits twice as large as they should be, and labels."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(rows, K)) * 2
    y = (calshift.softmax(z).cumsum(axis=1) > rng.random((rows, 1))).argmax(axis=1)
    return 2 * z, np.minimum(y, K - 1)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A pair trained at imbalance 10, a pair of texts and a balanced test set."""
    monkeypatch.setattr(saved, "LEAST_ROWS", 800)
    origin = {"data": "cifar10", "depth": 20, "imbalance": 10}
    names = tuple("abc")
    saved.save(tmp_path / "one.npz", tiny(600, 3, 0), tiny(500, 3, 1), names, origin)
    texts, (z, y) = {"data": "r52", "model": "TF-IDF"}, tiny(400, 3, 3)
    fewer = (y < 2) | (np.arange(400) % 2 == 0)
    saved.save(tmp_path / "two.npz", tiny(500, 3, 2), (z[fewer], y[fewer]), names, texts)
    z, _ = tiny(900, 3, 4)
    y = np.repeat(np.arange(3), 300)
    z[np.arange(900), y] += 3
    np.savez(tmp_path / "some_cifar10_resnet-20.npz", logits=z, labels=y)
    return tmp_path


def test_saved_predictions_come_back_with_their_origin(folder):
    pair = saved.load(folder / "one.npz")
    assert pair.origin["depth"] == 20
    assert pair.origin["accuracy"]["source"] == pytest.approx(measures.accuracy(pair.source))
    z, y = tiny(600, 3, 0)
    assert np.allclose(pair.source.p, calshift.softmax(z), atol=0.01)  # float16 logits
    assert np.array_equal(pair.source.labels, y)
    assert not list(folder.glob("*.unfinished*"))


def test_anyones_predictions_can_be_brought_as_probabilities(tmp_path):
    p = calshift.softmax(tiny(50, 3, 0)[0]).astype(np.float32)
    y = np.arange(50) % 3
    np.savez(tmp_path / "a.npz", probs_source=p, y_source=y, probs_target=p, y_target=y)
    assert np.allclose(saved.load(tmp_path / "a.npz").target.p, p)
    np.savez(tmp_path / "b.npz", probs_source=p, y_source=y, probs_target=p)
    with pytest.raises(ValueError, match=r"b\.npz lacks y_target"):
        saved.load(tmp_path / "b.npz")
    np.savez(tmp_path / "c.npz", y_source=y, y_target=y)
    with pytest.raises(ValueError, match="neither logits_source nor probs_source"):
        saved.load(tmp_path / "c.npz")


def test_test_sets_are_the_large_and_balanced_ones(folder, monkeypatch):
    assert list(saved.test_sets([folder])) == ["some_cifar10_resnet-20"]
    monkeypatch.setattr(saved, "LEAST_ROWS", 1000)
    assert not saved.test_sets([folder])
    assert shifts.test_set_title("some_cifar10_resnet-20") == "CIFAR-10 ResNet-20"
    assert shifts.test_set_title("x_cifar100_resnet56") == "CIFAR-100 ResNet-56"
    assert shifts.test_set_title("lenet") == "lenet"


def test_tasks_divide_without_overlap_and_shift_one_side():
    n = 4000
    y = np.arange(n) % 4
    p = np.full((n, 4), 0.25)
    p[:, 0] += np.arange(n) / n / 100  # tells rows apart
    p[:, 1] -= np.arange(n) / n / 100
    sample = calshift.Predictions(p, y)
    for task, tailed in ((shifts.task_a, 0), (shifts.task_b, 1)):
        parts = task(sample, 10, np.random.default_rng(1))
        assert np.array_equal(np.bincount(parts[tailed].labels), [500, 232, 107, 50])
        assert np.array_equal(np.bincount(parts[1 - tailed].labels), [500] * 4)
        assert not set(parts[0].p[:, 0]) & set(parts[1].p[:, 0])


def test_a_line_has_what_the_library_says(folder):
    """Against calls of the public functions, one by one."""
    pair = saved.load(folder / "one.npz")
    found = measures.measured(pair.source, pair.target)
    w = calshift.label_shift_weights(pair.source, None, pair.target.unlabelled(), method="rlls")
    hidden = pair.target.unlabelled()
    paper = calshift.target_calibration_error(
        pair.source, None, hidden, weights=w, estimator="paper", bins=15, check=False
    )
    default = calshift.target_calibration_error(pair.source, None, hidden, weights=w, check=False)
    assert found["paper"]["without"]["RLLS"]["estimate"] == paper.estimate
    assert found["default"]["without"]["RLLS"]["estimate"] == default.estimate
    assert found["default"]["without"]["RLLS"]["interval"] == list(default.confidence_interval())
    with_labels = calshift.calibration_error(pair.target, estimator="paper", bins=15)
    assert found["paper"]["target"]["estimate"] == with_labels.estimate
    true = calshift.weights_from_labels(pair.source.labels, pair.target.labels, 3)
    known = calshift.target_calibration_error(pair.source, None, hidden, weights=true, check=False)
    assert found["default"]["without"]["w*"]["estimate"] == known.estimate
    assert found["weights_error"]["w*"] == 0 < found["weights_error"]["RLLS"] < 0.1


def test_a_method_without_an_answer_leaves_a_gap(folder, monkeypatch):
    pair = saved.load(folder / "one.npz")

    def fails(*args, **kwargs):
        message = "no"
        raise calshift.InvalidInput(message)

    monkeypatch.setattr(calshift, "label_shift_weights", fails)
    found = measures.measured(pair.source, pair.target, methods={"BBSL": "bbse"})
    assert found["default"]["without"]["BBSL"] is None
    text = lines.tabled({"x y": found}, {}, ("w*", "BBSL"))
    assert text.splitlines()[-1].rstrip(" |").endswith("--")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["table1", "table2", "table3", "tables5-10", "table11", "figure2"])
def test_every_table_runs_and_goes_on(name, folder, tmp_path, capsys):
    results = tmp_path / "results"
    asked = [name, "--predictions", str(folder), "--results", str(results)]
    asked += ["--splits", "2"] if name in ("table2", "figure2") else []
    assert main(asked) == 0
    shown = capsys.readouterr()
    assert "default, here" in shown.out
    assert "| paper " in shown.out
    assert "nan" not in shown.out.lower()
    kept = json.loads((results / f"{name}.json").read_text())
    assert kept["version"] == calshift.__version__
    assert str(folder) not in json.dumps(kept)  # no path of this machine
    assert (results / f"{name}.md").read_text() == shown.out[:-1]
    case = next(iter(kept["cases"]))
    kept["cases"][case]["accuracy"] = [0.111, 0.222]  # what is kept is not done again
    (results / f"{name}.json").write_text(json.dumps(kept))
    assert main(asked) == 0
    shown = capsys.readouterr()
    assert not shown.err
    assert json.loads((results / f"{name}.json").read_text())["cases"][case]["accuracy"][0] == 0.111
    assert main([*asked, "--again"]) == 0
    fresh = json.loads((results / f"{name}.json").read_text())
    assert fresh["cases"][case]["accuracy"][0] != 0.111


def test_an_interrupted_run_keeps_what_is_done(tmp_path):
    def broken():
        raise KeyboardInterrupt

    cases = {"a": lambda: {"x": 1}, "b": broken}
    one = running.Experiment("half", "About.", lambda asked: cases, lambda rows: str(rows))
    with pytest.raises(KeyboardInterrupt):
        running.run(one, ["--results", str(tmp_path)])
    assert json.loads((tmp_path / "half.json").read_text())["cases"] == {"a": {"x": 1}}
    cases["b"] = lambda: {"x": 2}
    cases["a"] = broken  # not asked again
    assert running.run(one, ["--results", str(tmp_path)]) == {"a": {"x": 1}, "b": {"x": 2}}
    del cases["b"]  # what is no case any more goes
    assert running.run(one, ["--results", str(tmp_path)]) == {"a": {"x": 1}}
    cases["a"] = lambda: {"x": 3}  # other settings: all anew
    assert running.run(one, ["--results", str(tmp_path), "--seed", "1"])["a"] == {"x": 3}


def test_nothing_to_run_is_said(tmp_path):
    with pytest.raises(SystemExit, match="no predictions for table1"):
        main(["table1", "--predictions", str(tmp_path), "--results", str(tmp_path / "r")])


def test_resampled_sources_are_marked(folder, tmp_path):
    main(["tables5-10", "--predictions", str(folder), "--results", str(tmp_path / "r")])
    text = (tmp_path / "r" / "tables5-10.md").read_text()
    at_ten, at_five = text.index("Table 5"), text.index("Table 6")
    assert "(resampled)" not in text[at_ten:at_five]
    assert "default, here (resampled)" in text[at_five:]


def test_figure7_has_the_papers_counts():
    rows = {name: case() for name, case in figure7.cases({}).items()}
    assert rows["CIFAR-10, imbalance 10"] == [1000, 774, 599, 464, 359, 278, 215, 166, 129, 100]
    assert set(figure7.differing(rows).values()) == {0}
    rows["CIFAR-10, imbalance 10"][3] += 1
    assert figure7.differing(rows)["CIFAR-10, imbalance 10"] == 1


def test_summary_compares_to_own_and_to_the_truth():
    def case(paper, default):
        with_labels = ({"estimate": 0.010}, {"estimate": 0.002})
        rows = {}
        for name, value, known in zip(
            ("paper", "default"), (paper, default), with_labels, strict=True
        ):
            rows[name] = {"target": known, "without": {"RLLS": {"estimate": value}}}
        return {"classes": 10, "norm": 2, **rows}

    found = [*summary.of_case("a", case(0.011, 0.0025)), *summary.of_case("a", case(0.012, 0.0015))]
    out = summary.compared(found)
    assert out["own"]["paper"] == pytest.approx(0.15)  # 100 x mean of .001 and .002
    assert out["own"]["default"] == pytest.approx(0.05)
    assert out["truth"]["paper"] == pytest.approx(0.95)
    assert out["truth"]["nearer"] == pytest.approx(19)
    assert out["own"]["p"] is None  # two runs are too few
    two = summary.of_case("b, split 0", case(0.013, 0.002))
    assert summary.by_case([*found, *two], np.array([1.0, 3.0, 5.0])).tolist() == [2, 5]
    assert summary.signed_rank(np.arange(1.0, 9.0)) == pytest.approx(2 / 2**8)


def test_distances_of_figure2_are_to_the_estimators_own_value():
    def row(without):
        found = {
            "target": {"estimate": 0.5},
            "without": {w: {"estimate": without} for w in measures.METHODS},
        }
        return {"paper": found, "default": found, "classes": 3}

    out = figure2.distances({"a, split 0": row(0.4), "a, split 1": row(0.7)})
    assert out["a"]["paper"]["RLLS"] == pytest.approx(0.15)


@pytest.mark.skipif(not TEXT.exists(), reason="the paper's text is not beside the project")
def test_the_papers_numbers_are_the_papers():
    """Every row of every table, and every point of figures 3, 4 and 7, stands in its text."""
    text = TEXT.read_text(encoding="utf-8")
    for name in ("table1", "table2", "table3", "table11"):
        for key, found in PAPER[name].items():
            model = key.split(" ", 1)[1]
            assert any(has(line, model, found.values()) for line in text.splitlines()), key
    for part in PAPER["tables5-10"].values():
        for key, found in part.items():
            model = key.split(" ", 1)[1]
            assert any(has(line, model, found.values()) for line in text.splitlines()), key
    for panel in PAPER["figure3"].values():
        for points in panel.values():
            assert all(f" {point['estimate']}" in text for point in points)
    for points in PAPER["figure4"].values():
        assert all(f"{point['at']} {point['estimate']}" in text for point in points)


def has(line: str, model: str, values) -> bool:
    """Whether a row of a LaTeX table is of that model and has these numbers in this order."""
    cells = [
        re.sub(r"\\text\{(.*)\}|\\\\|\\bottomrule|\\midrule", r"\1", c).strip()
        for c in line.split("&")
    ]
    if model not in cells:
        return False
    after = cells[cells.index(model) + 1 :]
    told = [None if c == "--" else float(c) for c in after if re.fullmatch(r"--|[\d.]+", c)]
    return told == list(values)


def pools(rows: int = 3000) -> saved.Pair:
    """Binary scores that are too sure of themselves, the same law on both sides."""
    parts = []
    for seed in (0, 1):
        rng = np.random.default_rng(seed)
        y = np.arange(rows) % 2
        odds = 1.5 * (2 * y - 1) + rng.normal(size=rows)
        parts.append(calshift.Predictions(1 / (1 + np.exp(-9 * odds)), y))
    return saved.Pair("pools", *parts, {})


def test_points_of_the_ablations_have_the_asked_mix_and_both_estimators():
    seeds = [[0, 0], [0, 1], [0, 2]]
    found = ablations.point(pools(), (1200, 600), (1 / 6, 1 / 2), seeds)
    assert found["rows"] == [1200, 600]
    assert found["draws"] == 3
    # the same law and the right weights: with and without labels agree within the noise of 3 draws
    gap = found["default with labels"]["mean"] - found["default without labels"]["mean"]
    assert abs(gap) < 0.5 * found["default with labels"]["mean"]
    assert found["default low"]["mean"] < found["default without labels"]["mean"]
    assert 0 < found["deviation with labels"]["mean"] < found["deviation without labels"]["mean"]
    again = ablations.point(pools(), (1200, 600), (1 / 6, 1 / 2), seeds)
    assert found == again
    text = ablations.tabled({"1:1": found}, {line: {"1:1": 0.5} for line in ablations.LINES})
    assert "| 1:1 | 0.5000" in text


def test_pools_can_be_brought_by_ratio(tmp_path):
    for ratio in (5, 50):
        z, y = tiny(60, 2, ratio)
        saved.save(tmp_path / f"mine-{ratio}.npz", (z, y), (z, y), ("no", "yes"), {"ratio": ratio})
    asked = {"pools": str(tmp_path / "mine-{}.npz"), "seed": 0}
    assert ablations.pools_of(asked, 50).origin["ratio"] == 50
    assert ablations.pools_of(asked, 5).origin["ratio"] == 5


def test_figure3_asks_for_the_papers_settings():
    assert figure3.settings_of("ratio", "1:4") == ((10_000, 10_000), (1 / 6, 0.8))
    assert figure3.settings_of("size", "4000") == ((4000, 4000), (1 / 6, 0.5))
    assert figure3.settings_of("n:m", "1:5") == ((2000, 10_000), (1 / 6, 0.5))
    assert figure3.settings_of("n:m", "4:1") == ((10_000, 2500), (1 / 6, 0.5))
    for panel, places in (("ratio", figure3.RATIOS), ("n:m", figure3.SIDES)):
        assert list(figure3.printed(panel)["with labels"]) == list(places)
    assert list(figure3.printed("size")["with labels"]) == [str(n) for n in figure3.SIZES]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["figure3", "figure4", "figure5"])
def test_kept_ablations_are_written_up_as_they_are(name, tmp_path):
    """From what is kept, without running: the page and the picture come out again."""
    for ending in ("json", "md"):
        text = (ROOT / "experiments" / "results" / f"{name}.{ending}").read_text(encoding="utf-8")
        (tmp_path / f"{name}.{ending}").write_text(text, encoding="utf-8")
    before = (tmp_path / f"{name}.md").read_text(encoding="utf-8")
    assert main([name, "--results", str(tmp_path)]) == 0
    after = (tmp_path / f"{name}.md").read_text(encoding="utf-8")
    assert after.split("calshift ")[0] == before.split("calshift ")[0]
    assert after[after.index("\n| ") :] == before[before.index("\n| ") :]
    assert (tmp_path / f"{name}.png").stat().st_size > 5000


def test_table1_takes_long_tailed_networks_and_of_imagenet_the_counted_classes():
    from experiments import table1

    assert table1.long_tailed({"data": "cifar10", "depth": 20, "imbalance": 10})
    assert not table1.long_tailed({"data": "cifar10", "depth": 20, "imbalance": 5})
    assert not table1.long_tailed({"data": "letters", "imbalance": 10})
    y = np.repeat(np.arange(4), [60, 40, 30, 8])  # 11 to 49 rows count
    z = np.random.default_rng(0).normal(size=(len(y), 4))
    z[np.arange(len(y)), y] += 2
    sample = calshift.Predictions(calshift.softmax(z), y)
    pair = saved.Pair("x", sample, sample, {"data": "imagenet-lt", "model": "resnet50"})
    assert shifts.title(pair) == "ImageNet-LT Resnet50"
    found = table1.row(pair)
    assert (found["classes"], found["rows"]) == (2, [70, 70])
