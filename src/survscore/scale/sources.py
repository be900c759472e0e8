"""Anything that gives rows in batches: files, tables, frames, relations, iterators."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from survscore._validation import InputError
from survscore.io.tables import arrow
from survscore.scale.files import ROWS, BadFileError, FilePart, check_rows, checked
from survscore.scale.listing import AT_ONCE, dataset_parts, file_parts

if TYPE_CHECKING:
    import pyarrow as pa

    from survscore.scale.engines import DaskFrame, SparkFrame

SAMPLE, SAMPLES = 1 << 16, 8  # bytes, and places of a file, of which its digest is made
# Some of the columns that there are, or all for None, in batches or tables.
Stream: TypeAlias = "Callable[[list[str] | None], Iterable[pa.RecordBatch | pa.Table]]"


@dataclass(frozen=True, eq=False)
class Source:
    """What predictions or outcomes are read from: files, a stream, or a frame of a cluster, whose rows stay there."""

    name: str
    parts: list[FilePart] | None = None
    rereadable: bool = True
    frame: DaskFrame | SparkFrame | None = field(default=None, repr=False)
    _stream: Stream = field(default=lambda _: (), repr=False)
    _schema: Callable[[], pa.Schema] = field(default=lambda: arrow().schema([]), repr=False)
    _used: list[bool] = field(default_factory=list, repr=False)

    def schema(self) -> pa.Schema:
        """Return the names and types of its columns; of files, those of the first."""
        if self.parts is not None:
            return self.parts[0].schema()
        return self._schema() if self.frame is None else self.frame.schema()

    def batches(
        self, columns: Sequence[str], *, rows: int = ROWS, nullable: Collection[str] = (), numeric: Collection[str] = ()
    ) -> Iterator[pa.RecordBatch]:
        """Read some columns of all rows, checked; see `FilePart.batches`."""
        if self.parts is not None:
            expected = self.parts[0].expected(columns, numeric=numeric)
            for part in self.parts:
                yield from part.batches(columns, rows=rows, nullable=nullable, numeric=numeric, expected=expected)
            return
        if self.frame is not None:
            raise InputError(f"{self.name} is a frame on a cluster, whose rows are not brought to this machine")
        if self._used and not self.rereadable:
            raise InputError(f"{self.name} has been read and can't be read again; give a function that makes a new one")
        self._used.append(True)
        several = self._stream(list(columns))
        yield from checked(self.name, several, columns, rows=rows, nullable=nullable, numeric=numeric)


def open_source(
    source: Any,
    *,
    storage_options: Mapping[str, Any] | None = None,
    format: str | None = None,
    manifest: str | Path | Sequence[str] | None = None,
    name: str = "source",
) -> Source:
    """Return a source of rows, without reading them.

    It may be a folder, a pattern, a file, a list of these, or an address (``s3://``, ``gs://``, ``abfs://``,
    ``file://``, and those of fsspec); a pyarrow Dataset, Table or RecordBatchReader; a Polars, pandas, Dask or Spark
    frame; a DuckDB relation; RecordBatches or Tables in any iterable, or a function that returns one.

    For files, `storage_options` are arguments of pyarrow's ``S3FileSystem``, ``GcsFileSystem`` or ``AzureFileSystem``,
    or for other addresses of fsspec; `format` is "parquet", "csv" or "arrow", by default by their endings; `manifest`
    has the names of all files, relative to the folder: a missing or an additional one is an error. `name` is for
    messages.

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
    if isinstance(source, str | Path) or (
        isinstance(source, list | tuple) and (not source or isinstance(source[0], str | Path))
    ):
        parts = file_parts(source, storage_options=storage_options, format=format, manifest=manifest)
        return _of_files(parts, name)
    given = {"storage_options": storage_options, "format": format, "manifest": manifest}
    for option, value in given.items():
        if value is not None:
            raise InputError(f"{option} is for files, but {name} is of type {type(source).__name__}")
    modules = [base.__module__.split(".", 1)[0].lstrip("_") for base in type(source).__mro__]
    opener = next((_OPENERS[module] for module in modules if module in _OPENERS), None)
    return (None if opener is None else opener(source, name)) or _from_iterable(source, name)


def identified(source: Source) -> Source:
    """Return the source with the digests of its files; raise if one is a copy of another, unless they have no rows."""
    if source.parts is None:
        return source
    with ThreadPoolExecutor(AT_ONCE) as pool:
        parts = list(pool.map(lambda part: dataclasses.replace(part, digest=_digest(part)), source.parts))
    seen: dict[tuple[int, str], FilePart] = {}
    for part in parts:
        first = seen.setdefault((part.size, part.digest or part.name), part)
        if first is not part and _has_rows(part):
            raise InputError(
                f"{part.name}: is a copy of {first.name}, and its rows would be counted twice; leave one out"
            )
    return dataclasses.replace(source, parts=parts)


def _digest(part: FilePart) -> str:
    """Return a digest of pieces of a file; "" where it can't be read, which reading reports.

    Of its beginning, its end (which in Parquet describes all columns) and some places between: reading all of it would
    take as long as scoring. Of remote files only the end. What the names of folders say is part of the content: the
    same rows may be there for two countries.
    """
    last = max(part.size - SAMPLE, 0)
    places = np.linspace(0, last, SAMPLES).astype(int).tolist() if part.is_local else [last]
    digest = hashlib.sha256("/".join(folder for folder in part.path.split("/")[:-1] if "=" in folder).encode())
    try:
        if not part.filesystem.get_file_info(part.path).is_file:  # reading a pipe or a device may never end
            return ""
        with part.filesystem.open_input_file(part.path) as file:
            for place in dict.fromkeys(places):
                digest.update(file.read_at(SAMPLE, place))
    except (arrow().ArrowException, OSError, ValueError, ImportError):
        return ""
    return digest.hexdigest()[:16]


def _has_rows(part: FilePart) -> bool:
    try:
        name = part.schema().names[0]
        return any(len(batch) for batch in part.batches([name], nullable=[name]))
    except BadFileError:
        return False


def _of_files(parts: list[FilePart], name: str) -> Source:
    return Source(parts[0].name if len(parts) == 1 else f"{name} of {len(parts)} files", parts)


# Tables of other packages become streams: an opener returns None for other objects of its package


def _there(names: Sequence[str], columns: list[str] | None) -> list[str]:
    """Return the columns that are there; that others are missing is found where all sources are checked."""
    return list(names) if columns is None else [column for column in columns if column in names]


def _from_arrow(source: Any, name: str) -> Source | None:
    from pyarrow import dataset

    pa = arrow()

    def schema() -> Any:
        return source.schema

    if isinstance(source, pa.RecordBatchReader):
        return Source(name, rereadable=False, _stream=lambda _: source, _schema=schema)
    if isinstance(source, pa.RecordBatch | pa.Table):
        return Source(name, _stream=lambda columns: [source.select(_there(schema().names, columns))], _schema=schema)
    if not isinstance(source, dataset.Dataset):
        return None
    parts = dataset_parts(source)
    if parts is not None:
        return _of_files(parts, name)

    def scanned(columns: list[str] | None) -> Any:
        # little is read ahead: batches that wait take memory that is not in the budget
        wanted = _there(schema().names, columns)
        return source.to_batches(columns=wanted, batch_size=ROWS, batch_readahead=2, fragment_readahead=1)

    return Source(name, _stream=scanned, _schema=schema)


def _from_polars(source: Any, name: str) -> Source | None:
    import polars as pl

    if not isinstance(source, pl.DataFrame | pl.LazyFrame):
        return None
    frame = source.lazy()

    def collected(columns: list[str] | None) -> Iterator[pa.Table]:
        wanted = frame.select(_there(frame.collect_schema().names(), columns))
        several: Any = (
            wanted.collect_batches(chunk_size=ROWS, maintain_order=False)
            if hasattr(wanted, "collect_batches")
            else wanted.collect(engine="streaming").iter_slices(ROWS)
        )
        return (piece.to_arrow() for piece in several)

    return Source(name, _stream=collected, _schema=lambda: frame.head(0).collect().to_arrow().schema)


def _from_duckdb(source: Any, name: str) -> Source | None:
    import duckdb

    if not isinstance(source, duckdb.DuckDBPyRelation):
        return None

    def projected(columns: list[str] | None) -> Any:
        wanted = _there(source.columns, columns) or source.columns
        return duckdb_stream(source.select(*map(duckdb.ColumnExpression, wanted)))

    return Source(name, _stream=projected, _schema=lambda: duckdb_stream(source.limit(0)).schema)


def duckdb_stream(relation: Any) -> Any:
    """Return the rows of a relation of DuckDB as a stream of batches."""
    return (getattr(relation, "to_arrow_reader", None) or relation.fetch_record_batch)(ROWS)


def _from_pandas(source: Any, name: str) -> Source | None:
    import pandas as pd

    pa = arrow()
    if not isinstance(source, pd.DataFrame):
        return None
    names = [str(label) for label in source.columns]
    if len(set(names)) < len(names):
        raise InputError(f"{name}: columns must have different names")

    def chosen(columns: list[str] | None) -> tuple[Any, Any]:
        wanted = _there(names, columns)
        frame = source.iloc[:, [names.index(column) for column in wanted]].set_axis(wanted, axis=1)
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

    from survscore.scale.engines import DaskFrame

    return Source(name, frame=DaskFrame(source, name)) if isinstance(source, dd.DataFrame) else None


def _from_spark(source: Any, name: str) -> Source | None:
    from pyspark.sql import DataFrame

    from survscore.scale.engines import SparkFrame

    return Source(name, frame=SparkFrame(source, name)) if isinstance(source, DataFrame) else None


def _from_iterable(source: Any, name: str) -> Source:
    def first(several: Iterator[Any]) -> Any:
        return check_rows(name, next(several, None))

    if hasattr(source, "__arrow_c_stream__"):
        reader = arrow().RecordBatchReader.from_stream(source)
        return Source(name, rereadable=False, _stream=lambda _: reader, _schema=lambda: reader.schema)
    if isinstance(source, Iterator):
        begun = first(source)
        return Source(name, rereadable=False, _stream=lambda _: chain([begun], source), _schema=lambda: begun.schema)
    if not callable(source) and (not isinstance(source, Iterable) or isinstance(source, str | bytes | Mapping)):
        raise InputError(
            f"{name} must be a path, a list of paths, a pyarrow Dataset, Table or RecordBatchReader, a Polars, pandas, "
            f"Dask or Spark frame, a DuckDB relation, or give RecordBatches, not {type(source).__name__}"
        )
    made: Callable[[], Any] = source if callable(source) else lambda: source
    return Source(name, _stream=lambda _: made(), _schema=lambda: first(iter(made())).schema)


_OPENERS: Mapping[str, Callable[[Any, str], Source | None]] = {
    "pyarrow": _from_arrow,
    "polars": _from_polars,
    "duckdb": _from_duckdb,
    "pandas": _from_pandas,
    "dask": _from_dask,
    "pyspark": _from_spark,
}
