"""Ending when told to: at once, with the exit code that shells know, nothing half-written and no process left over.

An exception raised by a signal handler would come out anywhere: in a callback of a library, which swallows it, while a
module is imported, in the middle of a clean-up. So nothing is raised. What has to be cleaned up is known, and is
cleaned up here: temporary files and child processes.
"""

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
from typing import Any, NoReturn

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
PATIENCE = 1.0  # seconds for child processes, which clean up themselves
NOTHING = b"\0"  # what ends the thread that waits for signals

_only_once = threading.RLock()


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """End the process, at once and in order, if it is told to while the block runs.

    Signals that the process was started to ignore (nohup, a background job) stay ignored. Python calls handlers in the
    main thread and only between two of its own steps, which may be long when it runs compiled code: another thread
    waits for signals as well.
    """
    if threading.current_thread() is not threading.main_thread():  # only there handlers can be set
        yield
        return
    taken = [one for one in SIGNALS if signal.getsignal(one) not in (signal.SIG_IGN, None)]
    before = {one: signal.signal(one, _handle) for one in taken}
    try:
        with _noticed_at_once(taken):
            yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def end(number: int) -> NoReturn:
    """Remove temporary files, end child processes, and then this one."""
    with _only_once:
        from survscore.io.temporary import abandon, stop_changes

        stop_changes()  # a child process that is being started is known only afterwards
        children = _children()
        for child in children:
            with suppress(OSError, ValueError):
                child.terminate()
        abandon()
        last = time.monotonic() + PATIENCE
        for child in children:
            # joblib's processes have no kill()
            with suppress(OSError, ValueError, AssertionError, AttributeError):
                child.join(max(0.0, last - time.monotonic()))
                child.kill()
                child.join(PATIENCE)
        with suppress(OSError, ValueError, AttributeError):
            if os.isatty(2):  # a progress bar may have hidden the cursor
                os.write(2, b"\r\x1b[K\x1b[?25h")
            if number == signal.SIGINT:
                os.write(2, b"survscore: interrupted\n")
        os._exit(128 + number)


@cache
def end_with_parent(parent: int) -> None:
    """End this process when the one that started it is no more, however that ended; once is enough."""

    def wait() -> NoReturn:
        while os.getppid() == parent:  # another takes over orphans
            time.sleep(0.2)
        end(signal.SIGTERM)

    threading.Thread(target=wait, name="survscore-parent", daemon=True).start()


def _handle(number: int, frame: FrameType | None) -> None:
    from survscore.io.temporary import after_change

    after_change(lambda: end(number))


@contextmanager
def _noticed_at_once(taken: list[signal.Signals]) -> Iterator[None]:
    """Have a thread end the process, which need not wait for what the main thread is doing."""
    if sys.platform == "win32":  # there a pipe can't be told of signals
        yield
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)

    def wait() -> None:
        while (told := os.read(reading, 1)) != NOTHING:
            if told and told[0] in taken:
                end(told[0])

    thread = threading.Thread(target=wait, name="survscore-signals", daemon=True)
    thread.start()
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.write(writing, NOTHING)
        thread.join()
        os.close(reading)
        os.close(writing)


def _children() -> list[Any]:
    """Return the processes that this one has started."""
    if "multiprocessing" not in sys.modules:
        return []
    from multiprocessing import active_children

    return active_children()
