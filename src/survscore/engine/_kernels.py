"""The loops of scores, compiled; see `survscore._utils.kernels` for how they are run.

Arrays that belong together travel as one named tuple. A row is one individual; the times of its two stretches are
ranges (see `survscore.weighting.stretches`), and nothing is done outside them.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from survscore._utils.kernels import _log, compiled, inlined, read_row

BRIER, LOG = 0, 1

#: Larger weights, infinite ones among them, are added time by time: a running sum would not forget them.
HEAVY = 64.0

#: A matrix of curves on their grid, and how it is read at the evaluation times (`curves.Reading`).
Curves = namedtuple("Curves", "rows direct geometric lower weight")

#: The stretches of some individuals under several weightings (first axis), and the label of their final status.
#: `of_curves` says whose weights are divided by `survival`, `of_population` whose by `population`.
Weights = namedtuple(
    "Weights",
    "label first_stop last_stop last_weight first_weight max_weight of_curves of_population survival population",
)

#: A prediction that is the same for everybody, as its losses for the event-free and for those with event.
Constant = namedtuple("Constant", "event_free event")

#: What turns a loss into a deviation: ``weight * (loss - centre) * scale``, the centre of each of three models. `early`
#: is the common weight of the first stretch times the scale.
Deviation = namedtuple("Deviation", "kind epsilon centre scale early")


@inlined
def row_losses(kind, epsilon, survival, start, event_from, stop, out):
    """Fill ``out[start:stop]``: loss of an event-free individual up to `event_from`, of one with event after it."""
    start, event_from, stop = np.uint64(start), np.uint64(min(event_from, stop)), np.uint64(stop)
    if kind == BRIER:
        for j in range(start, event_from):
            out[j] = (1.0 - np.float64(survival[j])) ** 2
        for j in range(max(start, event_from), stop):
            out[j] = np.float64(survival[j]) ** 2
    else:
        for j in range(start, event_from):
            out[j] = -_log(min(max(np.float64(survival[j]), epsilon), 1.0 - epsilon))
        for j in range(max(start, event_from), stop):
            out[j] = -_log(1.0 - min(max(np.float64(survival[j]), epsilon), 1.0 - epsilon))


@inlined
def curve_losses(kind, epsilon, rows, direct, geometric, lower, weight, i, start, event_from, stop, survival, out):
    """Do the same for row i of some curves, read at the evaluation times; `survival` is room for that."""
    if direct:  # no gathering, no copy
        row_losses(kind, epsilon, rows[i, lower[0] :], start, event_from, stop, out)
    else:
        read_row(rows[i], False, geometric, lower, weight, start, stop, survival)
        row_losses(kind, epsilon, survival, start, event_from, stop, out)


@inlined
def add(values, start, stop, total):
    """Add a range of values to a total."""
    for j in range(np.uint64(start), np.uint64(stop)):
        total[j] += values[j]


@inlined
def add_constant(value, start, stop, total):
    """Add the same number to a range of a total."""
    for j in range(np.uint64(start), np.uint64(stop)):
        total[j] += value


@inlined
def add_scaled(values, scale, start, stop, total):
    """Add a range of values, all times the same number, to a total."""
    for j in range(np.uint64(start), np.uint64(stop)):
        total[j] += scale * values[j]


@inlined
def add_weighted(values, weights, start, stop, total):
    """Add a range of values, each times its weight, to a total."""
    for j in range(np.uint64(start), np.uint64(stop)):
        total[j] += weights[j] * values[j]


@inlined
def add_with_squares(values, start, stop, total, squares):
    """Add a range of values to a total, and their squares to another."""
    for j in range(np.uint64(start), np.uint64(stop)):
        total[j] += values[j]
        squares[j] += values[j] * values[j]


@inlined
def add_brier_row(row, offset, i, event_from, common, first_stop, last_stop, last_weight, shared, rest, late):
    """Add row i's Brier losses as they are read, without storing them: the commonest case, a third faster."""
    offset = np.uint64(offset)
    for j in range(np.uint64(common)):
        shared[j] += (1.0 - np.float64(row[offset + j])) ** 2
    for q in range(first_stop.shape[0]):
        w = last_weight[q, i]
        for j in range(np.uint64(common), np.uint64(first_stop[q, i])):
            rest[q, j] += (1.0 - np.float64(row[offset + j])) ** 2
        if event_from < last_stop[q, i]:
            for j in range(np.uint64(first_stop[q, i]), np.uint64(last_stop[q, i])):
                late[q, j] += w * np.float64(row[offset + j]) ** 2
        else:  # still event-free
            for j in range(np.uint64(first_stop[q, i]), np.uint64(last_stop[q, i])):
                late[q, j] += w * (1.0 - np.float64(row[offset + j])) ** 2


