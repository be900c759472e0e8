"""Outcomes from a file: times, or dates and a cut-off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from survscore._utils import dates as _dates
from survscore._utils.dates import Unit, as_unit
from survscore._validation import InputError, as_event, as_vector, check_choice, plural, warn
from survscore.causes import Causes
from survscore.io.dates import DateWriting
from survscore.io.flags import Ends, Status, warn_if_flags_are_ignored
from survscore.io.tables import TableFile, about, identifiers, open_table, vector
from survscore.outcomes import LateStarts, Outcomes, WeightKind

if TYPE_CHECKING:
    import pyarrow as pa

ID = "id"
MOST_DIGITS = 6  # with more, numbers are shown as they are, and not rounded
SHOWN_IN_FULL = 1e-9  # of differences between such numbers, by the largest


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
        return f"{self.outcomes!r}, {n_ids_in_words(self.ids)}"


def n_ids_in_words(ids: pa.Array | None) -> str:
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
    labels = None if groups is None else vector(file.column(file.named("groups", groups)))
    segments = {name: vector(file.column(file.named("by", name))) for name in by} or None
    meanings = {"event": event_reasons, "competing": competing_reasons, "censored": censored_reasons}
    status = Status(file, event, reason, meanings, tuple(causes or ()))
    if cutoff is None:
        of_dates = {"start": start, "event_date": event_date, "last_seen": last_seen, "entry_date": entry_date}
        of_dates |= {"end": end, "date_format": date_format, "origin": origin}
        _refuse({**of_dates, "open_end": open_end or None}, "{} is for dates, which need a cutoff")
        outcomes, kept = _from_times(file, time, status, censoring_time, entry), None
    else:
        of_times = {"time": time, "censoring_time": censoring_time, "entry": entry}
        _refuse(of_times, "{} is for times; with a cutoff, times come from dates")
        no_ends = (open_end,) if isinstance(open_end, str) else tuple(open_end)
        writing = DateWriting(cutoff, date_format, origin, no_ends)
        if end is None:
            rule = "{} tells which dates of end= are events; event_date= is missing where there was none"
            _refuse({"event": event, "reason": reason, "causes": causes or None}, rule)
            read = _event_dates(file, writing, start, event_date, last_seen)
        else:
            rule = "{} and end both say when observation ended; give one"
            _refuse({"event_date": event_date, "last_seen": last_seen}, rule)
            read = _end_dates(file, writing, start, end, status)
        if entry_date is not None:
            column = file.named("entry_date", entry_date)
            read.names["entry_date"], read.dates["entry_date"] = column, writing.dates(file, column)
        outcomes, kept = _from_dates(file, read, writing.end_of_data(file), as_unit("unit", unit or "D"), late_starts)
    if weights is not None:
        column = file.named("weights", weights)
        given = file.numbers(column)
        with about(file.path, {"weights": column}):
            outcomes = outcomes.weighted(given if kept is None else given[kept], weight_kind)
    id_column = None if id is False else file.optional("id", id)
    ids = None if id_column is None else identifiers(file, id_column)
    if kept is None or kept.all():
        return ObservedFile(file.path, outcomes, ids, labels, by=segments)
    labels = None if labels is None else labels[kept]
    segments = None if segments is None else {name: values[kept] for name, values in segments.items()}
    if ids is None:
        return ObservedFile(file.path, outcomes, None, labels, ~kept, by=segments)
    return ObservedFile(file.path, outcomes, ids.filter(kept), labels, ~kept, ids.filter(~kept), segments)


def labels_in(id: str | Literal[False] | None, groups: str | None = None, by: Sequence[str] | None = None) -> list[str]:
    """Return the columns that hold labels, which are text even if they look like numbers."""
    return [name for name in (id or ID, groups, *(by or ())) if name]


def _refuse(given: Mapping[str, Any], rule: str) -> None:
    """Raise if any argument was given that is for something else."""
    for argument, value in given.items():
        if value is not None:
            raise InputError(rule.format(argument))


def _from_times(
    file: TableFile, time: str | None, status: Status, censoring_time: str | None, entry: str | None
) -> Outcomes:
    if time is None and "time" not in file.names and {"start", "event_date"} <= set(file.names):
        raise InputError(f"{file.path}: holds dates (start, event_date); give the data cut-off as `cutoff`")
    time, censoring_time = file.named("time", time), file.optional("censoring_time", censoring_time)
    entry = None if entry is None else file.named("entry", entry)
    event = status.column
    times, ended = file.numbers(time), status.read()
    end, entered = (None if name is None else file.numbers(name) for name in (censoring_time, entry))
    with about(file.path, {"time": time, "event": event, "censoring_time": censoring_time, "entry": entry}):
        # checked first, since rounding is about numbers that are right otherwise
        y = Outcomes(times, ended.event, causes=ended.causes, entry=entered)
        if end is not None:
            if (times > end).any():
                end = _as_shown(file.path, y, as_vector(end, "censoring_time", allow_infinite=True))
            y = Outcomes(times, ended.event, end, causes=ended.causes, entry=entered)
    return y if ended.interest is None else y.for_cause(ended.interest)


@dataclass(frozen=True, eq=False)
class _ReadDates:
    """Dates that were read, and how their columns are called, both by argument."""

    dates: dict[str, Any]
    names: dict[str, str | None]
    ended: Ends | None = None


def _event_dates(
    file: TableFile, writing: DateWriting, start: str | None, event_date: str | None, last_seen: str | None
) -> _ReadDates:
    names = {
        "start": file.named("start", start),
        "event_date": file.named("event_date", event_date),
        "last_seen": file.optional("last_seen", last_seen),
    }
    warn_if_flags_are_ignored(file, str(names["event_date"]), list(names.values()))
    dates = {argument: writing.dates(file, name) for argument, name in names.items() if name is not None}
    return _ReadDates(dates, names)


def _end_dates(file: TableFile, writing: DateWriting, start: str | None, end: str, status: Status) -> _ReadDates:
    """Return dates of the event, and of dropping out, from dates of the end and who had the event then."""
    import pandas as pd

    start, end = file.named("start", start), file.named("end", end)
    ended_by = status.read()
    with about(file.path, {"event": status.column}):
        causes, codes = Causes.read(ended_by.event, ended_by.causes)
        had_event = as_event(ended_by.event) if codes is None else codes != 0
    ended = np.asarray(writing.dates(file, end)).astype(object)
    undated = np.asarray(pd.isna(ended)) & had_event
    if undated.any():
        raise InputError(
            f"{file.path}: column {end!r} must hold a date for every individual with event: {int(undated.sum())} of "
            f"{int(had_event.sum())} have none, the first in row {int(np.argmax(undated))}"
        )
    nothing = np.full(ended.shape, None, dtype=object)
    dates = {
        "start": writing.dates(file, start),
        "event_date": np.where(had_event, ended, nothing),
        "last_seen": np.where(had_event, nothing, ended),
    }
    names: dict[str, str | None] = {"start": start, "event_date": end, "last_seen": end}
    return _ReadDates(dates, names, None if codes is None else Ends(codes, causes.names, ended_by.interest))


def _from_dates(
    file: TableFile, read: _ReadDates, cutoff: Any, unit: Unit, late_starts: LateStarts
) -> tuple[Outcomes, NDArray[np.bool_]]:
    check_choice("late_starts", late_starts, ("raise", "drop"))
    with about(file.path, read.names):
        dates = read.dates
        found = _dates.follow_up(
            dates["start"],
            dates["event_date"],
            cutoff,
            unit,
            dates.get("last_seen"),
            late_starts == "drop",
            dates.get("entry_date"),
        )
        if read.ended is None or read.ended.causes is None:
            return Outcomes.of_follow_up(found), found.kept
        numbered = {name: code for code, name in enumerate(read.ended.causes, start=1)}
        y = Outcomes.of_follow_up(found, read.ended.event, numbered)
    return y if read.ended.interest is None else y.for_cause(read.ended.interest), found.kept


def _as_shown(path: Path, y: Outcomes, end: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""Return censoring times that are not before `time` because a file shows them with fewer digits than they have.

    Where :math:`C^*` is the day of the cut-off minus that of entry, rounded, and time is not, or otherwise, those
    without event have a time that is off from :math:`C^*` by up to one in the last digit. Some then come after their
    own :math:`C^*`, and the others look as if they had dropped out. If all that come after it do so by no more than
    that, :math:`C^*` is the time of those who are as close to it and had no event, or come after it.

    Nothing is changed where nobody comes after their :math:`C^*`: a difference of one in the last digit may be true.
    """
    time, event = y.time, y.event
    late = time > end
    tolerance = _tolerance(time, end)
    apart = np.abs(time - end) <= tolerance * (1 + 1e-6)
    if (late & ~apart).any():
        first = int(np.argmax(late & ~apart))
        raise InputError(
            f"time must not exceed censoring_time: {int(late.sum())} of {late.size} do, and "
            f"{int((late & ~apart).sum())} by more than {tolerance:g}, which is treated as rounding of what the file "
            f"shows, the first at position {first} ({time[first]} > {end[first]}); an event after the censoring time "
            "was not observed: set time to censoring_time and event to 0 there"
        )
    changed = apart & (late | ~event) & (time != end)
    warn(
        f"{path}: {plural(int(late.sum()), 'time')} of {late.size} exceed censoring_time, none by more than "
        f"{tolerance:g}, one in the last digit that the file shows; this is treated as rounding, and censoring_time is "
        f"set to time for {plural(int(changed.sum()), 'individual')} that close to it",
    )
    return np.where(changed, time, end)


def _tolerance(time: NDArray[np.float64], end: NDArray[np.float64]) -> float:
    """Return one in the last digit of the column that has fewer; nothing, if both are whole numbers."""
    digits = sorted((_digits(time), _digits(end)))
    if digits[0] > MOST_DIGITS:
        return SHOWN_IN_FULL * float(np.abs(time).max())
    return 0.0 if digits[1] == 0 else 10.0 ** -digits[0]


def _digits(values: NDArray[np.float64]) -> int:
    finite = values[np.isfinite(values)]
    for digits in range(MOST_DIGITS + 1):
        if np.allclose(np.round(finite, digits), finite, rtol=1e-14, atol=0):
            return digits
    return MOST_DIGITS + 1
