r"""Weights as two labelled stretches of the evaluation times.

Whatever the weighting, an individual's life is two stretches of the evaluation times:

1. before its own time T it is event-free, with a weight that depends on t: 1, :math:`1/G(t)` or :math:`1/G_i(t)`;
2. from T to where it stops being counted it has its *final status*, with one weight of its own: 1 or :math:`1/G(T-)`.

The final status is a label: still event-free (censored at exactly :math:`C^* = t`), or the cause of the event. A weight
that tells for whom a score speaks, :math:`v_i(t)`, is a factor on both stretches. So weights are two index ranges per
individual, and never a matrix.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from survscore._utils import arrays as _arrays
from survscore._utils import loops as _loops
from survscore._utils import sorting as _sorting
from survscore._utils.caching import cached_property
from survscore._validation import FloatArray
from survscore.censoring.nuisance import Nuisance
from survscore.curves import SurvivalCurves
from survscore.interpolation import Reading
from survscore.outcomes import Outcomes

EVENT_FREE = 0  # the label of those without event; 1 and more are causes

Rows = slice | NDArray[np.int32]


class TimeIndex:
    """Where the individuals' own times fall among the evaluation times; shared by all weightings."""

    def __init__(self, outcomes: Outcomes, times: NDArray[np.float64]) -> None:
        self.outcomes = outcomes
        self.times = times
        self._readings: list[tuple[SurvivalCurves, Reading]] = []

    def reading(self, curves: SurvivalCurves) -> Reading:
        """Return how curves are read at the evaluation times; the same for all rows of a grid, so it is made once."""
        for same in (operator.is_, np.array_equal):  # batches may come each with a copy of the grid
            for known, reading in self._readings:
                if known.interpolation == curves.interpolation and same(known.times, curves.times):
                    return reading
        reading = curves.reading(self.times)
        self._readings.append((curves[[]], reading))  # the grid alone, and no view of the curves
        return reading

    @cached_property
    def label(self) -> NDArray[np.int8]:
        """Everybody's final status: `EVENT_FREE`, or the cause of the event."""
        label: NDArray[np.int8] = _arrays.as_int8(self.outcomes.event)
        return label

    @cached_property
    def order(self) -> NDArray[np.int32]:
        """The individuals' positions by time."""
        return _sorting.order(self.outcomes.time)

    @cached_property
    def before_time(self) -> NDArray[np.int32]:
        """How many evaluation times have t < T: those at which T > t."""
        return _loops.count_below(self.times, self.outcomes.time, inclusive=False)

    @cached_property
    def until_censoring_time(self) -> NDArray[np.int32]:
        """How many evaluation times have t <= C*."""
        if self.outcomes.censoring_time is None:
            raise TypeError("until_censoring_time needs censoring_time")
        return _loops.count_below(self.times, self.outcomes.censoring_time, inclusive=True)

    @cached_property
    def until_time(self) -> NDArray[np.int32]:
        """How many evaluation times have t <= T."""
        return _loops.count_below(self.times, self.outcomes.time, inclusive=True)

    @cached_property
    def to_the_end(self) -> NDArray[np.int32]:
        """All evaluation times, for everybody; takes no memory."""
        end: NDArray[np.int32] = _arrays.repeated(np.int32(self.times.size), len(self.outcomes), self.outcomes.time)
        return end


