"""Exceptions and warnings of calshift."""

LONGEST = 1000  # characters of a message


class InvalidInput(ValueError):
    """An invalid argument; the message names it, what is allowed and what was given.

    The middle of a very long message, such as of a path or a name of thousands of characters, is
    left out.
    """

    def __init__(self, message: str = "") -> None:
        if len(message) > LONGEST:
            message = f"{message[: LONGEST * 2 // 3]} [...] {message[-LONGEST // 4 :]}"
        super().__init__(message)


class NoRows(InvalidInput):
    """A sample without rows, which an estimate cannot use and sums can."""


class UnreliableWeights(UserWarning):
    """The class weights can be used, but are not reliable."""
