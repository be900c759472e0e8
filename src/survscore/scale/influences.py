r"""Each individual's influence, once scores and weights are known, or are known well enough from a sample.

Where statuses are projected, with groups, with sample weights, and for means over time under weights that are
estimated, variances are not sums over single individuals and times that one pass could make. Each influence is a
deviation, and what estimating curves adds to it (`cells`); they are added up here as squares, as squares of means over
time, as products over time, or by group. Groups are taken as they are if they are few; otherwise they are put into
random buckets, by a hash of their label: a sum over buckets has the same expected square, and its variance the relative
standard deviation :math:`\sqrt{2/B}`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from survscore._validation import InputError
from survscore.engine.evaluation import ScoreArrays
from survscore.engine.moments import Moments, contrast, n_pairs, pairs
from survscore.inference.units import PowerSums, Units
from survscore.scale.batches import Batch, Labels, by_cause, with_weight
from survscore.scale.looks import BUCKETS, SEGMENT_BUCKETS, hashed
from survscore.scale.projected import Strata, kind_of_loss, places_of
from survscore.scale.specification import Specification, bins_of
from survscore.scale.state import ROWS, ROWS_OVER_TIME, add_products
from survscore.weighting import Projected
from survscore.weighting.interval_weights import TimeIndex

if TYPE_CHECKING:
    import pyarrow as pa

Values = NDArray[np.float64]
Key = tuple[int, int]  # of sums: weighting and metric; -1 for the sizes of groups


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a batch, as the compiled loops take them: in the order of their units, all individuals or segments.

    Attributes
    ----------
    batch : Batch
    index : TimeIndex
        Of the rows as they come.
    order : ndarray or slice
        Brings what they have into the order of units.
    bins, sample : ndarray
        Each row's bin, and its sample weight.
    columns : list of list of ndarray
        Predictions, by model and time.
    kinds : list
        Of losses, see `kind_of_loss`.
    levels : list
        Of all individuals, and where there are segments of these, each row's unit, and by model its stratum.
    """

    batch: Batch
    index: TimeIndex
    order: Any
    bins: NDArray[np.int32]
    sample: Values
    columns: list[list[NDArray[Any]]]
    kinds: list[tuple[int, float]]
    levels: list[tuple[NDArray[np.int32], list[NDArray[np.int32]]]]

    @classmethod
    def of(cls, batch: Batch, segments: Sequence[Labels], strata: Strata | None) -> Rows:
        """Read a batch; `segments` are all that there are."""
        what, outcomes = batch.specification, batch.outcomes
        order: Any = slice(None)
        levels = [np.zeros(len(batch), dtype=np.int32)]
        if what.by:
            codes, labels = batch.segments()
            place = places_of(labels, segments, "segment")[codes].astype(np.int32)
            order = np.argsort(place, kind="stable")
            levels.append(1 + place[order])
        columns = [[np.ascontiguousarray(column) for column in batch.columns(model)] for model in what.models]
        if not what.in_one_pass:  # whose loops check predictions
            batch.check_columns(columns)
        columns = [[column[order] for column in of_model] for of_model in columns]
        several = [
            (units, [units] * len(columns) if strata is None else strata.rows(batch, order, columns, units))
            for units in levels
        ]
        sample = np.ones(len(batch)) if outcomes.weights is None else np.asarray(outcomes.weights)[order]
        return cls(
            batch, TimeIndex(outcomes, what.at), order, bins_of(what, outcomes)[order], sample, columns,
            [kind_of_loss(one) for one in what.metrics], several,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Known:
    """What influences under one weighting, by one metric, are made of: of all units, one after the other.

    Attributes
    ----------
    centre : ndarray of shape (models, times, units)
        The scores.
    scale : ndarray of shape (times, units)
        One over the sum of weights; 0 where there is no score.
    at_risk : ndarray of shape (times, units)
        The weight of those who are followed event-free.
    own : ndarray of shape (strata, bins)
        The weight of others, by when they left.
    share, later : ndarray of shape (models, strata, bins) and (models, times, strata)
        Where statuses are projected, the hidden are event-free with the product of these.
    added : ndarray of shape (models, times, strata, bins, 2)
        What estimating curves adds; last for those who leave.
    averages : ndarray of shape (means, times, units)
        The means over time that have standard errors, as weights of the times.
    inflation : ndarray of shape (times, units)
        The small-sample correction of variances.
    inverse_n, inverse_mass : ndarray of shape (times, units)
        One over the number of individuals, and over the sum of their sample weights; see `InfluenceFactors`.
    """

    centre: Values
    scale: Values
    at_risk: Values
    own: Values
    share: Values
    later: Values
    added: Values
    averages: Values
    inflation: Values
    inverse_n: Values
    inverse_mass: Values

    @property
    def n_bytes(self) -> int:
        """How much memory it takes."""
        return sum(values.nbytes for values in vars(self).values())


@dataclass(frozen=True, eq=False)
class FirstPass:
    """What is known of all rows before their influences are added up.

    Attributes
    ----------
    segments : list of tuple of str
        Their labels.
    known : list of list of Known
        By weighting and metric.
    strata : Strata, optional
        Of projected statuses.
    groups : ndarray, optional
        The hashes of all groups, if these are few.
    preliminary : bool
        Whether it was told by a sample.
    """

    segments: list[Labels]
    known: list[list[Known]]
    strata: Strata | None = None
    groups: NDArray[np.uint64] | None = None
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

    Attributes
    ----------
    specification : Specification
        What is computed.
    first : FirstPass
        What is known.
    sums : dict
        By weighting and metric, arrays by name. Of individuals, sums and sums of squares (`_kernels.add_squares`):
        ``single`` (times, units, quantities), of ``means`` over time (means, units, quantities); their ``products``
        over time, where columns are the times of the first model, of the second and so on (units, columns, columns);
        and of projected scores ``parts`` (models, times, units, 5), see `_kernels.fill_influences`. Of groups, sums by
        ``bucket`` (buckets, times, models). In place of a metric -1: how many of each group are counted, by bucket.
    """

    specification: Specification
    first: FirstPass
    sums: dict[Key, dict[str, Values]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        what, units = self.specification, self.first.n_units
        k, m, quantities = len(what.models), len(what.times), len(what.models) + n_pairs(len(what.models))
        columns = k * m if what.over_time and what.groups is None else 0
        rows = int(self.bucket_starts[-1])
        for q, of_weighting in enumerate(self.first.known if not self.sums else ()):
            if what.groups is not None:
                self.sums[q, -1] = {"bucket": np.zeros((rows, m))}
            projects = isinstance(what.weightings[q], Projected)
            for metric, known in enumerate(of_weighting):
                self.sums[q, metric] = {
                    "single": np.zeros((m, units, quantities)), "products": np.zeros((units, columns, columns)),
                    "means": np.zeros((len(known.averages), units, quantities)), "bucket": np.zeros((rows, m, k)),
                    "parts": np.zeros((k, m, units if projects else 0, 5)),
                }  # fmt: skip

    @property
    def n_bytes(self) -> int:
        """How much memory the sums take."""
        return sum(values.nbytes for one in self.sums.values() for values in one.values())

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
            self.add(Rows.of(batch, self.first.segments, self.first.strata))
        return self

    def add(self, rows: Rows) -> None:
        """Add rows that have been read, in place."""
        what, outcomes, _m = self.specification, rows.index.outcomes, len(self.specification.times)
        places = self._places(rows)
        for q, weighting in enumerate(what.weightings):
            early = np.zeros(len(rows.bins), dtype=np.int32)
            if isinstance(weighting, Projected):
                index = rows.index
                followed = np.where(outcomes.event, index.before_time, index.until_hidden)
                if outcomes.censoring_time is not None:
                    early = index.until_censoring_time[rows.order]
                stops, left = index.to_the_end, outcomes.event
                ranges = (followed, index.until_hidden, np.asarray(outcomes.event, dtype=np.int8))
            else:
                one = by_cause(weighting.unweighted(rows.index), outcomes)
                stops, left = one.population_index, weighting.leaves(outcomes)
                ranges = (one.event_index, one.follow_up_index, one.label)
            first, last, label = (np.ascontiguousarray(values[rows.order]) for values in ranges)
            stops, left = np.ascontiguousarray(stops[rows.order]), left[rows.order]
            for (units, strata), place in zip(rows.levels, places, strict=True):
                if place is not None:
                    from survscore.scale import _kernels

                    _kernels.add_sizes(stops, rows.sample, place, self.sums[q, -1]["bucket"])
                own = strata if isinstance(weighting, Projected) else [units] * len(strata)
                for metric, known in enumerate(self.first.known[q]):
                    self._add((q, metric), known, rows, (first, last, label, early, left, stops), units, own, place)

    def _add(self, key: Key, known: Known, rows: Rows, ranges: Any, units: Any, strata: Any, place: Any) -> None:
        """Add the influences of rows, by one metric under one weighting."""
        first, last, label, early, left, stops = ranges
        n, k, n_bins, projects = len(units), len(strata), known.own.shape[1], self.sums[key]["parts"].shape[2] > 0
        cells = [row * np.int64(n_bins) + rows.bins for row in strata]
        owns, none = known.own.reshape(-1).take(cells[0]), np.zeros(n)
        shares = [
            np.where(left, 0.0, known.share[a].reshape(-1).take(cells[a])) if projects else none for a in range(k)
        ]
        cells = [cell * 2 + left for cell in cells]
        for start in range(0, n, ROWS_OVER_TIME):  # so few that what a time adds stays in a cache
            some = slice(start, start + ROWS_OVER_TIME)
            self._add_some(
                key, known, rows, some, (first, last, label, owns, early, stops), shares, strata, cells, units, place
            )

    def _add_some(
        self, key: Key, known: Known, rows: Rows, some: slice, ranges: Any, shares: Any, strata: Any, cells: Any,
        units: Any, place: Any,
    ) -> None:  # fmt: skip
        from survscore.scale import _kernels

        sums, (k, m), kind = self.sums[key], known.centre.shape[:2], rows.kinds[key[1]]
        first, last, label, owns, early, stops = (values[some] for values in ranges)
        units, sample, n = units[some], rows.sample[some], len(units[some])
        influences, means = np.empty((k, n)), np.zeros((len(known.averages) if place is None else 0, k, n))
        over_time = np.empty((k, m, n) if sums["products"].size else (0, 0, 0))
        kind_of_weights = rows.index.outcomes.weight_kind
        for j in range(m):
            for a in range(k):
                _kernels.fill_influences(
                    rows.columns[a][j][some], j, *kind, first, last, label, owns, shares[a][some], sample, units,
                    strata[a][some], cells[a][some], early, known.at_risk[j], known.later[a, j], known.centre[a, j],
                    known.scale[j], known.added[a, j].reshape(-1), sums["parts"][a, j], influences[a],
                )  # fmt: skip
            if place is not None:
                _kernels.add_to_groups(influences, place[some], sums["bucket"][:, j])
                continue
            if kind_of_weights == "frequency":
                influences *= sample**-0.5
            elif kind_of_weights is not None:
                _kernels.weigh_squares(influences, sample, j, stops, units, known.inverse_n[j], known.inverse_mass[j])
            _kernels.add_squares(influences, units, sums["single"][j])
            _kernels.add_means(influences, units, known.averages[:, j] * np.sqrt(known.inflation[j]), means)
            if over_time.size:
                over_time[:, j] = influences
        for r, mean in enumerate(means):
            _kernels.add_squares(mean, units, sums["means"][r])
        if over_time.size:
            add_products(sums["products"], over_time.reshape(k * m, n), units)

    def _places(self, rows: Rows) -> list[NDArray[np.int64] | None]:
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
        present = self.sums[0, -1]["bucket"].max(axis=1, initial=0.0) > 0
        several = present.reshape(self.first.n_units, -1)
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
        of_averages = sums["means"][used, unit, k:].T
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
        root = np.sqrt(np.where(usable, units.inflation, 0.0))
        values = self.sums[q, metric]["bucket"][rows].transpose(2, 0, 1) * root
        several = [contrast(values, a, b) for a, b in pairs(len(values))]
        over_time = np.array([one.T @ one for one in several]) if self.specification.over_time else None
        moments = Moments(
            np.array([np.square(one).sum(axis=0) for one in several]), averages,
            np.array([np.square(one @ averages.T).sum(axis=0) for one in several]), over_time,
        )  # fmt: skip
        how = f"{BUCKETS} random buckets" if self.first.groups is None else "as they are"
        return replace(
            scored, moments=moments, support=replace(scored.support, units=units, grouped=True),
            settings={**scored.settings, "groups": how},
        )  # fmt: skip


def of_pair(products: Values, a: int, b: int) -> Values:
    """Return the products of a model, or of a difference, (times, times), of those of all (models, times) twice."""
    if a == b:
        return np.asarray(products[a, :, a])
    return np.asarray(products[a, :, a] + products[b, :, b] - products[a, :, b] - products[b, :, a])
