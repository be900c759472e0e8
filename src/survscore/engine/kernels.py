"""The two compiled loops over predictions: first moments, and second moments; for any number of models.

They do what `engine.sums` and `engine.second_moments` do with matrices, row by row, while a row is in the nearest cache:
predictions are read in place, in either precision. Nothing here starts threads: the functions release the interpreter's
lock, and `engine.compiled` shares out rows or columns.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import carray, types
from numba.extending import intrinsic

from survscore._utils.kernels import _log, compiled, inlined

DIRECT, LINEAR, GEOMETRIC = 0, 1, 2  # how evaluation times are read off the grid
BRIER, LOG = 0, 1

Array = Any


class Readers(NamedTuple):
    """Where each model's predictions are, and how they are read at the evaluation times; (models,) and (models, times).

    A matrix is told by its address, the bytes from one row to the next, and whether it is in single precision: so that
    models of either precision can be read together, and one compiled function serves all.
    """

    address: Array
    stride: Array
    single: Array
    mode: Array
    lower: Array
    share: Array
    last: Array


class Weights(NamedTuple):
    """The index ranges of `IntervalWeights` of one or several weightings (or models), (weightings, individuals).

    `at_risk` and `reference` are tables by stratum, (weightings, strata, times).
    """

    event: Array
    stop: Array
    own: Array
    code: Array
    share: Array
    at_risk: Array
    reference: Array


class Deviation(NamedTuple):
    """What turns losses into influences; see `ScoredLoss`, (models, times) or (times,).

    `event_free` and `with_event` are the losses of predictions that are the same for everybody, after those of models.
    """

    kind: int
    epsilon: float
    centre: Array
    scale: Array
    offset: Array
    event_free: Array
    with_event: Array
    slope: Array
    common: Array


class Visits(NamedTuple):
    """The individuals in the order of their visit, (individuals,), and the jumps among them, (weightings, individuals).

    `inverse_risk` is 0 for those who do not exit; `moves` says whose own weight moves with the curve.
    """

    row: Array
    label: Array
    time_index: Array
    population: Array
    inverse_risk: Array
    step: Array
    moves: Array
    null: Array
    unit: Array


@intrinsic
def _single_at(context, address):
    """Take an address as that of numbers in single precision."""
    pointer = types.CPointer(types.float32)
    return pointer(types.int64), lambda context, builder, signature, args: builder.inttoptr(
        args[0], context.get_value_type(signature.return_type)
    )


@intrinsic
def _double_at(context, address):
    """Take an address as that of numbers in double precision."""
    pointer = types.CPointer(types.float64)
    return pointer(types.int64), lambda context, builder, signature, args: builder.inttoptr(
        args[0], context.get_value_type(signature.return_type)
    )


@inlined
def _interpolate(row, mode, lower, share, last, out):
    """Fill in the predictions of one row at the evaluation times of `lower`."""
    if mode == DIRECT:
        source = row[lower[0] : lower[0] + out.size]
        for j in range(out.size):
            out[j] = source[j]
        return
    for j in range(out.size):
        at = lower[j]
        left = 1.0 if at < 0 else np.float64(row[at])
        right = np.float64(row[min(at + 1, last)])
        if mode == LINEAR:
            out[j] = (1.0 - share[j]) * left + share[j] * right
        else:
            out[j] = left ** (1.0 - share[j]) * right ** share[j]


@inlined
def _read(readers, q, row, start, out):
    """Fill in what model q predicts for an individual, from evaluation time `start` on."""
    if out.size == 0:
        return
    place = readers.address[q] + row * readers.stride[q]
    lower, share = readers.lower[q, start : start + out.size], readers.share[q, start : start + out.size]
    size = readers.last[q] + 1
    if readers.single[q]:
        _interpolate(carray(_single_at(place), size), readers.mode[q], lower, share, readers.last[q], out)
    else:
        _interpolate(carray(_double_at(place), size), readers.mode[q], lower, share, readers.last[q], out)


@inlined
def _losses(kind, epsilon, survival, event_free):
    """Replace predictions by their losses, all of one status."""
    if kind == BRIER:
        y = 1.0 if event_free else 0.0
        for j in range(survival.size):
            survival[j] = (survival[j] - y) * (survival[j] - y)
    elif event_free:
        for j in range(survival.size):
            survival[j] = -_log(min(max(survival[j], epsilon), 1.0 - epsilon))
    else:
        for j in range(survival.size):
            survival[j] = -_log(min(max(1.0 - survival[j], epsilon), 1.0 - epsilon))


@compiled
def first_moments(readers, a, kinds, epsilons, weights, label, time_index, start, stop, first, second):
    """Add the losses of model a, of individuals from `start` to `stop`, (losses, weightings, buckets, times).

    Those of the first range go to `first`, without the weight that depends on time, those of the second to `second`.
    """
    n_weightings, m = weights.event.shape[0], readers.lower.shape[1]
    survival, loss = np.empty(m), np.empty(m)
    for i in range(start, stop):
        last = 0
        for q in range(n_weightings):
            last = max(last, weights.stop[q, i], weights.event[q, i])
        _read(readers, a, i, 0, survival[:last])
        middle = min(np.int64(time_index[i]), np.int64(last))
        for k in range(kinds.size):
            loss[:last] = survival[:last]
            _losses(kinds[k], epsilons[k], loss[:middle], True)
            _losses(kinds[k], epsilons[k], loss[middle:last], label[i] == 0)
            for q in range(n_weightings):
                event, end, own, bucket = weights.event[q, i], weights.stop[q, i], weights.own[q, i], weights.code[q, i]
                total, values = first[k, q, bucket, :event], loss[:event]
                for j in range(values.size):
                    total[j] += values[j]
                total, values = second[k, q, bucket, event:end], loss[event:end]
                for j in range(values.size):
                    total[j] += own * values[j]


@inlined
def _deviate(loss, centre, weight, own):
    """Turn losses into deviations, by a weight that depends on time and one that does not."""
    for j in range(loss.size):
        loss[j] = (loss[j] - centre[j]) * weight[j] * own


@compiled
def second_moments(
    readers, weights, deviation, visits, start, stop, first_column, carry, fitted, averages, pairs, running, drift,
    squares, means, table,
):  # fmt: skip
    """Add squares of influences of the individuals from `start` to `stop` in the order of their visit.

    The columns are those of the evaluation times from `first_column` on, as many as `squares` has. Where a curve was
    estimated (`fitted`), `running` and `drift`, (models, strata, times), hold its running sums; with `carry` they are
    all that is computed. Where there are groups, influences are added to `table`, (models, groups, times), instead.
    """
    n_models, m, n_read = deviation.centre.shape[0], squares.shape[1], readers.address.size
    n_weightings = weights.event.shape[0]
    influence, other = np.zeros((n_models, m)), np.zeros(m)
    kind, epsilon, last_column = deviation.kind, deviation.epsilon, first_column + m
    for i in range(start, stop):
        for q in range(n_models):
            w = q if n_weightings > 1 else 0
            k, own, share = weights.code[w, i], weights.own[w, i], weights.share[w, i]
            event = min(max(np.int64(weights.event[w, i]) - first_column, 0), m)
            end = min(max(np.int64(weights.stop[w, i]) - first_column, event), m)
            reach = min(max(np.int64(visits.time_index[i]) - first_column, 0), m)
            exits = fitted and visits.inverse_risk[w, i] > 0.0
            if carry and not exits and end == event and share == 0.0:
                continue
            d, begin = influence[q], event if carry else 0
            final = m if share > 0.0 else end
            # losses
            if q < n_read:
                _read(readers, q, visits.row[i], first_column + begin, d[begin:final])
                if share > 0.0:
                    other[end:] = d[end:]
                    _losses(kind, epsilon, other[end:], False)
                    _losses(kind, epsilon, d[end:], True)
                _losses(kind, epsilon, d[begin:event], True)
                _losses(kind, epsilon, d[event:end], visits.label[i] == 0)
            else:
                free, with_event = deviation.event_free[q - n_read], deviation.with_event[q - n_read]
                d[begin:event] = free[begin:event]
                d[event:end] = free[event:end] if visits.label[i] == 0 else with_event[event:end]
                if share > 0.0:
                    d[end:], other[end:] = free[end:], with_event[end:]
            # deviations
            centre, scale = deviation.centre[q], deviation.scale
            _deviate(d[begin:event], centre[begin:event], weights.at_risk[w, k, begin:event], 1.0)
            _deviate(d[event:end], centre[event:end], scale[event:end], own)
            r = running[q, k]
            if share > 0.0:
                x, y, c, v, s, g = d[end:], other[end:], centre[end:], scale[end:], r[end:], weights.reference[w, k, end:]
                for j in range(x.size):
                    slope = share * g[j] * (x[j] - y[j])
                    x[j] = (y[j] + slope - c[j]) * v[j] * own
                    s[j] += slope * v[j] * own
            else:
                d[end:] = 0.0
            # what estimating the curve adds
            if fitted:
                h = drift[q, k]
                if not exits and visits.moves[w, i] and share == 0.0 and weights.reference.shape[2] == 0:
                    x, s = d[event:end], r[event:end]
                    for j in range(x.size):
                        s[j] += x[j]
                if not carry:
                    for j in range(m):
                        d[j] += h[j]
                if exits:
                    inverse, step = visits.inverse_risk[w, i], visits.step[w, i]
                    x, s, t = d[reach:], r[reach:], h[reach:]
                    for j in range(x.size):
                        x[j] -= s[j] * inverse
                        t[j] += s[j] * step
            if carry:
                continue
            if deviation.offset.shape[0]:
                inside = min(max(np.int64(visits.population[i]) - first_column, 0), m)
                x, y = d[:inside], deviation.offset[q, :inside]
                for j in range(x.size):
                    x[j] -= y[j]
            if q == n_models - 1 and deviation.slope.size:
                x, y = d[:reach], deviation.common[:reach]
                for j in range(x.size):
                    x[j] += y[j]
                x, y, null = d[reach:], deviation.slope[reach:], visits.null[i]
                for j in range(x.size):
                    x[j] += y[j] * null
        if carry:
            continue
        unit = visits.unit[i] if table.shape[1] else i
        for q in range(n_models):
            d = influence[q]
            for r in range(averages.shape[0]):
                total, c = 0.0, averages[r]
                for j in range(m):
                    total += d[j] * c[j]
                means[q, unit, r] += total
            if table.shape[1]:
                t = table[q, unit]
                for j in range(m):
                    t[j] += d[j]
        if not table.shape[1]:
            for p in range(pairs.shape[0]):
                x, y, total = influence[pairs[p, 0]], influence[pairs[p, 1]], squares[p]
                if pairs[p, 0] == pairs[p, 1]:
                    for j in range(m):
                        total[j] += x[j] * x[j]
                else:
                    for j in range(m):
                        total[j] += (x[j] - y[j]) * (x[j] - y[j])
