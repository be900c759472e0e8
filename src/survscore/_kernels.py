"""The loops, compiled: plain arrays in, plain sums out.

Imported only when a call is large enough to repay loading numba (see `_loops`). Nothing here starts
threads: the functions release the interpreter's lock and `_loops` runs them on blocks of rows, which is safe
after a fork and from several threads at once, where numba's own thread pools are not.
"""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from survscore import _isotonic

BRIER, LOG = 0, 1


def compiled(function):
    """Compile on first use and keep the machine code on disk, or only in memory where no folder is writeable."""
    # The numpy error model has no branch for division by zero, which would stop vectorisation.
    options = {"nogil": True, "error_model": "numpy"}
    try:
        return njit(function, cache=True, **options)
    except RuntimeError:  # numba found no folder for its cache
        return njit(function, **options)


def inlined(function):
    """Compile into the callers: handing arrays to a function costs as much as a short loop over them."""
    return njit(function, error_model="numpy", inline="always")


@intrinsic
def _bits_of(context, value):
    """Reinterpret a float64 as an int64."""
    return types.int64(types.float64), lambda _, builder, __, args: builder.bitcast(args[0], ir.IntType(64))


@intrinsic
def _float_of(context, value):
    """Reinterpret an int64 as a float64."""
    return types.float64(types.int64), lambda _, builder, __, args: builder.bitcast(args[0], ir.DoubleType())


_ROOT_HALF_BITS = int(np.float64(math.sqrt(0.5)).view(np.int64))
# ln 2 in two parts; the first has so many trailing zeros that its product with an exponent is exact
_LN2_HIGH = float((np.float64(math.log(2.0)).view(np.int64) & ~np.int64(0xFFFFFFFF)).view(np.float64))
_LN2_LOW = float(Decimal("0.693147180559945309417232121458") - Decimal(_LN2_HIGH))


@inlined
def _log(x):
    """Natural logarithm of a positive normal number, without a call, so that loops over it vectorise.

    x = 2^k m with m in [sqrt(1/2), sqrt(2)), log m = 2 artanh(s), s = (m - 1)/(m + 1), |s| < 0.172:
    eleven terms of the series leave a relative error below 2^-54.
    """
    bits = _bits_of(x)
    k = (bits - _ROOT_HALF_BITS) >> 52
    m = _float_of(bits - (k << 52))
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    tail = 1.0 / 21.0
    tail = tail * z + 1.0 / 19.0
    tail = tail * z + 1.0 / 17.0
    tail = tail * z + 1.0 / 15.0
    tail = tail * z + 1.0 / 13.0
    tail = tail * z + 1.0 / 11.0
    tail = tail * z + 1.0 / 9.0
    tail = tail * z + 1.0 / 7.0
    tail = tail * z + 1.0 / 5.0
    tail = tail * z + 1.0 / 3.0
    exponent = float(k)
    return exponent * _LN2_HIGH + (exponent * _LN2_LOW + 2.0 * s * z * tail + 2.0 * s)


@inlined
def read_row(row, direct, geometric, lower, weight, start, stop, out):
    """Fill ``out[start:stop]`` with the row's values at these evaluation times (see `curves.Reading`)."""
    if direct:
        offset = np.uint64(lower[0])
        for j in range(np.uint64(start), np.uint64(stop)):
            out[j] = row[offset + j]
        return
    last = row.size - 1
    for j in range(np.uint64(start), np.uint64(stop)):
        right = np.float64(row[min(lower[j] + 1, last)])
        left = np.float64(row[lower[j]]) if lower[j] >= 0 else 1.0
        if not geometric:
            out[j] = (1.0 - weight[j]) * left + weight[j] * right
        elif weight[j] == 0.0:
            out[j] = left
        else:
            out[j] = left ** (1.0 - weight[j]) * right ** weight[j]


@compiled
def read_rows(rows, direct, geometric, lower, weight, out):
    """Fill every row of `out` with the values of the row at all evaluation times."""
    for i in range(rows.shape[0]):
        read_row(rows[i], direct, geometric, lower, weight, 0, lower.size, out[i])


@inlined
def row_losses(loss, epsilon, survival, start, free_stop, stop, out):
    """Fill ``out[start:stop]``: loss of an event-free individual up to `free_stop`, of one with event after it."""
    start, free_stop, stop = np.uint64(start), np.uint64(free_stop), np.uint64(stop)
    if loss == BRIER:
        for j in range(start, free_stop):
            out[j] = (1.0 - np.float64(survival[j])) ** 2
        for j in range(max(start, free_stop), stop):
            out[j] = np.float64(survival[j]) ** 2
    else:
        for j in range(start, free_stop):
            out[j] = -_log(min(max(np.float64(survival[j]), epsilon), 1.0 - epsilon))
        for j in range(max(start, free_stop), stop):
            out[j] = -_log(1.0 - min(max(np.float64(survival[j]), epsilon), 1.0 - epsilon))


