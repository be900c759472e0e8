"""The derivatives of the log-likelihood of a logistic regression in one pass, compiled."""

from __future__ import annotations

import numpy as np

from survscore._kernels import _exp, compiled, dot

ROWS = 512  # that stay in the processor's nearest cache


@compiled
def look(basis, event, share, offset, position):
    """Return the gradient of the mean log-likelihood at a position, and the information."""
    p, n = basis.shape
    gradient, information = np.zeros(p), np.zeros((p, p))
    # each by itself: rows of one matrix would not count as lying in one piece, and nothing would vectorise
    all_eta, all_weight, all_residual, all_weighted = np.empty(ROWS), np.empty(ROWS), np.empty(ROWS), np.empty(ROWS)
    for start in range(0, n, ROWS):
        stop = min(start + ROWS, n)
        size = stop - start
        eta, weight, residual, weighted = all_eta[:size], all_weight[:size], all_residual[:size], all_weighted[:size]
        y, w = event[start:stop], share[start:stop]
        eta[:] = offset[start:stop]
        for k in range(p):
            column, coefficient = basis[k, start:stop], position[k]
            for i in range(size):
                eta[i] += coefficient * column[i]
        for i in range(size):
            small = _exp(-abs(eta[i]))
            per_unit = 1.0 / (1.0 + small)
            weight[i] = w[i] * small * per_unit * per_unit
            residual[i] = w[i] * (y[i] - (1.0 if eta[i] >= 0.0 else small) * per_unit)
        for j in range(p):
            column = basis[j, start:stop]
            gradient[j] += dot(residual, column)
            for i in range(size):
                weighted[i] = weight[i] * column[i]
            for k in range(j, p):
                information[j, k] += dot(weighted, basis[k, start:stop])
                information[k, j] = information[j, k]
    return gradient, information
