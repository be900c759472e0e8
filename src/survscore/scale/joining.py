"""Outcomes in a table of their own, joined to predictions by id."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from survscore._validation import InputError, plural, shown
from survscore.io.databases import connect
from survscore.io.tables import arrow, listed
from survscore.io.temporary import temporary_folder
from survscore.scale.files import ROWS, type_name
from survscore.scale.sources import Source, open_source

if TYPE_CHECKING:
    import pyarrow as pa

MEMORY = "2GB"
# Nothing is looked up by a name in a query; what does not fit is put into a folder that goes away.
SETTINGS = (
    "SET preserve_insertion_order=false",
    "SET python_enable_replacements=false",
    # Outcomes are few and go into the hash table; guesses about a stream's length would turn that around.
    "SET disabled_optimizers='join_order,build_side_probe_side'",
    "SET enable_external_access=false",
)


def joined(
    predictions: Source,
    outcomes: Any,
    *,
    id: str,
    nullable: Sequence[str] = (),
    storage_options: Mapping[str, Any] | None = None,
    memory_limit: str = MEMORY,
) -> Source:
    """Return predictions with the outcomes of the same ids.

    Both are read as they would be alone, with the same checks, and go through DuckDB as streams, which keeps outcomes
    and an index of them, in memory as far as they fit. Every id in the predictions needs exactly one outcome; an id
    may have several predictions. The rows come in any order.

    Parameters
    ----------
    predictions : Source
        With a column of ids.
    outcomes : Source, or what `open_source` takes
        With a column of ids of that name, none twice.
    id : str
        The column of ids in both.
    nullable : sequence of str
        Columns of outcomes in which values may be missing.
    storage_options : dict, optional
        How to reach the outcomes, where they are remote files.
    memory_limit : str
        What DuckDB may use, such as ``"2GB"``; beyond, it writes to a temporary folder.

    Returns
    -------
    Source
        One stream. What is wrong with the ids is only known when all are read: its `batches` raise at the end.
    """
    if predictions.frame is not None:
        raise InputError(
            f"outcomes_from is for rows that are read here, but {predictions.name} is a frame on a cluster: join it "
            "there first, such as by merge (Dask) or join (Spark), and leave `outcomes_from` out"
        )
    outcomes = open_source(outcomes, storage_options=storage_options, name="outcomes")
    there = outcomes.schema()
    taken = _columns(predictions, outcomes, id)
    held = _Outcomes(outcomes, id, taken, tuple(nullable), memory_limit, _duckdb())

    def full_schema() -> pa.Schema:
        full = predictions.schema()
        for name in taken:
            full = full.append(there.field(name))
        return full.remove_metadata()

    return Source(
        f"{predictions.name} joined with {outcomes.name}",
        rereadable=predictions.rereadable,
        _stream=lambda names: _matched(predictions, held, names),
        _schema=full_schema,
    )


def _columns(predictions: Source, outcomes: Source, id: str) -> list[str]:
    """Return the columns to take from outcomes; raise unless they and the ids are where they must be."""
    there, predicted = outcomes.schema(), predictions.schema()
    for source, schema, role in ((predictions, predicted, "predictions"), (outcomes, there, "outcomes")):
        if id not in schema.names:
            raise InputError(f"{role} ({source.name}): has no column {id!r}; its columns are {listed(schema.names)}")
    taken = [name for name in there.names if name != id]
    twice = [name for name in taken if name in predicted.names]
    if twice:
        raise InputError(f"columns must be in predictions or in outcomes: {listed(twice)} are in both")
    _check_id_types(id, predicted.field(id).type, there.field(id).type)
    return taken


@dataclass(eq=False)
class _Outcomes:
    """Outcomes in a database in memory, from when they are first needed."""

    source: Source
    id: str
    columns: list[str]
    nullable: tuple[str, ...]
    memory_limit: str
    duckdb: Any
    _connection: Any = field(default=None, repr=False)

    def cursor(self) -> Any:
        """Return a connection of its own to the database."""
        if self._connection is None:
            kept = ExitStack()
            folder = kept.enter_context(temporary_folder(Path(tempfile.gettempdir())))
            weakref.finalize(self, kept.close)
            self._connection = self._filled(folder)
        return self._connection.cursor()

    def _filled(self, folder: Path) -> Any:
        try:
            connection = connect(memory_limit=self.memory_limit, temp_directory=str(folder))
        except self.duckdb.Error as error:
            raise InputError(f"memory_limit {shown(self.memory_limit)!r} is refused: {_line(error)}") from None
        for setting in SETTINGS:
            connection.execute(setting)
        names = [self.id, *self.columns]
        batches = _Watched(f"outcomes ({self.source.name})", self.source.batches(names, nullable=self.nullable))
        connection.register("stream", batches.reader())
        with batches.watched(self.duckdb):
            # names of columns that users chose are not put into queries
            renamed = ", ".join(f"column{k}" for k in range(len(names)))
            connection.execute(f"CREATE TABLE outcomes AS SELECT * FROM stream AS s({renamed})")
        connection.unregister("stream")
        self._check_unique(connection)
        return connection

    def _check_unique(self, connection: Any) -> None:
        rows, different = connection.execute("SELECT count(*), count(DISTINCT column0) FROM outcomes").fetchone()
        if different < rows:
            first, times = connection.execute(
                "SELECT column0, count(*) FROM outcomes GROUP BY column0 HAVING count(*) > 1 ORDER BY column0 LIMIT 1"
            ).fetchone()
            raise InputError(
                f"outcomes ({self.source.name}): ids must be different: {rows - different} of {rows} rows in column "
                f"{self.id!r} repeat another, the first {shown(first)!r} ({times} times)"
            )


def _matched(predictions: Source, outcomes: _Outcomes, names: list[str] | None) -> Iterator[pa.RecordBatch]:
    """Give the rows of predictions with their outcomes, and raise in the end if any had none, or the other way."""
    import pyarrow.compute as pc

    pa = arrow()
    every = [name for name in predictions.schema().names if name not in outcomes.columns]
    wanted = [*every, *outcomes.columns] if names is None else names
    own = [outcomes.id, *(name for name in wanted if name in every and name != outcomes.id)]
    cursor = outcomes.cursor()
    batches = _Watched(
        f"predictions ({predictions.name})",
        predictions.batches(own, nullable=[name for name in own if name != outcomes.id]),
    )
    cursor.register("stream", batches.reader())
    taken = [k for k, name in enumerate(outcomes.columns, start=1) if name in wanted]
    left = ", ".join(f"p.p{k}" for k in range(len(own)))
    right = "".join(f", o.column{k}" for k in taken)
    renamed = ", ".join(f"p{k}" for k in range(len(own)))
    query = f"SELECT {left}, o.column0{right} FROM stream AS p({renamed}) FULL JOIN outcomes AS o ON p.p0 = o.column0"
    labels = [*own, "", *(outcomes.columns[k - 1] for k in taken)]
    without = _Ids()
    extra = _Ids()
    total = 0
    try:
        with batches.watched(outcomes.duckdb):
            relation = cursor.sql(query)
            reader = (getattr(relation, "to_arrow_reader", None) or relation.fetch_record_batch)(ROWS)
            for given in reader:
                batch, predicted, known = given, given.column(0), given.column(len(own))
                total += len(batch) - predicted.null_count
                if known.null_count or predicted.null_count:
                    without.add(predicted, known.is_null())
                    extra.add(known, predicted.is_null())
                    batch = given.filter(pc.and_(predicted.is_valid(), known.is_valid()))
                if len(batch):
                    arrays = {label: array for label, array in zip(labels, batch.columns, strict=True) if label}
                    yield pa.RecordBatch.from_arrays([arrays[name] for name in arrays], names=list(arrays))
    finally:
        cursor.close()
    if without.count:
        raise InputError(
            f"predictions ({predictions.name}): {without.count} of {plural(total, 'row')} have an id without outcome, "
            f"the first {shown(without.first)!r}; every {outcomes.id!r} must be in outcomes ({outcomes.source.name})"
        )
    if extra.count:
        raise InputError(
            f"outcomes ({outcomes.source.name}): {plural(extra.count, 'id')} without prediction, "
            f"the first {shown(extra.first)!r}; leave them out"
        )


@dataclass
class _Ids:
    """How many ids found no partner, and the least of them: rows come in any order, a message should not."""

    count: int = 0
    first: Any = None

    def add(self, ids: pa.Array, alone: pa.Array) -> None:
        """Count those of a batch that are alone."""
        import pyarrow.compute as pc

        left = ids.filter(alone)
        if len(left):
            least = left.take(pc.array_sort_indices(left)[:1])[0].as_py()
            self.count += len(left)
            self.first = least if self.first is None else min(self.first, least)


class _Watched:
    """Batches that another library pulls: what goes wrong in them is raised in its own words."""

    def __init__(self, role: str, batches: Iterator[pa.RecordBatch]) -> None:
        self.role = role
        self.batches = batches
        self.error: BaseException | None = None

    def reader(self) -> Any:
        pa = arrow()
        first = next(self.batches, None)  # a stream has a schema from the start
        if first is None:
            raise InputError(f"{self.role} have no rows")
        first = _decoded(first)
        return pa.RecordBatchReader.from_batches(first.schema, self._kept(first))

    def _kept(self, first: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        try:
            yield first
            yield from map(_decoded, self.batches)
        except BaseException as error:
            self.error = error
            raise

    @contextmanager
    def watched(self, duckdb: Any) -> Iterator[None]:
        """Raise what went wrong in the batches, instead of what the other library makes of it."""
        try:
            yield
        except (duckdb.Error, arrow().ArrowException, OSError) as error:
            if self.error is not None:
                raise self.error from None
            raise InputError(f"joining failed: {_line(error)}") from None


def _decoded(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch without dictionaries, which differ from file to file."""
    pa = arrow()
    arrays = [column.dictionary_decode() if pa.types.is_dictionary(column.type) else column for column in batch.columns]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def _check_id_types(id: str, predicted: Any, known: Any) -> None:
    """Raise unless ids can be compared as they are: 7 is not '007'."""
    types = arrow().types
    both = type_name(predicted), type_name(known)
    whole = all(types.is_integer(kind) for kind in (predicted, known))
    if not whole and (both[0] != both[1] or types.is_floating(predicted) or types.is_nested(predicted)):
        raise InputError(
            f"column {id!r} must hold whole numbers or text, alike in both: it is {both[0]} in predictions and "
            f"{both[1]} in outcomes"
        )


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError:
        raise ImportError("joining needs DuckDB: pip install 'survscore[data]'") from None
    return duckdb


def _line(error: BaseException) -> str:
    return shown(" ".join(str(error).split()), most=300)
