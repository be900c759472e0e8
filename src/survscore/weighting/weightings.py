r"""Weightings: whom a score counts at time t, and how much."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from survscore._utils import arrays as _arrays
from survscore._utils import loops as _loops
from survscore._validation import InputError, check_choice, check_length, plural
from survscore.censoring.distributions import (
    CensoringCurves,
    CensoringFunction,
    KaplanMeierCensoring,
    KnownCensoring,
    as_censoring,
)
from survscore.censoring.nuisance import Elsewhere, Here, Nuisance, here
from survscore.censoring.product_limit import ProductLimit
from survscore.curves import SurvivalCurves
from survscore.outcomes import Outcomes
from survscore.weighting.stretches import Stretches, TimeIndex, inverse, select

Normalize = Literal["weights", "n"]
Variance = Literal["exact", "martingale"]
NORMALIZE = ("weights", "n")
VARIANCE = ("exact", "martingale")
ROUNDING = 1e-9  # a drop-out so close to C*, relative to the longest time, is none


class Weighting(ABC):
    """Whom a score counts, and how much.

    To add one, subclass, give `name` and `prepare`, and pass an instance as `weighting`; to make it known by name, put
    the class into `WEIGHTINGS`.
    """

    name: ClassVar[str]
    #: What the weighted sum is divided by: the sum of the weights, or the number of those for whom the score speaks.
    normalize: Normalize = "weights"
    #: What the inverse of its weights is the distribution of.
    weights_for: ClassVar[str] = "censoring"

    @property
    def explanation(self) -> str:
        """What it does, for readers of a report who have not met it."""
        return "A weighting of your own."

    @abstractmethod
    def prepare(self, index: TimeIndex) -> Stretches:
        """Return the weights, or refuse data that this weighting can't do."""

    def unweighted(self, index: TimeIndex) -> Stretches:
        """Return the two stretches alone, everybody with weight one, for those who know the weights only later.

        What `prepare` returns where nothing is estimated.
        """
        return self.prepare(index)

    @property
    def estimated(self) -> bool:
        """Whether its weights are estimated from the scored outcomes themselves, where somebody leaves."""
        return False

    def leaves(self, outcomes: Outcomes) -> NDArray[np.bool_]:
        """Return who leaves in the way that its weights are for."""
        return np.zeros(len(outcomes), dtype=np.bool_)

    def seen_until(self, index: TimeIndex) -> NDArray[np.float64] | None:
        """Return up to when each individual would have been seen, for metrics of all that happened up to a time.

        Minus infinity for those for whom the score does not speak. None where weights are not all of one product-limit
        curve, or were changed afterwards.
        """
        return None

    def label(self, outcomes: Outcomes) -> str:
        """Return what it is called in the result for these outcomes."""
        return self.named(somebody_left=bool(outcomes.n_dropped_out))

    def named(self, *, somebody_left: bool) -> str:
        """Return what it is called in a result of data in which somebody left, or nobody."""
        return str(self)

    def of_rows(self, rows: NDArray[np.intp]) -> Weighting:
        """Return the same for some of the individuals: what it holds for each of them is picked."""
        return self

    def placed(self, device: Any) -> Weighting:
        """Return the same with its curves where the predictions are: a torch device, or None for NumPy arrays."""
        return self

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

    def prepare(self, index: TimeIndex) -> Stretches:  # noqa: D102
        outcomes, last = index.outcomes, index.times[-1]
        unknown = ~outcomes.event & (outcomes.time < last)
        if unknown.any():
            first = _arrays.first_true(unknown)
            raise InputError(
                f"'uncensored' weighting needs everybody's status up to the last time, {last:g}: "
                f"{plural(int(unknown.sum()), 'individual')} of {len(outcomes)} were censored before, the first at "
                f"position {first} (time {outcomes.time[first]:g}). {weightings_that_fit(outcomes).sentence}"
            )
        return Stretches(
            first_stop=index.before_time,
            last_stop=index.to_the_end,
            label=index.label,
            first_weight=np.ones(index.times.size),
            last_weight=_arrays.repeated(1.0, len(outcomes), outcomes.time),
            population_stop=index.to_the_end,
        )

    def seen_until(self, index: TimeIndex) -> NDArray[np.float64] | None:  # noqa: D102
        return np.full(len(index.outcomes), np.inf)


