r"""What the lost could change: bounds that assume nothing about them.

A lost individual with C* >= t is event-free at t, or not; for multi-class scores it may have had an event of any
cause. The score among all with C* >= t lies between the sums with the smallest and with the largest of its losses; the
difference of two models likewise, with the smallest and the largest of the differences. Over a range of time, each
individual's event comes at one time: the best and the worst time of each of the lost give the bounds of the mean.

**Whether a difference stays significant whatever happened to the lost.** Without drop-out, the difference of two models
at t would be a plain mean of :math:`v_i`, the differences of their losses, over all with C* >= t, with :math:`z = A /
\sqrt{\tfrac{n}{n-1} (Q - A^2/n)}`, :math:`A = \sum v_i` and :math:`Q = \sum v_i^2`. For a lost individual :math:`v_i`
is one of two numbers, :math:`lo_i \le hi_i`, and z grows with :math:`A / \sqrt Q`. Where A > 0 even with all at lo,
that ratio is smallest where Q is largest for its A: start with all at lo and move them to hi in order of :math:`lo +
hi`, the slope dQ/dA, from the largest on. Corners bound the (A, Q) of all completions from above, and the ratio is
quasiconvex, so its smallest value on the edges between them, at :math:`x = (A\,dq - 2 Q\,da) / (da\,dq)` within [0, 1],
is at most that of any completion: one sort instead of :math:`2^{n_{lost}}` completions.

Groups are units with sums for v, and a mean over time has each individual's mean, with its best and worst event time.
Since units then differ in size, :math:`A^2/n` is left out of their variance: z is a little too small, never too large.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from survscore._utils import arrays
from survscore.curves import SurvivalCurves
from survscore.engine.blocks import Models
from survscore.engine.moments import Moments, contrast, n_pairs, pair, pairs
from survscore.engine.second_moments import ScoredLoss
from survscore.engine.sums import ModelWeights
from survscore.inference.units import Groups, Units
from survscore.weighting.interval_weights import EVENT_FREE, IntervalWeights, TimeIndex, inverse

CELLS_PER_CHUNK = 1 << 15
KEPT = 1 << 16  # numbers: so few losses of the lost are kept in a result, to bound the mean over any range
TABLE_CELLS = 1 << 24  # of a table of lost units by times, in memory at once

Values = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class LostLosses:
    """What the lost would cost, already weighted and divided, and when it counts.

    By status, event-free first: (models, statuses, lost, times).
    """

    losses: Values
    unknown: Flags

    def extremes(self, weights: Values, a: int, b: int) -> Values:
        """Return the least and the most that each of the lost can add to a mean over time, (2, lost)."""
        event_free, *events = np.where(self.unknown, contrast(self.losses, a, b), 0.0) * np.where(weights, weights, 0.0)
        lowest, highest = [], []
        for event in events:
            # event-free up to some time, with event from there on: all that can have happened to one individual
            until = np.concatenate((np.zeros((event_free.shape[0], 1)), np.cumsum(event_free - event, axis=1)), axis=1)
            lowest.append(event.sum(axis=1) + until.min(axis=1))
            highest.append(event.sum(axis=1) + until.max(axis=1))
        return np.array([np.min(lowest, axis=0), np.max(highest, axis=0)])


@dataclass(frozen=True, eq=False)
class AllBounds:
    """Bounds of all models' scores, and of all differences; see `moments.pair`."""

    known: Values  # What those of known status add to the scores. Shape (models, times).
    #: What the lost can add at least and at most. Shape (pairs, times).
    lower: Values
    upper: Values
    averages: Values  # The means over time that were asked for. Shape (ranges, times).
    of_averages: Values  # What the lost can add to these. Shape (2, pairs, ranges).
    kept: LostLosses | None  # Where the lost are few, what it takes for any other mean.
    #: The smallest |z| of each difference over all that can have happened to the lost (`smallest_ratio`), where its
    #: sign does not change; None where it was not computed. Shape (pairs, times) and (pairs, ranges).
    smallest_z: Values | None = None
    smallest_z_of_averages: Values | None = None

    @property
    def decided(self) -> tuple[Flags, Flags]:
        """Which differences have the same sign whatever happened, at each time and of the means; see `pair`."""
        every = pairs(len(self.known))
        at_times = np.array([np.prod(self.at_times(a, b), axis=0) for a, b in every])
        of_means = [[np.prod(self.of_average(average, a, b)) for average in self.averages] for a, b in every]
        differ = np.array([[a != b] for a, b in every])
        with np.errstate(invalid="ignore"):
            return differ & (at_times > 0), differ & (np.array(of_means).reshape(len(every), -1) > 0)

    def at_times(self, a: int, b: int) -> tuple[Values, Values]:
        """Return the bounds of a model's scores (a = b), or of a difference, at each time."""
        known, p = contrast(self.known, a, b), pair(a, b)
        if a > b:  # kept the other way round
            return known - self.upper[p], known - self.lower[p]
        return known + self.lower[p], known + self.upper[p]

    def of_average(self, weights: Values, a: int, b: int) -> tuple[float, float]:
        """Return the bounds of a mean over time; those of single times, averaged, where there are no better ones."""
        used = weights != 0
        known = float(contrast(self.known, a, b)[used] @ weights[used])
        p = pair(a, b)
        if self.kept is not None:
            low, high = self.kept.extremes(np.where(used, weights, 0.0), a, b).sum(axis=1).tolist()
            return known + low, known + high
        for r, asked in enumerate(self.averages):
            if np.array_equal(asked, weights):
                low, high = self.of_averages[0], self.of_averages[1]
                pair_low, pair_high = float(low[p, r]), float(high[p, r])
                return (known + pair_low, known + pair_high) if a <= b else (known - pair_high, known - pair_low)
        at_times = self.at_times(a, b)
        return float(at_times[0][used] @ weights[used]), float(at_times[1][used] @ weights[used])

    def z_at_times(self, a: int, b: int) -> Values:
        """Return the smallest |z| of a difference at each time; NaN where it was not computed."""
        return np.full(self.known.shape[1], np.nan) if self.smallest_z is None else self.smallest_z[pair(a, b)]

    def z_of_average(self, weights: Values, a: int, b: int) -> float:
        """Return the same of a mean over time; NaN where that range was not asked for when scoring."""
        if self.smallest_z_of_averages is not None:
            for asked, z in zip(self.averages, self.smallest_z_of_averages.T, strict=True):
                if np.array_equal(asked, weights):
                    return float(z[pair(a, b)])
        return float("nan")


