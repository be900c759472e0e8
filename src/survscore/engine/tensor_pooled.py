"""Metrics of all who are counted, taken together (AUC), on a device: what `pooled` does, for tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from survscore._utils import arrays as _arrays
from survscore._utils.influences import Influences
from survscore.censoring.nuisance import Elsewhere, HereMartingale
from survscore.curves import SurvivalCurves
from survscore.engine.moments import Moments, n_pairs
from survscore.engine.pooled import (
    Look,
    PooledRequest,
    PooledValues,
    Visit,
    added_variances,
    squared_errors,
    why_no_value,
)
from survscore.engine.tensor_influence import Totals, add_by_label, contrast, influence_with_nuisance
from survscore.engine.tensors import Tensor, on
from survscore.inference.units import Groups, Units
from survscore.metrics import AUC, PooledMetric, PooledSample
from survscore.metrics.sample import CountedStatuses
from survscore.weighting.stretches import Stretches, TimeIndex


def evaluate_pooled(
    requests: Sequence[PooledRequest],
    index: TimeIndex,
    stretches: Stretches,
    curves: Sequence[SurvivalCurves],
    groups: Groups | None,
    units: Units,
    *,
    errors: bool,
    visit: Visit | None = None,
) -> list[PooledValues]:
    """Return the values and their moments; time by time, so that no matrix is made of large data."""
    m, n, device = index.times.size, len(index.outcomes), index.outcomes.device
    joint = [_Joint(one, n, stretches, groups, units, device) for one in requests] if errors else []
    found = [PooledValues.nothing(one.n_models, m) for one in requests]
    event_from: Any = stretches.event_from(index.before_time, m)
    for j in np.flatnonzero(~np.logical_and.reduce([one.undefined for one in requests])).tolist():
        column = slice(j, j + 1)
        early, late = stretches.columns(column).cells(index.times[column])
        weight, event = on(device, early + late)[:, 0], event_from <= j
        survivals = [_at(one, index.times[column], n, device) for one in curves]
        at_time = _AtTime(stretches, index.times, j, groups, units, survivals, event, weight)
        if visit is not None:
            for a in range(len(curves)):
                visit(at_time.look(a))
        for q, request in enumerate(requests):
            if request.undefined[j]:
                continue
            deviations, added = at_time.evaluate(request, found[q])
            if errors:
                joint[q].add(j, index.times, deviations[:, :, None], added, event, weight > 0)
    if errors:
        return [replace(values, moments=one.finish()) for values, one in zip(found, joint, strict=True)]
    return found


class _Joint:
    """What `pooled.JointMoments` does, for tensors."""

    def __init__(
        self, request: PooledRequest, n: int, stretches: Stretches, groups: Groups | None, units: Units, device: Any
    ) -> None:
        self.metric, self.any_range = request.metric, request.any_range
        self.stretches, self.groups, self.units = stretches, groups, units
        self.nuisance = stretches.nuisance
        m, k = request.averages.shape[1], request.n_models
        n_units = n if groups is None else groups.n_groups
        self.totals = Totals(
            k, n_units, request.averages, np.ones(m), device, any_range=self.any_range, whole=self.any_range
        )
        # covariances over time need all times at once
        self.width = m if self.any_range else 1
        n_exits = 0 if self.nuisance is None else len(self.nuisance.curve.times)
        self.influences = torch.zeros((k, n_units, self.width), dtype=torch.float64, device=device)
        self.moved = torch.zeros((k, n_exits, self.width), dtype=torch.float64, device=device)
        self.added = np.zeros((len(self.totals.pairs), m))

    def add(
        self,
        j: int,
        times: NDArray[np.float64],
        deviations: Tensor,
        added: NDArray[np.float64],
        event: Tensor,
        counted: Tensor,
    ) -> None:
        """Add influences at time j, (models, individuals, 1)."""
        column = slice(j, j + 1)
        place = column if self.any_range else slice(0, 1)
        self.added[:, j] = added
        influence, exits = influence_with_nuisance(deviations, self.stretches, times[column], column)
        if exits is not None:
            self.moved[:, :, place] = exits.moved
        if self.groups is None:
            self.influences[:, :, place] = influence
        else:
            table = torch.zeros_like(self.influences[:, :, :1])
            add_by_label(influence, self.groups.codes, table)
            self.influences[:, :, place] = table
        self.totals.inflation[:, j] = float(self.units.inflation[j])
        if self.groups is None and not isinstance(self.nuisance, HereMartingale):
            _inflate(self.totals, j, self.metric, deviations, influence, event, counted)
        if not self.any_range:
            self._total(column)

    def _total(self, columns: slice) -> None:
        self.totals.add(self.influences, columns, slice(None))
        if isinstance(self.nuisance, Elsewhere):
            self.totals.add_greenwood(on(self.influences.device, self.nuisance.steps), self.moved, columns)

    def finish(self) -> Moments:
        """Return the variances."""
        if self.any_range:
            self._total(slice(0, self.width))
        return self.totals.finish().with_added(self.added)


def _at(curves: SurvivalCurves, time: NDArray[np.float64], n: int, device: Any) -> Tensor:
    """Return everybody's prediction at a time; one row may stand for all."""
    return on(device, curves.at(time))[:, 0].expand(n)


