"""Labelled images from disk: what a classifier is trained on and what it is tested on."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calshift import resample_label_shift

FASHION = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
    "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)  # fmt: skip
DEBIAN_FASHION = Path("/usr/share/datasets/fashion-mnist")


@dataclass(frozen=True)
class Images:
    """pixels (rows, channels, height, width) as bytes, labels 0..K-1 and the classes' names."""

    pixels: np.ndarray
    labels: np.ndarray
    classes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.labels)

    def at(self, rows: np.ndarray) -> Images:
        return Images(self.pixels[rows], self.labels[rows], self.classes)


def fashion_mnist(folder: Path = DEBIAN_FASHION) -> tuple[Images, Images]:
    """Training and test images in the four files of Fashion-MNIST (Xiao et al. 2017).

    Debian's package dataset-fashion-mnist puts them where they are looked for.
    """
    if not folder.is_dir():
        msg = f"no folder {folder}: apt-get install dataset-fashion-mnist, or name another"
        raise FileNotFoundError(msg)
    parts = []
    for part in ("train", "t10k"):
        pixels = idx(folder / f"{part}-images-idx3-ubyte.gz")[:, None]
        labels = idx(folder / f"{part}-labels-idx1-ubyte.gz").astype(np.int64)
        parts.append(Images(pixels, labels, FASHION))
    return parts[0], parts[1]


def idx(path: Path) -> np.ndarray:
    """An array of bytes in the IDX format: two zeros, the type, the rank, the sizes, the values."""
    with gzip.open(path) as file:
        content = file.read()
    if content[:3] != b"\0\0\x08":
        msg = f"{path} is no IDX file of bytes"
        raise ValueError(msg)
    rank = content[3]
    shape = np.frombuffer(content, ">u4", rank, 4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * rank).reshape(shape)


def long_tailed(images: Images, imbalance: float, rng: np.random.Generator) -> Images:
    """Fewer images of each later class, down to 1 / imbalance of the first one's."""
    return images.at(resample_label_shift(images.labels, imbalance_factor=imbalance, rng=rng))


def pooled(first: Images, second: Images, rng: np.random.Generator) -> tuple[Images, Images]:
    """All images divided anew at random, with as many of each class in both parts as before.

    Test sets are often a little harder than training sets; divided anew, the parts differ by
    chance alone.
    """
    pixels = np.concatenate([first.pixels, second.pixels])
    labels = np.concatenate([first.labels, second.labels])
    everything = Images(pixels, labels, first.classes)
    moved = np.zeros(len(labels), bool)
    for c, count in enumerate(np.bincount(second.labels, minlength=len(first.classes))):
        moved[rng.choice(np.flatnonzero(labels == c), count, replace=False)] = True
    return everything.at(np.flatnonzero(~moved)), everything.at(np.flatnonzero(moved))


def split(images: Images, share: float, rng: np.random.Generator) -> tuple[Images, Images]:
    """The images less a share of every class, and that share: both with the same mix."""
    held = np.zeros(len(images), bool)
    for c in range(len(images.classes)):
        rows = np.flatnonzero(images.labels == c)
        held[rng.choice(rows, round(share * len(rows)), replace=False)] = True
    return images.at(np.flatnonzero(~held)), images.at(np.flatnonzero(held))
