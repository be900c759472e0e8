"""The sums of `_kernels.first_moments` and `_moment_kernels.add_products`, for few times: one time after the other.

A row of few times is over before its loops have begun, and where its stretches end is a guess that the processor gets
wrong. So here everybody's cells of one time are worked on together, some rows at a time, and stretches are zeros among
weights. For weights that come from no curves, and without means over time.
"""

from __future__ import annotations

import numpy as np

from survscore._utils.kernels import _log, compiled, dot, inlined, summing
from survscore.engine._kernels import BRIER

MOST_TIMES = 16
ROWS = 512  # that stay in the processor's nearest cache


@summing
def _sum(values):
    total = 0.0
    for i in range(values.size):
        total += values[i]
    return total


@summing
def _sum_of_squares_of_differences(a, b):
    total = 0.0
    for i in range(a.size):
        total += (a[i] - b[i]) * (a[i] - b[i])
    return total


@inlined
def _losses(kind, epsilon, rows, start, column, event, out):
    """Fill in the losses of some rows in one column, of those with event and of the others."""
    if kind == BRIER:
        for i in range(np.uint64(out.size)):
            distance = 1.0 - event[i] - np.float64(rows[np.uint64(start) + i, column])
            out[i] = distance * distance
    else:
        for i in range(np.uint64(out.size)):
            survival = min(max(np.float64(rows[np.uint64(start) + i, column]), epsilon), 1.0 - epsilon)
            out[i] = -_log(1.0 - survival if event[i] else survival)


@inlined
def _weigh(j, first_stop, last_stop, last_weight, early, late):
    """Fill in whom time j finds in the first stretch, ones, and the weights of those in the second."""
    for i in range(early.size):
        early[i] = 1.0 if j < first_stop[i] else 0.0
        late[i] = last_weight[i] if first_stop[i] <= j < last_stop[i] else 0.0


@compiled
def first_moments(curves, kinds, epsilons, weights):
    """Return the sums that `_kernels.first_moments` describes."""
    rows, _, _, lower, _ = curves
    label, first_stop, last_stop, last_weight, first_weight, _, _, _, _, _ = weights
    n_weightings, n = first_stop.shape
    m, n_losses = lower.size, kinds.size
    sums = np.zeros((2, n_losses, n_weightings, m))
    weight_sums = np.zeros((3, n_weightings, m))
    squares, numbers = np.zeros((n_weightings, m)), np.zeros((n_weightings, m))
    all_early, all_late, all_event, all_counted = np.empty(ROWS), np.empty(ROWS), np.empty(ROWS), np.empty(ROWS)
    losses = np.empty((n_losses, ROWS))
    for start in range(0, n, ROWS):
        size = min(ROWS, n - start)
        here = slice(start, start + size)
        early, late, event, counted = all_early[:size], all_late[:size], all_event[:size], all_counted[:size]
        labels = label[here]
        for j in range(m):
            # the event comes where the first stretch ends, of whichever weighting counts this individual
            for i in range(size):
                event[i] = 1.0 if labels[i] > 0 else 0.0
            for q in range(n_weightings):
                stops = first_stop[q][here]
                for i in range(size):
                    event[i] = event[i] if stops[i] <= j else 0.0
            for k in range(n_losses):
                _losses(kinds[k], epsilons[k], rows, start, np.uint64(lower[0] + j), event, losses[k][:size])
            for q in range(n_weightings):
                _weigh(j, first_stop[q][here], last_stop[q][here], last_weight[q][here], early, late)
                for k in range(n_losses):
                    sums[0, k, q, j] += first_weight[q, j] * dot(losses[k][:size], early)
                    sums[1, k, q, j] += dot(losses[k][:size], late)
                u, in_first = first_weight[q, j], _sum(early)
                weight_sums[0, q, j] += u * in_first
                squares[q, j] += u * u * in_first + dot(late, late)
                stops = last_stop[q][here]
                for i in range(size):  # a weight may be infinite
                    early[i] = late[i] if event[i] else 0.0
                    late[i] = 0.0 if event[i] else late[i]
                    counted[i] = event[i] if j < stops[i] else 0.0
                weight_sums[1, q, j] += _sum(late)
                weight_sums[2, q, j] += _sum(early)
                numbers[q, j] += _sum(counted)
    return sums, weight_sums, squares, numbers


@compiled
def add_products(
    first_curves, second_curves, constant, n_curves, has_constant, deviation, weights, products, null_rows, crossed
):
    """Add the sums that `_moment_kernels.add_products` describes, where no averages are asked for."""
    a_rows, _, _, a_lower, _ = first_curves
    b_rows, _, _, b_lower, _ = second_curves
    event_free_loss, event_loss = constant
    kind, epsilon, centres, scale, common = deviation
    label, first_stops, last_stops, last_weights, _, _, _, _, _, _ = weights
    n = last_stops.shape[1]
    all_early, all_late, all_event = np.empty(ROWS), np.empty(ROWS), np.empty(ROWS)
    all_a, all_b, all_c = np.zeros(ROWS), np.zeros(ROWS), np.zeros(ROWS)
    for start in range(0, n, ROWS):
        size = min(ROWS, n - start)
        here = slice(start, start + size)
        early, late, event = all_early[:size], all_late[:size], all_event[:size]
        a, b, c = all_a[:size], all_b[:size], all_c[:size]
        labels, stops = label[here], first_stops[0][here]
        for j in range(products.shape[1]):
            for i in range(size):
                event[i] = 1.0 if labels[i] > 0 and stops[i] <= j else 0.0
            _weigh(j, stops, last_stops[0][here], last_weights[0][here], early, late)
            for i in range(size):
                late[i] = late[i] * scale[j]
                early[i] = early[i] * common[j] + late[i]
            _losses(kind, epsilon, a_rows, start, np.uint64(a_lower[0] + j), event, a)
            for i in range(size):
                a[i] = early[i] * (a[i] - centres[0, j])
            products[0, j] += dot(a, a)
            if n_curves == 2:
                _losses(kind, epsilon, b_rows, start, np.uint64(b_lower[0] + j), event, b)
                for i in range(size):
                    b[i] = early[i] * (b[i] - centres[1, j])
                products[1, j] += dot(b, b)
                products[2, j] += _sum_of_squares_of_differences(a, b)
            if has_constant:
                for i in range(size):
                    c[i] = early[i] * ((event_loss[j] if event[i] else event_free_loss[j]) - centres[2, j])
                products[3, j] += dot(c, c)
                products[4, j] += _sum_of_squares_of_differences(a, c)
                products[5, j] += _sum_of_squares_of_differences(b, c)
            if null_rows.size:  # over the second stretch alone
                own = null_rows[here]
                for i in range(size):
                    early[i] = own[i] if stops[i] <= j else 0.0
                crossed[0, j] += dot(a, early)
                crossed[1, j] += dot(b, early)
                crossed[2, j] += dot(c, early)
