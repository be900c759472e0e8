"""What DuckDB does: outcomes of a table of their own are joined to predictions by id, long predictions are pivoted."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from survscore._validation import InputError, plural, shown
from survscore.io.files import temporary_folder
from survscore.io.forms import as_cause
from survscore.io.layouts import CAUSE, SURVIVAL, long_time_column
from survscore.io.tables import arrow, connect, listed
from survscore.scale.files import is_numeric, type_name
from survscore.scale.sources import Source, duckdb_stream, open_source

if TYPE_CHECKING:
    import pyarrow as pa

MEMORY = 2 * 10**9
MOST_CELLS = 2000  # times, of all causes: each is a column
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
    _check_duckdb("joining")
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
    held = _Outcomes(outcomes, id, taken, nullable)
    database = _Database(memory_limit, held.fill)
    return Source(
        f"{predictions.name} joined with {outcomes.name}",
        rereadable=predictions.rereadable,
        _stream=lambda names: _matched(predictions, held, database, schema.names if names is None else names),
        _schema=schema.remove_metadata,
    )


def pivoted(source: Source, *, id: str, time_column: str | None = None, memory_limit: int = MEMORY) -> Source:
    """Return predictions that have a row for each individual and time with a row for each individual.

    Columns of values are ``survival``, or else all that hold numbers, each a model; with a column ``cause`` there is a
    row for each cause, too. Of other columns an individual has one value. The table that all of it becomes is DuckDB's,
    in memory as far as it fits.
    """
    _check_duckdb("long form")
    schema = source.schema()
    keys = [id, time_column or long_time_column(schema.names), *(name for name in [CAUSE] if name in schema.names)]
    missing = [name for name in keys if name not in schema.names]
    if missing:
        raise InputError(
            f"{source.name}: long form needs a column {missing[0]!r}; the columns are {listed(schema.names)}"
        )
    others = [name for name in schema.names if name not in keys]
    models = [SURVIVAL] if SURVIVAL in others else [one for one in others if is_numeric(schema.field(one).type)]
    if not models:
        raise InputError(f"{source.name}: long form needs a column of predictions, such as {SURVIVAL!r}")
    labels = [name for name in others if name not in models]
    names = [*keys, *models, *labels]
    place = {name: f"p{k}" for k, name in enumerate(names)}  # names that users chose are not put into queries
    cell = [place[name] for name in keys[1:]]
    cells: list[Any] = []

    def fill(connection: Any) -> None:
        batches = source.batches(names, nullable=labels, numeric=[keys[1], *models])
        with _registered(connection, source.name, batches):
            connection.execute(f"CREATE TABLE long AS SELECT * FROM stream AS s({', '.join(place.values())})")
        found = f"SELECT DISTINCT {', '.join(cell)} FROM long ORDER BY ALL LIMIT {MOST_CELLS + 1}"
        cells.extend(connection.execute(found).fetchall())
        if len(cells) > MOST_CELLS:
            raise InputError(f"{source.name}: column {keys[1]!r} has more than {MOST_CELLS:,} times; is it another?")
        wrong, first = connection.execute(
            f"SELECT count(*), min(p0) FROM (SELECT p0 FROM long GROUP BY p0 HAVING count(*) <> {len(cells)} "
            f"OR count(DISTINCT ({', '.join(cell)})) <> {len(cells)})"
        ).fetchone()
        if wrong:
            raise InputError(
                f"{source.name}: long form needs one row for each individual at each of {plural(len(cells), 'time')}: "
                f"{plural(wrong, 'id')} with more or fewer, the first {shown(first)!r}"
            )

    database = _Database(memory_limit, fill)

    def wide(columns: list[str] | None, rest: str = "") -> tuple[Any, list[str]]:
        cursor = database.cursor()
        made = {_column(model, models, *one): (place[model], one) for model in models for one in cells}
        wanted = [name for name in made if columns is None or name in columns]
        kept = [name for name in labels if columns is None or name in columns]
        chosen = []
        for value, its in map(made.__getitem__, wanted):
            fits = " AND ".join(f"{one} = {_literal(it)}" for one, it in zip(cell, its, strict=True))
            chosen.append(f"max({value}) FILTER ({fits})")
        chosen += [f"any_value({place[name]})" for name in kept]
        query = f"SELECT {', '.join(['p0', *chosen])} FROM long GROUP BY p0 {rest}"
        return duckdb_stream(cursor.sql(query)), [id, *wanted, *kept]

    def stream(columns: list[str] | None) -> Iterator[pa.RecordBatch]:
        found, labelled = wide(columns)
        for batch in found:
            yield batch.rename_columns(labelled)

    @cache
    def wide_schema() -> pa.Schema:
        found, labelled = wide(None, "LIMIT 0")
        return arrow().schema([one.with_name(name) for one, name in zip(found.schema, labelled, strict=True)])

    return Source(f"{source.name} in long form", _stream=stream, _schema=wide_schema)


def _column(model: str, models: Sequence[str], time: float, cause: Any = None) -> str:
    """Return the usual name of a column in wide form."""
    own = "" if models == [SURVIVAL] else f"{model}:"
    return f"{own}{'' if cause is None else f'{as_cause(str(cause))}@'}{float(time)!r}"


def _literal(value: Any) -> str:
    """Return a number or a text as queries have it: a text, which is read as the type it is compared with."""
    return "'" + str(value).replace("'", "''") + "'"


def _check_duckdb(what: str) -> None:
    try:
        import duckdb  # noqa: F401
    except ImportError:
        raise ImportError(f"{what} needs DuckDB: pip install 'survscore[data]'") from None


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
class _Database:
    """A database in memory, made and filled when it is first needed, which may use so many bytes."""

    memory_limit: int
    fill: Callable[[Any], None]
    _connection: Any = field(default=None, repr=False)

    def cursor(self) -> Any:
        """Return a connection of its own to the database."""
        if self._connection is None:
            kept = ExitStack()
            folder = kept.enter_context(temporary_folder(Path(tempfile.gettempdir())))
            weakref.finalize(self, kept.close)
            connection = connect(memory_limit=f"{self.memory_limit // 10**6}MB", temp_directory=str(folder))
            for setting in SETTINGS:
                connection.execute(setting)
            self.fill(connection)
            self._connection = connection
        return self._connection.cursor()


@dataclass(frozen=True, eq=False)
class _Outcomes:
    """Outcomes as a table of a database."""

    source: Source
    id: str
    columns: list[str]
    nullable: Sequence[str]

    def fill(self, connection: Any) -> None:
        """Read them; raise if an id is there twice."""
        names = [self.id, *self.columns]
        batches = self.source.batches(names, nullable=self.nullable)
        with _registered(connection, f"outcomes ({self.source.name})", batches):
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


def _matched(
    predictions: Source, outcomes: _Outcomes, database: _Database, wanted: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Give the rows of predictions with their outcomes, and raise in the end if any had none, or the other way."""
    import pyarrow.compute as pc

    taken = [name for name in outcomes.columns if name in wanted]
    own = [outcomes.id, *(name for name in wanted if name not in (outcomes.id, *taken))]
    left = ", ".join(f"p{k}" for k in range(len(own)))
    right = "".join(f", column{outcomes.columns.index(name) + 1}" for name in taken)
    query = f"SELECT column0, {left}{right} FROM stream AS p({left}) FULL JOIN outcomes ON p0 = column0"
    total, without, extra = 0, _Alone(), _Alone()
    batches = predictions.batches(own, nullable=own[1:])
    with database.cursor() as cursor, _registered(cursor, f"predictions ({predictions.name})", batches):
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
