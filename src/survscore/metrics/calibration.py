r"""Whether probabilities are right at one time, in numbers that have an influence: see also `survscore.calibration`.

Everything speaks of the risk :math:`p = 1 - \pi(t)` and the status :math:`y = 1\{T^* \le t\}`.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from survscore._utils.caching import cached_property
from survscore._utils.products import dot
from survscore.inference.logistic import LogisticFit
from survscore.metrics._spline import REACHED, fit_spline
from survscore.metrics.base import Direction, Found, PooledMetric, Scale
from survscore.metrics.sample import PooledSample, Vector

CELLS = 1 << 10  # among which distances are dealt out
NO_BEND = np.zeros(2)  # two knots, wherever they are, leave a straight line


def _without_value(sample: PooledSample, reason: str) -> Found:
    return Found(np.nan, np.zeros(len(sample)), reason)


@dataclass(frozen=True)
class ObservedExpected(PooledMetric):
    r"""The share with event, divided by the mean predicted risk: above one, risks are too low.

    .. math:: \frac{O}{E}(t) = \frac{\sum_i w_i y_i}{\sum_i w_i p_i}, \qquad
        e_i = w_i \frac{y_i - (O/E)\, p_i}{\sum_k w_k p_k}

    Intervals are made on the scale of its logarithm. It speaks of the mean alone: predictions that are the same for
    everybody, or far too high for some and too low for others, may have the value of right ones, which is 1. Of two
    models the difference is given as it is; which is closer to 1 is another question.

    Examples
    --------
    >>> import numpy as np
    >>> import survscore as ss
    >>> rng = np.random.default_rng(1)
    >>> rate = rng.gamma(2, 0.05, 1000)
    >>> y = ss.Outcomes(rng.exponential(1 / rate), np.ones(1000))
    >>> curves = ss.SurvivalCurves(np.exp(-10 * rate)[:, None], times=[5])  # twice the rate
    >>> (score,) = ss.score_all(y, curves, metric="oe", times=[5])
    >>> score.scores.round(3), score.lower.round(3), score.upper.round(3)
    (array([0.672]), array([0.624]), array([0.725]))
    """

    name: ClassVar[str] = "oe"
    label: ClassVar[str] = "observed/expected"
    direction: ClassVar[Direction] = "closer to 1"
    scale: ClassVar[Scale] = "log"
    needs_both: ClassVar[bool] = False
    scores_null: ClassVar[bool] = False

    def evaluate(self, sample: PooledSample) -> Found:  # noqa: D102
        observed, expected = (dot(sample.share, part) for part in (sample.event, sample.risk))
        if not expected > 0:
            return _without_value(sample, "all predicted risks are 0")
        ratio = observed / expected
        influence = -ratio * sample.risk
        influence += sample.event
        influence *= sample.share
        influence /= expected
        return Found(ratio, influence)


def line_in_log_odds(sample: PooledSample) -> LogisticFit | str:
    """Regress the status on the predicted log odds: intercept and slope; or return why there is no regression."""
    why = sample.why_no_regression()
    if not why and np.ptp(sample.log_odds) == 0:
        why = "all predictions are the same"
    fit = None if why else sample.fit(NO_BEND)
    if fit is not None:
        return fit
    return why or "the predictions tell those with event from those without, so that the slope has no bound"


def shift_in_log_odds(sample: PooledSample) -> LogisticFit | str:
    """Fit the intercept alone, where the slope is held at one; or return why it can't be."""
    why = sample.why_no_regression()
    fit = None if why else sample.fit(np.zeros(0), shifted=True)
    return (why or "the weights leave one status only") if fit is None else fit