@dataclass(frozen=True)
class Administrative(Weighting):
    r"""Those with :math:`C^*_i \ge t` count: their status at t is known, unless they dropped out (eq:bs_admin).

    Where nobody dropped out, :math:`w_i(t) = 1\{C^*_i \ge t\}`. Otherwise those who remain stand for those who were
    lost: with :math:`G_d` the survival function of dropping out,

    .. math:: w_i(t) = 1\{C^*_i \ge t\} \left[\frac{1\{T_i \le t, D_i = 1\}}{G_d(T_i-)}
        + \frac{1\{T_i > t\}}{G_d(t)} + \frac{1\{T_i = t = C^*_i, D_i = 0\}}{G_d(t-)}\right].

    An individual censored at exactly t = :math:`C^*_i` is event-free then. Needs `censoring_time`.

    Parameters
    ----------
    dropout : optional
        Where :math:`G_d` comes from. ``"kaplan-meier"`` (default): the product-limit estimate of the scored outcomes,
        in which events and :math:`C^*` end the risk of dropping out. `Outcomes`: the same of these, for example the
        training data. `SurvivalCurves`: the curves of any model of dropping out, one per scored individual. A function
        of time. ``"refuse"``: refuse data with drop-outs. Without drop-outs all are the same.
    population : optional
        For whom the score at t speaks. None (default): those with :math:`C^*_i \ge t`, other people at other times.
        ``"fixed"``: those with :math:`C^*_i` at or after the last evaluation time, or after the time given here as a
        number: the same people at all times. `SurvivalCurves` of :math:`P(C^*_i \ge t \mid X_i)`: everybody, those who
        could be followed to t standing for those who could not.
    max_weight : float, optional
        Larger weights for dropping out are set to this.
    normalize : {"weights", "n"}, default "weights"
        Divide by the sum of the weights, or by the number with :math:`C^*_i \ge t`.
    variance : {"exact", "martingale"}, default "exact"
        As for `IPCW`, where :math:`G_d` is estimated from the scored outcomes.

    Notes
    -----
    Proper if :math:`C^*` is independent of the event time given the covariates, and dropping out is independent of
    event time, covariates and :math:`C^*` (or given covariates, with curves of :math:`G_d` that are right given them).
    Results with drop-outs carry bounds that assume nothing about the lost: see `Bounds`.

    Examples
    --------
    >>> import survscore as ss
    >>> y = ss.Outcomes(time=[1, 3, 4], event=[1, 0, 1], censoring_time=[4, 3, 6])
    >>> curves = ss.SurvivalCurves([[0.5, 0.2], [0.9, 0.7], [0.8, 0.6]], times=[2, 4])
    >>> ss.brier_score(y, curves, weighting=ss.Administrative(), times=[2, 4]).n_effective
    array([3., 2.])

    The second drops out at 3, and the others stand for it:

    >>> lost = ss.Outcomes(time=[1, 3, 4], event=[1, 0, 1], censoring_time=[4, 5, 6])
    >>> score = ss.brier_score(lost, curves, weighting="administrative", times=[2, 4])
    >>> score.weighting, score.n_dropped_out
    ('administrative (drop-out by Kaplan-Meier)', 1)
    >>> score.scores.round(4), score.bounds.lower.round(4), score.bounds.upper.round(4)
    (array([0.1   , 0.2533]), array([0.1   , 0.1633]), array([0.1   , 0.2967]))
    """

    dropout: Any = "kaplan-meier"
    population: Any = None
    max_weight: float | None = None
    normalize: Normalize = "weights"
    variance: Variance = "exact"

    name: ClassVar[str] = "administrative"
    weights_for: ClassVar[str] = "drop-out"

    def __post_init__(self) -> None:
        check_choice("normalize", self.normalize, NORMALIZE)
        check_choice("variance", self.variance, VARIANCE)
        _check_cap(self.max_weight)
        match self.dropout:
            case "kaplan-meier" | "refuse" | SurvivalCurves() | CensoringFunction():
                pass
            case Outcomes():
                if self.dropout.censoring_time is None:
                    raise InputError("dropout: the given outcomes need censoring_time, to tell who dropped out")
            case _ if callable(self.dropout):
                object.__setattr__(self, "dropout", CensoringFunction(self.dropout))
            case _:
                raise InputError(
                    "dropout must be 'kaplan-meier', 'refuse', Outcomes to estimate it from, SurvivalCurves of a model "
                    f"of dropping out, or a function of time, not {self.dropout!r}"
                )
        if self.variance != "exact" and self.dropout != "kaplan-meier":
            raise InputError("variance matters only where drop-out is estimated from the scored outcomes")
        if isinstance(self.dropout, SurvivalCurves) and _rises(self.dropout):
            raise InputError("dropout: the curves rise with time; they must be of the probability of not having left")
        known = self.population is None or self.population == "fixed" if isinstance(self.population, str) else True
        number = isinstance(self.population, (int, float, np.number)) and not isinstance(self.population, bool)
        if not known or not (self.population is None or isinstance(self.population, (str, SurvivalCurves)) or number):
            raise InputError(
                "population must be None, 'fixed', a time, or SurvivalCurves of P(C* >= t | X), not "
                f"{self.population!r}"
            )
        if number and not (np.isfinite(self.population) and self.population >= 0):
            raise InputError(f"population must be a time, zero or later, not {self.population!r}")
        if isinstance(self.population, SurvivalCurves) and self.normalize == "n":
            raise InputError("normalize='n' does not fit population curves: the weights stand for everybody already")

    def prepare(self, index: TimeIndex) -> Stretches:  # noqa: D102
        stretches = self.unweighted(index)
        if stretches.lost_from is not None:
            stretches = self._weights(index).give(stretches)
        if not isinstance(self.population, SurvivalCurves):
            return stretches
        check_length("population curves", len(self.population), "outcomes", len(index.outcomes))
        return replace(stretches, population=self.population)

    def unweighted(self, index: TimeIndex) -> Stretches:  # noqa: D102
        outcomes = index.outcomes
        end = check_censoring_time(outcomes, "'administrative' weighting", "IPCW() needs no censoring times")
        dropped_out = outcomes.dropped_out
        anybody = bool(outcomes.n_dropped_out)
        if anybody and self.dropout == "refuse":
            refuse_drop_outs(
                outcomes, "'administrative' weighting with dropout='refuse'", "dropout='kaplan-meier' weights for them"
            )
        if anybody:
            _check_rounding(outcomes)
        counted, first_stop = index.until_censoring_time, index.before_time  # which is not later, since T <= C*
        if (start := self._population_start(index)) is not None:
            counted = _arrays.where(end >= start, counted, np.int32(0))
            first_stop = _arrays.minimum(first_stop, counted)
        return Stretches(
            first_stop=first_stop,
            last_stop=select(~dropped_out, counted, first_stop) if anybody else counted,
            label=index.label,
            first_weight=np.ones(index.times.size),
            last_weight=_arrays.repeated(1.0, len(end), end),
            population_stop=counted,
            max_weight=_cap(self.max_weight),
            lost_from=select(dropped_out, _arrays.minimum(index.until_time, counted), counted) if anybody else None,
            blind_from=_blind_from(outcomes.time, dropped_out, index.times)() if anybody else None,
        )

    def _population_start(self, index: TimeIndex) -> float | None:
        """Return up to when those for whom the score speaks could be followed at least; None for all there are."""
        if self.population is None or isinstance(self.population, SurvivalCurves):
            return None
        return float(index.times[-1] if self.population == "fixed" else self.population)

    def seen_until(self, index: TimeIndex) -> NDArray[np.float64] | None:  # noqa: D102
        end = index.outcomes.censoring_time
        weighted = isinstance(self.population, SurvivalCurves) or not isinstance(self.dropout, (str, Outcomes))
        if end is None or weighted or self.max_weight is not None or self.normalize == "n":
            return None
        start = self._population_start(index)
        return end if start is None else np.where(end >= start, end, -np.inf)

    def _weights(self, index: TimeIndex) -> _Weights:
        outcomes, cap = index.outcomes, _cap(self.max_weight)
        if isinstance(self.dropout, SurvivalCurves):
            check_length("dropout curves", len(self.dropout), "outcomes", len(outcomes))
            return _Weights(None, inverse(self.dropout.before(outcomes.time), cap), self.dropout)
        if isinstance(self.dropout, CensoringFunction):
            given = self.dropout
            first = inverse(given.at(index.times), cap)
            return _Weights(lambda: first, inverse(given.before(outcomes), cap))
        source = self.dropout if isinstance(self.dropout, Outcomes) else outcomes
        curve = ProductLimit.of_drop_out(source).beside(outcomes.time)
        if len(curve.times) == 0:
            raise InputError(
                "dropout: nobody dropped out in the given outcomes, so they tell nothing about the "
                f"{int(outcomes.dropped_out.sum())} of {len(outcomes)} who did here"
            )
        nuisance = (
            Elsewhere(curve, outcomes.time)
            if isinstance(self.dropout, Outcomes)
            else here(curve, outcomes, ~outcomes.dropped_out, self.variance)
        )
        return _Weights.of_curve(curve, index, cap, nuisance)

    def of_rows(self, rows: NDArray[np.intp]) -> Weighting:  # noqa: D102
        return self._with_curves(lambda _, curves: curves[rows])

    def placed(self, device: Any) -> Weighting:  # noqa: D102
        return self._with_curves(lambda name, curves: _placed(f"{name} curves", curves, device))

    def _with_curves(self, change: Callable[[str, SurvivalCurves], SurvivalCurves]) -> Weighting:
        own: dict[str, Any] = {
            name: change(name, value)
            for name, value in (("dropout", self.dropout), ("population", self.population))
            if isinstance(value, SurvivalCurves)
        }
        return replace(self, **own) if own else self

    @property
    def explanation(self) -> str:  # noqa: D102
        return (
            "At each time it counts those whose data could have reached so far (C* ≥ t). Their status is known for "
            "certain, or, where some dropped out, those who remain stand for them. It is not fooled by predictions "
            "that know C*."
        )

    @property
    def estimated(self) -> bool:  # noqa: D102
        return isinstance(self.dropout, str) and self.dropout == "kaplan-meier"

    def leaves(self, outcomes: Outcomes) -> NDArray[np.bool_]:  # noqa: D102
        known = outcomes.censoring_time is not None
        return outcomes.dropped_out if known else np.zeros(len(outcomes), dtype=np.bool_)

    def named(self, *, somebody_left: bool) -> str:  # noqa: D102
        settings = []
        if somebody_left or self.dropout not in ("kaplan-meier", "refuse"):
            match self.dropout:
                case Outcomes():
                    settings.append(f"drop-out by Kaplan-Meier of {plural(len(self.dropout), 'given outcome')}")
                case SurvivalCurves():
                    settings.append("drop-out by individual curves")
                case CensoringFunction():
                    settings.append("drop-out by a given function")
                case _:
                    settings.append("drop-out by Kaplan-Meier")
        if isinstance(self.population, SurvivalCurves):
            settings.append("for everybody")
        elif self.population is not None:
            settings.append("fixed population" if self.population == "fixed" else f"C* >= {self.population:g}")
        settings += _settings(self.max_weight, self.normalize, self.variance)
        return f"administrative ({', '.join(settings)})" if settings else "administrative"

    def __str__(self) -> str:
        return self.named(somebody_left=False)


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
    Where G comes from other outcomes, Greenwood's variance of that estimate is part of the standard errors; curves of a
    model and functions are taken as known.

    Where the last individual of all was censored, nobody is left from then on but those with event, and there is no
    score, whatever the cap.

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
    normalize: Normalize = "weights"
    variance: Variance = "exact"

    name: ClassVar[str] = "ipcw"

    def __post_init__(self) -> None:
        check_choice("normalize", self.normalize, NORMALIZE)
        check_choice("variance", self.variance, VARIANCE)
        _check_cap(self.max_weight)
        if not self.estimated:  # Kaplan-Meier waits for the outcomes to be scored
            object.__setattr__(self, "censoring", as_censoring(self.censoring))
            if self.variance != "exact":
                raise InputError("variance matters only where G is the Kaplan-Meier estimate of the scored outcomes")

    @property
    def estimated(self) -> bool:  # noqa: D102
        return isinstance(self.censoring, str) and self.censoring == "kaplan-meier"

    def leaves(self, outcomes: Outcomes) -> NDArray[np.bool_]:  # noqa: D102
        return ~outcomes.event

    def prepare(self, index: TimeIndex) -> Stretches:  # noqa: D102
        blind_from = self._blind_from(index)  # on its way before a device has much to do
        weights = self._weights(index)  # what takes the most memory while it is made
        return weights.give(self._stretches(index, blind_from()))

    def unweighted(self, index: TimeIndex) -> Stretches:  # noqa: D102
        return self._stretches(index, self._blind_from(index)())

    def _blind_from(self, index: TimeIndex) -> Callable[[], int | None]:
        return _blind_from(index.outcomes.time, ~index.outcomes.event, index.times)

    def _stretches(self, index: TimeIndex, blind_from: int | None) -> Stretches:
        outcomes = index.outcomes
        return Stretches(
            first_stop=index.before_time,
            last_stop=select(outcomes.event, index.to_the_end, index.before_time),
            label=index.label,
            first_weight=np.ones(index.times.size),
            last_weight=_arrays.repeated(1.0, len(outcomes), outcomes.time),
            population_stop=index.to_the_end,
            max_weight=_cap(self.max_weight),
            blind_from=blind_from,
        )

    def _weights(self, index: TimeIndex) -> _Weights:
        outcomes, cap = index.outcomes, _cap(self.max_weight)
        if self.estimated:
            curve = ProductLimit.of_censoring(outcomes)
            return _Weights.of_curve(curve, index, cap, here(curve, outcomes, outcomes.event, self.variance))
        censoring = self.censoring
        if isinstance(censoring, KaplanMeierCensoring):
            curve = censoring.curve.beside(outcomes.time)
            return _Weights.of_curve(curve, index, cap, Elsewhere(curve, outcomes.time))
        if isinstance(censoring, KnownCensoring):
            subject, other = "'known' censoring", "IPCW(max_weight=1) gives the same weights"
            check_censoring_time(outcomes, subject, other)
            refuse_drop_outs(outcomes, subject, other)
        last = inverse(censoring.before(outcomes), cap)
        if censoring.curves is not None:
            return _Weights(None, last, censoring.curves)
        first = inverse(censoring.at(index.times), cap)
        return _Weights(lambda: first, last)

    def seen_until(self, index: TimeIndex) -> NDArray[np.float64] | None:  # noqa: D102
        product_limit = self.estimated or isinstance(self.censoring, KaplanMeierCensoring)
        if not product_limit or self.max_weight is not None or self.normalize == "n":
            return None
        return np.full(len(index.outcomes), np.inf)

    def of_rows(self, rows: NDArray[np.intp]) -> Weighting:  # noqa: D102
        if not isinstance(self.censoring, CensoringCurves):
            return self
        return replace(self, censoring=CensoringCurves(self.censoring.curves[rows]))

    def placed(self, device: Any) -> Weighting:  # noqa: D102
        if not isinstance(self.censoring, CensoringCurves):
            return self
        return replace(self, censoring=CensoringCurves(_placed("censoring curves", self.censoring.curves, device)))

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
        source = "Kaplan-Meier of the scored outcomes" if self.estimated else str(self.censoring)
        return f"ipcw ({', '.join([source, *_settings(self.max_weight, self.normalize, self.variance)])})"


