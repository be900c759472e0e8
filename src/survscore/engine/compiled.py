"""The compiled kernels as the engine calls them: the same sums and variances as in array code, on all cores.

Blocks of rows are shared out among threads. Where a curve was estimated inside the weights, individuals come in order
of time, and what a block adds to the running sums is found first, so that each block knows where it begins; on few
cores, and where there are groups, columns are shared out instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survscore._config import config
from survscore._utils import arrays
from survscore._utils.parallel import each, in_slices
from survscore.censoring.fitted import FittedOnSample
from survscore.curves import SurvivalCurves
from survscore.engine.moments import Moments, contrast, n_pairs, pairs
from survscore.engine.second_moments import ScoredLoss
from survscore.engine.sums import ModelWeights, Sums, buckets, n_buckets
from survscore.inference.units import Groups, Units
from survscore.metrics import Brier, Log, Loss
from survscore.weighting.interval_weights import IntervalWeights, TimeIndex, WeightSums

#: The compiled form of a loss, bound to its exact class: a subclass may have changed the formula.
KERNELS: dict[type[Loss], int] = {Brier: 0, Log: 1}
ROW_BLOCKS = 64  # at most, to be shared out among threads
ROWS = 4096  # in a block, at least
COLUMN_THREADS = 2  # up to so many threads share out columns: rows have to be read twice
TABLE_CELLS = 1 << 25  # of a table of groups by times and models, in memory at once

Values = NDArray[np.float64]


def knows(losses: Sequence[Loss], weights: Sequence[ModelWeights]) -> bool:
    """Whether the kernels know these losses and weights."""
    every = [one for part in weights for one in part.each]
    return all(not one.individual and _fits(one) for one in every) and all(type(loss) in KERNELS for loss in losses)


def _fits(weights: IntervalWeights) -> bool:
    model = weights.censoring_model
    return model is None or (isinstance(model, FittedOnSample) and not model.martingale)


def first_moments(
    matrices: Sequence[SurvivalCurves], index: TimeIndex, losses: Sequence[Loss], weightings: Sequence[ModelWeights]
) -> Sums:
    """Return the sums over all individuals; one pass over each matrix serves all losses and weightings."""
    from survscore.engine import kernels

    m, n = index.times.size, len(index.outcomes)
    readers = _readers(matrices, index)
    kinds = np.array([KERNELS[type(loss)] for loss in losses], dtype=np.int64)
    epsilons = np.array([loss.epsilon for loss in losses], dtype=np.float64)
    label, time_index = _fixed(index.label, np.int8), _fixed(index.before_time, np.int32)
    most = max(max(part.n_buckets(), *(one.n_strata for one in part.each)) for part in weightings)
    shape = (len(losses), len(weightings), most, m)
    found = [np.zeros((2, len(matrices), len(losses), part.n_buckets(), m)) for part in weightings]
    packed: Any = None
    tallies: list[Values] = []
    for a in range(len(matrices)):
        of_model = [part[a] for part in weightings]
        if packed is None or any(len(part.each) > 1 for part in weightings):
            packed = _weights(of_model, m, codes=[buckets(one) for one in of_model])
        weights = packed

        def block(rows: slice, a: int = a, weights: Any = weights) -> tuple[Values, ...]:
            # sums of weights with sample weights come from the ranges
            tally = len(weightings) if a == 0 and index.sample is None else 0
            beyond = shape if weights.cut.size else (0, 0, 0, 0)
            shapes: list[Any] = [shape, shape, beyond, (tally, most, m + 1), (tally, 2, 5, m + 1)]
            out = tuple(map(np.zeros, shapes))
            kernels.first_moments(
                readers, a, kinds, epsilons, weights, label, time_index, rows.start, rows.stop, *out, np.empty((3, m))
            )
            return out

        parts = each(block, _cut(n, ROW_BLOCKS, ROWS), threads=True)
        first, second, beyond, *tally = (np.asarray(sum(arrays_of)) for arrays_of in zip(*parts, strict=True))
        tallies = tally if a == 0 else tallies
        for q, one in enumerate(of_model):
            if one.hidden_share is not None:  # of all strata together; each individual has weight one
                found[q][0, a, :, 0] = (first[:, q] + second[:, q]).sum(axis=1)
                if one.observed_index is not None:
                    found[q][0, a, :, 1] = beyond[:, q].sum(axis=1)
                continue
            k, table = n_buckets(one), one.weight_at_risk
            at_risk = np.tile(table, (k // len(table), 1)) if table is not None else np.ones((k, m))
            with np.errstate(invalid="ignore"):
                found[q][0, a, :, :k] = first[:, q, :k] * at_risk
            found[q][1, a, :, :k] = second[:, q, :k]
            if k == one.n_strata:  # all ranges together, as in array code
                found[q][0, a] += found[q][1, a]
                found[q][1, a] = 0.0
    if index.sample is not None:
        return Sums(tuple(found), (None,) * len(weightings))
    of_weights = (_weight_sums(part[0], *tally) for part, *tally in zip(weightings, *tallies, strict=True))
    return Sums(tuple(found), tuple(of_weights))


def _weight_sums(weights: IntervalWeights, ends: Values, late: Values) -> WeightSums | None:
    """Return the sums of weights from what the kernel counted; None where some are projected."""
    if weights.weight_at_risk is None or weights.hidden_share is not None or weights.sample is not None:
        return None
    ends = ends[: n_buckets(weights)].reshape(-1, weights.n_strata, ends.shape[1]).sum(axis=0)
    counts, sums, squares, infinite, infinite_squares = np.cumsum(late, axis=2)[:, :, :-1].swapaxes(0, 1)
    sums, squares = np.where(infinite > 0, np.inf, sums), np.where(infinite_squares > 0, np.inf, squares)
    return WeightSums.of(ends, weights.weight_at_risk, counts, sums, squares)


class SecondMoments:
    """What the kernel of second moments takes, and how the work is shared out."""

    def __init__(
        self,
        scored: ScoredLoss,
        matrices: Sequence[SurvivalCurves],
        groups: Groups | None,
        units: Units,
        averages: Values,
    ) -> None:
        self.scored, self.groups, self.units, self.averages = scored, groups, units, averages
        self.m, self.n, self.k = scored.index.times.size, len(scored.index.outcomes), len(scored.scores)
        self.readers = _readers(matrices, scored.index)
        # NaN where a time has one unit
        self.scaled = np.where(averages != 0, averages * np.sqrt(units.inflation), 0.0)
        self.pairs = np.array(pairs(self.k), dtype=np.int64)
        self.n_units = self.n if groups is None else groups.n_groups
        self.order = self._order()
        self.visits = self._visits()
        several = scored.weights.each
        self.weights = _weights(several, self.m, self.order, scored.scale)
        self.n_strata = max(one.n_strata for one in several)
        self.start = np.zeros((self.k, self.n_strata, self.m))
        for a, total in enumerate(scored.moving_totals):
            self.start[a, : len(total)] = -total

    def _order(self) -> NDArray[np.intp] | None:
        """Return the order of visits: of time where a curve was estimated, else group by group."""
        if self.scored.fitted:
            return self.scored.index.order
        if self.groups is None or np.all(self.groups.codes[1:] >= self.groups.codes[:-1]):
            return None
        return np.argsort(self.groups.codes, kind="stable")

    def run(self) -> Moments:
        """Return the variances: every influence, row by row, and at once squared or added to its group."""
        squares = np.zeros((n_pairs(self.k), self.m))
        means = np.zeros((self.k, self.n_units, len(self.averages)))
        n_cores = config.n_cores()
        if self.scored.fitted and (self.groups is not None or n_cores <= COLUMN_THREADS):
            self._by_column(squares, means, n_cores)
        else:
            self._by_row(squares, means)
        of_averages = sum(in_slices(lambda units: _squares(means[:, units]), self.n_units))
        moments = Moments(squares * self.units.inflation, self.averages, np.asarray(of_averages))
        return moments.with_null(self.scored.null)

    def _by_row(self, squares: Values, means: Values) -> None:
        blocks, tables = _cut(self.n, ROW_BLOCKS, ROWS), self._tables(slice(0, self.m))
        if self.groups is not None:  # a group is in one block
            unit = self.visits.unit
            edges = sorted({0, self.n, *(int(np.searchsorted(unit, unit[block.start])) for block in blocks)})
            blocks = [slice(*ends) for ends in pairwise(edges)]
        starts = [(self.start, np.zeros_like(self.start))] * len(blocks)
        if self.scored.fitted:
            carried = each(lambda rows: self._kernel(rows, tables, carry=True), blocks[:-1], threads=True)
            starts = self._starts(carried)
        found = each(
            lambda p: self._kernel(blocks[p], tables, means=means, start=starts[p])[2], range(len(blocks)), threads=True
        )
        squares += sum(found)

    def _by_column(self, squares: Values, means: Values, n_cores: int) -> None:
        """Share out columns; with groups, as many at a time as tables have room for."""
        width = self.m
        if self.groups is not None:
            width = max(1, min(self.m, TABLE_CELLS // (self.k * self.n_units)))
        for first in range(0, self.m, width):
            some = slice(first, min(first + width, self.m))
            parts = [slice(first + part.start, first + part.stop) for part in _cut(some.stop - first, n_cores, 1)]
            work = partial(self._columns, several=len(parts) > 1, means=means)
            found = each(work, parts, threads=True)
            for part, (of_part, own) in zip(parts, found, strict=True):
                squares[:, part] = of_part
                if own is not None:
                    means += own

    def _columns(self, columns: slice, *, several: bool, means: Values) -> tuple[Values, Values | None]:
        own = np.zeros_like(means) if several else None
        n_groups = 0 if self.groups is None else self.groups.n_groups
        table = np.zeros((self.k, n_groups, columns.stop - columns.start))
        start = self.start[:, :, columns], np.zeros((self.k, self.n_strata, columns.stop - columns.start))
        _, _, squares, _ = self._kernel(
            slice(0, self.n), self._tables(columns), means=means if own is None else own, start=start, table=table
        )
        if n_groups:
            for p, (a, b) in enumerate(self.pairs):
                values = contrast(table, a, b)
                squares[p] = np.einsum("ij,ij->j", values, values)
        return squares, own

    def _tables(self, columns: slice) -> tuple[int, Any, Any, Values]:
        """Return what kernels take that depends on time, at some of the evaluation times, and the first of these."""
        averages = _fixed(self.scaled[:, columns], np.float64)
        return columns.start, _columns_of(self.weights, columns), self._deviation(columns), averages

    def _kernel(
        self,
        rows: slice,
        tables: tuple[int, Any, Any, Values],
        *,
        carry: bool = False,
        means: Values | None = None,
        start: tuple[Values, Values] | None = None,
        table: Values | None = None,
    ) -> tuple[Values, Values, Values, Values]:
        """Return the running sums after some rows, the squares that they add, and with `carry` their jumps' weights."""
        from survscore.engine import kernels

        first_column, weights, deviation, averages = tables
        width = averages.shape[1]
        shape = (self.k, self.n_strata, width)
        running, greenwood = (np.zeros(shape), np.zeros(shape)) if start is None else (start[0].copy(), start[1].copy())
        squares = np.zeros((len(self.pairs), width))
        steps = np.zeros((2, len(self.visits.step), self.n_strata, width + 1 if carry else 0))
        kernels.second_moments(
            self.readers,
            weights,
            deviation,
            self.visits,
            rows.start,
            rows.stop,
            first_column,
            carry,
            self.scored.fitted,
            averages,
            self.pairs,
            running,
            greenwood,
            squares,
            steps,
            np.zeros((self.k, 0, 0)) if means is None else means,
            np.zeros((self.k, 0, width)) if table is None else table,
            np.zeros((2 * self.k + 1, width)),
        )
        return running, greenwood, squares, steps

    def _starts(self, carried: Sequence[tuple[Values, Values, Values, Values]]) -> list[tuple[Values, Values]]:
        """Return the running sums before each block: what those before it add, which is linear in where they begin."""
        found = [(self.start, np.zeros_like(self.start))]
        for running, greenwood, _, steps in carried:
            before, greenwood_before = found[-1]
            # the jumps' weights up to each time: of each model, or of all
            passed, of_incidence = np.cumsum(steps, axis=3)[:, :, :, :-1]
            if self.visits.own.shape[1]:  # U, by stratum
                passed = of_incidence + passed * self.weights.reference
            found.append((before + running, greenwood_before + greenwood + before * passed))
        return found

    def _visits(self) -> Any:
        """Return the individuals in the order of their visit."""
        from survscore.engine import kernels

        scored, order, n = self.scored, self.order, self.n
        several, none = scored.weights.each, np.zeros((len(scored.weights.each), 0))
        time_index = scored.index.before_time
        inverse_risk = step = own = own_slope = incidence_step = none
        moves = np.zeros(none.shape, dtype=np.bool_)
        if scored.fitted:
            exits = [one for one in scored.exits if one is not None]
            time_index = exits[0].first_column
            inverse_risk = _stacked([one.inverse_risk() for one in exits], None, np.float64)
            step = _stacked([one.step() for one in exits], None, np.float64)
            if any(one.estimate is not None for one in exits):
                own, own_slope = (
                    _stacked([getattr(one, name) for one in exits], None, np.float64) for name in ("own", "own_slope")
                )
                incidence_step = _stacked([one.incidence_step() for one in exits], None, np.float64)
            if all(one.hidden_share is None for one in several):  # where statuses are projected, weights do not move
                moves = _stacked([one.weight_at_event < one.max_weight for one in several], order, np.bool_)
        null = scored.null.own if scored.null is not None else []
        factors, factor = self.units.factors, np.zeros(0)
        if factors is not None and factors.sample.frequency:
            factor = _taken(factors.sample.values, order) ** -0.5
        in_population = scored.by_n or (factors is not None and not factors.sample.frequency)
        return kernels.Visits(
            row=_fixed(np.arange(n) if order is None else order, np.int64),
            label=_fixed(_taken(scored.index.label, order), np.int8),
            time_index=_fixed(time_index if scored.fitted else _taken(time_index, order), np.int32),
            population=_fixed(_taken(several[0].population_index, order) if in_population else np.zeros(0), np.int32),
            inverse_risk=_fixed(inverse_risk, np.float64),
            step=_fixed(step, np.float64),
            own=_fixed(own, np.float64),
            own_slope=_fixed(own_slope, np.float64),
            incidence_step=_fixed(incidence_step, np.float64),
            moves=_fixed(moves, np.bool_),
            null=_stacked(null, order, np.float64) if null else np.zeros((0, 0)),
            factor=_fixed(factor, np.float64),
            unit=_fixed(np.zeros(0) if self.groups is None else _taken(self.groups.codes, order), np.int64),
        )

    def _deviation(self, columns: slice) -> Any:
        from survscore.engine import kernels

        scored, width = self.scored, columns.stop - columns.start
        constant = [scored.constant_losses(one) for one in scored.constants]
        free, with_event = np.array(constant).reshape(len(constant), 2, self.m).swapaxes(0, 1)[:, :, columns]
        null = scored.null if scored.null is not None and scored.null.of_scored else None
        slope = np.zeros((0, width)) if null is None else null.slopes[:, columns]
        common = np.zeros(0) if null is None else null.of_event_free[columns]
        offset = scored.offset[:, columns] if scored.by_n else np.zeros((0, width))
        factors = self.units.factors
        shares = np.zeros((0, width))
        if factors is not None and not factors.sample.frequency:
            shares = np.array([factors.inverse_n[columns], factors.inverse_mass[columns]])
        centre, scale = scored.centre[:, columns], scored.scale[:, columns]
        arrays_of = (centre, scale, offset, free, with_event, slope, common, shares)
        kind = KERNELS[type(scored.loss)]
        return kernels.Deviation(kind, float(scored.loss.epsilon), *(_fixed(one, np.float64) for one in arrays_of))


