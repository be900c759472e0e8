"""Metrics of all who are counted, taken together (AUC): values, and second moments from their influences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from survscore._utils import arrays
from survscore._utils.products import Influences
from survscore.curves import SurvivalCurves
from survscore.engine.influence import Estimation, joint_covariance
from survscore.engine.moments import Moments, Totals, contrast, pairs
from survscore.inference.units import Groups, Units
from survscore.metrics import Found, JointMetric, MetricSample, SampleMetric
from survscore.metrics.sample import CountedStatuses
from survscore.weighting.interval_weights import EVENT_FREE

Covariance = Callable[[NDArray[np.float64] | Influences], NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class PooledValues:
    """What a metric of everybody taken together came to, by model and time."""

    #: Shape (models, times).
    values: NDArray[np.float64]
    #: Their variances, where errors were asked for.
    moments: Moments | None
    #: Why there is no value; nothing where there is. Shape (models, times).
    reasons: NDArray[np.object_]

    @classmethod
    def nothing(cls, n_models: int, n_times: int) -> PooledValues:
        """Return tables to be filled in."""
        return cls(np.full((n_models, n_times), np.nan), None, np.full((n_models, n_times), "", dtype=object))


@dataclass(frozen=True, eq=False)
class SquaredErrors:
    """Errors whose squares are part of the values of models (see `Found.squared`)."""

    #: Shape (errors, errors).
    covariance: NDArray[np.float64]
    #: Whose they are. Shape (errors,).
    model: NDArray[np.intp]

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


def models_of_squares(found: Sequence[Found]) -> NDArray[np.intp]:
    """Return whose errors are squared, in the order of `Found.squared`."""
    return np.repeat(np.arange(len(found)), [0 if one.squared is None else len(one.squared) for one in found])


def added_variances(
    metric: SampleMetric, n_models: int, squares: SquaredErrors | None, weight: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return what comes on top of squared influences, for every model and every difference of two."""
    unseen = metric.unseen_variance(weight)
    return np.array(
        [(0.0 if a == b else unseen) + (0.0 if squares is None else squares.variance(a, b)) for a, b in pairs(n_models)]
    )


def why_no_value(found: Found, n_units: float, *, grouped: bool) -> str:
    """Return why there is no value; nothing where there is. A bias can't be taken off where one unit is left."""
    if not found.reason and found.squared is not None and n_units <= 1:
        return f"only one {'group' if grouped else 'individual'} is counted, so that chance can't be told"
    return found.reason


@dataclass(frozen=True, eq=False)
class SampleRequest:
    """One of the metrics that are evaluated together."""

    metric: SampleMetric
    #: For how many of the predictions, from the first on: the null model's is the last, and not all metrics score it.
    n_models: int
    #: The means over time that are asked for, (ranges, times), and whether covariances over time are.
    averages: NDArray[np.float64]
    any_range: bool
    #: Where there is nothing to say. Shape (times,).
    undefined: NDArray[np.bool_]


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
    #: Turns influences of the sample on several numbers, a matrix or `Influences`, into their covariance.
    covariance: Covariance


#: Is shown all models at all times, so that nothing need be fitted again for numbers that are no metrics.


def evaluate_pooled(
    requests: Sequence[SampleRequest],
    estimation: Estimation,
    curves: Sequence[SurvivalCurves],
    groups: Groups | None,
    units: Units,
    *,
    errors: bool,
    on_sample: Callable[[SampleView], None] | None = None,
) -> list[PooledValues]:
    """Return the values of several metrics and their moments; time by time, so that no matrix is made of large data.

    All metrics of a model share one sample. Predictions on a device come to the processor's memory one time at a time.
    """
    index, weights = estimation.index, estimation.weights
    m, n = index.times.size, len(index.outcomes)
    joint = [JointMoments.of(one, n, groups, units, estimation) if errors else None for one in requests]
    found = [PooledValues.nothing(one.n_models, m) for one in requests]
    for j in np.flatnonzero(~np.logical_and.reduce([one.undefined for one in requests])).tolist():
        column, here = slice(j, j + 1), [q for q, one in enumerate(requests) if not one.undefined[j]]
        early, late = weights.cells(index.times, column)
        weight = (early + late)[:, 0]
        label = np.where(index.before_time <= j, weights.label, EVENT_FREE)
        counted = CountedStatuses.of(label, weight)
        at_time = _AtTime(j, estimation, groups, units, label, weight, counted)
        by_model = []
        for a, one in enumerate(curves):
            sample = counted.with_predictions(_at(one, index.times[column], n))
            if on_sample is not None:
                on_sample(at_time.view(a, sample))
            by_model.append({q: requests[q].metric.evaluate(sample) for q in here if a < requests[q].n_models})
        for q in here:
            at_time.put(requests[q], [by_model[a].pop(q) for a in range(requests[q].n_models)], found[q], joint[q])
    return [
        values if moments is None else replace(values, moments=moments.finish())
        for values, moments in zip(found, joint, strict=True)
    ]


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

    @property
    def column(self) -> slice:
        """The time, as a range of columns."""
        return slice(self.place, self.place + 1)

    def view(self, model: int, sample: MetricSample) -> SampleView:
        """Return what is shown of a model."""
        n_units = float(self.units.counted[self.place])
        return SampleView(model, self.place, sample, n_units, self.groups is not None, self.covariance)

    def covariance(self, influence: NDArray[np.float64] | Influences) -> NDArray[np.float64]:
        """Return the covariance of several numbers; see `influence.joint_covariance`."""
        counted = self.counted.rows, self.weight.size
        factor = self.units.inflation[self.place]
        return joint_covariance(influence, self.estimation, self.column, self.groups, factor, counted)

    def put(
        self, request: SampleRequest, of_models: Sequence[Found], values: PooledValues, moments: JointMoments | None
    ) -> None:
        """Put what models have of a metric into its tables, and add their influences to its moments."""
        j, rows, n_models = self.place, self.counted.rows, len(of_models)
        squares = squared_errors(of_models, self.covariance)
        for a, one in enumerate(of_models):
            values.values[a, j] = one.value - (0.0 if squares is None else squares.mean(a))
            values.reasons[a, j] = why_no_value(one, self.units.counted[j], grouped=self.groups is not None)
        if moments is None:
            return
        deviations = np.array([one.influence for one in of_models])[:, :, None]
        added = added_variances(request.metric, n_models, squares, self.weight)
        if self.estimation.exits is None:  # nobody else has any influence
            everybody = np.ones(rows.size, dtype=np.bool_)
            nothing = np.zeros((n_models, 0, 1))
            moments.add(j, deviations, deviations, nothing, self.counted.label, everybody, added, rows)
            return
        of_all = np.zeros((n_models, self.weight.size, 1))
        of_all[:, rows] = deviations
        influence, X = self.estimation.influences(of_all, self.column)
        moments.add(j, of_all, influence, X, self.label, self.weight > 0, added)


