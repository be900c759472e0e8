"""Writing files whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Give a temporary path beside `path`, which takes its place only if the block ends without error.

    The folder is made if it is not there. A link is followed, and a file that is replaced keeps its permissions.
    """
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    endings = path.suffixes[-2:] if path.suffix == ".gz" else [path.suffix]
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".survscore-", suffix="".join(endings))
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(path.stat().st_mode if path.exists() else 0o666 & ~_umask())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _umask() -> int:
    umask = os.umask(0)  # it can't be read without being set
    os.umask(umask)
    return umask
