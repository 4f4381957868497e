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


def test_links_lead_somewhere():
    for page in (ROOT / "README.md", *ROOT.glob("docs/*.md")):
        for link in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_named_files_of_the_documentation_exist():
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md")):
        for name in re.findall(
            r"`((?:benchmarks|experiments|tests|docs)/[\w/]+\.\w+)`", page.read_text("utf-8")
        ):
            assert (ROOT / name).exists(), f"{page.name}: {name}"
