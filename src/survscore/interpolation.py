"""How a grid of predictions is read at other times, and several grids are made one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survscore._utils import arrays
from survscore._validation import FloatArray, InputError, as_times, check_length


@dataclass(frozen=True, eq=False)
class Interpolation:
    """How the columns of a grid give the values at other times, the same way for every row.

    The value at time j lies between column ``lower[j]`` and the next one, with `weight` on the latter;
    ``lower[j] == -1`` stands for S(0) = 1, left of the first column. Times ascend, and `lower` with them.
    """

    lower: NDArray[np.intp]
    weight: NDArray[np.float64]
    geometric: bool

    @cached_property
    def direct(self) -> bool:
        """Whether the values are a contiguous range of columns, so that nothing needs to be gathered."""
        first = self.lower[0]
        contiguous = np.array_equal(self.lower, np.arange(first, first + self.lower.size))
        return bool(first >= 0 and contiguous and not self.weight.any())

    def __call__(self, probabilities: FloatArray) -> FloatArray:
        """Read whole rows: (individuals, grid) to (individuals, times)."""
        if self.direct:
            return probabilities[:, self.lower[0] : self.lower[0] + self.lower.size]
        lower, last = arrays.beside(self.lower, probabilities), probabilities.shape[1] - 1
        left = arrays.as_float64(probabilities[:, lower.clip(0)])
        left[:, lower < 0] = 1.0
        right = arrays.as_float64(probabilities[:, (lower + 1).clip(0, last)])
        return blend(left, right, arrays.beside(self.weight, probabilities), self.geometric)


def blend(left: FloatArray, right: FloatArray, weight: FloatArray, geometric: bool) -> NDArray[np.float64]:
    """Mix neighbours: arithmetically (survival linear) or geometrically (log-survival linear).

    The powers, unlike logarithms, are right where survival is zero: 0 ** 0 is 1.
    """
    if not geometric:
        return (1.0 - weight) * left + weight * right
    left, right = arrays.as_float64(left), arrays.as_float64(right)
    mixed: NDArray[np.float64] = arrays.power(left, 1.0 - weight) * arrays.power(right, weight)
    return mixed


def common_grid(grids: Sequence[NDArray[np.float64]], end: float) -> NDArray[np.float64]:
    """Return all times of all grids, up to where the first of the curves ends."""
    union = np.unique(np.concatenate(grids))
    grid: NDArray[np.float64] = union[union <= end]
    grid.flags.writeable = False
    return grid


def stacked(blocks: Iterable[FloatArray], n: int, m: int) -> FloatArray:
    """Return blocks of rows as one matrix, filled as they come, so that there is never more than that and a block."""
    rows = iter(blocks)
    block = next(rows)
    if arrays.is_tensor(block):
        tensors: FloatArray = arrays.concatenate([block, *rows])
        return tensors
    matrix = np.empty((n, m), dtype=block.dtype)
    start = 0
    for host in map(arrays.to_host, chain([block], rows)):
        if host.dtype != matrix.dtype:
            matrix = matrix.astype(np.float64)
        matrix[start : start + len(host)] = host
        start += len(host)
    return matrix


def of_step_functions(functions: Sequence[Any], extrapolation: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the values of step functions, one row each, and their common grid; see `from_step_functions`."""
    if not functions:
        raise InputError("functions is empty")
    try:
        grids = [as_times(function.x, f"x of function {i}") for i, function in enumerate(functions)]
        # scikit-survival scales by `a` and shifts by `b`
        rows = [getattr(f, "a", 1.0) * np.asarray(f.y, dtype=np.float64) + getattr(f, "b", 0.0) for f in functions]
    except AttributeError:
        raise InputError("functions must be step functions with attributes x and y") from None
    for i, (grid, row) in enumerate(zip(grids, rows, strict=True)):
        check_length(f"y of function {i}", row.size, "its x", grid.size)
    same = all(grid is grids[0] or np.array_equal(grid, grids[0]) for grid in grids)
    if same:
        return np.stack(rows), grids[0]
    # every function must reach the end of the common grid, unless it holds its last value
    union = common_grid(grids, min(grid[-1] for grid in grids) if extrapolation == "nan" else np.inf)
    padded = [np.concatenate(([1.0], row)) for row in rows]
    rows = [row[np.searchsorted(grid, union, side="right")] for grid, row in zip(grids, padded, strict=True)]
    return np.stack(rows), union
