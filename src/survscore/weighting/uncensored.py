"""Each individual counts at every time; and which weightings some data allow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from survscore._utils import arrays
from survscore._validation import InputError, plural
from survscore.outcomes import Outcomes
from survscore.weighting.base import Weighting
from survscore.weighting.interval_weights import IntervalWeights, TimeIndex


@dataclass(frozen=True)
class Uncensored(Weighting):
    r"""Each individual counts at every time, with weight one, :math:`w_i(t) = 1` (eq:full_bs).

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
        return "Each individual counts at every time."

    def prepare(self, index: TimeIndex) -> IntervalWeights:  # noqa: D102
        outcomes, last = index.outcomes, index.times[-1]
        unknown = ~outcomes.event & (outcomes.time < last)
        if unknown.any():
            first = arrays.first_true(unknown)
            raise InputError(
                f"'uncensored' weighting needs each individual's status up to the last time, {last:g}: "
                f"{plural(int(unknown.sum()), 'individual')} of {len(outcomes)} were censored before, the first at "
                f"position {first} (time {outcomes.time[first]:g}). {weightings_that_fit(outcomes).sentence}"
            )
        return IntervalWeights(
            event_index=index.before_time,
            follow_up_index=index.to_the_end,
            label=index.label,
            weight_at_risk=np.ones((1, index.times.size)),
            weight_at_event=arrays.repeated(1.0, len(outcomes), outcomes.time),
            population_index=index.to_the_end,
        )

    def seen_until(self, index: TimeIndex) -> NDArray[np.float64] | None:  # noqa: D102
        return np.full(len(index.outcomes), np.inf)


@dataclass(frozen=True)
class WeightingChoices:
    """Which weightings fit some data."""

    #: Those that are possible, the one to use first.
    names: tuple[str, ...]
    #: Whether the only possible one may mislead, if follow-up ends on a known date.
    misleading: bool
    #: The same in words.
    sentence: str
    #: Those that comparisons show unless others are asked for; none where the choice is the user's.
    default: tuple[str, ...] = ()


def weightings_that_fit(outcomes: Outcomes) -> WeightingChoices:
    """Return which weightings these data allow, and which to use."""
    if outcomes.event.all():
        sentence = "Nobody is censored, so 'uncensored' fits these data"
        return WeightingChoices(("uncensored",), False, sentence, ("uncensored",))
    if outcomes.censoring_time is None:
        return WeightingChoices(
            ("ipcw",),
            True,
            "Without censoring_time the choice is IPCW(); if follow-up ends on a known date, give each individual's "
            "censoring_time (Outcomes.from_dates derives it) and use 'administrative' and 'projected'",
        )
    dropped_out = int(outcomes.dropped_out.sum())
    weighted = f" and weights for the {dropped_out} of {len(outcomes)} who dropped out" if dropped_out else ""
    return WeightingChoices(
        ("administrative", "ipcw"),
        False,
        f"All censoring times are known: 'administrative' counts those with C* >= t{weighted}, 'projected' counts all "
        "individuals; IPCW() is possible, but biased if the predictions encode the censoring time",
        # a model that encodes C* may be good for those with C* >= t alone: both populations are shown
        ("administrative", "projected"),
    )
