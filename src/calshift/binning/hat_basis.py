"""The smooth basis of bins="auto": hats (piecewise-linear functions) on fine bins.

Knots depend on counts and scores only, never on labels or weights. Their number, spacing and least
count were chosen by benchmarks/basis.py. (docs/mathematics.md 4)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from calshift._core.linalg import group_by_width, sparse_columns
from calshift.binning.edges import FINE_BINS
from calshift.compiled import fastest

HATS_SCALE, HATS_POWER = 2.2, 0.25  # hats planned: 10 at 500 rows, 22 at 10 000
LEAST_HATS = 3
NEARLY = 1 - 1e-9  # of a count of rows: sums of weights in another order miss it by rounding
DISTINCT = 100  # scores at most, of an event that is fitted without smoothing
ROWS_A_SCORE = 10.0 * NEARLY  # of the source on average, but for the most frequent score
LEAST_SOURCE = 5.0 * NEARLY  # rows between two knots; all noise of the fit comes from the source
LEAST_TARGET = 2.0 * NEARLY
LEAST_DISTINCT = 2.0 * NEARLY  # source rows of a knot, where distinct scores are no more than hats
SMALLEST_STEP = 2.0**-52  # in t: the difference of two that are not equal
LEAST_ROWS = (LEAST_DISTINCT, LEAST_SOURCE, LEAST_TARGET)


def planned_hats(n: float) -> int:
    """How many hats a source of n rows carries: an odd number, with one in the middle."""
    planned = 2 * round(float(HATS_SCALE * n**HATS_POWER - 1) / 2) + 1
    return min(max(LEAST_HATS, planned), FINE_BINS)


def positions(count: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """(E, B) t of each bin: halfway between mid-rank in the target and arcsin sqrt of mean score.

    Padded bins have the t of the last one.
    """
    upto = np.cumsum(count, axis=1)
    rank = (upto - count / 2) / upto[:, -1:]
    angle = np.arcsin(np.sqrt(np.clip(np.maximum.accumulate(mean, axis=1), 0.0, 1.0)))
    angle -= angle[:, :1]
    span = angle[:, -1:]
    return np.asarray((rank + angle / np.where(span > 0, span, 1.0)) / 2)


@fastest
def choose_knots(
    t: np.ndarray, source: np.ndarray, target: np.ndarray, bins: np.ndarray, hats: int,
    least: tuple[float, float, float],
) -> np.ndarray:  # fmt: skip
    """(E, B) bool, the bins with a knot, from positions and rows (E, B) of their first ``bins``.

    Events with few distinct scores have a knot at each: those of trees, neighbours or tables are no
    smooth function of anything, and the frequency of the event may jump from one to the next.
    ``least`` : source rows of a knot of these, of a knot of other events, and target rows.
    """
    each, last = np.arange(len(t)), bins - 1
    inside = np.arange(t.shape[1]) < bins[:, None]
    counts = np.where(inside, [source, target], 0.0)
    rest = counts[0].sum(axis=1) - counts[0].max(axis=1)
    few = (bins <= hats) | ((bins <= DISTINCT) & (rest >= ROWS_A_SCORE * last))
    step = np.where(few, 0.0, (t[each, last] - t[:, 0]) / (hats - 1) * (1 - 1e-9))
    rows = np.stack([np.where(few, *least[:2]), np.full(len(t), least[2])])
    centre = (t[:, 0] + t[each, last]) / 2
    middle = np.where(inside, np.abs(t - centre[:, None]), np.inf).argmin(axis=1)
    upto = np.cumsum(counts, axis=2)
    right, left = np.where(inside, [t, -t], -np.inf)
    outwards = np.stack([right, *upto]), np.stack([left, *(counts - upto)])[..., ::-1]
    end = t.shape[1] - 1  # of the bins in reverse
    ends = np.append(middle, end - middle), np.append(last, np.full(len(t), end))
    found, count = _step_outwards(
        np.concatenate(outwards, axis=1), *ends, np.tile(step, 2), np.tile(rows, 2)
    )
    found = found[: len(t)] | found[len(t) :, ::-1]
    up, down = count.reshape(2, -1)
    alone = (down == 1) | (up == 1)  # no knot on a side: the middle one goes to the end
    found[each[alone], middle[alone]] = False
    found[each[alone], np.where(down == 1, 0, last)[alone]] = True
    return np.asarray(found)


def _step_outwards(
    sums: np.ndarray, start: np.ndarray, last: np.ndarray, step: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(E, B) bool, the bins with a knot from ``start`` to ``last``, and how many there are.

    ``sums`` (3, E, B), t and the rows of both samples up to each bin, grow from bin to bin. Knots
    have even steps in t, longer where fewer than ``rows`` (2, E) lie between them; where ``step``
    is 0, every bin.
    """
    found, count = np.zeros(sums.shape[1:], bool), np.ones(len(start), np.intp)
    each, at = np.arange(len(start)), start.copy()
    found[each, start], k = True, each
    least = np.stack([np.where(step > 0, step, SMALLEST_STEP), *rows])[..., None]
    while len(k):
        far = (sums[:, k] >= sums[:, k, at[k], None] + least[:, k]).all(axis=0)
        following = far.argmax(axis=1)
        on = far[each[: len(k)], following]
        k, following = k[on], following[on]
        at[k], found[k, following] = following, True
        count[k] += 1
    apart = sums[:, each, last] - sums[:, each, at]
    more = (apart >= np.stack([np.maximum(step / 2, SMALLEST_STEP), *rows])).all(axis=0)
    shortened = ~more & (count > 1)  # too few rows for one more: the last knot goes to the end
    found[each[shortened], at[shortened]] = False
    found[each, last] |= more | shortened
    return found, count + more


