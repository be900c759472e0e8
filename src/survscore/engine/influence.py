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
`survscore.censoring.fitted`, X is -M.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survscore._utils import arrays
from survscore._utils.parallel import cached_property
from survscore._utils.products import Influences, cross_products
from survscore.censoring.fitted import CensoringModel, FittedOnSample
from survscore.inference.units import Groups
from survscore.weighting.interval_weights import IntervalWeights, TimeIndex

Array = Any  # a NumPy array, or a torch tensor


@dataclass(frozen=True, eq=False)
class OrderedExits:
    """The scored individuals in order of time, and the jumps of a curve among them."""

    #: Their positions. Shape (n,).
    order: Array
    #: The first evaluation time at or after each. Shape (n,).
    first_column: Array
    #: Their strata; None for one. Shape (n,) or None.
    codes: Array | None
    #: Who exits; nobody, where the curve was fitted to others. Shape (n,).
    exits: Array
    #: The last of those who exit together. A jump's Greenwood weight belongs to it: then sums over those before an
    #: individual hold just the jumps that it stayed through. Shape (n,).
    last: Array
    #: The jump of each who exits. Shape (n,).
    jump: Array
    #: At each jump, what X is divided by in the term of one who exits, and the Greenwood weight. Shape (jumps,).
    risk: Array
    steps: Array
    #: The curve.
    model: CensoringModel
    n_strata: int
    #: The individuals.
    index: TimeIndex
    #: The evaluation time of each column.
    times: NDArray[np.float64]

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
            rows = arrays.positions(exits)
            rows = rows if codes is None else rows[arrays.in_order(jump[rows])]
            ends = jump[rows] >= 0
            ends[:-1] = jump[rows][1:] != jump[rows][:-1]
            last = exits & ~exits
            last[rows[ends]] = True
        return cls(order, first, codes, exits, last, jump, risk, steps, model, n_strata, index, index.times)

    def inverse_risk(self) -> Array:
        """Return 1/r of those who exit, 0 of others."""
        found, rows = arrays.zeros((len(self.order),), self.order), arrays.positions(self.exits)
        found[rows] = 1.0 / self.risk[self.jump[rows]]
        return found

    def step(self) -> Array:
        """Return the Greenwood weight of a jump at the last of those who exit together, 0 of others."""
        found, rows = arrays.zeros((len(self.order),), self.order), arrays.positions(self.last)
        found[rows] = self.steps[self.jump[rows]]
        return found

    def at_one_time(self, column: int, width: int) -> OrderedExits:
        """Return the same for so many columns that all belong to one evaluation time."""
        reached = self.first_column <= column
        first = arrays.where(reached, np.int32(0), np.int32(width))
        return replace(self, first_column=first, times=np.repeat(self.times[column], width))

    @property
    def martingale(self) -> bool:
        """Whether an individual counts as having stayed through the jump at its own time; see `FittedOnSample`."""
        return isinstance(self.model, FittedOnSample) and self.model.martingale


