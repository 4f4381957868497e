"""The experiments on tiny settings: they run, keep their numbers, and write what they promise."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from experiments import figure6
from experiments.__main__ import EXPERIMENTS, main

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "experiments" / "results"


def test_every_experiment_is_listed(capsys):
    assert main(["list"]) == main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [*EXPERIMENTS, *EXPERIMENTS]


def test_an_unknown_experiment_is_refused(capsys):
    assert main(["figure9"]) == 2
    assert "no experiment 'figure9'; there are: table1" in capsys.readouterr().err


@pytest.fixture(scope="module")
def tiny():
    return figure6.run(draws=12, seed=1, sizes=(60, 500))


def test_figure6_counts_classes_as_the_paper_does():
    p, y = figure6.sample(500, 0.25, np.random.default_rng(0))
    assert y.sum() == 125
    assert p[y == 1].mean() > p[y == 0].mean() + 0.3  # 2/3 and 2/7


def test_figure6_is_seeded_and_stands_beside_the_paper(tiny):
    assert tiny == figure6.run(draws=12, seed=1, sizes=(60, 500))
    assert tiny != figure6.run(draws=12, seed=2, sizes=(60, 500))
    small, first = tiny["rows"]
    assert small["source"]["paper_formula"] is None
    assert first["target"]["paper_monte_carlo"] == 0.001094578139
    # 12 draws: a variance known to 40%; the formulas, means over the draws, to a few percent
    assert 0.2 < first["source"]["monte_carlo"] / 1.1e-4 < 2.5
    assert first["source"]["formula"] == pytest.approx(1.57e-4, rel=0.15)
    assert first["target"]["formula"] == pytest.approx(5.1e-4, rel=0.4)
    assert first["target"]["corrected"] > 1.5 * first["target"]["formula"]
    assert len(figure6.ratios(tiny)) == 4  # the small size has no number in the paper


def test_variance_with_error():
    """Normal values: the relative standard error of a variance is sqrt(2 / n)."""
    variance, error = figure6.variance_with_error(np.random.default_rng(0).normal(0, 3, 200_000))
    assert variance == pytest.approx(9, rel=0.02)
    assert error / variance == pytest.approx(np.sqrt(2 / 200_000), rel=0.05)


def test_figure6_writes_numbers_a_page_and_a_picture(tiny, tmp_path):
    figure6.write(tiny, tmp_path / "new")
    assert json.loads((tmp_path / "new" / "figure6.json").read_text()) == tiny
    page = (tmp_path / "new" / "figure6.md").read_text()
    assert len(re.findall(r"^\| 500 ", page, re.M)) == 2
    assert "of 4 between 0.5 and 2" in page
    assert (tmp_path / "new" / "figure6.png").read_bytes().startswith(b"\x89PNG")


def test_figure6_runs_as_a_script_and_refuses_one_draw():
    script = [sys.executable, str(ROOT / "experiments" / "figure6.py"), "--draws", "1"]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--draws must be at least 2" in done.stderr


def test_progress_ends_its_line(capsys):
    figure6.told(500, 20, 40)
    figure6.told(500, 21, 40)
    figure6.told(500, 40, 40)
    assert capsys.readouterr().err == "\rn =   500: 20 of 40 draws\rn =   500: 40 of 40 draws\n"


def test_the_figure_that_is_kept_holds_what_is_asked_of_it():
    """2000 draws or more, and every number within a factor of two of the paper's."""
    figure = json.loads((KEPT / "figure6.json").read_text(encoding="utf-8"))
    assert figure["draws"] >= 2000
    assert [row["n"] for row in figure["rows"]] == list(figure6.PAPER)
    found = figure6.ratios(figure)
    assert len(found) == 24
    assert 0.5 < min(found) <= max(found) < 2
    assert figure6.page(figure) == (KEPT / "figure6.md").read_text(encoding="utf-8")
