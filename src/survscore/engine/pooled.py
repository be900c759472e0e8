"""Metrics of all who are counted, taken together (AUC): values, and second moments from their influences."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from survscore.curves import SurvivalCurves
from survscore.engine.influence import Totals, add_by_label, influence_with_nuisance
from survscore.engine.moments import Moments, contrast
from survscore.engine.units import Groups, Units
from survscore.metrics import JointMetric, PooledMetric
from survscore.nuisance import Elsewhere, HereMartingale
from survscore.stretches import EVENT_FREE, Stretches, TimeIndex


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
) -> tuple[NDArray[np.float64], Moments | None]:
    """Return the values, (models, times), and their moments; time by time, so that no matrix is made of large data."""
    m, n = index.times.size, len(index.outcomes)
    nuisance = stretches.nuisance
    elsewhere = isinstance(nuisance, Elsewhere)
    steps = nuisance.steps if nuisance is not None and elsewhere else np.zeros(0)
    joint = JointMoments(
        metric, len(curves), n, groups, units, averages, steps,
        martingale=isinstance(nuisance, HereMartingale), any_range=any_range,
    )  # fmt: skip
    values = np.full((len(curves), m), np.nan)
    for j in np.flatnonzero(~undefined).tolist():
        column = slice(j, j + 1)
        early, late = stretches.columns(column).cells(index.times[column])
        weight = (early + late)[:, 0]
        label = np.where(index.before_time <= j, stretches.label, EVENT_FREE)
        found = [metric.evaluate(_at(one, index.times[column], n), label, weight) for one in curves]
        values[:, j] = [one.value for one in found]
        if errors:
            deviations = np.array([one.influence for one in found])[:, :, None]
            influence, moved = influence_with_nuisance(deviations, stretches, index.times[column], column)
            joint.add(j, deviations, influence, moved if elsewhere else moved[:, :0], label, weight > 0)
    return values, joint.finish() if errors else None


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

    def add(
        self,
        j: int,
        deviations: NDArray[np.float64],
        influence: NDArray[np.float64],
        moved: NDArray[np.float64],
        label: NDArray[np.int8],
        counted: NDArray[np.bool_],
    ) -> None:
        """Add everybody's influences at time j, (models, individuals, 1).

        `deviations` are those with what is estimated held fixed, `moved` is M(s; t) of the exits of `steps`.
        """
        place = slice(j, j + 1) if self.any_range else slice(0, 1)
        self.moved[:, :, place] = moved
        if self.groups is None:
            self.influences[:, :, place] = influence
        else:
            self.influences[:, :, place] = 0.0
            add_by_label(influence, self.groups.codes, self.influences[:, :, place], compiled=False)
        for p, (a, b) in enumerate(self.totals.pairs):
            if self.by_units:
                self.totals.inflation[p, j] = self.units.inflation[j]
                continue
            squares = float(np.sum(np.square(contrast(influence, a, b))))
            added = self.metric.small_sample(contrast(deviations, a, b)[:, 0], label, counted)
            self.totals.inflation[p, j] = 1.0 + added / squares if squares > 0 else 1.0 + 0.0 * added
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
        return self.totals.finish()


def _at(curves: SurvivalCurves, time: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Return everybody's prediction at a time; one row may stand for all."""
    return np.broadcast_to(curves.at(time)[:, 0], n)
