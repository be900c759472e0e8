"""Sums of a data set so far: updated batch by batch, added, stored, and finished into results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from survscore._utils.arrays import read_only
from survscore._validation import InputError, plural
from survscore._version import __version__
from survscore.metrics import Brier, Loss
from survscore.outcomes import Outcomes
from survscore.scale.batches import Batch, Labels, by_cause
from survscore.scale.exact import ROWS, loss_scale, rounded
from survscore.scale.files import counted_twice
from survscore.scale.memory import check_tables
from survscore.scale.packing import pack, unpack
from survscore.scale.products import ROWS_OVER_TIME, Products
from survscore.scale.specification import BinsNeededError, Specification, bins_of
from survscore.scale.tables import Tables
from survscore.weighting.interval_weights import IntervalWeights, TimeIndex

if TYPE_CHECKING:
    import pyarrow as pa

    from survscore.results.comparison import Comparison
    from survscore.results.segments import SegmentedComparison

FORM = "state"
BINS = 64  # units of time are added so many at a time


@dataclass(eq=False)
class State:
    """Sums over some of the rows of a data set.

    States of different rows add up: ``state + other``, in any order, to the same bits. A state lists the files that it
    was made of, and refuses to be added to one that has seen the same file.

    Attributes
    ----------
    specification : Specification
        What is computed.
    files : tuple of str
        Of which files, by their ids.
    skipped : tuple of str
        Files that could not be read and were left out, with the reason.
    segments : list of tuple of str
        Their labels.
    n : int
        How many rows.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from survscore.scale import State, specify
    >>> rows = pa.record_batch({
    ...     "time": [1.0, 3.0, 4.0], "event": [1, 0, 1], "censoring_time": [4.0, 3.0, 6.0],
    ...     "net:2": [0.5, 0.9, 0.8], "net:4": [0.2, 0.7, 0.6],
    ... })
    >>> what = specify(rows.schema, weighting="administrative")
    >>> first, second = State(what).update(rows[:1]), State(what).update(rows[1:])
    >>> (first + second).result().scores["score"].round(4).tolist()
    [0.1, 0.2]
    >>> (second + first).to_bytes() == State(what).update(rows).to_bytes()
    True
    """

    specification: Specification
    files: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    segments: list[Labels] = field(default_factory=list)
    n: int = 0
    n_dropped_out: int | None = None
    tables: list[Tables] = field(default_factory=list)
    products: list[Products] = field(default_factory=list)
    #: How many bytes the sums may take: no part of what the state says, but of where it is made.
    table_bytes: int | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        what = self.specification
        if not what.metrics:
            raise InputError("metric must be 'brier' or 'log': only these are sums over individuals")
        if not self.tables:
            bins = 1 if what.bins is None or what.bins == "units" else len(what.bins) + 1
            sizes = (len(what.metrics), len(what.times), 0, bins, len(what.models))
            self.tables = [Tables.zeros(*sizes) for _ in what.weightings]
            if what.over_time and not what.two_passes:
                self.products = [Products.zeros(len(what.metrics), 0, len(what.models), len(what.times))
                                 for _ in what.weightings]  # fmt: skip
        self._pending: list[_Pending] | None = None

    # Adding rows

    def update(self, rows: pa.RecordBatch | pa.Table | Iterable[pa.RecordBatch]) -> State:
        """Add rows, in place, and return the state."""
        for part in _batches(rows, ROWS_OVER_TIME if self.products else ROWS):
            self._add(Batch(self.specification, part))
        return self

    def _add(self, batch: Batch) -> None:
        from survscore.scale import _kernels

        if self._rows + len(batch) > ROWS:  # 64 bits hold the sums of so many rows, and no more
            self.settle()
        what = self.specification
        outcomes = batch.outcomes
        codes, labels = batch.segments()
        segment, bins = self._places(labels)[codes], self._bins(outcomes)
        index = TimeIndex(outcomes, what.at)
        order = None
        if len(self.segments) > 1 or what.bins is not None:
            # rows of a segment, and of a bin, together: their sums stay in registers
            n_bins = self.tables[0].n_bins
            order = _kernels.order_by(segment * np.int32(n_bins) + bins, len(self.segments) * n_bins)
            segment, bins = segment[order], bins[order]
        stretches = []
        for q, weighting in enumerate(what.weightings):
            left = weighting.leaves(outcomes)
            if what.bins is None and weighting.estimated and left.any():
                raise BinsNeededError(
                    f"{plural(int(left.sum()), 'individual')} left before C*, but this state has no bins to weight for "
                    "them: specify bins='units' for times in whole units, or use evaluate, which looks first"
                )
            one = by_cause(weighting.unweighted(index), outcomes)
            if order is not None:
                one, left = one.rows(order), left[order]
            stretches.append(one)
            self._pendings()[q].count(one, segment, bins, left)
        if what.models:
            self._add_losses(batch, order, stretches, segment, bins)
        if outcomes.censoring_time is not None:
            self.n_dropped_out = (self.n_dropped_out or 0) + int(outcomes.dropped_out.sum())
        self.n += len(batch)
        self._rows += len(batch)

    def _add_losses(
        self,
        batch: Batch,
        order: NDArray[np.int32] | None,
        stretches: Sequence[IntervalWeights],
        segment: NDArray[np.int32],
        bins: NDArray[np.int32],
    ) -> None:
        from survscore.scale import _kernels

        what = self.specification
        n, k, m = len(batch), len(what.models), len(what.times)
        kinds = [(_kernels.BRIER if isinstance(one, Brier) else _kernels.LOG, one.epsilon) for one in what.metrics]
        shape = (len(self.products), len(kinds), k + 1, m, n)
        if self._filled.shape != shape:
            self._filled = np.empty(shape)
        filled, nothing = self._filled, np.empty((k + 1, 1, 0))[:, 0]
        row = segment * np.int32(self.tables[0].n_bins) + bins
        for j, (columns, previous, tolerance) in enumerate(batch.at_times(order)):
            for q, one in enumerate(stretches):
                pending = self._pendings()[q]
                for place, (kind, epsilon) in enumerate(kinds):
                    rows = (j, kind, epsilon, one.event_index, one.follow_up_index, read_only(one.label), segment)
                    sums = (pending.first[place, j], pending.late[place, j], pending.event[place, j])
                    if what.bins is not None:
                        _kernels.add_stretches(columns, *rows, row, *sums)
                        continue
                    # all have the same weight
                    kept = filled[q][place][:, j] if self.products else nothing
                    if _kernels.add_counted(columns, previous, tolerance, *rows, sums[0], Products.scale, kept):
                        batch.check()
                if one.dropout_index is not None:
                    pending.add_lost(np.stack(columns), j, one, segment, what.metrics)
        for products, of_weighting in zip(self.products, filled, strict=True):
            for place, losses in enumerate(of_weighting):
                products.add(place, losses.reshape(-1, n), segment)

    def _bins(self, outcomes: Outcomes) -> NDArray[np.int32]:
        """Return each individual's bin, with room for those that are new."""
        bins = bins_of(self.specification, outcomes)
        if self.specification.bins == "units":
            wanted = -(-(int(bins.max(initial=0)) + 1) // BINS) * BINS
            if wanted > self.tables[0].n_bins:
                self._grow(len(self.segments), wanted)
        return bins

    def _places(self, labels: Sequence[Labels]) -> NDArray[np.int32]:
        """Return where segments are, with room for those that are new."""
        known = {label: place for place, label in enumerate(self.segments)}
        new = [label for label in labels if label not in known]
        if new:
            self._grow(len(self.segments) + len(new), self.tables[0].n_bins)
            self.segments = [*self.segments, *new]
            known |= {label: place for place, label in enumerate(self.segments)}
        return np.array([known[label] for label in labels], dtype=np.int32)

    def _grow(self, n_segments: int, n_bins: int) -> None:
        check_tables(self.specification, n_segments, n_bins, self.table_bytes)
        self.settle()
        places = np.arange(self.tables[0].n_segments)
        self.tables = [one.placed(places, n_segments, n_bins) for one in self.tables]
        self.products = [one.placed(places, n_segments) for one in self.products]

    # Sums of the last rows in 64 bits, until there are too many

    _rows: int = field(default=0, init=False, repr=False)
    _filled: NDArray[np.float64] = field(default_factory=lambda: np.empty(0), init=False, repr=False)

    def _pendings(self) -> list[_Pending]:
        if self._pending is None:
            self._pending = [_Pending.like(one) for one in self.tables]
        return self._pending

    def settle(self) -> None:
        """Add the sums of the last rows to those of all; to be called before reading `tables`."""
        if self._pending is not None:
            for pending, tables in zip(self._pending, self.tables, strict=True):
                pending.settle(tables)
        self._pending, self._rows = None, 0

    # Adding states

    def __add__(self, other: State) -> State:
        if not isinstance(other, State):
            return NotImplemented
        if self.specification.digest != other.specification.digest:
            raise InputError(
                "states of different specifications can't be added: "
                + differences(self.specification, other.specification)
            )
        twice = counted_twice(self.files, other.files)
        if twice:
            raise InputError(twice)
        self.settle()
        other.settle()
        segments = sorted({*self.segments, *other.segments})
        n_bins = max(self.tables[0].n_bins, other.tables[0].n_bins)
        check_tables(self.specification, len(segments), n_bins, self.table_bytes)
        place_of = {label: place for place, label in enumerate(segments)}
        parts = []
        for one in (self, other):
            places = np.array([place_of[label] for label in one.segments], dtype=np.intp)
            parts.append((
                [table.placed(places, len(segments), n_bins) for table in one.tables],
                [table.placed(places, len(segments)) for table in one.products],
            ))  # fmt: skip
        (tables, products), (other_tables, other_products) = parts
        lost = [one.n_dropped_out for one in (self, other) if one.n_dropped_out is not None]
        return State(
            self.specification,
            tuple(sorted((*self.files, *other.files))),
            tuple(sorted((*self.skipped, *other.skipped))),
            segments,
            self.n + other.n,
            sum(lost) if lost else None,
            [a + b for a, b in zip(tables, other_tables, strict=True)],
            [a + b for a, b in zip(products, other_products, strict=True)],
            self.table_bytes,
        )

    # As bytes

    def to_bytes(self) -> bytes:
        """Return the state as bytes: equal states have equal bytes. Plain numbers, nothing that runs."""
        self.settle()
        order = sorted(range(len(self.segments)), key=lambda place: self.segments[place])
        places = np.argsort(np.array(order, dtype=np.intp))
        arrays: dict[str, NDArray[np.int64]] = {}
        for q, table in enumerate(self.tables):
            sorted_table = table.placed(places, len(order), table.n_bins)
            arrays |= {f"{q}.{name}": values for name, values in sorted_table.arrays().items()}
        for q, products in enumerate(self.products):
            sorted_products = products.placed(places, len(order))
            arrays |= {f"{q}.{name}": values for name, values in sorted_products.arrays().items()}
        header = {
            "survscore": __version__,
            "specification": self.specification.to_json(),
            "files": sorted(self.files),
            "skipped": sorted(self.skipped),
            "segments": [list(self.segments[place]) for place in order],
            "n": self.n,
            "n_dropped_out": self.n_dropped_out,
        }
        return pack(FORM, header, arrays)

    @classmethod
    def from_bytes(cls, stored: bytes) -> State:
        """Take what `to_bytes` returned; anything else is refused."""
        header, arrays = unpack(FORM, stored)
        try:
            what = Specification.from_json(header["specification"])
            parts = [
                {name.split(".", 1)[1]: values for name, values in arrays.items() if name.startswith(f"{q}.")}
                for q in range(len(what.weightings))
            ]
            return cls(
                what,
                tuple(header["files"]),
                tuple(header["skipped"]),
                [tuple(label) for label in header["segments"]],
                int(header["n"]),
                header["n_dropped_out"],
                [Tables.of_arrays(part) for part in parts],
                [Products.of_arrays(part) for part in parts if "products.high" in part],
            )
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"not a state of survscore: {error}") from None

    # Results

    def result(self) -> Comparison | SegmentedComparison:
        """Return scores, standard errors and differences: of all individuals, and of each segment if there are any."""
        from survscore.scale.finishing import finish

        return finish(self)


