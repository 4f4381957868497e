"""A part of an answer that is worked out when it is first asked for.

The rows behind a result, kept for drawing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any


class Later:
    """What a function of no arguments will answer; it is asked once."""

    __slots__ = ("_answer", "_ask")

    def __init__(self, ask: Callable[[], Any]) -> None:
        self._ask: Callable[[], Any] | None = ask
        self._answer: Any = None

    def answer(self) -> Any:
        """The answer, worked out the first time."""
        if self._ask is not None:
            self._answer, self._ask = self._ask(), None
        return self._answer

    def __eq__(self, other: object) -> bool:
        return bool(self.answer() == (other.answer() if isinstance(other, Later) else other))

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return known, (self.answer(),)

    def __copy__(self) -> Later:
        return self


def known(answer: Any) -> Later:
    """One that was answered before."""
    return Later(lambda: answer)


if TYPE_CHECKING:
    from calshift._core.predictions import Predictions


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
