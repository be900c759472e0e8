"""How long work tells where it stands."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

#: Is told (done, total, what is being done).
Progress: TypeAlias = Callable[[int, int, str], None]


def silent(done: int, total: int, what: str) -> None:
    """Tell nobody."""


@contextmanager
def telling(progress: Progress | bool | None) -> Iterator[Progress]:
    """Give whom to tell: the user's own function, or a bar where one is wanted, by default on a terminal."""
    if callable(progress):
        yield progress
        return
    if not (sys.stderr.isatty() if progress is None else progress):
        yield silent
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    columns = (MofNCompleteColumn(), BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Bar(*columns, console=console, transient=console.is_terminal) as bar:
        task = bar.add_task("", total=None)

        def tell(done: int, total: int, what: str) -> None:
            bar.update(task, completed=done, total=total, description=what)

        yield tell
