"""Weightings: whom a score counts at time t, and how much; one module each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from survscore._validation import InputError, check_choice
from survscore.metrics import FollowUpMetric
from survscore.outcomes import Outcomes
from survscore.weighting.administrative import Administrative
from survscore.weighting.base import Weighting, WeightingChoices, weightings_that_fit
from survscore.weighting.interval_weights import IntervalWeights, TimeIndex
from survscore.weighting.ipcw import IPCW
from survscore.weighting.projected import Projected
from survscore.weighting.uncensored import Uncensored

__all__ = [
    "IPCW",
    "WEIGHTINGS",
    "Administrative",
    "IntervalWeights",
    "Projected",
    "TimeIndex",
    "Uncensored",
    "Weighting",
    "WeightingChoices",
    "weightings_that_fit",
]

#: Those that are known by name: a new one is a module of its own, and a class here.
WEIGHTINGS: dict[str, type[Weighting]] = {
    weighting.name: weighting for weighting in (Uncensored, Administrative, Projected, IPCW)
}


def default_weightings(outcomes: Outcomes, metrics: Iterable[Any] = ()) -> list[Weighting]:
    """Return what comparisons show unless others are asked for: administrative and projected, where C* is known.

    Metrics of the whole follow-up have no projected form: beside one of them it is administrative alone. Raises where
    the choice is the user's.
    """
    default = [as_weighting(name, outcomes) for name in weightings_that_fit(outcomes).default]
    if any(isinstance(metric, FollowUpMetric) for metric in metrics):
        default = [one for one in default if not isinstance(one, Projected)]
    return default or [as_weighting(None, outcomes)]


def as_weighting(given: str | Weighting | None, outcomes: Outcomes) -> Weighting:
    """Return a weighting by name, or as it is. There is a default only where the choice can't matter."""
    if isinstance(given, Weighting):
        return given.on_clock_of(outcomes)
    if given is None:
        if outcomes.event.all():
            return Uncensored()
        raise InputError(
            f"weighting must be given, since there are censored individuals. {weightings_that_fit(outcomes).sentence}"
        )
    check_choice("weighting", given, tuple(WEIGHTINGS))
    return WEIGHTINGS[given]()
