"""Connections to DuckDB that read what they are given, and nothing from the network."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, TypeVar

# Of a path such as md:x or s3://x DuckDB would fetch an extension, and run it.
NO_EXTENSIONS = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
Result = TypeVar("Result")


def connect(path: Path | None = None, **settings: str) -> Any:
    """Return a connection to a database, in a file or in memory.

    Parameters
    ----------
    path : Path, optional
        Where it lies; made absolute, so that nothing in front of it is taken for a protocol.
    **settings
        Of the database.
    """
    import duckdb

    where = ":memory:" if path is None else str(path.absolute())
    return duckdb.connect(where, config={**NO_EXTENSIONS, **settings})


def interruptible(database: Any, work: Callable[[], Result]) -> Result:
    """Do some work with a database in a thread, so that an interrupt of this one ends its queries at once.

    A query that runs in the main thread looks for signals once in many seconds.
    """
    with ThreadPoolExecutor(1) as threads:
        done = threads.submit(work)
        try:
            while not done.done():  # not without end, in which Windows would hear nothing
                wait([done], timeout=0.5)
            return done.result()
        except BaseException:
            while not done.done():  # between two queries, there is none to interrupt
                database.interrupt()
                wait([done], timeout=0.05)
            raise
