"""Outcomes from a file: times, or dates and a cut-off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from survscore._utils.dates import Unit, as_unit
from survscore._validation import InputError, as_event, as_vector, check_choice, plural
from survscore.causes import Causes
from survscore.io.flags import Ends, Reasons, flags, is_text, warn_if_flags_are_ignored
from survscore.io.rounding import as_shown
from survscore.io.tables import TableFile, about, arrow, identifiers, listed, numbers, open_table, vector
from survscore.outcomes import LateStarts, Outcomes, WeightKind

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

    @property
    def summary(self) -> str:
        """What was observed, in a line."""
        return f"{self.outcomes!r}, {told_ids(self.ids)}"


def told_ids(ids: pa.Array | None) -> str:
    """Return how many ids there are, in words."""
    return "no ids" if ids is None else f"{plural(len(ids), 'id')}, all different"


def read_outcomes(
    path: Path | str | TableFile,
    *,
    time: str | None = None,
    event: str | None = None,
    causes: Sequence[str] | None = None,
    censoring_time: str | None = None,
    entry: str | None = None,
    cutoff: str | None = None,
    start: str | None = None,
    event_date: str | None = None,
    last_seen: str | None = None,
    entry_date: str | None = None,
    end: str | None = None,
    reason: str | None = None,
    event_reasons: Sequence[str] | None = None,
    competing_reasons: Sequence[str] | None = None,
    censored_reasons: Sequence[str] | None = None,
    date_format: str | None = None,
    origin: str | None = None,
    open_end: str | Sequence[str] = (),
    unit: Unit | str | None = None,
    late_starts: LateStarts = "raise",
    id: str | Literal[False] | None = None,
    groups: str | None = None,
    by: Sequence[str] = (),
    weights: str | None = None,
    weight_kind: WeightKind = "probability",
) -> ObservedFile:
    r"""Read outcomes from a file.

    Without `cutoff` the file has columns ``time``, ``event`` and, if known, ``censoring_time``; with it, ``start``,
    ``event_date`` (missing where there was no event) and, if some dropped out, ``last_seen``. The names are the
    defaults of the arguments of the same name. Where a date may be the end of anything, not only the event, name it as
    `end`, beside the column that says which it was: `event`, or `reason` with what each reason means.

    Parameters
    ----------
    path : path
        Of a file that ends in .csv or .tsv (also .gz, .zst), .parquet, .pq, .arrow or .feather.
    time, event, censoring_time, start, event_date, last_seen : str, optional
        Names of columns, where they are others. `event` holds 0 and 1, booleans, or words that can mean only one thing,
        such as yes and no, churned and active; under competing risks the causes 1, 2, ..., and 0 without event. Where
        `censoring_time` has fewer digits than `time`, or otherwise, a
        difference of one in the last digit is treated as rounding, with a warning.
    entry : str, optional
        With delayed entry (left truncation), the column of the times at which individuals came under observation.
    entry_date : str, optional
        The same with `cutoff`: the column of these dates.
    causes : sequence of str, optional
        Under competing risks the names of the causes 1, 2, ... in `event`; or `event` holds the names themselves.
    cutoff : str, optional
        The data cut-off, or the name of a column of such dates.
    end : str, optional
        With `cutoff`, the column of the dates on which observation ended: by the event where `event` or `reason` say
        so, otherwise because of drop-out. Missing, or after the cut-off: followed up to the cut-off.
    reason : str, optional
        Instead of `event`, the column that says why observation ended. Each reason in it must be named in one of the
        next three arguments; where it is missing, the individual is censored.
    event_reasons : sequence of str, optional
        Which of these reasons are the event. Reasons that are different causes of events have names,
        ``"churn=cancelled"``: those of the same name are one cause.
    competing_reasons : sequence of str, optional
        Which are other events after which the event can't come any more (competing risks): a loan that was repaid.
        Each is a cause of its own, unless several have one name: ``["repayment=repaid", "repayment=refinanced"]``. The
        event is then the cause that scores are of, unless another is chosen.
    censored_reasons : sequence of str, optional
        Which mean that the event may still come, though it will not be seen: drop-outs, and who was still there.
    date_format : str, optional
        How dates are written, if not as 2017-01-29: as for ``strptime``, such as ``"%d.%m.%Y"``, or ``"decimal-year"``
        (2017.5 is the middle of 2017), ``"epoch-seconds"`` or ``"epoch-milliseconds"`` (since 1970).
    origin : str, optional
        Where dates are numbers of days: since when.
    open_end : str or sequence of str
        Dates that say that there is no end yet, as files write them: ``"9999-12-31"``. They count as missing.
    unit : {"D", "W", "M", "Y", "h", "min", "s"}, or a word such as "month", optional
        The unit of the times derived from dates, by default ``"D"``; see `Outcomes.from_dates`. Without dates, the unit
        of ``time``, which matters to predictions in another one.
    late_starts : {"raise", "drop"}
        What to do with individuals who start after the cut-off.
    weights : str, optional
        The column of sample weights; `weight_kind` is as for `Outcomes`.
    id : str or False, optional
        The column of ids; by default ``id``, if there is one. False reads none.
    groups : str, optional
        The column of labels of individuals that depend on each other.
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
        if segmenting in (*used, event_date or "event_date", last_seen or "last_seen", end, reason):
            raise InputError(f"by must name columns of labels, not {segmenting!r}, which holds outcomes")
    file = open_table(path, text=labels_in(id, groups, by))
    columns = _Columns(file)
    labels = None if groups is None else vector(file.column(columns.named("groups", groups)))
    segments = {one: vector(file.column(columns.named("by", one))) for one in by} or None
    meanings = {"event": event_reasons, "competing": competing_reasons, "censored": censored_reasons}
    status = _Status(columns, event, reason, meanings, tuple(causes or ()))
    of_times = {"time": time, "censoring_time": censoring_time, "entry": entry}
    of_dates = {
        "start": start, "event_date": event_date, "last_seen": last_seen, "entry_date": entry_date, "end": end
    }  # fmt: skip
    if cutoff is None:
        of_dates |= {"date_format": date_format, "origin": origin, "open_end": str(open_end) if open_end else None}
        _refuse(of_dates, "{} is for dates, which need a cutoff")
        outcomes, kept = _from_times(columns, time, status, censoring_time, entry), None
    else:
        _refuse(of_times, "{} is for times; with a cutoff, times come from dates")
        no_ends = (open_end,) if isinstance(open_end, str) else tuple(open_end)
        writing = DateWriting(cutoff, date_format, origin, no_ends)
        if end is None:
            told = "{} tells which dates of end= are events; event_date= is missing where there was none"
            _refuse({"event": event, "reason": reason}, told)
            if causes:
                raise InputError(told.format("causes"))
            read = _event_dates(columns, writing, start, event_date, last_seen)
        else:
            told = "{} and end both say when observation ended; give one"
            _refuse({"event_date": event_date, "last_seen": last_seen}, told)
            read = _end_dates(columns, writing, start, end, status)
        if entry_date is not None:
            entered = columns.named("entry_date", entry_date)
            names = {**read.names, "entry_date": entered}
            read = replace(read, entry_date=writing.dates(file, entered), names=names)
        outcomes, kept = _from_dates(file, read, as_unit("unit", unit or "D"), late_starts)
    if weights is not None:
        held = columns.named("weights", weights)
        own = numbers(file.path, held, file.column(held))
        with about(file.path, {"weights": held}):
            outcomes = outcomes.weighted(own if kept is None else own[kept], weight_kind)
    id_column = None if id is False else columns.optional("id", id)
    ids = None if id_column is None else identifiers(file, id_column)
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


