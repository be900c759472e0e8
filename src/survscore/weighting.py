r"""Weightings: whom a score counts at time t, and how much.

Whatever the weighting, an individual's weight is one function of time while it is event-free, and one number after its
event. So it is stored as two index ranges into the evaluation times and never as a matrix.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from survscore import _loops
from survscore._validation import FloatArray, InputError, check_choice, plural
from survscore.censoring import KaplanMeierCensoring, KnownCensoring, as_censoring
from survscore.curves import SurvivalCurves
from survscore.outcomes import Outcomes


@dataclass(frozen=True, eq=False)
class RowWeights:
    """The weights of n individuals at m times, as ranges.

    Individual i is event-free and counted at the times before ``free_stop[i]``, with weight ``free_weight[j]``; it has
    had the event and is counted from there to ``event_stop[i]``, with weight ``event_weight[i]``; otherwise its
    weight is 0. Where G depends on the individual, `free_weight` is None and the weight is 1/G_i(t) from `censoring`,
    at most `max_weight`.
    """

    free_stop: NDArray[np.int32]
    event_stop: NDArray[np.int32]
    event_weight: NDArray[np.float64]
    free_weight: NDArray[np.float64] | None
    censoring: SurvivalCurves | None = None
    max_weight: float = np.inf
    #: Whether G was estimated from these very individuals, so that each of them moves the others' weights.
    estimated: bool = False
    #: Whether it is fixed who is counted when, rather than an outcome of chance.
    fixed: bool = False
    #: Whether standard errors take Nelson-Aalen's influence in place of Kaplan-Meier's own.
    martingale: bool = False

    def rows(self, rows: slice) -> RowWeights:
        """Return the ranges of some individuals; `censoring` stays whole, and is read elsewhere."""
        return replace(
            self,
            free_stop=self.free_stop[rows],
            event_stop=self.event_stop[rows],
            event_weight=self.event_weight[rows],
        )

    def columns(self, first: int, last: int) -> RowWeights:
        """Return the weights at some of the times."""
        return replace(
            self,
            free_stop=np.clip(self.free_stop - first, 0, last - first),
            event_stop=np.clip(self.event_stop - first, 0, last - first),
            free_weight=None if self.free_weight is None else self.free_weight[first:last],
        )

    def cells(self, n_times: int, survival: FloatArray | None = None) -> NDArray[np.float64]:
        """Return the weights as a matrix (n, m); `survival` holds G_i(t) where it is individual."""
        free, had_event = self.cells_by_status(n_times, survival)
        return free + had_event

    def cells_by_status(
        self, n_times: int, survival: FloatArray | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the weights as two matrices, while event-free and after the event; one of them is zero everywhere."""
        column = np.arange(n_times)
        free = column < self.free_stop[:, None]
        had_event = (column >= self.free_stop[:, None]) & (column < self.event_stop[:, None])
        if self.free_weight is None:
            if survival is None:
                raise TypeError("individual weights need the censoring survival")
            weight_while_free = inverse(survival, self.max_weight)
        else:
            weight_while_free = np.broadcast_to(self.free_weight, free.shape)
        if np.isfinite(self.event_weight).all() and np.isfinite(weight_while_free).all():
            return free * weight_while_free, had_event * self.event_weight[:, None]
        return np.where(free, weight_while_free, 0.0), np.where(had_event, self.event_weight[:, None], 0.0)


class TimeIndex:
    """Where the individuals' own times fall among the evaluation times; shared by all weightings."""

    def __init__(self, outcomes: Outcomes, times: NDArray[np.float64]) -> None:
        self.outcomes = outcomes
        self.times = times
        self._prepared: dict[
            int, tuple[Weighting, RowWeights]
        ] = {}  # the weighting is kept, so that its id stays its own

    def weights_of(self, weighting: Weighting) -> RowWeights:
        """Return a weighting's weights, prepared once however many models are scored."""
        if id(weighting) not in self._prepared:
            self._prepared[id(weighting)] = (weighting, weighting.prepare(self))
        return self._prepared[id(weighting)][1]

    @cached_property
    def before_time(self) -> NDArray[np.int32]:
        """How many evaluation times have t < T: those at which T > t."""
        return _loops.count_below(self.times, self.outcomes.time, inclusive=False)

    @cached_property
    def until_censoring_time(self) -> NDArray[np.int32]:
        """How many evaluation times have t <= C*."""
        if self.outcomes.censoring_time is None:
            raise TypeError("until_censoring_time needs censoring_time")
        return _loops.count_below(self.times, self.outcomes.censoring_time, inclusive=True)

    @cached_property
    def end_if_event(self) -> NDArray[np.int32]:
        """The end of the evaluation times for individuals with event, 0 for others."""
        return select(self.outcomes.event, self.times.size, 0)


