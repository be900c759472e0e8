"""What does the work, and where: an engine over files, or the engine that a frame brings. All of them give bytes."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from survscore._validation import InputError
from survscore.scale.files import FilePart
from survscore.scale.threads import Threads
from survscore.scale.work import Work

if TYPE_CHECKING:
    import pyarrow as pa


class Step(NamedTuple):
    """How far the work has come.

    Attributes
    ----------
    done, total : int
        Pieces.
    found : bytes or None
        A result, of one piece or of several, that is not in any other step; None where results wait to be merged.
    """

    done: int
    total: int
    found: bytes | None


class Engine(Protocol):
    """Something that does the same work with many files."""

    def run(self, work: Work, parts: Sequence[FilePart]) -> Iterator[tuple[FilePart, bytes]]:
        """Yield every file with its result, in any order."""


@runtime_checkable
class MergingEngine(Protocol):
    """An engine that also merges results where they are made, so that few travel."""

    def reduce(self, work: Work, parts: Sequence[FilePart]) -> Iterator[Step]:
        """Yield results that make up those of all files."""


class Pieces(Protocol):
    """Rows that lie in pieces, or are read in pieces, and become bytes where that is."""

    def steps(self, work: Work) -> Generator[Step]:
        """Do the work with every piece; when it is closed, what has not begun is given up."""


class ClusterFrame(Pieces, Protocol):
    """A frame of a library that distributes work: its rows stay where they are."""

    def schema(self) -> pa.Schema:
        """Return the names and types of its columns."""

    def on(self, engine: Any) -> ClusterFrame:
        """Return the same frame, worked on by this engine; raise if that is no engine for it."""

    def joined(self, outcomes: Any, *, id: str, columns: Sequence[str] | None, allow_extra: bool) -> ClusterFrame:
        """Return the frame joined with the outcomes of the same ids."""


def as_engine(engine: Any) -> Engine:
    """Return what does the work: threads, or what a client or session stands for."""
    if engine is None:
        return Threads()
    module = type(engine).__module__.split(".", 1)[0]
    if module == "distributed":
        from survscore.scale.dask_engine import DaskEngine

        return DaskEngine(engine)
    if module == "pyspark":
        from survscore.scale.spark_engine import SparkEngine

        return SparkEngine(engine)
    if not hasattr(engine, "run"):
        raise InputError(f"engine must be a Dask client or a Spark session, not {type(engine).__name__}")
    known: Engine = engine
    return known
