"""Temporary files and folders, named by the process that makes them, so that none outlives it for long.

Making one removes what killed processes have left in the same folder. A process that is told to end calls
`abandon`, and leaves nothing at all.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from secrets import token_hex
from threading import RLock, local

OURS = re.compile(r"\.survscore-(?P<machine>[0-9a-f]{8})-(?P<process>\d{1,9})-[0-9a-f]{12}(\..*)?", re.ASCII)
OLD = 24 * 3600.0  # seconds since the last change, after which nobody elsewhere still writes
PATIENCE = 1.0  # seconds, for threads that write into a folder while it is removed

_changing = RLock()
_here = local()  # how many `uninterrupted` blocks this thread is in, and what to do after them
_ours: set[Path] = set()
_swept: set[Path] = set()


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
    path = _new_path(folder, ending)
    try:
        with uninterrupted():
            _ours.add(path)
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        yield path
    finally:
        path.unlink(missing_ok=True)
        _ours.discard(path)


@contextmanager
def temporary_folder(folder: Path) -> Iterator[Path]:
    """Give the path of an empty folder in another, which is removed afterwards with all that is in it."""
    path = _new_path(folder)
    try:
        with uninterrupted():
            _ours.add(path)
            path.mkdir(mode=0o700)
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


def sweep(folder: Path) -> None:
    """Remove what processes that are no more have left in a folder."""
    with suppress(OSError), os.scandir(folder) as members:
        for member in members:
            made = OURS.fullmatch(member.name)
            if made is not None and _is_left(member, made["machine"], int(made["process"])):
                _remove(Path(member.path))


def _is_left(member: os.DirEntry[str], machine: str, process: int) -> bool:
    """Whether nobody works on a file or folder any more."""
    try:
        status = member.stat(follow_symlinks=False)
        if hasattr(os, "geteuid") and status.st_uid != os.geteuid():
            return False
        if machine == _machine() and sys.platform != "win32":  # where signal 0 would end the process
            return not _is_alive(process)
        changes = [status.st_mtime]
        if member.is_dir(follow_symlinks=False):
            changes += [inner.stat(follow_symlinks=False).st_mtime for inner in os.scandir(member.path)]
    except OSError:
        return False
    return time.time() - max(changes) > OLD


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
        return
    with suppress(OSError):
        path.unlink()


def _new_path(folder: Path, ending: str = "") -> Path:
    folder = folder.absolute()
    if folder not in _swept:  # once, since a folder of many files takes long to list
        _swept.add(folder)
        sweep(folder)
    return folder / f".survscore-{_machine()}-{os.getpid()}-{token_hex(6)}{ending}"


@cache
def _machine() -> str:
    """Return what tells where a process has its number from those that may write to the same folder elsewhere."""
    told = [platform.node()]
    with suppress(OSError):
        told.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii"))
        told.append(os.readlink("/proc/self/ns/pid"))
    return hashlib.sha256("\n".join(told).encode(errors="replace")).hexdigest()[:8]
