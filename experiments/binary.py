"""Train on two kinds of clothes, and draw any mix of them: stands for the paper's tumours.

    python -m experiments binary [--ratios 2 5 10 50 100] [--seed 0] [--folder DIR] [--results DIR]

Camelyon17 has two classes, whose mixes the paper makes by drawing (section 4.3, figures 3 to 5).
Here T-shirts, pullovers and dresses of Fashion-MNIST are negative, coats and shirts positive. All
70 000 images are pooled and divided at random, so that nothing but the mix of classes changes:

                   negatives   positives
    training            4200        2600   of these 4200 / ratio
    source pool         8400        3400
    target pool         8400        8000

n = m = 10 000 is the largest size that a source at 5:1 and targets from 5:1 to 1:4 can have.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import calshift
from experiments.images import DEBIAN_FASHION, FASHION, fashion_mnist
from experiments.saved import PREDICTIONS, Pair, load, save
from experiments.tables import fitted

NEGATIVE, POSITIVE = ("T-shirt/top", "Pullover", "Dress"), ("Coat", "Shirt")
CLASSES = ("T-shirt, pullover or dress", "coat or shirt")
SIZES = {"training": (4200, 2600), "source": (8400, 3400), "target": (8400, 8000)}
POOLS = PREDICTIONS / "pools"
RATIOS = (2.0, 5.0, 10.0, 50.0, 100.0)  # figure 4
USUAL, ROWS = 5.0, 10_000
HIDDEN, EPOCHS = (100,), 100  # at 5:1 the confidence is 4 points above the accuracy
SMALLEST = 1e-15  # log odds of 0 and 1 are infinite


def main(arguments: list[str]) -> None:
    asked = _parser().parse_args(arguments)
    for ratio in asked.ratios:
        pools = trained(ratio, asked.seed, asked.results / POOLS.name, asked.folder)
        if ratio == USUAL:
            write_pair(pools, asked.seed, asked.results)


def write_pair(pools: Pair, seed: int, results: Path, rows: int = ROWS) -> Pair:
    """Source at 5:1 and target at 1:1, of equal size, beside the other experiments' pairs."""
    rng = np.random.default_rng(seed)
    source = drawn(pools.source, rows, 1 / (1 + USUAL), rng)
    target = drawn(pools.target, rows, 1 / 2, rng)
    settings = {**pools.origin, "drawn": f"{rows} rows each, source {USUAL:g}:1, target 1:1"}
    parts = [(_logits(part.p), np.asarray(part.y)) for part in (source, target)]
    path = results / f"fashion-mnist-coats-{USUAL:g}to1-mlp.npz"
    return save(path, parts[0], parts[1], CLASSES, settings)


def trained(
    ratio: float = USUAL,
    seed: int = 0,
    results: Path = POOLS,
    folder: Path = DEBIAN_FASHION,
    sizes: dict[str, tuple[int, int]] = SIZES,
) -> Pair:
    """Scores of class 1 on both pools, of a network trained on ratio negatives to 1 positive.

    They are kept in the results folder, where a second call finds them.
    """
    path = results / f"coats-{ratio:g}to1-seed{seed}.npz"
    pair = load(path) if path.exists() else _train(ratio, seed, path, folder, sizes)
    pools = [
        calshift.Predictions(pool.p[:, 1], pool.y, classes=CLASSES)
        for pool in (pair.source, pair.target)
    ]
    return Pair(pair.name, pools[0], pools[1], pair.origin)


def drawn(
    pool: calshift.Predictions, n: int, share_of_positives: float, rng: np.random.Generator
) -> calshift.Predictions:
    """n rows of the pool in random order, none twice, with exactly that mix (rounded to rows)."""
    positives = round(n * share_of_positives)
    rows = chosen(np.asarray(pool.y), (n - positives, positives), rng)
    return calshift.Predictions(pool.p[rows], np.asarray(pool.y)[rows], classes=pool.classes)


def chosen(labels: np.ndarray, counts: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    """As many rows of either class as asked, in random order."""
    parts = []
    for c, count in enumerate(counts):
        members = np.flatnonzero(labels == c)
        if count > len(members):
            msg = f"{count} rows of class {c} are asked for; there are {len(members)}"
            raise ValueError(msg)
        parts.append(rng.choice(members, count, replace=False))
    return rng.permutation(np.concatenate(parts))


def clothes(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Pixels from 0 to 1 (rows, 784) and labels 0 and 1 of the images of both parts."""
    parts = fashion_mnist(folder)
    names = np.array(FASHION)[np.concatenate([part.labels for part in parts])]
    kept = np.isin(names, NEGATIVE + POSITIVE)
    pixels = np.concatenate([part.pixels for part in parts])[kept]
    return pixels.reshape(len(pixels), -1) / 255, np.isin(names[kept], POSITIVE).astype(int)


def divided(
    labels: np.ndarray, ratio: float, sizes: dict[str, tuple[int, int]], rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Rows of training and pools, none in two of them; the pools are the same for every ratio."""
    free, parts = np.arange(len(labels)), {}
    for name, counts in sizes.items():
        parts[name] = free[chosen(labels[free], counts, rng)]
        free = np.setdiff1d(free, parts[name])
    rows, negatives = parts["training"], sizes["training"][0]
    counts = (negatives, round(negatives / ratio))
    return {**parts, "training": rows[chosen(labels[rows], counts, rng)]}


def _train(
    ratio: float, seed: int, path: Path, folder: Path, sizes: dict[str, tuple[int, int]]
) -> Pair:
    from sklearn.neural_network import MLPClassifier

    x, labels = clothes(folder)
    parts = divided(labels, ratio, sizes, np.random.default_rng(seed))
    network = MLPClassifier(HIDDEN, alpha=0.0, max_iter=EPOCHS, random_state=seed)
    model = fitted(network, x[parts["training"]], labels[parts["training"]])
    found = [
        (_logits(model.predict_proba(x[rows])[:, 1]), labels[rows])
        for rows in (parts["source"], parts["target"])
    ]
    settings = {**origin(ratio, seed), "training_rows": len(parts["training"]), "sizes": sizes}
    return save(path, found[0], found[1], CLASSES, settings)


def origin(ratio: float, seed: int) -> dict[str, Any]:
    """What the saved file tells about itself."""
    import sklearn

    return {
        "data": "Fashion-MNIST, as in Debian's dataset-fashion-mnist 0.0~git20200523",
        "licence": "Expat (MIT)",
        "classes": {CLASSES[0]: NEGATIVE, CLASSES[1]: POSITIVE},
        "split": f"all images divided at random into pools of fixed sizes, training {ratio:g}:1",
        "seed": seed,
        "model": f"pixels, MLPClassifier{HIDDEN}, no penalty, {EPOCHS} epochs, "
        f"scikit-learn {sklearn.__version__}",
    }


def _logits(p: np.ndarray) -> np.ndarray:
    """(rows, 2): 0 for class 0, log odds for class 1."""
    p = np.clip(p, SMALLEST, 1 - SMALLEST)
    return np.stack([np.zeros(len(p)), np.log(p) - np.log1p(-p)], axis=1)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m experiments binary")
    parser.add_argument("--ratios", nargs="+", type=float, default=list(RATIOS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, default=DEBIAN_FASHION, help="of Fashion-MNIST")
    parser.add_argument("--results", type=Path, default=PREDICTIONS)
    return parser
