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
def read_cells(start, width, lower, mix, rows, columns, known, wanted, DIRECT: tl.constexpr, KIND: tl.constexpr):
    """Return the predictions of some rows, counted from `start`, at some evaluation times; see `reading.Reading`.

    KIND is the type in which is computed.
    """
    cells = start + (rows * width)[:, None]
    if DIRECT:
        return tl.load(cells + (tl.load(lower) + columns)[None, :], mask=wanted, other=0.0).to(KIND)
    else:
        offset = tl.load(lower + columns, mask=known, other=0)
        share = tl.load(mix + columns, mask=known, other=0.0).to(KIND)[None, :]
        left = tl.load(cells + tl.maximum(offset, 0)[None, :], mask=wanted, other=0.0).to(KIND)
        right = tl.load(cells + tl.minimum(offset + 1, width - 1)[None, :], mask=wanted, other=0.0).to(KIND)
        left = tl.where((offset < 0)[None, :], 1.0, left)
        return (1.0 - share) * left + share * right


@triton.jit
def of_rows(vector, begin, rows, inside, REPEATED: tl.constexpr):
    """Return a vector's values of some rows, counted from `begin`; one value may stand for all."""
    if REPEATED:
        return tl.where(inside, tl.load(vector), 0)
    else:
        return tl.load(vector + begin + rows, mask=inside, other=0)


@triton.jit
def cell_losses(survival, event, epsilon, LOSS: tl.constexpr, KIND: tl.constexpr):
    """Return what predictions cost, given who has had the event: one formula for both, with nothing computed twice."""
    if LOSS == BRIER:
        off = tl.where(event, 0.0, 1.0).to(KIND) - survival
        return (off * off).to(tl.float64)
    else:
        clipped = tl.minimum(tl.maximum(survival, epsilon), 1.0 - epsilon)
        return -tl.log(tl.where(event, 1.0 - clipped, clipped)).to(tl.float64)


@triton.jit
def store_sum(out, place, cells, columns, n_columns):
    """Store the sum over the rows of a tile."""
    tl.store(out + place * n_columns + columns, tl.sum(cells, axis=0), mask=columns < n_columns)


