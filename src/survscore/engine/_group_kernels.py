"""The loops over groups of individuals, compiled; see `survscore.engine.grouped` for what they compute."""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from survscore._utils.kernels import compiled, inlined
from survscore.engine._kernels import BRIER, constant_deviations, curve_deviations, row_weights
from survscore.engine._moment_kernels import FAR, NEAR, add_squares, dot, fetch_ahead, prefetch

#: Up to two models' curves, the prediction that is the same for everybody, and how many there are.
Three = namedtuple("Three", "first second constant n_curves has_constant")

#: What an individual's influence has beside its deviation. `offset` (3, times) is taken off up to `population_stop`.
#: `table` (exits + 1, 2, models, times) holds what estimating G adds: the first to one who `passed` so many exits, the
#: second to one who `left` at this `exit`; later exits have not come at any of the times, and the last row stands for
#: all of them. The null model has `slope` times `common`, from `before_time` on times `own`.
Beside = namedtuple(
    "Beside", "has_offset offset population_stop has_table table passed exit left has_null slope common own before_time"
)


@inlined
def add_two_brier(
    a_rows, b_rows, i, a_offset, b_offset, start, stop, first_column, target, weight, factors, centre_a, centre_b,
    total_a, total_b,
):  # fmt: skip
    """Add two models' deviations over a range of times, without storing them: the commonest case."""
    a_offset, b_offset, first_column = np.uint64(a_offset), np.uint64(b_offset), np.uint64(first_column)
    for j in range(np.uint64(start), np.uint64(stop)):
        factor = weight * factors[j]
        total_a[j - first_column] += factor * ((target - np.float64(a_rows[i, a_offset + j])) ** 2 - centre_a[j])
        total_b[j - first_column] += factor * ((target - np.float64(b_rows[i, b_offset + j])) ** 2 - centre_b[j])


@inlined
def present(a, n_curves, has_constant):
    """Whether there is a model in this place."""
    return a == 0 or (a == 1 and n_curves == 2) or (a == 2 and has_constant)


