"""Labelled images from disk: what a classifier is trained on and what it is tested on."""

from __future__ import annotations

import gzip
import io
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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


def cifar(folder: Path, classes: int = 10) -> tuple[Images, Images]:
    """Training and test images in the files that torchvision unpacks for CIFAR-10 or CIFAR-100.

    Those are pickles: read from a source that you trust.
    """
    ten = classes == 10
    inner = folder / ("cifar-10-batches-py" if ten else "cifar-100-python")
    inner = inner if inner.is_dir() else folder
    names = (
        ([f"data_batch_{k}" for k in range(1, 6)], ["test_batch"]) if ten else (["train"], ["test"])
    )
    told = _unpickled(inner / ("batches.meta" if ten else "meta"))
    titles = tuple(told["label_names" if ten else "fine_label_names"])
    parts = []
    for files in names:
        read = [_unpickled(inner / name) for name in files]
        pixels = np.concatenate([one["data"] for one in read]).reshape(-1, 3, 32, 32)
        labels = np.concatenate([one["labels" if ten else "fine_labels"] for one in read])
        parts.append(Images(pixels, labels.astype(np.int64), titles))
    return parts[0], parts[1]


def _unpickled(path: Path) -> dict[str, Any]:
    if not path.exists():
        msg = f"no file {path}: name the folder to which torchvision.datasets.CIFAR10 downloads"
        raise FileNotFoundError(msg)
    with path.open("rb") as file:
        return dict(pickle.load(file, encoding="latin1"))


def jpeg_archive(path: Path) -> tuple[Images, Images]:
    """Training and test images in one npz with jpeg, offsets, labels, is_train and classes.

    Image i is the file jpeg[offsets[i]:offsets[i + 1]].
    """
    from PIL import Image

    with np.load(path, allow_pickle=False) as file:
        held = {name: file[name] for name in ("jpeg", "offsets", "labels", "is_train", "classes")}
    ends = zip(held["offsets"][:-1], held["offsets"][1:], strict=True)
    opened = (Image.open(io.BytesIO(held["jpeg"][a:b].tobytes())).convert("RGB") for a, b in ends)
    pixels = np.stack([np.asarray(image) for image in opened]).transpose(0, 3, 1, 2)
    images = Images(pixels, held["labels"].astype(np.int64), tuple(held["classes"].tolist()))
    return images.at(np.flatnonzero(held["is_train"])), images.at(np.flatnonzero(~held["is_train"]))


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
