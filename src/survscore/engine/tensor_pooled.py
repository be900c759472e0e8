"""Metrics of all who are counted, taken together (AUC), on a device: what `pooled` does, for tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from survscore import _arrays
from survscore.curves import SurvivalCurves
from survscore.engine.moments import n_pairs
from survscore.engine.pooled import PooledValues, SquaredErrors, added_variances, models_of_squares, why_no_value
from survscore.engine.tensor_influence import Totals, add_by_label, contrast, influence_with_nuisance
from survscore.engine.tensors import Tensor, on
from survscore.engine.units import Groups, Units
from survscore.metrics import AUC, Found, PooledMetric
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
) -> PooledValues:
    """Return the values and their moments; time by time, so that no matrix is made of large data."""
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
    reasons, added = np.full((k, m), "", dtype=object), np.zeros((len(totals.pairs), m))
    event_from: Any = stretches.event_from(index.before_time, m)
    for j in np.flatnonzero(~undefined).tolist():
        column = slice(j, j + 1)
        place = column if any_range else slice(0, 1)
        early, late = stretches.columns(column).cells(index.times[column])
        weight, event = on(device, early + late)[:, 0], event_from <= j
        survivals = [_at(one, index.times[column], n, device) for one in curves]
        look = evaluate(metric, survivals, event, weight, _Errors(stretches, index.times, j, groups, units))
        values[:, j], reasons[:, j] = look.values, look.reasons
        if not errors:
            continue
        deviations, added[:, j] = look.deviations[:, :, None], look.added
        influence, exits = influence_with_nuisance(deviations, stretches, index.times[column], column)
        if exits is not None:
            moved[:, :, place] = exits.moved
        if groups is None:
            influences[:, :, place] = influence
        else:
            table = torch.zeros((k, n_units, 1), dtype=torch.float64, device=device)
            add_by_label(influence, groups.codes, table)
            influences[:, :, place] = table
        totals.inflation[:, j] = float(units.inflation[j])
        if groups is None and not isinstance(nuisance, HereMartingale):
            _inflate(totals, j, metric, deviations, influence, event, weight > 0)
        if not any_range:
            totals.add(influences, column, slice(None))
            if isinstance(nuisance, Elsewhere):
                totals.add_greenwood(on(device, nuisance.steps), moved, column)
    scores = _arrays.to_host(values)
    if not errors:
        return PooledValues(scores, None, reasons)
    if any_range:
        totals.add(influences, slice(0, m), slice(None))
        if isinstance(nuisance, Elsewhere):
            totals.add_greenwood(on(device, nuisance.steps), moved, slice(0, m))
    return PooledValues(scores, totals.finish().with_added(added), reasons)


def _at(curves: SurvivalCurves, time: NDArray[np.float64], n: int, device: Any) -> Tensor:
    """Return everybody's prediction at a time; one row may stand for all."""
    return on(device, curves.at(time))[:, 0].expand(n)


@dataclass(frozen=True, eq=False)
class _Look:
    """A metric at one time: values and deviations by model, why there is no value, and variances to be added."""

    values: Tensor
    deviations: Tensor
    reasons: list[str]
    added: NDArray[np.float64]


def evaluate(
    metric: PooledMetric, survivals: Sequence[Tensor], event: Tensor, weight: Tensor, errors: _Errors
) -> _Look:
    """Return what a metric comes to for several predictions; all but AUC are made in NumPy."""
    n_models = len(survivals)
    if type(metric) is AUC:
        of_models = [_auc(survival, event, weight) for survival in survivals]
        values, deviations = (torch.stack(parts) for parts in zip(*of_models, strict=True))
        return _Look(values, deviations, [""] * n_models, np.zeros(n_pairs(n_models)))
    label, weights = _arrays.to_host(event.to(torch.int8)), _arrays.to_host(weight)
    found = [metric.evaluate(_arrays.to_host(survival), label, weights) for survival in survivals]
    squares = errors.squared(found, weight.device)
    unbiased = [one.value - (0.0 if squares is None else squares.mean(a)) for a, one in enumerate(found)]
    return _Look(
        weight.new_tensor(unbiased),
        on(weight.device, np.array([one.influence for one in found])),
        [errors.why_no_value(one) for one in found],
        added_variances(metric, n_models, squares, weights),
    )


@dataclass(frozen=True, eq=False)
class _Errors:
    """What the covariance of estimates at one time needs."""

    stretches: Stretches
    times: NDArray[np.float64]
    j: int
    groups: Groups | None
    units: Units

    def why_no_value(self, found: Found) -> str:
        return why_no_value(found, self.units.counted[self.j], grouped=self.groups is not None)

    def squared(self, found: Sequence[Found], device: Any) -> SquaredErrors | None:
        """Return the errors whose squares are part of values; see `pooled.SquaredErrors`."""
        rows = [one.squared for one in found if one.squared is not None]
        if not rows:
            return None
        column = slice(self.j, self.j + 1)
        influence, exits = influence_with_nuisance(
            on(device, np.concatenate(rows))[:, :, None], self.stretches, self.times[column], column
        )
        if self.groups is not None:
            table = torch.zeros((len(influence), self.groups.n_groups, 1), dtype=torch.float64, device=device)
            add_by_label(influence, self.groups.codes, table)
            influence = table
        covariance = float(self.units.inflation[self.j]) * influence[:, :, 0] @ influence[:, :, 0].T
        if exits is not None and isinstance(self.stretches.nuisance, Elsewhere):
            covariance += (exits.moved[:, :, 0] * exits.steps) @ exits.moved[:, :, 0].T
        return SquaredErrors(_arrays.to_host(covariance), models_of_squares(found))


def _inflate(
    totals: Totals,
    j: int,
    metric: PooledMetric,
    deviations: Tensor,
    influence: Tensor,
    event: Tensor,
    counted: Tensor,
) -> None:
    """Put the small-sample factors of a metric that has its own in place of those of a mean."""
    for p, (a, b) in enumerate(totals.pairs):
        more = small_sample(metric, contrast(deviations, a, b)[:, 0], event, counted)
        if more is not None:
            total = contrast(influence, a, b).square().sum()
            totals.inflation[p, j] = torch.where(total > 0, 1.0 + more / total, 1.0 + 0.0 * more)


def small_sample(metric: PooledMetric, influence: Tensor, event: Tensor, counted: Tensor) -> Tensor | None:
    """Return what to add to the sum of squared influences; see `PooledMetric.small_sample`."""
    if type(metric) is not AUC:
        more = metric.small_sample(*(_arrays.to_host(vector) for vector in (influence, event.to(torch.int8), counted)))
        return None if more is None else influence.new_tensor(more)
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
