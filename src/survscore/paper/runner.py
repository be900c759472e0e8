"""The one runner behind the studies and the atlas: jobs in processes, each keeping its result once it is done.

A run that was interrupted goes on where it stopped, since what has a result is no job.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from survscore._utils.jobs import Progress, results_of
from survscore.io.ending import end_with_parent


def run(
    work: Callable[..., None],
    jobs: Mapping[str, tuple[Any, ...]],
    *,
    kept: Callable[..., bool],
    n_jobs: int,
    progress: Progress,
) -> None:
    """Do work for every job that has no result yet, in at most `n_jobs` processes; one is this one.

    `work`, a function of a module so that other processes find it, is called with the arguments of each job, and in
    this process with ``report=``, a function of what is being done. `kept` returns from the same arguments whether
    there is a result; it raises if that can't be used, which is better known now than after hours. Raises
    ChildProcessError if a process was killed.
    """
    missing = {name: given for name, given in jobs.items() if not kept(*given)}
    total, n_done, n_processes = len(jobs), len(jobs) - len(missing), min(n_jobs, len(missing))
    if n_processes <= 1:
        for done, (name, given) in enumerate(missing.items(), n_done):
            work(*given, report=lambda what, done=done, name=name: progress(done, total, f"{name}: {what}"))
        progress(total, total, "")
        return
    progress(n_done, total, "starting")
    try:
        with results_of(
            [(_in_process, os.getpid(), work, given) for given in missing.values()], n_processes
        ) as finished:
            for done, _ in enumerate(finished, n_done + 1):
                progress(done, total, f"{n_processes} at once")
    except BrokenProcessPool:
        raise ChildProcessError(
            "a process was killed, perhaps for its memory; what is finished is kept: try again with fewer --jobs"
        ) from None


def _in_process(parent: int, work: Callable[..., None], given: tuple[Any, ...]) -> None:
    end_with_parent(parent)
    work(*given)


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
    versions = {}
    for package in packages:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "not installed"
    return versions
