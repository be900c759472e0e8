"""Files of columns: what they hold, and one line about what is wrong with them."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from survscore._validation import InputError, plural, shown
from survscore.io.files import check_regular
from survscore.io.limits import CountedStream, check_size, read_parquet

if TYPE_CHECKING:
    import pyarrow as pa

CSV_ENDINGS = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
PARQUET_ENDINGS = (".parquet", ".pq")
ARROW_ENDINGS = (".arrow", ".feather")
ENDINGS = (*CSV_ENDINGS, ".csv.zst", ".tsv.zst", *PARQUET_ENDINGS, *ARROW_ENDINGS)
WORKBOOKS = (".xlsx", ".xls", ".xlsm", ".xlsb", ".ods", ".numbers")
STANDARD_INPUT = "-"
PACKED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
PACKED_ENDINGS = (".gz", ".zst")
IPC_MAGIC = b"ARROW1"
IPC_STREAM = b"\xff\xff\xff\xff"  # how each of its messages begins, and no text does
MISSING = ["", "NA", "N/A", "NaN", "nan", "NaT", "null", "NULL", "None"]
DELIMITERS = (",", ";", "\t", "|")
DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
DECIMAL_POINT = re.compile(r"[+-]?\d*\.\d+")
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+")


def arrow() -> Any:
    """Return pyarrow, which takes long to import: only what reads or writes files does so."""
    import pyarrow as pa

    return pa


def connect(path: Path | None = None, **settings: str) -> Any:
    """Return a connection to a DuckDB database, in a file or in memory, that fetches nothing from the network.

    Of a path such as md:x or s3://x DuckDB would fetch an extension, and run it. So paths are made absolute, and
    extensions are not loaded.
    """
    import duckdb

    where = ":memory:" if path is None else str(path.absolute())
    no_extensions = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    return duckdb.connect(where, config={**no_extensions, **settings})


@dataclass(frozen=True, eq=False)
class TableFile:
    """An open file: its columns' names and types, and the columns when they are asked for."""

    path: Path
    schema: pa.Schema
    n_rows: int
    select: Callable[[list[str]], pa.Table]

    @classmethod
    def of(cls, path: Path, table: pa.Table) -> TableFile:
        """Return a table that has been read already."""
        return cls(path, table.schema, table.num_rows, table.select)

    @property
    def names(self) -> list[str]:
        """Of all columns, in the order of the file."""
        return list(self.schema.names)

    def named(self, argument: str, name: str | None) -> str:
        """Return which column an argument names; without one it is called like the argument."""
        column = self.optional(argument, name)
        if column is None:
            raise InputError(f"{self.path}: there is no column {argument!r}; the columns are {listed(self.names)}")
        return column

    def optional(self, argument: str, name: str | None) -> str | None:
        """Return the same, or None where there is no such column and no name was given."""
        if name is not None and name not in self.names:
            raise InputError(
                f"{self.path}: there is no column {name!r} ({argument}); the columns are {listed(self.names)}"
            )
        return name if name is not None else argument if argument in self.names else None

    def read(self, names: Sequence[str]) -> pa.Table:
        """Return some of the columns; of a Parquet file, only these are read."""
        with readable(self.path):
            table = self.select(list(names))
        if any(len(column) != self.n_rows for column in table.columns):
            raise InputError(f"{self.path}: is damaged: it promises {plural(self.n_rows, 'row')}, and holds others")
        return table

    def column(self, name: str) -> pa.ChunkedArray:
        """Return one column without missing values."""
        return complete(self.path, name, self.read([name]).column(0))

    def numbers(self, name: str) -> NDArray[Any]:
        """Return one column's numbers."""
        return numbers(self.path, name, self.column(name))


def open_table(path: Path | str | TableFile, *, text: Collection[str] = ()) -> TableFile:
    """Open a CSV, Parquet or Arrow file; one that is open stays as it is.

    Its ending says which it is; ``-`` is standard input, whose first bytes say it. Columns named in `text`, such as
    ids, are text even if they look like numbers.
    """
    if isinstance(path, TableFile):
        return path
    source: Any = None
    if str(path) == STANDARD_INPUT:
        path = Path("standard input")
        source = _standard_input(path)
        kind = _kind_of_bytes(source)
    else:
        path = Path(path)
        kind = _kind_of_file(path)
    with readable(path):
        if kind == "parquet":
            import pyarrow.parquet as pq

            # not mapped into memory: if somebody shortens a mapped file, the process is killed
            source = path if source is None else source
            opened = pq.ParquetFile(source, page_checksum_verification=True)
            read = partial(read_parquet, path, source, opened)
            file = TableFile(path, opened.schema_arrow, opened.metadata.num_rows, read)
        else:
            file = TableFile.of(path, _ipc(path, source) if kind == "arrow" else read_csv(path, text, source))
        check_table(path, file.names, file.n_rows)
    return file


