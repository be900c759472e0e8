r"""Projected scores of data that come in parts: strata from ranks of a sample, then sums.

Beside a first look (`Look`), which draws a random sample of rows among which predictions are ranked, one pass adds up
at each evaluation time the losses whose status is known, and for those whose status is hidden, by stratum and by the
bin of their time :math:`c`, what being event-free adds to the loss (`ProjectedSums`). With events and numbers at risk
by stratum and bin, scores follow: every hidden individual of a bin is event-free with the same probability
:math:`S_k(t) / S_k(c)`.

A unit is all individuals, or a segment: each has strata, curves and scores of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from survscore._validation import InputError, plural, shown
from survscore.curves import SurvivalCurves
from survscore.engine.prepared import PartArrays, Undefined, undefined_times
from survscore.engine.sensitivity import THETAS, ThetaScores
from survscore.inference.late_starters import LateStarters
from survscore.metrics import Brier, Loss
from survscore.outcomes import Outcomes
from survscore.scale.batches import Batch, Labels
from survscore.scale.cells import Cells
from survscore.scale.looks import Look, few
from survscore.scale.memory import check_bytes
from survscore.scale.specification import Specification
from survscore.weighting import Projected
from survscore.weighting.interval_weights import IntervalWeights, count_times
from survscore.weighting.ranks import Neighbours, number_of_strata

if TYPE_CHECKING:
    from survscore.scale.influences import Rows

Values = NDArray[np.float64]
Places = NDArray[np.intp]

RANKED = 512  # equidistant predictions, between which ranks are read off straight lines


@dataclass(frozen=True, eq=False)
class Ranks:
    """Where strata by ranks begin: in every group of neighbours in C*, at which sums of ranks over times."""

    ends: Values  # the last C* of every group of neighbours but the last
    places: Places  # at which times predictions are ranked
    first: Values  # (models, places): where equidistant predictions begin, ...
    scale: Values  # ... and one over their distance
    ranks: Values  # (models, places, groups, predictions): how many of the sample are below each of these, by group
    limits: Values  # (models, groups, strata - 1): the sums of ranks at which strata begin
    shared: bool  # whether one sum over all models makes the strata of all

    @classmethod
    def of(cls, end: Values | None, columns: Any, places: Places, wanted: int, *, shared: bool) -> Ranks:
        """Cut a sample as `weighting.Projected` cuts all individuals; `columns` are predictions by model and time."""
        k, like = len(columns), np.zeros(len(columns[0][0])) if end is None else end
        neighbours = Neighbours(end, like)
        rows = [neighbours.order[group] for group in neighbours.groups]
        first, scale = np.zeros((k, places.size)), np.zeros((k, places.size))
        tables = np.zeros((k, places.size, len(rows), RANKED + 1))
        for a, j in np.ndindex(first.shape):
            values = np.asarray(columns[a][places[j]], dtype=np.float64)
            low, high = float(values.min()), float(values.max())
            first[a, j], scale[a, j] = low, RANKED / (high - low) if high > low else 0.0
            for g, of_group in enumerate(rows):
                tables[a, j, g] = np.searchsorted(np.sort(values[of_group]), np.linspace(low, high, RANKED + 1))
        last = np.array([like[of_group[-1]] for of_group in rows[:-1]])
        limits = np.full((1 if shared else k, len(rows), wanted - 1), np.inf)
        ranks = cls(last, places, first, scale, tables, limits, shared)
        totals = ranks.totals(ranks.group(like), columns, slice(None))
        for a, total in enumerate(totals[:1] if shared else totals):
            order = np.unique(total, return_inverse=True)[1]  # strata are cut by whole numbers
            codes, used = neighbours.strata(order[neighbours.order], wanted)
            for stratum in range(1, used):
                for g, of_group in enumerate(rows):
                    limits[a, g, stratum - 1] = total[of_group][codes[of_group] >= stratum].min(initial=np.inf)
        return ranks

    @property
    def n_strata(self) -> tuple[int, ...]:
        """How many strata each model has."""
        used = 1 + np.isfinite(self.limits).any(axis=1).sum(axis=1)
        return tuple(np.broadcast_to(used, len(self.ranks)).tolist())

    def totals(self, group: NDArray[np.int32], columns: Any, rows: Any) -> list[Values]:
        """Return the sums of ranks of some rows, by model."""
        from survscore.scale import _kernels

        totals = [np.zeros(group.size) for _ in self.ranks]
        for a, total in enumerate(totals):
            for place, j in enumerate(self.places):
                own = self.first[a, place], self.scale[a, place], self.ranks[a, place]
                _kernels.add_ranks(np.ascontiguousarray(columns[a][j][rows]), group, *own, total)
        return [sum(totals)] * len(totals) if self.shared else totals  # type: ignore[list-item]

    def group(self, end: Values) -> NDArray[np.int32]:
        """Return the group of neighbours of each row."""
        return count_times(self.ends, end, inclusive=False)

    def fill(self, end: Values, columns: Any, rows: Any, base: int, found: Sequence[NDArray[np.int32]]) -> None:
        """Fill in the strata of some rows, by model, numbered from `base` on."""
        from survscore.scale import _kernels

        group = self.group(end[rows])
        for a, total in enumerate(self.totals(group, columns, rows)):
            own = np.empty(group.size, dtype=np.int32)
            _kernels.cut(total, group, self.limits[0 if self.shared else a], base, own)
            found[a][rows] = own


@dataclass(frozen=True, eq=False)
class UnitStrata:
    """The strata of one unit, and how far its data reach."""

    n: float
    squares: float  # the sum of squared sample weights
    n_followed: Values  # at each time, followed event-free, ...
    n_known: Values  # ... and of known status
    n_cases: Values  # with the event of interest
    n_scored: int  # at how many times, from the first on, there is a score
    ranks: Ranks | None
    n_strata: tuple[int, ...]  # of each model

    @classmethod
    def of(cls, look: Look, which: Labels | None, batch: Batch | None) -> UnitStrata:
        """Cut the sample of a segment, or all of it."""
        what, weighting = look.specification, look.specification.projected
        if weighting is None:
            raise TypeError("no projected scores were asked for")
        k, m = max(len(what.models), 1), len(what.times)
        total = np.sum([counts for label, counts in look.counts.items() if which in (None, label)], axis=0)
        n, squares, (followed, known, others) = float(total[0]), float(total[1]), total[2:].reshape(3, m)
        scored = (followed >= weighting.min_followed) | (known == n)
        n_scored = m if scored.all() else int(np.argmin(scored))
        last = max(n_scored, 1) - 1
        wanted = number_of_strata(min(known[last] - followed[last], followed[last]))
        ranks, n_strata = None, (max(len(look.labels), 1),) * k
        if batch is not None and isinstance(weighting.strata, str) and not look.labels and wanted > 1:
            ranks = cls._ranks(look, which, batch, last, wanted)
            n_strata = (1,) * k if ranks is None else ranks.n_strata
        return cls(n, squares, followed, known, n - others, n_scored, ranks, n_strata)

    @staticmethod
    def _ranks(look: Look, which: Labels | None, batch: Batch, last: int, wanted: int) -> Ranks | None:
        what, outcomes, (codes, labels) = batch.specification, batch.outcomes, batch.segments()
        rows = np.arange(len(batch)) if which is None else np.flatnonzero(codes == labels.index(which)) if (
            which in labels) else np.arange(0)  # fmt: skip
        if not rows.size:
            return None
        read = np.searchsorted(what.at, few(what).at)
        places = read[read <= last] if last < len(what.times) - 1 else read
        if not places.size:
            places = read[:1]
        columns = [[np.asarray(column)[rows] for column in batch.columns(model)] for model in what.models]
        end = None if outcomes.censoring_time is None else np.asarray(outcomes.censoring_time)[rows]
        return Ranks.of(end, columns, places, wanted, shared=what.projected.strata == "mean-ranks")  # type: ignore[union-attr]


@dataclass(frozen=True, eq=False)
class Strata:
    """The strata of all units, and the sample that they come from."""

    specification: Specification
    units: list[UnitStrata]  # all individuals, then each segment
    segments: list[Labels]
    labels: list[str]  # the strata, where a column has them
    drawn: Batch | None = field(default=None, repr=False)
    sample: tuple[Outcomes, dict[str, SurvivalCurves]] | None = field(default=None, repr=False)

    @classmethod
    def of(cls, look: Look, what: Specification) -> Strata:
        """Take what a first look found."""
        segments, batch = sorted(look.counts), look.drawn()
        units = [UnitStrata.of(look, which, batch) for which in (None, *(segments if what.by else ()))]
        return cls(what, units, segments, sorted(look.labels), batch, look.outcomes_and_curves(batch))

    @property
    def most(self) -> int:
        """How many strata a unit has at most."""
        return max(max(unit.n_strata) for unit in self.units)

    def rows(self, batch: Batch, order: Any, columns: Any, units: NDArray[np.int32]) -> list[NDArray[np.int32]]:
        """Return each row's stratum, by model, as its place among those of all units; rows are in this order."""
        base = units * np.int32(self.most)
        if self.labels:
            labels = batch.labels(self.specification.strata or "").astype(str)
            names, place = np.unique(labels[order], return_inverse=True)
            return [base + places_of(names.tolist(), self.labels, "stratum")[place].astype(np.int32)] * len(columns)
        observed = batch.outcomes
        end = np.asarray(observed.time if observed.censoring_time is None else observed.censoring_time)[order]
        found, several = [base.copy() for _ in columns], len(self.units) > 1
        for unit in np.unique(units).tolist() if several else (0,):
            ranks = self.units[unit].ranks
            if ranks is not None:
                inside = slice(*np.searchsorted(units, [unit, unit + 1])) if several else slice(None)
                ranks.fill(end, columns, inside, unit * self.most, found)
        return found


