"""Isotonic regression by pooling adjacent violators."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGE = 20_000  # values: below, loading numba takes longer than some hundred fits in plain Python


def isotonic_fit(values: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the increasing sequence closest to `values` in weighted squares."""
    n = values.size
    if n < LARGE:
        return np.array(pool(values.tolist(), weights.tolist(), [0.0] * n, [0.0] * n, [0] * n))
    from survscore._utils import kernels as _kernels

    fit: NDArray[np.float64] = _kernels.pool(values, weights, np.empty(n), np.empty(n), np.empty(n, dtype=np.int64))
    return fit


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
    end = len(values)
    for block in range(top, -1, -1):  # `mass` is done with, and takes the result
        for i in range(end - length[block], end):
            mass[i] = level[block]
        end -= length[block]
    return mass
