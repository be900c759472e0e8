"""What happens to signals while the command ``survscore`` is starting.

Importing the library takes a moment, in which Ctrl-C would end in a traceback through whatever is being imported.
Nothing is written yet, so that the process can just end. In other programs nothing is changed.
"""

import os
import signal
import sys
from contextlib import suppress
from types import FrameType

SIGNALS = ("SIGINT", "SIGTERM")


def is_command(arguments: list[str]) -> bool:
    """Whether these, from the interpreter on, run the command; otherwise some program imports the library."""
    rest = iter(arguments[1:])
    for argument in rest:
        if argument == "-m":
            return next(rest, None) == "survscore"
        if argument in ("-X", "-W"):
            next(rest, None)
        elif argument.startswith("-"):
            if argument[:2] == "-c":
                return False
        else:
            return os.path.basename(argument) in ("survscore", "survscore.exe")
    return False


def _end(number: int, frame: FrameType | None) -> None:
    if number == signal.SIGINT:
        with suppress(OSError):
            os.write(2, b"survscore: interrupted\n")
    os._exit(128 + number)


if is_command(sys.orig_argv):
    for _name in SIGNALS:
        _signal = getattr(signal, _name)
        if signal.getsignal(_signal) not in (signal.SIG_IGN, None):  # of a background job, it stays ignored
            signal.signal(_signal, _end)