@compiled
def add_groups(
    three, deviation, weights, beside, order, starts, group, begin, end, start, stop, averages, products,
    average_products, means, head, tail,
):  # fmt: skip
    """Add up influences within groups, and their squares over groups, at the times from `start` to `stop`.

    `order` has the individuals group by group, which begin at `starts`; those from position `begin` to `end` are
    added, the first of them in `group`. The sums of the first and of the last of their groups, which others may
    belong to, go to `head` and `tail`, (3, times); the squares of all groups between to `products` (6, times) and
    `average_products` (6, averages), in the order of `add_squares`. If there is room for `means`, (groups, 3,
    averages), the averages of these times are added there instead. Returns the last group.
    """
    first_curves, second_curves, constant, n_curves, has_constant = three
    a_rows, a_direct, a_geometric, a_lower, a_weight = first_curves
    b_rows, b_direct, b_geometric, b_lower, b_weight = second_curves
    event_free, event = constant
    kind, epsilon, centres, scale, common = deviation
    label, first_stops, last_stops, last_weights, first_weights, caps, of_curves, of_population, g, v = weights
    g_rows, g_direct, g_geometric, g_lower, g_weight = g
    v_rows, v_direct, v_geometric, v_lower, v_weight = v
    (
        has_offset, offset, population_stop, has_table, table, passed, exit_of, left, has_null, slope, null_common,
        null_own, before_time,
    ) = beside  # fmt: skip
    m, width = a_lower.size, stop - start
    own = of_curves[0] or of_population[0]
    survival, loss, early, late = np.empty(m), np.empty(m), np.empty(m), np.empty(m)
    rows, total = np.zeros((3, m)), np.zeros((3, width))
    row_a, row_b, row_c, centre_a, centre_b, centre_c = rows[0], rows[1], rows[2], centres[0], centres[1], centres[2]
    total_a, total_b = total[0], total[1]
    two_brier = kind == BRIER and a_direct and b_direct and n_curves == 2 and not (has_constant or own or has_offset)
    last_exit = table.shape[0] - 1
    labels, all_passed, all_left = label.reshape((1, -1)), passed.reshape((1, -1)), left.reshape((1, -1))
    flat_table = table.reshape((table.shape[0], -1))
    first_group = group
    for b in range(begin, end):
        if b == starts[group + 1]:
            if group == first_group:
                head[:] = total
            else:
                close_group(total, group, n_curves, has_constant, start, averages, products, average_products, means)
            total[:] = 0.0
            while b == starts[group + 1]:
                group += 1
        i = order[b]
        # individuals of a group lie far apart: what tells where to look is fetched earlier than what is looked at
        if b + FAR < end:
            later = order[b + FAR]
            prefetch(labels, 0, later)
            prefetch(first_stops, 0, later)
            prefetch(last_stops, 0, later)
            prefetch(last_weights, 0, later)
            if has_table:
                prefetch(all_passed, 0, later)
                prefetch(all_left, 0, later)
        if b + NEAR < end:
            soon = order[b + NEAR]
            fetch_ahead(a_rows, soon, start)
            if n_curves == 2:
                fetch_ahead(b_rows, soon, start)
            if has_table:
                fetch_ahead(flat_table, min(passed[soon], last_exit), 0)
        first, last, w = first_stops[0, i], last_stops[0, i], last_weights[0, i]
        if has_table:
            at_exit = left[i] and exit_of[i] < last_exit
            place = min(exit_of[i] if at_exit else passed[i], last_exit)
            spread = table[place, 1 if at_exit else 0]
            for k in range(spread.shape[0]):
                a = k if n_curves == 2 else 2 * k
                for j in range(np.uint64(width)):
                    total[a, j] += spread[k, j]
        if two_brier:
            target = 0.0 if label[i] > 0 else 1.0
            before = min(first, stop)
            add_two_brier(
                a_rows, b_rows, i, a_lower[0], b_lower[0], start, before, start, 1.0, 1.0, common, centre_a, centre_b,
                total_a, total_b,
            )  # fmt: skip
            add_two_brier(
                a_rows, b_rows, i, a_lower[0], b_lower[0], max(before, start), min(last, stop), start, target, w, scale,
                centre_a, centre_b, total_a, total_b,
            )  # fmt: skip
            continue
        if own:
            row_weights(
                of_curves[0], g_rows, g_direct, g_geometric, g_lower, g_weight,
                of_population[0], v_rows, v_direct, v_geometric, v_lower, v_weight,
                i, first, last, first_weights[0], caps[0], w, early, late,
            )  # fmt: skip
        event_from = first if label[i] > 0 else m
        first, last = min(first, stop), min(last, stop)
        curve_deviations(
            kind, epsilon, a_rows, a_direct, a_geometric, a_lower, a_weight, i, own, early, late, common, scale,
            centre_a, w, start, first, last, event_from, survival, loss, row_a,
        )  # fmt: skip
        if n_curves == 2:
            curve_deviations(
                kind, epsilon, b_rows, b_direct, b_geometric, b_lower, b_weight, i, own, early, late, common, scale,
                centre_b, w, start, first, last, event_from, survival, loss, row_b,
            )  # fmt: skip
        if has_constant:
            constant_deviations(
                event_free, event, own, early, late, common, scale, centre_c, w, start, first, last, event_from,
                loss, row_c,
            )  # fmt: skip
        for a in range(3):
            if not present(a, n_curves, has_constant):
                continue
            for j in range(np.uint64(start), np.uint64(max(last, start))):
                total[a, j - np.uint64(start)] += rows[a, j]
            if has_offset:
                for j in range(start, min(population_stop[i], stop)):
                    total[a, j - start] -= offset[a, j]
        if has_null:
            for j in range(start, stop):
                total[2, j - start] += slope[j] * (null_common[j] if j < before_time[i] else null_own[i])
    if group == first_group:
        head[:] = total
    else:
        tail[:] = total
    return group


@compiled
def close_group(total, group, n_curves, has_constant, start, averages, products, average_products, means):
    """Add the squares of a group's sums, and of their averages over time, or keep the latter until all times came."""
    width = total.shape[1]
    add_squares(total, n_curves, has_constant, 1.0, 0, width, products)
    whole = np.zeros((3, 1))
    for r in range(averages.shape[0]):
        weights = averages[r, start : start + width]
        for a in range(3):
            whole[a, 0] = dot(total[a], weights, 0, width)
        if means.shape[0]:
            for a in range(3):
                means[group, a, r] += whole[a, 0]
        else:
            add_squares(whole, n_curves, has_constant, 1.0, 0, 1, average_products[:, r : r + 1])


