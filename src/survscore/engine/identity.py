r"""The fast way to second moments, for large matrices in memory.

The terms of different exits s in the influences are orthogonal (see `survscore.nuisance`), so that

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
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from survscore._config import config
from survscore._parallel import each, row_blocks
from survscore.curves import SurvivalCurves
from survscore.engine import _kernels, compiled
from survscore.engine.blocks import Models
from survscore.engine.moments import Moments, ScoredLoss, contrast, n_pairs, pair, pairs
from survscore.engine.null import NullInfluence
from survscore.engine.units import Groups, Units
from survscore.nuisance import Elsewhere, Here, Nuisance
from survscore.stretches import TimeIndex

RUNS = 128  # at most, to be shared out among cores
ROWS_PER_RUN = 2048  # at least
BLOCKS_PER_WAVE = 2  # for each core
ROWS_PER_BLOCK = 4096  # at most: each keeps the means over time of its rows
EXITS_PER_BLOCK = 1 << 14

# The places of a kernel's sums: squares of the first and second model, of their difference, of the prediction that is
# the same for everybody, and of its differences to the two.
FIRST, SECOND, DIFFERENCE, CONSTANT, FIRST_TO_CONSTANT, SECOND_TO_CONSTANT = range(6)
OF_MODELS = {FIRST: (0, 0), SECOND: (1, 1), DIFFERENCE: (0, 1), CONSTANT: (2, 2), FIRST_TO_CONSTANT: (0, 2),
             SECOND_TO_CONSTANT: (1, 2)}  # fmt: skip


def fits(scored: ScoredLoss, models: Models, groups: Groups | None) -> bool:
    """Whether the identity holds, and everything is in memory."""
    nuisance = scored.stretches.nuisance
    orthogonal = not isinstance(nuisance, Here) or nuisance.orthogonal
    speaks_for_all = scored.stretches.population_stop.strides == (0,)
    return groups is None and models.in_memory is not None and orthogonal and (speaks_for_all or not scored.by_n)


@dataclass(frozen=True)
class _Pass:
    """One pass over the rows: up to two models and the constant one, and which of the sums are wanted."""

    first: int
    second: int  # -1: none
    constant: int  # -1: none
    wanted: tuple[int, ...]

    @property
    def models(self) -> tuple[int, int, int]:
        return (self.first, self.second, self.constant)

    def place(self, which: int) -> int:
        a, b = OF_MODELS[which]
        return pair(self.models[a], self.models[b])


def _passes(n_curves: int, constant: int) -> list[_Pass]:
    """Return passes that give every square and every squared difference once."""
    if n_curves == 1:
        return [_Pass(0, -1, constant, (FIRST, CONSTANT, FIRST_TO_CONSTANT) if constant >= 0 else (FIRST,))]
    passes = []
    for second in range(1, n_curves):
        for first in range(second):
            wanted = [DIFFERENCE]
            if first == 0:
                wanted += [FIRST, SECOND] if second == 1 else [SECOND]
                if constant >= 0:
                    wanted += [CONSTANT, FIRST_TO_CONSTANT] if second == 1 else []
                    wanted += [SECOND_TO_CONSTANT]
            passes.append(_Pass(first, second, constant if first == 0 else -1, tuple(wanted)))
    return passes


class _Order:
    """Those in their second stretch, from the latest time to the earliest, and the exits between them.

    What takes memory is made when it is needed.
    """

    def __init__(self, scored: ScoredLoss, nuisance: Nuisance) -> None:
        self.stretches, self.nuisance = scored.stretches, nuisance
        #: Whether M and E differ, and E matters: it does not where G is estimated from others.
        self.two_sums = self.stretches.capped and isinstance(nuisance, Here)
        #: How many exits have come at each evaluation time.
        self.reached = nuisance.reached(scored.index.times)

    @cached_property
    def moves(self) -> NDArray[np.bool_]:
        """Whether an individual's weight moves with G: not capped."""
        return np.asarray(self.stretches.last_weight < self.stretches.max_weight)

    @cached_property
    def rows(self) -> NDArray[np.int32]:
        """Positions, the latest first."""
        in_second = self.stretches.last_stop > self.stretches.first_stop
        rows: NDArray[np.int32] = _kernels.order_by_bin(
            self.nuisance.exits_before, in_second, self.nuisance.curve.times.size
        )
        return rows

    @cached_property
    def greenwood(self) -> NDArray[np.float64]:
        """Running sum of the steps, by how many exits came before."""
        return np.concatenate(([0.0], np.cumsum(self.nuisance.steps)))

    def steps_between(self, later: int, earlier: int) -> NDArray[np.float64]:
        """Return the sum of the steps of the exits between two numbers of them, up to each evaluation time."""
        return np.asarray(
            self.greenwood[np.minimum(later, self.reached)] - self.greenwood[np.minimum(earlier, self.reached)]
        )


