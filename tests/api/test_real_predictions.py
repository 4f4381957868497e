"""Saved predictions of real networks, where this machine has them.

Set CALSHIFT_PREDICTIONS to a directory of .npz files (`logits` or `probs`, and `labels`); a folder
shared/data/predictions beside the project is found by itself.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import calshift

BESIDE = Path(__file__).parents[3] / "shared" / "data" / "predictions"
FOLDER = Path(os.environ.get("CALSHIFT_PREDICTIONS", BESIDE))
pytestmark = [
    pytest.mark.skipif(not FOLDER.is_dir(), reason="no saved predictions on this machine"),
    pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights"),
]


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    with np.load(FOLDER / f"{name}.npz", allow_pickle=False) as file:
        p = file["probs"] if "probs" in file else calshift.softmax(file["logits"].astype(float))
        return np.asarray(p, dtype=float), file["labels"].astype(int)


def distances(name: str, factor: float, splits: int) -> np.ndarray:
    """(splits, 2) distance of the label-free value to the labelled debiased one: paper, ours."""
    p, y = load(name)
    found = []
    for seed in range(splits):
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(y))
        source, rest = np.split(order, 2)
        target = rest[calshift.resample_label_shift(y[rest], imbalance_factor=factor, rng=rng)]
        w = calshift.weights_from_labels(y[source], y[target], p.shape[1])
        truth = calshift.calibration_error(p[target], y[target]).estimate
        free = [
            calshift.target_calibration_error(
                p[source], y[source], p[target], weights=w, estimator=estimator
            ).estimate
            for estimator in ("paper", "debiased")
        ]
        found.append(np.abs(np.array(free) - truth))
    return np.array(found)


@pytest.mark.parametrize("name", ["luferrer_cifar10_resnet-20", "netcal_wideresnet_16_4_cifar_100"])
def test_debiased_is_ten_times_nearer_to_the_labelled_value_than_the_papers(name):
    paper, ours = distances(name, 10, 3).mean(axis=0)
    assert paper > 10 * ours


@pytest.mark.parametrize(
    "path", sorted(FOLDER.glob("*.npz")) or [FOLDER / "none"], ids=lambda f: f.stem
)
@pytest.mark.parametrize("kind", ["classwise", "top-label"])
def test_every_file_gives_finite_answers(path, kind):
    p, y = load(path.stem)
    for estimator in ("debiased", "plugin", "paper"):
        result = calshift.calibration_error(p, y, kind=kind, estimator=estimator)
        assert np.isfinite(result.estimate)
        assert result.root < 0.6


@pytest.mark.parametrize("task", ["A", "B"])
def test_few_rows_a_class_do_not_spoil_the_default_weights(task):
    """CIFAR-100 with 50 source rows a class: an unridged calibrator would be far off.

    Over 6 splits the mean sum of |error| of the target's shares is below .22 in both tasks at an
    imbalance of 10 (.17 to .18 measured, spread .02), where bbse has .25 or more.
    """
    p, y = load("luferrer_cifar100_resnet-20")
    errors = {"em-bcts": [], "bbse": []}
    for seed in range(6):
        rng = np.random.default_rng(seed)
        halves = np.split(rng.permutation(len(y)), 2)
        factors = (10, 1) if task == "A" else (1, 10)
        source, target = (
            half[calshift.resample_label_shift(y[half], imbalance_factor=f, rng=rng)]
            for half, f in zip(halves, factors, strict=True)
        )
        truth = np.bincount(y[target], minlength=100) / len(target)
        for method, found in errors.items():
            weights = calshift.label_shift_weights(p[source], y[source], p[target], method=method)
            found.append(np.abs(weights.prior_target - truth).sum())
    assert np.mean(errors["em-bcts"]) < 0.22
    assert np.mean(errors["bbse"]) > 0.25
