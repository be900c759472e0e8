"""What follows from moments: intervals, p-values and bands."""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from survscore._validation import check_level
from survscore.metrics import Direction

Number = TypeVar("Number", float, NDArray[np.float64])


def normal_quantile(level: float) -> float:
    """Return z with P(|Z| <= z) = level."""
    from statistics import NormalDist  # slow to import, and not always needed

    check_level(level)
    return NormalDist().inv_cdf(0.5 + level / 2)


def limits(estimate: Number, se: Number, level: float) -> tuple[Number, Number]:
    """Return the limits of the normal confidence interval: the estimate -/+ a quantile times se."""
    half = normal_quantile(level) * se
    return estimate - half, estimate + half


def two_sided_p(difference: NDArray[np.float64], se: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return normal p-values; 1 where both the difference and its standard error are zero, as for equal models."""
    with np.errstate(invalid="ignore", divide="ignore"):
        z = np.where((difference == 0) & (se == 0), 0.0, np.abs(difference) / se)
    return np.asarray(np.vectorize(math.erfc, otypes=[float])(z / math.sqrt(2)))


def verdicts(lower: NDArray[np.float64], upper: NDArray[np.float64], direction: Direction) -> NDArray[np.object_]:
    """Return whether models are better, worse or undecided, by the intervals of differences; unknown without one."""
    better, worse = (upper < 0, lower > 0) if direction == "lower" else (lower > 0, upper < 0)
    unknown = np.isnan(lower) | np.isnan(upper)
    return np.select([unknown, better, worse], ["unknown", "better", "worse"], "undecided").astype(object)


def simultaneous_quantile(covariance: NDArray[np.float64], level: float, n_draws: int, seed: int) -> float:
    """Return c such that the largest of the standardised deviations over time stays below it with probability `level`.

    Multiplying every individual's influence with an own standard normal number and adding up gives a Gaussian vector
    with just this covariance over time: so the multiplier bootstrap need not visit the individuals again.
    """
    variance = np.nan_to_num(np.diag(covariance))
    moving = variance > 1e-12 * variance.max(initial=0.0)  # what is less is rounding, as at time 0
    if not moving.any():
        return math.nan
    se = np.sqrt(np.maximum(variance, 0.0))
    correlation = covariance[np.ix_(moving, moving)] / np.outer(se[moving], se[moving])
    values, vectors = np.linalg.eigh(correlation)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    draws = np.random.default_rng(seed).standard_normal((n_draws, root.shape[1])) @ root.T
    return float(np.quantile(np.abs(draws).max(axis=1), level))
