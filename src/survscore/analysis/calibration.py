"""Calibration of predicted probabilities at one horizon, under any weighting."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._utils.dates import Unit
from survscore._validation import MOST_DRAWS, InputError, check_whole, shown
from survscore.analysis import calibration_measures as measures
from survscore.causes import Cause, takes_cause
from survscore.curves import SurvivalCurves
from survscore.engine.inputs import check_predictions, of_cause, rows_of_individuals
from survscore.incidence import IncidenceCurves
from survscore.inference.estimate import Estimate
from survscore.inference.intervals import student_quantile
from survscore.inference.support import FEW_DEGREES, FEW_FOR_DIFFERENCE
from survscore.inference.units import Groups
from survscore.metrics import cause_label
from survscore.metrics.calibration import line_in_log_odds, shift_in_log_odds
from survscore.outcomes import Outcomes
from survscore.results.long_tables import cause_column, stacked
from survscore.results.rounding import Number, decimals
from survscore.results.tables import ON_TOO_FEW, Cell, Part, PrintedAsTables, Tables
from survscore.weighting import Weighting, as_weighting

if TYPE_CHECKING:
    import pandas as pd

    from survscore.plots import CalibrationDisplay

HISTOGRAM_BINS = 50
MOST_BINS = 1000


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


@dataclass(frozen=True, eq=False, repr=False)
class Calibration(PrintedAsTables):
    r"""Calibration of predicted risks at one horizon; see `calibration`.

    Where something has no value, or no interval, it is NaN, and `reasons` says why; `summary` has all numbers.

    Attributes
    ----------
    time : float
        The horizon.
    observed_expected : Estimate
        The observed proportion divided by the mean predicted risk: above one, risks are too low.
    slope, intercept : Estimate
        Of the recalibration line, a logistic regression of the status on the predicted log odds. A slope below one:
        predictions are too far apart. Right predictions have one and zero.
    in_the_large : Estimate
        Calibration in the large: the intercept where the slope is fixed at one.
    curve : SmoothCurve
        The observed proportion as a smooth function of the predicted risk, by a logistic regression on a restricted
        cubic spline of the log odds.
    groups : RiskGroups
        The same for groups between quantiles of the predictions.
    ici, e50, e90 : Distance
        Mean, median and 90th percentile of the distance of the curve to the predictions.
    miscalibration : Distance
        The mean squared distance, with its bias taken off: about zero, or less, if the predictions are right.
    isotonic : IsotonicCurve
        The best increasing function of the predicted risk.
    brier, isotonic_miscalibration, discrimination, uncertainty : float
        Brier score = isotonic miscalibration - discrimination + uncertainty.
    isotonic_miscalibration_if_right : float
        What isotonic miscalibration is expected to be by chance alone if the predictions are right.
    n, n_counted, n_events, n_effective, n_units
        Individuals given; those counted, and those of them with event; their effective sample size; and the number of
        individuals, or groups of them, behind standard errors.
    reliable : bool
        Whether there are enough individuals of each status, and enough groups, for reliable intervals.
    weighting : str
        In words.
    level : float
        Of all intervals and bands.
    histogram : tuple of ndarray
        How many of those who are counted have which predicted risk: counts, and the edges of the bins.
    reasons : dict
        Why something has no value, or no interval.
    cause : str
        Under competing risks the cause of events.
    clock : str
        What time is counted from, where that is delayed entry.
    """

    time: float
    observed_expected: Estimate
    slope: Estimate
    intercept: Estimate
    in_the_large: Estimate
    curve: measures.SmoothCurve
    groups: RiskGroups
    ici: measures.Distance
    e50: measures.Distance
    e90: measures.Distance
    miscalibration: measures.Distance
    isotonic: measures.IsotonicCurve
    brier: float
    isotonic_miscalibration: float
    isotonic_miscalibration_if_right: float
    discrimination: float
    uncertainty: float
    n: int
    n_counted: int
    n_events: int
    n_effective: float
    n_units: int
    reliable: bool
    weighting: str
    level: float
    histogram: tuple[NDArray[np.int64], NDArray[np.float64]]
    reasons: dict[str, str] = field(default_factory=dict)
    cause: str = ""
    clock: str = ""

    @property
    def _when(self) -> str:
        return f"at {self.time:g}{f' ({self.clock})' if self.clock else ''}"

    @property
    def isotonic_miscalibration_corrected(self) -> float:
        """Isotonic miscalibration less what is expected by chance: about zero, or less, if predictions are right."""
        return self.isotonic_miscalibration - self.isotonic_miscalibration_if_right

    def summary(self) -> pd.DataFrame:
        """Return all numbers in a long table: measure, estimate, se, lower, upper, if_right.

        This and the other tables begin with the cause under competing risks.
        """
        distances = {"ICI": self.ici, "E50": self.e50, "E90": self.e90, "miscalibration": self.miscalibration}
        rows: list[tuple[str, Estimate, float]] = [
            ("observed/expected", self.observed_expected, 1.0),
            ("slope", self.slope, 1.0),
            ("intercept", self.intercept, 0.0),
            ("calibration in the large", self.in_the_large, 0.0),
            *((name, distance, distance.if_right) for name, distance in distances.items()),
            ("Brier score", Estimate(self.brier), math.nan),
            ("isotonic miscalibration", Estimate(self.isotonic_miscalibration), self.isotonic_miscalibration_if_right),
            ("isotonic miscalibration, corrected", Estimate(self.isotonic_miscalibration_corrected), 0.0),
            ("discrimination", Estimate(self.discrimination), math.nan),
            ("uncertainty", Estimate(self.uncertainty), math.nan),
        ]
        parts = []
        for measure, estimate, if_right in rows:
            columns = {"estimate": estimate.value, "se": estimate.se, "lower": estimate.lower, "upper": estimate.upper}
            parts.append({**cause_column(self.cause), "measure": measure, **columns, "if_right": if_right})
        return stacked(parts)

    def to_frame(self) -> pd.DataFrame:
        """Return the smooth curve in a table: predicted, observed, lower, upper."""
        return stacked([cause_column(self.cause) | vars(self.curve)]).drop(columns="n_knots")

    def groups_frame(self) -> pd.DataFrame:
        """Return the groups in a table: predicted, observed, se, lower, upper, count, events."""
        return stacked([cause_column(self.cause) | vars(self.groups)]).rename(columns={"counts": "count"})

    def plot(
        self,
        ax: Any = None,
        *,
        curve: Literal["smooth", "isotonic"] = "smooth",
        unit: Unit | str | None = None,
        width: float | None = None,
        **line: Any,
    ) -> CalibrationDisplay:
        """Draw the observed proportion along the predicted risk, the groups, and a histogram of the predictions.

        The diagonal is where right predictions lie. Below stand the numbers that say the most.

        Parameters
        ----------
        curve : {"smooth", "isotonic"}, default "smooth"
            The smooth curve with its confidence band, or the isotonic one with the band in which it would lie if the
            predictions were right. Either ends where fewer than ten individuals (or one in a hundred) have predictions
            further out, and has a gap where fewer than ten have any within 0.05, or its band is wider than a half.
        ax, unit, width
            As for `ScoreCurve.plot`.
        **line
            Passed on to `matplotlib.axes.Axes.plot`, for example ``label="my model"``.

        Returns
        -------
        CalibrationDisplay
            With the axes in ``ax_``, the figure in ``figure_``, and ``save("figure.pdf")``.
        """
        from survscore.plots import CalibrationDisplay

        return CalibrationDisplay(self).plot(ax=ax, curve=curve, unit=unit, width=width, **line)

    def _printed(self) -> Tables:
        rows: list[tuple[Cell, ...]] = []
        for row in self.summary().to_dict("records"):
            places = decimals([row["se"]], otherwise=4)
            if row["measure"] == "miscalibration":  # its errors are those of its root
                places = max(places, 4)
            number = Number(row["estimate"], row["lower"], row["upper"], reliable=self.reliable).rounded(places)
            right = "" if np.isnan(row["if_right"]) else f"{row['if_right']:.{places if row['if_right'] % 1 else 0}f}"
            rows.append((row["measure"], number, right))
        caption = (
            f"{cause_label('Calibration', self.cause)} {self._when}; {self.weighting}; "
            f"{self.n_counted:,} counted, {self.n_events:,} with event; {100 * self.level:g} % intervals"
        )
        notes = [f"{name}: {reason}" for name, reason in self.reasons.items()]
        notes += [] if self.reliable else [ON_TOO_FEW]
        return Tables(caption, [Part("", ("", "estimate", "if right"), rows, tuple(notes), "lrr")])

    def __repr__(self) -> str:
        cause = f"cause {shown(self.cause)}, " if self.cause else ""
        few = "" if self.reliable else ", too few for reliable intervals"
        ici = "" if np.isnan(self.ici.value) else f", ICI {self.ici.value:.2g} ({self.ici.if_right:.2g} if right)"
        return (
            f"Calibration({cause}{self._when}, {self.weighting}, n={self.n_counted}, {self.n_events} with event, "
            f"observed/expected {self.observed_expected}, slope {self.slope}, "
            f"miscalibration {self.miscalibration.value:.2g}, Brier score {self.brier:.4g}{few}{ici})"
        )


@takes_cause
def calibration(
    y: Outcomes,
    curves: SurvivalCurves | IncidenceCurves,
    time: float,
    *,
    weighting: str | Weighting = "administrative",
    groups: ArrayLike | None = None,
    level: float = 0.95,
    n_bins: int = 10,
    n_draws: int = 200,
    seed: int = 0,
    cause: Cause | None = None,
) -> Calibration:
    r"""Assess the calibration of predicted probabilities at a horizon.

    With the weights w of the weighting at t, the status :math:`y_i = 1\{T_i \le t\}` and the predicted risk
    :math:`p_i = 1 - \pi_i(t)`:

    .. math:: \frac{O}{E} = \frac{\sum w_i y_i}{\sum w_i p_i}, \qquad
        \operatorname{logit} P(y = 1) = a + b \operatorname{logit} p, \qquad
        \operatorname{logit} c(p) = \text{spline}(\operatorname{logit} p), \qquad
        \mathrm{ICI} = \frac{\sum w_i |c(p_i) - p_i|}{\sum w_i}

    Standard errors come from each individual's influence, with what was estimated inside the weights, as for scores.
    The Brier score is decomposed by the isotonic regression :math:`\hat c` of the status on the risk, with
    :math:`\bar y` the weighted observed proportion [1]_:

    .. math:: \mathrm{BS}(p) = \underbrace{\mathrm{BS}(p) - \mathrm{BS}(\hat c)}_{\text{isotonic miscalibration}}
        - \underbrace{[\mathrm{BS}(\bar y) - \mathrm{BS}(\hat c)]}_{\text{discrimination}}
        + \underbrace{\mathrm{BS}(\bar y)}_{\text{uncertainty}}

    Parameters
    ----------
    y, curves
        As for `brier_score`.
    time : float
        The horizon t.
    weighting : str or Weighting, default "administrative"
        As for the scores; weights are divided by their sum.
    groups : array_like, optional
        Labels of clusters, for cluster-robust intervals, by Student's t.
    level : float, default 0.95
        Of all intervals and bands, for each prediction by itself.
    n_bins : int, default 10
        The number of bins between quantiles of the predicted risk; tied predictions share a bin.
    n_draws, seed : int
        The isotonic curve's band, and the isotonic miscalibration expected by chance, come from this many outcomes
        drawn from the predictions themselves.

    cause : str or int, optional
        Under competing risks the cause of events, as for `brier_score`.

    Returns
    -------
    Calibration

    Raises
    ------
    InputError
        If an argument is invalid; the message names it, the rule, and the first value that violates it.
    UnfitError
        If a metric is not defined for these predictions, or under this weighting.

    Notes
    -----
    Risks are clipped at 1e-7 before log odds are taken. The spline has five knots if at least 100 individuals have each
    status, three otherwise, fewer if predictions or events are too few for it [2]_. Distances such as ICI grow with
    chance: read them beside the value expected if the predictions are right [3]_.

    References
    ----------
    .. [1] Dimitriadis, Gneiting and Jordan (2021). Stable reliability diagrams for probabilistic classifiers.
       PNAS 118(8).
    .. [2] Harrell (2015). Regression Modeling Strategies. Springer.
    .. [3] Austin, Harrell and van Klaveren (2020). Graphical calibration curves and the integrated calibration index
       (ICI) for survival models. Statistics in Medicine 39(21).

    Examples
    --------
    >>> import numpy as np
    >>> import survscore as ss
    >>> rng = np.random.default_rng(1)
    >>> rate = rng.gamma(2, 0.05, 1000)
    >>> star, end = rng.exponential(1 / rate), rng.uniform(2, 10, 1000)
    >>> y = ss.Outcomes(np.minimum(star, end), star <= end, end)
    >>> curves = ss.SurvivalCurves(np.exp(-rate[:, None] * [2.0, 5.0]), times=[2, 5])
    >>> found = ss.calibration(y, curves, 5)
    >>> found.summary().round(3).iloc[[0, 1, 4]]
                 measure  estimate     se  lower  upper  if_right
    0  observed/expected     1.050  0.050  0.957  1.152     1.000
    1              slope     0.986  0.113  0.765  1.207     1.000
    4                ICI     0.022  0.012  0.000  0.059     0.027
    >>> found.groups_frame().round(3).head(2)
       predicted  observed     se  lower  upper  count  events
    0      0.087     0.111  0.040  0.055  0.213     63       7
    1      0.155     0.159  0.046  0.088  0.269     63      10
    """
    check_whole("n_bins", n_bins, 1, MOST_BINS)
    check_whole("n_draws", n_draws, 1, MOST_DRAWS)
    check_whole("seed", seed, 0)
    y, named = of_cause(y, {"curves": curves}, cause, times=[time], whole=False, caller="calibration")
    curves = named["curves"]
    if not isinstance(curves, SurvivalCurves):
        raise InputError(f"curves must be SurvivalCurves, not {type(curves).__name__}")
    check_predictions(y, curves)
    if y.weight_kind == "frequency":  # groups, bins and drawn statuses are of individuals
        rows = rows_of_individuals(y)
        groups = None if groups is None else Groups.of(groups, len(y)).codes[rows]
        y, curves, weighting = y.weighted(None)[rows], curves[rows], as_weighting(weighting, y).of_rows(rows)
    sample = measures.CountedSample.of(
        y, {"curves": curves}, time, "calibration", weighting=weighting, groups=groups, level=level
    )
    counted = sample.counted
    measured: dict[str, Any] = measures.coefficients(sample, counted.once(shift_in_log_odds), "in_the_large")
    measured |= measures.coefficients(sample, counted.once(line_in_log_odds), "intercept", "slope")
    spline = measures.spline_of(sample)
    measured |= measures.distances(sample, spline, seed)
    isotonic, brier_parts = measures.isotonic_curve(sample, spline, n_draws, seed)
    return Calibration(
        time=sample.time,
        **measured | brier_parts,
        observed_expected=measures.observed_expected(sample),
        curve=measures.smooth_curve(sample, spline),
        groups=risk_groups(sample, n_bins),
        isotonic=isotonic,
        n=sample.label.size,
        n_counted=counted.individuals.size,
        n_events=int(sample.scored.support.n_events[0]),
        n_effective=sample.effective(by_unit=False),
        n_units=int(sample.n_units),
        reliable=bool(sample.scored.support.n_rarer[0] >= FEW_FOR_DIFFERENCE) and sample.degrees >= FEW_DEGREES,
        weighting=sample.scored.weighting,
        level=level,
        histogram=np.histogram(counted.risk[: counted.individuals.size], bins=HISTOGRAM_BINS, range=(0.0, 1.0)),
        reasons=sample.reasons,
        cause=sample.scored.cause,
        clock=y.clock,
    )


def risk_groups(sample: measures.CountedSample, n_bins: int) -> RiskGroups:
    r"""Return groups between quantiles of the predictions, fewer where predictions are tied.

    The interval is Wilson's, for the effective sample size of the standard error, :math:`O (1 - O)/\mathrm{se}^2`; that
    of the weights where all have the same status.
    """
    weight, event, risk = sample.counted.weight, sample.counted.event, sample.counted.risk
    once = risk[: sample.counted.individuals.size]
    edges = np.unique(np.quantile(once, np.arange(1, n_bins) / n_bins, method="inverted_cdf"))
    _, label = np.unique(np.searchsorted(edges, risk, side="left"), return_inverse=True)
    totals, part = np.bincount(label, weight), sample.counted.part
    predicted, observed = np.bincount(label, weight * risk) / totals, np.bincount(label, weight * event) / totals
    influence = np.zeros((totals.size, risk.size))
    influence[label, np.arange(risk.size)] = weight * (event - observed[label]) / totals[label]
    # the weights of units, individuals or clusters, within each group of predictions
    stride = int(sample.codes.max()) + 1
    units, unit = np.unique(label * stride + sample.codes, return_inverse=True)
    group_of_unit, unit_weights = units // stride, np.bincount(unit, weight)
    n_units = np.bincount(group_of_unit).astype(np.float64)
    variance = np.diag(sample.covariance(influence, n_units))
    effective = totals**2 / np.bincount(group_of_unit, unit_weights**2)

    observed = np.clip(observed, 0.0, 1.0)
    varies, binomial = variance > measures.NO_VARIANCE, observed * (1 - observed)
    known = (n_units >= 2) & ~np.isnan(variance) & (varies | (binomial == 0))
    # Wilson's variance is that of the limits themselves, which is not estimated; only that of clusters is
    degrees = np.full(n_units.size, math.inf) if sample.groups is None else n_units - 1
    quantile = student_quantile(sample.evaluation.level, degrees)
    with np.errstate(invalid="ignore", divide="ignore"):
        square = quantile**2 / np.where(varies, binomial / variance, effective)
        middle = (observed + square / 2) / (1 + square)
        half = np.sqrt(square * binomial + square**2 / 4) / (1 + square)
        se = np.where(known & varies, np.sqrt(variance), np.nan)
    lower, upper = (np.where(known, limit, np.nan) for limit in (middle - half, middle + half))
    # of statuses that are projected, the expected number of events
    counts, events = (np.bincount(label, weights).round().astype(np.int64) for weights in (part, event * part))
    return RiskGroups(predicted, observed, se, np.maximum(lower, 0.0), np.minimum(upper, 1.0), counts, events)
