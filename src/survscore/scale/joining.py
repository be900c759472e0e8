"""DuckDB's part: outcomes of a table of their own are joined to predictions by id, and long predictions are pivoted."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
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
# Names in a query never mean Python objects or files; what does not fit in memory is put into a temporary folder.
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
    """Return predictions with the outcomes of the same ids, in any order.

    Both are read and checked as they would be alone, and go through DuckDB as streams, which keeps the outcomes. Every
    id in the predictions needs exactly one outcome, and may have several predictions; that this holds is known when all
    rows are read, so the source's `batches` may raise at the end.
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
    role = f"outcomes ({outcomes.name})"

    def fill(connection: Any) -> None:
        batches = outcomes.batches([id, *taken], nullable=nullable)
        _create(connection, "outcomes", role, batches, [f"column{k}" for k in range(len(taken) + 1)])
        rows, different = connection.execute("SELECT count(*), count(DISTINCT column0) FROM outcomes").fetchone()
        if different < rows:
            first, times = connection.execute(
                "SELECT column0, count(*) FROM outcomes GROUP BY column0 HAVING count(*) > 1 ORDER BY column0 LIMIT 1"
            ).fetchone()
            raise InputError(
                f"{role}: ids must be different: {rows - different} of {rows} rows in column {id!r} repeat another, "
                f"the first {shown(first)!r} ({times} times)"
            )

    database = _Database(memory_limit, fill)

    def stream(columns: list[str] | None) -> Iterator[pa.RecordBatch]:
        return _matched(predictions, role, database, id, taken, schema.names if columns is None else columns)

    return Source(
        f"{predictions.name} joined with {outcomes.name}",
        rereadable=predictions.rereadable,
        _stream=stream,
        _schema=schema.remove_metadata,
    )