@inlined
def row_weights(
    of_curves, s_rows, s_direct, s_geometric, s_lower, s_weight,
    of_population, p_rows, p_direct, p_geometric, p_lower, p_weight,
    i, first, last, common, cap, w, early, late,
):  # fmt: skip
    """Fill a row's own weights: `early` up to the end of its first stretch, `late` in its second."""
    first, last = np.uint64(first), np.uint64(last)
    if of_curves and s_direct:
        offset = np.uint64(s_lower[0])
        for j in range(first):
            early[j] = min(1.0 / np.float64(s_rows[i, offset + j]), cap)
    elif of_curves:
        read_row(s_rows[i], False, s_geometric, s_lower, s_weight, 0, first, early)
        for j in range(first):
            early[j] = min(1.0 / early[j], cap)
    else:
        for j in range(first):
            early[j] = common[j]
    if of_population:
        read_row(p_rows[i], p_direct, p_geometric, p_lower, p_weight, 0, last, late)
        for j in range(first):
            early[j] /= late[j]
        for j in range(first, last):
            late[j] = w / late[j]
    else:
        for j in range(first, last):
            late[j] = w


@inlined
def add_common_weights(
    n, first_weight, own, own_late, ends, jumps, square_jumps, numbers, shared, rest, sums, weight_sums, squares
):
    """Add what could wait until all rows were seen: weights that do not differ within a stretch."""
    for q in range(first_weight.shape[0]):
        if own_late[q]:  # then they differ in both
            continue
        late_squares, still_early = 0.0, np.float64(n)
        late = np.zeros(2)
        for j in range(first_weight.shape[1]):
            late_squares += square_jumps[q, j]
            if numbers[0, q, j] + numbers[1, q, j] == 0:  # what is left is rounding
                late_squares = 0.0
            squares[q, j] += late_squares
            for status in range(2):
                late[status] += jumps[status, q, j]
                if numbers[status, q, j] == 0:
                    late[status] = 0.0
                weight_sums[1 + status, q, j] += late[status]
            if own[q]:
                continue
            still_early -= ends[q, j]
            u = first_weight[q, j]
            weight_sums[0, q, j] = u * still_early
            squares[q, j] += u * u * still_early
            for k in range(shared.shape[0]):
                sums[0, k, q, j] = u * (shared[k, j] + rest[k, q, j])


