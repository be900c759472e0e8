"""Anything that gives rows in batches: files, tables, frames, relations, iterators."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import posixpath
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from survscore._validation import InputError
from survscore.io.tables import arrow
from survscore.scale.files import ROWS, BadFileError, ExpectedSchema, FilePart, check_columns, check_complete
from survscore.scale.filesystems import LOCAL, described_filesystem, entries_at, name_of, opened
from survscore.scale.formats import sliced
from survscore.scale.listing import check_different, common_folder, file_parts

if TYPE_CHECKING:
    import pyarrow as pa

    from survscore.scale.on_dask import DaskFrame
    from survscore.scale.on_spark import SparkFrame

FOOTERS = 16  # that are asked for at once
PIECE, PIECES = 1 << 16, 8  # of a file, by which it is known again
# Some of the columns, or all for None, in batches or tables.
Stream: TypeAlias = "Callable[[list[str] | None], Iterable[pa.RecordBatch | pa.Table]]"


@dataclass(frozen=True, eq=False)
class Source:
    """What predictions or outcomes are read from.

    Attributes
    ----------
    name : str
        What to call it in messages.
    parts : list of FilePart or None
        Its files; None if it is one stream, or a frame.
    frame : DaskFrame, SparkFrame or None
        A frame of Dask or Spark, whose rows are never read here.
    rereadable : bool
        Whether `batches` may be called again.
    """

    name: str
    parts: list[FilePart] | None = None
    rereadable: bool = True
    _stream: Stream | None = field(default=None, repr=False)
    _schema: Callable[[], pa.Schema] | None = field(default=None, repr=False)
    _used: list[bool] = field(default_factory=list, repr=False)
    frame: DaskFrame | SparkFrame | None = field(default=None, repr=False)

    def schema(self) -> pa.Schema:
        """Return the names and types of its columns; of files, those of the first."""
        if self.parts is not None:
            return self.parts[0].schema()
        if self.frame is not None:
            return self.frame.schema()
        if self._schema is None:
            raise InputError(f"{self.name}: its columns are unknown before it is read")
        return self._schema()

    def batches(
        self,
        columns: Sequence[str],
        *,
        rows: int = ROWS,
        nullable: Collection[str] = (),
        numeric: Collection[str] = (),
    ) -> Iterator[pa.RecordBatch]:
        """Read some columns of all rows, checked.

        Parameters
        ----------
        columns : sequence of str
            In the order in which they are given back.
        rows : int
            The most that a batch holds.
        nullable : collection of str
            Columns in which values may be missing.
        numeric : collection of str
            Columns that must hold numbers, or lists of them.

        Yields
        ------
        pyarrow.RecordBatch
        """
        if self.parts is not None:
            expected = None
            for part in self.parts:
                if expected is None:
                    expected = expected_schema(part, columns, numeric=numeric)
                yield from part.batches(columns, rows=rows, nullable=nullable, numeric=numeric, expected=expected)
            return
        if self.frame is not None:
            raise InputError(f"{self.name} is a frame on a cluster, whose rows are not brought to this machine")
        if self._used and not self.rereadable:
            raise InputError(f"{self.name} has been read and can't be read again; give a function that makes a new one")
        self._used.append(True)
        expected, first = None, 0
        for batch in self._raw(list(columns)):
            check_columns(self.name, batch.schema, expected, columns, numeric, _error)
            expected = expected or ExpectedSchema.of("the first batch", batch.schema, columns)
            chosen = batch.select(list(columns))
            for piece in sliced(chosen, rows):
                check_complete(self.name, piece, nullable, first, _error)
                first += len(piece)
                yield piece

    def _raw(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        pa = arrow()
        if self._stream is None:  # neither files nor a stream: nothing makes such a source
            return
        for given in self._stream(columns):
            if isinstance(given, pa.RecordBatch):
                yield given
            elif isinstance(given, pa.Table):
                yield from given.to_batches()
            else:
                raise InputError(f"{self.name} must give pyarrow RecordBatches or Tables, not {type(given).__name__}")


def open_source(
    source: Any,
    *,
    storage_options: Mapping[str, Any] | None = None,
    format: str | None = None,
    manifest: str | Path | Sequence[str] | None = None,
    name: str = "source",
) -> Source:
    """Return the rows that something stands for, without reading them.

    Parameters
    ----------
    source : path, list of paths, dataset, table, frame, relation or iterator
        A folder, a pattern, a file, a list of these, or an address (``s3://``, ``gs://``, ``abfs://``, ``file://``,
        and what fsspec knows); a pyarrow Dataset, Table or RecordBatchReader; a Polars, pandas, Dask or Spark frame; a
        DuckDB relation; RecordBatches or Tables in any iterable, or a function that returns one.
    storage_options : dict, optional
        How to reach remote storage: what pyarrow's ``S3FileSystem``, ``GcsFileSystem`` or ``AzureFileSystem`` take,
        or for other addresses fsspec.
    format : {"parquet", "csv", "arrow"}, optional
        Of files, by default what their endings say.
    manifest : path or sequence of str, optional
        The names of all files, relative to the folder: one more or one less is an error.
    name : str
        What to call it in messages where it has no name of its own.

    Returns
    -------
    Source

    Examples
    --------
    >>> import pyarrow as pa
    >>> from survscore.scale.sources import open_source
    >>> source = open_source(pa.table({"duration": [1.0, 2.0], "event": [True, False]}))
    >>> [batch.num_rows for batch in source.batches(["duration"])]
    [2]
    """
    if isinstance(source, Source):
        return source
    if _are_paths(source):
        parts = file_parts(source, storage_options=storage_options, format=format, manifest=manifest)
        return Source(parts[0].name if len(parts) == 1 else f"{name} of {len(parts)} files", parts)
    given = {"storage_options": storage_options, "format": format, "manifest": manifest}
    for option, value in given.items():
        if value is not None:
            raise InputError(f"{option} is for files, but {name} is of type {type(source).__name__}")
    modules = [base.__module__.split(".", 1)[0].lstrip("_") for base in type(source).__mro__]
    opener = next((_OPENERS[module] for module in modules if module in _OPENERS), None)
    opened = opener(source, name) if opener is not None else None
    return opened if opened is not None else _from_iterable(source, name)


def identified(source: Source) -> Source:
    """Return the source with the digests of its files; raise if one is a copy of another, unless they have no rows.

    Digests are of the beginning, the end (which in Parquet describes all columns) and pieces between, 64 kB at a time:
    reading all of it would take as long as scoring. Of remote files the end has to do.
    """
    if source.parts is None:
        return source
    with ThreadPoolExecutor(FOOTERS) as pool:
        parts = list(pool.map(lambda part: dataclasses.replace(part, digest=_digest(part)), source.parts))
    seen: dict[tuple[Any, ...], FilePart] = {}
    for part in parts:
        first = seen.setdefault((part.size, part.digest or part.name, str(sorted(part.constants.items()))), part)
        if first is not part and _has_rows(part):
            raise InputError(
                f"{part.name}: is a copy of {first.name}, and its rows would be counted twice; leave one out"
            )
    return dataclasses.replace(source, parts=parts)


def _digest(part: FilePart) -> str:
    """Return a digest of pieces of a file; "" where it can't be read, which is said where it is."""
    local = part.filesystem["type"] == "local"
    last = max(part.size - PIECE, 0)
    places = np.linspace(0, last, PIECES).astype(int).tolist() if local else [last]
    try:
        if local and not stat.S_ISREG(os.stat(part.path).st_mode):
            return ""
        with opened(part.filesystem).open_input_file(part.path) as file:
            found = hashlib.sha256()
            for place in dict.fromkeys(places):
                found.update(file.read_at(PIECE, place))
    except (arrow().ArrowException, OSError, ValueError, ImportError):
        return ""
    return found.hexdigest()[:16]


