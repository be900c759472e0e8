"""Rows as they are, from wherever they lie: for metrics of all individuals together, which no sums can give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from survscore._utils.parallel import cached_property
from survscore._validation import InputError, plural
from survscore.analysis.compare import compare
from survscore.io.tables import arrow
from survscore.metrics import Metric
from survscore.results.comparison import Comparison
from survscore.scale.batches import Batch, Labels, with_weight
from survscore.scale.memory import MemoryLimitError, as_text
from survscore.scale.specification import Specification
from survscore.weighting import Projected

if TYPE_CHECKING:
    import pyarrow as pa

    from survscore.results.segments import SegmentedComparison

COPIES = 4  # of the rows: as they came, side by side, as matrices, and what scores make of them


@dataclass(frozen=True, eq=False)
class Piece:
    """Some rows, and where they stood: the file's id or another name, and the row group with which they begin."""

    name: str
    start: int
    batches: tuple[pa.RecordBatch, ...] = ()

    def __len__(self) -> int:
        return sum(rows.num_rows for rows in self.batches)

    @property
    def n_bytes(self) -> int:
        """How much memory it takes."""
        return sum(rows.nbytes for rows in self.batches)


@dataclass(frozen=True, eq=False)
class Gathered:
    """The columns that a specification names, of some rows.

    Attributes
    ----------
    specification : Specification
        Which columns; it has no metrics.
    pieces : tuple of Piece
        The rows, in any order.
    files, skipped : tuple of str
        The ids of files, and why some were left out.
    limit : int, optional
        How many bytes there may be.
    """

    specification: Specification
    pieces: tuple[Piece, ...] = ()
    files: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    limit: int | None = None

    def __post_init__(self) -> None:
        size = sum(piece.n_bytes for piece in self.pieces)
        if self.limit is not None and size > self.limit:
            what = self.specification
            raise MemoryLimitError(
                f"predictions of {plural(len(what.models), 'model')} at {plural(len(what.models[0].grid), 'time')} "
                f"take more than {as_text(self.limit)}, {COPIES} times over, and there is no more: metrics that are no "
                "sums over individuals need them all at once; ask for fewer times or models, or raise `memory_limit`"
            )

    def update(self, rows: pa.RecordBatch) -> Gathered:
        """Return the same with more rows of its last piece."""
        *before, last = self.pieces
        return replace(self, pieces=(*before, replace(last, batches=(*last.batches, rows))))

    def __add__(self, other: Gathered) -> Gathered:
        return replace(
            self,
            pieces=self.pieces + other.pieces,
            files=self.files + other.files,
            skipped=self.skipped + other.skipped,
        )

    # What is made of them

    @cached_property
    def _batch(self) -> Batch:
        """All rows as one, in an order that does not depend on who was ready first."""
        ordered = sorted(self.pieces, key=lambda piece: (piece.name, piece.start))
        several = [arrow().Table.from_batches([rows]) for piece in ordered for rows in piece.batches if rows.num_rows]
        if not several:
            raise InputError("there are no rows")
        # a column that is empty throughout a file may have another type there
        whole = arrow().concat_tables(several, promote_options="default").unify_dictionaries().combine_chunks()
        return Batch(self.specification, with_weight(self.specification, whole.to_batches()[0]))

    @property
    def n(self) -> int:
        """How many rows there are."""
        return sum(map(len, self.pieces))

    @property
    def n_dropped_out(self) -> int | None:
        """How many dropped out; None if that is unknown."""
        outcomes = self._batch.outcomes
        return None if outcomes.censoring_time is None else int(outcomes.dropped_out.sum())

    @cached_property
    def segments(self) -> list[Labels]:
        """The labels of the segments that there are."""
        return self._batch.segments()[1]

    def compared(
        self, metrics: Sequence[Metric], ranges: Any, reference: str | None
    ) -> Comparison | SegmentedComparison:
        """Return the comparison of the models, as of data in memory."""
        what, batch = self.specification, self._batch
        by = {name: batch.labels(name) for name in what.by} or None
        groups = None if what.groups is None else np.asarray(batch.groups().indices)
        weightings = list(what.weightings)
        if what.strata is not None:
            given = batch.labels(what.strata)
            weightings = [replace(one, strata=given) if isinstance(one, Projected) else one for one in weightings]
        result: Any = compare(
            batch.given_outcomes, {model.name: batch.curves(model) for model in what.models}, metric=list(metrics),
            weighting=weightings, times=what.at, reference=reference, null=False, groups=groups,
            level=what.level, ranges=ranges, by=by,
        )  # fmt: skip
        if not what.by:
            return self._told(result)
        parts = {label: self._told(part) for label, part in result.parts.items()}
        segmented: SegmentedComparison = replace(result, total=self._told(result.total), parts=parts)
        return segmented

    def _told(self, result: Comparison) -> Comparison:
        """Return a result whose settings say from which files it was computed."""
        read = {"files_read": len(self.files) - len(self.skipped), "skipped_files": list(self.skipped)}
        files = read if self.files else {}
        return replace(result, scored=tuple(replace(one, settings={**one.settings, **files}) for one in result.scored))
