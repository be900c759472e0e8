"""First moments: sums of weighted losses, block by block; they merge by adding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survscore._utils import arrays
from survscore.engine.blocks import Block, row_blocks
from survscore.metrics import Loss
from survscore.weighting.interval_weights import IntervalWeights, TimeIndex, WeightSums

Array = Any  # a NumPy array, or a torch tensor


@dataclass(frozen=True, eq=False)
class ModelWeights:
    """The weights of all models under one weighting: one for all, or one for each where strata differ by model.

    A prediction that is the same for all individuals, after those of the models, then has those of the first.
    """

    each: tuple[IntervalWeights, ...]

    def place(self, model: int) -> int:
        """Return the position in `each` of a model's weights."""
        return model if model < len(self.each) else 0

    def __getitem__(self, model: int) -> IntervalWeights:
        return self.each[self.place(model)]

    def rows(self, rows: Any) -> ModelWeights:
        """Return the weights of some individuals."""
        return ModelWeights(tuple(weights.rows(rows) for weights in self.each))

    def n_buckets(self) -> int:
        """Return how many sums are kept apart; see `n_buckets`."""
        return max(n_buckets(weights) for weights in self.each)


def n_buckets(weights: IntervalWeights) -> int:
    """Return how many sums of a weighting are kept apart: those of each stratum, and of capped weights.

    Where statuses are projected, of all strata together those with C* >= t, and the others.
    """
    if weights.hidden_share is not None:
        return 1 if weights.observed_index is None else 2
    return weights.n_strata * (2 if split_by_cap(weights) else 1)


def split_by_cap(weights: IntervalWeights) -> bool:
    """Whether sums of both ranges are kept apart, and those of capped weights."""
    return weights.censoring_model is not None and weights.capped and weights.hidden_share is None


def buckets(weights: IntervalWeights) -> Array | None:
    """Return the bucket of each individual: its stratum, and behind all strata those whose own weight was capped."""
    if not split_by_cap(weights):
        return weights.codes
    capped = (weights.weight_at_event >= weights.max_weight) * weights.n_strata
    return capped if weights.codes is None else weights.codes + capped


@dataclass(frozen=True, eq=False)
class Sums:
    """What scores are made of."""

    #: For each weighting, weight times loss in the first range and in the second, by bucket; where predictions are.
    #: Shape (2, models, metrics, buckets, times).
    losses: tuple[Array, ...]
    #: For each weighting the sums of weights; None where they follow from the ranges alone.
    weights: tuple[WeightSums | None, ...]

    def __add__(self, other: Sums) -> Sums:
        with np.errstate(invalid="ignore"):  # an infinite weight makes its time undefined, which is meant
            losses = tuple(mine + theirs for mine, theirs in zip(self.losses, other.losses, strict=True))
            weights = tuple(
                None if mine is None or theirs is None else mine + theirs
                for mine, theirs in zip(self.weights, other.weights, strict=True)
            )
            return Sums(losses, weights)

    def numpy(self) -> Sums:
        """Return the same in the processor's memory."""
        return Sums(tuple(map(arrays.to_host, self.losses)), self.weights)


def first_moments(block: Block, index: TimeIndex, losses: Sequence[Loss], weightings: Sequence[ModelWeights]) -> Sums:
    """Return the sums over a block, in array code: a loss under a weighting, as the formulas say."""
    times, m = index.times, index.times.size
    every = slice(0, m)
    parts = [weights_of.rows(block.rows) for weights_of in weightings]
    event_free = event_free_cells(index, block.rows, every)
    shape = (2, len(block.curves), len(losses))
    sums = [arrays.zeros((*shape, part.n_buckets(), m), event_free) for part in parts]
    cells = [[_cells(weights_of, times) for weights_of in part.each] for part in parts] if losses else []
    for a, curves in enumerate(block.curves if losses else ()):
        survival = arrays.as_float64(index.interpolation(curves)(curves.probabilities))
        # statuses that are known are the same under all weightings
        projected = [part[a].hidden_share is not None for part in parts]
        statuses = [part[a].event_free(event_free, times, every) for part in parts]
        for k, loss in enumerate(losses):
            known = None if all(projected) else loss_cells(loss, survival, event_free)
            for q, part in enumerate(parts):
                weights = part[a]
                values = loss_cells(loss, survival, statuses[q], projected=True) if projected[q] else known
                for place, cell in enumerate(cells[q][part.place(a)]):
                    # other models may have more strata
                    found = sums[q][place, a, k, : n_buckets(weights)]
                    found += _by_bucket(weights, cell, values)
    return Sums(tuple(sums), tuple(_weights_of(part[0], times, event_free) for part in parts))


