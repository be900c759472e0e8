"""The two compiled loops over predictions: first moments, and second moments; for any number of models.

They do what `engine.sums` and `engine.second_moments` do with matrices, row by row, while a row is in the nearest
cache: predictions are read in place, in either precision. Nothing here starts threads: the functions release the
interpreter's lock, and `engine.compiled` shares out rows or columns.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import carray, types
from numba.core import cgutils
from numba.extending import intrinsic

from survscore._utils.kernels import _log, called, compiled, dot, inlined

DIRECT, LINEAR, GEOMETRIC = 0, 1, 2  # how evaluation times are read off the grid
BRIER, LOG = 0, 1
CACHE_LINE = 64  # bytes
AHEAD = 8  # rows, which are asked for while this one is worked on

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

    `share` is empty where no status is projected, `base` where none is that of one of several causes, and `sample`,
    (individuals,), where all count alike; `last`, and `cut` where sums are parted, are for first moments alone.
    `at_risk` and `reference` are tables by stratum, (weightings, strata, times), and so is `gradient`: what a status is
    moved by, the reference where that is by its logarithm, and 1 where it is by an incidence.
    """

    event: Array
    stop: Array
    own: Array
    code: Array
    share: Array
    base: Array
    sample: Array
    last: Array
    cut: Array
    at_risk: Array
    reference: Array
    gradient: Array