def places_of(labels: Sequence[Any], known: Sequence[Any], noun: str) -> NDArray[np.intp]:
    """Return where labels are among those of an earlier pass."""
    places = {label: place for place, label in enumerate(known)}
    new = [label for label in labels if label not in places]
    if new:
        raise InputError(
            f"the data have changed since the first pass: {plural(len(new), noun)} came up, the first {shown(new[0])}"
        )
    return np.array([places[label] for label in labels], dtype=np.intp)


@dataclass(eq=False)
class ProjectedSums:
    """What one pass adds up.

    ``base`` (metrics, models, times, units): losses of known statuses, and of the hidden as with event. ``slope``
    (metrics, models, times, strata, bins): what being event-free adds for the hidden. ``counts`` (models, strata, bins,
    kinds): individuals by their time, without event, with it, and with another one. ``slots`` (units, bins, times + 1,
    2): without and with the event of interest, by how many evaluation times come up to C*.
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
        return {
            "base": (*losses, units),
            "slope": (*losses, rows, n_bins),
            "counts": (len(what.models), rows, n_bins, what.outcomes.kinds),
            "slots": (units, n_bins, len(what.times) + 1, 2),
        }

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

    def count(self, rows: Rows) -> None:
        """Count rows, in place."""
        what, index, outcomes = self.strata.specification, rows.index, rows.index.outcomes
        ends = (index.to_the_end if outcomes.censoring_time is None else index.until_censoring_time)[rows.order]
        kind = np.where(outcomes.event, np.where(index.label > 0, 1, 2), 0)[rows.order]
        slots, kinds = len(what.times) + 1, what.outcomes.kinds
        for units, strata in rows.levels:
            flat = ((units * np.int64(self.n_bins) + rows.bins) * slots + ends) * 2 + (kind == 1)
            _add(self.values["slots"], flat, rows.sample)
            for a, row in enumerate(strata):
                _add(self.values["counts"][a], (row * np.int64(self.n_bins) + rows.bins) * kinds + kind, rows.sample)

    def at(self, metric: int, j: int) -> tuple[Values, Values]:
        """Return the sums of losses at one time: of all but the hidden's share, and by cell what that multiplies."""
        return self.values["base"][metric, :, j], self.values["slope"][metric, :, j]


