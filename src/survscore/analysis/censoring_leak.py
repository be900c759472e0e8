"""Whether predictions fall at everybody's own C*, as they fall at no other age and for nobody else.

Everybody's C* is the same date, so what happens on that date, trends over calendar time, and differences between those
who started early and late all depend on C*, and honest predictions may show them. Three comparisons, one within the
other, take them out: the same model's fall over a window that starts at C*, with that of others over the *same ages*
whose own C* comes long after the window; and the ratio of these two with the ratio of the same individuals and the same
others at *placebo dates*, some windows before C*. A constant ratio of hazards between early and late starters cancels,
and so does a log-linear trend over calendar time: both are the same at every placebo date. What began some time before
the data end, such as an epidemic, shows in the window right before C* as well, which is looked at for that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from survscore.curves import SurvivalCurves
from survscore.inference.estimate import Estimate
from survscore.inference.units import Groups

#: Where placebo windows start, in widths before C*, and by how many widths the C* of others must be later. Both are far
#: from C*, since predictions that know it only roughly fall before it, and earlier for others. Nearer ones, which see
#: such predictions less well, are for data in which too few have room.
DESIGNS = (((3.5, 4.0), 5.0), ((3.0, 3.5), 3.0), ((2.0, 2.5), 1.0))
#: Fewer in the windows, or to compare with, tell nothing.
LEAST_INDIVIDUALS, LEAST_OTHERS = 50, 20
#: A fall by more counts as this, so that a fall to zero has a logarithm.
LARGEST_FALL = 0.99
#: Added to all falls, as cumulative hazards: ratios of falls far below this mean nothing.
TRIFLE = 0.002
MOST_AGES = 200


@dataclass(frozen=True, eq=False)
class CensoringLeak:
    """One model's fall at C* against its fall elsewhere.

    Attributes
    ----------
    after : Estimate
        Which share of the predicted survival is lost over the window that starts at C*.
    elsewhere : float
        Which share would be lost there by the comparison with others and placebo dates.
    excess : Estimate
        The difference of the two.
    ratio : Estimate
        The ratio of the two, as cumulative hazards.
    onset : Estimate
        The ratio of the fall to the same individuals' over the window right before C*, as cumulative hazards.
    falls, falls_of_others : ndarray
        At C*, right before it and at each of the placebo dates, in the order of `Windows.offsets`.
    """

    after: Estimate
    elsewhere: float
    excess: Estimate
    ratio: Estimate
    onset: Estimate
    falls: NDArray[np.float64]
    falls_of_others: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Windows:
    """Whose falls are looked at, at which ages, and with whom they are compared; the same for all models.

    Attributes
    ----------
    width : float
        Length of a window.
    order : ndarray of shape (n,)
        Everybody, by censoring time.
    own : ndarray of shape (k,)
        Places in that order of those whose windows are looked at.
    others_from : ndarray of shape (k,)
        From which place on others have a C* that is later by as much as the design says.
    starts : ndarray of shape (dates, k)
        At which age each one's window starts: at C*, a width before, and at the placebo dates.
    offsets : ndarray of shape (dates,)
        The same in time since C*.
    ages : ndarray
        At which the others are read; between them, linearly.
    """

    width: float
    order: NDArray[np.intp]
    own: NDArray[np.intp]
    others_from: NDArray[np.intp]
    starts: NDArray[np.float64]
    offsets: NDArray[np.float64]
    ages: NDArray[np.float64]

    @classmethod
    def of(cls, censoring_time: NDArray[np.float64], width: float, last: float) -> Windows | None:
        """Return the windows of the first design for which enough individuals have room; None without any."""
        order = np.argsort(censoring_time, kind="stable")
        end = censoring_time[order]
        for placebo, later in DESIGNS:
            others_from = np.searchsorted(end, end + later * width, side="left")
            compared = (end + width <= last) & (end.size - others_from >= LEAST_OTHERS)
            own = np.flatnonzero(compared & (end >= placebo[-1] * width))
            if own.size >= LEAST_INDIVIDUALS:
                offsets = 0.0 - width * np.array([0.0, 1.0, *placebo])
                starts = np.maximum(end[own] + offsets[:, None], 0.0)  # never below zero by rounding
                ages = np.unique(starts)
                if ages.size > MOST_AGES:
                    ages = np.linspace(ages[0], ages[-1], MOST_AGES)
                return cls(width, order, own, others_from[own], starts, offsets, ages)
        return None

    def leak(self, curves: SurvivalCurves, groups: Groups | None, level: float) -> CensoringLeak:
        """Compare one model's falls."""
        everybody = curves[self.order]
        start = _before(everybody, self.ages)
        fall = start - _before(everybody, self.ages + self.width)
        dates = [self._date(everybody[self.own], k, start, fall) for k in range(len(self.offsets))]
        at_end, right_before, *placebo = dates
        log_elsewhere = math.fsum(one.log_ratio for one in placebo) / len(placebo)
        placebo_influence = sum(one.influence for one in placebo) / len(placebo)
        expected = at_end.log_hazard_of_others + log_elsewhere
        hazard = max(math.exp(expected) - TRIFLE, 0.0)
        elsewhere = 1.0 - math.exp(-hazard)
        moved = math.exp(-hazard) * math.exp(expected) * (at_end.influence_of_others + placebo_influence)

        def estimate(value: float, influence: NDArray[np.float64]) -> Estimate:
            return Estimate.of(value, self._in_given_order(influence), groups, level)

        return CensoringLeak(
            estimate(at_end.fall, at_end.influence_of_fall),
            elsewhere,
            estimate(at_end.fall - elsewhere, at_end.influence_of_fall - moved),
            estimate(at_end.log_ratio - log_elsewhere, at_end.influence - placebo_influence).exp(),
            estimate(
                at_end.log_hazard - right_before.log_hazard, at_end.influence_of_own - right_before.influence_of_own
            ).exp(),
            np.array([one.fall for one in dates]),
            np.array([one.fall_of_others for one in dates]),
        )

    def _in_given_order(self, influence: NDArray[np.float64]) -> NDArray[np.float64]:
        given = np.empty_like(influence)
        given[self.order] = influence
        return given

    def _date(self, own: SurvivalCurves, date: int, start: NDArray[np.float64], fall: NDArray[np.float64]) -> _Date:
        """Return the falls over the windows at one date; `start` and `fall` are everybody's at the ages."""
        n, ages, begin = len(self.order), self.ages, self.starts[date]
        alive = own.before(begin)
        lost = alive - own.before(begin + self.width)
        lower = np.clip(np.searchsorted(ages, begin, side="right") - 1, 0, max(ages.size - 2, 0))
        upper = np.minimum(lower + 1, ages.size - 1)
        step = ages[upper] - ages[lower]
        part = np.divide(begin - ages[lower], step, out=np.zeros(begin.size), where=step > 0)

        def of_others(values: NDArray[np.float64]) -> NDArray[np.float64]:
            sums = np.cumsum(values[::-1], axis=0)[::-1]
            return np.asarray((1.0 - part) * sums[self.others_from, lower] + part * sums[self.others_from, upper])

        others_alive, others_lost = of_others(start), of_others(fall)
        usable = others_alive > 0
        alive, lost = np.where(usable, alive, 0.0), np.where(usable, lost, 0.0)
        weight = np.divide(1.0, others_alive, out=np.zeros(alive.size), where=usable)
        share = others_lost * weight
        total = float(alive.sum())
        if total <= 0:  # nobody is predicted to be there any more
            nothing = np.zeros(n)
            return _Date(math.nan, math.nan, nothing, nothing)
        of_own, of_all = float(lost.sum()) / total, float((alive * share).sum()) / total
        influence, influence_of_others = np.zeros(n), np.zeros(n)
        influence[self.own] = (lost - of_own * alive) / total
        influence_of_others[self.own] = alive * (share - of_all) / total
        # those with a later C* move the share of everybody with whom they are compared
        by_lost, by_alive = np.zeros((n, ages.size)), np.zeros((n, ages.size))
        coefficient = alive * weight / total
        for column, of_column in ((lower, 1.0 - part), (upper, part)):
            np.add.at(by_lost, (self.others_from, column), coefficient * of_column)
            np.add.at(by_alive, (self.others_from, column), coefficient * share * of_column)
        influence_of_others += np.einsum("ij,ij->i", np.cumsum(by_lost, axis=0), fall)
        influence_of_others -= np.einsum("ij,ij->i", np.cumsum(by_alive, axis=0), start)
        return _Date(of_own, of_all, influence, influence_of_others)