WEIGHTINGS: dict[str, type[Weighting]] = {weighting.name: weighting for weighting in (Uncensored, Administrative, IPCW)}


@dataclass(frozen=True)
class WeightingChoices:
    """Which weightings fit some data.

    Attributes
    ----------
    names : tuple of str
        Those that are possible, the one to trust first.
    misleading : bool
        Whether the only possible one can't be trusted if the data end on a known date.
    sentence : str
        The same in words.
    """

    names: tuple[str, ...]
    misleading: bool
    sentence: str


def weightings_that_fit(outcomes: Outcomes) -> WeightingChoices:
    """Return which weightings these data allow, and which to trust."""
    if outcomes.event.all():
        return WeightingChoices((Uncensored.name,), False, "Nobody is censored, so 'uncensored' fits these data")
    if outcomes.censoring_time is None:
        return WeightingChoices(
            (IPCW.name,),
            True,
            "Without censoring_time the choice is IPCW(); if the data end on a known date, give everybody's "
            "censoring_time (Outcomes.from_dates derives it) and use 'administrative'",
        )
    dropped_out = int(outcomes.dropped_out.sum())
    weighted = f" and weights for the {dropped_out} of {len(outcomes)} who dropped out" if dropped_out else ""
    return WeightingChoices(
        (Administrative.name, IPCW.name),
        False,
        f"All censoring times are known, so 'administrative' fits these data{weighted}; IPCW() is possible, "
        "but biased if the predictions can tell the censoring times",
    )


