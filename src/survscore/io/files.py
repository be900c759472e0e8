"""Writing files whole or not at all, also if several processes do so at once."""

from __future__ import annotations

import errno
import os
import platform
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from survscore._validation import InputError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

# Of temporary files and folders, followed by the number of the process, as in .survscore-host-4711-x
PREFIX = f".survscore-{platform.node()}-"
LONGEST_WAIT = 60.0  # seconds for another process that writes the same file
FULL = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}  # a disk, a file, what one user may have
FAR_AWAY = 1 << 40  # where a byte is locked on Windows, so that the file can be read meanwhile


@contextmanager
def temporary_folder(folder: Path) -> Iterator[Path]:
    """Give the path of an empty folder in another, which is removed afterwards with all that is in it."""
    _remove_abandoned(folder)
    prefix = f"{PREFIX}{os.getpid()}-"
    with tempfile.TemporaryDirectory(prefix=prefix, dir=folder.absolute(), ignore_cleanup_errors=True) as name:
        yield Path(name)


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Give a temporary path beside `path`, which takes its place only if the block ends without error.

    The folder is made if it is not there. A link is followed, and a file that is replaced keeps its permissions. What
    is no regular file, such as a device, is not replaced but refused.
    """
    path = replaceable(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(path.parent)
    ending = "".join(path.suffixes[-2:]) if path.suffix == ".gz" else path.suffix  # which writers go by
    handle, name = tempfile.mkstemp(ending, f"{PREFIX}{os.getpid()}-", path.parent.absolute())
    temporary = Path(name)
    try:
        os.close(handle)
        yield temporary
        replaceable(path)
        temporary.chmod(path.stat().st_mode if path.exists() else 0o666 & ~_umask())
        temporary.replace(path)
    except OSError as error:
        if error.errno is None or error.errno not in FULL:
            raise
        named = OSError(f"{path}: can't be written: {os.strerror(error.errno)}")  # who writes does not say where
        named.errno = error.errno
        raise named from None
    finally:
        temporary.unlink(missing_ok=True)


def _remove_abandoned(folder: Path) -> None:
    """Remove temporary files and folders of processes of this machine that were killed."""
    if sys.platform == "win32":  # there, asking for a process by os.kill would end it
        return
    for left in folder.glob(f"{PREFIX}*"):
        number = left.name.removeprefix(PREFIX).partition("-")[0]
        if not number.isdigit():
            continue
        try:
            os.kill(int(number), 0)
        except ProcessLookupError:
            with suppress(OSError):
                shutil.rmtree(left) if left.is_dir() and not left.is_symlink() else left.unlink()
        except (OSError, OverflowError):  # it is another user's; or no process
            continue


def check_regular(path: Path) -> None:
    """Raise unless a path is that of a file with contents: reading a pipe or a device might never end."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file") from None
    except OSError as error:
        raise InputError(f"{path}: can't be read: {error.strerror}") from None
    if not stat.S_ISREG(mode):
        raise InputError(f"{path}: is {kind_of(mode)}, not a file")


def replaceable(path: Path) -> Path:
    """Return where a path leads, links followed, unless something lies there that is no regular file."""
    try:
        target = path.resolve()
        mode = target.stat().st_mode
    except FileNotFoundError:
        return target
    except (OSError, RuntimeError) as error:  # Python 3.12 and older: a loop of links is a RuntimeError
        why = getattr(error, "strerror", None) or "a loop of links"
        raise InputError(f"{path}: can't be written: {why}") from None
    if not stat.S_ISREG(mode):
        raise InputError(f"{path}: is {kind_of(mode)}, not a file" + ("" if stat.S_ISDIR(mode) else ", and stays"))
    return target


def kind_of(mode: int) -> str:
    """Return what lies at a path, by its mode, where that is no regular file."""
    kinds = {
        stat.S_IFDIR: "a folder",
        stat.S_IFIFO: "a pipe",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
        stat.S_IFSOCK: "a socket",
    }
    return kinds.get(stat.S_IFMT(mode), "something else")


@contextmanager
def append_line(path: Path, line: bytes) -> Iterator[bytes]:
    """Give what a file holds, and append a line to it if the block ends without error; other writers wait meanwhile.

    A last line that was left without its end stays alone. If the line can't be written whole, nothing of it stays.
    """
    if path.exists():
        check_regular(path)
    with path.open("a+b", buffering=0) as file, locked(file):
        file.seek(0)
        before = file.read()
        yield before
        whole = line if before.endswith(b"\n") or not before else b"\n" + line
        try:
            if file.write(whole) != len(whole):
                raise OSError(f"{path}: the disk is full")
            os.fsync(file.fileno())
        except BaseException:
            file.truncate(len(before))
            raise


@contextmanager
def locked(file: IO[Any], *, shared: bool = False) -> Iterator[None]:
    """Keep an open file to this process, or to those that only read it, while the block runs.

    The lock ends with the process, however that ends.
    """
    last_try = time.monotonic() + LONGEST_WAIT
    while not _lock(file.fileno(), shared=shared):
        if time.monotonic() > last_try:
            raise TimeoutError(f"{file.name}: another process has been writing it for {LONGEST_WAIT:g} seconds")
        time.sleep(0.02)
    try:
        yield
    finally:
        if sys.platform == "win32":
            with suppress(OSError):
                _lock_far_away(file.fileno(), msvcrt.LK_UNLCK)
        else:
            fcntl.flock(file.fileno(), fcntl.LOCK_UN)


def _lock(handle: int, *, shared: bool) -> bool:
    try:
        if sys.platform == "win32":
            _lock_far_away(handle, msvcrt.LK_NBLCK)
        else:
            fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


if sys.platform == "win32":

    def _lock_far_away(handle: int, how: int) -> None:
        position = os.lseek(handle, 0, os.SEEK_CUR)
        os.lseek(handle, FAR_AWAY, os.SEEK_SET)
        try:
            msvcrt.locking(handle, how, 1)
        finally:
            os.lseek(handle, position, os.SEEK_SET)


def _umask() -> int:
    umask = os.umask(0)  # it can't be read without being set
    os.umask(umask)
    return umask
