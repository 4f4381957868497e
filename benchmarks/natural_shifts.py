"""Are trusted answers right under natural shifts, which are mostly not label shift?

    python benchmarks/natural_shifts.py [--rows FILE] [--cache DIRECTORY] [--only NAME] [--write]
        [--subsamples]

For each pair of samples in natural_data.py, which says what to install: the label-free error of the
target with defaults beside the one with target labels. An answer is right if the two differ by at
most 1.96 joint standard errors, sqrt(se^2 + se^2), on the scale of the estimate; "with drift" is
the call with drift=.01, where the difference may be larger by what that drift explains. Sources are
halved: thresholds may be chosen on "choose" and are to be judged on "judge". The line "control" is
of pairs without a shift. Errors without an interval count as not right. With --subsamples every
pair is drawn again three times with fewer rows (natural_subsamples.md).

Predictions are kept in DIRECTORY, and used again until it is deleted. Set OPENBLAS_NUM_THREADS=1
and OMP_NUM_THREADS=1.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from natural_data import SOURCES, Source
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tables import write_table

import calshift
from calshift.errors import UnreliableWeights

LEVEL, LIMIT, DRIFT = 0.95, 1.96, 0.01
SIZES = ((1000, 2000), (2000, 500), (500, 1000))  # rows of source and target, at most
HEAD = [
    "source", "half", "model", "pairs", "trusted", "right if trusted", "right of all",
    "trusted, with drift", "right if trusted, with drift", "right of all, with drift",
]  # fmt: skip

MODELS: dict[str, Callable[[], Any]] = {
    "logistic": lambda: LogisticRegression(max_iter=300),
    "boosting": lambda: HistGradientBoostingClassifier(max_iter=100, random_state=0),
    "forest": lambda: RandomForestClassifier(100, random_state=0),
    "bayes": lambda: GaussianNB(var_smoothing=1e-3),
    "mlp": lambda: MLPClassifier((64,), max_iter=40, random_state=0),
}

Pair = tuple[str, np.ndarray, np.ndarray, np.ndarray, np.ndarray]
Row = dict[str, Any]


def half_of(name: str) -> str:
    return ("choose", "judge")[list(SOURCES).index(name) % 2]


def model_of(name: str) -> str:
    return list(MODELS)[list(SOURCES).index(name) % len(MODELS)]


def predicted(source: Source, model: str, rows: np.ndarray) -> np.ndarray:
    """(rows, K) probabilities; 0 for a class that the training rows lack."""
    classifier = make_pipeline(StandardScaler(), MODELS[model]())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        classifier.fit(source.X[source.train], source.y[source.train])
    p = np.zeros((len(rows), source.y.max() + 1))
    p[:, classifier.classes_] = classifier.predict_proba(source.X[rows])
    return p


def prepared(name: str, path: Path) -> None:
    """Train the model of a source, and keep predictions and labels of the rows that pairs use."""
    source = SOURCES[name]()
    used = [np.concatenate(rows) for _, *rows in source.splits]
    rows = np.unique(np.concatenate(used))
    sides = {}
    for k, (_, *parts) in enumerate(source.splits):
        for side, part in zip("st", parts, strict=True):
            sides[f"{side}{k}"] = np.searchsorted(rows, part)
    p = predicted(source, model_of(name), rows)
    names = np.array([title for title, *_ in source.splits])
    np.savez(path, p=p, y=source.y[rows], names=names, **sides)


def pairs_of(name: str, cache: Path) -> Iterator[Pair]:
    """Name, predictions and labels of the source, and those of the target."""
    path = cache / f"natural_{name}.npz"
    if not path.exists():
        prepared(name, path)
    with np.load(path, allow_pickle=False) as file:
        p, y = file["p"], file["y"]
        for k, title in enumerate(file["names"]):
            s, t = file[f"s{k}"], file[f"t{k}"]
            yield str(title), p[s], y[s], p[t], y[t]


def judged(pair: Pair) -> Row:
    """The label-free error of a pair beside the labelled one."""
    title, p, y, q, labels = pair
    found = calshift.target_calibration_error(p, y, q)
    truth = calshift.calibration_error(q, labels)
    row = {
        "name": title,
        "K": p.shape[1],
        "n": len(p),
        "m": len(q),
        "estimate": found.estimate,
        "root": found.root,
        "labelled": truth.estimate,
        "trusted": found.trusted,
        "warning": found.warnings[0] if found.warnings else None,
        "prior_distance": prior_distance(found.class_weights.prior_target, labels),
        "diagnostics": {d.name: [d.value, d.limit, d.passed] for d in found.diagnostics},
        "waived": [d.name for d in found.diagnostics if d.waived],
    }
    if not (found.has_interval and truth.has_interval):
        return row | {"difference": None, "drift_difference": None, "drift_trusted": False}
    return row | differences(pair, found, truth)


def differences(pair: Pair, found: Any, truth: Any) -> Row:
    """Distances in joint standard errors, also after a drift has explained what it can."""
    joint = float(np.hypot(found.standard_error, truth.standard_error))
    off, allowed = found.estimate - truth.estimate, found.drift_sensitivity(DRIFT)
    rest = off - float(np.clip(off, -allowed.too_low, allowed.too_high))
    widened = calshift.target_calibration_error(*pair[1:4], drift=DRIFT)
    return {
        "standard_error": found.standard_error,
        "labelled_error": truth.standard_error,
        "difference": off / joint if joint > 0 else None,
        "inside": inside(truth.estimate, found.confidence_interval(LEVEL)),
        "drift_difference": rest / joint if joint > 0 else None,
        "drift_inside": inside(truth.estimate, widened.confidence_interval(LEVEL)),
        "drift_trusted": widened.trusted,
    }


def inside(value: float, ends: tuple[float, float]) -> bool:
    """Whether an interval, which never goes below 0, holds a value, which may."""
    return bool(ends[0] <= max(value, 0.0) <= ends[1])


def prior_distance(prior: np.ndarray, labels: np.ndarray) -> float:
    """Total variation between the estimated and the counted priors of the target."""
    counted = np.bincount(labels, minlength=len(prior)) / len(labels)
    return float(np.abs(np.nan_to_num(prior) - counted).sum() / 2)


def plain(value: Any) -> Any:
    """A number or truth value of numpy as Python's, for json."""
    return value.item() if hasattr(value, "item") else str(value)


