"""The weights of a plan, the sums that predictions make with them, and where these make no score.

Blocks of predictions become `Sums` by `PreparedWeights`, all at once or as they come; `finish` makes of these, for each
weighting, the sums over all individuals and what they are based on. From there each family of metrics has its own
runner: losses in `loss_scores`, metrics of all who are counted at a time in `pooled`, of all that happened up to it
in `histories`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from survscore._utils import arrays
from survscore._utils.parallel import MANY_BLOCKS, each
from survscore.engine.blocks import Block
from survscore.engine.bounds import AllBounds
from survscore.engine.influence import Estimation
from survscore.engine.moments import Moments
from survscore.engine.plan import Plan, Values, Where
from survscore.engine.sums import ModelWeights, Sums, first_moments
from survscore.inference.support import Support
from survscore.inference.units import Units, n_eligible
from survscore.metrics import FollowUpMetric, JointMetric, Loss, Metric
from survscore.weighting import Weighting
from survscore.weighting.interval_weights import IntervalWeights, TimeIndex, WeightSums

if TYPE_CHECKING:
    from survscore.engine.sensitivity import ThetaScores


@dataclass(frozen=True, eq=False)
class Undefined:
    """Where a metric has no score under a weighting."""

    where: Where  # Shape (times,).
    reasons: dict[str, int]  # Why, and for how many times.


@dataclass(frozen=True, eq=False)
class KnownSums:
    """Sums over the individuals of known status alone, each with weight one, for the bounds."""

    losses: Values  # Of losses. Shape (models, losses, times).
    weights: Values  # Of weights, as in `WeightSums`. Shape (3, times).


@dataclass(frozen=True, eq=False)
class WeightedSums:
    """One weighting of an evaluation: its weights, the sums over all individuals, and what they are based on."""

    weighting: Weighting
    weights: ModelWeights
    #: Sums of the weights at each time, as `weights` has them; where statuses are projected, all are the last one's.
    each_sums: tuple[WeightSums, ...]
    losses: Values  # Weight times loss. Shape (2, models, losses, buckets, times).
    known: KnownSums | None  # None where no individual is lost.
    #: How many individuals the score describes, and the sum of their sample weights. Shape (times,).
    n_population: Values
    mass: Values
    n_known: Values  # Of how many of them the status is known. Shape (times,).
    units: Units  # On how many independent units that is.
    grouped: bool  # Whether these are groups.
    undefined: Mapping[str, Undefined]  # By metric; those of the follow-up find out themselves.

    @property
    def first(self) -> IntervalWeights:
        """The weights of the first model; where they differ by model, they do so by strata only."""
        return self.weights[0]

    @property
    def weight_sums(self) -> WeightSums:
        """Those of the first model."""
        return self.each_sums[0]

    def settings(self, metric: Metric) -> dict[str, Any]:
        """Return what the weighting adds to the settings of results by a metric."""
        if isinstance(metric, FollowUpMetric):  # see `histories`
            return self.weighting.without_predictions().settings([replace(self.first, weight_at_risk=None)])
        return self.weighting.settings(self.weights.each)

    def estimations(self, index: TimeIndex) -> list[Estimation]:
        """Return the weights, and what was estimated inside them, in the processor's memory; as `ModelWeights` does."""
        if index.outcomes.device is None:
            return [Estimation(index, weights) for weights in self.weights.each]
        index = index.numpy()
        return [Estimation(index, weights.numpy()) for weights in self.weights.each]

    def support(self, undefined: Where) -> Support:
        """Return on how many individuals, events and groups scores are based."""
        sums = self.weight_sums
        total = np.where(undefined, np.nan, sums.weights.sum(axis=0))
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            n_effective = total**2 / sums.squares
        n_event_free = self.n_known - sums.events
        hidden = self.first.hidden_share is not None and bool((self.n_known < self.n_population).any())
        units = replace(self.units, factors=None)  # results hold no data
        weighted = self.first.sample is not None and not self.first.sample.frequency
        numbers = self.n_population, n_effective, sums.events, n_event_free
        return Support(*numbers, units, self.grouped, hidden, weighted)


