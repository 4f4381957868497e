"""Exceptions and warnings of calshift."""


class InvalidInput(ValueError):
    """An invalid argument; the message names it, what is allowed and what was given."""


class NoRows(InvalidInput):
    """A sample without rows, which an estimate cannot use and sums can."""


class UnreliableWeights(UserWarning):
    """The class weights can be used, but are not reliable."""
