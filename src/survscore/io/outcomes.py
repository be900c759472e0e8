"""Outcomes from a file: times, or dates and a cut-off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from survscore._validation import InputError, check_choice
from survscore.io.tables import TableFile, about, identifiers, listed, numbers, open_table, vector
from survscore.outcomes import LateStarts, Outcomes, Unit

if TYPE_CHECKING:
    import pyarrow as pa

ID = "id"


@dataclass(frozen=True, eq=False)
class ObservedFile:
    """What a file says was observed.

    Attributes
    ----------
    path : Path
        The file.
    outcomes : Outcomes
        In the order of the file.
    ids : pyarrow.Array or None
        Who they are, where the file says so.
    groups : ndarray or None
        Who belongs together, where a column was named.
    left_out : ndarray or None
        Rows of the file that are no outcomes, since they start after the cut-off.
    by : dict of str to ndarray, or None
        The segmenting columns, where some were named.
    """

    path: Path
    outcomes: Outcomes
    ids: pa.Array | None
    groups: NDArray[Any] | None
    left_out: NDArray[np.bool_] | None = None
    left_out_ids: pa.Array | None = None
    by: dict[str, NDArray[Any]] | None = None


def read_outcomes(
    path: Path | str | TableFile,
    *,
    time: str | None = None,
    event: str | None = None,
    censoring_time: str | None = None,
    cutoff: str | None = None,
    start: str | None = None,
    event_date: str | None = None,
    last_seen: str | None = None,
    unit: Unit = "D",
    late_starts: LateStarts = "raise",
    id: str | Literal[False] | None = None,
    groups: str | None = None,
    by: Sequence[str] = (),
) -> ObservedFile:
    r"""Read outcomes from a CSV or Parquet file.

    Without `cutoff` the file has columns ``time``, ``event`` and, if known, ``censoring_time``; with it, ``start``,
    ``event_date`` (missing where there was no event) and, if some dropped out, ``last_seen``. The names are the
    defaults of the arguments of the same name.

    Parameters
    ----------
    path : path
        Of a file that ends in .csv, .csv.gz, .tsv, .tsv.gz, .parquet or .pq.
    time, event, censoring_time, start, event_date, last_seen : str, optional
        Names of columns, where they are others.
    cutoff : str, optional
        The date on which the data end, or the name of a column of such dates.
    unit : {"D", "W", "h", "min", "s"}
        The unit of the times derived from dates.
    late_starts : {"raise", "drop"}
        What to do with individuals who start after the cut-off.
    id : str or False, optional
        The column of ids; by default ``id``, if there is one. False reads none.
    groups : str, optional
        The column of labels of individuals that belong together.
    by : sequence of str, optional
        Columns of labels that segment the individuals, such as country and plan.

    Returns
    -------
    ObservedFile

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from survscore.io import read_outcomes
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "outcomes.csv"
    >>> _ = path.write_text("id,start,event_date\na,2016-12-30,2017-01-09\nb,2017-01-09,\n")
    >>> read_outcomes(path, cutoff="2017-01-29").outcomes
    Outcomes(2 individuals, 1 event (50.0 %), time 10 to 20, censoring_time known (20 to 30), no drop-outs)
    """
    used = (time or "time", event or "event", censoring_time or "censoring_time", start or "start")
    for segmenting in by:
        if segmenting in (*used, event_date or "event_date", last_seen or "last_seen"):
            raise InputError(f"by must name columns of labels, not {segmenting!r}, which holds outcomes")
    file = open_table(path, text=labels_in(id, groups, by))
    columns = _Columns(file)
    labels = None if groups is None else vector(file.column(columns.named("groups", groups)))
    segments = {one: vector(file.column(columns.named("by", one))) for one in by} or None
    if cutoff is None:
        for argument, name in (("start", start), ("event_date", event_date), ("last_seen", last_seen)):
            if name is not None:
                raise InputError(f"{argument} is for dates, which need a cutoff")
        outcomes, kept = _from_times(columns, time, event, censoring_time), None
    else:
        for argument, name in (("time", time), ("event", event), ("censoring_time", censoring_time)):
            if name is not None:
                raise InputError(f"{argument} is for times; with a cutoff, times come from dates")
        outcomes, kept = _from_dates(columns, cutoff, start, event_date, last_seen, unit, late_starts)
    name = None if id is False else columns.optional("id", id)
    ids = None if name is None else identifiers(file, name)
    if kept is None or kept.all():
        return ObservedFile(file.path, outcomes, ids, labels, by=segments)
    labels = None if labels is None else labels[kept]
    segments = None if segments is None else {name: some[kept] for name, some in segments.items()}
    if ids is None:
        return ObservedFile(file.path, outcomes, None, labels, ~kept, by=segments)
    return ObservedFile(file.path, outcomes, ids.filter(kept), labels, ~kept, ids.filter(~kept), segments)


def labels_in(id: str | Literal[False] | None, groups: str | None = None, by: Sequence[str] | None = None) -> list[str]:
    """Return the columns that hold labels, which are text even if they look like numbers."""
    return [name for name in (id or ID, groups, *(by or ())) if name]


@dataclass(frozen=True)
class _Columns:
    """Which columns a file has for what; an argument of `None` stands for the usual name."""

    file: TableFile

    def named(self, argument: str, name: str | None) -> str:
        column = self.optional(argument, name)
        if column is None:
            raise InputError(
                f"{self.file.path}: there is no column {argument!r}; the columns are {listed(self.file.names)}"
            )
        return column

    def optional(self, argument: str, name: str | None) -> str | None:
        if name is not None and name not in self.file.names:
            raise InputError(
                f"{self.file.path}: there is no column {name!r} ({argument}); the columns are {listed(self.file.names)}"
            )
        usual = argument if argument in self.file.names else None
        return usual if name is None else name


def _from_times(columns: _Columns, time: str | None, event: str | None, censoring_time: str | None) -> Outcomes:
    file = columns.file
    if time is None and "time" not in file.names and {"start", "event_date"} <= set(file.names):
        raise InputError(
            f"{file.path}: holds dates (start, event_date); give the cutoff, the date on which the data end"
        )
    names = {"time": columns.named("time", time), "event": columns.named("event", event)}
    end = columns.optional("censoring_time", censoring_time)
    times = numbers(file.path, names["time"], file.column(names["time"]))
    events = vector(file.column(names["event"]))
    ends = None if end is None else numbers(file.path, end, file.column(end))
    with about(file.path, {**names, "censoring_time": end}):
        return Outcomes(times, events, ends)


def _from_dates(
    columns: _Columns,
    cutoff: str,
    start: str | None,
    event_date: str | None,
    last_seen: str | None,
    unit: Unit,
    late_starts: LateStarts,
) -> tuple[Outcomes, NDArray[np.bool_]]:
    from survscore import _dates

    check_choice("late_starts", late_starts, ("raise", "drop"))
    file = columns.file
    names = {
        "start": columns.named("start", start),
        "event_date": columns.named("event_date", event_date),
        "last_seen": columns.optional("last_seen", last_seen),
    }
    dates = {argument: vector(file.read([name]).column(0)) for argument, name in names.items() if name is not None}
    ends = vector(file.read([cutoff]).column(0)) if cutoff in file.names else cutoff
    with about(file.path, names):
        time, event, end, kept = _dates.follow_up(
            dates["start"], dates["event_date"], ends, unit, dates.get("last_seen"), late_starts == "drop"
        )
        return Outcomes(time, event, end), kept
