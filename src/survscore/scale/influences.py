r"""A second pass, where one is not enough: each individual's influence, once scores and weights are known.

With groups, and for means over time under weights that are estimated, variances are not sums over single individuals
and times. The second pass makes every influence (see `censoring.fitted`) and adds up, in whole numbers as the first,
their products over time and their sums by group. Groups that are whole within files are taken as they are; others are
put into random buckets, by a hash of their label: a sum over buckets has the same expected square, and its variance
the relative standard deviation :math:`\sqrt{2/B}`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from survscore._validation import InputError, plural
from survscore.engine.moments import contrast, pairs
from survscore.metrics import Brier
from survscore.scale.batches import Batch, Labels, by_cause
from survscore.scale.exact import Exact, rounded
from survscore.scale.groups import BUCKETS, SEGMENT_BUCKETS, hashed
from survscore.scale.influence_sums import GroupSizes, InfluenceSums, WholeGroups, add_by_segment, add_products
from survscore.scale.packing import pack, unpack
from survscore.scale.products import ROWS_OVER_TIME
from survscore.scale.specification import Specification, bins_of
from survscore.weighting.interval_weights import TimeIndex

if TYPE_CHECKING:
    import pyarrow as pa

FORM = "influences"
GROUP_BITS = 36


@dataclass(frozen=True, eq=False)
class Known:
    """What the first pass told, of each of some segments, under one weighting by one metric; times come first.

    Attributes
    ----------
    score : ndarray of shape (times, segments, models)
        The scores, of losses as they are summed.
    usable : ndarray of shape (times, segments)
        Whether there is a score.
    total, first, late : ndarray of shape (times, segments)
        The sum of weights, and the weights of the first stretch, and of the second while event-free.
    event, own : ndarray of shape (segments, bins)
        The weights of those with event, and one over those at risk.
    moved : ndarray of shape (times, segments, models, bins or 0)
        M(s; t), times the sum of weights.
    drift : ndarray of shape (times, segments, models, bins + 1 or 0)
        Its sum over the exits before each bin, with Greenwood's steps.
    bound : float
        No influence, times the sum of weights, is larger.
    """

    score: NDArray[np.float64]
    usable: NDArray[np.int64]
    total: NDArray[np.float64]
    first: NDArray[np.float64]
    late: NDArray[np.float64]
    event: NDArray[np.float64]
    own: NDArray[np.float64]
    moved: NDArray[np.float64]
    drift: NDArray[np.float64]
    bound: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FirstPass:
    """What the first pass told of all: of all individuals together, and of every segment.

    Attributes
    ----------
    segments : list of tuple of str
        Their labels.
    known : list
        By level (all individuals, then segments where there are any), weighting and metric.
    """

    segments: list[Labels]
    known: list[list[list[Known]]]

    @property
    def n_bytes(self) -> int:
        """How much memory it takes."""
        several = [known for of_level in self.known for of_weighting in of_level for known in of_weighting]
        return sum(values.nbytes for known in several for values in vars(known).values())

    def to_bytes(self) -> bytes:
        """Return it as plain numbers."""
        arrays = {
            f"{level}.{q}.{k}.{name}": values
            for level, of_level in enumerate(self.known)
            for q, of_weighting in enumerate(of_level)
            for k, known in enumerate(of_weighting)
            for name, values in vars(known).items()
        }
        return pack("first pass", {"segments": [list(one) for one in self.segments]}, arrays)

    @classmethod
    def from_bytes(cls, stored: bytes) -> FirstPass:
        """Take what `to_bytes` returned."""
        header, arrays = unpack("first pass", stored)
        known: dict[tuple[int, int, int], dict[str, Any]] = {}
        for name, values in arrays.items():
            level, weighting, metric, field_name = name.split(".")
            known.setdefault((int(level), int(weighting), int(metric)), {})[field_name] = values
        found: list[list[list[Known]]] = []
        for (of_level, q, _), values_of in sorted(known.items()):
            while len(found) <= of_level:
                found.append([])
            while len(found[of_level]) <= q:
                found[of_level].append([])
            found[of_level][q].append(Known(**values_of))
        return cls([tuple(one) for one in header["segments"]], found)


@dataclass(eq=False)
class Influences:
    """Sums of influences over some of the rows of a data set.

    Attributes
    ----------
    specification : Specification
        What is computed.
    first : FirstPass
        What is known.
    sums, sizes : dict
        By level, weighting and metric; by level and weighting.
    """

    specification: Specification
    first: FirstPass
    sums: dict[tuple[int, int, int], InfluenceSums] = field(default_factory=dict)
    sizes: dict[tuple[int, int], GroupSizes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        what = self.specification
        k, m = len(what.models), len(what.times)
        for level, of_level in enumerate(self.first.known):
            segments = 1 if level == 0 else len(self.first.segments)
            rows = segments * self.n_buckets(level)
            columns = k * m if what.over_time and not what.buckets else 0
            for q, of_weighting in enumerate(of_level):
                grouped = what.groups is not None
                if grouped:
                    self.sizes.setdefault((level, q), GroupSizes(
                        np.zeros((rows, m), dtype=np.int64), Exact.zeros(6, segments, m),
                        np.zeros((segments, m), dtype=np.int64),
                    ))  # fmt: skip
                for metric in range(len(of_weighting)):
                    self.sums.setdefault((level, q, metric), InfluenceSums(
                        Exact.zeros(segments, columns, columns), np.zeros((rows, m, k), dtype=np.int64),
                        Exact.zeros(k * (k + 1) // 2 if grouped and not what.buckets else 0, m, segments),
                    ))  # fmt: skip
        self._whole: dict[tuple[int, int, int], WholeGroups] = {}

    @property
    def n_bytes(self) -> int:
        """How much memory the sums take, before groups that are whole are met."""
        arrays = [one.arrays() for one in self.sums.values()] + [one.arrays() for one in self.sizes.values()]
        return sum(values.nbytes for one in arrays for values in one.values())

    def n_buckets(self, level: int) -> int:
        """Return how many buckets there are, of all individuals or of each segment."""
        if not self.specification.buckets:
            return 0
        return BUCKETS if level == 0 else SEGMENT_BUCKETS

    def update(self, rows: pa.RecordBatch) -> Influences:
        """Add rows, in place."""
        for start in range(0, rows.num_rows, ROWS_OVER_TIME):
            self._add(Batch(self.specification, rows.slice(start, ROWS_OVER_TIME)))
        return self

    def _add(self, batch: Batch) -> None:
        from survscore.scale import _kernels

        what = self.specification
        n, k, m = len(batch), len(what.models), len(what.times)
        outcomes, bins = batch.outcomes, bins_of(what, batch.outcomes)
        index = TimeIndex(outcomes, what.at)
        groups = None if what.groups is None else hashed(batch.groups())
        columns = [list(batch.columns(model)) for model in what.models]
        predicted = np.empty((k, n), dtype=np.result_type(*(column[0] for column in columns)))
        influences = np.empty((k, m, n))
        for level, of_level in enumerate(self.first.known):
            segment = self._segment(batch, level)
            for q, weighting in enumerate(what.weightings):
                one, left = by_cause(weighting.unweighted(index), outcomes), weighting.leaves(outcomes)
                if groups is not None:
                    self._count(level, q, one.population_index, groups, segment)
                for metric, known in enumerate(of_level[q]):
                    loss = what.metrics[metric]
                    kind = _kernels.BRIER if isinstance(loss, Brier) else _kernels.LOG
                    factor = 1.0 / float(known.bound)
                    for j in range(m):
                        for a in range(k):
                            predicted[a] = columns[a][j]
                        _kernels.fill_influences(
                            predicted, j, kind, loss.epsilon, one.event_index, one.follow_up_index, one.label, left,
                            segment, bins, known.score[j], known.usable[j], known.first[j], known.late[j], known.event,
                            known.moved[j], known.drift[j], known.own, factor, influences[:, j],
                        )  # fmt: skip
                    self._add_influences((level, q, metric), influences, groups, segment)

    def _segment(self, batch: Batch, level: int) -> NDArray[np.int32]:
        if level == 0:
            return np.zeros(len(batch), dtype=np.int32)
        codes, labels = batch.segments()
        places = {label: place for place, label in enumerate(self.first.segments)}
        new = [label for label in labels if label not in places]
        if new:
            raise InputError(
                f"the data have changed since the first pass: {plural(len(new), 'segment')} came up, the first {new[0]}"
            )
        return np.array([places[label] for label in labels], dtype=np.int32)[codes]

    def _count(
        self, level: int, q: int, stops: NDArray[np.int32], groups: NDArray[np.uint64], segment: NDArray[np.int32]
    ) -> None:
        from survscore.scale import _kernels

        if self.specification.buckets:
            _kernels.add_sizes(stops, self._bucket(level, groups, segment), self.sizes[level, q].buckets)
        else:
            whole = self._groups((level, q, -1), 0)
            _kernels.add_sizes(stops, whole.places(groups, segment), whole.sums[:, :, 0])

    def _bucket(self, level: int, groups: NDArray[np.uint64], segment: NDArray[np.int32]) -> NDArray[np.int64]:
        n_buckets = self.n_buckets(level)
        return (groups % np.uint64(n_buckets)).astype(np.int64) + segment.astype(np.int64) * n_buckets

    def _add_influences(
        self,
        key: tuple[int, int, int],
        influences: NDArray[np.float64],
        groups: NDArray[np.uint64] | None,
        segment: NDArray[np.int32],
    ) -> None:
        from survscore.scale import _kernels

        sums, (_, m, n) = self.sums[key], influences.shape
        if groups is None:
            add_products(sums.products, influences.reshape(-1, n), segment)
            return
        if self.specification.buckets:
            place, table = self._bucket(key[0], groups, segment), sums.buckets
        else:
            whole = self._groups(key, 1)
            place = whole.places(groups, segment)
            table = whole.sums
        for j in range(m):
            _kernels.add_to_groups(influences[:, j], place, 2.0**GROUP_BITS, table[:, j])

    def _groups(self, key: tuple[int, int, int], which: int) -> WholeGroups:
        k = len(self.specification.models) if which else 1
        return self._whole.setdefault(key, WholeGroups(len(self.specification.times), k))

    def close(self) -> Influences:
        """Add up the groups of a file that has been read: they have no rows elsewhere."""
        what = self.specification
        for (level, q, metric), whole in self._whole.items():
            if metric < 0:
                self._close_sizes(self.sizes[level, q], whole)
                continue
            sums = self.sums[level, q, metric]
            # shares of the largest group that there can be, so that squares are below one
            values = np.ldexp(whole.sums.astype(np.float64), -GROUP_BITS) / what.largest_group
            by_model = values.transpose(2, 1, 0)
            for p, (a, b) in enumerate(pairs(len(what.models))):
                squares = rounded(np.square(contrast(by_model, a, b)))
                for j in range(by_model.shape[1]):
                    add_by_segment(sums.squares, (p, j), squares[j], whole.segment)
            if what.over_time:
                order = np.argsort(whole.segment, kind="stable")
                columns = by_model.reshape(-1, by_model.shape[2])[:, order]
                add_products(sums.products, columns, whole.segment[order])
        self._whole = {}
        return self

    def _close_sizes(self, sizes: GroupSizes, whole: WholeGroups) -> None:
        counts = whole.sums[:, :, 0]
        values = counts.astype(np.float64)
        for power in range(6):
            raised = (values > 0).astype(np.float64) if power == 0 else values**power
            for s in np.unique(whole.segment).tolist():
                of_segment = raised[whole.segment == s]
                high = np.floor(np.ldexp(of_segment, -32))
                sizes.powers.high[power, s] += high.astype(np.int64).sum(axis=0)
                sizes.powers.low[power, s] += (of_segment - np.ldexp(high, 32)).astype(np.int64).sum(axis=0)
        np.maximum.at(sizes.largest, whole.segment, counts)

    def __add__(self, other: Influences) -> Influences:
        return Influences(
            self.specification,
            self.first,
            {key: value + other.sums[key] for key, value in self.sums.items()},
            {key: value + other.sizes[key] for key, value in self.sizes.items()},
        )

    def to_bytes(self) -> bytes:
        """Return the sums as plain numbers."""
        self.close()
        arrays = {
            f"sums.{'.'.join(map(str, key))}.{name}": values
            for key, sums in self.sums.items()
            for name, values in sums.arrays().items()
        } | {
            f"sizes.{'.'.join(map(str, key))}.{name}": values
            for key, sizes in self.sizes.items()
            for name, values in sizes.arrays().items()
        }
        return pack(FORM, {}, arrays)

    @classmethod
    def from_bytes(cls, stored: bytes, specification: Specification, first: FirstPass) -> Influences:
        """Take what `to_bytes` returned, of the same specification."""
        _, arrays = unpack(FORM, stored)
        found: dict[tuple[Any, ...], dict[str, Any]] = {}
        for name, values in arrays.items():
            kind, *rest = name.split(".")
            width = 3 if kind == "sums" else 2
            key = (kind, *map(int, rest[:width]))
            found.setdefault(key, {})[".".join(rest[width:])] = values
        return cls(
            specification,
            first,
            {key[1:]: InfluenceSums.of_arrays(value) for key, value in found.items() if key[0] == "sums"},
            {key[1:]: GroupSizes.of_arrays(value) for key, value in found.items() if key[0] == "sizes"},
        )
