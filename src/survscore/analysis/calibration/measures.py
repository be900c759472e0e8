r"""Calibration at one time in numbers: observed against expected, slope, and groups of like predictions.

Everything is a function of weighted individuals, and has an influence :math:`e_i` of each of them while the weights are
held fixed; `CountedSample.covariance` adds what was estimated inside the weights (see `nuisance`) and sums by group.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from survscore.engine.influence import joint_covariance
from survscore.inference.estimate import Estimate
from survscore.inference.intervals import student_quantile
from survscore.inference.logistic import LogisticFit
from survscore.inference.units import Groups, Units, small_sample
from survscore.metrics import ObservedExpected, PooledSample
from survscore.metrics.calibration import line_in_log_odds, shift_in_log_odds
from survscore.weighting.stretches import Stretches

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
    stretches : Stretches
        Where the weights come from.
    groups : Groups or None
        Who belongs together.
    """

    time: NDArray[np.float64]
    counted: PooledSample
    n: int
    stretches: Stretches
    groups: Groups | None

    @cached_property
    def _units(self) -> Units:
        return Units.of(self.stretches.population_stop, self.groups, 1)

    @property
    def n_units(self) -> float:
        """How many individuals, or groups of them, the numbers rest on."""
        return float(self._units.counted[0])

    @property
    def degrees(self) -> float:
        """Degrees of freedom of their variances."""
        return float(self._units.degrees[0])

    @cached_property
    def codes(self) -> NDArray[np.int32] | None:
        """The groups of those who are counted; None without groups."""
        return None if self.groups is None else self.groups.codes[self.counted.rows]

    def units_of(self, some: NDArray[np.bool_]) -> float:
        """How many individuals, or groups, some of those who are counted are."""
        return float(np.count_nonzero(some) if self.codes is None else np.unique(self.codes[some]).size)

    def effective(self, some: NDArray[np.bool_] | slice = slice(None), *, by_group: bool = True) -> float:
        """Kish's effective number of some individuals, or of their groups: as if all of a group were the same."""
        weight = self.counted.weight[some] / self.counted.weight[some].max()
        if by_group and self.codes is not None:
            return float(weight.sum() ** 2 / np.square(np.bincount(self.codes[some], weight)).sum())
        return float(weight.sum() ** 2 / np.square(weight).sum())

    def covariance(
        self, influence: NDArray[np.float64], n_units: NDArray[np.float64] | float | None = None
    ) -> NDArray[np.float64]:
        """Return the covariance of numbers, from the influences of those who are counted, (numbers, rows).

        With the factor n / (n - 1) of a sample variance for `n_units`, by default all; NaN where there is one only.
        """
        factor = small_sample(np.asarray(self.n_units if n_units is None else n_units, dtype=np.float64))
        return joint_covariance(
            influence, self.stretches, self.time, slice(0, 1), self.groups, factor, (self.counted.rows, self.n)
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

    Where nobody or everybody had the event, the logarithm's variance knows nothing of chance: the limit is that of the
    exact binomial interval for as many as the weights are worth, :math:`1 - (\alpha/2)^{1/n}`.
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
    """Return intercept and slope on the predicted log odds, and the intercept where the slope is held at one."""

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
        Weighted means of predicted risks, and the weighted share with event.
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

    The interval is Wilson's, for as many individuals as the standard error is worth: :math:`O (1 - O)/\mathrm{se}^2`.
    """
    weight, event, risk = sample.counted.weight, sample.counted.event, sample.counted.risk
    edges = np.unique(np.quantile(risk, np.arange(1, n_groups) / n_groups, method="inverted_cdf"))
    _, label = np.unique(np.searchsorted(edges, risk, side="left"), return_inverse=True)
    counts = np.bincount(label)
    totals = np.bincount(label, weight)
    predicted, observed = np.bincount(label, weight * risk) / totals, np.bincount(label, weight * event) / totals
    inside = label == np.arange(counts.size)[:, None]
    influence = np.where(inside, weight * (event - observed[label]) / totals[label], 0.0)
    events = np.bincount(label, event).astype(np.int64)
    units = np.array([sample.units_of(one) for one in inside])
    variances = np.diag(sample.covariance(influence, units))
    effective = [sample.effective(one) for one in inside]
    # Wilson's variance is that of the limits themselves, which nobody estimates; only that of groups is
    degrees = np.full(units.size, math.inf) if sample.groups is None else units - 1
    limits = [_wilson(*one, level) for one in zip(observed, variances, units, degrees, effective, strict=True)]
    se, lower, upper = np.array(limits).T
    return RiskGroups(predicted, np.clip(observed, 0.0, 1.0), se, lower, upper, counts, events)


def _wilson(
    share: float, variance: float, n_units: float, degrees: float, effective: float, level: float
) -> tuple[float, ...]:
    """Return standard error and limits; where all have the same status, for the effective number of individuals."""
    if n_units < 2 or math.isnan(variance):
        return (math.nan,) * 3
    varies = variance > NO_VARIANCE
    if not varies and 0 < share < 1:
        return (math.nan,) * 3
    n = share * (1 - share) / variance if varies else effective
    square = float(student_quantile(level, degrees)) ** 2 / n
    middle = (share + square / 2) / (1 + square)
    half = math.sqrt(square * share * (1 - share) + square**2 / 4) / (1 + square)
    return math.sqrt(variance) if varies else math.nan, max(middle - half, 0.0), min(middle + half, 1.0)
