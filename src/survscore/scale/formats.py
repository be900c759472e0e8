"""Readers of one open file: its schema, and some of its columns in batches."""

from __future__ import annotations

import csv as text_csv
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from survscore._validation import InputError
from survscore.io.tables import DELIMITERS, MISSING, arrow

if TYPE_CHECKING:
    import pyarrow as pa

ENDINGS = {
    "parquet": (".parquet", ".pq"),
    "csv": (".csv", ".csv.gz", ".tsv", ".tsv.gz"),
    "arrow": (".arrow", ".arrows", ".feather", ".ipc"),
}
FORMATS = tuple(ENDINGS)
AHEAD = 64 << 20  # bytes of row groups that are asked for at once where every request is a journey
HUGE = 32 << 20  # bytes of a row group above which its columns are read in pieces
BIT, REMOTE_BIT = 1 << 16, 1 << 22  # of each column; where every request is a journey, more
HEADER = 1 << 16
CSV_BLOCK = 4 << 20
IPC_MAGIC = b"ARROW1"


@dataclass(frozen=True, eq=False)
class Reader:
    """An open file: its schema, and the way to some of its columns, in batches of at most so many rows.

    Attributes
    ----------
    schema : pyarrow.Schema
        Its columns.
    batches : callable
        Takes columns, and how many rows a batch has at most.
    groups : tuple of int
        The rows of every row group, in Parquet.
    first : int
        Where in the file the first row is that is read.
    """

    schema: pa.Schema
    batches: Callable[[Sequence[str], int], Iterator[pa.RecordBatch]]
    groups: tuple[int, ...] = ()
    first: int = 0


def format_of(name: str) -> str | None:
    """Return the format that the ending of a file name stands for, if there is one."""
    lower = name.lower()
    return next((format for format, endings in ENDINGS.items() if lower.endswith(endings)), None)


def parquet_reader(
    file: Any,
    *,
    local: bool,
    checksums: bool,
    row_groups: tuple[int, int] | None = None,
    labels: Collection[str] = (),
) -> Reader:
    """Read Parquet in the calling thread, a row group at a time: all of them, or those from one up to another.

    The file is read, not mapped: a map is hardly faster, and kills the process where a file shrinks under it. Reading
    ahead over the whole file, as is the default, keeps all of it in memory until it is closed.
    """
    import pyarrow.parquet as pq

    # labels stay numbers, with their texts beside them: as they are written, and as they are needed
    own = set(pq.read_schema(file).names) if labels else set()
    file.seek(0)
    options = {"read_dictionary": [name for name in labels if name in own], "page_checksum_verification": checksums}
    # a small buffer, which stays in a cache, is as fast as a map
    opened = pq.ParquetFile(file, pre_buffer=not local, buffer_size=BIT if local else 0, **options)
    metadata, schema = opened.metadata, opened.schema_arrow
    groups = tuple(metadata.row_group(group).num_rows for group in range(metadata.num_row_groups))
    start, stop = (0, len(groups)) if row_groups is None else row_groups
    promised = metadata.num_rows if row_groups is None else sum(groups[start:stop])

    def batches(columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
        if not columns:
            yield from _without_columns(promised, rows)
            return
        share = len(columns) / max(len(schema.names), 1)
        sizes = [metadata.row_group(group).total_byte_size * share for group in range(start, stop)]
        runs = [list(range(len(sizes)))] if local else _runs(sizes)
        source = opened
        if not local and max(sizes, default=0) > HUGE:
            source = pq.ParquetFile(
                file,
                metadata=metadata,
                pre_buffer=False,
                buffer_size=REMOTE_BIT,
                **options,
            )
        read = 0
        for run in runs:
            wanted = [start + group for group in run]
            for batch in source.iter_batches(rows, row_groups=wanted, columns=list(columns), use_threads=False):
                read += batch.num_rows
                # a column '30' is also what a '30.5' begins with, and comes along with it
                yield batch.select(list(columns))
        if read != promised:
            raise InputError(f"it is damaged: it promises {promised} rows, and holds {read}")

    return Reader(schema, batches, groups, sum(groups[:start]))


def arrow_reader(file: Any) -> Reader:
    """Read Arrow's own format, a file or a stream."""
    ipc = arrow().ipc
    magic = file.read(len(IPC_MAGIC))
    file.seek(0)
    open_as = ipc.open_file if magic == IPC_MAGIC else ipc.open_stream
    schema = open_as(file).schema

    def batches(columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
        file.seek(0)
        options = ipc.IpcReadOptions(included_fields=[schema.names.index(name) for name in columns], use_threads=False)
        opened = open_as(file, options=options) if columns else open_as(file)
        several = (opened.get_batch(k) for k in range(opened.num_record_batches)) if magic == IPC_MAGIC else opened
        for batch in several:
            chosen = batch.select(list(columns)) if columns else batch
            chosen.validate(full=True)  # nothing in the format tells bytes that were changed; who reads them may crash
            yield from sliced(chosen, rows)

    return Reader(schema, batches)


def csv_reader(open_stream: Callable[[], Any], numeric: Collection[str]) -> Reader:
    """Read CSV as a stream; types are those of the first block, but of numbers float64."""
    from pyarrow import csv

    types = arrow()
    with open_stream() as stream:
        head = stream.read(HEADER)
    if not head.strip():
        raise InputError("it is empty: there is not even a header")
    header = head.splitlines()[0].decode("utf-8-sig")
    delimiter = max(DELIMITERS, key=header.count)
    names = next(text_csv.reader([header], delimiter=delimiter))

    def opened(columns: Sequence[str]) -> Any:
        return csv.open_csv(
            open_stream(),
            read_options=csv.ReadOptions(block_size=CSV_BLOCK, use_threads=False),
            parse_options=csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                null_values=MISSING,
                strings_can_be_null=True,
                include_columns=list(columns),
                column_types={name: types.float64() for name in numeric if name in names},
            ),
        )

    def batches(columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
        with opened(columns or names[:1]) as reader:
            for batch in reader:
                yield from sliced(batch, rows)

    if len(set(names)) < len(names):  # nobody can say which of them is meant; the caller names them
        return Reader(types.schema([(name, types.null()) for name in names]), batches)
    with opened(names) as reader:
        return Reader(reader.schema, batches)


def sliced(batch: pa.RecordBatch, rows: int) -> Iterator[pa.RecordBatch]:
    """Give a batch in pieces of at most so many rows, without a copy."""
    if batch.num_rows <= rows:
        yield batch
        return
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def _runs(sizes: Sequence[float]) -> list[list[int]]:
    """Return row groups that follow each other, as many at a time as may be asked for ahead."""
    runs: list[list[int]] = []
    total = 0.0
    for group, size in enumerate(sizes):
        if not runs or total + size > AHEAD:
            runs.append([])
            total = 0.0
        runs[-1].append(group)
        total += size
    return runs


def _without_columns(count: int, rows: int) -> Iterator[pa.RecordBatch]:
    """Give batches that have rows and nothing else: what is asked for are the names of folders."""
    pa = arrow()
    for start in range(0, count, rows):
        here = min(rows, count - start)
        yield pa.RecordBatch.from_arrays([pa.nulls(here)], names=[""])