@dataclass(frozen=True)
class CalibrationSlope(PooledMetric):
    r"""The slope b of a weighted logistic regression of the status on the predicted log odds.

    .. math:: \operatorname{logit} P(y_i = 1) = a + b \operatorname{logit} p_i, \qquad
        (e_i^a, e_i^b)' = H^{-1} w_i z_i (y_i - \mu_i), \qquad z_i = (1, \operatorname{logit} p_i)', \quad
        H = \sum_k w_k z_k z_k' \mu_k (1 - \mu_k)

    Right predictions have 1; below it they are too far apart, as those of an overfitted model, and above it too close
    together. It says nothing of the mean (see `ObservedExpected`), and a slope of 1 may hide a curve that bends.
    Risks are clipped at 1e-7: predictions of 0 and 1 weigh heavily. Without a value where all predictions are the
    same, or where they tell those with event from those without.

    Examples
    --------
    >>> import numpy as np
    >>> import survscore as ss
    >>> rng = np.random.default_rng(1)
    >>> rate = rng.gamma(2, 0.05, 1000)
    >>> y = ss.Outcomes(rng.exponential(1 / rate), np.ones(1000))
    >>> curves = ss.SurvivalCurves(np.exp(-10 * rate)[:, None], times=[5])  # twice the rate
    >>> (score,) = ss.score_all(y, curves, metric="slope", times=[5])
    >>> score.scores.round(3), score.lower.round(3), score.upper.round(3)
    (array([0.756]), array([0.62]), array([0.892]))
    """

    scores_null: ClassVar[bool] = False
    name: ClassVar[str] = "slope"
    label: ClassVar[str] = "calibration slope"
    direction: ClassVar[Direction] = "closer to 1"

    def evaluate(self, sample: PooledSample) -> Found:  # noqa: D102
        fit = sample.once(line_in_log_odds)
        if isinstance(fit, str):
            return _without_value(sample, fit)
        return Found(float(fit.coefficients[1]), fit.influence_on(fit.columns.to_design[1]))


@dataclass(frozen=True)
class CalibrationIntercept(PooledMetric):
    r"""Calibration in the large: a in :math:`\operatorname{logit} P(y = 1) = a + \operatorname{logit} p`.

    .. math:: e_i = \frac{w_i (y_i - \mu_i)}{\sum_k w_k \mu_k (1 - \mu_k)}

    Right predictions have 0; above it, risks are too low. The slope is held at one, so this is not the intercept beside
    a fitted slope, which `survscore.calibration` gives, too. Like `ObservedExpected` it speaks of the mean alone.

    Examples
    --------
    >>> import numpy as np
    >>> import survscore as ss
    >>> rng = np.random.default_rng(1)
    >>> rate = rng.gamma(2, 0.05, 1000)
    >>> y = ss.Outcomes(rng.exponential(1 / rate), np.ones(1000))
    >>> curves = ss.SurvivalCurves(np.exp(-10 * rate)[:, None], times=[5])  # twice the rate
    >>> (score,) = ss.score_all(y, curves, metric="intercept", times=[5])
    >>> score.scores.round(3), score.lower.round(3), score.upper.round(3)
    (array([-0.93]), array([-1.081]), array([-0.779]))
    """

    scores_null: ClassVar[bool] = False
    name: ClassVar[str] = "intercept"
    label: ClassVar[str] = "calibration in the large"
    direction: ClassVar[Direction] = "closer to 0"

    def evaluate(self, sample: PooledSample) -> Found:  # noqa: D102
        fit = sample.once(shift_in_log_odds)
        if isinstance(fit, str):
            return _without_value(sample, fit)
        return Found(float(fit.coefficients[0]), fit.influence_on(fit.columns.to_design[0]))


@dataclass(frozen=True, eq=False)
class FittedCurve:
    """The smooth calibration curve at everybody's prediction.

    Attributes
    ----------
    regression : LogisticFit
        Where it comes from.
    difference : ndarray of shape (counted,)
        The curve minus the predictions.
    slope : ndarray of shape (counted,)
        Its derivatives by its log odds.
    share : ndarray of shape (counted,)
        Everybody's share of the weights.
    """

    regression: LogisticFit
    difference: Vector
    slope: Vector
    share: Vector

    @cached_property
    def distance(self) -> Vector:
        """How far the curve is from the predictions."""
        return np.abs(self.difference)

    @cached_property
    def sign(self) -> Vector:
        """On which side."""
        return np.sign(self.difference)

    @cached_property
    def _cells(self) -> tuple[NDArray[np.int16], Vector, tuple[int, int]]:
        """In which of many cells of equal width each distance lies; which share up to each; the first and the last."""
        width = float(self.distance.max()) / CELLS
        cell = np.zeros(self.distance.size, dtype=np.int16)
        if width > 0:
            cell = np.minimum(self.distance / width, CELLS - 1).astype(np.int16)
        return cell, np.cumsum(np.bincount(cell, self.share, CELLS)), (int(cell.min()), int(cell.max()))

    def quantile(self, share: float) -> float:
        """Return the least distance that a share of the individuals does not exceed: only its cell is sorted."""
        cell, up_to, somebody = self._cells
        place = int(np.clip(np.searchsorted(up_to, share * REACHED), *somebody))
        inside = np.flatnonzero(cell == place)
        order = inside[np.argsort(self.distance[inside])]
        reached = (up_to[place - 1] if place else 0.0) + np.cumsum(self.share[order])
        return float(self.distance[order[min(int(np.searchsorted(reached, share * REACHED)), order.size - 1)]])

    def influence(self, by_curve: Vector) -> Vector:
        """Return everybody's influence on a number by way of the curve, from its derivatives by the curve's values.

        These are overwritten.
        """
        by_curve *= self.slope
        return self.regression.influence_on(self.regression.columns.sums(by_curve))