def by_identity(scored: ScoredLoss, models: Models, units: Units, averages: NDArray[np.float64]) -> Moments:
    """Return the moments; see the description of the module."""
    curves = models.in_memory
    if curves is None:
        raise TypeError("batches are not in memory")
    m, k = scored.index.times.size, len(scored.scores)
    inflation = units.inflation
    scaled = np.where(averages != 0, averages * np.sqrt(inflation), 0.0)  # NaN where a time rests on one individual
    pointwise, of_averages = np.zeros((n_pairs(k), m)), np.zeros((n_pairs(k), len(averages)))
    added, added_to_averages = np.zeros_like(pointwise), np.zeros_like(of_averages)
    nuisance = scored.stretches.nuisance
    order = None if nuisance is None else _Order(scored, nuisance)
    # G of others is an independent source of variance, to which no small-sample correction belongs
    summed = np.concatenate((scaled, averages)) if isinstance(nuisance, Elsewhere) else scaled
    null = _Null(scored, scored.null, summed) if scored.null is not None and scored.null.of_scored else None
    for one in _passes(len(curves), k - 1 if scored.constants else -1):
        last = slice(len(summed) - len(averages), None)  # without the correction, where there are both
        by_exit = None if order is None else _MeansByExit(scored, one, order, summed[last])
        products = _products(scored, curves, one, summed, by_exit, null)
        of_means = None if by_exit is None else by_exit.finish()
        del by_exit  # its sums are as many as there are exits
        runs = None if order is None else _runs(scored, curves, one, order)
        for which in one.wanted:
            p = one.place(which)
            pointwise[p], of_averages[p] = products[0][which], products[1][which, : len(averages)]
            if runs is not None and of_means is not None:
                added[p], added_to_averages[p] = runs[which], of_means[which]
    if scored.by_n:  # everybody has the same offset, which takes out the mean
        for p, (a, b) in enumerate(pairs(k)):
            totals = np.nan_to_num(contrast(scored.scores, a, b))
            pointwise[p] -= np.square(totals) / models.n
            of_averages[p] -= np.square(scaled @ totals) / models.n
    independent = isinstance(nuisance, Elsewhere)
    pointwise = pointwise * inflation + added if independent else (pointwise - added) * inflation
    return Moments(pointwise, averages, of_averages + added_to_averages).with_null(scored.null)


