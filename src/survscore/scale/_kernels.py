"""The loops over batches of columns, compiled; see `survscore._utils.kernels` for how they are run.

Batches come by column, so one call works on one evaluation time, and its sums stay in the processor's cache.
"""

from __future__ import annotations

import numpy as np

from survscore._utils.kernels import _log, compiled, inlined, inlined_sum

CHUNK = 2048  # rows at a time, whose losses stay in the nearest cache
BRIER, LOG = 0, 1


@inlined
def column_losses(kind, epsilon, survival, size, target, counted, loss):
    """Fill a model's losses of some rows: zero where not counted; `target` is 1 for the event-free."""
    if kind == BRIER:
        for i in range(size):
            distance = np.float64(survival[i]) - target[i]
            loss[i] = distance * distance * counted[i]
    else:
        for i in range(size):
            p = min(max(np.float64(survival[i]), epsilon), 1.0 - epsilon)
            loss[i] = -_log(p if target[i] > 0 else 1.0 - p) * counted[i]


@inlined
def chunk_losses(kind, epsilon, columns, start, size, target, counted, losses):
    """Fill the losses of all models, (models, rows)."""
    for a in range(len(columns)):
        column_losses(kind, epsilon, columns[a][start : start + size], size, target, counted, losses[a])


@inlined
def is_bad(survival, before, tolerance):
    """Whether values are outside [0, 1], or NaN, or larger than those `before`, if there are any."""
    bad = False
    for i in range(survival.size):
        bad |= not (0.0 <= survival[i] <= 1.0)
    if before.size:
        for i in range(survival.size):
            bad |= survival[i] > before[i] + tolerance
    return bad


@inlined_sum
def add_all(losses, size, sums):
    """Add losses, then squares of losses and of their differences in the order of `moments.pair`.

    A chunk is added up by itself, in several lanes, so that errors stay far below those of a plain running sum.
    """
    k = losses.shape[0]
    place = k
    for b in range(k):
        row = losses[b]
        total, squares = 0.0, 0.0
        for i in range(size):
            total += row[i]
            squares += row[i] * row[i]
        sums[b] += total
        for a in range(b):
            other = losses[a]
            differences = 0.0
            for i in range(size):
                difference = other[i] - row[i]
                differences += difference * difference
            sums[place + a] += differences
        sums[place + b] += squares
        place += b + 1


@compiled
def add_counted(columns, previous, tolerance, j, kind, epsilon, first_stop, last_stop, label, segment, sums, kept):
    """Add the losses of all who are counted at one time, whatever their status, to sums by segment.

    `label` is 1 for the event, 0 without, and -1 for an event of another cause: weighted as an event, since follow-up
    ended by one, and scored as none.
    `columns` has the predictions of every model, and `previous` those of the time before; it is returned whether some
    are no survival (see `is_bad`). `sums` has shape (segments, quantities): losses of models, then squares of pairs.
    Rows come segment by segment. If there is room in `kept`, (models + 1, rows), it is filled with the losses, zero
    where not counted; and last, with who is.
    """
    k, n = len(columns), first_stop.size
    target, counted, losses = np.empty(CHUNK), np.empty(CHUNK), np.empty((k, CHUNK))
    start, bad = 0, False
    while start < n:
        here = segment[start]
        stop = n if segment[n - 1] == here else np.searchsorted(segment, here, side="right")
        while start < stop:
            size = min(CHUNK, stop - start)
            first, last = first_stop[start : start + size], last_stop[start : start + size]
            status = label[start : start + size]
            for i in range(size):
                target[i] = 1.0 if (j < first[i]) | (status[i] <= 0) else 0.0
                counted[i] = 1.0 if j < last[i] else 0.0
            for a in range(k):
                survival, before = columns[a][start : start + size], previous[a][start : start + size]
                bad |= is_bad(survival, before, tolerance)
                column_losses(kind, epsilon, survival, size, target, counted, losses[a])
            add_all(losses, size, sums[here])
            if kept.shape[1]:
                for a in range(k):
                    row, filled = losses[a], kept[a, start : start + size]
                    for i in range(size):
                        filled[i] = row[i]
                filled = kept[k, start : start + size]
                for i in range(size):
                    filled[i] = counted[i]
            start += size
    return bad


