"""On whom strategies act at each threshold probability, the net benefit of that, and its covariance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survscore._utils import arrays
from survscore._utils.parallel import cached_property
from survscore.analysis.populations import AtTime
from survscore.engine.influence import CurveInfluence, Estimation
from survscore.engine.moments import Moments, pairs
from survscore.inference.units import Groups
from survscore.metrics.losses import AT_THRESHOLD
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
    event: Values  # whether with event, or with which probability, (1, n), or (strategies, n) where these differ
    share: Values  # of the weights, (1, n), or (strategies, n) as `event`
    weight_sum: float
    #: Where the weights come from, and what was estimated inside them: one for all strategies, or one for each.
    estimations: list[Estimation]

    @classmethod
    def of(cls, at: AtTime, thresholds: Values) -> Decisions:
        """Take models at a time."""
        weight = at.weight  # who is counted has one in all strata
        survival = np.array([*at.survival, *np.full((2, weight.shape[1]), [[-np.inf], [np.inf]])], dtype=np.float64)
        risk = np.where(weight[0] > 0, 1.0 - survival, -np.inf)
        share = weight / weight.max(axis=1, keepdims=True)  # before they are added up: they may be as large as can be
        share /= share.sum(axis=1, keepdims=True)
        known = (at.label > EVENT_FREE) * 1.0
        event = np.array([known if free is None else 1.0 - free for free in at.event_free])
        estimations = at.estimations
        if len(estimations) > 1:  # all or none are treated by predictions that are the same for all individuals
            event, share = (np.append(values, values[-1:], axis=0) for values in (event, share))
            estimations = [*estimations, estimations[-1]]
        return cls(thresholds, risk, event, share, float(weight[0].sum()), estimations)

    def _of(self, strategy: int) -> int:
        """Return which of `event` and `estimations` a strategy has."""
        return strategy if len(self.event) > 1 else 0

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
        benefits = []
        for s, risk in enumerate(self.risk):
            event, share = self.event[self._of(s)], self.share[self._of(s)]
            parts = np.array([event * share, (1.0 - event) * share])
            order = np.argsort(risk, kind="stable")
            below = np.concatenate((np.zeros((2, 1)), np.cumsum(parts[:, order], axis=1)), axis=1)
            with_event, without = below[:, -1:] - below[:, np.searchsorted(risk[order], self._least, side="left")]
            benefits.append(with_event - self.odds * without)
        return np.array(benefits)

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
                factors = self.estimations[0].factors
                column = slice(0, 1)
                products += crossed(influence if factors is None else influence * factors.of_rows(rows, column))
            else:
                for table, of_strategy in zip(by_group, influence, strict=True):
                    arrays.add_rows(table, groups.codes[rows], of_strategy)
            if jumps is not None:
                of_jumps += crossed(jumps[1], self.estimations[0].training_steps[jumps[0], None])
        covariance = ((products + crossed(by_group)) * factor + of_jumps).reshape(s, k, s, k).swapaxes(1, 2)
        # differences have one with event and one without, on whom strategies would have differed, more
        mean_weight = self.estimations[0].mean_weight
        each_status = np.array([np.ones_like(self.odds), self.odds]) * mean_weight / self.weight_sum
        unseen, every = each_status.T @ each_status, pairs(s)
        over = np.array(
            [
                covariance[a, a]
                if a == b
                else covariance[a, a] + covariance[b, b] - covariance[a, b] - covariance[b, a] + unseen
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
        first, k, n = self.estimations[0], self.thresholds.size, self.share.shape[1]
        censoring_jumps, projects = first.exits, first.weights.hidden_share is not None
        width = max(1, NUMBERS_PER_BLOCK // (len(self.risk) * k))
        blocks = [slice(first, min(first + width, n)) for first in range(0, n, width)]
        if censoring_jumps is None:
            for block in blocks:
                yield block, self._deviations(block), None
            return
        if censoring_jumps.martingale:  # all individuals of one time belong together
            blocks = [slice(0, n)]
        # all thresholds belong to one time, also where jumps of a training curve are held against it
        every = [estimation.exits.at_one_time(0, k) for estimation in self.estimations if estimation.exits is not None]
        of_strategy = [every[self._of(s)] for s in range(len(self.risk))]
        # whose weights move with what was estimated
        capped = [estimation.moves(slice(0, 1)) for estimation in self.estimations]
        moves = np.array(
            [np.ones((n, 1), dtype=bool) if moving_rows is None else moving_rows for moving_rows in capped]
        )
        totals = [np.zeros((of.n_strata, k)) for of in of_strategy]
        for block in blocks if not projects else ():
            rows = censoring_jumps.order[block]
            for total, of, deviation in zip(totals, of_strategy, self._deviations(rows) * moves[:, rows], strict=True):
                codes = np.zeros(len(rows), dtype=np.intp) if of.codes is None else of.codes[block]
                arrays.add_rows(total, codes, deviation)
        operators = [CurveInfluence(of, slice(0, k), -total) for of, total in zip(of_strategy, totals, strict=True)]
        for block in blocks:
            rows = censoring_jumps.order[block]
            influence = self._deviations(rows)
            moving = self._gradients(rows) if projects else influence * moves[:, rows]
            if censoring_jumps.model.fitted_on_sample:
                in_block = [jumps.in_block(block) for jumps in every]
                for s, operator in enumerate(operators):
                    operator.add(influence[s], moving[s], in_block[self._of(s)], 0)
                yield rows, influence, None
            else:
                first_jumps = every[0].in_block(block)
                contributions = [
                    operator.at_training_jumps(x, first_jumps, 0) for operator, x in zip(operators, moving, strict=True)
                ]
                yield rows, influence, (contributions[0][0], np.array([X for _, X in contributions]))

    def _deviations(self, rows: Any) -> Values:
        """Return influences of some individuals while weights are held fixed, (strategies, rows, thresholds)."""
        event = self.event[:, rows, None]
        benefit = self._acts(rows) * (event - (1.0 - event) * self.odds)
        return np.asarray(self.share[:, rows, None] * (benefit - self.net_benefit[:, None]))

    def _gradients(self, rows: Any) -> Values:
        """Return how net benefits move with the logarithms of projected statuses, (strategies, rows, thresholds)."""
        weights = [estimation.weights for estimation in self.estimations]
        hidden = weights[0].hidden(slice(0, 1))[rows]
        if weights[0].hidden_base is None:
            event_free = (1.0 - self.event[:, rows, None]) * hidden
        else:  # by the incidence of a cause in place of the logarithm of a status
            event_free = np.array([np.asarray(one.hidden_share)[rows, None] * hidden for one in weights])
        return np.asarray(-self.share[:, rows, None] * self._acts(rows) * event_free * (1.0 + self.odds))

    def _acts(self, rows: Any) -> NDArray[np.bool_]:
        return np.asarray(self.risk[:, rows, None] >= self._least)
