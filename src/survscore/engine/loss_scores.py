"""Scores of a loss under a weighting, from sums; and what turns each individual's loss into its influence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from survscore._utils import arrays
from survscore.curves import SurvivalCurves
from survscore.engine.bounds import AllBounds, bounds_of, losses_of, n_in_population
from survscore.engine.completions import LostUnits, with_smallest_z
from survscore.engine.moments import Moments
from survscore.engine.null import KaplanMeierNull, NullInfluence
from survscore.engine.plan import Plan, Values, Where
from survscore.engine.prepared import MetricResult, PartArrays, WeightedSums, averages_of
from survscore.engine.second_moments import ScoredLoss, second_moments
from survscore.engine.sensitivity import theta_scores
from survscore.engine.sums import ModelWeights, weight_sums
from survscore.inference.units import Units, n_eligible
from survscore.metrics import Loss
from survscore.weighting.interval_weights import IntervalWeights, WeightSums


@dataclass(frozen=True, eq=False)
class LossRunner:
    """Means of losses, and their variances and bounds."""

    plan: Plan
    weightings: Sequence[WeightedSums]

    def run(self, q: int) -> Mapping[str, MetricResult]:
        """Return scores, variances and bounds of all losses under one weighting."""
        return {loss.name: self._result(k, q) for k, loss in enumerate(self.plan.losses)}

    def _result(self, k: int, q: int) -> MetricResult:
        plan, weighted = self.plan, self.weightings[q]
        scored = score_loss(plan, k, weighted)
        undefined = weighted.undefined[scored.loss.name]
        averages = averages_of(plan, scored.loss, q, self.weightings)
        moments = None
        if plan.errors:
            moments = _variances(scored, plan, weighted.units, averages, any_range=plan.any_range)
        support = weighted.support(undefined.where)
        result = MetricResult(scored.scores, moments, None, support, undefined.where, dict(undefined.reasons))
        if weighted.weighting.theta is not None and plan.by_theta:
            result = replace(result, by_theta=theta_scores(plan, scored, weighted.weighting))
        if weighted.first.observed_index is not None:
            return replace(result, parts=self.parts(k, weighted, scored))
        return replace(result, bounds=self._bounds(k, weighted, scored, averages))

    def _bounds(self, k: int, weighted: WeightedSums, scored: ScoredLoss, averages: Values) -> AllBounds | None:
        """Return what the lost could change; None where no individual is lost."""
        plan, known = self.plan, weighted.known
        if known is None:
            return None
        losses = self.known_losses(k, weighted, scored)
        divisor = n_in_population(weighted.first, plan.index.times, known.weights.sum(axis=0))
        bounds = bounds_of(plan.index, partial(self.losses_of, scored), weighted.first, losses, divisor, averages)
        # with sample weights there is no such z: it is not a function of the sums that `completions` orders
        if not plan.errors or plan.index.sample is not None or not any(flags.any() for flags in bounds.decided):
            return bounds
        lost = LostUnits.of(scored, weighted.first, plan.read_models, plan.groups, divisor)
        others = _variances(lost.others(), plan, weighted.units, averages, any_range=False)
        return with_smallest_z(bounds, lost, weighted.units, others)

    def known_losses(self, k: int, weighted: WeightedSums, scored: ScoredLoss) -> Values:
        """Return the sums of losses of those of known status, each with weight one, (models, times)."""
        known = weighted.known
        if known is None:
            raise TypeError("no individual is lost")
        return _with_constants(scored.loss, known.losses[:, k], known.weights, scored.constants, self.plan.index.times)

    def losses_of(self, scored: ScoredLoss, rows: NDArray[np.intp]) -> Values:
        """Return what some individuals would cost event-free and with event, (models, 2, rows, times)."""
        return losses_of(rows, self.plan.index.times, scored.loss, self.plan.read_models, scored.constants)

    def parts(self, k: int, weighted: WeightedSums, scored: ScoredLoss) -> PartArrays:
        """Return scores of those who could be followed to t, and of the others; their sums are the two buckets."""
        index, sums = self.plan.index, weighted.losses[:, :, k].sum(axis=0)  # (models, 2, times)
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


def _variances(scored: ScoredLoss, plan: Plan, units: Units, averages: Values, *, any_range: bool) -> Moments:
    """Return the variances of one loss under one weighting, compiled where that pays."""
    models = plan.read_models
    matrices = None if any_range else models.in_memory
    if matrices is not None and plan.compiles([scored.loss], [scored.weights]):
        from survscore.engine import compiled

        return compiled.second_moments(scored, matrices, plan.groups, units, averages)
    return second_moments([(scored, models)], plan.groups, units, averages, any_range=any_range)


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
        _moving_weights(weights_of_model, sums, m) if _moves(weights_of_model) else None
        for weights_of_model, sums in zip(scored.weights.each, each_sums, strict=True)
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


def _moves(weights: IntervalWeights) -> bool:
    """Whether the weights move with an estimated curve, and come from tables."""
    return weights.censoring_model is not None and weights.hidden_share is None and not weights.individual


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
