"""How large the contents of a file may become in memory, known before they do."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from survscore._validation import InputError

if TYPE_CHECKING:
    import pyarrow as pa

LITTLE = 1 << 30  # bytes that any file may become
SAMPLED = 1 << 26  # bytes of some rows, to look at
EXPANSION = 500  # times its size, that it may become beyond
ROWS = 1 << 16  # of text, at a time
WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 8, "FLOAT": 4, "DOUBLE": 8, "BYTE_ARRAY": 4}


def machine_memory() -> int:
    """Return how much memory this machine or container has, or a small one would where that is unknown."""
    try:
        if sys.platform == "win32":  # which has no sysconf
            import ctypes

            kilobytes = ctypes.c_ulonglong(0)
            ctypes.windll.kernel32.GetPhysicallyInstalledSystemMemory(ctypes.byref(kilobytes))
            return 1024 * kilobytes.value or 8 << 30
        memory = int(os.sysconf("SC_PHYS_PAGES")) * int(os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return 8 << 30
    with suppress(OSError, ValueError):  # "max", where there is no limit
        memory = min(memory, int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii")))
    return memory


def check_size(path: Path, size: int) -> None:
    """Raise if a file becomes so many bytes that they do not fit in memory, or are so much more than the file."""
    if size <= LITTLE:
        return
    stored, memory = path.stat().st_size if path.exists() else size, machine_memory()  # standard input has no size
    what = f"{path}: would take {_in_words(size)} of memory or more"
    if size > memory:
        raise InputError(f"{what}, and there are {_in_words(memory)}; survscore evaluate reads files of any size")
    if size > EXPANSION * stored:
        raise InputError(
            f"{what}, though it has only {_in_words(stored)}: something is wrong with it; "
            "if not, survscore evaluate reads it piece by piece"
        )


def read_parquet(path: Path, source: Any, opened: Any, names: Sequence[str]) -> pa.Table:
    """Read some columns of an open Parquet file, unless they would become too large.

    What numbers take is known from the file's metadata. A dictionary may say in a few bytes that one long word is
    repeated a billion times: so text is read as codes, and unpacked once its size is known.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    size, longest = _needed(opened.metadata, _leaves(opened.metadata, set(names)))
    check_size(path, size)
    if not longest:
        return opened.read(list(names))
    kinds = {name: opened.schema_arrow.field(name).type for name in names}
    types = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
    texts = [name for name, kind in kinds.items() if kind in types]
    others = {name for name, kind in kinds.items() if name not in texts and not pa.types.is_dictionary(kind)}
    coded = pq.ParquetFile(source, read_dictionary=texts, page_checksum_verification=True)
    if _needed(opened.metadata, _leaves(opened.metadata, others))[1]:  # text in lists, piece by piece
        rows = max(1, min(ROWS, LITTLE // longest))
        batches, total = [], 0
        for batch in coded.iter_batches(rows, columns=list(names)):
            total += batch.nbytes
            check_size(path, total)
            batches.append(batch.select(list(names)))
        table = pa.Table.from_batches(batches) if batches else coded.read(list(names))
    else:
        table = coded.read(list(names))
    for position, name in enumerate(table.column_names):
        column = table.column(name)
        if not pa.types.is_dictionary(column.type):
            continue
        if column.type.value_type in types:
            for chunk in column.chunks:
                size += pc.sum(pc.binary_length(chunk.dictionary).take(chunk.indices)).as_py() or 0
                check_size(path, size)
        if name in texts:
            table = table.set_column(position, opened.schema_arrow.field(name), column.cast(kinds[name]))
    return table


def rows_that_fit(path: Path, metadata: Any, rows: int) -> int:
    """Return how many rows of a Parquet file to look at: fewer where texts may be long."""
    size, longest = _needed(metadata, list(range(metadata.num_columns)))
    row: int = max(longest, size // max(metadata.num_rows, 1), 1)
    check_size(path, row)
    return max(1, min(rows, SAMPLED // row))


class CountedStream(io.RawIOBase):
    """A stream that is read only as far as its contents may go."""

    def __init__(self, path: Path, stream: Any) -> None:
        self._path, self._stream, self._size = path, stream, 0

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read the next bytes."""
        n = int(self._stream.readinto(buffer))
        self._size += n
        check_size(self._path, self._size)
        return n


def _leaves(metadata: Any, names: Collection[str]) -> list[int]:
    """Return the columns, as the file numbers them, that belong to some names; those of lists are below them."""
    paths = [metadata.schema.column(k).path.split(".") for k in range(metadata.num_columns)]
    return [k for k, parts in enumerate(paths) if any(".".join(parts[: j + 1]) in names for j in range(len(parts)))]


def _needed(metadata: Any, columns: list[int]) -> tuple[int, int]:
    """Return how many bytes columns take at least, and how long a text in them may be; 0, where there is none."""
    described = [metadata.schema.column(k) for k in columns]
    widths = [WIDTHS.get(column.physical_type, max(column.length, 1)) for column in described]
    text = [column.physical_type == "BYTE_ARRAY" for column in described]
    size = longest = 0
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for k, width, is_text in zip(columns, widths, text, strict=True):
            chunk = row_group.column(k)
            stored = max(chunk.total_uncompressed_size, 0)
            size += max(stored, chunk.num_values * width)
            longest = max(longest, stored) if is_text else longest
    return size, longest


def _in_words(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 10**9 else f"{size / 1e6:.1f} MB" if size >= 10**5 else f"{size} bytes"
