"""The command ``survscore``, also as ``python -m survscore``."""

import sys


def main() -> None:
    """Run the command line; Ctrl-C while it is being imported ends it without a traceback."""
    try:
        from survscore.cli import main as run
    except KeyboardInterrupt:
        sys.stderr.write("survscore: interrupted\n")
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
