"""What the documentation shows can be done as it is shown."""

from __future__ import annotations

import ast
import re
import shlex
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import calshift

ROOT = Path(__file__).parents[1]
SCRIPTS = sorted((ROOT / "benchmarks").glob("*.py"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), re.S)


def commands() -> list[tuple[str, list[str]]]:
    """Every calshift command of the shell examples, as words."""
    found = []
    for page in PAGES:
        for block in blocks(page, "sh"):
            for line in block.replace("\\\n", " ").splitlines():
                if shown := re.search(r"(?:^|/)calshift (.*?)(?: \|\||$)", line.strip()):
                    found.append((page.name, shlex.split(shown[1])))
    return found


def unknown_options(words: list[str]) -> list[str]:
    from calshift.cli.commands import run

    command = run.commands[words[0]]
    known = {name for parameter in command.params for name in parameter.opts} | {"--help"}
    return [word for word in words[1:] if word.startswith("-") and word not in known]


def test_shell_examples_name_commands_and_options_that_exist():
    assert len(commands()) >= 6
    for page, words in commands():
        assert unknown_options(words) == [], page


def test_an_option_that_does_not_exist_is_seen():
    assert unknown_options(["check", "a", "b", "--frobnicate", "3"]) == ["--frobnicate"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_examples_are_python_and_use_names_that_exist(page):
    for block in blocks(page, "python"):
        compile(block, page.name, "exec")
        for name in re.findall(r"calshift\.(\w+)", block):
            assert hasattr(calshift, name) or find_spec(f"calshift.{name}"), name


def test_the_notebook_recipe_runs():
    (recipe,) = [b for b in blocks(ROOT / "docs" / "recipes.md", "python") if "result.plot()" in b]
    exec(compile(recipe, "recipes.md", "exec"), {})


def test_the_pipeline_recipe_raises_when_a_person_is_needed():
    (recipe,) = [b for b in blocks(ROOT / "docs" / "recipes.md", "python") if "def calib" in b]
    names: dict = {}
    exec(compile(recipe, "recipes.md", "exec"), names)
    simulation = calshift.simulate.GaussianSimulation(n_classes=3, temperature=0.3, seed=2)
    sample = (*simulation.source(1500, rng=1), simulation.target(1500, rng=2)[0])
    with pytest.raises(RuntimeError, match="calibration error 0"):
        names["calibration_of"](*sample)


def test_the_batch_recipe_gives_the_answer_of_all_rows():
    (recipe,) = [b for b in blocks(ROOT / "docs" / "recipes.md", "python") if "bin_edges" in b]
    simulation = calshift.simulate.GaussianSimulation(n_classes=3, seed=2)
    p, y = simulation.source(600, rng=1)
    q, _ = simulation.target(600, rng=2)
    names = {
        "calshift": calshift,
        "first_target_batch": q,
        "source_batches": [(p[:200], y[:200]), (p[200:], y[200:])],
        "target_batches": [q[:300], q[300:]],
        "class_weights": [1.2, 1.0, 0.8],
    }
    exec(compile(recipe, "recipes.md", "exec"), names)
    whole = calshift.target_calibration_error(
        p, y, q, kind="top-label", bins=50, weights=[1.2, 1.0, 0.8], check=False
    )
    assert names["result"].estimate == pytest.approx(whole.estimate, rel=1e-9)


@pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")
def test_the_tutorial_runs_and_says_what_comes_out(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    names: dict = {}
    for block in blocks(ROOT / "docs" / "tutorial.md", "python"):
        exec(compile(block, "tutorial.md", "exec"), names)
    result = names["result"]
    low, high = result.confidence_interval(root=True)
    for number in (result.root, low, high, result.source.root):
        assert f"{number:.4f}" in text
    assert "more than the class distribution has changed" in capsys.readouterr().out
    assert (tmp_path / "page.html").exists()


def words_and_numbers(text: str) -> tuple[list[str], list[float]]:
    number = r"\d+\.?\d*"
    return re.sub(number, "#", text).split(), [float(n) for n in re.findall(number, text)]


@pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")
def test_the_examples_of_when_not_to_use_it_print_what_is_shown(capsys):
    """Decisions exactly, numbers up to 0.02: the last digit depends on the machine."""
    page, names = ROOT / "docs" / "when-not-to-use.md", {}
    for block in blocks(page, "python"):
        exec(compile(block, page.name, "exec"), names)
    words, numbers = words_and_numbers(capsys.readouterr().out)
    shown = words_and_numbers("".join(blocks(page, "text")))
    assert words == shown[0]
    assert numbers == pytest.approx(shown[1], abs=0.02)


@pytest.mark.slow
def test_the_tutorial_shows_what_the_demo_prints(tmp_path, monkeypatch, capsys):
    from calshift.cli.main import status

    monkeypatch.chdir(tmp_path)
    tutorial = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    assert status(["demo", "--files", "."]) == 0
    assert capsys.readouterr().out.strip() in tutorial
    assert status(["check", "source.csv", "target.csv", "--max-error", "0.03"]) == 1
    verdict = capsys.readouterr().out.split("\n\n")[0]
    assert f"```\n{verdict}\n\n[...]\n1\n```" in tutorial


def test_the_nightly_recipe_makes_the_folder_it_writes_to():
    for block in blocks(ROOT / "docs" / "recipes.md", "sh"):
        folders = re.findall(r'--(?:json|report|markdown|plot) "?(\w+)/', block)
        assert all(f"mkdir -p {folder}\n" in block for folder in folders), block


def test_the_recipe_of_batches_takes_logits():
    (recipe,) = [b for b in blocks(ROOT / "docs" / "large-data.md", "python") if "loader" in b]
    names: dict = {}
    exec(compile(recipe, "large-data.md", "exec"), names)
    simulation = calshift.simulate.GaussianSimulation(n_classes=3, seed=2)
    (p, y), (q, z) = simulation.source(600, rng=1), simulation.target(600, rng=2)
    batches = [(p[:200], y[:200]), (p[200:], y[200:])], [(q[:300], z[:300]), (q[300:], z[300:])]
    found = names["error"](lambda x: np.log(x) + 2.0, *batches)
    assert found.estimate == pytest.approx(
        calshift.target_calibration_error(p, y, q).estimate, rel=1e-6
    )


def imported_names(script: Path) -> list[tuple[str, str]]:
    """Module and name of everything that a script imports from calshift."""
    imports = (
        n for n in ast.walk(ast.parse(script.read_text("utf-8"))) if isinstance(n, ast.ImportFrom)
    )
    ours = [node for node in imports if (node.module or "").split(".")[0] == "calshift"]
    return [(node.module or "", alias.name) for node in ours for alias in node.names]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_scripts_behind_the_documentation_import_names_that_exist(script):
    for module, name in imported_names(script):
        found = hasattr(import_module(module), name) or find_spec(f"{module}.{name}")
        assert found, f"{script.name}: from {module} import {name}"
