r"""The fast way to second moments, for large matrices in memory.

The terms of different exits s in the influences are orthogonal (see `survscore.censoring.nuisance`), so that

.. math::

    \sum_i \phi_i(t)^2 = \sum_i e_i(t)^2 - \sum_{s \le t} \frac{q_s}{r_s (r_s - q_s)} [2 M E - M^2](s; t), \qquad
    E(s; t) = \sum_{k: T_k > s} e_k(t),

where E is M if no weight is capped. The squares are summed in the order of the rows; only those in their second stretch
are visited in the order of time, in runs whose sums combine. For a mean over time, with a bar for
:math:`\sum_j c_j \cdot(t_j)`,

.. math::

    \sum_i \bar\phi_i^2 = \sum_i \bar e_i^2 + 2 \sum_s \left[\frac{1}{r_s} \sum_{i \text{ left at } s} \bar e_i
        - \frac{q_s}{r_s (r_s - q_s)} \bar E(s)\right] \bar M(s) + \sum_s \frac{q_s}{r_s (r_s - q_s)} \bar M(s)^2, \\
    \bar M(s) = \sum_{j: t_j \ge s} c_j \sum_{k: T_k > t_j} e_k(t_j)
        + \sum_{k: T_k > s} \sum_{j: t_j \ge T_k} c_j e_k(t_j).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survscore._config import config
from survscore._utils.parallel import each, row_blocks
from survscore.censoring.nuisance import Elsewhere, Here
from survscore.curves import SurvivalCurves
from survscore.engine import _few_times_kernels as few_times
from survscore.engine import _moment_kernels as kernels
from survscore.engine import compiled
from survscore.engine.blocks import Models
from survscore.engine.grouped import group_products
from survscore.engine.moments import Moments, ScoredLoss, contrast, n_pairs, pairs
from survscore.engine.null import NullInfluence
from survscore.engine.passes import (
    CONSTANT,
    FIRST_TO_CONSTANT,
    OF_MODELS,
    SECOND_TO_CONSTANT,
    Pass,
    constant_of,
    curves_of,
    cut,
    passes,
)
from survscore.engine.time_order import TimeOrder
from survscore.inference.units import Groups, Units

RUNS = 128  # at most, to be shared out among cores
ROWS_PER_RUN = 2048  # at least
BLOCKS_PER_WAVE = 2  # for each core
ROWS_PER_BLOCK = 4096  # at most, where each keeps the means over time of its rows; of many rows
BLOCKS_WITH_MEANS = 128  # there are so many blocks
EXIT_RANGES = 64  # at most, to be shared out among cores


def fits(scored: ScoredLoss, models: Models, groups: Groups | None) -> bool:
    """Whether the identity holds, or is not needed since groups are visited, and everything is in memory."""
    nuisance = scored.stretches.nuisance
    orthogonal = not isinstance(nuisance, Here) or nuisance.orthogonal
    speaks_for_all = scored.stretches.population_stop.strides == (0,)
    holds = orthogonal and (speaks_for_all or not scored.by_n)
    return models.in_memory is not None and (groups is not None or holds)


def by_identity(
    scored: ScoredLoss,
    models: Models,
    groups: Groups | None,
    units: Units,
    averages: NDArray[np.float64],
    *,
    pointwise: bool = True,
) -> Moments:
    """Return the moments; see the description of the module. With groups, the sums of squares are over these.

    If they are not wanted `pointwise`, there are only those of the averages, unless others come with them.
    """
    curves = models.in_memory
    if curves is None:
        raise TypeError("batches are not in memory")
    m, k = scored.index.times.size, len(scored.scores)
    inflation = units.inflation
    scaled = np.where(averages != 0, averages * np.sqrt(inflation), 0.0)  # NaN where a time rests on one individual
    at_times, of_averages = np.zeros((n_pairs(k), m)), np.zeros((n_pairs(k), len(averages)))
    added, added_to_averages = np.zeros_like(at_times), np.zeros_like(of_averages)
    nuisance = scored.stretches.nuisance
    order = None if nuisance is None else TimeOrder(scored, nuisance)
    # G of others is an independent source of variance, to which no small-sample correction belongs
    summed = np.concatenate((scaled, averages)) if isinstance(nuisance, Elsewhere) else scaled
    null = _Null(scored, scored.null, summed) if scored.null is not None and scored.null.of_scored else None
    # a group's influence has what its members' have of the estimation of G; that of others stands beside it
    of_exits = order if groups is None or isinstance(nuisance, Elsewhere) else None
    for one in passes(len(curves), k - 1 if scored.constants else -1):
        last = slice(len(summed) - len(averages), None)  # without the correction, where there are both
        by_exit = None
        if of_exits is not None and len(averages):
            by_exit = _MeansByExit(scored, one, of_exits, summed[last])
        if groups is None or by_exit is not None:
            products = _products(scored, curves, one, summed, by_exit, null, pointwise=pointwise)
        of_means = None if by_exit is None else by_exit.finish()
        del by_exit  # its sums are as many as there are exits
        runs = _runs(scored, curves, one, of_exits) if of_exits is not None and pointwise else None
        if groups is not None:
            products = group_products(scored, curves, one, groups, scaled, order)
        for which in one.wanted:
            p = one.place(which)
            at_times[p], of_averages[p] = products[0][which], products[1][which, : len(averages)]
            if runs is not None:
                added[p] = runs[which]
            if of_means is not None:
                added_to_averages[p] = of_means[which]
    if scored.by_n and groups is None:  # everybody has the same offset, which takes out the mean
        for p, (a, b) in enumerate(pairs(k)):
            totals = np.nan_to_num(contrast(scored.scores, a, b))
            at_times[p] -= np.square(totals) / models.n
            of_averages[p] -= np.square(scaled @ totals) / models.n
    independent = isinstance(nuisance, Elsewhere)
    at_times = at_times * inflation + added if independent else (at_times - added) * inflation
    return Moments(at_times, averages, of_averages + added_to_averages).with_null(scored.null)


def _products(
    scored: ScoredLoss,
    curves: Sequence[SurvivalCurves],
    one: Pass,
    averages: NDArray[np.float64],
    by_exit: _MeansByExit | None,
    null: _Null | None,
    *,
    pointwise: bool,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the sums of squared deviations, and of their averages, whose sums by exit are added up on the way.

    The former are NaN if they are not wanted.
    """
    m, n = scored.index.times.size, scored.stretches.first_stop.size
    deviation = compiled.deviation_of(scored.loss, scored.stretches, scored.centre, scored.scale, one.models)
    constant = constant_of(scored, one)
    keep = by_exit is not None and len(averages) > 0
    cross = null is not None and one.constant >= 0

    nobody = (np.zeros(0), np.zeros((0, 0)))
    width = m if pointwise else 0

    def block(rows: slice, means: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
        first, second = curves_of(curves, one, rows, scored.index)
        none = first._replace(rows=first.rows[:0])
        weights = compiled.as_weights([scored.stretches], scored.index, rows, none)
        products, average_products = np.zeros((6, width)), np.zeros((6, len(averages)))
        crossed, crossed_averages = np.zeros((3, width)), np.zeros((3, len(averages)))
        null_rows, null_means = nobody if null is None or not cross else null.rows(rows)
        if pointwise and not len(averages) and compiled.few_times(weights, first, second):
            few_times.add_products(
                first, second, constant, one.n_curves, one.constant >= 0, deviation, weights, products, null_rows,
                crossed,
            )  # fmt: skip
            return products, average_products, crossed, crossed_averages
        if not (pointwise or weights.of_curves[0] or weights.of_population[0]):
            kernels.add_mean_products(
                first, second, constant, one.n_curves, one.constant >= 0, deviation, weights, averages,
                average_products, keep, means, null_means, crossed_averages,
            )  # fmt: skip
            return products, average_products, crossed, crossed_averages
        kernels.add_products(
            first, second, constant, one.n_curves, one.constant >= 0, deviation, weights, averages, products,
            average_products, keep, means, null_rows, null_means, crossed, crossed_averages,
        )  # fmt: skip
        return products, average_products, crossed, crossed_averages

    totals = [np.zeros((rows, size)) for rows in (6, 3) for size in (width, len(averages))]
    at_most = max(ROWS_PER_BLOCK, n // BLOCKS_WITH_MEANS) if keep else None
    blocks = row_blocks(n, m, compiled=True, at_most=at_most)
    size = BLOCKS_PER_WAVE * config.n_cores() if keep else len(blocks)
    for start in range(0, len(blocks), size):  # so that the individuals' means are never all in memory
        wave = blocks[start : start + size]
        begin, end = wave[0].start, wave[-1].stop
        means = np.empty((end - begin if keep else 0, 3 * len(averages), 2))

        def of_rows(rows: slice, begin: int = begin, means: NDArray[np.float64] = means) -> tuple[NDArray[Any], ...]:
            return block(rows, means[rows.start - begin : rows.stop - begin])

        for sums in each(of_rows, wave, threads=True):
            for k, part in enumerate(sums):
                totals[k] += part
        if keep and by_exit is not None:
            by_exit.add(slice(begin, end), means)
    products, average_products, *crossed = totals
    if not pointwise:
        products, crossed[0] = np.full((6, m), np.nan), np.full((3, m), np.nan)
    if null is not None and one.constant >= 0:
        null.add(one, products, average_products, *crossed)
    return products, average_products


class _Null:
    """What estimating the null model's curve adds to the squares, from products with other deviations."""

    def __init__(self, scored: ScoredLoss, influence: NullInfluence, averages: NDArray[np.float64]) -> None:
        self.scored, self.influence, self.averages = scored, influence, averages
        self.of_averages = np.array([influence.of_mean(weights) for weights in averages])

    def rows(self, rows: slice) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return some individuals' influences on the curve's logarithm after T, and in each average."""
        means = [self.influence.mean(weights, self.scored.index.before_time, rows) for weights in self.averages]
        own = self.influence.null.at_own_time[rows]
        return own, np.array(means).reshape(len(means), own.size)

    def add(
        self,
        one: Pass,
        products: NDArray[np.float64],
        average_products: NDArray[np.float64],
        crossed: NDArray[np.float64],
        crossed_averages: NDArray[np.float64],
    ) -> None:
        """Add it to the squares of the constant prediction, and of its differences to the others."""
        first_stretch = self.scored.first_deviation[[max(a, 0) for a in one.models]] * self.influence.common
        crossed = (crossed + first_stretch) * self.influence.slope
        for sums, cross, squares in (
            (products, crossed, self.influence.variance()),
            (average_products, crossed_averages, self.of_averages),
        ):
            sums[CONSTANT] += 2.0 * cross[2] + squares
            sums[FIRST_TO_CONSTANT] += 2.0 * (cross[2] - cross[0]) + squares
            sums[SECOND_TO_CONSTANT] += 2.0 * (cross[2] - cross[1]) + squares


@dataclass(frozen=True, eq=False)
class _Run:
    """Sums over a run of individuals, by the kernel `add_run`; (3 models, times), products (6, times)."""

    ahead: NDArray[np.float64]
    whole: NDArray[np.float64]
    ahead_steps: NDArray[np.float64]
    whole_steps: NDArray[np.float64]
    products: NDArray[np.float64]


def _runs(scored: ScoredLoss, curves: Sequence[SurvivalCurves], one: Pass, order: TimeOrder) -> NDArray[np.float64]:
    """Return the sums over the exits of step (2 M E - M^2), (6, times)."""
    m, n = scored.index.times.size, scored.stretches.first_stop.size
    everybody = slice(0, n)
    first, second = curves_of(curves, one, everybody, scored.index)
    weights = compiled.as_weights([scored.stretches], scored.index, everybody, first._replace(rows=first.rows[:0]))
    deviation = compiled.deviation_of(scored.loss, scored.stretches, scored.centre, scored.scale, one.models)
    constant = constant_of(scored, one)
    bins = order.nuisance.exits_before
    size = max(ROWS_PER_RUN, -(-order.rows.size // RUNS))
    starts = range(0, order.rows.size, size)

    def run(start: int) -> _Run:
        rows = order.rows[start : start + size]
        following = order.rows[start + size : start + size + 1]
        base = float(order.greenwood[bins[following[0]]]) if following.size else 0.0
        found = _Run(np.zeros((3, m)), np.zeros((3, m)), np.zeros((3, m)), np.zeros((3, m)), np.zeros((6, m)))
        kernels.add_run(
            first, second, constant, one.n_curves, one.constant >= 0, deviation, weights, rows, bins,
            order.greenwood, base, order.moves, order.two_sums, found.ahead, found.whole, found.ahead_steps,
            found.whole_steps, found.products,
        )  # fmt: skip
        return found

    runs = each(run, starts, threads=True)
    return _combined(scored, one, order, runs, size)


def _combined(scored: ScoredLoss, one: Pass, order: TimeOrder, runs: Sequence[_Run], size: int) -> NDArray[np.float64]:
    """Put runs together, from the latest: each sees the sums of all before it."""
    bins = order.nuisance.exits_before
    present = [a if a >= 0 else 0 for a in one.models]
    whole = scored.first_deviation[present]
    ahead = np.where(order.moves_early, whole, 0.0)
    whole = whole if order.two_sums else ahead
    # what comes before each run, and at last before the earliest exits
    before = np.cumsum([ahead, *(run.ahead for run in runs)], axis=0)
    everybody = np.cumsum([whole, *(run.whole for run in runs)], axis=0) if order.two_sums else before
    # after how many exits each run begins; those later than all runs come first
    starts = [int(bins[row]) for row in order.rows[::size]]
    edges = np.array([order.nuisance.curve.times.size, *starts, 0])
    steps = order.steps_between(edges[:-1], edges[1:])[:, None]  # (runs + 1, 1, times)
    # of the exits within a run, and of those before the first, which nobody's deviation comes between
    first_of_run = np.maximum(np.arange(len(steps)) - 1, 0)
    moving, all_of = _six(before[first_of_run]), _six(everybody[first_of_run])
    total = np.sum(steps * moving * (2.0 * all_of - moving), axis=0)
    if runs:
        moving, all_of = moving[1:], all_of[1:]
        linear = _six(np.array([run.ahead_steps for run in runs]))
        linear_whole = _six(np.array([run.whole_steps for run in runs])) if order.two_sums else linear
        total += np.sum([run.products for run in runs], axis=0)
        total += 2.0 * np.sum(linear * all_of + linear_whole * moving - linear * moving, axis=0)
    return np.asarray(total)


class _MeansByExit:
    """What estimating G adds to the variances of averages over time, from sums of the individuals' averages by exit."""

    def __init__(self, scored: ScoredLoss, one: Pass, order: TimeOrder, averages: NDArray[np.float64]) -> None:
        self.scored, self.one, self.order, self.averages = scored, one, order, averages
        self.present = [place for place, a in enumerate(one.models) if a >= 0]
        #: Sums over the second stretch; where each moves the others' weights, also whole, and of those who left. They
        #: lie side by side, since every individual asks for another exit, far away in memory.
        n_sums = 3 if isinstance(order.nuisance, Here) else 1
        n_means = len(self.present) * len(averages)
        self.sums = np.zeros((order.nuisance.curve.times.size + 1, n_means, n_sums))

    def add(self, rows: slice, means: NDArray[np.float64]) -> None:
        """Add some individuals' means, (individuals, 3 models x averages, 2): whole, and in the second stretch."""
        nuisance, moves = self.order.nuisance, self.order.moves[rows]
        bins, left = nuisance.exits_before[rows], nuisance.left(rows) if isinstance(nuisance, Here) else moves
        n_all, n = means.shape[1] // 3, len(self.averages)
        chosen = np.array([place * n_all + n_all - n + r for place in self.present for r in range(n)])

        def add_to(exits: slice) -> None:  # each core has exits of its own, and passes over the others
            kernels.add_means(bins, left, moves, means, chosen, exits.start, exits.stop, self.sums)

        each(add_to, cut(len(self.sums), config.n_cores()), threads=True)

    def finish(self) -> NDArray[np.float64]:
        """Return what is added, (6, averages)."""
        n, n_exits = len(self.averages), len(self.sums) - 1
        for k, place in enumerate(self.present):
            early = self.scored.first_deviation[self.one.models[place]] * self.order.moves_early
            for r, weights in enumerate(self.averages):
                np.add.at(self.sums[:, k * n + r, 0], self.order.reached, early * weights)
        ranges = cut(n_exits, EXIT_RANGES)
        totals = each(lambda exits: kernels.sum_exits(self.sums[exits]), ranges, threads=True)
        # what all who come after a range have together
        later = np.cumsum([self.sums[n_exits], *totals[:0:-1]], axis=0)[::-1]
        slots = {place: k * n for k, place in enumerate(self.present)}
        pairs = [[slots[a] + r for a in OF_MODELS[which]] for which in self.one.wanted for r in range(n)]
        curve, models = self.order.nuisance.curve, np.array(pairs).reshape(-1, 2)

        def terms(k: int) -> NDArray[np.float64]:
            exits, part = ranges[k], np.zeros(len(models))
            kernels.add_exit_terms(self.sums[exits], later[k], curve.exits[exits], curve.at_risk[exits], models, part)
            return part

        result = np.zeros((6, n))
        found = sum(each(terms, range(len(ranges)), threads=True), np.zeros(len(models)))
        result[list(self.one.wanted)] = found.reshape(-1, n)
        return result


def _six(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the values of three models, (runs, 3, times), and their differences, in the kernels' order."""
    found = [values[:, a] if a == b else values[:, a] - values[:, b] for a, b in OF_MODELS.values()]
    return np.stack(found, axis=1)
