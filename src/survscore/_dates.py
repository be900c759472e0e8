"""From calendar dates to follow-up times."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from survscore._validation import InputError, as_array, check_choice, check_length, plural

UNITS = ("D", "W", "h", "min", "s")


def follow_up(
    start: ArrayLike,
    event_date: ArrayLike,
    cutoff: Any,
    unit: str,
    last_seen: ArrayLike | None,
    drop_late_starts: bool,
) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.float64]]:
    """Return time, event and censoring_time; see `Outcomes.from_dates` for the rules."""
    check_choice("unit", unit, UNITS)
    starts = _as_dates(start, "start")
    events = _as_dates(event_date, "event_date")
    check_length("event_date", len(events), "start", len(starts))
    ends = _as_dates(cutoff, "cutoff", length=len(starts))
    seen = ends if last_seen is None else _as_dates(last_seen, "last_seen")
    check_length("last_seen", len(seen), "start", len(starts))
    zones = {"start": starts, "event_date": events, "cutoff": ends, "last_seen": seen}
    if len({dates.tz is None for name, dates in zones.items() if not dates.isna().all()}) > 1:
        aware = [name for name, dates in zones.items() if dates.tz is not None]
        raise InputError(f"dates must all have a time zone, or none: only {', '.join(aware)} has one")

    _check_none("start", "given for everybody", starts.isna(), starts)
    _check_none("cutoff", "given", ends.isna(), ends)
    starts, events, ends, seen = (
        dates.tz_localize(None).as_unit("ns") for dates in (starts, events, ends, seen)
    )
    _check_none("event_date", "on or after start", np.asarray(events < starts), events)
    _check_none("last_seen", "on or after start", np.asarray(seen < starts) & events.isna(), seen)

    late = np.asarray(starts > ends)
    if late.any():
        first = int(np.argmax(late))
        message = (
            f"{plural(int(late.sum()), 'individual')} of {len(starts)} start after the cut-off, "
            f"the first at position {first} ({starts[first]} > {ends[first]})"
        )
        if not drop_late_starts:
            raise InputError(f"{message}; late_starts='drop' leaves them out")
        warnings.warn(f"from_dates left out individuals: {message}", stacklevel=3)
        starts, events, ends, seen = (dates[~late] for dates in (starts, events, ends, seen))

    happened = np.asarray(events <= ends)  # false where no date is given
    followed = seen.where(seen.notna() & (seen < ends), ends)
    last = events.where(happened, followed)
    step = np.timedelta64(1, {"min": "m"}.get(unit, unit))  # type: ignore[call-overload]
    return (last - starts).to_numpy() / step, happened, (ends - starts).to_numpy() / step


def _as_dates(values: Any, name: str, length: int | None = None) -> pd.DatetimeIndex:
    """Return dates; `length` repeats a single one. Numbers are refused: 20170129 is no date by itself."""
    if length is not None and (isinstance(values, str) or np.ndim(values) == 0):
        if isinstance(values, (int, float, np.number)):
            raise InputError(f"{name} must be a date, not the number {values}")
        return _as_dates([values], name).repeat(length)
    given = values if isinstance(values, (pd.Series, pd.Index)) else pd.Series(_as_objects(values, name))
    if pd.api.types.is_numeric_dtype(given.dtype) and not given.isna().all():
        raise InputError(
            f"{name} must hold dates, not numbers; for yyyymmdd use pandas.to_datetime(..., format='%Y%m%d')"
        )
    try:
        parsed = pd.to_datetime(given, errors="coerce", utc=_is_aware(given) or None)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name} can't be read as dates: {error}") from None
    dates = pd.DatetimeIndex(parsed)
    _check_none(name, "readable as dates", np.asarray(dates.isna() & given.notna()), given)
    return dates


def _as_objects(values: Any, name: str) -> NDArray[Any]:
    array = as_array(values, name)
    if array.ndim != 1:
        raise InputError(f"{name} must be one-dimensional, not of shape {array.shape}")
    return array


def _is_aware(given: pd.Series | pd.Index) -> bool:
    """Whether any of the dates carries a time zone; all are compared in UTC then."""
    if isinstance(given.dtype, pd.DatetimeTZDtype):
        return True
    return given.dtype == object and any(getattr(value, "tzinfo", None) is not None for value in given)


def _check_none(name: str, rule: str, broken: NDArray[np.bool_], values: Any) -> None:
    if broken.any():
        first = int(np.argmax(broken))
        offender = values.iloc[first] if isinstance(values, pd.Series) else values[first]
        raise InputError(
            f"{name} must be {rule}: {np.count_nonzero(broken)} of {broken.size} are not, "
            f"the first at position {first} ({offender})"
        )