def check_table(path: Path, names: Sequence[str], n_rows: int) -> None:
    """Raise unless columns have different names, and there are rows."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(f"{path}: columns must have different names; repeated: {listed(twice)}")
    if n_rows == 0:
        raise InputError(f"{path}: has no rows")


def _kind_of_file(path: Path) -> str:
    name = path.name.lower()
    if name.endswith(WORKBOOKS):
        raise InputError(f"{path}: is a workbook; save its sheet as CSV UTF-8 (in Excel: File, Save As), and name that")
    if not name.endswith(ENDINGS):
        raise InputError(
            f"{path}: the ending must say what it is: .csv or .tsv (also .gz, .zst), .parquet, .pq, .arrow or .feather"
        )
    check_regular(path)
    return "parquet" if name.endswith(PARQUET_ENDINGS) else "arrow" if name.endswith(ARROW_ENDINGS) else "csv"


def _standard_input(path: Path) -> Any:
    """Return all bytes of standard input, unpacked where they are packed."""
    pa = arrow()
    with readable(path):
        content = pa.py_buffer(sys.stdin.buffer.read())
        for magic, codec in PACKED.items():
            if bytes(content[: len(magic)]) == magic:
                packed = pa.CompressedInputStream(pa.BufferReader(content), codec)
                return pa.py_buffer(CountedStream(path, packed).read())
    return content


def _kind_of_bytes(content: Any) -> str:
    start = bytes(content[:6])
    if start.startswith(b"PAR1"):
        return "parquet"
    return "arrow" if start == IPC_MAGIC or start.startswith(IPC_STREAM) else "csv"


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn what a reader raises about a broken file into one line that names it."""
    pa = arrow()
    try:
        yield
    except InputError:
        raise
    except (pa.ArrowException, OSError, ValueError, KeyError, MemoryError, OverflowError) as error:
        why = shown(" ".join(str(error).split()) or type(error).__name__, most=300)
        raise InputError(f"{path}: can't be read: {why}") from None


@contextmanager
def about(path: Path, columns: Mapping[str, str | None] = {}) -> Iterator[None]:
    """Name the file, and columns with names of their own, in the message of a check that knows nothing of them."""
    try:
        yield
    except InputError as error:
        renamed = [
            f"{argument} is column {name!r}" for argument, name in columns.items() if name not in (None, argument)
        ]
        message = str(error).removeprefix(f"{path}: ")  # the file may have been named already
        raise InputError(f"{path}: {message}" + (f" ({', '.join(renamed)})" if renamed else "")) from None


def listed(names: Sequence[str], most: int = 12) -> str:
    """Return names in quotes, the first of them where there are many."""
    quoted = ", ".join(repr(name) for name in names[:most])
    return quoted + (f" and {len(names) - most} more" if len(names) > most else "")


