"""The loops over individuals: in NumPy for small input, compiled and on all cores for large.

Every function here has one meaning and two ways to get it, which agree to 1e-12. Which one runs depends on the size of
the input, and on whether the compiled loops were loaded before. Rows are summed in the same blocks on every machine, so
results do not depend on the number of cores.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from survscore._validation import FloatArray

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from survscore.curves import Reading, SurvivalCurves
    from survscore.losses import Loss
    from survscore.weighting import RowWeights

LARGE_MATRIX = 4_000_000  # cells: NumPy needs about a tenth of a second for one score
LARGE_VECTOR = 1_000_000  # below, loading the compiled loops takes longer than NumPy does
SMALL_MATRIX, SMALL_VECTOR = 100_000, 10_000  # below, NumPy is as fast even when they are loaded
NUMPY_CELLS_PER_BLOCK = 1 << 16  # NumPy's temporaries stay in the processor's cache
COMPILED_CELLS_PER_BLOCK = 1 << 22
KEYS_PER_BLOCK = 1 << 15
COMPILED_BLOCKS = 16  # at least, so that all cores have work to the end

Sums = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]
Part = TypeVar("Part")
Result = TypeVar("Result")


def weighted_sums(
    curves: SurvivalCurves,
    times: NDArray[np.float64],
    losses: Sequence[Loss],
    weights: Sequence[RowWeights],
    *,
    compiled: bool | None = None,
) -> Sums:
    """Sum weight times loss, weights, and squared weights over all individuals.

    One pass over the curves serves all losses and weightings; each further matrix of individual censoring curves
    needs one more.

    Returns
    -------
    sums : ndarray of shape (2, losses, weightings, times)
        Over the event-free, and over those who had the event.
    weight_sums : ndarray of shape (2, weightings, times)
    square_sums : ndarray of shape (weightings, times)
    """
    if compiled is None:
        compiled = worth_compiling(len(curves) * times.size)
    compiled = compiled and all(loss.kernel is not None for loss in losses)
    totals = (
        np.zeros((2, len(losses), len(weights), times.size)),
        np.zeros((2, len(weights), times.size)),
        np.zeros((len(weights), times.size)),
    )
    for group in _by_censoring_curves(weights):
        one_block = _block_function(curves, times, losses, [weights[q] for q in group], compiled=compiled)
        blocks = row_blocks(len(curves), times.size, compiled=compiled)
        for sums, weight_sums, square_sums in each(one_block, blocks, threads=compiled):
            totals[0][:, :, group] += sums
            totals[1][:, group] += weight_sums
            totals[2][group] += square_sums
    return totals


def _by_censoring_curves(weights: Sequence[RowWeights]) -> list[list[int]]:
    """Group weightings so that each group reads at most one matrix of censoring curves."""
    marginal = [q for q, w in enumerate(weights) if w.censoring is None]
    by_curves: dict[int, list[int]] = {}
    for q, w in enumerate(weights):
        if w.censoring is not None:
            by_curves.setdefault(id(w.censoring), []).append(q)
    first, *others = by_curves.values() or [[]]
    return [marginal + first, *others]


def _block_function(
    curves: SurvivalCurves,
    times: NDArray[np.float64],
    losses: Sequence[Loss],
    weights: Sequence[RowWeights],
    *,
    compiled: bool,
) -> Callable[[slice], Sums]:
    reading = curves.reading(times)
    censoring = next((w.censoring for w in weights if w.censoring is not None), None)
    censoring_reading = None if censoring is None else censoring.reading(times)

    def numpy_block(rows: slice) -> Sums:
        values = reading(curves.probabilities[rows]).astype(np.float64, copy=False)
        parts = [w.rows(rows) for w in weights]
        survival = None
        if censoring is not None and censoring_reading is not None:
            survival = censoring_reading(censoring.probabilities[rows])
        cells = [w.cells_by_status(times.size, survival) for w in parts]
        free = event_free(parts, times.size)
        with np.errstate(invalid="ignore"):  # an infinite weight makes its time NaN, which is meant
            lost = [loss(values, free) for loss in losses]
            by_status = list(zip(*cells, strict=True))
            return (
                np.array([[[np.einsum("ij,ij->j", c, one) for c in some] for one in lost] for some in by_status]),
                np.array([[c.sum(axis=0) for c in some] for some in by_status]),
                np.array([sum(np.einsum("ij,ij->j", c, c) for c in pair) for pair in cells]),
            )

    def compiled_block(rows: slice) -> Sums:
        parts = [w.rows(rows) for w in weights]
        block = curves.probabilities[rows]
        sums: Sums = _kernels.weighted_sums(
            block,
            *own_reading,
            block[:0] if censoring is None else censoring.probabilities[rows],
            *other_reading,
            kernels,
            epsilons,
            np.stack([w.free_stop for w in parts]),
            np.stack([w.event_stop for w in parts]),
            np.stack([w.event_weight for w in parts]),
            free_weight,
            individual,
            max_weight,
        )
        return sums

    if not compiled:
        return numpy_block
    from survscore import _kernels

    own_reading = plain(reading)
    other_reading = own_reading if censoring_reading is None else plain(censoring_reading)
    kernels = np.array([loss.kernel for loss in losses])
    epsilons = np.array([loss.epsilon for loss in losses])
    individual = np.array([w.free_weight is None for w in weights])
    free_weight = np.stack([np.zeros(times.size) if w.free_weight is None else w.free_weight for w in weights])
    max_weight = np.array([w.max_weight for w in weights])
    return compiled_block


def event_free(weights: Sequence[RowWeights], n_times: int) -> NDArray[np.bool_]:
    """Return who is event-free when. Weightings differ in whom they count, not in who had the event."""
    stops = np.max([w.free_stop for w in weights], axis=0)
    return np.asarray(np.arange(n_times) < stops[:, None])


def worth_compiling(n_cells: int) -> bool:
    """Whether the compiled loops are the faster way through a matrix, counting the time to load them."""
    return n_cells >= LARGE_MATRIX or (n_cells >= SMALL_MATRIX and "survscore._kernels" in sys.modules)


def load_compiled_if_large(n_cells: int) -> None:
    """Load the compiled loops if a matrix of this size is about to need them, so that vectors profit too."""
    if worth_compiling(n_cells):
        from survscore import _kernels  # noqa: F401


def _compile_vector(size: int, compiled: bool | None) -> bool:
    """Whether the compiled loops are the faster way through a vector; here both ways give the same bits."""
    if compiled is None:
        return size >= LARGE_VECTOR or (size >= SMALL_VECTOR and "survscore._kernels" in sys.modules)
    return compiled and size > 0


def has_bad_probabilities(matrix: FloatArray, tolerance: float) -> bool:
    """Whether a value lies outside [0, 1], is NaN, or exceeds the one before it in its row by more than `tolerance`."""
    exact = matrix.dtype.type(tolerance)

    def numpy_block(rows: slice) -> bool:
        block = matrix[rows]
        # written so that NaN fails
        inside = bool(((block >= 0) & (block <= 1)).all())
        return not inside or bool((block[:, 1:] > block[:, :-1] + exact).any())

    if not worth_compiling(matrix.size):
        return any(each(numpy_block, row_blocks(*matrix.shape, compiled=False)))
    from survscore import _kernels

    return any(
        each(
            lambda rows: bool(_kernels.has_bad_probabilities(matrix[rows], exact)),
            row_blocks(*matrix.shape, compiled=True),
            threads=True,
        )
    )


def read_into(
    out: FloatArray, reading: Reading, probabilities: FloatArray, *, compiled: bool | None = None, size: int = 0
) -> None:
    """Fill `out` with what a reading makes of rows of probabilities; `size` is that of the whole, if these are few."""
    if compiled is None:
        compiled = worth_compiling(max(out.size, size))
    if not compiled:
        for rows in row_blocks(*out.shape, compiled=False):
            out[rows] = reading(probabilities[rows])
        return
    from survscore import _kernels

    how = plain(reading)
    blocks = row_blocks(*out.shape, compiled=True)
    each(lambda rows: _kernels.read_rows(probabilities[rows], *how, out[rows]), blocks, threads=True)


def sort(values: NDArray[np.float64], *, compiled: bool | None = None) -> NDArray[np.float64]:
    """Return finite values in increasing order."""
    if not _compile_vector(values.size, compiled):
        return np.sort(values)
    from survscore import _kernels

    low, high = values.min(), values.max()
    if low == high:
        return values.copy()
    n_buckets = max(values.size // 4, 1)
    scale = n_buckets / (high - low)
    starts = _kernels.bucket_starts(values, low, scale, n_buckets)
    result: NDArray[np.float64] = _kernels.bucket_sort(values, starts, low, scale)
    return result


def count_below(
    grid: NDArray[np.float64], keys: NDArray[np.float64], *, inclusive: bool, compiled: bool | None = None
) -> NDArray[np.int32]:
    """Return for each key how many values of a sorted grid are below it (at or below it, if `inclusive`)."""
    if grid.size == 0 or not _compile_vector(keys.size, compiled):
        return np.searchsorted(grid, keys, side="right" if inclusive else "left").astype(np.int32)
    from survscore import _kernels

    starts, scale = _buckets(grid)
    out = np.empty(keys.size, dtype=np.int32)
    _in_blocks(keys.size, lambda rows: _kernels.count_below(grid, starts, scale, keys[rows], inclusive, out[rows]))
    return out


def step_values(
    grid: NDArray[np.float64],
    values: NDArray[np.float64],
    keys: NDArray[np.float64],
    *,
    inclusive: bool,
    compiled: bool | None = None,
) -> NDArray[np.float64]:
    """Read a step function that is 1 before the grid and ``values[k]`` from ``grid[k]`` on, at or just before keys."""
    if grid.size == 0 or not _compile_vector(keys.size, compiled):
        places = np.searchsorted(grid, keys, side="right" if inclusive else "left")
        return np.concatenate(([1.0], values))[places]
    from survscore import _kernels

    starts, scale = _buckets(grid)
    out = np.empty(keys.size)
    _in_blocks(
        keys.size, lambda rows: _kernels.step_values(grid, values, starts, scale, keys[rows], inclusive, out[rows])
    )
    return out


def _buckets(grid: NDArray[np.float64]) -> tuple[NDArray[np.int32], float]:
    """Return where equal-width buckets of a sorted grid start, and the scale that leads from a value to its bucket."""
    from survscore import _kernels

    n_buckets = 2 * grid.size
    width = float(grid[-1] - grid[0])
    scale = n_buckets / width if width > 0 else 0.0
    return _kernels.bucket_starts(grid, grid[0], scale, n_buckets), scale


def _in_blocks(n_keys: int, work: Callable[[slice], None]) -> None:
    for _ in each(work, [slice(i, i + KEYS_PER_BLOCK) for i in range(0, n_keys, KEYS_PER_BLOCK)], threads=True):
        pass


def product_limit(
    time: NDArray[np.float64],
    leaves: NDArray[np.bool_],
    *,
    others_leave_first: bool,
    compiled: bool | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the distinct times at which someone leaves, and the product-limit curve from each of them on.

    `leaves` is true where an individual's time is an exit of the kind in question. At an exit time, those at risk are
    all exits from then on and all others from then on, or after it if others leave first at the same time.
    """
    use_compiled = _compile_vector(time.size, compiled)
    exits, others = each(
        lambda chosen: sort(time[chosen], compiled=use_compiled), [leaves, ~leaves], threads=use_compiled
    )
    if use_compiled:
        from survscore import _kernels

        steps: tuple[NDArray[np.float64], NDArray[np.float64]] = _kernels.product_limit(
            exits, others, others_leave_first
        )
        return steps
    times, counts = np.unique(exits, return_counts=True)
    at_risk = (
        exits.size - np.searchsorted(exits, times, side="left")
        + others.size - np.searchsorted(others, times, side="right" if others_leave_first else "left")
    )  # fmt: skip
    return times, np.cumprod((at_risk - counts) / at_risk, dtype=np.float64)


