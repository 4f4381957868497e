"""One case of files: a damaged file opened by a function or a command, with all that is checked."""

from __future__ import annotations

import contextlib
import io
import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import calshift
from tests.fuzz.api import Report
from tests.fuzz.oracles.outcomes import Finding, Outcome, judge, observe
from tests.fuzz.strategies.corpus import ValidFile
from tests.fuzz.strategies.mutations import mutate
from tests.fuzz.strategies.samples import Rng, pick

Corpus = list[ValidFile]
ACTIONS = (
    "target_calibration_error", "label_shift_weights", "scan", "calibration_error", "check",
    "check batches", "apply", "recalibrate", "weights", "monitor",
)  # fmt: skip
REPLAYED = ("scan", "calibration_error", "label_shift_weights", "check", "apply")
STATUS = (0, 1, 2, 3)  # docs/command-line.md; 4 is an internal error
OUTPUTS = {"out", "saved.json"}
SAVED = {
    "format": "calshift recalibrator", "version": 1, "name": "TemperatureScaling", "n_classes": 3,
    "classes": None, "parameters": {"weights": None}, "learned": {"temperature_": 2.0},
}  # fmt: skip


def draw_case(seed: int, number: int, corpus: Corpus) -> tuple[Rng, ValidFile, str, bytes]:
    """The generator, the valid file, the names of the mutations, and the damaged file."""
    rng = np.random.default_rng([seed, number, 3])
    groups = sorted({file.extension for file in corpus})
    extension = pick(rng, groups)
    file = pick(rng, [one for one in corpus if one.extension == extension])
    return rng, file, *mutate(rng, file, pick(rng, corpus).content)


def draw_damaged(seed: int, number: int, corpus: Corpus) -> tuple[str, bytes]:
    """The extension and the content of the damaged file."""
    _, file, _, damaged = draw_case(seed, number, corpus)
    return file.extension, damaged


def name_case(seed: int, number: int, corpus: Corpus) -> str:
    """The format of a case; whatever opens the file, the same reader dies."""
    return draw_case(seed, number, corpus)[1].extension.removesuffix(".gz")


def examine(seed: int, number: int, corpus: Corpus) -> Report:
    """Open the damaged file of this number."""
    rng, file, named, damaged = draw_case(seed, number, corpus)
    action, as_source = pick(rng, ACTIONS), pick(rng, (True, False))
    outcome, found = open_damaged(action, as_source, file, damaged)
    how = "refused" if _refused(outcome) else "failed" if outcome.error else "accepted"
    described = f"{action} of {file.extension} ({file.layout}), {named}, as source: {as_source}"
    name = f"{action} {file.extension}"
    return Report(f"FILE:{seed}:{number}", name, how, outcome.seconds, found, described)


def open_damaged(
    action: str, as_source: bool, file: ValidFile, damaged: bytes
) -> tuple[Outcome, list[Finding]]:
    """The outcome of an action on a damaged file and a valid one, and what is wrong with it."""
    with tempfile.TemporaryDirectory(prefix="calshift-fuzz-") as folder:
        bad, good = (Path(folder) / f"{name}{file.extension}" for name in ("bad", "good"))
        bad.write_bytes(damaged)
        good.write_bytes(file.content)
        before = set(Path(folder).iterdir())
        pair = (bad, good) if as_source else (good, bad)
        outcome = observe(lambda: act(action, *pair, bad, file))
        found = list(judge(f"{action} of {file.extension}", outcome))
        found += _judge_status(action, outcome, folder)
        found += _judge_rest(action, outcome, Path(folder), before)
    return outcome, found


def replay(path: Path, corpus: Corpus) -> Report:
    """A damaged file in every role, with the options of every layout of its format."""
    damaged, found = path.read_bytes(), []
    extension = "".join(path.suffixes)
    files = {file.options: file for file in corpus if file.extension == extension}
    for file in files.values():
        for action in REPLAYED:
            found += open_damaged(action, True, file, damaged)[1]
            found += open_damaged(action, False, file, damaged)[1]
    return Report(path.name, "replay", "accepted", 0.0, found)


def _refused(outcome: Outcome) -> bool:
    return outcome.refused or (isinstance(outcome.result, Ended) and outcome.result.status == 2)


