"""The loops, compiled: plain arrays in, plain sums out.

Imported only when a call is large enough to repay loading numba (see `_config`). Nothing here starts
threads: the functions release the interpreter's lock and `_parallel` runs them on blocks of rows, which is safe
after a fork and from several threads at once, where numba's own thread pools are not.
"""

from __future__ import annotations

import logging
import math
import sys
from contextlib import suppress
from decimal import Decimal
from threading import Timer

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import event
from numba.core.caching import FunctionCache
from numba.extending import intrinsic

PATIENCE = 2.0  # seconds of compiling without a word

# With its first function numba imports more of itself, and SciPy, which changes for a moment how warnings are shown. So
# does numba whenever it compiles: two threads that did both at once could leave warnings with nobody to show them.
njit("void()")(lambda: None)


class CompilingNotice(event.Listener):
    """Says once, in one line, that code of this library is being compiled, if that takes longer than `PATIENCE`.

    The line goes to the logger "survscore" at level INFO; where nobody listens there, to a terminal.
    """

    def __init__(self):
        self._depth, self._said, self._timer = 0, False, None

    def on_start(self, event):
        if not _is_ours(event):
            return
        self._depth += 1
        if self._depth == 1 and not self._said:
            self._timer = Timer(PATIENCE, self._say)
            self._timer.daemon = True
            self._timer.start()

    def on_end(self, event):
        if not _is_ours(event):
            return
        self._depth -= 1
        if self._depth == 0 and self._timer is not None:
            self._timer.cancel()

    def _say(self):
        self._said = True
        message = "compiling the code for large data, once; this takes about ten seconds"
        logger = logging.getLogger("survscore")
        if logger.isEnabledFor(logging.INFO):
            logger.info(message)
        elif sys.stderr is not None and sys.stderr.isatty():
            print(f"survscore: {message}", file=sys.stderr)


def _is_ours(event):
    # of other people's functions nothing is certain: a loop that numba lifts out of one has none
    function = getattr(event.data.get("dispatcher"), "py_func", None)
    return str(getattr(function, "__module__", "")).startswith("survscore.")


event.register("numba:compile", CompilingNotice())


class ForgivingCache(FunctionCache):
    """Machine code on disk. A file that is damaged, as after a full disk, is replaced: the code is compiled anew."""

    def load_overload(self, sig, target_context):
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # whatever a damaged pickle raises, which can be nearly anything
            with suppress(OSError):
                self.flush()  # else saving would fail in the same way
            return None

    def save_overload(self, sig, data):
        with suppress(OSError):  # a full disk: the code stays in memory
            super().save_overload(sig, data)


def compiled(function):
    """Compile on first use and keep the machine code on disk, or only in memory where no folder is writeable."""
    # The numpy error model has no branch for division by zero, which would stop vectorisation.
    dispatcher = njit(function, nogil=True, error_model="numpy", no_cfunc_wrapper=True)
    with suppress(RuntimeError):  # numba found no folder for its cache
        dispatcher._cache = ForgivingCache(function)  # what cache=True sets
    return dispatcher


def inlined(function):
    """Compile into the callers: handing arrays to a function costs as much as a short loop over them.

    By LLVM, and not by numba (``inline="always"``): as fast, and callers compile in half the time. What nobody but
    callers calls needs no doors for Python and C, which take time to compile, too.
    """
    options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return njit(function, error_model="numpy", forceinline=True, **options)


def inlined_sum(function):
    """Compile sums whose order is free, so that they vectorise, into the callers."""
    options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "fastmath": {"reassoc"}}
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


@compiled
def read_after(values, grid, start, steps, end, kind, out):
    """Fill in each row's value at `start` plus each of the ascending steps, at most `end`, where `grid` may end.

    The grid is passed through once for each row, without a search: 5 nanoseconds a value, where NumPy takes some 40.
    Between grid points linearly (0), by steps (1) or with constant hazard (2), in the order of `curves.INTERPOLATIONS`;
    the value at time 0 is one, and the last one holds.
    """
    m = grid.size
    for i in range(start.size):
        j = 0  # how many grid points have passed
        for k in range(steps.size):
            time = min(start[i] + steps[k], end)
            while j < m and grid[j] <= time:
                j += 1
            left = 1.0 if j == 0 else np.float64(values[i, j - 1])
            if kind == 1 or j == m:
                out[i, k] = left
                continue
            before = 0.0 if j == 0 else grid[j - 1]
            weight, right = (time - before) / (grid[j] - before), np.float64(values[i, j])
            if kind == 0:
                out[i, k] = (1.0 - weight) * left + weight * right
            else:
                out[i, k] = left ** (1.0 - weight) * right**weight


@compiled
def dominance(place, case, control, n_places, of_case, of_control):
    """Fill in what `metrics._pairs.dominance` returns, with one tree of sums by place (Fenwick's); skips zero weights.

    100 000 individuals take 34 ms and a million 0.4 s, most of it sorting; NumPy takes 120 ms and 2 s.
    """
    tree, total = np.zeros(n_places + 1), 0.0
    for i in range(place.size - 1, -1, -1):
        if case[i] != 0.0:
            k, up_to = place[i] + 1, 0.0
            while k > 0:
                up_to += tree[k]
                k -= k & -k
            of_case[i] = total - up_to
        if control[i] != 0.0:
            total += control[i]
            k = place[i] + 1
            while k < tree.size:
                tree[k] += control[i]
                k += k & -k
    tree[:] = 0.0
    for i in range(place.size):
        if control[i] != 0.0:
            k = place[i]
            while k > 0:
                of_control[i] += tree[k]
                k -= k & -k
        if case[i] != 0.0:
            k = place[i] + 1
            while k < tree.size:
                tree[k] += case[i]
                k += k & -k
