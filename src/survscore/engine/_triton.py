"""Triton's kernels: sums over the rows of predictions on a device, each cell read once.

With sorted evaluation times every indicator is a range of columns per individual: event-free [0, first), with the final
status [first, last). Columns lie side by side on the lanes of a program, which walks down some rows and adds up in
float64 registers; what each program adds up is added by torch afterwards, in a fixed order. No cell outside both ranges
is read. A row is cut into two tiles, MAIN and TAIL columns wide (powers of two; TAIL may be 0), so that 150 columns
take 160 lanes and not 256. Vectors that are the same number for everybody have stride 0.

Imported only where Triton is installed. The functions that start these kernels are in `tensor_kernels`.
"""

from __future__ import annotations

import triton
import triton.language as tl

BRIER = tl.constexpr(0)
LOG = tl.constexpr(1)
NEVER = tl.constexpr(1 << 30)  # a column that no row has
ROOT_HALF = tl.constexpr(0x3FE6A09E)  # the upper half of the square root of 1/2, in bits
LN2_HIGH = tl.constexpr(6.93147180369123816490e-01)  # of few digits, so that multiples of it are exact
LN2_LOW = tl.constexpr(1.90821492927058770002e-10)
#: Vectors over columns. If these were known to be aligned, lanes would take two columns each, of the matrix as well.
BY_COLUMN = ["mix", "mix_a", "mix_b", "losses_b", "early", "centre", "centre_a", "centre_b", "averages", "slope",
             "common", "out"]  # fmt: skip


@triton.jit
def first_column(lower, DIRECT: tl.constexpr):
    """Return where the columns that are read begin, if they are the row's own; known only now, or lanes would take two
    columns each, for the sake of alignment.
    """  # noqa: D205
    return tl.load(lower) if DIRECT else 0


@triton.jit
def read_cells(row, width, lower, mix, edge, local, n_columns, wanted, DIRECT: tl.constexpr):
    """Return the predictions of a row at the evaluation times `edge` + `local`; see `reading.Reading`.

    DIRECT: these are the row's own columns, from `first_column` on, where `row` begins then; as they are stored.
    """
    if DIRECT:
        return tl.load(row + edge + local, mask=wanted, other=0.0)
    else:
        known = edge + local < n_columns
        offset = tl.load(lower + edge + local, mask=known, other=0)
        share = tl.load(mix + edge + local, mask=known, other=0.0)
        left = tl.load(row + tl.maximum(offset, 0), mask=wanted, other=0.0).to(tl.float64)
        right = tl.load(row + tl.minimum(offset + 1, width - 1), mask=wanted, other=0.0).to(tl.float64)
        left = tl.where(offset < 0, 1.0, left)
        return (1.0 - share) * left + share * right


@triton.jit
def of_row(vector, row, inside, REPEATED: tl.constexpr):
    """Return a vector's value of a row; one value may stand for all."""
    if REPEATED:
        return tl.load(vector)
    else:
        return tl.load(vector + row, mask=inside, other=0)


@triton.jit
def of_rows(vector, begin, rows, inside, REPEATED: tl.constexpr):
    """Return a vector's values of some rows, counted from `begin`; one value may stand for all."""
    if REPEATED:
        return tl.where(inside, tl.load(vector), 0)
    else:
        return tl.load(vector + begin + rows, mask=inside, other=0)


@triton.jit
def of_columns(vector, columns, n_columns):
    """Return a vector's values of some columns."""
    return tl.load(vector + columns, mask=columns < n_columns, other=0.0)


@triton.jit
def natural_log(x):
    """Return the logarithm of normal float64 numbers; as `_kernels._log`, with the quotient by Newton's steps.

    x = 2^k m with m in [sqrt(1/2), sqrt(2)), log m = 2 artanh(s), s = (m - 1)/(m + 1), |s| < 0.172.
    """
    bits = x.to(tl.int64, bitcast=True)
    k = ((bits >> 32).to(tl.int32) - ROOT_HALF) >> 20
    m = (bits - (k.to(tl.int64) << 52)).to(tl.float64, bitcast=True)
    divisor = m + 1.0
    inverse = (1.0 / divisor.to(tl.float32)).to(tl.float64)
    inverse = inverse * (2.0 - divisor * inverse)
    inverse = inverse * (2.0 - divisor * inverse)
    s = (m - 1.0) * inverse
    s = s + inverse * ((m - 1.0) - s * divisor)
    z = s * s
    tail = z * (1.0 / 21.0) + 1.0 / 19.0
    tail = tail * z + 1.0 / 17.0
    tail = tail * z + 1.0 / 15.0
    tail = tail * z + 1.0 / 13.0
    tail = tail * z + 1.0 / 11.0
    tail = tail * z + 1.0 / 9.0
    tail = tail * z + 1.0 / 7.0
    tail = tail * z + 1.0 / 5.0
    tail = tail * z + 1.0 / 3.0
    twice = s + s
    exponent = k.to(tl.float64)
    return exponent * LN2_HIGH + (exponent * LN2_LOW + twice * z * tail + twice)


