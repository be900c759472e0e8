"""The loops of second moments, compiled; see `survscore.engine.identity` for how they work together."""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from survscore._utils.kernels import compiled, inlined, read_row, summing
from survscore.engine._kernels import BRIER, constant_deviations, curve_deviations, row_losses, row_weights

#: How many individuals ahead memory is asked for, where they are not visited in the order of their rows.
FAR, NEAR = 24, 8


@summing
def dot(values, factors, start, stop):
    """Return the sum of products over a range."""
    total = 0.0
    for j in range(np.uint64(start), np.uint64(stop)):
        total += values[j] * factors[j]
    return total


@inlined
def add_squares(rows, n_curves, has_constant, factor, start, stop, products):
    """Add a factor times the squares of models' values, and of their differences (the order is in `add_products`)."""
    start, stop = np.uint64(start), np.uint64(stop)
    if n_curves == 1:
        for j in range(start, stop):
            products[0, j] += factor * rows[0, j] * rows[0, j]
    else:
        for j in range(start, stop):
            a, b = rows[0, j], rows[1, j]
            products[0, j] += factor * a * a
            products[1, j] += factor * b * b
            products[2, j] += factor * (a - b) * (a - b)
    if has_constant:
        for j in range(start, stop):
            a, b, c = rows[0, j], rows[1, j], rows[2, j]
            products[3, j] += factor * c * c
            products[4, j] += factor * (a - c) * (a - c)
            products[5, j] += factor * (b - c) * (b - c)


@summing
def add_multiple(row, factor, start, stop, total):
    """Add a multiple of a row over a range of times."""
    for j in range(np.uint64(start), np.uint64(stop)):
        total[j] += factor * row[j]


@summing
def add_two_brier_squares(
    a_rows, b_rows, i, a_offset, b_offset, start, stop, event, weight, factors, centre_a, centre_b, average, products
):
    """Add squares of two models' deviations over a range of times, and return the deviations' means.

    The same as by `curve_deviations`, `add_squares` and `dot`, in one go: the commonest case, a third faster.
    """
    a_offset, b_offset = np.uint64(a_offset), np.uint64(b_offset)
    mean_a, mean_b = 0.0, 0.0
    target = 0.0 if event else 1.0
    for j in range(np.uint64(start), np.uint64(stop)):
        factor = weight * factors[j]
        a = factor * ((target - np.float64(a_rows[i, a_offset + j])) ** 2 - centre_a[j])
        b = factor * ((target - np.float64(b_rows[i, b_offset + j])) ** 2 - centre_b[j])
        products[0, j] += a * a
        products[1, j] += b * b
        products[2, j] += (a - b) * (a - b)
        mean_a += a * average[j]
        mean_b += b * average[j]
    return mean_a, mean_b


