"""The paper's experiments again, through the public API of calshift like any user."""
