r"""Calibration at one time in numbers: observed against expected, recalibration line, and groups of like predictions.

Everything is a function of weighted individuals, and has an influence :math:`e_i` of each of them while the weights are
held fixed; `CountedSample.covariance` adds what was estimated inside the weights, and sums by group.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survscore._utils.parallel import cached_property, dot
from survscore.analysis.populations import AtTime
from survscore.engine.influence import joint_covariance
from survscore.inference.estimate import Estimate
from survscore.inference.intervals import fisher_quantile, gaussian_draws, student_quantile
from survscore.inference.logistic import LogisticFit, combined, expit
from survscore.inference.units import Groups, small_sample
from survscore.metrics import E50, E90, MetricSample, ObservedExpected
from survscore.metrics.calibration import SplineFit, binned_risks, distance_quantiles, distinct_risks, fit_spline
from survscore.metrics.sample import log_odds

NO_VARIANCE = 1e-24  # what is less is rounding
CURVE_POINTS = 100
CURVE_QUANTILES = (0.005, 0.995)  # the curve is drawn between these: further out predictions are too few
MEAN_POINTS = 256  # so many predictions stand for all where coefficients are drawn
MANY_PREDICTIONS = 5000  # from so many on, a faster way to draw statuses pays
BAND_POINTS = 512  # the isotonic band is smooth, so as many are enough to draw it at all predictions
COEFFICIENT_DRAWS = 1000
DISTANCES = ("ici", "e50", "e90", "miscalibration")

Vector = NDArray[np.float64]


class CountedSample(AtTime):
    """One model at one time: risks, statuses and weights of those who are counted, and their covariances."""

    @cached_property
    def counted(self) -> MetricSample:
        """Those who are counted."""
        return MetricSample.of(self.survival[0], self.label, self.weight[0], self.event_free[0])

    @cached_property
    def reasons(self) -> dict[str, str]:
        """Why something has no value, or no interval, as far as it was computed."""
        return {}

    @property
    def groups(self) -> Groups | None:
        """The groups of the individuals."""
        return self.evaluation.groups

    @property
    def n_units(self) -> float:
        """The number of individuals that are counted, or of groups of them."""
        return float(self.scored.support.units.counted[0])

    @property
    def degrees(self) -> float:
        """Degrees of freedom of their variances."""
        return float(self.scored.support.units.degrees[0])

    @property
    def codes(self) -> NDArray[Any]:
        """Which unit, individual or group, each of those who are counted belongs to."""
        return self.counted.rows if self.groups is None else self.groups.codes[self.counted.rows]

    def effective(self, *, by_unit: bool = True) -> float:
        """Kish's effective sample size; by unit, as if all of a group were the same."""
        n = self.counted.individuals.size
        weight = (self.counted.weight / self.counted.part)[:n]
        weight /= weight.max()
        units = np.bincount(self.codes[:n], weight) if by_unit and self.groups is not None else weight
        return float(weight.sum() ** 2 / np.square(units).sum())

    def covariance(self, influence: Vector, n_units: Vector | float | None = None) -> Vector:
        """Return the covariance of numbers, from the influences of those who are counted, (numbers, rows).

        With the factor n / (n - 1) of a sample variance for `n_units`, by default all; NaN where there is one only.
        """
        factor = small_sample(np.asarray(self.n_units if n_units is None else n_units, dtype=np.float64))
        return joint_covariance([influence], [(self.estimations[0], self.counted)], slice(0, 1), self.groups, factor)

    def interval(self, value: float, influence: Vector, name: str, why_not: str) -> Estimate:
        """Return an estimate with the interval of Student's t, from the influences of those who are counted."""
        variance = float(self.covariance(influence[None])[0, 0])
        if not variance > NO_VARIANCE:  # an interval without width would claim certainty
            self.reasons[name] = self.too_few_units or why_not
            return Estimate(value)
        half = float(student_quantile(self.evaluation.level, self.degrees)) * math.sqrt(variance)
        return Estimate(value, math.sqrt(variance), value - half, value + half)

    @property
    def too_few_units(self) -> str | None:
        """Why nothing has a standard error, if so."""
        if self.n_units >= 2:
            return None
        return f"only one {'individual' if self.groups is None else 'group'} is counted, which has no variance"


