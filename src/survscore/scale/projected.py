r"""Projected scores of data that come in parts: strata from ranks of a sample, then sums, then influences.

Three passes. The first (`Look`) counts, and keeps a random sample of rows, among which predictions are ranked; the
strata (`Strata`) are cut at ranks of the sample. The second (`ProjectedSums`) adds up, at each evaluation time, the
losses whose status is known, and for those whose status is hidden, by stratum and by the bin of their time :math:`c`,
what being event-free adds to the loss. With events and numbers at risk by stratum and bin, scores follow: every hidden
individual of a bin is event-free with the same probability :math:`S_k(t) / S_k(c)`. So do the gradients in the curves
(`engine.influence`), by which the third pass makes each individual's influence.

A unit is all individuals, or a segment: each has strata, curves and scores of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from survscore._utils.parallel import dot
from survscore._validation import InputError, plural, shown
from survscore.curves import SurvivalCurves
from survscore.engine.prepared import PartArrays, Undefined, undefined_times
from survscore.engine.sensitivity import THETAS, ThetaScores
from survscore.inference.late_starters import LateStarters
from survscore.inference.support import Support
from survscore.inference.units import Units
from survscore.metrics import Loss
from survscore.outcomes import Outcomes
from survscore.scale.batches import Batch, Labels
from survscore.scale.looks import mixed
from survscore.scale.memory import check_bytes
from survscore.scale.specification import Specification
from survscore.weighting import Projected
from survscore.weighting.interval_weights import IntervalWeights, TimeIndex
from survscore.weighting.ranks import Neighbours, doubled_ranks, number_of_strata, some_times

if TYPE_CHECKING:
    import pyarrow as pa

Values = NDArray[np.float64]
Places = NDArray[np.intp]

KNOTS = 512  # of a sorted sample that is none of all rows, in which a rank is looked up


@dataclass(eq=False)
class Look:
    """Counts of all rows, and a random sample of them: those with the smallest hashes of what they hold.

    Rows that are the same in everything are taken together or not at all.

    Attributes
    ----------
    specification : Specification
    counts : dict
        By segment: how many individuals there are, then at each time how many were followed event-free, and of how many
        the status is known.
    labels : set of str
        The strata, where a column has them.
    sample : list of ndarray
        Of rows of the sample: hash, segment (its place in `segments`), C*, predictions (rows, models, times), time and
        event.
    segments : list of tuple of str
    ends_known : bool
        Whether C* is known.
    """

    specification: Specification
    counts: dict[Labels, Values] = field(default_factory=dict)
    labels: set[str] = field(default_factory=set)
    sample: list[NDArray[Any]] = field(default_factory=list)
    segments: list[Labels] = field(default_factory=list)
    ends_known: bool = False

    @property
    def n(self) -> int:
        """How many rows were seen."""
        return int(sum(counts[0] for counts in self.counts.values()))

    def update(self, rows: pa.RecordBatch) -> Look:
        """Return the same with more rows."""
        batch, what = Batch(self.specification, rows), self.specification
        outcomes = batch.outcomes
        _check(outcomes)
        if not what.in_one_pass:  # else the second pass checks them
            batch.check()
        index, (codes, labels) = TimeIndex(outcomes, what.at), batch.segments()
        stops = (_followed(index), index.until_hidden)
        found = [_eligible(codes, stop, len(labels), len(what.times)) for stop in stops]
        sizes = np.bincount(codes, minlength=len(labels)).astype(np.float64)
        other = Look(what, segments=labels)
        for s, label in enumerate(labels):
            other.counts[label] = np.concatenate((sizes[s : s + 1], found[0][s], found[1][s]))
        if what.strata is not None:
            other.labels = set(batch.labels(what.strata).tolist())
        elif what.projected is not None and what.projected.strata is not None:
            other.sample = self._sampled(batch, outcomes, codes)
        other.ends_known = outcomes.censoring_time is not None
        return self + other

    def _sampled(self, batch: Batch, outcomes: Outcomes, codes: NDArray[np.int32]) -> list[NDArray[Any]]:
        what, n = self.specification, len(batch)
        columns = [list(batch.columns(model)) for model in what.models]
        end = outcomes.time if outcomes.censoring_time is None else np.asarray(outcomes.censoring_time)
        few = some_times(np.arange(len(what.times), dtype=np.float64)).astype(int).tolist()
        key = np.zeros(n, dtype=np.uint64)
        for values in (outcomes.time, end, *(of_model[j] for of_model in columns for j in few)):
            key = mixed(key ^ np.asarray(values, dtype=np.float64).view(np.uint64))
        rows = np.arange(n)
        if self.sample and self.sample[0].size >= what.rank_rows:
            rows = np.flatnonzero(key <= self.sample[0].max())
        predicted = np.stack([np.stack([one[rows] for one in of_model], axis=1) for of_model in columns], axis=1)
        return [key[rows], codes[rows], end[rows], predicted, outcomes.time[rows], outcomes.event[rows]]

    def outcomes_and_curves(self) -> tuple[Outcomes, dict[str, SurvivalCurves]] | None:
        """Return the sample as outcomes and curves at the evaluation times; None where C* is not known, or none is."""
        if not self.sample or not self.ends_known:
            return None
        _, _, end, predicted, time, event = self.sample
        y = Outcomes(time, event, end)
        names = self.specification.names
        return y, {
            name: SurvivalCurves(predicted[:, a], self.specification.at, "linear", monotone="keep")
            for a, name in enumerate(names)
        }

    def __add__(self, other: Look) -> Look:
        segments = sorted({*self.segments, *other.segments})
        counts = {
            label: sum((one.counts[label] for one in (self, other) if label in one.counts), np.zeros(()))
            for label in segments
        }
        samples = []
        for one in (self, other):
            if one.sample:
                place = np.array([segments.index(label) for label in one.segments], dtype=np.int32)
                samples.append([one.sample[0], place[one.sample[1]], *one.sample[2:]])
        sample = [np.concatenate(several) for several in zip(*samples, strict=True)]
        most = self.specification.rank_rows
        if sample and sample[0].size > most:
            kept = np.sort(np.argpartition(sample[0], most)[:most])
            sample = [values[kept] for values in sample]
        known = self.ends_known or other.ends_known
        return Look(self.specification, counts, self.labels | other.labels, sample, segments, known)


def _check(outcomes: Outcomes) -> None:
    if outcomes.interest:
        raise InputError(
            "projected scores of one of several causes are not available for data that come in parts: use "
            "`weighting` 'administrative', or compare, on data that fit in memory"
        )


def _followed(index: TimeIndex) -> NDArray[np.int32]:
    """Return up to before which evaluation time each individual was followed event-free."""
    return np.where(index.outcomes.event, index.before_time, index.until_time)


def _eligible(codes: NDArray[np.int32], stop: NDArray[Any], n: int, m: int) -> Values:
    """Return how many of each segment have a `stop` after each time."""
    counts = np.bincount(codes * np.int64(m + 1) + stop, minlength=n * (m + 1)).reshape(n, m + 1)
    return np.asarray(counts.sum(axis=1, keepdims=True) - np.cumsum(counts, axis=1)[:, :m], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class UnitStrata:
    """The strata of one unit, and how far its data reach.

    Attributes
    ----------
    n, n_followed, n_known : ndarray
        Of the unit's individuals, at each time.
    n_scored : int
        At how many times, from the first on, there is a score.
    places : ndarray
        At which times predictions are ranked.
    ends : ndarray
        The last C* of every group of neighbours but the last.
    knots : list of list of ndarray
        By group and model: sorted predictions of the sample at each of these times (times, knots), and by how much a
        place among them counts.
    limits : list of list of ndarray
        By group and model: the sums of ranks at which strata begin.
    n_strata : tuple of int
        Of each model.
    """

    n: float
    n_followed: Values
    n_known: Values
    n_scored: int
    places: Places
    ends: Values
    knots: list[list[tuple[Values, float]]]
    limits: list[list[Values]]
    n_strata: tuple[int, ...]
    exact: bool
    shared: bool

    @classmethod
    def of(cls, look: Look, which: Labels | None) -> UnitStrata:
        """Cut the sample of a segment, or all of it, as `weighting.Projected` cuts all individuals."""
        what, (k, m) = look.specification, (len(look.specification.models), len(look.specification.times))
        weighting = what.projected
        if weighting is None:
            raise TypeError("no projected scores were asked for")
        total = sum(counts for label, counts in look.counts.items() if which in (None, label))
        n, followed, known = float(total[0]), total[1 : m + 1], total[m + 1 :]  # type: ignore[index]
        scored = (followed >= weighting.min_followed) | (known == n)
        n_scored = m if scored.all() else int(np.argmin(scored))
        last = max(n_scored, 1) - 1
        wanted = number_of_strata(min(known[last] - followed[last], followed[last]))
        places = some_times(np.arange(last + 1.0)).astype(np.intp)
        one: tuple[int, ...] = (max(len(look.labels), 1),) * k
        nothing = cls(
            n, followed, known, n_scored, places, np.zeros(0), [], [], one, True, weighting.strata != "own-ranks"
        )
        if not look.sample or wanted < 2:
            return nothing if look.labels else cls(**{**vars(nothing), "n_strata": (1,) * k})
        inside = np.ones(look.sample[1].size, dtype=bool)
        if which is not None:
            inside = look.sample[1] == look.segments.index(which)
        ends, predicted = look.sample[2][inside], look.sample[3][inside]
        neighbours = Neighbours(ends if look.ends_known else None, ends)
        exact, shared = look.n <= what.rank_rows, weighting.strata == "mean-ranks"
        # sums of ranks at these times, in order of C*: (models, rows)
        ranks, knots = np.zeros((k, len(ends)), dtype=np.intp), []
        for group in neighbours.groups:
            rows, of_group = neighbours.order[group], []
            for a in range(k):
                values = predicted[rows][:, a, places].T.copy()
                ranks[a, group] = doubled_ranks(values).sum(axis=0)
                ordered = np.sort(values, axis=1)
                if not exact and ordered.shape[1] > KNOTS:
                    ordered = ordered[:, np.linspace(0, ordered.shape[1] - 1, KNOTS).round().astype(int)]
                of_group.append((ordered, len(rows) / ordered.shape[1]))
            knots.append(of_group)
        if shared:
            ranks = ranks.sum(axis=0, keepdims=True)
        cuts = [neighbours.strata(of_model, wanted) for of_model in ranks]
        limits: list[list[Values]] = []
        for group in neighbours.groups:
            rows = neighbours.order[group]
            limits.append([
                np.array([
                    own[codes[rows] >= stratum].min(initial=np.iinfo(np.intp).max) for stratum in range(1, used)
                ]) if used > 1 else np.zeros(0)
                for own, (codes, used) in zip(ranks[:, group], cuts, strict=True)
            ])  # fmt: skip
        last_ends = np.array([ends[neighbours.order[group.stop - 1]] for group in neighbours.groups[:-1]])
        used = tuple(used for _, used in cuts) * (k if shared else 1)
        return cls(n, followed, known, n_scored, places, last_ends, knots, limits, used, exact, shared)

    def codes(self, end: Values, columns: Sequence[Sequence[NDArray[Any]]], rows: Any) -> list[NDArray[np.intp]]:
        """Return the stratum of some rows, of each model."""
        k, found = len(columns), [np.zeros(end[rows].size, dtype=np.intp) for _ in columns]
        if not self.limits:
            return found
        group = np.searchsorted(self.ends, end[rows], side="left")
        order = np.argsort(group, kind="stable")
        starts = np.searchsorted(group[order], np.arange(len(self.limits) + 1))
        chosen = [[np.asarray(columns[a][j])[rows][order] for j in self.places] for a in range(k)]
        for g, (start, stop) in enumerate(pairwise(starts.tolist())):
            if start == stop:
                continue
            totals = []
            for a in range(k):
                ordered, factor = self.knots[g][a]
                total = np.zeros(stop - start)
                for values, known in zip(chosen[a], ordered, strict=True):
                    after = np.searchsorted(known, values[start:stop], side="right")
                    before = np.searchsorted(known, values[start:stop], side="left") if self.exact else after
                    total += factor * (before + after)
                totals.append(total)
            if self.shared:
                totals = [sum(totals, np.zeros(stop - start))] * k
            for a, total in enumerate(totals):
                limits = self.limits[g][0 if self.shared else a]
                found[a][order[start:stop]] = np.searchsorted(limits, total, side="right")
        return found


@dataclass(frozen=True, eq=False)
class Strata:
    """The strata of all units.

    Attributes
    ----------
    specification : Specification
    units : list of UnitStrata
        Of all individuals, then of each segment.
    segments : list of tuple of str
    labels : list of str
        The strata, where a column has them.
    sample : tuple, optional
        Outcomes of the sample, and what models predict for it.
    """

    specification: Specification
    units: list[UnitStrata]
    segments: list[Labels]
    labels: list[str]
    sample: tuple[Outcomes, dict[str, SurvivalCurves]] | None = field(default=None, repr=False)

    @classmethod
    def of(cls, look: Look) -> Strata:
        """Take what the first pass found."""
        segments = sorted(look.segments)
        units = [UnitStrata.of(look, which) for which in (None, *(segments if look.specification.by else ()))]
        return cls(look.specification, units, segments, sorted(look.labels), look.outcomes_and_curves())

    @property
    def most(self) -> int:
        """How many strata a unit has at most."""
        return max(max(unit.n_strata) for unit in self.units)

    def rows(self, batch: Batch, outcomes: Outcomes, columns: Any) -> list[tuple[NDArray[np.intp], list[Places]]]:
        """Return for all individuals, and where there are segments for these, each row's unit and by model its stratum.

        A stratum is told by its place among those of all units.
        """
        n, k = len(batch), len(columns)
        end = np.asarray(outcomes.time if outcomes.censoring_time is None else outcomes.censoring_time)
        levels = [np.zeros(n, dtype=np.intp)]
        if self.specification.by:
            codes, labels = batch.segments()
            levels.append(1 + _places_of(labels, self.segments, "segment")[codes])
        found = []
        for units in levels:
            if self.labels:
                encoded = batch.labels(self.specification.strata or "")
                names, place = np.unique(encoded.astype(str), return_inverse=True)
                of_column = _places_of(names.tolist(), self.labels, "stratum")[place]
                own = [of_column] * k
            else:
                own = [np.zeros(n, dtype=np.intp) for _ in range(k)]
                for unit in np.unique(units).tolist():
                    rows = np.flatnonzero(units == unit)
                    for a, of_model in enumerate(self.units[unit].codes(end, columns, rows)):
                        own[a][rows] = of_model
            found.append((units, [units * self.most + codes for codes in own]))
        return found


def _places_of(labels: Sequence[Any], known: Sequence[Any], noun: str) -> NDArray[np.intp]:
    places = {label: place for place, label in enumerate(known)}
    new = [label for label in labels if label not in places]
    if new:
        raise InputError(
            f"the data have changed since the first pass: {plural(len(new), noun)} came up, the first {shown(new[0])}"
        )
    return np.array([places[label] for label in labels], dtype=np.intp)


@dataclass(eq=False)
class ProjectedSums:
    """What the second pass adds up.

    Attributes
    ----------
    strata : Strata
    values : dict of str to ndarray
        ``base`` (metrics, models, times, units): losses of known statuses, and of the hidden as with event.
        ``slope`` (metrics, models, times, strata, bins): what being event-free adds for the hidden. ``counts`` and
        ``events`` (models, strata, bins): individuals, and events, by their time. ``slots`` and ``late`` (units, bins,
        times + 1): the same by how many evaluation times come up to C*.
    n_bins : int
    """

    strata: Strata
    values: dict[str, Values] = field(default_factory=dict)
    n_bins: int = 1

    def __post_init__(self) -> None:
        if not self.values:
            self.values = {name: np.zeros(shape) for name, shape in self.shapes(self.strata, self.n_bins).items()}

    @classmethod
    def of(cls, strata: Strata) -> ProjectedSums:
        """Return the sums over nobody."""
        bins = strata.specification.bins
        return cls(strata, n_bins=len(bins) + 1 if isinstance(bins, tuple) else 1)

    @staticmethod
    def shapes(strata: Strata, n_bins: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes of all arrays."""
        what, units = strata.specification, len(strata.units)
        losses, rows = (len(what.metrics), len(what.models), len(what.times)), units * strata.most
        by_bin, slots = (len(what.models), rows, n_bins), (units, n_bins, len(what.times) + 1)
        return {
            "base": (*losses, units), "slope": (*losses, rows, n_bins), "counts": by_bin, "events": by_bin,
            "slots": slots, "late": slots,
        }  # fmt: skip

    def grown(self, n_bins: int, limit: int | None = None) -> ProjectedSums:
        """Return the same with more bins, of at most `limit` bytes."""
        if n_bins <= self.n_bins:
            return self
        size, units = 8 * sum(map(prod, self.shapes(self.strata, n_bins).values())), len(self.strata.units)
        told = f"sums of projected scores of {units - 1:,} segments x " if units > 1 else "sums of projected scores of "
        check_bytes(size, limit, f"{told}{self.strata.most} strata x {n_bins} units of time")
        larger = ProjectedSums(self.strata, n_bins=n_bins)
        for name, values in self.values.items():
            larger.values[name][tuple(slice(size) for size in values.shape)] = values
        return larger

    def __add__(self, other: ProjectedSums) -> ProjectedSums:
        n_bins = max(self.n_bins, other.n_bins)
        one, two = self.grown(n_bins).values, other.grown(n_bins).values
        return ProjectedSums(self.strata, {name: values + two[name] for name, values in one.items()}, n_bins)

    def add(self, batch: Batch, index: TimeIndex, bins: NDArray[np.int32]) -> None:
        """Add rows, in place."""
        what, outcomes, n_bins = self.strata.specification, index.outcomes, self.n_bins
        _check(outcomes)
        columns = [list(batch.columns(model)) for model in what.models]
        levels = self.strata.rows(batch, outcomes, columns)
        event, slot, followed = outcomes.event, len(what.times), _followed(index)
        slots = np.full(len(batch), slot) if outcomes.censoring_time is None else index.until_censoring_time
        for units, rows in levels:
            flat = (units * np.int64(n_bins) + bins) * (slot + 1) + slots
            _add(self.values["slots"], flat)
            _add(self.values["late"], flat[event])
            for a, row in enumerate(rows):
                flat = row * np.int64(n_bins) + bins
                _add(self.values["counts"][a], flat)
                _add(self.values["events"][a], flat[event])
        for j in range(len(what.times)):
            free, places = j < followed, np.flatnonzero(index.until_hidden <= j)
            for a, of_model in enumerate(columns):
                survival = np.asarray(of_model[j], dtype=np.float64)
                for k, loss in enumerate(what.metrics):
                    with_event, slope = _losses(loss, survival)
                    base, of_hidden = with_event + np.where(free, slope, 0.0), slope[places]
                    for units, rows in levels:
                        _add(self.values["base"][k, a, j], units, base)
                        flat = rows[a][places] * np.int64(n_bins) + bins[places]
                        _add(self.values["slope"][k, a, j], flat, of_hidden)