def fitted_curve(sample: PooledSample) -> FittedCurve | str:
    """Return the smooth curve at everybody's prediction, or why there is none."""
    spline = sample.once(fit_spline)
    if isinstance(spline, str):
        return spline
    curve = spline.regression.probability
    slope = 1 - curve
    slope *= curve
    return FittedCurve(spline.regression, curve - sample.risk, slope, sample.share)


class CurveDistance(PooledMetric):
    """How far the smooth calibration curve is from the predictions.

    Chance makes distances larger, by as much as they vary and more: no interval around them holds what it says.
    """

    scale: ClassVar[Scale] = "none"
    scores_null: ClassVar[bool] = False

    def evaluate(self, sample: PooledSample) -> Found:  # noqa: D102
        curve = sample.once(fitted_curve)
        return _without_value(sample, curve) if isinstance(curve, str) else self.of_curve(curve)

    @abstractmethod
    def of_curve(self, curve: FittedCurve) -> Found:
        """Return the value, and the influence of those who are counted."""


@dataclass(frozen=True)
class Miscalibration(CurveDistance):
    r"""Mean squared distance of the smooth calibration curve c to the predictions, with its bias taken off.

    .. math:: \frac{\sum_i w_i (c(p_i) - p_i)^2}{\sum_i w_i} - \frac{\sum_i w_i \widehat{\mathrm{Var}}\, c(p_i)}
        {\sum_i w_i}

    with c the weighted logistic regression of the status on a restricted cubic spline of the log odds. On the scale of
    the Brier score, of which it is the part that recalibration would remove; about zero, or less, if the predictions
    are right. The variance of the curve is that of the whole, with what was estimated inside the weights, and by group.
    A square varies in proportion to its root, on whose scale intervals are made where it is positive. Close to zero it
    is the squares of errors that vary: their variance is added to that of the influences. If it is more than a tenth of
    the variance of a difference, the interval of that holds the truth more often than it says, and is not `reliable`. A
    wrong model whose errors a spline can't follow, as one that is wrong about some people and right about others of the
    same risk, is not found out.

    Examples
    --------
    >>> import numpy as np
    >>> import survscore as ss
    >>> rng = np.random.default_rng(1)
    >>> rate = rng.gamma(2, 0.05, 1000)
    >>> y = ss.Outcomes(rng.exponential(1 / rate), np.ones(1000))
    >>> curves = ss.SurvivalCurves(np.exp(-10 * rate)[:, None], times=[5])  # twice the rate
    >>> (score,) = ss.score_all(y, curves, metric="miscalibration", times=[5])
    >>> score.scores.round(3), score.lower.round(3), score.upper.round(3)
    (array([0.035]), array([0.024]), array([0.047]))
    """

    name: ClassVar[str] = "miscalibration"
    label: ClassVar[str] = "mean squared miscalibration"
    scale: ClassVar[Scale] = "root"
    has_ratios: ClassVar[bool] = False  # what chance adds is taken off, and more than there is may be

    def of_curve(self, curve: FittedCurve) -> Found:  # noqa: D102
        fit, by_curve = curve.regression, 2 * curve.share
        by_curve *= curve.difference
        influence = np.square(curve.difference)
        value = dot(curve.share, influence)
        influence -= value
        influence *= curve.share
        influence += curve.influence(by_curve)
        # the mean variance of the curve is the sum of the variances of these combinations of coefficients
        weight = np.square(curve.slope, out=by_curve)
        weight *= curve.share
        products, _ = fit.columns.products(weight)
        values, vectors = np.linalg.eigh(products)
        combinations = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
        return Found(value, influence, squared=fit.influences_on(combinations))