def _refuse(named: Mapping[str, str | None], told: str) -> None:
    """Raise if any argument was given that is for something else."""
    for argument, name in named.items():
        if name is not None:
            raise InputError(told.format(argument))


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


@dataclass(frozen=True)
class _Status:
    """Where a file says who had an event, and of which cause."""

    columns: _Columns
    event: str | None
    reason: str | None
    reasons: Mapping[str, Sequence[str] | None]
    causes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.reason is None and any(some is not None for some in self.reasons.values()):
            raise InputError("what reasons mean needs `reason`, the column that says why observation ended")
        if self.reason is not None and self.reasons["event"] is None:
            raise InputError("`reason` needs `event_reasons`: a column of reasons, and which are the event")
        if self.reason is not None and self.event is not None:
            raise InputError("event and reason both say who had the event; give one")
        if self.reason is not None and self.causes:
            raise InputError(
                "`causes` names those in `event`; with `reason`, `event_reasons` and `competing_reasons` name them"
            )

    @property
    def name(self) -> str:
        return self.columns.named("event", self.event) if self.reason is None else self.reason

    def ends(self) -> Ends:
        """Return who had an event, and of which cause."""
        if self.reason is None:
            return Ends(flags(self.columns.file, self.name, self.causes), self.causes or None)
        some = {what: given for what, given in self.reasons.items() if given is not None}
        return Reasons(**some).read(self.columns.file, self.columns.named("reason", self.reason))


def _from_times(
    columns: _Columns, time: str | None, status: _Status, censoring_time: str | None, entry: str | None
) -> Outcomes:
    file = columns.file
    if time is None and "time" not in file.names and {"start", "event_date"} <= set(file.names):
        raise InputError(f"{file.path}: holds dates (start, event_date); give the data cut-off as `cutoff`")
    names = {"time": columns.named("time", time), "event": status.name}
    end = columns.optional("censoring_time", censoring_time)
    times = numbers(file.path, names["time"], file.column(names["time"]))
    ended = status.ends()
    ends = None if end is None else numbers(file.path, end, file.column(end))
    entered = columns.optional("entry", entry) if entry is not None else None
    late = None if entered is None else numbers(file.path, entered, file.column(entered))
    with about(file.path, {**names, "censoring_time": end, "entry": entered}):
        # checked first, since rounding is about numbers that are right otherwise
        alone = Outcomes(times, ended.event, causes=ended.causes, entry=late)
        if ends is not None and (times > ends).any():
            ends = as_vector(ends, "censoring_time", allow_infinite=True)
            ends = as_shown(file.path, alone.time, alone.event, ends)
        made = alone if ends is None else Outcomes(times, ended.event, ends, causes=ended.causes, entry=late)
    return made if ended.interest is None else made.for_cause(ended.interest)


