"""Name the files of more than 1 MB among those given, and fail if there are any."""

from __future__ import annotations

import sys
from pathlib import Path

LARGEST = 1_000_000  # bytes

if __name__ == "__main__":
    large = [path for path in sys.argv[1:] if Path(path).stat().st_size > LARGEST]
    sys.exit("\n".join(f"{path}: more than 1 MB" for path in large) or None)