def row_blocks(n_rows: int, n_columns: int, *, compiled: bool) -> list[slice]:
    """Cut rows into blocks, the same on every machine: small for NumPy, as many as can be shared out for threads."""
    if compiled:
        size = min(-(-n_rows // COMPILED_BLOCKS), COMPILED_CELLS_PER_BLOCK // max(n_columns, 1))
    else:
        size = NUMPY_CELLS_PER_BLOCK // max(n_columns, 1)
    size = max(64, size)
    return [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]


def each(work: Callable[[Part], Result], parts: Sequence[Part], *, threads: bool = False) -> list[Result]:
    """Return the results of `work` for each part, in order; `work` must release the lock to gain from threads."""
    n_threads = min(n_cores(), len(parts))
    if not threads or n_threads < 2:
        return [work(part) for part in parts]
    waiting = iter(enumerate(parts))
    one_at_a_time = Lock()
    results: dict[int, Result] = {}

    def take_turns() -> None:
        while True:
            with one_at_a_time:
                position, part = next(waiting, (None, None))
            if position is None:
                return
            results[position] = work(cast("Part", part))

    # This thread works too: one that only waited would leave it to chance whether the others get a core each.
    others = [_pool(n_cores()).submit(take_turns) for _ in range(n_threads - 1)]
    try:
        take_turns()
    finally:
        for other in others:
            other.result()
    return [results[position] for position in range(len(parts))]


@cache
def _pool(n_threads: int) -> ThreadPoolExecutor:
    """Return a pool of threads, started once: starting them takes as long as a small score."""
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(n_threads, thread_name_prefix="survscore")


if hasattr(os, "register_at_fork"):  # a forked process inherits the pool but not its threads, and would wait for ever
    os.register_at_fork(after_in_child=_pool.cache_clear)


def n_cores() -> int:
    """Return how many cores this process may use; the environment variable NUMBA_NUM_THREADS lowers it."""
    try:
        available = len(os.sched_getaffinity(0))
    except AttributeError:  # not on every platform
        available = os.cpu_count() or 1
    limit = os.environ.get("NUMBA_NUM_THREADS", "")
    return min(available, int(limit)) if limit.isdigit() and int(limit) > 0 else available


def plain(reading: Reading) -> tuple[bool, bool, NDArray[np.intp], NDArray[np.float64]]:
    """Return a reading as the kernels take it."""
    return (reading.direct, reading.geometric, reading.lower, reading.weight)
