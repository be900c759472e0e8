r"""Calibration of predicted probabilities at one time, in numbers that have an influence; see `survscore.calibration`.

Everything is about the risk :math:`p = 1 - \pi(t)` and the status :math:`y = 1\{T^* \le t\}`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from survscore._utils.parallel import cached_property, cross_products, dot
from survscore.inference.intervals import Direction, PossibleRange, Scale
from survscore.inference.logistic import LogisticFit, combined, expit, restricted_cubic_spline
from survscore.metrics.base import MetricValue, SampleMetric
from survscore.metrics.sample import MetricSample, Vector, log_odds

NO_BEND = np.zeros(2)  # two knots, wherever they are, leave a straight line
#: Where the knots are, as shares of the predictions: Harrell's, for few and for many with the rarer status.
FEW_KNOTS, MANY_KNOTS = (0.1, 0.5, 0.9), (0.05, 0.275, 0.5, 0.725, 0.95)
MANY_EVENTS = 100
REACHED = 1 - 1e-12  # of a share: cumulative weights are rounded


def _without_value(sample: MetricSample, reason: str) -> MetricValue:
    return MetricValue(np.nan, np.zeros(len(sample)), reason)


@dataclass(frozen=True)
class ObservedExpected(SampleMetric):
    r"""The observed proportion divided by the mean predicted risk: above one, risks are too low.

    .. math:: \frac{O}{E}(t) = \frac{\sum_i w_i y_i}{\sum_i w_i p_i}, \qquad
        e_i = w_i \frac{y_i - (O/E)\, p_i}{\sum_k w_k p_k}

    Intervals are made on the scale of its logarithm. It is about the mean alone: predictions that are the same for all,
    or far too high for some and too low for others, may have the value of right ones, which is 1. The difference of two
    models does not show which is closer to 1.

    Examples
    --------
    >>> import survscore as ss
    >>> sample = ss.simulate.SineConstantAcceleratingStudy().sample(1000, seed=1)
    >>> curves = ss.SurvivalCurves(sample.survival([50]).probabilities ** 2, [50])  # twice the hazard
    >>> (score,) = ss.score_all(sample.outcomes, curves, metric="oe", weighting="administrative", times=[50])
    >>> score.scores.round(3), score.lower.round(3), score.upper.round(3)
    (array([0.861]), array([0.82]), array([0.905]))
    """

    name: ClassVar[str] = "oe"
    label: ClassVar[str] = "observed/expected"
    direction: ClassVar[Direction] = "closer to 1"
    scale: ClassVar[Scale] = "log"
    possible: ClassVar[PossibleRange] = (0.0, np.inf)
    needs_both: ClassVar[bool] = False
    scores_null: ClassVar[bool] = False

    def evaluate(self, sample: MetricSample) -> MetricValue:  # noqa: D102
        observed, expected = (dot(sample.share, part) for part in (sample.event, sample.risk))
        if not expected > 0:
            return _without_value(sample, "all predicted risks are 0")
        ratio = observed / expected
        return MetricValue(ratio, sample.share * (sample.event - ratio * sample.risk) / expected)


def line_in_log_odds(sample: MetricSample) -> LogisticFit | str:
    """Regress the status on the predicted log odds: intercept and slope; or return why there is no regression."""
    separated = "the predictions separate those with event from those without, so that the slope has no bound"
    return sample.fit(NO_BEND, "all predictions are the same" if np.ptp(sample.log_odds) == 0 else separated)


def shift_in_log_odds(sample: MetricSample) -> LogisticFit | str:
    """Fit the intercept alone, where the slope is held at one; or return why it can't be."""
    return sample.fit(np.zeros(0), "the weights leave one status only", shifted=True)