class Deviation(NamedTuple):
    """What turns losses into influences; see `ScoredLoss`, (models, times), (weightings, times) or (times,).

    `event_free` and `with_event` are the losses of predictions that are the same for all, after those of models.
    `slope` has a row for each part of the influence on the null model, (parts, times); see `Visits.null`. `shares` has
    one over the number of individuals and one over the sum of their sample weights; see `InfluenceFactors`.
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
    shares: Array


class Visits(NamedTuple):
    """The individuals in the order of their visit, (individuals,), and the jumps among them, (weightings, individuals).

    `inverse_risk` is 0 for those who do not exit; `moves` says whose own weight moves with the curve. Where a status is
    that of one of several causes, `own`, `own_slope` and `incidence_step` are those of the influence on its incidence
    (`censoring.aalen_johansen`), and `step` is what it moves by with U, which is the reference. `null` is each
    individual's part in the null model, (parts, individuals), and `factor` what influences are multiplied by before
    they are squared; empty where that is one, or depends on time.
    """

    row: Array
    label: Array
    time_index: Array
    population: Array
    inverse_risk: Array
    step: Array
    own: Array
    own_slope: Array
    incidence_step: Array
    moves: Array
    null: Array
    factor: Array
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


@intrinsic
def _prefetch(context, address):
    """Ask for the cache line at an address, to be read soon."""

    def generate(context, builder, signature, args):
        byte, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
        ask = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        read, soon, data = flag(0), flag(3), flag(1)
        builder.call(ask, [builder.inttoptr(args[0], byte), read, soon, data])
        return context.get_dummy_value()

    return types.void(types.int64), generate


@intrinsic
def _borrowed(context, value):
    """Return an array, or a tuple with arrays, whose references are not counted: the caller holds them.

    Counting them takes an atomic operation or two with each slice, of which a row needs many.
    """
    return value(value), lambda context, builder, signature, args: _uncounted(context, builder, value, args[0])


def _uncounted(context, builder, kind, value):
    if isinstance(kind, types.BaseTuple):
        parts = [_uncounted(context, builder, one, builder.extract_value(value, i)) for i, one in enumerate(kind.types)]
        return context.make_tuple(builder, kind, parts)
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        array.meminfo, array.parent = (cgutils.get_null_value(one.type) for one in (array.meminfo, array.parent))
        return array._getvalue()
    return value


@inlined
def _fetch_ahead(readers, row, first_column, n_columns):
    """Ask for what the models predict for an individual: in order of time rows are all over the memory."""
    for q in range(readers.address.size):
        if readers.mode[q] == DIRECT:
            size = 4 if readers.single[q] else 8
            place = readers.address[q] + row * readers.stride[q] + size * readers.lower[q, first_column]
            for byte in range(0, size * n_columns, CACHE_LINE):
                _prefetch(place + byte)


@called
def _copy(row, out):
    for j in range(out.size):
        out[j] = row[j]


@called
def _fill(values):
    for j in range(values.size):
        values[j] = 0.0


@called
def _interpolate(row, geometric, lower, share, out):
    """Fill in the predictions of one row at the evaluation times of `lower`; -1 stands for time 0."""
    last = row.size - 1
    for j in range(out.size):
        at, weight = lower[j], share[j]
        left = 1.0 if at < 0 else np.float64(row[at])
        right = np.float64(row[min(at + 1, last)])
        if geometric:
            out[j] = left ** (1.0 - weight) * right**weight
        else:
            out[j] = (1.0 - weight) * left + weight * right


@inlined
def _read(readers, q, row, start, out):
    """Fill in what model q predicts for an individual, from evaluation time `start` on."""
    if out.size == 0:
        return
    place, mode = readers.address[q] + row * readers.stride[q], readers.mode[q]
    if mode == DIRECT:  # neighbouring columns, from the address of the first of them on
        if readers.single[q]:
            _copy(carray(_single_at(place + 4 * readers.lower[q, start]), (out.size,)), out)
        else:
            _copy(carray(_double_at(place + 8 * readers.lower[q, start]), (out.size,)), out)
        return
    lower, share = readers.lower[q, start : start + out.size], readers.share[q, start : start + out.size]
    size = (readers.last[q] + 1,)
    if readers.single[q]:
        _interpolate(carray(_single_at(place), size), mode == GEOMETRIC, lower, share, out)
    else:
        _interpolate(carray(_double_at(place), size), mode == GEOMETRIC, lower, share, out)


@called
def _losses(kind, epsilon, survival, event_free):
    """Replace predictions by their losses, all of one status."""
    if kind == BRIER:
        y = 1.0 if event_free else 0.0
        for j in range(survival.size):
            survival[j] = (survival[j] - y) * (survival[j] - y)
        return
    if kind != LOG:
        survival[:] = np.nan  # no number rather than that of another loss
        return
    if event_free:
        for j in range(survival.size):
            survival[j] = -_log(min(max(survival[j], epsilon), 1.0 - epsilon))
    else:
        for j in range(survival.size):
            survival[j] = -_log(1.0 - min(max(survival[j], epsilon), 1.0 - epsilon))


@inlined
def _add(total, values, factor):
    for j in range(values.size):
        total[j] += factor * values[j]


@called
def _add_rarely(total, values, factor):
    """Do the same where it is rarely needed: a call compiles faster than another copy of the loop."""
    _add(total, values, factor)


@inlined
def _add_brier(total, survival, y, factor):
    for j in range(survival.size):
        distance = np.float64(survival[j]) - y
        total[j] += factor * (distance * distance)


@inlined
def _add_fractions(total, event_free, with_event, base, share, reference, factor):
    """Add losses of a status that is a fraction."""
    for j in range(total.size):
        total[j] += factor * (with_event[j] + (base + share * reference[j]) * (event_free[j] - with_event[j]))


@inlined
def _add_brier_fractions(total, survival, base, share, reference, factor):
    for j in range(total.size):
        prediction = np.float64(survival[j])
        total[j] += factor * (prediction * prediction + (base + share * reference[j]) * (1.0 - 2.0 * prediction))


@inlined
def _add_squares(total, x, y, factor):
    """Add the squares of x, or of the difference of x and y, by a factor of 0 or 1."""
    for j in range(x.size):
        distance = x[j] - factor * y[j]
        total[j] += distance * distance


@inlined
def _brier_deviations(survival, y, centre, weight, own, out):
    for j in range(out.size):
        distance = np.float64(survival[j]) - y
        out[j] = (distance * distance - centre[j]) * weight[j] * own


# Where statuses are projected, each weight is that of `scale`, and a row is filled in in one go: loops over all columns
# with a choice inside vectorise better than several over parts of them, and those that write to one array better still.
@inlined
def _project_known(survival, event, y, own, centre, scale, greenwood, running, risk, out):
    """Fill in influences with status y from `event` on; `risk` is 1/r of one who exits then, and 0 of others."""
    for j in range(out.size):
        distance = np.float64(survival[j]) - (1.0 if j < event else y)
        known = (distance * distance - centre[j]) * scale[j]
        out[j] = (known + greenwood[j] - (0.0 if j < event else risk) * running[j]) * own


@inlined
def _project_hidden(survival, end, own, base, share, reference, centre, scale, greenwood, out):
    """Fill in influences with a status that is a fraction from `end` on."""
    for j in range(out.size):
        prediction = np.float64(survival[j])
        y = 1.0 if j < end else base + share * reference[j]
        out[j] = ((prediction * prediction + y * (1.0 - 2.0 * prediction) - centre[j]) * scale[j] + greenwood[j]) * own


@inlined
def _add_slopes(total, survival, end, own, share, gradient, scale):
    """Add what moves with the logarithm of that fraction, or with the incidence that it is made of."""
    for j in range(total.size):
        slope = (0.0 if j < end else share) * gradient[j] * (1.0 - 2.0 * np.float64(survival[j]))
        total[j] += slope * scale[j] * own


@inlined
def _project(
    row, event, end, y, own, centre, scale, base, share, reference, gradient, running, greenwood, risk, step, out
):
    """Fill in one row's influences, and add to the running sums."""
    if share > 0.0:
        _project_hidden(row, end, own, base, share, reference, centre, scale, greenwood, out)
        _add_slopes(running, row, end, own, share, gradient, scale)
    else:
        _project_known(row, event, y, own, centre, scale, greenwood, running, risk, out)
        if step > 0.0:
            _add(greenwood[event:], running[event:], step)


