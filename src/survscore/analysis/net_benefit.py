"""On whom strategies act at each threshold probability, the net benefit of that, and its covariance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survscore._utils import arrays
from survscore.analysis.populations import AtTime
from survscore.engine.influence import CurveInfluence, Estimation
from survscore.engine.moments import Moments, pairs
from survscore.inference.units import Groups
from survscore.metrics.benefit import AT_THRESHOLD
from survscore.weighting.interval_weights import EVENT_FREE

NUMBERS_PER_BLOCK = 1 << 22  # influences of some individuals at all thresholds, in memory at once
Values = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Decisions:
    """On whom strategies act at which thresholds, and the net benefit of that."""

    thresholds: Values
    risk: (
        Values  # (strategies, n); infinite where all are treated, minus infinity where none, and of who is not counted
    )
    event: NDArray[np.bool_]  # (n,)
    share: Values  # of the weights, (n,)
    weight_sum: float
    estimation: Estimation  # where the weights come from, and what was estimated inside them

    @classmethod
    def of(cls, at: AtTime, thresholds: Values) -> Decisions:
        """Take models at a time."""
        survival = np.array([*at.survival, *np.full((2, at.weight.size), [[-np.inf], [np.inf]])], dtype=np.float64)
        risk = np.where(at.weight > 0, 1.0 - survival, -np.inf)
        share = at.weight / at.weight.max()  # before they are added up: they may be as large as numbers go
        return cls(thresholds, risk, at.label != EVENT_FREE, share / share.sum(), float(at.weight.sum()), at.estimation)

    @property
    def odds(self) -> Values:
        """The cost of treating one without event at each threshold, in treated ones with event."""
        return self.thresholds / (1.0 - self.thresholds)

    @property
    def _least(self) -> Values:
        """The least risks to act upon."""
        return self.thresholds - AT_THRESHOLD

    @cached_property
    def net_benefit(self) -> Values:
        """By strategy and threshold; of each strategy by one sort."""
        parts = np.array([np.where(self.event, self.share, 0.0), np.where(self.event, 0.0, self.share)])
        found = []
        for risk in self.risk:
            order = np.argsort(risk, kind="stable")
            below = np.concatenate((np.zeros((2, 1)), np.cumsum(parts[:, order], axis=1)), axis=1)
            with_event, without = below[:, -1:] - below[:, np.searchsorted(risk[order], self._least, side="left")]
            found.append(with_event - self.odds * without)
        return np.array(found)

    def discordant(self) -> NDArray[np.int64]:
        """Return on how many two strategies decide differently, (pairs, thresholds)."""

        def not_treated(risk: Values) -> NDArray[np.int64]:
            return np.searchsorted(np.sort(risk), self._least, side="left")

        both = [(self.risk[a], self.risk[b]) for a, b in pairs(len(self.risk))]
        return np.array([not_treated(np.minimum(*two)) - not_treated(np.maximum(*two)) for two in both])

    def moments(self, groups: Groups | None, factor: float) -> Moments:
        """Return the covariances over thresholds, which take the place of times, with the small-sample factor."""
        s, k = self.net_benefit.shape
        products, of_jumps = np.zeros((s * k, s * k)), np.zeros((s * k, s * k))
        by_group = np.zeros((s, 0 if groups is None else groups.n_groups, k))

        def crossed(values: Values, weights: Values | float = 1.0) -> Values:
            by_unit = values.transpose(1, 0, 2).reshape(values.shape[1], s * k)
            return np.asarray((weights * by_unit).T @ by_unit)

        for rows, influence, jumps in self._influences():
            if groups is None:
                products += crossed(influence)
            else:
                for table, one in zip(by_group, influence, strict=True):
                    arrays.add_rows(table, groups.codes[rows], one)
            if jumps is not None:
                of_jumps += crossed(jumps[1], self.estimation.training_steps[jumps[0], None])
        found = ((products + crossed(by_group)) * factor + of_jumps).reshape(s, k, s, k).swapaxes(1, 2)
        # differences have one with event and one without, on whom strategies would have differed, more
        one_each = np.array([np.ones_like(self.odds), self.odds]) / self.weight_sum
        unseen, every = one_each.T @ one_each, pairs(s)
        over = np.array(
            [
                found[a, a] if a == b else found[a, a] + found[b, b] - found[a, b] - found[b, a] + unseen
                for a, b in every
            ]
        )
        added = np.array([np.diag(unseen) * (a != b) for a, b in every])
        return Moments(
            np.diagonal(over, axis1=1, axis2=2).copy(), np.zeros((0, k)), np.zeros((len(over), 0)), over, added
        )

    def _influences(self) -> Iterator[tuple[Any, Values, tuple[Any, Values] | None]]:
        """Yield individuals, their influences (strategies, rows, thresholds), and those of jumps of a training curve.

        Where a curve was estimated inside the weights, individuals come in order of time.
        """
        exits, k, n = self.estimation.exits, self.thresholds.size, self.share.size
        width = max(1, NUMBERS_PER_BLOCK // (len(self.risk) * k))
        blocks = [slice(first, min(first + width, n)) for first in range(0, n, width)]
        if exits is None:
            for block in blocks:
                yield block, self._deviations(block), None
            return
        if exits.martingale:  # all individuals of one time belong together
            blocks = [slice(0, n)]
        # all thresholds belong to one time, also where jumps of a training curve are held against it
        exits = exits.at_one_time(0, k)
        codes = np.zeros(n, dtype=np.intp) if exits.codes is None else exits.codes
        moves = self.estimation.moves(slice(0, 1))  # whose weights move with what was estimated
        moves = np.ones((n, 1), dtype=bool) if moves is None else moves
        totals = np.zeros((len(self.risk), exits.n_strata, k))
        for block in blocks:
            rows = exits.order[block]
            for total, one in zip(totals, self._deviations(rows) * moves[rows], strict=True):
                arrays.add_rows(total, codes[block], one)
        operators = [CurveInfluence(exits, slice(0, k), -total) for total in totals]
        for block in blocks:
            rows = exits.order[block]
            influence = self._deviations(rows)
            moving = influence * moves[rows]
            if exits.model.fitted_on_sample:
                for operator, one, x in zip(operators, influence, moving, strict=True):
                    operator.add(one, x, block, 0)
                yield rows, influence, None
            else:
                found = [operator.at_training_jumps(x, block, 0) for operator, x in zip(operators, moving, strict=True)]
                yield rows, influence, (found[0][0], np.array([X for _, X in found]))

    def _deviations(self, rows: Any) -> Values:
        """Return influences of some individuals while weights are held fixed, (strategies, rows, thresholds)."""
        worth = np.where(self.event[rows, None], 1.0, -self.odds)
        benefit = np.where(self.risk[:, rows, None] >= self._least, worth, 0.0)
        return np.asarray(self.share[rows, None] * (benefit - self.net_benefit[:, None]))
