"""What does the work: threads of this machine, Dask workers or Spark executors; results come here, never rows.

Of Spark only what Spark Connect has, too, is used: frames and functions over Arrow batches, no context and no RDD.
"""

from __future__ import annotations

import pickle
import sys
import threading
import time as clock
import uuid
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, InvalidStateError, wait
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import islice
from operator import add as plus
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from survscore._config import config
from survscore._validation import InputError
from survscore.io.tables import arrow
from survscore.scale.files import BadFileError, FilePart
from survscore.scale.sources import open_source
from survscore.scale.work import StoppedError, Work

if TYPE_CHECKING:
    import pyarrow as pa

AHEAD = 2  # results for every thread that have not been added up yet
PIECES = 2  # for every core, of files that are fewer than cores
PIECE_ROWS = 1 << 18  # at least, since every piece has sums of its own
TICK = 0.5  # seconds between reports of progress
MOMENT = 0.1  # seconds between looks at whether a thread that should end is compiling
PATIENCE = 2.0  # seconds for threads to end; between batches they notice that they should
RETRIES = 2  # of a task on Dask
AT_ONCE = 8  # results that are merged in one task on Dask
DIRECT = 32  # results of Dask at most that are added here, while others are computed
NAMES, RESULTS = "number long, part binary", "number long, count long, result binary"
GROUPS = 8  # in which results of a Spark frame are merged on the cluster
TASKS_PER_CORE = 8  # of Spark, so that few cores are idle while the last file of a job is read
CORES = 4  # of Spark at least: Connect does not know how many there are

Item = TypeVar("Item")
Result = TypeVar("Result")


def as_engine(engine: Any) -> Any:
    """Return the engine of a client or session, or anything that has `run` as `Threads` does."""
    module = _package(engine)
    if module == "distributed":
        return DaskEngine(engine)
    if module == "pyspark":
        return SparkEngine(engine)
    if not hasattr(engine, "run"):
        raise InputError(f"engine must be a Dask client or a Spark session, not {type(engine).__name__}")
    return engine


def _package(thing: Any) -> str:
    return type(thing).__module__.split(".", 1)[0]


def merged(several: Iterable[Any]) -> Any:
    """Return results as one."""
    return reduce(plus, several)


# Threads


@dataclass(frozen=True)
class Threads:
    """Reads as many files at once as there are threads, or pieces of files that are fewer.

    `tell` is called every now and then with the number of rows that have been read.
    """

    n: int | None = None
    tell: Callable[[int], None] | None = None

    def run(self, work: Work, parts: Sequence[FilePart], *, each: bool = True) -> Iterator[tuple[int, Any]]:
        """Yield the result of every file, in their order, each with the number of files it is of, one.

        If one piece of a file is bad, the file is.
        """
        n = self.n or config.n_cores()
        pieces = [_pieces(part, n, len(parts)) for part in parts]
        strict, stopped, counting, read = replace(work, skip_bad=False), threading.Event(), threading.Lock(), [0]

        def watch(rows: int) -> None:
            if stopped.is_set():
                raise StoppedError
            with counting:
                read[0] += rows

        def result_of(piece: FilePart) -> Any:
            try:
                return strict.run(piece, watch)
            except BadFileError as error:
                if not work.skip_bad:
                    raise
                return error

        def waiting() -> None:
            if self.tell is not None:
                self.tell(read[0])

        tasks = [piece for several in pieces for piece in several]
        # each thread works on a file of its own: nothing within one file is divided any further
        with one_blas_thread(), config.using(threads=1):
            try:
                with closing(_each(result_of, tasks, n, stopped, waiting)) as results:
                    for part, several in zip(parts, pieces, strict=True):
                        own = list(islice(results, len(several)))
                        bad = next((one for one in own if isinstance(one, BadFileError)), None)
                        yield 1, merged(own) if bad is None else work.left_out(part, bad)
            finally:
                arrow().default_memory_pool().release_unused()  # what Arrow keeps for threads that have ended


