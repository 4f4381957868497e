"""One condition that a result must meet to be trusted, as it was checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from calshift._core.convert import plain
from calshift._core.frozen import Frozen


@dataclass(frozen=True)
class Diagnostic(Frozen):
    """A named check of one condition.

    Attributes
    ----------
    name : of the condition, as in ``waive=``
    value, limit : the number that was compared and its limit; None where the condition was not
        checked or is not a number
    passed : whether the condition was checked and met
    waived : whether the caller has waived it
    text : the outcome in one sentence
    """

    name: str
    value: float | None
    limit: float | None
    passed: bool
    text: str
    waived: bool = False

    @property
    def failed(self) -> bool:
        """Whether the condition prevents trust."""
        return not (self.passed or self.waived)

    @property
    def brief(self) -> str:
        """Its name with the number and the limit, for a cell of a table."""
        if self.value is None:
            return f"{self.name}: not checked"
        limit = "" if self.limit is None else f" (limit {self.limit:.3g})"
        return f"{self.name}: {self.value:.3g}{limit}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values; NaN is None."""
        return {
            "name": self.name,
            "value": plain(self.value),
            "limit": plain(self.limit),
            "passed": self.passed,
            "waived": self.waived,
            "failed": self.failed,
            "text": self.text,
        }