def complete(path: Path, name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the column, unless it has missing values."""
    if column.null_count:
        first = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        raise InputError(
            f"{path}: column {name!r} has {plural(column.null_count, 'missing value')}, the first in row {first}"
        )
    return column


def numbers(path: Path, name: str, column: pa.ChunkedArray) -> NDArray[Any]:
    """Return a column's numbers, or say what it holds instead."""
    types = arrow().types
    kind = column.type
    if types.is_decimal(kind):
        column, kind = column.cast("float64"), arrow().float64()
    if not (types.is_integer(kind) or types.is_floating(kind)):
        raise InputError(f"{path}: column {name!r} must hold numbers, not {_kind(kind)}{_offender(column)}")
    return np.asarray(complete(path, name, column).to_numpy())


def vector(column: pa.ChunkedArray) -> NDArray[Any]:
    """Return a column of whatever kind, for a check that comes later; missing values only where they are allowed."""
    types = arrow().types
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if types.is_temporal(column.type) and getattr(column.type, "tz", None):
        try:
            dates = column.to_pandas()
            if dates.dtype.kind == "M" and not dates.dt.year.dropna().between(1, 9999).all():  # which pandas 3 allows
                raise ValueError
            return np.asarray(dates, dtype=object)
        except (OverflowError, ValueError):
            raise InputError("dates with a time zone must be of the years 1 to 9999") from None
    return np.asarray(column.to_numpy())


def identifiers(file: TableFile, name: str) -> pa.Array:
    """Return a column of ids, none missing and none twice: whole numbers as they are, anything else as text."""
    import pyarrow.compute as pc

    ids = as_labels(file.path, name, file.read([name]).column(0))
    with readable(file.path):
        counted = pc.value_counts(ids)
    if len(counted) < len(ids):
        more = pc.greater(counted.field("counts"), 1)
        first = counted.filter(more)[0]
        raise InputError(
            f"{file.path}: ids must be different: {len(ids) - len(counted)} of {len(ids)} rows in column {name!r} "
            f"repeat an earlier one, the first {first['values'].as_py()!r} ({first['counts'].as_py()} times); if "
            "individuals have several rows, name this column as `groups`, and match rows by order (`by_order=True`)"
        )
    return ids


def as_labels(path: Path, name: str, column: pa.ChunkedArray) -> pa.Array:
    """Return ids, none missing: whole numbers as they are, anything else as text."""
    pa = arrow()
    import pyarrow.compute as pc

    column = complete(path, name, column)
    with readable(path):
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if pa.types.is_floating(column.type) and not pc.all(pc.equal(pc.round(column), column)).as_py():
            raise InputError(f"{path}: ids must be whole numbers or text, but column {name!r} holds fractions")
        numeric = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
        whole = column.cast(_id_type(column) if numeric else pa.string())
        return whole.chunk(0) if whole.num_chunks == 1 else pa.concat_arrays(whole.chunks)


def _id_type(column: pa.ChunkedArray) -> Any:
    """Return int64 for whole numbers that fit, otherwise text."""
    pa = arrow()
    try:
        column.cast(pa.int64())
    except pa.ArrowInvalid:
        return pa.string()
    return pa.int64()


def _ipc(path: Path, source: Any) -> Any:
    """Return the table of an Arrow file: the format with random access, or a stream."""
    pa = arrow()
    stream = pa.OSFile(str(path)) if source is None else pa.BufferReader(source)
    begins = stream.read(len(IPC_MAGIC))
    stream.seek(0)
    opened = pa.ipc.open_file(stream) if begins == IPC_MAGIC else pa.ipc.open_stream(stream)
    table = opened.read_all()
    table.validate(full=True)  # nothing in the format itself tells bytes that were changed
    return table


def read_csv(path: Path, text: Collection[str] = (), source: Any = None) -> pa.Table:
    """Return the table of a CSV file, or of the bytes of one; separator and decimal point are found out."""
    pa = arrow()
    from pyarrow import csv

    # of a file, the ending says whether it is compressed
    with pa.input_stream(str(path)) if source is None else pa.BufferReader(source) as stream:
        head = stream.read(1 << 16).splitlines()
    header = head[0].decode("utf-8-sig", errors="replace") if head else ""
    delimiter = max(DELIMITERS, key=header.count)
    convert = csv.ConvertOptions(
        null_values=MISSING,
        strings_can_be_null=True,
        decimal_point="," if _has_decimal_commas(head[1:], delimiter) else ".",
        column_types={name: pa.string() for name in text},
    )
    if source is None:
        check_size(path, path.stat().st_size)
        packed = path.name.lower().endswith(PACKED_ENDINGS)
        content = pa.PythonFile(CountedStream(path, pa.input_stream(str(path))), mode="r") if packed else path
    else:
        content = pa.BufferReader(source)
    return csv.read_csv(
        content,
        parse_options=csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        convert_options=convert,
    )


def _has_decimal_commas(lines: Sequence[bytes], delimiter: str) -> bool:
    """Whether numbers have a comma for the decimal point, as 0,95; 1,000 may be a thousand, and proves nothing."""
    if delimiter == ",":
        return False
    fields = {field.strip().strip('"') for line in lines for field in line.decode("utf-8", "replace").split(delimiter)}
    commas = [field for field in fields if DECIMAL_COMMA.fullmatch(field)]
    if any(DECIMAL_POINT.fullmatch(field) for field in fields):
        return False
    return any(not THOUSANDS.fullmatch(field) for field in commas)


def _kind(kind: Any) -> str:
    types = arrow().types
    if types.is_string(kind) or types.is_large_string(kind) or types.is_dictionary(kind):
        return "text"
    if types.is_binary(kind):
        return "bytes that are no UTF-8 text"
    if types.is_null(kind):
        return "only missing values"
    return str(kind)


def _offender(column: pa.ChunkedArray) -> str:
    """Say which text is no number, where that is what is wrong."""
    types = arrow().types
    if not (types.is_string(column.type) or types.is_large_string(column.type)):
        return ""
    for row, value in enumerate(column.to_pylist()):
        try:
            float(value if value is not None else 0)
        except ValueError:
            return f" (the first in row {row}: {shown(value)!r})"
    return ""
