"""Blocks of rows, and threads to work on them.

numba's own thread pools abort after a fork and when entered from two threads, so kernels only release the lock, and the
blocks are shared out here. Blocks are the same on every machine, so results do not depend on the number of cores.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, TypeVar, cast

from survscore._config import config

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

NUMPY_CELLS_PER_BLOCK = 1 << 16  # NumPy's temporaries stay in the processor's cache
COMPILED_CELLS_PER_BLOCK = 1 << 20
COMPILED_BLOCKS = 16  # at least, so that all cores have work
MANY_BLOCKS = 64  # at most, since cores queue for the interpreter between blocks; of large data there are more,
MOST_CELLS_PER_BLOCK = 1 << 25  # so that an interrupt need not wait

Part = TypeVar("Part")
Result = TypeVar("Result")


def row_blocks(n_rows: int, n_columns: int, *, compiled: bool, at_most: int | None = None) -> list[slice]:
    """Cut rows into blocks, the same on every machine: small for NumPy, as many as can be shared out for threads."""
    if compiled:
        cells = max(n_columns, 1)
        size = min(-(-n_rows // COMPILED_BLOCKS), COMPILED_CELLS_PER_BLOCK // cells)
        size = max(size, min(-(-n_rows // MANY_BLOCKS), MOST_CELLS_PER_BLOCK // cells))
    else:
        size = NUMPY_CELLS_PER_BLOCK // max(n_columns, 1)
    size = max(64, size if at_most is None else min(size, at_most))
    return [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]


def each(work: Callable[[Part], Result], parts: Sequence[Part], *, threads: bool = False) -> list[Result]:
    """Return the results of `work` for each part, in order; `work` must release the lock to gain from threads."""
    n_threads = min(config.n_cores(), len(parts))
    if not threads or n_threads < 2:
        return [work(part) for part in parts]
    waiting = iter(enumerate(parts))
    one_at_a_time = Lock()
    results: dict[int, Result] = {}

    def take_turns() -> None:
        while True:
            with one_at_a_time:
                position, part = next(waiting, (None, None))
            if position is None:
                return
            results[position] = work(cast("Part", part))

    # This thread works too: one that only waited would leave it to chance whether the others get a core each.
    others = [_pool(config.n_cores()).submit(take_turns) for _ in range(n_threads - 1)]
    try:
        take_turns()
    finally:
        for other in others:
            if not other.cancel():  # one that waits for a thread has nothing left to do, and threads may wait for it
                other.result()
    return [results[position] for position in range(len(parts))]


@cache
def _pool(n_threads: int) -> ThreadPoolExecutor:
    """Return a pool of threads, started once: starting them takes as long as a small score."""
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(n_threads, thread_name_prefix="survscore")


if hasattr(os, "register_at_fork"):  # a forked process inherits the pool but not its threads, and would wait for ever
    os.register_at_fork(after_in_child=_pool.cache_clear)
