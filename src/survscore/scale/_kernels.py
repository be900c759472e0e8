"""The loops over batches of columns, compiled; see `survscore._utils.kernels` for how they are run.

Batches come by column, so one call works on one evaluation time, and its sums stay in the processor's cache.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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
def add_counted(
    columns, previous, tolerance, j, kind, epsilon, first_stop, last_stop, label, sample, segment, sums, kept
):
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
            status, own = label[start : start + size], sample[start : start + size]
            for i in range(size):
                target[i] = 1.0 if (j < first[i]) | (status[i] <= 0) else 0.0
                counted[i] = own[i] if j < last[i] else 0.0
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
    columns, j, kind, epsilon, first_stop, last_stop, label, sample, segment, row, first_sums, late_sums, event_sums
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
            own = sample[start : start + size]
            in_second = 0
            for i in range(size):
                target[i] = 1.0
                counted[i] = own[i] if j < first[i] else 0.0
                in_second += (j >= first[i]) & (j < last[i])
            if in_second < size:
                chunk_losses(kind, epsilon, columns, start, size, target, counted, losses)
                add_all(losses, size, first_sums[here])
            if in_second:
                late = 0
                for i in range(size):
                    second = (j >= first[i]) & (j < last[i])
                    target[i] = 1.0 if status[i] < 0 else 0.0
                    counted[i] = own[i] if second & (status[i] != 0) else 0.0
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
                    counted[i] = own[i] if second & (status[i] == 0) else 0.0
                chunk_losses(kind, epsilon, columns, start, size, target, counted, losses)
                add_all(losses, size, late_sums[here])
            start += size


@compiled
def order_by(key, n_keys):
    """Return the positions in the order of a key, equal ones as they come, and where each key ends."""
    starts = np.zeros(n_keys + 1, dtype=np.int64)
    for i in range(key.size):
        starts[key[i] + 1] += 1
    for place in range(n_keys):
        starts[place + 1] += starts[place]
    order = np.empty(key.size, dtype=np.int32)
    for i in range(key.size):
        order[starts[key[i]]] = i
        starts[key[i]] += 1
    return order, starts[:-1]


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
def is_no_survival(column, previous, tolerance):
    """Whether a column is no survival: see `is_bad`."""
    return is_bad(column, previous, tolerance)


@compiled
def count_rows(
    first_stop, last_stop, population_stop, label, left, segment, bins, own, first_stops, late_counts, event_changes,
    population_stops, everybody, left_counts, other_changes,
):  # fmt: skip
    """Count rows by segment, and by bin, each as much as its `own`; see `sums.COUNTS`."""
    for i in range(first_stop.size):
        s, b, first, last, one = segment[i], bins[i], first_stop[i], last_stop[i], own[i]
        first_stops[s, first] += one
        population_stops[s, population_stop[i]] += one
        everybody[s, b] += one
        left_counts[s, b] += left[i] * one
        if last > first:
            if label[i] == 0:
                late_counts[s, first] += one
            else:
                event_changes[s, b, first] += one
                event_changes[s, b, last] -= one
            if label[i] < 0:
                other_changes[s, first] += one
                other_changes[s, last] -= one


@compiled
def mix_into(key, values):
    """Mix the bits of numbers into a key of each row (splitmix64), so that it is as good as drawn at random."""
    for i in range(key.size):
        z = (key[i] ^ values[i]) + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        key[i] = z ^ (z >> np.uint64(31))


@compiled
def add_ranks(column, group, first, scale, ranks, total):
    """Add to each row's total the rank of its value in its group, read off straight lines between equidistant values.

    `ranks`, (groups, values), are those at `first`, `first` + 1 / `scale`, ...; the same for all groups.
    """
    last = ranks.shape[1] - 2
    for i in range(column.size):
        place = (np.float64(column[i]) - first) * scale
        b = min(max(int(place), 0), last)
        share = min(max(place - b, 0.0), 1.0)
        own = ranks[group[i]]
        total[i] += own[b] + share * (own[b + 1] - own[b])


@compiled
def cut(total, group, limits, base, row):
    """Fill `row` with `base` and how many of its group's limits, (groups, limits), each total has reached."""
    for i in range(total.size):
        reached = 0
        for limit in limits[group[i]]:
            reached += total[i] >= limit
        row[i] = base + reached


@inlined
def both_losses(kind, epsilon, survival, free, with_event):
    """Fill in the losses of the event-free, and of those with event."""
    if kind == BRIER:
        for i in range(survival.size):
            p = np.float64(survival[i])
            free[i], with_event[i] = (1.0 - p) * (1.0 - p), p * p
    else:
        for i in range(survival.size):
            p = min(max(np.float64(survival[i]), epsilon), 1.0 - epsilon)
            free[i], with_event[i] = -_log(p), -_log(1.0 - p)


