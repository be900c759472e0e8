"""Predictions in long form: a row for each individual and time, in whatever order, as a matrix."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from survscore._validation import InputError, as_times, plural
from survscore.io.tables import TableFile, about, arrow, as_labels, complete, numbers, readable

if TYPE_CHECKING:
    import pyarrow as pa

Codes = NDArray[np.integer[Any]]

BLOCK = 1 << 16  # rows that are looked at together, so that they stay in the cache
SPARSE = 4  # of so many whole numbers for each row, ids are counted; of more, they are looked up


@dataclass(frozen=True, eq=False)
class LongForm:
    """Where the rows of a file in long form belong in a matrix of individuals and times.

    Attributes
    ----------
    ids : pyarrow.Array
        Of the matrix' rows, in the order in which they first appear.
    times : ndarray
        Of its columns, which go up.
    columns : ndarray of int
        In which order the times come, where that is the same for all individuals.
    by_time : bool
        Whether rows of a time follow each other, each time with the same individuals; if not, those of an individual.
    cells : ndarray of int, or None
        The place of every row in the matrix, where rows follow each other in neither way.
    """

    ids: pa.Array
    times: NDArray[np.float64]
    columns: NDArray[np.intp]
    by_time: bool = False
    cells: NDArray[np.intp] | None = None

    @classmethod
    def of(
        cls, file: TableFile, id_column: str, ids: pa.ChunkedArray, times: pa.ChunkedArray, timed: str = "time"
    ) -> LongForm:
        """Find out how rows follow each other, without sorting them; raise unless every cell has one row."""
        who, names = _coded(file, id_column, ids)
        when = numbers(file.path, timed, times).astype(np.float64, copy=False)
        found = _by_individual(who, when, names) or _by_time(who, when, names)
        if found is None:
            return _in_any_order(file, who, when, names, timed)
        with about(file.path):
            as_times(found.times, f"column {timed!r}")
        return found

    def matrix(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the values of a column as a matrix, without a copy where they lie like one."""
        if values.dtype != np.float32:
            values = values.astype(np.float64, copy=False)
        n, m = len(self.ids), self.times.size
        if self.cells is not None:
            filled = np.empty(n * m, dtype=values.dtype)
            filled[self.cells] = values
            return filled.reshape(n, m)
        if self.by_time:
            return _transposed(values.reshape(m, n), self.columns)
        matrix = values.reshape(n, m)
        return matrix if _ascending(self.columns) else np.ascontiguousarray(matrix[:, self.columns])


def repeats_an_id(column: pa.ChunkedArray) -> bool:
    """Whether an id occurs twice; neighbours, and those like the first, are looked at before all others."""
    import pyarrow.compute as pc

    few = column[:BLOCK]
    if len(few) > 1 and pc.any(pc.equal(few[1:], few[:-1])).as_py():
        return True
    return (pc.sum(pc.equal(column, column[0])).as_py() or 0) > 1 or len(pc.unique(column)) < len(column)


def _coded(file: TableFile, name: str, column: pa.ChunkedArray) -> tuple[Codes, pa.Array | None]:
    """Return ids as whole numbers: as they are, with None, or for text as positions in an array of different ids."""
    types = arrow().types
    complete(file.path, name, column)
    if not types.is_dictionary(column.type):
        given = as_labels(file.path, name, column)
        if types.is_integer(given.type):
            return np.asarray(given.to_numpy()), None
        column = arrow().chunked_array([given.dictionary_encode()])
    with readable(file.path):
        column = column.unify_dictionaries()
    codes = np.concatenate([np.asarray(chunk.indices.to_numpy()) for chunk in column.chunks])
    names = as_labels(file.path, name, arrow().chunked_array([column.chunk(0).dictionary])).dictionary_encode()
    if len(names.dictionary) < len(names):  # a dictionary may hold a word twice
        codes = np.asarray(names.indices.to_numpy())[codes]
    return codes, names.dictionary


def _by_individual(who: Codes, when: NDArray[np.float64], names: pa.Array | None) -> LongForm | None:
    """Return the form of rows of which all of an individual follow each other, with the same times; None otherwise."""
    m = _run(who)
    times = when[:m]
    if when.size % m or np.unique(times).size < m:
        return None
    people = who[::m]
    of_people, of_times = who.reshape(-1, m), when.reshape(-1, m)
    for rows in _blocks(people.size, m):
        if (of_times[rows] != times).any() or (of_people[rows] != people[rows, None]).any():
            return None
    if not _different(people):
        return None
    columns = np.argsort(times)
    return LongForm(_named(people, names), times[columns], columns)


