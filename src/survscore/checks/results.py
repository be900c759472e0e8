"""Results of ``survscore compare --json`` or ``survscore score --json``, read back: plain data, checked, no code."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from survscore._validation import InputError, shown
from survscore.checks.rules import nearest, segment_label
from survscore.checks.runs import NAMES, TEXTS, Run, check_id, make_run
from survscore.io.files import check_regular

if TYPE_CHECKING:
    import pandas as pd

NEEDED = {
    "scores": (*NAMES, "time", "score", "se", "lower", "upper"),
    "means": (*NAMES, "from", "to", "score", "se", "lower", "upper"),
    "contrasts": (*NAMES, "reference", "time", "difference", "se", "lower", "upper"),
    "verdicts": (*NAMES, "reference", "difference", "se", "lower", "upper"),
    "recommendations": (*NAMES, "reference", "from", "to", "verdict", "sentence"),
}
OPTIONAL = ("n_events", "time", "from", "to")


def read_results(path: Path | str, *, id: str | None = None, date: datetime | None = None) -> Run:
    """Read what ``survscore compare --json`` or ``survscore score --json`` wrote.

    Parameters
    ----------
    path : path
        The file.
    id, date
        Of the run; by default now, and an id made of the date and a digest.

    Returns
    -------
    Run
    """
    path = Path(path)
    if path.exists():
        check_regular(path)
    try:
        data = json.loads(path.read_text(encoding="utf-8-sig"), parse_constant=_refuse_constant)
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is not JSON that survscore compare --json wrote: {shown(error)}") from None
    try:
        return run_of_results(data, id=id, date=date)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def run_of_results(data: Any, *, id: str | None = None, date: datetime | None = None) -> Run:
    """Return the run that results as plain data are about.

    Parameters
    ----------
    data : mapping
        With ``settings`` and the lists of rows ``scores``, ``means``, ``contrasts``, ``verdicts`` and
        ``recommendations``, as ``survscore compare --json`` writes them. Columns before ``metric`` say of which segment
        a row is.
    id, date
        See `read_results`.

    Returns
    -------
    Run
    """
    if not isinstance(data, Mapping) or not isinstance(data.get("settings"), Mapping) or "scores" not in data:
        raise InputError("does not hold settings and scores, as survscore compare --json writes them")
    settings = dict(data["settings"])
    segment_columns = _segment_columns(settings, data["scores"])
    tables = {name: _table(name, data[name], segment_columns) for name in NEEDED if name in data and data[name] != []}
    if "scores" not in tables:
        raise InputError("scores is empty")
    of_means = tables.pop("verdicts", None)  # of the means, or once more of the one time there is
    if of_means is not None and "from" in of_means:
        tables["contrasts"] = _both(tables.get("contrasts"), of_means)
    if "null" not in settings and isinstance(settings.get("curves"), Mapping):
        added = [name for name in tables["scores"]["model"].unique() if name not in settings["curves"]]
        settings["null"] = added[0] if len(added) == 1 else None
    return make_run(settings, tables, segment_columns=segment_columns, id=id, date=date)


def run_of_rows(said: Mapping[str, Any]) -> Run:
    """Return a stored run: its id, date, version, settings and segment columns, and the rows of its tables."""
    for name in ("id", "date", "version"):
        _text(name, said.get(name))
    check_id(said["id"])
    try:
        date = datetime.fromisoformat(said["date"])
    except ValueError:
        raise InputError(f"date must be as ISO 8601 writes it, not {shown(said['date'])!r}") from None
    if not isinstance(said.get("settings"), Mapping):
        raise InputError("settings must be a table")
    columns = _segment_columns({"segment_columns": said.get("segment_columns", [])}, None)
    tables = {name: _table(name, said[name], columns) for name in ("scores", "means") if said.get(name)}
    run = make_run(said["settings"], tables, segment_columns=columns, id=said["id"], date=date)
    return replace(run, version=said["version"])


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


def _segment_columns(settings: Mapping[str, Any], scores: Any) -> tuple[str, ...]:
    """Return the columns before the metric, or those that the settings name."""
    named = settings.get("segment_columns")
    if named is not None:
        if not isinstance(named, Sequence) or isinstance(named, str) or not all(isinstance(one, str) for one in named):
            raise InputError("settings: segment_columns must be a list of names")
        return tuple(named)
    if not isinstance(scores, Sequence) or not scores or not isinstance(scores[0], Mapping):
        return ()
    columns = list(scores[0])
    return tuple(columns[: columns.index("metric")]) if "metric" in columns else ()


def _table(name: str, rows: Any, segment_columns: tuple[str, ...]) -> pd.DataFrame:
    import pandas as pd

    if not isinstance(rows, Sequence) or isinstance(rows, str) or not all(isinstance(row, Mapping) for row in rows):
        raise InputError(f"{name} must be a list of rows")
    columns: dict[str, list[Any]] = {}
    for column in (*segment_columns, *NEEDED[name], *(one for one in OPTIONAL if one not in NEEDED[name])):
        absent = [k for k, row in enumerate(rows) if column not in row]
        if len(absent) == len(rows) and column in OPTIONAL and column not in NEEDED[name]:
            continue
        if absent:
            raise InputError(f"{name}: row {absent[0]} has no {column!r}; {nearest(column, map(str, rows[absent[0]]))}")
        check: Callable[[str, Any], Any] = _text if column in TEXTS else _number
        if column in segment_columns:
            check = _label
        columns[column] = [check(f"{name}: row {k}: {column}", row[column]) for k, row in enumerate(rows)]
    return pd.DataFrame(columns)


def _text(where: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InputError(f"{where} must be a text, not {shown(value)!r}")
    if any("\ud800" <= char <= "\udfff" for char in value):  # half of a character, which no file can hold
        raise InputError(f"{where} is no text: {shown(ascii(value))}")
    return value


def _label(where: str, value: Any) -> str:
    return _text(where, segment_label(value))


def _number(where: str, value: Any) -> float:
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InputError(f"{where} must be a number or null, not {shown(value)!r}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InputError(f"{where} is too large a number")
    return number


def _both(by_time: pd.DataFrame | None, of_means: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd

    return of_means if by_time is None else pd.concat([by_time, of_means], ignore_index=True)