@compiled
def first_moments(curves, kinds, epsilons, weights):
    """Sum losses times weights, weights, and squared weights over rows, for all losses and weightings at once.

    Returns
    -------
    sums : (2 stretches, losses, weightings, times)
    weight_sums : (3, weightings, times)
        Of the first stretch; of the second while event-free; of the second with event.
    squares : (weightings, times)
    events : (weightings, times)
        How many are counted with event.
    """
    # Tuples are taken apart here: inside a loop, every access to a field would count references.
    rows, direct, geometric, lower, weight = curves
    label, first_stop, last_stop, last_weight, first_weight, max_weight, of_curves, of_population, g, v = weights
    g_rows, g_direct, g_geometric, g_lower, g_weight = g
    v_rows, v_direct, v_geometric, v_lower, v_weight = v
    n_weightings, n = first_stop.shape
    m = lower.size
    n_losses = kinds.size
    # All weightings share the sum over the event-free times up to the smallest of their stops. Those
    # with a later stop add the rest for themselves.
    shared = np.zeros((n_losses, m))
    rest = np.zeros((n_losses, n_weightings, m))
    sums = np.zeros((2, n_losses, n_weightings, m))
    weight_sums = np.zeros((3, n_weightings, m))
    squares = np.zeros((n_weightings, m))
    # Changes of the number in the first stretch, and of the weights in the second, from one time to the next.
    ends = np.zeros((n_weightings, m + 1))
    jumps = np.zeros((2, n_weightings, m + 1))
    square_jumps = np.zeros((n_weightings, m + 1))
    number_jumps = np.zeros((2, n_weightings, m + 1))
    own = of_curves | of_population
    any_own = own.any()
    survival, loss, early, late = np.empty(m), np.empty(m), np.empty(m), np.empty(m)

    for i in range(n):
        common, stop, event_from = m, 0, m
        if label[i] > 0:  # the event comes where the first stretch ends, of whichever weighting counts this individual
            event_from = 0
            for q in range(n_weightings):
                event_from = max(event_from, first_stop[q, i])
        for q in range(n_weightings):
            first, last, w = first_stop[q, i], last_stop[q, i], last_weight[q, i]
            stop = max(stop, last)
            status = 1 if event_from < last else 0
            if last > first:
                number_jumps[status, q, first] += 1.0
                number_jumps[status, q, last] -= 1.0
                if w <= HEAVY:
                    jumps[status, q, first] += w
                    jumps[status, q, last] -= w
                    square_jumps[q, first] += w * w
                    square_jumps[q, last] -= w * w
                elif not of_population[q]:  # taking it off again would leave nothing of the others
                    add_constant(w, first, last, weight_sums[1 + status, q])
                    add_constant(w * w, first, last, squares[q])
            if not own[q]:
                common = min(common, first)
                ends[q, first] += 1.0
        common = min(common, stop)
        for k in range(n_losses):
            if kinds[k] == BRIER and not any_own:
                if direct:
                    add_brier_row(
                        rows[i], lower[0], i, event_from, common, first_stop, last_stop, last_weight, shared[k],
                        rest[k], sums[1, k],
                    )  # fmt: skip
                else:
                    read_row(rows[i], False, geometric, lower, weight, 0, stop, survival)
                    add_brier_row(
                        survival, 0, i, event_from, common, first_stop, last_stop, last_weight, shared[k], rest[k],
                        sums[1, k],
                    )  # fmt: skip
                continue
            curve_losses(
                kinds[k], epsilons[k], rows, direct, geometric, lower, weight, i, 0, event_from, stop, survival, loss
            )
            add(loss, 0, common, shared[k])
            for q in range(n_weightings):
                first, last = first_stop[q, i], last_stop[q, i]
                if not own[q]:
                    add(loss, common, first, rest[k, q])
                if not of_population[q]:
                    add_scaled(loss, last_weight[q, i], first, last, sums[1, k, q])
                if not own[q]:
                    continue
                row_weights(
                    of_curves[q], g_rows, g_direct, g_geometric, g_lower, g_weight,
                    of_population[q], v_rows, v_direct, v_geometric, v_lower, v_weight,
                    i, first, last, first_weight[q], max_weight[q], last_weight[q, i], early, late,
                )  # fmt: skip
                if k == 0:
                    add_with_squares(early, 0, first, weight_sums[0, q], squares[q])
                    if of_population[q]:
                        status = 2 if event_from < last else 1
                        add_with_squares(late, first, last, weight_sums[status, q], squares[q])
                add_weighted(loss, early, 0, first, sums[0, k, q])
                if of_population[q]:
                    add_weighted(loss, late, first, last, sums[1, k, q])

    numbers = np.zeros((2, n_weightings, m))
    for status in range(2):
        for q in range(n_weightings):
            number = 0.0
            for j in range(m):
                number += number_jumps[status, q, j]
                numbers[status, q, j] = number
    add_common_weights(
        n, first_weight, own, of_population, ends, jumps, square_jumps, numbers, shared, rest, sums, weight_sums,
        squares,
    )  # fmt: skip
    return sums, weight_sums, squares, numbers[1]


@inlined
def row_deviations(loss, own, early, late, common, scale, centre, w, start, first, last, out):
    """Turn a row's losses into its deviations, from time `start` to the end of its second stretch."""
    if own:
        # where the score is undefined, its scale is zero and weights may be infinite
        for j in range(np.uint64(start), np.uint64(first)):
            out[j] = early[j] * scale[j] * (loss[j] - centre[j]) if scale[j] > 0.0 else 0.0
        for j in range(np.uint64(max(start, first)), np.uint64(last)):
            out[j] = late[j] * scale[j] * (loss[j] - centre[j]) if scale[j] > 0.0 else 0.0
    else:
        for j in range(np.uint64(start), np.uint64(first)):
            out[j] = common[j] * (loss[j] - centre[j])
        for j in range(np.uint64(max(start, first)), np.uint64(last)):
            out[j] = w * scale[j] * (loss[j] - centre[j])