def _has_rows(part: FilePart) -> bool:
    try:
        name = part.schema().names[0]
        return any(len(batch) for batch in part.batches([name], nullable=[name]))
    except BadFileError:
        return False


def expected_schema(part: FilePart, columns: Sequence[str], *, numeric: Collection[str] = ()) -> ExpectedSchema:
    """Return what the first file of a source says of its columns, for the others to be held against."""
    schema = part.schema(numeric=numeric)
    check_columns(part.name, schema, None, columns, numeric, BadFileError)
    return ExpectedSchema.of(part.name, schema, columns)


def _are_paths(source: Any) -> bool:
    if isinstance(source, str | Path):
        return True
    return isinstance(source, list | tuple) and (not source or isinstance(source[0], str | Path))


def _from_arrow(source: Any, name: str) -> Source | None:
    kinds = arrow()
    if isinstance(source, kinds.RecordBatch):
        source = kinds.Table.from_batches([source])
    if isinstance(source, kinds.Table):
        return Source(name, _stream=lambda columns: [_selected(source, columns)], _schema=lambda: source.schema)
    if isinstance(source, kinds.RecordBatchReader):
        return Source(name, rereadable=False, _stream=lambda _: source, _schema=lambda: source.schema)
    from pyarrow import dataset

    if not isinstance(source, dataset.Dataset):
        return None
    parts = _parts_of(source)
    if parts is not None:
        return Source(f"{name} of {len(parts)} files", parts)

    def scanned(columns: list[str] | None) -> Iterator[pa.RecordBatch]:
        # little is read ahead: what is read and waits is memory that nothing accounts for
        wanted = None if columns is None else [column for column in columns if column in source.schema.names]
        yield from source.to_batches(columns=wanted, batch_size=ROWS, batch_readahead=2, fragment_readahead=1)

    return Source(name, _stream=scanned, _schema=lambda: source.schema)


