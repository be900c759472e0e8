"""Each individual counts at every time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from survscore._utils import arrays
from survscore._validation import InputError, plural
from survscore.weighting.base import Weighting, weightings_that_fit
from survscore.weighting.interval_weights import IntervalWeights, TimeIndex


@dataclass(frozen=True)
class Uncensored(Weighting):
    r"""Each individual counts at all times with weight one, :math:`w_i(t) = 1` (eq:full_bs).

    Refuses data in which a status is unknown at a requested time. Without event at `time`, an individual
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
