"""The temperature that minimises the label-free calibration error.

The debiased classwise CE_2^2 of docs/mathematics.md section 4, from sums over fixed fine cells, so
that no row is sorted. Section 11 has the details.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calshift._core.predictions import Predictions

HATS = 12  # of each class
LEAST_SLACK = 0.1  # of 1 less a row's leverage
LEAST_ROWS = 0.5  # of weight with no error, added to every hat
CELLS, SPAN = 128, 12.0  # fine cells, even in the logit of the score from -12 to 12
RANGE = (0.05, 10.0)  # of 1 / temperature
SUBSAMPLE = 300_000  # probabilities of either sample in the first search
FIRST, LAST = (-0.5, 0.0, 0.5), (-0.3, -0.1, 0.1, 0.3)  # steps in log slope
MOST_SEARCHES = 5
SINGLE = 300_000  # probabilities above which single precision is sufficient
MIDDLES = 1 / (1 + np.exp(-SPAN * (2 * np.arange(CELLS) + 1 - CELLS) / CELLS))
ANGLES = np.arcsin(np.sqrt(MIDDLES)) * 2 / np.pi


@dataclass(frozen=True)
class TemperedRows:
    """Scores of both samples, and the weight of every source row."""

    source: np.ndarray  # (n, K) log p
    target: np.ndarray
    label: np.ndarray  # (n,)
    weight: np.ndarray  # (n,) of the class, times the row's frequency
    weight2: np.ndarray  # (n,) its square, times the frequency
    frequency: np.ndarray  # (m,)
    seen: np.ndarray  # (K,) bool

    def error(self, slope: float) -> float:
        """sum_b P_b (g_b^2 - s_b^2), the mean over the classes seen; g fitted on hats."""
        fine = self._target_counts(slope)[self.seen]
        mass, mass2, total, total2, square = (part[self.seen] for part in self._sums(slope))
        hats = _hat_values(fine)
        transposed = np.swapaxes(hats, 1, 2)
        ridge = LEAST_ROWS * mass2.sum(axis=1) / np.maximum(mass.sum(axis=1), 1e-300)
        system = transposed @ (mass[..., None] * hats) + ridge[:, None, None] * np.eye(HATS)
        pull = hats @ _invert(system)
        gap = (pull @ (transposed @ total[..., None]))[..., 0]
        leverage = (pull * hats).sum(axis=2) * mass2 / np.maximum(mass, 1e-300)
        noise = np.maximum(square - 2 * gap * total2 + gap**2 * mass2, 0)
        noise /= np.maximum(1 - leverage, LEAST_SLACK)
        variance = ((pull @ (transposed @ (noise[..., None] * hats))) * pull).sum(axis=2)
        share = fine / fine.sum(axis=1, keepdims=True)
        return float(np.mean((share * (gap**2 - variance)).sum(axis=1)))

    def _target_counts(self, slope: float) -> np.ndarray:
        """(K, cells) rows of the target."""
        K = len(self.seen)
        cell = _locate_cells(self.target, slope)[1]
        rows = None if (self.frequency == 1).all() else np.repeat(self.frequency, K)
        return np.bincount(cell.ravel(), rows, K * CELLS).reshape(K, CELLS).astype(float)

    def _sums(self, slope: float) -> list[np.ndarray]:
        """(K, cells) of the source: w, w^2, w u, w^2 u and w^2 u^2, u = 1[y = c] - p."""
        K, row = len(self.seen), np.arange(len(self.label))
        p, cell = _locate_cells(self.source, slope)
        hit, at, flat = p[row, self.label], cell[row, self.label], cell.ravel()
        w, w2 = self.weight, self.weight2

        def summed(of: np.ndarray, on_hit: np.ndarray | None = None) -> np.ndarray:
            every = np.bincount(flat, of.ravel(), K * CELLS)
            if on_hit is not None:
                every += np.bincount(at, on_hit, K * CELLS)
            return np.asarray(every.reshape(K, CELLS))

        wp, w2p = w[:, None] * p, w2[:, None] * p
        return [
            summed(np.repeat(w, K)),
            summed(np.repeat(w2, K)),
            summed(-wp, w),
            summed(-w2p, w2),
            summed(w2p * p, w2 * (1 - 2 * hit)),
        ]

    def subsample(self) -> TemperedRows:
        """Some of the rows, evenly spaced."""
        K = len(self.seen)
        n, m = (max(1, len(x) * K // SUBSAMPLE) for x in (self.source, self.target))
        return TemperedRows(
            self.source[::n], self.target[::m], self.label[::n], self.weight[::n],
            self.weight2[::n], self.frequency[::m], self.seen,
        )  # fmt: skip


def _invert(system: np.ndarray) -> np.ndarray:
    """Inverses of symmetric matrices; pseudo-inverses where one row outweighs all others."""
    try:
        return np.linalg.inv(system)
    except np.linalg.LinAlgError:
        return np.linalg.pinv(system, hermitian=True)


def least_error_slope(
    source: Predictions, target: Predictions, class_weights: np.ndarray, start: float
) -> float:
    """1 / T of least error near ``start``: searched on a subsample, then once on all rows.

    The search is local because probabilities close to 0 and 1 have a small classwise error too.
    """
    w = np.nan_to_num(class_weights / np.nanmax(class_weights))[source.labels]
    rows = TemperedRows(
        _scores(source),
        _scores(target),
        source.labels,
        w * source.frequency,
        w**2 * source.squared_frequency,
        target.frequency,
        (source.class_counts > 0) & ~np.isnan(class_weights),
    )
    few, at = rows.subsample(), float(np.clip(start, *RANGE))
    for _ in range(MOST_SEARCHES):
        before, at = at, _minimize(few, at, np.array(FIRST))
        if abs(np.log(at / before)) < FIRST[-1] / 2:
            break
    return _minimize(rows, at, np.array(LAST))


def _minimize(rows: TemperedRows, at: float, steps: np.ndarray) -> float:
    """The minimum of a parabola fitted to the errors; their smallest if it is concave."""
    errors = [rows.error(at * np.exp(step)) for step in steps]
    bend, tilt, _ = np.polyfit(steps, errors, 2)
    best = -tilt / (2 * bend) if bend > 0 else steps[np.argmin(errors)]
    return float(np.clip(at * np.exp(np.clip(best, steps[0], steps[-1])), *RANGE))


def _scores(sample: Predictions) -> np.ndarray:
    kind = np.float32 if sample.matrix.size > SINGLE else float
    return np.asarray(np.log(np.maximum(sample.matrix, 1e-30, dtype=kind)))


def _locate_cells(scores: np.ndarray, slope: float) -> tuple[np.ndarray, np.ndarray]:
    """(n, K) probabilities, and their fine cells, numbered by class."""
    z = scores * scores.dtype.type(slope)
    z -= z.max(axis=1, keepdims=True)
    p = np.exp(z)
    total = p.sum(axis=1, keepdims=True)
    p /= total
    z -= np.log(total)
    z -= np.log1p(-np.minimum(p, 1 - 1e-7, dtype=p.dtype))  # the logit
    z += SPAN
    z *= CELLS / (2 * SPAN)
    cell = np.clip(z, 0, CELLS - 1, out=z).astype(np.intp)
    cell += np.arange(scores.shape[1]) * CELLS
    return p, cell


def _hat_values(fine: np.ndarray) -> np.ndarray:
    """(K, cells, hats), even steps in rank and arcsin sqrt score, half and half."""
    upto = np.cumsum(fine, axis=1)
    position = ((upto - fine / 2) / upto[:, -1:] + ANGLES) / 2
    occupied = np.where(fine > 0, position, np.nan)
    low, high = np.nanmin(occupied, axis=1)[:, None], np.nanmax(occupied, axis=1)[:, None]
    place = np.clip((position - low) / np.maximum(high - low, 1e-12), 0, 1) * (HATS - 1)
    return np.asarray(np.maximum(1 - np.abs(place[..., None] - np.arange(HATS)), 0))
