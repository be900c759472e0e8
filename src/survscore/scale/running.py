"""Going over a source, as often as it takes, in pieces that may be interrupted."""

from __future__ import annotations

import hashlib
import time as clock
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from survscore._config import config
from survscore._utils.jobs import Progress
from survscore._utils.parallel import cached_property
from survscore._validation import InputError
from survscore.io.files import check_regular, written_whole
from survscore.io.limits import machine_memory
from survscore.scale.engines import Threads, as_engine
from survscore.scale.files import BadFileError, ExpectedSchema, FilePart, type_name
from survscore.scale.finishing import first_pass, sampled
from survscore.scale.influences import FirstPass, Influences
from survscore.scale.looks import Look, looked_at
from survscore.scale.memory import LIBRARIES, Budget, MemoryLimitError, check_bytes
from survscore.scale.projected import Strata
from survscore.scale.sources import Source
from survscore.scale.specification import Bins, BinsNeededError, Specification
from survscore.scale.state import State
from survscore.scale.work import COPIES, Gathered, Kind, Work, finished
from survscore.weighting import IPCW, Projected

if TYPE_CHECKING:
    import pyarrow as pa

STEPS = {"look": "first look", "influences": "second pass", "rows": "gathering"}
COMPARED = 3  # files, among which one that is unlike the others is recognised


