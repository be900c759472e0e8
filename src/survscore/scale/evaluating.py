"""Scores of a data set in files, streams or clusters."""

from __future__ import annotations

import hashlib
import time as clock
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from numpy.typing import ArrayLike

from survscore._files import written_whole
from survscore._progress import Progress, silent
from survscore._validation import InputError, plural
from survscore.comparison import Comparison
from survscore.engine.evaluation import Ranges
from survscore.scale.exits import Exits
from survscore.scale.files import FilePart
from survscore.scale.sources import Source, expected_schema, open_source
from survscore.scale.specification import Bins, OutcomeColumns, Specification, specify
from survscore.scale.state import BinsNeededError, State
from survscore.scale.threads import Threads
from survscore.scale.work import Work
from survscore.weighting import IPCW

if TYPE_CHECKING:
    from survscore.segments import SegmentedComparison


class Engine(Protocol):
    """Something that does the same work with many files."""

    def run(self, work: Work, parts: Sequence[FilePart]) -> Iterator[tuple[FilePart, bytes]]:
        """Yield every file with its result, in any order."""


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
        What does the work: by default threads of this machine over files; a Dask client, or a Spark session.
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
    run = _Run(opened, as_engine(engine), skip_bad_files, checksums, state, progress)
    total = run.state(what)
    if total.skipped:
        warnings.warn(
            f"{plural(len(total.skipped), 'file')} of {len(total.files)} could not be read and "
            f"{'was' if len(total.skipped) == 1 else 'were'} left out, the first {total.skipped[0]}",
            stacklevel=2,
        )
    result = total.result()
    return result if reference is None else result.against(reference)


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
    engine: Engine
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
        if self.source.parts is None:
            state = State(what)
            columns = what.columns(self.source.schema().names)
            done, start = 0, clock.monotonic()
            for rows in self.source.batches(columns, nullable=what.outcomes.nullable()):
                state.update(rows)
                done += rows.num_rows
                self.progress(0, 1, _speed(done, start))
            return state
        total = State(what)
        start, rows = clock.monotonic(), 0
        for done, state in enumerate(self._states(what, self.source.parts), 1):
            total = total + state
            rows += state.n
            self.progress(done, len(self.source.parts), _speed(rows, start))
        return total

    def _states(self, what: Specification, parts: Sequence[FilePart]) -> Iterator[State]:
        work = self._work("state", what, parts[0])
        kept = None if self.folder is None else _Kept(Path(self.folder), what)
        waiting = []
        for part in parts:
            stored = None if kept is None else kept.load(part)
            if stored is None:
                waiting.append(part)
            else:
                yield stored
        for part, found in self.engine.run(work, waiting):
            if kept is not None:
                kept.save(part, found)
            yield State.from_bytes(found)

    def _exits(self, what: Specification) -> Bins:
        if self.source.parts is None:
            columns = what.outcomes.names(self.source.schema().names)
            return Exits.of(what, self.source.batches(columns, nullable=what.outcomes.nullable())).bins()
        found = Exits.from_bytes(b"")
        work = self._work("exits", what, self.source.parts[0])
        for done, (_, stored) in enumerate(self.engine.run(work, self.source.parts), 1):
            found = found + Exits.from_bytes(stored)
            self.progress(done, len(self.source.parts), "looking at outcomes")
        return found.bins()

    def _work(self, kind: Any, what: Specification, first: FilePart) -> Work:
        columns = what.columns(first.schema().names)
        return Work(kind, what, expected_schema(first, columns), self.skip_bad, self.checksums)


class _Kept:
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
        return state if state.files == (part.id,) and state.specification.digest == self.what.digest else None

    def save(self, part: FilePart, found: bytes) -> None:
        """Keep the sums of a file."""
        with written_whole(self._path(part)) as path:
            path.write_bytes(found)


def _speed(rows: int, start: float) -> str:
    seconds = max(clock.monotonic() - start, 1e-9)
    return f"{rows:,} rows, {rows / seconds / 1e6:.1f} M a second"
