"""Probabilities in other forms: memory layouts, types, shapes, and values that are not allowed.

A variant is a maker and what must be true of a call with it: "equal", the same result as with the
plain array; "either", that or an error; "any", a valid result or an error; "refuse", an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.fuzz.strategies.samples import Rng, pick

Maker = Callable[[Rng, np.ndarray], Any]


class Subclass(np.ndarray):
    """A subclass without any behaviour of its own."""


def _negative_strides(rng: Rng, p: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(p[::-1])[::-1]


def _not_contiguous(rng: Rng, p: np.ndarray) -> np.ndarray:
    return np.repeat(p, 2, axis=0)[::2]


def _read_only(rng: Rng, p: np.ndarray) -> np.ndarray:
    p = p.copy()
    p.flags.writeable = False
    return p


def _unaligned(rng: Rng, p: np.ndarray) -> np.ndarray:
    raw = np.zeros(p.nbytes + 1, np.uint8)
    view = raw[1:].view(p.dtype).reshape(p.shape)
    view[...] = p
    return view


def _mapped(rng: Rng, p: np.ndarray) -> np.ndarray:
    import tempfile

    file = tempfile.TemporaryFile()  # noqa: SIM115  the map keeps it
    made = np.memmap(file, p.dtype, "w+", shape=p.shape)
    made[...] = p
    return made


def masked(rng: Rng, p: np.ndarray) -> Any:
    """One number masked."""
    mask = np.zeros(p.shape, bool)
    mask.flat[int(rng.integers(p.size))] = True
    return np.ma.MaskedArray(p, mask)


def _set(value: Callable[[Rng], Any]) -> Maker:
    """One number replaced; another number of the row keeps its value."""

    def make(rng: Rng, p: np.ndarray) -> np.ndarray:
        p = p.copy()
        p.flat[int(rng.integers(p.size))] = value(rng)
        return p

    return make


def _zero_row(rng: Rng, p: np.ndarray) -> np.ndarray:
    p = p.copy()
    p[int(rng.integers(len(p)))] = 0.0 if p.ndim == 2 else np.nan
    return p


def _reshape(rng: Rng, p: np.ndarray) -> np.ndarray:
    shapes = (p[None], p[..., None], p[:0], p.reshape(-1, 1), np.float64(0.5), p[0] if p.ndim == 2
              else p[:, None, None], np.zeros((0, 3)), np.zeros((3, 0)), np.zeros(0))  # fmt: skip
    return pick(rng, shapes)


def _retype(*kinds: str) -> Maker:
    def make(rng: Rng, p: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return p.astype(pick(rng, kinds))

    return make


def _structured(rng: Rng, p: np.ndarray) -> np.ndarray:
    flat = np.zeros(len(p), [("a", float), ("b", float)])
    flat["a"], flat["b"] = 0.5, 0.5
    return flat


LAYOUTS: dict[str, tuple[Maker, str]] = {
    "fortran order": (lambda rng, p: np.asfortranarray(p), "equal"),
    "negative strides": (_negative_strides, "equal"),
    "not contiguous": (_not_contiguous, "equal"),
    "read-only": (_read_only, "equal"),
    "unaligned": (_unaligned, "equal"),
    "memmap": (_mapped, "equal"),
    "subclass": (lambda rng, p: p.view(Subclass), "equal"),
    "matrix": (lambda rng, p: np.asmatrix(p.reshape(len(p), -1)), "either"),
    "masked": (masked, "refuse"),
    "masked without a mask": (lambda rng, p: np.ma.MaskedArray(p), "either"),
    "big-endian": (lambda rng, p: p.astype(">f8"), "equal"),
}
TYPES: dict[str, tuple[Maker, str]] = {
    "float16": (_retype("f2"), "any"),
    "float32": (_retype("f4"), "any"),
    "longdouble": (_retype("longdouble"), "any"),
    "integers": (_retype("i8", "u1", "i4", "bool"), "any"),
    "objects": (_retype("O"), "either"),
    "texts": (_retype("U", "S"), "refuse"),
    "complex": (_retype("c16"), "refuse"),
    "times": (_retype("M8[s]", "m8[s]"), "refuse"),
    "structured": (_structured, "refuse"),
}
VALUES: dict[str, tuple[Maker, str]] = {
    "NaN": (_set(lambda rng: np.nan), "refuse"),
    "infinite": (_set(lambda rng: pick(rng, (np.inf, -np.inf))), "refuse"),
    "negative": (_set(lambda rng: pick(rng, (-0.2, -1e-3))), "refuse"),
    "negative rounding": (_set(lambda rng: -1e-300), "any"),
    "above 1": (_set(lambda rng: pick(rng, (1.5, 1e300, 100.0))), "refuse"),
    "tiny": (_set(lambda rng: pick(rng, (1e-300, 5e-324, 1e-16, -0.0))), "any"),
    "row without mass": (_zero_row, "refuse"),
    "other sum": (lambda rng, p: p * pick(rng, (1.0009, 0.9991)), "any"),
    "percentages": (lambda rng, p: p * 100, "any"),
    "logits": (lambda rng, p: np.log(np.abs(p) + 1e-9), "any"),
    "other shape": (_reshape, "any"),
}