@dataclass(frozen=True, eq=False)
class Run:
    """Goes over a source as often as it takes.

    The engine is a Dask client, a Spark session, or anything with `run` as `Threads` has it; None means threads of this
    machine, or those of a frame's cluster. The folder is where sums of finished files are kept. See `Work` for
    `skip_bad` and `checksums`, and `ExpectedSchema` for `naming` and `models`.
    """

    source: Source
    engine: Any
    skip_bad: bool
    checksums: bool
    folder: str | Path | None
    memory_limit: int | None
    progress: Progress
    naming: tuple[str, ...] | None = None
    models: tuple[str, ...] = ()

    @cached_property
    def first(self) -> FilePart:
        """The file with which all others are compared: the first, but where bad ones are left out, not a bad one."""
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
            seen.append((part, frozenset((column.name, type_name(column.type)) for column in schema)))
            if len(seen) == COMPARED:
                break
        if not seen:
            raise InputError(f"none of {len(parts)} files can be read, the last: {wrong}")
        usual = Counter(types for _, types in seen).most_common(1)[0][0]
        return next(part for part, types in seen if types == usual)

    def schema(self) -> pa.Schema:
        """Return which columns there are."""
        return self.source.schema() if self.source.parts is None else self.first.schema()

    # Passes

    def sums(self, what: Specification, *, lasting: bool = False) -> State | Gathered:
        """Return the sums of all rows; or where these take two passes, and rows are few, the rows themselves."""
        if what.two_passes:
            return self._in_two_passes(what)
        if not what.over_time:
            return self.state(what, lasting=lasting)
        try:
            return self.state_of(what)
        except BinsNeededError:  # individuals dropped out: means over time have no sums of one pass
            return self._in_two_passes(what)

    def _in_two_passes(self, what: Specification) -> State | Gathered:
        look: Look = self._folded("look", looked_at(what), self._budget(what))
        if look.n <= what.rank_rows and self.folder is None:
            with suppress(MemoryLimitError):  # sums take less
                return self.rows(what)
        what = replace(what, bins=look.bins())
        whole = None if what.projected is None else Strata.of(look, what)
        strata = None if whole is None else replace(whole, drawn=None, sample=None)  # which need not travel
        if whole is not None and not (what.by or what.groups or what.outcomes.weights):
            # no single individual counts much: influences by the estimates of the sample are as good
            first = first_pass(sampled(look, what, whole), preliminary=look.n)
            self._check_memory(what, first)
            total = self.state_of(what, strata, first)
        else:
            total = self.state_of(what, strata)
            first = first_pass(total, groups=look.groups)
            total.influences = self._folded("influences", total.specification, self._check_memory(what, first), first)
        if total.projected is not None and whole is not None:
            total.projected.strata = whole
        return total

    def _check_memory(self, what: Specification, first: FirstPass) -> Budget:
        budget = self._budget(what)
        check_bytes(first.n_bytes + Influences(what, first).n_bytes, budget.table_bytes, "sums of a second pass")
        return budget

    def state(self, what: Specification, *, lasting: bool = False) -> State:
        """Return the sums of all rows; weights are estimated only where individuals turn out to leave.

        Sums that are to last are made in the same way whether anyone leaves today or not, so that those of other days
        can be added.
        """
        some_censored = any(isinstance(one, IPCW | Projected) for one in what.weightings)  # nearly always
        tries: tuple[Bins, ...] = ("units",) if some_censored else (None, "units")
        if lasting and not what.over_time and any(one.estimated for one in what.weightings):
            tries = ("units", *(() if some_censored else (None,)))
        for bins in tries:
            try:
                return self.state_of(replace(what, bins=bins))
            except BinsNeededError:
                if not self.source.rereadable:
                    raise
        look: Look = self._folded("look", looked_at(what), self._budget(what))
        return self.state_of(replace(what, bins=look.bins()))

    def state_of(self, what: Specification, strata: Strata | None = None, first: FirstPass | None = None) -> State:
        """Return the sums of all rows with bins that are given; if they leave no room to read fast, slowly."""
        budget = self._budget(what)
        try:
            total: State = self._folded("state", what, budget, first, strata)
        except MemoryLimitError:
            lean = self._budget(what, lean=True)
            if lean.table_bytes <= budget.table_bytes or not self.source.rereadable:
                raise
            total = self._folded("state", what, lean, first, strata)
        return total

    def rows(self, what: Specification) -> Gathered:
        """Return all rows, of the columns that are needed."""
        if self.folder is not None:
            raise InputError("state keeps sums of files, and these metrics need the rows: leave it out")
        room = (machine_memory() // 2 if self.memory_limit is None else self.memory_limit - LIBRARIES) // COPIES
        gathered: Gathered = self._folded("rows", what, replace(self._budget(what), table_bytes=room))
        return gathered

    def _budget(self, what: Specification, *, lean: bool = False) -> Budget:
        parts = self.source.parts
        remote = parts is not None and not parts[0].is_local
        threads = 1 if parts is None or self.engine is not None else config.n_cores()
        columns = len(what.columns(self.schema().names))
        return Budget.of(self.memory_limit, columns, threads, remote=remote, lean=lean)

    # One pass

    def _folded(
        self,
        kind: Kind,
        what: Specification,
        budget: Budget,
        first: FirstPass | None = None,
        strata: Strata | None = None,
    ) -> Any:
        """Return what comes of all pieces of the source, added up."""
        columns, parts, frame = what.columns(self.schema().names), self.source.parts or (), self.source.frame
        if parts:
            expected = self.first.expected(columns, numeric=what.numeric())
            expected = replace(expected, naming=self.naming, models=self.models)
        else:
            self._check_no_files()
            expected = ExpectedSchema.of(self.source.name, self.schema(), columns)
        work = Work(kind, what, expected, self.skip_bad, self.checksums, budget.rows, budget.table_bytes, first, strata)
        meter = _Meter(sum(part.size for part in parts), kind)
        if not parts and frame is None:
            return self._streamed(work, meter)
        several: Any = self._of_files(work, budget, meter) if frame is None else frame.run(work, self.engine)
        total, done = work.nothing(), 0
        with closing(several):  # an interrupt gives up what has not begun
            for count, result in several:
                total, done = total + result, done + count
                rows = total.n if kind in ("state", "rows") else 0
                self.progress(done, len(parts) or done, meter.text(rows))
        if kind in ("state", "rows") and parts:
            if not _are_all(total.files, parts):
                raise RuntimeError("the engine has not given the results of all files once each")
            if len(total.skipped) == len(parts):
                raise InputError(f"none of {len(parts)} files can be read, the first: {total.skipped[0]}")
        return total

    def _of_files(self, work: Work, budget: Budget, meter: _Meter) -> Iterator[tuple[int, Any]]:
        """Yield the results of all files, with the number of files of each: first of those whose sums are kept."""
        parts, done, waiting = self.source.parts or [], 0, []
        keeps = self.folder is not None and work.kind == "state" and work.strata is None
        kept = _Kept(Path(self.folder or ""), work.specification) if keeps else None
        for part in parts:
            stored = None if kept is None else kept.load(part, budget.table_bytes)
            if stored is None:
                waiting.append(part)
                continue
            done += 1
            meter.size -= part.size
            yield 1, stored
        if not waiting:
            return
        size = sum(part.size for part in waiting) / len(waiting)

        def tell(rows: int) -> None:
            self.progress(done, len(parts), meter.text(rows))

        engine = Threads(budget.threads, tell) if self.engine is None else as_engine(self.engine)
        for count, result in engine.run(work, waiting, each=kept is not None):
            if kept is not None:
                kept.save(result)
            done += count
            meter.read += count * size
            yield count, result

    def _streamed(self, work: Work, meter: _Meter) -> Any:
        """Return what comes of a stream, which is read here."""
        total, n_rows = work.nothing(), 0
        nullable = work.specification.outcomes.nullable()
        for rows in self.source.batches(work.columns, rows=work.rows, nullable=nullable, numeric=work.numeric):
            total, n_rows = total.update(rows), n_rows + rows.num_rows
            self.progress(0, 1, meter.text(n_rows))
        return finished(total)

    def _check_no_files(self) -> None:
        """Raise if an option is only for files."""
        frame = self.source.frame is not None
        but = f"but {self.source.name} is a {'frame' if frame else 'stream'}"
        if self.folder is not None:
            raise InputError(f"state keeps the sums of files, {but}")
        if self.skip_bad or self.checksums:
            raise InputError(f"{'skip_bad_files' if self.skip_bad else 'checksums'} is for files, {but}")
        if self.engine is not None and not frame:
            raise InputError(f"engine works on files or on frames of its own, {but}, which is read here")


def _are_all(files: Sequence[str], parts: Sequence[FilePart]) -> bool:
    """Whether all parts were done once each, with rows or without."""
    known = {one: part.id for part in parts for one in (part.id, part.uncounted_id)}
    return sorted(known.get(one, one) for one in files) == sorted(part.id for part in parts)


class _Kept:
    """Sums of finished files, in a folder: one file each, written whole or not at all."""

    def __init__(self, folder: Path, what: Specification) -> None:
        self.folder = folder / what.digest[:16]
        self.what = what
        self.folder.mkdir(parents=True, exist_ok=True)

    def _path(self, id: str) -> Path:
        place, size, _, whole_place = id.rsplit("|", 3)  # a file without rows has an id without digest
        return self.folder / f"{hashlib.sha256(f'{place}|{size}|{whole_place}'.encode()).hexdigest()[:32]}.state"

    def load(self, part: FilePart, most_bytes: int) -> State | None:
        """Return the sums of a file, if they are there and whole."""
        path = self._path(part.id)
        try:
            check_regular(path)
            state = State.from_bytes(path.read_bytes(), most_bytes)
        except (FileNotFoundError, InputError):
            return None
        same = state.files in ((part.id,), (part.uncounted_id,)) and state.specification.digest == self.what.digest
        return state if same and not state.skipped else None  # a file that could not be read is tried again

    def save(self, result: State) -> None:
        """Keep the sums of a file."""
        with written_whole(self._path(result.files[0])) as path:
            path.write_bytes(result.to_bytes())


class _Meter:
    """Speed, and the time that is left: by the bytes of files, since their rows are not known before."""

    def __init__(self, size: int, kind: Kind) -> None:
        self.size, self.step = size, f"{STEPS[kind]}: " if kind in STEPS else ""
        self.start, self.read = clock.monotonic(), 0.0

    def text(self, rows: int) -> str:
        """Return it in words."""
        seconds = max(clock.monotonic() - self.start, 1e-9)
        text = self.step + (f"{rows:,} rows, {rows / seconds / 1e6:.1f} M a second" if rows else "reading")
        if not 0 < self.read < self.size:
            return text
        left = round(seconds * (self.size - self.read) / self.read)
        return f"{text}, {left // 60}:{left % 60:02d} left"
