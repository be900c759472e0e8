"""All individuals count: those not followed to t with the proportion event-free among similar individuals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from survscore._utils import arrays
from survscore._validation import (
    InputError,
    UnfitError,
    check_choice,
    check_length,
    check_number,
    check_whole,
    plural,
    shown,
)
from survscore.censoring.aalen_johansen import Incidence
from survscore.censoring.fitted import FittedOnSample
from survscore.curves import SurvivalCurves
from survscore.outcomes import Outcomes
from survscore.weighting.base import Weighting, curve_weights, fit_by_code, placed_curves
from survscore.weighting.interval_weights import IntervalWeights, ReferenceCurves, TimeIndex
from survscore.weighting.ranks import MIN_FOLLOWED, Codes, Neighbours, number_of_strata, some_times
from survscore.weighting.strata import Strata

RANKS = ("own-ranks", "mean-ranks")
KAPLAN_MEIER = "Kaplan-Meier"
MOST_THETA = 50.0  # powers of a curve stay within the range of numbers


@dataclass(frozen=True)
class Projected(Weighting):
    r"""All individuals count with weight one; a status hidden by the data cut-off is a probability.

    Each individual keeps its own prediction. Those not followed to t count with the proportion event-free at t
    among individuals of similar predicted risk who had been event-free as long:

    .. math:: \frac1n \sum_i \left[\ell_{0i} + y_i (\ell_{1i} - \ell_{0i})\right], \qquad
        y_i(t) = \begin{cases} 1 & \text{event-free at } t \\ 0 & \text{event by } t \\
        m_i(t) = \left[S_k(t) / S_k(c_i)\right]^\theta & \text{hidden: censored at } c_i < t \end{cases}

    with :math:`\ell_1` and :math:`\ell_0` the losses of one who is event-free, and of one who is not, and :math:`S_k`
    the Kaplan-Meier curve of the individual's stratum k. Hidden are those censored by :math:`C^*_i < t`, and those who
    dropped out before t, from the day on which they left. All metrics of statuses at one time have a projected form;
    those of the whole follow-up (concordance, CRPS, logarithmic score) have none.

    Under competing risks the status is that of one cause k: :math:`m_i(t) = 1 - [F_k(t) - F_k(c_i)] / S(c_i)`, with the
    Aalen-Johansen estimate :math:`F_k` and the Kaplan-Meier curve S of all events in the individual's stratum. Strata
    are by the predicted risk of that cause; `theta` multiplies the hazard of that cause alone, in both estimates,
    and there is no `reference`.

    Parameters
    ----------
    strata : optional
        Among whom statuses are shared.

        ``"own-ranks"`` (default): individuals of similar rank by the model's own predictions, one set for all times.
        Individuals are cut by :math:`C^*` into groups of neighbours (about 100 each, at most 40), none of which splits
        equal :math:`C^*`. Within each, predictions are ranked at the evaluation times that have a score (at five of
        them, where there are more), mid-ranks are averaged and ranked once more, and cut into as many strata as have 5
        events by the last of these times and 5 individuals followed event-free to it, at most 10. Ranked within
        :math:`C^*`, predictions that encode the entry date have no say in whom they are compared with. Predictions
        that are the same for all, as the null model's, have one stratum. Without censoring times, all are one group.

        ``"mean-ranks"``: the same by the mean of the ranks over all models, one set for all of them. Differences are
        shrunk between models that use different information.

        Since strata by ranks are one set for all times, the score at a time depends on which other evaluation times
        there are.

        Labels of shape (n,), or None: one stratum, the plain Kaplan-Meier curve, which penalises discrimination.
    reference : str or SurvivalCurves, optional
        Curves that statuses are projected by, in place of Kaplan-Meier's: :math:`m_i(t) = [S_i(t)/S_i(c_i)]^\theta`, of
        the model of this name among those that are scored, or given, one for each individual. They are taken as known.
        A model that is its own reference does not get a proper score. ``"Kaplan-Meier"``: the same as ``strata=None``.
    theta : float, default 1
        Hazards of the hidden after :math:`c_i`, as a multiple of those of the reference.
    min_followed : int, default 20
        There is no score where fewer individuals were followed event-free to t, unless no status is hidden.

    Notes
    -----
    Condition: the event time is independent of :math:`C^*` (and of dropping out) within strata. The score is then
    smallest for the true survival where :math:`C^* \ge t`, and for :math:`S(C^* \mid x)\, m` where the covariates
    reveal :math:`C^* < t`. The order of two models depends only on the mean of
    :math:`(m_i - \mathrm{P}(T^*_i > t \mid x_i, T^*_i > c_i)) (\pi_{ai} - \pi_{bi})` over the hidden: the reference has
    to be right on average given the predictions, not for each individual. IPCW passes the weight of a censored
    individual on to others together with *their* predictions; here only their outcomes are borrowed.

    Standard errors contain the estimation of the curves; strata are taken as given. ``score.parts`` splits a score into
    that of those who could be followed to t, which without drop-outs is the administrative score, and of the others.

    Examples
    --------
    >>> import survscore as ss
    >>> sample = ss.simulate.SineConstantAcceleratingStudy().sample(1000, seed=1)
    >>> curves = sample.survival([50])
    >>> for weighting in ("administrative", "projected", ss.Projected(strata=None)):
    ...     score = ss.brier_score(sample.outcomes, curves, weighting=weighting, times=[50])
    ...     print(score.weighting, score.scores.round(4), score.se.round(4), score.n_counted)
    administrative [0.1097] [0.0084] [463.]
    projected (own ranks) [0.1098] [0.007] [1000.]
    projected (one stratum) [0.1854] [0.0063] [1000.]
    """

    strata: Any = "own-ranks"
    reference: Any = None
    theta: float = 1.0
    min_followed: int = MIN_FOLLOWED

    name: ClassVar[str] = "projected"

    def __post_init__(self) -> None:
        check_number("theta", self.theta, f"a number from 0 to {MOST_THETA:g}", lambda theta: 0 <= theta <= MOST_THETA)
        check_whole("min_followed", self.min_followed, 1)
        if isinstance(self.strata, str):
            check_choice("strata", self.strata, RANKS)
        else:
            object.__setattr__(self, "strata", Strata.of(self.strata, "strata"))
        if isinstance(self.reference, str) and self.reference == KAPLAN_MEIER:
            if self.strata not in (None, "own-ranks"):
                raise InputError(f"reference={KAPLAN_MEIER!r} is one curve for all individuals: it has no strata")
            object.__setattr__(self, "reference", None)
            object.__setattr__(self, "strata", None)
        if not (self.reference is None or isinstance(self.reference, (str, SurvivalCurves))):
            raise InputError(
                "reference must be None (Kaplan-Meier by strata), 'Kaplan-Meier', the name of a model, or "
                f"SurvivalCurves, not {type(self.reference).__name__}"
            )
        if self.reference is not None and isinstance(self.strata, Strata):
            raise InputError("strata are for Kaplan-Meier estimates: the curves of a reference have none")
        if isinstance(self.reference, SurvivalCurves) and self.reference.increases():
            raise InputError(
                "reference: the curves rise with time; they must be of the probability of being event-free"
            )

    @property
    def depends_on_other_models(self) -> bool:  # noqa: D102
        return isinstance(self.reference, str) or (self.reference is None and self.strata == "mean-ranks")

    @property
    def _ranks(self) -> bool:
        return self.reference is None and isinstance(self.strata, str)

    @property
    def estimated(self) -> bool:  # noqa: D102
        return self.reference is None

    def leaves(self, outcomes: Outcomes) -> NDArray[np.bool_]:  # noqa: D102
        return ~outcomes.event

    def prepare(self, index: TimeIndex) -> IntervalWeights:  # noqa: D102
        if self._ranks or isinstance(self.reference, str):
            raise InputError(f"'{self}' depends on predictions: here give strata of labels, strata=None, or curves")
        return self.prepare_models(index, {})[0]

    def reads(self, index: TimeIndex) -> NDArray[np.float64] | None:  # noqa: D102
        if not self._ranks:
            return None
        return _Followed.of(index, self.min_followed).ranked_times(index.times)

    def prepare_models(  # noqa: D102
        self, index: TimeIndex, curves: Mapping[str, SurvivalCurves], *, null: bool = False
    ) -> list[IntervalWeights]:
        if index.outcomes.competing and self.reference is not None:
            raise UnfitError(
                "reference: curves of one of several causes do not tell who is event-free: statuses of a cause are "
                "projected by strata (strata=)"
            )
        followed = _Followed.of(index, self.min_followed)
        weights = self._ranges(index, followed)
        if self.reference is not None:
            return [self._by_curves(weights, index, curves)]
        strata = self._strata(index, curves, followed)
        if null and self.strata == "own-ranks":
            strata.append((None, 1))
        return [self._by_strata(weights, index, codes) for codes in strata]

    def _ranges(self, index: TimeIndex, followed: _Followed) -> IntervalWeights:
        """Return the index ranges: from T on, or from then on, the status of the censored is hidden."""
        outcomes, m = index.outcomes, index.times.size
        few = f"fewer than {plural(self.min_followed, 'individual')} are followed event-free"
        return IntervalWeights(
            event_index=index.before_time,
            follow_up_index=index.until_hidden,
            label=index.label,
            weight_at_risk=np.ones((1, m)),
            weight_at_event=arrays.repeated(1.0, len(outcomes), outcomes.time),
            population_index=index.to_the_end,
            support_end=followed.n_scored if followed.n_scored < m else None,
            support_reason=few,
            observed_index=None if outcomes.censoring_time is None else index.until_censoring_time,
        )

    def _strata(self, index: TimeIndex, curves: Mapping[str, SurvivalCurves], followed: _Followed) -> list[Codes]:
        """Return one set of strata for all models, or one for each."""
        outcomes = index.outcomes
        if self.strata is None:
            return [(None, 1)]
        if isinstance(self.strata, Strata):
            codes, n_strata = self.strata.codes(len(outcomes))
            return [(arrays.beside(codes, outcomes.time), n_strata) if n_strata > 1 else (None, 1)]
        times, models = followed.ranked_times(index.times), list(curves.values())
        neighbours = Neighbours(outcomes.censoring_time, outcomes.time, index.counts)
        ranks = [neighbours.ranks(predicted, times) for predicted in models]
        if self.strata == "mean-ranks":
            return [neighbours.strata(sum(ranks), followed.n_strata)]
        return [neighbours.strata(of_model, followed.n_strata) for of_model in ranks]

    def _by_strata(self, weights: IntervalWeights, index: TimeIndex, strata: Codes) -> IntervalWeights:
        """Return the ranges with the statuses that the Kaplan-Meier, or Aalen-Johansen, curves of strata tell."""
        (codes, n_strata), event = strata, index.outcomes.event
        weights = replace(weights, weight_at_risk=np.ones((n_strata, index.times.size)), codes=codes)
        if index.outcomes.competing:
            return self._by_incidence(weights, index, fit_by_code(index, event, codes, n_strata))
        # at ties events come first, so no individual is censored where a curve is zero
        model = fit_by_code(index, event, codes, n_strata, power=self.theta)
        table, own = curve_weights(model, index)
        return replace(
            weights,
            censoring_model=model if self.theta else None,
            hidden_share=arrays.where(event, 0.0, 1.0 / arrays.where(event, 1.0, own) ** self.theta),
            reference=table**self.theta,
        )

    def _by_incidence(self, weights: IntervalWeights, index: TimeIndex, model: FittedOnSample) -> IntervalWeights:
        r"""Return the ranges with the statuses of one cause: without it, :math:`1 - [F(t) - F(c_i)] / S(c_i)`."""
        of_interest = arrays.take(arrays.as_bool(index.label), index.order)
        weights_of_events = None if index.sample is None else arrays.take(index.sample.values, index.order)
        incidence = Incidence.in_order(model.curve, model.passed, of_interest, self.theta, weights_of_events)
        model, table = replace(model, incidence=incidence), incidence.later_table(index.times)
        position = incidence.position(arrays.put(model.passed, index.order), model.codes)
        base, share = incidence.statuses(position)
        hidden = ~index.outcomes.event
        return replace(
            weights,
            censoring_model=model,
            reference=table,
            hidden_share=arrays.where(hidden, share, 0.0),
            hidden_base=arrays.where(hidden, base, 1.0),
        )

    def _by_curves(
        self, weights: IntervalWeights, index: TimeIndex, curves: Mapping[str, SurvivalCurves]
    ) -> IntervalWeights:
        """Return the ranges with the statuses that each individual's curve tells."""
        reference, outcomes = self.reference, index.outcomes
        if isinstance(reference, str):
            if reference not in curves:
                known = ", ".join(map(repr, curves)) or "none"
                raise InputError(f"reference must be a model that is scored and in memory ({known}), not {reference!r}")
            reference = curves[reference]
        check_length("reference", len(reference), "y", len(outcomes))
        given = ReferenceCurves(reference, self.theta)
        return replace(
            weights, hidden_share=arrays.where(outcomes.event, 0.0, given.share(outcomes.time)), reference=given
        )

    def of_rows(self, rows: NDArray[np.intp]) -> Weighting:  # noqa: D102
        if isinstance(self.strata, Strata):
            return replace(self, strata=self.strata.rows(rows))
        return replace(self, reference=self.reference[rows]) if isinstance(self.reference, SurvivalCurves) else self

    @property
    def on_own_clock(self) -> dict[str, Any]:  # noqa: D102
        return {"reference": self.reference} if isinstance(self.reference, SurvivalCurves) else {}

    def placed(self, device: Any) -> Weighting:  # noqa: D102
        if not isinstance(self.reference, SurvivalCurves):
            return self
        return replace(self, reference=placed_curves("reference", self.reference, device))

    def settings(self, weights: Sequence[IntervalWeights]) -> dict[str, Any]:  # noqa: D102
        strata = "given" if isinstance(self.strata, Strata) else self.strata
        by_curves = {"reference": "given" if isinstance(self.reference, SurvivalCurves) else self.reference}
        by_strata = {"strata": strata, "n_strata": [one.n_strata for one in weights]}
        return {**(by_strata if self.reference is None else by_curves), "theta": self.theta}

    @property
    def hazards(self) -> str:
        """The hazards that the hidden are assumed to have after :math:`c_i`, in words."""
        times = "" if self.theta == 1 else f"{self.theta:g} times "
        match self.reference, self.strata:
            case None, "own-ranks":
                whose = "of individuals of similar predicted risk who were observed longer"
            case None, "mean-ranks":
                whose = "of individuals of similar mean rank by all models who were observed longer"
            case None, None:
                whose = "of all individuals who were observed longer"
            case None, _:
                whose = "of the individuals of the same stratum who were observed longer"
            case str(), _:
                whose = f"predicted by {shown(self.reference)}"
            case _:
                whose = "of the given reference curves"
        return f"{times}the hazards {whose}"

    @property
    def explanation(self) -> str:  # noqa: D102
        return (
            "Each individual counts with its own prediction. Those whose status at t is hidden, by C* < t or by "
            "drop-out, count with the probability of being event-free at t if, from the end of their follow-up on, "
            f"they have {self.hazards}."
        )

    def __str__(self) -> str:
        match self.reference, self.strata:
            case None, str():
                source = "own ranks" if self.strata == "own-ranks" else "mean ranks, differences are shrunk"
            case None, None:
                source = "one stratum"
            case None, _:
                source = plural(np.unique(self.strata.labels).size, "stratum").replace("stratums", "strata")
            case str(), _:
                source = f"reference {self.reference!r}"
            case _:
                source = "given curves"
        return f"projected ({source}{'' if self.theta == 1 else f', theta={self.theta:.15g}'})"


@dataclass(frozen=True)
class _Followed:
    """How far the data reach."""

    n_scored: int  # At how many evaluation times, from the first on, there is a score.
    n_strata: int  # How many strata there are by ranks.

    def ranked_times(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return at which of the evaluation times predictions are ranked: among those with a score."""
        return some_times(times[: max(self.n_scored, 1)])

    @classmethod
    def of(cls, index: TimeIndex, min_followed: int) -> _Followed:
        """Count events, those followed event-free, and the hidden, at each evaluation time."""
        m, followed, known = index.times.size, index.n_followed, index.n_eligible(index.until_hidden)
        scored = (followed >= min_followed) | (known == index.n)
        n_scored = m if scored.all() else int(np.argmin(scored))
        last = max(n_scored, 1) - 1
        return cls(n_scored, number_of_strata(min(known[last] - followed[last], followed[last])))
