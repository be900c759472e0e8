"""Earlier runs, one a line of a JSON Lines file that only grows."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from survscore._validation import InputError, shown
from survscore.checks.runs import Run, as_line, check_id, run_of_line
from survscore.io.files import append_line, check_regular, locked

FORM = 1  # of what is stored; a later one may be another
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
    line = json.dumps({"survscore_run": FORM, **as_line(run.for_history(times))}, allow_nan=False).encode() + b"\n"
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


def _history(path: Path, content: bytes) -> History:
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
            if not isinstance(said, dict) or "survscore_run" not in said:
                raise InputError("is no run of a history")
            if said["survscore_run"] != FORM:
                form = shown(said["survscore_run"])
                raise InputError(f"is of form {form}, which this version of survscore does not know")
            runs.append(run_of_line(said))
        except InputError as error:
            raise InputError(f"{path}: line {number}: {error}") from None
    # by date; those of the same moment stay in their order
    return History(tuple(sorted(runs, key=lambda run: run.date)), tuple(notes))
