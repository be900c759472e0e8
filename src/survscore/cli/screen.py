"""What a person at a terminal sees besides results: progress, notes, errors of one line."""

from __future__ import annotations

import re
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import click

from survscore._utils.jobs import Progress, silent
from survscore._validation import InputError, shown
from survscore.io.files import check_regular, replaceable

LONGEST_LINE = 1000
# Messages name arguments and other Python in backticks; what is an option here is printed as such.
CODE = re.compile(r"`([^`]+)`")
ARGUMENT = re.compile(r"(?P<name>\w+)(=(?P<value>'[^']*'|\w*))?")
# What has another name here than its option, and Python that stands for an option.
OTHER_NAMES = {
    "by": "--by", "groups": "--groups", "horizons": "--horizons", "id": "--id", "lower": "--range START",
    "max_weight": "--cap", "storage_options": "--storage-option", "times": "--horizons", "upper": "STOP",
    "weighting": "--weighting", "null": "--null", "format": "--format", "unit": "--unit",
}  # fmt: skip
OTHER_CODE = {
    "times or horizons": "--horizons",
    "late_starts='drop'": "--drop-late-starts",
    "dropout=Outcomes": "--train",
    "overwrite=True": "--force",
    "null=False": "--null none",
    "from_event_probabilities": "--predicts event",
    "SurvivalCurves": "--predicts survival",
    "Outcomes.from_dates": "--cutoff",
    "IPCW()": "'ipcw'",
    "Administrative()": "'administrative'",
    "IPCW(max_weight=1)": "--weighting ipcw --cap 1",
    "pandas.to_datetime(..., format='%Y%m%d')": "--date-format %Y%m%d, for 2017.5 --date-format decimal-year, and for "
    "numbers of days --origin",
}


@cache
def _options() -> dict[str, str]:
    """Return the options of all commands by the name of their argument."""
    from survscore.cli import cli

    named = [(one.name, max(one.opts, key=len)) for command in cli.commands.values() for one in command.params
             if isinstance(one, click.Option)]  # fmt: skip
    return {str(name): option for name, option in named} | OTHER_NAMES


def as_option(code: str) -> str:
    """Return the option that some Python stands for: ``--percent`` for ``percent=True``; other code as it is.

    Examples
    --------
    >>> [as_option(code) for code in ("predicts='event'", "percent=True", "cause=", "max_weight", "y.until(end)")]
    ['--predicts event', '--percent', '--cause', '--cap', 'y.until(end)']
    """
    if code in OTHER_CODE:
        return OTHER_CODE[code]
    argument = ARGUMENT.fullmatch(code)
    option = None if argument is None else _options().get(argument["name"])
    if argument is None or option is None:
        return code
    value = (argument["value"] or "").strip("'")
    return f"{option} {value}" if value not in ("", "True") else option


def one_line(message: object) -> str:
    """Return a message on one line, in the words of the command line, without control characters."""
    text = CODE.sub(lambda found: as_option(found[1]), " ".join(str(message).split()))
    return shown(text, most=LONGEST_LINE)


def say(text: str) -> None:
    """Print a line of which users have named parts."""
    click.echo(shown(text, most=LONGEST_LINE))


def check_folder(folder: Path) -> None:
    """Find out now whether results can be written there, not when they are ready."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: is a file, not a folder")
    check_parent(folder / "anything", folder)


def check_target(path: Path, endings: tuple[str, ...], inputs: list[Path]) -> None:
    """Find out now whether a file can be written, and that it is not one that is read."""
    if not path.name.lower().endswith(endings):
        raise InputError(f"{path}: must end in {' or '.join(endings)}")
    target = replaceable(path)
    for given in inputs:
        if given.exists():
            check_regular(given)
    if target in [given.resolve() for given in inputs if given.exists()]:
        raise InputError(f"{path}: is read and can't be written too")
    check_parent(path)


def check_parent(path: Path, told: Path | None = None) -> None:
    """Raise unless a file could be made there, in the next folder above that exists; nothing is left behind."""
    there = next(folder for folder in path.absolute().parents if folder.exists())
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise InputError(f"{told or path}: can't be written: {error.strerror}") from None


@contextmanager
def progress(total: int | None) -> Iterator[Progress]:
    """Give a function (done, total, what is being done) that shows a bar on a terminal, and does nothing elsewhere."""
    if not sys.stderr.isatty():
        yield silent
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = [SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()]
    if total is not None:
        columns[1:1] = [BarColumn(), MofNCompleteColumn()]
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda done, total, what: bar.update(task, completed=done, total=total or None, description=shown(what))


@contextmanager
def noted() -> Iterator[None]:
    """Print the library's warnings as notes of one line each, on standard error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for text in dict.fromkeys(one_line(one.message) for one in caught if issubclass(one.category, UserWarning)):
        click.echo(f"survscore: note: {text}", err=True)