def _losses(loss: Loss, survival: Values) -> tuple[Values, Values]:
    """Return losses with event, and what being event-free adds."""
    with_event = loss.of_event(survival)
    return with_event, loss.of_event_free(survival) - with_event


def _add(table: Values, flat: NDArray[Any], values: Values | None = None) -> None:
    """Add values, or ones, to the places of a table."""
    target = table.reshape(-1)
    if target.size > 4 * flat.size:
        np.add.at(target, flat, 1.0 if values is None else values)
    else:
        target += np.bincount(flat, values, minlength=target.size)


@dataclass(frozen=True, eq=False)
class UnitScores:
    """The scores of one unit, and what its individuals' influences are made of.

    Attributes
    ----------
    scores : ndarray of shape (metrics, models, times)
    undefined : list of Undefined
        Of each metric.
    later : ndarray of shape (models, strata, times)
        The curves at the evaluation times.
    share : ndarray of shape (models, strata, bins)
        One over the curve at the end of each bin.
    added : ndarray of shape (metrics, models, times, 2, strata, bins)
        What estimating the curves adds to the influences of those censored in a bin, and of those with event.
    """

    n: float
    scores: Values
    undefined: list[Undefined]
    later: Values
    share: Values
    added: Values


@dataclass(frozen=True, eq=False)
class ProjectedScores:
    """The scores of all units, from the sums of all rows."""

    sums: ProjectedSums
    units: list[UnitScores]

    @classmethod
    def of(cls, sums: ProjectedSums) -> ProjectedScores:
        """Estimate the curves, and finish the scores."""
        return cls(sums, [_unit_scores(sums, unit) for unit in range(len(sums.strata.units))])

    @property
    def n_bytes(self) -> int:
        """How much memory it takes."""
        return sum(unit.added.nbytes + unit.share.nbytes for unit in self.units)

    def influences(
        self, batch: Batch, index: TimeIndex, bins: NDArray[np.int32], columns: Any, parts: Parts
    ) -> list[list[Values]]:
        """Return every individual's influences, (models, times, rows), by level and metric; and add to parts."""
        what, outcomes, strata = self.sums.strata.specification, index.outcomes, self.sums.strata
        k, m, n = len(what.models), len(what.times), len(batch)
        known_ends, followed = outcomes.censoring_time is not None, _followed(index)
        until_end = index.until_censoring_time if known_ends else index.to_the_end
        found = []
        for units, rows in strata.rows(batch, outcomes, columns):
            of_level = [np.empty((k, m, n)) for _ in what.metrics]
            for unit in np.unique(units).tolist():
                inside: Any = np.flatnonzero(units == unit) if len(strata.units) > 1 else slice(None)
                own, place = self.units[unit], bins[inside]
                event, hidden_from, free_until, end = (
                    of[inside] for of in (outcomes.event, index.until_hidden, followed, until_end)
                )
                for a in range(k):
                    row = rows[a][inside] - unit * strata.most
                    share = own.share[a, row, place]
                    flat = (event * np.intp(strata.most) + row) * self.sums.n_bins + place
                    for j in range(m):  # one time after the other: what a step makes stays in a cache
                        survival = np.asarray(columns[a][j], dtype=np.float64)[inside]
                        hidden, early = hidden_from <= j, (j < end).astype(np.float64)
                        status = np.where(hidden, np.minimum(own.later[a, :, j][row] * share, 1.0), j < free_until)
                        if a == 0 and known_ends:
                            parts.counts[unit, :, j] += early.sum(), early.sum() - dot(early, hidden.astype(np.float64))
                        if known_ends:
                            for which, values in enumerate((survival, status)):
                                of_early = dot(early, values)
                                parts.means[a, unit, which, :, j] += of_early, values.sum() - of_early
                        for metric, loss in enumerate(what.metrics):
                            with_event, slope = _losses(loss, survival)
                            losses = with_event + status * slope
                            parts.losses[metric, a, unit, j] += dot(early, losses) if known_ends else 0.0
                            added = own.added[metric, a, j].take(flat)
                            if not own.undefined[metric].where[j]:
                                added += (losses - own.scores[metric, a, j]) / own.n
                            of_level[metric][a, j, inside] = added
            found.append(of_level)
        return found


