"""Scores of predicted distributions, compiled: every row is read once, up to where its exposure stops."""

from __future__ import annotations

import numpy as np

from survscore._utils.kernels import compiled, inlined, summing

TABLES = 4  # to which intervals are dealt out


@compiled
def smallest_survival(probabilities, n_columns):
    """Return the smallest survival in anybody's last column; one where nobody has any."""
    smallest = 1.0
    for i in range(n_columns.size):
        if n_columns[i] > 0:
            smallest = min(smallest, np.float64(probabilities[i, n_columns[i] - 1]))
    return smallest


@compiled
def first_rising(probabilities, tolerance):
    """Return the first row and column that exceed the value before by more than `tolerance`, or -1 twice."""
    for i in range(probabilities.shape[0]):
        row = probabilities[i]
        rises = 0
        for k in range(row.size - 1):  # none is above one
            rises |= row[k + 1] - row[k] > tolerance
        if rises:
            for k in range(1, row.size):
                if row[k] - row[k - 1] > tolerance:
                    return i, k
    return -1, -1


@summing
def _products(middle, probability, variance, n, scale):
    """Return sums over intervals of the variances and covariances of scores, of degrees 0 to 3.

    Scores are as of `_smooth_test.interval_scores`; `middle` is theirs of degree 1. The first four of the sums are also
    what is expected of each score, where variances are what is expected.
    """
    v00 = v01 = v02 = v03 = v11 = v12 = v13 = v22 = v23 = v33 = 0.0
    inverse = 1.0 / scale
    for k in range(n):
        first = middle[k]
        width = probability[k] * inverse
        spread = width * width * (1.0 / 12.0)
        square = first * first
        second = square + spread
        third = first * (square + 3.0 * spread)
        v = variance[k]
        v1, v2, v3 = v * first, v * second, v * third
        v00 += v
        v01 += v1
        v02 += v2
        v03 += v3
        v11 += v1 * first
        v12 += v1 * second
        v13 += v1 * third
        v22 += v2 * second
        v23 += v2 * third
        v33 += v3 * third
    return v00, v01, v02, v03, v11, v12, v13, v22, v23, v33


@inlined
def _fill(row, n, half, bins_by_two, last_bin, tolerance, probability, middle, bins):
    """Fill in the probability of each interval, its score of degree 1 and its bin; return whether it rises."""
    rises = 0
    if n > 0:
        fall = 1.0 - np.float64(row[0])
        rises |= fall < -tolerance
        probability[0] = fall if fall > 0.0 else 0.0
        middle[0] = probability[0] * half - 0.5
        bins[0] = np.int32(min(probability[0] * bins_by_two, last_bin))
    for k in range(np.uint64(1), np.uint64(n)):
        before = np.float64(row[k - np.uint64(1)])
        fall = before - np.float64(row[k])
        rises |= fall < -tolerance
        fall = fall if fall > 0.0 else 0.0
        twice = (1.0 - before) + ((1.0 - before) + fall)  # the risk in the middle of the interval
        probability[k] = fall
        middle[k] = twice * half - 0.5
        scaled = twice * bins_by_two
        bins[k] = np.int32(scaled if scaled < last_bin else last_bin)
    return rises


@inlined
def _add_to_bins(bins, values, n, tables):
    """Add values to their bins, in turn to one of several tables: the same one would have to wait for the last sum."""
    whole = n - n % TABLES
    for k in range(0, whole, TABLES):
        for t in range(TABLES):
            tables[t, bins[k + t]] += values[k + t]
    for k in range(whole, n):
        tables[0, bins[k]] += values[k]


