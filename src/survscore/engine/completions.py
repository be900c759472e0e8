r"""Whether a difference stays significant whatever happened to those who dropped out.

Without drop-out, the difference of two models at t would be a plain mean of :math:`v_i`, the differences of their
losses, over all with C* >= t, with :math:`z = A / \sqrt{\tfrac{n}{n-1} (Q - A^2/n)}`, :math:`A = \sum v_i` and
:math:`Q = \sum v_i^2`. For a lost individual :math:`v_i` is one of two numbers, :math:`lo_i \le hi_i`, and z grows with
:math:`A / \sqrt Q`. Where A > 0 even with all at lo, that ratio is smallest where Q is largest for its A: start
with all at lo and move them to hi in order of :math:`lo + hi`, the slope dQ/dA, from the largest on. Corners bound
the (A, Q) of all completions from above, and the ratio is quasiconvex, so its smallest value on the edges between
them, at :math:`x = (A\,dq - 2 Q\,da) / (da\,dq)` within [0, 1], is at most that of any completion: one sort instead of
:math:`2^{n_{lost}}` completions.

Groups are units with sums for v, and a mean over time has each individual's mean, with its best and worst event time.
Since units then differ in size, :math:`A^2/n` is left out of their variance: z is a little too small, never too large.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from survscore._utils import arrays
from survscore.engine.blocks import Models
from survscore.engine.bounds import AllBounds, LostLosses, in_chunks, losses_of, lost_rows
from survscore.engine.moments import Moments, contrast, pairs
from survscore.engine.second_moments import ScoredLoss
from survscore.engine.sums import ModelWeights
from survscore.inference.units import Groups, Units
from survscore.weighting.interval_weights import EVENT_FREE, IntervalWeights, inverse

TABLE_CELLS = 1 << 24  # of a table of lost units by times, in memory at once

Values = NDArray[np.float64]
Flags = NDArray[np.bool_]


def smallest_ratio(bound: Values, squares: Values, low: Values, high: Values) -> Values:
    """Return the smallest A^2/Q over all completions, at each time.

    Parameters
    ----------
    bound : ndarray of shape (times,)
        A with all who are lost at `low`; must be positive.
    squares : ndarray of shape (times,)
        What the others add to Q.
    low, high : ndarray of shape (lost, times)
        Between which numbers the v of each who is lost lies.
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
    #: Whether units are groups.
    grouped: bool

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
        return replace(
            self.scored, weights=ModelWeights((replace(known, **cut),)), centre=nothing, offset=nothing,
            moving_totals=totals, null=None,
        )  # fmt: skip

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
            losses = losses_of(rows, times, self.scored.loss, self.models, self.scored.constants) * (share * scale)
            lost = LostLosses(losses, unknown)
            for p, (a, b) in enumerate(every[pair] for pair in decided):
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
