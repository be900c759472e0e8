"""Sums of a data set so far: updated batch by batch, added, stored, and finished into results."""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from survscore._utils.arrays import read_only
from survscore._validation import InputError, plural
from survscore._version import __version__
from survscore.engine.moments import contrast, pairs
from survscore.io.limits import machine_memory
from survscore.metrics import Brier, Loss
from survscore.outcomes import Outcomes
from survscore.scale.batches import Batch, Labels, by_cause, with_weight
from survscore.scale.files import counted_twice
from survscore.scale.memory import check_tables
from survscore.scale.projected import ProjectedSums
from survscore.scale.specification import MOST_BINS, BinsNeededError, Specification, bins_of
from survscore.scale.sums import SIGNED, Sums, bytes_of, kind_of, shapes, sizes_of
from survscore.weighting.interval_weights import IntervalWeights, TimeIndex

if TYPE_CHECKING:
    import pyarrow as pa

    from survscore.results.comparison import Comparison
    from survscore.results.segments import SegmentedComparison
    from survscore.scale.influences import Influences

BINS = 64  # units of time are added so many at a time
ROWS = 1 << 18  # at once
ROWS_OVER_TIME = 1 << 15  # so few that losses at all times stay in a cache
FIRST_LINE = re.compile(rb"survscore state (\d{1,6})\n")
MOST_HEADER = 1 << 26  # bytes
MOST_ROWS = 1 << 53
#: What is counted in one loop over the rows, in its order.
COUNTED = (
    "first_stops", "late_counts", "event_changes", "population_stops", "everybody", "left", "other_changes",
)  # fmt: skip


