"""Sums of products over long vectors, in pieces so short that BLAS keeps to one thread.

Threads of BLAS wait for each other by running idle: for products of a few columns, which are over in less than a
millisecond, that takes more than it gives where other threads are at work (see `_parallel`), or other people. Pieces
also add up more exactly than the whole.
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
    width = _width(len(a), len(b))
    found = np.zeros((len(a), len(b)))
    for i in range(0, a.shape[1], width):
        found += a[:, i : i + width] @ b[:, i : i + width].T
    return found


def weighted_products(a: Vector, weight: Vector) -> Vector:
    """Return the weighted sums of the products of some vectors with each other: (p, n) and (n,) give (p, p)."""
    width = _width(len(a), len(a))
    found = np.zeros((len(a), len(a)))
    for i in range(0, a.shape[1], width):
        piece = a[:, i : i + width]
        found += (piece * weight[i : i + width]) @ piece.T
    return found


def combine(coefficients: Vector, vectors: Vector) -> Vector:
    """Return one or several combinations of vectors: (p,) or (c, p) with (p, n) give (n,) or (c, n)."""
    width = _width(len(vectors), 1 if coefficients.ndim == 1 else len(coefficients))
    found = np.empty((*coefficients.shape[:-1], vectors.shape[1]))
    for i in range(0, vectors.shape[1], width):
        found[..., i : i + width] = coefficients @ vectors[:, i : i + width]
    return found


def _width(p: int, q: int) -> int:
    """Return how long pieces may be where p vectors meet q others."""
    return max(1, min(PRODUCTS // max(p * q, 1), CELLS // max(p, q, 1) if min(p, q) < 2 else PRODUCTS))
