"""How often label shift is rejected: where it holds (size), and where it does not (power).

    python benchmarks/label_shift_check.py size [--repeats 1000] [--predictions DIR] [--jobs 1]
    python benchmarks/label_shift_check.py power [--repeats 400] [--jobs 1]

Set OPENBLAS_NUM_THREADS=1. The nominal level is 5%, n_boot the default. `power` needs scikit-learn,
for its digits.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from real_predictions import load
from scipy.special import chdtrc
from tables import write_table

import calshift

Sample = tuple[np.ndarray, np.ndarray, np.ndarray]  # p and y of the source, p of the target

SIZE = """
Label shift holds. n source and m target rows; df: mean degrees of freedom; rejected: share of the
draws, by the bootstrap; chi-square: the same if J were compared with the chi-square distribution.
untested: share of the draws with no degrees of freedom. "A" has a long-tailed source, all others a
long-tailed target. Saved predictions are split in halves at random, of which the second is
resampled to a long tail of 10.
"""
BINARY = {"n_classes": 2, "dimensions": 2, "imbalance": 3, "seed": 3}
TEN = {"n_classes": 10, "seed": 24}
TEN_A = {**TEN, "long_tail": "source", "temperature": 1.0, "seed": 25}
OVERLAPPING = {"n_classes": 10, "dimensions": 3, "seed": 26}
FIVE = {"n_classes": 5, "dimensions": 2, "spread": 0.7, "seed": 27}
BLURRED = {"n_classes": 5, "dimensions": 2, "spread": 0.3, "seed": 28}
THIRTY = {"n_classes": 30, "dimensions": 10, "seed": 29}
EQUAL, FAR = ((1000, 1000), (5000, 5000)), ((1000, 5000), (5000, 1000))
GAUSSIAN: list[tuple[str, dict[str, Any], tuple[tuple[int, int], ...]]] = [
    ("gaussian, K = 2", BINARY, (*EQUAL, *FAR, (200, 200))),
    ("K = 10", TEN, (*EQUAL, *FAR, (200, 200), (200, 2000))),
    ("K = 10, A", TEN_A, (*EQUAL, *FAR)),
    ("K = 10, IF 100", {**TEN, "imbalance": 100}, (*EQUAL, *FAR, (500, 2500))),
    ("K = 10, overlapping", OVERLAPPING, (*EQUAL, *FAR)),
    ("K = 3, overlapping", {"n_classes": 3, "dimensions": 2, "seed": 30}, (*EQUAL, *FAR)),
    ("K = 5", FIVE, (*EQUAL, *FAR)),
    ("K = 5, hardly told apart", BLURRED, (*EQUAL, *FAR)),
    ("K = 30", THIRTY, (*EQUAL, (1000, 5000), (500, 500))),
    ("K = 100", {"n_classes": 100, "dimensions": 20, "seed": 31}, ((5000, 5000),)),
]  # fmt: skip


def gaussian(asked: dict[str, Any], n: int, m: int, seed: int) -> Sample:
    simulation = calshift.simulate.GaussianSimulation(**asked)
    rng = np.random.default_rng([seed, n, m])
    return *simulation.source(n, rng), simulation.target(m, rng)[0]


def beta(n: int, m: int, seed: int) -> Sample:
    simulation, rng = calshift.simulate.BetaSimulation(), np.random.default_rng([seed, n, m])
    return *simulation.source(n, rng), simulation.target(m, rng)[0]


@cache
def saved(path: Path) -> tuple[np.ndarray, np.ndarray]:
    return load(path)


def halves(path: Path, seed: int) -> Sample:
    p, y = saved(path)
    rng = np.random.default_rng(seed)
    source, rest = np.array_split(rng.permutation(len(y)), 2)
    target = rest[calshift.resample_label_shift(y[rest], imbalance_factor=10, rng=rng)]
    return p[source], y[source], p[target]


def tested(draw: Callable[..., Sample], seed: int) -> tuple[float, float, float]:
    """p-values by the bootstrap and by chi-square, and the degrees of freedom; NaN: none."""
    check = calshift.check_label_shift(*draw(seed=seed), rng=seed)
    if check.p_value is None:
        return np.nan, np.nan, 0
    return check.p_value, float(chdtrc(check.df, check.statistic)), check.df


def size_cases(folder: Path | None) -> Iterator[tuple[str, str, str, Callable[..., Sample]]]:
    for n, m in (*EQUAL, *FAR):
        yield "beta, K = 2", str(n), str(m), partial(beta, n, m)
    for name, asked, sizes in GAUSSIAN:
        for n, m in sizes:
            yield name, str(n), str(m), partial(gaussian, asked, n, m)
    for path in sorted(folder.glob("*.npz")) if folder else []:
        draw = partial(halves, path)
        source, _, target = draw(seed=0)
        yield path.stem, str(len(source)), str(len(target)), draw


def size(pool: ProcessPoolExecutor, repeats: int, folder: Path | None) -> None:
    rows = []
    for name, n, m, draw in size_cases(folder):
        found = np.array(list(pool.map(partial(tested, draw), range(repeats), chunksize=10)))
        rejected, chi_square = np.mean(found[:, :2] <= 0.05, axis=0)
        cells = f"{found[:, 2].mean():.1f}", f"{rejected:.3f}", f"{chi_square:.3f}"
        rows.append([name, n, m, *cells, f"{np.isnan(found[:, 0]).mean():.2f}"])
        print(*rows[-1], flush=True)
    error = np.sqrt(0.05 * 0.95 / repeats)
    about = f"{__doc__}{SIZE}\nDraws: {repeats}; the standard error of .050 is {error:.3f}."
    head = ["predictions", "n", "m", "df", "rejected", "chi-square", "untested"]
    write_table("label_shift_size", about, head, rows)


POWER = """
Share of draws in which label shift is rejected. As many target as source rows; the target has a
long tail of 10 besides (K = 2: a share of .25 in the place of .5). Gaussian: features are unit
normal around class means, predictions those of the source's Bayes classifier at temperature .6.
Digits: scikit-learn's images (pixels 0 to 16) with normal noise of deviation 2 on every pixel, so
that any number of rows can be drawn; half of the images train a logistic regression, the other
half is the population of both samples. Nothing: label shift holds.

                 gaussian                            digits
    noise        features + normal noise of          pixel noise of deviation 2.5
                 deviation .5 (strong: 1)            (strong: 3) in the place of 2
    appearance   class 1 moved by .35 (strong: .7)   a quarter (strong: all) of the 3s moved
                 of the way to class 0               to the left by one pixel
    covariate    rows kept with probability          the same, z the standardised ink of the
                 logistic(1.5 z) (strong: 3 z), z    image among those of its class
                 the first feature about its
                 class's mean
