"""What calshift raises and warns with."""


class InvalidInput(ValueError):
    """An argument breaks a rule; the message names the argument, the rule and what came."""


class NoRows(InvalidInput):
    """A sample without a row, which is none for an estimate and adds nothing to sums."""


class UnreliableWeights(UserWarning):
    """The class weights can be used, but not trusted as they stand."""
