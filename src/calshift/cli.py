"""The command line: parse, call the library, write."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of `calshift` and `python -m calshift`."""
    try:
        from calshift.commands import run
    except ImportError as error:
        if error.name != "click":
            raise
        sys.stderr.write("calshift's command line needs: pip install 'calshift[cli]'\n")
        raise SystemExit(2) from None
    run()
