"""What a person at a terminal sees besides results: progress, notes, errors of one line."""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click


def check_folder(folder: Path) -> None:
    """Find out now whether results can be written there, not when they are ready."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        pass


@contextmanager
def progress(total: int | None) -> Iterator[Callable[[int, int, str], None]]:
    """Give a function (done, total, what is being done) that shows a bar on a terminal, and does nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda done, total, what: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = [SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()]
    if total is not None:
        columns[1:1] = [BarColumn(), MofNCompleteColumn()]
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda done, total, what: bar.update(task, completed=done, total=total or None, description=what)


@contextmanager
def noted() -> Iterator[None]:
    """Print warnings as notes of one line each, on standard error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for text in dict.fromkeys(" ".join(str(one.message).split()) for one in caught):
        click.echo(f"survscore: note: {text}", err=True)