@dataclass(frozen=True, eq=False)
class Stretches:
    """The weights of n individuals at m evaluation times.

    Attributes
    ----------
    first_stop, last_stop : ndarray of shape (n,)
        Individual i is counted as event-free at the times before ``first_stop[i]``, and with its final status from
        there to ``last_stop[i]``, which is not smaller.
    label : ndarray of shape (n,)
        The final status.
    first_weight : ndarray of shape (m,) or None
        The weight in the first stretch; None where it is 1/G_i(t) of `survival`, at most `max_weight`.
    last_weight : ndarray of shape (n,)
        The weight in the second stretch.
    population_stop : ndarray of shape (n,)
        At the times before it, individual i belongs to those for whom the score speaks, lost or not.
    survival, population : SurvivalCurves, optional
        Curves of G_i, and of P(C* >= t | X), by which both stretches are divided.
    max_weight : float
        Larger weights were set to this.
    nuisance : Nuisance, optional
        What was estimated inside the weights.
    lost_from : ndarray of shape (n,), optional
        From here to `population_stop` the status of individual i is unknown; None where nobody can be told lost.
    blind_from : int, optional
        From this evaluation time on nobody is left but those with event, though others were censored.
    """

    first_stop: NDArray[np.int32]
    last_stop: NDArray[np.int32]
    label: NDArray[np.int8]
    first_weight: NDArray[np.float64] | None
    last_weight: NDArray[np.float64]
    population_stop: NDArray[np.int32]
    survival: SurvivalCurves | None = None
    population: SurvivalCurves | None = None
    max_weight: float = np.inf
    nuisance: Nuisance | None = None
    lost_from: NDArray[np.int32] | None = None
    blind_from: int | None = None

    def rows(self, rows: Rows) -> Stretches:
        """Return the weights of some individuals; nothing is estimated anew."""
        return replace(
            self,
            first_stop=self.first_stop[rows],
            last_stop=self.last_stop[rows],
            label=self.label[rows],
            last_weight=self.last_weight[rows],
            population_stop=self.population_stop[rows],
            survival=None if self.survival is None else self.survival[rows],
            population=None if self.population is None else self.population[rows],
            lost_from=None if self.lost_from is None else self.lost_from[rows],
        )

    def columns(self, columns: slice) -> Stretches:
        """Return the weights at some of the evaluation times; curves are read by their own times."""
        first, width = columns.start, columns.stop - columns.start
        return replace(
            self,
            first_stop=(self.first_stop - first).clip(0, width),
            last_stop=(self.last_stop - first).clip(0, width),
            population_stop=(self.population_stop - first).clip(0, width),
            first_weight=None if self.first_weight is None else self.first_weight[columns],
        )

    def known(self, n_times: int) -> Stretches:
        """Return who is known to have which status, with weight one; the lost, as long as they were seen."""
        if self.lost_from is None:
            raise TypeError("nobody is lost")
        return replace(
            self,
            last_stop=self.lost_from,
            first_weight=np.ones(n_times),
            last_weight=_arrays.repeated(1.0, len(self.label), self.label),
            survival=None,
            max_weight=np.inf,
            nuisance=None,
        )

    def event_from(self, before_time: NDArray[np.int32], n_times: int) -> NDArray[np.int32]:
        """Return the first time at which each individual has had the event, `n_times` for those who have not."""
        start: NDArray[np.int32] = _arrays.where(self.label != EVENT_FREE, before_time, np.int32(n_times))
        return start

    def cells(self, times: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the weights at `times` as two matrices (n, m), one per stretch; only one is not zero in a cell."""
        column = _arrays.columns(times.size, self.first_stop)
        first = column < self.first_stop[:, None]
        last = (column >= self.first_stop[:, None]) & (column < self.last_stop[:, None])
        early: FloatArray
        if self.first_weight is not None:
            early = _arrays.beside(self.first_weight, self.first_stop)
        else:
            if self.survival is None:
                raise TypeError("weights without first_weight need curves of G")
            early = inverse(self.survival.at(times), self.max_weight)
        late: FloatArray = self.last_weight[:, None]
        if self.population is not None:
            factor = inverse(self.population.at(times), np.inf)
            with np.errstate(invalid="ignore"):
                early, late = early * factor, late * factor
        return _arrays.where(first, early, 0.0), _arrays.where(last, late, 0.0)

    def moves(self, times: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which cells have a weight that moves with what is estimated: not those that were capped."""
        if self.first_weight is None:
            raise TypeError("estimated weights are common to all in the first stretch")
        column = _arrays.columns(times.size, self.first_stop)
        early = _arrays.beside(self.first_weight < self.max_weight, self.first_stop)
        late = (self.last_weight < self.max_weight)[:, None]
        moves: NDArray[np.bool_] = _arrays.where(column < self.first_stop[:, None], early, late)
        return moves

    @property
    def capped(self) -> bool:
        """Whether any weight was capped."""
        if np.isinf(self.max_weight):
            return False
        early = self.first_weight is not None and bool((self.first_weight >= self.max_weight).any())
        return early or bool((self.last_weight >= self.max_weight).any())


def inverse(survival: FloatArray, max_weight: float, *, out: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """Return 1/G, at most `max_weight`; `out` saves memory."""
    if _arrays.is_tensor(survival):
        from survscore._utils import tensor_loops as _tensor_loops

        of_tensor: NDArray[np.float64] = _tensor_loops.inverse(survival, max_weight)
        return of_tensor
    weights = np.empty(survival.shape) if out is None else out

    def fill(rows: slice) -> None:
        with np.errstate(divide="ignore"):  # an infinite weight is reported as an undefined score
            np.divide(1.0, survival[rows], dtype=np.float64, out=weights[rows])
        if max_weight < np.inf:
            np.minimum(weights[rows], max_weight, out=weights[rows])

    _loops.elementwise(fill, len(weights))
    return weights


def select(condition: NDArray[np.bool_], chosen: NDArray[np.int32], otherwise: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return `chosen` where the condition holds: `numpy.where` by arithmetic, much faster on random conditions."""
    if _arrays.is_tensor(condition):
        of_tensor: NDArray[np.int32] = _arrays.where(condition, chosen, otherwise)
        return of_tensor
    result = np.empty(condition.size, dtype=np.int32)

    def fill(rows: slice) -> None:
        np.subtract(chosen[rows], otherwise[rows], out=result[rows])
        result[rows] *= condition[rows]
        result[rows] += otherwise[rows]

    _loops.elementwise(fill, condition.size)
    return result
