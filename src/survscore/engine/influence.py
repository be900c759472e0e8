r"""What estimating a product limit inside a metric adds to each individual's influence: one operator for all metrics.

Let X(s; t) be the derivative of the metric at t in the logarithm of the curve's factor at the jump s <= t. With q exits
among r at risk at s, the logarithm of 1 - q/r moves by -1/r with one who exits at s, and by q / (r (r - q)) with one at
risk who stays. So individual i adds

      sum of greenwood(s) X(s; t) over the jumps s <= t of its stratum at which i was at risk and stayed
    - X(T_i; t) / r(T_i)  if i exits at T_i <= t

and X is a running sum in order of time, of "gradients" x:

    weights 1/G    x = deviation e of each individual, X(s) = -(sum of e over T > s) = running sum up to s - total
    projected      x = weight x status x slope of the loss, of the hidden, X(s) = sum over those censored before s

Both running sums, of x and of greenwood X, are carried from block to block, by stratum. In terms of
`survscore.censoring.fitted`, X is -M. With sample weights, q and r are sums of these, x has the individual's as a
factor, and so has what i adds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survscore._utils import arrays
from survscore._utils.parallel import cached_property, cross_products
from survscore.censoring.aalen_johansen import Incidence
from survscore.censoring.fitted import CensoringModel, FittedOnSample
from survscore.inference.units import Groups, InfluenceFactors, Units
from survscore.metrics.sample import OTHER_EVENT, CountedStatuses
from survscore.weighting.interval_weights import EVENT_FREE, IntervalWeights, TimeIndex

Array = Any  # a NumPy array, or a torch tensor


@dataclass(frozen=True, eq=False)
class OrderedExits:
    """The scored individuals in order of time, and the jumps of a curve among them."""

    order: Array  # Their positions. Shape (n,).
    first_column: Array  # The first evaluation time at or after each. Shape (n,).
    codes: Array | None  # Their strata; None for one. Shape (n,) or None.
    exits: Array  # Who leaves the risk set at a jump; no individual, where the curve was fitted to others. Shape (n,).
    #: The last of those who exit together. A jump's Greenwood weight belongs to it: then sums over those before an
    #: individual hold just the jumps that it stayed through. Shape (n,).
    last: Array
    jump: Array  # The jump of each who exits. Shape (n,).
    #: At each jump, what X is divided by in the term of one who exits, and the Greenwood weight. Shape (jumps,).
    risk: Array
    steps: Array
    #: The curve.
    model: CensoringModel
    n_strata: int
    index: TimeIndex  # The individuals.
    times: NDArray[np.float64]  # The evaluation time of each column.
    #: How many individuals have a time up to that of each column, in the processor's memory: looking it up makes no
    #: device wait. Shape (times,).
    n_until: NDArray[np.int32]
    #: Where an incidence is inside the metric, `Incidence.own` and `own_slope` of each who exits, (n,), and U at the
    #: evaluation times, (strata, times); None for the logarithm of the event-free curve that belongs to it.
    own: Array | None = None
    own_slope: Array | None = None
    later: Array | None = None

    @classmethod
    def of(cls, index: TimeIndex, model: CensoringModel) -> OrderedExits:
        """Bring the individuals into order of time, and find each one's jump."""
        order, own = index.order, index.outcomes.time
        n_strata = model.curve.n_strata
        codes = None if model.codes is None or n_strata == 1 else arrays.take(model.codes, order)
        first = arrays.take(index.before_time, order)
        exits = last = first < 0
        jump, risk, steps = first, own[:0], own[:0]
        if isinstance(model, FittedOnSample):
            exits, jump = arrays.take(model.exits, order), model.passed
            risk, steps = model.own_risk(own), model.steps(own)
            # jumps are numbered stratum by stratum, so that equal numbers are exits together
            last = exits | False
            if codes is None:  # those are neighbours
                last[:-1] &= (jump[1:] != jump[:-1]) | ~exits[1:]
            elif len(model.curve.times) < arrays.count_true(exits):
                rows = arrays.positions(exits)
                rows = rows[arrays.by_code(codes[rows], n_strata)]
                own = arrays.take(jump, rows)
                last[rows[:-1][own[1:] == own[:-1]]] = False
        n_until = arrays.to_host(arrays.count_below(index.ordered_time, index.times, inclusive=True))
        ordered = cls(order, first, codes, exits, last, jump, risk, steps, model, n_strata, index, index.times, n_until)
        estimate = ordered.estimate
        if estimate is None:
            return ordered
        rows, of_interest = arrays.positions(exits), arrays.take(arrays.as_bool(index.label), order)
        own, slope = (arrays.zeros((len(order),), risk) for _ in range(2))
        own[rows] = estimate.own(jump[rows], of_interest[rows])
        slope[rows] = estimate.own_slope(jump[rows], of_interest[rows])
        later = arrays.beside(estimate.later_table(index.times), risk)
        return replace(ordered, own=own, own_slope=slope, later=later)

    def column_of(self, position: int) -> int:
        """Return the first evaluation time at or after that of the individual at a position in order."""
        return int(np.searchsorted(self.n_until, position, side="right"))

    def n_exits(self, blocks: Sequence[slice]) -> list[int | None]:
        """Return how many exit in each of the blocks, which follow one another, where that keeps a device from waiting.

        Looked up in each block, the number would make the host wait for the device, and the device then for the host.
        """
        if not arrays.on_device(self.exits):
            return [None] * len(blocks)
        stops = arrays.beside(np.array([block.stop - 1 for block in blocks]), self.exits)
        return list(np.diff(arrays.to_host(arrays.running_count(self.exits)[stops]), prepend=0).tolist())

    def in_block(self, block: slice, n_exits: int | None = None) -> BlockExits:
        """Return who exits in a block of individuals, which all models with these weights share."""
        codes = order = sorted_codes = edges = None
        if self.codes is not None:
            codes = self.codes[block]
            order = arrays.by_code(codes, self.n_strata)
            sorted_codes = codes[order]
            ends = arrays.columns(self.n_strata + 1, codes)
            edges = arrays.count_below(sorted_codes, ends, inclusive=False)
        exits = _picked(self.exits[block], order)
        at = arrays.positions(exits, n_exits)
        row = at if order is None else order[at]
        sample = self.index.sample
        weights = None if sample is None else sample.values[self.order[block]][:, None]
        return BlockExits(block, codes, order, sorted_codes, edges, exits, at, row, self.jump[block][row], weights)

    def inverse_risk(self) -> Array:
        """Return 1/r of those who exit, 0 of others."""
        return self._at_jumps(1.0 / self.risk, self.exits)

    def step(self) -> Array:
        """Return the Greenwood weight of a jump at the last of those who exit together, 0 of others.

        Where an incidence is inside the metric, by how much that moves.
        """
        return self._at_jumps(self.steps if self.estimate is None else self.estimate.slopes, self.last)

    def incidence_step(self) -> Array:
        """Return the `steps` of the incidence that is inside the metric, in the same way."""
        if self.estimate is None:
            raise TypeError("no incidence is inside the metric")
        return self._at_jumps(self.estimate.steps, self.last)

    def _at_jumps(self, values: Array, flags: Array) -> Array:
        """Return the values of jumps at those who are flagged, 0 of others, who may have passed all jumps."""
        padded = arrays.concatenate([values, arrays.zeros((1,), self.risk)])
        return arrays.take(padded, self.jump) * flags

    def at_one_time(self, column: int, width: int) -> OrderedExits:
        """Return the same for so many columns that all belong to one evaluation time."""
        reached = self.first_column <= column
        first = arrays.where(reached, np.int32(0), np.int32(width))
        times, n_until = np.repeat(self.times[column], width), np.repeat(self.n_until[column], width)
        later = None
        if self.later is not None:
            later = self.later[:, column : column + 1] + arrays.zeros((1, width), self.later)
        return replace(self, first_column=first, times=times, n_until=n_until, later=later)

    @property
    def estimate(self) -> Incidence | None:
        """The incidence that is inside the metric in place of the curve."""
        return self.model.incidence if isinstance(self.model, FittedOnSample) else None

    @property
    def martingale(self) -> bool:
        """Whether an individual counts as having stayed through the jump at its own time; see `FittedOnSample`."""
        return isinstance(self.model, FittedOnSample) and self.model.martingale