class Weighting(ABC):
    """Whom a score counts, and how much.

    To add one, subclass, give `name` and `prepare`, and pass an instance as `weighting`; to make it known by name, put
    the class into `WEIGHTINGS`.
    """

    name: ClassVar[str]
    #: What the weighted sum is divided by: the sum of the weights, or n.
    normalize: str = "weights"

    @property
    def explanation(self) -> str:
        """What it does, for readers of a report who have not met it."""
        return "A weighting of your own."

    @abstractmethod
    def prepare(self, index: TimeIndex) -> RowWeights:
        """Return the weights, or refuse data that this weighting can't do."""

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Uncensored(Weighting):
    r"""Everybody counts at every time, with weight one, :math:`w_i(t) = 1` (eq:full_bs).

    Refuses data in which somebody's status is unknown at a requested time. Without event at `time`, an individual
    is known to be event-free up to and including that time.

    Examples
    --------
    >>> import survscore as ss
    >>> y = ss.Outcomes(time=[1, 3, 4], event=[1, 1, 1])
    >>> curves = ss.SurvivalCurves([[0.5], [0.9], [0.8]], times=[2])
    >>> ss.brier_score(y, curves, weighting=ss.Uncensored(), times=[2]).scores
    array([0.1])
    """

    name: ClassVar[str] = "uncensored"

    @property
    def explanation(self) -> str:  # noqa: D102
        return "Everybody counts at every time."

    def prepare(self, index: TimeIndex) -> RowWeights:  # noqa: D102
        outcomes, last = index.outcomes, index.times[-1]
        unknown = ~outcomes.event & (outcomes.time < last)
        if unknown.any():
            first = int(np.argmax(unknown))
            raise InputError(
                f"'uncensored' weighting needs everybody's status up to the last time, {last:g}: "
                f"{plural(int(unknown.sum()), 'individual')} of {len(outcomes)} were censored before, the first at "
                f"position {first} (time {outcomes.time[first]:g}). {choices_that_fit(outcomes)}"
            )
        ones = np.ones(index.times.size)
        free_stop = select(outcomes.event, index.before_time, index.times.size)
        return RowWeights(free_stop, index.end_if_event, np.broadcast_to(1.0, len(outcomes)), ones, fixed=True)


@dataclass(frozen=True)
class Administrative(Weighting):
    r"""Those with :math:`C^*_i \ge t` count, with weight one, :math:`w_i(t) = 1\{C^*_i \ge t\}` (eq:bs_admin).

    The status at t of all of these is known. An individual censored at exactly t is event-free then.
    Needs `censoring_time`, and refuses drop-outs, whose status is unknown between dropping out and :math:`C^*`.

    Examples
    --------
    >>> import survscore as ss
    >>> y = ss.Outcomes(time=[1, 3, 4], event=[1, 0, 1], censoring_time=[4, 3, 6])
    >>> curves = ss.SurvivalCurves([[0.5, 0.2], [0.9, 0.7], [0.8, 0.6]], times=[2, 4])
    >>> ss.brier_score(y, curves, weighting=ss.Administrative(), times=[2, 4]).n_effective
    array([3., 2.])
    """

    name: ClassVar[str] = "administrative"

    @property
    def explanation(self) -> str:  # noqa: D102
        return (
            "At each time it counts those whose data could have reached so far (C* ≥ t). Their status is known for "
            "certain, so it is not fooled by predictions that know C*."
        )

    def prepare(self, index: TimeIndex) -> RowWeights:  # noqa: D102
        outcomes = index.outcomes
        check_administrative(outcomes, "'administrative' weighting", "IPCW() needs no censoring times")
        counted = index.until_censoring_time
        return RowWeights(
            select(outcomes.event, index.before_time, counted),
            select(outcomes.event, counted, 0),
            np.broadcast_to(1.0, len(outcomes)),
            np.ones(index.times.size),
            fixed=True,
        )