@inlined
def curve_deviations(
    kind, epsilon, rows, direct, geometric, lower, weight, i, own, early, late, common, scale, centre, w, start, first,
    last, event_from, survival, loss, out,
):  # fmt: skip
    """Fill a row's deviations from time `start` on; `survival` and `loss` are room to work in."""
    if kind == BRIER and direct and not own:  # the commonest case: nothing is stored in between
        offset = np.uint64(lower[0])
        for j in range(np.uint64(start), np.uint64(first)):
            out[j] = common[j] * ((1.0 - np.float64(rows[i, offset + j])) ** 2 - centre[j])
        if event_from < last:
            for j in range(np.uint64(max(start, first)), np.uint64(last)):
                out[j] = w * scale[j] * (np.float64(rows[i, offset + j]) ** 2 - centre[j])
        else:  # still event-free
            for j in range(np.uint64(max(start, first)), np.uint64(last)):
                out[j] = w * scale[j] * ((1.0 - np.float64(rows[i, offset + j])) ** 2 - centre[j])
    elif kind == BRIER and not own:
        read_row(rows[i], direct, geometric, lower, weight, start, last, survival)
        for j in range(np.uint64(start), np.uint64(first)):
            out[j] = common[j] * ((1.0 - survival[j]) ** 2 - centre[j])
        target = 0.0 if event_from < last else 1.0
        for j in range(np.uint64(max(start, first)), np.uint64(last)):
            out[j] = w * scale[j] * ((target - survival[j]) ** 2 - centre[j])
    else:
        curve_losses(kind, epsilon, rows, direct, geometric, lower, weight, i, start, event_from, last, survival, loss)
        row_deviations(loss, own, early, late, common, scale, centre, w, start, first, last, out)


@inlined
def constant_deviations(
    event_free, event, own, early, late, common, scale, centre, w, start, first, last, event_from, room, out
):
    """Do the same for the prediction that is the same for everybody; `room` is for its losses."""
    for j in range(np.uint64(start), np.uint64(min(event_from, last))):
        room[j] = event_free[j]
    for j in range(np.uint64(max(start, event_from)), np.uint64(last)):
        room[j] = event[j]
    row_deviations(room, own, early, late, common, scale, centre, w, start, first, last, out)


@compiled
def deviations(curves, deviation, model, weights, start, stop, out):
    """Fill ``out[i, j - start]`` with every row's deviations at the times from `start` to `stop`."""
    rows, direct, geometric, lower, weight = curves
    kind, epsilon, centres, scale, common = deviation
    label, first_stops, last_stops, last_weights, first_weights, caps, of_curves, of_population, g, v = weights
    g_rows, g_direct, g_geometric, g_lower, g_weight = g
    v_rows, v_direct, v_geometric, v_lower, v_weight = v
    m = lower.size
    own = of_curves[0] or of_population[0]
    survival, loss, early, late, row = np.empty(m), np.empty(m), np.empty(m), np.empty(m), np.empty(m)
    centre, first_weight = centres[model], first_weights[0]
    for i in range(out.shape[0]):
        first, last, w = first_stops[0, i], last_stops[0, i], last_weights[0, i]
        if own:
            row_weights(
                of_curves[0], g_rows, g_direct, g_geometric, g_lower, g_weight,
                of_population[0], v_rows, v_direct, v_geometric, v_lower, v_weight,
                i, first, last, first_weight, caps[0], w, early, late,
            )  # fmt: skip
        curve_deviations(
            kind, epsilon, rows, direct, geometric, lower, weight, i, own, early, late, common, scale, centre, w,
            start, first, last, first if label[i] > 0 else m, survival, loss, row,
        )  # fmt: skip
        inside = max(min(last, stop), start)
        out[i, : inside - start] = row[start:inside]
        out[i, inside - start :] = 0.0


@compiled
def add_by_label(block, labels, out):
    """Add the rows of a block to the rows of `out` that their labels name."""
    for i in range(block.shape[0]):
        row = labels[i]
        for j in range(np.uint64(block.shape[1])):
            out[row, j] += block[i, j]
