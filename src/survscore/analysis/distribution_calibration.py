"""Calibration of whole predicted distributions, over all time at once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._validation import InputError, check_choice, check_level, check_whole, plural
from survscore.analysis.distribution_results import Component, DistributionCalibration, RiskBins, TestName
from survscore.analysis.distribution_sums import Exposure, Followed, Form, Sums
from survscore.curves import SurvivalCurves
from survscore.engine.inputs import check_outcomes, check_predictions
from survscore.inference.intervals import student_p, student_quantile
from survscore.inference.smooth_test import N_SCORES, ChiSquare, pooling, quadratic_test, ratio_limits
from survscore.inference.support import FEW_FOR_DIFFERENCE, FEW_GROUPS
from survscore.inference.units import Groups, PowerSums, small_sample
from survscore.outcomes import Outcomes

if TYPE_CHECKING:
    pass


TESTS = ("auto", "smooth", "martingale", "bins")
FORMS = ("intervals", "continuous")
LEAST_GROUPS = 10  # the statistic is at most their number, and could not reject with fewer
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
    y : Outcomes
        What was observed.
    curves : SurvivalCurves
        What was predicted, falling with time. Tensors are copied to the processor's memory.
    test : {"auto", "smooth", "martingale", "bins"}, default "auto"
        ``"smooth"``: as above. It needs all :math:`C^*`, and no drop-outs, with whom right predictions would be
        rejected. ``"martingale"``: the same scores, but events are expected as long as each individual was under
        observation, by the predicted hazard. ``"auto"``: the first where it is possible, otherwise the second, and
        `notes` say so. ``"bins"``: a chi-square of the numbers of events in `bins`, with the exposure of ``"auto"``.
    form : {"intervals", "continuous"}, default "intervals"
        How curves are read. ``"intervals"``: a prediction on a grid gives the probability of an event in each interval,
        and nothing about when in it. An event has the mean score of its interval, and only whole intervals up to
        :math:`C^*` count. ``"continuous"``: curves are taken as they are between grid points. If they are linear
        there, and the truth is not, right predictions on ten points are rejected in 6 to 40 % of tests instead of 5 %.
        Step curves can't be continuous.
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
    probability, is expected to have :math:`f (1 - q_k) / (1 - f)`, with f by a constant hazard; that balances those who
    had their event before they could leave. Continuous curves have :math:`\int_0^U h\,du / (1 - u)` up to the risk U at
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
    check_whole("n_bins", n_bins, 2)
    check_level(level)
    check_outcomes(y)
    if not isinstance(curves, SurvivalCurves):
        raise InputError(f"curves must be SurvivalCurves, not {type(curves).__name__}")
    check_predictions(y, curves)
    if form == "continuous" and curves.interpolation == "step":
        raise InputError(
            "form='continuous' needs curves that fall between grid points, and these have interpolation='step'"
        )
    units = None if groups is None else Groups.of(groups, len(y))
    y, curves = y.numpy(), curves.numpy()
    exposure = _exposure(y, test)
    followed = Followed.of(y, curves, exposure, form)
    sums = followed.sums(n_bins, keep=units is not None)
    return _Judgement(sums, units, level).result(y, followed, test)


def _exposure(y: Outcomes, test: str) -> Exposure:
    """Return up to where events are to be expected, or refuse what would reject right predictions."""
    if test == "martingale":
        return "observed"
    known = y.n_dropped_out == 0
    if test == "smooth" and not known:
        why = "censoring_time is unknown" if y.n_dropped_out is None else f"{y.n_dropped_out} of {len(y)} dropped out"
        raise InputError(
            f"test='smooth' needs everybody's exposure, but {why}; test='martingale' does without, and test='auto' "
            "takes it by itself"
        )
    return "known" if known else "observed"


@dataclass(frozen=True, eq=False)
class _Judgement:
    """Sums over individuals, and who is independent of whom."""

    sums: Sums
    groups: Groups | None
    level: float

    def result(self, y: Outcomes, followed: Followed, asked: str) -> DistributionCalibration:
        covariance, bin_covariance = self.sums.covariance, self.sums.bin_covariance
        if self.groups is not None:
            products = self.by_group.T @ self.by_group
            covariance, bin_covariance = products[:N_SCORES, :N_SCORES], products[N_SCORES:, N_SCORES:]
        reason = self._why_none()
        smooth = quadratic_test(self.sums.total, covariance, self.expected)
        test: TestName = "smooth" if followed.exposure == "known" else "martingale"
        decisive = smooth
        if asked == "bins":
            test, decisive = "bins", self._test_of_bins(bin_covariance)
        if reason is None and decisive.df == 0 and math.isfinite(decisive.statistic):
            reason = "nothing about these curves can vary"
        if reason is not None:
            nothing = np.full(N_SCORES, np.nan)
            decisive = smooth = ChiSquare(math.nan, 0, math.nan, nothing)
        reliable = reason is None and self.expected >= FEW_FOR_DIFFERENCE and self.degrees >= FEW_GROUPS / 2
        return DistributionCalibration(
            test=test,
            statistic=decisive.statistic,
            df=decisive.df,
            p_value=decisive.p_value,
            components=self._components(smooth),
            bins=self._bins(),
            exposure=followed.exposure,
            form=followed.form,
            n=len(y),
            n_events=int(np.count_nonzero(y.event)),
            n_dropped_out=y.n_dropped_out,
            n_groups=None if self.groups is None else self.groups.n_groups,
            observed=self.observed,
            expected=self.expected,
            reliable=reliable,
            level=self.level,
            reason=reason,
            notes=tuple(self._notes(y, followed, asked)),
        )

    @property
    def observed(self) -> float:
        return float(self.sums.observed.sum())

    @property
    def expected(self) -> float:
        return float(self.sums.expected.sum())

    @cached_property
    def by_group(self) -> NDArray[np.float64]:
        """Deviations of scores and bins, summed within each group of which anybody counts, (groups, scores + bins)."""
        sizes = self._group_sizes
        return np.array([np.bincount(self._codes, one, sizes.size)[sizes > 0] for one in self.sums.deviations.T]).T

    @property
    def degrees(self) -> float:
        """For how many degrees of freedom variances are good: infinitely many where they are known."""
        if self.groups is None:
            return math.inf
        return float(PowerSums.of(self._group_sizes[:, None]).units()[2][0])

    @property
    def _codes(self) -> NDArray[np.int32]:
        if self.groups is None:
            raise TypeError("there are no groups")
        return self.groups.codes

    @cached_property
    def _group_sizes(self) -> NDArray[np.int64]:
        """How many of each group count."""
        return np.bincount(self._codes[self.sums.deviations.any(axis=1)], minlength=int(self._codes.max()) + 1)

    def _why_none(self) -> str | None:
        """Return why there is no test, if so."""
        seen = f"{self.observed:.0f} seen"
        if self.expected <= 0:
            return f"the curves expect no event while anybody was followed ({seen})"
        if self.expected < LEAST_EXPECTED:
            return f"the curves expect only {self.expected:.3g} events ({seen}), and a test needs {LEAST_EXPECTED:g}"
        if self.groups is not None and len(self.by_group) < LEAST_GROUPS:
            n = len(self.by_group)
            return f"{plural(n, 'group')} {'is' if n == 1 else 'are'} too few: a test needs {LEAST_GROUPS}"
        return None

    def _test_of_bins(self, covariance: NDArray[np.float64]) -> ChiSquare:
        least = LEAST_EXPECTED
        if self.groups is not None:
            least = max(least, self.expected * GROUPS_PER_BIN / len(self.by_group))
        pool = pooling(self.sums.expected, least)
        deviation = pool @ (self.sums.observed - self.sums.expected)
        return quadratic_test(deviation, pool @ covariance @ pool.T, self.expected)

    def _bins(self) -> RiskBins:
        edges = np.linspace(0.0, 1.0, self.sums.observed.size + 1)
        observed, expected = self.sums.observed, self.sums.expected
        variance = np.diag(self.sums.bin_covariance)
        if self.groups is not None:  # about their mean: an interval is about the ratio there is, not about one
            n_groups, centred = len(self.by_group), self.by_group[:, N_SCORES:]
            centred = centred - centred.mean(axis=0)
            variance = small_sample(np.array([n_groups * 1.0])) * np.square(centred).sum(axis=0)
            variance = np.where(expected >= LEAST_BY_GROUP, variance, np.nan)
        lower, upper = ratio_limits(observed, expected, variance, float(student_quantile(self.level, self.degrees)))
        ratio = np.divide(observed, expected, out=np.full_like(expected, np.nan), where=expected > 0)
        return RiskBins(edges[:-1], edges[1:], observed, expected, ratio, lower, upper)

    def _components(self, smooth: ChiSquare) -> tuple[Component, ...]:
        p_values = student_p(smooth.z, math.inf)
        return tuple(
            Component(name, float(z), float(p), "unknown" if math.isnan(z) else words[0 if z > 0 else 1])
            for (name, words), z, p in zip(COMPONENTS.items(), smooth.z, p_values, strict=True)
        )

    def _notes(self, y: Outcomes, followed: Followed, asked: str) -> list[str]:
        notes = []
        if followed.exposure == "observed" and asked != "martingale":
            lost = y.n_dropped_out
            why = "censoring_time is unknown" if lost is None else f"{lost} of {len(y)} dropped out"
            notes.append(
                f"{why}: events are expected as long as each was seen (martingale), since the exposure of everybody is "
                "not known"
            )
        uncounted = int(np.count_nonzero(y.event)) - int(self.observed)
        if uncounted:
            by_interval = followed.form == "intervals" and y.censoring_time is not None
            after = "the last grid point up to C*" if by_interval else "the last predicted time"
            notes.append(f"not counted: {plural(uncounted, 'event')} after {after}")
        if self.sums.n_impossible:
            notes.append(
                f"{plural(int(self.sums.n_impossible), 'individual')} had the event where the curve is flat, or "
                "outlived a predicted survival of zero: under the curves that is impossible"
            )
        return notes
