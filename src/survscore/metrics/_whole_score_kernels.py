"""Scores of whole curves, compiled: every row is read once, up to where the individual was followed."""

from __future__ import annotations

import math

import numpy as np

from survscore._utils.kernels import compiled, inlined, place_of, summing


@inlined
def _read_one(row, lower, weight):
    """Return a row's value at one time, linear between columns (see `reading.Reading`)."""
    left = np.float64(row[lower]) if lower >= 0 else 1.0
    return (1.0 - weight) * left + weight * np.float64(row[min(lower + 1, row.size - 1)])


@summing
def _whole_intervals(left, right, inverse_width, n, whole):
    """Return the integral of (1 - pi)^2 / G over the first n intervals."""
    total = 0.0
    for k in range(n):
        gap, slope = 1.0 - left[k], (right[k] - left[k]) * inverse_width[k]
        total += gap * gap * whole[0, k] - 2.0 * gap * slope * whole[1, k] + slope * slope * whole[2, k]
    return total


@inlined
def _add_to_sums(left, right, inverse_width, n, sums):
    """Add the coefficients of (1 - pi)^2 in the first n intervals to sums over individuals."""
    for k in range(np.uint64(n)):
        gap, slope = 1.0 - left[k], (right[k] - left[k]) * inverse_width[k]
        sums[0, k] += gap * gap
        sums[1, k] += -2.0 * gap * slope
        sums[2, k] += slope * slope


@summing
def _squares(left, right, width, start, stop):
    """Return the integral of pi^2 over some intervals."""
    total = 0.0
    for k in range(np.uint64(start), np.uint64(stop)):
        total += width[k] * (left[k] * left[k] + left[k] * right[k] + right[k] * right[k])
    return total / 3.0


@inlined
def _square_up_to(left, right, inverse_width, width, k, length):
    """Return the integral of pi^2 over the beginning of an interval."""
    if k >= width.size:
        return 0.0
    first = left[k]
    then = first + (right[k] - first) * inverse_width[k] * length
    return length * (first * first + first * then + then * then) / 3.0


@compiled
def integrals(
    probabilities,
    first_column,
    lower,
    weight,
    step,
    knots,
    knot_starts,
    knot_scale,
    whole,
    points,
    point_starts,
    point_scale,
    inverse,
    up_to,
    end,
    followed,
    after,
    before_event,
    after_event,
    coefficients,
    partial,
    sums,
):
    """Integrate squared distances of rows of curves (see `_curve_integrals.Integrals`); one row may stand for all.

    The knots are time 0, consecutive columns from `first_column` on, and the horizon; `lower` and `weight` say how
    curves are read at the first and at the last of them. Coefficients and sums are filled in where their arrays hold
    anything.
    """
    n_intervals = knots.size - 1
    width = np.empty(n_intervals)
    for k in range(n_intervals):
        width[k] = knots[k + 1] - knots[k]
    inverse_width = 1.0 / width
    values = np.empty(n_intervals + 1)
    left = values[:n_intervals]
    right = left if step else values[1:]
    estimated = partial.size > 0
    for i in range(end.size):
        row = probabilities[i if probabilities.shape[0] > 1 else 0]
        place = place_of(end[i], knots, knot_starts, knot_scale, True) - 1
        stop = place
        if after[i] != 0.0:
            stop = place_of(followed[i], knots, knot_starts, knot_scale, True) - 1
        last = min(stop + 1, n_intervals)  # the last knot whose value is needed
        values[0] = _read_one(row, lower[0], weight[0])
        offset = np.uint64(first_column)
        for k in range(np.uint64(min(last, n_intervals - 1))):
            values[k + np.uint64(1)] = row[offset + k]
        if last == n_intervals:
            values[n_intervals] = _read_one(row, lower[1], weight[1])

        integral = _whole_intervals(left, right, inverse_width, place, whole)
        if estimated:
            _add_to_sums(left, right, inverse_width, place, sums)
        if place < n_intervals:
            gap, slope = 1.0 - left[place], (right[place] - left[place]) * inverse_width[place]
            p = place_of(end[i], points, point_starts, point_scale, True) - 1
            high, low = end[i] - knots[place], points[p] - knots[place]
            a, b, c = gap * gap, -2.0 * gap * slope, slope * slope
            own = a * (up_to[0, p] + (high - low) * inverse[p])
            own += b * (up_to[1, p] + (high * high - low * low) / 2.0 * inverse[p])
            own += c * (up_to[2, p] + (high * high * high - low * low * low) / 3.0 * inverse[p])
            integral += own
            if estimated:
                partial[i] = own
                coefficients[0, i], coefficients[1, i], coefficients[2, i] = a, b, c
        before_event[i] = integral
        if after[i] != 0.0:
            late = _squares(left, right, width, place, stop)
            late += _square_up_to(left, right, inverse_width, width, stop, followed[i] - knots[stop])
            late -= _square_up_to(left, right, inverse_width, width, place, end[i] - knots[place])
            after_event[i] = late


@compiled
def minus_log_likelihood(probabilities, grid, starts, scale, time, event, horizon, step, geometric, epsilon, loss):
    """Fill in minus the logarithm of the density at an event, or of the survival of others; see `LogScore`."""
    last = grid.size - 1
    for i in range(time.size):
        row = probabilities[i if probabilities.shape[0] > 1 else 0]
        when = min(time[i], horizon)
        # an event ends its interval, others start theirs
        lower = place_of(when, grid, starts, scale, not event[i]) - 1
        upper = min(lower + 1, last)
        left = np.float64(row[lower]) if lower >= 0 else 1.0
        right = np.float64(row[upper])
        start = grid[lower] if lower >= 0 else 0.0
        length = grid[upper] - start
        share = (when - start) / length if length > 0 and not step else 0.0
        length = length if length > 0 else 1.0  # at time 0, or after the grid
        if step:
            survival = left
        elif geometric:
            survival = left ** (1.0 - share) * right**share
        else:
            survival = (1.0 - share) * left + share * right
        if event[i]:
            likelihood = left - right
            if geometric and right > 0 and left > right:
                likelihood = math.log(left / right) * survival
            likelihood = max(likelihood, epsilon)
            if not step:
                likelihood /= length
        else:
            likelihood = max(survival, epsilon)
        loss[i] = -math.log(likelihood)
