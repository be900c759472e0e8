"""Files read by the workers of a Dask cluster: names of files travel there, and sums come back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from survscore.scale.engines import Step
from survscore.scale.failures import Failure, attempted, check_importable
from survscore.scale.files import FilePart
from survscore.scale.threads import one_blas_thread
from survscore.scale.work import Work, merge_parts, run_part

RETRIES = 2
AT_ONCE = 8  # results that are merged in one go
DIRECT = 32  # results at most that come as they are: added here while others are made, they cost no time


@dataclass(frozen=True)
class DaskEngine:
    """The workers of a cluster.

    Attributes
    ----------
    client : distributed.Client
        Connected to it.
    """

    client: Any

    def run(self, work: Work, parts: Sequence[FilePart]) -> Iterator[tuple[FilePart, bytes]]:
        """Yield every file with its result, as they are done."""
        from distributed import as_completed

        with cancelled_in_the_end() as futures:
            sent = self._sent(work, parts)
            futures.update(sent)
            waiting = as_completed(list(sent))
            while sent:
                future = next(waiting)
                part, found = sent.pop(future), result(future)
                futures.discard(future)
                del future  # the cluster forgets a result that nobody holds
                yield part, found

    def reduce(self, work: Work, parts: Sequence[FilePart]) -> Iterator[Step]:
        """Merge results on the cluster, so that few come here."""
        if len(parts) <= DIRECT:
            for done, (_, found) in enumerate(self.run(work, parts), 1):
                yield Step(done, len(parts), found)
            return
        with cancelled_in_the_end() as futures:
            sent = list(self._sent(work, parts))
            futures.update(sent)
            yield from merged_steps(self.client, work, sent, futures)

    def _sent(self, work: Work, parts: Sequence[FilePart]) -> dict[Any, FilePart]:
        order = shared(self.client, work)
        sent = {}
        for part in parts:
            sealed = Sealed(json.dumps(part.to_json()))
            sent[self.client.submit(_run, order, sealed, pure=False, retries=RETRIES, key=_key("file"))] = part
        return sent


@dataclass(frozen=True)
class Sealed:
    """Text that may hold credentials: logs of a cluster show the arguments of tasks, but not this."""

    text: str = field(repr=False)


def shared(client: Any, work: Work) -> Any:
    """Return the work as a result that tasks take: it is sent once, and made anew if the worker that has it dies."""
    return client.submit(Sealed, work.to_json(), pure=False, retries=RETRIES, key=_key("work"))


def merged_steps(client: Any, work: Work, sent: Sequence[Any], futures: set[Any]) -> Iterator[Step]:
    """Merge the results of tasks on the cluster, in the order in which they come, and give the last one.

    Parameters
    ----------
    client : distributed.Client
    work : Work
    sent : sequence of distributed.Future
        The tasks, of one piece each.
    futures : set of distributed.Future
        All that are held; the caller cancels what is left in it.
    """
    from distributed import as_completed

    leaves = {future.key for future in sent}
    total, done = len(leaves), 0
    order = shared(client, work)
    waiting = as_completed(list(sent))
    del sent
    ready: list[Any] = []
    running = total
    while running:
        future = next(waiting)
        running -= 1
        if future.status == "error" or future.type is Failure:  # the client is told the type before the result
            result(future)
        ready.append(future)
        if future.key in leaves:
            done += 1
            if done < total:
                yield Step(done, total, None)
        if len(ready) == AT_ONCE or (not running and len(ready) > 1):
            larger = client.submit(merge, order, *ready, pure=False, retries=RETRIES, key=_key("merge"))
            futures.add(larger)
            futures.difference_update(ready)
            waiting.add(larger)
            running += 1
            ready = []
    (last,) = ready
    yield Step(total, total, result(last))


@contextmanager
def cancelled_in_the_end() -> Iterator[set[Any]]:
    """Give a set for futures; those that are not done when it is left, by an error or an interrupt, are cancelled."""
    futures: set[Any] = set()
    try:
        yield futures
    finally:
        unfinished = [future for future in futures if not future.done()]
        if unfinished:
            unfinished[0].client.cancel(unfinished, force=True)


def result(future: Any) -> bytes:
    """Return what a task returned; raise what it refused, as it would have been raised here."""
    try:
        found = future.result()
    except Exception as error:
        check_importable(error, "Dask")
        raise
    return checked(found)


def checked(found: bytes | Failure) -> bytes:
    """Return a result that is none of a failure."""
    if isinstance(found, Failure):
        found.throw()
    return found


def _key(what: str) -> str:
    import uuid

    return f"survscore-{what}-{uuid.uuid4().hex}"


# What workers call


def _run(work: Sealed, part: Sealed) -> bytes | Failure:
    with one_blas_thread():
        return attempted(run_part, work.text, part.text)


def merge(work: Sealed, *several: bytes | Failure) -> bytes | Failure:
    """Merge results, unless one of them is a failure."""
    found = []
    for one in several:
        if isinstance(one, Failure):
            return one
        found.append(one)
    return attempted(merge_parts, work.text, *found)
