"""Entry point of `python -m calshift`."""

from calshift.cli.main import main

if __name__ == "__main__":
    main()
