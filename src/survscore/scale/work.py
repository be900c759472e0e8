"""What is done with one file, wherever that is: read it, and return bytes. Plain data in, plain data out."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from operator import add as plus
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from survscore._utils.parallel import cached_property
from survscore._validation import InputError
from survscore.scale.exits import Exits
from survscore.scale.files import ROWS, BadFileError, ExpectedSchema, FilePart, check_columns, check_complete
from survscore.scale.formats import sliced
from survscore.scale.gathering import Gathered, Piece
from survscore.scale.groups import GroupLook
from survscore.scale.influences import FirstPass, Influences
from survscore.scale.memory import MemoryLimitError
from survscore.scale.specification import BinsNeededError, Specification
from survscore.scale.state import State

if TYPE_CHECKING:
    import pyarrow as pa

Kind = Literal["state", "exits", "groups", "influences", "rows"]


class StoppedError(RuntimeError):
    """Nobody waits for the result any more."""


def unwatched(rows: int) -> None:
    """Work on to the end, and tell nobody."""


@dataclass(frozen=True)
class Work:
    """What to do with every file.

    Attributes
    ----------
    kind : {"state", "exits", "groups", "influences", "rows"}
        Sum up losses; look when somebody leaves, or where groups are; sum up influences, in a second pass; or gather
        the rows.
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
    first : bytes
        What the first pass told, for the second.
    """

    kind: Kind
    specification: Specification
    expected: ExpectedSchema
    skip_bad: bool = False
    checksums: bool = False
    rows: int = ROWS
    table_bytes: int | None = None
    first: bytes = b""

    @property
    def columns(self) -> list[str]:
        """The columns that are read."""
        what = self.specification
        if self.kind == "exits":
            return what.outcomes.names(list(self.expected.types))
        if self.kind == "groups":
            return [] if what.groups is None else [what.groups]
        return what.columns(list(self.expected.types))

    @property
    def numeric(self) -> list[str]:
        """Those that must hold numbers."""
        return [name for name in self.specification.numeric() if name in self.columns]

    def run(self, part: FilePart, watch: Callable[[int], None] = unwatched) -> bytes:
        """Do it with one file, and return a state, or exits, as bytes.

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
            return bytes(result.to_bytes())
        except BadFileError as error:
            if not self.skip_bad:
                raise
            return self.left_out(part, error)

    def run_rows(self, name: str, rows: Iterable[Any]) -> bytes:
        """Do it with one piece of a frame: record batches or tables, checked as files are."""
        result = self.nothing(name=name)
        for batch in self._checked(name, rows):
            try:
                result = self.updated(result, batch)
            except (BinsNeededError, MemoryLimitError):
                raise
            except InputError as error:
                raise InputError(f"{name}: {error}") from None
        return bytes(result.to_bytes())

    def _checked(self, name: str, rows: Iterable[Any]) -> Iterator[pa.RecordBatch]:
        first, columns, nullable = 0, self.columns, self.specification.outcomes.nullable()
        # of columns of Python objects a frame knows no type
        typed = {column: kind for column, kind in self.expected.types.items() if kind != "null"}
        expected = ExpectedSchema(self.expected.part, typed)
        for given in rows:
            check_columns(name, given.schema, expected, columns, self.numeric, _error)
            chosen = given.select(columns)
            for batch in chosen.to_batches() if hasattr(chosen, "to_batches") else [chosen]:
                for piece in sliced(batch, self.rows):
                    check_complete(name, piece, nullable, first, _error)
                    first += len(piece)
                    yield piece

    def left_out(self, part: FilePart, error: BadFileError) -> bytes:
        """Return the result of a file that can't be read: nobody, and why."""
        if self.kind == "state":
            return State(self.specification, (part.uncounted_id,), (str(error),)).to_bytes()
        if self.kind == "rows":
            return Gathered(self.specification, (), (part.uncounted_id,), (str(error),)).to_bytes()
        return bytes(self.nothing(()).to_bytes())

    def nothing(self, files: tuple[str, ...] = (), name: str = "", start: int = 0) -> Any:
        """Return the result of no rows, of some files; gathered rows have a place."""
        match self.kind:
            case "exits":
                return Exits.from_bytes(b"")
            case "groups":
                return GroupLook(np.zeros(0, dtype=np.uint64), 0, 0)
            case "influences":
                return Influences(self.specification, self._first)
            case "rows":
                return Gathered(self.specification, (Piece(name, start),), files, limit=self.table_bytes)
        return State(self.specification, files, table_bytes=self.table_bytes)

    def updated(self, result: Any, rows: pa.RecordBatch) -> Any:
        """Return a result with more rows of the same piece."""
        match self.kind:
            case "exits":
                return result + Exits.of(self.specification, [rows])
            case "groups":
                return result.with_rows(self.specification, rows)
        return result.update(rows)

    def result(self, stored: bytes) -> Any:
        """Return what the bytes of a piece stand for; several add up."""
        match self.kind:
            case "exits":
                return Exits.from_bytes(stored)
            case "groups":
                return GroupLook.from_bytes(stored)
            case "influences":
                return Influences.from_bytes(stored, self.specification, self._first)
            case "rows":
                return Gathered.from_bytes(stored, self.specification, self.table_bytes)
        return State.from_bytes(stored)

    @cached_property
    def _first(self) -> FirstPass:
        return FirstPass.from_bytes(self.first)

    def _batches(self, part: FilePart, watch: Callable[[int], None]) -> Iterator[pa.RecordBatch]:
        what = self.specification
        several = part.batches(
            self.columns, rows=self.rows, nullable=what.outcomes.nullable(), numeric=self.numeric,
            expected=self.expected, checksums=self.checksums,
            labels=[*what.by, *([] if what.groups is None else [what.groups])],
        )  # fmt: skip
        for rows in several:
            watch(rows.num_rows)
            yield rows

    def merge(self, *several: bytes) -> bytes:
        """Return results as one; in any order."""
        if len(several) == 1:
            return several[0]
        return bytes(reduce(plus, map(self.result, several)).to_bytes())

    # To where it is done

    def to_json(self) -> str:
        """Return it as text, to be sent to another process or machine."""
        return json.dumps(
            {
                "kind": self.kind,
                "specification": self.specification.to_json(),
                "expected": self.expected.to_json(),
                "skip_bad": self.skip_bad,
                "checksums": self.checksums,
                "rows": self.rows,
                "table_bytes": self.table_bytes,
                "first": base64.b64encode(self.first).decode(),
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Work:
        """Take what `to_json` returned."""
        told: dict[str, Any] = json.loads(text)
        return cls(
            told["kind"],
            Specification.from_json(told["specification"]),
            ExpectedSchema.from_json(told["expected"]),
            told["skip_bad"],
            told["checksums"],
            told["rows"],
            told["table_bytes"],
            base64.b64decode(told["first"]),
        )


def run_part(work: str, part: str) -> bytes:
    """Do some work with one file; both are text. This is what other processes and machines call."""
    return Work.from_json(work).run(FilePart.from_json(json.loads(part)))


def run_rows(work: str, name: str, rows: Iterable[Any]) -> bytes:
    """Do some work with record batches or tables; `name` is for messages. Other processes and machines call this."""
    return Work.from_json(work).run_rows(name, rows)


def merge_parts(work: str, *several: bytes) -> bytes:
    """Merge results; this is what other processes and machines call."""
    return Work.from_json(work).merge(*several)


def _error(name: str, what: str) -> InputError:
    return InputError(f"{name}: {what}")


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
