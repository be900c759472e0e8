"""What is done with one file, wherever that is: read it, and return bytes. Plain data in, plain data out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from survscore._validation import InputError
from survscore.scale.exits import Exits, merged
from survscore.scale.files import ROWS, BadFileError, ExpectedSchema, FilePart, check_columns, check_complete
from survscore.scale.formats import sliced
from survscore.scale.specification import Specification
from survscore.scale.state import BinsNeededError, State

if TYPE_CHECKING:
    import pyarrow as pa

Kind = Literal["state", "exits"]


@dataclass(frozen=True)
class Work:
    """What to do with every file.

    Attributes
    ----------
    kind : {"state", "exits"}
        Sum up losses, or look when somebody leaves.
    specification : Specification
        What is computed.
    expected : ExpectedSchema
        What every file must hold.
    skip_bad : bool
        Whether a file that can't be read is left out, and told.
    checksums : bool
        Whether checksums of Parquet files are verified.
    """

    kind: Kind
    specification: Specification
    expected: ExpectedSchema
    skip_bad: bool = False
    checksums: bool = False

    @property
    def columns(self) -> list[str]:
        """The columns that are read."""
        what = self.specification
        if self.kind == "exits":
            return what.outcomes.names(list(self.expected.types))
        return what.columns(list(self.expected.types))

    def run(self, part: FilePart) -> bytes:
        """Do it with one file, and return a state, or exits, as bytes."""
        try:
            if self.kind == "exits":
                return Exits.of(self.specification, self._named(part)).to_bytes()
            state = State(self.specification, (part.id,))
            for rows in self._named(part):
                try:
                    state.update(rows)
                except BinsNeededError:
                    raise
                except InputError as error:  # of the rows: name the file
                    raise BadFileError(part.name, str(error)) from None
            return state.to_bytes()
        except BadFileError as error:
            if not self.skip_bad:
                raise
            if self.kind == "exits":
                return b""
            return State(self.specification, (part.id,), (str(error),)).to_bytes()

    def run_rows(self, name: str, rows: Iterable[Any]) -> bytes:
        """Do it with one piece of a frame: record batches or tables, checked as files are."""
        checked = self._checked(name, rows)
        if self.kind == "exits":
            return Exits.of(self.specification, checked).to_bytes()
        state = State(self.specification)
        for batch in checked:
            try:
                state.update(batch)
            except BinsNeededError:
                raise
            except InputError as error:
                raise InputError(f"{name}: {error}") from None
        return state.to_bytes()

    def _checked(self, name: str, rows: Iterable[Any]) -> Iterator[pa.RecordBatch]:
        first, columns, nullable = 0, self.columns, self.specification.outcomes.nullable()
        # of columns of Python objects a frame knows no type
        typed = {column: kind for column, kind in self.expected.types.items() if kind != "null"}
        expected = ExpectedSchema(self.expected.part, typed)
        for given in rows:
            check_columns(name, given.schema, expected, columns, self._numeric(), _error)
            chosen = given.select(columns)
            for batch in chosen.to_batches() if hasattr(chosen, "to_batches") else [chosen]:
                for piece in sliced(batch, ROWS):
                    check_complete(name, piece, nullable, first, _error)
                    first += len(piece)
                    yield piece

    def _named(self, part: FilePart) -> Iterator[pa.RecordBatch]:
        return part.batches(
            self.columns, nullable=self.specification.outcomes.nullable(), numeric=self._numeric(),
            expected=self.expected, checksums=self.checksums,
        )  # fmt: skip

    def _numeric(self) -> list[str]:
        what = self.specification
        times = [] if what.outcomes.dated else [what.outcomes.time]
        if self.kind == "exits":
            return times
        return [*times, *(column for model in what.models for column in model.columns)]

    def merge(self, *several: bytes) -> bytes:
        """Return results as one; in any order."""
        if self.kind == "exits":
            return merged([Exits.from_bytes(one) for one in several]).to_bytes()
        total = State.from_bytes(several[0])
        for one in several[1:]:
            total = total + State.from_bytes(one)
        return total.to_bytes()

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
