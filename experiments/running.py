"""Cases of an experiment one after the other: kept as they are done, shown, and written up.

What is done is in NAME.json with the settings it was made with, the version and the machine; an
interrupted run goes on from there. NAME.md and NAME.png are made of it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import calshift

RESULTS = Path(__file__).parent / "results"
PAPER = json.loads((Path(__file__).parent / "paper.json").read_text(encoding="utf-8"))
Cases = Mapping[str, Callable[[], Any]]


@dataclass(frozen=True)
class Experiment:
    """What a module here says of itself.

    Attributes
    ----------
    name : of the command and its files
    about : the module's docstring
    cases : from the settings to what is to be run, by name
    page : Markdown of the cases' answers, below the docstring
    draw : a picture of them, or None
    settings : further options and what they are if not given
    """

    name: str
    about: str
    cases: Callable[[dict[str, Any]], Cases]
    page: Callable[[dict[str, Any]], str]
    draw: Callable[[dict[str, Any], Path], None] | None = None
    settings: Mapping[str, Any] | None = None


def run(experiment: Experiment, arguments: list[str]) -> dict[str, Any]:
    """The answers by case, after writing them."""
    asked = parser(experiment).parse_args(arguments)
    settings = {key: plain(v) for key, v in vars(asked).items() if key not in ("results", "again")}
    path = asked.results / f"{experiment.name}.json"
    cases = experiment.cases(vars(asked))
    before = {} if asked.again else earlier(path, settings)
    kept = {name: before[name] for name in cases if name in before}
    for done, (name, case) in enumerate(cases.items(), 1):
        if name not in kept:
            started = time.time()
            kept[name] = case()
            write(path, experiment, settings, kept)
            took = f"{time.time() - started:.1f} s"
            print(f"{done:4} of {len(cases)}  {name}  {took}", file=sys.stderr, flush=True)
    if not kept:
        sys.exit(f"nothing to run: no predictions for {experiment.name} in {asked.predictions}")
    text = page(experiment, settings, kept)
    write(path, experiment, settings, kept)
    path.with_suffix(".md").write_text(text, encoding="utf-8")
    if experiment.draw is not None:
        experiment.draw(kept, path.with_suffix(".png"))
    print(text)
    return kept


def parser(experiment: Experiment) -> argparse.ArgumentParser:
    """Options that all have, and its own."""
    from experiments.saved import PREDICTIONS

    about = experiment.about.splitlines()[0]
    made = argparse.ArgumentParser(
        prog=f"python -m experiments {experiment.name}", description=about
    )
    made.add_argument("--predictions", type=Path, nargs="+", default=[PREDICTIONS],
                      help="folders with predictions as npz")  # fmt: skip
    made.add_argument("--results", type=Path, default=RESULTS)
    made.add_argument("--seed", type=int, default=0)
    made.add_argument("--again", action="store_true", help="forget what was done before")
    for name, value in (experiment.settings or {}).items():
        made.add_argument(f"--{name}", type=type(value), default=value)
    return made


def plain(value: Any) -> Any:
    """As JSON has it; of folders only the names, since paths are of one machine."""
    if isinstance(value, list):
        return [plain(one) for one in value]
    return value.name if isinstance(value, Path) else value


def earlier(path: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """Cases that were done before, with the same settings and version."""
    if not path.exists():
        return {}
    held = json.loads(path.read_text(encoding="utf-8"))
    same = held["settings"] == settings and held["version"] == calshift.__version__
    return dict(held["cases"]) if same else {}


def write(path: Path, experiment: Experiment, settings: dict[str, Any], cases: dict) -> None:
    """Into another file first, so that what was there is never half-written over."""
    path.parent.mkdir(parents=True, exist_ok=True)
    held = {
        "experiment": experiment.name,
        "settings": settings,
        "version": calshift.__version__,
        "machine": machine(),
        "cases": cases,
    }
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text(as_json(held), encoding="utf-8")
    unfinished.replace(path)


def as_json(held: dict[str, Any]) -> str:
    """A line for each entry, and for each case."""
    entries = [f"{json.dumps(key)}: {_entry(value)}" for key, value in held.items()]
    return "{\n" + ",\n".join(entries) + "\n}\n"


def _entry(value: Any) -> str:
    if not isinstance(value, dict):
        return json.dumps(value)
    inner = [f" {json.dumps(k)}: {json.dumps(v, allow_nan=False)}" for k, v in value.items()]
    return "{\n" + ",\n".join(inner) + "\n}"


def machine() -> str:
    versions = f"Python {platform.python_version()}, numpy {np.__version__}"
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, {versions}"


def page(experiment: Experiment, settings: dict[str, Any], cases: dict[str, Any]) -> str:
    """Markdown: how it was made, and its tables."""
    made = ", ".join(f"{name} {value}" for name, value in settings.items())
    title = experiment.name[0].upper() + experiment.name[1:]
    origin = f"Settings: {made}. calshift {calshift.__version__}, {machine()}."
    about = experiment.about.strip()
    return f"# {title}\n\n```\n{about}\n```\n\n{origin}\n\n{experiment.page(cases)}\n"


def table(head: list[str], rows: list[list[str]]) -> str:
    """Markdown, in columns that line up."""
    lines = [head, *rows]
    widths = [max(len(line[k]) for line in lines) for k in range(len(head))]
    padded = [[cell.ljust(w) for cell, w in zip(line, widths, strict=True)] for line in lines]
    padded.insert(1, ["-" * w for w in widths])
    return "\n".join("| " + " | ".join(line) + " |" for line in padded)


def hundred(value: float | None, digits: int = 2) -> str:
    """Times 100, as the paper prints errors; nothing where there is no answer."""
    return "" if value is None else f"{100 * value:.{digits}f}"
