"""What the values of a column look like: numbers, flags, words, or dates in one of many writings."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from survscore._utils.dates import as_dates
from survscore._validation import InputError
from survscore.io.dates import DECIMAL_YEAR, EPOCHS, far_dates, read_dates, without_open_ends
from survscore.io.flags import WORDS, is_text
from survscore.io.layouts import is_list
from survscore.io.tables import arrow, vector

if TYPE_CHECKING:
    import pyarrow as pa

FEW = 20  # different values, that might be reasons
LONG_TEXT = 200  # no date and no reason
ISO = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d(:\d\d)*(\.\d+)?(Z|[+-]\d\d:?\d\d)?)?")
# How text may be a date, besides as 2017-01-29; where two fit, which day is meant can't be known.
TEXT_DATES = ("%d.%m.%Y", "%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S", "%d/%m/%Y", "%m/%d/%Y", "%d/%m/%Y %H:%M",
              "%m/%d/%Y %H:%M", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%d%b%Y", "%d-%b-%Y", "%d %b %Y", "%b %d, %Y",
              "%Y%m%d")  # fmt: skip
SECONDS, MILLISECONDS = EPOCHS
# How numbers may be dates: from and below which, whether they must be whole, format, origin, and in words.
NUMBER_DATES = (
    (19_000_101, 21_001_232, True, "%Y%m%d", None, "dates written as %Y%m%d"),
    (1900, 2100, False, DECIMAL_YEAR, None, "years with fractions"),
    (3e8, 4e9, None, SECONDS, None, "seconds since 1970"),
    (3e11, 4e12, None, MILLISECONDS, None, "milliseconds since 1970"),
    (30_000, 70_000, None, None, "1899-12-30", "numbers of days, as spreadsheets count them"),
    (5_000, 30_000, None, None, "1970-01-01", "numbers of days"),
)


@dataclass(frozen=True)
class Doubt:
    """Something that is uncertain: the option, column or file in question, and what can't be known."""

    about: str
    text: str


@dataclass(frozen=True)
class Writing:
    """How a column writes dates: as for `read_outcomes`, in words, and why it may be otherwise."""

    date_format: str | None = None
    origin: str | None = None
    words: str = "dates"
    doubt: str | None = None


@dataclass(frozen=True, eq=False)
class Profile:
    """One column of a sample: of which kind its values are, which are missing, as numbers, as words if they are few.

    `distinct` says whether no value is there twice, `writing` how values are dates, if they can be, and `open_end`
    which dates say that there is no end yet; these count as missing.
    """

    name: str
    kind: str
    missing: NDArray[np.bool_]
    numbers: NDArray[np.float64]
    values: Any = None
    words: tuple[str, ...] = ()
    distinct: bool = False
    writing: Writing | None = None
    open_end: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether no value is missing."""
        return not self.missing.any()

    @property
    def is_flag(self) -> bool:
        """Whether values are two at most, and mean yes or no by themselves."""
        return bool(self.words) and {word.strip().lower().removesuffix(".0") for word in self.words} <= WORDS.keys()

    @property
    def is_yes(self) -> NDArray[np.bool_]:
        """For each value of a flag, whether it means yes."""
        return np.array([WORDS.get(str(value).strip().lower().removesuffix(".0"), False) for value in self.values])

    @property
    def is_dated(self) -> bool:
        """Whether values can be dates: whether numbers are, the name must say."""
        return self.kind in ("dates", "empty") or (self.writing is not None and self.kind.endswith("numbers"))

    def is_between(self, low: float, high: float) -> bool:
        """Whether all values are numbers in a range."""
        held = self.numbers[~self.missing]
        return held.size > 0 and bool((held >= low).all() and (held <= high).all())

    def dates(self) -> pd.DatetimeIndex:
        """Return the values as dates."""
        how = self.writing or Writing()
        return as_dates(read_dates(self.values, self.name, how.date_format, how.origin), self.name)


def profile(name: str, column: pa.ChunkedArray) -> Profile:
    """Return what a column looks like."""
    types = arrow().types
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if types.is_decimal(column.type):
        column = column.cast("float64")
    kind, none = column.type, np.full(len(column), np.nan)
    text, dated = is_text(kind), types.is_date(kind) or types.is_timestamp(kind)
    far = far_dates(column) if text or dated else ()
    column = without_open_ends(column, far)
    missing = np.asarray(column.is_null(nan_is_null=types.is_floating(kind)).to_numpy(), dtype=bool)
    if missing.all():
        return Profile(name, "empty", missing, none, np.full(missing.size, None), writing=Writing(), open_end=far)
    if not (text or dated or types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind)):
        return Profile(name, "lists" if is_list(kind) else "other", missing, none)
    try:
        values = vector(column)
    except InputError:  # dates of years that there are not
        return Profile(name, "other", missing, none)
    different = [str(value) for value in pd.unique(pd.Series(values[~missing]))]
    few = len(different) <= FEW and all(len(word) <= LONG_TEXT for word in different)
    writing, how = Writing() if dated else None, "dates"
    if text:
        writing = _text_writing(different)
        how = "text" if writing is None else "dates"
    elif not dated:
        none = np.where(missing, np.nan, np.where(missing, 0, values).astype(np.float64))
        held = none[~missing]
        whole = bool(np.isfinite(held).all() and (held == np.round(held)).all())
        how = "flags" if ((held == 0) | (held == 1)).all() else "whole numbers" if whole else "numbers"
        writing = None if how == "flags" else _number_writing(held, whole=whole)
    words, distinct = tuple(sorted(different)) if few else (), len(different) == int((~missing).sum())
    return Profile(name, how, missing, none, values, words, distinct, writing, far)


def _text_writing(held: list[str]) -> Writing | None:
    if all(len(value) <= LONG_TEXT and ISO.fullmatch(value.strip()) for value in held):
        return Writing()
    fit = [one for one in TEXT_DATES if _are_dates(held[:20], one) and _are_dates(held, one)]
    if not fit:
        return None
    doubt = None if len(fit) == 1 else f"all dates fit {fit[0]} and {fit[1]}: which is the month?"
    return Writing(fit[0], None, f"dates written as {fit[0]}", doubt)


def _are_dates(held: list[str], date_format: str) -> bool:
    if date_format == "%Y%m%d" and not all(len(value) == 8 and value.isdigit() for value in held):
        return False
    return not pd.to_datetime(pd.Series(held), format=date_format, errors="coerce").isna().any()


def _number_writing(held: NDArray[np.float64], *, whole: bool) -> Writing | None:
    for low, high, must_be_whole, date_format, origin, words in NUMBER_DATES:
        fits = bool(((held >= low) & (held < high)).all()) and must_be_whole in (None, whole)
        days = [f"{value:.0f}" for value in np.unique(held)] if fits and date_format == "%Y%m%d" else []
        if fits and (not days or _are_dates(days, "%Y%m%d")):
            return Writing(date_format, origin, words)
    return None
