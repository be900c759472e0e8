"""Integrals of squared distances of curves to what happened, up to each individual's own end."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from survscore._utils.parallel import each, row_blocks
from survscore.censoring.product_limit import ProductLimit
from survscore.curves import SurvivalCurves
from survscore.metrics.base import History

Vector = NDArray[np.float64]


class Weights(NamedTuple):
    """1/G up to a horizon: `inverse[k]` after `exits[:k]`."""

    exits: Vector
    inverse: Vector

    @classmethod
    def of(cls, lost: ProductLimit | None, horizon: float) -> Weights:
        if lost is None:
            return cls(np.zeros(0), np.ones(1))
        exits = lost.times[lost.times < horizon]
        with np.errstate(divide="ignore"):
            return cls(exits, np.concatenate(([1.0], 1.0 / lost.survival[: exits.size])))

    def before(self, time: Vector) -> Vector:
        return np.asarray(self.inverse[np.searchsorted(self.exits, time, side="left")])


class Pieces(NamedTuple):
    r"""Integrals of :math:`(u - s_k)^p / G(u)`, p = 0, 1, 2, over intervals that start at the knots :math:`s_k`.

    Measured from the knot before, powers stay small and no digits cancel.
    """

    knots: Vector  # (intervals + 1,), from 0 to the horizon
    whole: NDArray[np.float64]  # (3, intervals)
    points: Vector  # knots and exits
    inverse: Vector  # 1/G from each of the points on
    up_to: NDArray[np.float64]  # (3, points), from the knot before (or at) each of the points up to it

    @classmethod
    def of(cls, knots: Vector, weights: Weights) -> Pieces:
        points = np.union1d(knots, weights.exits)
        interval = np.searchsorted(knots, points, "right") - 1
        inverse = weights.inverse[np.searchsorted(weights.exits, points, "right")]
        start, stop = points[:-1] - knots[interval[:-1]], points[1:] - knots[interval[:-1]]
        added = np.array([(stop**p - start**p) / p * inverse[:-1] for p in (1, 2, 3)])
        whole = np.array([np.bincount(interval[:-1], row, knots.size - 1) for row in added])
        sums = np.concatenate((np.zeros((3, 1)), np.cumsum(added, axis=1)), axis=1)
        return cls(knots, whole, points, inverse, sums - sums[:, np.searchsorted(points, knots)][:, interval])

    def interval(self, time: Vector) -> NDArray[np.intp]:
        """Return which interval holds each time; as many as there are, for the horizon."""
        return np.searchsorted(self.knots, time, side="right") - 1

    def partial(self, time: Vector) -> NDArray[np.float64]:
        """Return the integrals from the knot before each time up to it, (3, times)."""
        place = np.searchsorted(self.points, time, side="right") - 1
        knot = self.knots[self.interval(time)]
        stop, start = time - knot, self.points[place] - knot
        added = np.array([(stop**p - start**p) / p for p in (1, 2, 3)]) * self.inverse[place]
        return np.asarray(self.up_to[:, place] + added)

    def sums_before(self, end: Vector) -> NDArray[np.float64]:
        """Return the integrals over each interval, summed over those who are there until `end`, (3, intervals)."""
        place = self.interval(end)
        size = self.whole.shape[1]
        for_all_of_it = end.size - np.cumsum(np.bincount(place, minlength=size + 1)[:size])
        # of those who end with the horizon, all intervals are whole
        partial = [np.bincount(place, own, size + 1)[:size] for own in self.partial(end)]
        return self.whole * for_all_of_it + partial

    def sums_after(self, start: Vector, stop: Vector, weight: Vector) -> NDArray[np.float64]:
        """Return the same without 1/G, summed with weights over those who are there from `start` to `stop`."""
        width = np.diff(self.knots)
        powers = np.arange(1, 4)[:, None]
        sums, begun = np.zeros((3, width.size)), np.zeros(width.size)
        for sign, time in ((1.0, start), (-1.0, stop)):
            place = self.interval(time)
            begun += sign * np.bincount(place, weight, width.size + 1)[: width.size]
            passed = time - self.knots[place]
            for p in (1, 2, 3):
                own = -sign * weight * passed**p / p
                sums[p - 1] += np.bincount(place, own, width.size + 1)[: width.size]
        return np.asarray(sums + np.cumsum(begun) * width**powers / powers)


class Integrals(NamedTuple):
    """Of individuals: integrals before and after the event, and what makes sums over all who are still there."""

    before: Vector  # of (1 - pi)^2 / G while under observation
    after: Vector  # of pi^2 from the event on
    #: (3, rows), of (1 - pi)^2 as a polynomial in the interval in which observation ends; zero if at the horizon.
    coefficients: NDArray[np.float64]
    partial: Vector  # of (1 - pi)^2 / G over the beginning of that interval
    #: (3, intervals), coefficients summed over those who are there for the whole interval; where weights are estimated.
    sums: NDArray[np.float64]


def integrate(
    curves: SurvivalCurves, pieces: Pieces, end: Vector, followed: Vector, after: Vector, *, estimated: bool
) -> Integrals:
    """Integrate each individual's curve up to `end`, and from there to `followed` where `after` is not zero.

    `estimated` says whether weights are, so that sums over all who are still there are needed.
    """
    knots, width = pieces.knots, np.diff(pieces.knots)
    unweighted = Pieces.of(knots, Weights.of(None, float(knots[-1])))

    def work(rows: slice) -> Integrals:
        some = curves if len(curves) == 1 else curves[rows]
        values = np.broadcast_to(some.at(knots).astype(np.float64), (end[rows].size, knots.size))
        left = values[:, :-1]
        slope = np.zeros_like(left) if curves.interpolation == "step" else np.diff(values, axis=1) / width
        gap = 1.0 - left
        event_free = np.array([gap * gap, -2.0 * gap * slope, slope * slope])
        before, coefficients, partial = _up_to(event_free, pieces, end[rows])
        sums = np.zeros((3, width.size))
        if estimated:
            sums = np.einsum("prk,rk->pk", event_free, np.arange(width.size) < pieces.interval(end[rows])[:, None])
        late = np.zeros(before.size)
        cases = np.flatnonzero(after[rows])
        if cases.size:
            left, slope = left[cases], slope[cases]
            squares = np.array([left * left, 2.0 * left * slope, slope * slope])
            ends = (_up_to(squares, unweighted, time[rows][cases])[0] for time in (followed, end))
            late[cases] = np.subtract(*ends)
        return Integrals(before, late, coefficients, partial, sums)

    parts = each(work, row_blocks(end.size, knots.size), threads=True)
    before, late, coefficients, partial, sums = zip(*parts, strict=True)
    joined = [np.concatenate(blocks, axis=-1) for blocks in (before, late, coefficients, partial)]
    return Integrals._make([*joined, np.sum(sums, axis=0)])


def _up_to(polynomial: NDArray[np.float64], pieces: Pieces, time: Vector) -> tuple[Vector, NDArray[np.float64], Vector]:
    """Integrate piecewise polynomials, (3, rows, intervals), up to each row's time.

    Return the integrals, the coefficients in the interval that holds the time, and the integral over its beginning.
    """
    place, (_, n_rows, n_intervals) = pieces.interval(time), polynomial.shape
    whole = np.einsum("prk,pk->rk", polynomial, pieces.whole)
    whole *= np.arange(n_intervals) < place[:, None]
    own = polynomial[:, np.arange(n_rows), np.minimum(place, n_intervals - 1)] * (place < n_intervals)
    partial = np.einsum("pr,pr->r", own, pieces.partial(time))
    return whole.sum(axis=1) + partial, own, partial


def moved_by_exits(exits: Vector, pieces: Pieces, found: Integrals, history: History, late: Vector) -> Vector:
    r"""Return the sum over individuals of the integral from each exit on, which the factor of G at it multiplies.

    Those under observation have :math:`1/G(u)` from the exit s up to their end; those with event later than s have
    :math:`1/G(T-)` afterwards, `late`. The former is the integral of a sum over those still there: in an interval of
    the grid a polynomial whose coefficients change as they leave.
    """
    order = history.order
    ends = history.time[order]
    # those for whom the metric does not speak end at time 0, and so before every exit
    spoken_for = (history.until > 0)[order]

    def up_to(values: NDArray[np.float64]) -> NDArray[np.float64]:
        sums = np.zeros((*values.shape[:-1], order.size + 1))
        np.cumsum(values[..., order] * spoken_for, axis=-1, out=sums[..., 1:])
        return sums

    done, still = up_to(found.partial), up_to(found.coefficients)
    whole = np.einsum("pk,pk->k", found.sums, pieces.whole)
    moved = np.zeros(exits.size)
    inside = exits < pieces.knots[-1]
    s = exits[inside]
    k = pieces.interval(s)
    left_by_s = np.searchsorted(ends, s, "right")
    left_by_knot = np.searchsorted(ends, pieces.knots[k + 1], "left")
    there = found.sums[:, k] + still[:, left_by_knot] - still[:, left_by_s]
    up_to_s = np.concatenate(([0.0], np.cumsum(whole)))[k] + done[left_by_s]
    up_to_s = up_to_s + np.einsum("pi,pi->i", there, pieces.partial(s))
    later = np.append(np.cumsum(late[order][::-1])[::-1], 0.0)
    moved[inside] = whole.sum() + found.partial.sum() - up_to_s + later[left_by_s]
    return moved