@triton.jit
def cell_losses(survival, event, clip, LOSS: tl.constexpr):
    """Return what predictions cost, given who has had the event: one formula for both, with nothing computed twice."""
    survival = survival.to(tl.float64)
    if LOSS == BRIER:
        off = tl.where(event, 0.0, 1.0).to(tl.float64) - survival
        return off * off
    else:
        clipped = tl.minimum(tl.maximum(survival, clip), 1.0 - clip)
        return -natural_log(tl.where(event, 1.0 - clipped, clipped))


@triton.jit
def ones_where(condition):
    """Return 1 or 0 as a factor: half a selection of float64, which is two registers."""
    return tl.where(condition, 1.0, 0.0).to(tl.float64)


@triton.jit
def within(since, length):
    """Return where 0 <= since < length, by one comparison."""
    return since.to(tl.uint32, bitcast=True) < length.to(tl.uint32)


@triton.jit
def weight_where(condition, weight, ONE: tl.constexpr):
    """Return a row's weight where a condition holds, else 0."""
    if ONE:
        return ones_where(condition)
    else:
        return tl.where(condition, weight, 0.0)


@triton.jit
def row_vectors(
    label, first_a, last_a, weight_a, first_b, last_b, weight_b, row, inside,
    TWO: tl.constexpr, SAME_FIRST: tl.constexpr, ALL_LAST_A: tl.constexpr, ONE_A: tl.constexpr,
    ALL_LAST_B: tl.constexpr, ONE_B: tl.constexpr,
):  # fmt: skip
    """Return what is known of a row beside its predictions: stretches, weights, the event, and how far it is read."""
    turn_a = of_row(first_a, row, inside, False)
    stop = of_row(last_a, row, inside, ALL_LAST_A) * inside.to(tl.int32)
    length_a = tl.maximum(stop - turn_a, 0)
    w_a = of_row(weight_a, row, inside, ONE_A)
    turn_b, length_b, w_b, turn = turn_a, length_a, w_a, turn_a
    if TWO:
        if not SAME_FIRST:
            turn_b = of_row(first_b, row, inside, False)
            turn = tl.maximum(turn_a, turn_b)  # who is not counted from its event on has an earlier one
        stop_b = of_row(last_b, row, inside, ALL_LAST_B) * inside.to(tl.int32)
        length_b = tl.maximum(stop_b - turn_b, 0)
        stop = tl.maximum(stop, stop_b)
        w_b = of_row(weight_b, row, inside, ONE_B)
    stop = tl.maximum(stop, turn)  # which is at most the number of columns
    event_from = tl.where(of_row(label, row, inside, False) != 0, turn, NEVER)
    return turn_a, length_a, w_a, turn_b, length_b, w_b, event_from, stop


@triton.jit
def add_losses(
    early_a, late_a, early_b, late_b, row, width, lower, mix, clip, edge, local, n_columns, turn_a, length_a, weight_a,
    turn_b, length_b, weight_b, event_from, stop,
    DIRECT: tl.constexpr, LOSS: tl.constexpr, TWO: tl.constexpr, SAME_FIRST: tl.constexpr, ONE_A: tl.constexpr,
    ONE_B: tl.constexpr,
):  # fmt: skip
    """Return four sums by column to which the losses of a row are added."""
    column = edge + local
    survival = read_cells(row, width, lower, mix, edge, local, n_columns, column < stop, DIRECT)
    loss = cell_losses(survival, column >= event_from, clip, LOSS)
    since = column - turn_a
    early_a += ones_where(since < 0) * loss
    late_a += weight_where(within(since, length_a), weight_a, ONE_A) * loss
    if TWO:
        if not SAME_FIRST:
            since = column - turn_b
            early_b += ones_where(since < 0) * loss
        late_b += weight_where(within(since, length_b), weight_b, ONE_B) * loss
    return early_a, late_a, early_b, late_b


@triton.jit
def store_columns(out, place, values, columns, n_columns):
    """Store values by column."""
    tl.store(out + place * n_columns + columns, values, mask=columns < n_columns)


