r"""Variances of scores: every influence, block by block, and at once squared.

With deviations :math:`e_i(t) = w_i(t) [\ell_i(t) - s(t)] / \sum_k w_k(t)`, the influences are these plus what
estimating the curve inside the weights adds (`engine.influence`), for which individuals are visited in order of time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survscore._utils import arrays
from survscore._utils.parallel import cached_property
from survscore.curves import SurvivalCurves
from survscore.engine.blocks import Models, row_blocks
from survscore.engine.influence import CurveInfluence, OrderedExits
from survscore.engine.moments import Moments, Totals
from survscore.engine.null import NullInfluence
from survscore.engine.sums import ModelWeights, both_losses, cell_weights, event_free_cells, loss_cells
from survscore.inference.units import Groups, Units
from survscore.metrics import Loss
from survscore.weighting.interval_weights import IntervalWeights, TimeIndex

Array = Any  # a NumPy array, or a torch tensor

TABLE_CELLS = 1 << 25  # of a table of groups by times, or of predictions that came in batches, in memory at once


@dataclass(frozen=True, eq=False)
class ScoredLoss:
    """One loss under one weighting: its scores, and what turns losses into deviations.

    The score is ``sum_i w_i loss_i * scale``, and individual i's deviation ``w_i (loss_i - centre) * scale``: divided
    by the sum of weights, `centre` is the score itself; divided by n(t) it is zero, and each individual in the
    population has `offset` less.
    """

    index: TimeIndex
    loss: Loss
    weights: ModelWeights
    constants: Sequence[SurvivalCurves]  # Predictions that are the same for all individuals, after those of the models.
    scores: NDArray[np.float64]  # Shape (models and constants, times).
    centre: NDArray[np.float64]  # Shape (models and constants, times).
    scale: NDArray[np.float64]  # As `weights` has them. Shape (weights, times).
    offset: NDArray[np.float64]  # Shape (models and constants, times).
    #: For each model, by stratum, the sum of the deviations whose weights move with the curve that was estimated. Shape
    #: (strata, times).
    moving_totals: Sequence[NDArray[np.float64]]
    null: NullInfluence | None = None  # What estimating the last of the constants adds.

    @property
    def by_n(self) -> bool:
        """Whether some offset has to be taken off."""
        return bool(self.offset.any())

    @property
    def fitted(self) -> bool:
        """Whether a curve inside the weights was estimated."""
        return any(weights.censoring_model is not None for weights in self.weights.each)

    @cached_property
    def exits(self) -> list[OrderedExits | None]:
        """The individuals in order of time, and the jumps among them, for each of the weights."""
        models = [weights.censoring_model for weights in self.weights.each]
        return [None if model is None else OrderedExits.of(self.index, model) for model in models]

    @property
    def training_steps(self) -> NDArray[np.float64]:
        """The Greenwood weights of a curve that was fitted to others."""
        model = self.weights[0].censoring_model
        return np.zeros(0) if model is None else model.curve.variance_steps

    def constant_losses(self, constant: SurvivalCurves) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the losses of a prediction that is the same for all individuals: event-free, and with event."""
        survival = constant.at(self.index.times)[0]
        return self.loss.of_event_free(survival), self.loss.of_event(survival)


#: A loss under a weighting, and the predictions of all models that it is of.
Term = tuple[ScoredLoss, Models]