@dataclass(frozen=True)
class CalibrationSlope(SampleMetric):
    r"""The slope b of a weighted logistic regression of the status on the predicted log odds.

    .. math:: \operatorname{logit} P(y_i = 1) = a + b \operatorname{logit} p_i, \qquad
        (e_i^a, e_i^b)' = H^{-1} w_i z_i (y_i - \mu_i), \qquad z_i = (1, \operatorname{logit} p_i)', \quad
        H = \sum_k w_k z_k z_k' \mu_k (1 - \mu_k)

    Right predictions have 1; below it they are too far apart, as those of an overfitted model, and above it too close
    together. It does not depend on the mean (see `ObservedExpected`), and a slope of 1 may hide a curve that bends.
    Risks are clipped at 1e-7: predictions of 0 and 1 weigh heavily. Undefined where all predictions are the same, or
    where they separate those with event from those without.

    Examples
    --------
    >>> import survscore as ss
    >>> sample = ss.simulate.SineConstantAcceleratingStudy().sample(1000, seed=1)
    >>> curves = ss.SurvivalCurves(sample.survival([50]).probabilities ** 2, [50])  # twice the hazard
    >>> (score,) = ss.score_all(sample.outcomes, curves, metric="slope", weighting="administrative", times=[50])
    >>> score.scores.round(3), score.lower.round(3), score.upper.round(3)
    (array([0.786]), array([0.613]), array([0.959]))
    """

    scores_null: ClassVar[bool] = False
    name: ClassVar[str] = "slope"
    label: ClassVar[str] = "calibration slope"
    direction: ClassVar[Direction] = "closer to 1"

    def evaluate(self, sample: MetricSample) -> MetricValue:  # noqa: D102
        fit = sample.once(line_in_log_odds)
        if isinstance(fit, str):
            return _without_value(sample, fit)
        return MetricValue(float(fit.coefficients[1]), fit.influence_on(fit.to_design[1]))


@dataclass(frozen=True)
class CalibrationInTheLarge(SampleMetric):
    r"""Calibration in the large: a in :math:`\operatorname{logit} P(y = 1) = a + \operatorname{logit} p`.

    .. math:: e_i = \frac{w_i (y_i - \mu_i)}{\sum_k w_k \mu_k (1 - \mu_k)}

    Right predictions have 0; above it, risks are too low. The slope is fixed at one: the intercept of the recalibration
    line, beside a fitted slope, is another number (``intercept`` of `survscore.calibration`, whose ``in_the_large`` is
    this one). Like `ObservedExpected` it is about the mean alone.

    Examples
    --------
    >>> import survscore as ss
    >>> sample = ss.simulate.SineConstantAcceleratingStudy().sample(1000, seed=1)
    >>> curves = ss.SurvivalCurves(sample.survival([50]).probabilities ** 2, [50])  # twice the hazard
    >>> (score,) = ss.score_all(sample.outcomes, curves, metric="in_the_large", weighting="administrative", times=[50])
    >>> score.scores.round(3), score.lower.round(3), score.upper.round(3)
    (array([-1.117]), array([-1.437]), array([-0.797]))
    """

    scores_null: ClassVar[bool] = False
    name: ClassVar[str] = "in_the_large"
    label: ClassVar[str] = "calibration in the large"
    direction: ClassVar[Direction] = "closer to 0"

    def evaluate(self, sample: MetricSample) -> MetricValue:  # noqa: D102
        fit = sample.once(shift_in_log_odds)
        if isinstance(fit, str):
            return _without_value(sample, fit)
        return MetricValue(float(fit.coefficients[0]), fit.influence_on(fit.to_design[0]))


