"""Calibration of whole predicted distributions, over all time at once."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._validation import InputError, check_choice, check_level, check_whole, plural
from survscore.analysis.distribution_sums import DistributionSums, Exposure, Followed, Form
from survscore.curves import SurvivalCurves
from survscore.engine.inputs import check_one_kind, check_predictions, curves_read, of_cause
from survscore.engine.times import FEW_TIMES
from survscore.inference.intervals import student_p, student_quantile
from survscore.inference.smooth_test import N_SCORES, ChiSquare, pooling, quadratic_test, ratio_limits
from survscore.inference.support import FEW_FOR_DIFFERENCE, FEW_GROUPS
from survscore.inference.units import Groups, PowerSums, small_sample
from survscore.outcomes import Outcomes
from survscore.results.long_tables import stacked
from survscore.results.printing import warn_about_interpolation
from survscore.results.rounding import Number, decimals, p_text
from survscore.results.tables import Cell, Part, PrintedAsTables, Tables

if TYPE_CHECKING:
    import pandas as pd

    from survscore.plots import DistributionCalibrationDisplay

TestName = Literal["smooth", "martingale", "bins"]
Values = NDArray[np.float64]
TESTS = ("auto", "smooth", "martingale", "bins")
FORMS = ("intervals", "continuous")
LEAST_GROUPS = 10  # the statistic is at most their number, and could not reject with fewer
MOST_BINS = 1000
GROUPS_PER_BIN = 5  # at least, for their covariance to be known
LEAST_EXPECTED = 5.0  # events: a chi-square says nothing about fewer, in all and in a bin
LEAST_BY_GROUP = 10.0  # events in a bin, for its interval by groups
COMPONENTS = {
    "level": ("more events than expected", "fewer events than expected"),
    "slope": ("too few events early and too many late", "too many events early and too few late"),
    "curvature": ("too few events in the middle", "too many events in the middle"),
    "skewness": (
        "too few, too many, too few and too many events in turn",
        "too many, too few, too many and too few events in turn",
    ),
}


@dataclass(frozen=True)
class Component:
    """One way in which predicted distributions can be wrong.

    Attributes
    ----------
    name : {"level", "slope", "curvature", "skewness"}
        How observed deviate from expected events along the predicted risk, beyond the components before.
    z, p_value : float
        The deviation by its standard error, and its p-value; NaN where these data do not determine it.
    words : str
        What a deviation of this sign means.
    """

    name: str
    z: float
    p_value: float
    words: str


@dataclass(frozen=True, eq=False)
class RiskBins:
    """Observed and expected events while the predicted risk rises from `risk_from` to `risk_to`.

    `ratio` is observed by expected, with the limits of its interval: NaN where nothing is expected, and with groups no
    limits where fewer than ten events are. All are arrays of shape (n_bins,).
    """

    risk_from: Values
    risk_to: Values
    observed: Values
    expected: Values
    ratio: Values
    lower: Values
    upper: Values


@dataclass(frozen=True, eq=False, repr=False)
class DistributionCalibration(PrintedAsTables):
    """Calibration of predicted curves as distributions, over all time; see `distribution_calibration`.

    Attributes
    ----------
    test : {"smooth", "martingale", "bins"}
        Which test was made.
    statistic, df, p_value : float
        The statistic, its degrees of freedom (the rank of the covariance), and the p-value; NaN where `reason` says
        why. Infinite, with a p-value of zero, if something happened that has probability zero under the curves.
    components : tuple of Component
        Level, slope, curvature and skewness. Each is what the ones before do not explain: they are independent, and the
        squares of their z add up to the statistic of the smooth test.
    bins : RiskBins
        Observed and expected events by predicted risk.
    exposure, form
        Whether events are expected up to the "known" C*, or as long as each individual was "observed"; and whether
        curves were read by the "intervals" of their grid, or as "continuous".
    n, n_events, n_dropped_out, n_groups : int or None
        Individuals, those of them with event, drop-outs and groups; None where unknown, or without groups.
    observed, expected : float
        Events that count, and how many the curves expect.
    reliable : bool
        Whether enough events are expected, and there are enough groups, for a reliable p-value and intervals.
    level : float
        Of the intervals, and of what is called a deviation.
    reason, notes
        Why there is no test, or None; and remarks on the test and the data.
    """

    test: TestName
    statistic: float
    df: int
    p_value: float
    components: tuple[Component, ...]
    bins: RiskBins
    exposure: Exposure
    form: Form
    n: int
    n_events: int
    n_dropped_out: int | None
    n_groups: int | None
    observed: float
    expected: float
    reliable: bool
    level: float
    reason: str | None
    notes: tuple[str, ...]

    @property
    def conclusion(self) -> str:
        """What the test says, in words."""
        if self.reason is not None:
            return f"no test: {self.reason}"
        if not self.p_value < 1.0 - self.level:
            return "no sign that the curves are wrong"
        if math.isinf(self.statistic):
            return "the curves are wrong: what happened has probability zero"
        clear = [component for component in self.components if component.p_value < 1.0 - self.level]
        sentences = [component.words for component in sorted(clear, key=lambda component: -abs(component.z))]
        return f"the curves are wrong: {'; '.join(sentences) or 'no single component stands out'}"

    def to_frame(self) -> pd.DataFrame:
        """Return the bins in a table: risk_from, risk_to, observed, expected, ratio, lower, upper."""
        return stacked([vars(self.bins)])

    def components_frame(self) -> pd.DataFrame:
        """Return the components in a table: component, z, p_value, words."""
        return stacked([vars(component) for component in self.components]).rename(columns={"name": "component"})

    def plot(self, ax: Any = None, *, width: float | None = None, **line: Any) -> DistributionCalibrationDisplay:
        """Draw observed by expected events along the predicted risk, with intervals.

        Parameters
        ----------
        ax, width
            As for `ScoreCurve.plot`.
        **line
            Passed on to `matplotlib.axes.Axes.plot`, for example ``color="C1"``.

        Returns
        -------
        DistributionCalibrationDisplay
            With the axes in ``ax_``, the figure in ``figure_``, and ``save("figure.pdf")``.
        """
        from survscore.plots import DistributionCalibrationDisplay

        return DistributionCalibrationDisplay(self).plot(ax=ax, width=width, **line)

    def _printed(self) -> Tables:
        bins, rows = self.bins, list[tuple[Cell, ...]]()
        places = decimals((bins.upper - bins.lower) / 4)
        for k in range(bins.ratio.size):
            ratio = Number(float(bins.ratio[k]), float(bins.lower[k]), float(bins.upper[k]), decimals=places)
            ends = f"{bins.risk_from[k]:.2f} to {bins.risk_to[k]:.2f}"
            rows.append((ends, f"{bins.observed[k]:.0f}", f"{bins.expected[k]:.1f}", ratio))
        lost = f", {self.n_dropped_out} dropped out" if self.n_dropped_out else ""
        caption = f"{plural(self.n, 'individual')}{lost}; {100 * self.level:g} % intervals"
        test = f"{self.test} test: {self.conclusion}"
        if self.reason is None:
            test += f" (chi-square {self.statistic:.3g} with {plural(self.df, 'degree')} of freedom, p"
            p_value = p_text(self.p_value)
            test += f" {p_value})" if p_value.startswith("<") else f" = {p_value})"
        header = ("risk at the event", "observed", "expected", "observed/expected")
        return Tables(caption, [Part("", header, rows, (test, *self.notes), "lrrr")])

    def __repr__(self) -> str:
        parts = [
            f"{self.test} test by {'intervals of the grid' if self.form == 'intervals' else 'continuous curves'}",
            f"n={self.n}",
            f"{self.observed:.0f} events where {self.expected:.1f} are expected",
        ]
        if self.n_dropped_out:
            parts.append(f"{self.n_dropped_out} of {self.n} dropped out")
        if self.n_groups is not None:
            parts.append(plural(self.n_groups, "group"))
        if self.reason is None:
            parts.append(f"chi-square {self.statistic:.3g} ({self.df} df), p={self.p_value:.3g}")
        if not self.reliable and self.reason is None:
            parts.append("too few events for a reliable test")
        return f"DistributionCalibration({', '.join(parts)}: {self.conclusion})"


def distribution_calibration(
    y: Outcomes,
    curves: SurvivalCurves,
    *,
    test: Literal["auto", "smooth", "martingale", "bins"] = "auto",
    form: Form = "intervals",
    n_bins: int = 10,
    groups: ArrayLike | None = None,
    level: float = 0.95,
) -> DistributionCalibration:
    r"""Test the calibration of predicted curves as distributions, over all time at once.

    If curves are right, the predicted risk at the event, :math:`U_i = 1 - \pi_i(T^*_i)`, is uniform. It is observed
    if at most :math:`V_i = 1 - \pi_i(C^*_i)`, and under administrative censoring :math:`V_i` is known for each
    individual, also for those with event: expectations are known exactly, and nothing is imputed. Neyman's smooth test
    [1]_ compares observed with expected scores of Legendre's polynomials :math:`h_0, \dots, h_3`:

    .. math:: W = \sum_i 1\{U_i \le V_i\}\, h(U_i) - H(V_i), \qquad H(v) = \int_0^v h(u)\,du, \qquad
        \Sigma = \sum_i \int_0^{V_i} h h'\,du - H(V_i) H(V_i)', \qquad X^2 = W' \Sigma^+ W

    which is a chi-square with as many degrees of freedom as :math:`\Sigma` has rank, usually four.

    Parameters
    ----------
    y, curves
        As for `brier_score`; curves must not rise with time. Tensors are copied to the processor's memory.
    test : {"auto", "smooth", "martingale", "bins"}, default "auto"
        ``"smooth"``: as above, which needs all :math:`C^*` and no drop-outs. ``"martingale"``: the same scores, but
        events are expected as long as each individual was under observation, by the predicted hazard. ``"auto"``: the
        first where it is possible, otherwise the second, and `notes` say so. ``"bins"``: a chi-square of the numbers
        of events in `bins`, with the exposure of ``"auto"``.
    form : {"intervals", "continuous"}, default "intervals"
        ``"intervals"``: a prediction on a grid gives the probability of an event in each interval, and nothing about
        when in it. An event has the mean score of its interval, and only whole intervals up to :math:`C^*` count.
        ``"continuous"``: curves, not steps, are taken as they are between grid points. If they are linear there, and
        the truth is not, right predictions on ten points are rejected in 6 to 40 % of tests instead of 5 %.
    n_bins : int, default 10
        Into how many bins of equal width to cut the predicted risk, for the table, the plot and the test of bins, which
        adds up neighbours until five events are expected.
    groups : array_like, optional
        Labels of clusters: the covariance is that of independent groups, :math:`\sum_g W_g W_g'`. At least ten; and a
        bin has an interval only if ten events are expected in it.
    level : float, default 0.95
        Of the intervals, and of what is called a deviation.

    Returns
    -------
    DistributionCalibration

    Notes
    -----
    Predictions after :math:`C^*` do not matter. Curves that end before it are followed to their last time,
    :math:`V_i = 1 - \pi_i(\min(C^*_i, t_m))`, also with ``extrapolation="hold"``, and later events do not count.

    By intervals, with probability :math:`p_k` of the k-th and mean score :math:`\bar h_k`, the expectation is
    :math:`\sum p_k \bar h_k` over whole intervals up to :math:`C^*`, and the covariance
    :math:`\sum p_k \bar h_k \bar h_k' - H H'`. In the table an interval is in the bin that holds its middle.

    The martingale version has hazards :math:`q_k = p_k / \pi(t_{k-1})`: an individual at risk is expected to have
    :math:`q_k` events, with variance :math:`q_k (1 - q_k)`. One who left within an interval, after a share f of its
    probability by a constant hazard, is expected to have :math:`f (1 - q_k) / (1 - f)`, which balances those who had
    their event before they could leave. Continuous curves have :math:`\int_0^U h\,du / (1 - u)` up to the risk U at
    the exit, and as covariance the mean of :math:`\int_0^U h h'\,du / (1 - u)` and of :math:`h(U) h(U)'` of those with
    event: the first alone would reject right predictions in 7 % of tests with 60 events.

    The test is about all individuals together. Errors in some may cancel those in others: see `calibration` at
    horizons, and scores.

    References
    ----------
    .. [1] Neyman (1937). "Smooth test" for goodness of fit. Skandinavisk Aktuarietidskrift 20.
    .. [2] Haider, Hoehn, Davis and Greiner (2020). Effective ways to build and evaluate individual survival
       distributions. Journal of Machine Learning Research 21(85).
    .. [3] Pena (1998). Smooth goodness-of-fit tests for composite hypothesis in hazard based models. Annals of
       Statistics 26(5).

    Examples
    --------
    >>> import numpy as np
    >>> import survscore as ss
    >>> rng = np.random.default_rng(1)
    >>> rate = rng.gamma(2, 0.05, 1000)
    >>> star, end = rng.exponential(1 / rate), rng.uniform(2, 10, 1000)
    >>> y = ss.Outcomes(np.minimum(star, end), star <= end, end)
    >>> times = np.linspace(0.5, 10, 20)
    >>> right = ss.SurvivalCurves(np.exp(-rate[:, None] * times), times)
    >>> ss.distribution_calibration(y, right)
    DistributionCalibration(smooth test by intervals of the grid, n=1000, 396 events where 379.9 are expected,
    chi-square 1.6 (4 df), p=0.809: no sign that the curves are wrong)
    >>> wrong = ss.SurvivalCurves(np.exp(-rate[:, None] * times**1.4 / 2), times)
    >>> found = ss.distribution_calibration(y, wrong, n_bins=5)
    >>> found.components[1]
    Component(name='slope', z=-5.4..., p_value=..., words='too many events early and too few late')
    >>> found.to_frame().round(2)
       risk_from  risk_to  observed  expected  ratio  lower  upper
    0        0.0      0.2     229.0    177.34   1.29   1.15   1.45
    1        0.2      0.4      92.0    111.50   0.83   0.69   0.99
    2        0.4      0.6      51.0     60.00   0.85   0.66   1.09
    3        0.6      0.8      19.0     27.94   0.68   0.45   1.02
    4        0.8      1.0       5.0      5.00   1.00   0.45   2.24
    """
    check_choice("test", test, TESTS)
    check_choice("form", form, FORMS)
    check_whole("n_bins", n_bins, 2, MOST_BINS)
    check_level(level)
    y, curves = _of_one_kind(y, curves)
    if form == "continuous" and curves.interpolation == "step":
        raise InputError(
            "form='continuous' needs curves that fall between grid points, and these have interpolation='step'"
        )
    if form == "continuous":
        warn_about_interpolation(curves_read({"curves": curves}, curves.times, whole=True))
    units = None if groups is None else Groups.of(groups, len(y))
    y, curves = y.numpy(), curves.numpy()
    if y.weights is not None and not (y.weights > 0).all():  # who has no weight has no part, nor is counted
        rows = np.flatnonzero(y.weights > 0)
        y, curves = y[rows], curves[rows]
        units = None if units is None else Groups.of(units.codes[rows], rows.size)
    lost, why = y.n_dropped_out, "censoring_time is unknown"
    if lost is not None:
        why = f"{lost} of {y.n_individuals} dropped out"
    if test == "smooth" and lost != 0:  # right predictions would be rejected
        raise InputError(
            f"test='smooth' needs each individual's exposure, but {why}; test='martingale' does not, and "
            "test='auto' selects it"
        )
    exposure: Exposure = "known" if lost == 0 and test != "martingale" else "observed"
    followed = Followed.of(y, curves, exposure, form)
    sums = followed.sums(n_bins, keep=units is not None)
    observed, expected = float(sums.observed.sum()), float(sums.expected.sum())
    covariance, bin_covariance = sums.covariance, sums.bin_covariance
    by_group, degrees = None, math.inf
    if units is not None:
        by_group, degrees = _by_group(sums, units, y.weights)
        products = by_group.T @ by_group
        covariance, bin_covariance = products[:N_SCORES, :N_SCORES], products[N_SCORES:, N_SCORES:]
    n_groups = math.inf if by_group is None else len(by_group)
    # as many expected events as there would be of equal weight
    enough = sums.expected if y.weights is None else _equal_weights(sums.expected, sums.square_expected)
    n_expected = expected if y.weights is None else float(_equal_weights(expected, sums.square_expected.sum()))
    decisive = smooth = quadratic_test(sums.total, covariance, expected)
    if test == "bins":
        pool = pooling(enough, max(LEAST_EXPECTED, enough.sum() * GROUPS_PER_BIN / n_groups))
        deviation = pool @ (sums.observed - sums.expected)
        decisive = quadratic_test(deviation, pool @ bin_covariance @ pool.T, expected)
    reason = _why_no_test(observed, n_expected, n_groups, decisive)
    if reason is not None:
        decisive = smooth = ChiSquare(math.nan, 0, math.nan, np.full(N_SCORES, np.nan))
    by_exposure: TestName = "smooth" if exposure == "known" else "martingale"
    return DistributionCalibration(
        test="bins" if test == "bins" else by_exposure,
        statistic=decisive.statistic,
        df=decisive.df,
        p_value=decisive.p_value,
        components=tuple(
            Component(name, float(z), float(p), "unknown" if math.isnan(z) else words[0 if z > 0 else 1])
            for (name, words), z, p in zip(COMPONENTS.items(), smooth.z, student_p(smooth.z, math.inf), strict=True)
        ),
        bins=_risk_bins(sums, by_group, float(student_quantile(level, degrees))),
        exposure=exposure,
        form=form,
        n=y.n_individuals,
        n_events=y.n_of(y.event),
        n_dropped_out=lost,
        n_groups=None if units is None else units.n_groups,
        observed=observed,
        expected=expected,
        reliable=reason is None and n_expected >= FEW_FOR_DIFFERENCE and degrees >= FEW_GROUPS / 2,
        level=level,
        reason=reason,
        notes=tuple(_notes(y, followed, sums, why if test != "martingale" else "")),
    )


def _notes(y: Outcomes, followed: Followed, sums: DistributionSums, why: str) -> Iterator[str]:
    """Yield what to know about the test and the data; `why` the exposure is not known, if that is news."""
    by_interval, times = followed.form == "intervals", followed.curves.times
    if y.clock:
        yield y.clock
    if followed.exposure == "observed" and why:
        yield (
            f"{why}: events are expected during follow-up (martingale), since the exposure of all individuals "
            "is not known"
        )
    n_after = y.n_of(y.event) - y.n_of(followed.event)
    if n_after:
        grid_point = by_interval and y.censoring_time is not None
        after = "the last grid point up to C*" if grid_point else "the last predicted time"
        yield f"not counted: {plural(n_after, 'event')} after {after}"
    if y.weights is not None and y.weight_kind != "frequency":
        yield f"{y.weight_kind} weights, of one on average: events are sums of these"
    if by_interval and times.size <= FEW_TIMES:
        yield f"the test is of the probabilities of {plural(times.size, 'interval')}, not of curves in them"
    if sums.n_impossible:
        yield (
            f"{plural(int(sums.n_impossible), 'individual')} had the event where the curve is flat, or "
            "outlived a predicted survival of zero: under the curves that is impossible"
        )


def _why_no_test(observed: float, expected: float, n_groups: float, test: ChiSquare) -> str | None:
    observed_events = f"{observed:.0f} observed"
    if expected <= 0:
        return f"the curves expect no event during follow-up ({observed_events})"
    if expected < LEAST_EXPECTED:
        return f"the curves expect only {expected:.3g} events ({observed_events}), and a test needs {LEAST_EXPECTED:g}"
    if n_groups < LEAST_GROUPS:
        few = plural(int(n_groups), "group")
        return f"{few} {'is' if n_groups == 1 else 'are'} too few: a test needs {LEAST_GROUPS}"
    varies = test.df > 0 or not math.isfinite(test.statistic)
    return None if varies else "nothing about these curves can vary"


def _of_one_kind(y: Any, curves: Any) -> tuple[Outcomes, SurvivalCurves]:
    """Return outcomes of one kind of events and what was predicted, with time counted from delayed entry."""
    if isinstance(y, Outcomes) and y.entry is not None and not y.causes:
        y, named = of_cause(y, {"curves": curves}, caller="distribution_calibration")
        curves = named["curves"]
    check_one_kind(y, "distribution_calibration")
    if not isinstance(curves, SurvivalCurves):
        raise InputError(f"curves must be SurvivalCurves, not {type(curves).__name__}")
    check_predictions(y, curves)
    return y, curves


def _equal_weights(expected: Any, square_expected: Any) -> Any:
    """Return how many expected events of equal weight would be as sure."""
    return np.divide(expected**2, square_expected, out=np.zeros_like(expected), where=np.asarray(square_expected) > 0)


def _by_group(sums: DistributionSums, groups: Groups, weights: Values | None) -> tuple[Values, float]:
    """Return deviations summed within each group that counts, (groups, scores + bins), and their degrees of freedom."""
    rows = sums.deviations.any(axis=1)
    sizes = np.bincount(groups.codes[rows], None if weights is None else weights[rows], groups.n_groups)
    by_group = [np.bincount(groups.codes, deviation, sizes.size)[sizes > 0] for deviation in sums.deviations.T]
    return np.array(by_group, dtype=np.float64).T, float(PowerSums.of(sizes[:, None]).units()[2][0])


def _risk_bins(sums: DistributionSums, by_group: Values | None, quantile: float) -> RiskBins:
    edges, expected = np.linspace(0.0, 1.0, sums.observed.size + 1), sums.expected
    variance = np.diag(sums.bin_covariance)
    if by_group is not None:  # about their mean: an interval is about the ratio there is, not about one
        centred = by_group[:, N_SCORES:] - by_group[:, N_SCORES:].mean(axis=0)
        variance = small_sample(np.array([len(by_group) * 1.0])) * np.square(centred).sum(axis=0)
        variance = np.where(expected >= LEAST_BY_GROUP, variance, np.nan)
    lower, upper = ratio_limits(sums.observed, expected, variance, quantile)
    ratio = np.divide(sums.observed, expected, out=np.full_like(expected, np.nan), where=expected > 0)
    return RiskBins(edges[:-1], edges[1:], sums.observed, expected, ratio, lower, upper)
