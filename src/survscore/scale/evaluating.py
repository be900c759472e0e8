"""Scores of a data set in files, streams or clusters."""

from __future__ import annotations

import hashlib
import time as clock
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from survscore._files import written_whole
from survscore._progress import Progress, silent
from survscore._validation import InputError, plural
from survscore.comparison import Comparison
from survscore.engine.evaluation import Ranges
from survscore.scale.exits import Exits
from survscore.scale.files import ExpectedSchema, FilePart
from survscore.scale.finishing import finish, first_pass
from survscore.scale.groups import BUCKETS, SEGMENT_BUCKETS, GroupLook
from survscore.scale.influences import Influences
from survscore.scale.sources import Source, expected_schema, open_source
from survscore.scale.specification import Bins, BinsNeededError, OutcomeColumns, Specification, specify
from survscore.scale.state import State
from survscore.scale.threads import Threads
from survscore.scale.work import Kind, Work
from survscore.weighting import IPCW

if TYPE_CHECKING:
    import pyarrow as pa

    from survscore.segments import SegmentedComparison


STEPS = {"exits": "looking at outcomes", "groups": "looking at groups", "influences": "second pass", "state": "reading"}


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
    groups: str | None = None,
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
    groups : str, optional
        The column of labels of individuals that belong together. Where each group is whole within one file, standard
        errors are those of `compare`; otherwise groups are put into random buckets, which the settings of the result
        tell. Takes a second pass over the data.
    reference : str, optional
        The model that the others are compared with; by default the first.
    ranges : optional
        ``"any"``, or pairs of times: means over time have standard errors. It takes about as long again; with
        estimated weights, a second pass over the data.
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
        opened.schema(), weighting=weighting, models=models, metric=metric, times=times, by=by, groups=groups,
        level=level, outcomes=_columns(outcomes), over_time=ranges is not None,
    )  # fmt: skip
    if reference is not None and reference not in what.names:
        raise InputError(f"reference must be one of the models {list(what.names)}, not {reference!r}")
    run = _Run(opened, as_engine(engine), skip_bad_files, checksums, state, progress)
    total, influences = run.sums(what)
    if total.skipped:
        warnings.warn(
            f"{plural(len(total.skipped), 'file')} of {len(total.files)} could not be read and "
            f"{'was' if len(total.skipped) == 1 else 'were'} left out, the first {total.skipped[0]}",
            stacklevel=2,
        )
    result = finish(total, influences)
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

    def sums(self, what: Specification) -> tuple[State, Influences | None]:
        """Return the sums of all rows, and those of a second pass where one is needed."""
        if what.groups is not None:
            look = self._folded("groups", what, GroupLook(np.zeros(0, dtype=np.uint64), 0, 0))
            buckets = SEGMENT_BUCKETS if what.by else BUCKETS
            what = replace(what, largest_group=look.largest) if look.whole else replace(what, buckets=buckets)
        state = self._state(what)
        if not state.specification.two_passes:
            return state, None
        first = first_pass(state)
        nothing = Influences(state.specification, first)
        return state, self._folded("influences", state.specification, nothing, first.to_bytes())

    def _state(self, what: Specification) -> State:
        """Return the sums of all rows; times of leaving are looked into only where somebody turns out to leave."""
        some_censored = any(isinstance(one, IPCW) for one in what.weightings)  # nearly always
        tries: tuple[Bins, ...] = ("units",) if some_censored else (None, "units")
        for bins in tries:
            binned = replace(what, bins=bins)
            try:
                found: State = self._folded("state", binned, State(binned))
                return found
            except BinsNeededError:
                if not self.source.rereadable:
                    raise
        binned = replace(what, bins=self._folded("exits", what, Exits(np.zeros(0))).bins())
        found = self._folded("state", binned, State(binned))
        return found

    def _folded(self, kind: Kind, what: Specification, total: Any, first: bytes = b"") -> Any:
        """Add up what comes of all files, or of one stream, to `total`, which is nothing yet."""
        parts = self.source.parts
        if parts is None:
            return self._streamed(kind, what, total, first)
        start, rows = clock.monotonic(), 0
        columns = what.columns(parts[0].schema().names)
        work = Work(kind, what, expected_schema(parts[0], columns), self.skip_bad, self.checksums, first)
        for done, stored in enumerate(self._results(work, parts), 1):
            one: Any = work.result(stored)
            total = total + one
            rows += one.n if isinstance(one, State) else 0
            self.progress(done, len(parts), _speed(rows, start) if rows else STEPS[kind])
        return total

    def _streamed(self, kind: Kind, what: Specification, total: Any, first: bytes) -> Any:
        names = self.source.schema().names
        work = Work(kind, what, ExpectedSchema("", dict.fromkeys(names, "")), first=first)
        start, done = clock.monotonic(), 0

        def counted() -> Iterator[pa.RecordBatch]:
            nonlocal done
            for rows in self.source.batches(work.columns, nullable=what.outcomes.nullable()):
                done += rows.num_rows
                yield rows
                self.progress(0, 1, _speed(done, start))

        return total + work.result(work.of_rows(counted(), (), self.source.name))

    def _results(self, work: Work, parts: Sequence[FilePart]) -> Iterator[bytes]:
        """Yield the result of every file: kept from an earlier run, or new."""
        kept = None if self.folder is None or work.kind != "state" else _Kept(Path(self.folder), work.specification)
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
            yield found


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
        fits = state.files == (part.id,) and state.specification.digest == self.what.digest
        return stored if fits else None

    def save(self, part: FilePart, found: bytes) -> None:
        """Keep the sums of a file."""
        with written_whole(self._path(part)) as path:
            path.write_bytes(found)


def _speed(rows: int, start: float) -> str:
    seconds = max(clock.monotonic() - start, 1e-9)
    return f"{rows:,} rows, {rows / seconds / 1e6:.1f} M a second"
