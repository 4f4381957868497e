"""What every page has: its content security policy, and what it is about."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from calshift._core.text import shorten


def security_policy(script: str = "") -> str:
    """Inline style, at most one script by its hash, and nothing else."""
    import base64  # late, as the next: importing calshift must be fast
    import hashlib

    allowed = ""
    if script:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        allowed = f"script-src 'sha256-{digest}'; "
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; {allowed}"
        "base-uri 'none'; form-action 'none'"
    )


def describe_inputs(inputs: dict[str, Any] | None, rows: Iterable[float]) -> str:
    """Names of files, or numbers of rows of the target and of the source."""
    given = inputs or {}
    names = [given[role]["path"] for role in ("target", "source") if role in given]
    if len(names) == 2:
        return "{} against {}".format(*(shorten(file_name(name)) for name in names))
    sizes = [f"{count:,.10g}" for count in rows]
    words = ("{} target rows", "{} target rows against {} labelled source rows")
    return words[len(sizes) - 1].format(*sizes)


def file_name(path: str) -> str:
    """The last part of a path of any system."""
    return re.split(r"[/\\]", path.rstrip("/\\"))[-1] or path
