"""Metrics of all who are counted, taken together (AUC): values, and second moments from their influences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from survscore._utils import arrays
from survscore._utils.parallel import cached_property
from survscore._validation import UnfitError
from survscore.curves import SurvivalCurves
from survscore.engine.influence import Estimation, joint_covariance
from survscore.engine.moments import Moments, Totals, contrast, pairs
from survscore.engine.plan import Plan
from survscore.engine.prepared import MetricResult, WeightedSums, averages_of, reasons_of
from survscore.inference.units import Groups, InfluenceFactors, Units
from survscore.metrics import JointMetric, MetricSample, MetricValue, SampleMetric
from survscore.metrics.sample import CountedStatuses

Covariance = Callable[[NDArray[np.float64]], NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class PooledValues:
    """What a metric of all individuals taken together came to, by model and time."""

    values: NDArray[np.float64]  # Shape (models, times).
    moments: Moments | None  # Their variances, where errors were asked for.
    reasons: NDArray[np.object_]  # Why there is no value; nothing where there is. Shape (models, times).

    @classmethod
    def nothing(cls, n_models: int, n_times: int) -> PooledValues:
        """Return tables to be filled in."""
        return cls(np.full((n_models, n_times), np.nan), None, np.full((n_models, n_times), "", dtype=object))


@dataclass(frozen=True, eq=False)
class SquaredErrors:
    """Errors whose squares are part of the values of models (see `MetricValue.squared`)."""

    covariance: NDArray[np.float64]  # Shape (errors, errors).
    model: NDArray[np.intp]  # Whose they are. Shape (errors,).

    def mean(self, a: int) -> float:
        """Return what they add to the value of a model on average."""
        return float(np.diag(self.covariance)[self.model == a].sum())

    def variance(self, a: int, b: int) -> float:
        r"""Return the variance of a model's sum of squares, or of the difference of two models'.

        :math:`2\,\mathrm{tr}(D \Sigma D \Sigma)` for normal errors, with 1 and -1 on the diagonal of D.
        """
        sign = (self.model == a).astype(np.float64) - (0.0 if a == b else self.model == b)
        signed = sign[:, None] * self.covariance
        # of models that predict the same it is zero, and rounding may leave less
        return max(2.0 * float(np.sum(signed * signed.T)), 0.0)


@dataclass(frozen=True, eq=False)
class SampleView:
    """What there is to see of one model at one time."""

    #: Which they are.
    model: int
    time: int
    sample: MetricSample
    #: How many individuals are counted, or groups of them.
    n_units: float
    grouped: bool
    covariance: Covariance  # Turns influences of the sample on several numbers, (numbers, rows), into their covariance.


#: Is shown all models at all times, with the position of the weighting, so that nothing need be fitted again for
#: numbers that are no metrics.
OnSample = Callable[[int, SampleView], None]


@dataclass(frozen=True, eq=False)
class _AtTime:
    """Who is counted at one time, and what turns their influences into covariances."""

    place: int
    estimation: Estimation
    groups: Groups | None
    units: Units
    label: NDArray[np.int8]
    weight: NDArray[np.float64]
    counted: CountedStatuses

    @classmethod
    def of(cls, place: int, estimation: Estimation, groups: Groups | None, units: Units) -> _AtTime:
        """Take the weights at one of the times."""
        label, weight, event_free = estimation.statuses(place)
        counted = CountedStatuses.of(label, weight, event_free, estimation.index.counts)
        return cls(place, estimation, groups, units, label, weight, counted)

    def seen_by(self, metric: SampleMetric) -> _AtTime:
        """Return what a metric is made of: all who are counted, or those without another event."""
        return self._without_other_events if metric.leaves_out_other_events else self

    @cached_property
    def _without_other_events(self) -> _AtTime:
        if not self.estimation.index.outcomes.competing:
            return self
        _, _, without = self.estimation.statuses(self.place)
        event_free = self.estimation.event_free(self.place)
        counts = self.estimation.index.counts
        counted = CountedStatuses.against_event_free(self.label, self.weight, without, event_free, counts)
        return replace(self, counted=counted)

    @cached_property
    def source(self) -> tuple[Estimation, CountedStatuses]:
        """What influences are made of; the same tuple for all models that share it."""
        return self.estimation, self.counted

    @property
    def column(self) -> slice:
        """The time, as a range of columns."""
        return slice(self.place, self.place + 1)

    def view(self, model: int, sample: MetricSample) -> SampleView:
        """Return what is shown of a model."""
        n_units = float(self.units.counted[self.place])
        return SampleView(model, self.place, sample, n_units, self.groups is not None, self.covariance)

    def covariance(self, influence: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the covariance of several numbers; see `influence.joint_covariance`."""
        return _covariance([influence], [self])


