"""Triton's kernels of second moments; see `_triton` for how rows and columns are laid out, and for what they share.

Imported only where Triton is installed. The functions that start these kernels are in `tensor_kernels`.
"""

from __future__ import annotations

import triton
import triton.language as tl

from survscore.engine._triton import (
    BY_COLUMN,
    NEVER,
    cell_losses,
    first_column,
    of_columns,
    of_row,
    read_cells,
    store_columns,
    weight_where,
    within,
)


@triton.jit
def deviate(
    row, width, lower, mix, losses, clip, edge, local, n_columns, wanted, factors, event_from, centre,
    DIRECT: tl.constexpr, CONSTANT: tl.constexpr, LOSS: tl.constexpr,
):  # fmt: skip
    """Return a model's deviations in a row, not yet scaled; a constant model has two losses by column in `losses`."""
    survival = read_model(row, width, lower, mix, edge, local, n_columns, wanted, DIRECT, CONSTANT)
    return deviations(survival, losses, clip, edge + local, n_columns, factors, event_from, centre, CONSTANT, LOSS)


@triton.jit
def read_model(row, width, lower, mix, edge, local, n_columns, wanted, DIRECT: tl.constexpr, CONSTANT: tl.constexpr):
    """Return a model's predictions in a row; nothing is read of a constant model."""
    if CONSTANT:
        return 0
    else:
        return read_cells(row, width, lower, mix, edge, local, n_columns, wanted, DIRECT)


@triton.jit
def deviations(
    survival, losses, clip, column, n_columns, factors, event_from, centre, CONSTANT: tl.constexpr, LOSS: tl.constexpr
):  # fmt: skip
    """Return what `deviate` does, of predictions that were read."""
    event = column >= event_from
    if CONSTANT:
        if_free, if_event = of_columns(losses, column, n_columns), of_columns(losses + n_columns, column, n_columns)
        own = tl.where(event, if_event, if_free)
    else:
        own = cell_losses(survival, event, clip, LOSS)
    return factors * (own - centre)


@triton.jit
def with_null(values, column, n_columns, slope, common, before, own):
    """Return a row's deviations from a null model with what estimating it adds."""
    influence = tl.where(column < before, of_columns(common, column, n_columns), own)
    return values + of_columns(slope, column, n_columns) * influence


