"""What the README shows runs as it is printed."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_example_runs_and_is_about_ten_lines(capsys):
    (example,) = re.findall(r"```python\n(.*?)```", README, re.S)
    assert len([line for line in example.splitlines() if line.strip()]) <= 10
    exec(compile(example, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "label-free, on the target" in printed
    assert "no proof" in printed
    assert "95% interval" in printed.splitlines()[-1]


def test_versions_agree():
    import calshift

    for file in ("pyproject.toml", "CITATION.cff", "CHANGELOG.md"):
        assert calshift.__version__ in (ROOT / file).read_text(encoding="utf-8")


def test_the_readme_is_short():
    assert len(README.splitlines()) <= 120


def test_the_commands_of_the_continuous_integration_are_printed():
    for ending in ("calshift demo", "pytest -n auto"):
        (command,) = [line for line in README.splitlines() if line.endswith(ending)]
        assert command.startswith("python3 -m venv .venv && .venv/bin/pip install ")


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.M)
    plain = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings]
    return {heading.replace(" ", "-") for heading in plain}


def test_links_lead_somewhere():
    for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")):
        for link in re.findall(r"\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
            if link.startswith("https://"):
                continue
            path, _, anchor = link.partition("#")
            target = page.parent / path if path else page
            assert target.exists(), f"{page.name}: {link}"
            assert not anchor or anchor in anchors(target), f"{page.name}: {link}"


def test_the_readme_links_to_every_page_of_the_documentation():
    for page in ROOT.glob("docs/*.md"):
        assert f"](docs/{page.name}" in README, page.name


def test_named_files_of_the_documentation_exist():
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md")):
        for name in re.findall(
            r"`((?:benchmarks|experiments|tests|docs)/[\w/]+\.\w+)`", page.read_text("utf-8")
        ):
            assert (ROOT / name).exists(), f"{page.name}: {name}"
