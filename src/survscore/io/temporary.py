"""Temporary files and folders beside what they become, known by the process that makes them.

A process that is told to end calls `abandon`, and leaves nothing.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock, local

PREFIX = ".survscore-"
PATIENCE = 1.0  # seconds, for threads that write into a folder while it is removed

_changing = RLock()
_here = local()  # how many `uninterrupted` blocks this thread is in, and what to do after them
_ours: set[Path] = set()


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let the process end before the block or after it, but not within: for what is known only when it is done."""
    with _changing:
        _here.depth = getattr(_here, "depth", 0) + 1
        try:
            yield
        finally:
            _here.depth -= 1
    if not _here.depth and (then := getattr(_here, "then", None)) is not None:
        then()


def after_change(work: Callable[[], None]) -> None:
    """Do some work now or, within an `uninterrupted` block of this thread, at its end.

    A signal handler runs in the main thread, between any two steps, where the lock would let it pass.
    """
    if getattr(_here, "depth", 0):
        _here.then = work
    else:
        work()


def stop_changes() -> None:
    """Wait for `uninterrupted` blocks of other threads, as long as these may take, and let no more begin."""
    _changing.acquire(timeout=PATIENCE)  # never released: the process ends


@contextmanager
def temporary_file(folder: Path, ending: str = "") -> Iterator[Path]:
    """Give the path of an empty file in a folder, which is removed afterwards unless it has been moved."""
    with uninterrupted():
        handle, name = tempfile.mkstemp(ending, PREFIX, folder.absolute())
        path = Path(name)
        _ours.add(path)
    try:
        os.close(handle)
        yield path
    finally:
        path.unlink(missing_ok=True)
        _ours.discard(path)


@contextmanager
def temporary_folder(folder: Path) -> Iterator[Path]:
    """Give the path of an empty folder in another, which is removed afterwards with all that is in it."""
    with uninterrupted():
        path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=folder.absolute()))
        _ours.add(path)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        _ours.discard(path)


def abandon() -> None:
    """Remove all that this process has made here, and let it make nothing more."""
    stop_changes()
    last = time.monotonic() + PATIENCE
    while left := [path for path in list(_ours) if os.path.lexists(path)]:
        for path in left:
            _remove(path)
        if time.monotonic() > last:
            return


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
        return
    with suppress(OSError):
        path.unlink()
