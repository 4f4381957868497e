"""Train a residual network on a long-tailed source, and save its predictions and their origin.

    python -m experiments train [--data fashion-mnist] [--depth 20] [--imbalance 10] [--epochs 30]
        [--pool]
    python -m experiments train --data cifar10 --folder FOLDER [--epochs 60]

As the paper trains on CIFAR (appendix): SGD, the rate rising to 0.1 over a tenth of the training
and falling to 0 (here linearly), weight decay 5e-4, gradients clipped at norm 5, horizontal flips;
a fifth of the long-tailed images is held out as the labelled source, and the balanced test set is
the target; with --pool that set is drawn from all images. Where the paper says nothing: momentum
0.9, batches of 128.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from experiments.images import (
    Images,
    cifar,
    fashion_mnist,
    jpeg_archive,
    long_tailed,
    pooled,
    split,
)
from experiments.saved import PREDICTIONS, save

DATA = ("fashion-mnist", "cifar10", "cifar100")
PEAK, MOMENTUM, DECAY, CLIP, WARM, BATCH, HELD = 0.1, 0.9, 5e-4, 5.0, 0.1, 128, 0.2


def main(arguments: list[str]) -> None:
    asked = _parser().parse_args(arguments)
    rng = np.random.default_rng(asked.seed)
    training, target = images(asked.data, asked.folder)
    if asked.pool:
        training, target = pooled(training, target, rng)
    training, source = split(long_tailed(training, asked.imbalance, rng), HELD, rng)
    pool = "-pooled" if asked.pool else ""
    name = f"{asked.data}-lt{asked.imbalance:g}-resnet{asked.depth}{pool}"
    checkpoint = asked.results / f"{name}.pt"
    model = trained(training, asked.depth, asked.epochs, asked.seed, checkpoint)
    settings = {
        key: value for key, value in vars(asked).items() if key not in ("results", "folder")
    }
    settings["training_rows"] = len(training)
    found = [(logits_of(model, part), part.labels) for part in (source, target)]
    save(asked.results / f"{name}.npz", found[0], found[1], source.classes, settings)


def images(data: str, folder: Path | None) -> tuple[Images, Images]:
    """Training and test images by name."""
    if data == "fashion-mnist":
        return fashion_mnist() if folder is None else fashion_mnist(folder)
    if folder is None:
        sys.exit(f"--folder must name the folder of {data}, as torchvision unpacks it, or an npz")
    if folder.suffix == ".npz":
        return jpeg_archive(folder)
    return cifar(folder, 10 if data == "cifar10" else 100)


def trained(
    images: Images,
    depth: int,
    epochs: int,
    seed: int,
    checkpoint: Path | None = None,
    stop: int | None = None,
) -> Any:
    """The network after its epochs, or earlier; goes on from the checkpoint if there is one."""
    import torch

    from experiments.resnet import ResNet

    torch.manual_seed(seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = ResNet(depth, len(images.classes), images.pixels.shape[1]).to(device)
    steps = -(-len(images) // BATCH)
    optimizer = torch.optim.SGD(model.parameters(), PEAK, MOMENTUM, weight_decay=DECAY)
    rate = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda k: schedule(k, epochs * steps))
    state = {"model": model, "optimizer": optimizer, "rate": rate}
    done = _restored(checkpoint, state)
    for epoch in range(done, epochs if stop is None else stop):
        started = time.time()
        loss, accuracy = _epoch(
            model, optimizer, rate, images, np.random.default_rng([seed, epoch])
        )
        took = time.time() - started
        print(f"epoch {epoch + 1}/{epochs}  loss {loss:.4f}  accuracy {accuracy:.4f}  {took:.0f} s",
              flush=True)  # fmt: skip
        if checkpoint is not None:
            checkpoint.parent.mkdir(parents=True, exist_ok=True)
            saved = {name: part.state_dict() for name, part in state.items()}
            torch.save({"done": epoch + 1, **saved}, checkpoint)
    return model.eval()


def schedule(step: int, steps: int) -> float:
    """Share of the peak rate: up over the first tenth, then down to 0, both in a straight line."""
    warm = max(1, round(WARM * steps))
    return (step + 1) / warm if step < warm else (steps - step) / max(1, steps - warm)


def _restored(checkpoint: Path | None, state: dict[str, Any]) -> int:
    """Epochs done, after loading them."""
    import torch

    if checkpoint is None or not checkpoint.exists():
        return 0
    saved = torch.load(checkpoint, weights_only=True, map_location="cpu")
    for name, part in state.items():
        part.load_state_dict(saved[name])
    return int(saved["done"])


def _epoch(
    model: Any, optimizer: Any, rate: Any, images: Images, rng: np.random.Generator
) -> tuple[float, float]:
    """One pass over the images in random order: mean loss and accuracy."""
    import torch
    from torch.nn import functional

    model.train()
    device = next(model.parameters()).device
    order, loss_sum, right = rng.permutation(len(images)), 0.0, 0
    for start in range(0, len(order), BATCH):
        rows = order[start : start + BATCH]
        flipped = torch.from_numpy(rng.random(len(rows)) < 0.5)
        x, y = as_input(images.pixels[rows]), torch.from_numpy(images.labels[rows]).to(device)
        x = torch.where(flipped[:, None, None, None], x.flip(3), x)
        logits = model(x.to(device))
        loss = functional.cross_entropy(logits, y)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        rate.step()
        loss_sum += loss.item() * len(rows)
        right += int((logits.argmax(1) == y).sum())
    return loss_sum / len(order), right / len(order)


def as_input(pixels: np.ndarray) -> Any:
    """Bytes to floats around 0, of spread near 1."""
    import torch

    return torch.from_numpy((pixels.astype(np.float32) / 255 - 0.5) / 0.25)


def logits_of(model: Any, images: Images) -> np.ndarray:
    """(rows, K)."""
    import torch

    device = next(model.parameters()).device
    with torch.no_grad():
        parts = [
            model(as_input(images.pixels[start : start + 500]).to(device)).cpu().numpy()
            for start in range(0, len(images), 500)
        ]
    return np.concatenate(parts)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m experiments train")
    parser.add_argument("--data", choices=DATA, default="fashion-mnist")
    parser.add_argument("--folder", type=Path, help="where the images are, if elsewhere than usual")
    parser.add_argument("--depth", type=int, default=20)
    parser.add_argument("--imbalance", type=float, default=10.0)
    parser.add_argument("--pool", action="store_true", help="divide all images anew at random")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--results", type=Path, default=PREDICTIONS)
    return parser