def _unit_scores(sums: ProjectedSums, unit: int) -> UnitScores:
    strata, what = sums.strata, sums.strata.specification
    own, rows, n_bins = strata.units[unit], slice(unit * strata.most, (unit + 1) * strata.most), sums.n_bins
    k = len(what.models)
    values = np.arange(n_bins, dtype=np.float64) if what.bins == "units" else np.array([*(what.bins or ()), np.inf])
    passed = np.searchsorted(values, what.at, side="right")
    counts, events = sums.values["counts"][:, rows], sums.values["events"][:, rows]
    # events come first at ties: those censored then are at risk, and stay
    at_risk = np.cumsum(counts[..., ::-1], axis=-1)[..., ::-1]
    factor = np.divide(at_risk - events, at_risk, out=np.ones_like(at_risk), where=events > 0)
    curve = np.concatenate((np.ones((k, strata.most, 1)), np.cumprod(factor, axis=-1)), axis=-1)
    later: Values = np.asarray(curve[..., passed], dtype=np.float64)
    share: Values = np.divide(1.0, curve[..., 1:], out=np.zeros_like(factor), where=curve[..., 1:] > 0)
    steps = np.divide(
        events, at_risk * (at_risk - events), out=np.zeros_like(factor), where=(events > 0) & (factor > 0)
    )
    exit_steps = np.divide(1.0, at_risk, out=np.zeros_like(factor), where=events > 0)
    status = np.minimum(share[..., None] * later[:, :, None], 1.0)  # (models, strata, bins, times)
    slope = sums.values["slope"][:, :, :, rows].transpose(0, 1, 3, 4, 2)
    projected = slope * status
    scores = (sums.values["base"][..., unit] + projected.sum(axis=(2, 3))) / max(own.n, 1.0)
    undefined = [_undefined(what, own, loss) for loss in what.metrics]
    where = np.array([one.where for one in undefined])[:, None]
    # the derivative in the logarithm of each factor of the curve, up to t: of those censored before it
    before = (np.cumsum(projected, axis=3) - projected) / max(own.n, 1.0)
    before = np.where((np.arange(n_bins)[:, None] < passed) & ~where[:, :, None, None], before, 0.0)
    drift = np.cumsum(steps[..., None] * before, axis=3)
    of_event = drift - steps[..., None] * before - exit_steps[..., None] * before
    added = np.ascontiguousarray(np.stack((drift, of_event), axis=2).transpose(0, 1, 5, 2, 3, 4))
    return UnitScores(own.n, np.where(where, np.nan, scores), undefined, later, share, added)