def as_weighting(given: str | Weighting | None, outcomes: Outcomes) -> Weighting:
    """Return a weighting by name, or as it is. There is a default only where the choice can't matter."""
    if isinstance(given, Weighting):
        return given
    if given is None:
        if outcomes.event.all():
            return Uncensored()
        raise InputError(
            f"weighting must be given, since there are censored individuals. {weightings_that_fit(outcomes).sentence}"
        )
    check_choice("weighting", given, tuple(WEIGHTINGS))
    return WEIGHTINGS[given]()


@dataclass(frozen=True, eq=False)
class _Weights:
    """The weights of the first stretch (common to all, or from curves of G) and of the second."""

    first: Callable[[], NDArray[np.float64]] | None  # what waits for them, since a device may be on its way
    last: NDArray[np.float64]
    survival: SurvivalCurves | None = None
    nuisance: Nuisance | None = None

    @classmethod
    def of_curve(cls, curve: ProductLimit, index: TimeIndex, cap: float, nuisance: Nuisance) -> _Weights:
        # who left in the way in question has no second stretch
        wanted = nuisance.stayed if isinstance(nuisance, Here) else None
        at, before = curve.at_and_before(index.times, index.outcomes.time, wanted)
        return cls(lambda: inverse(at(), cap), inverse(before, cap, out=before), None, nuisance)

    def give(self, stretches: Stretches) -> Stretches:
        """Return the stretches with these weights."""
        first = None if self.first is None else self.first()
        return replace(
            stretches, first_weight=first, last_weight=self.last, survival=self.survival, nuisance=self.nuisance
        )


