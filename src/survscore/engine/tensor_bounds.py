"""What the lost could change, for individuals on a device: what `bounds` does, for tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from survscore._utils import arrays as _arrays
from survscore.curves import SurvivalCurves
from survscore.engine.blocks import Models
from survscore.engine.bounds import KEPT, AllBounds, LostLosses
from survscore.engine.moments import n_pairs, pairs
from survscore.engine.tensor_influence import contrast
from survscore.engine.tensors import Tensor, blocks, chunk_rows, losses_of, on
from survscore.metrics import Loss
from survscore.weighting.stretches import Stretches, TimeIndex, inverse


def bounds_of(
    index: TimeIndex,
    loss: Loss,
    stretches: Stretches,
    models: Models,
    constants: Sequence[SurvivalCurves],
    known_losses: NDArray[np.float64],
    known_weights: NDArray[np.float64],
    averages: NDArray[np.float64],
) -> AllBounds:
    """Return the bounds, given the sums over those of known status: losses (models, times) and weights (times)."""
    times, m, k, device = index.times, index.times.size, len(known_losses), index.outcomes.device
    lost_from: Any = stretches.lost_from
    if lost_from is None:
        raise TypeError("nobody is lost")
    lost: Tensor = (lost_from < on(device, stretches.population_stop)).nonzero()[:, 0]
    size = chunk_rows(m, device)
    chunks = [lost[start : start + size] for start in range(0, len(lost), size)]
    divisor = on(device, known_weights.copy())
    for rows in chunks:
        divisor += _shares(stretches, rows, times).sum(dim=0)
    lower, upper = (torch.zeros((n_pairs(k), m), dtype=torch.float64, device=device) for _ in range(2))
    of_averages = torch.zeros((2, n_pairs(k), len(averages)), dtype=torch.float64, device=device)
    ranges = on(device, averages)
    kept = None
    of_rows = _Rows(models, times, device)
    for rows in chunks:
        share = _shares(stretches, rows, times) / divisor
        predicted = [*of_rows(rows), *(on(device, one.at(times)).double() for one in constants)]
        losses = torch.stack([torch.stack([part * share for part in losses_of(loss, one)]) for one in predicted])
        unknown = share > 0
        for p, (a, b) in enumerate(pairs(k)):
            both = torch.where(unknown, contrast(losses, a, b), 0.0)
            lower[p] += both.amin(dim=0).sum(dim=0)
            upper[p] += both.amax(dim=0).sum(dim=0)
            for r, weights in enumerate(ranges):
                of_averages[:, p, r] += _extremes(both * weights)
        if len(chunks) == 1 and losses.numel() <= KEPT:
            kept = LostLosses(_arrays.to_host(losses), _arrays.to_host(unknown))
    with np.errstate(invalid="ignore", divide="ignore"):
        known = known_losses / _arrays.to_host(divisor)
    low, high, of_ranges = (_arrays.to_host(values) for values in (lower, upper, of_averages))
    return AllBounds(known, low, high, averages, of_ranges, kept)


def _extremes(both: Tensor) -> Tensor:
    """Return the least and the most that the lost can add to a mean over time, of (2 statuses, lost, times)."""
    event_free, event = both
    # event-free up to some time, with event from there on: all that can have happened to one individual
    until = (event_free - event).cumsum(dim=1)
    least, most = until.amin(dim=1).clamp(max=0.0), until.amax(dim=1).clamp(min=0.0)
    extremes: Tensor = event.sum() + torch.stack((least.sum(), most.sum()))
    return extremes


def _shares(stretches: Stretches, rows: Any, times: NDArray[np.float64]) -> Tensor:
    """Return how much each of the lost counts while its status is unknown, zero elsewhere: (lost, times)."""
    part: Any = stretches.rows(rows)
    column = torch.arange(times.size, device=rows.device)
    unknown: Tensor = (column >= part.lost_from[:, None]) & (column < part.population_stop[:, None])
    if part.population is None:
        return unknown.double()
    weight: Any = inverse(part.population.at(times), np.inf)
    return torch.where(unknown, weight, 0.0)


class _Rows:
    """What every model predicts for some individuals; batches are gone through for each of these calls."""

    def __init__(self, models: Models, times: NDArray[np.float64], device: Any) -> None:
        self.models, self.times, self.device = models, times, device

    def __call__(self, rows: Tensor) -> list[Tensor]:
        matrices = self.models.in_memory
        if matrices is not None:
            return [on(self.device, curves[rows].at(self.times)).double() for curves in matrices]
        found: list[list[Tensor]] = [[] for _ in self.models.curves]
        for block in blocks(self.models, self.times.size, self.device):
            inside = rows[(rows >= block.rows.start) & (rows < block.rows.stop)] - block.rows.start
            for part, curves in zip(found, block.curves, strict=True):
                part.append(on(self.device, curves[inside].at(self.times)).double())
        return [torch.cat(part) for part in found]
