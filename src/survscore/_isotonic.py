"""Isotonic regression by pooling adjacent violators."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGE = 500_000  # steps: below, loading numba takes longer than plain Python does


def isotonic_fit(values: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the increasing sequence closest to `values` in weighted squares."""
    return np.asarray(isotonic_fits(values[None], weights)[0])


def isotonic_fits(rows: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the same for each row."""
    fits = np.empty_like(rows)
    if rows.size < LARGE:
        for row, fit in zip(rows, fits, strict=True):
            fit[:] = pool(row.tolist(), weights.tolist(), [0.0] * row.size, [0.0] * row.size, [0] * row.size)
        return fits
    from survscore import _kernels

    compiled = _kernels.pooling()  # type: ignore[no-untyped-call]
    for row, fit in zip(rows, fits, strict=True):
        buffers = np.empty(row.size), np.empty(row.size), np.empty(row.size, dtype=np.int64)
        fit[:] = compiled(row, weights, *buffers)
    return fits


def pool(values: Any, weights: Any, level: Any, mass: Any, length: Any) -> Any:
    """Fill a stack of blocks, `level`, `mass` and `length`, and unroll it; plain Python that numba can compile too."""
    top = -1
    for i in range(len(values)):
        top += 1
        level[top], mass[top], length[top] = values[i], weights[i], 1
        while top > 0 and level[top - 1] >= level[top]:
            total = mass[top - 1] + mass[top]
            level[top - 1] = (mass[top - 1] * level[top - 1] + mass[top] * level[top]) / total
            mass[top - 1] = total
            length[top - 1] += length[top]
            top -= 1
    # from the end, so that the stack can be overwritten as it is unrolled
    end = len(values)
    for block in range(top, -1, -1):
        value, count = level[block], length[block]
        for i in range(end - count, end):
            mass[i] = value
        end -= count
    return mass
