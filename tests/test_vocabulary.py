"""Code, messages and documentation use the field's words, not words of our own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / f"{name}.md" for name in ("README", "CHANGELOG", "CONTRIBUTING", "RELEASING")]
SUFFIXES = {".py", ".md", ".html", ".css", ".js", ".json"}

# what not to say: what to say instead
WORDS = {
    "mend, mends, mended, mending, unmended": "recalibrate, recalibrated",
    "mix": "class priors, prevalence, class distribution",
    "holds": "covers; contains; is satisfied",
    "worth": "effective sample size",
    "law, laws": "sampling distribution",
    "move, moves, moved, moving": "influence",
    "freed": "debiased, corrected for",
    "told, tell, tells, telling, whom": "a callback; report, show, determine",
    "objection, objections, complaint, complaints, doubt, doubts": "warning, reason, error",
    "lonely": "isolated",
    "thin": "sparse, few rows",
    "laid, lay, lot, lots": "located, placed; block",
    "journal, facts": "checkpoint; summary",
    "manners, door, shelf, room, rooms, face, faces, road, roads": "no metaphors",
    "hardly, dear, young": "almost no; expensive; alpha",
}
FORBIDDEN = sorted({word.strip() for words in WORDS for word in words.split(",")})
# parts of snake_case names count too
PATTERN = re.compile(rf"(?<![A-Za-z])({'|'.join(FORBIDDEN)})(?![A-Za-z])", re.IGNORECASE)
ALLOWED = {  # file, word
    ("src/calshift/report/html.py", "doubt"),  # a key of the JSON output, which is promised
    ("src/calshift/report/summary.py", "doubt"),
    ("src/calshift/report/text.py", "doubt"),
    ("src/calshift/report/schemas/report.json", "doubt"),
    ("src/calshift/report/schemas/weights.json", "doubt"),
    ("src/calshift/report/templates/page.html", "doubt"),
    ("src/calshift/_core/outputs.py", "tell"),  # the method of files
    ("src/calshift/io/formats/npy.py", "tell"),
    ("docs/bibliography.md", "journal"),  # of the American Statistical Association
}


def texts() -> Iterator[Path]:
    yield from (page for page in PAGES if page.exists())
    for folder in ("src", "docs"):
        yield from (p for p in sorted((ROOT / folder).rglob("*")) if p.suffix in SUFFIXES)


def private_words(text: str) -> Iterator[tuple[int, str]]:
    """(line, word) of every word of our own."""
    for number, line in enumerate(text.splitlines(), 1):
        for found in PATTERN.findall(line):
            yield number, found.lower()


def test_only_words_of_the_field_are_used():
    found, seen = [], set()
    for path in texts():
        name = path.relative_to(ROOT).as_posix()
        for line, word in private_words(path.read_text(encoding="utf-8")):
            if (name, word) in ALLOWED:
                seen.add((name, word))
            else:
                found.append(f"{name}:{line}: {word}")
    assert found == []
    assert seen == ALLOWED  # no exception outlives its reason


def test_many_files_are_read():
    names = {path.relative_to(ROOT).as_posix() for path in texts()}
    assert len(names) > 150
    assert {"README.md", "docs/mathematics.md", "src/calshift/__init__.py"} <= names


@pytest.mark.parametrize(
    "line", ["the Mix of classes", "_told = 1", "self.row_moves", "what is worth"]
)
def test_private_words_are_found(line):
    assert len(list(private_words(line))) == 1


@pytest.mark.parametrize("line", ["a mixture", "lawful", "removes", "household", "bandwidth"])
def test_parts_of_other_words_are_not(line):
    assert list(private_words(line)) == []
