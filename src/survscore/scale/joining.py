"""Outcomes in a table of their own, joined to predictions by id, by DuckDB."""

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
from survscore.scale.files import type_name
from survscore.scale.sources import Source, duckdb_stream, open_source

if TYPE_CHECKING:
    import pyarrow as pa

MEMORY = 2 * 10**9
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
    memory_limit: int = MEMORY,
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
    memory_limit : int
        How many bytes DuckDB may use; beyond, it writes to a temporary folder.

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
    try:
        import duckdb  # noqa: F401
    except ImportError:
        raise ImportError("joining needs DuckDB: pip install 'survscore[data]'") from None
    outcomes = open_source(outcomes, storage_options=storage_options, name="outcomes")
    schema, there = predictions.schema(), outcomes.schema()
    for source, own, role in ((predictions, schema, "predictions"), (outcomes, there, "outcomes")):
        if id not in own.names:
            raise InputError(f"{role} ({source.name}): has no column {id!r}; its columns are {listed(own.names)}")
    taken = [name for name in there.names if name != id]
    twice = [name for name in taken if name in schema.names]
    if twice:
        raise InputError(f"columns must be in predictions or in outcomes: {listed(twice)} are in both")
    _check_id_types(id, schema.field(id).type, there.field(id).type)
    for name in taken:
        schema = schema.append(there.field(name))
    held = _Outcomes(outcomes, id, taken, tuple(nullable), memory_limit)
    return Source(
        f"{predictions.name} joined with {outcomes.name}",
        rereadable=predictions.rereadable,
        _stream=lambda names: _matched(predictions, held, schema.names if names is None else names),
        _schema=schema.remove_metadata,
    )


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


@dataclass(eq=False)
class _Outcomes:
    """Outcomes in a database in memory, from when they are first needed."""

    source: Source
    id: str
    columns: list[str]
    nullable: tuple[str, ...]
    memory_limit: int
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
        connection = connect(memory_limit=f"{self.memory_limit // 10**6}MB", temp_directory=str(folder))
        for setting in SETTINGS:
            connection.execute(setting)
        names = [self.id, *self.columns]
        with _registered(
            connection, f"outcomes ({self.source.name})", self.source.batches(names, nullable=self.nullable)
        ):
            # names of columns that users chose are not put into queries
            renamed = ", ".join(f"column{k}" for k in range(len(names)))
            connection.execute(f"CREATE TABLE outcomes AS SELECT * FROM stream AS s({renamed})")
        rows, different = connection.execute("SELECT count(*), count(DISTINCT column0) FROM outcomes").fetchone()
        if different < rows:
            first, times = connection.execute(
                "SELECT column0, count(*) FROM outcomes GROUP BY column0 HAVING count(*) > 1 ORDER BY column0 LIMIT 1"
            ).fetchone()
            raise InputError(
                f"outcomes ({self.source.name}): ids must be different: {rows - different} of {rows} rows in column "
                f"{self.id!r} repeat another, the first {shown(first)!r} ({times} times)"
            )
        return connection


def _matched(predictions: Source, outcomes: _Outcomes, wanted: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Give the rows of predictions with their outcomes, and raise in the end if any had none, or the other way."""
    import pyarrow.compute as pc

    taken = [name for name in outcomes.columns if name in wanted]
    own = [outcomes.id, *(name for name in wanted if name not in (outcomes.id, *taken))]
    left = ", ".join(f"p{k}" for k in range(len(own)))
    right = "".join(f", column{outcomes.columns.index(name) + 1}" for name in taken)
    query = f"SELECT column0, {left}{right} FROM stream AS p({left}) FULL JOIN outcomes ON p0 = column0"
    total, without, extra = 0, _Alone(), _Alone()
    batches = predictions.batches(own, nullable=own[1:])
    with outcomes.cursor() as cursor, _registered(cursor, f"predictions ({predictions.name})", batches):
        for given in duckdb_stream(cursor.sql(query)):
            batch, (known, predicted) = given, given.columns[:2]
            total += len(given) - predicted.null_count
            if known.null_count or predicted.null_count:
                without.add(predicted.filter(known.is_null()))
                extra.add(known.filter(predicted.is_null()))
                batch = given.filter(pc.and_(predicted.is_valid(), known.is_valid()))
            if len(batch):
                yield arrow().RecordBatch.from_arrays(batch.columns[1:], names=[*own, *taken])
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
class _Alone:
    """How many ids found no partner, and the least of them: rows come in any order, a message should not."""

    count: int = 0
    first: Any = None

    def add(self, ids: pa.Array) -> None:
        import pyarrow.compute as pc

        if len(ids):
            least = pc.min_max(ids)["min"].as_py()
            self.count += len(ids)
            self.first = least if self.first is None else min(self.first, least)


@contextmanager
def _registered(connection: Any, role: str, batches: Iterator[pa.RecordBatch]) -> Iterator[None]:
    """Let queries read batches as `stream`; what goes wrong in these is raised, not what DuckDB makes of it."""
    import duckdb

    first = next(batches, None)  # a stream has a schema from the start
    if first is None:
        raise InputError(f"{role} have no rows")
    first = _decoded(first)
    wrong: list[BaseException] = []

    def given() -> Iterator[pa.RecordBatch]:
        try:
            yield first
            yield from map(_decoded, batches)
        except BaseException as error:
            wrong.append(error)
            raise

    connection.register("stream", arrow().RecordBatchReader.from_batches(first.schema, given()))
    try:
        yield
    except (duckdb.Error, arrow().ArrowException, OSError) as error:
        if wrong:
            raise wrong[0] from None
        raise InputError(f"joining failed: {shown(' '.join(str(error).split()), most=300)}") from None
    connection.unregister("stream")


def _decoded(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch without dictionaries, which differ from file to file."""
    pa = arrow()
    arrays = [column.dictionary_decode() if pa.types.is_dictionary(column.type) else column for column in batch.columns]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)
