"""``python -m survscore`` is ``survscore``."""

from survscore.cli import main

if __name__ == "__main__":
    main()
