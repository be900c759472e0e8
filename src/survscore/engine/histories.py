"""Metrics of everything that happened up to a time (concordance, CRPS): values, and second moments of their influences.

"At time t" such a metric describes all that happened up to t. It gets the outcomes and the product-limit curve inside
the weights, and returns how it moves with that curve; the rest is the same as for `pooled` metrics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from survscore._utils import arrays
from survscore._utils.parallel import cached_property
from survscore._validation import UnfitError
from survscore.curves import SurvivalCurves
from survscore.engine.influence import Estimation
from survscore.engine.null import KaplanMeierNull, NullInfluence
from survscore.engine.plan import Plan
from survscore.engine.pooled import JointMoments, PooledValues, constant_prediction
from survscore.engine.prepared import MetricResult, WeightedSums, reasons_of
from survscore.inference.support import Support
from survscore.inference.units import Groups, Units
from survscore.metrics import FollowUpMetric, History
from survscore.weighting import Weighting
from survscore.weighting.interval_weights import EVENT_FREE, TimeIndex


@dataclass(frozen=True, eq=False)
class Histories:
    """The follow-up of all individuals, as a weighting sees it; in the processor's memory."""

    estimation: Estimation  # Outcomes, the horizons, and what was estimated inside the weights.
    until: NDArray[np.float64]  # Up to when each would have been followed. Shape (n,).

    @property
    def index(self) -> TimeIndex:
        """Outcomes, and the horizons."""
        return self.estimation.index

    @classmethod
    def of(cls, metric: FollowUpMetric, weighting: Weighting, estimation: Estimation) -> Histories:
        """Take the weights as they were prepared, with what was estimated inside them."""
        index = estimation.index
        if estimation.weights.hidden_share is not None:
            raise UnfitError(
                f"metric {metric.name!r} has no projected form, since it is of the whole follow-up and not of statuses "
                "at one time: use `Administrative()` or `IPCW()`"
            )
        fitted = estimation.weights.censoring_model is not None
        if index.outcomes.competing and fitted and not metric.weighs_other_events:
            raise UnfitError(
                f"metric {metric.name!r} of one of several causes needs a status that is known without weights: "
                "Administrative() without drop-outs, or Uncensored()"
            )
        until = weighting.seen_until(index)
        if until is None:
            raise UnfitError(
                f"metric {metric.name!r} needs weights that come from one product-limit curve, neither capped nor "
                "divided by n: Uncensored(), Administrative() with dropout='kaplan-meier' or Outcomes, for those with "
                "C* >= t or a fixed population, or IPCW() with censoring='kaplan-meier' or Outcomes; not "
                f"{weighting}"
            )
        return cls(estimation, until)

    def up_to(self, horizon: float) -> History:
        """Return what happened up to a time."""
        model = self.estimation.weights.censoring_model
        lost, weights = None if model is None else model.curve, self.index.outcomes.weights
        return History(
            horizon, self.time, self.index.label, self.until, self.order, lost, self.other_event_time, weights
        )

    @property
    def other_event_time(self) -> NDArray[np.float64] | None:
        """When those with an event of another cause had it, infinity for all others."""
        outcomes = self.index.outcomes
        if not outcomes.competing:
            return None
        return np.where(outcomes.event & (self.index.label == EVENT_FREE), outcomes.time, np.inf)

    @cached_property
    def time(self) -> NDArray[np.float64]:
        """When each individual left. Who had an event of another cause stays, without the event of interest."""
        others = self.other_event_time
        return (
            self.index.outcomes.time
            if others is None
            else np.where(others < np.inf, self.until, self.index.outcomes.time)
        )

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """The individuals' positions by time."""
        return np.argsort(self.time, kind="stable") if self.index.outcomes.competing else self.index.order

    def evaluate(self, metric: FollowUpMetric, plan: Plan) -> tuple[PooledValues, Support]:
        """Return values with their moments, and on how many they rest, horizon by horizon; the null model's last."""
        times, n, estimation, null = self.index.times, self.until.size, self.estimation, plan.null
        predictions = [curves.numpy() for curves in plan.models.matrices(metric.name)]
        if null is not None:
            predictions.append(_null_prediction(metric, null, predictions[0]))
        support = self._support(metric, plan.host_groups)
        averages = plan.averages([np.zeros(times.size, dtype=np.bool_)])
        elsewhere, censoring_jumps = estimation.training_steps, estimation.exits
        of_others = isinstance(null, KaplanMeierNull) and null.outcomes is None
        others = [null.curve.variance_steps] if of_others else []  # type: ignore[union-attr]
        steps, sample = np.concatenate([elsewhere, *others]), self.index.sample
        by_units = support.weighted or (censoring_jumps is not None and censoring_jumps.martingale)
        sizes, groups = (len(predictions), n), plan.host_groups
        joint = JointMoments(metric, *sizes, groups, support.units, averages, steps, by_units, plan.any_range)
        joint.factors = support.units.factors
        tables = PooledValues.nothing(len(predictions), times.size)
        for j, horizon in enumerate(times):
            history = self.up_to(float(horizon))
            results = [metric.evaluate(curves, history) for curves in predictions]
            tables.values[:, j] = [result.value for result in results]
            tables.reasons[:, j] = [result.reason for result in results]
            if not plan.errors:
                continue
            deviations = np.array([result.influence for result in results])[:, :, None]
            n_jumps = 0 if censoring_jumps is None else len(censoring_jumps.model.curve.times)
            gradients = np.array([np.zeros(n_jumps) if result.moved is None else result.moved for result in results])
            influence = deviations
            if censoring_jumps is not None and censoring_jumps.model.fitted_on_sample:
                influence = deviations + np.array([estimation.of_jumps(gradient) for gradient in gradients])[:, :, None]
            gradients = gradients[:, : elsewhere.size, None]
            if isinstance(null, KaplanMeierNull):
                # by the derivative at every time of the curve's grid
                grid, curve = predictions[-1].times, predictions[-1].probabilities[0]
                of_null = NullInfluence.by_slope(null, grid, curve, metric.slope(predictions[-1], history))
                if not of_others:
                    influence = influence.copy() if influence is deviations else influence
                    before = arrays.count_below(grid, history.time, inclusive=False)
                    own = of_null.mean(np.ones(of_null.slopes.shape[1]), before, slice(None))
                    influence[-1, :, 0] += own if sample is None else sample.values * own
                else:
                    by_model = np.zeros((len(predictions), null.curve.times.size, 1))
                    rest = np.append(np.cumsum(of_null.slopes[0, ::-1])[::-1], 0.0)  # of all times from each on
                    by_model[-1, :, 0] = -rest[np.searchsorted(grid, null.curve.times, side="left")]
                    gradients = np.concatenate((gradients, by_model), axis=1)
            label = np.where(history.event, history.label, EVENT_FREE)
            joint.add(j, deviations, influence, gradients, label, metric.eligible(history))
        # results hold no data
        support = replace(support, units=replace(support.units, factors=None))
        return replace(tables, moments=joint.finish() if plan.errors else None), support

    def _support(self, metric: FollowUpMetric, groups: Groups | None) -> Support:
        """Return on how many each value rests; status is that at the horizon, or when one could last be seen."""
        n_times, sample = self.index.times.size, self.index.sample
        stop = np.zeros(self.until.size, dtype=np.int32)
        counts = np.ones(self.until.size) if sample is None or sample.counts is None else sample.counts
        mass = counts if sample is None else sample.values
        numbers: Any = np.zeros((3, n_times))
        effective = np.zeros(n_times)
        for j, horizon in enumerate(self.index.times):
            history = self.up_to(float(horizon))
            counted = metric.eligible(history)
            stop += counted
            event_free = ~history.event & (history.time >= np.minimum(self.until, horizon))
            numbers[:, j] = [counts[counted & rows].sum() for rows in (counted, history.event, event_free)]
            known = counted & (history.event | event_free)
            squares = np.sum(counts[known] * (mass[known] / counts[known]) ** 2)
            effective[j] = mass[known].sum() ** 2 / squares if squares > 0 else 0.0
        n_counted, n_events, n_event_free = numbers
        units = Units.of(stop, groups, n_times, n_counted, sample)
        weighted = sample is not None and not sample.frequency
        return Support(n_counted, effective, n_events, n_event_free, units, groups is not None, weighted=weighted)


