"""Scores of a data set in files, streams or clusters."""

from __future__ import annotations

import hashlib
import time as clock
import warnings
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from survscore._files import written_whole
from survscore._progress import Progress, silent
from survscore._validation import InputError, plural
from survscore.comparison import Comparison
from survscore.engine.evaluation import Ranges
from survscore.scale.engines import Engine, MergingEngine, Pieces, Step, as_engine
from survscore.scale.exits import Exits
from survscore.scale.files import ExpectedSchema, FilePart
from survscore.scale.sources import Source, expected_schema, open_source
from survscore.scale.specification import Bins, OutcomeColumns, Specification, specify
from survscore.scale.state import BinsNeededError, State
from survscore.scale.work import Work
from survscore.weighting import IPCW

if TYPE_CHECKING:
    from survscore.segments import SegmentedComparison


def evaluate(
    source: Any,
    *,
    weighting: Any,
    models: Any = None,
    metric: Any = "brier",
    times: ArrayLike | None = None,
    outcomes: OutcomeColumns | Mapping[str, Any] | None = None,
    by: str | Sequence[str] = (),
    reference: str | None = None,
    ranges: Ranges = None,
    level: float = 0.95,
    engine: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    format: str | None = None,
    manifest: Any = None,
    skip_bad_files: bool = False,
    checksums: bool = False,
    state: str | Path | None = None,
    progress: Progress = silent,
) -> Comparison | SegmentedComparison:
    """Score and compare models on data that need not fit in memory.

    The result is what `compare` returns, from sums over the rows that do not depend, to the last bit, on how the rows
    are cut into files and batches, in which order they come, and on how many machines.

    Parameters
    ----------
    source : path, pattern, address, list of these, table, frame, relation or iterator of record batches
        A folder of Parquet, CSV or Arrow files, also on object storage (``s3://``, ``gs://``, ``abfs://``), where names
        of folders such as ``country=DE`` are columns too; a pyarrow Dataset, Table or reader; a Polars LazyFrame; a
        DuckDB relation; a Dask or Spark frame; a function that returns record batches, or an iterator of them.
    weighting : str, Weighting, or several
        ``"administrative"``, ``"ipcw"`` or ``"uncensored"``, or instances of their classes whose weights are estimated
        from the data.
    models : optional
        Where predictions are. None: columns named by time, with the model before a colon, ``net:30``. A pattern such as
        ``"{model}_{time}"``. A list of names, which picks among these. A mapping of names to patterns with ``{time}``,
        or to `ModelColumns`.
    metric : {"brier", "log"} or Loss, or several
        What to compute.
    times : array_like, optional
        The evaluation times; by default those of the columns that all models have.
    outcomes : OutcomeColumns or mapping, optional
        Where outcomes are: ``time``, ``event`` and ``censoring_time``, or with a ``cutoff`` dates ``start``,
        ``event_date`` and ``last_seen``; by default columns of these names.
    by : str or sequence of str
        Columns whose values make segments: each is scored as if it were alone.
    reference : str, optional
        The model that the others are compared with; by default the first.
    ranges : optional
        ``"any"``, or pairs of times: means over time have standard errors. It takes about as long again.
    level : float, default 0.95
        Of all confidence intervals.
    engine : optional
        What does the work: by default threads of this machine over files; a Dask client, or a Spark session. Dask and
        Spark frames bring their own.
    storage_options, format, manifest
        How to reach remote storage, what files are written in, and which files there must be: see `scale.open_source`.
    skip_bad_files : bool, default False
        Leave out files that can't be read; `State.skipped`, a warning and the settings tell which.
    checksums : bool, default False
        Verify the checksums of Parquet pages, if they have any.
    state : path, optional
        A folder where the sums of finished files are kept: interrupted, the same call goes on where it was.
    progress : callable, optional
        Is told how many files, of how many, are done, and how fast.

    Returns
    -------
    Comparison or SegmentedComparison

    Notes
    -----
    Weights that are estimated, by Kaplan-Meier of all rows together, need one pass over data whose times are whole
    units, such as days; otherwise the outcomes are looked at first. Beyond 16 384 distinct times of leaving, times are
    rounded up to as many quantiles, which changes weights by about one part in 16 384.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import survscore as ss
    >>> rows = pa.table({
    ...     "time": [1.0, 3.0, 4.0], "event": [1, 0, 1], "censoring_time": [4.0, 3.0, 6.0],
    ...     "net:2": [0.5, 0.9, 0.8], "net:4": [0.2, 0.7, 0.6],
    ... })
    >>> ss.evaluate(rows, weighting="administrative").scores["score"].round(4).tolist()
    [0.1, 0.2]
    """
    opened = open_source(source, storage_options=storage_options, format=format, manifest=manifest)
    what = specify(
        opened.schema(), weighting=weighting, models=models, metric=metric, times=times, by=by, level=level,
        outcomes=_columns(outcomes), over_time=ranges is not None,
    )  # fmt: skip
    if reference is not None and reference not in what.names:
        raise InputError(f"reference must be one of the models {list(what.names)}, not {reference!r}")
    run = _Run(opened, engine, skip_bad_files, checksums, state, progress)
    total = run.state(what)
    if total.skipped:
        warnings.warn(
            f"{plural(len(total.skipped), 'file')} of {len(total.files)} could not be read and "
            f"{'was' if len(total.skipped) == 1 else 'were'} left out, the first {total.skipped[0]}",
            stacklevel=2,
        )
    result = total.result()
    return result if reference is None else result.against(reference)