class JointMoments:
    """Second moments of a metric of several individuals taken together, as influences at one time after another come.

    Parameters
    ----------
    metric : JointMetric
        Which corrects for small samples.
    n_models, n : int
        How many there are.
    groups, units, averages, any_range
        As for `influence.by_influence`.
    steps : ndarray of shape (jumps,)
        Greenwood's weights of the curves that are estimated from others.
    martingale : bool
        Whether the estimation of weights counts as in R's riskRegression, where variances have n/(n - 1).
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
        *,
        martingale: bool,
        any_range: bool,
    ) -> None:
        self.metric, self.groups, self.units, self.steps, self.any_range = metric, groups, units, steps, any_range
        self.by_units = groups is not None or martingale
        m = averages.shape[1]
        n_units = n if groups is None else groups.n_groups
        self.totals = Totals(n_models, n_units, averages, np.ones((1, m)), any_range=any_range, whole=any_range)
        # covariances over time need all times at once
        self.influences = np.zeros((n_models, n_units, m)) if any_range else None
        self.jumps = np.zeros((n_models, steps.size, m)) if any_range else None
        self.added = np.zeros((len(self.totals.pairs), m))

    @classmethod
    def of(
        cls, request: SampleRequest, n: int, groups: Groups | None, units: Units, estimation: Estimation
    ) -> JointMoments:
        """Take what is asked of a pooled metric."""
        exits = estimation.exits
        return cls(
            request.metric, request.n_models, n, groups, units, request.averages, estimation.training_steps,
            martingale=exits is not None and exits.martingale, any_range=request.any_range,
        )  # fmt: skip

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
        """Add everybody's influences at time j, (models, individuals, 1), or those of some `rows` if others have none.

        `deviations` are those with what is estimated held fixed, `jumps` is X(s; t) at the jumps of `steps`, and
        `added` what comes on top of squared influences.
        """
        self.added[:, j] = added
        self.totals.inflation[:, j] = self.units.inflation[j]
        if not self.by_units:
            self.totals.inflation[:, j] = _inflation(
                self.metric, deviations, influence, label, counted, self.units.inflation[j]
            )
        if self.groups is not None:
            codes = self.groups.codes[rows]
            by_group = [np.bincount(codes, one[:, 0], self.groups.n_groups) for one in influence]
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
    of_mean: float,
) -> list[float]:
    """Return the small-sample factors of a time, for every model and every difference of two."""
    found = []
    for a, b in pairs(len(deviations)):
        more = metric.small_sample(contrast(deviations, a, b)[:, 0], label, counted)
        if more is None:
            found.append(of_mean)
            continue
        total = float(np.sum(np.square(contrast(influence, a, b))))
        found.append(1.0 + more / total if total > 0 else 1.0 + 0.0 * more)
    return found


def squared_errors(found: Sequence[Found], covariance: Covariance) -> SquaredErrors | None:
    """Return the errors whose squares are part of the values; None where there are none."""
    rows = [one.squared for one in found if one.squared is not None]
    return SquaredErrors(covariance(Influences.stacked(rows)), models_of_squares(found)) if rows else None


def _at(curves: SurvivalCurves, time: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Return everybody's prediction at a time, in the processor's memory; one row may stand for all."""
    return np.broadcast_to(arrays.to_host(curves.at(time)[:, 0]), n)
