"""Which weightings some data allow, and which to use."""

from __future__ import annotations

from dataclasses import dataclass

from survscore._validation import InputError
from survscore.outcomes import Outcomes


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


def weightings_that_fit(y: Outcomes) -> WeightingChoices:
    """Return which weightings these data allow, and which to use.

    Parameters
    ----------
    y : Outcomes
        What was observed.

    Returns
    -------
    survscore.weighting.WeightingChoices
        Whose `names` begin with the one to use; `sentence` says why, and `default` is what comparisons show.

    Examples
    --------
    >>> import survscore as ss
    >>> y = ss.Outcomes(time=[1, 3, 4], event=[1, 0, 1], censoring_time=[4, 3, 6])
    >>> ss.weightings_that_fit(y).names
    ('administrative', 'ipcw')
    """
    if not isinstance(y, Outcomes):
        raise InputError(f"y must be Outcomes, not {type(y).__name__}")
    if y.event.all():
        sentence = "No individual is censored, so 'uncensored' fits these data"
        return WeightingChoices(("uncensored",), False, sentence, ("uncensored",))
    if y.censoring_time is None:
        return WeightingChoices(
            ("ipcw",),
            True,
            "Without censoring_time the choice is `IPCW()`; if follow-up ends on a known date, give each individual's "
            "censoring_time (`Outcomes.from_dates` derives it) and use 'administrative' and 'projected'",
        )
    dropped_out = int(y.dropped_out.sum())
    weighted = f" and weights for the {dropped_out} of {len(y)} who dropped out" if dropped_out else ""
    return WeightingChoices(
        ("administrative", "ipcw"),
        False,
        f"All censoring times are known: 'administrative' counts those with C* >= t{weighted}, 'projected' counts all "
        "individuals; `IPCW()` is possible, but biased if the predictions encode the censoring time",
        # a model that encodes C* may be good for those with C* >= t alone: both populations are shown
        ("administrative", "projected"),
    )