@compiled
def add_by_exit(three, deviation, weights, order, bins, moves, start, stop, table):
    """Add the deviations of those in their second stretch to ``table[how many exits came before, 0]``."""
    first_curves, second_curves, constant, n_curves, has_constant = three
    a_rows, a_direct, a_geometric, a_lower, a_weight = first_curves
    b_rows, b_direct, b_geometric, b_lower, b_weight = second_curves
    event_free, event = constant
    kind, epsilon, centres, scale, common = deviation
    label, first_stops, last_stops, last_weights, first_weights, caps, of_curves, of_population, g, v = weights
    g_rows, g_direct, g_geometric, g_lower, g_weight = g
    v_rows, v_direct, v_geometric, v_lower, v_weight = v
    m = a_lower.size
    own = of_curves[0] or of_population[0]
    survival, loss, early, late = np.empty(m), np.empty(m), np.empty(m), np.empty(m)
    rows = np.zeros((3, m))
    row_a, row_b, row_c, centre_a, centre_b, centre_c = rows[0], rows[1], rows[2], centres[0], centres[1], centres[2]
    two_brier = kind == BRIER and a_direct and b_direct and n_curves == 2 and not (has_constant or own)
    for b in range(order.size):
        i = order[b]
        if b + FAR < order.size:
            later = order[b + FAR]
            prefetch(first_stops, 0, later)
            prefetch(last_stops, 0, later)
            prefetch(last_weights, 0, later)
        if b + NEAR < order.size:
            soon = order[b + NEAR]
            fetch_ahead(a_rows, soon, start)
            if n_curves == 2:
                fetch_ahead(b_rows, soon, start)
        first, last, w = first_stops[0, i], last_stops[0, i], last_weights[0, i]
        if not moves[i] or first >= stop or last <= start:
            continue
        sums = table[bins[i], 0]
        if two_brier:
            add_two_brier(
                a_rows, b_rows, i, a_lower[0], b_lower[0], max(first, start), min(last, stop), start,
                0.0 if label[i] > 0 else 1.0, w, scale, centre_a, centre_b, sums[0], sums[1],
            )  # fmt: skip
            continue
        if own:
            row_weights(
                of_curves[0], g_rows, g_direct, g_geometric, g_lower, g_weight,
                of_population[0], v_rows, v_direct, v_geometric, v_lower, v_weight,
                i, first, last, first_weights[0], caps[0], w, early, late,
            )  # fmt: skip
        event_from = first if label[i] > 0 else m
        last = min(last, stop)
        begin, before = max(start, first), min(first, last)
        curve_deviations(
            kind, epsilon, a_rows, a_direct, a_geometric, a_lower, a_weight, i, own, early, late, common, scale,
            centre_a, w, begin, before, last, event_from, survival, loss, row_a,
        )  # fmt: skip
        if n_curves == 2:
            curve_deviations(
                kind, epsilon, b_rows, b_direct, b_geometric, b_lower, b_weight, i, own, early, late, common, scale,
                centre_b, w, begin, before, last, event_from, survival, loss, row_b,
            )  # fmt: skip
        if has_constant:
            constant_deviations(
                event_free, event, own, early, late, common, scale, centre_c, w, begin, before, last, event_from,
                loss, row_c,
            )  # fmt: skip
        for a in range(3):
            if present(a, n_curves, has_constant):
                place = a if n_curves == 2 else min(a, 1)
                for j in range(begin, last):
                    sums[place, j - start] += rows[a, j]


@compiled
def sums_after_exits(table, after, steps, reached, total):
    """Put M(s; t) beside the sums by exit, and add up step(s) M(s; t) in `total`.

    `after` starts as what comes after the range of exits, (models, times); `reached`, counted from the range's first
    exit, says which exits have come at each time.
    """
    for s in range(table.shape[0] - 1, -1, -1):
        for k in range(table.shape[2]):
            for j in range(np.uint64(table.shape[3])):
                moved = after[k, j] if s < reached[j] else 0.0
                table[s, 1, k, j] = moved
                total[k, j] += steps[s] * moved
                after[k, j] += table[s, 0, k, j]


@compiled
def spread_by_exit(table, before, steps, own_risk, inclusive):
    """Turn M(s; t) into what estimating G adds to one who passed so many exits, and to one who left at this one.

    `before` starts as the sum of step(s) M(s; t) over all exits before the range; one who left has also passed its own
    exit if that is `inclusive`.
    """
    for s in range(table.shape[0]):
        for k in range(table.shape[2]):
            for j in range(np.uint64(table.shape[3])):
                moved = table[s, 1, k, j]
                through = before[k, j] + steps[s] * moved
                table[s, 0, k, j] = -before[k, j]
                table[s, 1, k, j] = moved / own_risk[s] - (through if inclusive else before[k, j])
                before[k, j] = through


@compiled
def add_power_sums(order, starts, first_group, last_group, stop, powers, largest):
    """Add the powers of groups' sizes at each time, (6, times), from the number of groups on; and the largest sizes."""
    m = largest.size
    stops = stop.reshape((1, -1))
    ends = np.zeros(m + 1)
    for group in range(first_group, last_group):
        if starts[group + 1] == starts[group]:
            continue
        for b in range(starts[group], starts[group + 1]):
            if b + FAR < order.size:
                prefetch(stops, 0, order[b + FAR])
            ends[stop[order[b]]] += 1.0
        size = np.float64(starts[group + 1] - starts[group])
        for j in range(m):
            size -= ends[j]
            ends[j] = 0.0
            if size == 0.0:
                continue
            largest[j] = max(largest[j], size)
            powers[0, j] += 1.0
            power = size
            for k in range(1, 6):
                powers[k, j] += power
                power *= size
        for j in range(m + 1):
            ends[j] = 0.0
