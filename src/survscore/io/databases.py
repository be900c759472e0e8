"""Connections to DuckDB that read what they are given, and nothing from the network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

# Of a path such as md:x or s3://x DuckDB would fetch an extension, and run it.
NO_EXTENSIONS = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}


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
