"""The label-free calibration error in the way of the paper's authors: tensors, a loop over points.

Per class and bin two masks over all points, then a Python loop over the bin's target points.
"""

from __future__ import annotations

from itertools import pairwise

import torch

BINS = 15


def equal_mass_edges(points: torch.Tensor) -> torch.Tensor:
    edges = torch.quantile(points, torch.linspace(0, 1, BINS + 1, dtype=points.dtype))
    edges[0], edges[-1] = -1.0, 1.0  # a score of 0 has a bin as well
    return edges


def class_error(
    scores: torch.Tensor, hits: torch.Tensor, points: torch.Tensor, weight: float, norm: float
) -> float:
    """Mean of |point - R_b|^norm, R_b = (weight/n) hits_b / ((M_b - 1)/(m - 1))."""
    n, m, error = len(scores), len(points), 0.0
    for low, high in pairwise(equal_mass_edges(points)):
        inside_source = (scores > low) & (scores <= high)
        inside_target = (points > low) & (points <= high)
        if inside_target.sum() < 2:
            continue
        events = weight * hits[inside_source].sum() / n
        frequency = events / ((inside_target.sum() - 1) / (m - 1))
        for point in points[inside_target]:
            error += abs(point - frequency) ** norm
    return float(error) / m


def authors_error(
    p: torch.Tensor, y: torch.Tensor, q: torch.Tensor, w: torch.Tensor, norm: float = 2
) -> float:
    """The paper's classwise CE_p^p with equal-mass bins, point by point."""
    K = p.shape[1]
    return sum(class_error(p[:, c], y == c, q[:, c], float(w[c]), norm) for c in range(K)) / K
