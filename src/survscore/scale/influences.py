r"""A second pass, where one is not enough: each individual's influence, once scores and weights are known.

With groups, and for means over time under weights that are estimated, variances are not sums over single individuals
and times. The second pass makes every influence (see `censoring.fitted`) and adds up their products over time and their
sums by group. Groups that are whole within files are taken as they are; others are put into random buckets, by a hash
of their label: a sum over buckets has the same expected square, and its variance the relative standard deviation
:math:`\sqrt{2/B}`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from survscore._validation import InputError, plural
from survscore.engine.evaluation import ScoreArrays
from survscore.engine.moments import Moments, contrast, n_pairs, pairs
from survscore.inference.units import PowerSums, Units
from survscore.metrics import Brier
from survscore.scale.batches import Batch, Labels, by_cause
from survscore.scale.looks import BUCKETS, SEGMENT_BUCKETS, hashed
from survscore.scale.projected import Parts, ProjectedScores
from survscore.scale.specification import Specification, bins_of
from survscore.scale.state import ROWS_OVER_TIME, add_products
from survscore.weighting import Projected
from survscore.weighting.interval_weights import TimeIndex

if TYPE_CHECKING:
    import pyarrow as pa

Values = NDArray[np.float64]
Key = tuple[int, int, int]  # of sums: level, weighting and metric; -1 for the sizes of groups


@dataclass(frozen=True, eq=False)
class Known:
    """What the first pass told, of each of some segments, under one weighting by one metric; times come first.

    Attributes
    ----------
    score : ndarray of shape (times, segments, models)
        The scores.
    scale : ndarray of shape (times, segments)
        One over the sum of weights; 0 where there is no score.
    first, late : ndarray of shape (times, segments)
        The weights of the first stretch, and of the second while event-free.
    event, own : ndarray of shape (segments, bins)
        The weights of those with event, and one over those at risk.
    moved : ndarray of shape (times, segments, models, bins or 0)
        M(s; t), times the sum of weights.
    drift : ndarray of shape (times, segments, models, bins + 1 or 0)
        Its sum over the exits before each bin, with Greenwood's steps.
    """

    score: Values
    scale: Values
    first: Values
    late: Values
    event: Values
    own: Values
    moved: Values
    drift: Values


@dataclass(frozen=True, eq=False)
class FirstPass:
    """What the first pass told of all: of all individuals together, and of every segment.

    Attributes
    ----------
    segments : list of tuple of str
        Their labels.
    known : list
        By level (all individuals, then segments where there are any), weighting and metric; None of projected scores.
    projected : ProjectedScores, optional
    """

    segments: list[Labels]
    known: list[list[list[Known | None]]]
    projected: ProjectedScores | None = None

    @property
    def n_bytes(self) -> int:
        """How much memory it takes."""
        several = [known for of_level in self.known for of_weighting in of_level for known in of_weighting]
        size = sum(values.nbytes for known in several if known is not None for values in vars(known).values())
        return int(size) + (0 if self.projected is None else self.projected.n_bytes)


@dataclass(eq=False)
class Influences:
    """Sums of influences over some of the rows of a data set.

    Attributes
    ----------
    specification : Specification
        What is computed.
    first : FirstPass
        What is known.
    sums : dict
        By level, weighting and metric, arrays by name: ``products`` over time, of influences or of groups' sums
        (segments, columns, columns), where columns are the times of the first model, of the second and so on; their
        ``single`` squares (pairs, segments, times), where there is one time; sums by ``buckets`` (segments * buckets,
        times, models); and ``squares`` of the sums of groups that are whole (pairs, times, segments). In place of a
        metric -1: how many of each group are counted, by bucket; sums of ``powers`` of the sizes of whole groups (6,
        segments, times), see `PowerSums`; and the ``largest``.
    parts : Parts, optional
        Of projected scores.
    """

    specification: Specification
    first: FirstPass
    sums: dict[Key, dict[str, Values]] = field(default_factory=dict)
    parts: Parts | None = None

    def __post_init__(self) -> None:
        self._whole: dict[Key, WholeGroups] = {}
        what = self.specification
        k, m = len(what.models), len(what.times)
        if self.sums:
            return
        if self.first.projected is not None:
            self.parts = Parts.zeros(what, len(self.first.projected.units))
        for level, of_level in enumerate(self.first.known):
            segments = 1 if level == 0 else len(self.first.segments)
            rows = segments * self.n_buckets(level)
            columns = k * m if what.over_time and not what.buckets else 0
            for q, of_weighting in enumerate(of_level):
                if what.groups is not None:
                    self.sums[level, q, -1] = {
                        "buckets": np.zeros((rows, m)), "powers": np.zeros((6, segments, m)),
                        "largest": np.zeros((segments, m)),
                    }  # fmt: skip
                for metric in range(len(of_weighting)):
                    whole = n_pairs(k) if what.groups is not None and not what.buckets else 0
                    self.sums[level, q, metric] = {
                        "products": np.zeros((segments, columns, columns)), "buckets": np.zeros((rows, m, k)),
                        "single": np.zeros((0 if what.over_time else n_pairs(k), segments, m)),
                        "squares": np.zeros((whole, m, segments)),
                    }  # fmt: skip

    @property
    def n_bytes(self) -> int:
        """How much memory the sums take, before groups that are whole are met."""
        return sum(values.nbytes for one in self.sums.values() for values in one.values())

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
        influences, projected = np.empty((k, m, n)), self.first.projected
        if projected is not None and self.parts is not None:
            of_levels = projected.influences(batch, index, bins, columns, self.parts)
        for level, of_level in enumerate(self.first.known):
            segment = self._segment(batch, level)
            for q, weighting in enumerate(what.weightings):
                if isinstance(weighting, Projected):
                    self._count((level, q, -1), index.to_the_end.copy(), groups, segment)
                    for metric, values in enumerate(of_levels[level]):
                        self._add_influences((level, q, metric), values, groups, segment)
                    continue
                one, left = by_cause(weighting.unweighted(index), outcomes), weighting.leaves(outcomes)
                self._count((level, q, -1), one.population_index, groups, segment)
                for metric, known in enumerate(of_level[q]):
                    if known is None:
                        continue
                    loss = what.metrics[metric]
                    kind = _kernels.BRIER if isinstance(loss, Brier) else _kernels.LOG
                    for j in range(m):
                        for a in range(k):
                            predicted[a] = columns[a][j]
                        _kernels.fill_influences(
                            predicted, j, kind, loss.epsilon, one.event_index, one.follow_up_index, one.label, left,
                            segment, bins, known.score[j], known.scale[j], known.first[j], known.late[j], known.event,
                            known.moved[j], known.drift[j], known.own, influences[:, j],
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
        self, key: Key, stops: NDArray[np.int32], groups: NDArray[np.uint64] | None, segment: NDArray[np.int32]
    ) -> None:
        """Count how many of each group are counted at each time."""
        from survscore.scale import _kernels

        if groups is not None:
            place, sizes = self._places(key, groups, segment, 1)
            _kernels.add_sizes(stops, place, sizes[:, :, 0] if sizes.ndim > 2 else sizes)

    def _places(
        self, key: Key, groups: NDArray[np.uint64], segment: NDArray[np.int32], quantities: int
    ) -> tuple[NDArray[np.int64], Values]:
        """Return each individual's row in the sums by group, and these: of buckets, or of groups that are whole."""
        n_buckets = self.n_buckets(key[0])
        if n_buckets:
            place = (groups % np.uint64(n_buckets)).astype(np.int64) + segment.astype(np.int64) * n_buckets
            return place, self.sums[key]["buckets"]
        whole = self._whole.setdefault(key, WholeGroups(len(self.specification.times), quantities))
        return whole.places(groups, segment), whole.sums

    def _add_influences(
        self, key: Key, influences: Values, groups: NDArray[np.uint64] | None, segment: NDArray[np.int32]
    ) -> None:
        from survscore.scale import _kernels

        k, m, n = influences.shape
        if groups is None and self.specification.over_time:
            add_products(self.sums[key]["products"], influences.reshape(-1, n), segment)
            return
        if groups is None:  # at one time alone
            for p, (a, b) in enumerate(pairs(k)):
                for j, values in enumerate(contrast(influences, a, b)):
                    np.add.at(self.sums[key]["single"][p, :, j], segment, np.square(values))
            return
        place, table = self._places(key, groups, segment, k)
        for j in range(m):
            _kernels.add_to_groups(influences[:, j], place, table[:, j])

    def close(self) -> Influences:
        """Add up the groups of a file that has been read: they have no rows elsewhere."""
        what = self.specification
        for key, whole in self._whole.items():
            sums = self.sums[key]
            if key[2] < 0:
                counts = whole.sums[:, :, 0]
                for s in np.unique(whole.segment).tolist():
                    found = PowerSums.of(counts[whole.segment == s])
                    sums["powers"][:, s] += found.powers
                    sums["largest"][s] = np.maximum(sums["largest"][s], found.largest)
                continue
            by_model = whole.sums.transpose(2, 1, 0)
            for p, (a, b) in enumerate(pairs(len(what.models))):
                for j, squares in enumerate(np.square(contrast(by_model, a, b))):
                    np.add.at(sums["squares"][p, j], whole.segment, squares)
            if what.over_time:
                add_products(sums["products"], by_model.reshape(-1, by_model.shape[2]), whole.segment)
        self._whole = {}
        return self

    def __add__(self, other: Influences) -> Influences:
        added = {
            key: {
                name: np.maximum(values, other.sums[key][name]) if name == "largest" else values + other.sums[key][name]
                for name, values in of_key.items()
            }
            for key, of_key in self.sums.items()
        }
        parts = None if self.parts is None or other.parts is None else self.parts + other.parts
        return Influences(self.specification, self.first, added, parts)

    # What they add to results

    @property
    def n_spanning(self) -> int | None:
        """How many groups are in several segments; None if that is unknown."""
        if self.specification.groups is None:
            return 0
        if self.specification.buckets:
            return None
        everybody, segments = (self.sums[level, 0, -1]["powers"][0].sum(axis=0) for level in (0, 1))
        return int(segments.max(initial=0.0) - everybody.max(initial=0.0))

    def added_to(self, scored: ScoreArrays, which: int | None, q: int, metric: int) -> ScoreArrays:
        """Return the same scores, of all individuals or of a segment, with variances from the sums of influences."""
        what = self.specification
        level, place = (0, 0) if which is None else (1, which)
        sums, usable = self.sums[level, q, metric], ~np.isnan(scored.scores).any(axis=0)
        k, m = scored.scores.shape
        over_time = None
        if what.over_time and not what.buckets:
            products = sums["products"][place].reshape(k, m, k, m)
            over_time = np.array([of_pair(products, a, b) for a, b in pairs(k)])
        if what.groups is None:
            inflation = np.where(usable, scored.support.units.inflation, 0.0)
            if scored.moments is not None:
                pointwise = scored.moments.pointwise
            elif over_time is not None:
                pointwise = np.diagonal(over_time, axis1=1, axis2=2) * inflation
            else:
                pointwise = sums["single"][:, place] * inflation
            return replace(scored, moments=_moments(pointwise, over_time, inflation))
        sizes = self.sums[level, q, -1]
        if what.buckets:
            rows = slice(place * self.n_buckets(level), (place + 1) * self.n_buckets(level))
            power_sums = PowerSums.of(sizes["buckets"][rows])
            values = sums["buckets"][rows].transpose(2, 0, 1)
            several = [contrast(values, a, b) for a, b in pairs(k)]
            squares = np.array([np.square(one).sum(axis=0) for one in several])
            if what.over_time:
                over_time = np.array([one.T @ one for one in several])
        else:
            power_sums = PowerSums(sizes["powers"][:, place], sizes["largest"][place])
            squares = sums["squares"][:, :, place]
        units = Units(*power_sums.units())
        inflation = np.where(usable, units.inflation, 0.0)
        how = f"{what.buckets} random buckets" if what.buckets else "as they are, whole within files"
        return replace(
            scored,
            moments=_moments(squares * inflation, over_time, inflation),
            support=replace(scored.support, units=units, grouped=True),
            settings={**scored.settings, "groups": how},
        )


