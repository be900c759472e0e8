"""The compiled backend: the same sums as in NumPy, by the kernels, on all cores."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survscore._utils.arrays import read_only
from survscore.curves import SurvivalCurves
from survscore.engine import _few_times_kernels, _kernels
from survscore.engine.blocks import Block
from survscore.engine.sums import Sums
from survscore.metrics import Brier, Log, Loss
from survscore.weighting.stretches import Stretches, TimeIndex

#: The compiled form of a loss, bound to its exact class: a subclass may have changed the formula.
KERNELS: dict[type[Loss], int] = {Brier: _kernels.BRIER, Log: _kernels.LOG}


#: Numbers in a constant that is kept from block to block, at most.
LONGEST_CONSTANT = 1 << 17


def knows(losses: Sequence[Loss]) -> bool:
    """Whether all of these losses have a compiled form."""
    return all(type(loss) in KERNELS for loss in losses)


def as_curves(curves: SurvivalCurves, index: TimeIndex) -> _kernels.Curves:
    """Return curves as kernels take them."""
    return _kernels.Curves(curves.probabilities, *index.reading(curves).plain)


def as_weights(
    stretches: Sequence[Stretches], index: TimeIndex, rows: slice, none: _kernels.Curves
) -> _kernels.Weights:
    """Return the stretches of some rows as kernels take them; they may read one matrix of each kind of curves.

    `none` stands for curves that nobody asks for, so that no kernel is compiled for their absence.
    """
    m = index.times.size
    survival = next((one.survival for one in stretches if one.survival is not None), None)
    population = next((one.population for one in stretches if one.population is not None), None)
    return _kernels.Weights(
        label=stretches[0].label[rows],
        first_stop=_stacked([one.first_stop[rows] for one in stretches]),
        last_stop=_stacked([one.last_stop[rows] for one in stretches]),
        last_weight=_stacked([one.last_weight[rows] for one in stretches]),
        first_weight=_stacked([np.zeros(m) if one.first_weight is None else one.first_weight for one in stretches]),
        max_weight=np.array([one.max_weight for one in stretches]),
        of_curves=np.array([one.survival is not None for one in stretches]),
        of_population=np.array([one.population is not None for one in stretches]),
        survival=none if survival is None else as_curves(survival[rows], index),
        population=none if population is None else as_curves(population[rows], index),
    )


def _stacked(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return arrays as the rows of one; a single one without a copy, if it is contiguous, or short and constant.

    Always read-only, as some are: kernels are compiled anew for what may be written to.
    """
    first = arrays[0]
    if len(arrays) == 1 and first.flags.c_contiguous:
        return read_only(first[None])
    if len(arrays) == 1 and first.strides == (0,) and 0 < first.size <= LONGEST_CONSTANT:
        return _constant(first[0].item(), first.size, first.dtype)
    rows = np.empty((len(arrays), arrays[0].size), dtype=arrays[0].dtype)
    for row, array in zip(rows, arrays, strict=True):
        row[:] = array
    return read_only(rows)


@lru_cache(maxsize=8)
def _constant(value: float, size: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return the same number over and over; kept, since memory that comes and goes makes cores wait for each other."""
    return read_only(np.full((1, size), value, dtype=dtype))


def update(block: Block, index: TimeIndex, losses: Sequence[Loss], stretches: Sequence[Stretches]) -> Sums:
    """Return the sums over a block; one pass over the curves serves all losses and weightings.

    Each further matrix of curves of G, or of populations, needs one more.
    """
    sums = Sums.zero(len(block.curves), len(losses), len(stretches), index.times.size)
    kinds = np.array([KERNELS[type(loss)] for loss in losses], dtype=np.int64)
    epsilons = np.array([loss.epsilon for loss in losses], dtype=np.float64)
    for group in _by_curves(stretches):
        weights = None
        for a, curves in enumerate(block.curves if losses else block.curves[:1]):
            predicted = as_curves(curves, index)
            if weights is None:
                none = predicted._replace(rows=predicted.rows[:0])
                weights = as_weights([stretches[q] for q in group], index, block.rows, none)
            kernel = _few_times_kernels if few_times(weights, predicted) else _kernels
            found = kernel.first_moments(predicted, kinds, epsilons, weights)
            sums.losses[:, a][:, :, group] = found[0]
            sums.weights[:, group], sums.squares[group], sums.events[group] = found[1:]
    return sums


def few_times(weights: _kernels.Weights, *predicted: _kernels.Curves) -> bool:
    """Whether the kernels for few times are the faster ones; they read curves as they are, and weights of none."""
    own = weights.of_curves.any() or weights.of_population.any()
    few = predicted[0].lower.size <= _few_times_kernels.MOST_TIMES
    return bool(few and not own and all(one.direct for one in predicted))


def _by_curves(stretches: Sequence[Stretches]) -> list[list[int]]:
    """Group weightings so that each group reads at most one matrix of each kind."""
    common: list[int] = []
    by_curves: dict[tuple[int, int], list[int]] = {}
    for q, one in enumerate(stretches):
        if one.survival is None and one.population is None:
            common.append(q)
        else:
            by_curves.setdefault((id(one.survival), id(one.population)), []).append(q)
    first, *others = by_curves.values() or [[]]
    return [common + first, *others]


def deviation_of(
    loss: Loss,
    stretches: Stretches,
    centre: NDArray[np.float64],
    scale: NDArray[np.float64],
    chosen: Sequence[int] = (),
) -> _kernels.Deviation:
    """Return how kernels turn losses into deviations; of all models' centres up to three are `chosen`."""
    early = np.zeros(scale.size) if stretches.first_weight is None else stretches.first_weight * scale
    three = np.zeros((3, scale.size))
    for place, a in enumerate(chosen):
        if a >= 0:
            three[place] = centre[a]
    return _kernels.Deviation(KERNELS[type(loss)], loss.epsilon, three if chosen else centre, scale, early)


def deviations(
    block: Block,
    index: TimeIndex,
    loss: Loss,
    stretches: Stretches,
    centre: NDArray[np.float64],
    scale: NDArray[np.float64],
    columns: slice,
) -> NDArray[np.float64]:
    """Return the deviations of a block at some of the times: (models, rows, times)."""
    n = block.rows.stop - block.rows.start
    out = np.empty((len(block.curves), n, columns.stop - columns.start))
    deviation = deviation_of(loss, stretches, centre, scale)
    for a, curves in enumerate(block.curves):
        predicted = as_curves(curves, index)
        weights = as_weights([stretches], index, block.rows, predicted._replace(rows=predicted.rows[:0]))
        _kernels.deviations(predicted, deviation, a, weights, columns.start, columns.stop, out[a])
    return out