def event_free_cells(index: TimeIndex, rows: Any, columns: slice) -> Array:
    """Return which cells are event-free as far as individuals were followed, (individuals, times)."""
    before_time = index.before_time[rows]
    end = arrays.where(arrays.as_bool(index.label[rows]), before_time, np.int32(index.times.size))
    return arrays.columns(columns.stop, before_time)[columns] < end[:, None]


def loss_cells(loss: Loss, survival: Array, event_free: Array, *, projected: bool = False) -> Array:
    """Return the loss of each cell as a new array, by a status that is known or, where `projected`, a probability."""
    return _computed(loss, loss.of_fraction if projected else loss, survival, event_free)


def both_losses(loss: Loss, survival: Array) -> tuple[Array, Array]:
    """Return the loss of each cell with event, and what being event-free adds to it, as a new array."""
    with_event = _computed(loss, loss.of_event, survival)
    return with_event, _computed(loss, loss.of_event_free, survival) - with_event


def _computed(loss: Loss, formula: Callable[..., Any], *cells: Array) -> Array:
    """Return what a formula of a loss makes of matrices; one that is not written for tensors gets NumPy arrays."""
    if not arrays.is_tensor(cells[0]) or (loss.takes_tensors and "takes_tensors" in vars(type(loss))):
        return formula(*cells)
    return arrays.beside(formula(*map(arrays.to_host, cells)), cells[0])


def _cells(weights: IntervalWeights, times: NDArray[np.float64]) -> tuple[Array, ...]:
    """Return the weights of a block, of both ranges together unless they are kept apart."""
    split = split_by_cap(weights)
    if split or weights.individual:
        early, late = weights.cells(times)
        return (early, late) if split else (early + late,)
    return (cell_weights(weights, slice(0, times.size)),)


def cell_weights(weights: IntervalWeights, columns: slice) -> Array:
    """Return the weights of all cells, (individuals, times), where they come from tables; booleans, if all are one."""
    column = arrays.columns(columns.stop, weights.event_index)[columns]
    counted = column < weights.last_index[:, None]
    if weights.all_ones:
        return counted if weights.sample is None else counted * weights.sample.values[:, None]
    cells = arrays.zeros(counted.shape, counted)  # no product: a weight that does not count may be infinite
    arrays.overwrite(cells, counted, weights.weight_at_event[:, None])
    arrays.overwrite(cells, column < weights.event_index[:, None], weights.at_risk(columns))
    if weights.sample is not None:
        cells *= weights.sample.values[:, None]
    return cells


def _by_bucket(weights: IntervalWeights, cell: Array, values: Array) -> Array:
    """Return the sums of weight times loss, (buckets, times)."""
    codes = buckets(weights)
    if weights.hidden_share is not None:
        total = arrays.column_products(cell, values)[None]
        if weights.observed_index is None:
            return total
        column = arrays.columns(cell.shape[1], weights.event_index)
        observed = arrays.column_products(cell * (column < weights.observed_index[:, None]), values)[None]
        return arrays.concatenate([observed, total - observed])
    with np.errstate(invalid="ignore"):
        if codes is None:
            return arrays.column_products(cell, values)[None]
        table = arrays.zeros((n_buckets(weights), cell.shape[1]), values)
        arrays.add_rows(table, codes, cell * values)
        return table


def weight_sums(weights: IntervalWeights, index: TimeIndex) -> WeightSums:
    """Return the sums of weights, block by block where they, or statuses, come from curves of each individual."""
    m = index.times.size
    if not weights.individual:
        return weights.sums(m)
    parts = []
    for rows in row_blocks(len(index.outcomes), m, index.outcomes.time):
        event_free = event_free_cells(index, rows, slice(0, m))
        parts.append(_weights_of(weights.rows(rows), index.times, event_free))
    return reduce(WeightSums.__add__, [part for part in parts if part is not None])


def _weights_of(weights: IntervalWeights, times: NDArray[np.float64], event_free: Array) -> WeightSums | None:
    """Return the sums of weights that come from curves of each individual; others need no matrix."""
    if not weights.individual:
        return None
    early, late = weights.cells(times)
    event = ~event_free
    with np.errstate(invalid="ignore"):
        if weights.hidden_share is None:
            of_event, of_others = arrays.where(event, late, 0.0), arrays.where(event, 0.0, late)
        else:
            of_others = weights.event_free(event_free, times, slice(0, times.size)) * late
            of_event = late - of_others
        squares, counted, sample = early**2 + late**2, event & (late != 0), weights.sample
        if sample is not None and sample.frequency:
            squares, counted = squares / sample.values[:, None], counted * sample.values[:, None]
        sums = [arrays.to_host(values.sum(0)) for values in (early, of_others, of_event, squares)]
        counts = arrays.to_host(counted.sum(0)).astype(np.float64)
    return WeightSums(np.array(sums[:3]), sums[3], counts, sums[0][None])
