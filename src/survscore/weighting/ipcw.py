"""Inverse probability of censoring weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from survscore._utils import arrays
from survscore._validation import InputError, check_choice
from survscore.censoring.distributions import CensoringCurves, KaplanMeierCensoring, KnownCensoring, as_censoring
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
    check_strata,
    placed_curves,
    refuse_drop_outs,
    settings_in_words,
    support_end,
    weighted_by_source,
)
from survscore.weighting.interval_weights import IntervalWeights, TimeIndex
from survscore.weighting.strata import Strata


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
    strata : array_like of shape (n,), optional
        Labels of the scored individuals, each with a Kaplan-Meier estimate of G of its own: censoring then has to be
        independent of the event time within strata only.
    training_strata : array_like, optional
        The same of the individuals in `censoring`, where these are training outcomes.

    Notes
    -----
    Where G comes from other outcomes, Greenwood's variance of that estimate is part of the standard errors; curves of a
    model and functions are taken as known.

    Where the last individual of all was censored, only those with event are left from then on, and there is no
    score, whatever the cap.

    Under administrative censoring this score is biased as soon as the covariates reveal :math:`C^*`: it prefers
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
    strata: Any = None
    training_strata: Any = None

    name: ClassVar[str] = "ipcw"

    def __post_init__(self) -> None:
        check_choice("normalize", self.normalize, NORMALIZE)
        check_choice("variance", self.variance, VARIANCE)
        check_cap(self.max_weight)
        object.__setattr__(self, "strata", Strata.of(self.strata, "strata"))
        object.__setattr__(self, "training_strata", Strata.of(self.training_strata, "training_strata"))
        training = isinstance(self.censoring, (Outcomes, KaplanMeierCensoring))
        check_strata(self.strata, self.training_strata, estimated=self.estimated, training=training)
        if not self.estimated:  # Kaplan-Meier waits for the outcomes to be scored
            object.__setattr__(self, "censoring", as_censoring(self.censoring))
            if self.variance != "exact":
                raise InputError("variance matters only where G is the Kaplan-Meier estimate of the scored outcomes")

    @property
    def estimated(self) -> bool:  # noqa: D102
        return isinstance(self.censoring, str) and self.censoring == "kaplan-meier"

    def leaves(self, outcomes: Outcomes) -> NDArray[np.bool_]:  # noqa: D102
        return ~outcomes.event

    def prepare(self, index: TimeIndex) -> IntervalWeights:  # noqa: D102
        censoring = self.censoring
        if isinstance(censoring, KnownCensoring):
            subject, other = "'known' censoring", "`IPCW(max_weight=1)` gives the same weights"
            check_censoring_time(index.outcomes, subject, other)
            refuse_drop_outs(index.outcomes, subject, other)
        if isinstance(censoring, KaplanMeierCensoring):
            censoring = censoring.outcomes
        source = None if self.estimated else censoring
        return weighted_by_source(self, self.unweighted(index), source, index, self.strata)

    def unweighted(self, index: TimeIndex) -> IntervalWeights:  # noqa: D102
        outcomes = index.outcomes
        return IntervalWeights(
            event_index=index.before_time,
            follow_up_index=arrays.where(outcomes.event, index.to_the_end, index.before_time),
            label=index.label,
            weight_at_risk=np.ones((1, index.times.size)),
            weight_at_event=arrays.repeated(1.0, len(outcomes), outcomes.time),
            population_index=index.to_the_end,
            max_weight=cap_of(self.max_weight),
            support_end=support_end(outcomes, ~outcomes.event, index.times),
        )

    @property
    def _product_limit(self) -> bool:
        """Whether G is a Kaplan-Meier estimate."""
        return self.estimated or isinstance(self.censoring, KaplanMeierCensoring)

    def seen_until(self, index: TimeIndex) -> NDArray[np.float64] | None:  # noqa: D102
        if not self._product_limit or self.max_weight is not None or self.normalize == "n" or self.strata:
            return None
        return np.full(len(index.outcomes), np.inf)

    def of_rows(self, rows: NDArray[np.intp]) -> Weighting:  # noqa: D102
        some = self if self.strata is None else replace(self, strata=self.strata.rows(rows))
        if not isinstance(self.censoring, CensoringCurves):
            return some
        return replace(some, censoring=CensoringCurves(self.censoring.curves[rows]))

    @property
    def on_own_clock(self) -> dict[str, Any]:  # noqa: D102
        if isinstance(self.censoring, (str, KnownCensoring)):
            return {}
        fitted = isinstance(self.censoring, KaplanMeierCensoring)
        return {"censoring": self.censoring.outcomes if fitted else self.censoring}

    def placed(self, device: Any) -> Weighting:  # noqa: D102
        if not isinstance(self.censoring, CensoringCurves):
            return self
        curves = placed_curves("censoring curves", self.censoring.curves, device)
        return replace(self, censoring=CensoringCurves(curves))

    @property
    def explanation(self) -> str:  # noqa: D102
        if isinstance(self.censoring, KnownCensoring):
            return (
                "Leaves the censored out. Under administrative censoring it rewards predictions that fall to zero "
                "after C*."
            )
        return (
            "Counts those whose status is known, weighted by the inverse of the probability of not being censored. If "
            "predictions encode the censoring times, it is biased towards those that fall after C*."
        )

    def __str__(self) -> str:
        source = "Kaplan-Meier of the scored outcomes" if self.estimated else str(self.censoring)
        settings = settings_in_words(self.max_weight, self.normalize, self.variance, self.strata)
        return f"ipcw ({', '.join([source, *settings])})"