@dataclass(eq=False)
class State:
    """Sums over some of the rows of a data set.

    States of different rows add up: ``state + other``, in any order, to the same sums within rounding (1e-12). A state
    lists the files that it was made of, and refuses to be added to one that has seen the same file.

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
    n_dropped_out : int, optional
        How many of them dropped out; None where that is not known.
    sums : list of Sums
        Of each weighting that one pass makes.
    projected : ProjectedSums, optional
        What projected scores are made of, by strata that an earlier pass found. They are not stored.
    influences : Influences, optional
        What variances are made of that are no sums of one pass. They are not stored.
    largest_weight : float
        The largest sample weight.

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
    """

    specification: Specification
    files: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    segments: list[Labels] = field(default_factory=list)
    n: int = 0
    n_dropped_out: int | None = None
    sums: list[Sums] = field(default_factory=list)
    projected: ProjectedSums | None = None
    influences: Influences | None = None
    #: How many bytes the sums may take: no part of what the state says, but of where it is made.
    table_bytes: int | None = field(default=None, repr=False)
    largest_weight: float = 0.0

    def __post_init__(self) -> None:
        if not self.specification.metrics:
            raise InputError("metric must be 'brier' or 'log': only these are sums over individuals")
        if not self.sums:
            self.sums = [Sums.zeros(sizes_of(self.specification)) for _ in self.specification.in_one_pass]

    @property
    def n_bins(self) -> int:
        """How many bins of time there are."""
        return self.sums[0].sizes["bin"] if self.sums else self.projected.n_bins  # type: ignore[union-attr]

    @property
    def _over_time(self) -> bool:
        return bool(self.sums and self.sums[0].sizes["column"])

    # Adding rows

    def update(self, rows: pa.RecordBatch | pa.Table | Iterable[pa.RecordBatch]) -> State:
        """Add rows, in place, and return the state."""
        for part in _batches(rows, ROWS_OVER_TIME if self._over_time else ROWS, self.specification):
            self._add(Batch(self.specification, part))
        return self

    def _add(self, batch: Batch) -> None:
        from survscore.scale import _kernels

        what = self.specification
        outcomes = batch.outcomes
        codes, labels = batch.segments()
        segment, bins = self._places(labels)[codes], self._bins(outcomes)
        index = TimeIndex(outcomes, what.at)
        if self.projected is not None or self.influences is not None:
            self._add_influences(batch)
        order = None
        if len(self.segments) > 1 or what.bins is not None:
            # rows of a segment, and of a bin, together: their sums stay in registers
            order, _ = _kernels.order_by(segment * np.int32(self.n_bins) + bins, len(self.segments) * self.n_bins)
            segment, bins = segment[order], bins[order]
        stretches, powers = [], _powers(outcomes)
        for weighting, sums in zip(what.in_one_pass, self.sums, strict=True):
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
            _count(sums, one, segment, bins, left, powers if order is None else [own[order] for own in powers])
        if what.models and self.sums:
            sample = np.asarray(powers[0] if order is None else powers[0][order], dtype=np.float64)
            self._add_losses(batch, order, stretches, segment, bins, sample)
        if outcomes.censoring_time is not None:
            self.n_dropped_out = (self.n_dropped_out or 0) + (outcomes.n_dropped_out or 0)
        if outcomes.weights is not None:
            self.largest_weight = max(self.largest_weight, float(outcomes.weights.max()))
        self.n += len(batch)

    def _add_losses(
        self,
        batch: Batch,
        order: NDArray[np.int32] | None,
        stretches: Sequence[IntervalWeights],
        segment: NDArray[np.int32],
        bins: NDArray[np.int32],
        sample: NDArray[np.float64],
    ) -> None:
        from survscore.scale import _kernels

        what, over_time = self.specification, self._over_time
        n, k, m = len(batch), len(what.models), len(what.times)
        kinds = [(_kernels.BRIER if isinstance(one, Brier) else _kernels.LOG, one.epsilon) for one in what.metrics]
        shape = (len(stretches), len(kinds), k + 1, m, n) if over_time else (0,)
        if self._filled.shape != shape:
            self._filled = np.empty(shape)
        filled, nothing = self._filled, np.empty((k + 1, 1, 0))[:, 0]
        row = segment * np.int32(self.n_bins) + bins
        for j, (columns, previous, tolerance) in enumerate(batch.at_times(order)):
            for q, (one, sums) in enumerate(zip(stretches, self.sums, strict=True)):
                for place, (kind, epsilon) in enumerate(kinds):
                    ranges = (one.event_index, one.follow_up_index, read_only(one.label), sample, segment)
                    rows = (j, kind, epsilon, *ranges)
                    first, late, event = (sums[name][place, j] for name in ("first", "late", "event"))
                    if what.bins is not None:
                        event = event.reshape(-1, event.shape[-1])
                        _kernels.add_stretches(columns, *rows, row, first, late, event)
                        continue
                    # all have the same weight
                    kept = filled[q, place, :, j] if over_time else nothing
                    if _kernels.add_counted(columns, previous, tolerance, *rows, first, kept):
                        batch.check()
                if one.dropout_index is not None:
                    _add_lost(sums, np.stack(columns), j, one, segment, sample, what.metrics)
        for sums, of_weighting in zip(self.sums, filled if over_time else (), strict=over_time):
            for place, losses in enumerate(of_weighting):
                add_products(sums["products"][place], losses.reshape(-1, n), segment)

    def _add_influences(self, batch: Batch) -> None:
        from survscore.scale.influences import Rows, add_rows

        strata = None if self.projected is None else self.projected.strata
        first = None if self.influences is None else self.influences.first
        rows = Rows.of(batch, strata.segments if first is None else first.segments, strata)  # type: ignore[union-attr]
        add_rows(rows, self.projected, self.influences)

    _filled: NDArray[np.float64] = field(default_factory=lambda: np.empty(0), init=False, repr=False)

    def close(self) -> State:
        """Give back what only more rows would need."""
        self._filled = np.empty(0)
        return self

    def _bins(self, outcomes: Outcomes) -> NDArray[np.int32]:
        """Return each individual's bin, with room for those that are new."""
        bins = bins_of(self.specification, outcomes)
        if self.specification.bins == "units" and (last := int(bins.max(initial=0))) >= self.n_bins:
            self.reach(last)
        return bins

    def reach(self, last: int) -> None:
        """Make room for whole units of time up to this."""
        self._grow(len(self.segments), -(-(last + 1) // BINS) * BINS)

    def _places(self, labels: Sequence[Labels]) -> NDArray[np.int32]:
        """Return where segments are, with room for those that are new."""
        known = {label: place for place, label in enumerate(self.segments)}
        new = [label for label in labels if label not in known]
        if new:
            self._grow(len(self.segments) + len(new), self.n_bins)
            self.segments = [*self.segments, *new]
            known |= {label: place for place, label in enumerate(self.segments)}
        return np.array([known[label] for label in labels], dtype=np.int32)

    def _grow(self, n_segments: int, n_bins: int) -> None:
        check_tables(self.specification, n_segments, n_bins, self.table_bytes)
        places = np.arange(len(self.segments))
        self.sums = [one.placed(places, n_segments, n_bins) for one in self.sums]
        if self.projected is not None:
            self.projected = self.projected.grown(n_bins, self.table_bytes)

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
        segments = sorted({*self.segments, *other.segments})
        n_bins = max(self.n_bins, other.n_bins)
        check_tables(self.specification, len(segments), n_bins, self.table_bytes)
        mine, theirs = (one._placed(segments, n_bins) for one in (self, other))
        lost = [one.n_dropped_out for one in (self, other) if one.n_dropped_out is not None]
        return State(
            self.specification,
            tuple(sorted((*self.files, *other.files))),
            tuple(sorted((*self.skipped, *other.skipped))),
            segments,
            self.n + other.n,
            sum(lost) if lost else None,
            [a + b for a, b in zip(mine, theirs, strict=True)],
            None if self.projected is None or other.projected is None else self.projected + other.projected,
            None if self.influences is None or other.influences is None else self.influences + other.influences,
            self.table_bytes,
            max(self.largest_weight, other.largest_weight),
        )

    def _placed(self, segments: Sequence[Labels], n_bins: int) -> list[Sums]:
        """Return the sums with segments in this order, among which are all of its own."""
        place_of = {label: place for place, label in enumerate(segments)}
        places = np.array([place_of[label] for label in self.segments], dtype=np.intp)
        return [one.placed(places, len(segments), n_bins) for one in self.sums]

    # As bytes: a line that tells the version, a checksum, a header in JSON, and numbers. Nothing that runs.

    def to_bytes(self) -> bytes:
        """Return the state as bytes: equal states have equal bytes. Plain numbers, nothing that runs."""
        if self.projected is not None or self.influences is not None:
            raise InputError("projected scores take several passes over all rows: there are no sums of them to store")
        segments, packing = sorted(self.segments), zlib.compressobj(1)
        header = {
            "survscore": __version__,
            "specification": self.specification.to_json(),
            "files": sorted(self.files),
            "skipped": sorted(self.skipped),
            "segments": [list(label) for label in segments],
            "bins": self.n_bins,
            "n": self.n,
            "n_dropped_out": self.n_dropped_out,
        }
        text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
        packed = [
            packing.compress(np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<")).data)
            for sums in self._placed(segments, self.n_bins)
            for values in sums.values.values()
        ]
        body = b"".join((len(text).to_bytes(8, "little"), text, *packed, packing.flush()))
        return f"survscore state {self.specification.version}\n".encode() + hashlib.sha256(body).digest() + body

    @classmethod
    def from_bytes(cls, stored: bytes, most_bytes: int | None = None) -> State:
        """Take what `to_bytes` returned; anything else is refused.

        What the header says is held against its own specification before any number is unpacked: it tells which arrays
        there are, of which shapes and types. Sums may take `most_bytes`, by default a quarter of this machine's memory.
        """
        line = FIRST_LINE.match(stored)
        if line is None:
            raise InputError("not a state of survscore")
        if int(line[1]) != Specification.version:
            raise InputError(
                f"a state of version {int(line[1])}: this version of survscore reads {Specification.version}; make it "
                "anew from its files"
            )
        body = stored[line.end() + 32 :]
        if hashlib.sha256(body).digest() != stored[line.end() : line.end() + 32]:
            raise InputError("the state is damaged: its checksum does not fit")
        try:
            size = int.from_bytes(body[:8], "little")
            if size > MOST_HEADER:
                raise ValueError(f"its header has {size} bytes")
            header = json.loads(body[8 : 8 + size])
            what = Specification.from_json(header["specification"])
            segments = [_texts(label) for label in header["segments"]]
            n_bins, n, n_dropped_out = header["bins"], header["n"], header["n_dropped_out"]
            files, skipped = _texts(header["files"]), _texts(header["skipped"])
            if what.projected is not None:
                raise ValueError("it claims sums of projected scores, of which there are none")
            _check_header(what, segments, n_bins, n, n_dropped_out)
            most = machine_memory() // 4 if most_bytes is None else most_bytes
            check_tables(what, len(segments), n_bins, most)
            sums = _unpacked(
                sizes_of(what, segments=len(segments), bins=n_bins), len(what.in_one_pass), body[8 + size :]
            )
            _check_sums(what, sums, n)
        except (KeyError, TypeError, ValueError, RecursionError, OverflowError, MemoryError, zlib.error) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"not a state of survscore: {error}") from None
        return cls(what, files, skipped, segments, n, n_dropped_out, sums)

    # Results

    def result(self) -> Comparison | SegmentedComparison:
        """Return scores, standard errors and differences: of all individuals, and of each segment if there are any."""
        from survscore.scale.finishing import finish

        return finish(self)


def _texts(several: Any) -> tuple[str, ...]:
    if not isinstance(several, list) or not all(isinstance(one, str) for one in several):
        raise ValueError("its header has something else than text where there must be text")
    return tuple(several)


def _check_header(what: Specification, segments: list[Labels], n_bins: Any, n: Any, n_dropped_out: Any) -> None:
    """Raise unless what a header says is possible under its specification."""
    if any(type(number) is not int for number in (n_bins, n, 0 if n_dropped_out is None else n_dropped_out)):
        raise ValueError("its header has something else than whole numbers where there must be some")
    expected = sizes_of(what)["bin"]
    units = range(1, MOST_BINS + BINS) if what.bins == "units" else (expected,)
    if n_bins not in units:
        raise ValueError(f"it claims {n_bins} bins of time")
    if not 0 <= n <= MOST_ROWS or not 0 <= (n_dropped_out or 0) <= n:
        raise ValueError(f"it claims {n} individuals, of whom {n_dropped_out} dropped out")
    if len(set(segments)) < len(segments) or any(len(label) != len(what.by) for label in segments):
        raise ValueError(f"its segments are not those of {len(what.by)} columns, or not all different")
    if len(segments) > n or (n and not segments):
        raise ValueError(f"it claims {len(segments)} segments of {n} individuals")


def _unpacked(sizes: Any, count: int, packed: bytes) -> list[Sums]:
    """Return the numbers; never more of them are unpacked than there must be."""
    wanted = count * bytes_of(sizes)
    numbers = zlib.decompressobj().decompress(packed, wanted + 1)
    if len(numbers) != wanted:
        raise ValueError(f"it does not have the {wanted} bytes of numbers that it must have")
    found, start = [], 0
    for _ in range(count):
        values = {}
        for name, shape in shapes(sizes).items():
            kind = np.dtype(kind_of(name, sizes))
            one = np.frombuffer(numbers, kind.newbyteorder("<"), prod(shape), start)
            values[name], start = one.reshape(shape).astype(kind), start + one.nbytes
        found.append(Sums(sizes, values))
    return found


def _check_sums(what: Specification, several: Sequence[Sums], n: int) -> None:
    """Raise unless sums are such as individuals make: none is NaN, no sum of squares below zero, no count above all."""
    for sums in several:
        for name, values in sums.values.items():
            of_count = values.dtype.kind == "i"
            low, high = (values.min(initial=0), values.max(initial=0))
            if not np.isfinite([low, high]).all() or (name not in SIGNED and low < 0):
                raise ValueError(f"its sums {name!r} are not finite, or below zero")
            if of_count and max(abs(int(low)), int(high)) > n:
                raise ValueError(f"its counts {name!r} are larger than its {n} individuals")
        if int(sums["everybody"].sum()) != n or (sums["left"] > sums["everybody"]).any():
            raise ValueError("its counts do not add up to its individuals")
        if int(sums["population_stops"].sum()) != n or int(sums["first_stops"].sum()) != n:
            raise ValueError("its counts do not add up to its individuals")
        if (np.cumsum(sums["event_changes"], axis=-1) < 0).any():
            raise ValueError("its counts of events are below zero")
        for place, loss in enumerate(what.metrics):
            worst = -np.log(loss.epsilon) if loss.epsilon else 1.0  # of one individual; squares are at most its square
            most = n * max(worst, worst**2) * (1 + 1e-9)
            if any(sums[name][place].max(initial=0.0) > most for name in ("first", "late", "event", "known")):
                raise ValueError(f"its sums of {loss.name!r} are larger than {n} individuals can make them")


def add_products(products: NDArray[np.float64], columns: NDArray[np.float64], segment: NDArray[Any]) -> None:
    """Add products of columns, (columns, rows), to (segments, columns, columns)."""
    if len(products) == 1:
        products[0] += columns @ columns.T
        return
    for which in np.unique(segment).tolist():
        some = columns[:, segment == which]
        products[which] += some @ some.T


def _powers(outcomes: Outcomes) -> list[NDArray[Any]]:
    """Return what each individual counts: its sample weight, one, and the square; all the same where weights count."""
    if outcomes.weights is None:
        return [np.ones(len(outcomes), dtype=np.int64)]
    weights = np.asarray(outcomes.weights)
    if outcomes.weight_kind == "frequency":
        return [weights] * 3
    return [weights, np.ones(weights.size), weights**2]


def _count(
    sums: Sums, one: IntervalWeights, segment: NDArray[np.int32], bins: NDArray[np.int32], left: NDArray[np.bool_],
    powers: Sequence[NDArray[Any]],
) -> None:  # fmt: skip
    """Count the individuals of a batch."""
    from survscore.scale import _kernels

    m = sums.sizes["time"]
    for power, own in enumerate(powers):
        _kernels.count_rows(
            one.event_index, one.follow_up_index, one.population_index, one.label, left, segment, bins, own,
            *(sums[name][power] for name in COUNTED),
        )  # fmt: skip
        if one.dropout_index is not None:
            lost = np.flatnonzero(one.dropout_index < one.population_index)
            changes = np.zeros((sums.sizes["segment"], m + 1), dtype=own.dtype)
            np.add.at(changes, (segment[lost], one.dropout_index[lost]), own[lost])
            np.add.at(changes, (segment[lost], one.population_index[lost]), -own[lost])
            sums["lost_counts"][power] += np.cumsum(changes, axis=1)[:, :m]
            seen = np.flatnonzero(left & (one.event_index < one.dropout_index))
            np.add.at(sums["known_counts"][power], (segment[seen], one.event_index[seen]), own[seen])


def _add_lost(
    sums: Sums,
    predicted: NDArray[Any],
    j: int,
    one: IntervalWeights,
    segment: NDArray[np.int32],
    sample: NDArray[np.float64],
    losses: Sequence[Loss],
) -> None:
    """Add what the lost would cost with either status, at one time."""
    if one.dropout_index is None:
        return
    unknown = np.flatnonzero((one.dropout_index <= j) & (j < one.population_index))
    seen = np.flatnonzero((one.event_index <= j) & (j < one.dropout_index) & (one.follow_up_index <= j))
    for place, loss in enumerate(losses):
        if unknown.size:
            survival = predicted[:, unknown]
            both = np.array([loss.of_event_free(survival), loss.of_event(survival)], dtype=np.float64) * sample[unknown]
            for p, (a, b) in enumerate(pairs(len(predicted))):
                values = contrast(both.transpose(1, 0, 2), a, b)
                np.add.at(sums["lowest"][place, j, :, p], segment[unknown], values.min(axis=0))
                np.add.at(sums["highest"][place, j, :, p], segment[unknown], values.max(axis=0))
        if seen.size:
            for a, values in enumerate(loss.of_event_free(predicted[:, seen])):
                np.add.at(sums["known"][place, j, :, a], segment[seen], values * sample[seen])


def _batches(rows: Any, size: int, what: Specification) -> Iterator[pa.RecordBatch]:
    """Yield batches of at most so many rows."""
    several = rows.to_batches() if hasattr(rows, "to_batches") else [rows] if hasattr(rows, "num_rows") else rows
    for given in several:
        batch = with_weight(what, given)
        for start in range(0, batch.num_rows, size):
            yield batch.slice(start, min(size, batch.num_rows - start))


def differences(one: Specification, other: Specification) -> str:
    """Return in what two specifications differ."""
    mine, theirs = one.to_json(), other.to_json()
    return ", ".join(key for key in mine if mine[key] != theirs[key]) + " differ"
