"""A logistic regression on a spline, compiled: columns are made as they are needed, some rows at a time, and not kept.

Those are the columns of `_logistic.restricted_cubic_spline`, made orthonormal by a triangle (`_logistic.Columns`).
"""

from __future__ import annotations

import numpy as np

from survscore._utils.kernels import _exp, compiled, dot, inlined

ROWS = 256  # whose columns stay in the processor's nearest cache


@inlined
def _cube_beyond(x, knot):
    beyond = max(x - knot, 0.0)
    return beyond * beyond * beyond


@inlined
def _fill(x, knots, to_design, bent, columns):
    """Fill in the orthonormal columns of some rows; `bent` is room for those of the spline, without 1 and x itself."""
    p, size = to_design.shape[0], x.size
    if p > 2:
        first, before_last, last = knots[0], knots[-2], knots[-1]
        per_square = 1.0 / ((last - first) * (last - first))
        before_end, at_end = columns[0], columns[1]  # whose turn comes later
        for i in range(size):
            before_end[i], at_end[i] = _cube_beyond(x[i], before_last), _cube_beyond(x[i], last)
        for k in range(p - 2):
            knot, out = knots[k], bent[k]
            to_end, beyond_end = (last - knot) / (last - before_last), (before_last - knot) / (last - before_last)
            for i in range(size):
                bend = _cube_beyond(x[i], knot) - before_end[i] * to_end
                out[i] = (bend + at_end[i] * beyond_end) * per_square
    for k in range(p):
        column, constant, slope = columns[k], to_design[0, k], to_design[1, k] if k > 0 else 0.0
        for i in range(size):
            column[i] = constant + slope * x[i]
        for j in range(2, k + 1):  # a triangle
            part, coefficient = bent[j - 2], to_design[j, k]
            for i in range(size):
                column[i] += coefficient * part[i]


@inlined
def _add_log_odds(columns, position, size, eta):
    """Add what the columns make of the log odds of some rows."""
    for k in range(position.size):
        column, coefficient = columns[k], position[k]
        for i in range(size):
            eta[i] += coefficient * column[i]


@inlined
def _add_products(columns, weight, size, weighted, found):
    """Add the weighted sums of the products of columns with each other; `weighted` is room."""
    p = found.shape[0]
    for j in range(p):
        column = columns[j]
        for i in range(size):
            weighted[i] = weight[i] * column[i]
        for k in range(j, p):
            found[j, k] += dot(weighted[:size], columns[k][:size])
            found[k, j] = found[j, k]


@compiled
def look(x, knots, to_design, event, share, shifted, position):
    """Return the gradient of the mean log-likelihood at a position, and the information; `shifted` if x is offset."""
    p = position.size
    gradient, information = np.zeros(p), np.zeros((p, p))
    bent, columns = np.empty((p, ROWS)), np.empty((p, ROWS))
    eta, weight, residual, weighted = np.empty(ROWS), np.empty(ROWS), np.empty(ROWS), np.empty(ROWS)
    for start in range(0, x.size, ROWS):
        rows = slice(start, min(start + ROWS, x.size))
        size, here = rows.stop - rows.start, x[rows]
        _fill(here, knots, to_design, bent, columns)
        for i in range(size):
            eta[i] = here[i] if shifted else 0.0
        _add_log_odds(columns, position, size, eta)
        y, w = event[rows], share[rows]
        for i in range(size):
            small = _exp(-abs(eta[i]))
            per_unit = 1.0 / (1.0 + small)
            weight[i] = w[i] * small * per_unit * per_unit
            residual[i] = w[i] * (y[i] - (1.0 if eta[i] >= 0.0 else small) * per_unit)
        for j in range(p):
            gradient[j] += dot(residual[:size], columns[j][:size])
        _add_products(columns, weight, size, weighted, information)
    return gradient, information


@compiled
def fitted(x, knots, to_design, event, share, shifted, position, probability, residual):
    """Fill in everybody's probability, and their shares times status minus probability."""
    p = position.size
    bent, columns, eta = np.empty((p, ROWS)), np.empty((p, ROWS)), np.empty(ROWS)
    for start in range(0, x.size, ROWS):
        rows = slice(start, min(start + ROWS, x.size))
        size, here = rows.stop - rows.start, x[rows]
        _fill(here, knots, to_design, bent, columns)
        for i in range(size):
            eta[i] = here[i] if shifted else 0.0
        _add_log_odds(columns, position, size, eta)
        y, w, mean, left = event[rows], share[rows], probability[rows], residual[rows]
        for i in range(size):
            small = _exp(-abs(eta[i]))
            mean[i] = (1.0 if eta[i] >= 0.0 else small) * (1.0 / (1.0 + small))
            left[i] = w[i] * (y[i] - mean[i])


@compiled
def products(x, knots, to_design, weight):
    """Return the weighted sums of the products of columns with each other, and the sums of their squares."""
    p = to_design.shape[0]
    found, squares = np.zeros((p, p)), np.zeros(p)
    bent, columns, weighted = np.empty((p, ROWS)), np.empty((p, ROWS)), np.empty(ROWS)
    for start in range(0, x.size, ROWS):
        rows = slice(start, min(start + ROWS, x.size))
        size, here = rows.stop - rows.start, x[rows]
        _fill(here, knots, to_design, bent, columns)
        for j in range(p):
            squares[j] += dot(columns[j][:size], columns[j][:size])
        _add_products(columns, weight[rows], size, weighted, found)
    return found, squares


@compiled
def sums(x, knots, to_design, values):
    """Return the sums of the products of columns with some values of everybody."""
    p = to_design.shape[0]
    found = np.zeros(p)
    bent, columns = np.empty((p, ROWS)), np.empty((p, ROWS))
    for start in range(0, x.size, ROWS):
        rows = slice(start, min(start + ROWS, x.size))
        size, here = rows.stop - rows.start, x[rows]
        _fill(here, knots, to_design, bent, columns)
        for k in range(p):
            found[k] += dot(values[rows], columns[k][:size])
    return found


@compiled
def combinations(x, knots, to_design, coefficients, factor, out):
    """Fill in combinations of the columns, each row of them times a factor: (combinations, rows)."""
    p = to_design.shape[0]
    bent, columns, total = np.empty((p, ROWS)), np.empty((p, ROWS)), np.empty(ROWS)
    for start in range(0, x.size, ROWS):
        rows = slice(start, min(start + ROWS, x.size))
        size, here = rows.stop - rows.start, x[rows]
        _fill(here, knots, to_design, bent, columns)
        for c in range(coefficients.shape[0]):
            for i in range(size):
                total[i] = 0.0
            _add_log_odds(columns, coefficients[c], size, total)
            one, by = out[c][rows], factor[rows]
            for i in range(size):
                one[i] = total[i] * by[i]
