r"""Every influence of individuals on a device, chunk by chunk: what `influence` does, for tensors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from survscore._utils import arrays as _arrays
from survscore.censoring.nuisance import Elsewhere, Here, Nuisance
from survscore.engine.blocks import Block, Models
from survscore.engine.moments import Moments, ScoredLoss, pairs
from survscore.engine.tensors import Tensor, blocks, event_cells, losses_of, on
from survscore.inference.units import Groups, Units
from survscore.weighting.stretches import Stretches

#: Of tables by exit or by group, in memory at once.
NUMBERS_PER_CHUNK = {"cpu": 1 << 23, "cuda": 1 << 26}


class Exits:
    """M(s; t) of all exits s at some times t, (models, exits, times); see `survscore.censoring.nuisance`.

    Parameters
    ----------
    nuisance : Nuisance
        Whose exits.
    table : Tensor of shape (models, exits + 1, times)
        Sums of deviations by how many exits came before.
    times : ndarray
        The evaluation times.
    """

    def __init__(self, nuisance: Nuisance, table: Tensor, times: NDArray[np.float64]) -> None:
        device = table.device
        self.nuisance: Any = nuisance
        after = table.flip(1).cumsum(1).flip(1)[:, 1:]
        reached = torch.arange(after.shape[1], device=device)[:, None] < on(device, nuisance.reached(times))
        self.moved = torch.where(reached, after, 0.0)
        self.steps = on(device, nuisance.steps)

    def spread(self, rows: slice) -> Tensor | float:
        """Return what estimating G from these individuals adds to the influences of some: (models, rows, times)."""
        n_exits = self.moved.shape[1]
        if n_exits == 0:
            return 0.0
        steps = self.steps[:, None] * self.moved
        drift = torch.cat((torch.zeros_like(steps[:, :1]), steps.cumsum(1)), dim=1)
        own_exit = self.nuisance.exits_before[rows].clamp(max=n_exits - 1)  # for those who left, within the range
        own = self.moved[:, own_exit] / self.nuisance.own_risk[own_exit][:, None]
        return torch.where(self.nuisance.left(rows)[:, None], own, 0.0) - drift[:, self.nuisance.passed[rows]]


def by_influence(
    scored: ScoredLoss,
    models: Models,
    groups: Groups | None,
    units: Units,
    averages: NDArray[np.float64],
    *,
    any_range: bool,
) -> Moments:
    """Make every influence, and add up its squares: any weighting, groups, batches, covariances over time."""
    m, k, device = scored.index.times.size, len(scored.scores), scored.index.outcomes.device
    nuisance = scored.stretches.nuisance
    n_exits = 0 if nuisance is None else len(nuisance.curve.times) + 1
    n_rows = n_exits + (0 if groups is None else groups.n_groups)
    most = NUMBERS_PER_CHUNK[device.type]
    width = m if any_range else max(1, min(m, most // max(k * n_rows, 1)))
    n_units = models.n if groups is None else groups.n_groups
    totals = Totals(
        k, n_units, averages, units.inflation, device, any_range=any_range, whole=width == m and groups is None
    )
    for first in range(0, m, width):
        columns = slice(first, min(first + width, m))
        exits = _exits(scored, models, columns)
        table = None
        if groups is not None:
            table = torch.zeros((k, groups.n_groups, columns.stop - first), dtype=torch.float64, device=device)
        for rows, influence in _influences(scored, models, exits, columns):
            if groups is None or table is None:
                totals.add(influence, columns, rows)
            else:
                add_by_label(influence, groups.codes[rows], table)
        if table is not None:
            totals.add(table, columns, slice(None))
        if exits is not None and isinstance(nuisance, Elsewhere):
            totals.add_greenwood(exits.steps, exits.moved, columns)
    return totals.finish().with_null(scored.null)


def deviations(scored: ScoredLoss, block: Block, columns: slice) -> Tensor:
    """Return the deviations of a chunk at some of the times, (models and constants, rows, times)."""
    times, device = scored.index.times[columns], scored.index.outcomes.device
    part = scored.stretches.rows(block.rows).columns(columns)
    event = event_cells(part, scored.index, block.rows, columns)
    scale, centre = on(device, scored.scale[columns]), on(device, scored.centre[:, columns])
    early, late = part.cells(times)
    cells = torch.where(scale > 0, on(device, early) + on(device, late), 0.0) * scale
    found = torch.empty((len(scored.scores), *cells.shape), dtype=torch.float64, device=device)
    for a, curves in enumerate(block.curves):
        event_free, with_event = losses_of(scored.loss, on(device, curves.at(times)).double())
        torch.mul(cells, torch.where(event, with_event, event_free) - centre[a], out=found[a])
    for a, constant in enumerate(scored.constants, start=len(block.curves)):
        event_free, with_event = (on(device, values[columns]) for values in scored.constant_losses(constant))
        torch.mul(cells, torch.where(event, with_event, event_free) - centre[a], out=found[a])
    return found


def _influences(
    scored: ScoredLoss, models: Models, exits: Exits | None, columns: slice
) -> Iterator[tuple[slice, Tensor]]:
    """Yield chunks of rows with their influences at some of the times, (models, rows, times)."""
    stretches, device = scored.stretches, scored.index.outcomes.device
    column = torch.arange(columns.start, columns.stop, device=device)
    for block in blocks(models, scored.index.times.size, device):
        influence = deviations(scored, block, columns)
        if scored.by_n:
            inside: Any = column < stretches.population_stop[block.rows][:, None]
            influence -= torch.where(inside, on(device, scored.offset[:, None, columns]), 0.0)
        if exits is not None and isinstance(exits.nuisance, Here):
            influence += exits.spread(block.rows)
        if scored.null is not None and scored.null.of_scored:
            influence[-1] += on(device, scored.null.influence(block.rows, scored.index.before_time, columns))
        yield block.rows, influence


def _exits(scored: ScoredLoss, models: Models, columns: slice) -> Exits | None:
    """Return M(s; t) at some of the times."""
    nuisance, device = scored.stretches.nuisance, scored.index.outcomes.device
    if nuisance is None:
        return None
    times = scored.index.times[columns]
    shape = (len(scored.scores), len(nuisance.curve.times) + 1, times.size)
    table = torch.zeros(shape, dtype=torch.float64, device=device)
    capped = scored.stretches.capped
    for block in blocks(models, scored.index.times.size, device):
        moving = deviations(scored, block, columns)
        if capped:
            moving *= on(device, scored.stretches.rows(block.rows).columns(columns).moves(times))
        add_by_label(moving, nuisance.exits_before[block.rows], table)
    return Exits(nuisance, table, times)


def influence_with_nuisance(
    values: Tensor, stretches: Stretches, times: NDArray[np.float64], columns: slice
) -> tuple[Tensor, Exits | None]:
    """Return everybody's influences, (models, individuals, times), and M(s; t); see the function of this name."""
    nuisance = stretches.nuisance
    if nuisance is None:
        return values, None
    moving = values * on(values.device, stretches.columns(columns).moves(times)) if stretches.capped else values
    shape = (len(values), len(nuisance.curve.times) + 1, times.size)
    table = torch.zeros(shape, dtype=torch.float64, device=values.device)
    add_by_label(moving, nuisance.exits_before, table)
    exits = Exits(nuisance, table, times)
    return values + exits.spread(slice(None)) if isinstance(nuisance, Here) else values, exits


