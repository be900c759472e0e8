"""Going over a source, as often as it takes, in pieces that may be interrupted."""

from __future__ import annotations

import hashlib
import time as clock
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from survscore._config import config
from survscore._files import written_whole
from survscore._progress import Progress
from survscore._validation import InputError
from survscore.scale.exits import Exits
from survscore.scale.files import BadFileError, ExpectedSchema, FilePart
from survscore.scale.memory import Budget, MemoryLimitError
from survscore.scale.sources import Source, expected_schema
from survscore.scale.specification import Bins, Specification, estimated
from survscore.scale.state import BinsNeededError, State
from survscore.scale.threads import Threads
from survscore.scale.work import Kind, Work
from survscore.weighting import IPCW

if TYPE_CHECKING:
    import pyarrow as pa

COMPARED = 3  # files of which the first is told from one that is unlike the others


class Engine(Protocol):
    """Something that does the same work with many files."""

    def run(self, work: Work, parts: Sequence[FilePart]) -> Iterator[tuple[FilePart, bytes]]:
        """Yield every file with its result, in any order."""


@dataclass(frozen=True, eq=False)
class Run:
    """Goes over a source as often as it takes.

    Attributes
    ----------
    source : Source
        What is read.
    engine : Engine or None
        What does the work; None: threads of this machine.
    skip_bad, checksums : bool
        See `Work`.
    folder : path or None
        Where the sums of finished files are kept.
    memory_limit : int or None
        In bytes.
    progress : callable
        Is told how far it is.
    """

    source: Source
    engine: Engine | None
    skip_bad: bool
    checksums: bool
    folder: str | Path | None
    memory_limit: int | None
    progress: Progress

    @cached_property
    def first(self) -> FilePart:
        """The file that all others are held against: the first, but where bad ones are left out, not a bad one."""
        parts = self.source.parts or []
        if not self.skip_bad or len(parts) == 1:
            return parts[0]
        seen: list[tuple[FilePart, frozenset[tuple[str, str]]]] = []
        for part in parts:
            try:
                schema = part.schema()
            except BadFileError as error:
                wrong = error
                continue
            seen.append((part, frozenset(ExpectedSchema.of(part.name, schema, list(set(schema.names))).types.items())))
            if len(seen) == COMPARED:
                break
        if not seen:
            raise InputError(f"none of {len(parts)} files can be read, the last: {wrong}")
        usual = Counter(types for _, types in seen).most_common(1)[0][0]
        return next(part for part, types in seen if types == usual)

    def schema(self) -> pa.Schema:
        """Return which columns there are."""
        return self.source.schema() if self.source.parts is None else self.first.schema()

    def state(self, what: Specification, *, lasting: bool = False) -> State:
        """Return the sums of all rows; weights are looked into only where somebody turns out to leave.

        Sums that are to last are made in the same way whether somebody leaves today or not, so that those of other days
        can be added.
        """
        some_censored = any(isinstance(one, IPCW) for one in what.weightings)  # nearly always
        tries: tuple[Bins, ...] = ("units",) if some_censored else (None, "units")
        if lasting and not what.over_time and any(map(estimated, what.weightings)):
            tries = ("units", *(() if some_censored else (None,)))
        for bins in tries:
            try:
                return self.state_of(replace(what, bins=bins))
            except BinsNeededError:
                if not self.source.rereadable:
                    raise
        return self.state_of(replace(what, bins=self._exits(what)))

    def state_of(self, what: Specification) -> State:
        """Return the sums of all rows with bins that are given; if they leave no room to read fast, slowly."""
        budget = self._budget(what)
        try:
            return self._state(what, budget)
        except MemoryLimitError:
            lean = self._budget(what, lean=True)
            if lean.table_bytes <= budget.table_bytes or not self.source.rereadable:
                raise
        return self._state(what, lean)

    def _state(self, what: Specification, budget: Budget) -> State:
        parts = self.source.parts
        total = State(what, table_bytes=budget.table_bytes)
        if parts is None:
            meter = Meter(0)
            columns = what.columns(self.source.schema().names)
            for rows in self.source.batches(columns, rows=budget.rows, nullable=what.outcomes.nullable()):
                total.update(rows)
                meter.add(rows.num_rows, 0)
                self.progress(0, 1, meter.told())
            return total
        kept = None if self.folder is None else Kept(Path(self.folder), what)
        waiting = []
        for part in parts:
            stored = None if kept is None else kept.load(part)
            if stored is None:
                waiting.append(part)
            else:
                total = total + stored
        meter = Meter(sum(part.size for part in waiting))
        done = len(parts) - len(waiting)

        def tell(rows: int) -> None:
            self.progress(done, len(parts), meter.told(rows))

        engine = Threads(budget.threads, tell) if self.engine is None else self.engine
        work = self._work("state", what, budget)
        for part, found in engine.run(work, waiting) if waiting else ():
            if kept is not None:
                kept.save(part, found)
            state = State.from_bytes(found)
            total = total + state
            meter.add(state.n, part.size)
            done += 1
            self.progress(done, len(parts), meter.told())
        if len(total.skipped) == len(total.files):
            raise InputError(f"none of {len(parts)} files can be read, the first: {total.skipped[0]}")
        return total

    def _exits(self, what: Specification) -> Bins:
        parts, budget = self.source.parts, self._budget(what)
        if parts is None:
            columns = what.outcomes.names(self.source.schema().names)
            return Exits.of(what, self.source.batches(columns, nullable=what.outcomes.nullable())).bins()
        found = Exits.from_bytes(b"")
        engine = Threads(budget.threads) if self.engine is None else self.engine
        for done, (_, stored) in enumerate(engine.run(self._work("exits", what, budget), parts), 1):
            found = found + Exits.from_bytes(stored)
            self.progress(done, len(parts), "looking at outcomes")
        return found.bins()

    def _budget(self, what: Specification, *, lean: bool = False) -> Budget:
        parts = self.source.parts
        remote = parts is not None and parts[0].filesystem["type"] != "local"
        threads = 1 if parts is None or self.engine is not None else config.n_cores()
        columns = len(what.columns(self.schema().names))
        if lean and self.memory_limit is not None:
            return Budget.leanest(self.memory_limit, columns, remote=remote)
        return Budget.of(self.memory_limit, columns, threads, remote=remote)

    def _work(self, kind: Kind, what: Specification, budget: Budget) -> Work:
        columns = what.columns(self.first.schema().names)
        expected = expected_schema(self.first, columns, numeric=what.numeric())
        return Work(kind, what, expected, self.skip_bad, self.checksums, budget.rows, budget.table_bytes)


