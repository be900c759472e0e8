"""Triton's kernel of everybody's means over time: a row a lane, so that no sum crosses lanes.

Lanes that walk down rows side by side each read a part of a row of their own, for which the cache fetches a little at a
time; so rows are read in words of 8 bytes where that is possible, which are several columns each. Imported only where
Triton is installed. The function that starts the kernel is in `tensor_means`.
"""

from __future__ import annotations

import triton
import triton.language as tl

from survscore.engine._triton import NEVER, cell_losses, of_rows, within


@triton.jit
def part_of_word(word, PLACE: tl.constexpr, PER_WORD: tl.constexpr, KIND: tl.constexpr):
    """Return one of the numbers that a word holds; a word may be the number itself."""
    if PER_WORD == 1:
        return word.to(tl.float64)
    elif PER_WORD == 2:
        return (word >> (32 * PLACE)).to(tl.int32).to(KIND, bitcast=True).to(tl.float64)
    else:
        return (word >> (16 * PLACE)).to(tl.int16).to(KIND, bitcast=True).to(tl.float64)


@triton.jit
def between_columns(rows, width, lower, mix, column, n_columns, wanted):
    """Return the predictions of rows at one evaluation time that may lie between columns; see `reading.Reading`."""
    known = column < n_columns
    offset, share = tl.load(lower + column, mask=known, other=0), tl.load(mix + column, mask=known, other=0.0)
    left = tl.load(rows + tl.maximum(offset, 0), mask=wanted, other=0.0).to(tl.float64)
    right = tl.load(rows + tl.minimum(offset + 1, width - 1), mask=wanted, other=0.0).to(tl.float64)
    left = tl.where(offset < 0, 1.0, left)
    return (1.0 - share) * left + share * right


@triton.jit
def add_column(early, late, loss, column, turn, length, of_early, of_late, PLAIN: tl.constexpr):
    """Return the sums of the two stretches to which a column is added; PLAIN: of both together, in the first."""
    if PLAIN:
        early += tl.where(column < turn + length, tl.load(of_early + column), 0.0) * loss
    else:
        early += tl.where(column < turn, tl.load(of_early + column), 0.0) * loss
        late += tl.where(within(column - turn, length), tl.load(of_late + column), 0.0) * loss
    return early, late


@triton.jit
def finish_means(
    early, late, turn, length, weight, centred_early, centred_late, place, inside, whole, late_out, out, program,
    PLAIN: tl.constexpr, STORES: tl.constexpr,
):  # fmt: skip
    """Take off what the centres make of it, store the means, and add up their squares."""
    if PLAIN:
        mean = early - tl.load(centred_early + turn + length)
    else:
        centred = tl.load(centred_late + turn + length) - tl.load(centred_late + turn)
        of_second = tl.where(length > 0, weight * (late - centred), 0.0)
        mean = early - tl.load(centred_early + turn) + of_second
        if STORES:
            tl.store(whole + place, mean, mask=inside)
            tl.store(late_out + place, of_second, mask=inside)
    tl.store(out + program, tl.sum(tl.where(inside, mean * mean, 0.0), axis=0))


@triton.jit
def row_means(
    words, words_per_row, first_word, width, lower, mix, epsilon, label, n_rows, n_columns,
    first_a, last_a, weight_a, of_early_a, of_late_a, centred_early_a, centred_late_a, whole_a, late_a, out_a,
    first_b, last_b, weight_b, of_early_b, of_late_b, centred_early_b, centred_late_b, whole_b, late_b, out_b,
    DIRECT: tl.constexpr, LOSS: tl.constexpr, TWO: tl.constexpr, ALL_LAST_A: tl.constexpr, ONE_A: tl.constexpr,
    PLAIN_A: tl.constexpr, STORES_A: tl.constexpr, ALL_LAST_B: tl.constexpr, ONE_B: tl.constexpr,
    PLAIN_B: tl.constexpr, STORES_B: tl.constexpr, KIND: tl.constexpr, PER_WORD: tl.constexpr, WORDS: tl.constexpr,
    SIZE: tl.constexpr,
):  # fmt: skip
    """Add up the squares of one or two means over time of everybody's deviations, (programs,) each; store the means.

    By column, `of_early` and `of_late` are what losses are multiplied by in the first and second stretch (beside the
    individual's weight), with 0 up to a multiple of a step's columns; `centred_early` and `centred_late` have what is
    taken off, summed over all columns before each. PLAIN: everybody has
    weight 1 in both stretches; these are not stored.
    """
    program = tl.program_id(0)
    begin = program.to(tl.int64) * SIZE
    rows = tl.arange(0, SIZE)
    inside = rows < n_rows - begin
    turn_a = of_rows(first_a, begin, rows, inside, False)
    length_a = tl.maximum(of_rows(last_a, begin, rows, inside, ALL_LAST_A) - turn_a, 0)
    turn, stop, turn_b, length_b = turn_a, turn_a + length_a, turn_a, length_a
    if TWO:
        turn_b = of_rows(first_b, begin, rows, inside, False)
        length_b = tl.maximum(of_rows(last_b, begin, rows, inside, ALL_LAST_B) - turn_b, 0)
        turn = tl.maximum(turn_a, turn_b)  # who is not counted from its event on has an earlier one
        stop = tl.maximum(stop, turn_b + length_b)
    event_from = tl.where(of_rows(label, begin, rows, inside, False) != 0, turn, NEVER)
    clip = tl.load(epsilon)
    early_a = tl.zeros((SIZE,), dtype=tl.float64)
    sum_late_a, early_b, sum_late_b = early_a, early_a, early_a
    at = words + (begin + rows) * words_per_row + first_word
    for start in range(0, tl.max(stop, axis=0), WORDS * PER_WORD):
        for k in tl.static_range(WORDS):
            column = start + k * PER_WORD
            word = tl.load(at + (column // PER_WORD), mask=column < stop, other=0) if DIRECT else 0
            for place in tl.static_range(PER_WORD):
                if DIRECT:
                    survival = part_of_word(word, place, PER_WORD, KIND)
                else:
                    survival = between_columns(at, width, lower, mix, column, n_columns, column < stop)
                loss = cell_losses(survival, column + place >= event_from, clip, LOSS)
                early_a, sum_late_a = add_column(
                    early_a, sum_late_a, loss, column + place, turn_a, length_a, of_early_a, of_late_a, PLAIN_A
                )
                if TWO:
                    early_b, sum_late_b = add_column(
                        early_b, sum_late_b, loss, column + place, turn_b, length_b, of_early_b, of_late_b, PLAIN_B
                    )
    finish_means(
        early_a, sum_late_a, turn_a, length_a, of_rows(weight_a, begin, rows, inside, ONE_A), centred_early_a,
        centred_late_a, begin + rows, inside, whole_a, late_a, out_a, program, PLAIN_A, STORES_A,
    )  # fmt: skip
    if TWO:
        finish_means(
            early_b, sum_late_b, turn_b, length_b, of_rows(weight_b, begin, rows, inside, ONE_B), centred_early_b,
            centred_late_b, begin + rows, inside, whole_b, late_b, out_b, program, PLAIN_B, STORES_B,
        )  # fmt: skip
