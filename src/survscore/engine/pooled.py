"""Metrics of all who are counted, taken together (AUC): values, and second moments from their influences."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from survscore.curves import SurvivalCurves
from survscore.engine.influence import Totals, add_by_label, influence_with_nuisance
from survscore.engine.moments import Moments, contrast
from survscore.engine.units import Groups, Units
from survscore.metrics import PooledMetric
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
    m, n, k = index.times.size, len(index.outcomes), len(curves)
    n_units = n if groups is None else groups.n_groups
    totals = Totals(k, n_units, averages, np.ones(m), any_range=any_range, whole=any_range)
    n_exits = 0 if stretches.nuisance is None else stretches.nuisance.curve.times.size
    # covariances over time need all times at once
    influences = np.zeros((k, n_units, m if any_range else 1))
    moved = np.zeros((k, n_exits, m if any_range else 1))
    values = np.full((k, m), np.nan)
    for j in np.flatnonzero(~undefined):
        column = slice(j, j + 1)
        place = column if any_range else slice(0, 1)
        early, late = stretches.columns(column).cells(index.times[column])
        weight = (early + late)[:, 0]
        label = np.where(index.before_time <= j, stretches.label, EVENT_FREE)
        found = [metric.evaluate(_at(one, index.times[column], n), label, weight) for one in curves]
        values[:, j] = [one.value for one in found]
        if not errors:
            continue
        deviations = np.array([one.influence for one in found])[:, :, None]
        influence, moved[:, :, place] = influence_with_nuisance(deviations, stretches, index.times[column], column)
        if groups is None:
            influences[:, :, place] = influence
        else:
            influences[:, :, place] = 0.0
            add_by_label(influence, groups.codes, influences[:, :, place], compiled=False)
        for p, (a, b) in enumerate(totals.pairs):
            if groups is not None or isinstance(stretches.nuisance, HereMartingale):
                totals.inflation[p, j] = units.inflation[j]
                continue
            squares = float(np.sum(np.square(contrast(influence, a, b))))
            added = metric.small_sample(contrast(deviations, a, b)[:, 0], label, weight > 0)
            totals.inflation[p, j] = 1.0 + added / squares if squares > 0 else 1.0 + 0.0 * added
        if not any_range:
            totals.add(influences, column, slice(None))
            if isinstance(stretches.nuisance, Elsewhere):
                totals.add_greenwood(stretches.nuisance.steps, moved, column)
    if not errors:
        return values, None
    if any_range:
        totals.add(influences, slice(0, m), slice(None))
        if isinstance(stretches.nuisance, Elsewhere):
            totals.add_greenwood(stretches.nuisance.steps, moved, slice(0, m))
    return values, totals.finish()


def _at(curves: SurvivalCurves, time: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Return everybody's prediction at a time; one row may stand for all."""
    return np.broadcast_to(curves.at(time)[:, 0], n)