@dataclass(frozen=True, eq=False)
class _AtTime:
    """Everybody at one time."""

    stretches: Stretches
    times: NDArray[np.float64]
    j: int
    groups: Groups | None
    units: Units
    survivals: Sequence[Tensor]
    event: Tensor
    weight: Tensor

    @cached_property
    def counted(self) -> CountedStatuses:
        """Who is counted, in the processor's memory, as all metrics but AUC are computed."""
        return CountedStatuses.of(_arrays.to_host(self.event.to(torch.int8)), _arrays.to_host(self.weight))

    @cached_property
    def samples(self) -> list[PooledSample]:
        """What the models predict for them."""
        return [self.counted.with_predictions(_arrays.to_host(one)) for one in self.survivals]

    def look(self, a: int) -> Look:
        """Return what there is to see of a model."""
        n_units = float(self.units.counted[self.j])
        return Look(a, self.j, self.samples[a], n_units, self.groups is not None, self.covariance)

    def evaluate(self, request: PooledRequest, found: PooledValues) -> tuple[Tensor, NDArray[np.float64]]:
        """Fill in what a metric comes to; return everybody's deviations, and variances to be added."""
        metric, k = request.metric, request.n_models
        if type(metric) is AUC:
            of_models = [_auc(survival, self.event, self.weight) for survival in self.survivals[:k]]
            values, deviations = (torch.stack(parts) for parts in zip(*of_models, strict=True))
            found.values[:, self.j] = _arrays.to_host(values)
            return deviations, np.zeros(n_pairs(k))
        results = [metric.evaluate(sample) for sample in self.samples[:k]]
        squares = squared_errors(results, self.covariance)
        for a, one in enumerate(results):
            found.values[a, self.j] = one.value - (0.0 if squares is None else squares.mean(a))
            found.reasons[a, self.j] = why_no_value(one, self.units.counted[self.j], grouped=self.groups is not None)
        influence = self._of_everybody(np.array([one.influence for one in results]))
        return influence, added_variances(metric, k, squares, _arrays.to_host(self.weight))

    def _of_everybody(self, influence: NDArray[np.float64]) -> Tensor:
        everybody = np.zeros((len(influence), len(self.weight)))
        everybody[:, self.counted.rows] = influence
        return on(self.weight.device, everybody)

    def covariance(self, influence: NDArray[np.float64] | Influences) -> NDArray[np.float64]:
        """Return the covariance of several numbers, from the influences of those who are counted."""
        column = slice(self.j, self.j + 1)
        everybody, exits = influence_with_nuisance(
            self._of_everybody(Influences.of(influence).whole())[:, :, None], self.stretches, self.times[column], column
        )
        if self.groups is not None:
            table = everybody.new_zeros((len(everybody), self.groups.n_groups, 1))
            add_by_label(everybody, self.groups.codes, table)
            everybody = table
        covariance = float(self.units.inflation[self.j]) * everybody[:, :, 0] @ everybody[:, :, 0].T
        if exits is not None and isinstance(self.stretches.nuisance, Elsewhere):
            covariance += (exits.moved[:, :, 0] * exits.steps) @ exits.moved[:, :, 0].T
        return _arrays.to_host(covariance)


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
