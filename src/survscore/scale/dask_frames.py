"""Dask frames: every partition becomes sums where it lies, and no row comes to the client."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from survscore._validation import InputError
from survscore.io.tables import arrow
from survscore.scale.dask_engine import (
    AT_ONCE,
    RETRIES,
    DaskEngine,
    Sealed,
    cancelled_in_the_end,
    checked,
    merge,
    merged_steps,
    shared,
)
from survscore.scale.engines import Step, as_engine
from survscore.scale.failures import Failure, attempted
from survscore.scale.threads import one_blas_thread
from survscore.scale.work import Work

if TYPE_CHECKING:
    import pyarrow as pa


def is_frame(given: Any) -> bool:
    """Whether something is a Dask frame."""
    import dask.dataframe as dd

    return isinstance(given, dd.DataFrame)


@dataclass(frozen=True, eq=False)
class DaskFrame:
    """A Dask frame, as `evaluate` sees it.

    Attributes
    ----------
    frame : dask.dataframe.DataFrame
    name : str
        What to call it in messages.
    client : distributed.Client, optional
        Of the cluster that does the work; by default the one that Dask itself would take, and without any, threads.
    """

    frame: Any
    name: str
    client: Any = None

    def schema(self) -> pa.Schema:
        """Return the names and types of its columns; columns of Python objects have no type."""
        meta = self.frame._meta
        return arrow().Schema.from_pandas(meta.set_axis(map(str, meta.columns), axis=1), preserve_index=False)

    def on(self, engine: Any) -> DaskFrame:
        """Return the same frame, worked on by a cluster."""
        found = as_engine(engine)
        if not isinstance(found, DaskEngine):
            raise InputError(f"engine of a Dask frame must be a Dask client, not {type(engine).__name__}")
        return replace(self, client=found.client)

    def joined(self, outcomes: Any, *, id: str, columns: Sequence[str] | None, allow_extra: bool) -> DaskFrame:
        """Return the frame joined with the outcomes of the same ids."""
        from survscore.scale.frame_joins import joined_frames

        together = joined_frames(self.frame, outcomes, id=id, columns=columns, allow_extra=allow_extra)
        return replace(self, frame=together)

    def steps(self, work: Work) -> Generator[Step]:
        """Do the work with every partition, and merge the results where they are."""
        client = _active_client() if self.client is None else self.client
        if client is None:
            yield from self._here(work)
            return
        with cancelled_in_the_end() as futures:
            order = shared(client, work)
            sent = client.compute(self._delayed(work, order), retries=RETRIES)
            futures.update(sent)
            yield from merged_steps(client, work, sent, futures)

    def _here(self, work: Work) -> Iterator[Step]:
        """Let Dask use what it uses without a cluster; a tree, as results are made faster than one thread adds them."""
        import dask

        order = Sealed(work.to_json())
        results = self._delayed(work, order)
        total = len(results)
        while len(results) > 1:
            several = [results[k : k + AT_ONCE] for k in range(0, len(results), AT_ONCE)]
            results = [dask.delayed(merge, pure=False)(order, *some) for some in several]
        (found,) = dask.compute(*results)
        yield Step(total, total, checked(found))

    def _delayed(self, work: Work, order: Any) -> list[Any]:
        import dask

        labels = {str(label): label for label in self.frame.columns}
        chosen = self.frame[[labels[column] for column in work.columns]]
        run = dask.delayed(_run_partition, pure=False)
        pieces = chosen.to_delayed()
        return [run(order, f"partition {k} of {self.name}", piece) for k, piece in enumerate(pieces)]


def _active_client() -> Any:
    try:
        from distributed import default_client
    except ImportError:  # Dask may be there without it
        return None
    try:
        return default_client()
    except ValueError:
        return None


def _run_partition(work: Sealed, name: str, rows: Any) -> bytes | Failure:
    """Do some work with a partition, a frame of pandas; this is what workers call."""
    with one_blas_thread():
        return attempted(_run_pandas, work.text, name, rows)


def _run_pandas(work: str, name: str, rows: Any) -> bytes:
    from survscore.scale.sources import open_source

    told = Work.from_json(work)
    nullable = told.specification.outcomes.nullable()
    return told.run_rows(name, open_source(rows, name=name).batches(told.columns, nullable=nullable))
