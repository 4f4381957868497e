"""Fine-tune a pretrained model on a large data set on disk, and save its predictions.

    python -m experiments finetune --data iwildcam --folder DIR --model resnet50 [--epochs 10]
    python -m experiments finetune --data amazon --folder DIR --model distilbert-base-uncased

As the paper does (appendix): AdamW, the rate rising to 5e-4 over a tenth of the training and
falling to 0, weight decay 1e-3, gradients clipped at norm 5; 10 epochs of a pretrained model, for
ImageNet-LT 100 of a new one; random crops, flips and colours of images while training, the middle
when predicting. Crops are of the size that the model is made for, 224 or 384. Where the paper says
nothing: batches of 64, and before the crop the shorter side is scaled to 256/224 of it. Models are
timm's for images and those of transformers for texts.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from experiments.imagenet_lt import Parts, Rows, imagenet_lt
from experiments.inputs import Batches, Pictures, Prepare, Texts
from experiments.saved import PREDICTIONS, save
from experiments.train import schedule
from experiments.wilds import amazon, camelyon17, iwildcam, needed

PEAK, DECAY, CLIP = 5e-4, 1e-3, 5.0
MACHINE = ("folder", "results", "device", "workers")  # of one machine, no part of the origin


@dataclass(frozen=True)
class Data:
    """How it is read, and what the paper does with it unless other options are given."""

    load: Callable[..., Parts]
    options: dict[str, Any]
    texts: bool = False


WILDS = {"epochs": 10, "pretrained": True}
DATA = {
    "imagenet-lt": Data(imagenet_lt, {"epochs": 100, "pretrained": False}),
    "camelyon17": Data(camelyon17, WILDS | {"source_ratio": 5.0, "target_ratio": 1.0}),
    "iwildcam": Data(iwildcam, WILDS),
    "amazon": Data(amazon, WILDS, texts=True),
}
RATIOS = ("source_ratio", "target_ratio")


@dataclass(frozen=True)
class Plan:
    """What decides on the outcome of a training, and where and with how many helpers it runs."""

    epochs: int = 10
    batch: int = 64
    seed: int = 0
    device: str = "cpu"
    workers: int = 0


def main(arguments: list[str]) -> None:
    asked, ratios = _asked(arguments)
    parts = DATA[asked.data].load(asked.folder, np.random.default_rng(asked.seed), **ratios)
    model, prepare = built(asked, len(parts.training.classes))
    plan = Plan(asked.epochs, asked.batch, asked.seed, asked.device, asked.workers)
    name, started = f"{asked.data}-{Path(asked.model).name}", time.time()
    tuned(model, prepare, parts.training, plan, asked.results / f"{name}.pt")
    settings = origin(asked, parts, started)
    source, target = (
        (logits_of(model, prepare, part, plan), part.labels)
        for part in (parts.source, parts.target)
    )
    save(asked.results / f"{name}.npz", source, target, parts.source.classes, settings)


def origin(asked: argparse.Namespace, parts: Parts, started: float) -> dict[str, Any]:
    """What to know of the predictions; a checkpoint's earlier minutes are not among these."""
    return {
        **{k: v for k, v in vars(asked).items() if k not in MACHINE and v is not None},
        "model": Path(asked.model).name,
        "training_rows": len(parts.training),
        "minutes": round((time.time() - started) / 60, 1),
    }


def built(asked: argparse.Namespace, classes: int) -> tuple[Any, Prepare]:
    """The model, and what makes its input."""
    import torch

    torch.manual_seed(asked.seed)
    make = text_model if DATA[asked.data].texts else image_model
    return make(asked.model, classes, asked.pretrained, asked.side)


def image_model(
    name: str, classes: int, pretrained: bool, side: int | None = None
) -> tuple[Any, Pictures]:
    """By timm's name; images are of the size that it was made for, unless another is asked for."""
    timm = needed("timm", "timm")
    needed("PIL", "pillow")
    model = timm.create_model(name, pretrained=pretrained, num_classes=classes)
    made = timm.data.resolve_model_data_config(model)
    return model, Pictures(side or made["input_size"][-1], made["mean"], made["std"])


def text_model(
    name: str, classes: int, pretrained: bool, side: int | None = None
) -> tuple[Any, Texts]:
    """By its name at Hugging Face, or from a folder; texts have no side."""
    transformers = needed("transformers", "transformers")
    kind = transformers.AutoModelForSequenceClassification
    if pretrained:
        model = kind.from_pretrained(name, num_labels=classes)
    else:
        settings = transformers.AutoConfig.from_pretrained(name, num_labels=classes)
        model = kind.from_config(settings)
    return model, Texts(transformers.AutoTokenizer.from_pretrained(name))


def tuned(
    model: Any,
    prepare: Prepare,
    rows: Rows,
    plan: Plan,
    checkpoint: Path | None = None,
    stop: int | None = None,
) -> Any:
    """The model after its epochs, or earlier; goes on from the checkpoint if there is one."""
    import torch

    model.to(plan.device)
    steps = -(-len(rows) // plan.batch)
    optimizer = torch.optim.AdamW(model.parameters(), PEAK, weight_decay=DECAY)
    rate = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda k: schedule(k, plan.epochs * steps))
    state = {"model": model, "optimizer": optimizer, "rate": rate}
    made_of = {"epochs": plan.epochs, "batch": plan.batch, "seed": plan.seed, "rows": len(rows)}
    for epoch in range(_restored(checkpoint, state, made_of), stop or plan.epochs):
        started = time.time()
        loss, accuracy = _epoch(epoch, model, optimizer, rate, prepare, rows, plan)
        print(f"epoch {epoch + 1}/{plan.epochs}  loss {loss:.4f}  accuracy {accuracy:.4f}  "
              f"{time.time() - started:.0f} s", flush=True)  # fmt: skip
        _kept(checkpoint, state, {"done": epoch + 1, "made_of": made_of})
    return model.eval()