@dataclass(frozen=True, eq=False)
class SplineFit:
    r"""A fitted logistic spline: log odds :math:`x + z(x)' \gamma`; right predictions have :math:`\gamma = 0`."""

    knots: Vector
    gamma: Vector
    regression: LogisticFit  # with each individual's influence on it while weights are held fixed
    risk: Vector  # each individual's prediction
    share: Vector  # each individual's share of the weights
    concentration: float  # of these: the sum of their squares

    @cached_property
    def difference(self) -> Vector:
        """The curve minus the predictions, of each individual."""
        return self.regression.probability - self.risk

    @cached_property
    def slope(self) -> Vector:
        """The curve's derivatives by its log odds."""
        return self.regression.probability * (1 - self.regression.probability)

    def influence(self, by_curve: Vector) -> Vector:
        """Return the influences on a number by way of the curve, from its derivatives by the curve's values."""
        by_coefficient = cross_products(self.regression.columns, (by_curve * self.slope)[None])[:, 0]
        return self.regression.influence_on(by_coefficient)

    def columns(self, risk: Vector) -> Vector:
        """Return the spline's columns for some risks, (coefficients, risks)."""
        return restricted_cubic_spline(log_odds(risk), self.knots)

    def at(self, risk: Vector, gamma: Vector | None = None) -> Vector:
        """Return the curve at some risks, or that of other coefficients; to the last bit the same for equal risks."""
        return expit(log_odds(risk) + combined(self.gamma if gamma is None else gamma, self.columns(risk)))


def fit_spline(sample: MetricSample) -> SplineFit | str:
    """Fit the richest spline that the data allow, or return why there is none."""
    separated = "the predictions separate those with event from those without, so that the curve has no bound"
    n, reason = sample.individuals.size, ""  # each once
    order = np.argsort(sample.log_odds[:n])
    x, counts = sample.log_odds[order], None if sample.counts is None else sample.counts[order]
    for knots in _possible_knots(x, min(sample.statuses), counts):
        fit = sample.fit(knots, separated)
        if isinstance(fit, str):
            reason = fit
            continue
        right = np.zeros(fit.coefficients.size)
        right[min(1, right.size - 1)] = x[0] if right.size == 1 else 1.0
        return SplineFit(knots, fit.coefficients - right, fit, sample.risk, sample.share, sample.concentration)
    return reason


def _quantiles(values: Vector, shares: Sequence[float], counts: Vector | None) -> Vector:
    """Return quantiles of ascending numbers, each of which may be there several times."""
    if counts is None:
        return np.asarray(np.quantile(values, shares))
    until = np.cumsum(counts)
    place = np.asarray(shares) * (until[-1] - 1.0)
    low, high = (values[np.searchsorted(until, at, side="right")] for at in (np.floor(place), np.ceil(place)))
    return np.asarray(low + (place - np.floor(place)) * (high - low))


def _possible_knots(x: Vector, rarer: float, counts: Vector | None = None) -> list[Vector]:
    """Return sets of knots, the richest first: none for a constant, two for a straight line; x ascends."""
    distinct, width = x[np.append(True, x[1:] != x[:-1])], float(x[-1] - x[0])
    if distinct.size == 1:
        return [np.zeros(0)]
    choices = []
    for shares in (MANY_KNOTS, FEW_KNOTS) if rarer >= MANY_EVENTS else (FEW_KNOTS,):
        # where predictions are tied heavily, knots fall together, and distinct predictions take their place
        for values, often in ((x, counts), (distinct, None)):
            knots = _quantiles(values, shares, often)
            if distinct.size >= len(shares) and np.diff(knots).min() > 1e-6 * width:
                choices.append(knots)
                break
    return [*choices, x[[0, -1]]]


def distinct_risks(sample: MetricSample) -> tuple[Vector, Vector]:
    """Return the distinct risks in ascending order, and which share of the weights each has."""
    risk, share = sample.risk[sample.order[::-1]], sample.share[sample.order[::-1]]
    starts = np.flatnonzero(np.append(True, risk[1:] != risk[:-1]))
    return risk[starts], np.add.reduceat(share, starts)


def binned_risks(sample: MetricSample, n_risks: int) -> tuple[Vector, Vector]:
    """Return so many risks that stand for all, with their shares: means of neighbouring risks."""
    risk, mass = distinct_risks(sample)
    if risk.size <= n_risks:
        return risk, mass
    cell = np.minimum((n_risks * (np.cumsum(mass) - mass / 2)).astype(np.intp), n_risks - 1)
    totals, sums = (np.bincount(cell, part, n_risks).astype(np.float64) for part in (mass, mass * risk))
    occupied = totals > 0
    return sums[occupied] / totals[occupied], totals[occupied]


