"""The templates and their filters."""

from __future__ import annotations

import re
from typing import Any

from calshift._core.text import shorten

CODE = re.compile(r"`([^`\n]+)`")


def read_template(name: str) -> str:
    """The text of a file of the folder `templates`."""
    from importlib.resources import files

    return (files("calshift.report") / "templates" / name).read_text(encoding="utf-8")


def load_template(name: str) -> Any:
    """A template that escapes what is put into it."""
    try:
        from jinja2 import Environment, FunctionLoader, StrictUndefined
    except ImportError:
        msg = "a report page needs jinja2: pip install 'calshift[report]'"
        raise ModuleNotFoundError(msg, name="jinja2") from None
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, loader=FunctionLoader(read_template),
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters.update(
        code=mark_code,
        error=lambda value: f"{value:.4f}",
        share=format_share,
        shorten=shorten,
        number=lambda value: f"{value:,.0f}" if 1000 <= abs(value) < 1e6 else f"{value:.4g}",
        rows=lambda value: f"{value:,.10g}",
    )
    return environment.get_template(name)


def mark_code(text: str) -> Any:
    """Text with what is between backticks as code, everything escaped."""
    from markupsafe import Markup, escape

    parts = CODE.split(text)  # text and code in turn
    marked = Markup("<code>{}</code>")
    return Markup("").join(
        marked.format(part) if k % 2 else escape(part) for k, part in enumerate(parts)
    )


def format_share(value: float) -> str:
    """One decimal, or two significant digits below 1%."""
    return f"{value:.1%}" if value >= 0.01 or value == 0 else f"{100 * value:.2g}%"
