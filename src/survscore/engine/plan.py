"""The plan of an evaluation: what a user gave, validated, with the times resolved, and everything in one place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._config import config
from survscore._utils import arrays
from survscore._utils.parallel import cached_property
from survscore._validation import InputError, UnfitError, as_labels, as_times, check_level
from survscore.causes import ALL_CAUSES, ALL_STATUSES
from survscore.engine.averaging import Range, Ranges, averaging_weights, check_ranges
from survscore.engine.blocks import GivenPredictions, Models, Predictions, PushedCurves
from survscore.engine.inputs import (
    Null,
    as_models,
    check_outcomes,
    check_predictions,
    distinct,
    null_model,
    null_name,
    of_cause,
    one_or_more,
    where_they_end,
    without_equal_weights,
)
from survscore.engine.null import KaplanMeierNull
from survscore.engine.placing import check_on_processor, placed
from survscore.engine.sums import ModelWeights
from survscore.engine.times import default_horizon, default_times
from survscore.incidence import IncidenceCurves
from survscore.inference.units import Groups
from survscore.metrics import FollowUpMetric, Loss, Metric, SampleMetric, as_metric
from survscore.outcomes import Outcomes
from survscore.weighting import Weighting, as_weighting
from survscore.weighting.interval_weights import TimeIndex

Variances = Literal["both", "times", "means"]
OneOrMore = Any  # of what the name of the argument says
Values = NDArray[np.float64]
Where = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything that a score needs, checked."""

    models: Models  # What each model predicts.
    times: Values  # The evaluation times; `index` has those that all models predict.
    index: TimeIndex  # Outcomes, and where their times fall.
    #: What to compute, and under which weightings; `labels` are their names in results.
    metrics: list[Metric]
    weightings: list[Weighting]
    labels: list[str]
    #: The prediction that is the same for all individuals, scored after the models: a curve, or the share of event-free
    #: among those counted, under each weighting its own.
    null: KaplanMeierNull | Literal["counted"] | None
    groups: Groups | None  # The groups of the individuals.
    level: float  # Of confidence intervals.
    #: Over which ranges of time means are asked for, beside the whole; "any": covariances over time are computed.
    ranges: Ranges
    errors: bool  # Whether standard errors are computed.
    far: dict[str, int]  # Why there are no scores after the last time of `index`.
    #: Whether variances are needed at each time, of means over time, or both. Those of means of a pooled metric take
    #: memory for all individuals.
    variances: Variances = "both"
    by_theta: bool = False  # Whether projected scores are computed for other hazards of those with hidden status, too.
    #: Of multi-class scores, which are sums over statuses: the plan of event-free, and one of each cause.
    terms: tuple[Plan, ...] = ()
    causes: tuple[str, ...] = ()  # The names of all causes, under competing risks.

    @classmethod
    def of(
        cls,
        y: Outcomes,
        models: Mapping[str, GivenPredictions] | Iterable[tuple[str, GivenPredictions]],
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
        by_theta: bool = False,
        needs_numpy: str = "",
    ) -> Self:
        """Check what a user gave, and prepare what all metrics and weightings share.

        A caller that goes on in NumPy with what was prepared says who it is by `needs_numpy`.
        """
        # validate
        null = True if null is y else null
        y, models = of_cause(y, models, times=times, multiclass=True)
        y = without_equal_weights(y)
        if y.interest == ALL_STATUSES:
            asked = {"weighting": weighting, "times": times, "groups": groups, "level": level, "ranges": ranges}
            asked |= {"errors": errors, "variances": variances, "by_theta": by_theta, "needs_numpy": needs_numpy}
            return cls._of_statuses(y, models, metric, null=null, **asked)
        check_outcomes(y)
        named = as_models(models)
        for name, curves in named.items():
            check_predictions(y, curves, "curves" if list(named) == ["curves"] else f"the curves of {name!r}")
        if needs_numpy:
            check_on_processor(needs_numpy, y, named)
        check_level(level)
        check_ranges(ranges)
        metrics = [as_metric(given) for given in one_or_more(metric, Metric, "metric")]
        _check_metrics(metrics, y, named)
        weightings = [as_weighting(given, y) for given in one_or_more(weighting, Weighting, "weighting")]
        pushed = any(isinstance(model, PushedCurves) for model in named.values())
        if y.weights is not None and not bool((y.weights > 0).all()):  # who has no weight has no part
            if pushed:
                raise InputError("weights must be above zero where predictions are pushed in batches")
            rows = arrays.to_host(arrays.positions(y.weights > 0))
            weightings, metrics = [one.of_rows(rows) for one in weightings], [one.of_rows(rows) for one in metrics]
            with_rows = {name: one for name, one in named.items() if not isinstance(one, PushedCurves)}
            y, named = y[rows], {name: one[rows] for name, one in with_rows.items()}
            groups = None if groups is None else as_labels(groups, "groups")[rows]
        # predictions are not there, or not used
        if pushed or all(isinstance(chosen, FollowUpMetric) for chosen in metrics):
            weightings = [chosen.without_predictions() for chosen in weightings]
        # bring to one place
        if not needs_numpy:
            y, named, weightings = placed(y, named, weightings)
        labels = distinct([chosen.label(y) for chosen in weightings])
        if null is not False and null_name(null, y) in named:
            raise InputError(
                f"models must not be called {null_name(null, y)!r}, the name of the null model; or say `null=False`"
            )
        grouping = None if groups is None else Groups.of(groups, len(y)).beside(y.time)
        # resolve the times
        wanted = _evaluation_times(y, named, metrics, times)
        reached = np.logical_and.reduce([curves.reaches(wanted) for curves in named.values()])
        missing = int((~reached).sum())
        far = {where_they_end(named, y): missing} if missing else {}
        index = TimeIndex(y, wanted[reached])
        computed = metrics, weightings, labels, null_model(null, y), grouping
        of_all = Models(named, len(y))
        return cls(of_all, wanted, index, *computed, level, ranges, errors, far, variances, by_theta, causes=y.causes)

    @classmethod
    def _of_statuses(
        cls, y: Outcomes, models: Mapping[str, IncidenceCurves], metric: OneOrMore, *, null: Any, **settings: Any
    ) -> Self:
        """Plan scores of event-free against all causes: those of event-free, and as further terms those of causes."""
        losses = [as_metric(given) for given in one_or_more(metric, Metric, "metric")]
        for loss in losses:
            if not isinstance(loss, Loss):
                raise UnfitError(
                    f"metric {loss.name!r} has no multi-class form, which cause='all' asks for: it is of one cause at "
                    "a time"
                )
        statuses = [loss.of_statuses() for loss in losses if isinstance(loss, Loss)]
        nulls, of_any = [null] * len(y.causes), null
        if isinstance(null, Outcomes):  # of the same place, if there are as many causes
            named = null.causes if len(null.causes) == len(y.causes) else y.causes
            nulls, of_any = [null.for_cause(cause) for cause in named], null.any_event()
        event_free = {name: curves.event_free() for name, curves in models.items()}
        losses_of_any = [status.event_free for status in statuses]
        first = cls.of(y.any_event(), event_free, metric=losses_of_any, null=of_any, **settings)
        if any(weighting.theta not in (None, 1) for weighting in first.weightings):
            raise UnfitError("theta is not available for cause='all': it multiplies the hazard of one cause")
        settings = {**settings, "metric": [status.cause for status in statuses], "times": first.times}
        others = [
            cls.of(y.for_cause(cause), models, null=own, **settings) for cause, own in zip(y.causes, nulls, strict=True)
        ]
        return replace(first, metrics=losses, terms=(first, *others), causes=y.causes)

    @property
    def cause(self) -> str:
        """Under competing risks the cause that scores are of; all of them for multi-class scores."""
        return ALL_CAUSES if self.terms else self.index.outcomes.chosen_cause

    @property
    def names(self) -> tuple[str, ...]:
        """The models, the null model last."""
        return (*self.models.curves, *(() if self.null is None else (self.null_name,)))

    @property
    def null_name(self) -> str | None:
        """What the null model is called in results."""
        if self.terms:
            return self.terms[-1].null_name
        return None if self.null is None else null_name(self.null, self.index.outcomes)

    @property
    def losses(self) -> list[Loss]:
        """Those of the metrics that are losses."""
        return [metric for metric in self.metrics if isinstance(metric, Loss)]

    @property
    def any_range(self) -> bool:
        """Whether covariances over time are asked for."""
        return self.ranges == "any"

    @cached_property
    def host_groups(self) -> Groups | None:
        """Who belongs together, in the processor's memory."""
        return None if self.groups is None else replace(self.groups, codes=arrays.to_host(self.groups.codes))

    @cached_property
    def read_models(self) -> Models:
        """The models as they are passed over, time by time; only metrics of the follow-up need whole curves."""
        once = not self.errors and len(self.metrics) == 1
        if once or all(isinstance(metric, FollowUpMetric) for metric in self.metrics):
            return self.models
        return self.models.gathered(self.index.times)

    def compiles(self, losses: Sequence[Loss], weights: Sequence[ModelWeights]) -> bool:
        """Whether compiled code pays, by size alone, and knows these losses and weights."""
        n_cells = self.models.n * self.index.times.size * len(self.models.curves)
        if self.index.outcomes.device is not None or not config.compiles(n_cells):
            return False
        from survscore.engine import compiled

        return compiled.knows(losses, weights)

    def averages(self, undefined: Iterable[Where]) -> Values:
        """Return the means over time to be prepared, if any: over all times and over the ranges asked for.

        Each up to the first time without score; `undefined` says where there is none, perhaps in several ways.
        """
        m = self.index.times.size
        asked: list[Range] = [] if self.ranges is None or isinstance(self.ranges, str) else list(self.ranges)
        averages: list[Values] = []
        for where in undefined if self.variances != "times" and self.times.size > 1 else ():
            for lower, upper in [(None, None), *asked]:
                try:
                    weights, _ = averaging_weights(self.times, self.defined(where), lower, upper, "stop", self.far)
                except InputError:  # nothing is left to average, which raises an error when it is asked for
                    continue
                if not any(np.array_equal(weights[:m], known) for known in averages):
                    averages.append(weights[:m])
        return np.array(averages).reshape(len(averages), m)

    def defined(self, undefined: Where) -> Values:
        """Return 0 at the times with score, NaN at others: where one is undefined, or not all models predict."""
        values = np.full(self.times.size, np.nan)
        values[: undefined.size] = np.where(undefined, np.nan, 0.0)
        return values


