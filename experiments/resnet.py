"""Residual networks for small images (He et al. 2016, section 4.2), for training here.

Depth is 6 n + 2: one convolution, three stages of n blocks with 16, 32 and 64 channels, and a
linear layer. Shortcuts have no parameters: strided, with zeros in the new channels.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

STAGES = (16, 32, 64)


class Block(nn.Module):
    """Two convolutions beside a shortcut."""

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.first_norm = nn.BatchNorm2d(outside)
        self.second = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.second_norm = nn.BatchNorm2d(outside)
        self.stride, self.grown = stride, outside - inside

    def forward(self, x: Tensor) -> Tensor:
        path = functional.relu(self.first_norm(self.first(x)))
        path = self.second_norm(self.second(path))
        shortcut = x[:, :, :: self.stride, :: self.stride]
        shortcut = functional.pad(shortcut, (0, 0, 0, 0, 0, self.grown))
        return functional.relu(path + shortcut)


class ResNet(nn.Module):
    """Images (rows, channels, height, width) to logits (rows, classes)."""

    def __init__(self, depth: int, classes: int, channels: int = 3) -> None:
        super().__init__()
        if depth < 8 or depth % 6 != 2:
            msg = f"depth must be 6 n + 2, as 20, 32, 56 and 110 are; got {depth}"
            raise ValueError(msg)
        self.first = nn.Conv2d(channels, STAGES[0], 3, 1, 1, bias=False)
        self.first_norm = nn.BatchNorm2d(STAGES[0])
        self.blocks = nn.Sequential(*_blocks((depth - 2) // 6))
        self.last = nn.Linear(STAGES[-1], classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight)

    def forward(self, x: Tensor) -> Tensor:
        x = self.blocks(functional.relu(self.first_norm(self.first(x))))
        return torch.as_tensor(self.last(x.mean(dim=(2, 3))))


def _blocks(each: int) -> list[Block]:
    inside, blocks = STAGES[0], []
    for stage, outside in enumerate(STAGES):
        for k in range(each):
            blocks.append(Block(inside, outside, 2 if stage > 0 and k == 0 else 1))
            inside = outside
    return blocks
