"""Triton's kernels: sums over the rows of predictions on a device, each cell read once.

With sorted evaluation times every indicator is a range of columns per individual: event-free [0, first), with the final
status [first, last). Columns lie side by side on the lanes of a program, which walks down some rows and adds up in
float64 registers; what each program found is added by torch afterwards, in a fixed order. No cell outside both ranges
is read. Vectors that are the same number for everybody have stride 0.

Imported only where Triton is installed. The functions that start these kernels are in `tensor_kernels`.
"""

from __future__ import annotations

import triton
import triton.language as tl

BRIER = tl.constexpr(0)
LOG = tl.constexpr(1)


@triton.jit
def read_cells(
    matrix, width, lower, mix, rows, columns, known, wanted, DIRECT: tl.constexpr, KIND: tl.constexpr
):  # fmt: skip
    """Return the predictions of some rows at some evaluation times; see `reading.Reading`.

    KIND is the type in which is computed.
    """
    start = matrix + rows[:, None] * width
    if DIRECT:
        return tl.load(start + (tl.load(lower) + columns)[None, :], mask=wanted, other=0.0).to(KIND)
    else:
        offset = tl.load(lower + columns, mask=known, other=0)
        share = tl.load(mix + columns, mask=known, other=0.0).to(KIND)[None, :]
        left = tl.load(start + tl.maximum(offset, 0)[None, :], mask=wanted, other=0.0).to(KIND)
        right = tl.load(start + tl.minimum(offset + 1, width - 1)[None, :], mask=wanted, other=0.0).to(KIND)
        left = tl.where((offset < 0)[None, :], 1.0, left)
        return (1.0 - share) * left + share * right


@triton.jit
def loss_if_event_free(survival, epsilon, LOSS: tl.constexpr):
    """Return what predictions cost those who are event-free."""
    if LOSS == BRIER:
        off = 1.0 - survival
        return off * off
    else:
        return -tl.log(tl.minimum(tl.maximum(survival, epsilon), 1.0 - epsilon))


@triton.jit
def loss_if_event(survival, epsilon, LOSS: tl.constexpr):
    """Return what predictions cost those with event."""
    if LOSS == BRIER:
        return survival * survival
    else:
        return -tl.log(1.0 - tl.minimum(tl.maximum(survival, epsilon), 1.0 - epsilon))


@triton.jit
def store_sum(out, place, cells, columns, n_columns):
    """Store the sum over the rows of a tile."""
    tl.store(out + place * n_columns + columns, tl.sum(cells, axis=0), mask=columns < n_columns)