@dataclass(frozen=True)
class HatBasis:
    """Hats of all events on their bins: between two knots each bin has a share of either.

    Plain bins, joined in groups, are hats too: of one knot a group, with no share of the next.

    Attributes
    ----------
    left : (E, B) the knot at or before each bin
    share : (E, B) of the knot after it
    count : (E,) knots of each event
    """

    left: np.ndarray
    share: np.ndarray
    count: np.ndarray

    @staticmethod
    def of_hats(t: np.ndarray, knot: np.ndarray) -> HatBasis:
        """With knots at some bins (E, B), linear in t between them."""
        event, bins = np.nonzero(knot)
        count = np.bincount(event, minlength=len(t))
        number = np.cumsum(knot, axis=1)
        at = np.zeros((len(t), count.max() + 1))
        at[event, number[event, bins] - 1] = t[event, bins]
        left = np.clip(number - 1, 0, np.maximum(count - 2, 0)[:, None])
        low, high = (np.take_along_axis(at, left + step, axis=1) for step in (0, 1))
        several = (count > 1)[:, None]
        share = np.divide(t - low, high - low, out=np.zeros(t.shape), where=several & (high > low))
        return HatBasis(left, np.clip(share, 0.0, 1.0), count)

    @staticmethod
    def of_groups(starts: list[np.ndarray], bins: np.ndarray) -> HatBasis:
        """Groups of neighbouring bins, by their first ones."""
        mark = np.zeros((len(starts), int(bins.max())), dtype=int)
        for row, first in zip(mark, starts, strict=True):
            row[first[1:]] = 1
        left = np.cumsum(mark, axis=1)
        return HatBasis(left, np.zeros(left.shape), np.array([len(one) for one in starts]))

    @cached_property
    def width(self) -> int:
        """R, knots of the event that has most."""
        return int(self.count.max())

    @cached_property
    def missing(self) -> np.ndarray:
        """(E, R) bool, knots that an event does not have."""
        return np.asarray(np.arange(self.width) >= self.count[:, None])

    @cached_property
    def groups(self) -> list[tuple[np.ndarray, int]]:
        """Events with few knots and with many, see `group_by_width`."""
        return group_by_width(self.count)

    @cached_property
    def _place(self) -> np.ndarray:
        """(E B,) the knot at or before each bin, counted through with one more to each event."""
        offset = np.arange(len(self.left))[:, None] * (self.width + 1)
        return np.asarray((self.left + offset).ravel())

    def _summed(self, first: np.ndarray, second: np.ndarray | None = None) -> np.ndarray:
        """(E, R) values of bins summed at their knots, some of them at the next ones."""
        size = len(self.left) * (self.width + 1)
        total = np.bincount(self._place, first.ravel(), size)
        if second is not None:
            total = total + np.bincount(self._place + 1, second.ravel(), size + 1)[:size]
        return np.ascontiguousarray(total.reshape(len(self.left), -1)[:, : self.width])

    def project(self, values: np.ndarray) -> np.ndarray:
        """X' values: (E, B) -> (E, R)."""
        later = self.share * values
        return self._summed(values - later, later)

    def evaluate(self, coefficients: np.ndarray) -> np.ndarray:
        """X coefficients: (E, R) -> (E, B), or (E, R, D) -> (E, B, D)."""
        padded = np.zeros((len(coefficients), self.width + 1, *coefficients.shape[2:]))
        padded[:, : self.width] = coefficients
        padded = padded.reshape(-1, *coefficients.shape[2:])
        place, share = self._place.reshape(self.left.shape), self.share
        if coefficients.ndim == 3:
            share = share[:, :, None]
        low, step = padded[place], padded[place + 1]
        step -= low  # in place: with directions they are large
        step *= share
        low += step
        return np.asarray(low)

    def band(self, mass: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """X' diag(mass) X, which is tridiagonal: its diagonal and the one above, (E, R) each."""
        near, far = 1 - self.share, self.share
        diagonal = self._summed(near**2 * mass, far**2 * mass)
        return diagonal, self._summed(near * far * mass)

    def quadratic(self, diagonal: np.ndarray, above: np.ndarray) -> np.ndarray:
        """(E, B) x' V x of every bin, from the diagonal of V and the one above it."""
        near, far = 1 - self.share, self.share
        main, beside = _padded(diagonal, 1), _padded(above, 1)
        place = self._place.reshape(self.left.shape)
        squares = near**2 * main[place] + far**2 * main[place + 1]
        return np.asarray(squares + 2 * near * far * beside[place])

    def project_rows(self, events: slice, values: np.ndarray) -> np.ndarray:
        """X' values of some events: (E B, S) -> (E, R, S)."""
        return self._project(self._designs(events)[0], values)

    def project_bands(self, events: slice, rows: np.ndarray) -> np.ndarray:
        """X' diag(rows) X of some events: (E B, S) -> (2, E, R, S), diagonal and the one above."""
        return np.stack([self._project(one, rows) for one in self._designs(events)[1:]])

    def _project(self, transposed: Any, values: np.ndarray) -> np.ndarray:
        return np.asarray(transposed @ values).reshape(-1, self.width, values.shape[1])

    def _designs(self, events: slice) -> tuple[Any, Any, Any]:
        """X' of some events, that of squares, and products of neighbours in the place of the left.

        They are kept, since batches of rows are divided into the same blocks of events.
        """
        asked = events.start, events.stop
        if asked not in self._kept_designs:
            left, near, far = self.left[events], 1 - self.share[events], self.share[events]
            self._kept_designs[asked] = (
                _transposed(left, near, far, self.width),
                _transposed(left, near**2, far**2, self.width),
                _transposed(left, near * far, 0 * far, self.width),
            )
        return self._kept_designs[asked]

    @cached_property
    def _kept_designs(self) -> dict[tuple[int, int], tuple[Any, Any, Any]]:
        return {}


def _transposed(left: np.ndarray, near: np.ndarray, far: np.ndarray, width: int) -> Any:
    """(E R, E B) sparse: values of each bin at the knot before it and at the one after it."""
    first = (np.arange(len(left)) * width)[:, None]
    knots = np.stack([left + first, np.minimum(left + 1, width - 1) + first], axis=2).ravel()
    values, starts = np.stack([near, far], axis=2).ravel(), np.arange(0, 2 * left.size + 1, 2)
    return sparse_columns(values, knots, starts, len(left) * width)


def _padded(values: np.ndarray, more: int) -> np.ndarray:
    """(E, R) with so many zeros after each row, flat."""
    out = np.zeros((len(values), values.shape[1] + more))
    out[:, : values.shape[1]] = values
    return out.ravel()