class Ended:
    """How a command ended, and what it printed."""

    def __init__(self, status: Any, printed: str) -> None:
        self.status, self.printed = status, printed


def act(action: str, source: Path, target: Path, bad: Path, file: ValidFile) -> Any:
    """Open the files."""
    options: dict[str, Any] = {"logits": "--logits" in file.options}
    if "--columns" in file.options:
        options["columns"] = "p"
    label = {"label": _labels(source)} if source.suffix == ".npy" else {}
    if action in ("target_calibration_error", "label_shift_weights"):
        pair = calshift.scan(str(source), **options, **label), calshift.scan(str(target), **options)
        return getattr(calshift, action)(pair[0], None, pair[1])
    if action == "calibration_error":
        return calshift.calibration_error(calshift.scan(str(bad), **options, **label))
    if action == "scan":
        return calshift.scan(bad, **options, batch_rows=7).summary.rows
    asked = [*file.options, *_label_option(label)]
    return command(action, source, target, bad, asked, _windows(file.layout))


def _labels(source: Path) -> str:
    """A file of labels for an array, which has none."""
    path = source.with_name("labels.npy")
    np.save(path, np.arange(80) % 3)
    return str(path)


def _label_option(label: dict[str, str]) -> list[str]:
    return ["--label", label["label"]] if label else []


def _windows(layout: str) -> list[str]:
    """Windows by time in files that have a column of it."""
    return ["--time", "time", "--window", "1d"] if layout == "texts" else ["--rows", "30"]


def command(
    action: str, source: Path, target: Path, bad: Path, options: list[str], windows: list[str]
) -> Ended:
    """Run a command in this process."""
    folder = source.parent
    out, saved = str(folder / f"out{''.join(bad.suffixes)}"), folder / "given.json"
    saved.write_text(json.dumps(SAVED))
    pair = [str(source), str(target), *options]
    columns = options[: options.index("--label")] if "--label" in options else options
    arguments = {
        "check": ["check", *pair, "--json", f"{folder}/saved.json"],
        "check batches": ["check", *pair, "--engine", "batches", "-q"],
        "weights": ["weights", *pair],
        "monitor": ["monitor", *pair, *windows],
        "apply": ["apply", str(saved), str(bad), "-o", out, *columns],
        "recalibrate": ["recalibrate", *pair, "-o", out, "--folds", "2"],
    }[action]
    ended = _run(arguments)
    return _run([*arguments, "--debug"]) if ended.status not in STATUS else ended


def _run(arguments: list[str]) -> Ended:
    from calshift.cli.main import status

    printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace")
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        code = status(arguments)
    printed.flush()
    return Ended(code, printed.buffer.getvalue().decode("utf-8", "replace"))


def _judge_status(action: str, outcome: Outcome, folder: str) -> Iterator[Finding]:
    ended = outcome.result
    if not isinstance(ended, Ended):
        return
    text = ended.printed.replace(folder, "")
    if ended.status not in STATUS:
        frames = re.findall(r'calshift/([\w/]+\.py)", line \d+, in (\w+)', text)
        kind = re.search(r"internal error \((\w+)", text)
        place = ":".join(frames[-1]) if frames else "?"
        yield Finding(f"{kind[1] if kind else ended.status} in {place}", text[-3000:])
    elif ended.status == 2 and (not text.strip() or len(text) > 3000 or "Traceback" in text):
        wrong = "is empty" if not text.strip() else "is long or a traceback"
        yield Finding(f"message of a command {wrong}", f"{action}\n{text[:3000]}")


def _judge_rest(
    action: str, outcome: Outcome, folder: Path, before: set[Path]
) -> Iterator[Finding]:
    """Files that a command leaves: its output, and nothing beside it; none if it failed."""
    if not isinstance(outcome.result, Ended):
        return
    ours = {*before, folder / "labels.npy", folder / "given.json"}
    left = {path.name for path in set(folder.iterdir()) - ours}
    partial = {name for name in left if name.split(".")[0] not in ("out", "saved")}
    if partial or (left and outcome.result.status == 2):
        yield Finding(
            f"files are left by {action}", f"{sorted(left)}, {outcome.result.printed[:300]}"
        )
