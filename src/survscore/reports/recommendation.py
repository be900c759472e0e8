"""Which of several weightings to use, and why: decided here, for the terminal and the report alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from survscore.weighting import IPCW, Administrative, Projected, Uncensored, Weighting


@dataclass(frozen=True)
class WeightingChoice:
    """Which weighting to use.

    Attributes
    ----------
    position : int
        Its place among those that were asked for; of the first, if the recommended one is not among them.
    sentence : str
        Which, and why.
    certain : bool
        Whether these data allow what it needs, as far as can be known.
    """

    position: int
    sentence: str
    certain: bool = True


def recommended_weighting(weightings: Sequence[Weighting], *, n: int, n_dropped_out: int | None) -> WeightingChoice:
    """Return which of some weightings to use.

    If the status of all individuals is known, no weights are needed. If C* is known for all, the administrative
    weighting counts those with C* >= t, whether or not predictions encode C*; an IPCW score prefers predictions that
    fall to zero after C*. Drop-out before C* is accounted for by weights. IPCW is for data without C*.

    `n_dropped_out` is None where C* is not known.

    Examples
    --------
    >>> import survscore as ss
    >>> from survscore.reports.recommendation import recommended_weighting
    >>> recommended_weighting([ss.IPCW(), ss.Administrative()], n=500, n_dropped_out=0)
    WeightingChoice(position=1, sentence='Use administrative: C* is known for each individual, and at each time t it
    counts those with C* >= t, while IPCW scores reward predictions that encode C*.', certain=True)
    """
    known = n_dropped_out is not None
    labels = [one.named(somebody_left=bool(n_dropped_out) or not known) for one in weightings]
    for position, one in enumerate(weightings):
        if isinstance(one, Uncensored):
            return WeightingChoice(
                position, f"Use {labels[position]}: the status of each individual is known at all these times."
            )
    for position, one in enumerate(weightings if known else ()):
        if isinstance(one, Administrative) and any(isinstance(other, Projected) for other in weightings):
            return WeightingChoice(
                position,
                "Use administrative and projected together: the former needs no assumption about those with C* < t and "
                "refers to those with C* >= t, the latter refers to all individuals.",
            )
        if isinstance(one, Administrative):
            return WeightingChoice(position, f"Use {labels[position]}: {_why(n, n_dropped_out or 0)}.")
    if not any(isinstance(one, IPCW) for one in weightings):
        return WeightingChoice(0, f"Use {labels[0]} as far as it fits these data.", certain=False)
    if known:
        none = f"Use the administrative score instead of these: {_why(n, n_dropped_out or 0)}."
        return WeightingChoice(0, none, certain=False)
    position = next(k for k, one in enumerate(weightings) if isinstance(one, IPCW))
    return WeightingChoice(
        position,
        f"Use {labels[position]} only if predictions do not encode C*, which is unknown here; if follow-up ends on a "
        "known date, C* of each individual makes an administrative score possible, which is not misled.",
        certain=False,
    )


def _why(n: int, n_dropped_out: int) -> str:
    dropped_out = (
        f", with weights for the {n_dropped_out:,} of {n:,} who dropped out before C*" if n_dropped_out else ""
    )
    return (
        f"C* is known for each individual, and at each time t it counts those with C* >= t{dropped_out}, while IPCW "
        "scores reward predictions that encode C*"
    )
