"""Run an experiment by its name.

python -m experiments list
python -m experiments NAME [--help]
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType

EXPERIMENTS = (  # each a module here, with main(arguments)
    "table1", "table2", "table3", "tables5-10", "table11",
    "figure2", "figure3", "figure4", "figure5", "figure6", "figure7",
    "summary", "picture", "train", "finetune", "texts", "tables", "binary",
)  # fmt: skip


def module(name: str) -> ModuleType:
    return import_module(f"experiments.{name.replace('-', '_')}")


def main(arguments: list[str]) -> int:
    """The exit status: 2 for a name that is not known."""
    name, *rest = arguments or ["list"]
    if name in EXPERIMENTS:
        module(name).main(rest)
        return 0
    if name != "list":
        print(f"no experiment {name!r}; there are: {', '.join(EXPERIMENTS)}", file=sys.stderr)
        return 2
    for known in EXPERIMENTS:
        about = module(known).__doc__ or ""
        print(f"{known:12} {about.splitlines()[0]}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
