"""Which columns of a table are predictions, of which model, cause and time, by their names."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from survscore._validation import InputError

# The columns of a model by cause: by time, or one of lists.
ByCause = dict[str, dict[float, str] | str]


@dataclass(frozen=True)
class NamedColumns:
    """Which columns of a file are whose predictions, by their names.

    Attributes
    ----------
    by_time : dict
        For each model its columns by time.
    by_cause : dict
        For each model that predicts several causes its columns by cause: by time, or one of lists.
    lists : dict
        For each model its column of lists.
    """

    by_time: dict[str, dict[float, str]]
    by_cause: dict[str, ByCause]
    lists: dict[str, str]

    @classmethod
    def of(cls, names: Sequence[str], lists: Sequence[str], columns: str | None) -> NamedColumns:
        """Recognise columns as usual, or by a pattern."""
        if columns is not None and "{time}" not in columns:
            return cls({}, _lists_by_cause(lists, columns), {})
        by_time, by_cause = columns_by_time(names, columns), columns_by_cause(names, columns)
        found = lists if columns is None else []
        if by_time and by_cause:
            without = next(column for by in by_time.values() for column in by.values())
            of_cause = next(one for several in by_cause.values() for one in several.values())
            column = of_cause if isinstance(of_cause, str) else next(iter(of_cause.values()))
            told = f"{without!r} and {column!r}"
            raise InputError(f"has columns of predictions with a cause and without, {told}; keep one kind")
        if (by_time or by_cause) and found:
            raise InputError(f"has columns named by time and list columns ({found[0]!r}); keep one kind")
        return cls(by_time, by_cause, {name: name for name in found})

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


def columns_by_time(names: Sequence[str], columns: str | None = None) -> dict[str, dict[float, str]]:
    """Return the columns of each model by time, by a pattern or as usual; a model without name is ''."""
    found = _columns_by(names, columns)
    return {model: by_time for (model, cause), by_time in found.items() if cause is None}


def columns_by_cause(names: Sequence[str], columns: str | None = None) -> dict[str, ByCause]:
    """Return the columns of each model by cause and time; those whose names have no cause are left out."""
    found: dict[str, ByCause] = defaultdict(dict)
    for (model, cause), by_time in _columns_by(names, columns).items():
        if cause is not None:
            found[model][cause] = by_time
    return {model: in_order(several) for model, several in found.items()}


def _columns_by(names: Sequence[str], columns: str | None) -> dict[tuple[str, str | None], dict[float, str]]:
    named = re.compile(_pattern(columns), re.DOTALL).fullmatch if columns else _usual_name
    found: dict[tuple[str, str | None], dict[float, str]] = defaultdict(dict)
    for column in names:
        match = named(column)
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
    return dict(found)


def _lists_by_cause(lists: Sequence[str], columns: str) -> dict[str, ByCause]:
    """Return the columns of lists of each model by cause."""
    named = re.compile(_pattern(columns), re.DOTALL).fullmatch
    found: dict[str, ByCause] = defaultdict(dict)
    for column in lists:
        match = named(column)
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


def _usual_name(column: str) -> re.Match[str] | None:
    return re.fullmatch(r"(?:(?P<model>.*):)?(?:(?P<cause>[^:@]+)@)?(?P<time>[^:@]+)", column, re.DOTALL)


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
