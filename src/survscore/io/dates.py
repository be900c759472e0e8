"""Dates as files have them: text in some format, decimal years, seconds since 1970, or days since a date."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from survscore._utils.dates import as_dates
from survscore._validation import InputError, as_array, check_rule
from survscore.io.flags import is_text
from survscore.io.tables import TableFile, about, arrow, vector

if TYPE_CHECKING:
    import pyarrow as pa

DECIMAL_YEAR = "decimal-year"
# Years that no follow-up reaches, which systems write where a date has no end: 9999-12-31, 31.12.2999.
FAR = re.compile(r"(22[789]\d|2[3-9]\d\d|[3-9]\d{3})[-/]?\d\d[-/]?\d\d([T ].*)?|\d\d?[./]\d\d?[./](2999|9999)([T ].*)?")
EPOCHS = {"epoch-seconds": 1_000, "epoch-milliseconds": 1}  # since 1970, in milliseconds


def far_dates(column: pa.ChunkedArray) -> tuple[str, ...]:
    """Return the dates in a column that are so late that they say that there is no end yet, as they are written."""
    different = column.unique().cast("string").to_pylist()
    return tuple(sorted({text.strip()[:10] for text in different if text is not None and FAR.fullmatch(text.strip())}))


def without_open_ends(column: pa.ChunkedArray, open_end: Sequence[str]) -> pa.ChunkedArray:
    """Return a column of dates in which those that say that there is no end are missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not open_end:
        return column
    pattern = f"^\\s*({'|'.join(map(re.escape, open_end))})([T ].*)?$"
    is_open = pc.match_substring_regex(column.cast("string"), pattern=pattern)
    return pc.if_else(is_open, pa.scalar(None, column.type), column)


def read_dates(values: Any, name: str, date_format: str | None, origin: str | None) -> Any:
    """Return dates that are written in a form of their own; what is a date already stays as it is.

    `date_format` is as for ``strptime``, or ``"decimal-year"``, ``"epoch-seconds"``, ``"epoch-milliseconds"``; where
    numbers count days, `origin` is since when.
    """
    import pandas as pd

    given = as_array(values, name)
    missing = np.asarray(pd.isna(given))
    if given.dtype.kind == "M" or missing.all() or (date_format is None and origin is None):
        return values
    rules: dict[str | None, str] = {None: f"numbers of days since {origin}", DECIMAL_YEAR: "years such as 2017.5"}
    rules |= {epoch: f"numbers of {epoch.removeprefix('epoch-')} since 1970" for epoch in EPOCHS}
    rule = rules.get(date_format, f"dates written as {date_format}")
    if date_format is not None and date_format not in (DECIMAL_YEAR, *EPOCHS):
        whole = given.dtype.kind == "f" and bool((given[~missing] == np.round(given[~missing])).all())
        text = pd.Series(given.astype(object) if not whole else pd.array(given, dtype="Int64")).astype("string")
        parsed = pd.to_datetime(text, format=date_format, errors="coerce")
        check_rule(name, rule, np.asarray(parsed.isna()) & ~missing, given)
        return parsed.to_numpy()
    number = pd.to_numeric(pd.Series(given), errors="coerce").to_numpy(dtype=np.float64)
    check_rule(name, rule, ~np.isfinite(number) & ~missing, given)
    if date_format == DECIMAL_YEAR:
        check_rule(name, f"{rule}, from 1678 to 2261", ((number < 1678) | (number >= 2262)) & ~missing, given)
        year = np.where(missing, 1970, np.floor(number)).astype(np.int64)
        begin, following = ((year + k - 1970).astype("datetime64[Y]").astype("datetime64[D]") for k in (0, 1))
        days = (number - year) * (following - begin).astype(np.float64)
    elif date_format is not None:
        begin = np.zeros(given.size, dtype="datetime64[D]")
        days = number * EPOCHS[date_format] / 86_400_000
        check_rule(name, f"{rule}, within 290 years", (np.abs(days) > 105_900) & ~missing, given)
    else:
        begin = np.repeat(as_dates([origin], "origin").to_numpy().astype("datetime64[D]"), given.size)
        check_rule(name, f"{rule}, within 500 years", (np.abs(number) > 182_625) & ~missing, given)
        days = number
    # to the millisecond, since fractions of decimal numbers are not exact
    passed = np.round(np.where(missing, 0.0, days) * 86_400_000).astype("timedelta64[ms]")
    return np.where(missing, np.datetime64("NaT", "ms"), begin.astype("datetime64[ms]") + passed)


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
        if self.cutoff in file.names:
            return self.dates(file, self.cutoff)
        try:
            date = read_dates(np.array([self.cutoff], dtype=object), "cutoff", self.date_format, self.origin)
        except InputError:
            return self.cutoff  # to be read, or refused, as any other date
        return date[0]
