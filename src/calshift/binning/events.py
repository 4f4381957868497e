"""Kinds of calibration error as events: a score in [0, 1] and whether its event came true.

`classwise` has one event a class, score p_c and event y = c; `binary` has the last of them for two
classes; `top-label` has the score max_c p_c and the event argmax = y. (docs/mathematics.md 1)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calshift._core.predictions import Predictions
from calshift._core.validate import validate_choice
from calshift.engines.sample_summary import SampleSummary
from calshift.errors import InvalidInput

KINDS = ("classwise", "binary", "top-label", "canonical")


@dataclass(frozen=True)
class Events:
    """The events of one kind.

    Source rows are grouped in strata within which both the label and the outcome of every event
    are constant, so that class weights can arrive after the rows were counted: the label itself,
    and for top-label the label and whether it was hit.
    """

    kind: str
    n_classes: int

    @property
    def count(self) -> int:
        """How many events there are."""
        return self.n_classes if self.kind == "classwise" else 1

    @property
    def stratum_label(self) -> np.ndarray:
        """(S,) the label of each stratum."""
        labels = np.arange(self.n_classes)
        return np.tile(labels, 2) if self.kind == "top-label" else labels

    def stratum_outcome(self, event: int) -> np.ndarray:
        """(S,) 1 where the event is true for the rows of a stratum, else 0."""
        if self.kind == "top-label":
            return np.repeat([0.0, 1.0], self.n_classes)
        return np.asarray(self.stratum_label == self._class_of(event), dtype=float)

    def score(self, predictions: Predictions, event: int) -> np.ndarray:
        """(n,) the score of an event."""
        if self.kind == "top-label":
            return predictions.confidence
        if predictions.p.ndim == 1:
            return predictions.p if self._class_of(event) == 1 else 1 - predictions.p
        return predictions.p[:, self._class_of(event)]

    def stratum(self, predictions: Predictions) -> np.ndarray:
        """(n,) the stratum of each labelled row."""
        if self.kind == "top-label":
            hit = predictions.predicted == predictions.labels
            return np.asarray(predictions.labels + self.n_classes * hit)
        return predictions.labels

    def _class_of(self, event: int) -> int:
        return 1 if self.kind == "binary" else event


def select_events(kind: str, summary: SampleSummary) -> Events:
    """The events asked for; one column of scores asked for class by class means binary."""
    validate_choice(kind, "kind", KINDS)
    if summary.one_column and kind == "classwise":
        kind = "binary"
    if kind == "binary" and summary.n_classes != 2:
        msg = f'kind="binary" needs two classes; p has {summary.n_classes}'
        raise InvalidInput(msg)
    return Events(kind, summary.n_classes)


def select_binned_events(kind: str, summary: SampleSummary) -> Events:
    """The events asked for, of a kind that bins can count."""
    events = select_events(kind, summary)
    if events.kind == "canonical":
        msg = 'kind="canonical" compares pairs of rows, not bins: use target_calibration_error'
        raise InvalidInput(msg)
    return events
