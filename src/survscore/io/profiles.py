"""What tables hold, by some of their rows: what columns are called, and what their values look like."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyarrow.dataset import dataset

from survscore._utils.dates import SECONDS, Unit, as_dates
from survscore._validation import InputError
from survscore.io.dates import DECIMAL_YEAR, far_dates, read_dates, without_open_ends
from survscore.io.files import check_regular
from survscore.io.flags import WORDS as FLAG_WORDS
from survscore.io.flags import is_text
from survscore.io.layouts import is_list
from survscore.io.limits import rows_that_fit
from survscore.io.tables import CSV_ENDINGS, PARQUET_ENDINGS, check_table, open_table, read_csv, readable, vector

# Rows of a table that are looked at
ROWS = 2000  # of each of three places in a file
WHOLE_ROWS, WHOLE_BYTES = 20_000, 8 << 20  # smaller files are read whole
PIECE_BYTES, FEWEST_LINES = 1 << 20, 50  # of larger ones, unless lines are long

# Values
FEW = 20  # different values, that might be reasons
LONG_TEXT = 200  # no date and no reason
ISO = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d(:\d\d)*(\.\d+)?(Z|[+-]\d\d:?\d\d)?)?")
# How text may be a date, besides as 2017-01-29; where two fit, which day is meant can't be known.
TEXT_DATES = (
    "%d.%m.%Y",
    "%d.%m.%Y %H:%M",
    "%d.%m.%Y %H:%M:%S",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d/%m/%Y %H:%M",
    "%m/%d/%Y %H:%M",
    "%d-%m-%Y",
    "%m-%d-%Y",
    "%Y/%m/%d",
    "%d%b%Y",
    "%d-%b-%Y",
    "%d %b %Y",
    "%b %d, %Y",
    "%Y%m%d",
)
# How numbers may be dates: from and below which, whether they must be whole, format, origin, and in words.
NUMBER_DATES = (
    (19_000_101, 21_001_232, True, "%Y%m%d", None, "dates written as %Y%m%d"),
    (1900, 2100, False, DECIMAL_YEAR, None, "years with fractions"),
    (3e8, 4e9, None, "epoch-seconds", None, "seconds since 1970"),
    (3e11, 4e12, None, "epoch-milliseconds", None, "milliseconds since 1970"),
    (30_000, 70_000, None, None, "1899-12-30", "numbers of days, as spreadsheets count them"),
    (5_000, 30_000, None, None, "1970-01-01", "numbers of days"),
)

# Names: for each role whole names, in lower case, with _ for blanks; and "part": words that say less. Those of dates
# come without words that only say that something is a date. Below the roles are words for single questions.
WORDS: dict[str, frozenset[str]] = {
    name: frozenset(word.replace("_", " ") for word in words.split())
    for name, _, words in (
        entry.partition(":")
        for entry in re.split(r"\n(?=\w)", Path(__file__).with_name("words.txt").read_text(encoding="utf-8").strip())
    )
}
DATED = ("start", "event_date", "end", "last_seen", "cutoff")  # roles of columns of dates
UNIT_WORDS = {word: unit for unit in SECONDS for word in WORDS[f"unit {unit}"]}
DATE_ENDINGS = re.compile(r"^date(?=...)|(?<=...)(date|datum|dt|dat)$")


@dataclass(frozen=True, eq=False)
class Sample:
    """Some rows of a table; `n_rows` is how many there are in all, where that is known without reading them."""

    path: Path
    table: pa.Table
    n_rows: int | None
    folder: bool = False

    @property
    def whole(self) -> bool:
        """Whether these are all rows."""
        return bool(self.n_rows == self.table.num_rows)


def sample(path: Path, *, whole: bool = False) -> Sample:
    """Return some rows of a file, of standard input, or of a folder of files such as Spark writes; or all of them."""
    name = path.name.lower().removesuffix(".zst")
    with readable(path):
        if path.is_dir():
            return _of_folder(path, whole=whole)
        found = None
        if not whole and name.endswith((*PARQUET_ENDINGS, *CSV_ENDINGS)):
            check_regular(path)
            found = _of_parquet(path) if name.endswith(PARQUET_ENDINGS) else _of_csv(path)
        if found is None:
            file = open_table(path)
            return Sample(path, file.read(file.names), file.n_rows)
    check_table(path, found.table.column_names, found.table.num_rows)
    return found


def _of_parquet(path: Path) -> Sample:
    """Return the first rows of the first, the middle and the last row group, fewer where texts may be long."""
    with pq.ParquetFile(path, page_checksum_verification=True) as opened:
        count, n_rows = opened.metadata.num_row_groups, opened.metadata.num_rows
        rows = rows_that_fit(path, opened.metadata, n_rows if n_rows <= WHOLE_ROWS else ROWS)
        picked = range(count) if n_rows <= rows else sorted({0, count // 2, count - 1})
        pieces = (opened.iter_batches(rows, row_groups=[group], use_threads=False) for group in picked)
        batches = [batch for piece in pieces for batch in islice(piece, 1)]
        schema = batches[0].schema if batches else opened.schema_arrow
        table = pa.Table.from_batches([batch.cast(schema) for batch in batches], schema=schema)
        return Sample(path, table.replace_schema_metadata(opened.schema_arrow.metadata), n_rows)


def _of_csv(path: Path) -> Sample | None:
    """Return the first lines; None of a small file."""
    with pa.input_stream(str(path)) as stream:
        head = stream.read(WHOLE_BYTES + 1)
    if len(head) <= WHOLE_BYTES:
        return None
    few = head[:PIECE_BYTES] if head.count(b"\n", 0, PIECE_BYTES) >= FEWEST_LINES else head
    return Sample(path, read_csv(path, source=pa.py_buffer(few[: few.rfind(b"\n") + 1] or few)), None)


def _of_folder(folder: Path, *, whole: bool) -> Sample:
    """Return the first rows of a folder, as Spark and others write tables, with columns for names such as day=1."""
    names = [path.name.lower() for path in folder.rglob("*") if path.name[0] not in "._"]
    parquet = any(name.endswith(PARQUET_ENDINGS) for name in names)
    if not parquet and not any(name.endswith(CSV_ENDINGS) for name in names):
        raise InputError(f"{folder}: is a folder without files that end in .csv, .tsv, .parquet or .pq")
    kind = "parquet" if parquet else "csv"
    table = dataset(folder, format=kind, partitioning="hive", exclude_invalid_files=True)
    rows = table.to_table() if whole else table.head(3 * ROWS)
    check_table(folder, rows.column_names, rows.num_rows)
    return Sample(folder, rows, table.count_rows(), folder=True)


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
        return bool(self.words) and {plain(word) for word in self.words} <= FLAG_WORDS.keys()

    @property
    def is_yes(self) -> NDArray[np.bool_]:
        """For each value of a flag, whether it means yes."""
        return np.array([FLAG_WORDS.get(plain(value), False) for value in self.values])

    @property
    def is_dated(self) -> bool:
        """Whether values can be dates: whether numbers are, the name must say."""
        return self.kind in ("dates", "empty") or (self.writing is not None and self.kind.endswith("numbers"))

    def is_written_like(self, other: Profile) -> bool:
        """Whether both can be read as dates at once; of two columns of text, their writings say more."""
        mine, others = self.writing or Writing(), other.writing or Writing()
        if "dates" in (self.kind, other.kind):
            return self.kind in ("empty", other.kind)
        return self.kind == "empty" or (mine.date_format, mine.origin) == (others.date_format, others.origin)

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
    types = pa.types
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


def plain(value: object) -> str:
    """Return a word, or a whole number, as readers of flags compare it."""
    return str(value).strip().lower().removesuffix(".0")


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


def tokens(name: str) -> tuple[str, ...]:
    """Return the words of a name, in lower case: ``"CustomerID"`` and ``"customer_id"`` have the same two."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return tuple(re.sub(r"[\W_]+", " ", parted.lower()).split())


