"""Ending when told to: signals become ordinary exceptions, so that everything on the way cleans up after itself."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from types import FrameType
from typing import NoReturn

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


@contextmanager
def ended_by_signals() -> Iterator[list[int]]:
    """Give a list of the signals that the process gets while the block runs; the first raises SystemExit there.

    A second one ends the process at once. Signals that it was started to ignore (nohup, a background job) stay ignored.
    """
    received: list[int] = []
    if threading.current_thread() is not threading.main_thread():  # only there handlers can be set
        yield received
        return

    def handle(number: int, frame: FrameType | None) -> None:
        received.append(number)
        if len(received) > 1:
            os._exit(128 + number)
        raise SystemExit(128 + number)

    taken = [one for one in SIGNALS if signal.getsignal(one) not in (signal.SIG_IGN, None)]
    before = {one: signal.signal(one, handle) for one in taken}
    try:
        yield received
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def end(number: int) -> NoReturn:
    """End this process and those that it started, after clean-ups: threads that are still busy are not waited for."""
    if number == signal.SIGINT:
        with suppress(OSError):
            os.write(2, b"survscore: interrupted\n")
    if "multiprocessing" in sys.modules:
        from multiprocessing import active_children

        for child in active_children():
            with suppress(OSError, ValueError, AttributeError):
                child.terminate()
    os._exit(128 + number)


@cache
def end_with_parent(parent: int) -> None:
    """End this process when the one that started it is no more, however that ended; once is enough."""

    def wait() -> NoReturn:
        while os.getppid() == parent:  # another takes over orphans
            time.sleep(0.2)
        end(signal.SIGTERM)

    threading.Thread(target=wait, name="survscore-parent", daemon=True).start()
