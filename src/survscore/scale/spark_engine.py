"""Files read by the executors of a Spark cluster: a frame of names goes there, and sums come back.

Only what Spark Connect has, too, is used: frames and functions over Arrow batches, no context and no RDD.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from survscore.io.tables import arrow
from survscore.scale.engines import Step
from survscore.scale.failures import Failure, attempted, check_importable
from survscore.scale.files import FilePart
from survscore.scale.threads import one_blas_thread
from survscore.scale.work import Work, merge_parts, run_part

if TYPE_CHECKING:
    import pyarrow as pa

NAMES = "number long, part string"
RESULTS = "number long, found binary, failed string"
GROUPS = 8  # in which results are merged on the cluster
DIRECT = 32  # results at most that come as they are: merging them there would take longer
FEWEST = 512  # files in one job
TASKS_PER_CORE = 8  # so that cores without work, while the last file of a job is read, are few
CORES = 4  # at least: Connect does not say how many there are
SMALL = 8 << 20  # bytes: a task takes Spark some tenths of a second, in which as much could be read


@dataclass(frozen=True)
class SparkEngine:
    """The executors of a cluster.

    Attributes
    ----------
    session : pyspark.sql.SparkSession
        Classic or Connect.
    """

    session: Any

    def run(self, work: Work, parts: Sequence[FilePart]) -> Iterator[tuple[FilePart, bytes]]:
        """Yield every file with its result; those of one job come together."""
        for first, some in self._jobs(parts):
            for number, found in collected(self.session, self._results(work, first, some, together=False)):
                yield parts[number], found

    def reduce(self, work: Work, parts: Sequence[FilePart]) -> Iterator[Step]:
        """Merge results on the cluster, so that few come here."""
        for first, some in self._jobs(parts):
            results = self._results(work, first, some, together=True)
            if tasks(some, _cores(self.session)) > DIRECT:
                results = merged(results, work)
            for _, found in collected(self.session, results):
                yield Step(first + len(some), len(parts), found)

    def _results(self, work: Work, first: int, parts: Sequence[FilePart], *, together: bool) -> Any:
        """Return a frame of results: of all files, or `together` those of each task as one."""
        rows = [(first + k, json.dumps(part.to_json())) for k, part in enumerate(parts)]
        names = self.session.createDataFrame(rows, NAMES)
        # ranges of numbers that are all different: as many files in every task, where hashes would leave some empty
        count = tasks(parts, _cores(self.session))
        return names.repartitionByRange(count, "number").mapInArrow(_RunFiles(work.to_json(), together), RESULTS)

    def _jobs(self, parts: Sequence[FilePart]) -> Iterator[tuple[int, Sequence[FilePart]]]:
        """Yield files for one job each, with the number of the first: results come when a job is done."""
        size = max(FEWEST, TASKS_PER_CORE * _cores(self.session))
        for first in range(0, len(parts), size):
            yield first, parts[first : first + size]


def tasks(parts: Sequence[FilePart], cores: int) -> int:
    """Return in how many tasks files are read: one each, but small ones together while there are enough for all."""
    enough = max(TASKS_PER_CORE * cores, -(-sum(part.size for part in parts) // SMALL))
    return min(len(parts), enough)


def merged(results: Any, work: Work) -> Any:
    """Return a frame of few results, merged by the cluster from many."""
    from pyspark.sql import functions as sql

    # by what the number says, not round robin: a task that is done again finds the same results
    return results.repartition(GROUPS, sql.col("number") % GROUPS).mapInArrow(_Merge(work.to_json()), RESULTS)


def collected(session: Any, results: Any) -> list[tuple[int, bytes]]:
    """Return the results that a frame stands for; raise what workers refused."""
    with _stoppable(session):
        try:
            rows = results.collect()
        except Exception as error:
            check_importable(error, "Spark")
            raise
    failed = [(row["number"], row["failed"]) for row in rows if row["failed"] is not None]
    if failed:
        Failure.from_json(min(failed)[1]).throw()
    return [(row["number"], bytes(row["found"])) for row in rows]


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


# What executors call: instances of classes of this module travel by name, with plain text inside.


@dataclass(frozen=True)
class _RunFiles:
    work: str
    together: bool

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        results = self._results(batches)
        return _Merge(self.work)(results) if self.together else results

    def _results(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number, part in zip(batch["number"].to_pylist(), batch["part"].to_pylist(), strict=True):
                with one_blas_thread():
                    found = attempted(run_part, self.work, part)
                yield answer(number, found)


@dataclass(frozen=True)
class _Merge:
    work: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        total: bytes | None = None
        first = None
        for batch in batches:
            for number, found, failed in zip(*(batch[name].to_pylist() for name in batch.schema.names), strict=True):
                if failed is not None:
                    yield answer(number, Failure.from_json(failed))
                    continue
                total = found if total is None else merge_parts(self.work, total, found)
                first = number if first is None else min(first, number)
        if total is not None and first is not None:
            yield answer(first, total)


def answer(number: int, found: bytes | Failure) -> pa.RecordBatch:
    """Return one result as the row that comes back."""
    pa = arrow()
    failed = found.to_json() if isinstance(found, Failure) else None
    arrays = [
        pa.array([number], pa.int64()),
        pa.array([None if isinstance(found, Failure) else found], pa.binary()),
        pa.array([failed], pa.string()),
    ]
    return pa.RecordBatch.from_arrays(arrays, names=["number", "found", "failed"])