def observed_expected(sample: CountedSample) -> Estimate:
    r"""Return :math:`\sum w y / \sum w p`, with an interval on the scale of its logarithm.

    Where all have the same status, the logarithm has no variance: the limit is that of the exact binomial interval for
    the effective sample size, :math:`1 - (\alpha/2)^{1/n}`.
    """
    counted = sample.counted
    ratio = ObservedExpected().evaluate(counted)
    if ratio.reason:
        sample.reasons["observed_expected"] = ratio.reason
        return Estimate()
    if 0 in counted.statuses:
        expected = float(counted.weight @ counted.risk / counted.weight.sum())
        chance = ((1 - sample.evaluation.level) / 2) ** (1 / sample.effective())
        if counted.statuses[1] == 0:
            return Estimate(0.0, math.nan, 0.0, (1 - chance) / expected)
        return Estimate(ratio.value, math.nan, chance / expected, 1 / expected)
    why_not = "the predictions are the statuses themselves"
    logarithm = sample.interval(math.log(ratio.value), ratio.influence / ratio.value, "observed_expected", why_not)
    return logarithm.exp()


def coefficients(sample: CountedSample, fit: LogisticFit | str, *names: str) -> dict[str, Estimate]:
    """Return the coefficients of a logistic regression by name; undefined where the fit is the reason why."""
    if isinstance(fit, str):
        sample.reasons.update(dict.fromkeys(names, fit))
        return dict.fromkeys(names, Estimate())
    fitted = zip(names, fit.coefficients, fit.influences, strict=True)
    return {name: sample.interval(float(value), own, name, "it does not vary") for name, value, own in fitted}


@dataclass(frozen=True, eq=False)
class SmoothCurve:
    """The observed proportion as a smooth function of the predicted risk, with pointwise confidence limits.

    Attributes
    ----------
    predicted, observed, lower, upper : ndarray
        Predicted risks, the curve, and its limits; NaN where there is no curve.
    n_knots : int
        Of the spline; 0 for a straight line in log odds, or a constant.
    """

    predicted: Vector
    observed: Vector
    lower: Vector
    upper: Vector
    n_knots: int


@dataclass(frozen=True, eq=False)
class IsotonicCurve:
    """The observed proportion as the best increasing function of the predicted risk.

    Attributes
    ----------
    predicted, observed, counts : ndarray
        The distinct predicted risks, the curve there, and the number of individuals.
    lower, upper : ndarray
        Where the curve would lie, at the level of the result, if the predictions were right (consistency band).
    """

    predicted: Vector
    observed: Vector
    lower: Vector
    upper: Vector
    counts: NDArray[np.int64]


@dataclass(frozen=True)
class Distance(Estimate):
    """How far the smooth curve is from the diagonal; `if_right` is what is expected where predictions are right."""

    if_right: float = math.nan


@dataclass(frozen=True, eq=False)
class Spline:
    """A fitted spline with the covariance of its coefficients, which are 0 where predictions are right."""

    fit: SplineFit
    covariance: Vector

    def variance(self, risk: Vector) -> Vector:
        """Return the variance of its log odds."""
        columns = self.fit.columns(risk)
        return np.asarray(np.einsum("ji,ji->i", columns, self.covariance @ columns))

    def wald(self) -> float:
        """Return how far the coefficients are from those of right predictions, in standard errors squared."""
        gamma, se = self.fit.gamma, np.sqrt(np.diag(self.covariance))
        if not (se > 0).all():
            return math.inf if gamma.any() else 0.0
        inverse = np.linalg.pinv(self.covariance / np.outer(se, se), rcond=1e-10, hermitian=True)
        return float(gamma / se @ inverse @ (gamma / se))


def spline_of(sample: CountedSample) -> Spline | None:
    """Fit the richest spline that the data allow, with the covariance that groups and weights give it."""
    fit = sample.counted.once(fit_spline)
    if isinstance(fit, str):
        sample.reasons["curve"] = fit
        return None
    return Spline(fit, sample.covariance(fit.regression.influences))