@triton.jit
def store_losses(out, place, early_a, late_a, early_b, late_b, columns, n_columns, TWO: tl.constexpr,
                 SAME_FIRST: tl.constexpr):  # fmt: skip
    """Store the sums by column of one weighting or two."""
    store_columns(out, place, early_a, columns, n_columns)
    store_columns(out, place + 1, late_a, columns, n_columns)
    if TWO:
        if SAME_FIRST:
            store_columns(out, place + 2, early_a, columns, n_columns)
        else:
            store_columns(out, place + 2, early_b, columns, n_columns)
        store_columns(out, place + 3, late_b, columns, n_columns)


@triton.jit(do_not_specialize_on_alignment=BY_COLUMN)
def first_moments(
    matrix, width, lower, mix, epsilon, n_rows, n_columns, rows_per_program, n_tiles, label,
    first_a, last_a, weight_a, first_b, last_b, weight_b, out,
    DIRECT: tl.constexpr, LOSS: tl.constexpr, TWO: tl.constexpr, SAME_FIRST: tl.constexpr,
    ALL_LAST_A: tl.constexpr, ONE_A: tl.constexpr, ALL_LAST_B: tl.constexpr, ONE_B: tl.constexpr,
    ROWS: tl.constexpr, MAIN: tl.constexpr, TAIL: tl.constexpr,
):  # fmt: skip
    """Add up losses by stretch, under one weighting or two: (programs, weightings, 2, columns).

    Under each weighting, losses in the first stretch without weight, and weight times loss in the second. ONE: all
    weights in the second stretch are 1. ALL_LAST: all have the same last stop.
    """
    program = tl.program_id(0) // n_tiles
    edge = (tl.program_id(0) % n_tiles) * (MAIN + TAIL)
    main = tl.arange(0, MAIN)
    clip = tl.load(epsilon)
    nothing = tl.zeros((MAIN,), dtype=tl.float64)
    early_a, late_a, early_b, late_b = nothing, nothing, nothing, nothing
    if TAIL:
        tail = tl.arange(0, TAIL)
        no_more = tl.zeros((TAIL,), dtype=tl.float64)
        more_early_a, more_late_a, more_early_b, more_late_b = no_more, no_more, no_more, no_more
    # one large number for the program, small ones within it
    begin = program.to(tl.int64) * rows_per_program
    left = tl.minimum(n_rows - begin, rows_per_program).to(tl.int32)
    cells = matrix + begin * width + first_column(lower, DIRECT)
    for start in range(0, left, ROWS):
        for r in tl.static_range(ROWS):
            inside = start + r < left
            row = begin + start + r
            turn_a, length_a, w_a, turn_b, length_b, w_b, event_from, stop = row_vectors(
                label, first_a, last_a, weight_a, first_b, last_b, weight_b, row, inside,
                TWO, SAME_FIRST, ALL_LAST_A, ONE_A, ALL_LAST_B, ONE_B,
            )  # fmt: skip
            at = cells + (start + r) * width
            early_a, late_a, early_b, late_b = add_losses(
                early_a, late_a, early_b, late_b, at, width, lower, mix, clip, edge, main, n_columns, turn_a, length_a,
                w_a, turn_b, length_b, w_b, event_from, stop, DIRECT, LOSS, TWO, SAME_FIRST, ONE_A, ONE_B,
            )  # fmt: skip
            if TAIL:
                more_early_a, more_late_a, more_early_b, more_late_b = add_losses(
                    more_early_a, more_late_a, more_early_b, more_late_b, at, width, lower, mix, clip, edge + MAIN,
                    tail, n_columns, turn_a, length_a, w_a, turn_b, length_b, w_b, event_from, stop, DIRECT, LOSS, TWO,
                    SAME_FIRST, ONE_A, ONE_B,
                )  # fmt: skip
    place = program.to(tl.int64) * (4 if TWO else 2)
    store_losses(out, place, early_a, late_a, early_b, late_b, edge + main, n_columns, TWO, SAME_FIRST)
    if TAIL:
        store_losses(
            out, place, more_early_a, more_late_a, more_early_b, more_late_b, edge + MAIN + tail, n_columns, TWO,
            SAME_FIRST,
        )  # fmt: skip


