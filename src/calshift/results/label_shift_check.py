"""Result of the test of label shift."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from calshift._core.convert import plain
from calshift._core.frozen import Frozen
from calshift._core.text import note_lines, printable

CLASSES_SHOWN = 10
NAMED = 3  # cells that the verdict names
LARGE_RESIDUAL = 2.0  # standard errors
CELLS_SHOWN = 4  # groups of a class in the table
GROUPS = {2: ("low", "high"), 4: ("low", "lower", "higher", "high")}


class PredictedClass(NamedTuple):
    """One line of `LabelShiftCheck.by_class`.

    expected and observed are the shares of target rows predicted as this class, under label shift
    and in the data; residual is their difference in standard errors, and cells has the residuals
    by confidence, from low to high (merged cells share one value).
    """

    name: str
    expected: float
    observed: float
    residual: float
    cells: tuple[float, ...]


@dataclass(frozen=True, eq=False, repr=False)
class LabelShiftCheck(Frozen):
    """Test of label shift: is the target a mixture of the source's classes?

    Attributes
    ----------
    statistic, df : J and its degrees of freedom: cells less classes that have a share
    p_value : of J by the parametric bootstrap; None if nothing could be tested
    draws : of the bootstrap
    level : at which label shift is rejected, by the two tests together
    direction, direction_p_value : z and p-value of the contrast of high against low confidence
        among rows predicted alike, positive if the target has more rows of high confidence than
        any class priors explain; None if there is no such contrast
    joint_p_value : of the smaller of both p-values; label shift is rejected by this one
    distance : total variation between the target's cells and the nearest mixture, corrected for
        sampling noise; a lower bound on how much else has changed
    distance_bound : its upper confidence bound, 95% one-sided
    detectable_distance : a distance from which label shift is rejected with a probability of 80%
        or more at these sample sizes
    divided : whether rows predicted as one of few classes were divided among the others too; the
        residuals are then by that class
    residuals : (K, G) by predicted class and confidence, from low to high, in standard errors:
        positive where the target has more rows than any class priors explain. Merged cells share
        a value; NaN where nothing could be tested
    observed, expected, class_residuals : (K,) the target's shares by predicted class
    n_source, n_target, classes : the data
    warnings : limitations, worst first
    """

    statistic: float
    df: int
    p_value: float | None
    draws: int
    level: float
    residuals: np.ndarray
    observed: np.ndarray
    expected: np.ndarray
    class_residuals: np.ndarray
    n_source: float
    n_target: float
    classes: tuple[Any, ...] | None = None
    warnings: tuple[str, ...] = ()
    direction: float | None = None
    direction_p_value: float | None = None
    joint_p_value: float | None = None
    distance: float | None = None
    distance_bound: float | None = None
    detectable_distance: float | None = None
    divided: bool = False

    @property
    def rejected(self) -> bool:
        """Whether label shift is rejected; False where nothing could be tested."""
        return self.joint_p_value is not None and self.joint_p_value <= self.level

    @property
    def verdict(self) -> str:
        """The outcome in words."""
        if self.p_value is None:
            return "Label shift could not be tested: it is an assumption here."
        if self.rejected:
            return (
                f"More than the class priors changed (p = {self.joint_p_value:.2g}): no class "
                f"priors explain {self._worst_cells()}. {self._size} Weights and errors that "
                "assume label shift are not reliable."
            )
        return (
            "No sign that anything but the class priors changed "
            f"(p = {self.joint_p_value:.2g}). {self._size} That is no proof: small changes, and "
            "changes that leave the frequencies of predicted classes and confidences as they "
            "were, are not detected."
        )

    @property
    def _size(self) -> str:
        """The distance in one sentence."""
        return (
            f"Of the target's rows {_share(self.distance)} (at most {_share(self.distance_bound)}, "
            "95% confidence) are in other cells than under any class priors; "
            f"{_share(self.detectable_distance)} would be detected."
        )

    @property
    def by_class(self) -> tuple[PredictedClass, ...]:
        """The residuals by predicted class."""
        columns = self.expected, self.observed, self.class_residuals
        lines = zip(*(column.tolist() for column in columns), self.residuals.tolist(), strict=True)
        return tuple(
            PredictedClass(self._name(c), expected, observed, residual, tuple(cells))
            for c, (expected, observed, residual, cells) in enumerate(lines)
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, lists and texts; NaN is None."""
        copied = (
            "statistic", "df", "p_value", "direction", "direction_p_value", "joint_p_value",
            "draws", "level", "rejected", "distance", "distance_bound", "detectable_distance",
            "divided", "verdict", "n_source", "n_target",
        )  # fmt: skip
        shares = ("expected", "observed", "residual")
        return {
            **{name: getattr(self, name) for name in copied},
            "residuals": plain(self.residuals),
            "by_class": [
                {"predicted": one.name, **{name: plain(getattr(one, name)) for name in shares}}
                for one in self.by_class
            ],
            "classes": None if self.classes is None else [str(name) for name in self.classes],
            "warnings": list(self.warnings),
        }

    def __str__(self) -> str:
        sizes = f"{self.n_source:g} source and {self.n_target:g} target rows"
        test = f"J = {self.statistic:.1f} on {self.df} degrees of freedom"
        p = "not tested" if self.p_value is None else f"{test}, p = {self.p_value:.2g}"
        if self.direction is not None:
            directed = f"z = {self.direction:+.1f}, p = {self.direction_p_value:.2g}"
            sizes = f"{sizes})\n  (high against low confidence: {directed}"
        text = note_lines((self.verdict,))
        text[0] = "  " + text[0][2:]
        head = f"Label shift check: {p} ({sizes})"
        return "\n".join([head, *text, *self._class_table(), *note_lines(self.warnings)])

    def __repr__(self) -> str:
        return (
            f"LabelShiftCheck(statistic={self.statistic:.4g}, df={self.df}, "
            f"p_value={self.p_value}, rejected={self.rejected})"
        )

    def _name(self, c: int) -> str:
        return str(c if self.classes is None else self.classes[c])

    def _worst_cells(self) -> str:
        """The cells with the largest residuals, in words."""
        size = np.nan_to_num(np.abs(self.residuals)).ravel()
        worst = np.argsort(-size, kind="stable")[:NAMED]
        count = self.residuals.shape[1]
        groups = GROUPS.get(count) or tuple(f"{g + 1} of {count}" for g in range(count))
        shown = []
        for cell in worst[(size[worst] > LARGE_RESIDUAL) | (np.arange(len(worst)) == 0)]:
            c, group = divmod(int(cell), len(groups))
            many = "many" if self.residuals[c, group] > 0 else "few"
            name = self._name(c)[:20]
            placed = f"counted for {name}" if self.divided else f"predicted as {name}"
            shown.append(f"so {many} rows {placed} with {groups[group]} confidence")
        return ", ".join(shown)

    def _class_table(self) -> list[str]:
        if self.p_value is None:
            return []
        lines = [
            f"{'predicted':>12} {'expected':>9} {'observed':>9} {'residual':>9}   by confidence"
        ]
        worst = np.argsort(-np.nan_to_num(np.abs(self.residuals)).max(axis=1), kind="stable")
        by_class = self.by_class
        for line in (by_class[c] for c in worst[:CLASSES_SHOWN]):
            step = max(len(line.cells) // CELLS_SHOWN, 1)
            cells = " ".join(_signed(value) for value in line.cells[::step])
            shares = f"{line.expected:>9.2%} {line.observed:>9.2%} {_signed(line.residual):>9}"
            lines.append(f"{printable(line.name)[:12]:>12} {shares}   {cells}")
        hidden = len(worst) - CLASSES_SHOWN
        return [*lines, f"{'...':>12} {hidden} more classes"] if hidden > 0 else lines


def _share(value: float | None) -> str:
    return "an unknown share" if value is None else f"{value:.1%}"


def _signed(value: float) -> str:
    return "    ." if np.isnan(value) else f"{value:>+5.1f}"