def _placed(name: str, curves: SurvivalCurves, device: Any) -> SurvivalCurves:
    """Return curves as predictions on a device are; they are not moved, but NumPy and torch share memory."""
    if curves.device == device:
        return curves
    if curves.device is None and device.type == "cpu":
        return curves.to(device)
    where = "in the processor's memory" if device is None else f"on {device}"
    raise InputError(f"the {name} must be where the predictions are, {where}: move them with .to(device) or .numpy()")


def _blind_from(
    time: NDArray[np.float64], left: NDArray[np.bool_], times: NDArray[np.float64]
) -> Callable[[], int | None]:
    """Return what waits for the first evaluation time at which nobody is left but those with event.

    Nobody is, since the last of all left; None, if there is no such time.
    """
    last = time.max()
    both = _arrays.on_its_way(_arrays.numbers(last, (left & (time == last)).any()))

    def wait() -> int | None:
        when, blind = both()
        return int(np.searchsorted(times, when, side="left")) if blind else None

    return wait


def _cap(max_weight: float | None) -> float:
    return np.inf if max_weight is None else float(max_weight)


def _check_cap(cap: Any) -> None:
    if cap is not None and not (isinstance(cap, (int, float, np.number)) and cap >= 1):
        raise InputError(f"max_weight must be a number, at least 1 (no weight is smaller), not {cap!r}")


