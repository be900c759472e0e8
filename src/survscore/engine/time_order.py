"""Individuals in the order of time, and the exits of a nuisance between them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from survscore._utils import sorting as _sorting
from survscore.censoring.nuisance import Here, Nuisance
from survscore.engine.moments import ScoredLoss


class TimeOrder:
    """Those in their second stretch, from the latest time to the earliest, and the exits between them.

    What takes memory is made when it is needed.
    """

    def __init__(self, scored: ScoredLoss, nuisance: Nuisance) -> None:
        self.stretches, self.nuisance = scored.stretches, nuisance
        #: Whether M and E differ, and E matters: it does not where G is estimated from others.
        self.two_sums = self.stretches.capped and isinstance(nuisance, Here)
        if self.stretches.first_weight is None:
            raise TypeError("estimated weights are common to all in the first stretch")
        #: Whether the weights of the first stretch move with G: not capped.
        self.moves_early = self.stretches.first_weight < self.stretches.max_weight
        #: How many exits have come at each evaluation time.
        self.reached = nuisance.reached(scored.index.times)

    @cached_property
    def moves(self) -> NDArray[np.bool_]:
        """Whether an individual's weight moves with G: not capped."""
        return np.asarray(self.stretches.last_weight < self.stretches.max_weight)

    @cached_property
    def rows(self) -> NDArray[np.int32]:
        """Positions, the latest first."""
        in_second = self.stretches.last_stop > self.stretches.first_stop
        return _sorting.rows_by_bin(self.nuisance.exits_before, in_second, self.nuisance.curve.times.size)

    @cached_property
    def greenwood(self) -> NDArray[np.float64]:
        """Running sum of the steps, by how many exits came before."""
        return np.concatenate(([0.0], np.cumsum(self.nuisance.steps)))

    def steps_between(self, later: NDArray[np.intp], earlier: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return the sums of the steps of the exits between two numbers of them, up to each time: (pairs, times)."""
        upper, lower = (np.minimum.outer(ends, self.reached) for ends in (later, earlier))
        return np.asarray(self.greenwood[upper] - self.greenwood[lower])

    def positions(self, numbers: Sequence[int]) -> list[int]:
        """Return how many of `rows` come after at least so many exits, for each of some numbers."""
        bins, places = self.nuisance.exits_before, range(self.rows.size)
        return [bisect_left(places, True, key=lambda place: bins[self.rows[place]] < n) for n in numbers]
