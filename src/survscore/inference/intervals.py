r"""Distributions, intervals, p-values and bands.

An interval is made where an estimate's distribution is closest to symmetric: a score is positive and skewed, so its
logarithm; an AUC lies between 0 and 1, so its logit; a sum of squares varies in proportion to its root, so that; a
difference as it is. Quantiles are Student's, with the degrees of freedom of the standard error (`inference.support`).
No interval leaves the range of the values that are possible: a Brier score lies between 0 and 1 whatever the data.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._validation import check_level
from survscore.inference.support import FEW_FOR_DIFFERENCE, FEW_FOR_SCORE, MUCH_ADDED, Support
from survscore.inference.units import Vector

Number = TypeVar("Number", float, Vector)
#: Which values are better: the words before "is better".
Direction = Literal["lower", "higher", "closer to 1", "closer to 0"]
Scale = Literal["plain", "log", "logit", "root", "none"]


def sides(direction: Direction) -> tuple[str, str]:
    """Return what a difference below zero means for a model, and one above.

    Of two values that should be close to a target, the difference does not show which is closer: it only has a sign.
    """
    words: dict[Direction, tuple[str, str]] = {"lower": ("better", "worse"), "higher": ("worse", "better")}
    return words.get(direction, ("lower", "higher"))


#: A difference smaller than this share of the scores is rounding, as between float32 and float64 predictions.
ROUNDING = 2.0**-20
#: Fewer degrees of freedom than this are none.
LEAST_DEGREES = 0.05
#: Fewer, as of two individuals, give no interval on the logarithmic scale, where the quantile is in an exponent: with
#: one degree of freedom, the upper limit may be 300 000 times the estimate.
LEAST_LOG_DEGREES = 2.0
#: The smallest and the largest possible value.
PossibleRange = tuple[float, float]
ANY_VALUE: PossibleRange = (-np.inf, np.inf)

# SciPy is imported where it is needed: loading scipy.special takes as long as the whole of this library.


def student_p(statistic: ArrayLike, df: ArrayLike) -> Vector:
    r"""Return two-sided p-values of Student's t, :math:`P(|T| \ge |t|)`; infinitely many degrees are the normal.

    NaN where there are no degrees of freedom.
    """
    from scipy.special import ndtr, stdtr

    size, degrees = -np.abs(np.asarray(statistic, dtype=np.float64)), np.asarray(df, dtype=np.float64)
    tail = np.where(np.isinf(degrees), ndtr(size), stdtr(np.where(np.isinf(degrees), 1.0, degrees), size))
    return np.where(degrees >= LEAST_DEGREES, 2.0 * tail, np.nan)


def student_quantile(level: float, df: ArrayLike) -> Vector:
    r"""Return critical values of Student's t, :math:`P(|T| \le t)` = `level`, one for each number of degrees."""
    from scipy.special import ndtri, stdtrit

    check_level(level)
    degrees, below = np.asarray(df, dtype=np.float64), 0.5 + level / 2
    known = (degrees >= LEAST_DEGREES) & np.isfinite(degrees)
    finite = np.where(known, stdtrit(np.where(known, degrees, 1.0), below), np.nan)
    return np.where(np.isposinf(degrees), ndtri(below), finite)


def fisher_quantile(level: float, numerator: int, denominator: float) -> float:
    """Return the quantile of Fisher's F; NaN without degrees of freedom."""
    from scipy.special import chdtri, fdtri

    check_level(level)
    if not (numerator > 0 and denominator > 0):
        return float("nan")
    if np.isinf(denominator):
        return float(chdtri(numerator, 1.0 - level)) / numerator
    return float(fdtri(numerator, denominator, level))


def fisher_p(statistic: float, numerator: float, denominator: float) -> float:
    r"""Return :math:`P(F \ge f)` of Fisher's F; NaN without degrees of freedom."""
    from scipy.special import chdtrc, fdtrc

    if not (statistic >= 0 and numerator > 0 and denominator >= LEAST_DEGREES):
        return float("nan")
    if np.isinf(denominator):
        return float(chdtrc(numerator, numerator * statistic))
    return float(fdtrc(numerator, denominator, statistic))


def chi_square_p(statistic: float, df: int) -> float:
    r"""Return :math:`P(\chi^2_k \ge x)`; NaN without degrees of freedom."""
    from scipy.special import chdtrc

    return float(chdtrc(df, statistic)) if statistic >= 0 and df > 0 else float("nan")


def normal_quantile(level: float) -> float:
    """Return z with P(|Z| <= z) = level."""
    return float(student_quantile(level, np.inf))