def _epoch(
    epoch: int, model: Any, optimizer: Any, rate: Any, prepare: Prepare, rows: Rows, plan: Plan
) -> tuple[float, float]:
    """One pass over the rows in random order: mean loss and accuracy."""
    import torch

    model.train()
    torch.manual_seed(plan.seed + 1000 * (epoch + 1))  # dropout is the same after an interruption
    order = np.random.default_rng([plan.seed, epoch]).permutation(len(rows))
    batches = Batches(rows, order, prepare, plan.batch, (plan.seed, epoch))
    sums = np.zeros(3)
    for step, (x, y) in enumerate(_loader(batches, plan), 1):
        sums += _step(model, optimizer, x, y.to(plan.device))
        rate.step()
        told(f"epoch {epoch + 1}: loss {sums[0] / sums[2]:.4f}", step, len(batches))
    return sums[0] / sums[2], sums[1] / sums[2]


def _step(model: Any, optimizer: Any, x: Any, y: Any) -> tuple[float, int, int]:
    """Loss of all rows of a batch before the step, how many were right, and how many there are."""
    import torch

    logits = scores(model, x, y.device)
    loss = torch.nn.functional.cross_entropy(logits, y)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
    optimizer.step()
    return loss.item() * len(y), int((logits.argmax(1) == y).sum()), len(y)


def logits_of(model: Any, prepare: Prepare, rows: Rows, plan: Plan) -> np.ndarray:
    """(rows, K), without anything random."""
    import torch

    model.to(plan.device).eval()
    batches, found = Batches(rows, np.arange(len(rows)), prepare, plan.batch), []
    with torch.inference_mode():
        for step, (x, _) in enumerate(_loader(batches, plan), 1):
            found.append(scores(model, x, plan.device).float().cpu().numpy())
            told("predicted", step, len(batches))
    return np.concatenate(found)


def scores(model: Any, x: Any, device: Any) -> Any:
    """Logits; models of texts take several tensors by name, and answer with more than logits."""
    if isinstance(x, dict):
        return model(**{name: part.to(device) for name, part in x.items()}).logits
    return model(x.to(device))


def told(what: str, step: int, steps: int) -> None:
    """Progress on one line of the terminal."""
    if step % max(1, steps // 100) == 0 or step == steps:
        end = "\n" if step == steps else ""
        print(f"\r{what}, {step} of {steps} batches", end=end, file=sys.stderr, flush=True)


def _loader(batches: Batches, plan: Plan) -> Any:
    from torch.utils.data import DataLoader

    return DataLoader(batches, batch_size=None, num_workers=plan.workers)  # type: ignore[arg-type]


def _kept(checkpoint: Path | None, state: dict[str, Any], about: dict[str, Any]) -> None:
    """Into another file first: an interruption leaves the old checkpoint whole."""
    import torch

    if checkpoint is not None:
        checkpoint.parent.mkdir(parents=True, exist_ok=True)
        unfinished = checkpoint.with_suffix(".unfinished.pt")
        torch.save(about | {name: part.state_dict() for name, part in state.items()}, unfinished)
        unfinished.replace(checkpoint)


def _restored(checkpoint: Path | None, state: dict[str, Any], made_of: dict[str, int]) -> int:
    """Epochs done, after loading them."""
    import torch

    if checkpoint is None or not checkpoint.exists():
        return 0
    saved = torch.load(checkpoint, map_location="cpu", weights_only=True)
    if saved["made_of"] != made_of:
        msg = f"{checkpoint} is of {saved['made_of']}, asked for is {made_of}: move it away"
        raise ValueError(msg)
    for name, part in state.items():
        part.load_state_dict(saved[name])
    return int(saved["done"])


def _asked(arguments: list[str]) -> tuple[argparse.Namespace, dict[str, float]]:
    """Options, where not given those of the data; and the ratios, if any, that it is drawn with."""
    parser = _parser()
    asked = parser.parse_args(arguments)
    options = DATA[asked.data].options
    if any(vars(asked)[name] is not None and name not in options for name in RATIOS):
        parser.error("--source-ratio and --target-ratio are for camelyon17")
    for name, value in {**options, "device": _device()}.items():
        if vars(asked)[name] is None:
            setattr(asked, name, value)
    return asked, {name: vars(asked)[name] for name in RATIOS if name in options}


def _device() -> str:
    return "cuda" if needed("torch", "torch").cuda.is_available() else "cpu"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m experiments finetune")
    add = parser.add_argument
    add("--data", choices=tuple(DATA), required=True)
    add("--folder", type=Path, required=True, help="of ImageNet, or the root_dir of wilds")
    add("--model", required=True, help="a name of timm or transformers")
    add("--pretrained", action=argparse.BooleanOptionalAction, help="or from random numbers")
    add("--epochs", type=int, help="100 for imagenet-lt, else 10")
    add("--batch", type=int, default=64)
    add("--side", type=int, help="of images; else that of the model")
    add("--source-ratio", type=float, help="negatives to positives of camelyon17, else 5")
    add("--target-ratio", type=float, help="the same of its target, else 1")
    add("--seed", type=int, default=0)
    add("--device", help="cuda where there is one, else cpu")
    add("--workers", type=int, default=min(4, os.cpu_count() or 1), help="that read images")
    add("--results", type=Path, default=PREDICTIONS)
    return parser