def _covariance(several: Sequence[NDArray[np.float64]], at: Sequence[_AtTime]) -> NDArray[np.float64]:
    """Return the covariance of numbers of each model; see `influence.joint_covariance`."""
    factor = at[0].units.inflation[at[0].place]
    return joint_covariance(several, [at_time.source for at_time in at], at[0].column, at[0].groups, factor)


def _squared_errors(values: Sequence[MetricValue], at: Sequence[_AtTime]) -> SquaredErrors | None:
    """Return the errors whose squares are part of the values; None where there are none."""
    rows = [(value.squared, here) for value, here in zip(values, at, strict=True) if value.squared is not None]
    if not rows:
        return None
    n_errors = [0 if value.squared is None else len(value.squared) for value in values]
    return SquaredErrors(_covariance(*zip(*rows, strict=True)), np.repeat(np.arange(len(values)), n_errors))


class JointMoments:
    """Second moments of a metric of several individuals taken together, as influences at one time after another come.

    `steps` are Greenwood's weights of the curves that are estimated from others. By units, variances have n/(n - 1) of
    a mean whatever the metric says: where weights are estimated as in R's riskRegression, where statuses are fractions,
    and where sample weights are not counts.
    """

    def __init__(
        self,
        metric: JointMetric,
        n_models: int,
        n: int,
        groups: Groups | None,
        units: Units,
        averages: NDArray[np.float64],
        steps: NDArray[np.float64],
        by_units: bool,
        any_range: bool,
    ) -> None:
        self.metric, self.groups, self.units, self.steps, self.any_range = metric, groups, units, steps, any_range
        self.by_units = groups is not None or by_units
        self.factors: InfluenceFactors | None = None  # what sample weights multiply influences by
        m = averages.shape[1]
        n_units = n if groups is None else groups.n_groups
        self.totals = Totals(n_models, n_units, averages, np.ones((1, m)), any_range=any_range, whole=any_range)
        # covariances over time need all times at once
        self.influences = np.zeros((n_models, n_units, m)) if any_range else None
        self.jumps = np.zeros((n_models, steps.size, m)) if any_range else None
        self.added = np.zeros((len(self.totals.pairs), m))

    def add(
        self,
        j: int,
        deviations: NDArray[np.float64],
        influence: NDArray[np.float64],
        jumps: NDArray[np.float64],
        label: NDArray[np.int8],
        counted: NDArray[np.bool_],
        added: NDArray[np.float64] | float = 0.0,
        rows: NDArray[np.intp] | slice = slice(None),
    ) -> None:
        """Add the influences of all at time j, (models, individuals, 1), or those of some `rows` if others have none.

        `deviations` are those with what is estimated held fixed, `jumps` is X(s; t) at the jumps of `steps`, and
        `added` what comes on top of squared influences.
        """
        self.added[:, j] = added
        self.totals.inflation[:, j] = self.units.inflation[j]
        counts = None
        if self.factors is not None:
            factors = self.factors.of_rows(rows, slice(j, j + 1))
            deviations, influence = deviations * factors, influence * factors
            counts = None if self.by_units else self.factors.sample.values[rows]
        if not self.by_units:
            self.totals.inflation[:, j] = _inflation(
                self.metric, deviations, influence, label, counted, counts, self.units.inflation[j]
            )
        if self.groups is not None:
            codes = self.groups.codes[rows]
            by_group = [np.bincount(codes, of_model[:, 0], self.groups.n_groups) for of_model in influence]
            influence, rows = np.array(by_group, dtype=np.float64)[:, :, None], slice(None)
        if self.influences is not None and self.jumps is not None:
            self.influences[:, rows, j], self.jumps[:, :, j] = influence[:, :, 0], jumps[:, :, 0]
            return
        self._total(influence, jumps, slice(j, j + 1), rows)

    def _total(
        self,
        influences: NDArray[np.float64],
        jumps: NDArray[np.float64],
        columns: slice,
        units: NDArray[np.intp] | slice,
    ) -> None:
        self.totals.add(influences, columns, units)
        if self.steps.size:
            self.totals.add_jumps(slice(None), self.steps, jumps, columns)

    def finish(self) -> Moments:
        """Return the variances."""
        if self.influences is not None and self.jumps is not None:
            self._total(self.influences, self.jumps, slice(0, self.influences.shape[2]), slice(None))
        return self.totals.finish().with_added(self.added)