def kernel_loss(loss: Loss) -> tuple[int, float]:
    """Return a loss as the compiled loops know it."""
    from survscore.scale import _kernels

    return (_kernels.BRIER if isinstance(loss, Brier) else _kernels.LOG), loss.epsilon


def _add(table: Values, flat: NDArray[Any], weights: Values) -> None:
    """Add weights to the places of a table."""
    target = table.reshape(-1)
    if target.size > 4 * flat.size:
        np.add.at(target, flat, weights)
    else:
        target += np.bincount(flat, weights, minlength=target.size)


@dataclass(frozen=True, eq=False)
class UnitScores:
    """The scores of one unit, and what its individuals' influences are made of."""

    mass: float  # the sum of the sample weights, or the number of individuals
    squares: float  # that of their squares
    scores: Values  # (metrics, models, times)
    undefined: list[Undefined]  # of each metric
    cells: list[Cells]  # of each model
    slope: Values  # (metrics, models, times, strata, bins)
    # the hidden are without event of interest with base + share x later, see `Cells.statuses`
    base: Values  # (models, strata, bins)
    share: Values  # (models, strata, bins)
    later: Values  # (models, times, strata)

    @property
    def status(self) -> Values:
        """How probably the hidden are without event of interest, (models, times, strata, bins)."""
        return np.asarray(np.minimum(self.base[:, None] + self.share[:, None] * self.later[..., None], 1.0))

    @classmethod
    def of(cls, sums: ProjectedSums, unit: int) -> UnitScores:
        """Estimate the curves, and finish the scores."""
        strata, what = sums.strata, sums.strata.specification
        own, rows = strata.units[unit], slice(unit * strata.most, (unit + 1) * strata.most)
        counts, slope = sums.values["counts"][:, rows], sums.values["slope"][:, :, :, rows]
        mass = max(float(counts[0].sum()), 1e-300)
        cells = [Cells.of_events(what, of_model) for of_model in counts]
        base, share, later = map(np.array, zip(*(of_model.statuses() for of_model in cells), strict=True))
        undefined = [_undefined(what, own, loss) for loss in what.metrics]
        scores = cls(mass, own.squares, np.empty(0), undefined, cells, slope, base, share, later.transpose(0, 2, 1))
        total = sums.values["base"][..., unit] + np.einsum("kajsb,ajsb->kaj", slope, scores.status)
        where = np.array([of_loss.where for of_loss in undefined])[:, None]
        return replace(scores, scores=np.where(where, np.nan, total / mass))

    def added(self, metric: int) -> Values:
        """Return what estimating the curves adds to influences, (models, times, strata, bins, kinds)."""
        found = []
        for a, cells in enumerate(self.cells):
            gradients = np.zeros((*self.slope.shape[2:], cells.counts.shape[2]))
            gradients[..., 0] = self.slope[metric, a] * self.share[a] / self.mass
            gradients[self.undefined[metric].where] = 0.0
            found.append(cells.estimation(gradients, of_weights=False))
        return np.array(found)

    def theta_scores(self, parts: Values, metric: int, weighting: Projected, sizes: Values | None) -> ThetaScores:
        """Return the scores at other hazards of the hidden; `parts` (models, times, 5) are those of `Influences`.

        Whom predictions fit is NaN where C* is unknown, and with it the `sizes`, see `early_and_late`.
        """
        slope, times, change, event_free = self.slope[metric], self.cells[0].index, [], []
        for a, cells in enumerate(self.cells):
            base, share, later = cells.statuses(THETAS)
            by_theta = np.einsum("jsb,sbt->jt", slope[a], base)
            by_theta += np.einsum("jst,sjt->jt", np.einsum("jsb,sbt->jst", slope[a], share), later)
            change.append(by_theta - np.einsum("jsb,jsb->j", slope[a], self.status[a])[:, None])
            # those who are not hidden have status 1, those with event until then
            own = times.outcomes.time.reshape(cells.counts.shape)[..., 1]
            after = [float(cells.counts[..., 1][own > t].sum()) for t in times.times]
            others = float(cells.counts[..., 2:].sum())
            event_free.append(np.einsum("jsb,sb->j", self.status[a], cells.counts[..., 0]) + after + others)
        every = np.stack((parts[..., 0], np.array(event_free)), axis=-1)
        if sizes is None:
            sizes = np.zeros((2, len(times.times)))
        with np.errstate(invalid="ignore", divide="ignore"):
            means = np.stack((parts[..., 1:3], every - parts[..., 1:3]), axis=1) / sizes[:, :, None]
        means = np.where(sizes[:, :, None] > 0, means, np.nan)
        scores = self.scores[metric][..., None] + np.array(change) / self.mass
        return ThetaScores(1.0, weighting.hazards, scores, means[..., 0], means[..., 1])

    def parts(self, parts: Values, metric: int, sizes: Values) -> PartArrays:
        """Return the scores of those with C* >= t, and of the others; for `sizes` see `early_and_late`."""
        scores = self.scores[metric]
        early = parts[..., 3]
        means = [
            np.where(~np.isnan(scores) & (n > 0), losses / np.where(n > 0, n, 1.0), np.nan)
            for losses, n in zip((early, scores * self.mass - early), sizes, strict=True)
        ]
        return PartArrays(sizes[0] / self.mass, parts[0, :, 4] / self.mass, *means)


