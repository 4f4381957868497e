"""What calshift raises and warns with."""


class InvalidInput(ValueError):
    """An argument breaks a rule; the message names the argument, the rule and what came."""


class UnreliableWeights(UserWarning):
    """The class weights can be used, but not trusted as they stand."""
