"""Values and validation used by every package."""