def _products(
    scored: ScoredLoss,
    curves: Sequence[SurvivalCurves],
    one: _Pass,
    averages: NDArray[np.float64],
    by_exit: _MeansByExit | None,
    null: _Null | None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the sums of squared deviations, and of their averages, whose sums by exit are added up on the way."""
    m, n = scored.index.times.size, scored.stretches.first_stop.size
    deviation = compiled.deviation_of(scored.loss, scored.stretches, scored.centre, scored.scale, one.models)
    constant = _constant(scored, one)
    keep = by_exit is not None and len(averages) > 0
    cross = null is not None and one.constant >= 0

    nobody = (np.zeros(0), np.zeros((0, 0)))

    def block(rows: slice) -> tuple[NDArray[np.float64], ...]:
        first, second = _two(curves, one, rows, scored.index)
        none = first._replace(rows=first.rows[:0])
        weights = compiled.as_weights([scored.stretches], scored.index, rows, none)
        products, average_products = np.zeros((6, m)), np.zeros((6, len(averages)))
        crossed, crossed_averages = np.zeros((3, m)), np.zeros((3, len(averages)))
        null_rows, null_means = nobody if null is None or not cross else null.rows(rows)
        means = np.empty((3, len(averages), 2, rows.stop - rows.start if keep else 0))
        _kernels.add_products(
            first, second, constant, 1 + (one.second >= 0), one.constant >= 0, deviation, weights, averages, products,
            average_products, keep, means, null_rows, null_means, crossed, crossed_averages,
        )  # fmt: skip
        return products, average_products, crossed, crossed_averages, means

    totals = [np.zeros((6, m)), np.zeros((6, len(averages))), np.zeros((3, m)), np.zeros((3, len(averages)))]
    blocks = row_blocks(n, m, compiled=True, at_most=ROWS_PER_BLOCK if keep else None)
    size = BLOCKS_PER_WAVE * config.n_cores()
    for start in range(0, len(blocks), size):  # so that the individuals' means are never all in memory
        wave = blocks[start : start + size]
        found = each(block, wave, threads=True)
        for *sums, _ in found:
            for k, part in enumerate(sums):
                totals[k] += part
        if keep and by_exit is not None:
            by_exit.add([(rows, means) for rows, (*_, means) in zip(wave, found, strict=True)])
    products, average_products, *crossed = totals
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
        one: _Pass,
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


def _two(
    curves: Sequence[SurvivalCurves], one: _Pass, rows: slice, index: TimeIndex
) -> tuple[_kernels.Curves, _kernels.Curves]:
    first = compiled.as_curves(curves[one.first][rows], index)
    return first, first if one.second < 0 else compiled.as_curves(curves[one.second][rows], index)


def _constant(scored: ScoredLoss, one: _Pass) -> _kernels.Constant:
    if one.constant < 0:
        return _kernels.Constant(np.zeros(0), np.zeros(0))
    return _kernels.Constant(*scored.constant_losses(scored.constants[0]))


@dataclass(frozen=True, eq=False)
class _Run:
    """Sums over a run of individuals, by the kernel `add_run`; (3 models, times), products (6, times)."""

    ahead: NDArray[np.float64]
    whole: NDArray[np.float64]
    ahead_steps: NDArray[np.float64]
    whole_steps: NDArray[np.float64]
    products: NDArray[np.float64]


def _runs(scored: ScoredLoss, curves: Sequence[SurvivalCurves], one: _Pass, order: _Order) -> NDArray[np.float64]:
    """Return the sums over the exits of step (2 M E - M^2), (6, times)."""
    m, n = scored.index.times.size, scored.stretches.first_stop.size
    everybody = slice(0, n)
    first, second = _two(curves, one, everybody, scored.index)
    weights = compiled.as_weights([scored.stretches], scored.index, everybody, first._replace(rows=first.rows[:0]))
    deviation = compiled.deviation_of(scored.loss, scored.stretches, scored.centre, scored.scale, one.models)
    constant = _constant(scored, one)
    bins = order.nuisance.exits_before
    size = max(ROWS_PER_RUN, -(-order.rows.size // RUNS))
    starts = range(0, order.rows.size, size)

    def run(start: int) -> _Run:
        rows = order.rows[start : start + size]
        following = order.rows[start + size : start + size + 1]
        base = float(order.greenwood[bins[following[0]]]) if following.size else 0.0
        found = _Run(np.zeros((3, m)), np.zeros((3, m)), np.zeros((3, m)), np.zeros((3, m)), np.zeros((6, m)))
        _kernels.add_run(
            first, second, constant, 1 + (one.second >= 0), one.constant >= 0, deviation, weights, rows, bins,
            order.greenwood, base, order.moves, order.two_sums, found.ahead, found.whole, found.ahead_steps,
            found.whole_steps, found.products,
        )  # fmt: skip
        return found

    runs = each(run, starts, threads=True)
    return _combined(scored, one, order, runs, size)


def _combined(scored: ScoredLoss, one: _Pass, order: _Order, runs: Sequence[_Run], size: int) -> NDArray[np.float64]:
    """Put runs together, from the latest: each sees the sums of all before it."""
    stretches, bins = scored.stretches, order.nuisance.exits_before
    if stretches.first_weight is None:
        raise TypeError("estimated weights are common to all in the first stretch")
    present = [a if a >= 0 else 0 for a in one.models]
    whole = scored.first_deviation[present]
    ahead = np.where(stretches.first_weight < stretches.max_weight, whole, 0.0)
    whole = whole if order.two_sums else ahead
    total = np.zeros((6, scored.index.times.size))
    later = order.nuisance.curve.times.size
    latest = int(bins[order.rows[0]]) if order.rows.size else 0

    def add(steps: NDArray[np.float64], run: _Run | None) -> None:
        moving, everybody = _six(ahead), _six(whole)
        total[:] += steps * moving * (2.0 * everybody - moving)
        if run is not None:
            linear = _six(run.ahead_steps)
            linear_whole = _six(run.whole_steps) if order.two_sums else linear
            total[:] += run.products + 2.0 * (linear * everybody + linear_whole * moving - linear * moving)

    add(order.steps_between(later, latest), None)  # exits after the last individual in its second stretch
    for position, run in enumerate(runs):
        high = int(bins[order.rows[position * size]])
        following = (position + 1) * size
        low = int(bins[order.rows[following]]) if following < order.rows.size else 0
        add(order.steps_between(high, low), run)
        ahead = ahead + run.ahead
        whole = whole + (run.whole if order.two_sums else run.ahead)
    return total


class _MeansByExit:
    """What estimating G adds to the variances of averages over time, from sums of the individuals' averages by exit."""

    def __init__(self, scored: ScoredLoss, one: _Pass, order: _Order, averages: NDArray[np.float64]) -> None:
        if scored.stretches.first_weight is None:
            raise TypeError("estimated weights are common to all in the first stretch")
        self.moves_early = scored.stretches.first_weight < scored.stretches.max_weight
        self.scored, self.one, self.order, self.averages = scored, one, order, averages
        self.present = [place for place, a in enumerate(one.models) if a >= 0]
        #: Sums over the second stretch; where each moves the others' weights, also whole, and of those who left.
        n_sums = 3 if isinstance(order.nuisance, Here) else 1
        self.sums = np.zeros((len(self.present), len(averages), order.nuisance.curve.times.size + 1, n_sums))

    def add(self, blocks: Sequence[tuple[slice, NDArray[np.float64]]]) -> None:
        """Add some individuals' averages, (3 models, averages, 2, individuals): whole, and in the second stretch."""
        nuisance, moves = self.order.nuisance, self.order.moves
        bins, left = nuisance.exits_before, nuisance.left if isinstance(nuisance, Here) else moves

        def add_model(k: int) -> None:
            for rows, means in blocks:
                last = means[self.present[k], means.shape[1] - len(self.averages) :]
                for by_exit, (whole, late) in zip(self.sums[k], last, strict=True):
                    _kernels.add_means(bins[rows], left[rows], moves[rows], whole, late, by_exit)

        each(add_model, range(len(self.present)), threads=True)

    def finish(self) -> NDArray[np.float64]:
        """Return what is added, (6, averages)."""

        def accumulate(k: int) -> None:
            for by_exit, weights in zip(self.sums[k], self.averages, strict=True):
                early = self.scored.first_deviation[self.one.models[self.present[k]]] * self.moves_early * weights
                np.add.at(by_exit[:, 0], self.order.reached, early)
                for backwards in by_exit[::-1].T[:2]:
                    np.cumsum(backwards, out=backwards)  # from here on: of all who come after each exit

        each(accumulate, range(len(self.present)), threads=True)
        n_exits = self.order.nuisance.curve.times.size
        blocks = [slice(i, min(i + EXITS_PER_BLOCK, n_exits)) for i in range(0, n_exits, EXITS_PER_BLOCK)]
        result = np.zeros((6, len(self.averages)))
        for r in range(len(self.averages)):
            result[:, r] = sum(each(partial(self._of_exits, r), blocks, threads=True), np.zeros(6))
        return result

    def _of_exits(self, r: int, exits: slice) -> NDArray[np.float64]:
        result = np.zeros(6)
        after = slice(exits.start + 1, exits.stop + 1)
        curve = self.order.nuisance.curve.some(exits)
        steps = curve.greenwood
        moved = {place: self.sums[k, r, after, 0] for k, place in enumerate(self.present)}
        own: dict[int, NDArray[np.float64]] = {}
        if isinstance(self.order.nuisance, Here):
            for k, place in enumerate(self.present):
                own[place] = self.sums[k, r, exits, 2] / curve.at_risk - steps * self.sums[k, r, after, 1]
        for which in self.one.wanted:
            a, b = OF_MODELS[which]
            # not dot products: BLAS would start threads of its own, which wait busily and take cores from ours
            difference = moved[a] if a == b else moved[a] - moved[b]
            result[which] += np.einsum("s,s,s->", steps, difference, difference)
            if own:
                of_own = own[a] if a == b else own[a] - own[b]
                result[which] += 2.0 * np.einsum("s,s->", of_own, difference)
        return result


def _six(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the values of three models, and their differences, in the kernels' order."""
    return np.array([contrast(values, a, b) for a, b in OF_MODELS.values()])