def second_moments(
    terms: Sequence[Term], groups: Groups | None, units: Units, averages: NDArray[np.float64], *, any_range: bool
) -> Moments:
    """Make every influence, and add up its squares: any weighting, groups, batches, covariances over time.

    A score may be the sum of several terms, such as those of all statuses (`multiclass`): then their influences are
    added first.
    """
    scored, models = terms[0]
    m, k, time = scored.index.times.size, len(scored.scores), scored.index.outcomes.time
    n_units = models.n if groups is None else groups.n_groups
    # predictions that come in batches are collected, since individuals are visited in order of time
    collected = models.in_memory is None and scored.fitted
    n_rows = max(0 if groups is None else n_units, models.n if collected else 0)
    width = m if any_range or not n_rows else max(1, min(m, TABLE_CELLS // (k * n_rows)))
    totals = Totals(
        k, n_units, averages, units.inflation, any_range=any_range, whole=width == m and groups is None, like=time
    )
    for first in range(0, m, width):
        columns = slice(first, min(first + width, m))
        table = None if groups is None else [arrays.zeros((n_units, columns.stop - first), time) for _ in range(k)]
        visits = [
            Influences(of_term, of_models.collected(scored.index.times[columns]) if collected else of_models, columns)
            for of_term, of_models in terms
        ]
        of_first, *of_others = (visit.blocks() for visit in visits)
        for of_block in of_first:  # not by zip, which keeps the matrices of an earlier block
            rows, influences, jumps = reduce(_added, (next(blocks) for blocks in of_others), of_block)
            if jumps is not None:
                totals.add_jumps(jumps[0], scored.training_steps, jumps[1], columns)
            if table is None:
                if units.factors is not None:
                    factors = units.factors.of_rows(rows, columns)
                    influences[:] = [influence * factors for influence in influences]
                totals.add(influences, columns, rows)
            else:
                codes = groups.codes[rows]  # type: ignore[union-attr]
                for of_groups, influence in zip(table, influences, strict=True):
                    arrays.add_rows(of_groups, codes, influence)
        if table is not None:
            totals.add(table, columns, slice(None))
    return totals.finish().with_null(scored.null)


#: Which individuals a block is of, and their influences, (rows, times) for each model; of a curve that was fitted to
#: others, which of its jumps fall into the block, and X(s; t) at these, (jumps, times) for each model.
BlockInfluences = tuple[Any, list[Array], tuple[Array, list[Array]] | None]


def _added(mine: BlockInfluences, theirs: BlockInfluences) -> BlockInfluences:
    """Add the influences of two terms on the same individuals, into the first."""
    (rows, influences, jumps), (_, others, other_jumps) = mine, theirs
    for a, other in enumerate(others):
        influences[a] += other
    if jumps is not None and other_jumps is not None:
        jumps = jumps[0], [X + other for X, other in zip(jumps[1], other_jumps[1], strict=True)]
    return rows, influences, jumps


class Influences:
    """The influences of all individuals at some of the evaluation times, block by block."""

    def __init__(self, scored: ScoredLoss, models: Models, columns: slice) -> None:
        self.scored, self.models, self.columns = scored, models, columns
        # moved once where predictions live, not with every block
        time = scored.index.outcomes.time
        self.column = arrays.columns(columns.stop, time)[columns]
        self.grid = TimeIndex(scored.index.outcomes, scored.index.times[columns])
        self.scale, self.centre = (
            arrays.beside(values[..., columns], time) for values in (scored.scale, scored.centre)
        )
        self.constants = [
            arrays.beside(constant.at(scored.index.times[columns]), time) for constant in scored.constants
        ]
        totals = [total[:, columns] for total in scored.moving_totals]
        if scored.fitted and any(weights.individual for weights in scored.weights.each):
            self.operators = [self._operator(a, 0.0 * total) for a, total in enumerate(totals)]
            totals = self._totals()
        self.operators = [self._operator(a, total) for a, total in enumerate(totals)]

    def _operator(self, a: int, total: NDArray[np.float64]) -> CurveInfluence | None:
        censoring_jumps = self.scored.exits[self.scored.weights.place(a)]
        start = -arrays.beside(total, self.scored.index.outcomes.time)
        return None if censoring_jumps is None else CurveInfluence(censoring_jumps, self.columns, start)

    def _totals(self) -> list[NDArray[np.float64]]:
        """Return for each model, by stratum, the sum of the deviations whose weights move with the estimated curve."""
        width = self.columns.stop - self.columns.start
        totals = [np.zeros((self.scored.weights[a].n_strata, width)) for a in range(len(self.scored.scores))]
        for _, rows, _, gradients in self._deviations():
            for a, (x, _) in gradients.items():
                codes = self.scored.weights[a].codes
                inside = np.zeros(len(x), dtype=np.intp) if codes is None else arrays.to_host(codes[rows])
                arrays.add_rows(totals[a], inside, arrays.to_host(x))
        return totals

    def blocks(self) -> Iterator[BlockInfluences]:
        """Yield which individuals, their influences, and what a curve that was fitted to others adds."""
        scored, columns = self.scored, self.columns
        n_exits = [None if one is None else iter(one.n_exits(self.cut)) for one in scored.exits]
        for block, rows, influences, gradients in self._deviations():
            jumps: list[Any] = []
            jumps_in_block = [
                None if one is None or counts is None else one.in_block(block, next(counts))
                for one, counts in zip(scored.exits, n_exits, strict=True)
            ]
            for a, (x, lo) in gradients.items():
                operator, in_block = self.operators[a], jumps_in_block[scored.weights.place(a)]
                if operator is None or in_block is None:
                    continue
                if operator.rows.model.fitted_on_sample:
                    operator.add(influences[a], x[:, lo:], in_block, lo)
                else:
                    jumps.append(operator.at_training_jumps(x, in_block, lo))
            sample = scored.weights[0].sample
            own = None if sample is None else sample.values[rows][:, None]
            if scored.by_n:
                stop = scored.weights[0].population_index[rows]
                inside = self.column < stop[:, None]
                if own is not None:
                    inside = inside * own
                for a in range(len(influences)):
                    influences[a] -= inside * arrays.beside(scored.offset[a, columns], influences[a])
            if scored.null is not None and scored.null.of_scored:
                of_null = scored.null.influence(rows, scored.index.before_time, columns)
                influences[-1] += of_null if own is None else of_null * own
            yield rows, influences, (jumps[0][0], [X for _, X in jumps]) if jumps else None

    def _deviations(self) -> Iterator[tuple[slice, Any, list[Array], dict[int, tuple[Array, int]]]]:
        """Yield where a block is in order, which individuals these are, and their deviations, (rows, times) each.

        Also, for each model with an estimated curve, the gradients that the operator adds up, from which column on.
        """
        for block, rows, curves, picked in self._predictions():
            influences: list[Array] = []
            gradients: dict[int, tuple[Array, int]] = {}
            event_free = event_free_cells(self.scored.index, rows, self.columns)
            parts = [weights.rows(rows) for weights in self.scored.weights.each]
            times = self.scored.index.times
            cells = [
                (part, self._weights(part, scale), part.event_free(event_free, times, self.columns))
                for part, scale in zip(parts, self.scale, strict=True)
            ]
            for a in range(len(self.scored.scores)):
                part, cell, status = cells[self.scored.weights.place(a)]
                survival = self._read(curves[a], picked) if a < len(curves) else self.constants[a - len(curves)]
                deviation, moving = self._deviation(a, part, survival, status, cell)
                if (operator := self.operators[a]) is not None:
                    first = operator.rows.column_of(block.start) - self.columns.start  # that the block's jumps reach
                    gradients[a] = moving, min(max(first, 0), len(self.column))
                influences.append(deviation)
                del survival, moving
            del cells, parts, event_free, part, cell, status  # matrices that are not needed any more
            yield block, rows, influences, gradients

    def _predictions(self) -> Iterator[tuple[slice, Any, Sequence[SurvivalCurves], Any]]:
        """Yield where a block is in order, which individuals these are, every model's curves, and which of their rows.

        None stands for all rows: those of a block that was cut out already.
        """
        scored, models = self.scored, self.models
        if not scored.fitted:
            for part in models.blocks(self.columns.stop - self.columns.start):
                yield part.rows, part.rows, part.curves, None
            return
        matrices = models.in_memory
        if matrices is None:
            raise TypeError("batches have no order of time")
        for block in self.cut:
            rows = scored.index.order[block]
            yield block, rows, matrices, rows

    @cached_property
    def cut(self) -> list[slice]:
        """The blocks in order of time, where there are such."""
        scored, models, width = self.scored, self.models, self.columns.stop - self.columns.start
        index, matrices = scored.index, models.in_memory
        blocks = row_blocks(models.n, width, index.outcomes.time, 1 if matrices is None else len(matrices))
        martingale = any(one is not None and one.martingale for one in scored.exits)
        return list(_between_times(blocks, index) if martingale else blocks)

    def _read(self, curves: SurvivalCurves, rows: Any) -> Array:
        """Return the predictions for some individuals, None for all, in double precision."""
        matrix = curves.probabilities if rows is None else arrays.pick_rows(curves.probabilities, rows)
        return arrays.as_float64(self.grid.interpolation(curves)(matrix))

    def _weights(self, part: IntervalWeights, scale: Array) -> Array:
        """Return the weights of a block divided by the sum of the weights; 0 where there is no score."""
        if not part.individual:
            return cell_weights(part, self.columns) * scale
        early, late = part.cells(self.scored.index.times, self.columns)
        return arrays.where(scale > 0, early + late, 0.0) * scale

    def _deviation(
        self, a: int, part: IntervalWeights, survival: Array, status: Array, cell: Array
    ) -> tuple[Array, Array]:
        """Return w (loss - centre) / sum of w, and what the running sums of the operator are of."""
        if part.hidden_share is None:
            deviation = self._centred(a, loss_cells(self.scored.loss, survival, status), cell)
            moves = part.capped and self.operators[a] is not None
            return deviation, deviation * self._moves(part) if moves else deviation
        with_event, slope = both_losses(self.scored.loss, survival)
        moving = slope * status
        deviation = self._centred(a, with_event + moving, cell)
        if part.hidden_base is not None:  # the derivative by an incidence, not by the logarithm of the status
            moving = slope * part.hidden_share[:, None]
        moving *= cell
        moving *= part.hidden(self.columns)
        return deviation, moving

    def _centred(self, a: int, losses: Array, cell: Array) -> Array:
        losses -= self.centre[a]
        losses *= cell
        return losses

    def _moves(self, part: IntervalWeights) -> Array:
        """Return which weights move with the curve: not capped ones."""
        early = part.at_risk(self.columns) < part.max_weight  # of the curve that was estimated, not of the population
        late = (part.weight_at_event < part.max_weight)[:, None]
        return arrays.where(self.column < part.event_index[:, None], early, late)


def _between_times(blocks: Iterator[slice], index: TimeIndex) -> Iterator[slice]:
    """Move the ends of blocks to where a time ends: all individuals of one time are in one block."""
    time, start = index.ordered_time, 0
    for block in blocks:
        stop = int(arrays.count_below(time, time[block.stop - 1 : block.stop], inclusive=True)[0])
        if stop > start:
            yield slice(start, stop)
            start = stop


@dataclass(frozen=True, eq=False)
class MeanInfluences:
    """The influences on the mean over time of each model's score; what two weightings have in common shows in these."""

    scores: NDArray[np.float64]  # The means over time. Shape (models,).
    values: NDArray[np.float64]  # The influences. Shape (models, n).
    #: Where the curve was fitted to others, its Greenwood weights and the means of X(s; t); else empty. Shape (jumps,)
    #: and (models, jumps).
    steps: NDArray[np.float64]
    censoring_gradient: NDArray[np.float64]


def mean_influences(scored: ScoredLoss, models: Models, weights: NDArray[np.float64]) -> MeanInfluences:
    """Return each individual's influence on the mean over time with these weights of the times."""
    m, k = scored.index.times.size, len(scored.scores)
    values = np.zeros((k, models.n))
    totals = Totals(k, models.n, weights[None], np.ones(m), any_range=False, whole=True)
    for rows, influences, jumps in Influences(scored, models, slice(0, m)).blocks():
        if jumps is not None:
            totals.add_jumps(jumps[0], scored.training_steps, jumps[1], slice(0, m))
        for of_model, influence in zip(values, influences, strict=True):
            of_model[rows] = influence @ weights
    used = weights > 0
    steps, gradients = np.zeros(0), np.zeros((k, 0))
    if totals.jump_means is not None:
        steps, gradients = totals.jump_means[0], np.array(totals.jump_means[1])[:, :, 0]
    return MeanInfluences(scored.scores[:, used] @ weights[used], values, steps, gradients)
