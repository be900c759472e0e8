"""What a person at a terminal sees besides results: progress, notes, errors of one line."""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from survscore._utils.jobs import Progress, silent
from survscore._validation import InputError, shown
from survscore.io.files import check_regular, replaceable

LONGEST_LINE = 1000
# The library speaks to people who write Python; at the command line the same advice has other names.
IN_OPTIONS = {
    "late_starts='drop' leaves": "--drop-late-starts leaves",
    "from_dates left out": "left out",
    "monotone='keep' or 'enforce' takes": "--monotone keep or enforce takes",
    "predicts='event' takes": "--predicts event takes",
    "predicts='survival' takes": "--predicts survival takes",
    "percent=True takes": "--percent takes",
    "transposed=True takes": "--transposed takes",
    "SurvivalCurves.from_event_probabilities takes the former, SurvivalCurves the latter": (
        "--predicts event takes the former, --predicts survival the latter"
    ),
    "predictions_unit needs unit,": "--predictions-unit needs --unit,",
    "predictions_unit=": "--predictions-unit=",
    "predictions_unit (": "--predictions-unit (",
    "reason= and event_reasons= take other words, causes= names": (
        "--reason and --event-reasons take other words, --causes names"
    ),
    "say which one scores are of (cause=, or y.for_cause)": "--cause says which one scores are of",
    "causes= says which": "--causes says which",
    "causes= gives them": "--causes gives them",
    "causes names those in event; with reason=, event_reasons and competing_reasons name": (
        "--causes names those in --event; with --reason, --event-reasons and --competing-reasons name"
    ),
    "cause= says which": "--cause says which",
    "name their column as end": "name their column as --end",
    "reason needs event_reasons": "--reason needs --event-reasons",
    "what reasons mean needs reason=,": "what reasons mean needs --reason,",
    "in event_reasons, censored_reasons (": "in --event-reasons, --censored-reasons (",
    "or competing_reasons (it": "or --competing-reasons (it",
    "date_format and origin both": "--date-format and --origin both",
    "for yyyymmdd use pandas.to_datetime(..., format='%Y%m%d')": (
        "--date-format %Y%m%d takes yyyymmdd, --date-format decimal-year takes 2017.5, --origin takes numbers of days"
    ),
    "(Outcomes.from_dates derives it from the cut-off date, and a structured array carries it as a third field: "
    "to_structured(censoring_time=True))": "(--cutoff derives it from dates)",
    "(Outcomes.from_dates derives it)": "(--cutoff derives it from dates)",
    "Outcomes.from_dates": "--cutoff",
    "IPCW(max_weight=1)": "--weighting ipcw --cap 1",
    "IPCW()": "'ipcw'",
    "dropout='kaplan-meier'": "--dropout kaplan-meier",
    "dropout='refuse'": "--dropout refuse",
    "dropout: the given outcomes need": "--train: these outcomes need",
    "dropout: no individual dropped out in the given outcomes": "--train: no individual dropped out in these outcomes",
    "max_weight must be": "--cap must be",
    "a max_weight would": "a --cap would",
    "allow extra ids to leave them out": "--allow-extra leaves them out",
    "name the column of ids, or match rows by their order": "--id names the column, --by-order goes by rows",
    "give the score `times` that cover the range": "--horizons must cover the range",
    "lower and upper must satisfy": "--range must satisfy",
    "give the data cut-off as cutoff": "give the data cut-off as --cutoff",
    "in the file's metadata, or given": "in the file's metadata, or by --grid",
    "memory_limit of": "--memory-limit of",
    "memory_limit must be": "--memory-limit must be",
    "or raise memory_limit": "or raise --memory-limit",
    "storage_options": "--storage-option",
    "or say format=": "or say --format",
    "or say null=False": "or say --null none",
    "np.clip the predictions": "cut the predictions at 0 and 1",
    "score several `times`": "score several --horizons",
    "groups= is for": "--groups is for",
    "(times= or horizons=)": "(--horizons or --horizons)",
    "(interpolation=)": "(--interpolation)",
    "overwrite=True replaces": "--force replaces",
    "by= gives scores": "--by gives scores",
    "; the table `undefined` has all": "",
    "of `groups`": "of --groups",
}


def one_line(message: object) -> str:
    """Return a message on one line, in the words of the command line, without control characters."""
    text = " ".join(str(message).split())
    for python, option in IN_OPTIONS.items():
        text = text.replace(python, option)
    return shown(text, most=LONGEST_LINE)


def say(text: str) -> None:
    """Print a line of which users have named parts."""
    click.echo(shown(text, most=LONGEST_LINE))


def check_folder(folder: Path) -> None:
    """Find out now whether results can be written there, not when they are ready."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: is a file, not a folder")
    check_parent(folder / "anything")


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


def check_parent(path: Path) -> None:
    """Raise unless a file could be made there, in the next folder above that exists; nothing is left behind."""
    there = next(folder for folder in path.absolute().parents if folder.exists())
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise InputError(f"{path}: can't be written: {error.strerror}") from None


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