@compiled
def add_products(
    first_curves, second_curves, constant, n_curves, has_constant, deviation, weights, averages, products,
    average_products, keep, means, null_rows, null_means, crossed, crossed_averages,
):  # fmt: skip
    """Add the sums over rows of squared deviations, and of squared differences of deviations.

    The models are up to two of curves and one that is the same for everybody. `products` has shape (6, times): the
    squares of the first, of the second, of their difference, of the constant one, and of its differences to the two.
    `average_products` has the same for each of the averages over time, shape (6, averages). If asked to
    `keep` them, each row's averages go to `means`, whole and in the second stretch: (rows, 3 models x averages, 2).
    If there are `null_rows`, each row's influence on the constant prediction in the second stretch, and `null_means`,
    (averages, rows), the deviations' products with them are added to `crossed`, (3, times), over the second stretch
    alone, and to `crossed_averages`, (3, averages). Where there is no room in `products`, averages are all.
    """
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
    whole = np.zeros((3, 1))
    centre_a, centre_b, centre_c, first_weight = centres[0], centres[1], centres[2], first_weights[0]
    row_a, row_b, row_c = rows[0], rows[1], rows[2]
    two_brier = (
        kind == BRIER and a_direct and b_direct and n_curves == 2 and averages.shape[0] == 1
        and not (has_constant or own) and products.shape[1] > 0
    )  # fmt: skip
    for i in range(last_stops.shape[1]):
        first, last, w = first_stops[0, i], last_stops[0, i], last_weights[0, i]
        event_from = first if label[i] > 0 else m
        if two_brier:
            early_a, early_b = add_two_brier_squares(
                a_rows, b_rows, i, a_lower[0], b_lower[0], 0, first, False, 1.0, common, centre_a, centre_b,
                averages[0], products,
            )  # fmt: skip
            late_a, late_b = add_two_brier_squares(
                a_rows, b_rows, i, a_lower[0], b_lower[0], first, last, event_from < last, w, scale, centre_a, centre_b,
                averages[0], products,
            )  # fmt: skip
            whole[0, 0], whole[1, 0] = early_a + late_a, early_b + late_b
            if keep:
                means[i, 0, 0], means[i, 0, 1] = whole[0, 0], late_a
                means[i, 1, 0], means[i, 1, 1] = whole[1, 0], late_b
            add_squares(whole, n_curves, has_constant, 1.0, 0, 1, average_products)
            continue
        if own:
            row_weights(
                of_curves[0], g_rows, g_direct, g_geometric, g_lower, g_weight,
                of_population[0], v_rows, v_direct, v_geometric, v_lower, v_weight,
                i, first, last, first_weight, caps[0], w, early, late,
            )  # fmt: skip
        curve_deviations(
            kind, epsilon, a_rows, a_direct, a_geometric, a_lower, a_weight, i, own, early, late, common, scale,
            centre_a, w, 0, first, last, event_from, survival, loss, row_a,
        )  # fmt: skip
        if n_curves == 2:
            curve_deviations(
                kind, epsilon, b_rows, b_direct, b_geometric, b_lower, b_weight, i, own, early, late, common, scale,
                centre_b, w, 0, first, last, event_from, survival, loss, row_b,
            )  # fmt: skip
        if has_constant:
            constant_deviations(
                event_free, event, own, early, late, common, scale, centre_c, w, 0, first, last, event_from, loss, row_c
            )
        if products.shape[1] > 0:
            add_squares(rows, n_curves, has_constant, 1.0, 0, last, products)
            if null_rows.size:
                for a in range(3):
                    add_multiple(rows[a], null_rows[i], first, last, crossed[a])
        for r in range(averages.shape[0]):
            for a in range(3):
                if a == 0 or (a == 1 and n_curves == 2) or (a == 2 and has_constant):
                    in_second = dot(rows[a], averages[r], first, last)
                    whole[a, 0] = dot(rows[a], averages[r], 0, first) + in_second
                    if keep:
                        means[i, a * averages.shape[0] + r, 0] = whole[a, 0]
                        means[i, a * averages.shape[0] + r, 1] = in_second
                    if null_rows.size:
                        crossed_averages[a, r] += whole[a, 0] * null_means[r, i]
            add_squares(whole, n_curves, has_constant, 1.0, 0, 1, average_products[:, r : r + 1])


@summing
def brier_dot(row, offset, target, factors, start, stop):
    """Return the sum over a range of Brier losses times factors."""
    total, offset = 0.0, np.uint64(offset)
    for j in range(np.uint64(start), np.uint64(stop)):
        total += factors[j] * (target - np.float64(row[offset + j])) ** 2
    return total


@inlined
def two_sums(kind, epsilon, row, offset, first, last, event_from, early, late, loss):
    """Return the sums of a row's losses times factors, over its first stretch and over its second."""
    if kind == BRIER:
        in_first = brier_dot(row, offset, 1.0, early, 0, first)
        return in_first, brier_dot(row, offset, 0.0 if event_from < last else 1.0, late, first, last)
    row_losses(kind, epsilon, row[offset:], 0, event_from, last, loss)
    return dot(loss, early, 0, first), dot(loss, late, first, last)


@inlined
def running(values, factors):
    """Return the sums of products of the first values, of none on."""
    sums = np.zeros(values.size + 1)
    for j in range(values.size):
        # where there is no score nothing is added
        sums[j + 1] = sums[j] + (values[j] * factors[j] if factors[j] != 0.0 else 0.0)
    return sums


