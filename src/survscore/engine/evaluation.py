"""From what a user gives to numbers, in the order of the work.

    Evaluation.of    check outcomes, models, metrics, weightings; resolve the times; bring everything to one place
    run              weights of each weighting -> sums of losses (first moments) -> each family of metrics: scores,
                     variances, bounds -> ScoreArrays, numbers only

Losses are computed from sums over blocks of rows; metrics of all who are counted at a time (`pooled`), and of all that
happened up to it (`histories`), from the individuals at each time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._config import config
from survscore._utils import arrays
from survscore._utils.parallel import cached_property
from survscore._validation import InputError, as_times, check_level
from survscore._version import __version__
from survscore.curves import SurvivalCurves
from survscore.engine.averaging import averaging_weights, check_ranges
from survscore.engine.blocks import Block, Models, Predictions
from survscore.engine.bounds import AllBounds, bounds_of
from survscore.engine.histories import Histories
from survscore.engine.influence import Estimation
from survscore.engine.inputs import (
    Null,
    as_models,
    check_outcomes,
    check_predictions,
    default_horizon,
    default_times,
    distinct,
    null_model,
    null_name,
    one_or_more,
    where_they_end,
)
from survscore.engine.moments import Moments, n_pairs
from survscore.engine.null import KaplanMeierNull, NullInfluence
from survscore.engine.placing import check_on_processor, device_memory, placed
from survscore.engine.pooled import SampleRequest, SampleView, evaluate_pooled
from survscore.engine.second_moments import MeanInfluences, ScoredLoss, mean_influences, second_moments
from survscore.engine.sums import ModelWeights, Sums, first_moments
from survscore.inference.intervals import Direction, Scale
from survscore.inference.support import Support
from survscore.inference.units import Groups, Units, n_eligible
from survscore.metrics import FollowUpMetric, JointMetric, Loss, Metric, SampleMetric, as_metric
from survscore.outcomes import Outcomes
from survscore.weighting import Weighting, as_weighting
from survscore.weighting.interval_weights import IntervalWeights, TimeIndex, WeightSums

Range = tuple[float | None, float | None]
Ranges = Sequence[Range] | Literal["any"] | None
Variances = Literal["both", "times", "means"]
OneOrMore = Any  # of what the name of the argument says
Values = NDArray[np.float64]
OnSample = Callable[[int, SampleView], None]


@dataclass(frozen=True, eq=False)
class ScoreArrays:
    """All models by one metric under one weighting. Numbers only, at the times that all models predict."""

    #: What was computed, in words.
    metric: str
    weighting: str
    #: Which values are better.
    direction: Direction
    #: Shape (models, times).
    scores: Values
    #: Variances of the scores and their differences; None where errors were not asked for.
    moments: Moments | None
    #: What the lost could change, where somebody is lost.
    bounds: AllBounds | None
    #: Where confidence intervals are made, if they are.
    scale: Scale
    #: Sum of the weights. Shape (times,).
    weight_sums: Values
    #: On how many individuals, events and groups that is based.
    support: Support
    #: Why scores are NaN, and for how many times.
    undefined: dict[str, int]
    #: The same in a form for machines.
    settings: dict[str, Any]
    #: Whether the null model, where there is one, has scores by this metric.
    has_null: bool = True
    #: Whether ratios of scores mean something.
    has_ratios: bool = True


@dataclass(frozen=True, eq=False)
class MetricResult:
    """What one family of metrics computes of a metric under a weighting."""

    #: Shape (models, times).
    scores: Values
    #: As in `ScoreArrays`.
    moments: Moments | None
    bounds: AllBounds | None
    support: Support
    #: Where there is no score. Shape (times,).
    undefined: NDArray[np.bool_]
    #: Why, and for how many times.
    reasons: dict[str, int]


@dataclass(frozen=True, eq=False)
class Prepared:
    """One weighting of an evaluation, prepared: its weights, their sums, and what they are based on."""

    weighting: Weighting
    weights: ModelWeights
    #: Sums of the weights at each time.
    sums: WeightSums
    #: How many individuals the score describes. Shape (times,).
    n_population: Values
    #: Of how many of them the status is known. Shape (times,).
    n_known: Values
    #: On how many independent units that is.
    units: Units

    @property
    def first(self) -> IntervalWeights:
        """The weights of the first model; where they differ by model, they do so by strata only."""
        return self.weights[0]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Everything that a score needs, checked."""

    #: What each model predicts.
    models: Models
    #: The evaluation times; `index` has those that all models predict.
    times: Values
    #: Outcomes, and where their times fall.
    index: TimeIndex
    #: What to compute, and under which weightings; `labels` are their names in results.
    metrics: list[Metric]
    weightings: list[Weighting]
    labels: list[str]
    #: The prediction that is the same for everybody, scored after the models: a curve, or the share of event-free among
    #: those counted, under each weighting its own.
    null: KaplanMeierNull | Literal["counted"] | None
    #: Who belongs together.
    groups: Groups | None
    #: Of confidence intervals.
    level: float
    #: Over which ranges of time means are asked for, beside the whole; "any": covariances over time are computed.
    ranges: Ranges
    #: Whether standard errors are computed.
    errors: bool
    #: Why there are no scores after the last time of `index`.
    far: dict[str, int]
    #: Whether variances are needed at each time, of means over time, or both. Those of means of a pooled metric take
    #: memory for everybody.
    variances: Variances = "both"

    @classmethod
    def of(
        cls,
        y: Outcomes,
        models: Mapping[str, Predictions] | Iterable[tuple[str, Predictions]],
        *,
        metric: OneOrMore = "brier",
        weighting: OneOrMore = None,
        times: ArrayLike | None = None,
        null: Null = False,
        groups: ArrayLike | None = None,
        level: float = 0.95,
        ranges: Ranges = None,
        errors: bool = True,
        variances: Variances = "both",
        needs_numpy: str = "",
    ) -> Evaluation:
        """Check what a user gave, and prepare what all metrics and weightings share.

        A caller that goes on in NumPy with what was prepared says who it is by `needs_numpy`.
        """
        check_outcomes(y)
        named = as_models(models)
        for name, curves in named.items():
            check_predictions(y, curves, "curves" if list(named) == ["curves"] else f"the curves of {name!r}")
        if needs_numpy:
            check_on_processor(needs_numpy, y, named)
        check_level(level)
        check_ranges(ranges)
        metrics = [as_metric(one) for one in one_or_more(metric, Metric, "metric")]
        _check_metrics(metrics, y, named)
        weightings = [as_weighting(one, y) for one in one_or_more(weighting, Weighting, "weighting")]
        null = True if null is y else null
        if not needs_numpy:
            y, named, weightings = placed(y, named, weightings)
        labels = distinct([one.label(y) for one in weightings])
        if null is not False and null_name(null) in named:
            raise InputError(
                f"models must not be called {null_name(null)!r}, the name of the null model; or say null=False"
            )
        grouping = None if groups is None else Groups.of(groups, len(y)).beside(y.time)
        wanted = _evaluation_times(y, named, metrics, times)
        reached = np.logical_and.reduce([curves.reaches(wanted) for curves in named.values()])
        missing = int((~reached).sum())
        far = {where_they_end(named): missing} if missing else {}
        index = TimeIndex(y, wanted[reached])
        return cls(
            Models(named, len(y)), wanted, index, metrics, weightings, labels, null_model(null, y), grouping, level,
            ranges, errors, far, variances,
        )  # fmt: skip

    @property
    def names(self) -> tuple[str, ...]:
        """The models, the null model last."""
        return (*self.models.curves, *(() if self.null is None else (self.null_name,)))

    @property
    def null_name(self) -> str | None:
        """What the null model is called in results."""
        return None if self.null is None else null_name(self.null)

    @property
    def losses(self) -> list[Loss]:
        """Those of the metrics that are losses."""
        return [one for one in self.metrics if isinstance(one, Loss)]

    def run(self, on_sample: OnSample | None = None) -> list[ScoreArrays]:
        """Score all models by every metric under every weighting: for the first metric each weighting, and so on.

        Where metrics are pooled, `on_sample` is shown, by weighting, everything that these are computed of.
        """
        if self.index.times.size == 0:
            return self._nothing()
        with device_memory(self.index.outcomes.device):
            plan = self.prepare()
            return self.finish(plan, plan.total(self._read), on_sample)

    def prepare(self) -> ScorePlan:
        """Return how blocks of predictions become sums."""
        weights = [self._weights(one) for one in self.weightings]
        # beside each weighting with somebody lost, those of known status alone, for the bounds, which look twice
        lost = [q for q, one in enumerate(weights) if one[0].dropout_index is not None and self.models.repeatable]
        known = {q: len(weights) + place for place, q in enumerate(lost)}
        every = [*weights, *(ModelWeights((weights[q][0].known(self.index.times.size),)) for q in known)]
        return ScorePlan(self.index, self.losses, weights, every, known, self._n_cells)

    def finish(self, plan: ScorePlan, sums: Sums, on_sample: OnSample | None = None) -> list[ScoreArrays]:
        """Return the scores that the sums over everybody make."""
        sums = sums.numpy()
        weight_sums = plan.weight_sums(sums)
        prepared = [self._prepared(plan, q, weight_sums[q]) for q in range(len(self.weightings))]
        undefined = [
            [self._undefined(metric, one) for one in prepared] if not isinstance(metric, FollowUpMetric) else []
            for metric in self.metrics
        ]
        results: dict[tuple[str, int], MetricResult] = {}
        for q, one in enumerate(prepared):
            results |= self._of_losses(plan, sums, weight_sums, q, one, undefined)
            results |= self._of_pooled(q, one, undefined, on_sample)
            results |= self._of_histories(q, one)
        return [
            self._scored(metric, q, prepared[q].sums, results[metric.name, q])
            for metric in self.metrics
            for q in range(len(self.weightings))
        ]

    def mean_influences(self) -> tuple[list[MeanInfluences], tuple[float, float]]:
        """Return everybody's influence on the mean score over time, by the first loss, under each weighting.

        Also the range of time: from the first time up to the first without score under any of the weightings.
        """
        loss, plan = self.losses[0], self.prepare()
        sums = plan.total(self.models).numpy()
        weight_sums = plan.weight_sums(sums)
        prepared = [self._prepared(plan, q, weight_sums[q]) for q in range(len(self.weightings))]
        undefined = [self._undefined(loss, one) for one in prepared]
        m = self.index.times.size
        worst = np.full(self.times.size, np.nan)
        worst[:m] = np.where(np.logical_or.reduce([where for where, _ in undefined]), np.nan, 0.0)
        reasons = [*dict.fromkeys(reason for _, several in undefined for reason in several), *self.far]
        weights, used_range = averaging_weights(self.times, worst, None, None, "stop", reasons)
        scored = [self._scored_loss(0, one, sums.losses[q], undefined[q][0]) for q, one in enumerate(prepared)]
        return [mean_influences(one, self.models, weights[:m]) for one in scored], used_range

    # Weights

    def _weights(self, weighting: Weighting) -> ModelWeights:
        curves = [one for one in self.models.curves.values() if isinstance(one, SurvivalCurves)]
        weights = ModelWeights(tuple(weighting.prepare_models(self.index, curves)))
        if self.errors or any(not isinstance(one, Loss) for one in self.metrics):
            return weights
        # standard errors ask what was estimated, and metrics that are made of it or know its variance
        return ModelWeights(tuple(replace(one, censoring_model=None) for one in weights.each))

    def _prepared(self, plan: ScorePlan, q: int, sums: WeightSums) -> Prepared:
        weights, m = plan.weights[q], self.index.times.size
        first = weights[0]
        n_population = n_eligible(first.population_index, m)
        known = first.follow_up_index is first.population_index or first.hidden_share is not None
        n_known = n_population if known else n_eligible(first.follow_up_index, m)
        groups, stop = self._host_groups, first.population_index
        units = Units.of(stop if groups is None else arrays.to_host(stop), groups, m, n_population)
        return Prepared(self.weightings[q], weights, sums, n_population, n_known, units)

    @cached_property
    def _host_groups(self) -> Groups | None:
        """Who belongs together, in the processor's memory."""
        return None if self.groups is None else replace(self.groups, codes=arrays.to_host(self.groups.codes))

    def _undefined(self, metric: Metric, one: Prepared) -> tuple[NDArray[np.bool_], dict[str, int]]:
        return undefined_times(metric, self.index.times, one.weighting.weights_for, one.first, one.sums.weights)

    def _support(self, one: Prepared, undefined: NDArray[np.bool_]) -> Support:
        total = np.where(undefined, np.nan, one.sums.weights.sum(axis=0))
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            n_effective = total**2 / one.sums.squares
        n_events = one.sums.events
        return Support(
            one.n_population, n_effective, n_events, one.n_known - n_events, one.units, self.groups is not None
        )

    # Losses

    def _of_losses(
        self,
        plan: ScorePlan,
        sums: Sums,
        weight_sums: Sequence[WeightSums],
        q: int,
        one: Prepared,
        undefined: Sequence[Sequence[tuple[NDArray[np.bool_], dict[str, int]]]],
    ) -> dict[tuple[str, int], MetricResult]:
        """Return scores, variances and bounds of all losses under one weighting."""
        found = {}
        for k, loss in enumerate(self.losses):
            of_weightings = undefined[self.metrics.index(loss)]
            where, reasons = of_weightings[q]
            averages = self._averages([where, np.logical_or.reduce([other for other, _ in of_weightings])])
            scored = self._scored_loss(k, one, sums.losses[q], where)
            moments = bounds = None
            if self.errors:
                moments = variances_of(
                    scored, self._read, self.groups, one.units, averages, any_range=self.ranges == "any",
                    n_cells=self._n_cells,
                )  # fmt: skip
            if q in plan.known:
                known = plan.known[q]
                weights = weight_sums[known].weights
                losses = sums.losses[known][:, :, k].sum(axis=(0, 2))
                bounds = bounds_of(
                    self.index, loss, one.first, self._read, scored.constants,
                    with_constants(loss, losses, weights, scored.constants, self.index.times), weights.sum(axis=0),
                    averages,
                )  # fmt: skip
            found[loss.name, q] = MetricResult(
                scored.scores, moments, bounds, self._support(one, where), where, dict(reasons)
            )
        return found

    def _scored_loss(self, k: int, one: Prepared, sums: Values, undefined: NDArray[np.bool_]) -> ScoredLoss:
        """Return the scores of the k-th loss under one weighting, and what turns losses into deviations."""
        loss, times = self.losses[k], self.index.times
        weight_sums = np.where(undefined, np.nan, one.sums.weights)
        constants = self._constants(weight_sums)
        ranges = np.where(undefined, np.nan, sums[:, :, k])  # (2, models, buckets, times)
        losses = with_constants(loss, ranges.sum(axis=(0, 2)), weight_sums, constants, times)
        by_n = one.weighting.normalize == "n"
        total = weight_sums.sum(axis=0)
        divisor = np.where(np.isnan(total), np.nan, one.n_population) if by_n else total
        with np.errstate(invalid="ignore", divide="ignore"):
            scores = losses / divisor
        defined = np.asarray(np.isfinite(scores).all(axis=0))
        scale = np.where(defined, 1.0 / np.where(defined, divisor, 1.0), 0.0)
        centre = np.zeros_like(scores) if by_n else np.where(defined, scores, 0.0)
        offset = np.where(defined, scores, 0.0) * scale if by_n else np.zeros_like(scores)
        weights = one.weights if defined.all() else ModelWeights(tuple(_finite(w, defined) for w in one.weights.each))
        scored = ScoredLoss(self.index, loss, weights, constants, scores, centre, scale, offset, ())
        if not self.errors:
            return scored
        if isinstance(self.null, KaplanMeierNull):
            null = NullInfluence.of(self.null, times, loss, weight_sums, scale)
            scored = replace(scored, null=null)
        return replace(scored, moving_totals=moving_totals(scored, ranges, one.sums, defined))

    def _constants(self, weights: Values) -> list[SurvivalCurves]:
        """Return the prediction of the null model, from the sums of weights by range and status."""
        if self.null is None or isinstance(self.null, KaplanMeierNull):
            return [] if self.null is None else [self.null.prediction(self.index.times)]
        with np.errstate(invalid="ignore"):
            share = weights[:2].sum(axis=0) / weights.sum(axis=0)
        # it may increase, where others are counted later; where there is no score it does not matter
        return [SurvivalCurves(np.where(np.isnan(share), 1.0, share)[None], self.index.times, "step", monotone="keep")]

    # Other metrics

    def _of_pooled(
        self,
        q: int,
        one: Prepared,
        undefined: Sequence[Sequence[tuple[NDArray[np.bool_], dict[str, int]]]],
        on_sample: OnSample | None,
    ) -> dict[tuple[str, int], MetricResult]:
        """Return values, variances, and why models have none, of all pooled metrics: they share what they look at."""
        metrics = [metric for metric in self.metrics if isinstance(metric, SampleMetric)]
        if not metrics:
            return {}
        curves = list(_in_memory(self._read, metrics[0]))
        n_models = len(curves)
        if self.null is not None and any(metric.scores_null for metric in metrics):  # which discriminates nobody
            curves.append(SurvivalCurves(np.ones((1, 1)), np.zeros(1), "step", extrapolation="hold"))
        requests = []
        for metric in metrics:
            of_weightings = undefined[self.metrics.index(metric)]
            averages = self._averages(
                [of_weightings[q][0], np.logical_or.reduce([where for where, _ in of_weightings])]
            )
            k = len(curves) if metric.scores_null else n_models
            requests.append(SampleRequest(metric, k, averages, self.ranges == "any", of_weightings[q][0]))
        found = evaluate_pooled(
            requests, self._estimation(q, one), curves, self._host_groups, one.units, errors=self.errors,
            on_sample=None if on_sample is None else lambda view: on_sample(q, view),
        )  # fmt: skip
        results = {}
        for request, values in zip(requests, found, strict=True):
            scores, moments = values.values, values.moments
            if request.n_models < len(self.names):
                scores = np.concatenate((scores, np.full((1, self.index.times.size), np.nan)))
                moments = None if moments is None else moments.and_one_without()
            where, reasons = undefined[self.metrics.index(request.metric)][q]
            results[request.metric.name, q] = MetricResult(
                scores, moments, None, self._support(one, where), where, {**reasons, **self._reasons(values.reasons)}
            )
        return results

    def _of_histories(self, q: int, one: Prepared) -> dict[tuple[str, int], MetricResult]:
        """Return metrics of all that happened up to each time."""
        results = {}
        for metric in self.metrics:
            if isinstance(metric, FollowUpMetric):
                histories = Histories.of(metric, one.weighting, self._estimation(q, one))
                averages = self._averages([np.zeros(self.index.times.size, dtype=np.bool_)])
                found = histories.evaluate(
                    metric, _in_memory(self.models, metric), self.null, self._host_groups, averages,
                    any_range=self.ranges == "any", errors=self.errors,
                )  # fmt: skip
                where = np.asarray(np.isnan(found.values).any(axis=0))
                results[metric.name, q] = MetricResult(
                    found.values, found.moments, None, found.support, where, self._reasons(found.reasons)
                )
        return results

    def _estimation(self, q: int, one: Prepared) -> Estimation:
        """Return the weights, and what was estimated inside them, in the processor's memory."""
        if self.index.outcomes.device is None:
            return Estimation(self.index, one.first)
        index = TimeIndex(self.index.outcomes.numpy(), self.index.times)
        return Estimation(index, self.weightings[q].numpy().prepare(index))

    def _reasons(self, reasons: NDArray[np.object_]) -> dict[str, int]:
        """Return why models, the first axis, have no value at times, with their names where others have one."""
        found: dict[str, int] = {}
        for at_a_time in reasons.T:
            for reason in filter(None, dict.fromkeys(at_a_time)):
                whose = [name for name, one in zip(self.names, at_a_time, strict=False) if one == reason]
                key = reason if len(whose) == len(at_a_time) else f"{reason} ({', '.join(whose)})"
                found[key] = found.get(key, 0) + 1
        return found

    # Results

    def _scored(self, metric: Metric, q: int, sums: WeightSums, found: MetricResult) -> ScoreArrays:
        return ScoreArrays(
            metric=metric.name,
            weighting=self.labels[q],
            direction=metric.direction,
            scores=found.scores,
            moments=found.moments,
            bounds=found.bounds,
            scale=metric.scale,
            weight_sums=np.where(found.undefined, np.nan, sums.weights.sum(axis=0)),
            support=found.support,
            undefined={**found.reasons, **self.far},
            settings=self._settings(metric, q),
            has_null=self.null is not None and not (isinstance(metric, JointMetric) and not metric.scores_null),
            has_ratios=metric.has_ratios,
        )

    def _settings(self, metric: Metric, q: int) -> dict[str, Any]:
        weighting = self.weightings[q]
        grids = list(self.models.curves.values())
        settings: dict[str, Any] = {
            "survscore": __version__,
            "metric": metric.name,
            "weighting": self.labels[q],
            "max_weight": getattr(weighting, "max_weight", None),
            "normalize": weighting.normalize,
            "variance": getattr(weighting, "variance", None),
            "interpolation": grids[0].interpolation,
            "extrapolation": grids[0].extrapolation,
        }
        for name in ("epsilon", "threshold"):
            if getattr(metric, name, 0.0):
                settings[name] = getattr(metric, name)
        return settings

    @property
    def _n_cells(self) -> int:
        """How many predictions are looked at."""
        return self.models.n * self.index.times.size * len(self.models.curves)

    @cached_property
    def _read(self) -> Models:
        """The models as they are passed over, time by time; only histories need whole curves."""
        once = not self.errors and len(self.metrics) == 1
        if once or all(isinstance(one, FollowUpMetric) for one in self.metrics):
            return self.models
        return self.models.gathered(self.index.times)

    def _averages(self, undefined: Sequence[NDArray[np.bool_]]) -> Values:
        """Return the means over time to be prepared, if any: over all times and over the ranges asked for.

        Each up to the first time without score, of the weighting itself, and of any.
        """
        m = self.index.times.size
        asked: list[Range] = [] if isinstance(self.ranges, str) or self.ranges is None else list(self.ranges)
        found: list[Values] = []
        for where in undefined if self.variances != "times" and self.times.size > 1 else ():
            values = np.full(self.times.size, np.nan)
            values[:m] = np.where(where, np.nan, 0.0)
            for lower, upper in [(None, None), *asked]:
                try:
                    weights, _ = averaging_weights(self.times, values, lower, upper, "stop", self.far)
                except InputError:  # nothing is left to average, which is said when it is asked for
                    continue
                if not any(np.array_equal(weights[:m], known) for known in found):
                    found.append(weights[:m])
        return np.array(found).reshape(len(found), m)

    def _nothing(self) -> list[ScoreArrays]:
        """Return results without times, where no model reaches any."""
        k, none = len(self.names), np.zeros(0)
        empty = Moments(np.zeros((n_pairs(k), 0)), np.zeros((0, 0)), np.zeros((n_pairs(k), 0)))
        support = Support(none, none, none, none, Units(none, none, none), self.groups is not None)
        found = MetricResult(
            np.zeros((k, 0)), empty if self.errors else None, None, support, np.zeros(0, dtype=np.bool_), {}
        )
        nobody = WeightSums(np.zeros((3, 0)), none, none, np.zeros((1, 0)))
        return [self._scored(metric, q, nobody, found) for metric in self.metrics for q in range(len(self.weightings))]


