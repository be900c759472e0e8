"""Sums of products over long vectors, in pieces so short that BLAS keeps to one thread.

Threads of BLAS wait for each other by running idle: for products of a few columns, which take less than a millisecond,
that costs more than it gains where other threads are at work (see `_utils.parallel`), or other people. Pieces also add
up more exactly than the whole.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

CELLS = 1 << 13  # of a vector, or of a matrix that is multiplied by one
PRODUCTS = 1 << 17  # of two matrices


def dot(a: Vector, b: Vector) -> float:
    """Return the sum of the products of two vectors."""
    return float(sum(float(a[i : i + CELLS] @ b[i : i + CELLS]) for i in range(0, a.size, CELLS)))


def cross_products(a: Vector, b: Vector) -> Vector:
    """Return the sums of the products of some vectors with others: (p, n) and (q, n) give (p, q)."""
    p, q = len(a), len(b)
    width = max(1, min(CELLS // max(p, q, 1), PRODUCTS // max(p * q, 1)))
    found = np.zeros((p, q))
    for i in range(0, a.shape[1], width):
        found += a[:, i : i + width] @ b[:, i : i + width].T
    return found
