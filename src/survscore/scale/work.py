"""What is done with one file, wherever that is: read it, and return what adds up. Plain data in, plain data out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from survscore._utils.parallel import cached_property
from survscore._validation import InputError, plural
from survscore.analysis.compare import compare
from survscore.io.tables import arrow
from survscore.metrics import Metric
from survscore.results.comparison import Comparison
from survscore.scale.batches import Batch, Labels, with_weight
from survscore.scale.files import ROWS, BadFileError, ExpectedSchema, FilePart
from survscore.scale.files import checked as checked_rows
from survscore.scale.influences import FirstPass, Influences
from survscore.scale.looks import Look
from survscore.scale.memory import MemoryLimitError, as_text
from survscore.scale.projected import ProjectedSums, Strata
from survscore.scale.specification import BinsNeededError, Specification
from survscore.scale.state import State
from survscore.weighting import Projected

if TYPE_CHECKING:
    import pyarrow as pa

    from survscore.results.segments import SegmentedComparison

Kind = Literal["state", "look", "influences", "rows"]
Watch: TypeAlias = Callable[[int], None]
COPIES = 4  # of gathered rows: as they came, side by side, as matrices, and in scores


class StoppedError(RuntimeError):
    """The result is no longer needed."""


@dataclass(frozen=True)
class Work:
    """What to do with every file.

    Add up losses, and influences if enough is known already ("state"); look at the times of leaving, groups and a
    sample ("look"); add up influences in a second pass ("influences"), which needs results of the `first`; or gather
    the rows. Sums, or gathered rows, may take `table_bytes`; statuses are projected in `strata`.
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

    def run(self, part: FilePart, watch: Watch = lambda _: None) -> Any:
        """Do it with one file; `watch` gets the number of rows of every batch, and may raise `StoppedError`."""
        what = self.specification
        try:
            result = self.nothing(part.ids, part.id, part.start)
            several = part.batches(
                self.columns,
                rows=self.rows,
                nullable=what.outcomes.nullable(),
                numeric=self.numeric,
                expected=self.expected,
                checksums=self.checksums,
                labels=what.label_columns(),
            )
            result = _updated(result, several, part.name, part.start, watch)
            if isinstance(result, State) and not result.n:
                result.files = tuple(part.uncounted_id for _ in part.ids)
            return result
        except BadFileError as error:
            if not self.skip_bad:
                raise
            return self.left_out(part, error)

    def run_rows(self, name: str, rows: Iterable[Any]) -> Any:
        """Do it with one piece of a frame: record batches or tables, checked as files are; `name` is for messages."""
        # of columns of Python objects a frame knows no type
        typed = {column: kind for column, kind in self.expected.types.items() if kind != "null"}
        expected, nullable = ExpectedSchema(self.expected.part, typed), self.specification.outcomes.nullable()
        several = checked_rows(
            name, rows, self.columns, rows=self.rows, nullable=nullable, numeric=self.numeric, expected=expected
        )
        return _updated(self.nothing(name=name), several, name)

    def left_out(self, part: FilePart, error: BadFileError) -> Any:
        """Return the result of a file that can't be read: no rows, and why, with its path below the source."""
        if self.kind not in ("state", "rows"):
            return self.nothing()
        skipped = (str(error).replace(part.name, part.short_name),)
        return replace(self.nothing((part.uncounted_id,)), skipped=skipped)

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
                return Gathered(what, files, place=(name, start), limit=self.table_bytes)
        projected = None if strata is None else ProjectedSums.of(replace(strata, specification=what))
        return State(what, files, projected=projected, influences=influences, table_bytes=self.table_bytes)


def finished(result: Any) -> Any:
    """Return the result of a piece that has been read: there are no more rows of it, nor of groups in it."""
    return result.close() if isinstance(result, State) else result


def _updated(
    result: Any, several: Iterable[pa.RecordBatch], name: str, start: int = 0, watch: Watch = lambda _: None
) -> Any:
    """Return a result with some batches of rows, the first of row group `start`; their errors get a name."""
    first = 0
    for rows in several:
        watch(rows.num_rows)
        try:
            result = result.update(rows)
        except (BinsNeededError, MemoryLimitError, BadFileError):  # not about single rows
            raise
        except InputError as error:
            origin = [f"row {first}"] if first else []
            origin += [f"row group {start}"] if start else []
            counted = f" (counted from {' of '.join(origin)})" if origin else ""
            raise BadFileError(name, f"{error}{counted}") from None
        first += rows.num_rows
    return finished(result)


