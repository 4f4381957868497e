"""ImageNet-LT (Liu et al. 2019): a long-tailed source and a balanced target of 1000 classes.

The folder is ImageNet as torchvision lays it out, train/n01440764/*.JPEG and val/n01440764/*.JPEG,
and in it the lists ImageNet_LT_train.txt, ImageNet_LT_val.txt and ImageNet_LT_test.txt, whose lines
are a file and a label: train/n01440764/n01440764_190.JPEG 0
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

import calshift
from experiments.images import split
from experiments.saved import Pair

HELD = 0.2
TEXT, COUNTED = (20, 50), (11, 49)  # source rows of a class: in the paper's words, in its numbers


@dataclass(frozen=True)
class Rows:
    """What a model reads in each row, an image's file or a text; its label 0..K-1; class names."""

    items: list[str]
    labels: np.ndarray
    classes: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self) and not 0 <= self.labels.min() <= self.labels.max() < len(self.classes):
            found = f"{self.labels.min()} to {self.labels.max()}"
            msg = f"labels must be 0 to {len(self.classes) - 1}; found {found}"
            raise ValueError(msg)
        if len(set(self.classes)) < len(self.classes):  # found out before days of training
            msg = f"two classes have the same name: {', '.join(sorted(self.classes))}"
            raise ValueError(msg)

    def __len__(self) -> int:
        return len(self.labels)

    def at(self, rows: np.ndarray) -> Rows:
        return Rows([self.items[row] for row in rows], self.labels[rows], self.classes)


@dataclass(frozen=True)
class Parts:
    """What a model is trained on, the labelled source of the same mix, and the shifted target."""

    training: Rows
    source: Rows
    target: Rows

    def with_images(self) -> Parts:
        """Itself, if the first image of each part is there; the others are opened when needed."""
        for rows in (self.training, self.source, self.target):
            present(Path(rows.items[0]), "the lists name it; unpack the images there")
        return self


def imagenet_lt(folder: Path, rng: np.random.Generator) -> Parts:
    """As in the paper: the target is the balanced test list.

    The lists for training and validation are merged and divided anew: a fifth of every class is the
    source.
    """
    known = [row for part in ("train", "val") for row in listed(_list(folder, part))]
    classes = named(known, folder)
    everything: Any = _rows(folder, known, classes)  # like images, they have labels and at()
    divided: Any = split(everything, HELD, rng)
    training, source = divided
    target = _rows(folder, listed(_list(folder, "test")), classes)
    return Parts(training, source, target).with_images()


def listed(path: Path) -> list[tuple[str, int]]:
    """Files and labels in a list."""
    present(path, "put the lists of ImageNet-LT (Liu et al. 2019) into the folder of ImageNet")
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        file, _, label = line.strip().rpartition(" ")
        if not file or not label.isdecimal():
            msg = f"{path}, line {number}: there must be a file and a label; got {line!r}"
            raise ValueError(msg)
        rows.append((file, int(label)))
    return rows


def named(rows: list[tuple[str, int]], folder: Path) -> tuple[str, ...]:
    """Names of the classes 0..K-1: the folders that their images are in."""
    names = {label: PurePosixPath(file).parent.name for file, label in rows}
    absent = sorted(set(range(max(names, default=0) + 1)) - set(names))
    if absent:
        msg = f"the lists in {folder} for training have no image of class {absent[0]}"
        raise ValueError(msg)
    return tuple(names[c] for c in range(len(names)))


def present(path: Path, advice: str) -> Path:
    """The path, if there is a file."""
    if not path.is_file():
        msg = f"no file {path}: {advice}"
        raise FileNotFoundError(msg)
    return path


def restricted(pair: Pair, low: int = TEXT[0], high: int = TEXT[1]) -> Pair:
    """Only the classes that have low to high rows in the source, both included; see `kept`.

    The paper says "between 20 and 50", but its 619 classes and 14442 source rows are those with 11
    to 49 rows in a fifth of the merged lists: restricted(pair, *COUNTED). With 20 to 50 rows there
    are 357 classes and 10888 source rows.
    """
    counts = pair.source.class_counts
    chosen = np.flatnonzero((counts >= low) & (counts <= high))
    if not chosen.size:
        msg = f"{pair.name}: no class has {low} to {high} rows in the source"
        raise ValueError(msg)
    return kept(pair, chosen)


def kept(pair: Pair, classes: np.ndarray) -> Pair:
    """Rows and columns of some classes, whose probabilities are divided by their sum.

    So they are the probabilities if it is known that no other class can occur. The paper tells
    which classes it looks at and not what becomes of the columns.
    """
    source, target = (_kept(sample, classes) for sample in (pair.source, pair.target))
    return Pair(pair.name, source, target, {**pair.origin, "kept_classes": len(classes)})


def _kept(sample: calshift.Predictions, classes: np.ndarray) -> calshift.Predictions:
    code = np.full(sample.n_classes, -1)
    code[classes] = np.arange(len(classes))
    rows = np.flatnonzero(code[sample.labels] >= 0)
    p = sample.matrix[np.ix_(rows, classes)].astype(float)
    p /= p.sum(axis=1, keepdims=True)
    names = None if sample.classes is None else [sample.classes[c] for c in classes]
    return calshift.Predictions(p, code[sample.labels[rows]], classes=names)


def _list(folder: Path, part: str) -> Path:
    return folder / f"ImageNet_LT_{part}.txt"


def _rows(folder: Path, rows: list[tuple[str, int]], classes: tuple[str, ...]) -> Rows:
    labels = np.array([label for _, label in rows], dtype=np.int64)
    return Rows([str(folder / file) for file, _ in rows], labels, classes)
