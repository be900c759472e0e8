"""The front door: what is given is checked and prepared once, for scores, comparisons, tables, reports and scale.

Evaluation (checked: outcomes, models, times, groups, metrics, weightings)
-> blocks of rows -> Sums           update, in NumPy, compiled, or by torch
-> Sums + Sums -> Sums              in any order
-> scores, then their moments       finish: Scored, numbers only
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._config import config
from survscore._utils.caching import cached_property
from survscore._utils.loops import compiles_vector
from survscore._utils.parallel import each
from survscore._validation import InputError, as_times, check_level
from survscore.curves import SurvivalCurves
from survscore.engine.averaging import averaging_weights, check_ranges
from survscore.engine.backends import Backend, Processor, choose
from survscore.engine.blocks import Block, Models, Predictions
from survscore.engine.bounds import AllBounds
from survscore.engine.histories import Histories
from survscore.engine.influence import MeanInfluences, mean_influences
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
from survscore.engine.moments import Moments, ScoredLoss, n_pairs
from survscore.engine.null import KaplanMeierNull, NullInfluence
from survscore.engine.placing import check_on_processor, placed
from survscore.engine.pooled import Look, PooledRequest, Visit
from survscore.engine.sums import Sums
from survscore.inference.support import Support
from survscore.inference.units import Groups, Units
from survscore.metrics import Direction, HistoryMetric, JointMetric, Loss, Metric, PooledMetric, Scale, as_metric
from survscore.outcomes import Outcomes
from survscore.weighting.stretches import Stretches, TimeIndex
from survscore.weighting.weightings import IPCW, Weighting, as_weighting

#: Multiplications that covariances over time may take unasked: some tenths of a second at most, on two cores.
ANY_RANGE_PRODUCTS = 1 << 30

Range = tuple[float | None, float | None]
Ranges = Sequence[Range] | Literal["any"] | None
Variances = Literal["both", "times", "means"]
OneOrMore = Any  # of what the name of the argument says


#: Values by model and time, what waits for their variances, and why there is no value, for how many times.
PooledScores = tuple[NDArray[np.float64], Callable[[], Moments] | None, dict[str, int]]


@dataclass(frozen=True, eq=False)
class Scored:
    """All models by one metric under one weighting. Numbers only, at the times that all models predict.

    Attributes
    ----------
    metric, weighting : str
        What was computed, in words.
    direction : {"lower", "higher", "closer to 1", "closer to 0"}
        Which values are better.
    scores : ndarray of shape (models, times)
    moments : Moments or None
        Variances of the scores and their differences; None where errors were not asked for.
    bounds : AllBounds or None
        What the lost could change, where somebody is lost.
    scale : {"plain", "log", "logit", "root", "none"}
        Where confidence intervals are made, if they are.
    weight_sums : ndarray of shape (times,)
        Sum of the weights.
    support : Support
        How many individuals, events and groups that rests on.
    undefined : dict
        Why scores are NaN, and for how many times.
    settings : dict
        The same in a form for machines.
    has_null : bool
        Whether the null model, where there is one, has scores by this metric.
    has_ratios : bool
        Whether ratios of scores mean something.
    """

    metric: str
    weighting: str
    direction: Direction
    scores: NDArray[np.float64]
    moments: Moments | None
    bounds: AllBounds | None
    scale: Scale
    weight_sums: NDArray[np.float64]
    support: Support
    undefined: dict[str, int]
    settings: dict[str, Any]
    has_null: bool = True
    has_ratios: bool = True


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Everything that a score needs, checked.

    Attributes
    ----------
    models : Models
        What each model predicts.
    times : ndarray
        The evaluation times; `index` has those that all models predict.
    index : TimeIndex
        Outcomes, and where their times fall.
    metrics, weightings : list
        What to compute, and under which weightings; `labels` are their names in results.
    null : KaplanMeierNull, "counted" or None
        The prediction that is the same for everybody, scored after the models: a curve, or the share of event-free
        among those counted, under each weighting its own.
    groups : Groups or None
        Who belongs together.
    level : float
        Of confidence intervals.
    averages : ndarray of shape (ranges, scored times)
        Means over time whose standard errors were asked for.
    any_range : bool
        Whether covariances over time are computed.
    errors : bool
        Whether standard errors are computed.
    unasked : bool
        Whether covariances over time are computed unasked where that is cheap: not for each of very many segments.
    variances : {"both", "times", "means"}
        Whether variances are needed at each time, of means over time, or both. Those of means of a pooled metric take
        memory for everybody.
    """

    models: Models
    times: NDArray[np.float64]
    index: TimeIndex
    metrics: list[Metric]
    weightings: list[Weighting]
    labels: list[str]
    null: KaplanMeierNull | Literal["counted"] | None
    groups: Groups | None
    level: float
    ranges: Ranges
    errors: bool
    far: dict[str, int]
    unasked: bool = True
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
        unasked: bool = True,
        variances: Variances = "both",
        needs_numpy: str = "",
    ) -> Evaluation:
        """Check what a user gave, and prepare what all metrics and weightings share.

        What goes on in NumPy with what was prepared says who it is by `needs_numpy`.
        """
        check_outcomes(y)
        named = as_models(models)
        for name, curves in named.items():
            check_predictions(y, curves, "curves" if list(named) == ["curves"] else f"the curves of {name!r}")
        if needs_numpy:
            check_on_processor(needs_numpy, y, named)
        check_level(level)
        metrics = [as_metric(one) for one in one_or_more(metric, Metric, "metric")]
        names = [one.name for one in metrics]
        if len(set(names)) < len(names):
            raise InputError("metric must name different metrics")
        of_history = [one.name for one in metrics if isinstance(one, HistoryMetric)]
        if of_history:
            check_on_processor(f"metric {of_history[0]!r}", y, named)
        weightings = [as_weighting(one, y) for one in one_or_more(weighting, Weighting, "weighting")]
        null = True if null is y else null
        device = None
        if not needs_numpy:
            y, named, weightings, device = placed(y, named, weightings)
        labels = distinct([one.label(y) for one in weightings])
        if null is not False and null_name(null) in named:
            raise InputError(
                f"models must not be called {null_name(null)!r}, the name of the null model; or say null=False"
            )
        grouping = None if groups is None else _groups(groups, len(y), device)
        if times is not None:
            wanted = as_times(times)
        elif of_history:  # each horizon is a work of its own
            wanted = default_horizon(y, named.values())
        else:
            wanted = default_times(y, named.values())
            if any(isinstance(one, PooledMetric) for one in metrics):  # at time 0 all have the same status
                wanted = wanted[1:]
                if wanted.size == 0:
                    raise InputError("nobody is followed beyond time 0: there is no time to look at")
        reached = np.logical_and.reduce([curves.reaches(wanted) for curves in named.values()])
        missing = int((~reached).sum())
        far = {where_they_end(named): missing} if missing else {}
        check_ranges(ranges)
        return cls(
            Models(named, len(y)), wanted, TimeIndex(y, wanted[reached]), metrics, weightings, labels,
            null_model(null, y), grouping, level, ranges, errors, far, unasked, variances,
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
    def _losses(self) -> list[Loss]:
        return [one for one in self.metrics if isinstance(one, Loss)]

    def run(self, visit: Callable[[int, Look], None] | None = None) -> list[Scored]:
        """Score all models by every metric under every weighting: for the first metric each weighting, and so on.

        Where metrics are pooled, `visit` is shown, by weighting, everything that these are computed of.
        """
        if self.index.times.size == 0:
            return self._nothing()
        summing = self.prepare()
        asked = self.errors and self.groups is None and not self._any_range(len(self.names)) and bool(summing.losses)
        ahead = len(self.names) if asked else 0
        total = summing.backend.sums(self._read, self.index, summing.losses, summing.every, ahead=ahead)
        return self.finish(summing, total, visit)

    def prepare(self) -> Summing:
        """Return how blocks of predictions become sums."""
        stretches = self._stretches()
        # beside each weighting with somebody lost, those of known status alone, for the bounds; these look twice
        lost = _with_lost(stretches) if self.models.repeatable else []
        known = {q: len(stretches) + place for place, q in enumerate(lost)}
        every = [*stretches, *(stretches[q].known(self.index.times.size) for q in known)]
        losses = self._losses
        return Summing(self.index, losses, stretches, every, known, self._backend(losses))

    def finish(self, summing: Summing, total: Sums, visit: Callable[[int, Look], None] | None = None) -> list[Scored]:
        """Return the scores that the sums over everybody make."""
        stretches, known, backend = summing.stretches, summing.known, summing.backend
        undefined = {metric.name: [self._undefined(metric, q, w, total) for q, w in enumerate(stretches)]
                     for metric in self.metrics if not isinstance(metric, HistoryMetric)}  # fmt: skip
        m = self.index.times.size
        counted = [backend.counted(one.population_stop, m) for one in stretches]
        units = [backend.units(one, self.groups, number) for one, number in zip(stretches, counted, strict=True)]
        results: dict[tuple[str, int], Callable[[], Scored]] = {}
        averages = {name: [self._averages([where, np.logical_or.reduce([one for one, _ in of_weightings])])
                           for where, _ in of_weightings] for name, of_weightings in undefined.items()}  # fmt: skip
        pooled: dict[int, dict[str, PooledScores]] = {}
        # a device makes moments while the processor prepares the next: first those that wait for it on their way
        order = sorted(range(len(stretches)), key=lambda q: stretches[q].nuisance is None)
        for metric in self.metrics:
            for q in order:
                weights = stretches[q]
                if isinstance(metric, HistoryMetric):
                    results[metric.name, q] = partial(self._of_history, metric, q, weights, total)
                    continue
                where, reasons = undefined[metric.name][q]
                if isinstance(metric, Loss):
                    found = self._of_loss(
                        metric, q, weights, total, known.get(q), counted[q], units[q], where,
                        averages[metric.name][q], backend,
                    )  # fmt: skip
                elif isinstance(metric, PooledMetric):
                    if q not in pooled:  # all of them together, since they have much in common
                        pooled[q] = self._of_pooled(
                            weights, units[q], {name: of[q][0] for name, of in undefined.items()},
                            {name: of[q] for name, of in averages.items()}, backend,
                            None if visit is None else partial(visit, q),
                        )  # fmt: skip
                    values, moments, told = pooled[q][metric.name]
                    reasons |= told
                    found = values, moments, None
                else:
                    raise InputError(f"metric {metric.name!r} is neither a Loss nor a PooledMetric nor a HistoryMetric")
                to_the_last = weights.last_stop is weights.population_stop
                of_known_status = counted[q] if to_the_last else backend.counted(weights.last_stop, m)
                event_free = of_known_status - total.events[q]
                support = self._support(total, q, event_free, counted[q], units[q], where)
                results[metric.name, q] = partial(self._scored, metric, q, total, *found, support, where, reasons)
        wanted = [results[metric.name, q] for metric in self.metrics for q in range(len(stretches))]
        # what is done only now is the work of histories
        by_itself = compiles_vector(self.models.n) and any(isinstance(one, HistoryMetric) for one in self.metrics)
        return each(lambda make: make(), wanted, threads=by_itself)

    def mean_influences(self) -> tuple[list[MeanInfluences], tuple[float, float]]:
        """Return everybody's influence on the mean score over time, by the first loss, under each weighting.

        Also the range of time: from the first time up to the first without score under any of the weightings.
        """
        loss, stretches = self._losses[0], self._stretches()
        backend = self._backend([loss])
        if not isinstance(backend, Processor):
            raise TypeError("everybody's influences are made in the processor's memory")
        total = backend.sums(self.models, self.index, [loss], stretches)
        undefined = [self._undefined(loss, q, one, total) for q, one in enumerate(stretches)]
        m = self.index.times.size
        worst = np.full(self.times.size, np.nan)
        worst[:m] = np.where(np.logical_or.reduce([where for where, _ in undefined]), np.nan, 0.0)
        reasons = [*dict.fromkeys(reason for _, several in undefined for reason in several), *self.far]
        weights, used_range = averaging_weights(self.times, worst, None, None, "stop", reasons)
        found = []
        for q, one in enumerate(stretches):
            counted = backend.counted(one.population_stop, m)
            scored = self._scored_loss(loss, q, one, total, counted, undefined[q][0])
            found.append(mean_influences(scored, self.models, weights[:m], compiled=backend.compiled))
        return found, used_range

    def _scored_loss(
        self,
        loss: Loss,
        q: int,
        weights: Stretches,
        total: Sums,
        counted: NDArray[np.float64],
        undefined: NDArray[np.bool_],
    ) -> ScoredLoss:
        constants = self._constants(np.where(undefined, np.nan, total.weights[:, q]))
        k = self._losses.index(loss)
        sums = with_constants(loss, total.losses[:, :, k, q], total.weights[:, q], constants, self.index.times)
        weight_sums = np.where(undefined, np.nan, total.weights[:, q])
        scored = ScoredLoss.of(
            self.index, loss, weights, constants, np.where(undefined, np.nan, sums), weight_sums, counted,
            by_n=self.weightings[q].normalize == "n",
        )  # fmt: skip
        if self.errors and isinstance(self.null, KaplanMeierNull):
            scored = replace(
                scored, null=NullInfluence.of(self.null, self.index.times, loss, weight_sums, scored.scale)
            )
        return scored

    def _stretches(self) -> list[Stretches]:
        """Return the weights; what is estimated takes the most memory while it is made, so it is made first."""
        estimated_first = sorted(range(len(self.weightings)), key=lambda q: self.weightings[q].name != IPCW.name)
        found = {}
        for q in estimated_first:
            found[q] = self.weightings[q].prepare(self.index)
            # standard errors ask what was estimated, and metrics that are made of it or know its variance
            if not self.errors and all(isinstance(one, Loss) for one in self.metrics):
                found[q] = replace(found[q], nuisance=None)
        return [found[q] for q in range(len(self.weightings))]

    def _backend(self, losses: Sequence[Loss]) -> Backend:
        """Return what runs the sums: torch where the predictions live, or the processor's loops by size."""
        return choose(self.index.outcomes.device, losses, self._n_cells)

    @property
    def _n_cells(self) -> int:
        """How many predictions are looked at."""
        return self.models.n * self.index.times.size * len(self.models.curves)

    @cached_property
    def _read(self) -> Models:
        """The models as they are passed over, time by time; only histories need whole curves."""
        once = not self.errors and len(self.metrics) == 1
        if once or all(isinstance(one, HistoryMetric) for one in self.metrics):
            return self.models
        return self.models.gathered(self.index.times, compiled=config.compiles(self._n_cells))

    def _of_loss(
        self,
        loss: Loss,
        q: int,
        weights: Stretches,
        total: Sums,
        known: int | None,
        counted: NDArray[np.float64],
        units: Units,
        undefined: NDArray[np.bool_],
        averages: NDArray[np.float64],
        backend: Backend,
    ) -> tuple[NDArray[np.float64], Callable[[], Moments] | None, AllBounds | None]:
        scored = self._scored_loss(loss, q, weights, total, counted, undefined)
        times, k, constants = self.index.times, self._losses.index(loss), scored.constants
        moments = None
        if self.errors:
            any_range = self._any_range(len(scored.scores))
            moments = backend.moments(
                scored, self._read, self.groups, units, averages, any_range=any_range,
                pointwise=self.variances != "means",
            )  # fmt: skip
        if known is None:
            return scored.scores, moments, None
        of_known = with_constants(loss, total.losses[:, :, k, known], total.weights[:, known], constants, times)
        bounds = backend.bounds(
            self.index, loss, weights, self._read, constants, of_known.sum(axis=0),
            total.weights[:, known].sum(axis=0), averages,
        )  # fmt: skip
        return scored.scores, moments, bounds

    def _constants(self, weights: NDArray[np.float64]) -> list[SurvivalCurves]:
        """Return the prediction of the null model, from the sums of weights by stretch and status."""
        if self.null is None or isinstance(self.null, KaplanMeierNull):
            return [] if self.null is None else [self.null.prediction(self.index.times)]
        with np.errstate(invalid="ignore"):
            share = weights[:2].sum(axis=0) / weights.sum(axis=0)
        # it may rise, where other people are counted later; where there is no score it does not matter
        return [SurvivalCurves(np.where(np.isnan(share), 1.0, share)[None], self.index.times, "step", monotone="keep")]

    def _of_pooled(
        self,
        weights: Stretches,
        units: Units,
        undefined: Mapping[str, NDArray[np.bool_]],
        averages: Mapping[str, NDArray[np.float64]],
        backend: Backend,
        visit: Visit | None,
    ) -> dict[str, PooledScores]:
        """Return values, variances, and why models have none, of all pooled metrics."""
        metrics = [one for one in self.metrics if isinstance(one, PooledMetric)]
        curves = list(_in_memory(self._read, metrics[0]))
        n_models = len(curves)
        if self.null is not None and any(one.scores_null for one in metrics):  # that tells nobody apart
            curves.append(SurvivalCurves(np.ones((1, 1)), np.zeros(1), "step", extrapolation="hold"))
        requests = []
        for metric in metrics:
            k = len(curves) if metric.scores_null else n_models
            of_means = averages[metric.name]
            requests.append(PooledRequest(metric, k, of_means, self._any_range(k), undefined[metric.name]))
        of_metrics = backend.pooled(
            requests, self.index, weights, curves, self.groups, units, errors=self.errors, visit=visit
        )
        found: dict[str, PooledScores] = {}
        for request, one in zip(requests, of_metrics, strict=True):
            values, moments = one.values, one.moments
            if request.n_models < len(self.names):
                values = np.concatenate((values, np.full((1, self.index.times.size), np.nan)))
                moments = None if moments is None else moments.and_one_without()
            made = None if moments is None else partial(_itself, moments)
            found[request.metric.name] = values, made, self._told(one.reasons)
        return found

    def _told(self, reasons: NDArray[np.object_]) -> dict[str, int]:
        """Return why models, the first axis, have no value at times, with their names where others have one."""
        told: dict[str, int] = {}
        for at_a_time in reasons.T:
            for reason in filter(None, dict.fromkeys(at_a_time)):
                whose = [name for name, one in zip(self.names, at_a_time, strict=False) if one == reason]
                key = reason if len(whose) == len(at_a_time) else f"{reason} ({', '.join(whose)})"
                told[key] = told.get(key, 0) + 1
        return told

    def _of_history(self, metric: HistoryMetric, q: int, weights: Stretches, total: Sums) -> Scored:
        histories = Histories.of(metric, self.weightings[q], self.index, weights)
        nowhere = np.zeros(self.index.times.size, dtype=np.bool_)
        found = histories.evaluate(
            metric, _in_memory(self.models, metric), self.null, self.groups, self._averages([nowhere]),
            any_range=self._any_range(len(self.names)), errors=self.errors,
        )  # fmt: skip
        where = np.asarray(np.isnan(found.values).any(axis=0))
        made = found.moments
        moments = None if made is None else lambda: made
        return self._scored(
            metric, q, total, found.values, moments, None, found.support, where, self._told(found.reasons)
        )

    def _scored(
        self,
        metric: Metric,
        q: int,
        total: Sums,
        scores: NDArray[np.float64],
        moments: Callable[[], Moments] | None,
        bounds: AllBounds | None,
        support: Support,
        undefined: NDArray[np.bool_],
        reasons: dict[str, int],
    ) -> Scored:
        return Scored(
            metric=metric.name,
            weighting=self.labels[q],
            direction=metric.direction,
            scores=scores,
            moments=None if moments is None else moments(),
            bounds=bounds,
            scale=metric.scale,
            weight_sums=np.where(undefined, np.nan, total.weights[:, q].sum(axis=0)),
            support=support,
            undefined={**reasons, **self.far},
            settings=self._settings(metric, q),
            has_null=self.null is not None and not (isinstance(metric, JointMetric) and not metric.scores_null),
            has_ratios=metric.has_ratios,
        )

    def _support(
        self,
        total: Sums,
        q: int,
        event_free: NDArray[np.float64],
        counted: NDArray[np.float64],
        units: Units,
        undefined: NDArray[np.bool_],
    ) -> Support:
        weight_sums = np.where(undefined, np.nan, total.weights[:, q].sum(axis=0))
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            n_effective = weight_sums**2 / total.squares[q]
        return Support(counted, n_effective, total.events[q], event_free, units, self.groups is not None)

    def _settings(self, metric: Metric, q: int) -> dict[str, Any]:
        from survscore._version import __version__

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

    def _any_range(self, k: int) -> bool:
        """Whether covariances over time are computed: asked for, or cheap. It goes by size alone."""
        if self.ranges == "any":
            return True
        if not self.unasked:
            return False
        return self.models.n * self.index.times.size**2 * n_pairs(k) <= ANY_RANGE_PRODUCTS

    def _averages(self, undefined: Sequence[NDArray[np.bool_]]) -> NDArray[np.float64]:
        """Return the means over time to be prepared, if any: over all times and over the ranges asked for.

        Each up to the first time without score, of the weighting itself, and of any.
        """
        m = self.index.times.size
        asked: list[Range] = [] if isinstance(self.ranges, str) or self.ranges is None else list(self.ranges)
        found: list[NDArray[np.float64]] = []
        for where in undefined if self.variances != "times" else ():
            values = np.full(self.times.size, np.nan)
            values[:m] = np.where(where, np.nan, 0.0)
            for lower, upper in [(None, None), *asked]:
                try:
                    weights, _ = averaging_weights(self.times, values, lower, upper, "stop", self.far)
                except InputError:  # nothing is left to average, which is told when it is asked for
                    continue
                if not any(np.array_equal(weights[:m], known) for known in found):
                    found.append(weights[:m])
        return np.array(found).reshape(len(found), m)

    def _undefined(
        self, metric: Metric, q: int, weights: Stretches, total: Sums
    ) -> tuple[NDArray[np.bool_], dict[str, int]]:
        subject = self.weightings[q].weights_for
        return undefined_times(metric, self.index.times, subject, weights, total.weights[:, q])

    def _nothing(self) -> list[Scored]:
        """Return results without times, where no model reaches any."""
        k, none = len(self.names), np.zeros(0)
        empty = Moments(np.zeros((n_pairs(k), 0)), np.zeros((0, 0)), np.zeros((n_pairs(k), 0)))
        nobody = Sums.zero(k, 1, len(self.weightings), 0)
        nowhere = np.zeros(0, dtype=np.bool_)
        nobody_there = Support(none, none, none, none, Units(none, none, none), self.groups is not None)
        moments = (lambda: empty) if self.errors else None
        return [
            self._scored(metric, q, nobody, np.zeros((k, 0)), moments, None, nobody_there, nowhere, {})
            for metric in self.metrics
            for q in range(len(self.weightings))
        ]


@dataclass(frozen=True, eq=False)
class Summing:
    """What is summed over blocks of predictions, pulled or pushed, and how.

    Attributes
    ----------
    index : TimeIndex
        Outcomes, and where their times fall.
    losses : list of Loss
        What a prediction costs.
    stretches : list of Stretches
        The weights; `every` holds, beside them, those of the individuals of known status, and `known` says where.
    backend : Backend
        What runs the sums.
    """

    index: TimeIndex
    losses: list[Loss]
    stretches: list[Stretches]
    every: list[Stretches]
    known: dict[int, int]
    backend: Backend

    def update(self, block: Block) -> Sums:
        """Return the sums over a block."""
        return self.backend.update(block, self.index, self.losses, self.every)


def _groups(labels: Any, n: int, device: Any) -> Groups:
    """Return who belongs together, where the individuals are."""
    if device is None:
        return Groups.of(labels, n)
    from survscore.engine.tensor_units import groups_of

    return groups_of(labels, n, device)


def undefined_times(
    metric: Metric,
    times: NDArray[np.float64],
    subject: str,
    weights: Stretches,
    weight_sums: NDArray[np.float64],
) -> tuple[NDArray[np.bool_], dict[str, int]]:
    """Return at which times there is nothing to say, and why, from the sums of weights by stretch and status."""
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
    if weights.blind_from is not None:
        blind = np.arange(times.size) >= weights.blind_from
        gone = "was censored" if subject == "censoring" else "dropped out"
        add(f"nobody is left but those with event, since the last {gone}", blind)
    infinite = ~np.isfinite(total)
    if weights.first_weight is not None:
        infinite |= ~np.isfinite(weights.first_weight)
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


def _itself(moments: Moments) -> Moments:
    return moments


def _with_lost(stretches: Sequence[Stretches]) -> list[int]:
    """Return which weightings have somebody lost."""
    return [q for q, one in enumerate(stretches) if one.lost_from is not None]


def with_constants(
    loss: Loss,
    sums: NDArray[np.float64],
    weights: NDArray[np.float64],
    constants: Sequence[SurvivalCurves],
    times: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the sums by stretch with those of predictions that are the same for everybody: only weights are needed."""
    added = []
    for constant in constants:
        survival = constant.at(times)[0]
        event_free, event = loss.of_event_free(survival), loss.of_event(survival)
        with np.errstate(invalid="ignore"):  # infinite weights make their times undefined
            added.append([event_free * weights[0], event_free * weights[1] + event * weights[2]])
    return np.concatenate((sums, np.array(added).transpose(1, 0, 2)), axis=1) if added else sums