def limits(estimate: Number, se: Number, level: float) -> tuple[Number, Number]:
    """Return the limits of the normal confidence interval: the estimate -/+ a quantile times se."""
    half = normal_quantile(level) * se
    return estimate - half, estimate + half


class Interval(NamedTuple):
    """A confidence interval, and whether there are enough data for it to be reliable."""

    lower: Vector
    upper: Vector
    reliable: NDArray[np.bool_]


class Contrast(NamedTuple):
    """The same of a difference, with its p-value."""

    lower: Vector
    upper: Vector
    reliable: NDArray[np.bool_]
    p_value: Vector


def score_interval(
    value: Vector,
    se: Vector,
    level: float,
    scale: Scale,
    support: Support,
    added_share: Vector | float = 0.0,
    possible: PossibleRange = ANY_VALUE,
) -> Interval:
    """Return the confidence interval of a score; NaN without a scale, for one that is mostly biased by chance.

    The interval stays within `possible`, the range of the score's values. `added_share` is how much of the variance is
    not that of influences (see `Moments.added`): where it is more than a tenth, the interval is conservative; but not
    on the scale of the root, which allows for squares of errors.
    """
    if scale == "none":
        nothing = np.full_like(value, np.nan)
        return Interval(nothing, nothing, np.zeros(value.shape, dtype=np.bool_))
    lower, upper = _score_limits(value, se, level, support.score_degrees, scale, support.n_rarer)
    lower, upper = _within(lower, upper, value, possible)
    little_added = (np.asarray(added_share) <= MUCH_ADDED) | (scale == "root")
    return Interval(lower, upper, support.enough(few_for_score(scale)) & ~np.isnan(value) & little_added)


def few_for_score(scale: Scale) -> int:
    """Return how many individuals of each status a reliable interval of a score needs."""
    return FEW_FOR_SCORE if scale == "log" else FEW_FOR_DIFFERENCE


def difference_interval(
    value: Vector,
    reference: Vector,
    se: Vector,
    critical: Vector,
    scale: Scale,
    support: Support,
    added_share: Vector | float = 0.0,
    possible: PossibleRange = ANY_VALUE,
    tolerance: Vector | float = 0.0,
) -> Contrast:
    """Return the confidence interval and the p-value of the difference of two scores.

    What is small beside the scores is rounding, and no standard error is smaller; for an AUC, one pair whose order
    changes when predictions are rounded. Where all have the same status, a difference without variance has no interval;
    neither have scores without a scale. `added_share` and `possible`, which is that of the scores, are as for
    `score_interval`. `tolerance` is by how much the difference may be off, whichever the sample: the interval has room
    for it on either side, and the p-value is the largest of all differences within it.
    """
    difference = value - reference
    if scale == "none":
        nothing = np.full_like(difference, np.nan)
        return Contrast(nothing, nothing, np.zeros(difference.shape, dtype=np.bool_), nothing)
    rounding = ROUNDING * np.maximum(np.abs(value), np.abs(reference))
    if scale == "logit":
        rounding = np.maximum(rounding, 1.0 / np.maximum(support.n_events * support.n_event_free, 1.0))
    error = np.maximum(se, rounding)
    with np.errstate(invalid="ignore", divide="ignore"):
        half = critical * error + tolerance
        beyond = np.maximum(np.abs(difference) - tolerance, 0.0)
        p_value = student_p(np.where(beyond == 0, 0.0, beyond / error), support.difference_degrees)
        blind = (se <= rounding) & (np.abs(difference) > rounding) & (support.n_rarer < 1)
    half, p_value = np.where(blind, np.nan, half), np.where(blind, np.nan, p_value)
    reliable = support.enough(FEW_FOR_DIFFERENCE) & ~np.isnan(difference) & (np.asarray(added_share) <= MUCH_ADDED)
    farthest = possible[1] - possible[0]
    lower, upper = _within(difference - half, difference + half, difference, (-farthest, farthest))
    return Contrast(lower, upper, reliable, p_value)


def ratio_interval(ratio: Vector, se: Vector, level: float, support: Support) -> Interval:
    """Return the confidence interval of the ratio of two scores."""
    lower, upper = _score_limits(ratio, se, level, support.difference_degrees, "log", support.n_rarer)
    lower, upper = _within(lower, upper, ratio, (0.0, np.inf))
    return Interval(lower, upper, support.enough(FEW_FOR_DIFFERENCE))


def _within(lower: Vector, upper: Vector, value: Vector, possible: PossibleRange) -> tuple[Vector, Vector]:
    """Return limits within the possible values, and on either side of the estimate, whatever rounding did to them.

    An estimate itself may lie outside: a sum of weighted losses divided by n(t), not by the sum of the weights.
    """
    lowest, highest = possible
    return np.clip(lower, np.minimum(lowest, value), value), np.clip(upper, value, np.maximum(highest, value))


