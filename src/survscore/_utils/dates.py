"""From calendar dates to follow-up times, and the units of these: what they are called, and how long they are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._validation import (
    InputError,
    as_array,
    check_choice,
    check_length,
    check_rule,
    one_dimensional,
    plural,
    warn,
)

if TYPE_CHECKING:
    import pandas as pd

Unit = Literal["D", "W", "M", "Y", "h", "min", "s"]
# A year is 365.25 days and a month a twelfth of it, where there are no dates to count months between.
SECONDS: dict[Unit, int] = {"D": 86_400, "W": 604_800, "M": 2_629_800, "Y": 31_557_600, "h": 3_600, "min": 60, "s": 1}
UNITS = tuple(SECONDS)
WORDS: dict[str, Unit] = dict(zip(("day", "week", "month", "year", "hour", "minute", "second"), UNITS, strict=True))


def as_unit(name: str, given: Any) -> Unit:
    """Return the unit that is meant by its sign or its word: ``"M"``, ``"month"``, ``"months"``."""
    if isinstance(given, str) and given in SECONDS:
        return given
    word = str(given).lower()
    unit = WORDS.get(word, WORDS.get(word.removesuffix("s")))
    if unit is None:
        signs = ", ".join(repr(sign) for sign in UNITS)
        raise InputError(f"{name} must be one of {signs} (or a word, such as 'month'), not {given!r}")
    return unit


def converted(times: NDArray[np.float64], unit: Unit, to: Unit) -> NDArray[np.float64]:
    """Return times that are in one unit in another one."""
    return times if unit == to else times * SECONDS[unit] / SECONDS[to]


def word(unit: Unit) -> str:
    """Return what a unit is called: ``"month"``."""
    return next(name for name, sign in WORDS.items() if sign == unit)


def plural_word(given: Any) -> str | None:
    """Return what times in a unit are counted in, for labels: ``"months"``; None, where nobody said a unit."""
    return None if given is None else f"{word(as_unit('unit', given))}s"


def named_in(text: str) -> Unit | None:
    """Return the unit whose word is part of a text such as ``"month_{time}"``; None, where none is, or two are."""
    found = {unit for name, unit in WORDS.items() if name in text.lower()}
    return found.pop() if len(found) == 1 else None


MONTHS = {"M": 1, "Y": 12}  # units whose length depends on the calendar, in months
ZONE = re.compile(r":\d\d.*(Z|[+-]\d\d(:?\d\d)?)$")  # an offset after a time of day


@dataclass(frozen=True, eq=False)
class Dates:
    """The dates from which outcomes were derived, as they stand at the data cut-off."""

    #: `event_date` is missing (``NaT``) where no event was seen, and `last_seen` where nobody dropped out.
    start: NDArray[np.datetime64]
    event_date: NDArray[np.datetime64]
    last_seen: NDArray[np.datetime64]
    cutoff: NDArray[np.datetime64]
    #: Of the times.
    unit: Unit
    #: When individuals came under observation, where that was not at their start (delayed entry).
    entry_date: NDArray[np.datetime64] | None = None
    #: Whether times were then counted from entry (`Outcomes.since_entry`).
    since_entry: bool = False

    def __getitem__(self, key: Any) -> Dates:
        """Return those of some individuals."""
        picked: dict[str, Any] = {name: getattr(self, name)[key] for name in self._names}
        return replace(self, **picked)

    @property
    def _names(self) -> tuple[str, ...]:
        entered = () if self.entry_date is None else ("entry_date",)
        return ("start", "event_date", "last_seen", "cutoff", *entered)

    def joined(self, others: Sequence[Dates]) -> Dates | None:
        """Return those of several together; None if their units differ."""
        if any((other.unit, other.since_entry) != (self.unit, self.since_entry) for other in others):
            return None
        several: dict[str, Any] = {
            name: np.concatenate([getattr(one, name) for one in (self, *others)]) for name in self._names
        }
        return replace(self, **several)


class FollowUp(NamedTuple):
    """What dates come to; see `Outcomes`."""

    time: NDArray[np.float64]
    event: NDArray[np.bool_]
    censoring_time: NDArray[np.float64]
    dated: NDArray[np.bool_]  # who has a date of the event, if it was seen or not
    kept: NDArray[np.bool_]  # who is among them: all who started before the end
    dates: Dates  # of those who are kept
    entry: NDArray[np.float64] | None = None


def follow_up(
    start: ArrayLike,
    event_date: ArrayLike,
    cutoff: Any,
    unit: Unit,
    last_seen: ArrayLike | None,
    drop_late_starts: bool,
    entry_date: ArrayLike | None = None,
) -> FollowUp:
    """Return time, event and censoring_time, and of whom; see `Outcomes.from_dates` for the rules."""
    check_choice("unit", unit, UNITS)
    starts, events = as_dates(start, "start"), as_dates(event_date, "event_date")
    ends = as_dates(cutoff, "cutoff", length=len(starts))
    seen = ends if last_seen is None else as_dates(last_seen, "last_seen")
    entered = starts if entry_date is None else as_dates(entry_date, "entry_date")
    given = {"start": starts, "event_date": events, "cutoff": ends, "last_seen": seen, "entry_date": entered}
    for name, dates in given.items():
        check_length(name, len(dates), "start", len(starts))
    if len({dates.tz is None for dates in given.values() if not dates.isna().all()}) > 1:
        aware = [name for name, dates in given.items() if dates.tz is not None]
        raise InputError(f"dates must all have a time zone, or none, not only {' and '.join(aware)}")

    check_rule("start", "given for each individual", np.asarray(starts.isna()), starts)
    check_rule("cutoff", "given", np.asarray(ends.isna()), ends)
    check_rule("entry_date", "given for each individual", np.asarray(entered.isna()), entered)
    starts, events, ends, seen, entered = (dates.tz_localize(None) for dates in (starts, events, ends, seen, entered))
    check_rule("entry_date", "on or after start", np.asarray(entered < starts), entered)
    # who comes under observation at the very cut-off is never seen
    late = np.asarray((starts > ends) | ((entered > starts) & (entered >= ends)))
    what = "start" if entry_date is None else "start or entry_date"
    if late.any() and not drop_late_starts:
        raise InputError(f"{_late_starts(late, entered, ends, what)}; `late_starts='drop'` leaves them out")
    happened = np.asarray(events <= ends)  # false where no date is given
    check_rule("event_date", "on or after start", np.asarray(events < starts) & ~late, events)
    check_rule("last_seen", "on or after start", np.asarray(seen < starts) & ~happened & ~late, seen)
    if late.any():
        warn(f"left out {_late_starts(late, entered, ends, what)}")
        starts, events, ends, seen, entered = (dates[~late] for dates in (starts, events, ends, seen, entered))
        happened = happened[~late]

    lost = np.asarray(seen.notna() & (seen < ends))
    last = events.where(happened, seen.where(lost, ends))
    kept = Dates(
        starts.to_numpy(),
        events.where(happened).to_numpy(),
        seen.where(lost).to_numpy(),
        ends.to_numpy(),
        unit,
        None if entry_date is None else entered.to_numpy(),
    )
    dated, entry = np.asarray(events.notna()), None if entry_date is None else _elapsed(starts, entered, unit)
    return FollowUp(_elapsed(starts, last, unit), happened, _elapsed(starts, ends, unit), dated, ~late, kept, entry)


def instants(date: Any, name: str, length: int) -> NDArray[np.datetime64]:
    """Return dates, or one for all, as instants."""
    dates = as_dates(date, name, length=length)
    check_length(name, len(dates), "the outcomes", length)
    check_rule(name, "given", np.asarray(dates.isna()), dates)
    return np.asarray(dates.tz_localize(None).to_numpy())


def _elapsed(starts: pd.DatetimeIndex, ends: pd.DatetimeIndex, unit: str) -> NDArray[np.float64]:
    if unit in MONTHS:
        return _calendar_steps(starts.to_numpy(), ends.to_numpy(), MONTHS[unit])
    step = np.timedelta64(1, {"min": "m"}.get(unit, unit))  # type: ignore[call-overload]
    return np.asarray((ends - starts).to_numpy() / step)


def _calendar_steps(starts: NDArray[Any], ends: NDArray[Any], months: int) -> NDArray[np.float64]:
    """Return how many steps of some months have passed: whole ones, plus the fraction of the one begun.

    It grows with `ends`, since the days on which steps are complete do: the same day of the month, or the last one of
    a month that is too short.
    """
    first = starts.astype("datetime64[M]")
    day = starts.astype("datetime64[D]") - first.astype("datetime64[D]")
    of_day = starts - starts.astype("datetime64[D]")

    def after(steps: NDArray[np.int64]) -> NDArray[Any]:
        month = first + (months * steps).astype("timedelta64[M]")
        length = (month + np.timedelta64(1, "M")).astype("datetime64[D]") - month.astype("datetime64[D]")
        return np.asarray(month.astype("datetime64[D]") + np.minimum(day, length - np.timedelta64(1, "D")) + of_day)

    steps = (ends.astype("datetime64[M]") - first).astype(np.int64) // months
    steps = np.where(after(steps) > ends, steps - 1, steps)
    since = after(steps)
    return np.asarray(steps + (ends - since) / (after(steps + 1) - since))


def _late_starts(late: NDArray[np.bool_], starts: pd.DatetimeIndex, ends: pd.DatetimeIndex, what: str) -> str:
    first = int(np.argmax(late))
    return (
        f"{plural(int(late.sum()), 'individual')} of {late.size} with a {what} after the cut-off, "
        f"the first at position {first} ({starts[first]} {'>' if starts[first] > ends[first] else '='} {ends[first]})"
    )


def as_dates(values: Any, name: str, length: int | None = None) -> pd.DatetimeIndex:
    """Return dates; `length` repeats a single one.

    Text must be ISO 8601, since 03/04/2017 means two days; numbers are refused, since 20170129 is no date by itself.
    """
    if length is not None and as_array(values, name).ndim == 0:
        return as_dates([values], name).repeat(length)
    import pandas as pd

    given = one_dimensional(values, name)
    missing = pd.isna(given)
    if given.dtype.kind in "biufc" and not missing.all():
        raise InputError(
            f"{name} must hold dates, not numbers; for yyyymmdd use `pandas.to_datetime(..., format='%Y%m%d')`"
        )
    texts = given if given.dtype.kind in "OUT" else given[:0]
    # where any has a time zone, all are compared in UTC
    aware = any(
        getattr(value, "tzinfo", None) is not None or (isinstance(value, str) and bool(ZONE.search(value)))
        for value in texts
    )
    rule = "dates from 1678 to 2262, missing where there is none (text as 2017-01-29)"
    try:
        parsed = pd.to_datetime(given, errors="coerce", utc=aware, format="ISO8601")
        dates = pd.DatetimeIndex(parsed).as_unit("ns")
    except pd.errors.OutOfBoundsDatetime as error:
        raise InputError(f"{name} must be {rule}: {error}") from None
    except (ValueError, TypeError) as error:  # with and without time zone
        raise InputError(f"{name} can't be read as dates: {error}") from None
    wrong = np.asarray(dates.isna()) & ~missing
    # words that pandas reads as the date on which it does
    clock = [isinstance(value, str) and value.strip().lower() in ("now", "today") for value in texts]
    wrong[: len(clock)] |= np.array(clock, dtype=np.bool_)
    check_rule(name, rule, wrong, given)
    return dates


def ages_on(known: Dates, day: Any) -> NDArray[np.float64]:
    """Return how long each individual had been under observation on a day, in the unit; NaN before its start."""
    import pandas as pd

    on = instants(day, "landmarks", len(known.start))
    there = known.start <= on
    ages = np.full(len(on), np.nan)
    ages[there] = _elapsed(pd.DatetimeIndex(known.start[there]), pd.DatetimeIndex(on[there]), known.unit)
    return ages