def distance_quantiles(distance: Vector, mass: Vector, shares: Sequence[float]) -> list[Vector]:
    """Return, for each share of the weights, the least distance that it does not exceed; along the last axis."""
    order = np.argsort(distance, axis=-1)
    reached = np.cumsum(mass[order], axis=-1)
    quantiles = []
    for share in shares:
        first = np.count_nonzero(reached < share * REACHED, axis=-1, keepdims=True)
        first = np.minimum(first, distance.shape[-1] - 1)
        quantiles.append(np.take_along_axis(distance, np.take_along_axis(order, first, axis=-1), axis=-1)[..., 0])
    return quantiles


class CurveDistance(SampleMetric):
    """The distance of the smooth calibration curve to the predictions.

    Chance makes distances larger, by as much as they vary and more: no interval around them has its nominal coverage.
    """

    scale: ClassVar[Scale] = "none"
    scores_null: ClassVar[bool] = False

    def evaluate(self, sample: MetricSample) -> MetricValue:  # noqa: D102
        curve = sample.once(fit_spline)
        return _without_value(sample, curve) if isinstance(curve, str) else self.of_curve(curve)

    @abstractmethod
    def of_curve(self, curve: SplineFit) -> MetricValue:
        """Return the value, and the influence of those who are counted."""


@dataclass(frozen=True)
class Miscalibration(CurveDistance):
    r"""Mean squared distance of the smooth calibration curve c to the predictions, corrected for its bias.

    .. math:: \frac{\sum_i w_i (c(p_i) - p_i)^2}{\sum_i w_i} - \frac{\sum_i w_i \widehat{\mathrm{Var}}\, c(p_i)}
        {\sum_i w_i}

    with c the weighted logistic regression of the status on a restricted cubic spline of the log odds. It is on the
    scale of the Brier score, of which it is the part that recalibration would remove; about zero, or less, if the
    predictions are right. The variance of the curve includes the estimation of the weights, and is by group. Intervals
    are made on the scale of the square root where the value is positive. Close to zero the squares of errors vary:
    their variance is added to that of the influences. If it is more than a tenth of the variance of a difference, the
    interval of that is conservative, and not `reliable`. Errors that a spline in the predicted risk can't follow, such
    as those of a model that is wrong about some individuals and right about others of the same risk, are not detected.

    Examples
    --------
    >>> import survscore as ss
    >>> sample = ss.simulate.SineConstantAcceleratingStudy().sample(1000, seed=1)
    >>> curves = ss.SurvivalCurves(sample.survival([50]).probabilities ** 2, [50])  # twice the hazard
    >>> y = sample.outcomes
    >>> (score,) = ss.score_all(y, curves, metric="miscalibration", weighting="administrative", times=[50])
    >>> score.scores.round(3), score.lower.round(3), score.upper.round(3)
    (array([0.02]), array([0.01]), array([0.035]))
    """

    name: ClassVar[str] = "miscalibration"
    label: ClassVar[str] = "mean squared miscalibration"
    scale: ClassVar[Scale] = "root"
    has_ratios: ClassVar[bool] = False  # what chance adds is taken off, and more than there is may be

    def of_curve(self, curve: SplineFit) -> MetricValue:  # noqa: D102
        fit, square = curve.regression, np.square(curve.difference)
        value = dot(curve.share, square)
        influence = curve.share * (square - value) + curve.influence(2 * curve.share * curve.difference)
        # the mean variance of the curve is the sum of the variances of these combinations of coefficients
        products = cross_products(fit.columns * (curve.share * np.square(curve.slope)), fit.columns)
        values, vectors = np.linalg.eigh(products)
        combinations = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
        return MetricValue(value, influence, squared=fit.influence_on(combinations))


