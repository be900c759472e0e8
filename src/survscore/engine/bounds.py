"""What the lost could change: bounds that assume nothing about them.

A lost individual with C* >= t is event-free at t, or not; for multi-class scores it may have had an event of any
cause. The score among all with C* >= t lies between the sums with the smallest and with the largest of its losses; the
difference of two models likewise, with the smallest and the largest of the differences. Over a range of time, each
individual's event comes at one time: the best and the worst time of each of the lost give the bounds of the mean.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from survscore._utils import arrays
from survscore.curves import SurvivalCurves
from survscore.engine.blocks import Models
from survscore.engine.moments import contrast, n_pairs, pair, pairs
from survscore.metrics import Loss
from survscore.weighting.interval_weights import IntervalWeights, TimeIndex, inverse

CELLS_PER_CHUNK = 1 << 15
KEPT = 1 << 16  # numbers: so few losses of the lost are kept in a result, to bound the mean over any range


@dataclass(frozen=True, eq=False)
class LostLosses:
    """What the lost would cost, already weighted and divided, and when it counts.

    By status, event-free first: (models, statuses, lost, times).
    """

    losses: NDArray[np.float64]
    unknown: NDArray[np.bool_]

    def extremes(self, weights: NDArray[np.float64], a: int, b: int) -> NDArray[np.float64]:
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

    #: What those of known status add to the scores. Shape (models, times).
    known: NDArray[np.float64]
    #: What the lost can add at least and at most. Shape (pairs, times).
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    #: The means over time that were asked for. Shape (ranges, times).
    averages: NDArray[np.float64]
    #: What the lost can add to these. Shape (2, pairs, ranges).
    of_averages: NDArray[np.float64]
    #: Where the lost are few, what it takes for any other mean.
    kept: LostLosses | None
    #: The smallest |z| of each difference over all that can have happened to the lost (`engine.completions`), where its
    #: sign does not change; None where it was not computed. Shape (pairs, times) and (pairs, ranges).
    smallest_z: NDArray[np.float64] | None = None
    smallest_z_of_averages: NDArray[np.float64] | None = None

    @property
    def n_times(self) -> int:
        """At how many times there are bounds."""
        return int(self.known.shape[1])

    @property
    def decided(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which differences have the same sign whatever happened, at each time and of the means; see `pair`."""
        every = pairs(len(self.known))
        at_times = np.array([np.prod(self.at_times(a, b), axis=0) for a, b in every])
        of_means = [[np.prod(self.of_average(average, a, b)) for average in self.averages] for a, b in every]
        differ = np.array([[a != b] for a, b in every])
        with np.errstate(invalid="ignore"):
            return differ & (at_times > 0), differ & (np.array(of_means).reshape(len(every), -1) > 0)

    def at_times(self, a: int, b: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the bounds of a model's scores (a = b), or of a difference, at each time."""
        known, p = contrast(self.known, a, b), pair(a, b)
        if a > b:  # kept the other way round
            return known - self.upper[p], known - self.lower[p]
        return known + self.lower[p], known + self.upper[p]

    def of_average(self, weights: NDArray[np.float64], a: int, b: int) -> tuple[float, float]:
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

    def z_at_times(self, a: int, b: int) -> NDArray[np.float64]:
        """Return the smallest |z| of a difference at each time; NaN where it was not computed."""
        return np.full(self.n_times, np.nan) if self.smallest_z is None else self.smallest_z[pair(a, b)]

    def z_of_average(self, weights: NDArray[np.float64], a: int, b: int) -> float:
        """Return the same of a mean over time; NaN where that range was not asked for when scoring."""
        if self.smallest_z_of_averages is not None:
            for asked, z in zip(self.averages, self.smallest_z_of_averages.T, strict=True):
                if np.array_equal(asked, weights):
                    return float(z[pair(a, b)])
        return float("nan")


def bounds_of(
    index: TimeIndex,
    losses_of_rows: Callable[[NDArray[np.intp]], NDArray[np.float64]],
    weights: IntervalWeights,
    known_losses: NDArray[np.float64],
    divisor: NDArray[np.float64],
    averages: NDArray[np.float64],
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


def n_in_population(
    weights: IntervalWeights, times: NDArray[np.float64], known_weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return what all in the population count at each time, of whom `known_weights` are of known status."""
    parts = in_chunks(lost_rows(weights), times.size)
    return sum((_shares(weights, rows, times).sum(axis=0) for rows in parts), known_weights)


def losses_of(
    rows: NDArray[np.intp],
    times: NDArray[np.float64],
    loss: Loss,
    models: Models,
    constants: Sequence[SurvivalCurves],
) -> NDArray[np.float64]:
    """Return what some individuals would cost each model event-free and with event, (models, 2, rows, times)."""
    predicted = [*_of_rows(models, rows, times), *(curve.at(times) for curve in constants)]
    predicted = [np.broadcast_to(values, (rows.size, times.size)) for values in predicted]
    return np.array([[loss.of_event_free(survival), loss.of_event(survival)] for survival in predicted])


def _shares(weights: IntervalWeights, rows: NDArray[np.intp], times: NDArray[np.float64]) -> NDArray[np.float64]:
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


def _of_rows(models: Models, rows: NDArray[np.intp], times: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """Return what every model predicts for some individuals at `times`, in the processor's memory."""
    matrices = models.in_memory
    if matrices is not None:
        return [_at(curves, rows, times) for curves in matrices]
    parts: list[list[NDArray[np.float64]]] = [[] for _ in models.curves]
    for block in models.blocks(times.size):
        inside = rows[(rows >= block.rows.start) & (rows < block.rows.stop)] - block.rows.start
        for part, curves in zip(parts, block.curves, strict=True):
            part.append(_at(curves, inside, times))
    return [np.concatenate(part) for part in parts]


def _at(curves: SurvivalCurves, rows: NDArray[np.intp], times: NDArray[np.float64]) -> NDArray[np.float64]:
    values = curves[arrays.beside(rows, curves.probabilities)].at(times)
    return np.asarray(arrays.to_host(values), dtype=np.float64)
