"""The default engine: threads over files, on this machine."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

from survscore._config import config
from survscore.scale.files import FilePart
from survscore.scale.work import Work


class Threads:
    """Works on as many files at once as there are cores."""

    def run(self, work: Work, parts: Sequence[FilePart]) -> Iterator[tuple[FilePart, bytes]]:
        """Yield every file with its result, as they are done."""
        stopped = threading.Event()
        waiting = iter(parts)

        def one(part: FilePart) -> tuple[FilePart, bytes]:
            if stopped.is_set():
                raise RuntimeError("stopped")
            return part, work.run(part)

        with one_blas_thread(), ThreadPoolExecutor(config.n_cores(), thread_name_prefix="survscore") as pool:
            running: set[Future[tuple[FilePart, bytes]]] = set()
            try:
                # a few ahead of those that are read: results that nobody has taken yet are memory
                for part in waiting:
                    running.add(pool.submit(one, part))
                    if len(running) >= 2 * config.n_cores():
                        done, running = wait(running, return_when=FIRST_COMPLETED)
                        yield from (future.result() for future in done)
                while running:
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    yield from (future.result() for future in done)
            finally:
                stopped.set()
                for future in running:
                    future.cancel()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS from starting threads of its own, which wait busily and take cores from ours.

    The limit is the whole process's, and workers of clusters run several tasks in one: the first sets it, and the last
    takes it back.
    """
    from threadpoolctl import threadpool_limits

    with _blas.lock:
        _blas.users += 1
        if _blas.users == 1:
            _blas.limits = threadpool_limits(limits=1, user_api="blas")
    try:
        yield
    finally:
        with _blas.lock:
            _blas.users -= 1
            if _blas.users == 0:
                _blas.limits.restore_original_limits()


class _Blas:
    """Who wants BLAS to keep to one thread."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users = 0
        self.limits: Any = None


_blas = _Blas()