@dataclass(frozen=True)
class ICI(CurveDistance):
    r"""Integrated calibration index: the mean distance of the smooth calibration curve c to the predictions [1]_.

    .. math:: \mathrm{ICI}(t) = \frac{\sum_i w_i |c(p_i) - p_i|}{\sum_i w_i}

    The mean absolute error of predicted risks. It can't be negative, so chance only makes it larger: right predictions
    have about .04 with 300 individuals who are counted. So there is a standard error, but no interval; neither of a
    difference, since chance adds more to the better model. For one model, `survscore.calibration` gives the value
    expected by chance, and valid limits; models are compared by `Miscalibration`, which has its bias taken off.

    References
    ----------
    .. [1] Austin, Harrell and van Klaveren (2020). Graphical calibration curves and the integrated calibration index
       (ICI) for survival models. Statistics in Medicine 39(21).

    Examples
    --------
    >>> import survscore as ss
    >>> sample = ss.simulate.SineConstantAcceleratingStudy().sample(1000, seed=1)
    >>> curves = ss.SurvivalCurves(sample.survival([50]).probabilities ** 2, [50])  # twice the hazard
    >>> (score,) = ss.score_all(sample.outcomes, curves, metric="ici", weighting="administrative", times=[50])
    >>> score.scores.round(3), score.se.round(3)
    (array([0.106]), array([0.016]))
    """

    name: ClassVar[str] = "ici"
    label: ClassVar[str] = "ICI"

    def of_curve(self, curve: SplineFit) -> MetricValue:  # noqa: D102
        distance = np.abs(curve.difference)
        value = dot(curve.share, distance)
        own = curve.share * (distance - value)
        return MetricValue(value, own + curve.influence(curve.share * np.sign(curve.difference)))


class DistanceQuantile(CurveDistance):
    r"""A quantile of the distance of the smooth calibration curve to the predictions.

    The influence has two parts. An individual's own share of the weights moves the quantile q by
    :math:`(F(q) - 1\{d_i \le q\}) w_i / (f(q) \sum w)`, with F(q) the share up to q and the density f from the
    distances within h of the share, where h falls with the cube root of the effective number of individuals; and the
    curve moves all distances, of which those within h count.
    """

    share: ClassVar[float]

    def of_curve(self, curve: SplineFit) -> MetricValue:  # noqa: D102
        distance, share = np.abs(curve.difference), curve.share
        h = 4 * self.share * (1 - self.share) * curve.concentration ** (1 / 3)
        first, last = max(self.share - h, 0.0), min(self.share + h, 1.0)
        low, value, high = map(float, distance_quantiles(distance, share, (first, self.share, last)))
        below = (distance <= value).astype(np.float64)
        own = share * (dot(share, below) - below) * (high - low) / (last - first)
        near = np.where((distance >= low) & (distance <= high), share, 0.0)
        return MetricValue(value, own + curve.influence(near * np.sign(curve.difference) / near.sum()))


@dataclass(frozen=True)
class E50(DistanceQuantile):
    r"""Median distance of the smooth calibration curve to the predictions.

    :math:`\min\{q: \sum_i w_i 1\{|c(p_i) - p_i| \le q\} \ge \tfrac12 \sum_i w_i\}`: the predicted
    risks of half of the individuals are wrong by no more. Larger by chance, and without an interval, as `ICI` is.
    """

    name: ClassVar[str] = "e50"
    label: ClassVar[str] = "E50"
    share: ClassVar[float] = 0.5


@dataclass(frozen=True)
class E90(DistanceQuantile):
    r"""90th percentile of the distance of the smooth calibration curve to the predictions.

    :math:`\min\{q: \sum_i w_i 1\{|c(p_i) - p_i| \le q\} \ge 0.9 \sum_i w_i\}`: the predicted
    risk of one individual in ten is wrong by more. It depends on the ends of the curve, where data are few. Larger by
    chance, and without an interval, as `ICI` is.
    """

    name: ClassVar[str] = "e90"
    label: ClassVar[str] = "E90"
    share: ClassVar[float] = 0.9