@dataclass(frozen=True, eq=False)
class ScorePlan:
    """What is summed over blocks of predictions, pulled or pushed, and how."""

    #: Outcomes, and where their times fall.
    index: TimeIndex
    #: What a prediction costs.
    losses: list[Loss]
    #: The weights; `every` holds, beside them, those of the individuals of known status, and `known` says where.
    weights: list[ModelWeights]
    every: list[ModelWeights]
    known: dict[int, int]
    #: How many predictions there are, by which it is decided whether compiled code pays.
    n_cells: int

    def total(self, models: Models) -> Sums:
        """Return the sums over all individuals."""
        if not self.losses and not any(one.individual for part in self.every for one in part.each):
            m = self.index.times.size
            return Sums(tuple(np.zeros((2, 0, 0, 1, m)) for _ in self.every), tuple(None for _ in self.every))
        if self._compiled and models.in_memory is not None:
            from survscore.engine import compiled

            return compiled.first_moments(models.in_memory, self.index, self.losses, self.every)
        return reduce(Sums.__add__, map(self.update, models.blocks(self.index.times.size)))

    def update(self, block: Block) -> Sums:
        """Return the sums over a block."""
        return first_moments(block, self.index, self.losses, self.every)

    def weight_sums(self, sums: Sums) -> list[WeightSums]:
        """Return the sums of the weights, from the ranges alone where these tell them."""
        m = self.index.times.size
        return [
            part[0].sums(m) if known is None else known for part, known in zip(self.every, sums.weights, strict=True)
        ]

    @property
    def _compiled(self) -> bool:
        return can_compile(self.index, self.losses, self.every, self.n_cells)


