"""Kaggle's raw files: where they are, what they must look like, and how they get into a database."""

from __future__ import annotations

import errno
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from survscore._validation import InputError

#: Columns and types of the raw files; dates are written yyyymmdd.
COLUMNS: dict[str, dict[str, str]] = {
    "transactions": {
        "msno": "VARCHAR",
        "payment_method_id": "INTEGER",
        "payment_plan_days": "INTEGER",
        "plan_list_price": "INTEGER",
        "actual_amount_paid": "INTEGER",
        "is_auto_renew": "INTEGER",
        "transaction_date": "INTEGER",
        "membership_expire_date": "INTEGER",
        "is_cancel": "INTEGER",
    },
    "members_v3": {
        "msno": "VARCHAR",
        "city": "INTEGER",
        "bd": "INTEGER",
        "gender": "VARCHAR",
        "registered_via": "INTEGER",
        "registration_init_time": "INTEGER",
    },
    "train": {"msno": "VARCHAR", "is_churn": "INTEGER"},
}
DATES = {"transaction_date", "membership_expire_date", "registration_init_time"}
NOT_NEGATIVE = {"payment_plan_days", "plan_list_price", "actual_amount_paid"}
ZERO_OR_ONE = {"is_auto_renew", "is_cancel", "is_churn"}
MAY_BE_MISSING = {"gender", "city", "bd", "registered_via", "registration_init_time"}
FORMS = (".csv", ".csv.gz", ".csv.7z")


def candidates(folder: Path) -> list[Path]:
    """Return all paths at which raw files could be."""
    return [folder / f"{name}{form}" for name in COLUMNS for form in FORMS]


def find(folder: Path) -> dict[str, Path]:
    """Return the paths of the raw files, in whichever form each of them is there."""
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; it should hold Kaggle's files")
    found = {}
    for name in COLUMNS:
        there = [folder / f"{name}{form}" for form in FORMS if (folder / f"{name}{form}").is_file()]
        if not there:
            raise InputError(f"{folder} holds no {name}.csv, .csv.gz or .csv.7z")
        found[name] = there[0]
    return found


def load(database: Any, name: str, path: Path, scratch: Path) -> int:
    """Read a raw file into a table of the same name, rows in the file's order, and return their number.

    An archive is unpacked into the folder `scratch`.
    """
    import duckdb

    source = _unpacked(path, name, scratch) if path.name.endswith(".7z") else path
    _check_header(source, path, name)
    types = ", ".join(f"'{column}': '{kind}'" for column, kind in COLUMNS[name].items())
    # names of folders such as is_churn=1 are no columns
    options = "hive_partitioning = false, header = true, auto_detect = false, delim = ',', quote = '\"'"
    options += f", columns = {{{types}}}"
    no_pattern = re.sub(r"([*?\[])", r"[\1]", str(source.absolute()))  # which other files would match, too
    try:
        database.execute(f"CREATE TABLE {name} AS SELECT * FROM read_csv(?, {options})", [no_pattern])
    except duckdb.OutOfMemoryException:
        raise
    except duckdb.Error as error:
        if "No space left" in str(error):
            raise OSError(str(error).splitlines()[0]) from None
        raise InputError(f"{path}: {_first_fault(str(error))}") from None
    if source is not path:
        source.unlink()
    _check_values(database, name, path)
    (n_rows,) = database.execute(f"SELECT count(*) FROM {name}").fetchone()
    if n_rows == 0:
        raise InputError(f"{path} holds no rows")
    return int(n_rows)


def _check_header(source: Path, path: Path, name: str) -> None:
    import gzip

    opener: Callable[..., Any] = gzip.open if source.name.endswith(".gz") else open
    try:
        with opener(source, "rt", encoding="utf-8", newline="") as file:
            header = [column.strip('"') for column in file.readline(10_000).strip().lstrip("\ufeff").split(",")]
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise InputError(f"{path} can't be read: {error}") from None
    if header != list(COLUMNS[name]):
        raise InputError(f"{path}, row 1: the columns must be {','.join(COLUMNS[name])}, not {','.join(header)[:200]}")


def _check_values(database: Any, name: str, path: Path) -> None:
    """Refuse missing values where there may be none, and values that can't be; the first row is named."""
    for column in COLUMNS[name]:
        rules = [] if column in MAY_BE_MISSING else [(f"{column} IS NULL", "is missing")]
        if column in DATES:
            no_date = f"{column} < 10000000 OR try_strptime({column}::VARCHAR, '%Y%m%d') IS NULL"
            rules.append((f"{column} IS NOT NULL AND ({no_date})", "is no date written yyyymmdd"))
        if column in NOT_NEGATIVE:
            rules.append((f"{column} < 0", "is negative"))
        if column in ZERO_OR_ONE:
            rules.append((f"{column} NOT IN (0, 1)", "is neither 0 nor 1"))
        if column == "msno":
            rules.append(("msno <> trim(msno)", "has spaces around it"))
        for broken, what in rules:
            count, first, value = database.execute(
                f"SELECT count(*), min(rowid), arg_min({column}, rowid) FROM {name} WHERE {broken}"
            ).fetchone()
            if count:
                shown = "" if value is None else f" ({value})"
                raise InputError(f"{path}, row {first + 2}: {column} {what}{shown}; {count} rows in all")


def _unpacked(path: Path, name: str, scratch: Path) -> Path:
    """Unpack the one file that an archive must hold, under a name of our own."""
    try:
        import py7zr
    except ImportError:
        raise ImportError("archives (.7z) need py7zr: pip install 'survscore[data]'") from None
    wanted = f"{name}.csv"
    try:
        with py7zr.SevenZipFile(path) as archive:
            inside = [entry for entry in archive.getnames() if Path(entry).name == wanted]
            if not inside:
                raise InputError(f"{path} holds {', '.join(archive.getnames()) or 'nothing'}, but not {wanted}")
            size = sum(entry.uncompressed for entry in archive.list() if entry.filename == inside[0])
            free = shutil.disk_usage(scratch).free
            if size > free:
                raise InputError(
                    f"{path}: {inside[0]} in it has {size / 1e9:.1f} GB, and the disk has room for {free / 1e9:.1f} GB"
                )
            archive.extract(path=scratch, targets=inside[:1])
    except InputError:
        raise
    except Exception as error:  # py7zr has a dozen, and passes on those of its decoders
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EACCES):
            raise
        raise InputError(f"{path} can't be unpacked, it is damaged or no archive ({type(error).__name__})") from None
    source: Path = scratch / inside[0]
    if not source.resolve().is_relative_to(scratch.resolve()):
        raise InputError(f"{path} names a file outside its own folder: {inside[0]}")
    return source


def _first_fault(message: str) -> str:
    """Return the row and the reason from DuckDB's message about a CSV file, in one line."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    row = re.search(r"Line:? (\d+)", message)
    known = (
        "Error when converting",
        "Expected Number of Columns",
        "Value with unterminated quote",
        "Could not convert",
    )
    reason = next((line for line in lines if line.startswith(known)), lines[0])
    return f"row {row.group(1)}: {reason}" if row else lines[0]
