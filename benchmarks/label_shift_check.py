"""How often label shift is rejected: where it holds (size), and where it does not (power).

    python benchmarks/label_shift_check.py size [--repeats 400] [--predictions DIR] [--jobs 1]
    python benchmarks/label_shift_check.py power [--repeats 150] [--before SRC] [--changes mild]

Set OPENBLAS_NUM_THREADS=1. The nominal level is 5%, n_boot the default. `power` needs scikit-learn,
for its digits; SRC is the folder `src` of another version, to be compared.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
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
Label shift holds. n source and m target rows; df: mean degrees of freedom; J, z and joint: share of
the draws in which each test rejects, by the bootstrap, z being the contrast of high against low
confidence; chi-square: the same if J were compared with the chi-square distribution; bound: mean
upper bound of the distance; detectable: mean distance that would be detected; untested: share of
the draws without a test. "A" has a long-tailed source, all others a long-tailed target. "Few
predicted" predicts the class of 90% of the source for at least 95% of the rows; "sharp" has most of
its largest probabilities at exactly 1, and all others rounded to two decimals. Saved predictions
are split in halves at random, of which the second is resampled to a long tail of 10.
"""
BINARY = {"n_classes": 2, "dimensions": 2, "imbalance": 3, "seed": 3}
TEN = {"n_classes": 10, "seed": 24}
TEN_A = {**TEN, "long_tail": "source", "temperature": 1.0, "seed": 25}
BLURRED = {"n_classes": 5, "dimensions": 2, "spread": 0.3, "seed": 28}
THIRTY = {"n_classes": 30, "dimensions": 10, "seed": 29}
FIFTY = {"n_classes": 50, "dimensions": 15, "seed": 32}
EQUAL, FAR = ((1000, 1000), (5000, 5000)), ((1000, 5000), (5000, 1000))
GAUSSIAN: list[tuple[str, dict[str, Any], tuple[tuple[int, int], ...]]] = [
    ("gaussian, K = 2", BINARY, (*EQUAL, (1000, 5000), (200, 200))),
    ("K = 3, overlapping", {"n_classes": 3, "dimensions": 2, "seed": 30}, EQUAL),
    ("K = 5, hardly told apart", BLURRED, EQUAL),
    ("K = 10", TEN, EQUAL),
    ("K = 10, A", TEN_A, ((1000, 5000),)),
    ("K = 10, IF 100", {**TEN, "imbalance": 100}, ((1000, 5000),)),
    ("K = 30", THIRTY, ((1000, 1000),)),
    ("K = 50", FIFTY, ((5000, 5000),)),
]  # fmt: skip


def gaussian(asked: dict[str, Any], n: int, m: int, seed: int) -> Sample:
    simulation = calshift.simulate.GaussianSimulation(**asked)
    rng = np.random.default_rng([seed, n, m])
    return *simulation.source(n, rng), simulation.target(m, rng)[0]