@compiled
def add_mean_products(
    first_curves, second_curves, constant, n_curves, has_constant, deviation, weights, averages, average_products, keep,
    means, null_means, crossed_averages,
):  # fmt: skip
    """Add what `add_products` adds for averages alone, of weights that come from no curves.

    Deviations are never made: only losses are summed over time, times factors. What is taken off them, and the constant
    prediction, are the same for all whose stretches are the same, so that running sums have them.
    """
    a_rows, a_direct, a_geometric, a_lower, a_weight = first_curves
    b_rows, b_direct, b_geometric, b_lower, b_weight = second_curves
    event_free, event = constant
    kind, epsilon, centres, scale, common = deviation
    label, first_stops, last_stops, last_weights, _, _, _, _, _, _ = weights
    m, n_averages = a_lower.size, averages.shape[0]
    survival, loss = np.empty(m), np.empty(m)
    whole, in_second = np.zeros((3, 1)), np.zeros(3)
    for r in range(n_averages):
        early, late = common * averages[r], scale * averages[r]
        of_first, of_last = np.zeros((3, m + 1)), np.zeros((3, m + 1))
        for a in range(3):
            of_first[a], of_last[a] = running(centres[a], early), running(centres[a], late)
        # of the constant prediction, in the first stretch, and in the second while event-free and with event
        same_first, same_last, same_event = np.zeros(m + 1), np.zeros(m + 1), np.zeros(m + 1)
        if has_constant:
            same_first, same_last = running(event_free, early) - of_first[2], running(event_free, late) - of_last[2]
            same_event = running(event, late) - of_last[2]
        for i in range(last_stops.shape[1]):
            first, last, w = first_stops[0, i], last_stops[0, i], last_weights[0, i]
            event_from = first if label[i] > 0 else m
            if a_direct:
                head, tail = two_sums(kind, epsilon, a_rows[i], a_lower[0], first, last, event_from, early, late, loss)
            else:
                read_row(a_rows[i], False, a_geometric, a_lower, a_weight, 0, last, survival)
                head, tail = two_sums(kind, epsilon, survival, 0, first, last, event_from, early, late, loss)
            in_second[0] = w * (tail - (of_last[0, last] - of_last[0, first]))
            whole[0, 0] = head - of_first[0, first] + in_second[0]
            if n_curves == 2:
                if b_direct:
                    head, tail = two_sums(
                        kind, epsilon, b_rows[i], b_lower[0], first, last, event_from, early, late, loss
                    )
                else:
                    read_row(b_rows[i], False, b_geometric, b_lower, b_weight, 0, last, survival)
                    head, tail = two_sums(kind, epsilon, survival, 0, first, last, event_from, early, late, loss)
                in_second[1] = w * (tail - (of_last[1, last] - of_last[1, first]))
                whole[1, 0] = head - of_first[1, first] + in_second[1]
            if has_constant:
                of_status = same_event if event_from < last else same_last
                in_second[2] = w * (of_status[last] - of_status[first])
                whole[2, 0] = same_first[first] + in_second[2]
            for a in range(3):
                if keep:
                    means[i, a * n_averages + r, 0], means[i, a * n_averages + r, 1] = whole[a, 0], in_second[a]
                if null_means.size:
                    crossed_averages[a, r] += whole[a, 0] * null_means[r, i]
            add_squares(whole, n_curves, has_constant, 1.0, 0, 1, average_products[:, r : r + 1])


