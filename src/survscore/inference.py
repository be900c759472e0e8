"""What follows from moments: groups, intervals, p-values and bands."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from survscore._validation import FloatArray, InputError, as_array, check_length
from survscore.curves import SurvivalCurves

Number = TypeVar("Number", float, NDArray[np.float64])


@dataclass(frozen=True, eq=False)
class Groups:
    """Who belongs together: individuals of a group may depend on each other, groups may not."""

    codes: NDArray[np.intp]
    sizes: NDArray[np.float64]

    @classmethod
    def of(cls, labels: Any, n: int) -> Groups:
        """Take one label per individual."""
        array = as_array(labels, "groups")
        if array.ndim != 1:
            raise InputError(f"groups must be one-dimensional, not of shape {array.shape}")
        check_length("groups", array.size, "y", n)
        missing = np.array([label is None or label != label for label in array.tolist()])  # noqa: PLR0124
        if missing.any():
            raise InputError(
                f"groups must be given for everybody: {missing.sum()} of {n} are missing, "
                f"the first at position {int(np.argmax(missing))}"
            )
        try:
            _, codes, sizes = np.unique(array, return_inverse=True, return_counts=True)
        except TypeError:
            raise InputError("groups must be labels of one kind, such as numbers or text") from None
        return cls(codes, sizes.astype(np.float64))


def normal_quantile(level: float) -> float:
    """Return z with P(|Z| <= z) = level."""
    from statistics import NormalDist  # slow to import, and not always needed

    if not (isinstance(level, (int, float, np.floating)) and 0 < level < 1):
        raise InputError(f"level must be between 0 and 1, not {level!r}")
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


def shared_curve(survival: FloatArray, times: NDArray[np.float64]) -> SurvivalCurves:
    """Return one step curve that stands for everybody; the loops here take a single row for all rows."""
    return SurvivalCurves(np.asarray(survival)[None], times, "step", beyond="hold")
