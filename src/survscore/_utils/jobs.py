"""Long work: calls that run side by side in processes, and reports of their progress."""

from __future__ import annotations

import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from survscore._validation import InputError


@contextmanager
def results_of(calls: Iterable[tuple[Any, ...]], n_jobs: int | None) -> Iterator[Iterator[Any]]:
    """Give the results of calls, each a function and its arguments, in their order as they come.

    What is under way is given up if the block is left early. Without joblib, calls are made one after the other.
    """
    try:
        from joblib import Parallel, delayed
    except ImportError:
        if n_jobs not in (None, 1):
            raise InputError("n_jobs needs joblib: pip install joblib") from None
        yield (work(*given) for work, *given in calls)
        return
    # joblib's process that watches over the others has its say on semaphores when all are ended by a signal
    silenced = ",".join(filter(None, ("ignore:resource_tracker:UserWarning", os.environ.get("PYTHONWARNINGS"))))
    os.environ["PYTHONWARNINGS"] = silenced
    with _deaf_to_interrupts():
        finished = Parallel(n_jobs=n_jobs, return_as="generator")(delayed(work)(*given) for work, *given in calls)
    try:
        yield finished
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # joblib counts what it cancels, which may hide why
            finished.close()


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Let processes that are started here leave Ctrl-C, which a terminal sends to all, to the one that starts them."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before is None:
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # which processes inherit; a mask, joblib would take back
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


#: Called with (done, total, what is being done).
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
