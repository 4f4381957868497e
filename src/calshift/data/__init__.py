"""Predictions distributed with the package; README.md in this folder describes their origin."""

from __future__ import annotations

from typing import Any

import numpy as np

from calshift._core.convert import softmax
from calshift._core.predictions import Predictions

FASHION = "fashion-mnist-lt10-resnet20-pooled.npz"


def fashion_mnist() -> tuple[Predictions, Predictions]:
    """Source and target, both labelled, of a ResNet-20 trained on long-tailed Fashion-MNIST.

    The source has the class distribution of the training data, from 1200 rows of the first class to
    120 of the last; the target has 1000 of each.

    Examples
    --------
    >>> import calshift
    >>> source, target = calshift.data.fashion_mnist()
    >>> source, source.classes[:2]
    (Predictions(4903 rows, 10 classes, labelled), ('T-shirt/top', 'Trouser'))
    """
    found = _load()
    classes = tuple(str(name) for name in found["classes"])
    source, target = (
        Predictions(
            softmax(found[f"logits_{role}"].astype(float)),
            found[f"y_{role}"].astype(int),
            classes=classes,
        )
        for role in ("source", "target")
    )
    return source, target


def origin() -> dict[str, Any]:
    """The origin of the predictions: command, settings, accuracies."""
    import json

    found: dict[str, Any] = json.loads(str(_load()["origin"]))
    return found


def as_csv(sample: Predictions) -> str:
    """A sample as CSV with a header: p_CLASS for each class, and label if there are labels."""
    import csv
    import io

    names = [str(name) for name in sample.classes or range(sample.n_classes)]
    head = [f"p_{name}" for name in names] + ([] if sample.y is None else ["label"])
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    for k, row in enumerate(sample.matrix.tolist()):
        writer.writerow(row if sample.y is None else [*row, names[sample.y[k]]])
    return text.getvalue()


def _load() -> dict[str, np.ndarray]:
    from importlib.resources import files  # late: importing calshift must be fast

    with (files("calshift.data") / FASHION).open("rb") as file, np.load(file) as archive:
        return {name: archive[name] for name in archive.files}
