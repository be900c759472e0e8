"""A first look at a data set: how many there are, when somebody leaves, who belongs together, and a random sample."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from survscore.curves import SurvivalCurves
from survscore.outcomes import Outcomes
from survscore.scale.batches import Batch, Labels, with_weight
from survscore.scale.columns import ModelColumns
from survscore.scale.specification import MOST_BINS, Bins, Specification
from survscore.weighting import Projected
from survscore.weighting.interval_weights import TimeIndex
from survscore.weighting.ranks import some_times

if TYPE_CHECKING:
    import pyarrow as pa


Values = NDArray[np.float64]

BUCKETS = 4096  # of groups, of all individuals together
SEGMENT_BUCKETS = 256  # of each segment
MOST_KEPT = 1 << 20  # times of leaving, of which quantiles are taken


def looked_at(what: Specification) -> Specification:
    """Return which columns a first look needs: predictions only where statuses are projected, at a few of the times."""
    models: tuple[ModelColumns, ...] = ()
    if what.projected is not None:
        few = some_times(what.at).tolist() if what.outcomes.entry_column is None else []
        models = tuple(model.only(few) if few else model for model in what.models)
        # between these times a sample's predictions are read by straight lines
        models = tuple(
            one if one is model or model.grid == one.grid else replace(one, interpolation="linear")
            for one, model in zip(models, what.models, strict=True)
        )
    return replace(what, models=models)


@dataclass(eq=False)
class Look:
    """What one pass over outcomes, labels and few predictions shows; looks at parts of the rows add up.

    The sample is of the rows with the smallest hashes of their contents, so that it does not depend on how rows are
    cut. Rows that are the same in everything are taken together or not at all.
    """

    specification: Specification  # see `looked_at`
    n: int = 0
    #: By segment: how many individuals there are, the sum of their squared sample weights, and at each time how many
    #: were followed event-free, of how many the status is known, and how many had no event of interest.
    counts: dict[Labels, Values] = field(default_factory=dict)
    labels: set[str] = field(default_factory=set)  # the strata, where a column has them
    #: The hashes of all groups; None where these are too many to keep.
    groups: NDArray[np.uint64] | None = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))
    #: The times at which individuals leave in a way that some weighting estimates. Of more than `MOST_KEPT`, those with
    #: the smallest hashes, and the last.
    exits: Values = field(default_factory=lambda: np.zeros(0))
    whole: bool = True  # whether all times are whole units
    largest: float = 0.0  # the largest sample weight
    ends_known: bool = False
    keys: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))  # the sample's hashes
    sample: pa.Table | None = None

    def update(self, rows: pa.RecordBatch) -> Look:
        """Return the same with more rows."""
        import pyarrow as pa

        what, rows = self.specification, with_weight(self.specification, rows)
        if not rows.num_rows:
            return self
        batch = Batch(what, rows)
        outcomes, (codes, labels) = batch.outcomes, batch.segments()
        other = Look(what, len(batch), ends_known=outcomes.censoring_time is not None)
        other.counts = _counts(TimeIndex(outcomes, what.at), codes, labels)
        other.whole = bool((outcomes.time == np.floor(outcomes.time)).all())
        other.exits = self._exits_of(outcomes, other.whole)
        if outcomes.weights is not None:
            other.largest = float(outcomes.weights.max())
        if what.strata is not None:
            other.labels = set(batch.labels(what.strata).tolist())
        if what.groups is not None:
            other.groups = np.unique(hashed(batch.groups()))
        if what.projected is not None:
            keys = self._keys_of(batch)
            kept = np.flatnonzero(keys <= self.keys.max()) if self.keys.size >= what.rank_rows else None
            other.keys = keys if kept is None else keys[kept]
            other.sample = pa.Table.from_batches([rows if kept is None else rows.take(pa.array(kept))])
        return self + other

    def _exits_of(self, outcomes: Outcomes, whole: bool) -> Values:
        found = []
        for weighting in self.specification.weightings:
            projects = isinstance(weighting, Projected)  # all who leave, leave one of its risk sets
            if projects or weighting.estimated:
                time = outcomes.time if projects else outcomes.time[weighting.leaves(outcomes)]
                few = whole and time.size and time.max() < MOST_BINS
                found.append(np.flatnonzero(np.bincount(time.astype(np.intp))) if few else np.unique(time))
        return np.unique(np.concatenate([np.zeros(0), *found]))

    def _keys_of(self, batch: Batch) -> NDArray[np.uint64]:
        from survscore.scale import _kernels

        outcomes, what = batch.outcomes, self.specification
        end = outcomes.time if outcomes.censoring_time is None else outcomes.censoring_time
        several = [outcomes.time, end]
        if what.models:
            several += [
                column for model in what.models for column in replace(batch, specification=few(what)).columns(model)
            ]
        keys = np.zeros(len(batch), dtype=np.uint64)
        for values in several:
            _kernels.mix_into(keys, np.ascontiguousarray(values, dtype=np.float64).view(np.uint64))
        return keys

    def __add__(self, other: Look) -> Look:
        counts = dict(self.counts)
        for label, values in other.counts.items():
            counts[label] = counts[label] + values if label in counts else values
        groups = None if self.groups is None or other.groups is None else np.union1d(self.groups, other.groups)
        keys, sample = np.concatenate((self.keys, other.keys)), _appended(self.sample, other.sample)
        most = self.specification.rank_rows
        if sample is not None and keys.size > most + most // 2:
            kept = np.sort(np.argpartition(keys, most)[:most])
            keys, sample = keys[kept], sample.take(kept)
        return Look(
            self.specification, self.n + other.n, counts, self.labels | other.labels,
            None if groups is None or groups.size > BUCKETS else groups,
            _fewer(np.union1d(self.exits, other.exits)), self.whole and other.whole, max(self.largest, other.largest),
            self.ends_known or other.ends_known, keys, sample,
        )  # fmt: skip

    # What it tells

    def bins(self) -> Bins:
        """Return where bins of time end: at every unit, or every exit, or as many of them as can be held."""
        if not self.exits.size:
            return None
        if self.whole and self.exits[-1] < MOST_BINS:
            return "units"
        if self.exits.size <= MOST_BINS:
            return tuple(self.exits.tolist())
        places = np.linspace(0, self.exits.size - 1, MOST_BINS).round().astype(np.intp)
        return tuple(self.exits[places].tolist())

    def drawn(self) -> Batch | None:
        """Return the sample, with a column of predictions for each model and time; None where there is none."""
        if self.sample is None or not self.keys.size:
            return None
        what, sample = self.specification, self.sample
        if self.keys.size > what.rank_rows:
            sample = sample.take(np.sort(np.argpartition(self.keys, what.rank_rows)[: what.rank_rows]))
        batch = Batch(what, sample.combine_chunks().to_batches()[0])
        if what.outcomes.entry_column is not None:
            return batch
        import pyarrow as pa

        models, rows = [], batch.table.select([*what.outcomes.names(sample.column_names), *what.label_columns()])
        for a, model in enumerate(what.models):
            names = tuple(f"{a}: {j}" for j in range(len(what.times)))
            models.append(ModelColumns(model.name, names, what.times, monotone="keep"))
            for name, column in zip(names, batch.columns(model), strict=True):
                rows = rows.append_column(name, pa.array(np.ascontiguousarray(column)))
        return Batch(replace(what, models=tuple(models)), rows)

    def outcomes_and_curves(self, batch: Batch | None) -> tuple[Outcomes, dict[str, SurvivalCurves]] | None:
        """Return the sample, as `drawn`, as outcomes and curves; None where C* is not known, or there is none."""
        if batch is None or not self.ends_known or not self.specification.models:
            return None
        models = batch.specification.models
        curves = {model.name: np.stack(list(batch.columns(model)), axis=1) for model in models}
        grid = self.specification.at
        return batch.outcomes, {
            name: SurvivalCurves(of, grid, interpolation="linear", monotone="keep") for name, of in curves.items()
        }


def few(what: Specification) -> Specification:
    """Return the same at those times alone at which a first look reads predictions."""
    return replace(what, times=tuple(some_times(what.at).tolist()))


def _counts(index: TimeIndex, codes: NDArray[np.int32], labels: list[Labels]) -> dict[Labels, Values]:
    outcomes, m, sample = index.outcomes, index.times.size, index.sample
    own = None if sample is None else sample.counts
    followed = np.where(outcomes.event, index.before_time, index.until_time)
    tables = [
        np.bincount(codes * np.int64(m + 1) + stop, own, minlength=len(labels) * (m + 1)).reshape(-1, m + 1)
        for stop in (followed, index.until_hidden, np.where(index.label > 0, index.before_time, m))
    ]
    after = [table.sum(axis=1, keepdims=True) - np.cumsum(table, axis=1)[:, :m] for table in tables]
    squares = None if sample is None else sample.squares
    sizes = np.stack([np.bincount(codes, values, minlength=len(labels)) for values in (own, squares)], axis=1)
    return dict(zip(labels, np.concatenate((sizes, *after), axis=1).astype(np.float64), strict=True))


def _appended(one: pa.Table | None, other: pa.Table | None) -> pa.Table | None:
    import pyarrow as pa

    if one is None or other is None:
        return other if one is None else one
    return pa.concat_tables([one, other], promote_options="default").unify_dictionaries()


def _fewer(times: Values) -> Values:
    """Return some of too many times: which ones does not depend on how rows are cut, since hashes choose."""
    if times.size <= MOST_KEPT + 1:
        return times
    kept = np.argpartition(mixed(times.view(np.uint64)), MOST_KEPT)[:MOST_KEPT]
    return np.unique(np.append(times[kept], times[-1]))


def hashed(labels: pa.DictionaryArray) -> NDArray[np.uint64]:
    """Return a number for each label, the same in all files and on all machines."""
    values = labels.dictionary.to_numpy(zero_copy_only=False)
    if values.dtype.kind in "iub":
        numbers = mixed(values.astype(np.int64).view(np.uint64))
    else:
        from pandas.util import hash_array

        numbers = hash_array(np.array([str(value) for value in values], dtype=object), categorize=False)
    return np.asarray(numbers[labels.indices.to_numpy(zero_copy_only=False)], dtype=np.uint64)


def mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix the bits of whole numbers, so that neighbours are far apart, and different ones stay so."""
    from survscore.scale import _kernels

    keys = np.zeros(numbers.size, dtype=np.uint64)
    _kernels.mix_into(keys, numbers)
    return keys