def _undefined(what: Specification, own: UnitStrata, loss: Loss) -> Undefined:
    m, nobody, weighting = len(what.times), np.zeros(0, dtype=np.int32), what.projected
    if weighting is None:
        raise TypeError("no projected scores were asked for")
    few = f"fewer than {plural(weighting.min_followed, 'individual')} are followed event-free"
    weights = IntervalWeights(
        nobody, nobody, nobody.astype(np.int8), np.ones((1, m)), np.zeros(0), nobody,
        support_end=own.n_scored if own.n_scored < m else None, support_reason=few,
    )  # fmt: skip
    sums = np.stack((own.n - own.n_known + own.n_followed, np.zeros(m), own.n_known - own.n_followed))
    return undefined_times(loss, what.at, weighting.weights_for, weights, sums)


@dataclass(eq=False)
class Parts:
    """Sums over those with C* >= t, and over all, which the third pass adds up.

    ``counts`` (units, 2, times): with C* >= t, and of these with known status. ``means`` (models, units, 2, 2, times):
    predicted survival and status, of those with C* >= t, and of the others. ``losses`` (metrics, models, units, times):
    of those with C* >= t.
    """

    counts: Values
    means: Values
    losses: Values

    @classmethod
    def zeros(cls, what: Specification, units: int) -> Parts:
        """Return the sums over nobody."""
        k, m = len(what.models), len(what.times)
        return cls(np.zeros((units, 2, m)), np.zeros((k, units, 2, 2, m)), np.zeros((len(what.metrics), k, units, m)))

    def __add__(self, other: Parts) -> Parts:
        return Parts(self.counts + other.counts, self.means + other.means, self.losses + other.losses)