@triton.jit
def count_stretches(
    label, first, last, n_rows, rows_per_program, out,
    ALL_LAST: tl.constexpr, ROWS: tl.constexpr, BINS: tl.constexpr,
):  # fmt: skip
    """Count where stretches end: how many have each first stop, and of those who are counted with their final status
    how many have each first stop, event-free and with event, and each last stop. A table of (5, BINS) for each program.
    """  # noqa: D205
    program = tl.program_id(0)
    of_all = tl.zeros((BINS,), dtype=tl.int32)
    turns = tl.zeros((2 * BINS,), dtype=tl.int32)  # of those event-free, then of those with event
    stops = turns
    begin = program.to(tl.int64) * rows_per_program
    left = tl.minimum(n_rows - begin, rows_per_program).to(tl.int32)
    for start in range(0, left, ROWS):
        rows = start + tl.arange(0, ROWS)
        inside = rows < left
        turn = of_rows(first, begin, rows, inside, False)
        stop = of_rows(last, begin, rows, inside, ALL_LAST)
        of_status = tl.where(of_rows(label, begin, rows, inside, False) != 0, BINS, 0)
        counted = inside & (stop > turn)
        of_all += tl.histogram(turn, BINS, mask=inside)
        turns += tl.histogram(turn + of_status, 2 * BINS, mask=counted)
        if not ALL_LAST:
            stops += tl.histogram(stop + of_status, 2 * BINS, mask=counted)
    table = out + program * 5 * BINS
    tl.store(table + tl.arange(0, BINS), of_all)
    both = tl.arange(0, 2 * BINS)
    tl.store(table + BINS + both, turns)
    tl.store(table + 3 * BINS + both, stops)


@triton.jit
def add_weights(
    label, first, last, weight, n_rows, n_columns, n_copies, out, ALL_LAST: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Add up weights by where stretches end: (copies, 5, (columns + 1) squared), by first and last stop.

    Weights of those event-free, and with event; how many these are; squared weights. Programs share a few copies, so
    that they seldom meet.
    """
    rows = tl.arange(0, ROWS)
    begin = tl.program_id(0).to(tl.int64) * ROWS
    inside = rows < n_rows - begin
    turn = of_rows(first, begin, rows, inside, False)
    stop = of_rows(last, begin, rows, inside, ALL_LAST)
    has_event = of_rows(label, begin, rows, inside, False) != 0
    n_cells = (n_columns + 1) * (n_columns + 1)
    cell = out + (tl.program_id(0) % n_copies) * 5 * n_cells + turn * (n_columns + 1) + stop
    counted = inside & (stop > turn)
    w = tl.load(weight + begin + rows, mask=counted, other=0.0)
    of_status = cell + tl.where(has_event, n_cells, 0)
    tl.atomic_add(of_status, w, mask=counted, sem="relaxed")
    tl.atomic_add(of_status + 2 * n_cells, ones_where(counted), mask=counted, sem="relaxed")
    tl.atomic_add(cell + 4 * n_cells, w * w, mask=counted, sem="relaxed")


@triton.jit
def count_values(values, n, per_program, out, SIZE: tl.constexpr, BINS: tl.constexpr):
    """Count how often each number occurs, of those from 0 to BINS - 1: one table for each program."""
    program = tl.program_id(0)
    counts = tl.zeros((BINS,), dtype=tl.int32)
    begin = program.to(tl.int64) * per_program
    left = tl.minimum(n - begin, per_program).to(tl.int32)
    for start in range(0, left, SIZE):
        places = start + tl.arange(0, SIZE)
        inside = places < left
        counts += tl.histogram(tl.load(values + begin + places, mask=inside, other=0), BINS, mask=inside)
    tl.store(out + program * BINS + tl.arange(0, BINS), counts)


@triton.jit
def group_sizes(stop, order, starts, n_groups, n_columns, groups_per_program, n_tiles, out, COLUMNS: tl.constexpr):
    """Add up powers of the sizes of groups, from how many are not empty to the fifth, and the largest size.

    Members count at the columns before their `stop`; (programs, 7, columns).
    """
    program = tl.program_id(0) // n_tiles
    columns = (tl.program_id(0) % n_tiles) * COLUMNS + tl.arange(0, COLUMNS)
    number = tl.zeros((COLUMNS,), dtype=tl.float64)
    first, second, third, fourth, fifth, largest = number, number, number, number, number, number
    begin = program * groups_per_program
    for group in range(begin, tl.minimum(begin + groups_per_program, n_groups)):
        members = tl.zeros((COLUMNS,), dtype=tl.int32)
        for at in range(tl.load(starts + group), tl.load(starts + group + 1)):
            members += (columns < tl.load(stop + tl.load(order + at))).to(tl.int32)
        size = members.to(tl.float64)
        square = size * size
        number += tl.where(members > 0, 1.0, 0.0)
        first += size
        second += square
        third += square * size
        fourth += square * square
        fifth += square * square * size
        largest = tl.maximum(largest, size)
    place = program.to(tl.int64) * 7
    store_columns(out, place, number, columns, n_columns)
    store_columns(out, place + 1, first, columns, n_columns)
    store_columns(out, place + 2, second, columns, n_columns)
    store_columns(out, place + 3, third, columns, n_columns)
    store_columns(out, place + 4, fourth, columns, n_columns)
    store_columns(out, place + 5, fifth, columns, n_columns)
    store_columns(out, place + 6, largest, columns, n_columns)
