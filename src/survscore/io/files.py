"""Writing files whole or not at all, also if several processes do so at once."""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from survscore._validation import InputError
from survscore.io.temporary import temporary_file

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

LONGEST_WAIT = 60.0  # seconds for another process that writes the same file
FULL = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}  # a disk, a file, what one user may have
FAR_AWAY = 1 << 40  # where a byte is locked on Windows, so that the file can be read meanwhile


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Give a temporary path beside `path`, which takes its place only if the block ends without error.

    The folder is made if it is not there. A link is followed, and a file that is replaced keeps its permissions. What
    is no regular file, such as a device, is not replaced but refused.
    """
    path = replaceable(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    endings = path.suffixes[-2:] if path.suffix == ".gz" else [path.suffix]
    try:
        with temporary_file(path.parent, "".join(endings)) as temporary:
            yield temporary
            replaceable(path)
            temporary.chmod(path.stat().st_mode if path.exists() else 0o666 & ~_umask())
            temporary.replace(path)
    except OSError as error:
        if error.errno is None or error.errno not in FULL:
            raise
        told = OSError(f"{path}: can't be written: {os.strerror(error.errno)}")  # who writes does not say where
        told.errno = error.errno
        raise told from None


@contextmanager
def created_whole(path: Path) -> Iterator[Path]:
    """Give a temporary path beside `path`, which becomes it if the block ends without error.

    Unlike with `written_whole`, a file that is there already is never replaced: FileExistsError.
    """
    with temporary_file(path.parent, path.suffix) as temporary:
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        try:
            os.link(temporary, path)
        except FileExistsError:
            raise
        except OSError:  # a file system without links: take the name first, then fill it
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            temporary.replace(path)


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
        stat.S_ISDIR: "a folder", stat.S_ISFIFO: "a pipe", stat.S_ISCHR: "a device", stat.S_ISBLK: "a device",
        stat.S_ISSOCK: "a socket",
    }  # fmt: skip
    return next((name for is_one, name in kinds.items() if is_one(mode)), "something else")


@contextmanager
def append_line(path: Path, line: bytes) -> Iterator[bytes]:
    """Give what a file holds, and append a line to it if the block ends without error; meanwhile nobody else does.

    A line that somebody else left without its end stays alone. If the line can't be written whole, nothing of it stays.
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
def locked(file: Path | IO[Any], *, shared: bool = False) -> Iterator[None]:
    """Keep a file to this process, or to those that only read it, while the block runs.

    A path is made a file where there is none, and stays. The lock ends with the process, however that ends.
    """
    if isinstance(file, Path):
        with file.open("ab") as opened, locked(opened, shared=shared):
            yield
        return
    last_try = time.monotonic() + LONGEST_WAIT
    while not _lock(file.fileno(), shared=shared):
        if time.monotonic() > last_try:
            raise TimeoutError(f"{file.name}: another process has been writing it for {LONGEST_WAIT:g} seconds")
        time.sleep(0.02)
    try:
        yield
    finally:
        _unlock(file.fileno())


def _lock(handle: int, *, shared: bool) -> bool:
    try:
        if sys.platform == "win32":
            position = os.lseek(handle, 0, os.SEEK_CUR)
            os.lseek(handle, FAR_AWAY, os.SEEK_SET)
            try:
                msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
            finally:
                os.lseek(handle, position, os.SEEK_SET)
        else:
            fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


def _unlock(handle: int) -> None:
    if sys.platform == "win32":
        position = os.lseek(handle, 0, os.SEEK_CUR)
        os.lseek(handle, FAR_AWAY, os.SEEK_SET)
        with suppress(OSError):
            msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)
        os.lseek(handle, position, os.SEEK_SET)
    else:
        fcntl.flock(handle, fcntl.LOCK_UN)


def _umask() -> int:
    umask = os.umask(0)  # it can't be read without being set
    os.umask(umask)
    return umask
