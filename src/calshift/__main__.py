"""python -m calshift."""

from calshift.cli import main

if __name__ == "__main__":
    main()
