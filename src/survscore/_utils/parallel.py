"""Blocks of rows, and threads to work on them.

numba's own thread pools abort after a fork and when entered from two threads, so kernels only release the lock, and the
blocks are shared out here. Blocks are the same on every machine, so results do not depend on the number of cores.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from threading import Lock, local
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from survscore._config import config

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

CELLS_PER_BLOCK = 1 << 16
MANY_BLOCKS = 64  # at most, since cores queue for the interpreter between blocks
LONG_VECTOR = 1 << 18
PACKING_PAYS = 1 << 12  # values, from which on

Part = TypeVar("Part")
Result = TypeVar("Result")


def row_blocks(n_rows: int, n_columns: int) -> list[slice]:
    """Cut rows into blocks, the same on every machine, so that NumPy's temporaries stay in the processor's cache."""
    size = max(64, CELLS_PER_BLOCK // max(n_columns, 1))
    return [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]


def in_slices(work: Callable[[slice], Result], size: int) -> list[Result]:
    """Let NumPy work on slices of vectors of this size, on all cores where that pays; it releases the lock itself."""
    step = size if size < LONG_VECTOR else max(LONG_VECTOR // 2, -(-size // MANY_BLOCKS))
    starts = range(0, size, step) if size else (0,)
    return each(work, [slice(start, min(start + step, size)) for start in starts], threads=True)


def take(vector: NDArray[Any], positions: NDArray[Any]) -> NDArray[Any]:
    """Return the values at these positions."""
    found = np.empty(positions.size, dtype=vector.dtype)

    def fill(part: slice) -> None:
        np.take(vector, positions[part], out=found[part], mode="clip")  # any other mode copies first

    in_slices(fill, positions.size)
    return found


def concatenate(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return arrays one after the other."""
    ends = np.cumsum([len(part) for part in parts])
    found = np.empty((ends[-1], *parts[0].shape[1:]), dtype=np.result_type(*parts))

    def fill(place: int) -> None:
        found[ends[place] - len(parts[place]) : ends[place]] = parts[place]

    each(fill, range(len(parts)), threads=True)
    return found


def argsort(values: NDArray[Any]) -> NDArray[np.intp]:
    """Return the positions of increasing values, equal ones in the order in which they come.

    A whole number holds each value, rounded down to its leading digits, and its position: sorting these by NumPy's
    vector instructions takes a third of the time of numpy.argsort. What was rounded to the same number is nearly in
    order then.
    """
    low, high = (float(values.min()), float(values.max())) if values.size >= PACKING_PAYS else (0.0, 0.0)
    if not 1e-30 < high - low < np.inf:
        return np.argsort(values, kind="stable")
    n_bits = int(values.size - 1).bit_length()
    keys, scale = np.empty(values.size, dtype=np.int64), 2.0 ** (63 - n_bits) * (1 - 1e-12) / (high - low)

    def pack(rows: slice) -> None:
        digits = np.subtract(values[rows], low, dtype=np.float64)
        np.multiply(digits, scale, out=keys[rows], casting="unsafe")
        keys[rows] <<= n_bits
        keys[rows] |= np.arange(rows.start, rows.stop)

    in_slices(pack, values.size)
    keys.sort()

    def unpack(rows: slice) -> None:
        keys[rows] &= (1 << n_bits) - 1

    in_slices(unpack, values.size)
    order, own = keys.astype(np.intp, copy=False), take(values, keys)
    return order.take(own.argsort(kind="stable")) if np.any(own[1:] < own[:-1]) else order


def each(work: Callable[[Part], Result], parts: Sequence[Part], *, threads: bool = False) -> list[Result]:
    """Return the results of `work` for each part, in order; `work` must release the lock to gain from threads.

    It may itself share out work: threads that are free help, and no others are started.
    """
    n_threads = min(config.n_cores(), len(parts))
    if not threads or n_threads < 2:
        return [work(part) for part in parts]
    turns = _Turns(parts)
    # This thread works too: one that only waited would leave it to chance whether the others get a core each.
    others = [_pool(config.n_cores() - 1).submit(turns.take, work) for _ in range(n_threads - 1)]
    try:
        turns.take(work)
        _wait_for(others)
    except BaseException:  # after an error, or an interrupt, nobody begins with another part
        turns.end()
        with suppress(_Ended):
            _wait_for(others)
        raise
    return [turns.results[position] for position in range(len(parts))]


def _wait_for(others: Sequence[Future[None]]) -> None:
    for other in others:
        if not other.cancel():  # one that waits for a thread has nothing left to do, and threads may wait for it
            other.result()


class _Ended(BaseException):
    """The work of which this is a part was given up."""


class _Turns:
    """Parts that wait for a thread each, and what came of those before them."""

    def __init__(self, parts: Sequence[Any]) -> None:
        self._waiting = iter(enumerate(parts))
        self._one_at_a_time = Lock()
        self._ended = False
        #: Of which work these are a part, in this thread.
        self._whole: _Turns | None = getattr(_here, "turns", None)
        self.results: dict[int, Any] = {}

    @property
    def ended(self) -> bool:
        """Whether nobody waits for what is left."""
        return self._ended or (self._whole is not None and self._whole.ended)

    def end(self) -> None:
        """Leave what nobody has begun with."""
        self._ended = True

    def take(self, work: Callable[[Any], Any]) -> None:
        """Work on one part after the other, until none is left."""
        before, _here.turns = getattr(_here, "turns", None), self
        try:
            while not self._ended:
                if self.ended:
                    raise _Ended
                with self._one_at_a_time:
                    position, part = next(self._waiting, (None, None))
                if position is None:
                    return
                self.results[position] = work(part)
        except BaseException:
            self.end()
            raise
        finally:
            _here.turns = before


#: Whose turns the current thread takes.
_here = local()


@cache
def _pool(n_threads: int) -> ThreadPoolExecutor:
    """Return a pool of threads, started once: starting them takes as long as a small score."""
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(n_threads, thread_name_prefix="survscore")


if hasattr(os, "register_at_fork"):  # a forked process inherits the pool but not its threads, and would wait for ever
    os.register_at_fork(after_in_child=_pool.cache_clear)


# Sums of products over long vectors, in pieces so short that BLAS keeps to one thread: its threads wait for each other
# by running idle, which costs more than it gains where other threads are at work. Pieces also add up more exactly.
CELLS = 1 << 13  # of a vector, or of a matrix that is multiplied by one
PRODUCTS = 1 << 17  # of two matrices


def dot(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Return the sum of the products of two vectors."""
    return float(sum(float(a[i : i + CELLS] @ b[i : i + CELLS]) for i in range(0, a.size, CELLS)))


def cross_products(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sums of the products of some vectors with others: (p, n) and (q, n) give (p, q)."""
    p, q = len(a), len(b)
    width = max(1, min(CELLS // max(p, q, 1), PRODUCTS // max(p * q, 1)))
    found = np.zeros((p, q))
    for i in range(0, a.shape[1], width):
        found += a[:, i : i + width] @ b[:, i : i + width].T
    return found


Value = TypeVar("Value")

if sys.version_info >= (3, 12):
    cached_property = functools.cached_property
else:

    class cached_property(functools.cached_property[Value]):  # noqa: N801
        """What Python 3.12 has under this name."""

        @overload
        def __get__(self, instance: None, owner: type[Any] | None = None) -> Self: ...

        @overload
        def __get__(self, instance: object, owner: type[Any] | None = None) -> Value: ...

        def __get__(self, instance: object, owner: type[Any] | None = None) -> Self | Value:
            if instance is None:
                return self
            value = instance.__dict__[str(self.attrname)] = self.func(instance)
            return value
