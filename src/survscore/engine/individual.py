"""Each individual's influence on scores, for what is made of several evaluations that share individuals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from survscore._utils import arrays
from survscore._validation import UnfitError
from survscore.curves import SurvivalCurves
from survscore.engine.evaluation import Evaluation
from survscore.engine.influence import Estimation
from survscore.engine.loss_scores import score_loss
from survscore.engine.prepared import WeightedSums
from survscore.engine.second_moments import Influences
from survscore.metrics import FollowUpMetric, Loss, Metric, SampleMetric
from survscore.metrics.sample import CountedStatuses


@dataclass(frozen=True, eq=False)
class IndividualInfluences:
    """The influences on one metric under one weighting."""

    #: Zero where there is no score. Shape (models, n, times); the null model comes last.
    values: NDArray[np.float64]
    #: To whom the score refers. Shape (n, times).
    counted: NDArray[np.bool_]


def individual_influences(evaluation: Evaluation) -> list[IndividualInfluences]:
    r"""Return all individuals' influences at the evaluation times, in the order of `Evaluation.run`.

    With these, a score is to first order the truth plus :math:`\sum_i \phi_i(t)`. What a curve that was fitted to other
    individuals varies is not in them.
    """
    weights = evaluation.prepare()
    weightings = weights.finish(weights.total())
    return [
        IndividualInfluences(_influences(evaluation, metric, weighted), _counted(evaluation, weighted))
        for metric in evaluation.metrics
        for weighted in weightings
    ]


def _counted(evaluation: Evaluation, weighted: WeightedSums) -> NDArray[np.bool_]:
    stop = arrays.to_host(weighted.first.population_index)
    return np.asarray(np.arange(evaluation.index.times.size) < stop[:, None])


def _influences(evaluation: Evaluation, metric: Metric, weighted: WeightedSums) -> NDArray[np.float64]:
    n, m, k = len(evaluation.index.outcomes), evaluation.index.times.size, len(evaluation.names)
    values = np.zeros((k, n, m))
    if isinstance(metric, FollowUpMetric):
        raise UnfitError(f"metric {metric.name!r} is of the whole follow-up, and has no influences at single times")
    if isinstance(metric, Loss):
        scored = score_loss(evaluation, evaluation.losses.index(metric), weighted)
        for rows, influences, _ in Influences(scored, evaluation.read_models, slice(0, m)).blocks():
            where = arrays.to_host(rows) if arrays.is_tensor(rows) else rows
            for a, influence in enumerate(influences):
                values[a, where] = arrays.to_host(influence)
    elif isinstance(metric, SampleMetric):
        for a, j, influence in _of_samples(evaluation, metric, weighted):
            values[a, :, j] = influence
    return values


def _of_samples(
    evaluation: Evaluation, metric: SampleMetric, weighted: WeightedSums
) -> Iterator[tuple[int, int, NDArray[np.float64]]]:
    """Yield the influences on a metric of all who are counted at a time, by model and time."""
    index, undefined = evaluation.index.numpy(), weighted.undefined[metric.name].where
    curves = [*evaluation.read_models.matrices(metric.name)]
    if evaluation.null is not None and metric.scores_null:  # without discrimination, as in `pooled`
        curves.append(SurvivalCurves(np.ones((1, 1)), np.zeros(1), interpolation="step", extrapolation="hold"))
    estimations: list[Estimation] = weighted.estimations(index)
    for j in np.flatnonzero(~undefined).tolist():
        for a, of_model in enumerate(curves):
            estimation = estimations[a if len(estimations) > 1 else 0]
            counted = CountedStatuses.of(*estimation.statuses(j), counts=index.counts)
            survival = np.broadcast_to(arrays.to_host(of_model.at(index.times[j : j + 1])[:, 0]), len(index.outcomes))
            value = metric.evaluate(counted.with_predictions(survival))
            if value.squared is not None:
                raise UnfitError(f"metric {metric.name!r} holds squares of errors, and has no influences by individual")
            if not value.reason and np.isfinite(value.value):
                yield a, j, estimation.of_counted(value.influence[None], counted, slice(j, j + 1))[1][0, :, 0]
