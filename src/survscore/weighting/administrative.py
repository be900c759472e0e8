"""Those with C* >= t count: the paper's administrative scores, with weights for drop-outs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from survscore._utils import arrays
from survscore._validation import InputError, check_choice, check_length, plural
from survscore.censoring.distributions import CensoringCurves, CensoringFunction
from survscore.curves import SurvivalCurves
from survscore.outcomes import Outcomes
from survscore.weighting.base import (
    NORMALIZE,
    VARIANCE,
    Normalize,
    Variance,
    Weighting,
    cap_of,
    check_cap,
    check_censoring_time,
    check_rounding,
    check_strata,
    fit_by_code,
    last_times,
    placed_curves,
    refuse_drop_outs,
    settings_in_words,
    support_end,
    weighted_by,
    weighted_by_source,
)
from survscore.weighting.interval_weights import IntervalWeights, TimeIndex
from survscore.weighting.ranks import MIN_FOLLOWED, Codes, Neighbours, number_of_strata, some_times
from survscore.weighting.strata import Strata

RANKS = ("own-ranks",)


@dataclass(frozen=True)
class Administrative(Weighting):
    r"""Those with :math:`C^*_i \ge t` count: their status at t is known, unless they dropped out (eq:bs_admin).

    Without drop-outs, :math:`w_i(t) = 1\{C^*_i \ge t\}`. Otherwise those who remain stand for those who were
    lost: with :math:`G_d` the survival function of dropping out,

    .. math:: w_i(t) = 1\{C^*_i \ge t\} \left[\frac{1\{T_i \le t, D_i = 1\}}{G_d(T_i-)}
        + \frac{1\{T_i > t\}}{G_d(t)} + \frac{1\{T_i = t = C^*_i, D_i = 0\}}{G_d(t-)}\right].

    An individual censored at exactly t = :math:`C^*_i` is event-free then. Needs `censoring_time`.

    Parameters
    ----------
    dropout : optional
        Where :math:`G_d` comes from. ``"kaplan-meier"`` (default): product-limit estimates of the scored outcomes, in
        which events and :math:`C^*` end the risk of dropping out. `Outcomes`: the same of these, for example the
        training data. `SurvivalCurves`: the curves of any model of dropping out, one per scored individual. A function
        of time. ``"refuse"``: refuse data with drop-outs. Without drop-outs all are the same.
    population : optional
        To whom the score at t refers. None (default): those with :math:`C^*_i \ge t`, other people at other times.
        ``"fixed"``: those with :math:`C^*_i` at or after the last evaluation time, or after the time given here as a
        number: the same people at all times. `SurvivalCurves` of :math:`P(C^*_i \ge t \mid X_i)`: all individuals;
        those who could be followed to t stand for those who could not.
    max_weight : float, optional
        Larger weights for dropping out are set to this.
    normalize : {"weights", "n"}, default "weights"
        Divide by the sum of the weights, or by the number with :math:`C^*_i \ge t`.
    variance : {"exact", "martingale"}, default "exact"
        As for `IPCW`, where :math:`G_d` is estimated from the scored outcomes.
    dropout_strata : optional
        Within which :math:`G_d` is estimated, each stratum with a curve of its own.

        ``"own-ranks"`` (default): individuals of similar predicted risk, as for `Projected`: ranked by the model's own
        predictions within groups of neighbouring :math:`C^*`, and cut into as many strata as have 5 drop-outs and 5
        individuals followed event-free, at most 10, both counted at the last evaluation time to which 20 were followed
        event-free. A stratum whose last individual dropped out is joined with the next one, so that strata leave no
        time without score. Predictions that are the same for all, as the null model's, have one stratum.

        Labels of shape (n,). None: one curve for all.

        There are no ranks, and one curve is used, where predictions are not at hand all at once (`evaluate`,
        `StreamingScore`, `at_horizon`), for metrics of the whole follow-up (concordance, CRPS, logarithmic score),
        where :math:`G_d` comes from other outcomes, and with `SurvivalCurves` as `population`. The name of the
        weighting in the result and its settings say which it was.
    training_strata : array_like, optional
        The same of the individuals in `dropout`, where these are training outcomes.

    Notes
    -----
    Proper if :math:`C^*` is independent of the event time given the covariates, and the time L of dropping out is
    independent of :math:`(T^*, X, C^*)` given the strata (or given covariates, with curves of :math:`G_d` that are
    right given them). `compare` and `diagnose` test drop-out against predicted risk and :math:`C^*`, and results with
    drop-outs carry bounds that assume nothing about the lost: see `Bounds`.

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
    ('administrative (drop-out by Kaplan-Meier in risk strata)', 1)
    >>> score.scores.round(4), score.bounds.lower.round(4), score.bounds.upper.round(4)
    (array([0.1   , 0.2533]), array([0.1   , 0.1633]), array([0.1   , 0.2967]))
    """

    dropout: Any = "kaplan-meier"
    population: Any = None
    max_weight: float | None = None
    normalize: Normalize = "weights"
    variance: Variance = "exact"
    dropout_strata: Any = "own-ranks"
    training_strata: Any = None

    name: ClassVar[str] = "administrative"
    weights_for: ClassVar[str] = "drop-out"

    def __post_init__(self) -> None:
        check_choice("normalize", self.normalize, NORMALIZE)
        check_choice("variance", self.variance, VARIANCE)
        check_cap(self.max_weight)
        match self.dropout:
            case str("kaplan-meier" | "refuse") | SurvivalCurves() | CensoringFunction():
                pass
            case Outcomes():
                if self.dropout.censoring_time is None:
                    raise InputError(
                        "`dropout=Outcomes`: the given outcomes need censoring_time, to determine who dropped out"
                    )
            case _ if callable(self.dropout):
                object.__setattr__(self, "dropout", CensoringFunction(self.dropout))
            case _:
                raise InputError(
                    "dropout must be 'kaplan-meier', 'refuse', Outcomes to estimate it from, SurvivalCurves of a model "
                    f"of dropping out, or a function of time, not {self.dropout!r}"
                )
        if self.variance != "exact" and self.dropout != "kaplan-meier":
            raise InputError("variance matters only where drop-out is estimated from the scored outcomes")
        if isinstance(self.dropout, SurvivalCurves) and self.dropout.increases():
            raise InputError("dropout: the curves rise with time; they must be of the probability of not having left")
        self._check_strata()
        self._check_population()

    def _check_strata(self) -> None:
        object.__setattr__(self, "training_strata", Strata.of(self.training_strata, "training_strata"))
        strata = self.dropout_strata
        if isinstance(strata, str):
            check_choice("dropout_strata", strata, RANKS)
            by_curves = isinstance(self.population, SurvivalCurves)
            if not self.estimated or self.training_strata is not None or by_curves:
                strata = None  # predictions have no part in these curves
        else:
            strata = Strata.of(strata, "dropout_strata")
        object.__setattr__(self, "dropout_strata", strata)
        check_strata(
            None if self._ranks else strata,
            self.training_strata,
            estimated=self.estimated,
            training=isinstance(self.dropout, Outcomes),
        )

    def _check_population(self) -> None:
        given = self.population
        number = isinstance(given, (int, float, np.number)) and not isinstance(given, bool)
        fixed = isinstance(given, str) and given == "fixed"
        if not (given is None or fixed or number or isinstance(given, SurvivalCurves)):
            raise InputError(
                f"population must be None, 'fixed', a time, or SurvivalCurves of P(C* >= t | X), not {given!r}"
            )
        if number and not 0 <= given < np.inf:
            raise InputError(f"population must be a time, zero or later, not {given!r}")
        if isinstance(given, SurvivalCurves) and self.normalize == "n":
            raise InputError("normalize='n' does not fit population curves: the weights stand for all already")

    @property
    def _ranks(self) -> bool:
        return isinstance(self.dropout_strata, str)

    def without_predictions(self) -> Weighting:  # noqa: D102
        return replace(self, dropout_strata=None) if self._ranks else self

    def reads(self, index: TimeIndex) -> NDArray[np.float64] | None:  # noqa: D102
        ranked = _ranked(index) if self._ranks else None
        return None if ranked is None else ranked[0]

    def prepare_models(  # noqa: D102
        self, index: TimeIndex, curves: Mapping[str, SurvivalCurves], *, null: bool = False
    ) -> list[IntervalWeights]:
        ranked = _ranked(index) if self._ranks else None
        if ranked is None:
            return [self.prepare(index)]
        outcomes, weights, left = index.outcomes, self.unweighted(index), index.outcomes.dropped_out
        neighbours = Neighbours(outcomes.censoring_time, outcomes.time, index.counts)
        times, n_strata = ranked
        own = [neighbours.strata(neighbours.ranks(of_model, times), n_strata) for of_model in curves.values()]
        strata = [*(_joined(index, codes, n) for codes, n in own), *([(None, 1)] if null else [])]
        martingale = self.variance == "martingale"
        models = [fit_by_code(index, left, codes, n, martingale=martingale) for codes, n in strata]
        return [weighted_by(weights, model, index, left, cap_of(self.max_weight)) for model in models]

    def prepare(self, index: TimeIndex) -> IntervalWeights:  # noqa: D102
        weights = self.unweighted(index)
        if weights.dropout_index is not None:
            weights = self._weighted(weights, index)
        if not isinstance(self.population, SurvivalCurves):
            return weights
        check_length("population curves", len(self.population), "outcomes", len(index.outcomes))
        return replace(weights, population=self.population)

    def unweighted(self, index: TimeIndex) -> IntervalWeights:  # noqa: D102
        outcomes = index.outcomes
        end = check_censoring_time(outcomes, "'administrative' weighting", "`IPCW()` needs no censoring times")
        dropped_out = outcomes.dropped_out
        anybody = bool(outcomes.n_dropped_out)
        if anybody and self.dropout == "refuse":
            refuse_drop_outs(
                outcomes,
                "'administrative' weighting with `dropout='refuse'`",
                "`dropout='kaplan-meier'` weights for them",
            )
        if anybody:
            check_rounding(outcomes)
        eligible, event_index = index.until_censoring_time, index.before_time  # which is not later, since T <= C*
        if (start := self._population_start(index)) is not None:
            eligible = arrays.where(end >= start, eligible, np.int32(0))
            event_index = arrays.minimum(event_index, eligible)
        return IntervalWeights(
            event_index=event_index,
            follow_up_index=arrays.where(dropped_out, event_index, eligible) if anybody else eligible,
            label=index.label,
            weight_at_risk=np.ones((1, index.times.size)),
            weight_at_event=arrays.repeated(1.0, len(end), end),
            population_index=eligible,
            max_weight=cap_of(self.max_weight),
            dropout_index=(
                arrays.where(dropped_out, arrays.minimum(index.until_time, eligible), eligible) if anybody else None
            ),
            support_end=support_end(outcomes, dropped_out, index.times) if anybody else None,
        )

    def _population_start(self, index: TimeIndex) -> float | None:
        """Return up to when those to whom the score refers could be followed at least; None for all there are."""
        if self.population is None or isinstance(self.population, SurvivalCurves):
            return None
        return float(index.times[-1] if self.population == "fixed" else self.population)

    def seen_until(self, index: TimeIndex) -> NDArray[np.float64] | None:  # noqa: D102
        end = index.outcomes.censoring_time
        weighted = isinstance(self.population, SurvivalCurves) or not isinstance(self.dropout, (str, Outcomes))
        weighted |= isinstance(self.dropout_strata, Strata)
        if end is None or weighted or self.max_weight is not None or self.normalize == "n":
            return None
        start = self._population_start(index)
        return end if start is None else np.where(end >= start, end, -np.inf)

    def _weighted(self, weights: IntervalWeights, index: TimeIndex) -> IntervalWeights:
        """Return the ranges with the inverse of G_d as weights."""
        n, source, strata = len(index.outcomes), self.dropout, None if self._ranks else self.dropout_strata
        if isinstance(source, SurvivalCurves):
            check_length("dropout curves", len(source), "outcomes", n)
            source = CensoringCurves(source)
        if isinstance(source, Outcomes) and not source.n_dropped_out:
            raise InputError(
                "`dropout=Outcomes`: no individual dropped out in the given outcomes, which have no information "
                f"about the {int(index.outcomes.dropped_out.sum())} of {n} who did here"
            )
        return weighted_by_source(self, weights, None if self.estimated else source, index, strata)

    def of_rows(self, rows: NDArray[np.intp]) -> Weighting:  # noqa: D102
        some = self._with_curves(lambda _, curves: curves[rows])
        if not isinstance(self.dropout_strata, Strata):
            return some
        return replace(some, dropout_strata=self.dropout_strata.rows(rows))

    @property
    def on_own_clock(self) -> dict[str, Any]:  # noqa: D102
        own = {} if isinstance(self.dropout, str) else {"dropout": self.dropout}
        return own | ({"population": self.population} if isinstance(self.population, SurvivalCurves) else {})

    def placed(self, device: Any) -> Weighting:  # noqa: D102
        return self._with_curves(lambda name, curves: placed_curves(f"{name} curves", curves, device))

    def _with_curves(self, change: Callable[[str, SurvivalCurves], SurvivalCurves]) -> Administrative:
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
            "certain, or, where some dropped out, those who remain stand for them. It does not reward predictions that "
            "fall right after C*, as IPCW does, but what models predict for those with C* < t has no part in it: a "
            "model that encodes the entry date may be good for those counted and bad for all others."
        )

    @property
    def estimated(self) -> bool:  # noqa: D102
        return isinstance(self.dropout, str) and self.dropout == "kaplan-meier"

    def settings(self, weights: Sequence[IntervalWeights]) -> dict[str, Any]:  # noqa: D102
        if not self.estimated or weights[0].dropout_index is None:
            return {}
        strata = "given" if isinstance(self.dropout_strata, Strata) else self.dropout_strata
        return {"dropout_strata": strata, "n_strata": [one.n_strata for one in weights]}

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
                    settings.append(f"drop-out by Kaplan-Meier{' in risk strata' if self._ranks else ''}")
        if isinstance(self.population, SurvivalCurves):
            settings.append("for all individuals")
        elif self.population is not None:
            settings.append("fixed population" if self.population == "fixed" else f"C* >= {self.population:g}")
        strata = None if self._ranks else self.dropout_strata
        settings += settings_in_words(self.max_weight, self.normalize, self.variance, strata)
        return f"administrative ({', '.join(settings)})" if settings else "administrative"

    def __str__(self) -> str:
        return self.named(somebody_left=False)


def _ranked(index: TimeIndex) -> tuple[NDArray[np.float64], int] | None:
    """Return at which times predictions are ranked, and how many strata there are before some are joined.

    None where one stratum is left by the number of drop-outs and of those followed event-free, or none dropped out.
    """
    outcomes, m = index.outcomes, index.times.size
    if outcomes.censoring_time is None or not outcomes.n_dropped_out or m == 0:
        return None
    followed = index.n_followed
    last = max(int(np.count_nonzero(followed >= MIN_FOLLOWED)), 1) - 1
    stayed = index.n_eligible(arrays.where(outcomes.dropped_out, index.until_time, np.int32(m)))
    n_strata = number_of_strata(min(index.n - stayed[last], followed[last]))
    return (some_times(index.times[: last + 1]), n_strata) if n_strata > 1 else None


def _joined(index: TimeIndex, codes: Any, n_strata: int) -> Codes:
    """Join strata with no individual left with the next ones, unless none is left in any."""
    outcomes, left = index.outcomes, index.outcomes.dropped_out
    if codes is None:
        return None, 1
    end = support_end(outcomes, left, index.times)
    end = index.times.size if end is None else end
    lasts = last_times(outcomes, left, codes)

    def ends_early(some: Sequence[int]) -> bool:
        last = max(lasts[k][0] for k in some)
        gone = any(lasts[k] == (last, True) for k in some)
        return gone and int(np.searchsorted(index.times, last, side="left")) < end

    groups: list[list[int]] = []
    for k in range(n_strata):
        if groups and ends_early(groups[-1]):
            groups[-1].append(k)
        else:
            groups.append([k])
    while len(groups) > 1 and ends_early(groups[-1]):
        groups[-2:] = [groups[-2] + groups[-1]]
    if len(groups) == n_strata:
        return codes, n_strata
    place = np.repeat(np.arange(len(groups)), [len(some) for some in groups]).astype(np.int32)
    return (arrays.beside(place, codes)[codes], len(groups)) if len(groups) > 1 else (None, 1)
