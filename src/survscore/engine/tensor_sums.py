"""First moments of predictions on a device: by kernels where they know loss and weights, else as the formulas say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from survscore.engine.blocks import Block, Models
from survscore.engine.sums import Sums
from survscore.engine.tensors import DeviceSums, blocks, has_kernels, memory_of, on, update
from survscore.metrics import Brier, Loss
from survscore.stretches import Stretches, TimeIndex


def sums_of(models: Models, index: TimeIndex, losses: Sequence[Loss], stretches: Sequence[Stretches]) -> Sums:
    """Return the sums over all individuals; they come to the processor once, at the end."""
    device, m = index.outcomes.device, index.times.size
    with memory_of(device):
        total = DeviceSums(len(models.curves), len(losses), len(stretches), m, device)
        kernels = has_kernels(index)
        by_kernel = [q for q, one in enumerate(stretches) if kernels and _known(models, index, losses, one)]
        by_formula = [q for q in range(len(stretches)) if q not in by_kernel]
        if by_kernel:
            for block in _whole(models, m, device):
                _add_by_kernel(block, index, losses, stretches, by_kernel, total)
        if by_formula:
            for block in blocks(models, m, device):
                update(block, index, losses, stretches, by_formula, total)
        return total.finish()


def _known(models: Models, index: TimeIndex, losses: Sequence[Loss], stretches: Stretches) -> bool:
    from survscore.engine.tensor_kernels import know

    curves = models.in_memory
    some = curves if curves is not None else next(iter(blocks(models, index.times.size, index.outcomes.device))).curves
    return know(losses, stretches, some, index)


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
    from survscore.engine.tensor_kernels import Predicted, first_moments

    device, m = index.outcomes.device, index.times.size
    for start in range(0, len(places), 2):
        two = places[start : start + 2]
        for a, curves in enumerate(block.curves):
            predicted = Predicted.of(curves, index)
            # without losses, any of them finds the weights
            for k, loss in enumerate(losses or ([Brier()] if a == 0 else [])):
                found = first_moments(
                    predicted, loss, [stretches[q] for q in two], block.rows, m, weights=a == 0 and k == 0
                )
                for q, (early, late, n_first, *of_second) in zip(two, found, strict=True):
                    weight = on(device, stretches[q].first_weight)
                    if losses:
                        total.losses[0, a, k, q] += _where_any(early, weight * early)
                        total.losses[1, a, k, q] += late
                    if a == 0 and k == 0:
                        free, event, squares, n_events = of_second
                        total.weights[0, q] += _where_any(n_first, weight * n_first)
                        total.weights[1, q] += free
                        total.weights[2, q] += event
                        total.squares[q] += _where_any(n_first, weight.square() * n_first) + squares
                        total.events[q] += n_events


def _where_any(counted: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Return values; 0 where nothing is counted, whatever the weight."""
    return torch.where(counted != 0, values, 0.0)