def add_by_label(block: Tensor, labels: Any, table: Tensor) -> None:
    """Add rows, (models, rows, times), to the rows of a table that their labels name."""
    table.index_add_(1, labels, block)


def contrast(values: Tensor, a: int, b: int) -> Tensor:
    """Return the values of a model, or the differences of two."""
    return values[a] if a == b else values[a] - values[b]


class Totals:
    """Sums of squares over units on a device; see `influence.Totals`."""

    def __init__(
        self,
        n_models: int,
        n_units: int,
        averages: NDArray[np.float64],
        inflation: NDArray[np.float64],
        device: Any,
        *,
        any_range: bool,
        whole: bool,
    ) -> None:
        def zeros(*shape: int) -> Tensor:
            return torch.zeros(shape, dtype=torch.float64, device=device)

        self.pairs = pairs(n_models)
        n, m = len(self.pairs), averages.shape[1]
        self.averages, self._averages = averages, on(device, averages)
        self.inflation = on(device, np.broadcast_to(inflation, (n, m)).copy())
        self.pointwise, self.greenwood, self.of_averages = zeros(n, m), zeros(n, m), zeros(n, len(averages))
        self.over_time = zeros(n, m, m) if any_range else None
        self.means = None if whole else zeros(n, n_units, len(averages))
        self.moved_means: tuple[Tensor, Tensor] | None = None

    def add(self, influence: Tensor, columns: slice, units: slice) -> None:
        """Add influences of some units at some times, (models, units, times)."""
        for p, (a, b) in enumerate(self.pairs):
            values = contrast(influence, a, b)
            root, weights = self.inflation[p, columns].sqrt(), self._averages[:, columns]
            means = values @ torch.where(weights != 0, weights * root, 0.0).T  # NaN where a time rests on one unit
            if self.over_time is not None:
                scaled = values * root
                self.over_time[p] += scaled.T @ scaled
            self.pointwise[p, columns] += values.square().sum(dim=0)
            if self.means is None:
                self.of_averages[p] += means.square().sum(dim=0)
            else:
                self.means[p, units] += means

    def add_greenwood(self, steps: Tensor, moved: Tensor, columns: slice) -> None:
        """Add what an estimate of G from others varies, from M(s; t): an independent source, with no correction."""
        means = moved @ self._averages[:, columns].T
        self.moved_means = (steps, means if self.moved_means is None else self.moved_means[1] + means)
        for p, (a, b) in enumerate(self.pairs):
            values = contrast(moved, a, b)
            weighted = steps[:, None] * values
            self.greenwood[p, columns] += (weighted * values).sum(dim=0)
            if self.over_time is not None:
                self.over_time[p] += weighted.T @ values

    def finish(self) -> Moments:
        """Return the variances, in the processor's memory."""
        for p, (a, b) in enumerate(self.pairs):
            if self.means is not None:
                self.of_averages[p] = self.means[p].square().sum(dim=0)
            if self.moved_means is not None:
                steps, means = self.moved_means
                self.of_averages[p] += steps @ contrast(means, a, b).square()
        pointwise = _arrays.to_host(self.pointwise * self.inflation + self.greenwood)
        over_time = None if self.over_time is None else _arrays.to_host(self.over_time)
        return Moments(pointwise, self.averages, _arrays.to_host(self.of_averages), over_time)