@dataclass(frozen=True, eq=False)
class PreparedWeights:
    """The weights of each weighting, ready for predictions, which are pulled or pushed block by block."""

    plan: Plan
    #: `every` holds, beside those of each weighting, those of the individuals of known status; `known` says where.
    weights: list[ModelWeights]
    every: list[ModelWeights]
    known: dict[int, int]

    @classmethod
    def of(cls, plan: Plan) -> PreparedWeights:
        """Prepare the weights."""
        arrays.keep_memory()
        weights = [model_weights(plan, weighting) for weighting in plan.weightings]
        # beside each weighting with lost individuals, those of known status alone, for the bounds, which look twice
        lost = [q for q, part in enumerate(weights) if part[0].dropout_index is not None and plan.models.repeatable]
        known = {q: len(weights) + place for place, q in enumerate(lost)}
        every = [*weights, *(ModelWeights((weights[q][0].known(plan.index.times.size),)) for q in known)]
        return cls(plan, weights, every, known)

    def total(self) -> Sums:
        """Return the sums over all individuals."""
        plan, m = self.plan, self.plan.index.times.size
        if not plan.losses and not any(weights.individual for part in self.every for weights in part.each):
            return Sums(tuple(np.zeros((2, 0, 0, 1, m)) for _ in self.every), tuple(None for _ in self.every))
        matrices = plan.read_models.in_memory
        if matrices is not None and plan.compiles(plan.losses, self.every):
            from survscore.engine import compiled

            return compiled.first_moments(matrices, plan.index, plan.losses, self.every)
        # as many blocks at once as keep all cores busy, but never more than one batch
        blocks, at_once = plan.read_models.blocks(m), 1 if matrices is None else MANY_BLOCKS
        several = iter(lambda: list(islice(blocks, at_once)), [])
        threads = plan.index.outcomes.device is None
        return reduce(Sums.__add__, chain.from_iterable(each(self.update, batch, threads=threads) for batch in several))

    def update(self, block: Block) -> Sums:
        """Return the sums over a block."""
        return first_moments(block, self.plan.index, self.plan.losses, self.every)

    def finish(self, sums: Sums) -> list[WeightedSums]:
        """Return what the sums over all individuals are for each weighting, and where they make no score."""
        sums = sums.numpy()
        return [self._finished(q, sums) for q in range(len(self.weights))]

    def _finished(self, q: int, sums: Sums) -> WeightedSums:
        plan, weights, m = self.plan, self.weights[q], self.plan.index.times.size
        if len(weights.each) == 1 or weights[0].hidden_share is not None:
            each_sums = (self._weight_sums(q, sums),) * len(weights.each)
        else:
            each_sums = tuple(of_model.sums(m) for of_model in weights.each)
        first, weight_sums = weights[0], each_sums[0]
        known = None
        if q in self.known:
            place = self.known[q]
            known = KnownSums(sums.losses[place].sum(axis=(0, 3)), self._weight_sums(place, sums).weights)
        sample = first.sample
        counts = None if sample is None else sample.counts
        n_population = n_known = mass = n_eligible(first.population_index, m, counts)
        if first.follow_up_index is not first.population_index:
            n_known = n_eligible(first.follow_up_index, m, counts)
        if sample is not None:
            mass = n_eligible(first.population_index, m, sample.values)
        units = Units.of(first.population_index, plan.host_groups, m, n_population, sample)
        weighting = plan.weightings[q]
        undefined = {
            metric.name: undefined_times(metric, plan.index.times, weighting.weights_for, first, weight_sums.weights)
            for metric in plan.metrics
            if not isinstance(metric, FollowUpMetric)
        }
        of_all = n_population, mass, n_known, units, plan.groups is not None
        return WeightedSums(weighting, weights, each_sums, sums.losses[q], known, *of_all, undefined)

    def _weight_sums(self, place: int, sums: Sums) -> WeightSums:
        """Return the sums of the weights, from the ranges alone where they follow from these.

        Where statuses are projected by other strata for each model, they are those of the null model.
        """
        known = sums.weights[place]
        return self.every[place].each[-1].sums(self.plan.index.times.size) if known is None else known


def model_weights(plan: Plan, weighting: Weighting) -> ModelWeights:
    """Return the weights under one of the weightings."""
    curves = plan.models.known_to(weighting, plan.index)
    several, sample = weighting.prepare_models(plan.index, curves, null=plan.null is not None), plan.index.sample
    weights = ModelWeights(tuple(several if sample is None else (replace(one, sample=sample) for one in several)))
    if plan.errors or any(not isinstance(metric, Loss) for metric in plan.metrics):
        return weights
    # standard errors ask what was estimated, and metrics that are made of it or know its variance
    return ModelWeights(tuple(replace(of_model, censoring_model=None) for of_model in weights.each))


