"""The default engine: threads over files, on this machine."""

from __future__ import annotations

import sys
import threading
import time as clock
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from survscore._config import config
from survscore.io.tables import arrow
from survscore.scale.files import BadFileError, FilePart
from survscore.scale.work import StoppedError, Work, merged

AHEAD = 2  # results for every thread that nobody has taken yet
PIECES = 2  # for every core, of files that are fewer than cores
PIECE_ROWS = 1 << 18  # at least, since every piece has sums of its own
TICK = 0.5  # seconds between looks at how far it is
MOMENT = 0.1  # seconds between looks at whether a thread that should end is compiling
PATIENCE = 2.0  # seconds for threads to end; they look between batches whether they should

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Threads:
    """Works on as many files at once as there are cores, and on pieces of files that are fewer.

    Attributes
    ----------
    n : int, optional
        How many threads, by default as many as there are cores.
    tell : callable, optional
        Is told every now and then how many rows have been read.
    """

    n: int | None = None
    tell: Callable[[int], None] | None = None

    def run(self, work: Work, parts: Sequence[FilePart], *, each: bool = True) -> Iterator[tuple[int, Any]]:
        """Yield the result of every file, in their order, always of one."""
        n = self.n or config.n_cores()
        files = [_File(work, part, _pieces(part, n, len(parts))) for part in parts]
        tasks = [(file, piece) for file in files for piece in file.pieces]
        stopped, counting, read = threading.Event(), threading.Lock(), [0]

        def watch(rows: int) -> None:
            if stopped.is_set():
                raise StoppedError
            with counting:
                read[0] += rows

        def waiting() -> None:
            if self.tell is not None:
                self.tell(read[0])

        def one(task: tuple[_File, FilePart]) -> tuple[_File, Any]:
            file, piece = task
            try:
                return file, file.strict.run(piece, watch)
            except BadFileError as error:
                if not work.skip_bad:
                    raise
                return file, _Bad(piece, error)

        # each works on a file of its own: nothing within one file is shared out any further
        with one_blas_thread(), _memory_given_back(), config.using(threads=1):
            for file, found in _each(one, tasks, n, stopped, waiting):
                if file.add(found):
                    yield 1, file.result()


@dataclass(frozen=True)
class _Bad:
    """A piece of a file that can't be read."""

    piece: FilePart
    error: BadFileError


@dataclass(eq=False)
class _File:
    """A file whose pieces are worked on; its result is that of the whole, and if one piece is bad, the file is."""

    work: Work
    part: FilePart
    pieces: list[FilePart]
    found: list[Any] = field(default_factory=list)
    bad: _Bad | None = None
    done: int = 0

    @property
    def strict(self) -> Work:
        """The work, but what is wrong is raised."""
        return replace(self.work, skip_bad=False)

    def add(self, found: Any) -> bool:
        """Add the result of one piece, and return whether it was the last."""
        self.done += 1
        if isinstance(found, _Bad):
            first = self.bad is None or (found.piece.row_groups or (0, 0)) < (self.bad.piece.row_groups or (0, 0))
            self.bad = found if first else self.bad
        else:
            self.found.append(found)
        return self.done == len(self.pieces)

    def result(self) -> Any:
        """Return the sums of all pieces, or why there are none."""
        if self.bad is not None:
            return self.work.left_out(self.part, self.bad.error)
        return merged(self.found)


def _pieces(part: FilePart, n: int, n_parts: int) -> list[FilePart]:
    """Return the pieces of a file, so many that all cores have some; of many files, each is one piece."""
    if n_parts >= n:
        return [part]
    try:
        return part.split(-(-PIECES * n // n_parts), PIECE_ROWS)
    except BadFileError:  # said where it is read
        return [part]


def _each(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    n: int,
    stopped: threading.Event,
    waiting: Callable[[], None],
) -> Iterator[Result]:
    """Yield what a function returns for every item, in their order, from `n` threads; call `waiting` meanwhile.

    In their order, so that what is added up of them is the same in every run. The threads are daemons, and waited for
    only some seconds: who interrupts does not wait for a storage that is silent. After an error they may compile to the
    end: numba changes meanwhile how the process shows its warnings.
    """
    failed = False
    untaken, taking = iter(enumerate(items)), threading.Lock()
    results: SimpleQueue[tuple[int, Result | None, BaseException | None]] = SimpleQueue()
    early: dict[int, Result | None] = {}
    room = threading.Semaphore(n * (1 + AHEAD))  # results that nobody has taken yet are memory

    def work() -> None:
        while True:
            room.acquire()
            with taking:
                place, item = (-1, None) if stopped.is_set() else next(untaken, (-1, None))
            if item is None:
                return
            try:
                results.put((place, function(item), None))
            except StoppedError:
                return
            except BaseException as error:  # raised where somebody waits for it
                results.put((place, None, error))

    threads = [threading.Thread(target=work, name=f"survscore-{k}", daemon=True) for k in range(min(n, len(items)))]
    try:
        for thread in threads:
            thread.start()
        for turn in range(len(items)):
            while turn not in early:
                try:
                    place, found, error = results.get(timeout=TICK)
                except Empty:
                    waiting()
                    continue
                if error is not None:
                    failed = True
                    raise error
                early[place] = found
            room.release()
            yield early.pop(turn)  # type: ignore[misc]
    finally:
        stopped.set()
        room.release(2 * n * (1 + AHEAD))
        last = clock.monotonic() + PATIENCE
        while clock.monotonic() < last and (left := [thread for thread in threads if thread.is_alive()]):
            left[0].join(MOMENT)
            last += _wait_for_compiler() if failed else 0.0


def _wait_for_compiler() -> float:
    """Wait until numba, if anybody has called for it, is not compiling; return for how many seconds."""
    locks, begun = sys.modules.get("numba.core.compiler_lock"), clock.monotonic()
    if locks is not None:
        with locks.global_compiler_lock:
            pass
    return clock.monotonic() - begun


@contextmanager
def _memory_given_back() -> Iterator[None]:
    """Return what Arrow keeps for threads that are no more."""
    try:
        yield
    finally:
        arrow().default_memory_pool().release_unused()


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
