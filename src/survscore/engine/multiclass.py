r"""Multi-class scores under competing risks: over event-free and all causes, as a sum over statuses.

With the probability :math:`p_{ik}(t)` of status k (0 event-free, 1 to K the causes) and the indicator :math:`y_{ik}(t)`
of what happened,

.. math::

    \text{Brier} = \sum_{k=0}^K \frac{\sum_i w_i (y_{ik} - p_{ik})^2}{\sum_i w_i}, \qquad
    \text{log} = -\sum_{k=0}^K \frac{\sum_i w_i\, y_{ik} \log p_{ik}}{\sum_i w_i} .

Each summand, a *term*, is a score of one status and comes from the engine as any other; influences are added before
they are squared. Weights are the same in all terms. Projected statuses are not: status k is shared among individuals
with similar predicted probability of status k, by the Aalen-Johansen estimate in their stratum. So the :math:`y_{ik}`
of one individual add up to one only nearly; the mean of each is right given the predictions that its loss is made of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from survscore.engine.bounds import bounds_of, n_in_population
from survscore.engine.loss_scores import LossRunner, score_loss
from survscore.engine.plan import Plan, Values
from survscore.engine.prepared import MetricResult, PartArrays, PreparedWeights, Undefined, WeightedSums, averages_of
from survscore.engine.second_moments import second_moments
from survscore.engine.sensitivity import ThetaScores, theta_scores
from survscore.engine.sums import ModelWeights


@dataclass(frozen=True, eq=False)
class MulticlassRunner:
    """Multi-class scores and their variances."""

    plan: Plan
    #: For each status the weightings, with the sums over all individuals.
    terms: Sequence[Sequence[WeightedSums]]

    @classmethod
    def of(cls, plan: Plan) -> MulticlassRunner:
        """Take the sums of each status over all individuals."""
        first = PreparedWeights.of(plan.terms[0])
        prepared = [first, *(_of_cause(term, first) for term in plan.terms[1:])]
        terms = [weights.finish(weights.total()) for weights in prepared]
        undefined = [
            {metric.name: _undefined(of_weighting, metric.name) for metric in plan.metrics}
            for of_weighting in zip(*terms, strict=True)
        ]
        alike = [[replace(one, undefined=where) for one, where in zip(of, undefined, strict=True)] for of in terms]
        return cls(plan, alike)

    @property
    def weightings(self) -> Sequence[WeightedSums]:
        """Those of the first status: how many are counted is the same for all."""
        return self.terms[0]

    def run(self, q: int) -> Mapping[str, MetricResult]:
        """Return scores, variances and parts of all losses under one weighting."""
        return {loss.name: self._result(k, q) for k, loss in enumerate(self.plan.losses)}

    def _result(self, k: int, q: int) -> MetricResult:
        plan, weighted = self.plan, [weightings[q] for weightings in self.terms]
        scored = [score_loss(term, k, of_term) for term, of_term in zip(plan.terms, weighted, strict=True)]
        first, undefined = weighted[0], weighted[0].undefined[plan.losses[k].name]
        moments, averages = None, averages_of(plan, plan.losses[k], q, self.weightings)
        if plan.errors:
            terms = [(of_term, term.read_models) for of_term, term in zip(scored, plan.terms, strict=True)]
            moments = second_moments(terms, plan.groups, first.units, averages, any_range=plan.any_range)
        scores = np.sum([of_term.scores for of_term in scored], axis=0)
        support = first.support(undefined.where)
        result = MetricResult(scores, moments, None, support, undefined.where, dict(undefined.reasons))
        runners = [LossRunner(term, weightings) for term, weightings in zip(plan.terms, self.terms, strict=True)]
        several = list(zip(runners, weighted, scored, strict=True))
        if first.weighting.theta is not None and plan.by_theta:
            by_theta = [
                theta_scores(term, of_loss, first.weighting, every_cause=True)
                for term, of_loss in zip(plan.terms, scored, strict=True)
            ]
            result = replace(result, by_theta=_sum_over_statuses([one for one in by_theta if one is not None]))
        if first.first.observed_index is not None:
            parts = [runner.parts(k, of_term, of_loss) for runner, of_term, of_loss in several]
            return replace(result, parts=reduce(_sum_of_parts, parts))
        if first.known is None:
            return result
        # of those of known status, and what the others would cost
        losses = np.sum([runner.known_losses(k, of_term, of_loss) for runner, of_term, of_loss in several], axis=0)
        divisor = n_in_population(first.first, plan.index.times, first.known.weights.sum(axis=0))

        def by_status(rows: NDArray[np.intp]) -> Values:
            each = [runner.losses_of(of_loss, rows) for runner, _, of_loss in several]
            return np.stack([_of_status(each, status) for status in range(len(each))], axis=1)

        return replace(result, bounds=bounds_of(plan.index, by_status, first.first, losses, divisor, averages))


def _of_cause(term: Plan, first: PreparedWeights) -> PreparedWeights:
    """Return the weights of a cause: those of event-free, except for the status, and for what is projected."""
    weights = PreparedWeights.of(term).weights if any(_projects(part) for part in first.weights) else first.weights
    shared = [
        own if _projects(own) else _relabelled(of_first, term)
        for own, of_first in zip(weights, first.weights, strict=True)
    ]
    known = [_relabelled(first.every[place], term) for place in first.known.values()]
    return PreparedWeights(term, shared, [*shared, *known], first.known)


def _relabelled(weights: ModelWeights, term: Plan) -> ModelWeights:
    """Return the same weights for the statuses of a term."""
    return ModelWeights(tuple(replace(one, label=term.index.label) for one in weights.each))


def _of_status(losses: Sequence[Values], status: int) -> Values:
    """Return the sum over terms of what one status costs, from what each costs event-free and with event."""
    # event-free costs that term as event-free; any event costs it as event. An event of a cause costs this cause's term
    # as event, and all else as event-free
    events = [status != 0, *(status == cause for cause in range(1, len(losses)))]
    return np.asarray(sum(of_term[:, int(event)] for of_term, event in zip(losses, events, strict=True)))


def _projects(weights: ModelWeights) -> bool:
    return weights[0].hidden_share is not None


def _undefined(terms: Sequence[WeightedSums], metric: str) -> Undefined:
    """Return where the sum over statuses has no score: where one of them has none."""
    every = [of_term.undefined[metric] for of_term in terms]
    reasons: dict[str, int] = {}
    for undefined in every:
        reasons |= {reason: max(n, reasons.get(reason, 0)) for reason, n in undefined.reasons.items()}
    return Undefined(np.asarray(np.logical_or.reduce([undefined.where for undefined in every])), reasons)


def _sum_over_statuses(terms: Sequence[ThetaScores]) -> ThetaScores | None:
    """Return scores by theta; predictions and proportions are those of event-free."""
    return replace(terms[0], scores=np.sum([term.scores for term in terms], axis=0)) if terms else None


def _sum_of_parts(mine: PartArrays, theirs: PartArrays) -> PartArrays:
    return replace(mine, observed=mine.observed + theirs.observed, projected=mine.projected + theirs.projected)
