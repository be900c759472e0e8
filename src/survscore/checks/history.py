"""Earlier runs, one a line of a JSON Lines file that only grows."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from survscore._validation import InputError, shown
from survscore.checks.runs import TABLES, Row, Run, check_id, checked, plain, same, text
from survscore.io.files import append_line, check_regular, locked

FORM = 2  # of what is stored; a later one may be another
ENDING = ".jsonl"
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


def read_history(path: Path | str) -> History:
    """Read earlier runs.

    Parameters
    ----------
    path : path
        A file ending in .jsonl; where there is none yet, the history is empty.

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
    path = _history_file(path)
    if not path.exists():
        return History()
    with path.open("rb") as file, locked(file, shared=True):
        return _history(path, file.read())


def append_run(path: Path | str, run: Run, *, times: Iterable[float] = ()) -> None:
    """Append a run to a history: its mean scores, the scores at some times, and its recommendations.

    It is appended whole or not at all, also if several processes append at once.

    Parameters
    ----------
    path : path
        A file ending in .jsonl.
    run : Run
        Whose id must not be there yet.
    times : iterable of float
        At which times to keep the scores, too.
    """
    path = _history_file(path)
    check_id(run.id)
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps({"survscore_run": FORM, **_as_line(run, times)}, allow_nan=False).encode() + b"\n"
    with append_line(path, line) as before:
        if any(one.id == run.id for one in _history(path, before).runs):
            raise InputError(f"{path}: there is a run {run.id!r} already; --run-id names this one otherwise")


def _history_file(path: Path | str) -> Path:
    path = Path(path)
    if path.is_dir() or not path.name.lower().endswith(ENDING):
        raise InputError(f"{path}: a history must be a file that ends in {ENDING}, with one run a line")
    if path.exists():
        check_regular(path)
    return path


def _history(path: Path, stored: bytes) -> History:
    runs, notes = [], []
    for number, line in enumerate(stored.split(b"\n"), start=1):
        content = line.strip(b"\0 \t\r")  # a machine that lost its power may leave zeros
        if not content:
            continue
        try:
            said = json.loads(content)
        except (ValueError, RecursionError):
            if not (content.startswith(BEGINS) or BEGINS.startswith(content)):
                raise InputError(f"{path}: line {number} is no run of a history") from None
            notes.append(f"{path}: line {number} is broken, of a run that was killed; it is skipped")
            continue
        try:
            if not isinstance(said, dict) or "survscore_run" not in said:
                raise InputError("is no run of a history")
            if said["survscore_run"] != FORM:
                form = shown(said["survscore_run"])
                raise InputError(f"is of form {form}, which this version of survscore does not know")
            runs.append(_run(said))
        except InputError as error:
            raise InputError(f"{path}: line {number}: {error}") from None
    # by date; those of the same moment stay in their order
    return History(tuple(sorted(runs, key=lambda run: run.date)), tuple(notes))


def _as_line(run: Run, times: Iterable[float]) -> Row:
    """Return what is kept of a run as plain data, which `_run` reads: of the scores by time those at some times."""
    scores, kept = run.tables["scores"], {same((time, time)) for time in times}
    if any(row["from"] < row["to"] for row in scores):  # otherwise one time is all there is
        scores = [row for row in scores if row["from"] < row["to"] or same((row["from"], row["to"])) in kept]
    about = {"id": run.id, "date": run.date, "version": run.version, "settings": run.settings}
    return {**about, **plain({"scores": scores, "recommendations": run.tables["recommendations"]})}


def _run(stored: Any) -> Run:
    id, date, version = (text(name, stored.get(name)) for name in ("id", "date", "version"))
    if not isinstance(stored.get("settings"), dict):
        raise InputError("settings must be a table")
    check_id(id)
    try:
        date = datetime.fromisoformat(date).astimezone(UTC).isoformat()
    except ValueError:
        raise InputError(f"date must be as ISO 8601 writes it, not {shown(date)!r}") from None
    tables = {name: checked(name, name, stored.get(name) or [], None) for name in TABLES}
    return Run(id, date, version, stored["settings"], tables)