def bounds_of(
    index: TimeIndex,
    losses_of_rows: Callable[[NDArray[np.intp]], Values],
    weights: IntervalWeights,
    known_losses: Values,
    divisor: Values,
    averages: Values,
) -> AllBounds:
    """Return the bounds, from the losses of those of known status, (models, times), and what all count, (times,).

    `losses_of_rows` returns what individuals would cost by status, (models, statuses, rows, times).
    """
    times, m = index.times, index.times.size
    chunks, k = in_chunks(lost_rows(weights), m), len(known_losses)
    lower, upper = np.zeros((n_pairs(k), m)), np.zeros((n_pairs(k), m))
    of_averages = np.zeros((2, n_pairs(k), len(averages)))
    kept = None
    with np.errstate(invalid="ignore", divide="ignore"):
        known = known_losses / divisor
    for rows in chunks:
        with np.errstate(invalid="ignore", divide="ignore"):
            share = _shares(weights, rows, times) / divisor
        losses = losses_of_rows(rows) * share
        lost = LostLosses(losses, share > 0)
        for p, (a, b) in enumerate(pairs(k)):
            both = np.where(lost.unknown, contrast(losses, a, b), 0.0)
            lower[p] += both.min(axis=0).sum(axis=0)
            upper[p] += both.max(axis=0).sum(axis=0)
            for r, average in enumerate(averages):
                of_averages[:, p, r] += lost.extremes(average, a, b).sum(axis=1)
        kept = lost if len(chunks) == 1 and losses.size <= KEPT else None
    return AllBounds(known, lower, upper, averages, of_averages, kept)


