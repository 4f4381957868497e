"""Valid samples: probabilities with ties, zeros and other rare but allowed values, and labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Rng = np.random.Generator


@dataclass
class Sample:
    """A labelled source and an unlabelled target of K classes; 1-D where binary."""

    p: np.ndarray
    y: np.ndarray
    q: np.ndarray
    K: int

    @property
    def binary(self) -> bool:
        """Whether scores of two classes are one column."""
        return self.p.ndim == 1


def pick(rng: Rng, among: Any) -> Any:
    """One of several values, of any type."""
    among = list(among)
    return among[int(rng.integers(len(among)))]


def chance(rng: Rng, share: float) -> bool:
    """True in a share of the cases."""
    return bool(rng.random() < share)


def _dirichlet(rng: Rng, n: int, K: int) -> np.ndarray:
    return rng.dirichlet(np.full(K, pick(rng, (0.3, 0.7, 2.0))), n)


def _tied(rng: Rng, n: int, K: int) -> np.ndarray:
    p = np.round(_dirichlet(rng, n, K) * 8)
    p[p.sum(axis=1) == 0] = 1
    return p / p.sum(axis=1, keepdims=True)


def _one_hot(rng: Rng, n: int, K: int) -> np.ndarray:
    return np.eye(K)[rng.integers(0, K, n)]


def _near_one_hot(rng: Rng, n: int, K: int) -> np.ndarray:
    p = np.full((n, K), pick(rng, (1e-12, 1e-300, 5e-324)))
    p[np.arange(n), rng.integers(0, K, n)] = 1.0
    return p


def _equal_rows(rng: Rng, n: int, K: int) -> np.ndarray:
    return np.tile(_dirichlet(rng, 1, K), (n, 1))


def _uniform(rng: Rng, n: int, K: int) -> np.ndarray:
    return np.full((n, K), 1 / K)


def _rounded(rng: Rng, n: int, K: int) -> np.ndarray:
    p = np.round(_dirichlet(rng, n, K), 3)
    return p if np.abs(p.sum(axis=1) - 1).max() < 9e-4 else p / p.sum(axis=1, keepdims=True)


def _some_certain(rng: Rng, n: int, K: int) -> np.ndarray:
    p = _dirichlet(rng, n, K)
    certain = rng.random(n) < 0.3
    p[certain] = _one_hot(rng, n, K)[certain]
    return p


def _duplicated(rng: Rng, n: int, K: int) -> np.ndarray:
    return _dirichlet(rng, 3, K)[rng.integers(0, 3, n)]


STYLES: dict[str, Callable[[Rng, int, int], np.ndarray]] = {
    "dirichlet": _dirichlet, "tied": _tied, "one-hot": _one_hot, "near one-hot": _near_one_hot,
    "equal rows": _equal_rows, "uniform": _uniform, "rounded": _rounded,
    "some certain": _some_certain, "duplicated": _duplicated,
}  # fmt: skip


def draw_probabilities(rng: Rng, n: int, K: int, style: str | None = None) -> np.ndarray:
    """(n, K) probabilities; half of all are of the common style."""
    if style is None:
        style = "dirichlet" if chance(rng, 0.5) else pick(rng, STYLES)
    return STYLES[style](rng, n, K)


def draw_labels(rng: Rng, p: np.ndarray, every_class: bool = True) -> np.ndarray:
    """Labels that follow the probabilities, more or less overconfidently."""
    n, K = p.shape
    share = pick(rng, (0.0, 0.3, 0.8))
    mixed = (1 - share) * p / p.sum(axis=1, keepdims=True) + share / K
    y = (mixed.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, K - 1)
    if every_class and n >= 2 * K:
        y[: 2 * K] = np.tile(np.arange(K), 2)
    elif n > 1:
        y[:2] = (0, 1)
    return y


def draw_sample(rng: Rng, rows: tuple[int, int] = (20, 200), binary: bool | None = None) -> Sample:
    """A valid sample; in one case of ten a small one, or one of many classes."""
    small = chance(rng, 0.1)
    low, high = (2, 12) if small else rows
    n, m = (int(k) for k in rng.integers(low, high + 1, 2))
    K = int(pick(rng, (2, 2, 3, 3, 3, 4, 5, 5, 7, int(rng.integers(2, 41)))))
    p, q = draw_probabilities(rng, n, K), draw_probabilities(rng, m, K)
    y = draw_labels(rng, p, chance(rng, 0.9))
    if binary or (binary is None and K == 2 and chance(rng, 0.5)):
        return Sample(p[:, 1].copy(), np.minimum(y, 1), q[:, 1].copy(), 2)
    return Sample(p, y, q, K)