def smooth_curve(sample: CountedSample, spline: Spline | None) -> SmoothCurve:
    """Return the curve with limits from its log odds, where most predictions are."""
    risk = sample.counted.risk
    grid = np.unique(risk)
    if grid.size > CURVE_POINTS:
        first, last = np.quantile(risk, CURVE_QUANTILES)
        grid = np.linspace(first, last, CURVE_POINTS)
    if spline is None:
        nothing = np.full(grid.size, np.nan)
        return SmoothCurve(grid, nothing, nothing, nothing, 0)
    middle = log_odds(grid) + combined(spline.fit.gamma, spline.fit.columns(grid))
    variance = spline.variance(grid)
    variance = np.where(variance > NO_VARIANCE, variance, np.nan)  # a band without width would claim certainty
    if np.isnan(variance).any():
        sample.reasons["curve"] = sample.too_few_units or "it does not vary between groups"
    half = student_quantile(sample.evaluation.level, sample.degrees) * np.sqrt(variance)
    n_knots = spline.fit.knots.size if spline.fit.knots.size > 2 else 0
    return SmoothCurve(grid, expit(middle), expit(middle - half), expit(middle + half), n_knots)


def distances(sample: CountedSample, spline: Spline | None, seed: int) -> dict[str, Distance]:
    r"""Return the mean, median and 90th percentile of :math:`|c(p) - p|`, and the mean of :math:`(c(p) - p)^2`.

    All grow with chance, so none has an interval around the estimate. The lower limit is that of the curve nearest to
    the diagonal, on the way from the fitted one, within the confidence ellipsoid of the coefficients; the upper one is
    a percentile over coefficients drawn around the fitted ones. From the mean square its bias, the mean variance of the
    curve, is taken off.
    """
    if spline is None:
        sample.reasons["ici"] = sample.reasons["curve"]
        return dict.fromkeys(DISTANCES, Distance(math.nan))
    risk, mass = distinct_risks(sample.counted)
    observed = spline.fit.at(risk)
    values = _measures(observed - risk, mass)
    values["miscalibration"] -= dot(mass, (observed * (1 - observed)) ** 2 * spline.variance(risk))
    limits = distance_limits(sample.counted, spline, sample.n_units, sample.evaluation.level, seed)
    if limits is None:
        few = f"only {sample.n_units:g} groups for {spline.fit.gamma.size} coefficients"
        sample.reasons["ici"] = sample.too_few_units or few
        limits = dict.fromkeys(DISTANCES, Distance())
    return {name: replace(limits[name], value=float(values[name])) for name in DISTANCES}


def distance_limits(
    counted: MetricSample, spline: Spline, n_units: float, level: float, seed: int = 0
) -> dict[str, Distance] | None:
    """Return the limits of distances without their values (see `distances`); None where there are too few units."""
    gamma = spline.fit.gamma
    df = n_units - gamma.size
    if not (df > 0 and np.isfinite(spline.covariance).all()):
        return None
    points, mass = binned_risks(counted, MEAN_POINTS)
    rng = np.random.default_rng(seed)
    draws = gaussian_draws(spline.covariance, COEFFICIENT_DRAWS, rng)
    # to first order: log odds far out vary by several units, but probabilities there hardly can
    columns, fitted = spline.fit.columns(points), spline.fit.at(points)
    by_chance = _measures((draws @ columns) * (points * (1 - points)), mass)
    of_student = draws * np.sqrt(df / rng.chisquare(df, (COEFFICIENT_DRAWS, 1)))
    around = _measures(fitted - points + (of_student @ columns) * (fitted * (1 - fitted)), mass)
    # Hotelling's ellipsoid, chi-square's for many individuals
    wald = spline.wald()
    radius = gamma.size * (n_units - 1) / df * fisher_quantile(level, gamma.size, df)
    kept = max(0.0, 1.0 - math.sqrt(radius / wald)) if wald > 0 else 0.0
    # without anything kept, the diagonal itself, without rounding
    nearest = _measures((spline.fit.at(points, kept * gamma) - points) * (kept > 0), mass)
    return {
        name: Distance(
            se=float(around[name].std()),
            lower=float(nearest[name]),
            upper=float(np.quantile(around[name], 0.5 + level / 2)),
            if_right=0.0 if name == "miscalibration" else float(by_chance[name].mean()),
        )
        for name in DISTANCES
    }


def _measures(difference: Vector, mass: Vector) -> dict[str, Any]:
    """Return the measures of one or several curves' differences to the diagonal, (curves, risks)."""
    distance = np.abs(difference)
    e50, e90 = distance_quantiles(distance, mass, (E50.share, E90.share))
    mean, mean_square = (np.einsum("...i,i->...", part, mass) for part in (distance, np.square(distance)))
    return {"ici": mean, "e50": e50, "e90": e90, "miscalibration": mean_square}


