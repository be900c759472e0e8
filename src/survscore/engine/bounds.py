"""What the lost could change: bounds that assume nothing about them.

A lost individual with C* >= t is event-free at t, or not. The score among all with C* >= t lies between the sums
with the smaller and with the larger of its two losses; the difference of two models likewise, with the smaller and the
larger of the two differences. Over a range of time, everybody's event comes at one time: the best and the worst one for
each of the lost give the bounds of the mean.
"""

from __future__ import annotations

from collections.abc import Sequence
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
    """What the lost would cost, (models, 2 statuses, lost, times), already weighted and divided; and when it counts."""

    losses: NDArray[np.float64]
    unknown: NDArray[np.bool_]

    def extremes(self, weights: NDArray[np.float64], a: int, b: int) -> tuple[float, float]:
        """Return the least and the most that the lost can add to a mean over time."""
        event_free, event = np.where(self.unknown, contrast(self.losses, a, b), 0.0) * np.where(weights, weights, 0.0)
        # event-free up to some time, with event from there on: all that can have happened to one individual
        until = np.concatenate((np.zeros((event_free.shape[0], 1)), np.cumsum(event_free - event, axis=1)), axis=1)
        total = float(event.sum())
        return total + float(until.min(axis=1).sum()), total + float(until.max(axis=1).sum())


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

    @property
    def n_times(self) -> int:
        """At how many times there are bounds."""
        return int(self.known.shape[1])

    def at_times(self, a: int, b: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the bounds of a model's scores (a = b), or of a difference, at each time."""
        known, p = contrast(self.known, a, b), pair(a, b)
        if a > b:  # kept the other way round
            return known - self.upper[p], known - self.lower[p]
        return known + self.lower[p], known + self.upper[p]

    def of_average(self, weights: NDArray[np.float64], a: int, b: int) -> tuple[float, float]:
        """Return the bounds of a mean over time; those of single times, averaged, where no better can be had."""
        used = weights != 0
        known = float(contrast(self.known, a, b)[used] @ weights[used])
        p = pair(a, b)
        if self.kept is not None:
            low, high = self.kept.extremes(np.where(used, weights, 0.0), a, b)
            return known + low, known + high
        for r, asked in enumerate(self.averages):
            if np.array_equal(asked, weights):
                low, high = self.of_averages[0], self.of_averages[1]
                pair_low, pair_high = float(low[p, r]), float(high[p, r])
                return (known + pair_low, known + pair_high) if a <= b else (known - pair_high, known - pair_low)
        at_times = self.at_times(a, b)
        return float(at_times[0][used] @ weights[used]), float(at_times[1][used] @ weights[used])


def bounds_of(
    index: TimeIndex,
    loss: Loss,
    weights: IntervalWeights,
    models: Models,
    constants: Sequence[SurvivalCurves],
    known_losses: NDArray[np.float64],
    known_weights: NDArray[np.float64],
    averages: NDArray[np.float64],
) -> AllBounds:
    """Return the bounds, given the sums over those of known status: losses (models, times) and weights (times)."""
    times, m = index.times, index.times.size
    if weights.dropout_index is None:
        raise TypeError("nobody is lost")
    lost = arrays.to_host(arrays.positions(weights.dropout_index < weights.population_index))
    divisor, k = known_weights.copy(), len(known_losses)
    size = max(1, CELLS_PER_CHUNK // m)
    chunks = [lost[start : start + size] for start in range(0, lost.size, size)]
    for rows in chunks:
        divisor += _shares(weights, rows, times).sum(axis=0)
    lower, upper = np.zeros((n_pairs(k), m)), np.zeros((n_pairs(k), m))
    of_averages = np.zeros((2, n_pairs(k), len(averages)))
    kept = None
    with np.errstate(invalid="ignore", divide="ignore"):
        known = known_losses / divisor
    for rows in chunks:
        with np.errstate(invalid="ignore", divide="ignore"):
            share = _shares(weights, rows, times) / divisor
        predicted = [*_of_rows(models, rows, times), *(one.at(times) for one in constants)]
        losses = np.array(
            [[loss.of_event_free(survival) * share, loss.of_event(survival) * share] for survival in predicted]
        )
        found = LostLosses(losses, share > 0)
        for p, (a, b) in enumerate(pairs(k)):
            both = np.where(found.unknown, contrast(losses, a, b), 0.0)
            lower[p] += both.min(axis=0).sum(axis=0)
            upper[p] += both.max(axis=0).sum(axis=0)
            for r, average in enumerate(averages):
                of_averages[:, p, r] += found.extremes(average, a, b)
        kept = found if len(chunks) == 1 and losses.size <= KEPT else None
    return AllBounds(known, lower, upper, averages, of_averages, kept)


def _shares(weights: IntervalWeights, rows: NDArray[np.intp], times: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how much each of the lost counts while its status is unknown, zero elsewhere: (lost, times)."""
    part, column = weights.rows(arrays.beside(rows, weights.label)), np.arange(times.size)
    if part.dropout_index is None:
        raise TypeError("nobody is lost")
    start, stop = (arrays.to_host(one)[:, None] for one in (part.dropout_index, part.population_index))
    unknown = (column >= start) & (column < stop)
    if part.population is None:
        return unknown.astype(np.float64)
    return np.where(unknown, inverse(arrays.to_host(part.population.at(times)), np.inf), 0.0)


def _of_rows(models: Models, rows: NDArray[np.intp], times: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """Return what every model predicts for some individuals at `times`, in the processor's memory."""
    matrices = models.in_memory
    if matrices is not None:
        return [_at(curves, rows, times) for curves in matrices]
    found: list[list[NDArray[np.float64]]] = [[] for _ in models.curves]
    for block in models.blocks(times.size):
        inside = rows[(rows >= block.rows.start) & (rows < block.rows.stop)] - block.rows.start
        for part, curves in zip(found, block.curves, strict=True):
            part.append(_at(curves, inside, times))
    return [np.concatenate(part) for part in found]


def _at(curves: SurvivalCurves, rows: NDArray[np.intp], times: NDArray[np.float64]) -> NDArray[np.float64]:
    values = curves[arrays.beside(rows, curves.probabilities)].at(times)
    return np.asarray(arrays.to_host(values), dtype=np.float64)