@dataclass(frozen=True)
class IPCW(Weighting):
    r"""Inverse probability of censoring weights (eq:bs_ipcw, eq:bs_ipcw_n).

    .. math:: w_i(t) = \frac{1\{T_i \le t, D_i = 1\}}{G_i(T_i-)} + \frac{1\{T_i > t\}}{G_i(t)}

    Parameters
    ----------
    censoring : optional
        Where G comes from. ``"kaplan-meier"`` (default): Kaplan-Meier of the scored outcomes. `Outcomes`:
        Kaplan-Meier of these, for example the training data. `SurvivalCurves`: the curves of any censoring
        model, one per scored individual. ``"known"``: the step function :math:`1\{C^*_i > t\}`. A function of
        time, or any `CensoringDistribution`.
    max_weight : float, optional
        Larger weights are set to this. 1 gives the unweighted score of those not censored (eq:ipcw_admin_n).
    normalize : {"weights", "n"}, default "weights"
        Divide by the sum of the weights (eq:bs_ipcw) or by n (eq:bs_ipcw_n). The two agree
        for Kaplan-Meier weights of the scored outcomes without a cap.
    variance : {"exact", "martingale"}, default "exact"
        How standard errors account for the estimation of G by Kaplan-Meier on the scored outcomes: by the derivative of
        that very estimate, or by the influence of the Nelson-Aalen estimate with tied events left in the risk
        set, as R's riskRegression does. They differ by a fraction of a percent without ties.

    Notes
    -----
    Under administrative censoring this score is biased as soon as the covariates tell :math:`C^*`: it prefers
    predictions that fall to zero after :math:`C^*`.

    Examples
    --------
    >>> import survscore as ss
    >>> y = ss.Outcomes(time=[1, 2, 3, 4], event=[1, 0, 1, 1])
    >>> curves = ss.SurvivalCurves([[0.2], [0.7], [0.5], [0.9]], times=[2.5])
    >>> for weighting in (ss.IPCW(), ss.IPCW(max_weight=1), ss.IPCW(ss.Outcomes([1, 2, 5], [0, 0, 1]))):
    ...     score = ss.brier_score(y, curves, weighting=weighting, times=[2.5])
    ...     print(score.weighting, score.scores.round(4))
    ipcw (Kaplan-Meier of the scored outcomes) [0.1075]
    ipcw (Kaplan-Meier of the scored outcomes, max_weight=1) [0.1]
    ipcw (Kaplan-Meier of 3 given outcomes) [0.1171]
    """

    censoring: Any = "kaplan-meier"
    max_weight: float | None = None
    normalize: str = "weights"
    variance: str = "exact"

    name: ClassVar[str] = "ipcw"

    def __post_init__(self) -> None:
        check_choice("normalize", self.normalize, ("weights", "n"))
        check_choice("variance", self.variance, ("exact", "martingale"))
        cap = self.max_weight
        if cap is not None and not (isinstance(cap, (int, float, np.number)) and cap >= 1):
            raise InputError(f"max_weight must be a number, at least 1 (no weight is smaller), not {cap!r}")
        if not self.estimated:  # Kaplan-Meier waits for the outcomes to be scored
            object.__setattr__(self, "censoring", as_censoring(self.censoring))
            if self.variance != "exact":
                raise InputError("variance matters only where G is the Kaplan-Meier estimate of the scored outcomes")

    @property
    def estimated(self) -> bool:
        """Whether G is estimated from the scored outcomes themselves."""
        return isinstance(self.censoring, str) and self.censoring == "kaplan-meier"

    def prepare(self, index: TimeIndex) -> RowWeights:  # noqa: D102
        outcomes, cap = index.outcomes, np.inf if self.max_weight is None else float(self.max_weight)
        censoring = KaplanMeierCensoring(outcomes) if self.estimated else self.censoring
        if isinstance(censoring, KnownCensoring):
            check_administrative(outcomes, "'known' censoring", "IPCW(max_weight=1) gives the same weights")
        before = censoring.before(outcomes)
        # Kaplan-Meier has just made this array; any other may be the user's own
        event_weight = inverse(before, cap, out=before if isinstance(censoring, KaplanMeierCensoring) else None)
        free_weight = None if censoring.curves is not None else inverse(censoring.at(index.times), cap)
        return RowWeights(
            free_stop=index.before_time,
            event_stop=index.end_if_event,
            event_weight=event_weight,
            free_weight=free_weight,
            censoring=censoring.curves,
            max_weight=cap,
            estimated=self.estimated,
            martingale=self.variance == "martingale",
        )

    @property
    def explanation(self) -> str:  # noqa: D102
        if isinstance(self.censoring, KnownCensoring):
            return (
                "Leaves the censored out. Under administrative censoring it rewards predictions that fall to zero "
                "after C*."
            )
        return (
            "Counts those whose status is known, weighted by the inverse of the probability of not being censored. If "
            "predictions can tell the censoring times, it is biased towards those that fall after C*."
        )

    def __str__(self) -> str:
        settings = ["Kaplan-Meier of the scored outcomes" if self.estimated else str(self.censoring)]
        if self.max_weight is not None:
            settings.append(f"max_weight={self.max_weight:.15g}")
        if self.normalize == "n":
            settings.append("divided by n")
        if self.variance != "exact":
            settings.append(f"{self.variance} variance")
        return f"ipcw ({', '.join(settings)})"