def _check_metrics(metrics: Sequence[Metric], y: Outcomes, models: Mapping[str, Any]) -> None:
    """Raise unless these are different metrics of the kinds that are known, and tensors suit them."""
    if len({metric.name for metric in metrics}) < len(metrics):
        raise InputError("metric must name different metrics")
    for metric in metrics:
        if not isinstance(metric, (Loss, SampleMetric, FollowUpMetric)):
            raise InputError(f"metric {metric.name!r} is neither a Loss nor a SampleMetric nor a FollowUpMetric")
        if isinstance(metric, FollowUpMetric):
            check_on_processor(f"metric {metric.name!r}", y, models)


def _evaluation_times(
    y: Outcomes, models: Mapping[str, Predictions], metrics: Sequence[Metric], times: ArrayLike | None
) -> Values:
    """Return the times asked for, or default ones."""
    if times is not None:
        return as_times(times)
    if any(isinstance(metric, FollowUpMetric) for metric in metrics):  # each horizon is a work of its own
        return default_horizon(y, models)
    wanted = default_times(y, models)
    if any(isinstance(metric, SampleMetric) for metric in metrics):  # at time 0 all have the same status
        wanted = wanted[wanted > 0]
        if wanted.size == 0:
            raise InputError("no individual is followed beyond time 0, so there are no evaluation times")
    return wanted
