"""First moments of predictions on a device: by kernels where they know loss and weights, else as the formulas say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from survscore import _arrays
from survscore.curves import SurvivalCurves
from survscore.engine.blocks import Block, Models
from survscore.engine.sums import Sums
from survscore.engine.tensors import DeviceSums, blocks, has_kernels, memory_of, on, update
from survscore.metrics import Loss
from survscore.stretches import Stretches, TimeIndex

MOST_TIMES = 2048  # for which individuals are counted by where their two stretches end


def sums_of(
    models: Models, index: TimeIndex, losses: Sequence[Loss], stretches: Sequence[Stretches]
) -> tuple[Sums, NDArray[np.float64]]:
    """Return the sums over all individuals, and how many are in either stretch; they come to the processor at the end.

    The latter are NaN where they were not found on the way.
    """
    device, m = index.outcomes.device, index.times.size
    curves = models.in_memory
    some = curves if curves is not None else next(iter(blocks(models, m, device))).curves
    with memory_of(device):
        total = DeviceSums(len(models.curves), len(losses), len(stretches), m, device)
        by_kernel, by_formula = _ways(some, index, losses, stretches)
        if by_kernel:
            for block in _whole(models, m, device):
                _add_by_kernel(block, index, losses, stretches, by_kernel, total)
        if by_formula:
            for block in blocks(models, m, device):
                update(block, index, losses, stretches, by_formula, total)
        sums, in_either = total.finish()
        in_either[by_formula] = np.nan
        return sums, in_either


def sums_of_block(block: Block, index: TimeIndex, losses: Sequence[Loss], stretches: Sequence[Stretches]) -> Sums:
    """Return the sums over one block."""
    device = index.outcomes.device
    with memory_of(device):
        total = DeviceSums(len(block.curves), len(losses), len(stretches), index.times.size, device)
        by_kernel, by_formula = _ways(block.curves, index, losses, stretches)
        if by_kernel:
            _add_by_kernel(block, index, losses, stretches, by_kernel, total)
        if by_formula:
            update(block, index, losses, stretches, by_formula, total)
        return total.finish()[0]


def _ways(
    curves: Sequence[SurvivalCurves], index: TimeIndex, losses: Sequence[Loss], stretches: Sequence[Stretches]
) -> tuple[list[int], list[int]]:
    """Return which weightings the kernels know, and which are for the formulas."""
    every = range(len(stretches))
    if not has_kernels(index) or index.times.size > MOST_TIMES:
        return [], list(every)
    from survscore.engine.tensor_kernels import know

    known = [know(losses, one, curves, index) for one in stretches]
    return [q for q in every if known[q]], [q for q in every if not known[q]]


def _whole(models: Models, n_columns: int, device: Any) -> Iterator[Block]:
    """Yield all individuals at once; batches stay as they come."""
    if models.in_memory is None:
        yield from blocks(models, n_columns, device)
    else:
        yield Block(slice(0, models.n), models.in_memory)


def _add_by_kernel(
    block: Block,
    index: TimeIndex,
    losses: Sequence[Loss],
    stretches: Sequence[Stretches],
    places: Sequence[int],
    total: DeviceSums,
) -> None:
    """Add the sums over a block; two weightings share a pass."""
    from survscore.engine.tensor_kernels import Predicted, count_stretches, first_moments

    m, device = index.times.size, index.outcomes.device
    weights = dict(zip(places, on(device, np.array([stretches[q].first_weight for q in places])), strict=True))
    n_first: dict[int, torch.Tensor] = {}
    # those of weight one are counted in any case, and then known to the others
    for q in sorted(places, key=lambda q: not _arrays.is_repeated(stretches[q].last_weight)):
        first, weight = id(stretches[q].first_stop), weights[q]
        counted = count_stretches(stretches[q], block.rows, m, n_first.get(first))
        n_first[first] = counted.n_first
        early = torch.stack((weight, weight.square())) * counted.n_first
        early = _where_any(counted.n_first, early)
        total.weights[:, q] += torch.stack((early[0], counted.free, counted.event))
        total.squares[q] += early[1] + counted.squares
        total.events[q] += counted.n_events
        total.in_either[q] += counted.n_first + counted.n_free + counted.n_events
    for a, curves in enumerate(block.curves if losses else []):
        predicted = Predicted.of(curves, index)
        for start in range(0, len(places), 2):
            two = places[start : start + 2]
            for k, loss in enumerate(losses):
                found = first_moments(predicted, loss, [stretches[q] for q in two], block.rows, m)
                for q, (early, late) in zip(two, found, strict=True):
                    total.losses[0, a, k, q] += _where_any(early, weights[q] * early)
                    total.losses[1, a, k, q] += late


def _where_any(counted: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Return values; 0 where nothing is counted, whatever the weight."""
    return torch.where(counted != 0, values, 0.0)
