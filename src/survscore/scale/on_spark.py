"""Spark: a frame of names of files, or a frame of rows, becomes sums on its executors; no row comes to the driver.

Only what Spark Connect has, too, is used: frames and functions over Arrow batches, no context and no RDD.
"""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from survscore._validation import InputError
from survscore.io.tables import arrow
from survscore.scale.files import FilePart
from survscore.scale.threads import one_blas_thread
from survscore.scale.work import Work, attempted, check_importable, checked, merged

if TYPE_CHECKING:
    import pyarrow as pa

NAMES, RESULTS = "number long, part binary", "number long, count long, found binary"
GROUPS = 8  # in which results of a frame are merged on the cluster
TASKS_PER_CORE = 8  # so that cores without work, while the last file of a job is read, are few
CORES = 4  # at least: Connect does not say how many there are


@dataclass(frozen=True)
class SparkEngine:
    """The executors of a cluster.

    Attributes
    ----------
    session : pyspark.sql.SparkSession
        Classic or Connect.
    """

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
            yield from _collected(self.session, names.mapInArrow(_RunFiles(work, each), RESULTS))


@dataclass(frozen=True, eq=False)
class SparkFrame:
    """A Spark frame, as `evaluate` sees it.

    Attributes
    ----------
    frame : pyspark.sql.DataFrame
        Classic or Connect; the session that made it does the work.
    name : str
        What to call it in messages.
    """

    frame: Any
    name: str

    def schema(self) -> pa.Schema:
        """Return the names and types of its columns, as executors see them."""
        return self.frame.limit(0).toArrow().schema

    def on(self, engine: Any) -> SparkFrame:
        """Return the same frame: its own session does the work, whichever is named."""
        if type(engine).__module__.split(".", 1)[0] != "pyspark":
            raise InputError(f"engine of a Spark frame must be its Spark session, not {type(engine).__name__}")
        return self

    def run(self, work: Work) -> Iterator[tuple[int, Any]]:
        """Do the work with every partition; yield results, with the number of partitions of each."""
        from pyspark.sql import functions as sql

        # dots in a name would look into a column
        chosen = self.frame.select(*("`" + name.replace("`", "``") + "`" for name in work.columns))
        results = chosen.mapInArrow(_RunRows(work, self.name), RESULTS)
        # by what the number says, not round robin: a task that is done again finds the same results
        together = results.repartition(GROUPS, sql.col("number") % GROUPS).mapInArrow(_Merge(), RESULTS)
        yield from _collected(self.frame.sparkSession, together)


def _collected(session: Any, results: Any) -> list[tuple[int, Any]]:
    """Return the results that a frame stands for; raise what workers refused, of several the first."""
    with _stoppable(session):
        try:
            rows = results.collect()
        except Exception as error:
            check_importable(error, "Spark")
            raise
    found = sorted(((row["number"], row["count"], pickle.loads(row["found"])) for row in rows), key=lambda one: one[0])
    return [(count, checked(one)) for _, count, one in found]


@contextmanager
def _stoppable(session: Any) -> Iterator[None]:
    """Stop what the session runs for us, and nothing else, if we are interrupted."""
    tag = f"survscore-{uuid.uuid4().hex}"
    session.addTag(tag)
    try:
        yield
    except BaseException:
        session.interruptTag(tag)
        raise
    finally:
        session.removeTag(tag)


def _cores(session: Any) -> int:
    """Return how many tasks run at once, where that can be told: Connect does not."""
    try:
        return max(CORES, int(session.sparkContext.defaultParallelism))
    except Exception:  # pyspark has its own errors for what Connect does not have
        return CORES


# What executors call: instances of classes of this module travel by name. Results are pickled by our own processes for
# our own: stored sums, which may come from anywhere, are not.


@dataclass(frozen=True)
class _RunFiles:
    work: Work
    each: bool

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        several = self._results(batches)
        return several if self.each else _Merge()(several)

    def _results(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number, part in zip(batch["number"].to_pylist(), batch["part"].to_pylist(), strict=True):
                with one_blas_thread():
                    yield _answer(number, 1, attempted(self.work.run, pickle.loads(part)))


@dataclass(frozen=True)
class _RunRows:
    work: Work
    name: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        number = 0 if context is None else context.partitionId()
        with one_blas_thread():
            yield _answer(number, 1, attempted(self.work.run_rows, f"partition {number} of {self.name}", batches))


@dataclass(frozen=True)
class _Merge:
    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        total: Any = None
        first, n = 0, 0
        for batch in batches:
            for number, count, found in zip(*(batch[name].to_pylist() for name in batch.schema.names), strict=True):
                one = pickle.loads(found)
                if isinstance(one, InputError):
                    yield _answer(number, count, one)
                    continue
                first, n = (number if total is None else min(first, number)), n + count
                total = one if total is None else merged((total, one))
        if total is not None:
            yield _answer(first, n, total)


def _answer(number: int, count: int, found: Any) -> pa.RecordBatch:
    """Return one result as the row that comes back."""
    columns = {"number": [number], "count": [count], "found": [pickle.dumps(found)]}
    return arrow().RecordBatch.from_pydict(
        columns, arrow().schema([("number", "int64"), ("count", "int64"), ("found", "binary")])
    )
