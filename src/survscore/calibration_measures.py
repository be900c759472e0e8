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

from survscore._logistic import LogisticFit, logistic_fit
from survscore.engine.influence import influence_with_nuisance
from survscore.engine.units import Groups, Units, small_sample
from survscore.estimate import Estimate
from survscore.metrics import DEFAULT_EPSILON
from survscore.nuisance import Elsewhere
from survscore.stretches import Stretches
from survscore.student import student_quantile

NO_VARIANCE = 1e-24  # what is less is rounding


@dataclass(frozen=True, eq=False)
class CountedSample:
    """Predicted risks, statuses and weights at one time.

    Attributes
    ----------
    time : ndarray of shape (1,)
    risk : ndarray of shape (n,)
        Everybody's predicted probability of the event by then.
    event, weight : ndarray of shape (n,)
        Status, zero or one, and weight; zero for those who are not counted, one on average for the others.
    stretches : Stretches
        Where the weights come from.
    groups : Groups or None
        Who belongs together.
    """

    time: NDArray[np.float64]
    risk: NDArray[np.float64]
    event: NDArray[np.float64]
    weight: NDArray[np.float64]
    stretches: Stretches
    groups: Groups | None

    @cached_property
    def rows(self) -> NDArray[np.intp]:
        """Who is counted."""
        return np.flatnonzero(self.weight)

    @cached_property
    def log_odds(self) -> NDArray[np.float64]:
        """The predictions of those who are counted, clipped as by the logarithmic loss."""
        clipped = np.clip(self.risk[self.rows], DEFAULT_EPSILON, 1 - DEFAULT_EPSILON)
        return np.asarray(np.log(clipped) - np.log1p(-clipped))

    @cached_property
    def statuses(self) -> tuple[int, int]:
        """How many of those who are counted have no event, and how many have it."""
        events = int(np.count_nonzero(self.event[self.rows]))
        return self.rows.size - events, events

    @cached_property
    def _units(self) -> Units:
        return Units.of(self.stretches, self.groups, 1)

    @property
    def n_units(self) -> float:
        """How many individuals, or groups of them, the numbers rest on."""
        return float(self._units.counted[0])

    @property
    def degrees(self) -> float:
        """Degrees of freedom of their variances."""
        return float(self._units.degrees[0])

    def units_of(self, rows: NDArray[np.intp]) -> float:
        """How many individuals, or groups, some individuals are."""
        return float(rows.size if self.groups is None else np.unique(self.groups.codes[rows]).size)

    def effective(self, rows: NDArray[np.intp], *, by_group: bool = True) -> float:
        """Kish's effective number of some individuals, or of their groups: as if all of a group were the same."""
        weight = self.weight[rows] / self.weight[rows].max()
        if by_group and self.groups is not None:
            return float(weight.sum() ** 2 / np.square(np.bincount(self.groups.codes[rows], weight)).sum())
        return float(weight.sum() ** 2 / np.square(weight).sum())

    def covariance(
        self, influence: NDArray[np.float64], n_units: NDArray[np.float64] | float | None = None
    ) -> NDArray[np.float64]:
        """Return the covariance of numbers, from the influences of those who are counted, (numbers, rows).

        With the factor n / (n - 1) of a sample variance for `n_units`, by default all; NaN where there is one only.
        """
        everybody = np.zeros((len(influence), self.weight.size, 1))
        everybody[:, self.rows, 0] = influence
        everybody, moved = influence_with_nuisance(everybody, self.stretches, self.time, slice(0, 1))
        by_unit = everybody[:, :, 0]
        if self.groups is not None:
            by_unit = np.array([np.bincount(self.groups.codes, one) for one in by_unit])
        factor = np.sqrt(small_sample(np.asarray(self.n_units if n_units is None else n_units, dtype=np.float64)))
        by_unit = by_unit * np.broadcast_to(factor, len(influence))[:, None]
        found = by_unit @ by_unit.T
        nuisance = self.stretches.nuisance
        if isinstance(nuisance, Elsewhere):
            found += (moved[:, :, 0] * nuisance.steps) @ moved[:, :, 0].T
        return np.asarray(found)

    def fit(self, design: NDArray[np.float64], offset: NDArray[np.float64] | float = 0.0) -> LogisticFit | None:
        """Regress the statuses of those who are counted on some columns."""
        return logistic_fit(design, self.event[self.rows], self.weight[self.rows], offset)

    def why_no_regression(self) -> str | None:
        """Return why no regression of the status can be fitted, if it can't."""
        without, with_event = self.statuses
        if with_event == 0 or without == 0:
            return f"{'nobody' if with_event == 0 else 'everybody'} who is counted had the event"
        return None


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
    weight, event, risk = sample.weight[sample.rows], sample.event[sample.rows], sample.risk[sample.rows]
    total = weight.sum()
    observed, expected = float(weight @ event / total), float(weight @ risk / total)
    if not expected > 0:
        reasons["observed_expected"] = "all predicted risks are 0"
        return Estimate()
    ratio = observed / expected
    if 0 in sample.statuses:
        chance = ((1 - level) / 2) ** (1 / sample.effective(sample.rows))
        if sample.statuses[1] == 0:
            return Estimate(0.0, math.nan, 0.0, (1 - chance) / expected)
        return Estimate(ratio, math.nan, chance / expected, 1 / expected)
    influence = weight * (event / observed - risk / expected) / total
    logarithm = interval(math.log(ratio), sample.covariance(influence[None])[0, 0], sample.degrees, level)
    if math.isnan(logarithm.se):
        reasons["observed_expected"] = too_few_units(sample) or "the predictions are the statuses themselves"
        return Estimate(ratio)
    return logarithm.exp()