class CurveInfluence:
    """The operator for one model, block after block in order of time, at the evaluation times of some columns.

    Parameters
    ----------
    rows : OrderedExits
        The individuals in order of time.
    columns : slice
        Which evaluation times.
    start : ndarray of shape (strata, times)
        Where the running sum of each stratum starts: minus its total, or zero.
    """

    def __init__(self, rows: OrderedExits, columns: slice, start: Array) -> None:
        self.rows, self.columns = rows, columns
        self.sum, self.drift = start + 0.0, start * 0.0

    def add(self, influence: Array, x: Array, block: slice, lo: int) -> None:
        """Add to the influences of a block, (rows, columns), what comes with the gradients x, (rows, columns from lo).

        Before column `lo` lie the times before those of the whole block. No jump of the block, or later, reaches them:
        what was summed up so far is all that they get.
        """
        rows = self.rows
        by_stratum = self._by_stratum(block)
        exits = _picked(rows.exits[block], by_stratum.order)
        at = arrays.positions(exits)
        row = at if by_stratum.order is None else by_stratum.order[at]
        X = self._at_jumps(_picked(x, by_stratum.order), at + 1, by_stratum, lo)
        self._until_jump(X, rows.first_column[block][row], lo)
        added = self.spread(X, at, row, exits, by_stratum, block, lo)
        early = self.drift[:, :lo]
        influence[:, :lo] += early if by_stratum.codes is None else early[by_stratum.codes]
        influence[:, lo:] += added

    def spread(
        self, X: Array, at: Array, row: Array, exits: Array, by_stratum: _ByStratum, block: slice, lo: int
    ) -> Array:
        """Return what the jumps of a block, and those before it, add to its rows, (rows, columns from lo on)."""
        rows, xp = self.rows, arrays.namespace(X)
        jump = rows.jump[block][row]
        drift = arrays.running_sums(X * (rows.steps[jump] * rows.last[block][row])[:, None])
        count = xp.cumsum(exits, 0)
        stayed = self._exits_until_time(count, by_stratum, block) if rows.martingale else count - exits * 1
        added, carried = drift[stayed], self.drift[:, lo:]
        if by_stratum.order is None:
            added += carried
            carried += drift[-1]
        else:
            padded = arrays.concatenate([count[:1] * 0, count])
            first, last = padded[by_stratum.edges[:-1]], padded[by_stratum.edges[1:]]
            added += (carried - drift[first])[by_stratum.sorted_codes]
            carried += drift[last] - drift[first]
        added[at] -= X / rows.risk[jump][:, None]
        if by_stratum.order is not None:
            back = xp.empty_like(added)
            back[by_stratum.order] = added
            added = back
        return added

    def at_training_jumps(self, x: Array, block: slice, lo: int) -> tuple[Array, Array]:
        """Return which jumps of a curve fitted to others fall between the rows of a block, and X(s; t) there."""
        curve = self.rows.model.curve
        lo = lo if block.start else 0  # jumps before the first row reach all columns
        by_stratum = self._by_stratum(block)
        time = self.rows.index.ordered_time
        passed = arrays.count_below(time, curve.times, inclusive=True)  # scored individuals with T <= s
        jumps = arrays.positions(((passed > block.start) | (block.start == 0)) & (passed <= block.stop))
        at = passed[jumps] - block.start
        if by_stratum.order is not None:  # rows of the same stratum among the first of the block
            codes = arrays.beside(np.repeat(np.arange(self.rows.n_strata), np.diff(curve.starts)), at)[jumps]
            place = at * 0
            for k in range(self.rows.n_strata):
                inside = codes == k
                members = by_stratum.order[by_stratum.edges[k] : by_stratum.edges[k + 1]]
                place[inside] = by_stratum.edges[k] + arrays.count_below(members, at[inside], inclusive=False)
            at = place
            by_stratum = by_stratum.of_jumps(codes)
        X = arrays.zeros((len(jumps), x.shape[1]), x)
        X[:, lo:] = self._at_jumps(_picked(x[:, lo:], by_stratum.order), at, by_stratum, lo)
        first = arrays.count_below(self.rows.times, curve.times[jumps], inclusive=False)
        self._until_jump(X[:, lo:], first, lo)
        return jumps, X

    def _by_stratum(self, block: slice) -> _ByStratum:
        if self.rows.codes is None:
            return _ByStratum(None, None, None, None)
        codes = self.rows.codes[block]
        order = arrays.in_order(codes)
        ends = arrays.columns(self.rows.n_strata + 1, codes)
        return _ByStratum(codes, order, codes[order], arrays.count_below(codes[order], ends, inclusive=False))

    def _at_jumps(self, x: Array, at: Array, by_stratum: _ByStratum, lo: int) -> Array:
        """Return the running sums after the first `at` rows, each within its stratum; then carry them on."""
        sums, carried = arrays.running_sums(x), self.sum[:, lo:]
        X = sums[at]
        if by_stratum.order is None:
            X += carried
            carried += sums[-1]
        else:
            first, last = sums[by_stratum.edges[:-1]], sums[by_stratum.edges[1:]]
            codes = by_stratum.jump_codes if by_stratum.jump_codes is not None else by_stratum.sorted_codes[at - 1]
            X += (carried - first)[codes]
            carried += last - first
        return X

    def _until_jump(self, X: Array, first: Array, lo: int) -> None:
        """Set X(s; t) to zero where t < s; `first` is the index of the first time that is not."""
        until = int(first.max()) - self.columns.start if len(X) else 0
        if until > lo:
            column = arrays.columns(self.columns.stop, first)[self.columns.start + lo : self.columns.start + until]
            X[:, : until - lo] *= column >= first[:, None]

    def _exits_until_time(self, count: Array, by_stratum: _ByStratum, block: slice) -> Array:
        """Return how many exit rows have a time of at most each row's own; a block does not end within a time."""
        time = _picked(self.rows.index.ordered_time[block], by_stratum.order)
        if by_stratum.order is None:
            return count[arrays.count_below(time, time, inclusive=True) - 1]
        found = count * 0
        edges = arrays.to_host(by_stratum.edges)
        for start, stop in pairwise(edges):
            some = time[start:stop]
            found[start:stop] = count[start + arrays.count_below(some, some, inclusive=True) - 1]
        return found


