"""Test of label shift, warnings, and whether a result is trusted."""
