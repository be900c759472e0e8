"""The hazard of those who started late, as a multiple of that of the others at the same ages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from survscore._utils import arrays
from survscore._utils.parallel import dot
from survscore.inference.intervals import student_quantile
from survscore.inference.units import SampleWeights
from survscore.outcomes import Outcomes

Vector = NDArray[np.float64]
NO_LATE_STARTERS = "no individual has C* < t"


@dataclass(frozen=True, eq=False)
class LateStarters:
    r"""Observed and expected events of those with :math:`C^* < t`, at each evaluation time t.

    Expected by the Nelson-Aalen curve of those with :math:`C^* \ge t`: with d events among r of them at risk at time s,
    and l of those with :math:`C^* < t` at risk,

    .. math:: E = \sum_s l(s)\, d(s) / r(s), \qquad \hat\theta = O / E, \qquad
        \mathrm{var}(\log\hat\theta) = \frac1O + \frac1{E^2} \sum_s l(s)^2 d(s) / r(s)^2.

    With sample weights all of these are sums of weights; of weights that are not counts, :math:`1/O` is the sum of
    squared weights divided by :math:`O^2`, and the last :math:`d(s)` that of squared weights.

    Attributes
    ----------
    times : ndarray
        The evaluation times.
    observed, expected : ndarray
        The numbers of events.
    se_log : ndarray
        Standard errors of the logarithm of the ratio; NaN where there is none.
    reasons : tuple of str
        Why there is no ratio, at each time; empty where there is one.
    """

    times: Vector
    observed: Vector
    expected: Vector
    se_log: Vector
    reasons: tuple[str, ...]

    @classmethod
    def of(cls, y: Outcomes, times: Vector) -> LateStarters | None:
        """Compare those with C* < t with the others; None where C* is not known."""
        if y.censoring_time is None:
            return None
        y, c_star = y.numpy(), np.asarray(arrays.to_host(y.censoring_time))
        jumps = np.unique(y.time[y.event_of_interest])
        # who is at risk at which of the events: those with T >= s
        n_jumps = jumps.size
        place = np.searchsorted(jumps, y.time, side="right")
        of_event = np.where(y.event_of_interest, place - 1, n_jumps)
        order = np.argsort(c_star, kind="stable")
        ends = np.searchsorted(c_star[order], times, side="left")
        sample = SampleWeights.of(y)
        weights, squares = (None, None) if sample is None else (sample.values, sample.squares)
        # sums of weights, and those of squares, of events
        risk = _counts(place, weights, n_jumps + 1)
        events = np.array([_counts(of_event, values, n_jumps + 1) for values in (weights, squares)])
        late_risk, late_events = np.zeros(n_jumps + 1), np.zeros((2, n_jumps + 1))
        numbers, before = [], 0
        for end in ends:
            # from one time to the next, those whose C* lies between them become late
            newly_late, before = order[before:end], end
            own, square = (None if values is None else values[newly_late] for values in (weights, squares))
            late_risk += _counts(place[newly_late], own, n_jumps + 1)
            late_events += [_counts(of_event[newly_late], values, n_jumps + 1) for values in (own, square)]
            numbers.append(_numbers(risk - late_risk, (events - late_events)[:, :-1], late_risk, late_events[:, :-1]))
        return cls._of_numbers(times, numbers, ends)

    @classmethod
    def of_counts(cls, times: Vector, counts: Vector, events: Vector) -> LateStarters:
        """Compare them from counts of all individuals, and of those with event, (units of time, times + 1).

        By the time at which they left, and by how many of `times` come up to C*.
        """
        numbers, ends = [], []
        for j in range(times.size):
            parts = (slice(0, j + 1), slice(j + 1, None))  # C* < t, and the others
            late, early = (np.append(0.0, counts[:, part].sum(axis=1)) for part in parts)
            late_events, early_events = (np.tile(events[:, part].sum(axis=1), (2, 1)) for part in parts)
            numbers.append(_numbers(early, early_events, late, late_events))
            ends.append(int(late.sum()))
        return cls._of_numbers(times, numbers, ends)

    @classmethod
    def _of_numbers(cls, times: Vector, numbers: Sequence[tuple[float, ...]], ends: Iterable[int]) -> LateStarters:
        observed, of_observed, expected, variance = np.array(numbers).reshape(-1, 4).T
        reasons = tuple(_reason(*row) for row in zip(ends, observed, expected, strict=True))
        defined = np.array([not reason for reason in reasons], dtype=np.bool_)
        with np.errstate(invalid="ignore", divide="ignore"):
            se = np.sqrt(of_observed / observed**2 + variance / expected**2)
        return cls(times, observed, expected, np.where(defined, se, np.nan), reasons)

    def ratio(self, level: float) -> tuple[Vector, Vector, Vector]:
        """Return the ratios with their confidence limits, symmetric on the logarithmic scale."""
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = np.where(np.isnan(self.se_log), np.nan, self.observed / self.expected)
        factor = np.exp(student_quantile(level, np.full(self.se_log.size, np.inf)) * self.se_log)
        return ratio, ratio / factor, ratio * factor

    def most_precise(self, used: NDArray[np.bool_]) -> int | None:
        """Return the one of some times at which the ratio is known best; None where there is none."""
        se = np.where(used, self.se_log, np.nan)
        return None if np.isnan(se).all() else int(np.nanargmin(se))


def _counts(places: NDArray[np.intp], weights: Vector | None, size: int) -> Vector:
    return np.bincount(places, weights, size).astype(np.float64)


def _numbers(early: Vector, events: Vector, late: Vector, late_events: Vector) -> tuple[float, float, float, float]:
    """Return observed events and their variance, and the same of expected ones, from counts by the last event passed.

    Those of events are sums of weights and of their squares, (2, events).
    """
    (number, squares), (observed, of_observed) = events, late_events.sum(axis=1)
    # those with T >= s have passed more of the events than there are before s
    at_risk, of_late = (np.cumsum(numbers[::-1])[::-1][1:] for numbers in (early, late))
    share = np.divide(of_late, at_risk, out=np.zeros(of_late.size), where=number > 0)
    return observed, of_observed, dot(share, number), dot(share**2, squares)


def _reason(n_late: int, observed: float, expected: float) -> str:
    if not n_late:
        return NO_LATE_STARTERS
    if not expected:
        return "those with C* >= t have no event while others are at risk"
    return "" if observed else "those with C* < t have no event"