def undefined_under_any(metric: Metric, weightings: Sequence[WeightedSums]) -> Where:
    """Return where a metric has no score under at least one of the weightings."""
    return np.asarray(np.logical_or.reduce([weighted.undefined[metric.name].where for weighted in weightings]))


def averages_of(plan: Plan, metric: Metric, q: int, weightings: Sequence[WeightedSums]) -> Values:
    """Return the means over time to be prepared: up to the first time without score under this weighting, and any."""
    return plan.averages([weightings[q].undefined[metric.name].where, undefined_under_any(metric, weightings)])


def undefined_times(
    metric: Metric, times: Values, subject: str, weights: IntervalWeights, weight_sums: Values
) -> Undefined:
    """Return at which times there is nothing to say, and why, from the sums of weights by range and status."""
    total = weight_sums.sum(axis=0)
    ends = {
        f"the {subject} curves end before": weights.survival,
        "the population curves end before": weights.population,
        "the reference curves end before": weights.reference_curves,
    }
    undefined = np.zeros(times.size, dtype=np.bool_)
    reasons: dict[str, int] = {}

    def add(reason: str, where: Where) -> None:
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
        add(weights.support_reason or f"only individuals with event are left{where}, since the last {gone}", beyond)
    infinite = ~np.isfinite(total)
    if weights.weight_at_risk is not None:
        infinite |= ~np.isfinite(weights.weight_at_risk).all(axis=0)
    if weights.population is not None:
        add("the population curves are zero for an individual who is counted", infinite)
    add(f"the {subject} survival is zero (a `max_weight` would bound the weights)", infinite)
    add("no individual has a positive weight", total == 0)
    if isinstance(metric, JointMetric) and metric.needs_both:
        without, with_event = weight_sums[:2].sum(axis=0), weight_sums[2]
        add("all who are counted have the same status", (without == 0) | (with_event == 0))
    return Undefined(undefined, reasons)


@dataclass(frozen=True, eq=False)
class PartArrays:
    """A projected score in two parts: share x observed + (1 - share) x projected."""

    #: The proportion of the individuals who could be followed to t, and of those among them who dropped out before t.
    #: Shape (times,).
    share: Values
    dropped_out: Values
    #: The score of those who could be followed, and of the others; NaN without individuals. Shape (models, times).
    observed: Values
    projected: Values

    def mean(self, of_parts: Values, weights: Values) -> Values:
        """Return means over time of a quantity of either part, (models, 2, times): (models, 2).

        Each time counts by its weight and the proportion that belongs to the part. With the same means of the
        proportions, the parts of the mean score add up to it.
        """
        sizes = np.stack((self.share, 1.0 - self.share)) * weights
        with np.errstate(invalid="ignore", divide="ignore"):  # NaN of a part without individuals
            return np.asarray(np.where(sizes > 0, of_parts * sizes, 0.0).sum(axis=-1) / sizes.sum(axis=-1))

    @property
    def scores(self) -> Values:
        """The scores of both parts, (models, 2, times)."""
        return np.stack((self.observed, self.projected), axis=1)


@dataclass(frozen=True, eq=False)
class MetricResult:
    """What a family computes of a metric under a weighting."""

    scores: Values  # Shape (models, times).
    #: As in `ScoreArrays`.
    moments: Moments | None
    bounds: AllBounds | None
    support: Support
    undefined: Where  # Where there is no score. Shape (times,).
    reasons: dict[str, int]  # Why, and for how many times.
    #: As in `ScoreArrays`.
    parts: PartArrays | None = None
    by_theta: ThetaScores | None = None


def reasons_of(names: Sequence[str], reasons: NDArray[np.object_]) -> dict[str, int]:
    """Return why models, the first axis, have no value at times, with their names where others have one."""
    counts: dict[str, int] = {}
    for at_a_time in reasons.T:
        for reason in filter(None, dict.fromkeys(at_a_time)):
            whose = [name for name, own_reason in zip(names, at_a_time, strict=False) if own_reason == reason]
            key = reason if len(whose) == len(at_a_time) else f"{reason} ({', '.join(whose)})"
            counts[key] = counts.get(key, 0) + 1
    return counts