@dataclass(frozen=True, eq=False)
class FollowUpRunner:
    """Metrics of all that happened up to each time."""

    plan: Plan
    weightings: Sequence[WeightedSums]

    def run(self, q: int) -> Mapping[str, MetricResult]:
        """Return values, variances, and why models have none, under one weighting."""
        metrics = [metric for metric in self.plan.metrics if isinstance(metric, FollowUpMetric)]
        return {metric.name: self._result(metric, self.weightings[q]) for metric in metrics}

    def _result(self, metric: FollowUpMetric, weighted: WeightedSums) -> MetricResult:
        plan = self.plan
        # all models share one history, and with it one curve
        weighting = weighted.weighting.without_predictions()
        if weighting is weighted.weighting:
            estimation = weighted.estimations(plan.index)[0]
        else:
            estimation = Estimation(plan.index, weighting.prepare(plan.index))
        histories = Histories.of(metric, weighting, estimation)
        evaluated, support = histories.evaluate(metric, plan)
        where = np.asarray(np.isnan(evaluated.values).any(axis=0))
        return MetricResult(
            evaluated.values, evaluated.moments, None, support, where, reasons_of(plan.names, evaluated.reasons)
        )


def _null_prediction(
    metric: FollowUpMetric, null: KaplanMeierNull | Literal["counted"], like: SurvivalCurves
) -> SurvivalCurves:
    """Return what is predicted for all individuals, read as the curves of the first model are, to be comparable."""
    if not isinstance(null, str):
        return SurvivalCurves(
            null.table(like.times), like.times, interpolation=like.interpolation, extrapolation="hold"
        )
    if metric.of_order:
        return constant_prediction()
    raise UnfitError(
        f"null='counted' is the share of one time, and metric {metric.name!r} looks at whole curves: say null=True, "
        "for the Kaplan-Meier curve, or null=False"
    )
