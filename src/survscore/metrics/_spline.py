"""The smooth calibration curve: a weighted logistic regression of the status on a spline of the predicted log odds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from survscore._logistic import expit, restricted_cubic_spline
from survscore.metrics._counted import Counted, log_odds

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
    influence : ndarray of shape (coefficients, counted)
        Everybody's influence on these while weights are held fixed.
    """

    knots: Vector
    gamma: Vector
    influence: Vector

    def columns(self, risk: Vector) -> Vector:
        """Return the spline's columns for some risks."""
        return restricted_cubic_spline(log_odds(risk), self.knots)

    def log_odds(self, risk: Vector, gamma: Vector) -> Vector:
        """Return the curve's log odds for one or several vectors of coefficients."""
        return np.asarray(log_odds(risk) + gamma @ self.columns(risk).T)

    def at(self, risk: Vector) -> tuple[Vector, Vector]:
        """Return the curve at some risks, and its derivatives by the coefficients, (risks, coefficients)."""
        share = expit(self.log_odds(risk, self.gamma))
        return share, (share * (1 - share))[:, None] * self.columns(risk)


def fit_spline(counted: Counted) -> SplineFit | str:
    """Fit the richest spline that the data allow, or return why there is none."""
    why = counted.why_no_regression()
    if why:
        return why
    x = counted.log_odds
    for knots in _possible_knots(x, min(counted.statuses)):
        fit = counted.fit(restricted_cubic_spline(x, knots))
        if fit is not None:
            right = np.zeros(fit.coefficients.size)
            right[min(1, right.size - 1)] = x[0] if right.size == 1 else 1.0
            return SplineFit(knots, fit.coefficients - right, fit.influence)
    return "the predictions tell those with event from those without, so that the curve has no bound"


def _possible_knots(x: Vector, rarer: int) -> list[Vector]:
    """Return sets of knots, the richest first: none for a constant, two for a straight line."""
    distinct = np.unique(x)
    if distinct.size == 1:
        return [np.zeros(0)]
    found = []
    for shares in (MANY_KNOTS, FEW_KNOTS) if rarer >= MANY_EVENTS else (FEW_KNOTS,):
        if distinct.size < len(shares):
            continue
        for values in (x, distinct):  # where predictions are tied heavily, knots fall together
            knots = np.quantile(values, shares)
            if np.diff(knots).min() > 1e-6 * np.ptp(distinct):
                found.append(knots)
                break
    return [*found, distinct[[0, -1]]]


def distinct_risks(risk: Vector, weight: Vector) -> tuple[Vector, Vector]:
    """Return the distinct risks, and which share of the weights each has."""
    distinct, place = np.unique(risk, return_inverse=True)
    mass = np.bincount(place, weight)
    return distinct, mass / mass.sum()


def distance_quantile(distance: Vector, mass: Vector, share: float) -> Vector:
    """Return the least distance that a share of the individuals does not exceed."""
    order = np.argsort(distance, axis=-1)
    reached = np.cumsum(mass[order], axis=-1)
    first = np.argmax(reached >= share * REACHED, axis=-1)
    ordered = np.take_along_axis(distance, order, axis=-1)
    return np.asarray(np.take_along_axis(ordered, first[..., None], axis=-1)[..., 0])