@dataclass(frozen=True)
class ICI(CurveDistance):
    r"""Integrated calibration index: the mean distance of the smooth calibration curve c to the predictions [1]_.

    .. math:: \mathrm{ICI}(t) = \frac{\sum_i w_i |c(p_i) - p_i|}{\sum_i w_i}

    By how much a predicted risk is wrong on average, in percentage points. It can't be less than zero, so chance only
    makes it larger: right predictions have about .04 with 300 individuals who are counted. An interval around the value
    would miss that, as would one of a difference, since chance makes more of the better model; so there is a standard
    error alone. For one model, `survscore.calibration` gives the value expected by chance, and limits that hold; models
    are compared by `Miscalibration`, which has its bias taken off.

    References
    ----------
    .. [1] Austin, Harrell and van Klaveren (2020). Graphical calibration curves and the integrated calibration index
       (ICI) for survival models. Statistics in Medicine 39(21).

    Examples
    --------
    >>> import numpy as np
    >>> import survscore as ss
    >>> rng = np.random.default_rng(1)
    >>> rate = rng.gamma(2, 0.05, 1000)
    >>> y = ss.Outcomes(rng.exponential(1 / rate), np.ones(1000))
    >>> curves = ss.SurvivalCurves(np.exp(-10 * rate)[:, None], times=[5])  # twice the rate
    >>> (score,) = ss.score_all(y, curves, metric="ici", times=[5])
    >>> score.scores.round(3), score.se.round(3)
    (array([0.181]), array([0.014]))
    """

    name: ClassVar[str] = "ici"
    label: ClassVar[str] = "ICI"

    def of_curve(self, curve: FittedCurve) -> Found:  # noqa: D102
        value = dot(curve.share, curve.distance)
        influence = curve.distance - value
        influence *= curve.share
        influence += curve.influence(curve.share * curve.sign)
        return Found(value, influence)


class DistanceQuantile(CurveDistance):
    r"""A quantile of the distance of the smooth calibration curve to the predictions.

    The influence has two parts. An individual's own share of the weights moves the quantile q by
    :math:`(F(q) - 1\{d_i \le q\}) w_i / (f(q) \sum w)`, with F(q) the share up to q and the density f from the
    distances within h of the share, where h falls with the cube root of the effective number of individuals; and the
    curve moves all distances, of which those within h count.
    """

    share: ClassVar[float]

    def of_curve(self, curve: FittedCurve) -> Found:  # noqa: D102
        distance, share = curve.distance, curve.share
        h = 4 * self.share * (1 - self.share) * float(np.square(share).sum()) ** (1 / 3)
        first, last = max(self.share - h, 0.0), min(self.share + h, 1.0)
        low, value, high = (curve.quantile(part) for part in (first, self.share, last))
        below = (distance <= value).astype(np.float64)
        own = share * (dot(share, below) - below)
        own *= (high - low) / (last - first)
        near = np.where((distance >= low) & (distance <= high), share, 0.0)
        near *= curve.sign / near.sum()
        own += curve.influence(near)
        return Found(value, own)


@dataclass(frozen=True)
class E50(DistanceQuantile):
    r"""Median distance of the smooth calibration curve to the predictions.

    :math:`\min\{q: \sum_i w_i 1\{|c(p_i) - p_i| \le q\} \ge \tfrac12 \sum_i w_i\}`: half of the individuals have a
    predicted risk that is wrong by no more. Larger by chance, and without an interval, as `ICI` is.
    """

    name: ClassVar[str] = "e50"
    label: ClassVar[str] = "E50"
    share: ClassVar[float] = 0.5


@dataclass(frozen=True)
class E90(DistanceQuantile):
    r"""90th percentile of the distance of the smooth calibration curve to the predictions.

    :math:`\min\{q: \sum_i w_i 1\{|c(p_i) - p_i| \le q\} \ge 0.9 \sum_i w_i\}`: one of ten individuals has a predicted
    risk that is wrong by more. It rests on the ends of the curve, where data are few. Larger by chance, and without an
    interval, as `ICI` is.
    """

    name: ClassVar[str] = "e90"
    label: ClassVar[str] = "E90"
    share: ClassVar[float] = 0.9
