"""What the values of a column look like: numbers, flags, words, or dates in one of many writings."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from survscore._validation import InputError
from survscore.io.dates import DECIMAL_YEAR, EPOCHS, far_dates, read_dates, without_open_ends
from survscore.io.flags import WORDS
from survscore.io.tables import arrow, vector

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Kind = Literal["numbers", "whole numbers", "flags", "dates", "text", "lists", "empty", "other"]
FEW = 20  # different values, that might be reasons
LONG_TEXT = 200  # no date and no reason
ISO = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d(:\d\d)*(\.\d+)?(Z|[+-]\d\d:?\d\d)?)?")
UNIX, EXCEL = "1970-01-01", "1899-12-30"


@dataclass(frozen=True)
class Writing:
    """How a column writes dates.

    Attributes
    ----------
    date_format, origin : str or None
        As for `read_outcomes`; None and None for dates, and for text as 2017-01-29.
    words : str
        For people.
    doubt : str or None
        Why it may be another one.
    """

    date_format: str | None
    origin: str | None
    words: str
    doubt: str | None = None


PLAIN = Writing(None, None, "dates")
# How text may be a date, besides as 2017-01-29; where two fit, which day is meant can't be known.
TEXT_DATES: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = (
    (re.compile(r"\d{1,2}\.\d{1,2}\.\d{4}"), ("%d.%m.%Y",)),
    (re.compile(r"\d{1,2}\.\d{1,2}\.\d{4} \d\d:\d\d"), ("%d.%m.%Y %H:%M",)),
    (re.compile(r"\d{1,2}\.\d{1,2}\.\d{4} \d\d:\d\d:\d\d"), ("%d.%m.%Y %H:%M:%S",)),
    (re.compile(r"\d{1,2}/\d{1,2}/\d{4}"), ("%d/%m/%Y", "%m/%d/%Y")),
    (re.compile(r"\d{1,2}/\d{1,2}/\d{4} \d{1,2}:\d\d"), ("%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M")),
    (re.compile(r"\d{1,2}-\d{1,2}-\d{4}"), ("%d-%m-%Y", "%m-%d-%Y")),
    (re.compile(r"\d{4}/\d{1,2}/\d{1,2}"), ("%Y/%m/%d",)),
    (re.compile(r"\d{1,2}[A-Za-z]{3}\d{4}"), ("%d%b%Y",)),
    (re.compile(r"\d{1,2}-[A-Za-z]{3}-\d{4}"), ("%d-%b-%Y",)),
    (re.compile(r"\d{1,2} [A-Za-z]{3} \d{4}"), ("%d %b %Y",)),
    (re.compile(r"[A-Za-z]{3} \d{1,2}, \d{4}"), ("%b %d, %Y",)),
    (re.compile(r"\d{8}"), ("%Y%m%d",)),
)


@dataclass(frozen=True, eq=False)
class Profile:
    """One column of a sample.

    Attributes
    ----------
    name : str
        Of the column.
    kind : str
        What its values are.
    missing : NDArray of bool
        Where there is none.
    numbers : ndarray or None
        The values as numbers, NaN where missing, if they are numbers or flags of numbers.
    words : tuple of str
        Its different values as text, if they are few.
    distinct : bool
        Whether no value is there twice.
    writing : Writing or None
        How values are dates, if they can be.
    open_end : tuple of str
        Dates that say that there is no end yet, which count as missing.
    """

    name: str
    kind: Kind
    missing: NDArray[np.bool_]
    numbers: NDArray[np.float64] | None = None
    words: tuple[str, ...] = ()
    distinct: bool = False
    writing: Writing | None = None
    values: Any = field(default=None, repr=False)
    open_end: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether no value is missing."""
        return not self.missing.any()

    @property
    def is_flag(self) -> bool:
        """Whether values are two at most, and mean yes or no by themselves."""
        return bool(self.words) and {word.strip().lower() for word in self.words} <= {*WORDS, "0.0", "1.0"}

    @property
    def is_probability(self) -> bool:
        """Whether all values are numbers from 0 to 100."""
        held = None if self.numbers is None else self.numbers[~self.missing]
        return held is not None and held.size > 0 and bool((held >= 0).all() and (held <= 100).all())

    def dates(self) -> pd.DatetimeIndex:
        """Return the values as dates."""
        from survscore._utils.dates import as_dates

        if self.writing is None:
            raise InputError(f"column {self.name!r} holds no dates")
        read = read_dates(self.values, self.name, self.writing.date_format, self.writing.origin)
        return as_dates(read, self.name)