def can_compile(index: TimeIndex, losses: Sequence[Loss], weights: Sequence[ModelWeights], n_cells: int) -> bool:
    """Whether compiled code pays, by size alone, and knows these losses and weights."""
    if index.outcomes.device is not None or not config.compiles(n_cells):
        return False
    from survscore.engine import compiled

    return compiled.knows(losses, weights)


def variances_of(
    scored: ScoredLoss,
    models: Models,
    groups: Groups | None,
    units: Units,
    averages: Values,
    *,
    any_range: bool,
    n_cells: int,
) -> Moments:
    """Return the variances of one loss under one weighting, compiled where that pays."""
    matrices = None if any_range else models.in_memory
    if matrices is not None and can_compile(scored.index, [scored.loss], [scored.weights], n_cells):
        from survscore.engine import compiled

        return compiled.second_moments(scored, matrices, groups, units, averages)
    return second_moments(scored, models, groups, units, averages, any_range=any_range)


def moving_totals(scored: ScoredLoss, ranges: Values, sums: WeightSums, defined: NDArray[np.bool_]) -> list[Values]:
    """Return for each model, by stratum, the sum of the deviations whose weights move with the estimated curve.

    Those of weights from the curves of each individual are summed later, when their cells are at hand. `ranges` holds
    sums of weight times loss in the first range and the second, (2, models, buckets, times); of capped weights, buckets
    behind those of the strata.
    """
    found = []
    m = scored.index.times.size
    n_models = ranges.shape[1]
    sums_of: dict[int, tuple[Values, Values]] = {}
    for a in range(len(scored.scores)):
        weights = scored.weights[a]
        at_risk, projects = weights.weight_at_risk, weights.hidden_share is not None
        if weights.censoring_model is None or projects or weights.individual or at_risk is None:
            found.append(np.zeros((weights.n_strata, m)))
            continue
        if id(weights) not in sums_of:
            sums_of[id(weights)] = _moving_weights(weights, sums, m)
        early, late = sums_of[id(weights)]  # sums of moving weights, (strata, statuses, times)
        if a < n_models:
            k = weights.n_strata
            if weights.capped:
                moves = at_risk < weights.max_weight
                losses = np.where(moves, ranges[0, a, :k] + ranges[0, a, k : 2 * k], 0.0) + ranges[1, a, :k]
            else:
                losses = ranges[:, a, :k].sum(axis=0)
        else:
            event_free, with_event = scored.constant_losses(scored.constants[a - n_models])
            with np.errstate(invalid="ignore"):  # infinite weights make their times undefined
                losses = early * event_free + late[:, 0] * event_free + late[:, 1] * with_event
        with np.errstate(invalid="ignore"):
            total = (losses - (early + late.sum(axis=1)) * scored.centre[a]) * scored.scale
        found.append(np.where(defined, total, 0.0))
    return found