def _squares(values: Values) -> Values:
    """Return the sums of squares of each model's values, and of differences, (pairs, columns)."""
    several = [contrast(values, a, b) for a, b in pairs(len(values))]
    return np.array([np.einsum("ij,ij->j", one, one) for one in several])


def _readers(matrices: Sequence[SurvivalCurves], index: TimeIndex) -> Any:
    from survscore.engine import kernels

    how = [index.interpolation(one) for one in matrices]
    mode = [kernels.DIRECT if one.direct else kernels.GEOMETRIC if one.geometric else kernels.LINEAR for one in how]
    probabilities = [one.probabilities for one in matrices]
    return kernels.Readers(
        address=np.array([one.ctypes.data for one in probabilities], dtype=np.int64),
        stride=np.array([one.strides[0] for one in probabilities], dtype=np.int64),
        single=np.array([one.dtype == np.float32 for one in probabilities], dtype=np.bool_),
        mode=np.array(mode, dtype=np.int64),
        lower=np.array([one.lower for one in how], dtype=np.int64),
        share=np.array([one.weight for one in how], dtype=np.float64),
        last=np.array([one.shape[1] - 1 for one in probabilities], dtype=np.int64),
    )


def _weights(
    several: Sequence[IntervalWeights],
    n_times: int,
    order: NDArray[np.intp] | None = None,
    scale: Values | None = None,
    codes: Sequence[Any] | None = None,
) -> Any:
    """Return weights as kernels take them, perhaps in another order.

    `scale`, of each of them, multiplies what depends on time.
    """
    from survscore.engine import kernels

    n, sample = len(several[0].label), several[0].sample
    codes = [one.codes for one in several] if codes is None else codes
    n_strata = max(one.n_strata for one in several)
    projects = any(one.hidden_share is not None for one in several)
    at_risk = np.zeros((len(several), n_strata, n_times))
    reference = np.zeros((len(several), n_strata, n_times if projects else 0))
    for q, one in enumerate(several):
        if one.weight_at_risk is not None:
            at_risk[q, : one.n_strata] = one.weight_at_risk if scale is None else one.weight_at_risk * scale[q]
        if isinstance(one.reference, np.ndarray):
            reference[q, : one.n_strata] = one.reference
    nothing = np.zeros(n if projects else 0)
    causes = any(one.hidden_base is not None for one in several)
    gradient = np.ones_like(reference) if causes else reference
    none = np.broadcast_to(0.0, n if causes else 0)
    bases = [none if one.hidden_base is None else one.hidden_base for one in several]
    shares = [nothing if one.hidden_share is None else one.hidden_share for one in several]
    in_order = order if projects else None
    lasts: list[Any] = [nothing[:0]]
    cuts: list[Any] = [nothing[:0]]
    if projects and order is None:  # of sums; where influences are made, all individuals count to the end
        lasts = [one.last_index for one in several]
        if any(one.observed_index is not None for one in several):
            always = np.broadcast_to(np.int32(n_times), n)
            cuts = [always if one.observed_index is None else one.observed_index for one in several]
    return kernels.Weights(
        event=_stacked([one.event_index for one in several], order, np.int32),
        stop=_stacked([one.follow_up_index for one in several], order, np.int32),
        own=_stacked([one.weight_at_event for one in several], order, np.float64),
        code=_stacked([np.zeros(n, dtype=np.int32) if one is None else one for one in codes], order, np.int32),
        share=_stacked(shares, in_order, np.float64),
        base=_stacked(bases, order if causes else None, np.float64),
        sample=_fixed(nothing[:0] if sample is None else _taken(sample.values, order), np.float64),
        last=_stacked(lasts, None, np.int32),
        cut=_stacked(cuts, None, np.int32),
        at_risk=_fixed(at_risk, np.float64),
        reference=_fixed(reference, np.float64),
        gradient=_fixed(gradient, np.float64),
    )


