"""The label shifts that the paper makes of a labelled sample, and names of what is shifted."""

from __future__ import annotations

import re

import numpy as np

import calshift
from experiments.saved import Pair

TITLES = {
    "cifar10": "CIFAR-10-LT",
    "cifar100": "CIFAR-100-LT",
    "fashion-mnist": "Fashion-MNIST-LT",
    "imagenet-lt": "ImageNet-LT",
    "iwildcam": "iWildCam",
    "amazon": "Amazon",
}
MODELS = {  # as the paper writes them
    "resnet18": "Resnet18", "resnet50": "Resnet50", "resnet152": "Resnet152",
    "roberta-base": "RoBERTa", "distilroberta-base": "D-RoBERTa",
    "bert-base-uncased": "BERT", "distilbert-base-uncased": "D-BERT",
}  # fmt: skip
Sample = calshift.Predictions


def title(pair: Pair) -> str:
    """ "data model", as the paper's tables call them; else the file's name."""
    data, known = pair.origin.get("data"), pair.origin
    if data not in TITLES:
        return pair.name
    model = f"ResNet-{known['depth']}" if "depth" in known else known.get("model", "")
    model = MODELS.get(model, model)
    return f"{TITLES[data]} {model}".strip()


def test_set_title(name: str) -> str:
    """That of a test set by its file's name, as in Table 2 where it is one of those."""
    found = re.search(r"cifar(100?)_resnet-?(\d+)$", name)
    return name if found is None else f"CIFAR-{found[1]} ResNet-{found[2]}"


def halves(sample: Sample, rng: np.random.Generator) -> tuple[Sample, Sample]:
    """Divided at random, each class evenly."""
    first = np.zeros(len(sample), bool)
    for c in range(sample.n_classes):
        rows = rng.permutation(np.flatnonzero(sample.labels == c))
        first[rows[: len(rows) // 2]] = True
    return sample.take(np.flatnonzero(first)), sample.take(np.flatnonzero(~first))


def long_tail(sample: Sample, imbalance: float, rng: np.random.Generator) -> Sample:
    """Fewer rows of each later class, down to 1 / imbalance of the first one's."""
    if imbalance == 1:
        return sample
    rows = calshift.resample_label_shift(sample.labels, imbalance_factor=imbalance, rng=rng)
    return sample.take(rows)


def task_a(sample: Sample, imbalance: float, rng: np.random.Generator) -> tuple[Sample, Sample]:
    """A long-tailed source and a balanced target, of one balanced sample."""
    source, target = halves(sample, rng)
    return long_tail(source, imbalance, rng), target


def task_b(sample: Sample, imbalance: float, rng: np.random.Generator) -> tuple[Sample, Sample]:
    """A balanced source and a long-tailed target, of one balanced sample."""
    source, target = halves(sample, rng)
    return source, long_tail(target, imbalance, rng)
