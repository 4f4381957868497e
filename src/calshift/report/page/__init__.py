"""Texts of the report page and of notebooks, and the templates that they are put into."""