def early_and_late(sums: ProjectedSums, unit: int) -> Values:
    """Return how many of a unit have C* >= t, and C* < t, or the sums of their weights: (2, times); 0 of nobody."""
    slots = sums.values["slots"][unit].sum(axis=(0, 2))
    return np.stack((np.cumsum(slots[::-1])[::-1][1:], np.cumsum(slots)[:-1]))


def _undefined(what: Specification, own: UnitStrata, loss: Loss) -> Undefined:
    m, nobody, weighting = len(what.times), np.zeros(0, dtype=np.int32), what.projected
    if weighting is None:
        raise TypeError("no projected scores were asked for")
    few_followed = f"fewer than {plural(weighting.min_followed, 'individual')} are followed event-free"
    weights = IntervalWeights(
        nobody, nobody, nobody.astype(np.int8), np.ones((1, m)), np.zeros(0), nobody,
        support_end=own.n_scored if own.n_scored < m else None, support_reason=few_followed,
    )  # fmt: skip
    sums = np.stack((own.n - own.n_cases, np.zeros(m), own.n_cases))
    return undefined_times(loss, what.at, weighting.weights_for, weights, sums)


def late_starters(sums: ProjectedSums) -> LateStarters | None:
    """Return observed and expected events of those with C* < t."""
    slots = sums.values["slots"][0]
    return LateStarters.of_counts(sums.strata.specification.at, slots.sum(axis=-1), slots[..., 1])
