"""Run an experiment by its name.

python -m experiments list
python -m experiments figure6 [--draws 2000] [--seed 6] [--results FOLDER]
python -m experiments picture [--out FILE]
python -m experiments train [--data fashion-mnist] [--depth 20] [--imbalance 10] [--epochs 30]
"""

from __future__ import annotations

import sys
from importlib import import_module

EXPERIMENTS = ("figure6", "picture", "train")  # each a module here, with main(arguments)


def main(arguments: list[str]) -> int:
    """The exit status: 2 for a name that is not known."""
    name, *rest = arguments or ["list"]
    if name in EXPERIMENTS:
        import_module(f"experiments.{name}").main(rest)
        return 0
    if name != "list":
        print(f"no experiment {name!r}; there are: {', '.join(EXPERIMENTS)}", file=sys.stderr)
        return 2
    for known in EXPERIMENTS:
        about = import_module(f"experiments.{known}").__doc__ or ""
        print(f"{known:12} {about.splitlines()[0]}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