@called
def _exit_by_cause(running, later, risk, own, own_slope, step, incidence_step, greenwood, out):
    """Take off what one who exits adds to an incidence, and add to the running sums what those who stay add."""
    for j in range(out.size):
        out[j] -= risk * (own + own_slope * later[j]) * running[j]
        greenwood[j] += (incidence_step + step * later[j]) * running[j]


@inlined
def _deviate(loss, centre, weight, own):
    """Turn losses into deviations, by a weight that depends on time and one that does not."""
    for j in range(loss.size):
        loss[j] = (loss[j] - centre[j]) * weight[j] * own


@called
def _scale(values, factor):
    for j in range(values.size):
        values[j] *= factor


@called
def _factors(sample, inverse_n, inverse_mass, out):
    """Fill in what influences are multiplied by before they are squared; see `InfluenceFactors`."""
    for j in range(out.size):
        out[j] = (1.0 - inverse_n[j]) / (1.0 - sample * inverse_mass[j])


@called
def _multiply(values, factors):
    for j in range(values.size):
        values[j] *= factors[j]


@called
def _tally(ends, late, event, end, own, status):
    """Count where the first range ends, and at the ends of the second what is in it; see `WeightSums.of`."""
    ends[event] += 1.0
    if own > 0.0 and end > event:
        square = own * own
        for j, sign in ((event, 1.0), (end, -1.0)):
            late[status, 0, j] += sign
            late[status, 3 if np.isinf(own) else 1, j] += sign if np.isinf(own) else sign * own
            late[status, 4 if np.isinf(square) else 2, j] += sign if np.isinf(square) else sign * square


