r"""The mathematics of Neyman's smooth test for predicted distributions of which a part is seen.

Scores are the powers 1, v, v^2, v^3 of v = u / scale - 1/2, where u is the predicted probability of the event and
`scale` the largest at the end of any follow-up. They span the same functions as Legendre's polynomials of degrees 0 to
3 on [0, 1], one degree after the other, so test and components are the same numbers; but where all risks are small,
Legendre's polynomials on [0, 1] are all but collinear, and these are not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from survscore.inference.intervals import chi_square_p

Vector = NDArray[np.float64]

N_SCORES = 4  # degrees 0 to 3: level, slope, curvature, skewness
NO_VARIANCE = 1e-10  # what is left of a variance, as a share of it: less is rounding
NO_DEVIATION = 1e-6  # of what can't vary, in events
SMALL_RISK = 0.5  # up to here the pole of 1 / (1 - u) is far enough away for a quadrature that is exact to rounding
NODES, WEIGHTS = np.polynomial.legendre.leggauss(12)


def powers(risk: Vector, scale: float, degree: int = N_SCORES - 1) -> Vector:
    """Return the scores at these risks, (degree + 1, n)."""
    return np.asarray((risk / scale - 0.5) ** np.arange(degree + 1).reshape(-1, *[1] * risk.ndim))


def interval_scores(start: Vector, stop: Vector, scale: float) -> tuple[Vector, Vector, Vector]:
    """Return the means of v, v^2 and v^3 between two risks; that of 1 is 1."""
    middle = (start + stop) * (0.5 / scale) - 0.5
    width = (stop - start) / scale
    variance = width * width / 12.0
    square = middle * middle
    return middle, square + variance, middle * (square + 3.0 * variance)


def moments(stop: Vector, scale: float, degree: int, *, hazard: bool) -> Vector:
    r"""Return :math:`\int_0^s v^j\,du`, or with `hazard` :math:`\int_0^s v^j\,du / (1 - u)`, (degree + 1, n).

    The second by :math:`v^j / (a - v) = a v^{j-1} / (a - v) - v^{j-1}` with a = 1/scale - 1/2. That loses digits where
    scale is small; there Gauss and Legendre's quadrature has them all.
    """
    order = np.arange(1, degree + 2).reshape(-1, 1)
    plain = scale * ((stop / scale - 0.5) ** order - (-0.5) ** order) / order
    if not hazard:
        return np.asarray(plain)
    if scale <= SMALL_RISK:
        integrals = np.zeros((degree + 1, stop.size))
        for node, weight in zip(NODES, WEIGHTS, strict=True):
            at = stop * (0.5 + 0.5 * node)
            integrals += powers(at, scale, degree) * (0.5 * weight * stop / (1.0 - at))
        return integrals
    pole = 1.0 / scale - 0.5
    integrals = np.empty((degree + 1, stop.size))
    integrals[0] = -np.log1p(-stop)
    for j in range(1, degree + 1):
        integrals[j] = pole * integrals[j - 1] - plain[j - 1] / scale
    return integrals


def hankel(sums: Vector) -> Vector:
    """Return the matrix of products of scores from moments of up to twice their degree."""
    place = np.arange(N_SCORES)
    return np.asarray(sums[place[:, None] + place])


@dataclass(frozen=True, eq=False)
class ChiSquare:
    """A total of deviations against its covariance: the quadratic form, its rank, and the p-value of a chi-square."""

    statistic: float
    df: int
    p_value: float
    #: Each entry less what those before it explain, by its standard error: their squares add up to the statistic. NaN
    #: where nothing is left.
    z: Vector


def quadratic_test(total: Vector, covariance: Vector, n_expected: float) -> ChiSquare:
    r"""Return :math:`W' \Sigma^+ W` with its p-value, entry by entry as Cholesky's factorisation goes.

    A variance is nothing if it is rounding beside what the entries before explain, or beside the number of events that
    are expected, of whose terms it is made. If a deviation that can't vary is not zero, something happened that has
    probability zero, and the statistic is infinite.
    """
    left, rest = total.astype(np.float64), covariance.astype(np.float64)
    z = np.full(total.size, np.nan)
    contradicted = False
    for j in range(total.size):
        if not rest[j, j] > NO_VARIANCE * max(covariance[j, j], n_expected):
            contradicted |= bool(abs(left[j]) > NO_DEVIATION * max(1.0, math.sqrt(n_expected)))
            continue
        z[j] = left[j] / math.sqrt(rest[j, j])
        slope = rest[:, j] / rest[j, j]
        left = left - slope * left[j]
        rest = rest - np.outer(slope, rest[j])
    df = int(np.count_nonzero(~np.isnan(z)))
    statistic = math.inf if contradicted else float(np.nansum(z * z))
    return ChiSquare(statistic, df, chi_square_p(statistic, max(df, int(contradicted))), z)


def ratio_limits(observed: Vector, expected: Vector, variance: Vector, quantile: float) -> tuple[Vector, Vector]:
    r"""Return the limits of observed / expected: the ratios r with :math:`(O - r E)^2 \le z^2 r V`.

    V is the variance of O if r is one, and about r V otherwise. So one is inside just when O - E is within z standard
    errors, and limits exist without a single event.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = observed / expected
        slack = quantile**2 * variance / expected**2
        half = np.sqrt(slack * (ratio + slack / 4.0))
        middle = ratio + slack / 2.0
        known = (expected > 0) & (variance > 0)
        lower, upper = np.maximum(middle - half, 0.0), middle + half
    return np.where(known, lower, np.nan), np.where(known, upper, np.nan)


def pooling(expected: Vector, least: float) -> Vector:
    """Return which neighbouring bins to add up, (pooled, bins), for at least so many expected events in each."""
    labels = np.zeros(expected.size, dtype=np.intp)
    label, so_far = 0, 0.0
    for j, number in enumerate(expected):
        if so_far >= least and expected[j:].sum() >= least:
            label, so_far = label + 1, 0.0
        labels[j] = label
        so_far += float(number)
    return np.asarray(np.arange(label + 1)[:, None] == labels, dtype=np.float64)