@dataclass(frozen=True, eq=False)
class BlockExits:
    """Who exits in a block of individuals in order of time; with several strata, one stratum after the other."""

    block: slice  # Which positions in order.
    #: The strata, the order by stratum, the strata in it, and where each begins; None for one stratum. Shape (rows,),
    #: and (strata + 1,).
    codes: Array | None
    order: Array
    sorted_codes: Array
    edges: Array
    exits: Array  # Who exits, by stratum. Shape (rows,).
    #: Their places by stratum, and in order of time, and their jumps. Shape (exits,).
    at: Array
    row: Array
    jump: Array
    weights: Array | None = None  # The sample weights, in order of time; None where all count alike. Shape (rows, 1).


class CurveInfluence:
    """The operator for one model, block after block in order of time, at the evaluation times of some columns.

    The running sum of each stratum begins at `start`, (strata, times): minus its total, or zero.
    """

    def __init__(self, rows: OrderedExits, columns: slice, start: Array) -> None:
        self.rows, self.columns = rows, columns
        self.sum, self.greenwood_sum = start + 0.0, start * 0.0

    def add(self, influence: Array, x: Array, some: BlockExits, lo: int) -> None:
        """Add to the influences of a block, (rows, columns), what comes with the gradients x, (rows, columns from lo).

        Before column `lo` lie the times before those of the whole block. No jump of the block, or later, reaches them:
        what was summed up so far is all that they get.
        """
        codes = None if some.order is None else some.sorted_codes[some.at]
        X = self._at_jumps(_picked(x, some.order), some.at + 1, some, codes, lo)
        first = self.rows.first_column[some.block][some.row]
        self._until_jump(X, first, lo, until=self.rows.column_of(some.block.stop - 1))
        added = self.at_rows(X, some, lo)
        early = self.greenwood_sum[:, :lo] if some.codes is None else self.greenwood_sum[:, :lo][some.codes]
        if some.weights is not None:
            early, added = early * some.weights, added * some.weights
        before, after = influence[:, :lo], influence[:, lo:]
        before += early
        after += added

    def at_rows(self, X: Array, some: BlockExits, lo: int) -> Array:
        """Return what the jumps of a block, and those before it, add to its rows, (rows, columns from lo on)."""
        rows, xp = self.rows, arrays.namespace(X)
        stays, exits = self._factors(some, lo)
        greenwood_sums = arrays.running_sums(X * stays)
        count = xp.cumsum(some.exits, 0)
        stayed = self._exits_until_time(count, some) if rows.martingale else count - some.exits * 1
        added, carried = arrays.pick_rows(greenwood_sums, stayed), self.greenwood_sum[:, lo:]
        if some.order is None:
            added += carried
            carried += greenwood_sums[-1]
        else:
            padded = arrays.concatenate([count[:1] * 0, count])
            first, last = padded[some.edges[:-1]], padded[some.edges[1:]]
            added += arrays.pick_rows(carried - greenwood_sums[first], some.sorted_codes)
            carried += greenwood_sums[last] - greenwood_sums[first]
        X *= exits
        arrays.subtract_rows(added, some.at, X)
        if some.order is not None:
            back = xp.empty_like(added)
            back[some.order] = added
            added = back
        return added

    def _factors(self, some: BlockExits, lo: int) -> tuple[Array, Array]:
        """Return what X(s; t) is multiplied by for those who stay through a jump, and for those who exit then.

        Of those who exit together, the first is 0 but for the last. Shape (exits, 1), or (exits, columns from lo on)
        where an incidence is inside the metric; see `censoring.aalen_johansen`.
        """
        rows = self.rows
        last, risk = rows.last[some.block][some.row], rows.risk[some.jump]
        estimate = rows.estimate
        if estimate is None or rows.own is None or rows.own_slope is None:
            return (rows.steps[some.jump] * last)[:, None], 1.0 / risk[:, None]
        if rows.later is None:
            slope = rows.own_slope[some.block][some.row]
            return (estimate.slopes[some.jump] * last)[:, None], (slope / risk)[:, None]
        later = rows.later[:, self.columns.start + lo : self.columns.stop]
        if some.codes is not None:
            later = later[some.sorted_codes[some.at]]
        stays = (estimate.steps[some.jump] * last)[:, None] + (estimate.slopes[some.jump] * last)[:, None] * later
        own, slope = (values[some.block][some.row][:, None] for values in (rows.own, rows.own_slope))
        return stays, (own + slope * later) / risk[:, None]

    def at_training_jumps(self, x: Array, some: BlockExits, lo: int) -> tuple[Array, Array]:
        """Return which jumps of a curve fitted to others fall between the rows of a block, and X(s; t) there."""
        curve, block, codes = self.rows.model.curve, some.block, None
        lo = lo if block.start else 0  # jumps before the first row reach all columns
        time = self.rows.index.ordered_time
        passed = arrays.count_below(time, curve.times, inclusive=True)  # scored individuals with T <= s
        jumps = arrays.positions(((passed > block.start) | (block.start == 0)) & (passed <= block.stop))
        at = passed[jumps] - block.start
        if some.order is not None:  # rows of the same stratum among the first of the block
            codes = arrays.beside(np.repeat(np.arange(self.rows.n_strata), np.diff(curve.starts)), at)[jumps]
            place = at * 0
            for k in range(self.rows.n_strata):
                inside = codes == k
                members = some.order[some.edges[k] : some.edges[k + 1]]
                place[inside] = some.edges[k] + arrays.count_below(members, at[inside], inclusive=False)
            at = place
        X = arrays.zeros((len(jumps), x.shape[1]), x)
        X[:, lo:] = self._at_jumps(_picked(x[:, lo:], some.order), at, some, codes, lo)
        first = arrays.count_below(self.rows.times, curve.times[jumps], inclusive=False)
        self._until_jump(X[:, lo:], first, lo, until=self.columns.stop)
        return jumps, X

    def _at_jumps(self, x: Array, at: Array, some: BlockExits, codes: Array | None, lo: int) -> Array:
        """Return the running sums after the first `at` rows, each within its stratum; then carry them on.

        `codes` are the strata of the jumps.
        """
        sums, carried = arrays.running_sums(x), self.sum[:, lo:]
        X = arrays.pick_rows(sums, at)
        if codes is None:
            X += carried
            carried += sums[-1]
        else:
            first, last = sums[some.edges[:-1]], sums[some.edges[1:]]
            X += arrays.pick_rows(carried - first, codes)
            carried += last - first
        return X

    def _until_jump(self, X: Array, first: Array, lo: int, *, until: int) -> None:
        """Set X(s; t) to zero where t < s; `first` is the index of the first time that is not, at most `until`."""
        until = min(until, self.columns.stop) - self.columns.start
        if until > lo:
            column = arrays.columns(self.columns.stop, first)[self.columns.start + lo : self.columns.start + until]
            early = X[:, : until - lo]
            early *= column >= first[:, None]

    def _exits_until_time(self, count: Array, some: BlockExits) -> Array:
        """Return how many exit rows have a time of at most each row's own; a block does not end within a time."""
        time = _picked(self.rows.index.ordered_time[some.block], some.order)
        if some.order is None:
            return count[arrays.count_below(time, time, inclusive=True) - 1]
        found = count * 0
        edges = arrays.to_host(some.edges)
        for start, stop in pairwise(edges):
            part = time[start:stop]
            found[start:stop] = count[start + arrays.count_below(part, part, inclusive=True) - 1]
        return found


