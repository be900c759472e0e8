"""Metrics of all who are counted, taken together (AUC): values, and second moments from their influences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from survscore.curves import SurvivalCurves
from survscore.engine.influence import Totals, add_by_label, influence_with_nuisance, joint_covariance
from survscore.engine.moments import Moments, contrast, pairs
from survscore.engine.units import Groups, Units
from survscore.metrics import Found, JointMetric, PooledMetric
from survscore.nuisance import Elsewhere, HereMartingale
from survscore.stretches import EVENT_FREE, Stretches, TimeIndex


@dataclass(frozen=True, eq=False)
class PooledValues:
    """What a metric of everybody taken together came to, by model and time.

    Attributes
    ----------
    values : ndarray of shape (models, times)
    moments : Moments or None
        Their variances, where errors were asked for.
    reasons : ndarray of str, of shape (models, times)
        Why there is no value; nothing where there is.
    """

    values: NDArray[np.float64]
    moments: Moments | None
    reasons: NDArray[np.object_]


@dataclass(frozen=True, eq=False)
class SquaredErrors:
    """Errors whose squares are part of the values of models (see `Found.squared`).

    Attributes
    ----------
    covariance : ndarray of shape (errors, errors)
    model : ndarray of shape (errors,)
        Whose they are.
    """

    covariance: NDArray[np.float64]
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
    metric: PooledMetric, n_models: int, squares: SquaredErrors | None, weight: NDArray[np.float64]
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


def evaluate_pooled(
    metric: PooledMetric,
    index: TimeIndex,
    stretches: Stretches,
    curves: Sequence[SurvivalCurves],
    groups: Groups | None,
    units: Units,
    averages: NDArray[np.float64],
    *,
    any_range: bool,
    undefined: NDArray[np.bool_],
    errors: bool,
) -> PooledValues:
    """Return the values and their moments; time by time, so that no matrix is made of large data."""
    m, n, k = index.times.size, len(index.outcomes), len(curves)
    nuisance = stretches.nuisance
    elsewhere = isinstance(nuisance, Elsewhere)
    steps = nuisance.steps if nuisance is not None and elsewhere else np.zeros(0)
    joint = JointMoments(
        metric, k, n, groups, units, averages, steps, martingale=isinstance(nuisance, HereMartingale),
        any_range=any_range,
    )  # fmt: skip
    values, reasons = np.full((k, m), np.nan), np.full((k, m), "", dtype=object)
    for j in np.flatnonzero(~undefined).tolist():
        column = slice(j, j + 1)
        early, late = stretches.columns(column).cells(index.times[column])
        weight = (early + late)[:, 0]
        label = np.where(index.before_time <= j, stretches.label, EVENT_FREE)
        found = [metric.evaluate(_at(one, index.times[column], n), label, weight) for one in curves]
        squares = _squared_errors(found, stretches, index.times[column], column, groups, units.inflation[j])
        for a, one in enumerate(found):
            values[a, j] = one.value - (0.0 if squares is None else squares.mean(a))
            reasons[a, j] = why_no_value(one, units.counted[j], grouped=groups is not None)
        if errors:
            deviations = np.array([one.influence for one in found])[:, :, None]
            influence, moved = influence_with_nuisance(deviations, stretches, index.times[column], column)
            joint.add(
                j, deviations, influence, moved if elsewhere else moved[:, :0], label, weight > 0,
                added_variances(metric, k, squares, weight),
            )  # fmt: skip
    return PooledValues(values, joint.finish() if errors else None, reasons)


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
    steps : ndarray of shape (exits,)
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
        self.totals = Totals(n_models, n_units, averages, np.ones(m), any_range=any_range, whole=any_range)
        # covariances over time need all times at once
        self.influences = np.zeros((n_models, n_units, m if any_range else 1))
        self.moved = np.zeros((n_models, steps.size, m if any_range else 1))
        self.added = np.zeros((len(self.totals.pairs), m))

    def add(
        self,
        j: int,
        deviations: NDArray[np.float64],
        influence: NDArray[np.float64],
        moved: NDArray[np.float64],
        label: NDArray[np.int8],
        counted: NDArray[np.bool_],
        added: NDArray[np.float64] | float = 0.0,
    ) -> None:
        """Add everybody's influences at time j, (models, individuals, 1).

        `deviations` are those with what is estimated held fixed, `moved` is M(s; t) of the exits of `steps`, and
        `added` what comes on top of squared influences.
        """
        self.added[:, j] = added
        place = slice(j, j + 1) if self.any_range else slice(0, 1)
        self.moved[:, :, place] = moved
        if self.groups is None:
            self.influences[:, :, place] = influence
        else:
            self.influences[:, :, place] = 0.0
            add_by_label(influence, self.groups.codes, self.influences[:, :, place], compiled=False)
        self.totals.inflation[:, j] = self.units.inflation[j]
        if not self.by_units:
            self.totals.inflation[:, j] = _inflation(
                self.metric, deviations, influence, label, counted, self.units.inflation[j]
            )
        if not self.any_range:
            self._total(slice(j, j + 1))

    def _total(self, columns: slice) -> None:
        self.totals.add(self.influences, columns, slice(None))
        if self.steps.size:
            self.totals.add_greenwood(self.steps, self.moved, columns)

    def finish(self) -> Moments:
        """Return the variances."""
        if self.any_range:
            self._total(slice(0, self.influences.shape[2]))
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


def _squared_errors(
    found: Sequence[Found],
    stretches: Stretches,
    time: NDArray[np.float64],
    column: slice,
    groups: Groups | None,
    factor: float,
) -> SquaredErrors | None:
    rows = [one.squared for one in found if one.squared is not None]
    if not rows:
        return None
    covariance = joint_covariance(np.concatenate(rows), stretches, time, column, groups, factor)
    return SquaredErrors(covariance, models_of_squares(found))


def _at(curves: SurvivalCurves, time: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Return everybody's prediction at a time; one row may stand for all."""
    return np.broadcast_to(curves.at(time)[:, 0], n)