WEIGHTINGS: dict[str, type[Weighting]] = {weighting.name: weighting for weighting in (Uncensored, Administrative, IPCW)}


def as_weighting(given: str | Weighting | None, outcomes: Outcomes) -> Weighting:
    """Return a weighting by name, or as it is. There is a default only where the choice can't matter."""
    if isinstance(given, Weighting):
        return given
    if given is None:
        if outcomes.event.all():
            return Uncensored()
        raise InputError(f"weighting must be given, since there are censored individuals. {choices_that_fit(outcomes)}")
    check_choice("weighting", given, tuple(WEIGHTINGS))
    return WEIGHTINGS[given]()


def choices_that_fit(outcomes: Outcomes) -> str:
    """Say which weightings these data allow."""
    if outcomes.censoring_time is None:
        return (
            "Without censoring_time the choice is IPCW(); if the data end on a known date, give everybody's "
            "censoring_time (Outcomes.from_dates derives it) and use 'administrative'"
        )
    lost = int(outcomes.dropped_out.sum())
    if lost:
        return (
            f"'administrative' can't be used, since {plural(lost, 'individual')} dropped out; the choice is IPCW(), "
            "biased if the predictions can tell the censoring times: at a time t, IPCW() of those with "
            "censoring_time > t is not"
        )
    return (
        "All censoring times are known, so 'administrative' fits these data; IPCW() is possible, "
        "but biased if the predictions can tell the censoring times"
    )


def select(
    condition: NDArray[np.bool_], chosen: NDArray[np.int32] | int, otherwise: NDArray[np.int32] | int
) -> NDArray[np.int32]:
    """Return `chosen` where the condition holds: `numpy.where` by arithmetic, much faster on random conditions."""
    result = np.multiply(condition, chosen - np.int32(otherwise), dtype=np.int32)
    result += np.int32(otherwise)
    return result


def inverse(survival: FloatArray, max_weight: float, *, out: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """Return 1/G, at most `max_weight`; `out` saves memory."""
    with np.errstate(divide="ignore"):  # an infinite weight is reported as an undefined score
        weights = np.divide(1.0, survival, dtype=np.float64, out=out)
    return np.minimum(weights, max_weight, out=weights)


def check_administrative(outcomes: Outcomes, subject: str, alternative: str) -> NDArray[np.float64]:
    """Return the censoring times; raise unless all are known and everybody was followed up to theirs."""
    if outcomes.censoring_time is None:
        raise InputError(
            f"{subject} needs outcomes with censoring_time (Outcomes.from_dates derives it from the cut-off date); "
            f"{alternative}"
        )
    lost = outcomes.dropped_out
    if lost.any():
        first = int(np.argmax(lost))
        gap = float((outcomes.censoring_time - outcomes.time)[lost].max())
        hint = ""
        if gap <= 1e-9 * float(outcomes.time.max()):
            hint = f"; the gaps are at most {gap:.1g}: if that is rounding, set time to censoring_time there"
        raise InputError(
            f"{subject} needs everybody without event to be followed up to their censoring_time: "
            f"{plural(int(lost.sum()), 'individual')} of {len(outcomes)} dropped out before, the first at position "
            f"{first} (time {outcomes.time[first]:g}, censoring_time {outcomes.censoring_time[first]:g}){hint}; "
            "IPCW() weights for drop-out; where the predictions can tell the censoring times, use it at each time t on "
            "those with censoring_time > t"
        )
    return outcomes.censoring_time
