"""Temporary files and folders beside what they become; those that a killed process left are removed by the next."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = f".survscore-{platform.node()}-"  # followed by the number of the process, as in .survscore-host-4711-x


@contextmanager
def temporary_file(folder: Path, ending: str = "") -> Iterator[Path]:
    """Give the path of an empty file in a folder, which is removed afterwards unless it has been moved."""
    sweep(folder)
    handle, name = tempfile.mkstemp(ending, f"{PREFIX}{os.getpid()}-", folder.absolute())
    try:
        os.close(handle)
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


@contextmanager
def temporary_folder(folder: Path) -> Iterator[Path]:
    """Give the path of an empty folder in another, which is removed afterwards with all that is in it."""
    sweep(folder)
    prefix = f"{PREFIX}{os.getpid()}-"
    with tempfile.TemporaryDirectory(prefix=prefix, dir=folder.absolute(), ignore_cleanup_errors=True) as name:
        yield Path(name)


def sweep(folder: Path) -> None:
    """Remove what processes of this machine that are no more have left in a folder."""
    if sys.platform == "win32":  # there, asking for a process by os.kill would end it
        return
    for name in os.listdir(folder):
        number = name.removeprefix(PREFIX).partition("-")[0]
        if name.startswith(PREFIX) and number.isdigit():
            try:
                os.kill(int(number), 0)
            except ProcessLookupError:
                left = folder / name
                with suppress(OSError):
                    shutil.rmtree(left) if left.is_dir() and not left.is_symlink() else left.unlink()
            except OSError:  # it is somebody else's
                continue