"""
VIOLATIONS = ("nothing", "noise", "appearance", "covariate")
STRENGTHS = ("mild", "strong")


def long_tail(K: int) -> np.ndarray:
    share = (3.0 if K == 2 else 10.0) ** (-np.arange(K) / (K - 1))
    return share / share.sum()


def kept(z: np.ndarray, slope: float, m: int, rng: np.random.Generator) -> np.ndarray:
    """Indices of the first m rows that a logistic choice keeps."""
    return np.flatnonzero(rng.random(len(z)) < 1 / (1 + np.exp(-slope * z)))[:m]


def violated_gaussian(K: int, n: int, violation: str, strong: bool, seed: int) -> Sample:
    rng = np.random.default_rng([seed, n, K])
    means = np.random.default_rng(24).normal(size=(K, K))

    def features(rows: int, prior: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        y = rng.choice(K, rows, p=prior)
        return means[y] + rng.normal(size=(rows, K)), y

    def predicted(x: np.ndarray) -> np.ndarray:
        return calshift.softmax((x @ means.T - (means**2).sum(axis=1) / 2) / 0.6)

    source, y = features(n, np.full(K, 1 / K))
    target, hidden = features(4 * n if violation == "covariate" else n, long_tail(K))
    if violation == "noise":
        target += (1.0 if strong else 0.5) * rng.normal(size=target.shape)
    elif violation == "appearance":
        target[hidden == 1] += (0.7 if strong else 0.35) * (means[0] - means[1])
    elif violation == "covariate":
        target = target[kept((target - means[hidden])[:, 0], 3.0 if strong else 1.5, n, rng)]
    return predicted(source), y, predicted(target)


@cache
def digits() -> tuple[Any, np.ndarray, np.ndarray]:
    """A classifier, and the images and labels that it did not see."""
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression

    x, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(y))
    train, rest = np.array_split(order, 2)
    noisy = np.tile(x[train], (5, 1))
    noisy = noisy + rng.normal(0, 2, noisy.shape)
    model = LogisticRegression(max_iter=2000, C=0.01).fit(noisy, np.tile(y[train], 5))
    return model, x[rest], y[rest]


def violated_digits(n: int, violation: str, strong: bool, seed: int) -> Sample:
    model, images, labels = digits()
    rng = np.random.default_rng([seed, n])

    def drawn(rows: int, prior: np.ndarray) -> np.ndarray:
        return rng.choice(len(labels), rows, p=(prior / np.bincount(labels))[labels])

    def predicted(x: np.ndarray, noise: float = 2.0) -> np.ndarray:
        return model.predict_proba(x + rng.normal(0, noise, x.shape))

    source = drawn(n, np.full(10, 0.1))
    target = drawn(4 * n if violation == "covariate" else n, long_tail(10))
    if violation == "covariate":
        ink = images.sum(axis=1)
        mean, spread = (
            np.array([f(ink[labels == c]) for c in range(10)]) for f in (np.mean, np.std)
        )
        z = (ink[target] - mean[labels[target]]) / spread[labels[target]]
        target = target[kept(z, 3.0 if strong else 1.5, n, rng)]
    x = images[target]
    if violation == "appearance":
        moved = (labels[target] == 3) & (rng.random(n) < (1.0 if strong else 0.25))
        x[moved] = np.roll(x[moved].reshape(-1, 8, 8), -1, axis=2).reshape(-1, 64)
    noise = (3.0 if strong else 2.5) if violation == "noise" else 2.0
    return predicted(images[source]), labels[source], predicted(x, noise)


def power(pool: ProcessPoolExecutor, repeats: int) -> None:
    worlds: dict[str, Callable[..., Sample]] = {
        "gaussian, K = 2": partial(violated_gaussian, 2),
        "gaussian, K = 5": partial(violated_gaussian, 5),
        "gaussian, K = 10": partial(violated_gaussian, 10),
        "gaussian, K = 30": partial(violated_gaussian, 30),
        "digits, K = 10": violated_digits,
    }
    rows = []
    for name, n, strength in product(worlds, (1000, 5000), STRENGTHS):
        cells = []
        for violation in VIOLATIONS:
            draw = partial(worlds[name], n, violation, strength == "strong")
            found = np.array(list(pool.map(partial(tested, draw), range(repeats), chunksize=10)))
            cells.append(f"{np.mean(found[:, 0] <= 0.05):.3f}")
        rows.append([name, str(n), strength, *cells])
        print(*rows[-1], flush=True)
    error = np.sqrt(0.25 / repeats)
    about = f"{__doc__}{POWER}\nDraws: {repeats}; standard errors are {error:.3f} at most."
    write_table("label_shift_power", about, ["predictions", "n = m", "change", *VIOLATIONS], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["size", "power"])
    parser.add_argument("--repeats", type=int)
    parser.add_argument("--predictions", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    asked = parser.parse_args()
    with ProcessPoolExecutor(asked.jobs) as pool:
        if asked.what == "size":
            size(pool, asked.repeats or 1000, asked.predictions)
        else:
            power(pool, asked.repeats or 400)


if __name__ == "__main__":
    main()
