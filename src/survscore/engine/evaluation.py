"""From what a user gives to numbers, in the order of the work.

    Evaluation.of    check outcomes, models, metrics, weightings; bring all to one place; resolve the times
    run              weights of each weighting -> sums of losses (first moments) -> each family of metrics: scores,
                     variances, bounds -> ScoreArrays, numbers only

The steps are in the modules `plan` and `prepared`, and in that of each family: `loss_scores`, `pooled`, `histories`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survscore._utils import arrays
from survscore._validation import UnfitError
from survscore._version import __version__
from survscore.engine.averaging import averaging_weights
from survscore.engine.blocks import Models, Predictions, PushedCurves
from survscore.engine.bounds import AllBounds
from survscore.engine.histories import FollowUpRunner
from survscore.engine.inputs import curves_read, reads_whole_curves
from survscore.engine.loss_scores import LossRunner, score_loss
from survscore.engine.moments import Moments, n_pairs
from survscore.engine.placing import device_memory
from survscore.engine.plan import Plan, Values
from survscore.engine.pooled import OnSample, SampleRunner, influences_of_sample
from survscore.engine.prepared import MetricResult, PartArrays, PreparedWeights, WeightedSums, undefined_under_any
from survscore.engine.second_moments import Influences, MeanInfluences, mean_influences
from survscore.engine.sensitivity import ThetaScores
from survscore.engine.sums import Sums
from survscore.inference.intervals import ANY_VALUE, Direction, PossibleRange, Scale
from survscore.inference.support import Support
from survscore.inference.units import Units
from survscore.metrics import FollowUpMetric, JointMetric, Loss, Metric, SampleMetric, cause_label, metric_label
from survscore.weighting.interval_weights import WeightSums

Runner = LossRunner | SampleRunner | FollowUpRunner  # computes all metrics of one family
#: A time is a grid point if it is no further from it than this share of the grid's step.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class InterpolationEffect:
    """By how much interpolation may have changed scores.

    Straight lines are above a convex curve for each individual alike. So even an error in the seventh decimal is
    significantly different from zero, and a model from itself on another grid.
    """

    changes: Values  # For each score, the null model's last. Shape (models, times).
    grids: tuple[int, ...]  # Models of the same number have the same grid and interpolation, so that none is favoured.

    def of(self, a: int, b: int) -> Values:
        """Return by how much the difference of two models may have changed, at each time; the null model is exact."""
        alike = max(a, b) >= len(self.grids) or self.grids[a] == self.grids[b]
        return np.asarray(0.0 * self.changes[a] if alike else self.changes[a] + self.changes[b])

    def exceeds(self, scores: Values, r: int) -> bool:
        """Whether some difference to model r is no larger than that."""
        changes = np.array([self.of(a, r) for a in range(len(scores))])
        return bool(((changes > 0) & (np.abs(scores - scores[r]) <= changes)).any())


@dataclass(frozen=True, eq=False)
class IndividualInfluences:
    """The influences on one metric under one weighting."""

    values: Values  # Zero where there is no score. Shape (models, n, times); the null model comes last.
    counted: NDArray[np.bool_]  # To whom the score refers. Shape (n, times).


@dataclass(frozen=True, eq=False)
class ScoreArrays:
    """All models by one metric under one weighting. Numbers only, at the times that all models predict."""

    #: What was computed, in words.
    metric: str
    weighting: str
    direction: Direction  # Which values are better.
    scores: Values  # Shape (models, times).
    moments: Moments | None  # Variances of the scores and their differences; None where errors were not asked for.
    bounds: AllBounds | None  # What the lost could change, where individuals are lost.
    scale: Scale  # Where confidence intervals are made, if they are.
    weight_sums: Values  # Sum of the weights. Shape (times,).
    support: Support  # On how many individuals, events and groups that is based.
    undefined: dict[str, int]  # Why scores are NaN, and for how many times.
    settings: dict[str, Any]  # The same in a form for machines.
    has_null: bool = True  # Whether the null model, where there is one, has scores by this metric.
    has_ratios: bool = True  # Whether ratios of scores mean something.
    #: The scores of those who could be followed to t, and of the others, where statuses are projected.
    parts: PartArrays | None = None
    possible: PossibleRange = ANY_VALUE  # The smallest and the largest possible score.
    #: Projected scores for other hazards of those with hidden status, where they were asked for.
    by_theta: ThetaScores | None = None
    #: What interpolation may have changed, where models are read on different interpolated.
    interpolation: InterpolationEffect | None = None

    @property
    def cause(self) -> str:
        """Under competing risks the cause that scores are of."""
        return str(self.settings.get("cause", ""))

    @property
    def label(self) -> str:
        """What is scored, in words."""
        return cause_label(metric_label(self.metric), self.cause)

    @property
    def title(self) -> str:
        """What is scored, which values are better, and under which weighting."""
        return f"{self.label} ({self.direction} is better); {self.weighting}"


class Evaluation(Plan):
    """A plan, carried out."""

    def run(self, on_sample: OnSample | None = None) -> list[ScoreArrays]:
        """Score all models by every metric under every weighting: for the first metric each weighting, and so on.

        Where metrics are pooled, `on_sample` is shown, by weighting, everything that these are computed of.
        """
        if self.index.times.size == 0:
            return self._nothing()
        with device_memory(self.index.outcomes.device):
            if self.terms:
                statuses = LossRunner.of_statuses(self)
                return self._with_interpolation(self._results([statuses], statuses.terms[0]))
            weights = self.prepare()
            return self._with_interpolation(self.finish(weights, weights.total(), on_sample))

    def _with_interpolation(self, result: list[ScoreArrays]) -> list[ScoreArrays]:
        """Return the scores with what interpolation may have changed, which intervals of differences allow for.

        The error of a straight line grows with the square of its length. On half as fine a grid it is at least twice as
        large, and three times by one of the two ways to halve it: so the change is no smaller than the error. That is
        how numerical integration estimates its error, by doubling the step. Of curves that are not smooth, it shows how
        rough they are. Where all models are read alike, none is favoured.
        """
        # metrics of the whole follow-up need whole curves
        metrics = [metric for metric in self.metrics if not isinstance(metric, FollowUpMetric)]
        if not self.errors or not metrics or not self.models.repeatable:
            return result
        kinds = [(curves.interpolation, curves.times.tobytes()) for curves in self.models.curves.values()]
        between = _read_between(self.models.curves, self.index.times)
        if len(set(kinds)) < 2 or not between.any():
            return result
        runs = [self._coarser(first, metrics).run() for first in (0, 1)]
        coarser = [{(scored.metric, scored.weighting): scored.scores for scored in run} for run in runs]

        def effect(scored: ScoreArrays) -> InterpolationEffect | None:
            name = scored.metric, scored.weighting
            if name not in coarser[0]:
                return None
            changes = np.nan_to_num(np.abs(np.array([scores[name] for scores in coarser]) - scored.scores)).max(axis=0)
            changes[: len(between)] *= between
            return InterpolationEffect(changes, tuple(map(kinds.index, kinds)))

        return [replace(scored, interpolation=effect(scored)) for scored in result]

    def _coarser(self, first: int, metrics: list[Metric]) -> Evaluation:
        """Return the same with curves that are read from every second of their grid points, without errors."""

        def thinned(plan: Plan) -> Plan:
            given, times = plan.models.curves, self.index.times
            coarser = {
                name: curves if isinstance(curves, PushedCurves) or not between.any() else curves.thinned(times, first)
                for (name, curves), between in zip(given.items(), _read_between(given, times), strict=True)
            }
            return replace(plan, models=Models(coarser, plan.models.n), errors=False, by_theta=False)

        terms = tuple(thinned(term) for term in self.terms)
        return replace(self, models=thinned(self).models, metrics=metrics, errors=False, by_theta=False, terms=terms)

    def prepare(self) -> PreparedWeights:
        """Return the weights, by which blocks of predictions become sums."""
        return PreparedWeights.of(self)

    def finish(self, weights: PreparedWeights, sums: Sums, on_sample: OnSample | None = None) -> list[ScoreArrays]:
        """Return the scores that the sums over all individuals make."""
        weightings = weights.finish(sums)
        runners: list[Runner] = [
            LossRunner(self, [weightings]),
            SampleRunner(self, weightings, on_sample),
            FollowUpRunner(self, weightings),
        ]
        return self._results(runners, weightings)

    def _results(self, runners: Sequence[Runner], weightings: Sequence[WeightedSums]) -> list[ScoreArrays]:
        results = [
            {name: result for runner in runners for name, result in runner.run(q).items()}
            for q in range(len(weightings))
        ]
        return [
            self._score_arrays(metric, q, weighted.weight_sums, results[q][metric.name], weighted.settings(metric))
            for metric in self.metrics
            for q, weighted in enumerate(weightings)
        ]

    def mean_influences(self) -> tuple[list[MeanInfluences], tuple[float, float]]:
        """Return each individual's influence on the mean score over time, by the first loss, under each weighting.

        Also the range of time: from the first time up to the first without score under any of the weightings.
        """
        weights = self.prepare()
        weightings, loss = weights.finish(weights.total()), self.losses[0]
        worst = self.defined(undefined_under_any(loss, weightings))
        reasons = [reason for weighted in weightings for reason in weighted.undefined[loss.name].reasons]
        averages, used_range = averaging_weights(
            self.times, worst, None, None, "stop", [*dict.fromkeys(reasons), *self.far]
        )
        averages = averages[: self.index.times.size]
        scored = [score_loss(self, 0, weighted) for weighted in weightings]
        return [mean_influences(loss_scores, self.read_models, averages) for loss_scores in scored], used_range

    def individual_influences(self) -> list[IndividualInfluences]:
        r"""Return all individuals' influences at the evaluation times, in the order of `run`.

        With these, a score is to first order the truth plus :math:`\sum_i \phi_i(t)`. What a curve that was fitted to
        other individuals varies is not in them.
        """
        weights = self.prepare()
        column, weightings = np.arange(self.index.times.size), weights.finish(weights.total())
        return [
            IndividualInfluences(
                self._influences(metric, weighted), column < arrays.to_host(weighted.first.population_index)[:, None]
            )
            for metric in self.metrics
            for weighted in weightings
        ]

    def _influences(self, metric: Metric, weighted: WeightedSums) -> Values:
        m = self.index.times.size
        values = np.zeros((len(self.names), len(self.index.outcomes), m))
        if isinstance(metric, FollowUpMetric):
            raise UnfitError(f"metric {metric.name!r} is of the whole follow-up, and has no influences at single times")
        if isinstance(metric, Loss):
            scored = score_loss(self, self.losses.index(metric), weighted)
            for rows, influences, _ in Influences(scored, self.read_models, slice(0, m)).blocks():
                for a, influence in enumerate(influences):
                    values[a, arrays.to_host(rows) if arrays.is_tensor(rows) else rows] = arrays.to_host(influence)
        elif isinstance(metric, SampleMetric):
            for a, j, influence in influences_of_sample(self, metric, weighted):
                values[a, :, j] = influence
        return values

    def _score_arrays(
        self, metric: Metric, q: int, sums: WeightSums, result: MetricResult, settings: Mapping[str, Any]
    ) -> ScoreArrays:
        return ScoreArrays(
            metric=metric.name,
            weighting=self.labels[q],
            direction=metric.direction,
            scores=result.scores,
            moments=result.moments,
            bounds=result.bounds,
            scale=metric.scale,
            weight_sums=np.where(result.undefined, np.nan, sums.weights.sum(axis=0)),
            support=result.support,
            undefined={**result.reasons, **self.far},
            settings={**self._settings(metric, q), **settings},
            has_null=self.null is not None and not (isinstance(metric, JointMetric) and not metric.scores_null),
            has_ratios=metric.has_ratios,
            parts=result.parts,
            possible=metric.of_statuses().possible if self.terms and isinstance(metric, Loss) else metric.possible,
            by_theta=result.by_theta,
        )

    def _settings(self, metric: Metric, q: int) -> dict[str, Any]:
        weighting = self.weightings[q]
        settings: dict[str, Any] = {
            "survscore": __version__,
            "metric": metric.name,
            "weighting": self.labels[q],
            "max_weight": getattr(weighting, "max_weight", None),
            "normalize": weighting.normalize,
            "variance": getattr(weighting, "variance", None),
            "curves": curves_read(self.models.curves, self.index.times, whole=reads_whole_curves([metric])),
        }
        y = self.index.outcomes
        if y.clock:
            settings["clock"] = y.clock
        if y.weights is not None:
            settings["sample_weights"] = y.weight_kind
        if y.n_individuals != len(y):
            settings["rows"] = len(y)
        if y.interest or self.terms:
            settings |= {"cause": self.cause, "causes": list(self.causes)}
        for name in ("epsilon", "threshold", "controls"):
            if getattr(metric, name, 0.0):
                settings[name] = getattr(metric, name)
        return settings

    def _nothing(self) -> list[ScoreArrays]:
        """Return results without times, where no model reaches any."""
        k, none = len(self.names), np.zeros(0)
        empty = Moments(np.zeros((n_pairs(k), 0)), np.zeros((0, 0)), np.zeros((n_pairs(k), 0)))
        support = Support(none, none, none, none, Units(none, none, none), self.groups is not None)
        moments = empty if self.errors else None
        result = MetricResult(np.zeros((k, 0)), moments, None, support, np.zeros(0, dtype=np.bool_), {})
        no_weights = WeightSums(np.zeros((3, 0)), none, none, np.zeros((1, 0)))
        return [
            self._score_arrays(metric, q, no_weights, result, {})
            for metric in self.metrics
            for q in range(len(self.weightings))
        ]


def _read_between(models: Mapping[str, Predictions], times: Values) -> NDArray[np.bool_]:
    """Return where models are read between grid points, and the user did not name how, (models, times)."""
    weights = np.array([curves.interpolate(times).weight for curves in models.values()])
    unnamed = np.array([curves.default_interpolation for curves in models.values()])
    return np.asarray(unnamed[:, None] & (np.minimum(weights, 1.0 - weights) > ROUNDING))
