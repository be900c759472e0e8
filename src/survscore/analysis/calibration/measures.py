r"""Calibration at one time in numbers: observed against expected, recalibration line, and groups of like predictions.

Everything is a function of weighted individuals, and has an influence :math:`e_i` of each of them while the weights are
held fixed; `CountedSample.covariance` adds what was estimated inside the weights, and sums by group.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from survscore.engine.influence import Estimation, joint_covariance
from survscore.inference.estimate import Estimate
from survscore.inference.intervals import student_quantile
from survscore.inference.logistic import LogisticFit
from survscore.inference.units import Groups, Units, small_sample
from survscore.metrics import ObservedExpected, PooledSample
from survscore.metrics.calibration import line_in_log_odds, shift_in_log_odds

NO_VARIANCE = 1e-24  # what is less is rounding


@dataclass(frozen=True, eq=False)
class CountedSample:
    """Predicted risks, statuses and weights at one time, and what their covariances need beside.

    Attributes
    ----------
    time : ndarray of shape (1,)
    counted : PooledSample
        Those who are counted.
    n : int
        How many there are, counted or not.
    estimation : Estimation
        Where the weights come from, and what was estimated inside them.
    groups : Groups or None
        Who belongs together.
    """

    time: NDArray[np.float64]
    counted: PooledSample
    n: int
    estimation: Estimation
    groups: Groups | None

    @cached_property
    def _units(self) -> Units:
        return Units.of(self.estimation.weights.population_index, self.groups, 1)

    @property
    def n_units(self) -> float:
        """The number of individuals that are counted, or of groups of them."""
        return float(self._units.counted[0])

    @property
    def degrees(self) -> float:
        """Degrees of freedom of their variances."""
        return float(self._units.degrees[0])

    @cached_property
    def codes(self) -> NDArray[np.int32] | None:
        """The groups of those who are counted; None without groups."""
        return None if self.groups is None else self.groups.codes[self.counted.rows]

    def effective(self, *, by_group: bool = True) -> float:
        """Kish's effective sample size; by group, as if all of a group were the same."""
        weight = self.counted.weight / self.counted.weight.max()
        units = np.bincount(self.codes, weight) if by_group and self.codes is not None else weight
        return float(weight.sum() ** 2 / np.square(units).sum())

    def covariance(
        self, influence: NDArray[np.float64], n_units: NDArray[np.float64] | float | None = None
    ) -> NDArray[np.float64]:
        """Return the covariance of numbers, from the influences of those who are counted, (numbers, rows).

        With the factor n / (n - 1) of a sample variance for `n_units`, by default all; NaN where there is one only.
        """
        factor = small_sample(np.asarray(self.n_units if n_units is None else n_units, dtype=np.float64))
        return joint_covariance(
            influence, self.estimation, slice(0, 1), self.groups, factor, (self.counted.rows, self.n)
        )


def too_few_units(sample: CountedSample) -> str | None:
    """Return why nothing has a standard error, if so."""
    if sample.n_units >= 2:
        return None
    return f"only one {'individual' if sample.groups is None else 'group'} is counted, which has no variance"


def interval(value: float, variance: float, df: float, level: float) -> Estimate:
    """Return an estimate with the interval of Student's t."""
    if not variance > NO_VARIANCE:  # an interval without width would claim certainty
        return Estimate(value)
    se = math.sqrt(variance)
    half = float(student_quantile(level, df)) * se
    return Estimate(value, se, value - half, value + half)


def observed_expected(sample: CountedSample, level: float, reasons: dict[str, str]) -> Estimate:
    r"""Return :math:`\sum w y / \sum w p`, with an interval on the scale of its logarithm.

    Where all have the same status, the logarithm has no variance: the limit is that of the exact binomial interval for
    the effective sample size, :math:`1 - (\alpha/2)^{1/n}`.
    """
    counted = sample.counted
    found = ObservedExpected().evaluate(counted)
    if found.reason:
        reasons["observed_expected"] = found.reason
        return Estimate()
    if 0 in counted.statuses:
        expected = float(counted.weight @ counted.risk / counted.weight.sum())
        chance = ((1 - level) / 2) ** (1 / sample.effective())
        if counted.statuses[1] == 0:
            return Estimate(0.0, math.nan, 0.0, (1 - chance) / expected)
        return Estimate(found.value, math.nan, chance / expected, 1 / expected)
    influence = found.influence / found.value
    logarithm = interval(math.log(found.value), sample.covariance(influence[None])[0, 0], sample.degrees, level)
    if math.isnan(logarithm.se):
        reasons["observed_expected"] = too_few_units(sample) or "the predictions are the statuses themselves"
        return Estimate(found.value)
    return logarithm.exp()


