"""Signs that data are not what weights assume: drop-out depends on risk or C*, or entry was late and nobody said so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from survscore._validation import DelayedEntryWarning, plural, warn
from survscore.curves import SurvivalCurves
from survscore.engine.times import FEW_TIMES
from survscore.inference.intervals import chi_square_p
from survscore.outcomes import Outcomes
from survscore.results.long_tables import stacked
from survscore.weighting.ranks import mean_ranks, mid_ranks, quantile_codes

if TYPE_CHECKING:
    import pandas as pd

THIRDS = 3
FEW = 10  # drop-outs, of which the distribution of the statistic is not known well enough
MOST_ROWS = 20_000  # of more individuals, as many are taken, at equal distances


@dataclass(frozen=True, eq=False)
class LogRank:
    """A log-rank test of drop-out between groups of individuals, and what it is made of.

    Attributes
    ----------
    by : str
        What the groups are thirds of, from low to high.
    n, dropped_out, expected : ndarray
        Of each group, how many they are, how many dropped out, and how many would if all groups did alike.
    rate : ndarray
        Drop-outs per unit of time under observation.
    statistic, df, p_value
        Of the chi-square test.
    """

    by: str
    n: NDArray[np.int64]
    dropped_out: NDArray[np.int64]
    expected: NDArray[np.float64]
    rate: NDArray[np.float64]
    statistic: float
    df: int
    p_value: float


def log_rank(time: NDArray[np.float64], leaves: NDArray[np.bool_], codes: NDArray[np.int32], by: str) -> LogRank:
    r"""Test whether groups leave alike, in the way that `leaves` says.

    At each time s, :math:`q` of :math:`r` at risk leave, of group k :math:`q_k` of :math:`r_k`; as in the product
    limit, those at risk are those who leave then and all with :math:`T > s`. With
    :math:`u_k = \sum_s (q_k - q\,r_k/r)` and

    .. math:: V_{kl} = \sum_s \frac{q (r - q)}{r - 1} \frac{r_k}{r} \left(1\{k = l\} - \frac{r_l}{r}\right),

    the statistic :math:`u^\top V^- u` is chi-square with as many degrees of freedom as V has.
    """
    k = int(codes.max()) + 1
    jumps = np.unique(time[leaves])
    dropouts, at_risk = np.zeros((2, k, jumps.size))
    for group in range(k):
        inside = codes == group
        dropouts[group] = np.bincount(np.searchsorted(jumps, time[inside & leaves]), minlength=jumps.size)
        own = np.sort(time[inside])
        at_risk[group] = own.size - np.searchsorted(own, jumps, side="right") + dropouts[group]
    q, r = dropouts.sum(axis=0), at_risk.sum(axis=0)
    share = at_risk / r
    step = q * (r - q) / np.maximum(r - 1, 1)
    variance = np.diag((share * step).sum(axis=1)) - (share * step) @ share.T
    expected = (share * q).sum(axis=1)
    surplus = dropouts.sum(axis=1) - expected
    df = int(np.linalg.matrix_rank(variance, hermitian=True)) if jumps.size else 0
    statistic = float(surplus @ np.linalg.pinv(variance, hermitian=True) @ surplus)
    observed = np.bincount(codes, weights=time, minlength=k)
    with np.errstate(invalid="ignore", divide="ignore"):
        rate = dropouts.sum(axis=1) / observed
    n, dropped_out = np.bincount(codes, minlength=k), dropouts.sum(axis=1).astype(np.int64)
    return LogRank(by, n, dropped_out, expected, rate, statistic, df, chi_square_p(statistic, df))


@dataclass(frozen=True, eq=False, repr=False)
class DropoutTest:
    """Whether drop-out depends on predicted risk and on C*. Numbers only; prints as sentences.

    Attributes
    ----------
    tests : tuple of LogRank
        By thirds of predicted risk, where predictions are in memory, and by thirds of C*.
    n, n_dropped_out : int
        How many individuals were looked at, and how many of them dropped out.
    """

    tests: tuple[LogRank, ...]
    n: int
    n_dropped_out: int

    def to_frame(self) -> pd.DataFrame:
        """Return one row per test and third: n, dropped_out, expected, rate, statistic, df, p_value."""
        return stacked([{"by": test.by, "third": np.arange(1, test.n.size + 1), **vars(test)} for test in self.tests])

    def sentences(self, level: float = 0.95) -> list[str]:
        """Return what was found, in words."""
        if self.n_dropped_out < FEW:
            return [f"{plural(self.n_dropped_out, 'drop-out')}: too few to test whether drop-out depends on anything"]
        return [_in_words(test, level) for test in self.tests]

    def __repr__(self) -> str:
        return "\n".join(self.sentences())


def _in_words(test: LogRank, level: float) -> str:
    tested = "log-rank p < 0.001" if test.p_value < 0.001 else f"log-rank p = {test.p_value:.3f}"
    if not test.p_value < 1.0 - level:
        return f"no sign that drop-out depends on {test.by} ({tested})"
    ratios = [f"{ratio:.2f}" for ratio in test.dropped_out / test.expected]
    return (
        f"drop-out depends on {test.by} ({tested}): in thirds from low to high, {', '.join(ratios[:-1])} and "
        f"{ratios[-1]} times as many as expected"
    )


def dropout_test(y: Outcomes, models: Mapping[str, Any], times: NDArray[np.float64]) -> DropoutTest | None:
    r"""Test drop-out against predicted risk and against :math:`C^*`, by thirds of each.

    Weights for drop-outs assume that the time of dropping out is independent of :math:`(T^*, X, C^*)` given the strata,
    which by default are of predicted risk (`Administrative`). Individuals are taken as independent. Three groups, and
    not a trend, so that
    drop-out of the least and of the most at risk shows as well. Frequency weights are repeated rows; other sample
    weights have no part in it, as whether the individuals of this sample drop out by risk does not depend on them.

    Parameters
    ----------
    y : Outcomes
        With censoring times.
    models : mapping of str to SurvivalCurves
        Whose predicted risks are pooled: each model ranks the individuals by its mean rank over the times, and the
        thirds are of the mean over models. Those that come in batches are left out.
    times : ndarray
        The evaluation times.

    Returns
    -------
    DropoutTest or None
        None without drop-outs, or if they are unknown. Of more than 20 000 individuals, so many are looked at.

    Examples
    --------
    >>> import numpy as np
    >>> import survscore as ss
    >>> from survscore.analysis.assumptions import dropout_test
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=2000)
    >>> event_time, end = rng.exponential(10 * np.exp(-0.8 * x)), rng.uniform(2, 10, 2000)
    >>> left = rng.exponential(30 * np.exp(-0.8 * x))  # those at high risk leave early
    >>> time = np.minimum(event_time, np.minimum(end, left))
    >>> y = ss.Outcomes(time, event_time == time, end)
    >>> times = np.array([2.0, 4.0, 6.0])
    >>> curves = ss.SurvivalCurves(np.exp(-0.1 * np.exp(0.8 * x)[:, None] * times), times)
    >>> for sentence in dropout_test(y, {"truth": curves}, times).sentences():
    ...     print(sentence.replace(": ", ":\n"))
    drop-out depends on predicted risk (log-rank p < 0.001):
    in thirds from low to high, 0.43, 0.88 and 2.27 times as many as expected
    no sign that drop-out depends on C* (log-rank p = 0.170)
    """
    if y.censoring_time is None or not y.n_dropped_out or times.size == 0:
        return None
    y = y.numpy()
    repeats = None if y.weights is None or y.weight_kind != "frequency" else np.cumsum(y.weights)
    n = len(y) if repeats is None else int(repeats[-1])
    rows = np.unique(np.linspace(0, n - 1, min(n, MOST_ROWS)).round().astype(np.intp))
    if repeats is not None:
        rows = np.searchsorted(repeats, rows, side="right")
    y = y[rows]
    leaves, end = y.dropped_out, np.asarray(y.censoring_time)
    in_memory = [curves for curves in models.values() if isinstance(curves, SurvivalCurves)]
    tests = []
    if in_memory:
        several = [curves if rows.size == n == len(curves) else curves[rows] for curves in in_memory]
        risk = 1.0 - np.mean([mean_ranks(curves, times[curves.reaches(times)]) for curves in several], axis=0)
        tests.append(log_rank(y.time, leaves, quantile_codes(risk, THIRDS), "predicted risk"))
    tests.append(log_rank(y.time, leaves, quantile_codes(mid_ranks(end), THIRDS), "C*"))
    return DropoutTest(tuple(tests), rows.size, int(leaves.sum()))


# Delayed entry

#: So many events must be expected before the first one: by chance, there are none with probability exp(-8) = 0.0003.
FEWEST_EXPECTED = 8.0
#: Which share of the expected events is early, as nearly as predicted times allow, and how far the ratio of observed
#: to expected must fall short there.
EARLY, FURTHEST = 0.25, 0.1
LOWEST_RATIO = 0.85
LOWEST_Z = -3.0
ROWS_LOOKED_AT, MOST_TIMES = 5_000, 100  # that are looked at: a few milliseconds for each model, however large the data
LATTICE = 1.5  # times the usual step between times of events: a first one so early is as early as rounding lets it be
SMALLEST_SURVIVAL = 1e-6  # whose logarithm counts


def warn_if_entry_is_late(y: Outcomes, models: Mapping[str, Any]) -> None:
    r"""Warn if all models expect events early that nobody had, as where entry is delayed and was not given.

    With :math:`H_i = -\log \pi_i`, a model expects :math:`E(t) = \sum_i H_i(\min(T_i, t))` events up to t, here
    multiplied by the ratio of all observed to all expected events: it is the shape that counts. Either 8 events are
    expected before the first one; or, among the first quarter of the expected events, observed/expected is below 0.85
    of what it is later, with z < -3.
    """
    in_memory = [curves for curves in models.values() if isinstance(curves, SurvivalCurves)]
    if y.competing or y.clock or not in_memory or len(in_memory) < len(models):
        return
    rows = slice(None, None, -(-len(y) // ROWS_LOOKED_AT))
    some = y[rows].numpy()
    first = ""
    for curves in in_memory:
        sign = _sign(some, curves[rows].numpy())
        if not sign:  # most data: one model is enough
            return
        first = first or sign
    warn(
        f"entries may be delayed, or predicted risks come too early: {first}. Where individuals came under "
        "observation after the start of their clock, and those with an earlier event are not in the data, give "
        "Outcomes(entry=), or scores are biased",
        DelayedEntryWarning,
    )


def _sign(y: Outcomes, curves: SurvivalCurves) -> str:
    """Return what is missing early, in words; nothing where the numbers of events have the predicted shape."""
    grid = curves.times[curves.times > 0]
    times = np.sort(y.time[y.event & (y.time <= grid[-1])]) if grid.size else grid
    if times.size == 0:
        return ""
    # Between few predicted times nothing is known of the shape. Else it is looked at when events happened: where times
    # were rounded up, there are none in between.
    distinct = np.unique(times)
    spread = np.unique(np.linspace(0, distinct.size - 1, MOST_TIMES).round().astype(np.intp))
    looked_at = grid if grid.size <= FEW_TIMES else distinct[spread]
    expected, n_events = _expected(y, curves, looked_at), times.size
    if not expected[-1] > 0:
        return ""
    scaled = expected * min(1.0, n_events / expected[-1])
    first = looked_at <= times[0] if looked_at is not grid else looked_at < times[0]
    step = np.median(np.diff(distinct)) if distinct.size > 1 else np.inf
    if first.any() and scaled[first][-1] >= FEWEST_EXPECTED and times[0] > LATTICE * step:
        return f"{scaled[first][-1]:.0f} events are expected before {times[0]:g}, and there are none"
    share = expected / expected[-1]
    place = int(np.argmin(np.abs(share - EARLY)))
    early, fraction = int(np.searchsorted(times, looked_at[place], side="right")), float(share[place])
    if abs(fraction - EARLY) > FURTHEST:  # predicted times are too few to tell
        return ""
    usual = n_events * fraction
    ratio = (early / fraction) / ((n_events - early) / (1 - fraction)) if early < n_events else np.inf
    z = (early - usual) / np.sqrt(usual * (1 - fraction))
    if ratio >= LOWEST_RATIO or z >= LOWEST_Z:
        return ""
    return f"{usual:.0f} of {n_events} events are expected by {looked_at[place]:g}, and there are {early}"


def _expected(y: Outcomes, curves: SurvivalCurves, grid: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how many events are expected up to each time, of those who are still followed."""
    at_start = _hazard(curves.at([0.0]))  # what is predicted for time 0 itself is no shape
    at_end = _hazard(curves.at_own(np.minimum(y.time, grid[-1]))) - at_start[:, 0]
    order = np.argsort(y.time)
    left = np.concatenate([[0.0], np.cumsum(at_end[order])])[np.searchsorted(y.time[order], grid, side="left")]
    staying = y.time[:, None] >= grid
    return np.asarray(left + ((_hazard(curves.at(grid)) - at_start) * staying).sum(axis=0))


def _hazard(survival: Any) -> NDArray[np.float64]:
    """Return the cumulative hazard."""
    return np.asarray(-np.log(np.maximum(np.asarray(survival, dtype=np.float64), SMALLEST_SURVIVAL)))
