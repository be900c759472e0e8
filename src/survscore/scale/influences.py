r"""Each individual's influence, once scores and weights are known, or are known well enough from a sample.

Where statuses are projected, with groups, with sample weights, and for means over time under weights that are
estimated, variances are not sums over single individuals and times that one pass could make. Each influence is a
deviation, and what estimating curves adds to it (`cells`); they are added up here as squares, as squares of means over
time, as products over time, or by group. Groups are taken as they are if they are few; otherwise they are put into
random buckets, by a hash of their label: a sum over buckets has the same expected square, and its variance the relative
standard deviation :math:`\sqrt{2/B}`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from survscore._utils.arrays import read_only
from survscore._validation import InputError
from survscore.engine.evaluation import ScoreArrays
from survscore.engine.moments import Moments, contrast, n_pairs, pairs
from survscore.inference.units import PowerSums, Units
from survscore.scale.batches import Batch, Labels, by_cause, with_weight
from survscore.scale.looks import BUCKETS, SEGMENT_BUCKETS, hashed
from survscore.scale.projected import ProjectedSums, Strata, kernel_loss, places_of
from survscore.scale.specification import Specification, bins_of
from survscore.scale.state import ROWS, ROWS_OVER_TIME, add_products
from survscore.weighting import Projected, Weighting
from survscore.weighting.interval_weights import TimeIndex

if TYPE_CHECKING:
    import pyarrow as pa

Values = NDArray[np.float64]
Key = tuple[int, int]  # of sums: weighting and metric; -1 for the sizes of groups


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a batch as the compiled loops take them: in the order of their units (all individuals, or segments)."""

    batch: Batch
    index: TimeIndex  # of the rows in their own order
    order: Any  # brings these into the order of units
    bins: NDArray[np.int32]
    sample: Values
    columns: list[list[NDArray[Any]]]  # predictions, by model and time
    losses: list[tuple[int, float]]
    #: Of all individuals, and then of segments if there are any: each row's unit, and by model its stratum.
    levels: list[tuple[NDArray[np.int32], list[NDArray[np.int32]]]]

    @classmethod
    def of(cls, batch: Batch, segments: Sequence[Labels], strata: Strata | None) -> Rows:
        """Read a batch; `segments` are all that there are."""
        what, outcomes = batch.specification, batch.outcomes
        order: Any = slice(None)
        levels = [np.zeros(len(batch), dtype=np.int32)]
        columns = [
            [read_only(np.ascontiguousarray(column)) for column in batch.columns(model)] for model in what.models
        ]
        if not what.in_one_pass:  # whose loops check predictions
            batch.check_columns(columns)
        if what.by:
            codes, labels = batch.segments()
            place = places_of(labels, segments, "segment")[codes].astype(np.int32)
            order = np.argsort(place, kind="stable")
            levels.append(1 + place[order])
            columns = [[read_only(column[order]) for column in of_model] for of_model in columns]
        with_strata = [
            (units, [units] * len(columns) if strata is None else strata.rows(batch, order, columns, units))
            for units in levels
        ]
        sample = np.ones(len(batch)) if outcomes.weights is None else np.asarray(outcomes.weights)[order]
        bins, losses = bins_of(what, outcomes)[order], [kernel_loss(loss) for loss in what.metrics]
        return cls(batch, TimeIndex(outcomes, what.at), order, bins, sample, columns, losses, with_strata)

    def blocks(self) -> Iterator[slice]:
        """Yield ranges of so few rows that their influences at one time stay in a cache."""
        for start in range(0, len(self.bins), ROWS_OVER_TIME):
            yield slice(start, start + ROWS_OVER_TIME)


@dataclass(frozen=True, eq=False)
class Known:
    """What influences under one weighting, by one metric, are made of: of all units, one after the other."""

    centre: Values  # (models, times, units): the scores
    scale: Values  # (times, units): one over the sum of weights; 0 where there is no score
    at_risk: Values  # (times, units): the weight of those who are followed event-free
    own: Values  # (strata, bins): the weight of others, by when they left
    # where statuses are projected, the hidden are without event of interest with base + share x later
    base: Values  # (models, strata, bins)
    share: Values  # (models, strata, bins): 1 / S_k(c)
    later: Values  # (models, times, strata): of an incidence, what is still to come at t
    added: Values  # (models, times, strata, bins, kinds): what estimating curves adds, by how follow-up ended
    averages: Values  # (means, times, units): means over time that have standard errors, as weights of the times
    inflation: Values  # (times, units): the small-sample correction of variances
    # (times, units): one over the number of individuals, and over the sum of their weights; see `InfluenceFactors`
    inverse_n: Values
    inverse_mass: Values

    @property
    def n_bytes(self) -> int:
        """How much memory it takes."""
        return sum(values.nbytes for values in vars(self).values())


