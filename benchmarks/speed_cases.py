"""Data of the speed benchmark, the same in every process. Needs numpy alone."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

SPREAD, TEMPERATURE = 2.0, 1.3  # of the logits, and of the labels beside the model
CELLS = 500_000  # made at a time, so that making the data takes no memory beside them
Sample = tuple[np.ndarray, np.ndarray]


def softmax(logits: np.ndarray) -> np.ndarray:
    raised = np.exp(logits - logits.max(axis=1, keepdims=True))
    return raised / raised.sum(axis=1, keepdims=True)


def drawn(p: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One label a row."""
    below = np.cumsum(p, axis=1) < rng.uniform(size=(len(p), 1))
    return np.minimum(below.sum(axis=1), p.shape[1] - 1)


def parts(n: int, K: int) -> list[slice]:
    rows = max(1, CELLS // K)
    return [slice(start, min(n, start + rows)) for start in range(0, n, rows)]


@lru_cache(maxsize=2)
def predictions(n: int, K: int, seed: int) -> Sample:
    """(n, K) probabilities in float32, too confident, and labels."""
    rng = np.random.default_rng([seed, n, K])
    p, y = np.empty((n, K), np.float32), np.empty(n, np.int64)
    for part in parts(n, K):
        logits = rng.standard_normal(p[part].shape, np.float32) * np.float32(SPREAD)
        p[part] = softmax(logits)
        y[part] = drawn(softmax(logits / np.float32(TEMPERATURE)), rng)
    return p, y


@lru_cache(maxsize=2)
def scores(n: int, seed: int) -> Sample:
    """The same for two classes: (n,) probabilities of the second, and labels."""
    rng = np.random.default_rng([seed, n])
    p, y = np.empty(n, np.float32), np.empty(n, np.int64)
    for part in parts(n, 1):
        logits = rng.standard_normal(len(p[part]), np.float32) * np.float32(SPREAD)
        p[part] = 1 / (1 + np.exp(-logits))
        y[part] = rng.uniform(size=len(logits)) < 1 / (1 + np.exp(-logits / TEMPERATURE))
    return p, y


def mild_weights(y: np.ndarray, K: int) -> np.ndarray:
    """Class weights from 0.7 to 1.3 or so; their mean over the source is 1."""
    w = np.linspace(0.7, 1.3, K)
    return w / (np.bincount(y, minlength=K) / len(y) @ w)