class OrderedRows(NamedTuple):
    """Rows as `add_influences` takes them: unit by unit, and within these so that a status at any time is one range.

    Those without event come first, then those with the event of interest, then those with another one; each by the
    time, 0 to m of m times, from which on they are no longer followed event-free. `order` says which row of the columns
    each is, `ends` where each of these 3 (m + 1) keys of each unit ends.

    From then on a row has its final status and its `own` weight, at the times before `last`; or, without event and
    under a weighting that projects, no event of interest with probability base + share x later. `bin`, `exit` and, by
    model, `stratum` say to which cell a row belongs. At the times before `early`, C* >= t.
    """

    order: NDArray[np.int32]
    ends: NDArray[np.int64]
    units: NDArray[np.int64]
    sample: NDArray[np.float64]
    last: NDArray[np.int32]
    early: NDArray[np.int32]
    bin: NDArray[np.int32]
    exit: NDArray[np.int8]
    own: NDArray[np.float64]
    stratum: NDArray[np.int32]
    base: NDArray[np.float64]
    share: NDArray[np.float64]


class Estimates(NamedTuple):
    """What influences at one time are made of, by model; see `influences.Known`.

    `at_risk` and `scale` (units), `centre` (models, units), `later` (models, strata), `added` (models, strata, bins,
    kinds). `parts` (models, units, 5), of a weighting that projects, is filled: sums over those with C* >= t of
    predictions, statuses and losses, and how many are hidden; before these, of predictions of all.
    """

    at_risk: NDArray[np.float64]
    scale: NDArray[np.float64]
    centre: NDArray[np.float64]
    later: NDArray[np.float64]
    added: NDArray[np.float64]
    parts: NDArray[np.float64]


class SquareSums(NamedTuple):
    """Where squares of influences at one time are added up, (units, quantities), if not by group.

    And influences times the weights of the time in means over time, (means, units), to (means, models, rows). `factor`
    (rows) is what squares of sample weights need (`inference.units.InfluenceFactors`), or empty.
    """

    single: NDArray[np.float64]
    averages: NDArray[np.float64]
    means: NDArray[np.float64]
    factor: NDArray[np.float64]


@compiled
def add_influences(columns, j, n_times, kind, epsilon, rows, sums, known, squares, influences):
    """Fill each row's influence on the scores at one time, (models, rows), and add projected losses to `sums`.

    `known`: estimates, or None for no influences. `sums`, or None: losses of known statuses, and of the hidden as with
    event, (models, units); and what being event-free adds for the hidden, (models, strata, bins). `squares`, or None.
    """
    survival, free, with_event = np.empty(CHUNK), np.empty(CHUNK), np.empty(CHUNK)
    start, each = 0, n_times + 1
    for place in range(rows.units.size):
        ends, u = rows.ends[3 * place * each : 3 * (place + 1) * each], rows.units[place]
        for part in range(6):
            event, followed = part // 2, part % 2 == 1
            end = ends[event * each + (n_times if followed else j)]
            while start < end:
                stop = min(start + CHUNK, end)
                order = rows.order[start:stop]
                size = order.size
                for a in range(len(columns)):
                    column = columns[a]
                    for i in range(size):
                        survival[i] = column[order[i]]
                    both_losses(kind, epsilon, survival[:size], free, with_event)
                    loss = with_event if (event == 1) & (not followed) else free
                    hidden = (rows.share.shape[1] > 0) & (event == 0) & (not followed)
                    if sums is not None:
                        add_losses(rows, a, start, stop, hidden, loss, free, with_event, sums[0][a], u, sums[1][a])
                    if known is not None:
                        filled = influences[a, start:stop]
                        if followed:
                            fill_followed(rows, a, start, stop, u, free, known, filled)
                        elif hidden:
                            fill_hidden(rows, a, start, stop, u, free, with_event, known, filled)
                        else:
                            fill_final(rows, a, start, stop, j, u, loss, known, filled)
                        if known.parts.shape[0]:
                            event_free = 1.0 if followed | (event == 2) else 0.0
                            add_parts(
                                rows, a, start, stop, j, hidden, event_free, survival, loss, free, with_event, known,
                                known.parts[a, u],
                            )  # fmt: skip
                if squares is not None:
                    add_moments(influences, start, stop, u, squares)
                start = stop


@inlined_sum
def add_losses(rows, a, start, stop, hidden, loss, free, with_event, base, u, slope):
    """Add the losses of some rows under a weighting that projects; see `add_influences`."""
    sample, bins, stratum, total = rows.sample[start:stop], rows.bin[start:stop], rows.stratum[a, start:stop], 0.0
    if hidden:
        for i in range(sample.size):
            total += sample[i] * with_event[i]
        for i in range(sample.size):
            slope[stratum[i], bins[i]] += sample[i] * (free[i] - with_event[i])
    else:
        for i in range(sample.size):
            total += sample[i] * loss[i]
    base[u] += total


