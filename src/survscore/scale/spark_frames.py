"""Spark frames: every partition becomes sums on its executor, and no row comes to the driver."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from survscore._validation import InputError
from survscore.scale.engines import Step, as_engine
from survscore.scale.failures import attempted
from survscore.scale.spark_engine import RESULTS, SparkEngine, answer, collected, merged
from survscore.scale.threads import one_blas_thread
from survscore.scale.work import Work, run_rows

if TYPE_CHECKING:
    import pyarrow as pa


def is_frame(given: Any) -> bool:
    """Whether something is a Spark frame, classic or Connect."""
    from pyspark.sql import DataFrame

    return isinstance(given, DataFrame)


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
        if not isinstance(as_engine(engine), SparkEngine):
            raise InputError(f"engine of a Spark frame must be its Spark session, not {type(engine).__name__}")
        return self

    def joined(self, outcomes: Any, *, id: str, columns: Sequence[str] | None, allow_extra: bool) -> SparkFrame:
        """Return the frame joined with the outcomes of the same ids."""
        from survscore.scale.frame_joins import joined_frames

        together = joined_frames(self.frame, outcomes, id=id, columns=columns, allow_extra=allow_extra)
        return replace(self, frame=together)

    def steps(self, work: Work) -> Generator[Step]:
        """Do the work with every partition, and merge the results where they are."""
        from survscore.scale.frame_joins import quoted

        chosen = self.frame.select(*map(quoted, work.columns))
        results = merged(chosen.mapInArrow(_RunRows(work.to_json(), self.name), RESULTS), work)
        found = collected(self.frame.sparkSession, results)
        for done, (_, stored) in enumerate(found, 1):
            yield Step(done, len(found), stored)


@dataclass(frozen=True)
class _RunRows:
    """What executors call with a partition."""

    work: str
    name: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        number = 0 if context is None else context.partitionId()
        with one_blas_thread():
            yield answer(number, attempted(run_rows, self.work, f"partition {number} of {self.name}", batches))