class Kept:
    """Sums of finished files, in a folder: one file each, written whole or not at all."""

    def __init__(self, folder: Path, what: Specification) -> None:
        self.folder = folder / what.digest[:16]
        self.what = what
        self.folder.mkdir(parents=True, exist_ok=True)

    def _path(self, part: FilePart) -> Path:
        return self.folder / f"{hashlib.sha256(part.id.encode()).hexdigest()[:32]}.state"

    def load(self, part: FilePart) -> State | None:
        """Return the sums of a file, if they are there and whole."""
        try:
            state = State.from_bytes(self._path(part).read_bytes())
        except (FileNotFoundError, InputError):
            return None
        same = state.files == (part.id,) and state.specification.digest == self.what.digest
        return state if same and not state.skipped else None  # what could not be read is tried again

    def save(self, part: FilePart, found: bytes) -> None:
        """Keep the sums of a file."""
        with written_whole(self._path(part)) as path:
            path.write_bytes(found)


class Meter:
    """How fast it goes, and how long it takes yet: by the bytes of files, since their rows are not known before."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.start = clock.monotonic()
        self.rows = self.read = 0

    def add(self, rows: int, size: int) -> None:
        """Tell what has been done."""
        self.rows += rows
        self.read += size

    def told(self, rows: int | None = None) -> str:
        """Return it in words; if they are known, with the rows of files that are not yet done."""
        seconds = max(clock.monotonic() - self.start, 1e-9)
        rows = self.rows if rows is None else rows
        speed = f"{rows:,} rows, {rows / seconds / 1e6:.1f} M a second"
        if not 0 < self.read < self.size:
            return speed
        left = round(seconds * (self.size - self.read) / self.read)
        return f"{speed}, {left // 60}:{left % 60:02d} left"
