"""Writing the tables of the benchmarks: one Markdown file a script, with how it was made."""

from __future__ import annotations

import sys
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


def write_table(name: str, about: str, head: list[str], rows: list[list[str]]) -> None:
    """Print the table, and keep it under results/ with the account of what it shows."""
    width = [max(len(str(row[k])) for row in [head, *rows]) for k in range(len(head))]

    def line(cells: list[str]) -> str:
        return "| " + " | ".join(str(c).ljust(w) for c, w in zip(cells, width, strict=True)) + " |"

    rule = "|" + "|".join("-" * (w + 2) for w in width) + "|"
    table = "\n".join([line(head), rule, *(line(row) for row in rows)])
    print(table)
    RESULTS.mkdir(exist_ok=True)
    title = name.replace("_", " ").capitalize()
    text = f"# {title}\n\n```\n{about.strip()}\n```\n\n{table}\n"
    (RESULTS / f"{name}.md").write_text(text, encoding="utf-8")
    print(f"written to {RESULTS / name}.md", file=sys.stderr)