def _parts_of(source: Any) -> list[FilePart] | None:
    """Return the files of a dataset, if reading them gives the rows and the types that the dataset gives."""
    from pyarrow import dataset

    kinds = {dataset.ParquetFileFormat: "parquet", dataset.IpcFileFormat: "arrow"}
    if not isinstance(source, dataset.FileSystemDataset) or getattr(source, "_scan_options", None):
        return None  # not from files, or only some of their rows
    kind = next((word for one, word in kinds.items() if isinstance(source.format, one)), None)
    fragments = list(source.get_fragments())
    if kind is None or not fragments:
        return None
    for column in fragments[0].physical_schema:
        if column.name in source.schema.names and not source.schema.field(column.name).type.equals(column.type):
            return None
    if kind == "parquet" and not _are_whole(fragments):
        return None
    try:
        description, prefix = described_filesystem(source.filesystem)
    except InputError:  # one of its own, such as that of a Delta table: the dataset is read as a stream
        return None
    paths = [prefix + fragment.path for fragment in fragments]
    paths = [os.path.abspath(path) for path in paths] if description == LOCAL else paths
    parts = []
    found, root = entries_at(description, paths), common_folder([posixpath.dirname(path) for path in paths])
    for path, fragment, there in zip(paths, fragments, found, strict=True):
        if there is None:
            raise InputError(f"{name_of(description, path)}: there is no such file, though it is in the dataset")
        keys = dataset.get_partition_keys(fragment.partition_expression)
        constants = {key: value if isinstance(value, int | None) else str(value) for key, value in keys.items()}
        relative = posixpath.relpath(path.replace(os.sep, "/"), root) if root else path
        parts.append(FilePart(path, description, kind, there.size, there.etag, constants, relative=relative))
    check_different(description, [there for there in found if there is not None])
    return parts


def _are_whole(fragments: list[Any]) -> bool:
    """Whether the fragments of a dataset are all row groups of their files."""
    with ThreadPoolExecutor(FOOTERS) as pool:  # which row groups there are is at the end of each file
        return all(pool.map(lambda fragment: len(fragment.row_groups) == fragment.metadata.num_row_groups, fragments))


def _from_polars(source: Any, name: str) -> Source | None:
    import polars as pl

    if isinstance(source, pl.DataFrame):
        return Source(
            name,
            _stream=lambda columns: (_selected(piece, columns).to_arrow() for piece in source.iter_slices(ROWS)),
            _schema=lambda: source.head(0).to_arrow().schema,
        )
    if not isinstance(source, pl.LazyFrame):
        return None

    def collected(columns: list[str] | None) -> Iterator[pa.Table]:
        there = source.collect_schema().names()
        wanted = source if columns is None else source.select([column for column in columns if column in there])
        if hasattr(wanted, "collect_batches"):
            for frame in wanted.collect_batches(chunk_size=ROWS, maintain_order=False):
                yield frame.to_arrow()
        else:
            yield from (piece.to_arrow() for piece in wanted.collect(engine="streaming").iter_slices(ROWS))

    return Source(name, _stream=collected, _schema=lambda: source.head(0).collect().to_arrow().schema)