@intrinsic
def prefetch(context, matrix, row, column):
    """Ask the processor to fetch a cell that will be needed soon; rows in the order of time lie far apart."""

    def generate(context, builder, signature, args):
        array = context.make_array(signature.args[0])(context, builder, value=args[0])
        width = builder.extract_value(array.shape, 1)
        cell = builder.gep(array.data, [builder.add(builder.mul(args[1], width), args[2])])
        byte = ir.IntType(8).as_pointer()
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        # for reading (0), to be kept in all caches (3), data (1)
        builder.call(function, [builder.bitcast(cell, byte), number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(matrix, types.int64, types.int64), generate


@inlined
def fetch_ahead(rows, row, start):
    """Prefetch what will be read of a row from a time on."""
    line = 64 // rows.itemsize
    for j in range(min(start, rows.shape[1]), rows.shape[1], line):
        prefetch(rows, row, j)


@compiled
def add_run(
    first_curves, second_curves, constant, n_curves, has_constant, deviation, weights, order, bins, greenwood, base,
    moves, two_sums, ahead, whole, ahead_steps, whole_steps, products,
):  # fmt: skip
    r"""Add up one run of individuals in their second stretch, from the latest time to the earliest.

    With m(s) the sum of the deviations of those of the run with a time after s, `ahead` ends as the sum of all,
    `ahead_steps` as the sum over s of step(s) m(s), and `products` as that of step(s) m(s)^2 for each model and
    difference (as in `add_products`). The steps are Greenwood's, over the exits between one individual and the next;
    `bins` says after how many exits each comes, `greenwood` their running sum, of which `base` belongs to earlier runs.
    With `two_sums`, m counts only those whose weights move, `whole` all of them, and products hold
    2 m(s) e(s) - m(s)^2 with e the sum of all.
    """
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
    centre_a, centre_b, centre_c, first_weight = centres[0], centres[1], centres[2], first_weights[0]
    row_a, row_b, row_c = rows[0], rows[1], rows[2]
    n_rows = order.size
    two_brier = kind == BRIER and a_direct and b_direct and n_curves == 2 and not (has_constant or own or two_sums)
    earliest = m  # the first time at which somebody of the run has been added; without exits between, order is free
    all_bins, all_moves = bins.reshape((1, -1)), moves.reshape((1, -1))
    for b in range(n_rows):
        i = order[b]
        # what tells where to look is fetched earlier than what is looked at
        if b + FAR < n_rows:
            later = order[b + FAR]
            prefetch(first_stops, 0, later)
            prefetch(last_stops, 0, later)
            prefetch(last_weights, 0, later)
            prefetch(all_bins, 0, later)
            prefetch(all_moves, 0, later)
        if b + NEAR < n_rows:
            soon = order[b + NEAR]
            fetch_ahead(a_rows, soon, first_stops[0, soon])
            if n_curves == 2:
                fetch_ahead(b_rows, soon, first_stops[0, soon])
        first, last, w = first_stops[0, i], last_stops[0, i], last_weights[0, i]
        event_from = first if label[i] > 0 else m
        earliest = min(earliest, first)
        behind = greenwood[bins[i]] - base  # of all exits of the run before this individual: their m(s) counts it
        step = greenwood[bins[i]] - (greenwood[bins[order[b + 1]]] if b + 1 < n_rows else base)
        if two_brier and moves[i] and event_from < last == m and first == earliest:
            add_two_brier_rows(
                a_rows, b_rows, i, a_lower[0], b_lower[0], first, m, w, behind, step, scale, centre_a, centre_b, ahead,
                ahead_steps, products,
            )  # fmt: skip
            continue
        if own:
            row_weights(
                of_curves[0], g_rows, g_direct, g_geometric, g_lower, g_weight,
                of_population[0], v_rows, v_direct, v_geometric, v_lower, v_weight,
                i, first, last, first_weight, caps[0], w, early, late,
            )  # fmt: skip
        curve_deviations(
            kind, epsilon, a_rows, a_direct, a_geometric, a_lower, a_weight, i, own, early, late, common, scale,
            centre_a, w, first, first, last, event_from, survival, loss, row_a,
        )  # fmt: skip
        if n_curves == 2:
            curve_deviations(
                kind, epsilon, b_rows, b_direct, b_geometric, b_lower, b_weight, i, own, early, late, common, scale,
                centre_b, w, first, first, last, event_from, survival, loss, row_b,
            )  # fmt: skip
        if has_constant:
            constant_deviations(
                event_free, event, own, early, late, common, scale, centre_c, w, first, first, last, event_from, loss,
                row_c,
            )  # fmt: skip
        for a in range(3):
            if a == 0 or (a == 1 and n_curves == 2) or (a == 2 and has_constant):
                if moves[i]:
                    add_with_steps(rows[a], behind, first, last, ahead[a], ahead_steps[a])
                if two_sums:
                    add_with_steps(rows[a], behind, first, last, whole[a], whole_steps[a])
        if step == 0.0:
            continue
        # sums stand at all times from the first on, also where somebody's stretch has ended
        if two_sums:  # 2 m e - m^2 = e^2 - (e - m)^2
            for a in range(3):
                for j in range(np.uint64(earliest), np.uint64(m)):
                    rows[a, j] = whole[a, j] - ahead[a, j]
            add_squares(whole, n_curves, has_constant, step, earliest, m, products)
            add_squares(rows, n_curves, has_constant, -step, earliest, m, products)
        else:
            add_squares(ahead, n_curves, has_constant, step, earliest, m, products)


@inlined
def add_two_brier_rows(
    a_rows, b_rows, i, a_offset, b_offset, start, stop, w, behind, step, scale, centre_a, centre_b, ahead, steps,
    products,
):  # fmt: skip
    """Do what `add_run` does for one with event and two models, in one go: the commonest case, a third faster."""
    a_offset, b_offset = np.uint64(a_offset), np.uint64(b_offset)
    for j in range(np.uint64(start), np.uint64(stop)):
        factor = w * scale[j]
        a = factor * (np.float64(a_rows[i, a_offset + j]) ** 2 - centre_a[j])
        b = factor * (np.float64(b_rows[i, b_offset + j]) ** 2 - centre_b[j])
        steps[0, j] += behind * a
        steps[1, j] += behind * b
        a += ahead[0, j]
        b += ahead[1, j]
        ahead[0, j] = a
        ahead[1, j] = b
        products[0, j] += step * a * a
        products[1, j] += step * b * b
        products[2, j] += step * (a - b) * (a - b)


@inlined
def add_with_steps(values, behind, start, stop, total, steps):
    """Add a range of values to a total, and times a number to another."""
    for j in range(np.uint64(start), np.uint64(stop)):
        total[j] += values[j]
        steps[j] += behind * values[j]


@compiled
def add_means(bins, left, moves, means, chosen, first, last, sums):
    """Add individuals' means over time to sums by how many exits came before, of the exits from `first` to `last`.

    `means` has shape (individuals, all means, 2), of which some are `chosen`, `sums` (exits, chosen, 1 or 3): the
    second stretch of those whose weights move; and, if there are three, of all, and of those who left.
    """
    with_own = sums.shape[2] == 3
    flat = sums.reshape((sums.shape[0], -1))
    for i in range(bins.size):
        if i + FAR < bins.size and first <= bins[i + FAR] < last:
            prefetch(flat, bins[i + FAR], 0)
        b = bins[i]
        if b < first or b >= last:
            continue
        for k in range(chosen.size):
            whole, late = means[i, chosen[k], 0], means[i, chosen[k], 1]
            if moves[i]:
                sums[b, k, 0] += late
            if with_own:
                sums[b, k, 1] += whole
                if left[i]:
                    sums[b, k, 2] += whole


@inlined
def add_all(values, total):
    """Add a small table to another."""
    for k in range(total.shape[0]):
        for which in range(total.shape[1]):
            total[k, which] += values[k, which]


@compiled
def sum_exits(sums):
    """Return the sums over some exits: (means, 1 or 3)."""
    total = np.zeros(sums.shape[1:])
    for s in range(sums.shape[0]):
        add_all(sums[s], total)
    return total


@compiled
def add_exit_terms(sums, later, exits, at_risk, pairs, out):
    r"""Add what the exits of a range add to the squares of means over time, and of differences: `pairs` of means.

    `sums` are those of `add_means`, of this range, and `later` of all that comes after it. Each exit s adds
    :math:`step_s M_s^2 + 2 (left_s / r_s - step_s E_s) M_s` with M and E the sums over all who come after it; the
    second term only where each moves the others' weights. A pair of twice the same stands for that mean itself.
    """
    after = later.copy()
    with_own = sums.shape[2] == 3
    for s in range(sums.shape[0] - 1, -1, -1):
        rest = at_risk[s] - exits[s]
        step = exits[s] / (np.float64(at_risk[s]) * rest) if rest > 0 else 0.0
        for p in range(pairs.shape[0]):
            a, b = pairs[p, 0], pairs[p, 1]
            moved = after[a, 0] if a == b else after[a, 0] - after[b, 0]
            out[p] += step * moved * moved
            if with_own:
                own = sums[s, a, 2] / at_risk[s] - step * after[a, 1]
                if a != b:
                    own -= sums[s, b, 2] / at_risk[s] - step * after[b, 1]
                out[p] += 2.0 * own * moved
        add_all(sums[s], after)