def _moving_weights(weights: IntervalWeights, sums: WeightSums, m: int) -> tuple[Values, Values]:
    """Return the sums of the weights that move, in the first range (strata, times), and by status in the second."""
    if weights.weight_at_risk is None:
        raise TypeError("weights come from the curves of each individual")
    if weights.codes is None and not weights.capped:
        return sums.weights[:1], sums.weights[None, 1:]
    early, late = np.zeros((weights.n_strata, m)), np.zeros((weights.n_strata, 2, m))
    moves = weights.weight_at_risk < weights.max_weight
    for k in range(weights.n_strata):
        inside = weights if weights.codes is None else weights.rows(arrays.positions(weights.codes == k))
        inside = replace(inside, codes=None, weight_at_risk=weights.weight_at_risk[k : k + 1])
        early[k] = np.where(moves[k], inside.sums(m).weights[0], 0.0)
        late[k] = inside.rows(arrays.positions(inside.weight_at_event < weights.max_weight)).sums(m).weights[1:]
    return early, late


def _finite(weights: IntervalWeights, defined: NDArray[np.bool_]) -> IntervalWeights:
    """Return weights without infinite ones, which no zero can take back."""
    at_risk = None if weights.weight_at_risk is None else np.where(defined, weights.weight_at_risk, 0.0)
    return replace(weights, weight_at_risk=at_risk, weight_at_event=arrays.finite_or_zero(weights.weight_at_event))


