"""The loops of sorting, compiled; see `survscore._utils.sorting` for how they work together."""

from __future__ import annotations

import numpy as np

from survscore._utils.kernels import bucket_of, compiled, inlined, place_of

FEW = 24  # values that insertion puts in order as fast as anything


@compiled
def count_parts(values, chosen, splitters, starts, scale, parts, counts):
    """Note every value's part, and count the values of each: ``counts[part, chosen]``."""
    for i in range(values.size):
        part = place_of(values[i], splitters, starts, scale, True)
        parts[i] = part
        counts[part, 1 if chosen[i] else 0] += 1


@compiled
def deal_values(values, chosen, parts, places, out):
    """Put every value where its part, and whether it was chosen, have their next place."""
    for i in range(values.size):
        kind = 1 if chosen[i] else 0
        place = places[parts[i], kind]
        out[place] = values[i]
        places[parts[i], kind] = place + 1


@compiled
def sort_values(values):
    """Sort in place: values are dealt into buckets of equal width, and each is sorted by insertion or quicksort."""
    if values.size < 2:
        return
    low, high = values[0], values[0]
    for value in values:
        low, high = min(low, value), max(high, value)
    if low == high:
        return
    n_buckets = max(values.size // 4, 1)
    scale = n_buckets / (high - low)
    if np.isinf(scale):  # they hardly differ
        values.sort()
        return
    ends = np.zeros(n_buckets + 1, dtype=np.int32)
    for value in values:
        ends[bucket_of(value, low, scale, n_buckets) + 1] += 1
    for b in range(n_buckets):
        ends[b + 1] += ends[b]
    dealt = np.empty(values.size)
    for value in values:
        b = bucket_of(value, low, scale, n_buckets)
        dealt[ends[b]] = value
        ends[b] += 1
    start = 0
    for b in range(n_buckets):
        stop = ends[b]  # what was a start has moved to the end
        sort_few(dealt, start, stop)
        start = stop
    values[:] = dealt


@inlined
def sort_few(values, start, stop):
    """Sort a range of values in place; equal ones, of which whole units of time have many, cost one look."""
    if stop - start > FEW:
        low, high = values[start], values[start]
        for i in range(start + 1, stop):
            low, high = min(low, values[i]), max(high, values[i])
        if low < high:
            values[start:stop].sort()
    else:
        for i in range(start + 1, stop):
            value = values[i]
            j = i
            while j > start and values[j - 1] > value:
                values[j] = values[j - 1]
                j -= 1
            values[j] = value


@compiled
def exit_table(exits, others, others_first, n_later, times, left, at_risk):
    """Fill in the distinct `exits`, how many leave at each, and how many are at risk; return how many there are.

    Both inputs are sorted; `n_later` more come after all of them.
    """
    steps = 0
    i, k = 0, 0
    while i < exits.size:
        first = i
        while i < exits.size and exits[i] == exits[first]:
            i += 1
        while k < others.size and (others[k] < exits[first] or (others_first and others[k] == exits[first])):
            k += 1
        times[steps] = exits[first]
        left[steps] = i - first
        at_risk[steps] = exits.size - first + others.size - k + n_later
        steps += 1
    return steps


@compiled
def count_bins(bins, chosen, base, sign, shift, counts):
    """Count the chosen of each part, a range of keys ``base + sign * bin``; nobody is left out if `chosen` is empty."""
    for i in range(bins.size):
        if chosen.size == 0 or chosen[i]:
            counts[(base + sign * bins[i]) >> shift] += 1


@compiled
def deal_rows(bins, chosen, base, sign, shift, first_row, places, out):
    """Put every chosen row where its part has its next place."""
    for i in range(bins.size):
        if chosen.size == 0 or chosen[i]:
            part = (base + sign * bins[i]) >> shift
            out[places[part]] = first_row + i
            places[part] += 1


@compiled
def sort_rows(rows, bins, base, sign, shift, part, first_place, starts):
    """Sort the rows of a part in place by their keys, those of a bin in their order: a counting sort.

    If there is room for them, where the rows of each key start goes to `starts`.
    """
    first = part << shift
    ends = np.zeros((1 << shift) + 1, dtype=np.int32)
    for row in rows:
        ends[base + sign * bins[row] - first + 1] += 1
    for b in range(1 << shift):
        ends[b + 1] += ends[b]
    for b in range(min(1 << shift, starts.size - first)):
        starts[first + b] = first_place + ends[b]
    dealt = np.empty(rows.size, dtype=rows.dtype)
    for row in rows:
        b = base + sign * bins[row] - first
        dealt[ends[b]] = row
        ends[b] += 1
    rows[:] = dealt


@compiled
def count_values(values, counts):
    """Count how often each whole number occurs."""
    for value in values:
        counts[value] += 1


DIGIT = 11  # bits: the counts of a digit stay in the processor's nearest cache


@compiled
def order(keys, n_bits, positions):
    """Fill in the positions of unsigned keys in ascending order, equal ones as they come; digit by digit.

    Digits that all keys share cost nothing: whole numbers as floats have many of them.
    """
    n, n_digits, mask = keys.size, -(-n_bits // DIGIT), np.uint64((1 << DIGIT) - 1)
    counts = np.zeros((n_digits, 1 << DIGIT), dtype=np.int64)
    for i in range(n):
        key = np.uint64(keys[i])
        for d in range(n_digits):
            counts[d, (key >> np.uint64(DIGIT * d)) & mask] += 1
    for i in range(n):
        positions[i] = i
    source, target = positions, np.empty_like(positions)
    for d in range(n_digits):
        starts, shift = counts[d], np.uint64(DIGIT * d)
        if n == 0 or starts[(np.uint64(keys[0]) >> shift) & mask] == n:
            continue
        total = 0
        for digit in range(starts.size):
            here = starts[digit]
            starts[digit] = total
            total += here
        for i in range(n):
            row = source[i]
            digit = (np.uint64(keys[row]) >> shift) & mask
            target[starts[digit]] = row
            starts[digit] += 1
        source, target = target, source
    if source is not positions:
        positions[:] = source


@compiled
def deal_keys(keys, parts, first_row, places, dealt, rows):
    """Deal keys, and the rows they belong to, to their parts, from given places on."""
    for i in range(keys.size):
        place = places[parts[i]]
        dealt[place] = keys[i]
        rows[place] = first_row + i
        places[parts[i]] = place + 1


@compiled
def order_rows(keys, n_bits, rows):
    """Put rows into the ascending order of their keys, those with equal keys as they come."""
    positions = np.empty_like(rows)
    order(keys, n_bits, positions)
    given = rows.copy()
    for i in range(rows.size):
        rows[i] = given[positions[i]]


@compiled
def dense_ranks(values, positions, ranks):
    """Fill in ranks from 1 on, equal ones for equal values, from the positions in order; return the largest."""
    rank = 0
    for i in range(positions.size):
        row = positions[i]
        if i == 0 or values[row] != values[positions[i - 1]]:
            rank += 1
        ranks[row] = rank
    return rank
