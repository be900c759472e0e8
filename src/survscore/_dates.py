"""From calendar dates to follow-up times."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from survscore._validation import InputError, as_array, check_choice, check_length, check_rule, plural

UNITS = ("D", "W", "h", "min", "s")
ZONE = re.compile(r":\d\d.*(Z|[+-]\d\d(:?\d\d)?)$")  # an offset after a time of day


def follow_up(
    start: ArrayLike,
    event_date: ArrayLike,
    cutoff: Any,
    unit: str,
    last_seen: ArrayLike | None,
    drop_late_starts: bool,
) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.float64], NDArray[np.bool_]]:
    """Return time, event and censoring_time, and who was kept; see `Outcomes.from_dates` for the rules."""
    check_choice("unit", unit, UNITS)
    starts = _as_dates(start, "start")
    events = _as_dates(event_date, "event_date")
    check_length("event_date", len(events), "start", len(starts))
    ends = _as_dates(cutoff, "cutoff", length=len(starts))
    check_length("cutoff", len(ends), "start", len(starts))
    seen = ends if last_seen is None else _as_dates(last_seen, "last_seen")
    check_length("last_seen", len(seen), "start", len(starts))
    zones = {"start": starts, "event_date": events, "cutoff": ends, "last_seen": seen}
    if len({dates.tz is None for name, dates in zones.items() if not dates.isna().all()}) > 1:
        aware = [name for name, dates in zones.items() if dates.tz is not None]
        raise InputError(f"dates must all have a time zone, or none, not only {' and '.join(aware)}")

    check_rule("start", "given for everybody", np.asarray(starts.isna()), starts)
    check_rule("cutoff", "given", np.asarray(ends.isna()), ends)
    starts, events, ends, seen = (dates.tz_localize(None) for dates in (starts, events, ends, seen))
    late = np.asarray(starts > ends)
    if late.any() and not drop_late_starts:
        raise InputError(f"{_late_starts(late, starts, ends)}; late_starts='drop' leaves them out")
    happened = np.asarray(events <= ends)  # false where no date is given
    check_rule("event_date", "on or after start", np.asarray(events < starts) & ~late, events)
    check_rule("last_seen", "on or after start", np.asarray(seen < starts) & ~happened & ~late, seen)
    if late.any():
        warnings.warn(f"from_dates left out {_late_starts(late, starts, ends)}", stacklevel=3)
        starts, events, ends, seen = (dates[~late] for dates in (starts, events, ends, seen))
        happened = happened[~late]

    followed = seen.where(seen.notna() & (seen < ends), ends)
    last = events.where(happened, followed)
    step = np.timedelta64(1, {"min": "m"}.get(unit, unit))  # type: ignore[call-overload]
    return (last - starts).to_numpy() / step, happened, (ends - starts).to_numpy() / step, ~late


def _late_starts(late: NDArray[np.bool_], starts: pd.DatetimeIndex, ends: pd.DatetimeIndex) -> str:
    first = int(np.argmax(late))
    return (
        f"{plural(int(late.sum()), 'individual')} of {late.size} with a start after the cut-off, "
        f"the first at position {first} ({starts[first]} > {ends[first]})"
    )


def _as_dates(values: Any, name: str, length: int | None = None) -> pd.DatetimeIndex:
    """Return dates; `length` repeats a single one.

    Text must be ISO 8601, since 03/04/2017 means two days; numbers are refused, since 20170129 is no date by itself.
    """
    if length is not None and (isinstance(values, str) or np.ndim(values) == 0):
        return _as_dates([values], name).repeat(length)
    given = as_array(values, name)
    if given.ndim != 1:
        raise InputError(f"{name} must be one-dimensional, not of shape {given.shape}")
    missing = pd.isna(given)
    if given.dtype.kind in "biufc" and not missing.all():
        raise InputError(
            f"{name} must hold dates, not numbers; for yyyymmdd use pandas.to_datetime(..., format='%Y%m%d')"
        )
    rule = "dates from 1678 to 2262, missing where there is none (text as 2017-01-29)"
    try:
        parsed = pd.to_datetime(given, errors="coerce", utc=_is_aware(given), format="ISO8601")
        dates = pd.DatetimeIndex(parsed).as_unit("ns")
    except pd.errors.OutOfBoundsDatetime as error:
        raise InputError(f"{name} must be {rule}: {error}") from None
    except (ValueError, TypeError) as error:  # with and without time zone
        raise InputError(f"{name} can't be read as dates: {error}") from None
    check_rule(name, rule, (np.asarray(dates.isna()) & ~missing) | _of_the_clock(given), given)
    return dates


def _of_the_clock(given: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which values are words that pandas reads as the date on which it does."""
    if given.dtype.kind not in "OUT":
        return np.zeros(given.shape, dtype=bool)
    return np.array([isinstance(value, str) and value.strip().lower() in ("now", "today") for value in given], bool)


def _is_aware(given: NDArray[Any]) -> bool:
    """Whether any of the dates carries a time zone; all are compared in UTC then."""
    if given.dtype.kind not in "OUT":
        return False
    return any(
        getattr(value, "tzinfo", None) is not None or (isinstance(value, str) and bool(ZONE.search(value)))
        for value in given
    )