@compiled
def add_stretches(
    columns, j, kind, epsilon, first_stop, last_stop, label, segment, row, first_sums, late_sums, event_sums
):
    """Add losses at one time to sums by segment, and with event by row: segment and bin.

    Those in the first stretch go to `first_sums`, those in the second to `event_sums`, or, without event, to
    `late_sums`; see `add_counted`. Rows come segment by segment, bin by bin.
    """
    k, n = len(columns), first_stop.size
    target, counted, losses = np.empty(CHUNK), np.empty(CHUNK), np.empty((k, CHUNK))
    start = 0
    while start < n:
        here = segment[start]
        stop = n if segment[n - 1] == here else np.searchsorted(segment, here, side="right")
        while start < stop:
            size = min(CHUNK, stop - start)
            first, last = first_stop[start : start + size], last_stop[start : start + size]
            status, place = label[start : start + size], row[start : start + size]
            in_second = 0
            for i in range(size):
                target[i] = 1.0
                counted[i] = 1.0 if j < first[i] else 0.0
                in_second += (j >= first[i]) & (j < last[i])
            if in_second < size:
                chunk_losses(kind, epsilon, columns, start, size, target, counted, losses)
                add_all(losses, size, first_sums[here])
            if in_second:
                late = 0
                for i in range(size):
                    second = (j >= first[i]) & (j < last[i])
                    target[i] = 1.0 if status[i] < 0 else 0.0
                    counted[i] = 1.0 if second & (status[i] != 0) else 0.0
                    late += second & (status[i] == 0)
                chunk_losses(kind, epsilon, columns, start, size, target, counted, losses)
                i = 0
                while i < size:  # bin by bin
                    end = i + 1
                    while end < size and place[end] == place[i]:
                        end += 1
                    add_all(losses[:, i:end], end - i, event_sums[place[i]])
                    i = end
            if in_second and late:  # the few who are event-free in their second stretch
                for i in range(size):
                    second = (j >= first[i]) & (j < last[i])
                    target[i] = 1.0
                    counted[i] = 1.0 if second & (status[i] == 0) else 0.0
                chunk_losses(kind, epsilon, columns, start, size, target, counted, losses)
                add_all(losses, size, late_sums[here])
            start += size


@compiled
def order_by(key, n_keys):
    """Return the positions in the order of a key, equal ones as they come."""
    starts = np.zeros(n_keys + 1, dtype=np.int64)
    for i in range(key.size):
        starts[key[i] + 1] += 1
    for place in range(n_keys):
        starts[place + 1] += starts[place]
    order = np.empty(key.size, dtype=np.int32)
    for i in range(key.size):
        order[starts[key[i]]] = i
        starts[key[i]] += 1
    return order


@compiled
def take_column(column, order, previous, tolerance, out):
    """Fill `out` with a column, in another order if one is given; return whether it is no survival: see `is_bad`."""
    bad = False
    for start in range(0, out.size, CHUNK):  # what was just written is compared while it is near
        some = out[start : start + CHUNK]
        if order.size:
            places = order[start : start + CHUNK]
            for i in range(some.size):
                some[i] = column[places[i]]
        else:
            values = column[start : start + CHUNK]
            for i in range(some.size):
                some[i] = values[i]
        bad |= is_bad(some, previous[start : start + CHUNK], tolerance)
    return bad


@compiled
def count_rows(
    first_stop, last_stop, population_stop, label, left, segment, bins, first_stops, late_counts, event_changes,
    population_stops, everybody, left_counts, other_changes,
):  # fmt: skip
    """Count rows by segment, and by bin; see `sums.COUNTS`."""
    for i in range(first_stop.size):
        s, b, first, last = segment[i], bins[i], first_stop[i], last_stop[i]
        first_stops[s, first] += 1
        population_stops[s, population_stop[i]] += 1
        everybody[s, b] += 1
        left_counts[s, b] += left[i]
        if last > first:
            if label[i] == 0:
                late_counts[s, first] += 1
            else:
                event_changes[s, b, first] += 1
                event_changes[s, b, last] -= 1
            if label[i] < 0:
                other_changes[s, first] += 1
                other_changes[s, last] -= 1


@compiled
def fill_influences(
    predicted, j, kind, epsilon, first_stop, last_stop, label, left, segment, bins, score, scale, first, late, event,
    moved, drift, own, out,
):  # fmt: skip
    """Fill the influences on the scores at one time: (models, rows).

    What is known has the segment first: `score` (segments, models); `scale`, one over the sum of weights, or 0 where
    there is no score; `first` and `late` (segments,), `event` and `own` (segments, bins), `moved` (segments, models,
    bins) and `drift` (segments, models, bins + 1); without bins, `moved` has none.
    """
    k, n = predicted.shape
    estimated = moved.shape[2] > 0
    for i in range(n):
        s, b = segment[i], bins[i]
        event_free = j < first_stop[i] or label[i] <= 0
        weight = 0.0
        if scale[s] > 0:
            if j < first_stop[i]:
                weight = first[s]
            elif j < last_stop[i]:
                weight = late[s] if label[i] == 0 else event[s, b]
        for a in range(k):
            value = 0.0
            if weight > 0:
                p = np.float64(predicted[a, i])
                if kind == BRIER:
                    distance = 1.0 - p if event_free else p
                    loss = distance * distance
                else:
                    p = min(max(p, epsilon), 1.0 - epsilon)
                    loss = -_log(p if event_free else 1.0 - p)
                value = weight * (loss - score[s, a])
            if estimated and scale[s] > 0:
                value -= drift[s, a, b]
                if left[i]:
                    value += moved[s, a, b] * own[s, b]
            out[a, i] = value * scale[s]


@compiled
def add_to_groups(influences, group, sums):
    """Add influences of one time, (models, rows), to sums by group, (groups, models)."""
    for a in range(influences.shape[0]):
        row = influences[a]
        for i in range(row.size):
            sums[group[i], a] += row[i]


@compiled
def add_sizes(stops, group, sizes):
    """Count who is still counted, by group and time: (groups, times)."""
    for i in range(stops.size):
        row = sizes[group[i]]
        for j in range(stops[i]):
            row[j] += 1