def _check_metrics(metrics: Sequence[Metric], y: Outcomes, models: Mapping[str, Any]) -> None:
    """Raise unless these are different metrics of the kinds that are known, and tensors suit them."""
    if len({one.name for one in metrics}) < len(metrics):
        raise InputError("metric must name different metrics")
    for one in metrics:
        if not isinstance(one, (Loss, SampleMetric, FollowUpMetric)):
            raise InputError(f"metric {one.name!r} is neither a Loss nor a SampleMetric nor a FollowUpMetric")
        if isinstance(one, FollowUpMetric):
            check_on_processor(f"metric {one.name!r}", y, models)


def _evaluation_times(
    y: Outcomes, models: Mapping[str, Predictions], metrics: Sequence[Metric], times: ArrayLike | None
) -> Values:
    """Return the times asked for, or default ones."""
    if times is not None:
        return as_times(times)
    if any(isinstance(one, FollowUpMetric) for one in metrics):  # each horizon is a work of its own
        return default_horizon(y, models.values())
    wanted = default_times(y, models.values())
    if any(isinstance(one, SampleMetric) for one in metrics):  # at time 0 all have the same status
        wanted = wanted[1:]
        if wanted.size == 0:
            raise InputError("nobody is followed beyond time 0: there is no time to look at")
    return wanted