class WholeGroups:
    """Sums by group, of the file that is being read: (groups, times, quantities).

    A group is told by its hash, and in another segment counts for itself.
    """

    def __init__(self, times: int, quantities: int) -> None:
        self.sums = np.zeros((0, times, quantities))
        self.segment = np.zeros(0, dtype=np.int64)
        #: Keys in their order, and the place of each in the sums.
        self._keys = np.zeros(0, dtype=np.uint64)
        self._places = np.zeros(0, dtype=np.int64)

    def places(self, groups: NDArray[np.uint64], segment: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return each individual's place, with room for groups that are new."""
        with np.errstate(over="ignore"):
            keys = groups + segment.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        distinct, first, codes = np.unique(keys, return_index=True, return_inverse=True)
        new = ~np.isin(distinct, self._keys, assume_unique=True)
        if new.any():
            start, count = len(self.sums), int(new.sum())
            self.sums = np.concatenate((self.sums, np.zeros((count, *self.sums.shape[1:]))))
            self.segment = np.concatenate((self.segment, segment[first[new]].astype(np.int64)))
            all_keys = np.concatenate((self._keys, distinct[new]))
            order = np.argsort(all_keys)
            self._keys = all_keys[order]
            self._places = np.concatenate((self._places, np.arange(start, start + count)))[order]
        return np.asarray(self._places[np.searchsorted(self._keys, distinct)][codes])


def of_pair(products: Values, a: int, b: int) -> Values:
    """Return the products of a model, or of a difference, (times, times), of those of all (models, times) twice."""
    if a == b:
        return np.asarray(products[a, :, a])
    return np.asarray(products[a, :, a] + products[b, :, b] - products[a, :, b] - products[b, :, a])


def _moments(pointwise: Values, over_time: Values | None, inflation: Values) -> Moments:
    """Return moments with the small-sample correction, which `pointwise` has already."""
    root, (p, m) = np.sqrt(inflation), pointwise.shape
    covariances = None if over_time is None else over_time * np.outer(root, root)
    return Moments(pointwise, np.zeros((0, m)), np.zeros((p, 0)), covariances)
