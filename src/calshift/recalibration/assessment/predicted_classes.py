"""How many rows change their predicted class by a recalibration, summed over batches."""

from __future__ import annotations

from typing import Any

import numpy as np

from calshift._core.predictions import Predictions
from calshift.metrics.decision_rule import DecisionRule, make_decision_rule, validate_positive

MOST_PAIRS = 1000  # of classes before and after, in a summary


class PredictedClasses:
    """Rows by the class that a decision rule predicts before and after."""

    def __init__(self, rule: DecisionRule, names: tuple[Any, ...]) -> None:
        self.rule = rule
        self.names = tuple(map(str, names))
        self.rows: dict[tuple[int, int], float] = {}  # by class before and after

    @staticmethod
    def of(
        n_classes: int, classes: tuple[Any, ...] | None, decision: Any, positive: Any
    ) -> PredictedClasses:
        """By the rule that ``decision`` asks for, without rows as yet."""
        label = validate_positive(positive, n_classes, classes)
        rule = make_decision_rule(decision, n_classes, label, None)
        return PredictedClasses(rule, tuple(range(n_classes)) if classes is None else classes)

    def add(self, before: Predictions, after: Predictions) -> None:
        """Count the rows of a batch, each by its frequency weight."""
        K = len(self.names)
        pairs = self.rule(before).astype(np.int64) * K + self.rule(after)
        kinds, place = np.unique(pairs, return_inverse=True)
        for kind, rows in zip(kinds, np.bincount(place, before.frequency), strict=True):
            pair = int(kind) // K, int(kind) % K
            self.rows[pair] = self.rows.get(pair, 0.0) + float(rows)

    def to_dict(self) -> dict[str, Any]:
        """Rows that change, rows of each class before and after, and the most frequent changes."""
        before, after = np.zeros((2, len(self.names)))
        for (one, other), rows in self.rows.items():
            before[one] += rows
            after[other] += rows
        changes = {pair: rows for pair, rows in self.rows.items() if pair[0] != pair[1] and rows}
        order = sorted(changes, key=lambda pair: (-changes[pair], pair))
        total, changed = float(before.sum()), sum(changes.values())
        return {
            "rule": self.rule.description,
            "rows": total,
            "changed": changed,
            "share": changed / total if total else 0.0,
            "classes": [
                {"class": name, "before": float(before[k]), "after": float(after[k])}
                for k, name in enumerate(self.names)
            ],
            "pairs": [
                {"from": self.names[one], "to": self.names[other], "rows": changes[one, other]}
                for one, other in order[:MOST_PAIRS]
            ],
        }