def _from_duckdb(source: Any, name: str) -> Source | None:
    import duckdb

    if not isinstance(source, duckdb.DuckDBPyRelation):
        return None

    def reader(relation: Any) -> Any:
        method = getattr(relation, "to_arrow_reader", None) or relation.fetch_record_batch
        return method(ROWS)

    def projected(columns: list[str] | None) -> Any:
        wanted = None if columns is None else [column for column in columns if column in source.columns]
        chosen = source.select(*map(duckdb.ColumnExpression, wanted)) if wanted else source
        return reader(chosen)

    return Source(name, _stream=projected, _schema=lambda: reader(source.limit(0)).schema)


def _from_pandas(source: Any, name: str) -> Source | None:
    pa = arrow()
    import pandas as pd

    if not isinstance(source, pd.DataFrame):
        return None
    if not source.columns.map(str).is_unique:
        raise InputError(f"{name}: columns must have different names")
    places = {str(label): place for place, label in enumerate(source.columns)}

    def chosen(columns: list[str] | None) -> tuple[Any, Any]:
        wanted = list(places) if columns is None else [column for column in columns if column in places]
        frame = source.iloc[:, [places[column] for column in wanted]].set_axis(wanted, axis=1)
        try:  # of all rows: the first thousand of a column of objects may all be missing
            return frame, pa.Schema.from_pandas(frame, preserve_index=False).remove_metadata()
        except (pa.ArrowException, TypeError) as error:
            raise InputError(f"{name}: {' '.join(str(error).split())}") from None

    def pieces(columns: list[str] | None) -> Iterator[Any]:
        frame, schema = chosen(columns)
        for start in range(0, max(len(frame), 1), ROWS):
            yield pa.Table.from_pandas(frame.iloc[start : start + ROWS], schema=schema, preserve_index=False)

    return Source(name, _stream=pieces, _schema=lambda: chosen(None)[1])


def _from_dask(source: Any, name: str) -> Source | None:
    import dask.dataframe as dd

    from survscore.scale.on_dask import DaskFrame

    return Source(name, frame=DaskFrame(source, name)) if isinstance(source, dd.DataFrame) else None


def _from_spark(source: Any, name: str) -> Source | None:
    from pyspark.sql import DataFrame

    from survscore.scale.on_spark import SparkFrame

    return Source(name, frame=SparkFrame(source, name)) if isinstance(source, DataFrame) else None


def _from_iterable(source: Any, name: str) -> Source:
    pa = arrow()
    if callable(source):
        return Source(name, _stream=lambda _: source(), _schema=lambda: _first(source(), name).schema)
    if hasattr(source, "__arrow_c_stream__"):
        reader = pa.RecordBatchReader.from_stream(source)
        return Source(name, rereadable=False, _stream=lambda _: reader, _schema=lambda: reader.schema)
    if isinstance(source, Iterator):
        return _from_iterator(source, name)
    if isinstance(source, Iterable) and not isinstance(source, str | bytes | Mapping):
        return Source(name, _stream=lambda _: source, _schema=lambda: _first(iter(source), name).schema)
    raise InputError(
        f"{name} must be a path, a list of paths, a pyarrow Dataset, Table or RecordBatchReader, a Polars, pandas, "
        f"Dask or Spark frame, a DuckDB relation, or give RecordBatches, not {type(source).__name__}"
    )


def _from_iterator(source: Iterator[Any], name: str) -> Source:
    peeked: list[Any] = []

    def peek() -> Any:
        if not peeked:
            peeked.append(_first(source, name))
        return peeked[0].schema

    return Source(name, rereadable=False, _stream=lambda _: chain(peeked, source), _schema=peek)


def _first(batches: Iterable[Any], name: str) -> Any:
    pa = arrow()
    first = next(iter(batches), None)
    if not isinstance(first, pa.RecordBatch | pa.Table):
        given = "nothing" if first is None else type(first).__name__
        raise InputError(f"{name} must give pyarrow RecordBatches or Tables, not {given}")
    return first


def _selected(table: Any, columns: list[str] | None) -> Any:
    """Return the columns that are there: those that are not are missed where all sources are checked."""
    names = getattr(table, "column_names", None) or table.columns
    return table if columns is None else table.select([column for column in columns if column in names])


def _error(name: str, what: str) -> InputError:
    return InputError(f"{name}: {what}")


_OPENERS: Mapping[str, Callable[[Any, str], Source | None]] = {
    "pyarrow": _from_arrow,
    "polars": _from_polars,
    "duckdb": _from_duckdb,
    "pandas": _from_pandas,
    "dask": _from_dask,
    "pyspark": _from_spark,
}
