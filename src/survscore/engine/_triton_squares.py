"""Triton's kernel of losses and their squares in one pass; see `_triton` for how rows and columns are laid out.

It holds so many sums that few programs run side by side, too few to wait for memory in turn: each reads a row ahead.
Imported only where Triton is installed. The function that starts the kernel is in `tensor_kernels`.
"""

from __future__ import annotations

import triton
import triton.language as tl

from survscore.engine._triton import (
    BY_COLUMN,
    cell_losses,
    first_column,
    of_columns,
    read_cells,
    row_vectors,
    store_columns,
    within,
)


@triton.jit
def add_stretches(
    early, late, early_squares, late_squares, cross, value, since, length, weight,
    OWN_FIRST: tl.constexpr, ONE: tl.constexpr,
):  # fmt: skip
    """Return one weighting's sums by column to which a row is added."""
    if OWN_FIRST:
        first = tl.where(since < 0, value, 0.0)
        early += first
        early_squares += first * first
    if ONE:
        second = tl.where(within(since, length), value, 0.0)
    else:
        factor = tl.where(within(since, length), weight, 0.0)
        second = factor * value
        cross += factor * second
    late += second
    late_squares += second * second
    return early, late, early_squares, late_squares, cross


@triton.jit
def add_row(
    early_a, late_a, early_squares_a, late_squares_a, cross_a,
    early_b, late_b, early_squares_b, late_squares_b, cross_b,
    survival, column, clip, centred, turn_a, length_a, w_a, turn_b, length_b, w_b, event_from,
    LOSS: tl.constexpr, TWO: tl.constexpr, SAME_FIRST: tl.constexpr, ONE_A: tl.constexpr, ONE_B: tl.constexpr,
):  # fmt: skip
    """Return the sums by column, of both weightings, to which a row is added."""
    value = cell_losses(survival, column >= event_from, clip, LOSS) - centred
    early_a, late_a, early_squares_a, late_squares_a, cross_a = add_stretches(
        early_a, late_a, early_squares_a, late_squares_a, cross_a, value, column - turn_a, length_a, w_a, True, ONE_A
    )
    if TWO:
        early_b, late_b, early_squares_b, late_squares_b, cross_b = add_stretches(
            early_b, late_b, early_squares_b, late_squares_b, cross_b, value, column - turn_b, length_b, w_b,
            not SAME_FIRST, ONE_B,
        )  # fmt: skip
    return (early_a, late_a, early_squares_a, late_squares_a, cross_a,
            early_b, late_b, early_squares_b, late_squares_b, cross_b)  # fmt: skip


@triton.jit
def store_sums(out, place, early, late, early_squares, late_squares, cross, columns, n_columns, ONE: tl.constexpr):
    """Store one weighting's sums by column; where all weights are 1, so are their squares."""
    store_columns(out, place, early, columns, n_columns)
    store_columns(out, place + 1, late, columns, n_columns)
    store_columns(out, place + 2, early_squares, columns, n_columns)
    store_columns(out, place + 3, late_squares, columns, n_columns)
    if ONE:
        store_columns(out, place + 4, late, columns, n_columns)
    else:
        store_columns(out, place + 4, cross, columns, n_columns)


