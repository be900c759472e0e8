"""The loops behind standard errors, compiled; see `_kernels` for how they are run."""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from survscore._kernels import compiled, read_row, row_losses


@intrinsic
def _prefetch(context, matrix, row, column):
    """Ask the processor to fetch a cell that will be needed soon; rows in the order of time lie far apart."""

    def generate(context, builder, signature, args):
        array = context.make_array(signature.args[0])(context, builder, value=args[0])
        width = builder.extract_value(array.shape, 1)
        cell = builder.gep(array.data, [builder.add(builder.mul(args[1], width), args[2])])
        byte = ir.IntType(8).as_pointer()
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        # for reading (0), to be kept in all caches (3), data (1)
        builder.call(function, [builder.bitcast(cell, byte), number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(matrix, types.int64, types.int64), generate


@compiled
def influence_block(
    rows,
    shared_curve,
    probabilities,
    direct,
    geometric,
    lower,
    weight,
    loss,
    epsilon,
    free_stop,
    event_stop,
    event_weight,
    free_weight,
    individual,
    censoring,
    censoring_direct,
    censoring_geometric,
    censoring_lower,
    censoring_weight,
    max_weight,
    centre,
    scale,
    first,
    last,
    while_free,
    estimated,
    inclusive,
    at_risk,
    n_censored,
    leads,
    moves,
    ahead,
    drift,
    pending,
    out,
    ranges,
):
    """Fill ``out[b, j - first]`` with the influence of individual ``rows[b]`` on the score at time j.

    The times are those in ``ranges[b]``, within `first` to `last`, and not before the individual's own time unless
    `while_free`. If G is `estimated`, the formula's running sums `ahead`, `drift` and `pending` (see
    `influence.Influence`) are carried from block to block; `rows` then go from the latest time to the earliest, at
    ties the censored before the events.
    """
    survival = np.empty(lower.size)
    lost = np.empty(lower.size)
    inverse = np.empty(lower.size)
    line = 64 // probabilities.itemsize
    scattered = estimated or not while_free
    for b in range(rows.size):
        i = rows[b]
        if scattered and not shared_curve and b + 8 < rows.size and event_stop[b + 8] > 0:
            for j in range(min(first, probabilities.shape[1]), min(last, probabilities.shape[1]), line):
                _prefetch(probabilities, rows[b + 8], j)
        free = min(max(free_stop[b], first), last)
        start = first if while_free else free
        stop = max(free, min(event_stop[b], last))
        row = 0 if shared_curve else i
        if direct:
            row_losses(loss, epsilon, probabilities[row, lower[0] :], start, free, stop, lost)
        else:
            read_row(probabilities[row], False, geometric, lower, weight, start, stop, survival)
            row_losses(loss, epsilon, survival, start, free, stop, lost)
        if individual:
            read_row(
                censoring[i], censoring_direct, censoring_geometric, censoring_lower, censoring_weight, start, free,
                inverse,
            )  # fmt: skip
            for j in range(np.uint64(start), np.uint64(free)):
                out[b, j - np.uint64(first)] = min(1.0 / inverse[j], max_weight) * scale[j] * (lost[j] - centre[j])
        else:
            for j in range(np.uint64(start), np.uint64(free)):
                out[b, j - np.uint64(first)] = free_weight[j] * scale[j] * (lost[j] - centre[j])
        w = event_weight[b]
        ranges[b, 0], ranges[b, 1] = start, stop
        if not estimated:
            for j in range(np.uint64(free), np.uint64(stop)):
                out[b, j - np.uint64(first)] = w * scale[j] * (lost[j] - centre[j])
            continue
        ranges[b, 1] = last
        if leads[b]:
            risk = np.float64(at_risk[b])
            rest = risk - n_censored[b] if inclusive else risk
            # nobody is left after a step to zero, and no score is defined there
            step = n_censored[b] / (risk * rest) if rest > 0.0 else 0.0
            if not inclusive:  # a step counts from the next time on
                for j in range(np.uint64(first), np.uint64(last)):
                    drift[j] += pending[j]
                for j in range(np.uint64(free), np.uint64(last)):
                    pending[j] = step * ahead[j]
        else:
            step = 0.0
        if event_stop[b] == 0:  # censored: no deviation of its own any more; they come first, and so take the step
            mine = 1.0 / at_risk[b]
            step = step if inclusive else 0.0
            for j in range(np.uint64(free), np.uint64(last)):
                drift[j] += step * ahead[j]
                out[b, j - np.uint64(first)] = mine * ahead[j] + drift[j]
        else:
            for j in range(np.uint64(free), np.uint64(last)):
                value = w * scale[j] * (lost[j] - centre[j])
                out[b, j - np.uint64(first)] = value + drift[j]
                ahead[j] += moves[b] * value


@compiled
def order_by_time(censored, censored_times, events, event_times, martingale):
    """Merge the positions of censored and events, each by increasing time, into one order from the latest time on.

    At ties the censored come first. Returns the fields of `influence._Order`.
    """
    n = censored.size + events.size
    rows, at_risk, n_censored = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
    leads = np.empty(n, dtype=np.bool_)
    i, k, b = censored.size - 1, events.size - 1, 0
    while b < n:
        now = censored_times[i] if k < 0 or (i >= 0 and censored_times[i] >= event_times[k]) else event_times[k]
        start = b
        while i >= 0 and censored_times[i] == now:
            rows[b] = censored[i]
            i -= 1
            b += 1
        middle = b
        while k >= 0 and event_times[k] == now:
            rows[b] = events[k]
            k -= 1
            b += 1
        # all with a later time, and those of this time whom the convention leaves at risk
        for c in range(start, b):
            at_risk[c] = b if martingale else middle
            n_censored[c] = middle - start
            leads[c] = c == start
    return rows, at_risk, n_censored, leads


@compiled
def clear_outside(blocks, ranges, first):
    """Set to zero what lies outside the rows' ranges."""
    for a in range(blocks.shape[0]):
        for b in range(blocks.shape[1]):
            blocks[a, b, : ranges[b, 0] - first] = 0.0
            blocks[a, b, ranges[b, 1] - first :] = 0.0


@compiled
def add_products(blocks, ranges, first, products):
    """Add the sums of products over the rows of the influences (models, rows, times); only the lower half is filled."""
    for b in range(blocks.shape[1]):
        start, stop = np.uint64(ranges[b, 0] - first), np.uint64(ranges[b, 1] - first)
        for a in range(blocks.shape[0]):
            for c in range(a + 1):
                for j in range(start, stop):
                    products[a, c, j] += blocks[a, b, j] * blocks[c, b, j]


@compiled
def greenwood(censored, events, keys, inclusive):
    """Return the sum of c / (r (r - c)) over the censoring times before each key, or up to it; all inputs are sorted.

    Of the r at risk after the events at a time, c are censored there. A step to zero adds nothing: nobody is left
    after it, and no score is defined there.
    """
    sums = np.empty(keys.size)
    total = 0.0
    i, k = 0, 0
    for j in range(keys.size):
        while i < censored.size and (censored[i] < keys[j] or (inclusive and censored[i] == keys[j])):
            first = i
            while i < censored.size and censored[i] == censored[first]:
                i += 1
            while k < events.size and events[k] <= censored[first]:
                k += 1
            rest = np.float64(censored.size - i + events.size - k)
            if rest > 0.0:
                total += (i - first) / (rest * (rest + (i - first)))
        sums[j] = total
    return sums


@compiled
def add_estimation(blocks, ranges, first, steps, moves, capped, ahead, whole, products):
    """Add the sums over the censoring times of what estimating G takes off the products (see `influence.Influence`).

    The rows are events from the latest to the earliest, `steps` the Greenwood sums between each and the next.
    """
    for b in range(blocks.shape[1]):
        start, stop = np.uint64(ranges[b, 0] - first), np.uint64(ranges[b, 1] - first)
        step = steps[b]
        for a in range(blocks.shape[0]):
            if moves[b]:
                for j in range(start, stop):
                    ahead[a, j] += blocks[a, b, j]
            if capped:
                for j in range(start, stop):
                    whole[a, j] += blocks[a, b, j]
        if step == 0.0:
            continue
        for a in range(blocks.shape[0]):
            for c in range(a + 1):
                if capped:
                    for j in range(start, stop):
                        products[a, c, j] += step * (
                            ahead[a, j] * whole[c, j] + whole[a, j] * ahead[c, j] - ahead[a, j] * ahead[c, j]
                        )
                else:
                    for j in range(start, stop):
                        products[a, c, j] += step * ahead[a, j] * ahead[c, j]
