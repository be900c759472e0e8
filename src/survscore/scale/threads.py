"""The default engine: threads over files, on this machine."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager

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

        n_threads = config.n_cores()
        # each works on a file of its own: nothing within one file is shared out any further
        with (
            _one_blas_thread(),
            config.using(threads=1),
            ThreadPoolExecutor(n_threads, thread_name_prefix="survscore") as pool,
        ):
            running: set[Future[tuple[FilePart, bytes]]] = set()
            try:
                # a few ahead of those that are read: results that nobody has taken yet are memory
                for part in waiting:
                    running.add(pool.submit(one, part))
                    if len(running) >= 2 * n_threads:
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
def _one_blas_thread() -> Iterator[None]:
    """Keep BLAS from starting threads of its own, which wait busily and take cores from ours."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1, user_api="blas"):
        yield