@triton.jit
def first_moments(
    matrix, width, lower, mix, epsilon, n_rows, n_columns, rows_per_program, label,
    first_a, last_a, weight_a, first_b, last_b, weight_b, out,
    DIRECT: tl.constexpr, LOSS: tl.constexpr, TWO: tl.constexpr, SAME_FIRST: tl.constexpr,
    ALL_LAST_A: tl.constexpr, ONE_A: tl.constexpr, ALL_LAST_B: tl.constexpr, ONE_B: tl.constexpr,
    KIND: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Add up losses by stretch, under one weighting or two: for each program four sums, (programs, 4, columns).

    Under each weighting, losses in the first stretch without weight, and weight times loss in the second. ONE: all
    weights in the second stretch are 1. ALL_LAST: all have the same last stop.
    """
    n_tiles = tl.cdiv(n_columns, COLUMNS)
    program = tl.program_id(0) // n_tiles
    columns = (tl.program_id(0) % n_tiles) * COLUMNS + tl.arange(0, COLUMNS)
    known = columns < n_columns
    clip = tl.load(epsilon).to(KIND)
    early_a = tl.zeros((ROWS, COLUMNS), dtype=tl.float64)
    late_a = tl.zeros((ROWS, COLUMNS), dtype=tl.float64)
    early_b = tl.zeros((ROWS, COLUMNS), dtype=tl.float64)
    late_b = tl.zeros((ROWS, COLUMNS), dtype=tl.float64)
    # one large number for the program, small ones within it
    begin = program.to(tl.int64) * rows_per_program
    left = tl.minimum(n_rows - begin, rows_per_program).to(tl.int32)
    for start in range(0, left, ROWS):
        rows = start + tl.arange(0, ROWS)
        inside = rows < left
        turn_a = of_rows(first_a, begin, rows, inside, False)
        stop_a = of_rows(last_a, begin, rows, inside, ALL_LAST_A)
        has_event = of_rows(label, begin, rows, inside, False) != 0
        stop = tl.maximum(stop_a, turn_a)
        event_from = turn_a
        if TWO:
            stop_b = of_rows(last_b, begin, rows, inside, ALL_LAST_B)
            turn_b = turn_a if SAME_FIRST else of_rows(first_b, begin, rows, inside, False)
            stop = tl.maximum(stop, tl.maximum(stop_b, turn_b))
            event_from = tl.maximum(turn_a, turn_b)  # who is not counted from its event on has an earlier first stop
        wanted = columns[None, :] < stop[:, None]  # which is at most the number of columns
        survival = read_cells(matrix + begin * width, width, lower, mix, rows, columns, known, wanted, DIRECT, KIND)
        event = has_event[:, None] & (columns[None, :] >= event_from[:, None])
        loss = cell_losses(survival, event, clip, LOSS, KIND)
        early_a += tl.where(columns[None, :] < turn_a[:, None], loss, 0.0)
        in_last = (columns[None, :] >= turn_a[:, None]) & (columns[None, :] < stop_a[:, None])
        if ONE_A:
            late_a += tl.where(in_last, loss, 0.0)
        else:
            late_a += tl.where(in_last, of_rows(weight_a, begin, rows, inside, False)[:, None], 0.0) * loss
        if TWO:
            in_last_b = (columns[None, :] >= turn_b[:, None]) & (columns[None, :] < stop_b[:, None])
            if ONE_B:
                late_b += tl.where(in_last_b, loss, 0.0)
            else:
                late_b += tl.where(in_last_b, of_rows(weight_b, begin, rows, inside, False)[:, None], 0.0) * loss
            if not SAME_FIRST:
                early_b += tl.where(columns[None, :] < turn_b[:, None], loss, 0.0)
    place = program.to(tl.int64) * 4
    store_sum(out, place, early_a, columns, n_columns)
    store_sum(out, place + 1, late_a, columns, n_columns)
    if TWO:
        if SAME_FIRST:
            store_sum(out, place + 2, early_a, columns, n_columns)
        else:
            store_sum(out, place + 2, early_b, columns, n_columns)
        store_sum(out, place + 3, late_b, columns, n_columns)


@triton.jit
def count_stretches(
    label, first, last, weight, n_rows, n_columns, n_copies, out,
    ALL_LAST: tl.constexpr, ONE: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Count individuals by where their stretches end: (copies, 5, (columns + 1) squared), by first and last stop.

    How many there are, and how many with event; weights of those event-free, and with event; squared weights. If all
    weights are 1, the first two tell the others. Programs share a few copies, so that they seldom meet.
    """
    rows = tl.arange(0, ROWS)
    begin = tl.program_id(0).to(tl.int64) * ROWS
    inside = rows < n_rows - begin
    turn = of_rows(first, begin, rows, inside, False)
    stop = of_rows(last, begin, rows, inside, ALL_LAST)
    has_event = of_rows(label, begin, rows, inside, False) != 0
    n_cells = (n_columns + 1) * (n_columns + 1)
    cell = out + (tl.program_id(0) % n_copies) * 5 * n_cells + turn * (n_columns + 1) + stop
    one = tl.full((ROWS,), 1.0, dtype=tl.float64)
    counted = inside & (stop > turn)
    tl.atomic_add(cell, one, mask=inside)
    tl.atomic_add(cell + n_cells, one, mask=counted & has_event)
    if not ONE:
        w = of_rows(weight, begin, rows, inside, False)
        tl.atomic_add(cell + 2 * n_cells, w, mask=counted & ~has_event)
        tl.atomic_add(cell + 3 * n_cells, w, mask=counted & has_event)
        tl.atomic_add(cell + 4 * n_cells, w * w, mask=counted)


@triton.jit
def row_factors(columns, turn, stop, weight, early, scale):
    """Return what turns losses into deviations: weight by the divisor, 0 outside both stretches."""
    late = tl.where(columns[None, :] < stop[:, None], weight[:, None] * scale[None, :], 0.0)
    return tl.where(columns[None, :] < turn[:, None], early[None, :], late)


@triton.jit
def row_deviations(
    start, width, lower, mix, losses, rows, columns, n_columns, wanted, turn, has_event, factors, centre, clip,
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
        survival = read_cells(start, width, lower, mix, rows, columns, known, wanted, DIRECT, KIND)
        own = cell_losses(survival, event, clip, LOSS, KIND)
        return tl.where(wanted, factors * (own - centre[None, :]), 0.0)


@triton.jit
def store_means(at, n_means, cells, in_last, inside, LATE: tl.constexpr):
    """Store the sums over the columns of a tile, and of its second stretches."""
    tl.store(at, tl.sum(cells, axis=1), mask=inside)
    if LATE:
        tl.store(at + n_means, tl.sum(tl.where(in_last, cells, 0.0), axis=1), mask=inside)


@triton.jit
def second_moments(
    matrix_a, width_a, lower_a, mix_a, matrix_b, width_b, lower_b, mix_b, losses_b, epsilon,
    label, first, last, weight, early, scale, centre_a, centre_b, averages, n_averages, means, n_means,
    slope, common, before, own, begin_row, n_rows, n_columns, rows_per_program, out,
    ALL_LAST: tl.constexpr, ONE: tl.constexpr, DIRECT_A: tl.constexpr, DIRECT_B: tl.constexpr, TWO: tl.constexpr,
    CONSTANT: tl.constexpr, NULL: tl.constexpr, LATE: tl.constexpr, LOSS: tl.constexpr, KIND: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Add up squared deviations of one model or two, and of their difference; (programs, 3, columns).

    The second may be constant; with NULL, what estimating it adds is part of its squares. Each row's averages over time
    go to `means`, whole and with LATE of the second stretch: (2 models, averages, 2, n_means), from `begin_row` on.
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
    within = program.to(tl.int64) * rows_per_program  # this part of the rows
    begin = within + begin_row
    left = tl.minimum(n_rows - within, rows_per_program).to(tl.int32)
    for start in range(0, left, ROWS):
        rows = start + tl.arange(0, ROWS)
        inside = rows < left
        turn = of_rows(first, begin, rows, inside, False)
        stop = of_rows(last, begin, rows, inside, ALL_LAST)
        w = of_rows(weight, begin, rows, inside, ONE)
        has_event = of_rows(label, begin, rows, inside, False) != 0
        wanted = (columns[None, :] < tl.maximum(turn, stop)[:, None]) & known[None, :]
        in_last = wanted & (columns[None, :] >= turn[:, None])
        factors = row_factors(columns, turn, stop, w, factor_first, factor_last)
        a = row_deviations(
            matrix_a + begin * width_a, width_a, lower_a, mix_a, losses_b, rows, columns, n_columns, wanted, turn,
            has_event, factors, mean_a, clip, DIRECT_A, False, LOSS, KIND,
        )  # fmt: skip
        of_a += a * a
        if TWO:
            b = row_deviations(
                matrix_b + begin * width_b, width_b, lower_b, mix_b, losses_b, rows, columns, n_columns, wanted, turn,
                has_event, factors, mean_b, clip, DIRECT_B, CONSTANT, LOSS, KIND,
            )  # fmt: skip
            whole_b = b
            if NULL:
                moves = tl.load(slope + columns, mask=known, other=0.0)
                shared = tl.load(common + columns, mask=known, other=0.0)
                event_from = of_rows(before, begin, rows, inside, False)
                after = of_rows(own, begin, rows, inside, False)
                influence = tl.where(columns[None, :] < event_from[:, None], shared[None, :], after[:, None])
                whole_b = b + tl.where(inside[:, None], moves[None, :] * influence, 0.0)
            of_b += whole_b * whole_b
            of_both += (a - whole_b) * (a - whole_b)
        for r in range(n_averages):
            average = tl.load(averages + r * n_columns + columns, mask=known, other=0.0)
            at = means + r * 2 * n_means + within + rows
            store_means(at, n_means, a * average[None, :], in_last, inside, LATE)
            if TWO:
                store_means(at + n_averages * 2 * n_means, n_means, b * average[None, :], in_last, inside, LATE)
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
    label, first, last, weight, scale, centre_a, centre_b, order, steps, n_ordered, rows_per_run, n_columns, out,
    ALL_LAST: tl.constexpr, ONE: tl.constexpr, DIRECT_A: tl.constexpr, DIRECT_B: tl.constexpr, TWO: tl.constexpr,
    CONSTANT: tl.constexpr, LOSS: tl.constexpr, KIND: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
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
        turn = of_rows(first, 0, rows, inside, False)
        stop = of_rows(last, 0, rows, inside, ALL_LAST)
        w = of_rows(weight, 0, rows, inside, ONE)
        has_event = of_rows(label, 0, rows, inside, False) != 0
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
