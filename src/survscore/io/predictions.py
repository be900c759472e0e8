"""Predictions from a file: wide columns named by time, or list columns with a grid."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._validation import InputError, as_times, plural
from survscore.curves import Between, Beyond, Monotone, SurvivalCurves
from survscore.io.outcomes import ID, labels_in
from survscore.io.tables import (
    CSV_ENDINGS,
    PARQUET_ENDINGS,
    TableFile,
    about,
    arrow,
    identifiers,
    listed,
    numbers,
    open_table,
)

if TYPE_CHECKING:
    import pyarrow as pa

METADATA = b"survscore"
NAMELESS = ("", "survival")  # what a file calls a model that has the name of the file
BLOCK = 4096


@dataclass(frozen=True, eq=False)
class PredictedFile:
    """What a file predicts.

    Attributes
    ----------
    path : Path
        The file.
    models : dict of str to SurvivalCurves
        In the order of the file.
    ids : pyarrow.Array or None
        Whom the rows are about, where the file says so.
    ignored : list of str
        Columns that are neither predictions nor ids.
    took_grid : bool
        Whether a grid that was given was needed.
    """

    path: Path
    models: dict[str, SurvivalCurves]
    ids: pa.Array | None
    ignored: list[str]
    took_grid: bool


def read_predictions(
    path: Path | str | TableFile,
    *,
    name: str | None = None,
    grid: ArrayLike | None = None,
    columns: str | None = None,
    between: Between | None = None,
    beyond: Beyond | None = None,
    monotone: Monotone = "check",
    id: str | Literal[False] | None = None,
) -> PredictedFile:
    r"""Read the predictions of one or several models from a CSV or Parquet file.

    A prediction is the probability of being event-free after a time. Either there is a column for every time, named by
    it (``30``, ``60``, ``90.5``), with the model before a colon where there are several (``net:30``, ``cox:30``). Or
    each model has a column of lists of equal length, whose grid is in the file's metadata or given.

    Parameters
    ----------
    path : path
        Of a file that ends in .csv, .csv.gz, .tsv, .tsv.gz, .parquet or .pq.
    name : str, optional
        What to call the file's only model, by default like the file; or which of several to take.
    grid : array_like, optional
        The times of list columns, where the file does not say them.
    columns : str, optional
        How wide columns are named, if not as above: a pattern with ``{time}`` and perhaps ``{model}``,
        such as ``"surv_{time}"``.
    between : {"linear", "step", "constant-hazard"}, optional
        As for `SurvivalCurves`; by default what the file says, or ``"linear"``.
    beyond : {"nan", "hold"}, optional
        As for `SurvivalCurves`; by default what the file says, or ``"nan"``.
    monotone : {"check", "keep", "enforce"}
        As for `SurvivalCurves`.
    id : str or False, optional
        The column of ids; by default ``id``, if there is one. False reads none.

    Returns
    -------
    PredictedFile

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from survscore.io import read_predictions
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "cox.csv"
    >>> _ = path.write_text("id,30,60\na,0.9,0.8\nb,0.7,0.5\n")
    >>> read_predictions(path).models
    {'cox': SurvivalCurves(2 individuals, 2 times from 30 to 60, between='linear', beyond='nan', float64)}
    """
    predicted = predictions_in(path, name, grid, columns, between, beyond, monotone, id)
    if grid is not None and not predicted.took_grid:
        raise InputError(f"{predicted.path}: a grid is for list columns; here the columns' names are the times")
    return predicted


def predictions_in(
    path: Path | str | TableFile,
    name: str | None,
    grid: ArrayLike | None,
    columns: str | None,
    between: Between | None,
    beyond: Beyond | None,
    monotone: Monotone,
    id: str | Literal[False] | None,
) -> PredictedFile:
    """Do what `read_predictions` does, but leave it to the caller whether a grid was given in vain."""
    file = open_table(path, text=labels_in(id))
    if id and id not in file.names:
        raise InputError(f"{file.path}: there is no column {id!r} (id); the columns are {listed(file.names)}")
    id_column = id or (ID if ID in file.names else None)
    wide, lists = _wide(file, columns, id_column), _lists(file) if columns is None else []
    if wide and lists:
        raise InputError(f"{file.path}: has columns named by time and list columns ({lists[0]!r}); keep one kind")
    if not wide and not lists:
        wanted = f"named like {columns!r}" if columns else "named by time (30, 60 or net:30, net:60), nor a list column"
        raise InputError(f"{file.path}: no column is {wanted}; the columns are {listed(file.names)}")
    models = {}
    for model, key in _chosen(file.path, list(wide or lists), name).items():
        says = _metadata(file, None if wide else key)
        if wide:
            times = np.array(sorted(wide[key]))
            matrix = _wide_matrix(file, [wide[key][time] for time in times])
        else:
            times, matrix = _list_matrix(file, key, grid, says)
        with about(file.path):
            models[model] = SurvivalCurves(
                matrix,
                times,
                between or says.get("between", "linear"),
                beyond=beyond or says.get("beyond", "nan"),
                monotone=monotone,
            )
    used = {id_column, *lists, *(column for by_time in wide.values() for column in by_time.values())}
    return PredictedFile(
        file.path,
        models,
        None if id is False or id_column is None else identifiers(file, id_column),
        [column for column in file.names if column not in used],
        bool(lists) and grid is not None,
    )


def holds_predictions(file: TableFile, columns: str | None = None, id: str | None = None) -> bool:
    """Whether a file has columns of predictions, right or wrong."""
    return bool(_wide(file, columns, id or ID) or _lists(file))


def _stem(path: Path) -> str:
    for ending in sorted(CSV_ENDINGS + PARQUET_ENDINGS, key=len, reverse=True):
        if path.name.lower().endswith(ending):
            return path.name[: -len(ending)]
    return path.name


def _chosen(path: Path, keys: list[str], name: str | None) -> dict[str, str]:
    """Return which models of a file to take, and what to call them."""
    found: dict[str, str] = {}
    for key in keys:
        model = _stem(path) if key in NAMELESS else key
        if model in found:
            raise InputError(
                f"{path}: two models would be called {model!r}, one of them like the file; rename the file"
            )
        found[model] = key
    if name is None:
        return found
    if len(found) == 1:
        return {name: keys[0]}
    if name not in found:
        raise InputError(f"{path}: has {len(found)} models, {listed(list(found))}, but none called {name!r}")
    return {name: found[name]}


def _wide(file: TableFile, columns: str | None, id_column: str | None) -> dict[str, dict[float, str]]:
    with about(file.path):
        return columns_by_time([name for name in file.names if name != id_column], columns)


def columns_by_time(names: Sequence[str], columns: str | None = None) -> dict[str, dict[float, str]]:
    """Return the columns of each model by time, by a pattern or as usual; a model without name is ''."""
    named = re.compile(_pattern(columns), re.DOTALL).fullmatch if columns else _usual_name
    found: dict[str, dict[float, str]] = defaultdict(dict)
    for column in names:
        match = named(column)
        time = None if match is None else _as_time(match["time"])
        if match is None or time is None:
            continue
        if not 0 <= time < np.inf:
            raise InputError(f"column {column!r} is named like a time, but times are finite, zero or later")
        model = match.groupdict().get("model") or ""
        if time in found[model]:
            raise InputError(f"columns {found[model][time]!r} and {column!r} are the same time")
        found[model][time] = column
    return dict(found)


def _usual_name(column: str) -> re.Match[str] | None:
    return re.fullmatch(r"(?:(?P<model>.*):)?(?P<time>[^:]+)", column, re.DOTALL)


def _pattern(columns: str) -> str:
    if columns.count("{time}") != 1 or columns.count("{model}") > 1:
        raise InputError(f"columns must hold {{time}} once, and {{model}} at most once, not {columns!r}")
    escaped = re.escape(columns)
    return escaped.replace(r"\{time\}", "(?P<time>.+)").replace(r"\{model\}", "(?P<model>.+?)")


def _as_time(text: str) -> float | None:
    """Return the number that a text is, if it is one."""
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def _lists(file: TableFile) -> list[str]:
    return [name for name in file.names if _is_list(file.schema.field(name).type)]


def _is_list(kind: Any) -> bool:
    types = arrow().types
    return bool(types.is_fixed_size_list(kind) or types.is_list(kind) or types.is_large_list(kind))


def _metadata(file: TableFile, column: str | None) -> dict[str, Any]:
    """Return what the file says about a column of predictions, or about all of them."""
    says: dict[str, Any] = {}
    for metadata in (file.schema.metadata, None if column is None else file.schema.field(column).metadata):
        written = (metadata or {}).get(METADATA)
        if written is not None:
            try:
                found = json.loads(written)
                if not isinstance(found, dict):
                    raise ValueError
            except (ValueError, RecursionError):
                raise InputError(
                    f"{file.path}: the metadata 'survscore' are not JSON of the form {{\"grid\": [...]}}"
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
        raise InputError(f"{file.path}: column {name!r} needs a grid: in the file's metadata, or given")
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


def _compute() -> Any:
    import pyarrow.compute as pc

    return pc