def _by_time(who: Codes, when: NDArray[np.float64], names: pa.Array | None) -> LongForm | None:
    """Return the form of rows of which all of a time follow each other, with the same individuals; None otherwise."""
    n = _run(when)
    if n == 0 or when.size % n or when.size // n > n:  # few individuals and many times are not worth a loop
        return None
    people, times = who[:n], when[::n]
    if np.unique(times).size < times.size:
        return None
    for start in range(0, who.size, n):
        rows = slice(start, start + n)
        if not np.array_equal(who[rows], people) or (when[rows] != when[start]).any():
            return None
    if not _different(people):
        return None
    columns = np.argsort(times)
    return LongForm(_named(people, names), times[columns], columns, by_time=True)


def _in_any_order(
    file: TableFile, who: Codes, when: NDArray[np.float64], names: pa.Array | None, timed: str
) -> LongForm:
    encoded = arrow().array(when + 0.0).dictionary_encode()  # no minus zero
    given = np.asarray(encoded.dictionary.to_numpy())
    columns = np.argsort(given)
    with about(file.path):
        times = as_times(given[columns], f"column {timed!r}")
    column = np.argsort(columns)
    people, cells = _ranked(who)
    cells *= times.size
    for rows in _blocks(who.size):
        cells[rows] += column[np.asarray(encoded.indices[rows.start : rows.stop].to_numpy())]
    ids = _named(people, names)
    _check_cells(file, ids, times, cells)
    return LongForm(ids, times, np.arange(times.size), cells=cells)


def _ranked(who: Codes) -> tuple[Codes, NDArray[np.intp]]:
    """Return who there is, in order of appearance, and for every row the place among them."""
    low, high = int(who.min()), int(who.max())
    if high - low >= SPARSE * who.size:
        coded = arrow().array(who).dictionary_encode()
        return np.asarray(coded.dictionary.to_numpy()), np.asarray(coded.indices.to_numpy()).astype(np.intp)
    first = np.full(high - low + 1, who.size, dtype=np.intp)
    for rows in reversed(list(_blocks(who.size))):  # of several, what is written last stays
        numbered = np.arange(rows.start, min(rows.stop, who.size))
        first[who[rows][::-1] - low] = numbered[::-1]
    there = np.flatnonzero(first < who.size)
    there = there[np.argsort(first[there])]
    place = first  # which is needed no more
    place[there] = np.arange(there.size)
    ranks = np.empty(who.size, dtype=np.intp)
    for rows in _blocks(who.size):
        ranks[rows] = place[who[rows] - low]
    return there + low, ranks


def _check_cells(file: TableFile, ids: pa.Array, times: NDArray[np.float64], cells: NDArray[np.intp]) -> None:
    """Raise unless every individual has one row at each of the times."""
    n, m = len(ids), times.size
    if cells.size == n * m:  # as many rows as cells, so each has one if none is empty
        there = np.zeros(n * m, dtype=np.bool_)
        there[cells] = True
        if there.all():
            return
    filled, counts = np.unique(cells, return_counts=True)  # not counted by cell, of which there may be far more
    empty, twice = n * m - filled.size, np.flatnonzero(counts > 1)
    skips = np.flatnonzero(filled != np.arange(filled.size))
    first_empty = int(skips[0]) if skips.size else filled.size
    first, how = first_empty, "no row"
    if twice.size and (not empty or filled[twice[0]] < first_empty):
        first, how = int(filled[twice[0]]), f"{counts[twice[0]]} rows"
    raise InputError(
        f"{file.path}: long form needs one row for each of {plural(n, 'id')} and {plural(m, 'time')}: "
        f"{empty + twice.size} of {n * m} pairs have not, the first {ids[first // m].as_py()!r} "
        f"at time {times[first % m]:g} ({how})"
    )


def _run(values: NDArray[Any]) -> int:
    """Return how many values at the beginning are equal to the first."""
    for rows in _blocks(values.size):
        others = values[rows] != values[0]
        if others.any():
            return int(rows.start + np.argmax(others))
    return values.size


def _blocks(n: int, width: int = 1) -> Iterator[slice]:
    step = max(1, BLOCK // width)
    return (slice(start, start + step) for start in range(0, n, step))


def _different(people: Codes) -> bool:
    return bool((people[1:] > people[:-1]).all()) or np.unique(people).size == people.size


def _ascending(columns: NDArray[np.intp]) -> bool:
    return bool((columns == np.arange(columns.size)).all())


def _named(people: Codes, names: pa.Array | None) -> pa.Array:
    ids = arrow().array(people)
    return ids if names is None else names.take(ids)


def _transposed(rows: NDArray[Any], columns: NDArray[np.intp]) -> NDArray[Any]:
    """Return the matrix whose columns are these rows, in this order."""
    m, n = rows.shape
    matrix = np.empty((n, m), dtype=rows.dtype)
    for some in _blocks(n, m):
        matrix[some] = rows[columns, some].T
    return matrix
