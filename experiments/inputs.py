"""What models are fed with: images cut and coloured, texts as tokens, a batch at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.imagenet_lt import Rows

COLOURS, MARGIN, LONGEST = (0.6, 1.4), 256 / 224, 512


@dataclass(frozen=True)
class Pictures:
    """Files of images to (rows, 3, side, side); with a generator cropped and changed at random."""

    side: int = 224
    mean: tuple[float, ...] = (0.485, 0.456, 0.406)
    spread: tuple[float, ...] = (0.229, 0.224, 0.225)

    def __call__(self, files: list[str], rng: np.random.Generator | None) -> Any:
        import torch

        pixels = np.stack([self.one(file, rng) for file in files]).astype(np.float32) / 255
        normed = (pixels - np.array(self.mean, np.float32)) / np.array(self.spread, np.float32)
        return torch.from_numpy(np.ascontiguousarray(normed.transpose(0, 3, 1, 2)))

    def one(self, file: str, rng: np.random.Generator | None) -> np.ndarray:
        """Bytes (side, side, 3)."""
        from PIL import Image

        with Image.open(file) as opened:
            image = opened.convert("RGB")
        scale = MARGIN * self.side / min(image.size)
        width, height = (max(self.side, round(scale * size)) for size in image.size)
        share = (0.5, 0.5) if rng is None else rng.random(2)
        left, top = round(share[0] * (width - self.side)), round(share[1] * (height - self.side))
        image = image.resize((width, height), Image.Resampling.BILINEAR)
        image = image.crop((left, top, left + self.side, top + self.side))
        return np.asarray(image if rng is None else changed(image, rng))


def changed(image: Any, rng: np.random.Generator) -> Any:
    """Mirrored or not; brightness, contrast and saturation times 0.6 to 1.4, in random order."""
    from PIL import ImageEnhance, ImageOps

    image = ImageOps.mirror(image) if rng.random() < 0.5 else image
    for k in rng.permutation(3):
        change = (ImageEnhance.Brightness, ImageEnhance.Contrast, ImageEnhance.Color)[k]
        image = change(image).enhance(rng.uniform(*COLOURS))
    return image


@dataclass(frozen=True)
class Texts:
    """Texts to tokens, cut where the model ends; nothing is random."""

    tokenizer: Any

    def __call__(self, texts: list[str], rng: np.random.Generator | None) -> dict[str, Any]:
        longest = min(LONGEST, self.tokenizer.model_max_length)
        made = self.tokenizer(texts, padding=True, truncation=True, max_length=longest,
                              return_tensors="pt")  # fmt: skip
        return dict(made)


Prepare = Pictures | Texts | Callable[[list[str], np.random.Generator | None], Any]


@dataclass(frozen=True)
class Batches:
    """Batches of rows, each made ready when it is asked for, the same in whichever process."""

    rows: Rows
    order: np.ndarray
    prepare: Prepare
    size: int
    seed: tuple[int, ...] | None = None

    def __len__(self) -> int:
        return -(-len(self.order) // self.size)

    def __getitem__(self, k: int) -> tuple[Any, Any]:
        import torch

        part = self.rows.at(self.order[k * self.size : (k + 1) * self.size])
        rng = None if self.seed is None else np.random.default_rng([*self.seed, k])
        return self.prepare(part.items, rng), torch.from_numpy(part.labels)