@dataclass(frozen=True, eq=False)
class _Date:
    """Falls over windows that start at one date: of those whose windows they are, and of others at the same ages."""

    fall: float
    fall_of_others: float
    influence_of_fall: NDArray[np.float64]
    influence_of_fall_of_others: NDArray[np.float64]

    @property
    def log_hazard(self) -> float:
        return _log_hazard(self.fall)

    @property
    def log_hazard_of_others(self) -> float:
        return _log_hazard(self.fall_of_others)

    @property
    def log_ratio(self) -> float:
        return self.log_hazard - self.log_hazard_of_others

    @property
    def influence_of_own(self) -> NDArray[np.float64]:
        """On the logarithm of the cumulative hazard."""
        return _slope(self.fall) * self.influence_of_fall

    @property
    def influence_of_others(self) -> NDArray[np.float64]:
        """On the logarithm of the others' cumulative hazard."""
        return _slope(self.fall_of_others) * self.influence_of_fall_of_others

    @property
    def influence(self) -> NDArray[np.float64]:
        """On the logarithm of the ratio."""
        return self.influence_of_own - self.influence_of_others


def _log_hazard(fall: float) -> float:
    """Return the logarithm of the cumulative hazard that makes such a fall."""
    return math.log(TRIFLE - math.log1p(-min(max(fall, 0.0), LARGEST_FALL)))


def _slope(fall: float) -> float:
    """Return the derivative of that; 0 where it is at its limits."""
    if not 0 <= fall < LARGEST_FALL:
        return 0.0
    return 1.0 / ((1.0 - fall) * (TRIFLE - math.log1p(-fall)))


def _before(curves: SurvivalCurves, ages: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return everybody's left limits at the same ages, (n, ages)."""
    return np.stack([curves.before(np.full(len(curves), age)) for age in ages], axis=1)
