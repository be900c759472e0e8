"""Student's t distribution: how far an estimate strays when its standard error rests on few individuals or groups."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._validation import check_level

MANY = 1e7  # degrees of freedom: from here on the normal distribution is the same to nine digits
EXPANDED = 500  # degrees of freedom: from here on an expansion is exact to twelve digits
LEAST = 0.05  # degrees of freedom: fewer are none
TINY = 1e-300


def student_p(statistic: ArrayLike, df: ArrayLike) -> NDArray[np.float64]:
    r"""Return two-sided p-values, :math:`P(|T| \ge |t|) = I_x(\nu/2, 1/2)` with :math:`x = \nu / (\nu + t^2)`.

    Parameters
    ----------
    statistic : array_like
        Estimates, divided by their standard errors.
    df : array_like
        Degrees of freedom; infinitely many give the normal distribution. NaN where there are none.

    Examples
    --------
    >>> from survscore.inference.student import student_p
    >>> student_p([2.0, 2.0, 2.0], [4, 40, float("inf")]).round(4)
    array([0.1161, 0.0523, 0.0455])
    """
    statistics, dfs = np.broadcast_arrays(np.abs(np.asarray(statistic, dtype=np.float64)), df)
    found = [_two_sided(float(one), float(of)) for one, of in zip(statistics.flat, dfs.flat, strict=True)]
    return np.array(found).reshape(statistics.shape)


def student_quantile(level: float, df: ArrayLike) -> NDArray[np.float64]:
    r"""Return critical values, :math:`P(|T| \le t)` = `level`, one for each number of degrees of freedom.

    Examples
    --------
    >>> from survscore.inference.student import student_quantile
    >>> student_quantile(0.95, [4, 40, float("inf")]).round(3)
    array([2.776, 2.021, 1.96 ])
    """
    from statistics import NormalDist  # slow to import, and not always needed

    check_level(level)
    given = np.asarray(df, dtype=np.float64)
    z = NormalDist().inv_cdf(0.5 + level / 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        result = np.where(given >= LEAST, _expansion(z, 1.0 / given), np.nan)
    few = (given >= LEAST) & (given < EXPANDED)
    if few.any():
        distinct, places = np.unique(given[few], return_inverse=True)
        result[few] = np.array([_quantile(level, z, float(one)) for one in distinct])[places]
    return result


@lru_cache(maxsize=1000)
def fisher_quantile(level: float, numerator: int, denominator: float) -> float:
    r"""Return the quantile of Fisher's F: :math:`P(F \le f) = I_x(a/2, b/2)` = `level`, :math:`x = a f / (a f + b)`.

    For many degrees of freedom in the denominator, `numerator` times it is the quantile of chi-square.

    Examples
    --------
    >>> from survscore.inference.student import fisher_quantile
    >>> [round(k * fisher_quantile(0.95, k, 1e6), 2) for k in (1, 3, 5)]
    [3.84, 7.81, 11.07]
    """
    check_level(level)
    if not (numerator > 0 and denominator > 0):
        return math.nan
    a, b = numerator / 2, min(denominator, MANY) / 2
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    low, high = 0.0, 1.0  # of x, which has a distribution between 0 and 1
    x = a / (a + b)
    for _ in range(200):
        excess = _incomplete_beta(x, a, b) - level
        low, high = (x, high) if excess < 0 else (low, x)
        # by Newton's method, or halfway where that leads astray
        density = math.exp(log_front + (a - 1) * math.log(x) + (b - 1) * math.log1p(-x))
        there = x - excess / density if density > 0 else math.nan
        there = there if low < there < high else (low + high) / 2
        if abs(there - x) <= 1e-12 * x or there in (low, high):  # the next step would be its square
            break
        x = there
    return b * there / (a * (1.0 - there)) if there < 1 else math.inf


def fisher_p(statistic: float, numerator: float, denominator: float) -> float:
    r"""Return :math:`P(F \ge f)` of Fisher's F, which is a chi-square by its degrees if the denominator has very many.

    Examples
    --------
    >>> from survscore.inference.student import fisher_p
    >>> [round(fisher_p(3.0, 2, of), 4) for of in (10, 100, 1e9)]
    [0.0954, 0.0543, 0.0498]
    """
    if not (statistic >= 0 and numerator > 0 and denominator >= LEAST):
        return math.nan
    if math.isinf(statistic):
        return 0.0
    df = min(denominator, MANY)
    return _incomplete_beta(df / (df + numerator * statistic), df / 2, numerator / 2)


def chi_square_p(statistic: float, df: int) -> float:
    r"""Return :math:`P(\chi^2_k \ge x)`, a finite sum for any whole number of degrees of freedom.

    Examples
    --------
    >>> from survscore.inference.student import chi_square_p
    >>> [round(chi_square_p(9.49, df), 4) for df in (1, 4, 9)]
    [0.0021, 0.05, 0.3933]
    """
    if not (statistic >= 0 and df > 0):
        return math.nan
    if math.isinf(statistic):
        return 0.0
    half = statistic / 2
    odd = df % 2
    total = math.erfc(math.sqrt(half)) if odd else 0.0
    # terms e^-h h^a / Gamma(a + 1), with a = 0, 1, ... or 1/2, 3/2, ...: by logarithms, since h may be large
    for step in range(df // 2):
        a = step + odd / 2
        log_power = a * math.log(half) if half > 0 else (0.0 if a == 0 else -math.inf)
        total += math.exp(log_power - half - math.lgamma(a + 1.0))
    return min(total, 1.0)


def _expansion(z: float, inverse: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return quantiles by Cornish and Fisher's expansion in the inverse of the degrees of freedom."""
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return np.asarray(sum(term * inverse**power for power, term in enumerate(terms)))


