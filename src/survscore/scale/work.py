"""What is done with one file, wherever that is: read it, and return what adds up. Plain data in, plain data out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add as plus
from typing import TYPE_CHECKING, Any, Literal

from survscore._validation import InputError
from survscore.scale.files import ROWS, BadFileError, ExpectedSchema, FilePart
from survscore.scale.files import checked as checked_rows
from survscore.scale.gathering import Gathered, Piece
from survscore.scale.influences import FirstPass, Influences
from survscore.scale.looks import Look
from survscore.scale.memory import MemoryLimitError
from survscore.scale.projected import ProjectedSums, Strata
from survscore.scale.specification import BinsNeededError, Specification
from survscore.scale.state import State

if TYPE_CHECKING:
    import pyarrow as pa

Kind = Literal["state", "look", "influences", "rows"]


class StoppedError(RuntimeError):
    """Nobody waits for the result any more."""


def unwatched(rows: int) -> None:
    """Work on to the end, and tell nobody."""


@dataclass(frozen=True)
class Work:
    """What to do with every file.

    Attributes
    ----------
    kind : {"state", "look", "influences", "rows"}
        Sum up losses, and influences if enough is known already; look when somebody leaves, who belongs together, and
        at a sample; sum up influences, in a second pass; or gather the rows.
    specification : Specification
        What is computed.
    expected : ExpectedSchema
        What every file must hold.
    skip_bad : bool
        Whether a file that can't be read is left out, and told.
    checksums : bool
        Whether checksums of Parquet files are verified.
    rows : int
        How many are read at a time.
    table_bytes : int, optional
        How large sums, or gathered rows, may become.
    first : FirstPass, optional
        What the first pass told, for the second.
    strata : Strata, optional
        In which statuses are projected.
    """

    kind: Kind
    specification: Specification
    expected: ExpectedSchema
    skip_bad: bool = False
    checksums: bool = False
    rows: int = ROWS
    table_bytes: int | None = None
    first: FirstPass | None = field(default=None, repr=False)
    strata: Strata | None = field(default=None, repr=False)

    @property
    def columns(self) -> list[str]:
        """The columns that are read."""
        return self.specification.columns(list(self.expected.types))

    @property
    def numeric(self) -> list[str]:
        """Those that must hold numbers."""
        return [name for name in self.specification.numeric() if name in self.columns]

    def run(self, part: FilePart, watch: Callable[[int], None] = unwatched) -> Any:
        """Do it with one file.

        `watch` is told of every batch how many rows it has, and may raise `StoppedError`.
        """
        try:
            result = self.nothing(part.ids, part.id, 0 if part.row_groups is None else part.row_groups[0])
            first = 0
            for rows in self._batches(part, watch):
                with _of_file(part, first):
                    result = self.updated(result, rows)
                first += rows.num_rows
            if isinstance(result, State) and not result.n:
                result.files = tuple(part.uncounted_id for _ in part.ids)
            return finished(result)
        except BadFileError as error:
            if not self.skip_bad:
                raise
            return self.left_out(part, error)

    def run_rows(self, name: str, rows: Iterable[Any]) -> Any:
        """Do it with one piece of a frame: record batches or tables, checked as files are; `name` is for messages."""
        result = self.nothing(name=name)
        # of columns of Python objects a frame knows no type
        typed = {column: kind for column, kind in self.expected.types.items() if kind != "null"}
        several = checked_rows(
            name, rows, self.columns, rows=self.rows, nullable=self.specification.outcomes.nullable(),
            numeric=self.numeric, expected=ExpectedSchema(self.expected.part, typed),
        )  # fmt: skip
        for batch in several:
            try:
                result = self.updated(result, batch)
            except (BinsNeededError, MemoryLimitError):
                raise
            except InputError as error:
                raise InputError(f"{name}: {error}") from None
        return finished(result)

    def left_out(self, part: FilePart, error: BadFileError) -> Any:
        """Return the result of a file that can't be read: nobody, and why."""
        if self.kind == "state":
            return replace(self.nothing((part.uncounted_id,)), skipped=(part.told(error),))
        if self.kind == "rows":
            return Gathered(self.specification, (), (part.uncounted_id,), (part.told(error),))
        return self.nothing(())

    def nothing(self, files: tuple[str, ...] = (), name: str = "", start: int = 0) -> Any:
        """Return the result of no rows, of some files; gathered rows have a place."""
        what, strata = self.specification, self.strata
        influences = None if self.first is None else Influences(what, self.first)
        match self.kind:
            case "look":
                return Look(what)
            case "influences" if influences is not None:
                return influences
            case "rows":
                return Gathered(what, (Piece(name, start),), files, limit=self.table_bytes)
        projected = None if strata is None else ProjectedSums.of(replace(strata, specification=what))
        return State(what, files, projected=projected, influences=influences, table_bytes=self.table_bytes)

    def updated(self, result: Any, rows: pa.RecordBatch) -> Any:
        """Return a result with more rows of the same piece."""
        return result.update(rows)

    def _batches(self, part: FilePart, watch: Callable[[int], None]) -> Iterator[pa.RecordBatch]:
        what = self.specification
        several = part.batches(
            self.columns, rows=self.rows, nullable=what.outcomes.nullable(), numeric=self.numeric,
            expected=self.expected, checksums=self.checksums,
            labels=what.label_columns(),
        )  # fmt: skip
        for rows in several:
            watch(rows.num_rows)
            yield rows


def finished(result: Any) -> Any:
    """Return the result of a piece that has been read: there are no more rows of it, nor of groups in it."""
    return result.close() if isinstance(result, State) else result


def merged(several: Iterable[Any]) -> Any:
    """Return results as one."""
    return reduce(plus, several)


def attempted(do: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a function returns, or why the data are refused: a cluster would try again what can't succeed."""
    try:
        return do(*arguments)
    except InputError as error:
        return error.with_traceback(None)


def checked(found: Any) -> Any:
    """Return a result that is none of `attempted`'s errors."""
    if isinstance(found, InputError):
        raise found
    return found


def check_importable(error: BaseException, cluster: str) -> None:
    """Raise in plain words if what went wrong is that a worker has no survscore."""
    seen: BaseException | None = error
    while seen is not None:
        if "No module named 'survscore" in str(seen):
            raise InputError(
                f"the workers of {cluster} can't import survscore: install the same version there as here, or send it "
                "to them (see the page on clusters)"
            ) from None
        seen = seen.__cause__ or seen.__context__


@contextmanager
def _of_file(part: FilePart, first: int) -> Iterator[None]:
    """Name the file in what is wrong with its rows from `first` on; what is wrong with all of it stays as it is."""
    try:
        yield
    except (BinsNeededError, MemoryLimitError, BadFileError):
        raise
    except InputError as error:
        start = 0 if part.row_groups is None else part.row_groups[0]
        from_where = [f"row {first}"] if first else []
        from_where += [f"row group {start}"] if start else []
        counted = f" (counted from {' of '.join(from_where)})" if from_where else ""
        raise BadFileError(part.name, f"{error}{counted}") from None
