"""Metrics of all who are counted, taken together (AUC), on a device: what `pooled` does, for tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from survscore import _arrays
from survscore.curves import SurvivalCurves
from survscore.engine.moments import Moments
from survscore.engine.tensor_influence import Totals, add_by_label, contrast, influence_with_nuisance
from survscore.engine.tensors import Tensor, on
from survscore.engine.units import Groups, Units
from survscore.metrics import AUC, PooledMetric
from survscore.nuisance import Elsewhere, HereMartingale
from survscore.stretches import Stretches, TimeIndex


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
    m, n, k, device = index.times.size, len(index.outcomes), len(curves), index.outcomes.device
    n_units = n if groups is None else groups.n_groups
    nuisance = stretches.nuisance
    totals = Totals(k, n_units, averages, np.ones(m), device, any_range=any_range, whole=any_range)
    # covariances over time need all times at once
    width = m if any_range else 1
    n_exits = 0 if nuisance is None else len(nuisance.curve.times)
    influences = torch.zeros((k, n_units, width), dtype=torch.float64, device=device)
    moved = torch.zeros((k, n_exits, width), dtype=torch.float64, device=device)
    values = torch.full((k, m), torch.nan, dtype=torch.float64, device=device)
    event_from: Any = stretches.event_from(index.before_time, m)
    for j in np.flatnonzero(~undefined).tolist():
        column = slice(j, j + 1)
        place = column if any_range else slice(0, 1)
        early, late = stretches.columns(column).cells(index.times[column])
        weight, event = on(device, early + late)[:, 0], event_from <= j
        found = [evaluate(metric, _at(one, index.times[column], n, device), event, weight) for one in curves]
        values[:, j] = torch.stack([value for value, _ in found])
        if not errors:
            continue
        deviations = torch.stack([deviation for _, deviation in found])[:, :, None]
        influence, exits = influence_with_nuisance(deviations, stretches, index.times[column], column)
        if exits is not None:
            moved[:, :, place] = exits.moved
        if groups is None:
            influences[:, :, place] = influence
        else:
            table = torch.zeros((k, n_units, 1), dtype=torch.float64, device=device)
            add_by_label(influence, groups.codes, table)
            influences[:, :, place] = table
        for p, (a, b) in enumerate(totals.pairs):
            if groups is not None or isinstance(nuisance, HereMartingale):
                totals.inflation[p, j] = float(units.inflation[j])
                continue
            squares = contrast(influence, a, b).square().sum()
            added = small_sample(metric, contrast(deviations, a, b)[:, 0], event, weight > 0)
            totals.inflation[p, j] = torch.where(squares > 0, 1.0 + added / squares, 1.0 + 0.0 * added)
        if not any_range:
            totals.add(influences, column, slice(None))
            if isinstance(nuisance, Elsewhere):
                totals.add_greenwood(on(device, nuisance.steps), moved, column)
    scores = _arrays.to_host(values)
    if not errors:
        return scores, None
    if any_range:
        totals.add(influences, slice(0, m), slice(None))
        if isinstance(nuisance, Elsewhere):
            totals.add_greenwood(on(device, nuisance.steps), moved, slice(0, m))
    return scores, totals.finish()


def _at(curves: SurvivalCurves, time: NDArray[np.float64], n: int, device: Any) -> Tensor:
    """Return everybody's prediction at a time; one row may stand for all."""
    return on(device, curves.at(time))[:, 0].expand(n)


def evaluate(metric: PooledMetric, survival: Tensor, event: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return the value of a metric, and each individual's influence; a user's own metric gets NumPy arrays."""
    if type(metric) is AUC:
        return _auc(survival, event, weight)
    found = metric.evaluate(*(_arrays.to_host(vector) for vector in (survival, event.to(torch.int8), weight)))
    return weight.new_tensor(found.value), on(weight.device, found.influence)


def small_sample(metric: PooledMetric, influence: Tensor, event: Tensor, counted: Tensor) -> Tensor:
    """Return what to add to the sum of squared influences; see `PooledMetric.small_sample`."""
    if type(metric) is not AUC:
        return influence.new_tensor(
            metric.small_sample(*(_arrays.to_host(vector) for vector in (influence, event.to(torch.int8), counted)))
        )
    total = torch.zeros_like(influence[0])
    for group in (event & counted, ~event & counted):
        number = group.sum()
        squares = torch.where(group, influence, 0.0).square().sum()
        total = total + torch.where(number > 1, squares / (number - 1), torch.nan)
    return total


def _auc(survival: Tensor, event: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Do what `AUC.evaluate` does, by a sort."""
    ordered, order = survival.sort()
    fresh = torch.ones_like(ordered, dtype=torch.bool)
    torch.ne(ordered[1:], ordered[:-1], out=fresh[1:])
    # of equal predictions, where the first stands, and the one after the last
    edges = torch.cat((fresh.nonzero()[:, 0], order.new_full((1,), len(ordered)))).to(torch.int32)
    place = fresh.cumsum(0, dtype=torch.int32).sub_(1)
    del ordered, fresh

    def halfway(part: Tensor) -> tuple[Tensor, Tensor]:
        """Return the weight below each prediction, ties counted half, and that of all."""
        sums = torch.cat((part.new_zeros(1), part[order].cumsum(0)))
        at_edges = sums.index_select(0, edges)
        below = torch.empty_like(part)
        below[order] = (0.5 * (at_edges[1:] + at_edges[:-1])).index_select(0, place)
        return below, at_edges[-1]

    case, control = (torch.where(event == with_event, weight, 0.0) for with_event in (True, False))
    below, n_cases = halfway(case)
    controls_below, n_controls = halfway(control)
    # for each prediction, the share of controls above it, and of cases below it
    above = controls_below.neg_().add_(n_controls).div_(n_controls)
    below.div_(n_cases)
    defined = (n_cases > 0) & (n_controls > 0)
    value = torch.where(defined, torch.dot(case, above) / n_cases, torch.nan)
    influence = above.sub_(value).mul_(case).div_(n_cases)
    influence += below.sub_(value).mul_(control).div_(n_controls)
    return value, torch.where(defined, influence, 0.0)