@dataclass(frozen=True, eq=False)
class _ByStratum:
    """The rows of a block, one stratum after the other; nothing where there is one stratum."""

    codes: Array | None
    order: Array
    sorted_codes: Array
    edges: Array
    jump_codes: Array | None = None

    def of_jumps(self, codes: Array) -> _ByStratum:
        """Return the same for jumps of these strata."""
        return _ByStratum(self.codes, self.order, self.sorted_codes, self.edges, codes)


def _picked(values: Array, order: Array | None) -> Array:
    return values if order is None else values[order]


@dataclass(frozen=True, eq=False)
class Estimation:
    """What was estimated inside the weights, for metrics whose influences are known of everybody at once."""

    index: TimeIndex
    weights: IntervalWeights

    @cached_property
    def exits(self) -> OrderedExits | None:
        """The individuals in order of time, and the jumps among them; None where nothing was estimated."""
        model = self.weights.censoring_model
        return None if model is None else OrderedExits.of(self.index, model)

    @property
    def training_steps(self) -> NDArray[np.float64]:
        """The Greenwood weights of a curve that was fitted to others; empty where there is none."""
        model = self.weights.censoring_model
        return model.curve.greenwood if model is not None and not model.fitted_on_sample else np.zeros(0)

    def influences(
        self, deviations: NDArray[np.float64], columns: slice
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return everybody's influences, (models, individuals, times), and X(s; t), (models, training jumps, times).

        `deviations` are the influences while what was estimated inside the weights is held fixed, of any metric.
        """
        exits = self.exits
        if exits is None:
            return deviations, np.zeros((len(deviations), 0, deviations.shape[2]))
        n_jumps = self.training_steps.size
        influences = deviations.copy()
        X = np.zeros((len(deviations), n_jumps, deviations.shape[2]))
        everybody, lo = slice(0, len(exits.order)), int(exits.first_column[0]) - columns.start
        lo = min(max(lo, 0), deviations.shape[2])
        moves = self.moves(columns)
        for a, deviation in enumerate(deviations):
            x = (deviation if moves is None else deviation * moves)[exits.order]
            total = np.zeros((exits.n_strata, x.shape[1]))
            arrays.add_rows(total, np.zeros(len(x), dtype=np.intp) if exits.codes is None else exits.codes, x)
            operator = CurveInfluence(exits, columns, -total)
            if n_jumps:
                jumps, found = operator.at_training_jumps(x, everybody, lo)
                X[a, jumps] = found
            else:
                ordered = deviation[exits.order]
                operator.add(ordered, x[:, lo:], everybody, lo)
                influences[a, exits.order] = ordered
        return influences, X

    def of_jumps(self, M: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what estimation adds to everybody's influences, from M(s), (jumps,), at each jump of the curve."""
        exits = self.exits
        if exits is None or not exits.model.fitted_on_sample:
            return np.zeros(len(self.index.outcomes))
        operator = CurveInfluence(exits, slice(0, 1), np.zeros((1, 1)))
        rows, whole = arrays.positions(exits.exits), _ByStratum(None, None, None, None)
        X = -M[exits.jump[rows]][:, None]
        added = operator.spread(X, rows, rows, exits.exits, whole, slice(0, len(exits.order)), 0)
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
    influence: NDArray[np.float64] | Influences,
    estimation: Estimation,
    column: slice,
    groups: Groups | None,
    factor: NDArray[np.float64] | float,
    counted: tuple[NDArray[np.intp], int],
) -> NDArray[np.float64]:
    """Return the covariance of several numbers at one time, from the influences on them, (numbers, counted).

    Where individuals are independent and nothing was estimated, they are never all in memory.

    Those are the influences while what was estimated inside the weights is held fixed, of those who are `counted`: who
    they are, and of how many. `factor`, for each number or for all, is that of a sample variance.
    """
    rows, n = counted
    by_unit, codes = Influences.of(influence), None if groups is None else groups.codes
    X = np.zeros((len(influence), 0, 1))
    if estimation.exits is None:  # nobody else has any influence
        codes = None if codes is None else codes[rows]
    else:
        everybody = np.zeros((len(influence), n, 1))
        everybody[:, rows, 0] = by_unit.whole()
        everybody, X = estimation.influences(everybody, column)
        by_unit = Influences.of(everybody[:, :, 0])
    if groups is not None and codes is not None:
        by_unit = Influences.of(np.array([np.bincount(codes, one, groups.n_groups) for one in by_unit.whole()]))
    root = np.broadcast_to(np.sqrt(factor), len(influence))
    found = sum((cross_products(block, block) for block in by_unit.blocks()), np.zeros((len(influence),) * 2))
    found *= np.outer(root, root)
    return np.asarray(found + (X[:, :, 0] * estimation.training_steps) @ X[:, :, 0].T)
