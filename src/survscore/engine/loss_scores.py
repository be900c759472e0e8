r"""Scores of a loss under a weighting, from sums; and what turns each individual's loss into its influence.

Multi-class scores under competing risks are sums over statuses, event-free and all causes: with the probability
:math:`p_{ik}(t)` of status k (0 event-free, 1 to K the causes) and the indicator :math:`y_{ik}(t)` of what happened,

.. math::

    \text{Brier} = \sum_{k=0}^K \frac{\sum_i w_i (y_{ik} - p_{ik})^2}{\sum_i w_i}, \qquad
    \text{log} = -\sum_{k=0}^K \frac{\sum_i w_i\, y_{ik} \log p_{ik}}{\sum_i w_i} .

Each summand, a *term*, is a score of one status as any other; influences are added before they are squared. Weights are
the same in all terms. Projected statuses are not: status k is shared among individuals with similar predicted
probability of status k, by the Aalen-Johansen estimate in their stratum. So the :math:`y_{ik}` of one individual add up
to one only nearly; the mean of each is right given the predictions that its loss is made of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from survscore._utils import arrays
from survscore.curves import SurvivalCurves
from survscore.engine.bounds import AllBounds, LostUnits, bounds_of, losses_of, n_in_population, with_smallest_z
from survscore.engine.moments import Moments
from survscore.engine.null import KaplanMeierNull, NullInfluence
from survscore.engine.plan import Plan, Values, Where
from survscore.engine.prepared import MetricResult, PartArrays, PreparedWeights, Undefined, WeightedSums, averages_of
from survscore.engine.second_moments import ScoredLoss, second_moments
from survscore.engine.sensitivity import theta_scores
from survscore.engine.sums import ModelWeights, weight_sums
from survscore.inference.units import Units, n_eligible
from survscore.metrics import Loss
from survscore.weighting.interval_weights import IntervalWeights, WeightSums

#: The plan, the sums and the scores of a term.
Term = tuple[Plan, WeightedSums, ScoredLoss]


@dataclass(frozen=True, eq=False)
class LossRunner:
    """Means of losses, and their variances and bounds; each score is a sum of terms, mostly of one."""

    plan: Plan
    terms: Sequence[Sequence[WeightedSums]]  # For each term the weightings, with the sums over all individuals.

    @classmethod
    def of_statuses(cls, plan: Plan) -> LossRunner:
        """Take the sums of each status over all individuals, for multi-class scores."""
        first = PreparedWeights.of(plan.terms[0])
        prepared = [first, *(_of_cause(term, first) for term in plan.terms[1:])]
        terms = [weights.finish(weights.total()) for weights in prepared]
        undefined = [
            {metric.name: _undefined(of_weighting, metric.name) for metric in plan.metrics}
            for of_weighting in zip(*terms, strict=True)
        ]
        alike = [[replace(one, undefined=where) for one, where in zip(of, undefined, strict=True)] for of in terms]
        return cls(plan, alike)

    def run(self, q: int) -> Mapping[str, MetricResult]:
        """Return scores, variances and bounds of all losses under one weighting."""
        return {loss.name: self._result(k, q) for k, loss in enumerate(self.plan.losses)}

    def _result(self, k: int, q: int) -> MetricResult:
        plan, plans = self.plan, self.plan.terms or (self.plan,)
        weighted = [weightings[q] for weightings in self.terms]
        scored = [score_loss(term, k, of_term) for term, of_term in zip(plans, weighted, strict=True)]
        first, undefined = weighted[0], weighted[0].undefined[plan.losses[k].name]
        averages = averages_of(plan, plan.losses[k], q, self.terms[0])
        moments = _variances(scored, plans, first.units, averages, any_range=plan.any_range) if plan.errors else None
        scores = np.sum([of_term.scores for of_term in scored], axis=0)
        support = first.support(undefined.where)
        result = MetricResult(scores, moments, None, support, undefined.where, dict(undefined.reasons))
        every = list(zip(plans, weighted, scored, strict=True))
        if (theta := first.weighting.theta) and plan.by_theta:
            by_theta = [
                theta_scores(term, of_loss, theta, first.weighting.hazards, every_cause=len(plans) > 1)
                for term, _, of_loss in every
            ]
            # predictions and proportions are those of event-free
            by_status = replace(by_theta[0], scores=np.sum([term.scores for term in by_theta], axis=0))
            result = replace(result, by_theta=by_status)
        if first.first.observed_index is not None:
            parts = [_parts(term, k, of_term, of_loss) for term, of_term, of_loss in every]
            return replace(result, parts=reduce(_sum_of_parts, parts))
        return replace(result, bounds=self._bounds(k, every, averages))

    def _bounds(
        self, k: int, every: Sequence[tuple[Plan, WeightedSums, ScoredLoss]], averages: Values
    ) -> AllBounds | None:
        """Return what the lost could change; None where no individual is lost."""
        plan, weighted, scored = every[0]
        if weighted.known is None:
            return None
        known = [
            _with_constants(of_loss.loss, sums.losses[:, k], sums.weights, of_loss.constants, plan.index.times)
            for _, of_term, of_loss in every
            if (sums := of_term.known) is not None
        ]
        divisor = n_in_population(weighted.first, plan.index.times, weighted.known.weights.sum(axis=0))

        def by_status(rows: NDArray[np.intp]) -> Values:
            each = [losses_of(rows, of_loss, term.read_models) for term, _, of_loss in every]
            if len(each) == 1:
                return each[0]
            return np.stack([_of_status(each, status) for status in range(len(each))], axis=1)

        bounds = bounds_of(plan.index, by_status, weighted.first, np.sum(known, axis=0), divisor, averages)
        # with sample weights there is no such z: it is not a function of the sums that `smallest_ratio` orders
        no_z = len(every) > 1 or not plan.errors or plan.index.sample is not None
        if no_z or not any(flags.any() for flags in bounds.decided):
            return bounds
        lost = LostUnits.of(scored, weighted.first, plan.read_models, plan.groups, divisor)
        others = _variances([lost.others()], [plan], weighted.units, averages, any_range=False)
        return with_smallest_z(bounds, lost, weighted.units, others)


def _of_status(losses: Sequence[Values], status: int) -> Values:
    """Return the sum over terms of what one status costs, from what each costs event-free and with event."""
    # event-free costs that term as event-free; any event costs it as event. An event of a cause costs this cause's term
    # as event, and all else as event-free
    events = [status != 0, *(status == cause for cause in range(1, len(losses)))]
    return np.asarray(sum(of_term[:, int(event)] for of_term, event in zip(losses, events, strict=True)))


def _parts(plan: Plan, k: int, weighted: WeightedSums, scored: ScoredLoss) -> PartArrays:
    """Return scores of those who could be followed to t, and of the others; their sums are the two buckets."""
    index, sums = plan.index, weighted.losses[:, :, k].sum(axis=0)  # (models, 2, times)
    weights_of, m = weighted.weights.each[-1], index.times.size
    followed = weights_of.observed()
    observed = weight_sums(followed, index).weights
    defined = ~np.isnan(scored.scores)
    # with C* >= t, and as far as their status is known
    end, own = followed.population_index, None if index.sample is None else index.sample.values
    n_early, n_known = (n_eligible(stop, m, own) for stop in (end, arrays.minimum(weights_of.follow_up_index, end)))
    n_late = np.where(n_eligible(end, m) < weights_of.label.shape[0], weighted.mass - n_early, 0.0)
    means = []
    of_both = (observed, n_early), (weighted.weight_sums.weights - observed, n_late)
    for place, (weights, n) in enumerate(of_both):
        losses = _with_constants(scored.loss, sums[:, place], weights, scored.constants, index.times)
        means.append(np.where(defined & (n > 0), losses / np.where(n > 0, n, 1.0), np.nan))
    return PartArrays(n_early / weighted.mass, (n_early - n_known) / weighted.mass, *means)


# Terms of multi-class scores


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


def _projects(weights: ModelWeights) -> bool:
    return weights[0].hidden_share is not None


def _undefined(terms: Sequence[WeightedSums], metric: str) -> Undefined:
    """Return where the sum over statuses has no score: where one of them has none."""
    every = [of_term.undefined[metric] for of_term in terms]
    reasons: dict[str, int] = {}
    for undefined in every:
        reasons |= {reason: max(n, reasons.get(reason, 0)) for reason, n in undefined.reasons.items()}
    return Undefined(np.asarray(np.logical_or.reduce([undefined.where for undefined in every])), reasons)


def _sum_of_parts(mine: PartArrays, theirs: PartArrays) -> PartArrays:
    return replace(mine, observed=mine.observed + theirs.observed, projected=mine.projected + theirs.projected)


# One term


def score_loss(plan: Plan, k: int, weighted: WeightedSums) -> ScoredLoss:
    """Return the scores of the k-th loss under one weighting, and what turns losses into deviations."""
    loss, times = plan.losses[k], plan.index.times
    undefined = weighted.undefined[loss.name].where
    ranges = np.where(undefined, np.nan, weighted.losses[:, :, k])  # (2, models, buckets, times)
    each_sums = [np.where(undefined, np.nan, sums.weights) for sums in weighted.each_sums]
    null_place = weighted.weights.place(ranges.shape[1])
    constants = _constants(plan, each_sums[null_place])
    losses = _with_constants(loss, ranges.sum(axis=(0, 2)), each_sums[null_place], constants, times)
    place = [weighted.weights.place(a) for a in range(len(losses))]
    by_n = weighted.weighting.normalize == "n"
    total = np.array([sums.sum(axis=0) for sums in each_sums])
    divisor = np.where(np.isnan(total), np.nan, weighted.mass) if by_n else total
    with np.errstate(invalid="ignore", divide="ignore"):
        scores = losses / divisor[place]
    defined = np.asarray(np.isfinite(scores).all(axis=0))
    scale = np.where(defined, 1.0 / np.where(defined, divisor, 1.0), 0.0)
    centre = np.zeros_like(scores) if by_n else np.where(defined, scores, 0.0)
    offset = np.where(defined, scores, 0.0) * scale[place] if by_n else np.zeros_like(scores)
    weights = weighted.weights
    if not defined.all():
        weights = ModelWeights(tuple(_finite(part, defined) for part in weights.each))
    scored = ScoredLoss(plan.index, loss, weights, constants, scores, centre, scale, offset, ())
    if not plan.errors:
        return scored
    if isinstance(plan.null, KaplanMeierNull):
        scored = replace(
            scored, null=NullInfluence.of(plan.null, times, loss, each_sums[null_place], scale[null_place])
        )
    return replace(scored, moving_totals=_moving_totals(scored, ranges, weighted.each_sums, defined))


def _variances(
    scored: Sequence[ScoredLoss], plans: Sequence[Plan], units: Units, averages: Values, *, any_range: bool
) -> Moments:
    """Return the variances of a sum of losses under one weighting, compiled where that pays."""
    plan, models = plans[0], plans[0].read_models
    matrices = None if any_range or len(plans) > 1 else models.in_memory
    if matrices is not None and plan.compiles([scored[0].loss], [scored[0].weights]):
        from survscore.engine import compiled

        return compiled.SecondMoments(scored[0], matrices, plan.groups, units, averages).run()
    terms = [(of_term, term.read_models) for of_term, term in zip(scored, plans, strict=True)]
    return second_moments(terms, plan.groups, units, averages, any_range=any_range)


def _with_constants(
    loss: Loss, sums: Values, weights: Values, constants: Sequence[SurvivalCurves], times: Values
) -> Values:
    """Return sums of losses with those of constant predictions, the same for all: only weights are needed."""
    added = []
    for constant in constants:
        survival = constant.at(times)[0]
        with np.errstate(invalid="ignore"):  # infinite weights make their times undefined
            added.append(loss.of_event_free(survival) * weights[:2].sum(axis=0) + loss.of_event(survival) * weights[2])
    return np.concatenate((sums, np.array(added))) if added else sums


def _constants(plan: Plan, weights: Values) -> list[SurvivalCurves]:
    """Return the prediction of the null model, from the sums of weights by range and status."""
    times = plan.index.times
    if plan.null is None or isinstance(plan.null, KaplanMeierNull):
        return [] if plan.null is None else [plan.null.prediction(times)]
    with np.errstate(invalid="ignore"):
        share = weights[:2].sum(axis=0) / weights.sum(axis=0)
    # it may increase, where others are counted later; where there is no score it does not matter
    return [SurvivalCurves(np.where(np.isnan(share), 1.0, share)[None], times, interpolation="step", monotone="keep")]


def _finite(weights: IntervalWeights, defined: Where) -> IntervalWeights:
    """Return weights without infinite ones, which no zero can take back."""
    at_risk = None if weights.weight_at_risk is None else np.where(defined, weights.weight_at_risk, 0.0)
    return replace(weights, weight_at_risk=at_risk, weight_at_event=arrays.finite_or_zero(weights.weight_at_event))


def _moving_totals(scored: ScoredLoss, ranges: Values, each_sums: Sequence[WeightSums], defined: Where) -> list[Values]:
    """Return for each model, by stratum, the sum of the deviations whose weights move with the estimated curve.

    Those of weights from the curves of each individual are summed later, when their cells are at hand. `ranges` holds
    sums of weight times loss in the first range and the second, (2, models, buckets, times); of capped weights, buckets
    behind those of the strata.
    """
    m, n_models = scored.index.times.size, ranges.shape[1]
    # sums of moving weights, (strata, times) and (strata, statuses, times)
    moving = [
        _moving_weights(weights, sums, m)
        if weights.censoring_model is not None and weights.hidden_share is None and not weights.individual
        else None
        for weights, sums in zip(scored.weights.each, each_sums, strict=True)
    ]
    totals = []
    for a in range(len(scored.scores)):
        weights, of_weights = scored.weights[a], moving[scored.weights.place(a)]
        if of_weights is None:
            totals.append(np.zeros((weights.n_strata, m)))
            continue
        early, late = of_weights
        if a < n_models:
            losses = _moving_losses(weights, ranges[:, a])
        else:
            event_free, with_event = scored.constant_losses(scored.constants[a - n_models])
            with np.errstate(invalid="ignore"):  # infinite weights make their times undefined
                losses = early * event_free + late[:, 0] * event_free + late[:, 1] * with_event
        with np.errstate(invalid="ignore"):
            total = (losses - (early + late.sum(axis=1)) * scored.centre[a]) * scored.scale[scored.weights.place(a)]
        totals.append(np.where(defined, total, 0.0))
    return totals


def _at_risk(weights: IntervalWeights) -> Values:
    if weights.weight_at_risk is None:
        raise TypeError("weights come from the curves of each individual")
    return weights.weight_at_risk


def _moving_losses(weights: IntervalWeights, ranges: Values) -> Values:
    """Return the sums of weight times loss of the weights that move, (strata, times)."""
    k = weights.n_strata
    if weights.capped:
        moves = _at_risk(weights) < weights.max_weight
        return np.where(moves, ranges[0, :k] + ranges[0, k : 2 * k], 0.0) + ranges[1, :k]
    return np.asarray(ranges[:, :k].sum(axis=0))


def _moving_weights(weights: IntervalWeights, sums: WeightSums, m: int) -> tuple[Values, Values]:
    """Return the sums of the weights that move, in the first range (strata, times), and by status in the second."""
    if weights.codes is None and not weights.capped:
        return sums.weights[:1], sums.weights[None, 1:]
    early, late = np.zeros((weights.n_strata, m)), np.zeros((weights.n_strata, 2, m))
    at_risk = _at_risk(weights)
    moves = at_risk < weights.max_weight
    for k in range(weights.n_strata):
        inside = weights if weights.codes is None else weights.rows(arrays.positions(weights.codes == k))
        inside = replace(inside, codes=None, weight_at_risk=at_risk[k : k + 1])
        early[k] = np.where(moves[k], inside.sums(m).weights[0], 0.0)
        late[k] = inside.rows(arrays.positions(inside.weight_at_event < weights.max_weight)).sums(m).weights[1:]
    return early, late
