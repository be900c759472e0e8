"""Loops over vectors, and the reading of predictions: in NumPy for small input, compiled for large.

Every function here has one meaning and two ways to get it, which give the same bits; so it does not matter that which
one runs depends on what is loaded already. Tensors are worked on where they are, by `_tensor_loops`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from survscore._config import config
from survscore._utils.arrays import is_tensor
from survscore._utils.parallel import each, row_blocks
from survscore._validation import FloatArray

if TYPE_CHECKING:
    from survscore.interpolation import Interpolation

LARGE_VECTOR = 1_000_000  # below, loading the compiled loops takes longer than NumPy does
SMALL_VECTOR = 10_000  # below, NumPy is as fast even when they are loaded
MOST_SIDE_BY_SIDE = 1 << 19  # individuals: of more, one work at a time keeps the cores busy, and takes less memory
KEYS_PER_BLOCK = 1 << 15  # at least
VECTOR_BLOCKS = 64  # at most
SHORT_GRID = 32  # values: so few are compared with every key, without a search
MANY_BUCKETS = 1 << 12  # that stay in the processor's nearest cache


def compiles_vector(size: int, compiled: bool | None = None) -> bool:
    """Whether the compiled loops are the faster way through a vector; both ways give the same bits."""
    if compiled is not None:
        return compiled and size > 0
    if config.backend in ("numpy", "compiled"):
        return config.backend == "compiled" and size > 0
    return size >= LARGE_VECTOR or (size >= SMALL_VECTOR and "survscore._utils.kernels" in sys.modules)


def side_by_side(size: int) -> bool:
    """Whether works that each take many vectors of this size, and cores only at times, should share these."""
    return compiles_vector(size) and size <= MOST_SIDE_BY_SIDE


def has_bad_probabilities(matrix: FloatArray, tolerance: float) -> bool:
    """Whether a value lies outside [0, 1], is NaN, or exceeds the one before it in its row by more than `tolerance`."""
    if is_tensor(matrix):
        from survscore._utils import tensor_loops as _tensor_loops

        return _tensor_loops.has_bad_probabilities(matrix, tolerance)
    exact = matrix.dtype.type(tolerance)

    def numpy_block(rows: slice) -> bool:
        block = matrix[rows]
        # written so that NaN fails
        inside = bool(((block >= 0) & (block <= 1)).all())
        return not inside or bool((block[:, 1:] > block[:, :-1] + exact).any())

    if not config.compiles(matrix.size):
        return any(each(numpy_block, row_blocks(*matrix.shape, compiled=False)))
    from survscore._utils import kernels as _kernels

    return any(
        each(
            lambda rows: bool(_kernels.has_bad_probabilities(matrix[rows], exact)),
            row_blocks(*matrix.shape, compiled=True),
            threads=True,
        )
    )


def read_into(
    out: FloatArray, reading: Interpolation, probabilities: FloatArray, *, compiled: bool | None = None, size: int = 0
) -> None:
    """Fill `out` with what a reading makes of rows of probabilities; `size` is that of the whole, if these are few."""
    if compiled is None:
        compiled = config.compiles(max(out.size, size))
    if not compiled:
        for rows in row_blocks(*out.shape, compiled=False):
            out[rows] = reading(probabilities[rows])
        return
    from survscore._utils import kernels as _kernels

    how = reading.plain
    blocks = row_blocks(*out.shape, compiled=True)
    each(lambda rows: _kernels.read_rows(probabilities[rows], *how, out[rows]), blocks, threads=True)


def count_below(
    grid: NDArray[np.float64], keys: NDArray[np.float64], *, inclusive: bool, compiled: bool | None = None
) -> NDArray[np.int32]:
    """Return for each key how many values of a sorted grid are below it (at or below it, if `inclusive`)."""
    if is_tensor(grid) or is_tensor(keys):
        from survscore._utils import tensor_loops as _tensor_loops

        found: NDArray[np.int32] = _tensor_loops.count_below(grid, keys, inclusive=inclusive)
        return found
    if grid.size == 0 or not compiles_vector(keys.size, compiled):
        return np.searchsorted(grid, keys, side="right" if inclusive else "left").astype(np.int32)
    from survscore._utils import kernels as _kernels

    out = np.empty(keys.size, dtype=np.int32)
    if grid.size <= SHORT_GRID:
        _in_blocks(keys.size, lambda rows: _kernels.count_below_few(grid, keys[rows], inclusive, out[rows]))
        return out
    starts, scale = buckets(grid)
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
    if is_tensor(grid) or is_tensor(keys):
        from survscore._utils import tensor_loops as _tensor_loops

        found: NDArray[np.float64] = _tensor_loops.step_values(grid, values, keys, inclusive=inclusive)
        return found
    if grid.size == 0 or not compiles_vector(keys.size, compiled):
        places = np.searchsorted(grid, keys, side="right" if inclusive else "left")
        return np.concatenate(([1.0], values))[places]
    from survscore._utils import kernels as _kernels

    starts, scale = buckets(grid)
    out = np.empty(keys.size)
    _in_blocks(
        keys.size, lambda rows: _kernels.step_values(grid, values, starts, scale, keys[rows], inclusive, out[rows])
    )
    return out


def buckets(grid: NDArray[np.float64]) -> tuple[NDArray[np.int32], float]:
    """Return where equal-width buckets of a sorted grid start, and the scale that leads from a value to its bucket."""
    from survscore._utils import kernels as _kernels

    # few grid values are looked up often: with many buckets to each, most keys need no comparison
    n_buckets = max(2 * grid.size, min(MANY_BUCKETS, 64 * grid.size))
    width = float(grid[-1] - grid[0])
    scale = n_buckets / width if width > 0 else 0.0
    return _kernels.bucket_starts(grid, grid[0], scale, n_buckets), scale


def elementwise(work: Callable[[slice], Any], size: int) -> None:
    """Let NumPy work on slices of vectors of this size, on all cores where that pays; it releases the lock itself."""
    if compiles_vector(size):
        _in_blocks(size, work)
    else:
        work(slice(None))


def _in_blocks(n_keys: int, work: Callable[[slice], Any]) -> None:
    size = max(KEYS_PER_BLOCK, -(-n_keys // VECTOR_BLOCKS))
    each(work, [slice(i, i + size) for i in range(0, n_keys, size)], threads=True)