def speaks_of(name: str, what: str) -> bool:
    """Whether a name has a word of a list: ``"censored"``, ``"active"``."""
    return bool({*tokens(name), "".join(tokens(name))} & WORDS[f"{what} words"])


def strength(name: str, role: str) -> int:
    """Return how well a name fits a role: 2, a usual name of it; 1, such a word is part of the name; 0, neither."""
    words = tokens(name)
    phrases = {" ".join(words), "".join(words)}
    if role in DATED:
        words = tuple(DATE_ENDINGS.sub("", word) or word for word in words if word not in WORDS["date words"])
    if role == "time":
        phrases |= {" ".join(word for word in words if word not in UNIT_WORDS and word != "in")}
    if role == "id" and words[-1:] in (("id",), ("nr",), ("number",)):
        phrases |= set(words[:-1])
    if role == "event":
        phrases |= {" ".join(word for word in words if word not in ("is", "has", "flag", "indicator", "yn", "bin"))}
    if ({" ".join(words)} | phrases) & WORDS.get(role, frozenset()):
        return 1 if len(name) == 1 and name.lower() not in ("t", "e") else 2  # other letters may be anything
    return 1 if WORDS.get(f"{role} part", frozenset()) & set(words) else 0


def unit_in(name: str) -> Unit | None:
    """Return the unit of time that a name speaks of, if it is one only."""
    units = {UNIT_WORDS[word] for word in tokens(name) if word in UNIT_WORDS}
    return units.pop() if len(units) == 1 else None
