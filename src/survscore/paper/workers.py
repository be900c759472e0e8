"""Work in processes of their own, which end with the one that started them, however that ends."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import wait
from typing import Any, cast

from survscore.io.ending import end_with_parent, ended_by_signals
from survscore.io.temporary import uninterrupted

Job = tuple[Any, ...]


def in_processes(work: Callable[..., None], jobs: Sequence[Job], n: int) -> Iterator[None]:
    """Do work for every job in up to `n` processes, and yield whenever one is done.

    Parameters
    ----------
    work : callable
        Of a module, so that other processes find it.
    jobs : sequence of tuple
        Its arguments.
    n : int
        How many processes at most.

    Raises
    ------
    ChildProcessError
        If a process was killed.
    """
    processes: list[Any] = []
    busy: list[Any] = []
    waiting = iter(jobs)
    # fresh processes, since a fork of one with torch's and our threads may hang
    context = get_context("spawn")
    try:
        for _, job in zip(range(n), waiting, strict=False):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(work, theirs), daemon=True)
            with uninterrupted(), _interrupts_held_back():
                process.start()
                processes.append(process)
            theirs.close()  # so that the pipe ends with the process
            ours.send(job)
            busy.append(ours)
        while busy:
            for connection in cast("list[Any]", wait(busy)):
                error = _received(connection)
                if error is not None:
                    raise error
                following = next(waiting, None)
                if following is None:
                    busy.remove(connection)
                    connection.close()
                else:
                    connection.send(following)
                yield
        for process in processes:
            process.join()
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.join()


def _received(connection: Any) -> Exception | None:
    try:
        error: Exception | None = connection.recv()
    except (EOFError, ConnectionResetError):
        raise ChildProcessError(
            "a process was killed, perhaps for its memory; what is finished is kept: try again with fewer --jobs"
        ) from None
    return error


def _serve(work: Callable[..., None], connection: Any) -> None:
    """Do jobs until there are no more."""
    end_with_parent()
    with ended_by_signals():
        while True:
            try:
                job = connection.recv()
            except EOFError:
                return
            try:
                work(*job)
            except Exception as error:
                connection.send(error)
            else:
                connection.send(None)


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Start processes that Ctrl-C, which a terminal sends to all, does not reach: who started them ends them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing.resource_tracker import ensure_running

    ensure_running()  # it would be started with the first process, and let interrupts through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
