"""The one runner behind the studies and the atlas: pieces of work in processes, each kept as soon as it is done.

Work that keeps its own results is all that goes on where an interrupted run stopped: what is there already is no job.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from survscore._utils.jobs import Progress, results_of
from survscore.io.ending import end_with_parent


def run(
    work: Callable[..., None], jobs: Mapping[str, tuple[Any, ...]], *, n_done: int, n_jobs: int, progress: Progress
) -> None:
    """Do work for every job.

    Parameters
    ----------
    work : callable
        Of a module, so that other processes find it. Called with a job's arguments; in this process also with
        ``report=``, a function of what is being done.
    jobs : mapping of str to tuple
        Arguments, by what to call each job.
    n_done : int
        How many others were done before.
    n_jobs : int
        Processes; one is this one.
    progress : callable
        Called with (done, total, what).

    Raises
    ------
    ChildProcessError
        If a process was killed.
    """
    total, n_processes = n_done + len(jobs), min(n_jobs, len(jobs))
    if n_processes <= 1:
        for done, (name, given) in enumerate(jobs.items(), n_done):
            work(*given, report=partial(_pass_on, progress, done, total, name))
        progress(total, total, "")
        return
    progress(n_done, total, "starting")
    try:
        with results_of([(_do, os.getpid(), work, given) for given in jobs.values()], n_processes) as finished:
            for done, _ in enumerate(finished, n_done + 1):
                progress(done, total, f"{n_processes} at once")
    except BrokenProcessPool:
        raise ChildProcessError(
            "a process was killed, perhaps for its memory; what is finished is kept: try again with fewer --jobs"
        ) from None


def _do(parent: int, work: Callable[..., None], given: tuple[Any, ...]) -> None:
    end_with_parent(parent)
    work(*given)


def _pass_on(progress: Progress, done: int, total: int, name: str, what: str) -> None:
    progress(done, total, f"{name}: {what}")


@contextmanager
def one_thread() -> Iterator[None]:
    """Let libraries use one thread: the last digit depends on their number, and other cores have other jobs."""
    import torch
    from threadpoolctl import threadpool_limits

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(before)


def versions_of(packages: Iterable[str]) -> dict[str, str]:
    """Return the version of each package, or that it is not installed."""
    found = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found
