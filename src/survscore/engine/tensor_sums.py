"""First moments of predictions on a device: by kernels where they know loss and weights, else as the formulas say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from survscore._utils import arrays as _arrays
from survscore.curves import SurvivalCurves
from survscore.engine.blocks import Block, Models
from survscore.engine.sums import Sums
from survscore.engine.tensors import (
    DeviceSums,
    Finished,
    Tensor,
    blocks,
    has_kernels,
    losses_of,
    memory_of,
    on,
    update,
)
from survscore.metrics import Loss
from survscore.weighting.stretches import Stretches, TimeIndex

MOST_TIMES = 2048  # for which individuals are counted by where their two stretches end
ROWS_OF_CENTRE = 64


@dataclass(frozen=True, eq=False)
class Squares:
    r"""Sums of squares of one model, found with its losses: about `centre`, since the score was not known yet.

    About the score they are :math:`\sum w^2 (\ell - s)^2 = \sum w^2 (\ell - c)^2 - 2 (s - c) \sum w^2 (\ell - c) +
    (s - c)^2 \sum w^2`, of which little cancels if c is some individuals' loss.

    Attributes
    ----------
    sums : Tensor of shape (5, times)
        See `_triton_squares`.
    counts : Tensor of shape (6, times)
        See `tensor_kernels.count_stretches`.
    """

    loss: Loss
    stretches: Stretches
    sums: Tensor
    centre: Tensor
    counts: Tensor

    def of(self, loss: Loss, stretches: Stretches) -> bool:
        """Whether they are of this loss and weighting; infinite weights may have been replaced, which count nowhere."""
        known = self.stretches
        same = (known.first_stop is stretches.first_stop, known.last_stop is stretches.last_stop,
                known.nuisance is stretches.nuisance)  # fmt: skip
        return loss == self.loss and all(same)

    def about(self, score: Tensor, first_weight: Tensor) -> Tensor:
        """Return the sums of squared deviations from a score, not yet scaled, (times,)."""
        off = score - self.centre
        early, _, early_squares, late_squares, cross = self.sums
        first = early_squares - 2.0 * off * early + off.square() * self.counts[0]
        second = late_squares - 2.0 * off * cross + off.square() * self.counts[5]
        squares: Tensor = first_weight.square() * first + second
        return squares


def sums_of(
    models: Models,
    index: TimeIndex,
    losses: Sequence[Loss],
    stretches: Sequence[Stretches],
    squares: list[Squares] | None = None,
) -> Callable[[], Finished]:
    """Start the sums over all individuals, and return what waits for them.

    They come to the processor once, at the end. Squares are added to a list, if there is one, where kernels give them;
    not of batches, each of which would have a centre of its own.
    """
    device, m = index.outcomes.device, index.times.size
    curves = models.in_memory
    some = curves if curves is not None else next(iter(blocks(models, m, device))).curves
    with memory_of(device):
        total = DeviceSums(len(models.curves), len(losses), len(stretches), m, device)
        by_kernel, by_formula = _ways(some, index, losses, stretches)
        if by_kernel:
            for block in _whole(models, m, device):
                add_by_kernel(block, index, losses, stretches, by_kernel, total, None if curves is None else squares)
        if by_formula:
            for block in blocks(models, m, device):
                update(block, index, losses, stretches, by_formula, total)
        return total.finish(_first_weights(stretches, by_kernel))


def sums_of_block(block: Block, index: TimeIndex, losses: Sequence[Loss], stretches: Sequence[Stretches]) -> Sums:
    """Return the sums over one block."""
    device = index.outcomes.device
    with memory_of(device):
        total = DeviceSums(len(block.curves), len(losses), len(stretches), index.times.size, device)
        by_kernel, by_formula = _ways(block.curves, index, losses, stretches)
        if by_kernel:
            add_by_kernel(block, index, losses, stretches, by_kernel, total)
        if by_formula:
            update(block, index, losses, stretches, by_formula, total)
        return total.finish(_first_weights(stretches, by_kernel))()[0]


def _first_weights(stretches: Sequence[Stretches], places: Sequence[int]) -> dict[int, NDArray[np.float64]]:
    weights = {q: stretches[q].first_weight for q in places}
    return {q: weight for q, weight in weights.items() if weight is not None}


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


def add_by_kernel(
    block: Block,
    index: TimeIndex,
    losses: Sequence[Loss],
    stretches: Sequence[Stretches],
    places: Sequence[int],
    total: DeviceSums,
    squares: list[Squares] | None = None,
) -> None:
    """Add the sums over a block; two weightings share a pass."""
    from survscore.engine.tensor_kernels import Predicted, count_stretches, first_moments

    m = index.times.size
    about: list[tuple[Loss, int, Tensor, Tensor]] = []
    # losses first: the device works on them for long, while the processor starts the rest
    for a, curves in enumerate(block.curves if losses else []):
        predicted = Predicted.of(curves, index)
        for k, loss in enumerate(losses):
            centre = None if squares is None else some_loss(loss, curves, index)
            for start in range(0, len(places), 2):
                two = places[start : start + 2]
                found = first_moments(predicted, loss, [stretches[q] for q in two], block.rows, m, centre)
                for q, sums in zip(two, found, strict=True):
                    total.losses[:, a, k, q] += sums[:2]
                    if centre is not None:
                        about.append((loss, q, sums, centre))
    n_first: dict[int, Tensor] = {}
    counts: dict[int, Tensor] = {}
    # those of weight one are counted in any case, and then known to the others
    for q in sorted(places, key=lambda q: not _arrays.is_repeated(stretches[q].last_weight)):
        first = id(stretches[q].first_stop)
        counts[q] = count_stretches(stretches[q], block.rows, m, n_first.get(first))
        n_first[first] = counts[q][0]
        total.counts[q] += counts[q]
    if squares is not None:
        for loss, q, sums, centre in about:  # of one model
            weights = torch.stack((counts[q][0], counts[q][1] + counts[q][2]))
            total.losses[:, 0, losses.index(loss), q] += weights * centre
            squares.append(Squares(loss, stretches[q], sums, centre, counts[q]))


def some_loss(loss: Loss, curves: SurvivalCurves, index: TimeIndex) -> Tensor:
    """Return what the predictions for some individuals cost as long as they are event-free, on average, (times,)."""
    some = curves[slice(0, ROWS_OF_CENTRE)]
    survival = index.reading(curves)(some.probabilities)
    return losses_of(loss, on(index.outcomes.device, survival).double())[0].mean(dim=0)
