"""The loops over batches of columns, compiled; see `survscore._kernels` for how they are run.

Batches come by column, so one call works on one evaluation time, and its sums stay in the processor's cache.
"""

from __future__ import annotations

import numpy as np

from survscore._kernels import _log, compiled
from survscore.scale.exact import MAGIC, MAGIC_BITS

CHUNK = 1024  # rows at a time, whose losses stay in the nearest cache
BRIER, LOG = 0, 1
LOG_SCALE = 2.0**-5  # a loss clipped at 2**-53 is at most 37: below 2 then, and its square below 4


@compiled
def add_column(
    predicted, j, kind, epsilon, first_stop, last_stop, label, segment, row, first_sums, late_sums, event_sums
):
    """Add losses, their squares and the squares of their differences at one time to sums by segment, and by row.

    `predicted` has shape (models, rows of the batch). Quantities are the losses of the models, then all pairs in the
    order of `moments.pair`; sums have shape (segments or rows of the table, quantities). Those in the first stretch go
    to `first_sums`, those in the second to `event_sums`, or, without event, to `late_sums`.
    """
    k, n = predicted.shape
    n_quantities = first_sums.shape[1]
    values = np.empty((n_quantities, CHUNK))
    whole = values.view(np.int64)
    losses = np.empty((k, CHUNK))
    in_first, in_event = np.empty(CHUNK, dtype=np.int64), np.empty(CHUNK, dtype=np.int64)
    one_row = first_sums.shape[0] == 1 and event_sums.shape[0] == 1
    for start in range(0, n, CHUNK):
        size = min(CHUNK, n - start)
        first, last = first_stop[start : start + size], last_stop[start : start + size]
        for i in range(size):
            early = j < first[i]
            in_first[i] = -np.int64(early)
            in_event[i] = -np.int64((not early) & (j < last[i]))
        for a in range(k):
            survival, loss, out = predicted[a, start : start + size], losses[a], values[a]
            if kind == BRIER:
                for i in range(size):
                    # event-free: the distance to one; with event: to zero
                    p = np.float64(survival[i]) - np.float64(in_first[i] & 1)
                    loss[i] = p * p
            else:
                for i in range(size):
                    p = min(max(np.float64(survival[i]), epsilon), 1.0 - epsilon)
                    loss[i] = -LOG_SCALE * _log(p if in_first[i] else 1.0 - p)
            for i in range(size):
                out[i] = loss[i] + MAGIC
        place = k
        for b in range(k):
            for a in range(b + 1):
                out = values[place]
                if a == b:
                    for i in range(size):
                        out[i] = losses[a, i] * losses[a, i] + MAGIC
                else:
                    for i in range(size):
                        difference = losses[a, i] - losses[b, i]
                        out[i] = difference * difference + MAGIC
                place += 1
        some_late = False
        for i in range(size):
            if in_event[i] and label[start + i] == 0:
                some_late = True
        if some_late:  # the few who are event-free in their second stretch
            for i in range(size):
                if in_event[i] and label[start + i] == 0:
                    in_event[i] = 0
                    add_late(kind, epsilon, predicted, start + i, k, late_sums[segment[start + i]])
        if one_row:
            for q in range(n_quantities):
                bits = whole[q]
                early, late = np.int64(0), np.int64(0)
                for i in range(size):
                    early += (bits[i] - MAGIC_BITS) & in_first[i]
                    late += (bits[i] - MAGIC_BITS) & in_event[i]
                first_sums[0, q] += early
                event_sums[0, q] += late
        else:
            for i in range(size):
                if in_first[i]:
                    target = first_sums[segment[start + i]]
                elif in_event[i]:
                    target = event_sums[row[start + i]]
                else:
                    continue
                for q in range(n_quantities):
                    target[q] += whole[q, i] - MAGIC_BITS


@compiled
def add_late(kind, epsilon, predicted, i, k, target):
    """Add one who is event-free in the second stretch."""
    losses = np.empty(k)
    value = np.empty(1)
    bits = value.view(np.int64)
    for a in range(k):
        survival = np.float64(predicted[a, i])
        if kind == BRIER:
            losses[a] = (1.0 - survival) * (1.0 - survival)
        else:
            losses[a] = -LOG_SCALE * _log(min(max(survival, epsilon), 1.0 - epsilon))
        value[0] = losses[a] + MAGIC
        target[a] += bits[0] - MAGIC_BITS
    place = k
    for b in range(k):
        for a in range(b + 1):
            difference = losses[a] if a == b else losses[a] - losses[b]
            value[0] = difference * difference + MAGIC
            target[place] += bits[0] - MAGIC_BITS
            place += 1


@compiled
def has_bad_column(column, previous, tolerance):
    """Whether a column has values outside [0, 1], or NaN, or more than the `previous` one, which may be empty."""
    bad = False
    for i in range(column.size):
        bad |= not (0.0 <= column[i] <= 1.0)
    if previous.size:
        for i in range(column.size):
            bad |= column[i] > previous[i] + tolerance
    return bad


@compiled
def fill_losses(predicted, j, kind, epsilon, first_stop, last_stop, label, scale, losses):
    """Fill the losses of one time, (models + 1, rows), as whole numbers: zero where not counted; last, who is."""
    k, n = predicted.shape
    for i in range(n):
        counted = j < last_stop[i]
        losses[k, i] = 1.0 if counted else 0.0
        event_free = j < first_stop[i] or label[i] == 0
        for a in range(k):
            p = np.float64(predicted[a, i])
            if kind == BRIER:
                p = 1.0 - p if event_free else p
                loss = p * p
            else:
                p = min(max(p, epsilon), 1.0 - epsilon)
                loss = -LOG_SCALE * _log(p if event_free else 1.0 - p)
            losses[a, i] = np.rint(loss * scale) if counted else 0.0