def support_of(own: UnitStrata, undefined: Undefined) -> Support:
    """Return on how many individuals the scores of a unit are based."""
    counted = np.full(own.n_known.size, own.n)
    units = Units(counted, 1.0 / counted, counted - 1.0)
    hidden = bool((own.n_known < own.n).any())
    effective = np.where(undefined.where, np.nan, counted)
    return Support(counted, effective, own.n_known - own.n_followed, own.n_followed, units, False, hidden)


def parts_of(scores: UnitScores, parts: Parts, unit: int, metric: int) -> PartArrays:
    """Return the scores of those with C* >= t, and of the others."""
    n_early, n_known = parts.counts[unit]
    means = []
    every = scores.scores[metric] * scores.n
    early = parts.losses[metric, :, unit]
    for losses, n in ((early, n_early), (every - early, scores.n - n_early)):
        means.append(np.where(~np.isnan(scores.scores[metric]) & (n > 0), losses / np.maximum(n, 1.0), np.nan))
    return PartArrays(n_early / scores.n, (n_early - n_known) / scores.n, *means)


def theta_scores(
    projected: ProjectedScores, parts: Parts, metric: int, weighting: Projected, *, known_ends: bool
) -> ThetaScores:
    """Return the scores of all individuals at other hazards of the hidden."""
    unit, sums = projected.units[0], projected.sums
    slope = sums.values["slope"][metric][:, :, : sums.strata.most].transpose(0, 2, 3, 1)
    status = np.minimum(unit.share[..., None] * unit.later[:, :, None], 1.0)
    now = (slope * status).sum(axis=(1, 2))
    change = np.stack([(slope * status**theta).sum(axis=(1, 2)) - now for theta in THETAS], axis=-1) / unit.n
    n_early = parts.counts[0, 0] if known_ends else np.full(len(sums.strata.specification.times), np.nan)
    sizes = np.stack((n_early, unit.n - n_early))
    with np.errstate(invalid="ignore", divide="ignore"):
        predicted, event_free = np.where(sizes > 0, parts.means[:, 0].transpose(1, 0, 2, 3) / sizes, np.nan)
    return ThetaScores(1.0, weighting.hazards, unit.scores[metric][..., None] + change, predicted, event_free)


def late_starters(sums: ProjectedSums) -> LateStarters | None:
    """Return observed and expected events of those with C* < t."""
    return LateStarters.of_counts(sums.strata.specification.at, sums.values["slots"][0], sums.values["late"][0])