def few_predicted(K: int, n: int, m: int, seed: int) -> Sample:
    """Weak features: a class of 90% of the source, 80% of the target is predicted nearly always."""
    rng = np.random.default_rng([seed, n, m])
    means = 0.9 * np.random.default_rng(33).normal(size=(K, 2))
    here, there = (np.append(share, np.full(K - 1, (1 - share) / (K - 1))) for share in (0.9, 0.8))

    def drawn(rows: int, prior: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        y = rng.choice(K, rows, p=prior)
        x = means[y] + rng.normal(size=(rows, 2))
        return calshift.softmax(x @ means.T - (means**2).sum(axis=1) / 2 + np.log(here)), y

    return *drawn(n, here), drawn(m, there)[0]


def sharp(n: int, m: int, seed: int) -> Sample:
    """Ten classes, most of the largest probabilities at exactly 1, all others rounded."""
    p, y, q = gaussian({**TEN, "spread": 1.3}, n, m, seed)
    return rounded(p), y, rounded(q)


def rounded(p: np.ndarray) -> np.ndarray:
    kept = np.round(np.where(p >= np.max(p, axis=1, keepdims=True), 0.0, p), 2)
    kept[np.arange(len(p)), p.argmax(axis=1)] = 1 - kept.sum(axis=1)
    return np.clip(kept, 0.0, 1.0)


@cache
def saved(path: Path) -> tuple[np.ndarray, np.ndarray]:
    return load(path)


def halves(path: Path, seed: int) -> Sample:
    p, y = saved(path)
    rng = np.random.default_rng(seed)
    source, rest = np.array_split(rng.permutation(len(y)), 2)
    target = rest[calshift.resample_label_shift(y[rest], imbalance_factor=10, rng=rng)]
    return p[source], y[source], p[target]


def tested(draw: Callable[..., Sample], seed: int) -> list[float]:
    """p-values of J, z, both, and of J by chi-square; degrees of freedom; distances. NaN: none."""
    check = calshift.check_label_shift(*draw(seed=seed), rng=seed)
    if check.p_value is None:
        return [np.nan] * 7
    directed = np.nan if check.direction_p_value is None else check.direction_p_value
    p = check.p_value, directed, check.joint_p_value, float(chdtrc(check.df, check.statistic))
    return [*p, check.df, check.distance_bound, check.detectable_distance]


def size_cases(folder: Path | None) -> Iterator[tuple[str, str, str, Callable[..., Sample]]]:
    for name, asked, sizes in GAUSSIAN:
        for n, m in sizes:
            yield name, str(n), str(m), partial(gaussian, asked, n, m)
    for K in (4, 10):
        yield f"few predicted, K = {K}", "2000", "2000", partial(few_predicted, K, 2000, 2000)
    yield "sharp, K = 10", "2000", "2000", partial(sharp, 2000, 2000)
    for path in sorted(folder.glob("*.npz")) if folder else []:
        draw = partial(halves, path)
        source, _, target = draw(seed=0)
        yield path.stem, str(len(source)), str(len(target)), draw


def size(pool: ProcessPoolExecutor, repeats: int, folder: Path | None) -> None:
    rows = []
    for name, n, m, draw in size_cases(folder):
        found = np.array(list(pool.map(partial(tested, draw), range(repeats), chunksize=10)))
        rejected = [f"{share:.3f}" for share in np.mean(found[:, :4] <= 0.05, axis=0)]
        df, bound, detectable = np.nanmean(found[:, 4:], axis=0)
        untested = f"{np.isnan(found[:, 0]).mean():.2f}"
        rows.append(
            [name, n, m, f"{df:.1f}", *rejected, f"{bound:.1%}", f"{detectable:.1%}", untested]
        )
        print(*rows[-1], flush=True)
    error = np.sqrt(0.05 * 0.95 / repeats)
    about = f"{__doc__}{SIZE}\nDraws: {repeats}; the standard error of .050 is {error:.3f}."
    head = ["predictions", "n", "m", "df", "J", "z", "joint", "chi-square"]
    head += ["bound", "detectable", "untested"]
    write_table("label_shift_size", about, head, rows)


POWER = """
Share of draws in which label shift is rejected: by the other version ("before"), by J, by z, and by
both together. 2000 source and 2000 target rows; the target has a long tail of 10 besides (K = 2: a
share of .25 in the place of .5). Gaussian: features are unit normal around class means, predictions
those of the source's Bayes classifier at temperature .6. Digits: scikit-learn's images (pixels 0 to
16) with normal noise of deviation 2 on every pixel, so that any number of rows can be drawn; half
of the images train a logistic regression, the other half is the population of both samples.
Nothing: label shift holds. The direction of z was chosen on K = 2, 3, 5, 10 and 30 with noise,
appearance and covariate, and judged on K = 2, 4, 10 and 20 with the other violations.

                 gaussian                            digits
    noise        features + normal noise of          pixel noise of deviation 2.5
                 deviation .5 (strong: 1)            (strong: 3) in the place of 2
    appearance   class 1 moved by .35 (strong: .7)   a quarter (strong: all) of the 3s moved
                 of the way to class 0               to the left by one pixel
    covariate    rows kept with probability          the same, z the standardised ink of the
                 logistic(1.5 z) (strong: 3 z), z    image among those of its class
                 the first feature about its
                 class's mean
    subgroup     half of a class's rows have noise
                 of .6, half 1.4; in the target
                 .3 and .7 (strong: .1 and .9)
    temperature  the target's probabilities at 1.2
                 (strong: 1.5) times the temperature
    labels       a tenth (strong: a fifth) of the
                 source's labels replaced; the
                 target lacks half of the classes
    kind         a fifth (strong: half) of class 0
                 moved to the middle of all classes
"""
VIOLATIONS = (
    "nothing", "noise", "appearance", "covariate", "subgroup", "temperature", "labels", "kind",
)  # fmt: skip
STRENGTHS = ("mild", "strong")
ROWS = 2000


def long_tail(K: int) -> np.ndarray:
    share = (3.0 if K == 2 else 10.0) ** (-np.arange(K) / (K - 1))
    return share / share.sum()


def kept(z: np.ndarray, slope: float, m: int, rng: np.random.Generator) -> np.ndarray:
    """Indices of the first m rows that a logistic choice keeps."""
    return np.flatnonzero(rng.random(len(z)) < 1 / (1 + np.exp(-slope * z)))[:m]


def violated_gaussian(K: int, n: int, violation: str, strong: bool, seed: int) -> Sample:
    rng = np.random.default_rng([seed, n, K])
    means = np.random.default_rng(24).normal(size=(K, K))
    tail = long_tail(K)
    hard = 0.5 if violation == "subgroup" else 0.0  # share of noisy rows

    def features(rows: int, prior: np.ndarray, hard: float) -> tuple[np.ndarray, np.ndarray]:
        y = rng.choice(K, rows, p=prior)
        spread = np.ones(rows)
        if violation == "subgroup":
            spread = np.where(rng.random(rows) < hard, 1.4, 0.6)
        return means[y] + spread[:, None] * rng.normal(size=(rows, K)), y

    def predicted(x: np.ndarray, temperature: float = 0.6) -> np.ndarray:
        return calshift.softmax((x @ means.T - (means**2).sum(axis=1) / 2) / temperature)

    source, y = features(n, np.full(K, 1 / K), hard)
    if violation == "labels":
        tail = np.where(np.arange(K) < (K + 1) // 2, tail, 0.0)
        wrong = rng.random(n) < (0.2 if strong else 0.1)
        y = np.where(wrong, (y + rng.integers(1, K, n)) % K, y)
    if violation == "subgroup":
        hard = 0.9 if strong else 0.7
    target, hidden = features(4 * n if violation == "covariate" else n, tail / tail.sum(), hard)
    if violation == "noise":
        target += (1.0 if strong else 0.5) * rng.normal(size=target.shape)
    elif violation == "appearance":
        target[hidden == 1] += (0.7 if strong else 0.35) * (means[0] - means[1])
    elif violation == "covariate":
        target = target[kept((target - means[hidden])[:, 0], 3.0 if strong else 1.5, n, rng)]
    elif violation == "kind":
        new = (hidden == 0) & (rng.random(n) < (0.5 if strong else 0.2))
        target[new] -= means[0]
    drift = (1.5 if strong else 1.2) if violation == "temperature" else 1.0
    return predicted(source), y, predicted(target, 0.6 * drift)


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


WORLDS: dict[str, Callable[..., Sample]] = {
    "gaussian, K = 2": partial(violated_gaussian, 2),
    "gaussian, K = 4": partial(violated_gaussian, 4),
    "gaussian, K = 10": partial(violated_gaussian, 10),
    "gaussian, K = 30": partial(violated_gaussian, 30),
    "digits, K = 10": violated_digits,
}
ON_DIGITS = VIOLATIONS[:4]


def outcomes(draw: Callable[..., Sample], seed: int) -> list[bool]:
    """Whether J, z, and the test as a whole reject."""
    check = calshift.check_label_shift(*draw(seed=seed), rng=seed)
    p = (getattr(check, name, None) for name in ("p_value", "direction_p_value"))
    return [*(one is not None and one <= check.level for one in p), check.rejected]


def powers(pool: ProcessPoolExecutor, repeats: int, changes: list[str]) -> Iterator[list[Any]]:
    """A world, strength and violation, and the shares rejected."""
    for world, strength, violation in product(WORLDS, changes, VIOLATIONS):
        if world.startswith("digits") and violation not in ON_DIGITS:
            continue
        draw = partial(WORLDS[world], ROWS, violation, strength == "strong")
        found = list(pool.map(partial(outcomes, draw), range(repeats), chunksize=10))
        yield [world, strength, violation, *np.mean(found, axis=0).tolist()]


def power(pool: ProcessPoolExecutor, repeats: int, changes: list[str], before: Path | None) -> None:
    rows, others = [], []
    if before is not None:
        command = [sys.executable, __file__, "powers", "--repeats", str(repeats)]
        command += ["--changes", *changes]
        environment = {**os.environ, "PYTHONPATH": str(before)}
        done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE)
        others = [json.loads(line)[-1] for line in done.stdout.splitlines()]
    for k, (world, strength, violation, *shares) in enumerate(powers(pool, repeats, changes)):
        cells = [f"{share:.2f}" for share in (*others[k : k + 1], *shares)]
        rows.append([world, violation, strength, *cells])
        print(*rows[-1], flush=True)
    error = np.sqrt(0.25 / repeats)
    about = f"{__doc__}{POWER}\nDraws: {repeats}; standard errors are {error:.3f} at most."
    columns = [*(["before"] if others else []), "J", "z", "joint"]
    write_table("label_shift_power", about, ["predictions", "violation", "change", *columns], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["size", "power", "powers"])
    parser.add_argument("--repeats", type=int)
    parser.add_argument("--predictions", type=Path)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--changes", nargs="+", choices=STRENGTHS, default=list(STRENGTHS))
    parser.add_argument("--jobs", type=int, default=1)
    asked = parser.parse_args()
    with ProcessPoolExecutor(asked.jobs) as pool:
        if asked.what == "size":
            size(pool, asked.repeats or 400, asked.predictions)
        elif asked.what == "power":
            power(pool, asked.repeats or 150, asked.changes, asked.before)
        else:
            for line in powers(pool, asked.repeats or 150, asked.changes):
                print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
