r"""Sums of squares over groups, for large matrices in memory: individuals are visited group by group.

A group's influence is the sum of its members', at each time. Where G is estimated from the scored individuals, a
member's has what its own exit, and the exits before, add (see `survscore.censoring.nuisance`):

.. math:: \phi_i(t) = e_i(t) + \frac{1\{i \text{ left}\}}{r(T_i)} M(T_i; t) - D(T_i; t), \qquad
    D(u; t) = \sum_{s < u,\, s \le t} \frac{q_s}{r_s (r_s - q_s)} M(s; t).

M and D of all exits are a table that is made of some of the times, then of others, so that it stays small beside the
predictions. They are made in the order of time, from the second stretches alone: in their first stretch all have the
same weight, and what they add up to is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survscore._utils.parallel import each
from survscore.censoring.nuisance import Here
from survscore.curves import SurvivalCurves
from survscore.engine import _group_kernels as kernels
from survscore.engine import compiled
from survscore.engine.moments import ScoredLoss
from survscore.engine.passes import OF_MODELS, Pass, constant_of, curves_of, cut
from survscore.engine.time_order import TimeOrder
from survscore.inference.units import Groups

RUNS = 64  # of individuals, to be shared out among cores
TABLE_NUMBERS = 1 << 23  # may always be in memory at once,
TABLE_SHARE = 8  # and one for so many predictions


def group_products(
    scored: ScoredLoss,
    curves: Sequence[SurvivalCurves],
    one: Pass,
    groups: Groups,
    averages: NDArray[np.float64],
    order: TimeOrder | None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the sums over groups of squared influences, (6, times), and of their averages, (6, averages)."""
    m, n = scored.index.times.size, len(groups.codes)
    spread = order if order is not None and isinstance(order.nuisance, Here) else None
    numbers = max(TABLE_NUMBERS, len(curves) * n * m // TABLE_SHARE)
    parts = [slice(0, m)] if spread is None else _columns(spread.reached, numbers // (2 * one.n_models))
    products, average_products = np.zeros((6, m)), np.zeros((6, len(averages)))
    means = np.zeros((groups.n_groups if len(parts) > 1 else 0, 3, len(averages)))
    visit = _Visit(scored, curves, one, groups, averages)
    for columns in parts:
        table = None if spread is None else exit_table(visit, spread, columns)
        products[:, columns], of_averages = visit.products(columns, table, spread, means)
        average_products += of_averages
    if means.size:
        for which, (a, b) in OF_MODELS.items():
            values = means[:, a] if a == b else means[:, a] - means[:, b]
            average_products[which] = np.einsum("gr,gr->r", values, values)
    return products, average_products


def _columns(reached: NDArray[np.intp], numbers: int) -> list[slice]:
    """Cut the times into ranges for which a table of the exits that have come, by times, holds at most `numbers`."""
    found, start = [], 0
    for stop in range(1, reached.size + 1):
        if stop == reached.size or (reached[stop] + 1) * (stop + 1 - start) > numbers:
            found.append(slice(start, stop))
            start = stop
    return found


class _Visit:
    """Goes through all individuals, and has what the kernels take at hand."""

    def __init__(
        self,
        scored: ScoredLoss,
        curves: Sequence[SurvivalCurves],
        one: Pass,
        groups: Groups,
        averages: NDArray[np.float64],
    ) -> None:
        self.scored, self.one, self.groups, self.averages = scored, one, groups, averages
        everybody = slice(0, len(groups.codes))
        first, second = curves_of(curves, one, everybody, scored.index)
        self.three = kernels.Three(first, second, constant_of(scored, one), one.n_curves, one.constant >= 0)
        self.deviation = compiled.deviation_of(scored.loss, scored.stretches, scored.centre, scored.scale, one.models)
        none = first._replace(rows=first.rows[:0])
        self.weights = compiled.as_weights([scored.stretches], scored.index, everybody, none)

    def products(
        self,
        columns: slice,
        table: NDArray[np.float64] | None,
        order: TimeOrder | None,
        means: NDArray[np.float64],
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the sums of squares at some times; where there is room for it, groups' averages are kept instead."""
        width, groups = columns.stop - columns.start, self.groups
        beside = self._beside(table, order)

        def add(rows: slice) -> tuple[Any, ...]:
            sums = np.zeros((6, width)), np.zeros((6, len(self.averages)))
            head, tail = np.zeros((3, width)), np.zeros((3, width))
            group = int(np.searchsorted(groups.starts, rows.start, side="right")) - 1
            last = kernels.add_groups(
                self.three, self.deviation, self.weights, beside, groups.order, groups.starts, group, rows.start,
                rows.stop, columns.start, columns.stop, self.averages, *sums, means, head, tail,
            )  # fmt: skip
            return *sums, {group: head, **({last: tail} if last != group else {})}

        found = each(add, cut(len(groups.order), RUNS), threads=True)
        products, average_products = (sum(part[k] for part in found) for k in range(2))
        shared: dict[int, NDArray[np.float64]] = {}  # groups that more than one run may have seen
        for *_, parts in found:
            for group, total in parts.items():
                shared[group] = shared[group] + total if group in shared else total
        for group, total in shared.items():
            kernels.close_group(
                total, group, self.one.n_curves, self.one.constant >= 0, columns.start, self.averages, products,
                average_products, means,
            )  # fmt: skip
        return products, average_products

    def _beside(self, table: NDArray[np.float64] | None, order: TimeOrder | None) -> kernels.Beside:
        scored, m = self.scored, self.scored.index.times.size
        present = [max(a, 0) for a in self.one.models]
        nobody, nothing = np.zeros(0, dtype=np.int32), np.zeros(0)
        passed = exit_of = nobody
        left = np.zeros(0, dtype=np.bool_)
        if order is not None and isinstance(order.nuisance, Here):
            passed, exit_of, left = order.nuisance.passed, order.nuisance.exits_before, order.nuisance.left(slice(None))
        null = scored.null if self.one.constant >= 0 and scored.null is not None and scored.null.of_scored else None
        return kernels.Beside(
            has_offset=scored.by_n,
            offset=scored.offset[present],
            population_stop=scored.stretches.population_stop,
            has_table=table is not None,
            table=np.zeros((0, 2, 1, m)) if table is None else table,
            passed=passed,
            exit=exit_of,
            left=left,
            has_null=null is not None,
            slope=nothing if null is None else null.slope,
            common=nothing if null is None else null.common,
            own=nothing if null is None else null.null.at_own_time,
            before_time=nobody if null is None else scored.index.before_time,
        )


def exit_table(visit: _Visit, order: TimeOrder, columns: slice) -> NDArray[np.float64]:
    """Return what estimating G adds at some of the times to one who passed so many exits, and to one who left there.

    (exits that have come by then + 1, 2, models, times).
    """
    scored, one, nuisance = visit.scored, visit.one, order.nuisance
    if not isinstance(nuisance, Here):
        raise TypeError("G of others adds nothing to these individuals' influences")
    reached = order.reached[columns]
    n_exits = int(reached[-1])
    table = np.zeros((n_exits + 1, 2, one.n_models, columns.stop - columns.start))
    ranges = cut(n_exits + 1, RUNS)
    places = order.positions([part.start for part in ranges] + [n_exits + 1])

    def fill(k: int) -> NDArray[np.float64]:
        rows = order.rows[places[k + 1] : places[k]]  # the latest come first
        kernels.add_by_exit(
            visit.three, visit.deviation, visit.weights, rows, nuisance.exits_before, order.moves, columns.start,
            columns.stop, table,
        )  # fmt: skip
        return np.asarray(table[ranges[k], 0].sum(axis=0))

    totals = each(fill, range(len(ranges)), threads=True)
    models = [a for a in one.models if a >= 0]
    everybody = np.where(order.moves_early, scored.first_deviation[models], 0.0)[:, columns]
    after = np.cumsum([everybody, *totals[:0:-1]], axis=0)[::-1]
    # the last row is for those who passed all exits
    steps, own_risk = np.append(nuisance.steps[:n_exits], 0.0), np.append(nuisance.own_risk[:n_exits], 1.0)
    inclusive = nuisance.passed is not nuisance.exits_before

    def sweep(k: int) -> NDArray[np.float64]:
        part, total = ranges[k], np.zeros(after.shape[1:])
        kernels.sums_after_exits(table[part], after[k].copy(), steps[part], reached - part.start, total)
        return total

    drifts = each(sweep, range(len(ranges)), threads=True)
    before = np.cumsum([np.zeros(after.shape[1:]), *drifts[:-1]], axis=0)

    def spread(k: int) -> None:
        part = ranges[k]
        kernels.spread_by_exit(table[part], before[k].copy(), steps[part], own_risk[part], inclusive)

    each(spread, range(len(ranges)), threads=True)
    return table