def _settings(max_weight: float | None, normalize: str, variance: str) -> list[str]:
    settings = [] if max_weight is None else [f"max_weight={max_weight:.15g}"]
    if normalize == "n":
        settings.append("divided by n")
    if variance != "exact":
        settings.append(f"{variance} variance")
    return settings


def _rises(curves: SurvivalCurves) -> bool:
    return _loops.has_bad_probabilities(curves.probabilities, 4.0 * _arrays.rounding_unit(curves.probabilities))


def check_censoring_time(outcomes: Outcomes, subject: str, alternative: str) -> NDArray[np.float64]:
    """Return the censoring times; raise unless they are known."""
    if outcomes.censoring_time is None:
        raise InputError(
            f"{subject} needs outcomes with censoring_time (Outcomes.from_dates derives it from the cut-off date, and "
            "a structured array carries it as a third field: to_structured(censoring_time=True)); "
            f"{alternative}"
        )
    return outcomes.censoring_time


def refuse_drop_outs(outcomes: Outcomes, subject: str, alternative: str) -> None:
    """Raise unless everybody was followed up to their censoring time."""
    dropped_out = outcomes.dropped_out
    if outcomes.censoring_time is not None and dropped_out.any():
        _check_rounding(outcomes)
        first = _arrays.first_true(dropped_out)
        raise InputError(
            f"{subject} needs everybody without event to be followed up to their censoring_time: "
            f"{plural(int(dropped_out.sum()), 'individual')} of {len(outcomes)} dropped out before, the first at "
            f"position {first} (time {outcomes.time[first]:g}, censoring_time {outcomes.censoring_time[first]:g}); "
            f"{alternative}"
        )


def _check_rounding(outcomes: Outcomes) -> None:
    """Raise if somebody's time and C* differ by rounding only: such a one did not drop out."""
    if outcomes.censoring_time is None:
        return
    gap = _arrays.where(outcomes.dropped_out, outcomes.censoring_time - outcomes.time, np.inf)
    close = gap <= ROUNDING * float(outcomes.time.max())
    if close.any():
        first = _arrays.first_true(close)
        raise InputError(
            "time and censoring_time must be equal for those followed to the end: "
            f"{plural(int(close.sum()), 'individual')} of {len(outcomes)} would count as dropped out for a gap of at "
            f"most {gap[close].max():.1g}, the first at position {first}; that is rounding: set time to censoring_time "
            "there"
        )
