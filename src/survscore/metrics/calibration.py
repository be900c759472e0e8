r"""Whether probabilities are right at one time, in numbers that have an influence: see also `survscore.calibration`.

Everything speaks of the risk :math:`p = 1 - \pi(t)` and the status :math:`y = 1\{T^* \le t\}`.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from survscore._logistic import LogisticFit
from survscore._validation import FloatArray
from survscore.metrics._counted import Counted, Vector
from survscore.metrics._spline import SplineFit, distance_quantile, fit_spline
from survscore.metrics.base import Direction, Found, PooledMetric, Scale


class CalibrationMetric(PooledMetric):
    """A number of risks, statuses and weights of those who are counted."""

    scores_null: ClassVar[bool] = False

    def evaluate(  # noqa: D102
        self, survival: FloatArray, label: NDArray[np.int8], weight: Vector
    ) -> Found:
        counted = Counted.of(survival, label, weight)
        if counted.rows.size == 0:
            return Found(np.nan, np.zeros(weight.size), "nobody has a weight")
        found = self.of_counted(counted)

        def of_everybody(influence: Vector) -> Vector:
            everybody = np.zeros((*influence.shape[:-1], weight.size))
            everybody[..., counted.rows] = influence
            return everybody

        squared = None if found.squared is None else of_everybody(found.squared)
        return Found(found.value, of_everybody(found.influence), found.reason, squared=squared)

    @abstractmethod
    def of_counted(self, counted: Counted) -> Found:
        """Return the value, and the influence of those who are counted."""


def _without_value(counted: Counted, reason: str) -> Found:
    return Found(np.nan, np.zeros(counted.rows.size), reason)


@dataclass(frozen=True)
class ObservedExpected(CalibrationMetric):
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

    def of_counted(self, counted: Counted) -> Found:  # noqa: D102
        total = counted.weight.sum()
        observed, expected = (float(counted.weight @ part / total) for part in (counted.event, counted.risk))
        if not expected > 0:
            return _without_value(counted, "all predicted risks are 0")
        ratio = observed / expected
        return Found(ratio, counted.weight * (counted.event - ratio * counted.risk) / (expected * total))


def line_in_log_odds(counted: Counted) -> LogisticFit | str:
    """Regress the status on the predicted log odds: intercept and slope; or return why there is no regression."""
    why = counted.why_no_regression()
    if not why and np.ptp(counted.log_odds) == 0:
        why = "all predictions are the same"
    fit = None if why else counted.fit(np.column_stack((np.ones(counted.rows.size), counted.log_odds)))
    if fit is not None:
        return fit
    return why or "the predictions tell those with event from those without, so that the slope has no bound"


def shift_in_log_odds(counted: Counted) -> LogisticFit | str:
    """Fit the intercept alone, where the slope is held at one; or return why it can't be."""
    why = counted.why_no_regression()
    fit = None if why else counted.fit(np.ones((counted.rows.size, 1)), counted.log_odds)
    return (why or "the weights leave one status only") if fit is None else fit


@dataclass(frozen=True)
class CalibrationSlope(CalibrationMetric):
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

    name: ClassVar[str] = "slope"
    label: ClassVar[str] = "calibration slope"
    direction: ClassVar[Direction] = "closer to 1"

    def of_counted(self, counted: Counted) -> Found:  # noqa: D102
        fit = line_in_log_odds(counted)
        if isinstance(fit, str):
            return _without_value(counted, fit)
        return Found(float(fit.coefficients[1]), fit.influence[1])


@dataclass(frozen=True)
class CalibrationIntercept(CalibrationMetric):
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

    name: ClassVar[str] = "intercept"
    label: ClassVar[str] = "calibration in the large"
    direction: ClassVar[Direction] = "closer to 0"

    def of_counted(self, counted: Counted) -> Found:  # noqa: D102
        fit = shift_in_log_odds(counted)
        if isinstance(fit, str):
            return _without_value(counted, fit)
        return Found(float(fit.coefficients[0]), fit.influence[0])


class CurveDistance(CalibrationMetric):
    """How far the smooth calibration curve is from the predictions.

    Chance makes distances larger, by as much as they vary and more: no interval around them holds what it says.
    """

    scale: ClassVar[Scale] = "none"

    def of_counted(self, counted: Counted) -> Found:  # noqa: D102
        spline = fit_spline(counted)
        if isinstance(spline, str):
            return _without_value(counted, spline)
        curve, by_coefficient = spline.at(counted.risk)
        return self.of_curve(spline, curve - counted.risk, by_coefficient, counted.weight / counted.weight.sum())

    @abstractmethod
    def of_curve(self, spline: SplineFit, difference: Vector, by_coefficient: Vector, mass: Vector) -> Found:
        """Return the value, and the influence of those who are counted.

        Parameters
        ----------
        spline : SplineFit
            The curve.
        difference, by_coefficient : ndarray of shape (counted,) and (counted, coefficients)
            The curve minus the predictions, and its derivatives.
        mass : ndarray of shape (counted,)
            Everybody's share of the weights.
        """


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

    def of_curve(  # noqa: D102
        self, spline: SplineFit, difference: Vector, by_coefficient: Vector, mass: Vector
    ) -> Found:
        value = float(mass @ difference**2)
        own = mass * (difference**2 - value)
        through_curve = 2 * (mass * difference) @ by_coefficient @ spline.influence
        # the mean variance of the curve is the sum of the variances of these combinations of coefficients
        triangle = np.linalg.qr(np.sqrt(mass)[:, None] * by_coefficient, mode="r")
        return Found(value, own + through_curve, squared=triangle @ spline.influence)


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

    def of_curve(  # noqa: D102
        self, spline: SplineFit, difference: Vector, by_coefficient: Vector, mass: Vector
    ) -> Found:
        distance = np.abs(difference)
        value = float(mass @ distance)
        through_curve = (mass * np.sign(difference)) @ by_coefficient @ spline.influence
        return Found(value, mass * (distance - value) + through_curve)


class DistanceQuantile(CurveDistance):
    r"""A quantile of the distance of the smooth calibration curve to the predictions.

    The influence has two parts. An individual's own share of the weights moves the quantile q by
    :math:`(F(q) - 1\{d_i \le q\}) w_i / (f(q) \sum w)`, with F(q) the share up to q and the density f from the
    distances within h of the share, where h falls with the cube root of the effective number of individuals; and the
    curve moves all distances, of which those within h count.
    """

    share: ClassVar[float]

    def of_curve(  # noqa: D102
        self, spline: SplineFit, difference: Vector, by_coefficient: Vector, mass: Vector
    ) -> Found:
        distance = np.abs(difference)
        value = float(distance_quantile(distance, mass, self.share))
        h = 4 * self.share * (1 - self.share) * float(np.square(mass).sum()) ** (1 / 3)
        first, last = max(self.share - h, 0.0), min(self.share + h, 1.0)
        ends = [float(distance_quantile(distance, mass, share)) for share in (first, last)]
        below = (distance <= value).astype(np.float64)
        own = mass * (mass @ below - below) * (ends[1] - ends[0]) / (last - first)
        near = np.where((distance >= ends[0]) & (distance <= ends[1]), mass, 0.0)
        moved = (near / near.sum() * np.sign(difference)) @ by_coefficient @ spline.influence
        return Found(value, own + moved)


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