@dataclass(eq=False)
class _Pending:
    """Sums of so few rows that 64 bits hold them."""

    n_segments: int
    n_bins: int
    first: NDArray[np.int64]
    late: NDArray[np.int64]
    event: NDArray[np.int64]
    known: NDArray[np.int64]
    lowest: NDArray[np.int64]
    highest: NDArray[np.int64]
    counts: Tables

    @classmethod
    def like(cls, tables: Tables) -> _Pending:
        metrics, times, segments, quantities = tables.first.high.shape
        event = np.zeros((metrics, times, segments * tables.n_bins, quantities), dtype=np.int64)
        return cls(
            segments, tables.n_bins, np.zeros_like(tables.first.high), np.zeros_like(tables.late.high), event,
            np.zeros_like(tables.known.high), np.zeros_like(tables.lowest.high), np.zeros_like(tables.highest.high),
            tables,
        )  # fmt: skip

    def count(
        self, one: IntervalWeights, segment: NDArray[np.int32], bins: NDArray[np.int32], left: NDArray[np.bool_]
    ) -> None:
        """Count the individuals of a batch; counts can't overflow, so they go where they stay."""
        from survscore.scale import _kernels

        counts, m = self.counts, self.late.shape[1]
        _kernels.count_rows(
            one.event_index, one.follow_up_index, one.population_index, one.label, left, segment, bins,
            counts.first_stops, counts.late_counts, counts.event_changes, counts.population_stops, counts.everybody,
            counts.left, counts.other_changes,
        )  # fmt: skip
        if one.dropout_index is not None:
            lost = np.flatnonzero(one.dropout_index < one.population_index)
            changes = np.zeros((self.n_segments, m + 1), dtype=np.int64)
            np.add.at(changes, (segment[lost], one.dropout_index[lost]), 1)
            np.add.at(changes, (segment[lost], one.population_index[lost]), -1)
            counts.lost_counts[...] += np.cumsum(changes, axis=1)[:, :m]
            seen = np.flatnonzero(left & (one.event_index < one.dropout_index))
            np.add.at(counts.known_counts, (segment[seen], one.event_index[seen]), 1)

    def add_lost(
        self,
        predicted: NDArray[Any],
        j: int,
        one: IntervalWeights,
        segment: NDArray[np.int32],
        losses: Sequence[Loss],
    ) -> None:
        """Add what the lost would cost with either status, at one time."""
        from survscore.engine.moments import contrast, pairs

        if one.dropout_index is None:
            return
        unknown = np.flatnonzero((one.dropout_index <= j) & (j < one.population_index))
        seen = np.flatnonzero((one.event_index <= j) & (j < one.dropout_index) & (one.follow_up_index <= j))
        for place, loss in enumerate(losses):
            scale = loss_scale(loss)
            if unknown.size:
                survival = predicted[:, unknown]
                both = scale * np.array([loss.of_event_free(survival), loss.of_event(survival)])
                for p, (a, b) in enumerate(pairs(len(predicted))):
                    values = contrast(both.transpose(1, 0, 2), a, b)
                    np.add.at(self.lowest[place, j, :, p], segment[unknown], rounded(values.min(axis=0)))
                    np.add.at(self.highest[place, j, :, p], segment[unknown], rounded(values.max(axis=0)))
            if seen.size:
                values = scale * loss.of_event_free(predicted[:, seen])
                for a, of_model in enumerate(values):
                    np.add.at(self.known[place, j, :, a], segment[seen], rounded(of_model))

    def settle(self, tables: Tables) -> None:
        """Add the sums where they stay."""
        for mine, theirs in (
            (self.first, tables.first), (self.late, tables.late), (self.known, tables.known),
            (self.lowest, tables.lowest), (self.highest, tables.highest),
        ):  # fmt: skip
            theirs.add(mine)
        tables.event.add(self.event.reshape(tables.event.high.shape))


def _batches(rows: Any, size: int) -> Iterator[pa.RecordBatch]:
    """Yield batches of at most so many rows."""
    several = rows.to_batches() if hasattr(rows, "to_batches") else [rows] if hasattr(rows, "num_rows") else rows
    for batch in several:
        for start in range(0, batch.num_rows, size):
            yield batch.slice(start, min(size, batch.num_rows - start))


def differences(one: Specification, other: Specification) -> str:
    """Return in what two specifications differ."""
    mine, theirs = one.to_json(), other.to_json()
    return ", ".join(key for key in mine if mine[key] != theirs[key]) + " differ"
