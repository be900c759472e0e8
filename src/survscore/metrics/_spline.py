"""The smooth calibration curve: a weighted logistic regression of the status on a spline of the predicted log odds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from survscore._utils.products import combine
from survscore.inference.logistic import LogisticFit, expit, restricted_cubic_spline
from survscore.metrics.sample import PooledSample, log_odds

Vector = NDArray[np.float64]

#: Where the knots are, as shares of the predictions: Harrell's, for few and for many with the rarer status.
FEW_KNOTS, MANY_KNOTS = (0.1, 0.5, 0.9), (0.05, 0.275, 0.5, 0.725, 0.95)
MANY_EVENTS = 100
REACHED = 1 - 1e-12  # of a share: cumulative weights are rounded


@dataclass(frozen=True, eq=False)
class SplineFit:
    r"""A fitted logistic spline: log odds :math:`x + z(x)' \gamma`; right predictions have :math:`\gamma = 0`.

    Attributes
    ----------
    knots, gamma : ndarray
        Where it bends, and its coefficients.
    regression : LogisticFit
        With everybody's influence on these while weights are held fixed.
    """

    knots: Vector
    gamma: Vector
    regression: LogisticFit

    def columns(self, risk: Vector) -> Vector:
        """Return the spline's columns for some risks."""
        return restricted_cubic_spline(log_odds(risk), self.knots)

    def log_odds(self, risk: Vector, gamma: Vector) -> Vector:
        """Return the curve's log odds for one or several vectors of coefficients."""
        return log_odds(risk) + combine(gamma, self.columns(risk).T)

    def at(self, risk: Vector) -> Vector:
        """Return the curve at some risks; to the last bit the same for those that are the same."""
        eta = log_odds(risk)
        for coefficient, column in zip(self.gamma, self.columns(risk).T, strict=True):
            eta += coefficient * column
        return expit(eta)


def fit_spline(sample: PooledSample) -> SplineFit | str:
    """Fit the richest spline that the data allow, or return why there is none."""
    why = sample.why_no_regression()
    if why:
        return why
    x = sample.log_odds
    for knots in _possible_knots(_ascending(sample), min(sample.statuses)):
        fit = sample.fit(knots)
        if fit is not None:
            right = np.zeros(fit.coefficients.size)
            right[min(1, right.size - 1)] = x[0] if right.size == 1 else 1.0
            return SplineFit(knots, fit.coefficients - right, fit)
    return "the predictions tell those with event from those without, so that the curve has no bound"


def _ascending(sample: PooledSample) -> Vector:
    """Return the log odds from the lowest to the highest."""
    ordered = sample.log_odds[sample.order[::-1]]
    if (ordered[1:] < ordered[:-1]).any():  # a logarithm may be rounded so that it falls where its argument rises
        ordered.sort()
    return ordered


def _possible_knots(x: Vector, rarer: int) -> list[Vector]:
    """Return sets of knots, the richest first: none for a constant, two for a straight line; x ascends."""
    fresh = x[1:] != x[:-1]
    n_distinct, width = 1 + int(np.count_nonzero(fresh)), float(x[-1] - x[0])
    if n_distinct == 1:
        return [np.zeros(0)]
    found = []
    for shares in (MANY_KNOTS, FEW_KNOTS) if rarer >= MANY_EVENTS else (FEW_KNOTS,):
        if n_distinct < len(shares):
            continue
        knots = _quantiles(x, shares)
        if not np.diff(knots).min() > 1e-6 * width:  # where predictions are tied heavily, knots fall together
            knots = _quantiles(x[np.concatenate(([True], fresh))], shares)
        if np.diff(knots).min() > 1e-6 * width:
            found.append(knots)
    return [*found, x[[0, -1]]]


def _quantiles(x: Vector, shares: Sequence[float]) -> Vector:
    """Return quantiles of ascending values, halfway between two as `numpy.quantile` does."""
    place = np.asarray(shares) * (x.size - 1)
    below = place.astype(np.intp)
    low, high, part = x[below], x[np.minimum(below + 1, x.size - 1)], place - below
    return np.where(part < 0.5, low + (high - low) * part, high - (high - low) * (1 - part))


def distinct_risks(sample: PooledSample) -> tuple[Vector, Vector]:
    """Return the distinct risks, and which share of the weights each has."""
    risk, share = sample.risk[sample.order[::-1]], sample.share[sample.order[::-1]]
    starts = np.flatnonzero(np.concatenate(([True], risk[1:] != risk[:-1])))
    return risk[starts], np.add.reduceat(share, starts)


def some_risks(sample: PooledSample, n_risks: int) -> tuple[Vector, Vector]:
    """Return so many risks that stand for all, with their shares: means of those who come next to each other."""
    totals, sums = np.zeros(n_risks), np.zeros(n_risks)
    if sample.compiled:
        from survscore.metrics import _distance_kernels

        n_distinct = _distance_kernels.thin(sample.order, sample.risk, sample.share, totals, sums)
    if not sample.compiled or n_distinct <= n_risks:
        risk, mass = distinct_risks(sample)
        if risk.size <= n_risks:
            return risk, mass
        cell = np.minimum((n_risks * (np.cumsum(mass) - mass / 2)).astype(np.intp), n_risks - 1)
        totals, sums = (np.bincount(cell, part, n_risks).astype(np.float64) for part in (mass, mass * risk))
    some = totals > 0
    return sums[some] / totals[some], totals[some]


def distance_quantiles(distance: Vector, mass: Vector, shares: Sequence[float]) -> list[Vector]:
    """Return, for each share of the individuals, the least distance that it does not exceed."""
    order = np.argsort(distance, axis=-1)
    reached = np.cumsum(mass[order], axis=-1)
    found = []
    for share in shares:
        first = np.count_nonzero(reached < share * REACHED, axis=-1, keepdims=True)
        first = np.minimum(first, distance.shape[-1] - 1)
        found.append(np.take_along_axis(distance, np.take_along_axis(order, first, axis=-1), axis=-1)[..., 0])
    return found