def regressions(sample: CountedSample, level: float, reasons: dict[str, str]) -> tuple[Estimate, Estimate, Estimate]:
    """Return intercept and slope on the predicted log odds, and the intercept where the slope is held at one."""
    df = sample.degrees
    why = sample.why_no_regression()
    in_the_large = intercept = slope = Estimate()
    if why is None:
        offset = sample.fit(np.ones((sample.rows.size, 1)), sample.log_odds)
        if offset is None:
            reasons["in_the_large"] = "the weights leave one status only"
        else:
            in_the_large = interval(float(offset.coefficients[0]), sample.covariance(offset.influence)[0, 0], df, level)
    else:
        reasons["in_the_large"] = why
    if why is None and np.ptp(sample.log_odds) == 0:
        why = "all predictions are the same"
    both = None if why else sample.fit(np.column_stack((np.ones(sample.rows.size), sample.log_odds)))
    if both is None:
        why = why or "the predictions tell those with event from those without, so that the slope has no bound"
        reasons["slope"] = reasons["intercept"] = why
    else:
        variances = np.diag(sample.covariance(both.influence))
        intercept, slope = (
            interval(float(value), float(variance), df, level)
            for value, variance in zip(both.coefficients, variances, strict=True)
        )
    for name, value in (("in_the_large", in_the_large), ("intercept", intercept), ("slope", slope)):
        if name not in reasons and math.isnan(value.se):
            reasons[name] = too_few_units(sample) or "it does not vary"
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
    weight, event, risk = sample.weight[sample.rows], sample.event[sample.rows], sample.risk[sample.rows]
    edges = np.unique(np.quantile(risk, np.arange(1, n_groups) / n_groups, method="inverted_cdf"))
    _, label = np.unique(np.searchsorted(edges, risk, side="left"), return_inverse=True)
    counts = np.bincount(label)
    totals = np.bincount(label, weight)
    predicted, observed = np.bincount(label, weight * risk) / totals, np.bincount(label, weight * event) / totals
    inside = label == np.arange(counts.size)[:, None]
    influence = np.where(inside, weight * (event - observed[label]) / totals[label], 0.0)
    events = np.bincount(label, event).astype(np.int64)
    units = np.array([sample.units_of(sample.rows[one]) for one in inside])
    variances = np.diag(sample.covariance(influence, units))
    effective = [sample.effective(sample.rows[one]) for one in inside]
    limits = [_wilson(*one, level) for one in zip(observed, variances, units, effective, strict=True)]
    se, lower, upper = np.array(limits).T
    return RiskGroups(predicted, np.clip(observed, 0.0, 1.0), se, lower, upper, counts, events)


def _wilson(share: float, variance: float, n_units: float, effective: float, level: float) -> tuple[float, ...]:
    """Return standard error and limits; where all have the same status, for the effective number of individuals."""
    if n_units < 2 or math.isnan(variance):
        return (math.nan,) * 3
    varies = variance > NO_VARIANCE
    if not varies and 0 < share < 1:
        return (math.nan,) * 3
    n = share * (1 - share) / variance if varies else effective
    square = float(student_quantile(level, n_units - 1)) ** 2 / n
    middle = (share + square / 2) / (1 + square)
    half = math.sqrt(square * share * (1 - share) + square**2 / 4) / (1 + square)
    return math.sqrt(variance) if varies else math.nan, max(middle - half, 0.0), min(middle + half, 1.0)