@inlined
def add(values, start, stop, total):
    """Add a range of values to a total."""
    for j in range(np.uint64(start), np.uint64(stop)):
        total[j] += values[j]


@inlined
def add_scaled(values, scale, start, stop, total):
    """Add a range of values, all times the same number, to a total."""
    for j in range(np.uint64(start), np.uint64(stop)):
        total[j] += scale * values[j]


@inlined
def add_brier_row(probabilities, i, offset, common, free_stop, event_stop, event_weight, shared, free_rest, event_sums):
    """Add a row's Brier losses as they are read, without storing them: the commonest case, a third faster."""
    offset = np.uint64(offset)
    for j in range(np.uint64(common)):
        shared[j] += (1.0 - np.float64(probabilities[i, offset + j])) ** 2
    for q in range(free_stop.shape[0]):
        w = event_weight[q, i]
        for j in range(np.uint64(common), np.uint64(free_stop[q, i])):
            free_rest[q, j] += (1.0 - np.float64(probabilities[i, offset + j])) ** 2
        for j in range(np.uint64(free_stop[q, i]), np.uint64(event_stop[q, i])):
            event_sums[q, j] += w * np.float64(probabilities[i, offset + j]) ** 2


@inlined
def add_common_weights(
    n, free_weight, individual, free_ends, jumps, square_jumps, shared, free_rest, sums, weights, squares
):
    """Add what could wait until all rows were seen: event weights, and event-free weights that are common to all."""
    for q in range(free_weight.shape[0]):
        had_event, had_event_squares, still_free = 0.0, 0.0, np.float64(n)
        for j in range(free_weight.shape[1]):
            had_event += jumps[q, j]
            had_event_squares += square_jumps[q, j]
            still_free -= free_ends[q, j]
            weights[1, q, j] = had_event
            squares[q, j] += had_event_squares
            if not individual[q]:
                u = free_weight[q, j]
                weights[0, q, j] = u * still_free
                squares[q, j] += u * u * still_free
                for k in range(shared.shape[0]):
                    sums[0, k, q, j] = u * (shared[k, j] + free_rest[k, q, j])


@compiled
def weighted_sums(
    probabilities,
    direct,
    geometric,
    lower,
    weight,
    censoring,
    censoring_direct,
    censoring_geometric,
    censoring_lower,
    censoring_weight,
    losses,
    epsilons,
    free_stop,
    event_stop,
    event_weight,
    free_weight,
    individual,
    max_weight,
):
    """Sum losses times weights, weights, and squared weights over rows, for all losses and weightings at once.

    A row is event-free, with a weight, at the times before ``free_stop[q, i]``, and has had the event, with weight
    ``event_weight[q, i]``, from there to ``event_stop[q, i]``. The event-free weight under weighting q is
    ``free_weight[q, j]``, the same for all rows, so that it can wait until the rows are summed; or, where
    ``individual[q]``, the row's own 1/G_i(t_j), capped at ``max_weight[q]``.

    Returns arrays of shape (2, losses, weightings, times), (2, weightings, times) and (weightings, times); the first
    axis of the former two is status: event-free, had the event.
    """
    n_weightings, n = free_stop.shape
    m = lower.size
    n_losses = losses.size
    # All weightings share the sum over the event-free times up to the smallest of their stops. Those
    # with a later stop (administrative: one more cell, at T = t = C*) add the rest for themselves.
    shared = np.zeros((n_losses, m))
    free_rest = np.zeros((n_losses, n_weightings, m))
    sums = np.zeros((2, n_losses, n_weightings, m))
    weights = np.zeros((2, n_weightings, m))
    squares = np.zeros((n_weightings, m))
    # Changes of the event-free count and of the event weights from one time to the next, to be accumulated at the end.
    free_ends = np.zeros((n_weightings, m + 1))
    jumps = np.zeros((n_weightings, m + 1))
    square_jumps = np.zeros((n_weightings, m + 1))
    any_individual = individual.any()
    survival = np.empty(m)
    lost = np.empty(m)
    inverse = np.empty(m)
    scaled = np.empty(m)

    for i in range(n):
        common, free, stop = m, 0, 0
        for q in range(n_weightings):
            first, last, w = free_stop[q, i], event_stop[q, i], event_weight[q, i]
            common, free, stop = min(common, first), max(free, first), max(stop, last)
            free_ends[q, first] += 1.0
            if last > first:
                jumps[q, first] += w
                jumps[q, last] -= w
                square_jumps[q, first] += w * w
                square_jumps[q, last] -= w * w
        stop = max(stop, free)
        if not direct:
            read_row(probabilities[i], False, geometric, lower, weight, 0, stop, survival)

        if any_individual:
            read_row(
                censoring[i], censoring_direct, censoring_geometric, censoring_lower, censoring_weight, 0, free, inverse
            )
            for j in range(np.uint64(free)):
                inverse[j] = 1.0 / inverse[j]
            for q in range(n_weightings):
                if individual[q]:
                    for j in range(np.uint64(free_stop[q, i])):
                        w = min(inverse[j], max_weight[q])
                        weights[0, q, j] += w
                        squares[q, j] += w * w

        for k in range(n_losses):
            if losses[k] == BRIER and direct and not any_individual:
                add_brier_row(
                    probabilities, i, lower[0], common, free_stop, event_stop, event_weight,
                    shared[k], free_rest[k], sums[1, k],
                )  # fmt: skip
                continue
            if direct:  # no gathering, no copy
                row_losses(losses[k], epsilons[k], probabilities[i, lower[0] :], 0, free, stop, lost)
            else:
                row_losses(losses[k], epsilons[k], survival, 0, free, stop, lost)
            add(lost, 0, common, shared[k])
            for q in range(n_weightings):
                if individual[q]:
                    for j in range(np.uint64(free_stop[q, i])):
                        scaled[j] = min(inverse[j], max_weight[q]) * lost[j]
                    add(scaled, 0, free_stop[q, i], sums[0, k, q])
                else:
                    add(lost, common, free_stop[q, i], free_rest[k, q])
                add_scaled(lost, event_weight[q, i], free_stop[q, i], event_stop[q, i], sums[1, k, q])

    add_common_weights(
        n, free_weight, individual, free_ends, jumps, square_jumps, shared, free_rest, sums, weights, squares
    )
    return sums, weights, squares