def regressions(sample: CountedSample, level: float, reasons: dict[str, str]) -> tuple[Estimate, Estimate, Estimate]:
    """Return calibration in the large, and the intercept and slope of the recalibration line."""

    def estimates(fit: LogisticFit | str, names: tuple[str, ...]) -> list[Estimate]:
        if isinstance(fit, str):
            reasons.update(dict.fromkeys(names, fit))
            return [Estimate()] * len(names)
        variances = np.diag(sample.covariance(fit.influences))
        found = [
            interval(float(value), float(variance), sample.degrees, level)
            for value, variance in zip(fit.coefficients, variances, strict=True)
        ]
        for name, one in zip(names, found, strict=True):
            if math.isnan(one.se):
                reasons[name] = too_few_units(sample) or "it does not vary"
        return found

    (in_the_large,) = estimates(sample.counted.once(shift_in_log_odds), ("in_the_large",))
    intercept, slope = estimates(sample.counted.once(line_in_log_odds), ("intercept", "slope"))
    return in_the_large, intercept, slope


@dataclass(frozen=True, eq=False)
class RiskGroups:
    """Individuals with like predictions.

    Attributes
    ----------
    predicted, observed : ndarray
        The weighted mean of predicted risks, and the weighted proportion with event.
    se, lower, upper : ndarray
        Standard error and confidence limits of `observed`.
    counts, events : ndarray
        How many are counted, and how many of them with event.
    """

    predicted: NDArray[np.float64]
    observed: NDArray[np.float64]
    se: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    counts: NDArray[np.int64]
    events: NDArray[np.int64]


def risk_groups(sample: CountedSample, n_groups: int, level: float) -> RiskGroups:
    r"""Return groups between quantiles of the predictions, fewer where predictions are tied.

    The interval is Wilson's, for the effective sample size of the standard error, :math:`O (1 - O)/\mathrm{se}^2`; that
    of the weights where all have the same status.
    """
    weight, event, risk = sample.counted.weight, sample.counted.event, sample.counted.risk
    edges = np.unique(np.quantile(risk, np.arange(1, n_groups) / n_groups, method="inverted_cdf"))
    _, label = np.unique(np.searchsorted(edges, risk, side="left"), return_inverse=True)
    counts, totals = np.bincount(label), np.bincount(label, weight)
    predicted, observed = np.bincount(label, weight * risk) / totals, np.bincount(label, weight * event) / totals
    influence = np.zeros((counts.size, risk.size))
    influence[label, np.arange(risk.size)] = weight * (event - observed[label]) / totals[label]
    # the weights of units, individuals or clusters, within each group of predictions
    units, unit = np.unique(label * risk.size + _unit_codes(sample), return_inverse=True)
    group_of_unit, unit_weights = units // risk.size, np.bincount(unit, weight)
    n_units = np.bincount(group_of_unit).astype(np.float64)
    variance = np.diag(sample.covariance(influence, n_units))
    effective = totals**2 / np.bincount(group_of_unit, unit_weights**2)

    observed = np.clip(observed, 0.0, 1.0)
    varies, spread = variance > NO_VARIANCE, observed * (1 - observed)
    known = (n_units >= 2) & ~np.isnan(variance) & (varies | (spread == 0))
    # Wilson's variance is that of the limits themselves, which is not estimated; only that of clusters is
    degrees = np.full(n_units.size, math.inf) if sample.groups is None else n_units - 1
    with np.errstate(invalid="ignore", divide="ignore"):
        square = student_quantile(level, degrees) ** 2 / np.where(varies, spread / variance, effective)
        middle = (observed + square / 2) / (1 + square)
        half = np.sqrt(square * spread + square**2 / 4) / (1 + square)
        se = np.where(known & varies, np.sqrt(variance), np.nan)
    lower, upper = (np.where(known, limit, np.nan) for limit in (middle - half, middle + half))
    events = np.bincount(label, event).astype(np.int64)
    return RiskGroups(predicted, observed, se, np.maximum(lower, 0.0), np.minimum(upper, 1.0), counts, events)


def _unit_codes(sample: CountedSample) -> NDArray[np.intp]:
    """Return which unit each of those who are counted is, by numbers below how many there are."""
    if sample.codes is None:
        return np.arange(len(sample.counted))
    return np.unique(sample.codes, return_inverse=True)[1]
