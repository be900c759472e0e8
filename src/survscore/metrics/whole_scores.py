"""Scores of whole curves up to each individual's censoring time, or up to a horizon if that comes first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from survscore._utils.parallel import dot, each, row_blocks
from survscore._validation import UnfitError
from survscore.censoring.product_limit import ProductLimit
from survscore.curves import SurvivalCurves
from survscore.inference.intervals import PossibleRange, Scale
from survscore.interpolation import blend
from survscore.metrics.base import FollowUpMetric, History, MetricValue
from survscore.metrics.losses import DEFAULT_EPSILON, check_epsilon

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class CRPS(FollowUpMetric):
    r"""Squared distance of the whole curve to what happened, up to :math:`C^*` or t: the Brier score per unit of time.

    .. math:: \mathrm{CRPS}(t) = \frac{\sum_i \int_0^{\min(C^*_i, t)} w_i(s) [1\{T_i > s\} - \pi_i(s)]^2\,ds}
        {\sum_i \min(C^*_i, t)}

    the continuous ranked probability score, restricted to the time under potential observation. Without drop-outs all
    weights are one. With them, :math:`w_i(s) = 1/G_d(s)` as long as i is under observation and event-free,
    :math:`1/G_d(T_i-)` from the event on, and zero for those who are lost. Under `IPCW`, :math:`C^*` is infinite and G
    takes the place of :math:`G_d`.

    Lower is better; predicting one half for all gives 0.25. It is proper given covariates and :math:`C^*`, and
    predictions after :math:`C^*` change nothing. Individuals with long potential follow-up weigh more than those with
    short. Integrals are exact, for curves that are linear between the times of their grid and for step curves.

    Examples
    --------
    >>> import survscore as ss
    >>> y = ss.Outcomes(time=[1, 3], event=[1, 0], censoring_time=[2, 3])
    >>> curves = ss.SurvivalCurves([[0.5, 0.5], [1.0, 0.4]], times=[0, 3], interpolation="step")
    >>> ss.score_all(y, curves, metric="crps", weighting="administrative", times=[3])[0].scores  # (0.25 * 2 + 0) / 5
    array([0.1])
    """

    name: ClassVar[str] = "crps"
    label: ClassVar[str] = "CRPS"
    scale: ClassVar[Scale] = "log"
    possible: ClassVar[PossibleRange] = (0.0, 1.0)

    def evaluate(self, curves: SurvivalCurves, history: History) -> MetricValue:  # noqa: D102
        if curves.interpolation == "constant-hazard":
            raise UnfitError(
                "crps integrates curves that are linear between grid times, or steps, not "
                "interpolation='constant-hazard': read them at the times of a finer grid, "
                "SurvivalCurves(curves.at(grid), grid)"
            )
        time, nothing = history.time, np.zeros(history.time.size)
        followed = np.clip(history.until, 0.0, history.horizon)
        pieces = _pieces(curves, history, followed)
        if isinstance(pieces, str):
            return MetricValue(np.nan, nothing, pieces)
        late, after = history.event & (time < followed), nothing.copy()
        after[late] = _weight_at_event(history, late)
        ends, mass = np.minimum(time, followed), history.mass
        integrals = integrate(curves, pieces, ends, followed, after, mass, estimated=history.lost is not None)
        own_late = after * integrals.after
        own, length = integrals.before + own_late, mass * followed
        total = float(length.sum())
        value = float(own.sum() / total)
        gradient = None
        if history.lost is not None:
            gradient = censoring_gradient(history.lost.times, pieces, integrals, history, own_late) / total
        return MetricValue(value, (own - value * length) / total, moved=gradient)

    def slope(self, curves: SurvivalCurves, history: History) -> Vector:  # noqa: D102
        time, grid = history.time, curves.times
        followed = np.clip(history.until, 0.0, history.horizon)
        pieces = _pieces(curves, history, followed)
        if isinstance(pieces, str):
            return np.zeros(grid.size)
        late = history.event & (time < followed)
        # all integrals of 1, u - s and (u - s)^2, from the knot s before, times 1 or times the curve, linear in u
        event_free = pieces.sums_before(np.minimum(time, followed), history.mass)
        after = history.mass[late] * _weight_at_event(history, late)
        both = event_free + pieces.sums_after(time[late], followed[late], after)
        width, value = np.diff(pieces.knots), np.asarray(curves.at(pieces.knots)[0], dtype=np.float64)
        rise = np.zeros(width.size) if curves.interpolation == "step" else np.diff(value) / width
        whole = value[:-1] * both[0] - event_free[0] + rise * both[1]
        at_end = np.zeros(width.size)
        if curves.interpolation != "step":
            at_end = (value[:-1] * both[1] - event_free[1] + rise * both[2]) / width
        by_knot = np.append(whole - at_end, 0.0) + np.append(0.0, at_end)
        by_knot *= 2.0 / (history.mass * followed).sum()
        # the values at the knots are those of the grid, mixed; at time 0 survival may be one whatever the grid says
        position = curves.interpolate(pieces.knots)
        upper = np.minimum(position.lower + 1, grid.size - 1)
        known = position.lower >= 0
        of_lower = np.bincount(position.lower[known], (by_knot * (1.0 - position.weight))[known], grid.size)
        return np.asarray(of_lower + np.bincount(upper, by_knot * position.weight, grid.size), dtype=np.float64)


def _pieces(curves: SurvivalCurves, history: History, followed: Vector) -> Pieces | str:
    """Return integrals of 1/G between the times of the grid up to the horizon; or why there are none."""
    if not followed.sum() > 0:
        return "no individual is followed beyond time 0"
    if history.lost is not None and history.lost.before(np.array([history.horizon]))[0] == 0:
        return "no individual could be under observation up to then"
    grid = curves.times[(curves.times > 0) & (curves.times < history.horizon)]
    return Pieces.of(np.concatenate(([0.0], grid, [history.horizon])), history.lost)


def _weight_at_event(history: History, rows: NDArray[np.bool_]) -> Vector:
    """Return 1/G(T-) of some individuals."""
    time = history.time[rows]
    return np.ones(time.size) if history.lost is None else 1.0 / history.lost.before(time)


# Integrals of squared distances of curves to what happened, up to each individual's own end


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
    def of(cls, knots: Vector, lost: ProductLimit | None) -> Pieces:
        """Take the curve G, which is positive before the horizon; None for one throughout."""
        points = knots if lost is None else np.union1d(knots, lost.times[lost.times < knots[-1]])
        interval = np.searchsorted(knots, points, "right") - 1
        # what jumps at the horizon itself comes after all intervals
        inverse = np.ones(points.size) if lost is None else 1.0 / lost.at(np.minimum(points, points[-2]))
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

    def sums_before(self, end: Vector, mass: Vector) -> NDArray[np.float64]:
        """Return the integrals over each interval, summed over those who are there until `end`, (3, intervals)."""
        place = self.interval(end)
        size = self.whole.shape[1]
        for_all_of_it = mass.sum() - np.cumsum(np.bincount(place, mass, size + 1)[:size])
        # of those who end with the horizon, all intervals are whole
        partial = [np.bincount(place, mass * own, size + 1)[:size] for own in self.partial(end)]
        return np.asarray(self.whole * for_all_of_it + partial)

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
    """Of individuals: integrals before and after the event, and what makes sums over all who are still there.

    Each individual's are multiplied by how much it counts.
    """

    before: Vector  # of (1 - pi)^2 / G while under observation
    after: Vector  # of pi^2 from the event on
    #: (3, rows), of (1 - pi)^2 as a polynomial in the interval in which observation ends; zero if at the horizon.
    coefficients: NDArray[np.float64]
    partial: Vector  # of (1 - pi)^2 / G over the beginning of that interval
    #: (3, intervals), coefficients summed over those who are there for the whole interval; where weights are estimated.
    sums: NDArray[np.float64]


def integrate(
    curves: SurvivalCurves,
    pieces: Pieces,
    end: Vector,
    followed: Vector,
    after: Vector,
    mass: Vector,
    *,
    estimated: bool,
) -> Integrals:
    """Integrate each individual's curve up to `end`, and from there to `followed` where `after` is not zero.

    `estimated` says whether weights are, so that sums over all who are still there are needed.
    """
    knots, width = pieces.knots, np.diff(pieces.knots)
    unweighted = Pieces.of(knots, None)

    def work(rows: slice) -> Integrals:
        in_block = curves if len(curves) == 1 else curves[rows]
        values = np.broadcast_to(in_block.at(knots).astype(np.float64), (end[rows].size, knots.size))
        left = values[:, :-1]
        slope = np.zeros_like(left) if curves.interpolation == "step" else np.diff(values, axis=1) / width
        gap = 1.0 - left
        event_free = np.array([gap * gap, -2.0 * gap * slope, slope * slope])
        before, coefficients, partial = _up_to(event_free, pieces, end[rows])
        sums = np.zeros((3, width.size))
        if estimated:
            there = np.arange(width.size) < pieces.interval(end[rows])[:, None]
            sums = np.einsum("prk,rk->pk", event_free, there * mass[rows, None])
        late = np.zeros(before.size)
        cases = np.flatnonzero(after[rows])
        if cases.size:
            left, slope = left[cases], slope[cases]
            squares = np.array([left * left, 2.0 * left * slope, slope * slope])
            ends = (_up_to(squares, unweighted, time[rows][cases])[0] for time in (followed, end))
            late[cases] = np.subtract(*ends)
        own = mass[rows]
        return Integrals(own * before, own * late, own * coefficients, own * partial, sums)

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


def censoring_gradient(jumps: Vector, pieces: Pieces, integrals: Integrals, history: History, late: Vector) -> Vector:
    r"""Return the sum over individuals of the integral from each jump on, which the factor of G at it multiplies.

    Those under observation have :math:`1/G(u)` from the jump s up to their end; those with event later than s have
    :math:`1/G(T-)` afterwards, `late`. The former is the integral of a sum over those still there: in an interval of
    the grid a polynomial whose coefficients change as they leave.
    """
    order = history.order
    ends = history.time[order]
    # those whom the metric does not describe end at time 0, and so before every jump
    described = (history.until > 0)[order]

    def up_to(values: NDArray[np.float64]) -> NDArray[np.float64]:
        sums = np.zeros((*values.shape[:-1], order.size + 1))
        np.cumsum(values[..., order] * described, axis=-1, out=sums[..., 1:])
        return sums

    done, still = up_to(integrals.partial), up_to(integrals.coefficients)
    whole = np.einsum("pk,pk->k", integrals.sums, pieces.whole)
    gradient = np.zeros(jumps.size)
    inside = jumps < pieces.knots[-1]
    s = jumps[inside]
    k = pieces.interval(s)
    left_by_s = np.searchsorted(ends, s, "right")
    left_by_knot = np.searchsorted(ends, pieces.knots[k + 1], "left")
    there = integrals.sums[:, k] + still[:, left_by_knot] - still[:, left_by_s]
    up_to_s = np.concatenate(([0.0], np.cumsum(whole)))[k] + done[left_by_s]
    up_to_s = up_to_s + np.einsum("pi,pi->i", there, pieces.partial(s))
    later = np.append(np.cumsum(late[order][::-1])[::-1], 0.0)
    gradient[inside] = whole.sum() + integrals.partial.sum() - up_to_s + later[left_by_s]
    return gradient


@dataclass(frozen=True)
class LogScore(FollowUpMetric):
    r"""Minus the log-likelihood of the whole follow-up: of the time of the event, or of remaining event-free.

    .. math:: \mathrm{LS}(t) = -\frac1n \sum_i \left(1\{T^*_i \le \min(C^*_i, t)\} \log f_i(T_i)
        + 1\{T^*_i > \min(C^*_i, t)\} \log \pi_i(\min(C^*_i, t))\right)

    Lower is better; densities depend on the unit of time, so that only differences mean something, and no skill: one of
    0.1 says that what happened was, in the geometric mean, 10.5 % more likely under the one model than under the other.
    It is proper given covariates and :math:`C^*`, and predictions after :math:`C^*` change nothing if :math:`C^*` is a
    time of the grid.

    Parameters
    ----------
    epsilon : float, default 1e-7
        Probabilities below this, of an interval or of survival, count as this.

    Notes
    -----
    :math:`f` is the density of the curve. With ``interpolation="linear"`` that is the probability of the interval of
    the grid that holds the event, divided by its length; with ``"constant-hazard"`` hazard times survival. Of a step
    curve it is the probability of the step that ends the interval: compare these with each other only, on one grid.
    An event after the grid has an interval of length one, and the probability `epsilon`.

    A drop-out adds :math:`-\log \pi_i(T_i)`, a partial likelihood, which is proper if dropping out is independent of
    the event given the covariates. So there are no weights, and all weightings of the same individuals give the same.

    Examples
    --------
    >>> import survscore as ss
    >>> y = ss.Outcomes(time=[1, 3], event=[1, 0], censoring_time=[2, 3])
    >>> curves = ss.SurvivalCurves([[0.5, 0.5], [1.0, 0.5]], times=[2, 3])  # f(1) = 0.25, pi(3) = 0.5
    >>> ss.score_all(y, curves, metric="log_score", weighting="administrative", times=[3])[0].scores.round(4)
    array([1.0397])
    """

    epsilon: float = DEFAULT_EPSILON

    name: ClassVar[str] = "log_score"
    label: ClassVar[str] = "logarithmic score"
    has_ratios: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)

    def evaluate(self, curves: SurvivalCurves, history: History) -> MetricValue:  # noqa: D102
        counted, nothing = self.eligible(history), np.zeros(history.time.size)
        if not counted.any():
            return MetricValue(np.nan, nothing, "no individual is counted")
        share = np.where(counted, history.mass, 0.0)
        share /= share.sum()
        own = _OwnInterval.of(curves, history)
        # the density at the time of those with event, the survival of others
        density = np.maximum(own.left - own.right, self.epsilon)
        if own.interpolation == "constant-hazard":
            density = np.where(own.falls, np.maximum(own.hazard * own.survival, self.epsilon), density)
        if own.interpolation != "step":
            density = density / own.length
        loss = -np.log(np.where(history.event, density, np.maximum(own.survival, self.epsilon)))
        value = float(loss[counted].mean()) if history.weights is None else dot(share, loss)
        gradient = None if history.lost is None else np.zeros(history.lost.times.size)
        return MetricValue(value, share * (loss - value), moved=gradient)

    def slope(self, curves: SurvivalCurves, history: History) -> Vector:  # noqa: D102
        counted, own = self.eligible(history), _OwnInterval.of(curves, history)
        left, right, share = own.left, own.right, own.share
        with np.errstate(divide="ignore", invalid="ignore"):
            # of the logarithm of the likelihood, by the value before the time and by the one after it
            constant_hazard = own.interpolation == "constant-hazard"
            of_left, of_right = (left, right) if constant_hazard else (own.survival, own.survival)
            by_left, by_right = (1.0 - share) / of_left, share / of_right
            unclipped = own.survival > self.epsilon
            mass = left - right
            event_left, event_right, event_unclipped = 1.0 / mass, -1.0 / mass, mass > self.epsilon
            if constant_hazard:
                event_left = np.where(own.falls, by_left + 1.0 / (left * own.hazard), event_left)
                event_right = np.where(own.falls, by_right - 1.0 / (right * own.hazard), event_right)
                event_unclipped = np.where(own.falls, own.hazard * own.survival > self.epsilon, event_unclipped)
            moves = counted & np.where(history.event, event_unclipped, unclipped)
            by_left = np.where(moves & (own.lower >= 0), np.where(history.event, event_left, by_left), 0.0)
            by_right = np.where(moves & (own.upper > own.lower), np.where(history.event, event_right, by_right), 0.0)
        m, mass = curves.times.size, history.mass
        total = np.bincount(np.maximum(own.lower, 0), mass * by_left, m) + np.bincount(own.upper, mass * by_right, m)
        return np.asarray(-total / mass[counted].sum() if counted.any() else total)


@dataclass(frozen=True, eq=False)
class _OwnInterval:
    """Each individual's curve around its own time, or the horizon: an event ends its interval, others start theirs."""

    interpolation: str
    lower: NDArray[np.intp]  # the column before; -1 before the first
    upper: NDArray[np.intp]  # the column after; the last again after the grid
    left: Vector  # the survival in these columns
    right: Vector
    length: Vector  # of the interval; one where it has none
    share: Vector  # how much of it has passed; of steps nothing

    @classmethod
    def of(cls, curves: SurvivalCurves, history: History) -> _OwnInterval:
        time, event = np.minimum(history.time, history.horizon), history.event
        grid, last = curves.times, curves.times.size - 1
        rows = np.zeros(time.size, dtype=np.intp) if len(curves) == 1 else np.arange(time.size)
        lower = np.where(event, np.searchsorted(grid, time, "left"), np.searchsorted(grid, time, "right")) - 1
        upper, inside = np.minimum(lower + 1, last), np.maximum(lower, 0)
        left = np.where(lower < 0, 1.0, curves.probabilities[rows, inside].astype(np.float64))
        right = curves.probabilities[rows, upper].astype(np.float64)
        start = np.where(lower < 0, 0.0, grid[inside])
        length = grid[upper] - start
        reads = length > 0 if curves.interpolation != "step" else np.zeros(time.size, dtype=np.bool_)
        share = np.divide(time - start, length, out=np.zeros(time.size), where=reads)
        # at time 0, or after the grid
        return cls(curves.interpolation, lower, upper, left, right, np.where(length > 0, length, 1.0), share)

    @property
    def survival(self) -> Vector:
        if self.interpolation == "step":
            return self.left
        return blend(self.left, self.right, self.share, self.interpolation == "constant-hazard")

    @property
    def falls(self) -> NDArray[np.bool_]:
        """Whether there is a hazard that is not infinite."""
        return (self.right > 0) & (self.left > self.right)

    @property
    def hazard(self) -> Vector:
        """The hazard times the length of the interval, where it falls."""
        return np.log(np.divide(self.left, self.right, out=np.ones(self.left.size), where=self.falls))