@triton.jit
def first_moments(
    matrix, width, lower, mix, epsilon, n_rows, n_columns, rows_per_program, label,
    first_a, last_a, weight_a, first_a_stride, last_a_stride, weight_a_stride,
    first_b, last_b, weight_b, first_b_stride, last_b_stride, weight_b_stride,
    out, DIRECT: tl.constexpr, LOSS: tl.constexpr, TWO: tl.constexpr, SAME_FIRST: tl.constexpr, WEIGHTS: tl.constexpr,
    KIND: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Add up losses, and if asked for weights, by stretch, under one weighting or two.

    For each program and weighting seven sums, (programs, 14, columns): losses in the first stretch, without weight;
    weight times loss in the second; how many are in the first; weights of those event-free in the second, and of those
    with event; squared weights of the second; how many have the event there.
    """
    n_tiles = tl.cdiv(n_columns, COLUMNS)
    program = tl.program_id(0) // n_tiles
    columns = (tl.program_id(0) % n_tiles) * COLUMNS + tl.arange(0, COLUMNS)
    known = columns < n_columns
    clip = tl.load(epsilon).to(KIND)
    nothing = tl.zeros((ROWS, COLUMNS), dtype=tl.float64)
    none = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    early_a, late_a, free_a, event_a, square_a, early_b, late_b, free_b, event_b, square_b = (
        nothing, nothing, nothing, nothing, nothing, nothing, nothing, nothing, nothing, nothing
    )  # fmt: skip
    n_first_a, n_event_a, n_first_b, n_event_b = none, none, none, none
    begin = program.to(tl.int64) * rows_per_program
    for start in range(0, rows_per_program, ROWS):
        rows = begin + start + tl.arange(0, ROWS)
        inside = rows < n_rows
        stop_a = tl.load(last_a + rows * last_a_stride, mask=inside, other=0)
        turn_a = tl.load(first_a + rows * first_a_stride, mask=inside, other=0)
        w_a = tl.load(weight_a + rows * weight_a_stride, mask=inside, other=0.0)
        has_event = tl.load(label + rows, mask=inside, other=0) != 0
        stop = tl.maximum(stop_a, turn_a)
        if TWO:
            stop_b = tl.load(last_b + rows * last_b_stride, mask=inside, other=0)
            turn_b = tl.load(first_b + rows * first_b_stride, mask=inside, other=0)
            w_b = tl.load(weight_b + rows * weight_b_stride, mask=inside, other=0.0)
            stop = tl.maximum(stop, tl.maximum(stop_b, turn_b))
        wanted = columns[None, :] < stop[:, None]  # which is at most the number of columns
        survival = read_cells(matrix, width, lower, mix, rows, columns, known, wanted, DIRECT, KIND)
        of_free = loss_if_event_free(survival, clip, LOSS).to(tl.float64)
        of_event = loss_if_event(survival, clip, LOSS).to(tl.float64)
        own = tl.where(has_event[:, None], of_event, of_free)
        in_first = columns[None, :] < turn_a[:, None]
        in_last = (columns[None, :] >= turn_a[:, None]) & (columns[None, :] < stop_a[:, None])
        early_a += tl.where(in_first, of_free, 0.0)
        late_a += tl.where(in_last, w_a[:, None] * own, 0.0)
        if WEIGHTS:
            n_first_a += tl.where(in_first, 1.0, 0.0)
            n_event_a += tl.where(in_last & has_event[:, None], 1.0, 0.0)
            free_a += tl.where(in_last, tl.where(has_event, 0.0, w_a)[:, None], 0.0)
            event_a += tl.where(in_last, tl.where(has_event, w_a, 0.0)[:, None], 0.0)
            square_a += tl.where(in_last, (w_a * w_a)[:, None], 0.0)
        if TWO:
            in_last_b = (columns[None, :] >= turn_b[:, None]) & (columns[None, :] < stop_b[:, None])
            late_b += tl.where(in_last_b, w_b[:, None] * own, 0.0)
            if not SAME_FIRST:
                in_first_b = columns[None, :] < turn_b[:, None]
                early_b += tl.where(in_first_b, of_free, 0.0)
                if WEIGHTS:
                    n_first_b += tl.where(in_first_b, 1.0, 0.0)
            if WEIGHTS:
                n_event_b += tl.where(in_last_b & has_event[:, None], 1.0, 0.0)
                free_b += tl.where(in_last_b, tl.where(has_event, 0.0, w_b)[:, None], 0.0)
                event_b += tl.where(in_last_b, tl.where(has_event, w_b, 0.0)[:, None], 0.0)
                square_b += tl.where(in_last_b, (w_b * w_b)[:, None], 0.0)
    first = program.to(tl.int64) * 14
    store_sum(out, first, early_a, columns, n_columns)
    store_sum(out, first + 1, late_a, columns, n_columns)
    if WEIGHTS:
        store_sum(out, first + 2, n_first_a, columns, n_columns)
        store_sum(out, first + 3, free_a, columns, n_columns)
        store_sum(out, first + 4, event_a, columns, n_columns)
        store_sum(out, first + 5, square_a, columns, n_columns)
        store_sum(out, first + 6, n_event_a, columns, n_columns)
    if TWO:
        store_sum(out, first + 8, late_b, columns, n_columns)
        if SAME_FIRST:
            store_sum(out, first + 7, early_a, columns, n_columns)
        else:
            store_sum(out, first + 7, early_b, columns, n_columns)
        if WEIGHTS:
            if SAME_FIRST:
                store_sum(out, first + 9, n_first_a, columns, n_columns)
            else:
                store_sum(out, first + 9, n_first_b, columns, n_columns)
            store_sum(out, first + 10, free_b, columns, n_columns)
            store_sum(out, first + 11, event_b, columns, n_columns)
            store_sum(out, first + 12, square_b, columns, n_columns)
            store_sum(out, first + 13, n_event_b, columns, n_columns)


@triton.jit
def row_factors(columns, turn, stop, weight, early, scale):
    """Return what turns losses into deviations: weight by the divisor, 0 outside both stretches."""
    late = tl.where(columns[None, :] < stop[:, None], weight[:, None] * scale[None, :], 0.0)
    return tl.where(columns[None, :] < turn[:, None], early[None, :], late)


@triton.jit
def row_deviations(
    matrix, width, lower, mix, losses, rows, columns, n_columns, wanted, turn, has_event, factors, centre, clip,
    DIRECT: tl.constexpr, CONSTANT: tl.constexpr, LOSS: tl.constexpr, KIND: tl.constexpr,
):  # fmt: skip
    """Return the deviations of a model's rows; a constant one has its two losses by column in `losses`."""
    event = has_event[:, None] & (columns[None, :] >= turn[:, None])
    known = columns < n_columns
    if CONSTANT:
        if_free = tl.load(losses + columns, mask=known, other=0.0)
        if_event = tl.load(losses + n_columns + columns, mask=known, other=0.0)
        own = tl.where(event, if_event[None, :], if_free[None, :])
        return tl.where(wanted, factors * (own - centre[None, :]), 0.0)
    else:
        survival = read_cells(matrix, width, lower, mix, rows, columns, known, wanted, DIRECT, KIND)
        if_free = loss_if_event_free(survival, clip, LOSS).to(tl.float64)
        own = tl.where(event, loss_if_event(survival, clip, LOSS).to(tl.float64), if_free)
        return tl.where(wanted, factors * (own - centre[None, :]), 0.0)


@triton.jit
def second_moments(
    matrix_a, width_a, lower_a, mix_a, matrix_b, width_b, lower_b, mix_b, losses_b, epsilon,
    label, first, last, weight, first_stride, last_stride, weight_stride, early, scale, centre_a, centre_b,
    averages, n_averages, means, n_means, slope, common, before, own,
    begin_row, n_rows, n_columns, rows_per_program, out,
    DIRECT_A: tl.constexpr, DIRECT_B: tl.constexpr, TWO: tl.constexpr, CONSTANT: tl.constexpr, NULL: tl.constexpr,
    LOSS: tl.constexpr, KIND: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Add up squared deviations of one model or two, and of their difference; (programs, 3, columns).

    The second may be constant; with NULL, what estimating it adds is part of its squares. Each row's averages over time
    go to `means`, whole and of the second stretch: (2 models, averages, 2, n_means), from `begin_row` on.
    """
    program = tl.program_id(0)
    columns = tl.arange(0, COLUMNS)
    known = columns < n_columns
    clip = tl.load(epsilon).to(KIND)
    factor_first = tl.load(early + columns, mask=known, other=0.0)
    factor_last = tl.load(scale + columns, mask=known, other=0.0)
    mean_a = tl.load(centre_a + columns, mask=known, other=0.0)
    mean_b = tl.load(centre_b + columns, mask=known, other=0.0)
    of_a = tl.zeros((ROWS, COLUMNS), dtype=tl.float64)
    of_b = tl.zeros((ROWS, COLUMNS), dtype=tl.float64)
    of_both = tl.zeros((ROWS, COLUMNS), dtype=tl.float64)
    begin = program.to(tl.int64) * rows_per_program
    for start in range(0, rows_per_program, ROWS):
        place = begin + start + tl.arange(0, ROWS)  # within this part of the rows
        inside = place < n_rows
        rows = begin_row + place
        turn = tl.load(first + rows * first_stride, mask=inside, other=0)
        stop = tl.load(last + rows * last_stride, mask=inside, other=0)
        w = tl.load(weight + rows * weight_stride, mask=inside, other=0.0)
        has_event = tl.load(label + rows, mask=inside, other=0) != 0
        wanted = (columns[None, :] < tl.maximum(turn, stop)[:, None]) & known[None, :]
        in_last = wanted & (columns[None, :] >= turn[:, None])
        factors = row_factors(columns, turn, stop, w, factor_first, factor_last)
        a = row_deviations(
            matrix_a, width_a, lower_a, mix_a, losses_b, rows, columns, n_columns, wanted, turn, has_event, factors,
            mean_a, clip, DIRECT_A, False, LOSS, KIND,
        )  # fmt: skip
        of_a += a * a
        if TWO:
            b = row_deviations(
                matrix_b, width_b, lower_b, mix_b, losses_b, rows, columns, n_columns, wanted, turn, has_event, factors,
                mean_b, clip, DIRECT_B, CONSTANT, LOSS, KIND,
            )  # fmt: skip
            whole_b = b
            if NULL:
                moves = tl.load(slope + columns, mask=known, other=0.0)
                shared = tl.load(common + columns, mask=known, other=0.0)
                event_from = tl.load(before + rows, mask=inside, other=0)
                after = tl.load(own + rows, mask=inside, other=0.0)
                influence = tl.where(columns[None, :] < event_from[:, None], shared[None, :], after[:, None])
                whole_b = b + tl.where(inside[:, None], moves[None, :] * influence, 0.0)
            of_b += whole_b * whole_b
            of_both += (a - whole_b) * (a - whole_b)
        for r in range(n_averages):
            average = tl.load(averages + r * n_columns + columns, mask=known, other=0.0)
            at = means + r * 2 * n_means + place
            tl.store(at, tl.sum(a * average[None, :], axis=1), mask=inside)
            tl.store(at + n_means, tl.sum(tl.where(in_last, a, 0.0) * average[None, :], axis=1), mask=inside)
            if TWO:
                at += n_averages * 2 * n_means
                tl.store(at, tl.sum(b * average[None, :], axis=1), mask=inside)
                tl.store(at + n_means, tl.sum(tl.where(in_last, b, 0.0) * average[None, :], axis=1), mask=inside)
    store_sum(out, program.to(tl.int64) * 3, of_a, columns, n_columns)
    if TWO:
        store_sum(out, program.to(tl.int64) * 3 + 1, of_b, columns, n_columns)
        store_sum(out, program.to(tl.int64) * 3 + 2, of_both, columns, n_columns)


@triton.jit
def so_far_in_tile(values, ROWS: tl.constexpr):
    """Return the sums over the rows of a tile up to each."""
    if ROWS == 1:
        return values
    else:
        return tl.cumsum(values, axis=0)


@triton.jit
def add_runs(
    matrix_a, width_a, lower_a, mix_a, matrix_b, width_b, lower_b, mix_b, losses_b, epsilon,
    label, first, last, weight, first_stride, last_stride, weight_stride, scale, centre_a, centre_b,
    order, steps, n_ordered, rows_per_run, n_columns, out,
    DIRECT_A: tl.constexpr, DIRECT_B: tl.constexpr, TWO: tl.constexpr, CONSTANT: tl.constexpr, LOSS: tl.constexpr,
    KIND: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Add up runs of individuals in their second stretch, from the latest time to the earliest, one run a program.

    With m(s) the sum of the deviations of those of the run with a time after s: the sum of all, the sum over s of
    step(s) m(s), and of step(s) m(s)^2, for the first model, the second and their difference; (runs, 7, columns).
    `steps` has the running sum of the steps up to each individual's time, and 0 after the last. ROWS individuals are
    read at once, so that reading does not wait for adding up.
    """
    run = tl.program_id(0)
    columns = tl.arange(0, COLUMNS)
    known = columns < n_columns
    clip = tl.load(epsilon).to(KIND)
    factor_last = tl.load(scale + columns, mask=known, other=0.0)
    mean_a = tl.load(centre_a + columns, mask=known, other=0.0)
    mean_b = tl.load(centre_b + columns, mask=known, other=0.0)
    nothing = tl.zeros((1, COLUMNS), dtype=tl.float64)
    ahead_a, ahead_b, linear_a, linear_b, square_a, square_b, square_both = (
        nothing, nothing, nothing, nothing, nothing, nothing, nothing
    )  # fmt: skip
    begin = run.to(tl.int64) * rows_per_run
    end = tl.minimum(begin + rows_per_run, n_ordered)
    base = tl.load(steps + end)
    place = tl.arange(0, ROWS)
    for start in range(0, rows_per_run, ROWS):
        at = begin + start + place
        inside = at < end
        rows = tl.load(order + at, mask=inside, other=0).to(tl.int64)
        turn = tl.load(first + rows * first_stride, mask=inside, other=0)
        stop = tl.load(last + rows * last_stride, mask=inside, other=0)
        w = tl.load(weight + rows * weight_stride, mask=inside, other=0.0)
        has_event = tl.load(label + rows, mask=inside, other=0) != 0
        so_far = tl.load(steps + at, mask=inside, other=0.0)
        behind = tl.where(inside, so_far - base, 0.0)
        step = tl.where(inside, so_far - tl.load(steps + at + 1, mask=inside, other=0.0), 0.0)
        wanted = (columns[None, :] >= turn[:, None]) & (columns[None, :] < stop[:, None]) & known[None, :]
        factors = w[:, None] * factor_last[None, :]
        a = row_deviations(
            matrix_a, width_a, lower_a, mix_a, losses_b, rows, columns, n_columns, wanted, turn, has_event, factors,
            mean_a, clip, DIRECT_A, False, LOSS, KIND,
        )  # fmt: skip
        up_to_a = ahead_a + so_far_in_tile(a, ROWS)
        linear_a += tl.sum(behind[:, None] * a, axis=0)[None, :]
        square_a += tl.sum(step[:, None] * up_to_a * up_to_a, axis=0)[None, :]
        ahead_a += tl.sum(a, axis=0)[None, :]
        if TWO:
            b = row_deviations(
                matrix_b, width_b, lower_b, mix_b, losses_b, rows, columns, n_columns, wanted, turn, has_event, factors,
                mean_b, clip, DIRECT_B, CONSTANT, LOSS, KIND,
            )  # fmt: skip
            up_to_b = ahead_b + so_far_in_tile(b, ROWS)
            apart = up_to_a - up_to_b
            linear_b += tl.sum(behind[:, None] * b, axis=0)[None, :]
            square_b += tl.sum(step[:, None] * up_to_b * up_to_b, axis=0)[None, :]
            square_both += tl.sum(step[:, None] * apart * apart, axis=0)[None, :]
            ahead_b += tl.sum(b, axis=0)[None, :]
    first_place = run.to(tl.int64) * 7
    store_sum(out, first_place, ahead_a, columns, n_columns)
    store_sum(out, first_place + 1, linear_a, columns, n_columns)
    store_sum(out, first_place + 2, square_a, columns, n_columns)
    if TWO:
        store_sum(out, first_place + 3, ahead_b, columns, n_columns)
        store_sum(out, first_place + 4, linear_b, columns, n_columns)
        store_sum(out, first_place + 5, square_b, columns, n_columns)
        store_sum(out, first_place + 6, square_both, columns, n_columns)