def _picked(values: Array, order: Array | None) -> Array:
    return values if order is None else arrays.pick_rows(values, order)


@dataclass(frozen=True, eq=False)
class Estimation:
    """What was estimated inside the weights, for metrics whose influences are known of all individuals at once."""

    index: TimeIndex
    weights: IntervalWeights

    @cached_property
    def exits(self) -> OrderedExits | None:
        """The individuals in order of time, and the jumps among them; None where nothing was estimated."""
        model = self.weights.censoring_model
        return None if model is None else OrderedExits.of(self.index, model)

    @cached_property
    def factors(self) -> InfluenceFactors | None:
        """What the influences of individuals are multiplied by before they are squared; None without sample weights."""
        weights = self.weights
        return Units.of(weights.population_index, None, self.index.times.size, sample=weights.sample).factors

    @property
    def mean_weight(self) -> float:
        """The mean sample weight of the individuals; 1 of frequencies, which are counts."""
        sample = self.weights.sample
        return 1.0 if sample is None or sample.frequency else float(np.mean(sample.values))

    @cached_property
    def all_exits(self) -> BlockExits:
        """Who exits, of all individuals."""
        if self.exits is None:
            raise TypeError("nothing was estimated")
        return self.exits.in_block(slice(0, len(self.exits.order)))

    @property
    def training_steps(self) -> NDArray[np.float64]:
        """The Greenwood weights of a curve that was fitted to others; empty where there is none."""
        model = self.weights.censoring_model
        return model.curve.variance_steps if model is not None and not model.fitted_on_sample else np.zeros(0)

    def statuses(self, place: int) -> tuple[NDArray[np.int8], NDArray[np.float64], NDArray[np.float64] | None]:
        """Return each one's status and weight at one of the times; where some are projected, also their probabilities.

        Probabilities are those of being event-free.
        """
        weights, index, column = self.weights, self.index, slice(place, place + 1)
        early, late = weights.cells(index.times, column)
        passed = index.before_time <= place
        label = np.where(passed, weights.label, EVENT_FREE)
        if index.outcomes.competing:
            label[passed & index.outcomes.event & (weights.label == EVENT_FREE)] = OTHER_EVENT
        if weights.hidden_share is None:
            return label, (early + late)[:, 0], None
        event_free = weights.event_free((label <= EVENT_FREE)[:, None], index.times, column)[:, 0]
        return label, (early + late)[:, 0], np.clip(event_free, 0.0, 1.0)  # rounding may leave more, or less

    def event_free(self, place: int) -> NDArray[np.float64] | None:
        """Return each one's probability of having had no event of any cause by one of the times, if not hidden one.

        None where no status is projected; it is of use under competing risks alone.
        """
        weights, model = self.weights, self.weights.censoring_model
        if weights.hidden_share is None or not isinstance(model, FittedOnSample) or model.incidence is None:
            return None
        table = model.incidence.event_free_table(self.index.times[place : place + 1])[:, 0]
        share = np.asarray(weights.hidden_share) * (table[0] if weights.codes is None else table[weights.codes])
        return np.where(weights.hidden(slice(place, place + 1))[:, 0], np.clip(share, 0.0, 1.0), 1.0)

    def of_counted(
        self, influence: NDArray[np.float64], counted: CountedStatuses, column: slice
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Return all individuals' deviations and influences, (numbers, individuals, 1), and X(s; t), at one time.

        From the influences of those who are counted then, (numbers, counted), on several numbers.
        """
        parts = counted.by_individual(influence)
        of_all = np.zeros((len(parts), len(influence), len(self.index.outcomes), 1))
        of_all[:, :, counted.individuals, 0] = parts
        if len(parts) > 1 and self.weights.hidden_base is not None:
            # by the incidence in place of the logarithm of the status
            weights, share = self.weights, np.asarray(self.weights.hidden_share)
            status = weights.event_free(np.ones((len(weights.label), 1)), self.index.times, column)
            of_all[1] *= np.where(status > 0, share[:, None] / np.where(status > 0, status, 1.0), 0.0)
        influences, X = self.influences(of_all[0], column, of_all[1] if len(parts) > 1 else None)
        if len(parts) > 2 and self.exits is not None:  # by the logarithm of the event-free curve
            influences, _ = self.influences(influences, column, of_all[2], replace(self.exits, later=None))
        return of_all[0], influences, X

    def influences(
        self,
        deviations: NDArray[np.float64],
        columns: slice,
        gradients: NDArray[np.float64] | None = None,
        exits: OrderedExits | None = None,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return all influences, (models, individuals, times), and X(s; t), (models, training jumps, times).

        `deviations` are the influences while what was estimated inside the weights is held fixed, of any metric, and
        `gradients` how the metric moves with the logarithms of projected statuses, where there are any.
        """
        exits = self.exits if exits is None else exits
        if exits is None:
            return deviations, np.zeros((len(deviations), 0, deviations.shape[2]))
        n_jumps = self.training_steps.size
        influences = deviations.copy()
        X = np.zeros((len(deviations), n_jumps, deviations.shape[2]))
        every_exit, lo = self.all_exits, exits.column_of(0) - columns.start
        lo = min(max(lo, 0), deviations.shape[2])
        moves, projects = self.moves(columns), self.weights.hidden_share is not None
        for a, deviation in enumerate(deviations):
            moving = gradients[a] if gradients is not None else deviation if moves is None else deviation * moves
            x = moving[exits.order] * (gradients is not None or not projects)
            total = np.zeros((exits.n_strata, x.shape[1]))
            if not projects:
                arrays.add_rows(total, np.zeros(len(x), dtype=np.intp) if exits.codes is None else exits.codes, x)
            operator = CurveInfluence(exits, columns, -total)
            if n_jumps:
                jumps, found = operator.at_training_jumps(x, every_exit, lo)
                X[a, jumps] = found
            else:
                ordered = deviation[exits.order]
                operator.add(ordered, x[:, lo:], every_exit, lo)
                influences[a, exits.order] = ordered
        return influences, X

    def of_jumps(self, M: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what estimation adds to all influences, from M(s), (jumps,), at each jump of the curve."""
        exits = self.exits
        if exits is None or not exits.model.fitted_on_sample:
            return np.zeros(len(self.index.outcomes))
        operator = CurveInfluence(exits, slice(0, 1), np.zeros((exits.n_strata, 1)))
        added = operator.at_rows(-M[self.all_exits.jump][:, None], self.all_exits, 0)
        if self.all_exits.weights is not None:
            added = added * self.all_exits.weights
        found = np.empty(len(added))
        found[exits.order] = added[:, 0]
        return found

    def moves(self, columns: slice) -> NDArray[np.bool_] | None:
        """Return which weights move with what was estimated, (individuals, times): not capped ones. None: all do."""
        weights = self.weights
        if not weights.capped:
            return None
        column = np.arange(columns.start, columns.stop)
        early, late = weights.at_risk(columns) < weights.max_weight, weights.weight_at_event < weights.max_weight
        return np.where(column < weights.event_index[:, None], early, late[:, None])


def joint_covariance(
    several: Sequence[NDArray[np.float64]],
    sources: Sequence[tuple[Estimation, CountedStatuses]],
    column: slice,
    groups: Groups | None,
    factor: NDArray[np.float64] | float,
) -> NDArray[np.float64]:
    """Return the covariance of several numbers at one time, from influences on them, (numbers, counted), of each model.

    Those are the influences while what was estimated inside the weights is held fixed, of those who are counted; for
    each model, `sources` tell who these are. `factor`, for each number or for all, is that of a sample variance.
    """
    if all(source is sources[0] for source in sources):
        several, sources = [np.concatenate(several)], sources[:1]
    estimation, counted = sources[0]
    by_unit, codes = several[0], None if groups is None else groups.codes
    rows: Any = slice(None)
    X = np.zeros((len(by_unit), 0, 1))
    if len(sources) == 1 and estimation.exits is None and counted.other is None:  # no other has influence
        rows = counted.rows
        codes = None if codes is None else codes[rows]
    else:
        found = [
            of_model.of_counted(one, status, column) for one, (of_model, status) in zip(several, sources, strict=True)
        ]
        by_unit = np.concatenate([influence[:, :, 0] for _, influence, _ in found])
        X = np.concatenate([jumps for _, _, jumps in found])
    if groups is not None and codes is not None:
        by_unit = np.array([np.bincount(codes, one, groups.n_groups) for one in by_unit])
    elif estimation.factors is not None:
        by_unit = by_unit * estimation.factors.of_rows(rows, column)[:, 0]
    root = np.broadcast_to(np.sqrt(factor), len(by_unit))
    products = cross_products(by_unit, by_unit) * np.outer(root, root)
    return np.asarray(products + (X[:, :, 0] * estimation.training_steps) @ X[:, :, 0].T)