@triton.jit
def lanes_of(WIDTH: tl.constexpr, LANES: tl.constexpr):
    """Return the numbers of columns as a table of LANES columns: sums over its rows stay in each lane's registers."""
    return tl.arange(0, WIDTH // LANES)[:, None] * LANES + tl.arange(0, LANES)[None, :]


@triton.jit
def mean_of(main, tail, of_main, of_tail, TAIL: tl.constexpr):
    """Return the weighted sum of a row."""
    parts = tl.sum(main * of_main, axis=0)
    if TAIL:
        parts += tl.sum(tail * of_tail, axis=0)
    return tl.sum(parts, axis=0)


@triton.jit
def late_mean(main, tail, of_main, of_tail, columns, more_columns, turn, TAIL: tl.constexpr):
    """Return the weighted sum of a row's second stretch."""
    main, tail = tl.where(columns >= turn, main, 0.0), tl.where(more_columns >= turn, tail, 0.0)
    return mean_of(main, tail, of_main, of_tail, TAIL)


@triton.jit(do_not_specialize_on_alignment=BY_COLUMN)
def second_moments(
    matrix_a, width_a, lower_a, mix_a, matrix_b, width_b, lower_b, mix_b, losses_b, epsilon,
    label, first, last, weight, early, centre_a, centre_b, averages, whole_means, late_means,
    slope, common, before, own, of_free, of_rest, n_rows, n_columns, rows_per_program, out, of_means,
    ALL_LAST: tl.constexpr, ONE: tl.constexpr, DIRECT_A: tl.constexpr, DIRECT_B: tl.constexpr,
    CONSTANT: tl.constexpr, NULL: tl.constexpr, AVERAGES: tl.constexpr, STORED: tl.constexpr, SQUARED: tl.constexpr,
    LOSS: tl.constexpr, ROWS: tl.constexpr, MAIN: tl.constexpr, TAIL: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Add up squared deviations of two models and of their difference; (programs, 3, columns).

    Deviations are not yet multiplied by the scale of their column. The second model may be constant; with NULL, what
    estimating it adds is part of its squares. Of everybody's means over time, AVERAGES of them, the squares are added
    up in the same way, (programs, 3, SQUARED), a power of two; those from STORED on are also stored, whole and of the
    second stretch, without what estimating the null model adds: (models, averages, rows).
    """
    program = tl.program_id(0)
    main, tail = lanes_of(MAIN, LANES), lanes_of(TAIL if TAIL else LANES, LANES)
    tail_columns = MAIN + tail
    clip = tl.load(epsilon)
    shift_a, shift_b = first_column(lower_a, DIRECT_A), first_column(lower_b, DIRECT_B)
    early_main, early_tail = of_columns(early, main, n_columns), of_columns(early, tail_columns, n_columns)
    centred_a, centred_tail_a = of_columns(centre_a, main, n_columns), of_columns(centre_a, tail_columns, n_columns)
    centred_b, centred_tail_b = of_columns(centre_b, main, n_columns), of_columns(centre_b, tail_columns, n_columns)
    average, average_tail = of_columns(averages, main, n_columns), of_columns(averages, tail_columns, n_columns)
    of_a = tl.zeros((MAIN // LANES, LANES), dtype=tl.float64)
    of_b, of_both = of_a, of_a
    more_a = tl.zeros(((TAIL if TAIL else LANES) // LANES, LANES), dtype=tl.float64)
    more_b, more_both, tail_a, tail_b = more_a, more_a, more_a, more_a
    places = tl.arange(0, SQUARED)
    means_a = tl.zeros((SQUARED,), dtype=tl.float64)
    means_b, means_both = means_a, means_a
    begin = program.to(tl.int64) * rows_per_program
    left = tl.minimum(n_rows - begin, rows_per_program).to(tl.int32)
    for start in range(0, left, ROWS):
        for r in tl.static_range(ROWS):
            inside = start + r < left
            row = begin + start + r
            turn = of_row(first, row, inside, False)
            stop = of_row(last, row, inside, ALL_LAST) * inside.to(tl.int32)
            length = tl.maximum(stop - turn, 0)
            stop = tl.maximum(stop, turn)
            w = of_row(weight, row, inside, ONE)
            event_from = tl.where(of_row(label, row, inside, False) != 0, turn, NEVER)
            factors = tl.where(main < turn, early_main, weight_where(within(main - turn, length), w, ONE))
            if TAIL:
                since = tail_columns - turn
                more_factors = tl.where(since < 0, early_tail, weight_where(within(since, length), w, ONE))
            at_a = matrix_a + row * width_a + shift_a
            a = deviate(
                at_a, width_a, lower_a, mix_a, losses_b, clip, 0, main, n_columns, main < stop, factors, event_from,
                centred_a, DIRECT_A, False, LOSS,
            )  # fmt: skip
            of_a += a * a
            if TAIL:
                tail_a = deviate(
                    at_a, width_a, lower_a, mix_a, losses_b, clip, MAIN, tail, n_columns, tail_columns < stop,
                    more_factors, event_from, centred_tail_a, DIRECT_A, False, LOSS,
                )  # fmt: skip
                more_a += tail_a * tail_a
            at_b = matrix_b + row * width_b + shift_b
            b = deviate(
                at_b, width_b, lower_b, mix_b, losses_b, clip, 0, main, n_columns, main < stop, factors,
                event_from, centred_b, DIRECT_B, CONSTANT, LOSS,
            )  # fmt: skip
            whole = b
            if NULL:
                event_at = of_row(before, row, inside, False)
                after = of_row(own, row, inside, False)
                whole = tl.where(inside, with_null(b, main, n_columns, slope, common, event_at, after), 0.0)
            of_b += whole * whole
            of_both += (a - whole) * (a - whole)
            if TAIL:
                tail_b = deviate(
                    at_b, width_b, lower_b, mix_b, losses_b, clip, MAIN, tail, n_columns, tail_columns < stop,
                    more_factors, event_from, centred_tail_b, DIRECT_B, CONSTANT, LOSS,
                )  # fmt: skip
                whole_tail = tail_b
                if NULL:
                    whole_tail = tl.where(
                        inside, with_null(tail_b, tail_columns, n_columns, slope, common, event_at, after), 0.0
                    )
                more_b += whole_tail * whole_tail
                more_both += (tail_a - whole_tail) * (tail_a - whole_tail)
            for k in tl.static_range(AVERAGES):
                weights, more_weights = average, average_tail
                if k > 0:
                    weights = of_columns(averages + k * n_columns, main, n_columns)
                    more_weights = of_columns(averages + k * n_columns, tail_columns, n_columns)
                mean_a = mean_of(a, tail_a, weights, more_weights, TAIL)
                means_a += tl.where(places == k, mean_a * mean_a, 0.0)
                at = (k - STORED) * tl.cast(n_rows, tl.int64) + row
                if k >= STORED:
                    late = late_mean(a, tail_a, weights, more_weights, main, tail_columns, turn, TAIL)
                    tl.store(whole_means + at, mean_a, mask=inside)
                    tl.store(late_means + at, late, mask=inside)
                mean_b = mean_of(b, tail_b, weights, more_weights, TAIL)
                if k >= STORED:
                    at += (AVERAGES - STORED) * tl.cast(n_rows, tl.int64)
                    late = late_mean(b, tail_b, weights, more_weights, main, tail_columns, turn, TAIL)
                    tl.store(whole_means + at, mean_b, mask=inside)
                    tl.store(late_means + at, late, mask=inside)
                if NULL:
                    cell = k * (n_columns + 1) + event_at
                    moved = tl.load(of_free + cell) + tl.load(of_rest + cell) * after
                    mean_b += tl.where(inside, moved, 0.0)
                means_b += tl.where(places == k, mean_b * mean_b, 0.0)
                means_both += tl.where(places == k, (mean_a - mean_b) * (mean_a - mean_b), 0.0)
    place = program.to(tl.int64) * 3
    store_columns(out, place, of_a, main, n_columns)
    tl.store(of_means + place * SQUARED + places, means_a)
    if TAIL:
        store_columns(out, place, more_a, tail_columns, n_columns)
    store_columns(out, place + 1, of_b, main, n_columns)
    store_columns(out, place + 2, of_both, main, n_columns)
    tl.store(of_means + (place + 1) * SQUARED + places, means_b)
    tl.store(of_means + (place + 2) * SQUARED + places, means_both)
    if TAIL:
        store_columns(out, place + 1, more_b, tail_columns, n_columns)
        store_columns(out, place + 2, more_both, tail_columns, n_columns)


@triton.jit
def add_run(
    ahead_a, linear_a, square_a, ahead_b, linear_b, square_b, square_both, survival_a, survival_b, losses_b, clip,
    column, n_columns, turn, length, w, event_from, centre_a, centre_b, behind, step,
    ONE: tl.constexpr, TWO: tl.constexpr, CONSTANT: tl.constexpr, LOSS: tl.constexpr,
):  # fmt: skip
    """Return the sums of a run to which an individual is added."""
    factors = weight_where(within(column - turn, length), w, ONE)
    a = deviations(survival_a, losses_b, clip, column, n_columns, factors, event_from, centre_a, False, LOSS)
    ahead_a += a
    linear_a += behind * a
    square_a += step * ahead_a * ahead_a
    if TWO:
        b = deviations(survival_b, losses_b, clip, column, n_columns, factors, event_from, centre_b, CONSTANT, LOSS)
        ahead_b += b
        linear_b += behind * b
        square_b += step * ahead_b * ahead_b
        square_both += step * (ahead_a - ahead_b) * (ahead_a - ahead_b)
    return ahead_a, linear_a, square_a, ahead_b, linear_b, square_b, square_both


@triton.jit
def ordered_row(
    order, label, first, last, weight, steps, base, at, inside, ALL_LAST: tl.constexpr, ONE: tl.constexpr
):  # fmt: skip
    """Return an individual's row, its second stretch and weight, its event, and the steps behind and of its time."""
    row = tl.load(order + at, mask=inside, other=0).to(tl.int64)
    turn = of_row(first, at, inside, False)
    length = tl.maximum(of_row(last, at, inside, ALL_LAST) * inside.to(tl.int32) - turn, 0)
    w = of_row(weight, at, inside, ONE)
    event_from = tl.where(of_row(label, at, inside, False) != 0, turn, NEVER)
    so_far = tl.load(steps + at, mask=inside, other=0.0)
    step = so_far - tl.load(steps + at + 1, mask=inside, other=0.0)
    return row, turn, length, w, event_from, so_far - base, step  # times deviations that are 0, after the last


@triton.jit
def store_run(out, place, columns, n_columns, ahead_a, linear_a, square_a, ahead_b, linear_b, square_b, square_both,
              TWO: tl.constexpr):  # fmt: skip
    """Store the sums of a run."""
    store_columns(out, place, ahead_a, columns, n_columns)
    store_columns(out, place + 1, linear_a, columns, n_columns)
    store_columns(out, place + 2, square_a, columns, n_columns)
    if TWO:
        store_columns(out, place + 3, ahead_b, columns, n_columns)
        store_columns(out, place + 4, linear_b, columns, n_columns)
        store_columns(out, place + 5, square_b, columns, n_columns)
        store_columns(out, place + 6, square_both, columns, n_columns)


@triton.jit(do_not_specialize_on_alignment=BY_COLUMN)
def add_runs(
    matrix_a, width_a, lower_a, mix_a, matrix_b, width_b, lower_b, mix_b, losses_b, epsilon,
    label, first, last, weight, centre_a, centre_b, order, steps, n_ordered, n_columns, rows_per_program, n_tiles, out,
    ALL_LAST: tl.constexpr, ONE: tl.constexpr, DIRECT_A: tl.constexpr, DIRECT_B: tl.constexpr, TWO: tl.constexpr,
    CONSTANT: tl.constexpr, LOSS: tl.constexpr, MAIN: tl.constexpr, TAIL: tl.constexpr,
):  # fmt: skip
    """Add up runs of individuals in their second stretch, from the latest time to the earliest, one run a program.

    With m(s) the sum of the deviations (not yet scaled) of those of the run with a time after s: the sum of all, the
    sum over s of step(s) m(s), and of step(s) m(s)^2, for the first model, the second and their difference; (runs, 3 or
    7, columns). All vectors are in that order; `steps` has the running sum of the steps up to each individual's time,
    and 0 after the last. Predictions, which lie anywhere, are read one individual ahead.
    """
    run = tl.program_id(0) // n_tiles
    edge = (tl.program_id(0) % n_tiles) * (MAIN + TAIL)
    main = tl.arange(0, MAIN)
    clip = tl.load(epsilon)
    shift_a, shift_b = first_column(lower_a, DIRECT_A), first_column(lower_b, DIRECT_B)
    x = tl.zeros((MAIN,), dtype=tl.float64)
    ahead_a, linear_a, square_a, ahead_b, linear_b, square_b, square_both = x, x, x, x, x, x, x
    centred_a = of_columns(centre_a, edge + main, n_columns)
    centred_b = of_columns(centre_b, edge + main, n_columns)
    begin = run.to(tl.int64) * rows_per_program
    left = tl.minimum(n_ordered - begin, rows_per_program).to(tl.int32)
    base = tl.load(steps + begin + left)
    # what is read of the second model: nothing, if there is none
    UNREAD: tl.constexpr = CONSTANT or not TWO
    row, turn, length, w, event_from, behind, step = ordered_row(
        order, label, first, last, weight, steps, base, begin, left > 0, ALL_LAST, ONE
    )
    wanted = within(edge + main - turn, length)
    at_a, at_b = matrix_a + row * width_a + shift_a, matrix_b + row * width_b + shift_b
    survival_a = read_model(at_a, width_a, lower_a, mix_a, edge, main, n_columns, wanted, DIRECT_A, False)
    survival_b = read_model(at_b, width_b, lower_b, mix_b, edge, main, n_columns, wanted, DIRECT_B, UNREAD)
    if TAIL:
        tail = tl.arange(0, TAIL)
        y = tl.zeros((TAIL,), dtype=tl.float64)
        more_a, more_linear_a, more_square_a, more_b, more_linear_b, more_square_b, more_both = y, y, y, y, y, y, y
        more_centred_a = of_columns(centre_a, edge + MAIN + tail, n_columns)
        more_centred_b = of_columns(centre_b, edge + MAIN + tail, n_columns)
        wanted = within(edge + MAIN + tail - turn, length)
        tail_a = read_model(at_a, width_a, lower_a, mix_a, edge + MAIN, tail, n_columns, wanted, DIRECT_A, False)
        tail_b = read_model(at_b, width_b, lower_b, mix_b, edge + MAIN, tail, n_columns, wanted, DIRECT_B, UNREAD)
    next_row, next_turn, next_length, next_w, next_event_from, next_behind, next_step = ordered_row(
        order, label, first, last, weight, steps, base, begin + 1, left > 1, ALL_LAST, ONE
    )
    for r in range(left):
        after_row, after_turn, after_length, after_w, after_event_from, after_behind, after_step = ordered_row(
            order, label, first, last, weight, steps, base, begin + r + 2, r + 2 < left, ALL_LAST, ONE
        )
        at_a, at_b = matrix_a + next_row * width_a + shift_a, matrix_b + next_row * width_b + shift_b
        wanted = within(edge + main - next_turn, next_length)
        next_a = read_model(at_a, width_a, lower_a, mix_a, edge, main, n_columns, wanted, DIRECT_A, False)
        next_b = read_model(at_b, width_b, lower_b, mix_b, edge, main, n_columns, wanted, DIRECT_B, UNREAD)
        if TAIL:
            wanted = within(edge + MAIN + tail - next_turn, next_length)
            next_tail_a = read_model(
                at_a, width_a, lower_a, mix_a, edge + MAIN, tail, n_columns, wanted, DIRECT_A, False
            )
            next_tail_b = read_model(
                at_b, width_b, lower_b, mix_b, edge + MAIN, tail, n_columns, wanted, DIRECT_B, UNREAD
            )
        ahead_a, linear_a, square_a, ahead_b, linear_b, square_b, square_both = add_run(
            ahead_a, linear_a, square_a, ahead_b, linear_b, square_b, square_both, survival_a, survival_b, losses_b,
            clip, edge + main, n_columns, turn, length, w, event_from, centred_a, centred_b, behind, step,
            ONE, TWO, CONSTANT, LOSS,
        )  # fmt: skip
        survival_a, survival_b = next_a, next_b
        if TAIL:
            more_a, more_linear_a, more_square_a, more_b, more_linear_b, more_square_b, more_both = add_run(
                more_a, more_linear_a, more_square_a, more_b, more_linear_b, more_square_b, more_both, tail_a, tail_b,
                losses_b, clip, edge + MAIN + tail, n_columns, turn, length, w, event_from, more_centred_a,
                more_centred_b, behind, step, ONE, TWO, CONSTANT, LOSS,
            )  # fmt: skip
            tail_a, tail_b = next_tail_a, next_tail_b
        turn, length, w, event_from = next_turn, next_length, next_w, next_event_from
        behind, step = next_behind, next_step
        next_row, next_turn, next_length, next_w = after_row, after_turn, after_length, after_w
        next_event_from, next_behind, next_step = after_event_from, after_behind, after_step
    place = run.to(tl.int64) * (7 if TWO else 3)
    store_run(out, place, edge + main, n_columns, ahead_a, linear_a, square_a, ahead_b, linear_b, square_b,
              square_both, TWO)  # fmt: skip
    if TAIL:
        store_run(out, place, edge + MAIN + tail, n_columns, more_a, more_linear_a, more_square_a, more_b,
                  more_linear_b, more_square_b, more_both, TWO)  # fmt: skip


@triton.jit(do_not_specialize_on_alignment=BY_COLUMN)
def group_moments(
    matrix_a, width_a, lower_a, mix_a, matrix_b, width_b, lower_b, mix_b, losses_b, epsilon,
    label, first, last, weight, early, centre_a, centre_b, averages, order, starts, n_groups, n_columns,
    groups_per_program, out, of_means,
    ALL_LAST: tl.constexpr, ONE: tl.constexpr, DIRECT_A: tl.constexpr, DIRECT_B: tl.constexpr, TWO: tl.constexpr,
    CONSTANT: tl.constexpr, AVERAGES: tl.constexpr, SQUARED: tl.constexpr, LOSS: tl.constexpr,
    MAIN: tl.constexpr, TAIL: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Add up the squares of `second_moments` for groups of individuals, whose deviations are summed before."""
    program = tl.program_id(0)
    main, tail = lanes_of(MAIN, LANES), lanes_of(TAIL if TAIL else LANES, LANES)
    tail_columns = MAIN + tail
    clip = tl.load(epsilon)
    shift_a, shift_b = first_column(lower_a, DIRECT_A), first_column(lower_b, DIRECT_B)
    early_main, early_tail = of_columns(early, main, n_columns), of_columns(early, tail_columns, n_columns)
    centred_a, centred_tail_a = of_columns(centre_a, main, n_columns), of_columns(centre_a, tail_columns, n_columns)
    centred_b, centred_tail_b = of_columns(centre_b, main, n_columns), of_columns(centre_b, tail_columns, n_columns)
    nothing = tl.zeros((MAIN // LANES, LANES), dtype=tl.float64)
    no_more = tl.zeros(((TAIL if TAIL else LANES) // LANES, LANES), dtype=tl.float64)
    of_a, of_b, of_both, more_a, more_b, more_both = nothing, nothing, nothing, no_more, no_more, no_more
    places = tl.arange(0, SQUARED)
    means_a = tl.zeros((SQUARED,), dtype=tl.float64)
    means_b, means_both = means_a, means_a
    begin = program * groups_per_program
    for group in range(begin, tl.minimum(begin + groups_per_program, n_groups)):
        a, b, tail_a, tail_b = nothing, nothing, no_more, no_more
        for at in range(tl.load(starts + group), tl.load(starts + group + 1)):
            row = tl.load(order + at).to(tl.int64)
            turn, stop = tl.load(first + row), of_row(last, row, True, ALL_LAST)
            length = tl.maximum(stop - turn, 0)
            stop = tl.maximum(stop, turn)
            w = of_row(weight, row, True, ONE)
            event_from = tl.where(tl.load(label + row) != 0, turn, NEVER)
            factors = tl.where(main < turn, early_main, weight_where(within(main - turn, length), w, ONE))
            since = tail_columns - turn
            more_factors = tl.where(since < 0, early_tail, weight_where(within(since, length), w, ONE))
            at_a, at_b = matrix_a + row * width_a + shift_a, matrix_b + row * width_b + shift_b
            a += deviate(
                at_a, width_a, lower_a, mix_a, losses_b, clip, 0, main, n_columns, main < stop, factors, event_from,
                centred_a, DIRECT_A, False, LOSS,
            )  # fmt: skip
            if TAIL:
                tail_a += deviate(
                    at_a, width_a, lower_a, mix_a, losses_b, clip, MAIN, tail, n_columns, tail_columns < stop,
                    more_factors, event_from, centred_tail_a, DIRECT_A, False, LOSS,
                )  # fmt: skip
            if TWO:
                b += deviate(
                    at_b, width_b, lower_b, mix_b, losses_b, clip, 0, main, n_columns, main < stop, factors,
                    event_from, centred_b, DIRECT_B, CONSTANT, LOSS,
                )  # fmt: skip
                if TAIL:
                    tail_b += deviate(
                        at_b, width_b, lower_b, mix_b, losses_b, clip, MAIN, tail, n_columns, tail_columns < stop,
                        more_factors, event_from, centred_tail_b, DIRECT_B, CONSTANT, LOSS,
                    )  # fmt: skip
        of_a += a * a
        more_a += tail_a * tail_a
        if TWO:
            of_b += b * b
            more_b += tail_b * tail_b
            of_both += (a - b) * (a - b)
            more_both += (tail_a - tail_b) * (tail_a - tail_b)
        for k in tl.static_range(AVERAGES):
            weights = of_columns(averages + k * n_columns, main, n_columns)
            more_weights = of_columns(averages + k * n_columns, tail_columns, n_columns)
            mean_a = mean_of(a, tail_a, weights, more_weights, TAIL)
            means_a += tl.where(places == k, mean_a * mean_a, 0.0)
            if TWO:
                mean_b = mean_of(b, tail_b, weights, more_weights, TAIL)
                means_b += tl.where(places == k, mean_b * mean_b, 0.0)
                means_both += tl.where(places == k, (mean_a - mean_b) * (mean_a - mean_b), 0.0)
    place = program.to(tl.int64) * 3
    store_columns(out, place, of_a, main, n_columns)
    store_columns(out, place + 1, of_b, main, n_columns)
    store_columns(out, place + 2, of_both, main, n_columns)
    if TAIL:
        store_columns(out, place, more_a, tail_columns, n_columns)
        store_columns(out, place + 1, more_b, tail_columns, n_columns)
        store_columns(out, place + 2, more_both, tail_columns, n_columns)
    tl.store(of_means + place * SQUARED + places, means_a)
    tl.store(of_means + (place + 1) * SQUARED + places, means_b)
    tl.store(of_means + (place + 2) * SQUARED + places, means_both)