@dataclass(frozen=True, eq=False)
class Gathered:
    """Rows as they are, of the columns that a specification names: for metrics that no sums can give.

    Batches come in any order, each with its place: a file's id or another name, a row group, and a number. `skipped`
    says why some of the `files` were left out; batches may take `limit` bytes.
    """

    specification: Specification
    files: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    batches: tuple[tuple[tuple[str, int, int], pa.RecordBatch], ...] = ()
    n_bytes: int = 0
    place: tuple[str, int] = ("", 0)
    limit: int | None = None

    def __post_init__(self) -> None:
        if self.limit is not None and self.n_bytes > self.limit:
            what = self.specification
            raise MemoryLimitError(
                f"predictions of {plural(len(what.models), 'model')} at {plural(len(what.models[0].grid), 'time')} "
                f"take more than {as_text(self.limit)}, {COPIES} times over, and there is no more: metrics that are no "
                "sums over individuals need them all at once; ask for fewer times or models, or raise `memory_limit`"
            )

    def update(self, rows: pa.RecordBatch) -> Gathered:
        """Return the same with more rows of the same place."""
        batches = (*self.batches, ((*self.place, len(self.batches)), rows))
        return replace(self, batches=batches, n_bytes=self.n_bytes + rows.nbytes)

    def __add__(self, other: Gathered) -> Gathered:
        return replace(
            self,
            files=self.files + other.files,
            skipped=self.skipped + other.skipped,
            batches=self.batches + other.batches,
            n_bytes=self.n_bytes + other.n_bytes,
        )

    @cached_property
    def _batch(self) -> Batch:
        """All rows as one, in an order that does not depend on which file was read first."""
        ordered = sorted(self.batches, key=lambda batch: batch[0])
        several = [arrow().Table.from_batches([rows]) for _, rows in ordered if rows.num_rows]
        if not several:
            raise InputError("there are no rows")
        # a column that is empty throughout a file may have another type there
        whole = arrow().concat_tables(several, promote_options="default").unify_dictionaries().combine_chunks()
        return Batch(self.specification, with_weight(self.specification, whole.to_batches()[0]))

    @property
    def n(self) -> int:
        """How many rows there are."""
        return sum(rows.num_rows for _, rows in self.batches)

    @property
    def n_dropped_out(self) -> int | None:
        """How many dropped out; None if that is unknown."""
        outcomes = self._batch.outcomes
        return None if outcomes.censoring_time is None else int(outcomes.dropped_out.sum())

    @property
    def segments(self) -> list[Labels]:
        """The labels of the segments that there are."""
        return self._batch.segments()[1]

    def compared(
        self, metrics: Sequence[Metric], ranges: Any, reference: str | None
    ) -> Comparison | SegmentedComparison:
        """Return the comparison of the models, as of data in memory."""
        what, batch = self.specification, self._batch
        weightings = list(what.weightings)
        if what.strata is not None:
            given = batch.labels(what.strata)
            weightings = [replace(one, strata=given) if isinstance(one, Projected) else one for one in weightings]
        result: Any = compare(
            batch.given_outcomes,
            {model.name: batch.curves(model) for model in what.models},
            metric=list(metrics),
            weighting=weightings,
            times=what.at,
            reference=reference,
            null=False,
            groups=None if what.groups is None else np.asarray(batch.groups().indices),
            level=what.level,
            ranges=ranges,
            by={name: batch.labels(name) for name in what.by} or None,
        )
        if not what.by:
            return self._with_files(result)
        parts = {label: self._with_files(part) for label, part in result.parts.items()}
        segmented: SegmentedComparison = replace(result, total=self._with_files(result.total), parts=parts)
        return segmented

    def _with_files(self, result: Comparison) -> Comparison:
        """Return a result whose settings have the files from which it was computed."""
        files: dict[str, Any] = {}
        if self.files:
            files = {"files_read": len(self.files) - len(self.skipped), "skipped_files": list(self.skipped)}
        return replace(result, scored=tuple(replace(one, settings={**one.settings, **files}) for one in result.scored))