@compiled
def first_moments(
    readers, a, kinds, epsilons, weights, label, time_index, start, stop, first, second, beyond, ends, late, scratch
):  # fmt: skip
    """Add the losses of model a, of individuals from `start` to `stop`, (losses, weightings, buckets, times).

    Those of the first range go to `first`, without the weight that depends on time, those of later ones to `second`,
    and from `cut` on to `beyond`.
    Of the first model, weights are added up as well, in `ends` and `late`. `scratch` has room for three rows.
    """
    readers, weights, label, time_index = _borrowed((readers, weights, label, time_index))
    first, second, beyond, ends, late, scratch = _borrowed((first, second, beyond, ends, late, scratch))
    n_weightings, m, projects = weights.event.shape[0], readers.lower.shape[1], weights.share.shape[1] > 0
    causes, weighted = weights.base.shape[1] > 0, weights.sample.size > 0
    survival, loss, other = scratch[0], scratch[1], scratch[2]
    # the commonest case: nothing is stored in between
    plain = kinds.size == 1 and kinds[0] == BRIER and readers.mode[a] == DIRECT
    plain, cuts = plain and readers.single[a], weights.cut.shape[1] > 0
    for i in range(start, stop):
        last, with_event, sample = 0, label[i] != 0, weights.sample[i] if weighted else 1.0
        for q in range(n_weightings):
            event, end, bucket = weights.event[q, i], max(weights.stop[q, i], weights.event[q, i]), weights.code[q, i]
            last = max(last, weights.last[q, i] if projects and weights.share[q, i] > 0.0 else end)
            if ends.size:
                _tally(ends[q, bucket], late[q], event, end, weights.own[q, i], 1 if with_event else 0)
            if plain:
                place = readers.address[a] + i * readers.stride[a] + 4 * readers.lower[a, 0]
                row, own = carray(_single_at(place), (m,)), weights.own[q, i] * sample
                share, base = weights.share[q, i] if projects else 0.0, weights.base[q, i] if causes else 0.0
                _add_brier(first[0, q, bucket, :event], row[:event], 1.0, sample)
                y, cut = 0.0 if with_event else 1.0, min(max(weights.cut[q, i], event), end) if cuts else end
                _add_brier(second[0, q, bucket, event:cut], row[event:cut], y, own)
                if cut < end:
                    _add_brier(beyond[0, q, bucket, cut:end], row[cut:end], y, own)
                if share > 0.0:
                    final, reference = weights.last[q, i], weights.reference[q, bucket]
                    cut = min(max(weights.cut[q, i], end), final) if cuts else final
                    total = second[0, q, bucket, end:cut]
                    _add_brier_fractions(total, row[end:cut], base, share, reference[end:cut], own)
                    if cut < final:
                        total = beyond[0, q, bucket, cut:final]
                        _add_brier_fractions(total, row[cut:final], base, share, reference[cut:final], own)
        if plain:
            continue
        _read(readers, a, i, 0, survival[:last])
        middle = min(np.int64(time_index[i]), np.int64(last))
        for k in range(kinds.size):
            _copy(survival[:last], loss[:last])
            _losses(kinds[k], epsilons[k], loss[:middle], True)
            _losses(kinds[k], epsilons[k], loss[middle:last], not with_event)
            for q in range(n_weightings):
                event, end, bucket = weights.event[q, i], weights.stop[q, i], weights.code[q, i]
                own = weights.own[q, i] * sample
                cut = min(max(weights.cut[q, i], event), end) if cuts else end
                _add(first[k, q, bucket, :event], loss[:event], sample)
                _add(second[k, q, bucket, event:cut], loss[event:cut], own)
                if cut < end:
                    _add_rarely(beyond[k, q, bucket, cut:end], loss[cut:end], own)
                if projects and weights.share[q, i] > 0.0:  # whose status is a fraction
                    final, share, reference = weights.last[q, i], weights.share[q, i], weights.reference[q, bucket]
                    base = weights.base[q, i] if causes else 0.0
                    _copy(survival[end:final], other[end:final])
                    _losses(kinds[k], epsilons[k], other[end:final], False)
                    cut = min(max(weights.cut[q, i], end), final) if cuts else final
                    for total, low, high in ((second[k, q, bucket], end, cut), (beyond[k, q, bucket], cut, final)):
                        if low < high:
                            event_free, gone = loss[low:high], other[low:high]
                            _add_fractions(total[low:high], event_free, gone, base, share, reference[low:high], own)