def _columns(outcomes: Any) -> OutcomeColumns | None:
    if outcomes is None or isinstance(outcomes, OutcomeColumns):
        return outcomes
    try:
        return OutcomeColumns(**dict(outcomes))
    except TypeError as error:
        raise InputError(f"outcomes must name columns of OutcomeColumns: {error}") from None


@dataclass(frozen=True, eq=False)
class _Run:
    """Goes over a source as often as it takes."""

    source: Source
    engine: Any
    skip_bad: bool
    checksums: bool
    folder: str | Path | None
    progress: Progress

    def state(self, what: Specification) -> State:
        """Return the sums of all rows; weights are looked into only where somebody turns out to leave."""
        some_censored = any(isinstance(one, IPCW) for one in what.weightings)  # nearly always
        tries: tuple[Bins, ...] = ("units",) if some_censored else (None, "units")
        for bins in tries:
            try:
                return self._state(replace(what, bins=bins))
            except BinsNeededError:
                if not self.source.rereadable:
                    raise
        return self._state(replace(what, bins=self._exits(what)))

    def _state(self, what: Specification) -> State:
        total = State(what)
        start = clock.monotonic()
        columns = what.columns(self.source.schema().names)
        if (pieces := self._pieces(what)) is None:
            for rows in self.source.batches(columns, nullable=what.outcomes.nullable()):
                total.update(rows)
                self.progress(0, 1, _speed(total.n, start))
            return total
        with closing(pieces.steps(self._work("state", what, columns))) as steps:
            for step in steps:
                if step.found is not None:
                    total = total + State.from_bytes(step.found)
                self.progress(step.done, step.total, _speed(total.n, start) if total.n else "working")
        if self.source.parts is not None and sorted(total.files) != sorted(part.id for part in self.source.parts):
            raise RuntimeError("the engine has not given the results of all files once each")
        return total

    def _exits(self, what: Specification) -> Bins:
        columns = what.outcomes.names(self.source.schema().names)
        if (pieces := self._pieces(None)) is None:
            return Exits.of(what, self.source.batches(columns, nullable=what.outcomes.nullable())).bins()
        found = Exits.from_bytes(b"")
        with closing(pieces.steps(self._work("exits", what, columns))) as steps:
            for step in steps:
                if step.found is not None:
                    found = found + Exits.from_bytes(step.found)
                self.progress(step.done, step.total, "looking at outcomes")
        return found.bins()

    def _pieces(self, kept_for: Specification | None) -> Pieces | None:
        """Return what gives results by piece; None for a stream, which is read here."""
        if self.source.frame is not None:
            if self.folder is not None:
                raise InputError(f"state keeps the sums of files, but {self.source.name} is a frame")
            return self.source.frame if self.engine is None else self.source.frame.on(self.engine)
        if self.source.parts is None:
            return None
        kept = None if self.folder is None or kept_for is None else _Kept(Path(self.folder), kept_for)
        return _Files(as_engine(self.engine), self.source.parts, kept)

    def _work(self, kind: Any, what: Specification, columns: Sequence[str]) -> Work:
        if self.source.parts is not None:
            expected = expected_schema(self.source.parts[0], columns)
        else:
            expected = ExpectedSchema.of(self.source.name, self.source.schema(), columns)
        return Work(kind, what, expected, self.skip_bad, self.checksums)


@dataclass(frozen=True, eq=False)
class _Files:
    """Files that an engine reads, less those whose sums are kept."""

    engine: Engine
    parts: Sequence[FilePart]
    kept: _Kept | None

    def steps(self, work: Work) -> Generator[Step]:
        if self.kept is None and isinstance(self.engine, MergingEngine):
            yield from self.engine.reduce(work, self.parts)
            return
        waiting, done = [], 0
        for part in self.parts:
            stored = None if self.kept is None else self.kept.load(part)
            if stored is None:
                waiting.append(part)
            else:
                done += 1
                yield Step(done, len(self.parts), stored)
        for part, found in self.engine.run(work, waiting):
            if self.kept is not None:
                self.kept.save(part, found)
            done += 1
            yield Step(done, len(self.parts), found)


class _Kept:
    """Sums of finished files, in a folder: one file each, written whole or not at all."""

    def __init__(self, folder: Path, what: Specification) -> None:
        self.folder = folder / what.digest[:16]
        self.what = what
        self.folder.mkdir(parents=True, exist_ok=True)

    def _path(self, part: FilePart) -> Path:
        return self.folder / f"{hashlib.sha256(part.id.encode()).hexdigest()[:32]}.state"

    def load(self, part: FilePart) -> bytes | None:
        """Return the sums of a file, if they are there and whole."""
        try:
            stored = self._path(part).read_bytes()
            state = State.from_bytes(stored)
        except (FileNotFoundError, InputError):
            return None
        return stored if state.files == (part.id,) and state.specification.digest == self.what.digest else None

    def save(self, part: FilePart, found: bytes) -> None:
        """Keep the sums of a file."""
        with written_whole(self._path(part)) as path:
            path.write_bytes(found)


def _speed(rows: int, start: float) -> str:
    seconds = max(clock.monotonic() - start, 1e-9)
    return f"{rows:,} rows, {rows / seconds / 1e6:.1f} M a second"