@dataclass(frozen=True)
class DateWriting:
    """The data cut-off, and how a file writes dates."""

    cutoff: str
    date_format: str | None
    origin: str | None
    open_end: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.date_format is not None and self.origin is not None:
            raise InputError("`date_format` and `origin` both say how dates are written; give one")

    def dates(self, file: TableFile, name: str) -> Any:
        """Return a column of dates."""
        from survscore.io.dates import far_dates, read_dates, without_open_ends

        with about(file.path):
            column = without_open_ends(file.read([name]).column(0), self.open_end)
            types = arrow().types
            dated = is_text(column.type) or types.is_date(column.type) or types.is_timestamp(column.type)
            far = far_dates(column) if dated else ()
            if far:
                raise InputError(
                    f"column {name!r} holds dates as late as {far[0]}; if that means that there is no end yet, name it "
                    f"as `open_end={far[0]!r}`"
                )
            return read_dates(vector(column), f"column {name!r}", self.date_format, self.origin)

    def end_of_data(self, file: TableFile) -> Any:
        """Return the cut-off: a column, or a date, as 2017-01-29 whatever the file writes."""
        from survscore.io.dates import read_dates

        if self.cutoff in file.names:
            return self.dates(file, self.cutoff)
        try:
            date = read_dates(np.array([self.cutoff], dtype=object), "cutoff", self.date_format, self.origin)
        except InputError:
            return self.cutoff  # to be read, or refused, as any other date
        return date[0]


@dataclass(frozen=True, eq=False)
class _Dates:
    """Dates that were read, by argument, and how their columns are called."""

    cutoff: Any
    start: Any
    event_date: Any
    last_seen: Any
    names: dict[str, str | None]
    ended: Ends | None = None
    entry_date: Any = None


def _event_dates(
    columns: _Columns, writing: DateWriting, start: str | None, event_date: str | None, last_seen: str | None
) -> _Dates:
    file = columns.file
    names = {
        "start": columns.named("start", start),
        "event_date": columns.named("event_date", event_date),
        "last_seen": columns.optional("last_seen", last_seen),
    }
    warn_if_flags_are_ignored(file, str(names["event_date"]), list(names.values()))
    dates = {argument: writing.dates(file, name) for argument, name in names.items() if name is not None}
    return _Dates(writing.end_of_data(file), dates["start"], dates["event_date"], dates.get("last_seen"), dict(names))


def _end_dates(columns: _Columns, writing: DateWriting, start: str | None, end: str, status: _Status) -> _Dates:
    """Return dates of the event, and of dropping out, from dates of the end and who had the event then."""
    import pandas as pd

    file = columns.file
    names = {"start": columns.named("start", start), "end": columns.named("end", end)}
    ended_by = status.ends()
    with about(file.path, {"event": status.name}):
        causes, codes = Causes.read(ended_by.event, ended_by.causes)
        had_event = as_event(ended_by.event) if codes is None else codes != 0
    ended = np.asarray(writing.dates(file, names["end"])).astype(object)
    nowhere = np.asarray(pd.isna(ended)) & had_event
    if nowhere.any():
        raise InputError(
            f"{file.path}: column {end!r} must hold a date for every individual with event: {int(nowhere.sum())} of "
            f"{int(had_event.sum())} have none, the first in row {int(np.argmax(nowhere))}"
        )
    nothing = np.full(ended.shape, None, dtype=object)
    return _Dates(
        writing.end_of_data(file),
        writing.dates(file, names["start"]),
        np.where(had_event, ended, nothing),
        np.where(had_event, nothing, ended),
        {"start": names["start"], "event_date": end, "last_seen": end},
        None if codes is None else Ends(codes, causes.names, ended_by.interest),
    )


def _from_dates(
    file: TableFile, read: _Dates, unit: Unit, late_starts: LateStarts
) -> tuple[Outcomes, NDArray[np.bool_]]:
    from survscore._utils import dates as _dates

    check_choice("late_starts", late_starts, ("raise", "drop"))
    with about(file.path, read.names):
        found = _dates.follow_up(
            read.start, read.event_date, read.cutoff, unit, read.last_seen, late_starts == "drop", read.entry_date
        )
        if read.ended is None or read.ended.causes is None:
            return Outcomes.of_follow_up(found), found.kept
        numbered = {name: code for code, name in enumerate(read.ended.causes, start=1)}
        made = Outcomes.of_follow_up(found, read.ended.event, numbered)
    return made if read.ended.interest is None else made.for_cause(read.ended.interest), found.kept