@compiled
def second_moments(
    readers, weights, deviation, visits, start, stop, first_column, carry, fitted, averages, pairs, running, greenwood,
    squares, steps, means, table, scratch,
):  # fmt: skip
    """Add squares of influences of the individuals from `start` to `stop` in the order of their visit.

    The columns are those of the evaluation times from `first_column` on, as many as `squares` has. Where a curve was
    estimated (`fitted`), `running` and `greenwood`, (models, strata, times), hold its running sums; with `carry` they
    are all that is computed, and in `steps`, (2, weightings, strata, times and one more), the sums of the jumps'
    Greenwood weights by the first time that they reach, and of what an incidence has beside these. Where there are
    groups, influences are added up first: those whose members are visited one after the other as they come, and others
    in `table`, (models, groups, times). `scratch` holds zeros, two rows for each model and one more.
    """
    readers, weights, deviation, visits = _borrowed((readers, weights, deviation, visits))
    averages, pairs, running, greenwood = _borrowed((averages, pairs, running, greenwood))
    squares, steps, means, table, scratch = _borrowed((squares, steps, means, table, scratch))
    n_models, m, n_read = deviation.centre.shape[0], squares.shape[1], readers.address.size
    n_weightings, projects, causes = weights.event.shape[0], weights.share.shape[1] > 0, weights.base.shape[1] > 0
    influence, of_group, other = scratch[:n_models], scratch[n_models : 2 * n_models], scratch[2 * n_models]
    in_groups, in_table, weighted = visits.unit.size > 0, table.shape[1] > 0, weights.sample.size > 0
    # where only those who are counted have influences, later columns are left out
    short = not (fitted or deviation.offset.shape[0] or deviation.slope.size or projects)
    kind, epsilon = deviation.kind, deviation.epsilon
    for i in range(start, stop):
        if i + AHEAD < stop:
            _fetch_ahead(readers, visits.row[i + AHEAD], first_column, m)
        width, w, k, own, share, base, event, end, exits = m, 0, 0, 0.0, 0.0, 0.0, 0, 0, False
        reach, with_event = min(max(np.int64(visits.time_index[i]) - first_column, 0), m), visits.label[i] != 0
        sample = weights.sample[i] if weighted else 1.0
        for q in range(n_models):
            if q == 0 or n_weightings > 1:
                w = q if q < n_weightings else 0
                k, own, share = weights.code[w, i], weights.own[w, i] * sample, weights.share[w, i] if projects else 0.0
                base = weights.base[w, i] if causes else 0.0
                event = min(max(np.int64(weights.event[w, i]) - first_column, 0), m)
                end = min(max(np.int64(weights.stop[w, i]) - first_column, event), m)
                exits = fitted and visits.inverse_risk[w, i] > 0.0
                if carry and exits and q == w:
                    steps[0, w, k, reach] += visits.step[w, i]
                    if causes:
                        steps[1, w, k, reach] += visits.incidence_step[w, i]
            if carry and not exits and end == event and share == 0.0:
                continue
            d, begin = influence[q], event if carry else 0
            final = m if share > 0.0 else end
            centre, scale = deviation.centre[q], deviation.scale[w]
            r, h = running[q, k], greenwood[q, k]
            # losses, and from them deviations; the commonest cases, in one go
            plain = q < n_read and kind == BRIER and readers.mode[q] == DIRECT
            done, plain = plain and projects and final == m, plain and readers.single[q]
            if done:
                alone = exits and not causes  # see below where there are several
                risk, step = (visits.inverse_risk[w, i], visits.step[w, i]) if alone else (0.0, 0.0)
                place, g = readers.address[q] + visits.row[i] * readers.stride[q], weights.reference[w, k]
                gradient = weights.gradient[w, k]
                y, at = 0.0 if with_event else 1.0, readers.lower[q, first_column]
                if plain:
                    single = carray(_single_at(place + 4 * at), (m,))
                    _project(single, event, end, y, own, centre, scale, base, share, g, gradient, r, h, risk, step, d)
                else:
                    double = carray(_double_at(place + 8 * at), (m,))
                    _project(double, event, end, y, own, centre, scale, base, share, g, gradient, r, h, risk, step, d)
            elif plain:
                place = readers.address[q] + visits.row[i] * readers.stride[q] + 4 * readers.lower[q, first_column]
                row, at_risk = carray(_single_at(place), (m,)), weights.at_risk[w, k]
                early, before = at_risk[begin:event], d[begin:event]
                _brier_deviations(row[begin:event], 1.0, centre[begin:event], early, sample, before)
                y = 0.0 if with_event else 1.0
                _brier_deviations(row[event:end], y, centre[event:end], scale[event:end], own, d[event:end])
            elif q < n_read:
                _read(readers, q, visits.row[i], first_column + begin, d[begin:final])
                if share > 0.0:
                    _copy(d[end:], other[end:])
                    _losses(kind, epsilon, other[end:], False)
                    _losses(kind, epsilon, d[end:], True)
                _losses(kind, epsilon, d[begin:event], True)
                _losses(kind, epsilon, d[event:end], not with_event)
            else:
                free, lost = deviation.event_free[q - n_read], deviation.with_event[q - n_read]
                _copy(free[begin:event], d[begin:event])
                _copy(lost[event:end] if with_event else free[event:end], d[event:end])
                if share > 0.0:
                    _copy(free[end:], d[end:])
                    _copy(lost[end:], other[end:])
            if not (done or plain):
                _deviate(d[begin:event], centre[begin:event], weights.at_risk[w, k, begin:event], sample)
                _deviate(d[event:end], centre[event:end], scale[event:end], own)
            if done:
                pass
            elif share > 0.0:
                x, y, c, v, s = d[end:], other[end:], centre[end:], scale[end:], r[end:]
                g, gradient = weights.reference[w, k, end:], weights.gradient[w, k, end:]
                for j in range(x.size):
                    slope = x[j] - y[j]
                    x[j] = (y[j] + (base + share * g[j]) * slope - c[j]) * v[j] * own
                    s[j] += share * gradient[j] * slope * v[j] * own
            elif short:
                width = end
            else:
                _fill(d[end:])
            # what estimating the curve adds
            if causes and exits:
                if not (done or carry):
                    _add(d, h, sample)
                risk = visits.inverse_risk[w, i] * sample
                _exit_by_cause(
                    r[reach:], weights.reference[w, k, reach:], risk, visits.own[w, i],
                    visits.own_slope[w, i], visits.step[w, i], visits.incidence_step[w, i], h[reach:], d[reach:],
                )  # fmt: skip
            elif fitted and not done:
                if not (projects or exits) and visits.moves[w, i]:
                    _add(r[event:end], d[event:end], 1.0)
                if not carry:
                    _add(d, h, sample)
                if exits:
                    _add(d[reach:], r[reach:], -visits.inverse_risk[w, i] * sample)
                    if visits.step[w, i] > 0.0:
                        _add(h[reach:], r[reach:], visits.step[w, i])
            if carry:
                continue
            if deviation.offset.shape[0]:
                inside = min(max(np.int64(visits.population[i]) - first_column, 0), m)
                _add_rarely(d[:inside], deviation.offset[q, :inside], -sample)
            if q == n_models - 1 and deviation.slope.size:
                _add_rarely(d[:reach], deviation.common[:reach], sample)
                for part in range(deviation.slope.shape[0]):
                    _add_rarely(d[reach:], deviation.slope[part, reach:], visits.null[part, i] * sample)
        if carry:
            continue
        unit = visits.unit[i] if in_groups else i
        if visits.factor.size:
            for q in range(n_models):
                _scale(influence[q, :width], visits.factor[i])
        if deviation.shares.shape[0]:
            inside = min(max(np.int64(visits.population[i]) - first_column, 0), width)
            factors = scratch[2 * n_models, :inside]
            _factors(sample, deviation.shares[0], deviation.shares[1], factors)
            for q in range(n_models):
                _multiply(influence[q, :inside], factors)
        for q in range(n_models):
            d = influence[q, :width]
            for r in range(averages.shape[0]):
                means[q, unit, r] += dot(d, averages[r, :width])
            if in_table:
                _add_rarely(table[q, unit, :width], d, 1.0)
            elif in_groups:
                _add_rarely(of_group[q, :width], d, 1.0)
        if in_table or (in_groups and i + 1 < stop and visits.unit[i + 1] == unit):
            continue
        total = of_group if in_groups else influence
        width = m if in_groups else width
        for p in range(pairs.shape[0]):
            a, b = pairs[p, 0], pairs[p, 1]
            _add_squares(squares[p, :width], total[a, :width], total[b, :width], 0.0 if a == b else 1.0)
        if in_groups:
            for q in range(n_models):
                _fill(of_group[q])