def _pieces(part: FilePart, n: int, n_parts: int) -> list[FilePart]:
    """Return the pieces of a file, so many that all cores have some; of many files, each is one piece."""
    if n_parts >= n:
        return [part]
    try:
        return part.split(-(-PIECES * n // n_parts), PIECE_ROWS)
    except BadFileError:  # reported when it is read
        return [part]


def _each(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    n: int,
    stopped: threading.Event,
    waiting: Callable[[], None],
) -> Generator[Result]:
    """Yield what a function returns for every item, in their order, from `n` threads; call `waiting` meanwhile.

    In their order, so that sums of them are the same in every run. No pool of `concurrent.futures`, since Python waits
    for its threads when it ends: these are daemons, and waited for only some seconds, so that an interrupt does not
    wait for storage that is silent. After an error they may compile to the end: meanwhile numba changes how the process
    shows its warnings.
    """
    tasks: SimpleQueue[tuple[Item, Future[Any]] | None] = SimpleQueue()
    turns: deque[Future[Any]] = deque()
    failure: Future[Any] = Future()

    def work() -> None:
        while (task := tasks.get()) is not None and not stopped.is_set():
            try:
                task[1].set_result(function(task[0]))
            except BaseException as error:  # raised below, in the thread of the caller
                with suppress(InvalidStateError):  # another was first
                    failure.set_exception(error)
                return
            del task  # with its result

    threads = [threading.Thread(target=work, name=f"survscore-{k}", daemon=True) for k in range(min(n, len(items)))]
    left = iter(items)

    def begin(count: int) -> None:
        for item in islice(left, count):
            turns.append(Future())
            tasks.put((item, turns[-1]))

    try:
        for thread in threads:
            thread.start()
        begin(n * (1 + AHEAD))  # results that wait take memory
        while turns:
            wait([turns[0], failure], TICK, return_when=FIRST_COMPLETED)
            if failure.done():
                failure.result()
            if turns[0].done():
                begin(1)
                yield turns.popleft().result()
            else:
                waiting()
    finally:
        failed = failure.done()
        stopped.set()
        for _ in threads:
            tasks.put(None)
        last = clock.monotonic() + PATIENCE
        while clock.monotonic() < last and (alive := [thread for thread in threads if thread.is_alive()]):
            alive[0].join(MOMENT)
            last += _wait_for_compiler() if failed else 0.0


def _wait_for_compiler() -> float:
    """Wait until numba, if it has been imported, is not compiling; return for how many seconds."""
    locks, begun = sys.modules.get("numba.core.compiler_lock"), clock.monotonic()
    if locks is not None:
        with locks.global_compiler_lock:
            pass
    return clock.monotonic() - begun


_limits: list[Any] = []  # one for every block of `one_blas_thread`; the first has what was before
_limiting = threading.Lock()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS from starting threads of its own, which wait busily and take cores from ours.

    The limit is the whole process's, and workers of clusters run several tasks in one: the last takes it back.
    """
    from threadpoolctl import threadpool_limits

    with _limiting:
        _limits.append(None if _limits else threadpool_limits(limits=1, user_api="blas"))
    try:
        yield
    finally:
        with _limiting:
            before = _limits.pop()
            if not _limits:
                before.restore_original_limits()


# What workers of clusters return


def attempted(do: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a function returns, or why the data are refused: a cluster would repeat what can't succeed."""
    try:
        with one_blas_thread():
            return do(*arguments)
    except InputError as error:
        return error.with_traceback(None)


def checked(result: Any) -> Any:
    """Return a result unless it is one of `attempted`'s errors, which is raised."""
    if isinstance(result, InputError):
        raise result
    return result


def check_importable(error: BaseException, cluster: str) -> None:
    """Raise in plain words if the error is that a worker has no survscore."""
    seen: BaseException | None = error
    while seen is not None:
        if "No module named 'survscore" in str(seen):
            raise InputError(
                f"the workers of {cluster} can't import survscore: install the same version there as here, or send it "
                "to them (see the page on clusters)"
            ) from None
        seen = seen.__cause__ or seen.__context__


# Dask


@dataclass(frozen=True)
class DaskEngine:
    """The workers of a cluster; without client, Dask's scheduler on this machine."""

    client: Any

    def run(self, work: Work, parts: Sequence[FilePart], *, each: bool = False) -> Iterator[tuple[int, Any]]:
        """Yield results as they come, with the number of files of each: one, where `each` is asked for."""
        import dask

        run, shared = dask.delayed(attempted, pure=False), dask.delayed(work, traverse=False)
        # parts may hold credentials: as delayed objects, they are keys in a cluster's logs
        sealed = (dask.delayed(part, traverse=False) for part in parts)
        yield from self.results([run(_run_file, shared, part) for part in sealed], each=each)

    def results(self, leaves: Sequence[Any], *, each: bool = False) -> Iterator[tuple[int, Any]]:
        """Yield the results of tasks; of many, merged on the cluster, so that few come here."""
        import dask

        sizes, merge = [1] * len(leaves), dask.delayed(_merge, pure=False)
        while len(leaves) > DIRECT and not each:
            starts = range(0, len(leaves), AT_ONCE)
            leaves = [merge(*leaves[k : k + AT_ONCE]) for k in starts]
            sizes = [sum(sizes[k : k + AT_ONCE]) for k in starts]
        if self.client is None:
            yield from zip(sizes, map(checked, dask.compute(*leaves)), strict=True)
            return
        from distributed import as_completed

        waiting = dict(zip(self.client.compute(list(leaves), retries=RETRIES), sizes, strict=True))
        try:
            done = as_completed(list(waiting))
            while waiting:
                future = next(done)
                result, size = _result(future), waiting.pop(future)
                del future  # the cluster forgets results without references
                yield size, result
        finally:  # after an error or an interrupt
            unfinished = [future for future in waiting if not future.done()]
            if unfinished:
                self.client.cancel(unfinished, force=True)


@dataclass(frozen=True, eq=False)
class DaskFrame:
    """A Dask frame; the engine is a client, by default the active one, or without any Dask's threads."""

    frame: Any
    name: str

    def schema(self) -> pa.Schema:
        """Return the names and types of its columns; columns of Python objects have no type."""
        meta = self.frame._meta
        return arrow().Schema.from_pandas(meta.set_axis(map(str, meta.columns), axis=1), preserve_index=False)

    def run(self, work: Work, engine: Any = None) -> Iterator[tuple[int, Any]]:
        """Do the work with every partition; yield results, with the number of partitions of each."""
        import dask

        if engine is not None and _package(engine) != "distributed":
            raise InputError(f"engine of a Dask frame must be a Dask client, not {type(engine).__name__}")
        labels = {str(label): label for label in self.frame.columns}
        pieces = self.frame[[labels[column] for column in work.columns]].to_delayed()
        run, shared = dask.delayed(attempted, pure=False), dask.delayed(work, traverse=False)
        names = [f"partition {k} of {self.name}" for k in range(len(pieces))]
        leaves = [run(_run_partition, shared, name, piece) for name, piece in zip(names, pieces, strict=True)]
        yield from DaskEngine(_active_client() if engine is None else engine).results(leaves)


def _active_client() -> Any:
    try:
        from distributed import default_client

        return default_client()
    except (ImportError, ValueError):  # Dask without it, or without a client
        return None


def _result(future: Any) -> Any:
    """Return what a task returned; raise an error as it would have been raised here."""
    try:
        result = future.result()
    except Exception as error:
        check_importable(error, "Dask")
        raise
    return checked(result)


def _run_file(work: Work, part: FilePart) -> Any:
    return work.run(part)


def _run_partition(work: Work, name: str, rows: Any) -> Any:
    """Do some work with a partition, a frame of pandas."""
    nullable = work.specification.outcomes.nullable()
    return work.run_rows(name, open_source(rows, name=name).batches(work.columns, nullable=nullable))


def _merge(*several: Any) -> Any:
    """Merge results, unless one of them is an error."""
    failed = [one for one in several if isinstance(one, InputError)]
    return failed[0] if failed else attempted(merged, several)


# Spark


@dataclass(frozen=True)
class SparkEngine:
    """The executors of a cluster, by a session, classic or Connect."""

    session: Any

    def run(self, work: Work, parts: Sequence[FilePart], *, each: bool = False) -> Iterator[tuple[int, Any]]:
        """Yield results, with the number of files of each: those of a task are merged, unless `each` is asked for."""
        n_tasks = TASKS_PER_CORE * _cores(self.session)
        size = n_tasks if each else len(parts)
        for first in range(0, len(parts), size):  # results come when a job is done, and are kept then
            some = parts[first : first + size]
            rows = [(k, pickle.dumps(part)) for k, part in enumerate(some)]
            # ranges of numbers that are all different: as many files in every task, where hashes would leave some empty
            names = self.session.createDataFrame(rows, NAMES).repartitionByRange(min(n_tasks, len(some)), "number")
            yield from _collected(self.session, names.mapInArrow(partial(_run_files, work, each), RESULTS))


@dataclass(frozen=True, eq=False)
class SparkFrame:
    """A Spark frame, classic or Connect; the session that made it does the work."""

    frame: Any
    name: str

    def schema(self) -> pa.Schema:
        """Return the names and types of its columns, as executors see them."""
        return self.frame.limit(0).toArrow().schema

    def run(self, work: Work, engine: Any = None) -> Iterator[tuple[int, Any]]:
        """Do the work with every partition; yield results, with the number of partitions of each."""
        from pyspark.sql import functions as sql

        if engine is not None and _package(engine) != "pyspark":
            raise InputError(f"engine of a Spark frame must be its Spark session, not {type(engine).__name__}")
        # dots in a name would look into a column
        chosen = self.frame.select(*("`" + name.replace("`", "``") + "`" for name in work.columns))
        results = chosen.mapInArrow(partial(_run_rows, work, self.name), RESULTS)
        # by number, not round robin: a task that is repeated gets the same results
        together = results.repartition(GROUPS, sql.col("number") % GROUPS).mapInArrow(_merge_spark, RESULTS)
        yield from _collected(self.frame.sparkSession, together)


def _collected(session: Any, results: Any) -> list[tuple[int, Any]]:
    """Return the results in a frame; raise the errors of workers, of several the first.

    After an interrupt, what the session runs for us is stopped, and nothing else.
    """
    tag = f"survscore-{uuid.uuid4().hex}"
    session.addTag(tag)
    try:
        rows = results.collect()
    except BaseException as error:
        session.interruptTag(tag)
        check_importable(error, "Spark")
        raise
    finally:
        session.removeTag(tag)
    in_order = sorted(rows, key=lambda row: row["number"])
    return [(row["count"], checked(pickle.loads(row["result"]))) for row in in_order]


def _cores(session: Any) -> int:
    """Return how many tasks run at once, where that is known: Connect does not know."""
    try:
        return max(CORES, int(session.sparkContext.defaultParallelism))
    except Exception:  # pyspark has its own errors for what Connect does not have
        return CORES


# Executors call these by name. Results are pickled by our own processes for our own: stored sums, which may come from
# anywhere, are not.


def _run_files(work: Work, each: bool, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    parts = (row for batch in batches for row in batch.to_pylist())
    results = (_answer(row["number"], 1, attempted(work.run, pickle.loads(row["part"]))) for row in parts)
    return results if each else _merge_spark(results)


def _run_rows(work: Work, name: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from pyspark import TaskContext

    context = TaskContext.get()
    number = 0 if context is None else context.partitionId()
    yield _answer(number, 1, attempted(work.run_rows, f"partition {number} of {name}", batches))


def _merge_spark(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Merge results as they come; errors stay results of their own."""
    total: Any = None
    first, n = 0, 0
    for batch in batches:
        for row in batch.to_pylist():
            result = pickle.loads(row["result"])
            if isinstance(result, InputError):
                yield _answer(row["number"], row["count"], result)
                continue
            first, n = (row["number"] if total is None else min(first, row["number"])), n + row["count"]
            total = result if total is None else merged((total, result))
    if total is not None:
        yield _answer(first, n, total)


def _answer(number: int, count: int, result: Any) -> pa.RecordBatch:
    """Return one result as the row that comes back."""
    columns = {"number": [number], "count": [count], "result": [pickle.dumps(result)]}
    schema = arrow().schema([("number", "int64"), ("count", "int64"), ("result", "binary")])
    return arrow().RecordBatch.from_pydict(columns, schema)