@compiled
def add_intervals(
    probabilities,
    times,
    n_columns,
    place,
    exit_time,
    stop_time,
    event,
    known,
    scale,
    tolerance,
    total,
    covariance,
    observed,
    expected,
    bin_covariance,
    deviations,
):
    """Add the scores of these rows to the sums, by intervals of the grid (see `distribution_sums`).

    `known` says which exposure there is. `deviations` has as many rows if everybody's own are to be kept, else none.
    Return how many had something happen to them that has probability zero, and the row and column of the first curve
    that rises, or -1 twice.
    """
    n_bins = observed.size
    m = times.size
    middle, probability = np.empty(m), np.empty(m)
    weight, variance = (probability, probability) if known else (np.empty(m), np.empty(m))
    bins, last_bin = np.empty(m, dtype=np.int32), n_bins - 1.0
    of_bin, own = np.zeros(n_bins), np.empty(4)
    upper = np.zeros(10)
    bin_variance = np.zeros(n_bins)
    tables = np.zeros((TABLES, n_bins))
    half = 0.5 / scale
    n_impossible = 0
    for i in range(n_columns.size):
        row, n = probabilities[i], n_columns[i]
        rises = _fill(row, n, half, 0.5 * n_bins, last_bin, tolerance, probability, middle, bins)
        if rises:
            for k in range(n):
                if (np.float64(row[k - 1]) if k > 0 else 1.0) - np.float64(row[k]) < -tolerance:
                    return n_impossible, i, k
        cell = place[i]
        if not known:
            for k in range(n):
                before = np.float64(row[k - 1]) if k > 0 else 1.0
                hazard = probability[k] / before if before > 0 else 0.0
                weight[k] = hazard
                variance[k] = hazard * (1.0 - hazard)
            if n > 0 and not event[i] and exit_time[i] < times[cell]:
                # left within an interval, event-free: see `Followed._left_within`
                hazard = weight[cell]
                opened = times[cell - 1] if cell > 0 else 0.0
                f = 1.0 - (1.0 - hazard) ** ((exit_time[i] - opened) / (times[cell] - opened))
                rest = (1.0 - hazard) / (1.0 - f) if f < 1 else 0.0
                weight[cell] = f * rest
                variance[cell] = weight[cell] * (rest - hazard)
        products = _products(middle, probability, variance, n, scale)
        sums = (products if known else _products(middle, probability, weight, n, scale))[:4]
        for j in range(10):
            upper[j] += products[j]
        for j in range(4):
            own[j] = -sums[j]

        lowest = highest = bins[0] if n > 0 else np.int32(0)
        for k in range(n):
            lowest, highest = min(lowest, bins[k]), max(highest, bins[k])
        _add_to_bins(bins, weight, n, tables)
        for b in range(lowest, highest + 1):
            for t in range(TABLES):
                of_bin[b] += tables[t, b]
                tables[t, b] = 0.0
        if not known:
            for k in range(n):
                bin_variance[bins[k]] += variance[k]
        if known:
            for j in range(4):
                for h in range(j, 4):
                    covariance[j, h] -= sums[j] * sums[h]
            for b in range(lowest, highest + 1):
                bin_variance[b] += of_bin[b]
                for c in range(lowest, highest + 1):
                    bin_covariance[b, c] -= of_bin[b] * of_bin[c]

        seen = event[i] and cell < n
        bin_seen = -1
        if seen:
            first, width = middle[cell], probability[cell] / scale
            spread, square = width * width / 12.0, first * first
            own[0] += 1.0
            own[1] += first
            own[2] += square + spread
            own[3] += first * (square + 3.0 * spread)
            bin_seen = bins[cell]
            observed[bin_seen] += 1.0
            n_impossible += probability[cell] <= 0
        else:
            last = max(n - 1, 0)
            n_impossible += row[last] <= 0 and stop_time[i] >= times[last]
        for j in range(4):
            total[j] += own[j]
        if deviations.shape[0] > 0:
            deviations[i, :4] = own
            for b in range(n_bins):
                deviations[i, 4 + b] = (b == bin_seen) - of_bin[b]
        for b in range(lowest, highest + 1):
            expected[b] += of_bin[b]
            of_bin[b] = 0.0
    place_in_upper = 0
    for j in range(4):
        for h in range(j, 4):
            covariance[j, h] += upper[place_in_upper]
            covariance[h, j] = covariance[j, h]
            place_in_upper += 1
    for b in range(n_bins):
        bin_covariance[b, b] += bin_variance[b]
    return n_impossible, -1, -1