def _columns_of(weights: Any, columns: slice) -> Any:
    """Return weights with their tables at some of the evaluation times."""
    projected = slice(0, 0) if not weights.reference.shape[2] else columns
    tables = {"at_risk": columns, "reference": projected, "gradient": projected}
    return weights._replace(
        **{name: _fixed(getattr(weights, name)[:, :, some], np.float64) for name, some in tables.items()}
    )


def _stacked(several: Sequence[Any], order: NDArray[np.intp] | None, dtype: Any) -> NDArray[Any]:
    """Return vectors as the rows of a matrix."""
    if len(several) == 1:
        return _fixed(_taken(several[0], order)[None], dtype)
    found = np.empty((len(several), len(several[0])), dtype=dtype)

    def fill(places: slice) -> None:
        for row, one in zip(found, several, strict=True):
            row[places] = one[places] if order is None else one.take(order[places])

    in_slices(fill, found.shape[1])
    return arrays.read_only(found)


def _taken(vector: Any, order: NDArray[np.intp] | None) -> NDArray[Any]:
    return np.asarray(vector if order is None else arrays.take(vector, order))


def _fixed(array: Any, dtype: Any) -> NDArray[Any]:
    """Return an array of one type and layout that can't be written to: each kernel is compiled once."""
    return arrays.read_only(np.ascontiguousarray(array, dtype=dtype))


def _cut(n: int, at_most: int, size: int) -> list[slice]:
    """Cut a range into at most so many parts, of at least this size."""
    n_parts = max(1, min(at_most, n // size))
    edges = np.linspace(0, n, n_parts + 1).astype(np.intp)
    return [slice(int(start), int(stop)) for start, stop in pairwise(edges)]
