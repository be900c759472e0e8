"""What is done with one file, wherever that is: read it, and return bytes. Plain data in, plain data out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from survscore._validation import InputError
from survscore.scale.exits import Exits
from survscore.scale.files import BadFileError, ExpectedSchema, FilePart
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

    def _named(self, part: FilePart) -> Iterator[pa.RecordBatch]:
        what = self.specification
        numeric = [] if what.outcomes.dated else [what.outcomes.time]
        return part.batches(
            self.columns, nullable=what.outcomes.nullable(), numeric=[*numeric, *self._predictions()],
            expected=self.expected, checksums=self.checksums,
        )  # fmt: skip

    def _predictions(self) -> list[str]:
        if self.kind == "exits":
            return []
        return [column for model in self.specification.models for column in model.columns]

    def merge(self, one: bytes, other: bytes) -> bytes:
        """Return two results as one; in any order."""
        if self.kind == "exits":
            return (Exits.from_bytes(one) + Exits.from_bytes(other)).to_bytes()
        return (State.from_bytes(one) + State.from_bytes(other)).to_bytes()

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


def merge_parts(work: str, one: bytes, other: bytes) -> bytes:
    """Merge two results; this is what other processes and machines call."""
    return Work.from_json(work).merge(one, other)
