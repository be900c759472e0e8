"""Dask: names of files, or partitions of a frame, become sums on its workers; no row comes to the client."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from survscore._validation import InputError
from survscore.io.tables import arrow
from survscore.scale.files import FilePart
from survscore.scale.threads import one_blas_thread
from survscore.scale.work import Work, attempted, check_importable, checked, merged

if TYPE_CHECKING:
    import pyarrow as pa

RETRIES = 2
AT_ONCE = 8  # results that are merged in one go
DIRECT = 32  # results at most that come as they are: added here while others are made, they cost no time


@dataclass(frozen=True)
class DaskEngine:
    """The workers of a cluster; without client, what Dask uses without a cluster."""

    client: Any

    def run(self, work: Work, parts: Sequence[FilePart], *, each: bool = False) -> Iterator[tuple[int, Any]]:
        """Yield results as they come, with the number of files of each: one, where `each` is asked for."""
        import dask

        run = dask.delayed(_run_file, pure=False)
        order = dask.delayed(work, traverse=False)
        # parts may hold credentials: what a cluster logs of arguments are keys, then
        sealed = (dask.delayed(part, traverse=False) for part in parts)
        yield from self.results([run(order, part) for part in sealed], each=each)

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

        with _cancelled_in_the_end(self.client) as futures:
            sent = dict(zip(self.client.compute(list(leaves), retries=RETRIES), sizes, strict=True))
            futures.update(sent)
            waiting = as_completed(list(sent))
            while sent:
                future = next(waiting)
                size, found = sent.pop(future), _result(future)
                futures.discard(future)
                del future  # the cluster forgets a result that nobody holds
                yield size, found


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
        if type(engine).__module__.split(".", 1)[0] != "distributed":
            raise InputError(f"engine of a Dask frame must be a Dask client, not {type(engine).__name__}")
        return replace(self, client=engine)

    def run(self, work: Work) -> Iterator[tuple[int, Any]]:
        """Do the work with every partition; yield results, with the number of partitions of each."""
        import dask

        labels = {str(label): label for label in self.frame.columns}
        pieces = self.frame[[labels[column] for column in work.columns]].to_delayed()
        run, order = dask.delayed(_run_partition, pure=False), dask.delayed(work, traverse=False)
        client = _active_client() if self.client is None else self.client
        names = [f"partition {k} of {self.name}" for k in range(len(pieces))]
        yield from DaskEngine(client).results([run(order, *both) for both in zip(names, pieces, strict=True)])


@contextmanager
def _cancelled_in_the_end(client: Any) -> Iterator[set[Any]]:
    """Give a set for futures; those that are not done when it is left, by an error or an interrupt, are cancelled."""
    futures: set[Any] = set()
    try:
        yield futures
    finally:
        unfinished = [future for future in futures if not future.done()]
        if unfinished:
            client.cancel(unfinished, force=True)


def _result(future: Any) -> Any:
    """Return what a task returned; raise what it refused, as it would have been raised here."""
    try:
        found = future.result()
    except Exception as error:
        check_importable(error, "Dask")
        raise
    return checked(found)


def _active_client() -> Any:
    try:
        from distributed import default_client
    except ImportError:  # Dask may be there without it
        return None
    try:
        return default_client()
    except ValueError:
        return None


# What workers call


def _run_file(work: Work, part: FilePart) -> Any:
    with one_blas_thread():
        return attempted(work.run, part)


def _run_partition(work: Work, name: str, rows: Any) -> Any:
    """Do some work with a partition, a frame of pandas."""
    from survscore.scale.sources import open_source

    def run() -> Any:
        nullable = work.specification.outcomes.nullable()
        return work.run_rows(name, open_source(rows, name=name).batches(work.columns, nullable=nullable))

    with one_blas_thread():
        return attempted(run)


def _merge(*several: Any) -> Any:
    """Merge results, unless one of them is an error."""
    failed = [one for one in several if isinstance(one, InputError)]
    return failed[0] if failed else attempted(merged, several)
