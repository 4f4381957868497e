"""Predictions on a labelled source and a labelled target, kept in a file with their origin.

The file is an npz with logits_source and logits_target, or probs_source and probs_target, (rows, K)
each; y_source and y_target, labels 0..K-1; and, if known, classes, their names, and origin, JSON
text on where they come from. Anyone's predictions can be brought so.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import calshift

PREDICTIONS = Path(__file__).parent / "predictions"
SIDES = ("source", "target")
LEAST_ROWS = 4000  # of a test set


@dataclass(frozen=True)
class Pair:
    """Source and target, both with their labels, and where they come from."""

    name: str
    source: calshift.Predictions
    target: calshift.Predictions
    origin: dict[str, Any]


def save(
    path: Path,
    source: tuple[np.ndarray, np.ndarray],
    target: tuple[np.ndarray, np.ndarray],
    classes: tuple[str, ...],
    settings: dict[str, Any],
) -> Pair:
    """Write logits as float16 (rounded or not, their softmax is on the simplex) and labels."""
    logits = {
        f"logits_{side}": scores.astype(np.float16) for side, (scores, _) in _sides(source, target)
    }
    labels = {f"y_{side}": y.astype(np.uint8 if len(classes) < 256 else np.uint16)
              for side, (_, y) in _sides(source, target)}  # fmt: skip
    right = {
        side: float((scores.argmax(1) == y).mean()) for side, (scores, y) in _sides(source, target)
    }
    origin = np.array(json.dumps({**settings, "accuracy": right}))
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".unfinished.npz")
    np.savez_compressed(unfinished, **logits, **labels, classes=np.array(classes), origin=origin)
    unfinished.replace(path)
    print(f"accuracy: source {right['source']:.4f}, target {right['target']:.4f}")
    print(f"wrote {path} ({path.stat().st_size / 1024:.0f} KB)")
    return load(path)


def _sides(source: Any, target: Any) -> list[tuple[str, Any]]:
    return list(zip(SIDES, (source, target), strict=True))


def load(path: Path) -> Pair:
    """The predictions in such a file."""
    with np.load(path, allow_pickle=False) as file:
        held = {name: file[name] for name in file.files}
    classes = tuple(held["classes"].tolist()) if "classes" in held else None
    parts = []
    for side in SIDES:
        if f"y_{side}" not in held:
            msg = f"{path} lacks y_{side}: experiments compare with the labels"
            raise ValueError(msg)
        p = probabilities(held, path, f"_{side}")
        parts.append(calshift.Predictions(p, held[f"y_{side}"].astype(np.int64), classes=classes))
    origin = json.loads(str(held["origin"])) if "origin" in held else {}
    return Pair(path.stem, *parts, origin)


def probabilities(held: dict[str, np.ndarray], path: Path, ending: str = "") -> np.ndarray:
    """From logits, or from probabilities, which are made to sum to 1 to the last digit."""
    if f"logits{ending}" in held:
        return calshift.softmax(held[f"logits{ending}"].astype(float))
    if f"probs{ending}" not in held:
        msg = f"{path} has neither logits{ending} nor probs{ending}"
        raise ValueError(msg)
    p = held[f"probs{ending}"].astype(float)
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def pairs(folders: list[Path]) -> list[Pair]:
    """All files with a source and a target, in the order of their names."""
    return [load(path) for path in _files(folders) if "y_source" in _names(path)]


def test_sets(folders: list[Path]) -> dict[str, calshift.Predictions]:
    """Labelled predictions of balanced test sets by name: files of their own, and pairs' targets.

    A file of its own has logits or probs, (rows, K), and labels, 0..K-1. Halves of fewer than 4000
    rows would be too small for a source.
    """
    found = {pair.name: pair.target for pair in pairs(folders)}
    for path in _files(folders):
        if "labels" in _names(path):
            with np.load(path, allow_pickle=False) as file:
                p = probabilities({name: file[name] for name in file.files}, path)
                found[path.stem] = calshift.Predictions(p, file["labels"].astype(np.int64))
    large = {name: one for name, one in found.items() if len(one) >= LEAST_ROWS}
    return {name: one for name, one in large.items() if balanced(one)}


def balanced(sample: calshift.Predictions) -> bool:
    """Whether no class has less than 0.9 of the rows of another."""
    return bool(sample.class_counts.min() >= 0.9 * sample.class_counts.max())


def _files(folders: list[Path]) -> list[Path]:
    return sorted(path for folder in folders for path in folder.glob("*.npz"))


def _names(path: Path) -> list[str]:
    with np.load(path, allow_pickle=False) as file:
        return list(file.files)