@dataclass(frozen=True, eq=False)
class FirstPass:
    """What is known of all rows before their influences are added up; `preliminary` if from a sample."""

    segments: list[Labels]
    known: list[list[Known]]  # by weighting and metric
    strata: Strata | None = None
    groups: NDArray[np.uint64] | None = None  # the hashes of all groups, if these are few
    preliminary: bool = False

    @property
    def n_units(self) -> int:
        """All individuals, and the segments."""
        return int(self.known[0][0].scale.shape[1])

    @property
    def n_bytes(self) -> int:
        """How much memory it takes."""
        return sum(known.n_bytes for of_weighting in self.known for known in of_weighting)


@dataclass(eq=False)
class Influences:
    """Sums of influences over some of the rows of a data set.

    `sums` has arrays by weighting and metric. Of individuals, sums and sums of squares (`_kernels.add_squares`):
    ``single`` (times, units, quantities), of ``means`` over time (means, units, quantities); their ``products`` over
    time, where columns are the times of the first model, of the second and so on (units, columns, columns); and of
    projected scores ``parts`` (models, times, units, 5), see `_kernels.Estimates`. Of groups, sums by ``bucket``
    (buckets, times, models). In place of a metric, -1: how many of each group are counted, by bucket, and how many
    there are (buckets, 1).
    """

    specification: Specification
    first: FirstPass
    sums: dict[Key, dict[str, Values]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        what, units = self.specification, self.first.n_units
        k, m, quantities = len(what.models), len(what.times), len(what.models) + n_pairs(len(what.models))
        columns = k * m if what.over_time and what.groups is None else 0
        buckets = int(self.bucket_starts[-1])
        for q, of_weighting in enumerate(self.first.known if not self.sums else ()):
            if what.groups is not None:
                self.sums[q, -1] = {"bucket": np.zeros((buckets, m)), "members": np.zeros((buckets, 1))}
            projects = isinstance(what.weightings[q], Projected)
            for metric, known in enumerate(of_weighting):
                self.sums[q, metric] = {
                    "single": np.zeros((m, units, quantities)),
                    "products": np.zeros((units, columns, columns)),
                    "means": np.zeros((len(known.averages), units, quantities)),
                    "bucket": np.zeros((buckets, m, k)),
                    "parts": np.zeros((k, m, units if projects else 0, 5)),
                }

    @property
    def n_bytes(self) -> int:
        """How much memory the sums take."""
        return sum(values.nbytes for arrays in self.sums.values() for values in arrays.values())

    @property
    def bucket_starts(self) -> NDArray[np.int64]:
        """Where the buckets of each unit begin, and end."""
        if self.specification.groups is None:
            return np.zeros(self.first.n_units + 1, dtype=np.int64)
        few = None if self.first.groups is None else self.first.groups.size
        sizes = [few or BUCKETS, *[few or SEGMENT_BUCKETS] * (self.first.n_units - 1)]
        return np.cumsum([0, *sizes])

    def update(self, rows: pa.RecordBatch) -> Influences:
        """Add rows, in place."""
        rows = with_weight(self.specification, rows)
        for start in range(0, rows.num_rows, ROWS):
            batch = Batch(self.specification, rows.slice(start, ROWS))
            add_rows(Rows.of(batch, self.first.segments, self.first.strata), None, self)
        return self

    def count_groups(self, q: int, rows: Rows, stops: NDArray[np.int32]) -> list[NDArray[np.int64] | None]:
        """Count who is eligible until when, by group; return each row's bucket, by level; None without groups."""
        from survscore.scale import _kernels

        buckets = self._buckets(rows)
        for of_level in buckets:
            if of_level is not None:
                _kernels.add_sizes(stops, rows.sample, of_level, self.sums[q, -1]["bucket"])
                _kernels.add_sizes(np.ones_like(stops), rows.sample, of_level, self.sums[q, -1]["members"])
        return buckets

    def block(
        self, q: int, metric: int, rows: Rows, units: Any, stops: NDArray[np.int32], buckets: Any, some: Any
    ) -> Block:
        """Return where the influences of some rows go."""
        return Block(
            self.sums[q, metric], self.first.known[q][metric], units[some], rows.sample[some],
            rows.index.outcomes.weight_kind, stops[some], None if buckets is None else buckets[some],
        )  # fmt: skip

    def _buckets(self, rows: Rows) -> list[NDArray[np.int64] | None]:
        """Return each individual's bucket, of all individuals and of its segment; None without groups."""
        if self.specification.groups is None:
            return [None] * len(rows.levels)
        hashes, groups = hashed(rows.batch.groups())[rows.order], self.first.groups
        starts, found = self.bucket_starts, []
        for units, _ in rows.levels:
            if groups is None:
                place = (hashes % (starts[1:] - starts[:-1])[units].astype(np.uint64)).astype(np.int64)
            else:
                place = np.searchsorted(groups, hashes)
                if (groups.take(place, mode="clip") != hashes).any():
                    raise InputError("the data have changed since the first pass: other groups came up")
            found.append(starts[units] + place)
        return found

    def __add__(self, other: Influences) -> Influences:
        added = {
            key: {name: values + other.sums[key][name] for name, values in of_key.items()}
            for key, of_key in self.sums.items()
        }
        return Influences(self.specification, self.first, added)

    # What they add to results

    @property
    def n_spanning(self) -> int | None:
        """How many groups are in several segments; None if that is unknown."""
        if self.specification.groups is None:
            return 0
        if self.first.groups is None:
            return None
        several = (self.sums[0, -1]["members"] > 0).reshape(self.first.n_units, -1)
        return int((several[1:].sum(axis=0) > 1).sum())

    def added_to(self, scored: ScoreArrays, unit: int, q: int, metric: int) -> ScoreArrays:
        """Return the scores of a unit with variances from the sums of influences."""
        what, known, sums = self.specification, self.first.known[q][metric], self.sums[q, metric]
        k, m = scored.scores.shape
        averages = known.averages[:, :, unit]
        # a mean that is asked for in vain, since there is no score at some of its times, has no weights
        averages, used = averages[averages.any(axis=1)], averages.any(axis=1)
        usable, over_time = ~np.isnan(scored.scores).any(axis=0), None
        if what.groups is not None:
            return self._of_groups(scored, unit, q, metric, averages)
        inflation = np.where(usable, scored.support.units.inflation, 0.0)
        pointwise = sums["single"][:, unit, k:].T * inflation
        of_averages = np.where(_of_one(averages, inflation), np.nan, sums["means"][used, unit, k:].T)
        if what.over_time:
            products, root = sums["products"][unit].reshape(k, m, k, m), np.sqrt(inflation)
            over_time = np.array([of_pair(products, a, b) for a, b in pairs(k)]) * np.outer(root, root)
        if scored.moments is not None:  # those of sums are exact, and preliminary ones are as much too large as there
            exact = scored.moments.pointwise
            if self.first.preliminary:
                ratio = np.sqrt(np.divide(exact, pointwise, out=np.ones_like(exact), where=(pointwise > 0) & usable))
                weights = averages @ np.sqrt(np.where(usable, pointwise, 0.0)).T
                of_averages = (
                    of_averages
                    * (
                        (averages @ (ratio * np.sqrt(np.where(usable, pointwise, 0.0))).T)
                        / np.where(weights > 0, weights, 1.0)
                    ).T
                    ** 2
                )
                over_time = None if over_time is None else over_time * ratio[:, :, None] * ratio[:, None]
            pointwise = exact
        return replace(scored, moments=Moments(pointwise, averages, of_averages, over_time))

    def _of_groups(self, scored: ScoreArrays, unit: int, q: int, metric: int, averages: Values) -> ScoreArrays:
        rows = slice(*self.bucket_starts[unit : unit + 2].tolist())
        units = Units(*PowerSums.of(self.sums[q, -1]["bucket"][rows]).units())
        usable = ~np.isnan(scored.scores).any(axis=0)
        inflation = np.where(usable, units.inflation, 0.0)
        values = self.sums[q, metric]["bucket"][rows].transpose(2, 0, 1) * np.sqrt(inflation)
        several = [contrast(values, a, b) for a, b in pairs(len(values))]
        over_time = np.array([one.T @ one for one in several]) if self.specification.over_time else None
        of_averages = np.array([np.square(np.nan_to_num(one) @ averages.T).sum(axis=0) for one in several])
        moments = Moments(
            np.array([np.square(one).sum(axis=0) for one in several]), averages,
            np.where(_of_one(averages, inflation), np.nan, of_averages), over_time,
        )  # fmt: skip
        how = f"{BUCKETS} random buckets" if self.first.groups is None else "as they are"
        return replace(
            scored, moments=moments, support=replace(scored.support, units=units, grouped=True),
            settings={**scored.settings, "groups": how},
        )  # fmt: skip


def _of_one(averages: Values, inflation: Values) -> NDArray[np.bool_]:
    """Return which means over time have a time at which one unit is counted, and no variance."""
    return np.asarray(averages[:, np.isnan(inflation)].any(axis=1))


@dataclass(eq=False)
class Block:
    """Adds the influences of some rows, time by time, to sums by group, or of squares and products."""

    sums: dict[str, Values]
    known: Known
    units: NDArray[Any]
    sample: Values
    weight_kind: str | None
    stops: NDArray[np.int32]
    buckets: NDArray[np.int64] | None

    def __post_init__(self) -> None:
        (k, m), n = self.known.centre.shape[:2], len(self.units)
        self.means = np.zeros((len(self.known.averages) if self.buckets is None else 0, k, n))
        self.over_time = np.empty((k, m, n) if self.sums["products"].size else (0, 0, 0))

    def squares(self, j: int) -> Any:
        """Return where squares of influences at a time are added up; None where they are added up by group first."""
        from survscore.scale import _kernels

        if self.buckets is not None:
            return None
        averages = self.known.averages[:, j] * np.sqrt(self.known.inflation[j])
        return _kernels.SquareSums(self.sums["single"][j], averages, self.means, self._factor(j))

    def _factor(self, j: int) -> Values:
        """Return what each influence at a time is multiplied by before it is squared; empty for 1."""
        if self.weight_kind is None:
            return np.zeros(0)
        if self.weight_kind == "frequency":
            return np.asarray(self.sample**-0.5)
        inverse_n, inverse_mass = (values[j][self.units] for values in (self.known.inverse_n, self.known.inverse_mass))
        return np.where(j < self.stops, (1.0 - inverse_n) / (1.0 - self.sample * inverse_mass), 1.0)

    def add(self, j: int, influences: Values) -> None:
        """Add the influences on the scores at a time, (models, rows), by group, or keep them for their products."""
        from survscore.scale import _kernels

        if self.buckets is not None:
            _kernels.add_to_groups(influences, self.buckets, self.sums["bucket"][:, j])
        elif self.over_time.size:
            self.over_time[:, j] = influences

    def close(self) -> None:
        """Add what needed all times."""
        from survscore.scale import _kernels

        for mean, sums in zip(self.means, self.sums["means"], strict=False):  # none of groups
            _kernels.add_squares(mean, self.units, sums)
        if self.over_time.size:
            add_products(self.sums["products"], self.over_time.reshape(-1, len(self.units)), self.units)


@dataclass(frozen=True, eq=False)
class _Ranges:
    """How long each row is followed event-free under one weighting, and what comes then; see `OrderedRows`."""

    key: NDArray[np.int32]
    last: NDArray[np.int32]
    early: NDArray[np.int32]
    exit: NDArray[np.int8]
    stops: NDArray[np.int32]  # at the times before it, a row is one of those whom the score describes

    @classmethod
    def of(cls, rows: Rows, weighting: Weighting) -> _Ranges:
        """Read them off the outcomes, in the order of units."""
        index, outcomes, m = rows.index, rows.index.outcomes, rows.index.times.size
        if isinstance(weighting, Projected):
            event = np.where(outcomes.event, np.where(index.label > 0, np.int8(1), np.int8(2)), np.int8(0))
            first = np.where(outcomes.event, index.before_time, index.until_hidden)
            last = stops = index.to_the_end
            exits = event
        else:
            weights = by_cause(weighting.unweighted(index), outcomes)
            event = np.where(weights.label < 0, np.int8(2), weights.label)
            first, last, stops = weights.event_index, weights.follow_up_index, weights.population_index
            exits = weighting.leaves(outcomes).astype(np.int8)
        early = np.zeros(len(event), np.int32) if outcomes.censoring_time is None else index.until_censoring_time
        key = (m + 1) * event.astype(np.int32) + first
        return cls(*(np.ascontiguousarray(values[rows.order]) for values in (key, last, early, exits, stops)))


def add_rows(rows: Rows, projected: ProjectedSums | None, influences: Influences | None) -> None:
    """Add the losses of rows to projected sums, or their influences under all weightings, or both.

    The rows of a block are put into an order in which each status is one range at any time: losses of a range take no
    comparisons, and influences no look-up by bin for those who are still followed.
    """
    if projected is not None:
        projected.count(rows)
    for q, weighting in enumerate(rows.batch.specification.weightings):
        sums = projected if isinstance(weighting, Projected) else None
        if influences is not None or sums is not None:
            _add_rows(rows, q, weighting, sums, influences)


def _add_rows(
    rows: Rows, q: int, weighting: Weighting, projected: ProjectedSums | None, influences: Influences | None
) -> None:
    from survscore.scale import _kernels

    ranges, m, projects = _Ranges.of(rows, weighting), rows.index.times.size, isinstance(weighting, Projected)
    buckets = [None] * len(rows.levels) if influences is None else influences.count_groups(q, rows, ranges.stops)
    n_keys = 3 * (m + 1)
    for (units, strata), of_level in zip(rows.levels, buckets, strict=True):
        for some in rows.blocks():
            present, local = np.unique(units[some].astype(np.int64), return_inverse=True)
            order, ends = _kernels.order_by(
                local.astype(np.int32) * np.int32(n_keys) + ranges.key[some], present.size * n_keys
            )
            places = order + some.start
            stratum = np.stack([of_model[places] for of_model in (strata if projects else [units] * len(strata))])
            sample, bins = rows.sample[places], rows.bins[places]
            last, early, exits = ranges.last[places], ranges.early[places], ranges.exit[places]
            columns = [tuple(of_model[j][some] for of_model in rows.columns) for j in range(m)]
            filled = np.empty((len(strata), order.size))
            for metric, loss in enumerate(rows.losses):
                own, base = np.ones(order.size), np.zeros((len(strata), order.size if projects else 0))
                share, known, block = base, None, None
                if influences is not None:
                    known = influences.first.known[q][metric]
                    block = influences.block(q, metric, rows, units, ranges.stops, of_level, places)
                    if projects:
                        base, share = (
                            np.stack([_looked_up(*of_model, bins) for of_model in zip(values, stratum, strict=True)])
                            for values in (known.base, known.share)
                        )
                    else:
                        own = _looked_up(known.own, stratum[0], bins)
                ordered = _kernels.OrderedRows(
                    order, ends, present, sample, last, early, bins, exits, own, stratum, base, share
                )
                for j in range(m):
                    sums = None if projected is None else projected.at(metric, j)
                    if known is None or block is None:
                        _kernels.add_influences(columns[j], j, m, *loss, ordered, sums, None, None, filled)
                        continue
                    estimates = _kernels.Estimates(
                        known.at_risk[j], known.scale[j], known.centre[:, j], known.later[:, j], known.added[:, j],
                        block.sums["parts"][: len(strata) if projects else 0, j],
                    )  # fmt: skip
                    squares = block.squares(j)
                    _kernels.add_influences(columns[j], j, m, *loss, ordered, sums, estimates, squares, filled)
                    block.add(j, filled)
                if block is not None:
                    block.close()


def _looked_up(table: Values, row: NDArray[np.int32], column: NDArray[np.int32]) -> Values:
    """Return table[row, column], which `take` reads faster."""
    return table.reshape(-1).take(row * np.int64(table.shape[1]) + column)


def of_pair(products: Values, a: int, b: int) -> Values:
    """Return the products of a model, or of a difference, (times, times), of those of all (models, times) twice."""
    if a == b:
        return np.asarray(products[a, :, a])
    return np.asarray(products[a, :, a] + products[b, :, b] - products[a, :, b] - products[b, :, a])