def isotonic_curve(
    sample: CountedSample, spline: Spline | None, n_draws: int, seed: int
) -> tuple[IsotonicCurve, dict[str, float]]:
    """Return the isotonic curve with its consistency band, and the parts of the Brier score.

    The band, and the miscalibration that is expected if the predictions are right, come from statuses drawn from the
    predictions, with the weights as they are.
    """
    from scipy.optimize import isotonic_regression  # slow to import

    weight, event = sample.counted.weight, sample.counted.event
    predicted, place = np.unique(sample.counted.risk, return_inverse=True)
    counts = np.bincount(place[: sample.counted.individuals.size])
    total = np.bincount(place, weight).astype(np.float64)
    share = total / total.sum()
    means = np.bincount(place, weight * event) / total
    observed = isotonic_regression(means, weights=total).x
    shown = np.unique(np.linspace(0, predicted.size - 1, min(predicted.size, BAND_POINTS)).round().astype(np.intp))
    draw = _drawing(sample, spline, predicted, place, np.random.default_rng(seed))
    fits, by_chance = [], []
    for _ in range(n_draws):
        proportion = draw()
        fit = isotonic_regression(proportion, weights=total).x
        fits.append(fit[shown])
        by_chance.append(dot(share, (proportion - predicted) ** 2 - (proportion - fit) ** 2))
    shares = [0.5 - sample.evaluation.level / 2, 0.5 + sample.evaluation.level / 2]
    band = np.clip(np.quantile(fits, shares, axis=0), 0.0, 1.0)
    lower, upper = (np.interp(predicted, predicted[shown], limit) for limit in band)
    overall = dot(share, means)
    within = dot(share, means * (1 - means))  # statuses of those with the same prediction differ anyway
    uncertainty = overall * (1 - overall)
    recalibrated = within + dot(share, (means - observed) ** 2)
    score = within + dot(share, (means - predicted) ** 2)
    parts = {
        "brier": score,
        "isotonic_miscalibration": score - recalibrated,
        "isotonic_miscalibration_if_right": float(np.mean(by_chance)),
        "discrimination": uncertainty - recalibrated,
        "uncertainty": uncertainty,
    }
    return IsotonicCurve(predicted, observed, lower, upper, counts), parts


def _drawing(
    sample: CountedSample, spline: Spline | None, predicted: Vector, place: NDArray[np.intp], rng: np.random.Generator
) -> Callable[[], Vector]:
    """Return what draws the weighted proportion with event for each distinct prediction, were these right.

    Statuses of a group are drawn together: residuals keep their size, and change their sign with the whole group.
    """
    weight, event = sample.counted.weight, sample.counted.event
    total, groups = np.bincount(place, weight), sample.groups
    if groups is not None:
        curve = predicted if spline is None else spline.fit.at(predicted)
        n_coefficients = 0 if spline is None else spline.fit.gamma.size
        # residuals of a curve that was fitted to few groups are too small
        few = math.sqrt(sample.n_units / max(sample.n_units - n_coefficients, 1.0))
        residual = few * weight * (event - curve[place])

        def by_group() -> Vector:
            signs = rng.choice([-1.0, 1.0], groups.n_groups)
            return np.asarray(predicted + np.bincount(place, signs[sample.codes] * residual) / total)

        return by_group
    # those with the same prediction and weight are drawn at once
    weights, kind = np.unique(weight, return_inverse=True)
    cells, counts = np.unique(place * weights.size + kind, return_counts=True)
    place_of, weight_of = np.divmod(cells, weights.size)
    weight_of, risk_of = weights[weight_of], predicted[place_of]
    # of many predictions, most are of one individual: a uniform number is drawn ten times as fast as a binomial one,
    # and compared as NumPy's binomial generator does
    alone = (counts == 1) & (counts.size > MANY_PREDICTIONS)
    risk_alone, tied, risk_tied = risk_of[alone], counts[~alone], risk_of[~alone]
    likely, drawn = risk_alone > 0.5, np.empty(cells.size)

    def by_individual() -> Vector:
        uniform = rng.random(risk_alone.size)
        drawn[alone] = np.where(likely, uniform <= risk_alone, uniform > 1.0 - risk_alone)
        drawn[~alone] = rng.binomial(tied, risk_tied)
        return np.asarray(np.bincount(place_of, weight_of * drawn) / total)

    return by_individual
