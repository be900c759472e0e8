"""How predictions are laid out in a file: columns by time, lists, rows by time, or rows by individual and time."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._validation import InputError, as_times, plural
from survscore.io.column_names import NamedColumns, as_cause, in_order
from survscore.io.forms import Form
from survscore.io.long_form import LongForm, repeats_an_id
from survscore.io.outcomes import ID
from survscore.io.tables import TableFile, about, arrow, identifiers, listed, numbers, vector

if TYPE_CHECKING:
    import pyarrow as pa

METADATA = b"survscore"
CAUSE = "cause"  # what long form calls its column of causes
SURVIVAL = "survival"  # what a file calls the predictions of a model that has the name of the file
LONG_TIMES = ("time", "times", "t", "horizon")  # what long form calls its column of times
BLOCK = 4096
# What the column of times is called where rows are times; without a name it is as pandas writes an index.
TIMES = ("", "time", "times", "timeline", "index", "__index_level_0__")


@dataclass(frozen=True, eq=False)
class Layout:
    """The models of a file, to be read one by one.

    Attributes
    ----------
    models : list of str
        As the file calls them.
    read : callable
        Takes a model; returns its times, its matrix of numbers, and what the file says about it.
    ids : pyarrow.Array or None
        Whom the rows of the matrix are about.
    used : set of str
        The columns that are read.
    of_lists : bool
        Whether these are list columns, which need a grid.
    names_are_ids : bool
        Whether ids are names of columns, which there always are, so that they need not be ids.
    long : bool
        Whether each row of the file is about one individual at one time.
    causes : dict
        For each model that predicts several causes what they are; its matrix has individuals, causes and times.
    """

    models: list[str]
    read: Callable[[str], tuple[NDArray[np.float64], NDArray[Any], dict[str, Any]]]
    ids: pa.Array | None
    used: set[str] = field(default_factory=set)
    of_lists: bool = False
    names_are_ids: bool = False
    long: bool = False
    causes: dict[str, tuple[str, ...]] = field(default_factory=dict)


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
        return _long(file, id_column, id is not False, None, said=False) if form.columns is None and id_column else None
    ids = None if id is False or id_column is None else identifiers(file, id_column)

    def read_wide(columns: dict[float, str]) -> tuple[NDArray[np.float64], NDArray[Any], dict[str, Any]]:
        times = np.array(sorted(columns))
        return times, _wide_matrix(file, [columns[time] for time in times]), _metadata(file, None)

    def read_list(column: str) -> tuple[NDArray[np.float64], NDArray[Any], dict[str, Any]]:
        says = _metadata(file, column)
        return *_list_matrix(file, column, form.grid, says), says

    def read(model: str) -> tuple[NDArray[np.float64], NDArray[Any], dict[str, Any]]:
        if model in named.lists:
            return read_list(named.lists[model])
        if model in named.by_time:
            return read_wide(named.by_time[model])
        several = named.by_cause[model]
        parts = [read_list(one) if isinstance(one, str) else read_wide(one) for one in several.values()]
        with about(file.path):
            return _of_causes(list(several), parts)

    own = {id_column} if id_column is not None else set()
    causes = {model: tuple(several) for model, several in named.by_cause.items()}
    return Layout(named.models, read, ids, {*own, *named.columns}, named.of_lists, causes=causes)


def _of_causes(
    causes: Sequence[str], parts: Sequence[tuple[NDArray[np.float64], NDArray[Any], dict[str, Any]]]
) -> tuple[NDArray[np.float64], NDArray[Any], dict[str, Any]]:
    """Return the predictions of several causes as one array of individuals, causes and times."""
    times, _, says = parts[0]
    for cause, (own, *_) in zip(causes, parts, strict=True):
        if not np.array_equal(own, times):
            raise InputError(
                f"all causes must be predicted at the same times: {causes[0]!r} is at {plural(times.size, 'time')} "
                f"({times[0]:g} to {times[-1]:g}), {cause!r} at {plural(own.size, 'time')} ({own[0]:g} to {own[-1]:g})"
            )
    return times, np.stack([matrix for _, matrix, _ in parts], axis=1), says


def looks_transposed(file: TableFile, named_by_time: bool) -> bool:
    """Whether rows of a file are times and columns individuals, as lifelines and pycox return curves.

    Their times go up with the rows, and all columns fall (or rise) with them. Where names of columns might be times,
    too, that is no proof unless some rows rise and some fall, as neither survival nor its opposite does.
    """
    column = time_column(file)
    others = [name for name in file.names if name != column]
    if column not in TIMES or file.n_rows < 3 or not others or "event" in others:  # outcomes have an event
        return False
    try:
        times = numbers(file.path, column, file.read([column]).column(0))
        if not (times[0] >= 0 and (times[1:] > times[:-1]).all()):  # of most files, before all of it is read
            return False
        matrix = _wide_matrix(file, others)
    except InputError:  # no numbers, or some missing
        return False
    if not ((matrix >= 0) & (matrix <= 100)).all():
        return False
    down = np.diff(matrix, axis=0)
    if not (down.any() and _all_fall_or_rise(down)):
        return False
    return not (named_by_time and _all_fall_or_rise(np.diff(matrix, axis=1)))


def _all_fall_or_rise(steps: NDArray[Any]) -> bool:
    return bool((steps <= 0).all() or (steps >= 0).all())


def list_columns(schema: pa.Schema) -> list[str]:
    """Return the names of the columns of lists."""
    return [name for name in schema.names if is_list(schema.field(name).type)]


def is_list(kind: Any) -> bool:
    """Whether a column of this type holds lists."""
    types = arrow().types
    return bool(types.is_fixed_size_list(kind) or types.is_list(kind) or types.is_large_list(kind))


def _metadata(file: TableFile, column: str | None) -> dict[str, Any]:
    """Return what the file says about a column of predictions, or about all of them."""
    return said_in(file.schema, column, f"{file.path}: ")


def said_in(schema: pa.Schema, column: str | None, where: str = "") -> dict[str, Any]:
    """Return what metadata say about a column of predictions, or about all of them."""
    says: dict[str, Any] = {}
    for metadata in (schema.metadata, None if column is None else schema.field(column).metadata):
        written = (metadata or {}).get(METADATA)
        if written is not None:
            try:
                found = json.loads(written)
                if not isinstance(found, dict):
                    raise ValueError
            except (ValueError, RecursionError):
                raise InputError(
                    f"{where}the metadata 'survscore' are not JSON of the form {{\"grid\": [...]}}"
                ) from None
            says |= found
    return says


def _wide_matrix(file: TableFile, names: list[str]) -> NDArray[Any]:
    table = file.read(names)
    several = [numbers(file.path, name, table.column(name)) for name in names]
    dtype = np.float32 if all(one.dtype == np.float32 for one in several) else np.float64
    matrix = np.empty((table.num_rows, len(several)), dtype=dtype)
    for start in range(0, len(matrix), BLOCK):  # in blocks of rows, so that what is written stays in the cache
        rows = slice(start, start + BLOCK)
        np.stack([one[rows] for one in several], axis=1, out=matrix[rows], casting="unsafe")
    return matrix


def _list_matrix(
    file: TableFile, name: str, grid: ArrayLike | None, says: Mapping[str, Any]
) -> tuple[NDArray[np.float64], NDArray[Any]]:
    column = file.column(name)
    lengths = np.asarray(_compute().list_value_length(column).to_numpy())
    uneven = lengths != lengths[0]
    if uneven.any():
        first = int(np.argmax(uneven))
        raise InputError(
            f"{file.path}: the lists in column {name!r} must have one length: {int(uneven.sum())} of {lengths.size} "
            f"have not the {lengths[0]} of row 0, the first in row {first} ({lengths[first]})"
        )
    if grid is None and "grid" not in says:
        raise InputError(f"{file.path}: column {name!r} needs a grid: in the file's metadata, or as `grid`")
    with about(file.path):
        times = as_times(says.get("grid", grid), "grid")
        if grid is not None and not np.array_equal(times, as_times(grid, "grid")):
            raise InputError(f"column {name!r} has a grid in the file's metadata, and the one given differs from it")
    if times.size != lengths[0]:
        where = "in its metadata" if "grid" in says else "given"
        raise InputError(
            f"{file.path}: column {name!r} has lists of {plural(int(lengths[0]), 'value')}, "
            f"but the grid {where} has {plural(times.size, 'time')}"
        )
    flat = _compute().list_flatten(column)
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

    def read(model: str) -> tuple[NDArray[np.float64], NDArray[Any], dict[str, Any]]:
        with about(file.path):
            times = as_times(numbers(file.path, column, file.read([column]).column(0)), f"column {column!r}")
        return times, np.ascontiguousarray(_wide_matrix(file, individuals).T), _metadata(file, None)

    ids = arrow().array(individuals) if take_ids else None
    return Layout([SURVIVAL], read, ids, set(file.names), names_are_ids=True)


def time_column(file: TableFile) -> str:
    """Return which column holds the times of a transposed file: the first, or where pandas puts an index in Parquet."""
    last = file.names[-1]
    return last if last == TIMES[-1] else file.names[0]


def _value_columns(file: TableFile, taken: Collection[str]) -> list[str]:
    """Return the columns of predictions in long form: ``survival``, or else all that hold numbers."""
    types = arrow().types
    held = {name: file.schema.field(name).type for name in file.names if name not in taken}
    values = [name for name, kind in held.items() if types.is_floating(kind) or types.is_integer(kind)]
    return [SURVIVAL] if SURVIVAL in values else values


def long_time_column(names: Collection[str]) -> str:
    """Return how a file in long form calls its times: by one of `LONG_TIMES`, unless it says otherwise."""
    return next((name for name in LONG_TIMES if name in names), LONG_TIMES[0])


def _long(
    file: TableFile, id_column: str | None, take_ids: bool, time_column: str | None, *, said: bool = True
) -> Layout | None:
    """Return predictions of which each has a row with its id, its time and its value, in any order.

    Where nobody said so, there must be such columns, and ids that are repeated: outcomes, which have such columns too,
    name nobody twice. None, where that is not so. With a column ``cause``, each has a row for each cause.
    """
    own = id_column or ID
    timed = time_column or long_time_column(file.names)
    missing = [name for name in (own, timed) if name not in file.names]
    keys = (own, timed, *([CAUSE] if CAUSE in file.names else []))
    models = [] if missing else _value_columns(file, keys)
    if not said and (missing or not models or "event" in file.names):
        return None
    if missing:
        raise InputError(f"{file.path}: long form needs a column {missing[0]!r}; the columns are {listed(file.names)}")
    if not models:
        raise InputError(f"{file.path}: long form needs a column of predictions, such as {SURVIVAL!r}")
    table = file.read([*keys, models[0]], coded=own)  # together, since columns are decoded side by side
    if not said and not repeats_an_id(table.column(0)):
        return None
    if CAUSE in keys:
        return _long_by_cause(file, own, table, models, take_ids, timed)
    form = LongForm.of(file, own, table.column(0), table.column(1), timed)
    values = {models[0]: table.column(2)}

    def read(model: str) -> tuple[NDArray[np.float64], NDArray[Any], dict[str, Any]]:
        column = values.pop(model) if model in values else file.read([model]).column(0)
        return form.times, form.matrix(numbers(file.path, model, column)), _metadata(file, None)

    return Layout(models, read, form.ids if take_ids else None, {own, timed, *models}, long=True)


def _long_by_cause(file: TableFile, own: str, table: pa.Table, models: list[str], take_ids: bool, timed: str) -> Layout:
    """Return predictions of which each has a row with its id, its time, its cause and its value."""
    labels = vector(table.column(2))
    given = np.array([as_cause(str(label)) for label in labels])
    causes = list(in_order(dict.fromkeys(given.tolist(), "")))
    rows = {cause: arrow().array(given == cause) for cause in causes}
    forms = {}
    for cause, chosen in rows.items():
        forms[cause] = LongForm.of(file, own, table.column(0).filter(chosen), table.column(1).filter(chosen), timed)
    first = forms[causes[0]]
    places = {}
    for cause, form in forms.items():
        places[cause] = _compute().index_in(first.ids, value_set=form.ids)
        if places[cause].null_count or len(form.ids) != len(first.ids):
            raise InputError(
                f"{file.path}: long form needs the same ids for each cause: {causes[0]!r} has "
                f"{plural(len(first.ids), 'id')}, {cause!r} has {len(form.ids)}, and they differ"
            )

    def read(model: str) -> tuple[NDArray[np.float64], NDArray[Any], dict[str, Any]]:
        column = table.column(3) if model == models[0] else file.read([model]).column(0)
        parts = []
        for cause, form in forms.items():
            matrix = form.matrix(numbers(file.path, model, column.filter(rows[cause])))
            parts.append((form.times, matrix[places[cause].to_numpy()], _metadata(file, None)))
        with about(file.path):
            return _of_causes(causes, parts)

    # one column of values has no name of its own: it is called probability, incidence and otherwise
    names = models if len(models) > 1 else [""]
    read_model = read if len(models) > 1 else lambda _: read(models[0])
    used = {own, timed, CAUSE, *models}
    ids = first.ids if take_ids else None
    return Layout(names, read_model, ids, used, long=True, causes=dict.fromkeys(names, tuple(causes)))


def _compute() -> Any:
    import pyarrow.compute as pc

    return pc