@triton.jit(do_not_specialize_on_alignment=BY_COLUMN)
def sums_and_squares(
    matrix, width, lower, mix, epsilon, n_rows, n_columns, rows_per_program, n_tiles, label,
    first_a, last_a, weight_a, first_b, last_b, weight_b, centre, out,
    DIRECT: tl.constexpr, LOSS: tl.constexpr, TWO: tl.constexpr, SAME_FIRST: tl.constexpr,
    ALL_LAST_A: tl.constexpr, ONE_A: tl.constexpr, ALL_LAST_B: tl.constexpr, ONE_B: tl.constexpr,
    MAIN: tl.constexpr, TAIL: tl.constexpr,
):  # fmt: skip
    """Add up losses, less a number of each column, and their squares, under one weighting or two.

    (programs, weightings, 5, columns): losses in the first stretch without weight, weight times loss in the second;
    squares in the first; (weight times loss)^2 and weight^2 times loss in the second. ONE, ALL_LAST: as in
    `_triton.first_moments`.
    """
    program = tl.program_id(0) // n_tiles
    edge = (tl.program_id(0) % n_tiles) * (MAIN + TAIL)
    main = tl.arange(0, MAIN)
    clip = tl.load(epsilon)
    x = tl.zeros((MAIN,), dtype=tl.float64)
    early_a, late_a, early_squares_a, late_squares_a, cross_a = x, x, x, x, x
    early_b, late_b, early_squares_b, late_squares_b, cross_b = x, x, x, x, x
    centred = of_columns(centre, edge + main, n_columns)
    # one large number for the program, small ones within it
    begin = program.to(tl.int64) * rows_per_program
    left = tl.minimum(n_rows - begin, rows_per_program).to(tl.int32)
    cells = matrix + begin * width + first_column(lower, DIRECT)
    turn_a, length_a, w_a, turn_b, length_b, w_b, event_from, stop = row_vectors(
        label, first_a, last_a, weight_a, first_b, last_b, weight_b, begin, left > 0,
        TWO, SAME_FIRST, ALL_LAST_A, ONE_A, ALL_LAST_B, ONE_B,
    )  # fmt: skip
    survival = read_cells(cells, width, lower, mix, edge, main, n_columns, edge + main < stop, DIRECT)
    if TAIL:
        tail = tl.arange(0, TAIL)
        y = tl.zeros((TAIL,), dtype=tl.float64)
        more_early_a, more_late_a, more_early_squares_a, more_late_squares_a, more_cross_a = y, y, y, y, y
        more_early_b, more_late_b, more_early_squares_b, more_late_squares_b, more_cross_b = y, y, y, y, y
        more_centred = of_columns(centre, edge + MAIN + tail, n_columns)
        more_survival = read_cells(
            cells, width, lower, mix, edge + MAIN, tail, n_columns, edge + MAIN + tail < stop, DIRECT
        )
    (next_turn_a, next_length_a, next_w_a, next_turn_b, next_length_b, next_w_b, next_event_from,
     next_stop) = row_vectors(
        label, first_a, last_a, weight_a, first_b, last_b, weight_b, begin + 1, left > 1,
        TWO, SAME_FIRST, ALL_LAST_A, ONE_A, ALL_LAST_B, ONE_B,
    )  # fmt: skip
    for r in range(left):
        # vectors two rows ahead, predictions one
        (after_turn_a, after_length_a, after_w_a, after_turn_b, after_length_b, after_w_b, after_event_from,
         after_stop) = row_vectors(
            label, first_a, last_a, weight_a, first_b, last_b, weight_b, begin + r + 2, r + 2 < left,
            TWO, SAME_FIRST, ALL_LAST_A, ONE_A, ALL_LAST_B, ONE_B,
        )  # fmt: skip
        at = cells + (r + 1) * width
        next_survival = read_cells(at, width, lower, mix, edge, main, n_columns, edge + main < next_stop, DIRECT)
        if TAIL:
            next_more_survival = read_cells(
                at, width, lower, mix, edge + MAIN, tail, n_columns, edge + MAIN + tail < next_stop, DIRECT
            )
        (early_a, late_a, early_squares_a, late_squares_a, cross_a,
         early_b, late_b, early_squares_b, late_squares_b, cross_b) = add_row(
            early_a, late_a, early_squares_a, late_squares_a, cross_a,
            early_b, late_b, early_squares_b, late_squares_b, cross_b,
            survival, edge + main, clip, centred, turn_a, length_a, w_a, turn_b, length_b, w_b, event_from,
            LOSS, TWO, SAME_FIRST, ONE_A, ONE_B,
        )  # fmt: skip
        survival = next_survival
        if TAIL:
            (more_early_a, more_late_a, more_early_squares_a, more_late_squares_a, more_cross_a,
             more_early_b, more_late_b, more_early_squares_b, more_late_squares_b, more_cross_b) = add_row(
                more_early_a, more_late_a, more_early_squares_a, more_late_squares_a, more_cross_a,
                more_early_b, more_late_b, more_early_squares_b, more_late_squares_b, more_cross_b,
                more_survival, edge + MAIN + tail, clip, more_centred, turn_a, length_a, w_a, turn_b, length_b, w_b,
                event_from, LOSS, TWO, SAME_FIRST, ONE_A, ONE_B,
            )  # fmt: skip
            more_survival = next_more_survival
        turn_a, length_a, w_a = next_turn_a, next_length_a, next_w_a
        turn_b, length_b, w_b, event_from = next_turn_b, next_length_b, next_w_b, next_event_from
        next_turn_a, next_length_a, next_w_a = after_turn_a, after_length_a, after_w_a
        next_turn_b, next_length_b, next_w_b = after_turn_b, after_length_b, after_w_b
        next_event_from, next_stop = after_event_from, after_stop
    place = program.to(tl.int64) * (10 if TWO else 5)
    store_sums(out, place, early_a, late_a, early_squares_a, late_squares_a, cross_a, edge + main, n_columns, ONE_A)
    if TWO:
        if SAME_FIRST:
            early_b, early_squares_b = early_a, early_squares_a
        store_sums(
            out, place + 5, early_b, late_b, early_squares_b, late_squares_b, cross_b, edge + main, n_columns, ONE_B
        )
    if TAIL:
        columns = edge + MAIN + tail
        store_sums(
            out, place, more_early_a, more_late_a, more_early_squares_a, more_late_squares_a, more_cross_a, columns,
            n_columns, ONE_A,
        )  # fmt: skip
        if TWO:
            if SAME_FIRST:
                more_early_b, more_early_squares_b = more_early_a, more_early_squares_a
            store_sums(
                out, place + 5, more_early_b, more_late_b, more_early_squares_b, more_late_squares_b, more_cross_b,
                columns, n_columns, ONE_B,
            )  # fmt: skip
