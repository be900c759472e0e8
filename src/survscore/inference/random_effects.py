r"""A random-effects mean of estimates from several data sets.

:math:`d_k = \mu + b_k + e_k`, with variances :math:`\tau^2` between data sets and :math:`s_k^2` within. By Paule and
Mandel, :math:`\tau^2` is such that :math:`\sum_k w_k (d_k - \bar d)^2 = K - 1` with weights
:math:`w_k = 1 / (s_k^2 + \tau^2)`. Hartung, Knapp, Sidik and Jonkman's variance,
:math:`\sum_k w_k (d_k - \bar d)^2 / [(K - 1) \sum_k w_k]`, comes with Student's t of K - 1 degrees of freedom; it is
never taken smaller than :math:`1 / \sum_k w_k`, as it may be by chance where data sets are few.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from survscore.inference.intervals import chi_square_p, student_p, student_quantile

Values = NDArray[np.float64]
LEAST_FOR_PREDICTION = 3  # data sets


@dataclass(frozen=True)
class RandomEffects:
    """The mean over data sets, and how much they differ."""

    estimate: float
    se: float
    lower: float
    upper: float
    p_value: float
    tau: float  #: The standard deviation between data sets, beyond chance.
    #: Cochran's Q, its p-value, and the share of the variation between estimates that is not chance.
    q: float
    q_p_value: float
    i_squared: float
    #: Where the value in another data set is expected.
    prediction_lower: float
    prediction_upper: float
    n: int

    @classmethod
    def of(cls, values: Values, errors: Values, level: float) -> RandomEffects:
        """Take estimates and their standard errors; those without are left out."""
        known = np.isfinite(values) & (errors > 0)
        value, variance = values[known], np.square(errors[known])
        k = value.size
        if k < 2:
            nan = math.nan
            return cls(nan, nan, nan, nan, nan, nan, nan, nan, nan, nan, nan, k)
        q = _spread(0.0, value, variance)
        tau_squared = _between(value, variance, q)
        weight = 1.0 / (variance + tau_squared)
        mean = float(weight @ value / weight.sum())
        scale = max(1.0, _spread(tau_squared, value, variance) / (k - 1))
        se = math.sqrt(scale / float(weight.sum()))
        half = float(student_quantile(level, k - 1)) * se
        wider = math.nan
        if k >= LEAST_FOR_PREDICTION:
            wider = float(student_quantile(level, k - 2)) * math.sqrt(tau_squared + se**2)
        i_squared = max(0.0, 1.0 - (k - 1) / q) if q > 0 else 0.0
        of_mean = mean, se, mean - half, mean + half, float(student_p(mean / se, k - 1))
        heterogeneity = math.sqrt(tau_squared), q, chi_square_p(q, k - 1), i_squared
        return cls(*of_mean, *heterogeneity, mean - wider, mean + wider, k)


def _spread(tau_squared: float, value: Values, variance: Values) -> float:
    weight = 1.0 / (variance + tau_squared)
    return float(weight @ np.square(value - weight @ value / weight.sum()))


def _between(value: Values, variance: Values, q: float) -> float:
    """Return the variance between data sets; zero where estimates differ no more than by chance."""
    from scipy.optimize import brentq

    excess = value.size - 1
    if q <= excess:
        return 0.0
    # with this much, the sum of squares is at most K - 1
    largest = float(np.sum(np.square(value - value.mean()))) / excess
    return float(brentq(lambda tau_squared: _spread(tau_squared, value, variance) - excess, 0.0, largest, xtol=1e-300))