@compiled
def has_bad_probabilities(matrix, tolerance):
    """Whether any value lies outside [0, 1], is NaN, or exceeds the one before by more than `tolerance`."""
    bad = 0
    for i in range(matrix.shape[0]):
        row = matrix[i]
        for j in range(row.size):
            bad |= not (row[j] >= 0 and row[j] <= 1)
        for j in range(1, row.size):
            bad |= row[j] > row[j - 1] + tolerance
        if bad:
            return True
    return False


@inlined
def bucket_of(value, origin, scale, n_buckets):
    """Return a value's bucket; it never falls as the value rises, which is all that its users need."""
    return np.int64(min(max((value - origin) * scale, 0.0), n_buckets - 1.0))


@compiled
def bucket_starts(values, origin, scale, n_buckets):
    """Return where each bucket starts once the values are dealt out."""
    starts = np.zeros(n_buckets + 1, dtype=np.int32)
    for value in values:
        starts[bucket_of(value, origin, scale, n_buckets) + 1] += 1
    for b in range(n_buckets):
        starts[b + 1] += starts[b]
    return starts


@compiled
def bucket_sort(values, starts, origin, scale):
    """Return the values sorted: dealt into buckets, then each by insertion or, if long, by quicksort."""
    n_buckets = starts.size - 1
    place = starts[:-1].copy()
    out = np.empty_like(values)
    for value in values:
        b = bucket_of(value, origin, scale, n_buckets)
        out[place[b]] = value
        place[b] += 1
    for b in range(n_buckets):
        low, high = starts[b], starts[b + 1]
        if high - low > 24:
            out[low:high].sort()
            continue
        for i in range(low + 1, high):
            value = out[i]
            j = i
            while j > low and out[j - 1] > value:
                out[j] = out[j - 1]
                j -= 1
            out[j] = value
    return out


@inlined
def place_of(key, grid, starts, scale, inclusive):
    """Return how many of the sorted `grid` are below the key (or at it, if `inclusive`).

    The bucket of the key narrows the search to a few grid values; a bisection finds the place among them.
    """
    b = bucket_of(key, grid[0], scale, starts.size - 1)
    low, high = starts[b], starts[b + 1]
    while low < high:
        middle = (low + high) >> 1
        if grid[middle] < key or (inclusive and grid[middle] == key):
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def count_below(grid, starts, scale, keys, inclusive, out):
    """Fill `out` with every key's place in the grid."""
    for i in range(keys.size):
        out[i] = place_of(keys[i], grid, starts, scale, inclusive)


@compiled
def step_values(grid, values, starts, scale, keys, inclusive, out):
    """Fill `out` with a step function that is 1 before the grid, and ``values[k]`` from ``grid[k]`` on."""
    for i in range(keys.size):
        place = place_of(keys[i], grid, starts, scale, inclusive)
        out[i] = values[place - 1] if place > 0 else 1.0


@compiled
def product_limit(exits, others, others_leave_first):
    """Return the distinct `exits` and the product-limit curve just after each; both inputs are sorted."""
    times = np.empty(exits.size)
    curve = np.empty(exits.size)
    steps = 0
    value = 1.0
    i, k = 0, 0
    while i < exits.size:
        first = i
        while i < exits.size and exits[i] == exits[first]:
            i += 1
        while k < others.size and (others[k] < exits[first] or (others_leave_first and others[k] == exits[first])):
            k += 1
        at_risk = float(exits.size - first + others.size - k)
        value *= (at_risk - (i - first)) / at_risk
        times[steps] = exits[first]
        curve[steps] = value
        steps += 1
    if steps == exits.size:
        return times, curve
    return times[:steps].copy(), curve[:steps].copy()


pool = compiled(_isotonic.pool)