def smaller(pair: Pair, seed: int) -> Iterator[Pair]:
    """The pair with fewer rows, drawn anew for each of three sizes."""
    title, p, y, q, labels = pair
    rng = np.random.default_rng([5, seed])
    for n, m in SIZES:
        i, j = rng.permutation(len(p))[:n], rng.permutation(len(q))[:m]
        if min(len(np.unique(y[i])), len(np.unique(labels[j]))) > 1:
            yield title, p[i], y[i], q[j], labels[j]


def measured(names: list[str], cache: Path, strict: bool, subsamples: bool) -> Iterator[Row]:
    """Rows of all pairs; a source that is not installed is an error if strict, or is told."""
    for name in names:
        try:
            about = {"source": name, "half": half_of(name), "model": model_of(name)}
            for k, pair in enumerate(pairs_of(name, cache)):
                for one in smaller(pair, k) if subsamples else [pair]:
                    yield about | judged(one)
        except (ModuleNotFoundError, FileNotFoundError) as error:
            if strict:
                raise
            print(f"{name} is left out: {error}", file=sys.stderr)
        print(f"{name} done", file=sys.stderr, flush=True)


def right(row: Row, kind: str = "") -> bool:
    return row[f"{kind}difference"] is not None and abs(row[f"{kind}difference"]) <= LIMIT


def share(flags: list[bool]) -> str:
    return f"{sum(flags)}/{len(flags)} ({np.mean(flags):.0%})" if flags else "-"


def summary(title: str, half: str, model: str, rows: list[Row]) -> list[str]:
    cells = [title, half, model, str(len(rows))]
    for kind in ("", "drift_"):
        trusted = [row for row in rows if row[f"{kind}trusted"]]
        cells += [
            share([row[f"{kind}trusted"] for row in rows]),
            share([right(row, kind) for row in trusted]),
            share([right(row, kind) for row in rows]),
        ]
    return cells


def summaries(rows: list[Row]) -> list[list[str]]:
    """A line for each source without its control, then totals, then the controls."""
    shifted = [row for row in rows if row["name"] != "same"]
    lines = []
    for name in dict.fromkeys(row["source"] for row in rows):
        part = [row for row in shifted if row["source"] == name]
        lines.append(summary(name, half_of(name), model_of(name), part))
    for half in ("choose", "judge"):
        lines.append(summary("total", half, "", [row for row in shifted if row["half"] == half]))
    lines.append(summary("total", "both", "", shifted))
    return [*lines, summary("control", "both", "", [row for row in rows if row["name"] == "same"])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    here = Path(tempfile.gettempdir())
    parser.add_argument("--rows", type=Path, default=here / "natural_rows.jsonl")
    parser.add_argument("--cache", type=Path, default=here)
    parser.add_argument("--only", nargs="+", choices=list(SOURCES), default=list(SOURCES))
    parser.add_argument("--write", action="store_true", help="keep the table under results/")
    parser.add_argument("--subsamples", action="store_true")
    told = parser.parse_args()
    if told.write and len(told.only) < len(SOURCES):
        parser.error("--write keeps the table of all sources, not of some")
    warnings.simplefilter("ignore", UnreliableWeights)
    told.cache.mkdir(parents=True, exist_ok=True)
    rows = []
    with told.rows.open("w", encoding="utf-8") as file:
        for row in measured(told.only, told.cache, told.write, told.subsamples):
            rows.append(row)
            file.write(json.dumps(row, default=plain) + "\n")
    print(f"rows are in {told.rows}", file=sys.stderr)
    if told.write:
        write_table(
            "natural_subsamples" if told.subsamples else "natural_shifts",
            __doc__,
            HEAD,
            summaries(rows),
        )
        return
    for line in [HEAD, *summaries(rows)]:
        print("  ".join(cell.ljust(15) for cell in line))


if __name__ == "__main__":
    main()