def profile(name: str, column: pa.ChunkedArray) -> Profile:
    """Return what a column looks like."""
    types, kind = arrow().types, column.type
    if types.is_string(kind) or types.is_large_string(kind) or _is_date(kind):
        far = far_dates(column)
        if far:
            return replace(profile(name, without_open_ends(column, far)), open_end=far)
    missing = np.asarray(column.is_null(nan_is_null=types.is_floating(kind)).to_numpy(), dtype=bool)
    if types.is_null(kind) or missing.all():
        return Profile(name, "empty", missing, writing=PLAIN, values=np.full(missing.size, None, dtype=object))
    if types.is_decimal(kind):
        column, kind = column.cast("float64"), arrow().float64()
    if types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    values = _values(column)
    if values is None:
        lists = types.is_fixed_size_list(kind) or types.is_list(kind) or types.is_large_list(kind)
        return Profile(name, "lists" if lists else "other", missing)
    distinct, words = _distinct(values, missing)
    if _is_date(kind):
        return Profile(name, "dates", missing, None, words, distinct, PLAIN, values)
    if types.is_string(kind) or types.is_large_string(kind):
        writing = _text_writing([str(value) for value in values[~missing]])
        return Profile(name, "text" if writing is None else "dates", missing, None, words, distinct, writing, values)
    numbers = np.where(missing, np.nan, np.where(missing, 0, values).astype(np.float64))
    held = numbers[~missing]
    whole = bool(np.isfinite(held).all() and (held == np.round(held)).all())
    how: Kind = "flags" if ((held == 0) | (held == 1)).all() else "whole numbers" if whole else "numbers"
    writing = None if how == "flags" else _number_writing(held, whole)
    return Profile(name, how, missing, numbers, words, distinct, writing, values)


def _values(column: pa.ChunkedArray) -> NDArray[Any] | None:
    """Return texts, flags, numbers or dates; None, where a column holds something else."""
    types, kind = arrow().types, column.type
    text = types.is_string(kind) or types.is_large_string(kind)
    if not (text or types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind) or _is_date(kind)):
        return None
    try:
        return vector(column)
    except InputError:  # dates of years that there are not
        return None


def _is_date(kind: Any) -> bool:
    types = arrow().types
    return bool(types.is_date(kind) or types.is_timestamp(kind))


def _distinct(values: NDArray[Any], missing: NDArray[np.bool_]) -> tuple[bool, tuple[str, ...]]:
    """Return whether all values differ, and if they are few, which they are, written as readers of reasons do."""
    held = [str(value) for value in values[~missing]]
    found = dict.fromkeys(held)
    few = len(found) <= FEW and all(len(word) <= LONG_TEXT for word in found)
    return len(found) == len(held), tuple(sorted(found)) if few else ()


def _text_writing(held: list[str]) -> Writing | None:
    import pandas as pd

    if any(len(value) > LONG_TEXT for value in held):
        return None
    if all(ISO.fullmatch(value.strip()) for value in held):
        return PLAIN
    for pattern, formats in TEXT_DATES:
        if not all(pattern.fullmatch(value) for value in held):
            continue
        fit = [one for one in formats if not pd.to_datetime(pd.Series(held), format=one, errors="coerce").isna().any()]
        if not fit:
            return None
        doubt = None if len(fit) == 1 else f"all dates fit {fit[0]} and {fit[1]}: which is the month?"
        return Writing(fit[0], None, f"dates written as {fit[0]}", doubt)
    return None


def _number_writing(held: NDArray[np.float64], whole: bool) -> Writing | None:
    """Return how numbers could be dates; whether they are, their name must say."""
    if not np.isfinite(held).all():
        return None
    low, high = float(held.min()), float(held.max())
    for fits, writing in _NUMBER_DATES:
        if fits(low, high, whole) and (writing.date_format != "%Y%m%d" or _are_days(held)):
            return writing
    return None


def _are_days(held: NDArray[np.float64]) -> bool:
    import pandas as pd

    text = pd.Series(np.unique(held).astype(np.int64)).astype(str)
    return not pd.to_datetime(text, format="%Y%m%d", errors="coerce").isna().any()


_SECONDS, _MILLISECONDS = EPOCHS
_NUMBER_DATES: tuple[tuple[Callable[[float, float, bool], bool], Writing], ...] = (
    (
        lambda low, high, whole: whole and low >= 19_000_101 and high <= 21_001_231,
        Writing("%Y%m%d", None, "dates written as %Y%m%d"),
    ),
    (
        lambda low, high, whole: low >= 1900 and high < 2100 and not whole,
        Writing(DECIMAL_YEAR, None, "years with fractions"),
    ),
    (
        lambda low, high, whole: low >= 3e8 and high < 4e9,
        Writing(_SECONDS, None, "seconds since 1970"),
    ),
    (
        lambda low, high, whole: low >= 3e11 and high < 4e12,
        Writing(_MILLISECONDS, None, "milliseconds since 1970"),
    ),
    (
        lambda low, high, whole: low >= 30_000 and high < 70_000,
        Writing(None, EXCEL, "numbers of days, as spreadsheets count them"),
    ),
    (
        lambda low, high, whole: low >= 5_000 and high < 30_000,
        Writing(None, UNIX, "numbers of days"),
    ),
)