@inlined
def fill_followed(rows, a, start, stop, u, free, known, influences):
    """Fill the influences of rows that are followed event-free: estimation adds what it adds to those who stay on."""
    sample, stratum, added = rows.sample[start:stop], rows.stratum[a, start:stop], known.added[a]
    weight, centre, last = known.at_risk[u] * known.scale[u], known.centre[a, u], added.shape[1] - 1
    for i in range(sample.size):
        influences[i] = sample[i] * (weight * (free[i] - centre) + added[stratum[i], last, 0])


@inlined
def fill_hidden(rows, a, start, stop, u, free, with_event, known, influences):
    """Fill the influences of rows whose status is projected."""
    sample, stratum, bins = rows.sample[start:stop], rows.stratum[a, start:stop], rows.bin[start:stop]
    base, share, later, added = rows.base[a, start:stop], rows.share[a, start:stop], known.later[a], known.added[a]
    scale, centre = known.scale[u], known.centre[a, u]
    for i in range(sample.size):
        status = min(base[i] + share[i] * later[stratum[i]], 1.0)
        loss = with_event[i] + status * (free[i] - with_event[i])
        of_curve = added[stratum[i], bins[i], 0]
        influences[i] = sample[i] * (scale * (loss - centre) + of_curve)


@inlined
def fill_final(rows, a, start, stop, j, u, loss, known, influences):
    """Fill the influences of rows that have their final status, as long as they count."""
    sample, stratum, bins = rows.sample[start:stop], rows.stratum[a, start:stop], rows.bin[start:stop]
    last, own, exit, added = rows.last[start:stop], rows.own[start:stop], rows.exit[start:stop], known.added[a]
    scale, centre = known.scale[u], known.centre[a, u]
    for i in range(sample.size):
        weight = own[i] * scale if j < last[i] else 0.0
        of_curve = added[stratum[i], bins[i], exit[i]]
        influences[i] = sample[i] * (weight * (loss[i] - centre) + of_curve)


@inlined_sum
def add_parts(
    rows, a, start, stop, j, hidden, event_free, survival, loss, free, with_event, known, parts
):  # fmt: skip
    """Add the sums over rows with C* >= t; see `Estimates`."""
    sample, early, stratum = rows.sample[start:stop], rows.early[start:stop], rows.stratum[a, start:stop]
    every, predicted, total, losses, of_hidden = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(sample.size):
        own = sample[i] if j < early[i] else 0.0
        every += sample[i] * survival[i]
        predicted += own * survival[i]
    if hidden:
        base, share, later = rows.base[a, start:stop], rows.share[a, start:stop], known.later[a]
        for i in range(sample.size):
            own = sample[i] if j < early[i] else 0.0
            status = min(base[i] + share[i] * later[stratum[i]], 1.0)
            total += own * status
            losses += own * (with_event[i] + status * (free[i] - with_event[i]))
            of_hidden += own
    else:
        for i in range(sample.size):
            own = sample[i] if j < early[i] else 0.0
            total += own * event_free
            losses += own * loss[i]
    parts[0] += every
    parts[1] += predicted
    parts[2] += total
    parts[3] += losses
    parts[4] += of_hidden


@inlined
def add_moments(influences, start, stop, u, moments):
    """Weigh the influences of some rows; add their squares, and their share in means over time; see `SquareSums`."""
    size, values = stop - start, influences[:, start:stop]
    if moments.factor.size:
        for a in range(values.shape[0]):
            row, factor = values[a], moments.factor[start:stop]
            for i in range(size):
                row[i] *= factor[i]
    add_all(values, size, moments.single[u])
    for r in range(moments.averages.shape[0]):
        for a in range(values.shape[0]):
            total, row = moments.means[r, a, start:stop], values[a]
            for i in range(size):
                total[i] += moments.averages[r, u] * row[i]


@compiled
def add_squares(values, unit, sums):
    """Add values, (models, rows), and squares of these and of their differences to (units, quantities); see `add_all`.

    Rows come unit by unit.
    """
    start, n = 0, unit.size
    while start < n:
        here, stop = unit[start], start + 1
        while stop < min(start + CHUNK, n) and unit[stop] == here:
            stop += 1
        add_all(values[:, start:stop], stop - start, sums[here])
        start = stop


@compiled
def add_to_groups(influences, group, sums):
    """Add influences of one time, (models, rows), to sums by group, (groups, models)."""
    for a in range(influences.shape[0]):
        row = influences[a]
        for i in range(row.size):
            sums[group[i], a] += row[i]


@compiled
def add_sizes(stops, sample, group, sizes):
    """Add the weights of who is still counted, by group and time: (groups, times)."""
    for i in range(stops.size):
        row = sizes[group[i]]
        for j in range(stops[i]):
            row[j] += sample[i]
