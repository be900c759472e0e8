"""The form of a file of predictions: what its numbers are, how they are laid out, and how its columns are named."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from survscore._utils.dates import Unit, as_unit
from survscore._validation import InputError, check_choice, check_flag
from survscore.curves import PREDICTS, ExtrapolationKind, InterpolationKind, Monotone, Predicts

# The columns of a model by cause: by time, or one of lists.
ByCause = dict[str, dict[float, str] | str]


@dataclass(frozen=True, eq=False)
class Form:
    """What a file of predictions looks like, for `read_study` to take files of different forms at once.

    Parameters
    ----------
    grid, columns, interpolation, extrapolation, monotone, predicts, percent, transposed, long, unit, time_column
        As for `read_predictions`.

    Examples
    --------
    >>> import survscore as ss
    >>> ss.io.Form(columns="month_{time}", unit="month", predicts="event").unit
    'M'
    """

    grid: ArrayLike | None = None
    columns: str | None = None
    interpolation: InterpolationKind | None = None
    extrapolation: ExtrapolationKind | None = None
    monotone: Monotone = "check"
    predicts: Predicts = "survival"
    percent: bool = False
    transposed: bool = False
    long: bool = False
    unit: Unit | str | None = None
    time_column: str | None = None

    def __post_init__(self) -> None:
        check_choice("predicts", self.predicts, PREDICTS)
        for name in ("percent", "transposed", "long"):
            check_flag(name, getattr(self, name))
        if self.transposed and self.long:
            raise InputError("transposed and long are two forms; a file has one")
        other = "transposed" if self.transposed else "long" if self.long else None
        if other and self.columns is not None:
            raise InputError(f"columns is for a column per time, not for {other} files")
        if self.time_column is not None and (self.transposed or self.columns is not None or self.grid is not None):
            raise InputError("time_column is for long files, with a row per individual and time")
        if other and self.grid is not None:
            raise InputError(f"grid is for list columns; {other} files say their times themselves")
        if self.unit is not None:
            object.__setattr__(self, "unit", as_unit("unit", self.unit))

    @property
    def settings(self) -> dict[str, Any]:
        """What differs from the defaults, as plain data."""
        grid = {} if self.grid is None else {"grid": np.asarray(self.grid).tolist()}
        values = {one.name: (getattr(self, one.name), one.default) for one in fields(self) if one.name != "grid"}
        return grid | {name: value for name, (value, default) in values.items() if value != default}


@dataclass(frozen=True)
class NamedColumns:
    """Which columns of a file are whose predictions: for each model its columns by time, by cause, or of lists."""

    by_time: dict[str, dict[float, str]]
    by_cause: dict[str, ByCause]
    lists: dict[str, str]

    @classmethod
    def of(cls, names: Sequence[str], lists: Sequence[str], columns: str | None) -> NamedColumns:
        """Recognise columns as usual, or by a pattern: ``"{model}_{time}"``, and ``"{cause}"`` for columns of lists."""
        if columns is not None and "{time}" not in columns:
            return cls({}, _lists_by_cause(lists, columns), {})
        found = _columns_by_time(names, columns)
        by_time: dict[str, dict[float, str]] = {}
        by_cause: dict[str, ByCause] = defaultdict(dict)
        for (model, cause), of_times in found.items():
            if cause is None:
                by_time[model] = of_times
            else:
                by_cause[model][cause] = of_times
        if by_time and by_cause:
            firsts = {cause is None: next(iter(of_times.values())) for (_, cause), of_times in reversed(found.items())}
            raise InputError(
                f"has columns of predictions with a cause and without, {firsts[True]!r} and {firsts[False]!r}; keep "
                "one kind"
            )
        if (by_time or by_cause) and lists and columns is None:
            raise InputError(f"has columns named by time and list columns ({lists[0]!r}); keep one kind")
        ordered = {model: in_order(several) for model, several in by_cause.items()}
        return cls(by_time, ordered, {} if columns is not None else {name: name for name in lists})

    def __bool__(self) -> bool:
        return bool(self.by_time or self.by_cause or self.lists)

    @property
    def models(self) -> list[str]:
        """All models."""
        return [*self.by_time, *self.by_cause, *self.lists]

    @property
    def of_lists(self) -> bool:
        """Whether these are list columns, which need a grid."""
        by_cause = any(isinstance(one, str) for several in self.by_cause.values() for one in several.values())
        return bool(self.lists) or by_cause

    @property
    def columns(self) -> set[str]:
        """All columns that are predictions."""
        found = set(self.lists.values()) | {column for by in self.by_time.values() for column in by.values()}
        for several in self.by_cause.values():
            for one in several.values():
                found |= {one} if isinstance(one, str) else set(one.values())
        return found


def _columns_by_time(names: Sequence[str], columns: str | None) -> dict[tuple[str, str | None], dict[float, str]]:
    """Return the columns by time of each model (without a name it is '') and cause (None where names have none)."""
    pattern = r"(?:(?P<model>.*):)?(?:(?P<cause>[^:@]+)@)?(?P<time>[^:@]+)" if columns is None else _pattern(columns)
    found: dict[tuple[str, str | None], dict[float, str]] = defaultdict(dict)
    for column in names:
        match = re.fullmatch(pattern, column, re.DOTALL)
        time = None if match is None else _as_time(match["time"])
        if match is None or time is None:
            continue
        if not 0 <= time < np.inf:
            raise InputError(f"column {column!r} is named like a time, but times are finite, zero or later")
        parts = match.groupdict()
        cause = None if parts.get("cause") is None else as_cause(parts["cause"])
        by_time = found[parts.get("model") or "", cause]
        if time in by_time:
            raise InputError(f"columns {by_time[time]!r} and {column!r} are the same time")
        by_time[time] = column
    return found


def _lists_by_cause(lists: Sequence[str], columns: str) -> dict[str, ByCause]:
    """Return the columns of lists of each model by cause."""
    pattern = _pattern(columns)
    found: dict[str, ByCause] = defaultdict(dict)
    for column in lists:
        match = re.fullmatch(pattern, column, re.DOTALL)
        if match is not None:
            found[match.groupdict().get("model") or ""][as_cause(match["cause"])] = column
    return {model: in_order(several) for model, several in found.items()}


def as_cause(text: str) -> str:
    """Return the name of a cause; of one that has a number only, as "cause 1", that number."""
    name = text.strip()
    numbered = re.fullmatch(r"cause[ _]?(\d+)", name, re.IGNORECASE)
    return name if numbered is None else numbered[1]


def in_order(several: ByCause) -> ByCause:
    """Return causes as they come, or by number where all have one only."""
    return {one: several[one] for one in sorted(several, key=int)} if all(map(str.isdigit, several)) else several


def _pattern(columns: str) -> str:
    lists = "{cause}" in columns and "{time}" not in columns
    if columns.count("{time}") != (not lists) or columns.count("{model}") > 1 or columns.count("{cause}") > 1:
        raise InputError(
            f"columns must hold {{time}} once (for columns of lists {{cause}}), and {{model}} and {{cause}} at most "
            f"once, not {columns!r}"
        )
    escaped = re.escape(columns)
    for name, pattern in (("time", "(?P<time>.+)"), ("model", "(?P<model>.+?)"), ("cause", "(?P<cause>.+?)")):
        escaped = escaped.replace(rf"\{{{name}\}}", pattern)
    return escaped


def _as_time(text: str) -> float | None:
    """Return the number that a text is, if it is one."""
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None
