"""How predictions are laid out in a file: columns by time, lists, rows by time, or rows by individual and time."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._validation import InputError, as_times, plural
from survscore.io.forms import Form, NamedColumns, as_cause, in_order
from survscore.io.outcomes import ID
from survscore.io.tables import (
    TableFile,
    about,
    arrow,
    as_labels,
    identifiers,
    listed,
    numbers,
    vector,
)

if TYPE_CHECKING:
    import pyarrow as pa

METADATA = b"survscore"
CAUSE = "cause"  # what long form calls its column of causes
SURVIVAL = "survival"  # what a file calls the predictions of a model that has the name of the file
LONG_TIMES = ("time", "times", "t", "horizon")  # what long form calls its column of times
BLOCK = 4096
# What the column of times is called where rows are times; without a name it is as pandas writes an index.
TIMES = ("", "time", "times", "timeline", "index", "__index_level_0__")
# The layouts, in words.
BY_TIME = "a column per time"
LISTS = "a list per individual"
LONG = "a row per individual and time"
TRANSPOSED = "a row per time, a column per individual"

# Times, the matrix of individuals and times (or of individuals, causes and times), and what metadata say about it.
Predictions = tuple[NDArray[np.float64], NDArray[Any], dict[str, Any]]


@dataclass(frozen=True, eq=False)
class Layout:
    """The models of a file: how they are laid out, what they are called, and how to read each of them.

    `ids` are of the rows of the matrix, `used` are the columns that are read, and `causes` are those of each model that
    predicts several.
    """

    kind: str
    models: list[str]
    read: Callable[[str], Predictions]
    ids: pa.Array | None
    used: set[str]
    causes: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def words(self) -> str:
        """How the file is laid out, in words."""
        by_cause = {BY_TIME: "a column per cause and time", LONG: "a row per individual, time and cause"}
        return by_cause.get(self.kind, f"{self.kind} and cause") if self.causes else self.kind


def layout_of(file: TableFile, form: Form, id: str | bool | None) -> Layout | None:
    """Return how a file is laid out; None, if there are no predictions in it."""
    if form.transposed:
        return _transposed(file, id is not False)
    if isinstance(id, str) and id not in file.names:
        raise InputError(f"{file.path}: there is no column {id!r} (id); the columns are {listed(file.names)}")
    id_column = id if isinstance(id, str) else ID if ID in file.names else None
    if form.long or form.time_column is not None:
        return _long(file, id_column, id is not False, form.time_column)
    others = [name for name in file.names if name != id_column]
    with about(file.path):
        named = NamedColumns.of(others, list_columns(file.schema), form.columns)
    if not named:
        if form.columns is not None or id_column is None or "event" in file.names:
            return None
        return _long(file, id_column, id is not False, None, certain=False)
    ids = None if id is False or id_column is None else identifiers(file, id_column)

    def read_columns(columns: dict[float, str] | str) -> Predictions:
        if isinstance(columns, str):
            metadata = metadata_of(file.schema, columns, f"{file.path}: ")
            return *_list_matrix(file, columns, form.grid, metadata), metadata
        times = np.array(sorted(columns))
        return times, _wide_matrix(file, [columns[time] for time in times]), _metadata(file)

    def read(model: str) -> Predictions:
        if model in named.lists:
            return read_columns(named.lists[model])
        if model in named.by_time:
            return read_columns(named.by_time[model])
        by_cause = named.by_cause[model]
        parts = [read_columns(columns) for columns in by_cause.values()]
        with about(file.path):
            return _of_causes(list(by_cause), parts)

    kind = LISTS if named.of_lists else BY_TIME
    used = named.columns | ({id_column} if id_column is not None else set())
    causes = {model: tuple(by_cause) for model, by_cause in named.by_cause.items()}
    return Layout(kind, named.models, read, ids, used, causes)


def _of_causes(causes: Sequence[str], parts: Sequence[Predictions]) -> Predictions:
    """Return the predictions of several causes as one array of individuals, causes and times."""
    times, _, metadata = parts[0]
    for cause, (own, *_) in zip(causes, parts, strict=True):
        if not np.array_equal(own, times):
            raise InputError(
                f"all causes must be predicted at the same times: {causes[0]!r} is at {plural(times.size, 'time')} "
                f"({times[0]:g} to {times[-1]:g}), {cause!r} at {plural(own.size, 'time')} ({own[0]:g} to {own[-1]:g})"
            )
    return times, np.stack([matrix for _, matrix, _ in parts], axis=1), metadata


def looks_transposed(file: TableFile, usual: Layout | None) -> bool:
    """Whether rows of a file are times and columns individuals, as lifelines and pycox return curves.

    Their times go up with the rows, and all columns fall (or rise) with them. Where names of columns might be times,
    too (`usual` is how the file would be read), that is no proof unless some rows rise and some fall, as neither
    survival nor its opposite does.
    """
    column = time_column(file)
    others = [name for name in file.names if name != column]
    if (usual is not None and usual.kind != BY_TIME) or column not in TIMES or file.n_rows < 3:
        return False
    if not others or "event" in others:  # outcomes have an event
        return False
    try:
        times = file.numbers(column)
        if not (times[0] >= 0 and (times[1:] > times[:-1]).all()):  # of most files, before all of it is read
            return False
        matrix = _wide_matrix(file, others)
    except InputError:  # no numbers, or some missing
        return False
    down = np.diff(matrix, axis=0)
    if not (((matrix >= 0) & (matrix <= 100)).all() and down.any() and _all_fall_or_rise(down)):
        return False
    return not (usual is not None and _all_fall_or_rise(np.diff(matrix, axis=1)))


def _all_fall_or_rise(steps: NDArray[Any]) -> bool:
    return bool((steps <= 0).all() or (steps >= 0).all())


def list_columns(schema: pa.Schema) -> list[str]:
    """Return the names of the columns of lists."""
    return [name for name in schema.names if is_list(schema.field(name).type)]


def is_list(kind: Any) -> bool:
    """Whether a column of this type holds lists."""
    types = arrow().types
    return bool(types.is_fixed_size_list(kind) or types.is_list(kind) or types.is_large_list(kind))


def _metadata(file: TableFile) -> dict[str, Any]:
    """Return what the file says about all columns of predictions."""
    return metadata_of(file.schema, None, f"{file.path}: ")


def metadata_of(schema: pa.Schema, column: str | None, where: str = "") -> dict[str, Any]:
    """Return what metadata say about a column of predictions, or about all of them."""
    merged: dict[str, Any] = {}
    for metadata in (schema.metadata, None if column is None else schema.field(column).metadata):
        text = (metadata or {}).get(METADATA)
        if text is not None:
            try:
                values = json.loads(text)
                if not isinstance(values, dict):
                    raise ValueError
            except (ValueError, RecursionError):
                raise InputError(
                    f"{where}the metadata 'survscore' are not JSON of the form {{\"grid\": [...]}}"
                ) from None
            merged |= values
    return merged


def _wide_matrix(file: TableFile, names: list[str]) -> NDArray[Any]:
    table = file.read(names)
    columns = [numbers(file.path, name, table.column(name)) for name in names]
    dtype = np.float32 if all(column.dtype == np.float32 for column in columns) else np.float64
    matrix = np.empty((table.num_rows, len(columns)), dtype=dtype)
    for start in range(0, len(matrix), BLOCK):  # in blocks of rows, so that what is written stays in the cache
        rows = slice(start, start + BLOCK)
        np.stack([column[rows] for column in columns], axis=1, out=matrix[rows], casting="unsafe")
    return matrix


def _list_matrix(
    file: TableFile, name: str, grid: ArrayLike | None, metadata: Mapping[str, Any]
) -> tuple[NDArray[np.float64], NDArray[Any]]:
    import pyarrow.compute as pc

    column = file.column(name)
    lengths = np.asarray(pc.list_value_length(column).to_numpy())
    uneven = lengths != lengths[0]
    if uneven.any():
        first = int(np.argmax(uneven))
        raise InputError(
            f"{file.path}: the lists in column {name!r} must have one length: {int(uneven.sum())} of {lengths.size} "
            f"have not the {lengths[0]} of row 0, the first in row {first} ({lengths[first]})"
        )
    if grid is None and "grid" not in metadata:
        raise InputError(f"{file.path}: column {name!r} needs a grid: in the file's metadata, or as `grid`")
    with about(file.path):
        times = as_times(metadata.get("grid", grid), "grid")
        if grid is not None and not np.array_equal(times, as_times(grid, "grid")):
            raise InputError(f"column {name!r} has a grid in the file's metadata, and the one given differs from it")
    if times.size != lengths[0]:
        where = "in its metadata" if "grid" in metadata else "given"
        raise InputError(
            f"{file.path}: column {name!r} has lists of {plural(int(lengths[0]), 'value')}, "
            f"but the grid {where} has {plural(times.size, 'time')}"
        )
    flat = pc.list_flatten(column)
    if flat.null_count:
        first = int(np.argmax(flat.is_null().to_numpy())) // times.size
        raise InputError(
            f"{file.path}: column {name!r} has {plural(flat.null_count, 'missing value')} in its lists, "
            f"the first in row {first}"
        )
    return times, numbers(file.path, name, flat).reshape(-1, times.size)


def _transposed(file: TableFile, take_ids: bool) -> Layout:
    """Rows are times, which the first column holds; every other column is an individual, called by its id."""
    column = time_column(file)
    individuals = [name for name in file.names if name != column]
    if not individuals:
        raise InputError(f"{file.path}: has the column {column!r} of times, and none of individuals")

    def read(model: str) -> Predictions:
        with about(file.path):
            times = as_times(file.numbers(column), f"column {column!r}")
        return times, np.ascontiguousarray(_wide_matrix(file, individuals).T), _metadata(file)

    return Layout(TRANSPOSED, [SURVIVAL], read, arrow().array(individuals) if take_ids else None, set(file.names))


def time_column(file: TableFile) -> str:
    """Return which column holds the times of a transposed file: the first, or where pandas puts an index in Parquet."""
    last = file.names[-1]
    return last if last == TIMES[-1] else file.names[0]


def long_time_column(names: Collection[str]) -> str:
    """Return how a file in long form calls its times: by one of `LONG_TIMES`, unless it says otherwise."""
    return next((name for name in LONG_TIMES if name in names), LONG_TIMES[0])


def _value_columns(file: TableFile, keys: Collection[str]) -> list[str]:
    """Return the columns of predictions in long form: ``survival``, or else all that hold numbers."""
    types = arrow().types
    kinds = {name: file.schema.field(name).type for name in file.names if name not in keys}
    values = [name for name, kind in kinds.items() if types.is_floating(kind) or types.is_integer(kind)]
    return [SURVIVAL] if SURVIVAL in values else values


def _long(
    file: TableFile, id_column: str | None, take_ids: bool, time_column: str | None, *, certain: bool = True
) -> Layout | None:
    """Each prediction has a row with its id, its time, its cause where there are several, and its value.

    Where the user has not said so there must be such columns, and repeated ids: outcomes have such columns, too, but
    each individual once. None, where that is not so.
    """
    import pandas as pd

    own, timed = id_column or ID, time_column or long_time_column(file.names)
    missing = [name for name in (own, timed) if name not in file.names]
    keys = [own, timed, *([CAUSE] if CAUSE in file.names else [])]
    models = _value_columns(file, keys)
    if not certain and (missing or not models):
        return None
    if missing:
        raise InputError(f"{file.path}: long form needs a column {missing[0]!r}; the columns are {listed(file.names)}")
    if not models:
        raise InputError(f"{file.path}: long form needs a column of predictions, such as {SURVIVAL!r}")
    table = file.read([*keys, models[0]])  # together, since columns are decoded side by side
    if not certain:
        labels = table.column(0)
        kind = labels.type
        labels = labels.cast(kind.value_type) if arrow().types.is_dictionary(kind) else labels
        if len(labels.unique()) == len(labels):
            return None
    used = {*keys, *models}

    def values(model: str) -> pa.ChunkedArray:
        return table.column(model) if model == models[0] else file.read([model]).column(0)

    if CAUSE not in keys:
        cells = _Cells.of(file, own, table.column(0), table.column(1), timed)

        def read(model: str) -> Predictions:
            return cells.times, cells.matrix(numbers(file.path, model, values(model))), _metadata(file)

        return Layout(LONG, models, read, cells.ids if take_ids else None, used)

    given = np.array([as_cause(str(label)) for label in vector(table.column(CAUSE))])
    causes = list(in_order(dict.fromkeys(given.tolist(), "")))
    rows = {cause: arrow().array(given == cause) for cause in causes}
    by_cause = {
        cause: _Cells.of(file, own, table.column(0).filter(chosen), table.column(1).filter(chosen), timed)
        for cause, chosen in rows.items()
    }
    first = by_cause[causes[0]]
    places = {}
    for cause, cells in by_cause.items():
        places[cause] = pd.Index(cells.ids.to_pandas()).get_indexer(first.ids.to_pandas())
        if (places[cause] < 0).any() or len(cells.ids) != len(first.ids):
            raise InputError(
                f"{file.path}: long form needs the same ids for each cause: {causes[0]!r} has "
                f"{plural(len(first.ids), 'id')}, {cause!r} has {len(cells.ids)}, and they differ"
            )

    def read_causes(model: str) -> Predictions:
        column, parts = values(model or models[0]), []
        for cause, cells in by_cause.items():
            matrix = cells.matrix(numbers(file.path, model or models[0], column.filter(rows[cause])))
            parts.append((cells.times, matrix[places[cause]], _metadata(file)))
        with about(file.path):
            return _of_causes(causes, parts)

    # one column of values has no name of its own: it is called probability, incidence and otherwise
    names = models if len(models) > 1 else [""]
    ids = first.ids if take_ids else None
    return Layout(LONG, names, read_causes, ids, used, dict.fromkeys(names, tuple(causes)))


@dataclass(frozen=True, eq=False)
class _Cells:
    """Where the rows of a file in long form belong in a matrix of individuals, as they first appear, and times.

    `place` is None where rows already come in the order of the matrix, so that their values need not be copied.
    """

    ids: pa.Array
    times: NDArray[np.float64]
    place: NDArray[np.intp] | None

    @classmethod
    def of(cls, file: TableFile, id_column: str, ids: pa.ChunkedArray, times: pa.ChunkedArray, timed: str) -> _Cells:
        import pandas as pd

        encoded = as_labels(file.path, id_column, ids).dictionary_encode()  # in the order of appearance
        individual, names = np.asarray(encoded.indices.to_numpy()), encoded.dictionary
        given = numbers(file.path, timed, times).astype(np.float64, copy=False) + 0.0  # no minus zero
        column, grid = pd.factorize(given, sort=True, use_na_sentinel=False)
        with about(file.path):
            grid = as_times(grid, f"column {timed!r}")
        place = individual.astype(np.intp) * grid.size + column
        if place.size == len(names) * grid.size and np.array_equal(place, np.arange(place.size)):
            return cls(names, grid, None)
        _check_cells(file, names, grid, place)
        return cls(names, grid, place)

    def matrix(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the values of a column as a matrix."""
        if values.dtype != np.float32:
            values = values.astype(np.float64, copy=False)
        if self.place is not None:
            ordered = np.empty_like(values)
            ordered[self.place] = values
            values = ordered
        return values.reshape(len(self.ids), self.times.size)


def _check_cells(file: TableFile, ids: pa.Array, times: NDArray[np.float64], cells: NDArray[np.intp]) -> None:
    """Raise unless every individual has one row at each of the times."""
    n, m = len(ids), times.size
    if cells.size == n * m:  # as many rows as cells, so each has one if none is empty
        filled = np.zeros(n * m, dtype=np.bool_)
        filled[cells] = True
        if filled.all():
            return
    present, counts = np.unique(cells, return_counts=True)  # not counted by cell, of which there may be far more
    twice = np.flatnonzero(counts > 1)
    gaps = np.flatnonzero(present != np.arange(present.size))
    n_empty, first = n * m - present.size, int(gaps[0]) if gaps.size else present.size
    how = "no row"
    if twice.size and (not n_empty or present[twice[0]] < first):
        first, how = int(present[twice[0]]), f"{counts[twice[0]]} rows"
    raise InputError(
        f"{file.path}: long form needs one row for each of {plural(n, 'id')} and {plural(m, 'time')}: "
        f"{n_empty + twice.size} of {n * m} pairs have not, the first {ids[first // m].as_py()!r} "
        f"at time {times[first % m]:g} ({how})"
    )