def undefined_times(
    metric: Metric,
    times: Values,
    subject: str,
    weights: IntervalWeights,
    weight_sums: Values,
) -> tuple[NDArray[np.bool_], dict[str, int]]:
    """Return at which times there is nothing to say, and why, from the sums of weights by range and status."""
    total = weight_sums.sum(axis=0)
    ends = {
        f"the {subject} curves end before": weights.survival,
        "the population curves end before": weights.population,
    }
    undefined = np.zeros(times.size, dtype=np.bool_)
    reasons: dict[str, int] = {}

    def add(reason: str, where: NDArray[np.bool_]) -> None:
        nonlocal undefined
        fresh = where & ~undefined
        if fresh.any():
            reasons[reason] = int(fresh.sum())
            undefined = undefined | fresh

    for reason, curves in ends.items():
        if curves is not None:
            add(reason, ~curves.reaches(times))
    if weights.support_end is not None:
        beyond = np.arange(times.size) >= weights.support_end
        gone = "was censored" if subject == "censoring" else "dropped out"
        where = "" if weights.n_strata == 1 else " in a stratum"
        add(f"nobody is left{where} but those with event, since the last {gone}", beyond)
    infinite = ~np.isfinite(total)
    if weights.weight_at_risk is not None:
        infinite |= ~np.isfinite(weights.weight_at_risk).all(axis=0)
    if weights.population is not None:
        add("the population curves are zero for somebody who is counted", infinite)
    add(f"the {subject} survival is zero (a max_weight would bound the weights)", infinite)
    add("nobody has a weight", total == 0)
    if isinstance(metric, JointMetric) and metric.needs_both:
        without, with_event = weight_sums[:2].sum(axis=0), weight_sums[2]
        add("all who are counted have the same status", (without == 0) | (with_event == 0))
    return undefined, reasons


def _in_memory(models: Models, metric: Metric) -> Sequence[SurvivalCurves]:
    matrices = models.in_memory
    if matrices is None:
        raise InputError(f"{metric.name} needs all predictions at once, not batches")
    return matrices


def with_constants(
    loss: Loss, sums: Values, weights: Values, constants: Sequence[SurvivalCurves], times: Values
) -> Values:
    """Return sums of losses with those of predictions that are the same for everybody: only weights are needed."""
    added = []
    for constant in constants:
        survival = constant.at(times)[0]
        with np.errstate(invalid="ignore"):  # infinite weights make their times undefined
            added.append(loss.of_event_free(survival) * weights[:2].sum(axis=0) + loss.of_event(survival) * weights[2])
    return np.concatenate((sums, np.array(added))) if added else sums