def _inflation(
    metric: JointMetric,
    deviations: NDArray[np.float64],
    influence: NDArray[np.float64],
    label: NDArray[np.int8],
    counted: NDArray[np.bool_],
    counts: NDArray[np.float64] | None,
    of_mean: float,
) -> list[float]:
    """Return the small-sample factors of a time, for every model and every difference of two."""
    factors = []
    for a, b in pairs(len(deviations)):
        weighted = {} if counts is None else {"counts": counts}
        more = metric.small_sample(contrast(deviations, a, b)[:, 0], label, counted, **weighted)
        if more is None:
            factors.append(of_mean)
            continue
        total = float(np.sum(np.square(contrast(influence, a, b))))
        factors.append(1.0 + more / total if total > 0 else 1.0 + 0.0 * more)
    return factors


def constant_prediction() -> SurvivalCurves:
    """Return what the null model predicts where only order counts: the same for all, without discrimination."""
    return SurvivalCurves(np.ones((1, 1)), np.zeros(1), interpolation="step", extrapolation="hold")


def _at(curves: SurvivalCurves, time: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Return the prediction for each individual at a time, in the processor's memory; one row may stand for all."""
    return np.broadcast_to(arrays.to_host(curves.at(time)[:, 0]), n)


def influences_of_sample(
    plan: Plan, metric: SampleMetric, weighted: WeightedSums
) -> Iterator[tuple[int, int, NDArray[np.float64]]]:
    """Yield the influences on a metric of all who are counted at a time, by model and time."""
    index, undefined = plan.index.numpy(), weighted.undefined[metric.name].where
    curves = [*plan.read_models.matrices(metric.name)]
    if plan.null is not None and metric.scores_null:
        curves.append(constant_prediction())
    estimations = weighted.estimations(index)
    for j in np.flatnonzero(~undefined).tolist():
        for a, of_model in enumerate(curves):
            estimation = estimations[a if len(estimations) > 1 else 0]
            counted = CountedStatuses.of(*estimation.statuses(j), counts=index.counts)
            survival = _at(of_model, index.times[j : j + 1], len(index.outcomes))
            value = metric.evaluate(counted.with_predictions(survival))
            if value.squared is not None:
                raise UnfitError(f"metric {metric.name!r} holds squares of errors, and has no influences by individual")
            if not value.reason and np.isfinite(value.value):
                yield a, j, estimation.of_counted(value.influence[None], counted, slice(j, j + 1))[1][0, :, 0]


@dataclass(frozen=True, eq=False)
class _Requested:
    """One of the metrics that are evaluated together, with its tables."""

    metric: SampleMetric
    #: For how many of the predictions, from the first on: the null model's is the last, and not all metrics score it.
    n_models: int
    #: Where there is nothing to say. Shape (times,).
    undefined: NDArray[np.bool_]
    values: PooledValues
    moments: JointMoments | None

    def put(self, of_models: Sequence[MetricValue], several: Sequence[_AtTime]) -> None:
        """Put what models have of the metric at a time into the tables, and add their influences to the moments."""
        at = [at_time.seen_by(self.metric) for at_time in several[: self.n_models]]
        first, j, counted = at[0], at[0].place, at[0].counted
        squares = _squared_errors(of_models, at)
        for a, value in enumerate(of_models):
            self.values.values[a, j] = value.value - (0.0 if squares is None else squares.mean(a))
            self.values.reasons[a, j] = value.reason
            if not value.reason and value.squared is not None and first.units.counted[j] <= 1:
                unit = "group" if first.groups is not None else "individual"  # a bias can't be taken off
                reason = f"only one {unit} is counted, so that the part of chance cannot be estimated"
                self.values.reasons[a, j] = reason
        if self.moments is None:
            return
        unseen = self.metric.unseen_variance(first.weight / first.estimation.mean_weight)
        # on top of squared influences, for every model and every difference of two
        of_squares = [0.0 if squares is None else squares.variance(a, b) for a, b in pairs(self.n_models)]
        added = np.array([0.0 if a == b else unseen for a, b in pairs(self.n_models)]) + of_squares
        if first.estimation.exits is None and counted.other is None:  # no other individual has any influence
            deviations = np.array([value.influence for value in of_models])[:, :, None]
            everybody, no_jumps = np.ones(len(counted), dtype=np.bool_), np.zeros((self.n_models, 0, 1))
            self.moments.add(j, deviations, deviations, no_jumps, counted.label, everybody, added, counted.rows)
            return
        influences = [
            at_time.estimation.of_counted(of_model.influence[None], at_time.counted, at_time.column)
            for at_time, of_model in zip(at, of_models, strict=True)
        ]
        of_all, influence, X = (np.concatenate(parts) for parts in zip(*influences, strict=True))
        self.moments.add(j, of_all, influence, X, first.label, first.weight > 0, added)


@dataclass(frozen=True, eq=False)
class SampleRunner:
    """Metrics of all who are counted at a time, taken together: they share what they look at.

    They are evaluated time by time, so that no matrix is made of large data, and predictions on a device come to the
    processor's memory one time at a time. All metrics of a model share one sample.
    """

    plan: Plan
    weightings: Sequence[WeightedSums]
    on_sample: OnSample | None = None

    def run(self, q: int) -> Mapping[str, MetricResult]:
        """Return values, variances, and why models have none, of all pooled metrics under one weighting."""
        plan, weighted = self.plan, self.weightings[q]
        metrics = [metric for metric in plan.metrics if isinstance(metric, SampleMetric)]
        if not metrics:
            return {}
        curves = plan.read_models.matrices(metrics[0].name)
        n_models, estimations = len(curves), weighted.estimations(plan.index)
        if plan.null is not None and any(metric.scores_null for metric in metrics):
            curves = [*curves, constant_prediction()]
        requests = [
            self._requested(metric, q, len(curves) if metric.scores_null else n_models, estimations[0])
            for metric in metrics
        ]
        n, times = len(plan.index.outcomes), plan.index.times
        for j in np.flatnonzero(~np.logical_and.reduce([request.undefined for request in requests])).tolist():
            here = [request for request in requests if not request.undefined[j]]
            several = [_AtTime.of(j, estimation, plan.host_groups, weighted.units) for estimation in estimations]
            # where each model has weights of its own, so has the null model, even if no metric scores it
            several = several if len(several) > 1 else several * len(curves)
            results: list[list[MetricValue]] = [[] for _ in here]
            for a, (of_model, at_time) in enumerate(zip(curves, several, strict=False)):
                survival = _at(of_model, times[j : j + 1], n)
                sample = at_time.counted.with_predictions(survival)
                if self.on_sample is not None:
                    self.on_sample(q, at_time.view(a, sample))
                for request, values in zip(here, results, strict=True):
                    if a < request.n_models:
                        own = at_time.seen_by(request.metric).counted
                        seen = sample if own is at_time.counted else own.with_predictions(survival)
                        values.append(request.metric.evaluate(seen))
            while here:  # what a metric needed is let go before the next one
                here.pop(0).put(results.pop(0), several)
        return {request.metric.name: self._result(request, weighted) for request in requests}

    def _requested(self, metric: SampleMetric, q: int, n_models: int, estimation: Estimation) -> _Requested:
        plan, weighted = self.plan, self.weightings[q]
        moments, groups, factors = None, plan.host_groups, estimation.factors
        if plan.errors:
            by_units = estimation.weights.hidden_share is not None
            by_units |= estimation.exits is not None and estimation.exits.martingale
            by_units |= factors is not None and not factors.sample.frequency
            sizes, averages = (n_models, len(plan.index.outcomes)), averages_of(plan, metric, q, self.weightings)
            moments = JointMoments(
                metric, *sizes, groups, weighted.units, averages, estimation.training_steps, by_units, plan.any_range
            )
            moments.factors = None if groups is not None else factors
        tables = PooledValues.nothing(n_models, plan.index.times.size)
        return _Requested(metric, n_models, weighted.undefined[metric.name].where, tables, moments)

    def _result(self, request: _Requested, weighted: WeightedSums) -> MetricResult:
        scores, moments = request.values.values, None if request.moments is None else request.moments.finish()
        if request.n_models < len(self.plan.names):  # the null model has no value
            scores = np.concatenate((scores, np.full((1, scores.shape[1]), np.nan)))
            moments = None if moments is None else moments.and_one_without()
        undefined = weighted.undefined[request.metric.name]
        reasons = {**undefined.reasons, **reasons_of(self.plan.names, request.values.reasons)}
        return MetricResult(scores, moments, None, weighted.support(undefined.where), undefined.where, reasons)