def _score_limits(
    value: Vector, se: Vector, level: float, degrees: Vector, scale: Scale, n_rarer: Vector
) -> tuple[Vector, Vector]:
    r"""Return the limits of a score's confidence interval, made on its own scale.

    On the log scale :math:`s \exp(\pm q\,se / s)`; on the logit scale the same for
    :math:`\log(s / (1 - s))`, and where the score is 1, so that its standard error is zero, from
    :math:`(\alpha / 2)^{1/k}` to 1, with k of the rarer status: below it, so many would hardly all have been ordered
    right; on the scale of the root, where the score is positive, :math:`(\sqrt s \pm q\,se / (2 \sqrt s))^2`, with a
    lower limit of at least zero. NaN where a standard error of zero only means that no variation was observed, and on
    the log scale with fewer than `LEAST_LOG_DEGREES`.
    """
    quantile = student_quantile(level, degrees)
    if scale == "log":
        quantile = np.where(degrees >= LEAST_LOG_DEGREES, quantile, np.nan)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        half = quantile * se
        lower, upper = value - half, value + half
        if scale == "log":
            positive = value > 0
            factor = np.exp(half / np.where(positive, value, 1.0))
            lower = np.where(positive, value / factor, np.maximum(lower, 0.0))
            upper = np.where(positive, value * factor, upper)
        elif scale == "root":
            root = np.sqrt(np.where(value > 0, value, 1.0))
            on_root = half / (2.0 * root)
            lower = np.where(value > 0, np.square(np.maximum(root - on_root, 0.0)), lower)
            upper = np.where(value > 0, np.square(root + on_root), upper)
        elif scale == "logit":
            inside = (value > 0) & (value < 1)
            odds = value / np.where(inside, 1.0 - value, 1.0)
            factor = np.exp(half / np.where(inside, value * (1.0 - value), 1.0))
            extreme = ((1.0 - level) / 2) ** (1.0 / np.maximum(n_rarer, 1.0))
            lower = np.where(inside, odds / factor / (1.0 + odds / factor), np.where(value >= 1, extreme, 0.0))
            upper = np.where(inside, 1.0 / (1.0 + 1.0 / (odds * factor)), np.where(value <= 0, 1.0 - extreme, 1.0))
            lower, upper = (np.where(np.isnan(half) | np.isnan(value), np.nan, limit) for limit in (lower, upper))
    with np.errstate(invalid="ignore"):
        # these are the scales of sums of both signs, such as a net benefit, whose parts may all be the same
        blind = (upper - lower <= ROUNDING * np.abs(value)) & ((n_rarer < 1) | (scale in ("plain", "root")))
    return np.where(blind, np.nan, lower), np.where(blind, np.nan, upper)


def verdicts(lower: Vector, upper: Vector, direction: Direction) -> NDArray[np.object_]:
    """Return whether models are better, worse or undecided, by the intervals of differences; unknown without one.

    Where values should be close to a target, a difference says lower or higher.
    """
    unknown = np.isnan(lower) | np.isnan(upper)
    below, above = sides(direction)
    return np.select([unknown, upper < 0, lower > 0], ["unknown", below, above], "undecided").astype(object)


def simultaneous_quantile(covariance: Vector, level: float, n_draws: int, seed: int) -> float:
    """Return c such that the largest of the standardised deviations over time stays below it with probability `level`.

    Multiplying every individual's influence with an own standard normal number and adding up gives a Gaussian vector
    with just this covariance over time: so the multiplier bootstrap need not visit the individuals again.
    """
    variance = np.nan_to_num(np.diag(covariance))
    moving = variance > 1e-12 * variance.max(initial=0.0)  # what is less is rounding, as at time 0
    if not moving.any():
        return normal_quantile(level)  # as for one time
    se = np.sqrt(np.maximum(variance, 0.0))
    correlation = covariance[np.ix_(moving, moving)] / np.outer(se[moving], se[moving])
    draws = gaussian_draws(correlation, n_draws, np.random.default_rng(seed))
    return float(np.quantile(np.abs(draws).max(axis=1), level))


def gaussian_draws(covariance: Vector, number: int, rng: np.random.Generator) -> Vector:
    """Draw vectors with this covariance, also where it has no full rank, (number, numbers)."""
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return np.asarray(rng.standard_normal((number, values.size)) @ root.T)


def with_degrees(critical_value: float, degrees: Vector) -> Vector:
    """Return a normal critical value as Student's at the same level, for each number of degrees of freedom."""
    return student_quantile(1.0 - float(student_p(critical_value, np.inf)), degrees)