def _matched(
    predictions: Source, outcomes: str, database: _Database, id: str, taken: Sequence[str], wanted: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Give the rows of predictions with their outcomes, and raise in the end if any had none, or the other way."""
    import pyarrow.compute as pc

    role = f"predictions ({predictions.name})"
    numbers = {name: f"column{k}" for k, name in enumerate(taken, 1) if name in wanted}
    own = [id, *(name for name in wanted if name != id and name not in numbers)]
    left = ", ".join(f"p{k}" for k in range(len(own)))
    query = (
        f"SELECT {', '.join(['column0', left, *numbers.values()])} "
        f"FROM stream AS p({left}) FULL JOIN outcomes ON p0 = column0"
    )
    total, without, extra = 0, _Alone(), _Alone()
    batches = predictions.batches(own, nullable=own[1:])
    with database.cursor() as cursor, _registered(cursor, role, batches):
        for batch in duckdb_stream(cursor.sql(query)):
            matched, (known, predicted) = batch, batch.columns[:2]
            total += len(batch) - predicted.null_count
            if known.null_count or predicted.null_count:
                without.add(predicted.filter(known.is_null()))
                extra.add(known.filter(predicted.is_null()))
                matched = batch.filter(pc.and_(predicted.is_valid(), known.is_valid()))
            if len(matched):
                yield arrow().RecordBatch.from_arrays(matched.columns[1:], names=[*own, *numbers])
    if without.count:
        raise InputError(
            f"{role}: {without.count} of {plural(total, 'row')} have an id without outcome, "
            f"the first {shown(without.first)!r}; every {id!r} must be in {outcomes}"
        )
    if extra.count:
        raise InputError(
            f"{outcomes}: {plural(extra.count, 'id')} without prediction, the first {shown(extra.first)!r}; "
            "leave them out"
        )


@dataclass
class _Alone:
    """How many ids have no partner, and the least of them: rows come in any order, a message should not."""

    count: int = 0
    first: Any = None

    def add(self, ids: pa.Array) -> None:
        import pyarrow.compute as pc

        if len(ids):
            least = pc.min_max(ids)["min"].as_py()
            self.count += len(ids)
            self.first = least if self.first is None else min(self.first, least)


def pivoted(source: Source, *, id: str, time_column: str | None = None, memory_limit: int = MEMORY) -> Source:
    """Return predictions that have a row for each individual and time with a row for each individual.

    Columns of values are ``survival``, or else all that hold numbers, each a model; with a column ``cause`` there is a
    row for each cause, too. Of other columns an individual has one value. DuckDB keeps the table in memory as far as it
    fits.
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
    models = [SURVIVAL] if SURVIVAL in others else [name for name in others if is_numeric(schema.field(name).type)]
    if not models:
        raise InputError(f"{source.name}: long form needs a column of predictions, such as {SURVIVAL!r}")
    labels = [name for name in others if name not in models]
    names = [*keys, *models, *labels]
    place = {name: f"p{k}" for k, name in enumerate(names)}
    cell = [place[name] for name in keys[1:]]  # a time, or a time and a cause
    cells: list[Any] = []

    def fill(connection: Any) -> None:
        batches = source.batches(names, nullable=labels, numeric=[keys[1], *models])
        _create(connection, "long", source.name, batches, list(place.values()))
        distinct = f"SELECT DISTINCT {', '.join(cell)} FROM long ORDER BY ALL LIMIT {MOST_CELLS + 1}"
        cells.extend(connection.execute(distinct).fetchall())
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
        """Return the rows as a stream, and the names of its columns, which users chose: they are not in the query."""
        cursor = database.cursor()
        chosen = {id: "p0"}
        for model in models:
            for values in cells:
                fits = " AND ".join(f"{one} = {_literal(value)}" for one, value in zip(cell, values, strict=True))
                chosen[_column(model, models, *values)] = f"max({place[model]}) FILTER ({fits})"
        chosen |= {name: f"any_value({place[name]})" for name in labels}
        wanted = [name for name in chosen if columns is None or name in (id, *columns)]
        query = f"SELECT {', '.join(chosen[name] for name in wanted)} FROM long GROUP BY p0 {rest}"
        return duckdb_stream(cursor.sql(query)), wanted

    def stream(columns: list[str] | None) -> Iterator[pa.RecordBatch]:
        batches, wanted = wide(columns)
        for batch in batches:
            yield batch.rename_columns(wanted)

    @cache
    def wide_schema() -> pa.Schema:
        batches, wanted = wide(None, "LIMIT 0")
        return arrow().schema([one.with_name(name) for one, name in zip(batches.schema, wanted, strict=True)])

    return Source(f"{source.name} in long form", _stream=stream, _schema=wide_schema)


def _column(model: str, models: Sequence[str], time: float, cause: Any = None) -> str:
    """Return the usual name of a column in wide form."""
    own = "" if models == [SURVIVAL] else f"{model}:"
    return f"{own}{'' if cause is None else f'{as_cause(str(cause))}@'}{float(time)!r}"


def _literal(value: Any) -> str:
    """Return a number or a text as a text of a query, which is read as the type it is compared with."""
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
    """A database in memory, filled when it is first needed, and limited to so many bytes."""

    memory_limit: int
    fill: Callable[[Any], None]
    _connection: Any = field(default=None, repr=False)

    def cursor(self) -> Any:
        """Return a connection of its own to the database."""
        if self._connection is None:
            resources = ExitStack()
            folder = resources.enter_context(temporary_folder(Path(tempfile.gettempdir())))
            weakref.finalize(self, resources.close)
            connection = connect(memory_limit=f"{self.memory_limit // 10**6}MB", temp_directory=str(folder))
            for setting in SETTINGS:
                connection.execute(setting)
            self.fill(connection)
            self._connection = connection
        return self._connection.cursor()


def _create(connection: Any, table: str, role: str, batches: Iterator[pa.RecordBatch], columns: list[str]) -> None:
    """Create a table; its columns have names of ours, since those that users chose are never part of a query."""
    with _registered(connection, role, batches):
        connection.execute(f"CREATE TABLE {table} AS SELECT * FROM stream AS s({', '.join(columns)})")


@contextmanager
def _registered(connection: Any, role: str, batches: Iterator[pa.RecordBatch]) -> Iterator[None]:
    """Let queries read batches as `stream`; an error in these is raised as it is, not as DuckDB reports it."""
    import duckdb

    first = next(batches, None)  # a stream has a schema from the start
    if first is None:
        raise InputError(f"{role} have no rows")
    wrong: list[BaseException] = []

    def given() -> Iterator[pa.RecordBatch]:
        try:
            yield from map(_decoded, chain([first], batches))
        except BaseException as error:
            wrong.append(error)
            raise

    connection.register("stream", arrow().RecordBatchReader.from_batches(_decoded(first).schema, given()))
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