def lost_rows(weights: IntervalWeights) -> NDArray[np.intp]:
    """Return who is lost while belonging to the population."""
    if weights.dropout_index is None:
        raise TypeError("no individual is lost")
    return arrays.to_host(arrays.positions(weights.dropout_index < weights.population_index))


def in_chunks(rows: NDArray[np.intp], n_times: int) -> list[NDArray[np.intp]]:
    """Cut individuals into parts whose matrices are small."""
    size = max(1, CELLS_PER_CHUNK // n_times)
    return [rows[start : start + size] for start in range(0, rows.size, size)]


def n_in_population(weights: IntervalWeights, times: Values, known_weights: Values) -> Values:
    """Return what all in the population count at each time, of whom `known_weights` are of known status."""
    parts = in_chunks(lost_rows(weights), times.size)
    return sum((_shares(weights, rows, times).sum(axis=0) for rows in parts), known_weights)


def losses_of(rows: NDArray[np.intp], scored: ScoredLoss, models: Models) -> Values:
    """Return what some individuals would cost each model event-free and with event, (models, 2, rows, times)."""
    times, loss = scored.index.times, scored.loss
    predicted = [*_of_rows(models, rows, times), *(curve.at(times) for curve in scored.constants)]
    predicted = [np.broadcast_to(values, (rows.size, times.size)) for values in predicted]
    return np.array([[loss.of_event_free(survival), loss.of_event(survival)] for survival in predicted])


def _shares(weights: IntervalWeights, rows: NDArray[np.intp], times: Values) -> Values:
    """Return how much each of the lost counts while its status is unknown, zero elsewhere: (lost, times)."""
    part, column = weights.rows(arrays.beside(rows, weights.label)), np.arange(times.size)
    if part.dropout_index is None:
        raise TypeError("no individual is lost")
    start, stop = (arrays.to_host(index)[:, None] for index in (part.dropout_index, part.population_index))
    unknown = (column >= start) & (column < stop)
    share = unknown.astype(np.float64)
    if part.population is not None:
        share = np.where(unknown, inverse(arrays.to_host(part.population.at(times)), np.inf), 0.0)
    return share if part.sample is None else share * arrays.to_host(part.sample.values)[:, None]


def _of_rows(models: Models, rows: NDArray[np.intp], times: Values) -> list[Values]:
    """Return what every model predicts for some individuals at `times`, in the processor's memory."""
    matrices = models.in_memory
    if matrices is not None:
        return [_at(curves, rows, times) for curves in matrices]
    parts: list[list[Values]] = [[] for _ in models.curves]
    for block in models.blocks(times.size):
        inside = rows[(rows >= block.rows.start) & (rows < block.rows.stop)] - block.rows.start
        for part, curves in zip(parts, block.curves, strict=True):
            part.append(_at(curves, inside, times))
    return [np.concatenate(part) for part in parts]


def _at(curves: SurvivalCurves, rows: NDArray[np.intp], times: Values) -> Values:
    values = curves[arrays.beside(rows, curves.probabilities)].at(times)
    return np.asarray(arrays.to_host(values), dtype=np.float64)


# Whether a difference stays significant


def smallest_ratio(bound: Values, squares: Values, low: Values, high: Values) -> Values:
    """Return the smallest A^2/Q over all completions, at each time.

    `bound` is A with all who are lost at `low`, above zero, and `squares` what the others add to Q, both (times,);
    `low` and `high`, (lost, times), are between which numbers the v of each who is lost lies.
    """
    order = np.argsort(-(low + high), axis=0)
    low, high = np.take_along_axis(low, order, axis=0), np.take_along_axis(high, order, axis=0)
    da, dq = high - low, high**2 - low**2
    start = np.zeros((1, low.shape[1]))
    A = bound + np.concatenate((start, np.cumsum(da, axis=0)))
    Q = squares + np.sum(low**2, axis=0) + np.concatenate((start, np.cumsum(dq, axis=0)))
    with np.errstate(invalid="ignore", divide="ignore"):
        x = np.where(da * dq == 0, 0.0, (A[:-1] * dq - 2 * Q[:-1] * da) / (da * dq)).clip(0.0, 1.0)
        inside = (A[:-1] + x * da) ** 2 / (Q[:-1] + x * dq)
        return np.asarray(np.minimum(inside.min(axis=0, initial=np.inf), (A**2 / Q).min(axis=0)))


def z_of_ratio(ratio: Values, n: Values, *, centred: bool) -> Values:
    """Return z of n units from A^2/Q; infinite where all v are alike."""
    with np.errstate(invalid="ignore", divide="ignore"):
        rest = n - ratio if centred else n
        return np.sqrt(np.where(rest > 0, ratio * (n - 1) / rest, np.inf))


@dataclass(frozen=True, eq=False)
class LostUnits:
    """The individuals who are lost, and with them the members of their groups."""

    #: The loss, with `scale` that of the bounds.
    scored: ScoredLoss
    weights: IntervalWeights
    models: Models
    #: Positions, and the unit of each, from 0 on.
    rows: NDArray[np.intp]
    unit: NDArray[np.intp]
    n_units: int
    grouped: bool  # Whether units are groups.

    @classmethod
    def of(
        cls, scored: ScoredLoss, weights: IntervalWeights, models: Models, groups: Groups | None, divisor: Values
    ) -> LostUnits:
        """Find them; `weights` are those of a weighting with lost individuals, `divisor` what all count."""
        rows = lost_rows(weights)
        scale = np.where(divisor > 0, 1.0 / np.where(divisor > 0, divisor, 1.0), 0.0)
        scored = replace(scored, scale=scale[None])
        if groups is None:
            return cls(scored, weights, models, rows, np.arange(rows.size), rows.size, grouped=False)
        codes = arrays.to_host(groups.codes)
        touched = np.zeros(groups.n_groups, dtype=np.bool_)
        touched[codes[rows]] = True
        rows = np.flatnonzero(touched[codes])
        unit = (np.cumsum(touched) - 1)[codes[rows]]
        return cls(scored, weights, models, rows, unit, int(touched.sum()), grouped=True)

    def others(self) -> ScoredLoss:
        """Return what turns the losses of all other individuals into their v, divided as the bounds are."""
        known = self.weights.known(self.scored.index.times.size)
        mine = arrays.beside(self.rows, known.event_index)
        cut = {name: getattr(known, name) + 0 for name in ("event_index", "follow_up_index")}
        for stop in cut.values():
            stop[mine] = 0
        nothing = np.zeros_like(self.scored.scores)
        totals = [nothing[:1]] * len(nothing)
        weights = ModelWeights((replace(known, **cut),))
        return replace(self.scored, weights=weights, centre=nothing, offset=nothing, moving_totals=totals, null=None)

    def tables(self, columns: NDArray[np.intp], averages: Values, decided: list[int]) -> tuple[Values, Values]:
        """Return between which numbers the v of each unit lies, for some pairs of models.

        At some of the times, (2, pairs, units, times), and of means over time, (2, pairs, units, ranges).
        """
        times, scale = self.scored.index.times, self.scored.scale
        at_times = np.zeros((2, len(decided), self.n_units, columns.size))
        of_means = np.zeros((2, len(decided), self.n_units, len(averages)))
        every = pairs(len(self.scored.scores))
        for place in in_chunks(np.arange(self.rows.size), times.size):
            rows, unit = self.rows[place], self.unit[place]
            known, unknown, event_free, share = self._statuses(rows)
            losses = losses_of(rows, self.scored, self.models) * (share * scale)
            lost = LostLosses(losses, unknown)
            for p, (a, b) in enumerate(every[place] for place in decided):
                both = contrast(losses, a, b)
                settled = np.where(known, np.where(event_free, both[0], both[1]), 0.0)
                limits = np.array([both.min(axis=0), both.max(axis=0)])
                for side, values in enumerate(np.where(unknown, limits, settled)):
                    arrays.add_rows(at_times[side, p], unit, values[:, columns])
                for r, average in enumerate(averages):
                    used = average != 0
                    of_known = settled[:, used] @ average[used]
                    for side, values in enumerate(lost.extremes(average, a, b)):
                        np.add.at(of_means[side, p, :, r], unit, of_known + values)
        return at_times, of_means

    def _statuses(self, rows: NDArray[np.intp]) -> tuple[Flags, Flags, Flags, Values | float]:
        """Return where a status is known, where it is not, where it is event-free, and what each cell counts."""
        part = self.weights.rows(arrays.beside(rows, self.weights.label))
        times, column = self.scored.index.times, np.arange(self.scored.index.times.size)
        stops = (part.event_index, part.dropout_index, part.population_index)
        event, lost, end = (arrays.to_host(index)[:, None] for index in stops)
        event_free = (column < event) | (arrays.to_host(part.label) == EVENT_FREE)[:, None]
        share: Values | float = 1.0
        if part.population is not None:
            # where a weight is infinite, there is no score
            share = arrays.finite_or_zero(inverse(arrays.to_host(part.population.at(times)), np.inf))
        return column < lost, (column >= lost) & (column < end), event_free, share


def with_smallest_z(bounds: AllBounds, lost: LostUnits, units: Units, others: Moments) -> AllBounds:
    """Return bounds with the smallest |z| of each difference whose sign can't change; 0 of others.

    `others` are the second moments of `LostUnits.others`.
    """
    decided, every = bounds.decided, pairs(len(bounds.known))
    chosen = np.flatnonzero(decided[0].any(axis=1) | decided[1].any(axis=1)).tolist()
    columns = np.flatnonzero(decided[0].any(axis=0))
    at_times, of_means = (np.zeros(flags.shape) for flags in decided)
    means = [(average[average != 0], average != 0) for average in bounds.averages]
    n, factor = (
        np.array([np.average(values[used], weights=weights) for weights, used in means])
        for values in (units.counted, units.inflation)
    )
    width = max(1, TABLE_CELLS // max(1, 2 * len(chosen) * lost.n_units))
    for first in range(0, max(columns.size, 1), width):
        here = columns[first : first + width]
        by_time, by_range = lost.tables(here, bounds.averages if first == 0 else bounds.averages[:0], chosen)
        for row, p in enumerate(chosen):
            a, b = every[p]
            limits = np.array(bounds.at_times(a, b))[:, here]
            squares = others.pointwise[p, here] / units.inflation[here]
            ratio = _either_sign(limits, squares, by_time[:, row])
            at_times[p, here] = z_of_ratio(ratio, units.counted[here], centred=not lost.grouped)
            if first == 0 and means:
                limits = np.array([bounds.of_average(average, a, b) for average in bounds.averages]).T
                ratio = _either_sign(limits, others.of_averages[p] / factor, by_range[:, row])
                of_means[p] = z_of_ratio(ratio, n, centred=False)
    return replace(
        bounds,
        smallest_z=np.where(decided[0], at_times, 0.0),
        smallest_z_of_averages=np.where(decided[1], of_means, 0.0),
    )


def _either_sign(limits: Values, squares: Values, table: Values) -> Values:
    """Return the smallest A^2/Q of differences above zero, or below it."""
    below = limits[1] < 0
    bound = np.where(below, -limits[1], limits[0])
    low, high = np.where(below, -table[1], table[0]), np.where(below, -table[0], table[1])
    return smallest_ratio(bound, squares, low, high)
