"""The loops, compiled: plain arrays in, plain sums out.

Imported only when a call is large enough to repay loading numba (see `_config`). Nothing here starts
threads: the functions release the interpreter's lock and `_parallel` runs them on blocks of rows, which is safe
after a fork and from several threads at once, where numba's own thread pools are not.
"""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

# With its first function numba imports more of itself, and SciPy, which changes for a moment how warnings are shown. So
# does numba whenever it compiles: two threads that did both at once could leave warnings with nobody to show them.
njit("void()")(lambda: None)


def compiled(function):
    """Compile on first use and keep the machine code on disk, or only in memory where no folder is writeable."""
    # The numpy error model has no branch for division by zero, which would stop vectorisation.
    options = {"nogil": True, "error_model": "numpy"}
    try:
        return njit(function, cache=True, **options)
    except RuntimeError:  # numba found no folder for its cache
        return njit(function, **options)


def inlined(function):
    """Compile into the callers: handing arrays to a function costs as much as a short loop over them.

    By LLVM, and not by numba (``inline="always"``): as fast, and callers compile in half the time. What nobody but
    callers calls needs no doors for Python and C, which take time to compile, too.
    """
    options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return njit(function, error_model="numpy", forceinline=True, **options)


def called(function):
    """Compile once, for compiled callers only."""
    return njit(function, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)


def summing(function):
    """Compile a sum whose order is free, so that it vectorises."""
    return njit(function, error_model="numpy", fastmath={"reassoc"})


@summing
def dot(a, b):
    """Return the sum of products."""
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


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
_PER_LN2 = 1.0 / math.log(2.0)
_ROUND = 1.5 * 2.0**52  # what is added to it is rounded to a whole number, in the lowest bits
_LEAST_EXPONENT = -700.0  # below, an exponential is as good as zero
_TERMS = tuple(1.0 / math.factorial(k) for k in range(14))


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
def _exp(x):
    """Return the exponential of a number that is not positive, without a call, so that loops over it vectorise.

    x = k ln 2 + r with |r| < 0.35: fourteen terms of the series leave a relative error below 2^-52.
    """
    x = max(x, _LEAST_EXPONENT)
    rounded = x * _PER_LN2 + _ROUND
    k = rounded - _ROUND
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    total = _TERMS[13]
    total = total * r + _TERMS[12]
    total = total * r + _TERMS[11]
    total = total * r + _TERMS[10]
    total = total * r + _TERMS[9]
    total = total * r + _TERMS[8]
    total = total * r + _TERMS[7]
    total = total * r + _TERMS[6]
    total = total * r + _TERMS[5]
    total = total * r + _TERMS[4]
    total = total * r + _TERMS[3]
    total = total * r + _TERMS[2]
    total = total * r + 1.0
    total = total * r + 1.0
    return total * _float_of((_bits_of(rounded) + 1023) << 52)


@inlined
def read_row(row, direct, geometric, lower, weight, start, stop, out):
    """Fill ``out[start:stop]`` with the row's values at these evaluation times (see `curves.Reading`)."""
    if direct:
        offset = np.uint64(lower[0])
        for j in range(np.uint64(start), np.uint64(stop)):
            out[j] = row[offset + j]
        return
    # times ascend: first those before the grid, then those between columns, and at last those after it
    last = row.size - 1
    inside, beyond = np.int64(start), np.int64(stop)
    while inside < beyond and lower[inside] < 0:
        inside += 1
    while beyond > inside and lower[beyond - 1] >= last:
        beyond -= 1
    if geometric:
        for j in range(np.uint64(start), np.uint64(stop)):
            left = np.float64(row[lower[j]]) if lower[j] >= 0 else 1.0
            right = np.float64(row[min(lower[j] + 1, last)])
            out[j] = left if weight[j] == 0.0 else left ** (1.0 - weight[j]) * right ** weight[j]
        return
    for j in range(np.uint64(start), np.uint64(inside)):
        out[j] = (1.0 - weight[j]) + weight[j] * np.float64(row[0])
    for j in range(np.uint64(inside), np.uint64(beyond)):
        column = np.uint64(lower[j])
        left, right = np.float64(row[column]), np.float64(row[column + np.uint64(1)])
        out[j] = (1.0 - weight[j]) * left + weight[j] * right
    for j in range(np.uint64(beyond), np.uint64(stop)):
        out[j] = row[last]


@compiled
def read_rows(rows, direct, geometric, lower, weight, out):
    """Fill every row of `out` with the values of the row at all evaluation times."""
    for i in range(rows.shape[0]):
        read_row(rows[i], direct, geometric, lower, weight, 0, lower.size, out[i])


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
def count_below_few(grid, keys, inclusive, out):
    """Do the same where the grid is short: comparing with all of it vectorises, and no branch is guessed wrong."""
    for start in range(0, keys.size, 2048):
        some, places = keys[start : start + 2048], out[start : start + 2048]
        for i in range(some.size):
            places[i] = 0
        for value in grid:
            if inclusive:
                for i in range(some.size):
                    places[i] += value <= some[i]
            else:
                for i in range(some.size):
                    places[i] += value < some[i]


@compiled
def step_values(grid, values, starts, scale, keys, inclusive, out):
    """Fill `out` with a step function that is 1 before the grid, and ``values[k]`` from ``grid[k]`` on."""
    for i in range(keys.size):
        place = place_of(keys[i], grid, starts, scale, inclusive)
        out[i] = values[place - 1] if place > 0 else 1.0
