"""Earlier runs, in files that only grow.

A ``.jsonl`` file has a line for every run; a folder has a Parquet file for every run; a ``.parquet`` file has all of
them. Whichever it is, a run is appended whole or not at all, also if several processes append at once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from survscore._validation import InputError, shown
from survscore.checks.results import run_of_rows
from survscore.checks.runs import COLUMNS, Run, check_id, rows_of
from survscore.io.files import append_line, check_regular, created_whole, locked
from survscore.io.tables import PARQUET_ENDINGS

if TYPE_CHECKING:
    import pandas as pd

FORM = 1  # of what is stored; a later one may be another
LINES = (".jsonl", ".ndjson")
STORED = ("scores", "means")
BEGINS = b'{"survscore_run": '


@dataclass(frozen=True, eq=False)
class History:
    """The runs of a history.

    Attributes
    ----------
    runs : tuple of Run
        The oldest first.
    notes : tuple of str
        What could not be read, such as the broken line of a run that was killed.
    """

    runs: tuple[Run, ...] = ()
    notes: tuple[str, ...] = ()


def check_history(path: Path) -> None:
    """Raise unless a history can be there."""
    if _kind(path) == "folder":
        if not path.is_dir() and (path.exists() or path.suffix):
            raise InputError(f"{path}: is neither a folder nor called .jsonl or .parquet, which a history is")
    elif path.is_dir():
        raise InputError(f"{path}: is a folder, but called like a file")


def read_history(path: Path | str) -> History:
    """Read earlier runs.

    Parameters
    ----------
    path : path
        A file ending in .jsonl or .parquet, or a folder; where there is nothing yet, the history is empty.

    Returns
    -------
    History

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from survscore.checks import read_history
    >>> read_history(pathlib.Path(tempfile.mkdtemp()) / "history.jsonl").runs
    ()
    """
    path = Path(path)
    check_history(path)
    if not path.exists():
        return History()
    if _kind(path) != "folder":
        check_regular(path)
    match _kind(path):
        case "lines":
            runs, notes = _read_lines(path)
        case "file":
            runs, notes = _read_parquet(path), []
        case _:
            runs, notes = _read_folder(path)
    # by date; those of the same moment stay in their order
    return History(tuple(sorted(runs, key=lambda run: run.date)), tuple(notes))


def append_run(path: Path | str, run: Run, *, times: Iterable[float] = ()) -> None:
    """Append a run to a history: its mean scores, and the scores at some times.

    Parameters
    ----------
    path : path
        See `read_history`.
    run : Run
        Whose id must not be there yet.
    times : iterable of float
        At which times to keep the scores, too.
    """
    path = Path(path)
    check_history(path)
    check_id(run.id)
    kept = run.for_history(times)
    path.parent.mkdir(parents=True, exist_ok=True)
    match _kind(path):
        case "lines":
            line = _as_line(kept)
            with append_line(path, line) as written:
                _refuse_again(path, run.id, _runs_in(path, written)[0])
        case "file":
            with locked(path.with_name(f".{path.name}.lock")):  # the file itself is replaced
                earlier = _read_parquet(path) if path.exists() else []
                _refuse_again(path, run.id, earlier)
                _write_parquet(path, [*earlier, kept])
        case _:
            path.mkdir(exist_ok=True)
            _refuse_again(path, run.id, _read_folder(path)[0])
            try:
                with created_whole(path / f"{run.id}.parquet") as temporary:
                    _write_parquet(temporary, [kept])
            except FileExistsError:
                raise _again(path, run.id) from None


def _kind(path: Path) -> str:
    name = path.name.lower()
    if name.endswith(LINES):
        return "lines"
    if name.endswith(PARQUET_ENDINGS):
        return "file"
    return "folder"


def _again(path: Path, id: str) -> InputError:
    return InputError(f"{path}: there is a run {id!r} already; --run-id names this one otherwise")


def _refuse_again(path: Path, id: str, runs: Sequence[Run]) -> None:
    if any(run.id == id for run in runs):
        raise _again(path, id)


def _as_line(run: Run) -> bytes:
    said = {"survscore_run": FORM, "id": run.id, "date": run.date, "version": run.version}
    said |= {"segment_columns": list(run.segment_columns), "settings": dict(run.settings)}
    said |= {name: rows_of(run.tables[name]) for name in STORED}
    return json.dumps(said, allow_nan=False).encode() + b"\n"


def _read_lines(path: Path) -> tuple[list[Run], list[str]]:
    with path.open("rb") as file, locked(file, shared=True):
        content = file.read()
    return _runs_in(path, content)


def _runs_in(path: Path, content: bytes) -> tuple[list[Run], list[str]]:
    runs, notes = [], []
    for number, line in enumerate(content.split(b"\n"), start=1):
        text = line.strip(b"\0 \t\r")  # a machine that lost its power may leave zeros
        if not text:
            continue
        try:
            said = json.loads(text)
        except (ValueError, RecursionError):
            if not (text.startswith(BEGINS) or BEGINS.startswith(text)):
                raise InputError(f"{path}: line {number} is no run of a history") from None
            notes.append(f"{path}: line {number} is broken, of a run that was killed; it is skipped")
            continue
        try:
            runs.append(_run(said))
        except InputError as error:
            raise InputError(f"{path}: line {number}: {error}") from None
    return runs, notes


def _run(said: Any) -> Run:
    if not isinstance(said, dict) or "survscore_run" not in said:
        raise InputError("is no run of a history")
    if said["survscore_run"] != FORM:
        raise InputError(f"is of form {shown(said['survscore_run'])}, which this version of survscore does not know")
    return run_of_rows(said)


def _read_folder(path: Path) -> tuple[list[Run], list[str]]:
    runs, notes = [], []
    for file in sorted(path.iterdir()):
        if file.name.startswith(".") or not file.name.lower().endswith(PARQUET_ENDINGS):
            continue
        if file.stat().st_size == 0:
            notes.append(f"{file}: is empty, of a run that was killed; it is skipped")
        else:
            runs += _read_parquet(file)
    return runs, notes


def _read_parquet(path: Path) -> list[Run]:
    from survscore.io.tables import open_table

    file = open_table(path)
    needed = ("run", "date", "version", "settings", "segments", "table")
    absent = [name for name in needed if name not in file.names]
    if absent:
        raise InputError(f"{path}: is no history: it has no column {absent[0]!r}")
    frame = file.read(file.names).to_pandas()
    runs = []
    for id, rows in frame.groupby("run", sort=False):
        first = rows.iloc[0]
        try:
            columns = json.loads(first["segments"])
            said = {"id": id, "date": first["date"], "version": first["version"], "segment_columns": columns}
            said["settings"] = json.loads(first["settings"])
            for name in STORED:
                part = rows[rows["table"] == name]
                wanted = [column for column in (*columns, *COLUMNS[name]) if column in part]
                said[name] = rows_of(part[wanted])
            runs.append(run_of_rows(said))
        except (InputError, ValueError, TypeError) as error:
            raise InputError(f"{path}: run {shown(id)!r}: {shown(error, most=200)}") from None
    return runs


def _write_parquet(path: Path, runs: Sequence[Run]) -> None:
    """Write runs as one tidy table."""
    from survscore.io.writing import write_frame

    write_frame(path, _as_frame(runs), settings={"survscore_history": FORM})


def _as_frame(runs: Sequence[Run]) -> pd.DataFrame:
    import pandas as pd

    parts: list[dict[str, Any]] = []
    for run in runs:
        said = {
            "run": run.id, "date": run.date, "version": run.version,
            "settings": json.dumps(run.settings), "segments": json.dumps(run.segment_columns),
        }  # fmt: skip
        parts += [{**said, "table": name, **row} for name in STORED for row in rows_of(run.tables[name])]
    numbers = ("time", "from", "to", "score", "se", "lower", "upper", "n_events")
    frame = pd.DataFrame(parts)
    return frame.assign(**{column: frame[column].astype(float) for column in numbers if column in frame})