@lru_cache(maxsize=10_000)
def _quantile(level: float, z: float, df: float) -> float:
    """Return one quantile, by Newton's method from the normal one: the tail is convex, so each step falls short."""
    log_front = math.lgamma((df + 1) / 2) - math.lgamma(df / 2) - 0.5 * math.log(df * math.pi)
    value = z
    for _ in range(200):
        density = math.exp(log_front - (df + 1) / 2 * math.log1p(value * value / df))
        step = (_two_sided(value, df) - (1 - level)) / (2 * density)
        value += step
        if abs(step) <= 1e-14 * value:
            break
    return value


def _two_sided(statistic: float, df: float) -> float:
    if math.isnan(statistic) or not df >= LEAST:
        return math.nan
    if math.isinf(statistic):
        return 0.0
    if df >= MANY:
        return math.erfc(statistic / math.sqrt(2))
    return _incomplete_beta(df / (df + statistic * statistic), df / 2, 0.5)


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function, by its continued fraction on the side where that is quick."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    if x < (a + 1) / (a + b + 2):
        return math.exp(log_front) * _fraction(x, a, b) / a
    return 1.0 - math.exp(log_front) * _fraction(1 - x, b, a) / b


def _fraction(x: float, a: float, b: float) -> float:
    """Evaluate the continued fraction by Lentz's method."""
    c, d = 1.0, 1.0 / _away_from_zero(1.0 - (a + b) * x / (a + 1.0))
    value = d
    for k in range(1, 10_000):
        for numerator in (
            k * (b - k) * x / ((a + 2 * k - 1) * (a + 2 * k)),
            -(a + k) * (a + b + k) * x / ((a + 2 * k) * (a + 2 * k + 1)),
        ):
            d = 1.0 / _away_from_zero(1.0 + numerator * d)
            c = _away_from_zero(1.0 + numerator / c)
            value *= c * d
        if abs(c * d - 1.0) < 1e-15:
            break
    return value


def _away_from_zero(value: float) -> float:
    return value if abs(value) > TINY else TINY
