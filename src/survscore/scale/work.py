"""What is done with one file, wherever that is: read it, and return bytes. Plain data in, plain data out."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from survscore._validation import InputError
from survscore.scale.exits import Exits
from survscore.scale.files import BadFileError, ExpectedSchema, FilePart
from survscore.scale.groups import GroupLook
from survscore.scale.influences import FirstPass, Influences
from survscore.scale.specification import BinsNeededError, Specification
from survscore.scale.state import State

if TYPE_CHECKING:
    import pyarrow as pa

Kind = Literal["state", "exits", "groups", "influences"]


@dataclass(frozen=True)
class Work:
    """What to do with every file.

    Attributes
    ----------
    kind : {"state", "exits", "groups", "influences"}
        Sum up losses; look when somebody leaves, or where groups are; or sum up influences, in a second pass.
    specification : Specification
        What is computed.
    expected : ExpectedSchema
        What every file must hold.
    skip_bad : bool
        Whether a file that can't be read is left out, and told.
    checksums : bool
        Whether checksums of Parquet files are verified.
    first : bytes
        What the first pass told, for the second.
    """

    kind: Kind
    specification: Specification
    expected: ExpectedSchema
    skip_bad: bool = False
    checksums: bool = False
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

    def run(self, part: FilePart) -> bytes:
        """Do it with one file, and return a state, or what else was asked for, as bytes."""
        try:
            return self.of_rows(self._named(part), (part.id,), part.name)
        except BadFileError as error:
            if not self.skip_bad:
                raise
            if self.kind == "state":
                return State(self.specification, (part.id,), (str(error),)).to_bytes()
            return self.of_rows(iter(()), (part.id,), part.name)

    def of_rows(self, batches: Iterator[pa.RecordBatch], files: tuple[str, ...], name: str) -> bytes:
        """Do it with rows, wherever they come from; `name` is for messages."""
        what = self.specification
        try:
            match self.kind:
                case "exits":
                    return Exits.of(what, batches).to_bytes()
                case "groups":
                    return GroupLook.of(what, batches).to_bytes()
                case "influences":
                    influences = Influences(what, self._first)
                    for rows in batches:
                        influences.update(rows)
                    return influences.to_bytes()
            state = State(what, files)
            for rows in batches:
                state.update(rows)
            return state.to_bytes()
        except (BadFileError, BinsNeededError):
            raise
        except InputError as error:  # of the rows: name the file
            raise BadFileError(name, str(error)) from None

    @cached_property
    def _first(self) -> FirstPass:
        return FirstPass.from_bytes(self.first)

    def _named(self, part: FilePart) -> Iterator[pa.RecordBatch]:
        what = self.specification
        numeric = [] if what.outcomes.dated or self.kind == "groups" else [what.outcomes.time]
        return part.batches(
            self.columns, nullable=what.outcomes.nullable(), numeric=[*numeric, *self._predictions()],
            expected=self.expected, checksums=self.checksums,
        )  # fmt: skip

    def _predictions(self) -> list[str]:
        if self.kind in ("exits", "groups"):
            return []
        return [column for model in self.specification.models for column in model.columns]

    def result(self, stored: bytes) -> State | Exits | GroupLook | Influences:
        """Return what the bytes of a file stand for; several add up."""
        match self.kind:
            case "exits":
                return Exits.from_bytes(stored)
            case "groups":
                return GroupLook.from_bytes(stored)
            case "influences":
                return Influences.from_bytes(stored, self.specification, self._first)
        return State.from_bytes(stored)

    def merge(self, one: bytes, other: bytes) -> bytes:
        """Return two results as one; in any order."""
        merged: Any = self.result(one)
        return bytes((merged + self.result(other)).to_bytes())

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
            base64.b64decode(told["first"]),
        )


def run_part(work: str, part: str) -> bytes:
    """Do some work with one file; both are text. This is what other processes and machines call."""
    return Work.from_json(work).run(FilePart.from_json(json.loads(part)))


def merge_parts(work: str, one: bytes, other: bytes) -> bytes:
    """Merge two results; this is what other processes and machines call."""
    return Work.from_json(work).merge(one, other)
