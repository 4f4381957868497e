"""The rows behind a result, kept for drawing."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from calshift.predictions import Predictions


class Samples:
    """Source and target of an estimate: views, not copies; neither compared nor pickled.

    A result that was pickled and loaded has none, so that files stay small.
    """

    __slots__ = ("source", "target")

    def __init__(
        self, source: Predictions | None = None, target: Predictions | None = None
    ) -> None:
        self.source, self.target = source, target

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Samples)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[type[Samples], tuple[()]]:
        return Samples, ()

    def __copy__(self) -> Samples:
        return self

    def __deepcopy__(self, memo: object) -> Samples:
        return self
