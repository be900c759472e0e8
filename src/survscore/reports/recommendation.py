"""Which of several weightings to use, and why: decided here, for the terminal and the report alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from survscore.weighting import IPCW, Administrative, Uncensored, Weighting

if TYPE_CHECKING:
    pass


@dataclass(frozen=True)
class Recommendation:
    """Which weighting to believe.

    Attributes
    ----------
    position : int
        Its place among those that were asked for; of the first, if the one to believe is not among them.
    sentence : str
        Which, and why.
    certain : bool
        Whether these data allow what it needs, as far as can be known.
    """

    position: int
    sentence: str
    certain: bool = True


def recommended_weighting(weightings: Sequence[Weighting], *, n: int, n_dropped_out: int | None) -> Recommendation:
    """Return which of some weightings to believe.

    Everybody's status, where it is known, needs no weights. Where all C* are known, the administrative weighting counts
    those whose data reach a time, whatever predictions know about C*; an IPCW score prefers predictions that fall to
    zero after C*. Who dropped out before C* is weighted for. An IPCW score is for data without C*.

    Parameters
    ----------
    weightings : sequence of Weighting
        Those of some result.
    n : int
        The number of individuals.
    n_dropped_out : int or None
        How many dropped out before their C*; None, where C* is not known.

    Examples
    --------
    >>> import survscore as ss
    >>> from survscore.reports.recommendation import recommended_weighting
    >>> recommended_weighting([ss.IPCW(), ss.Administrative()], n=500, n_dropped_out=0)
    Recommendation(position=1, sentence="Believe administrative: everybody's C* is known, and it counts those whose data
    reach a time, while IPCW scores reward predictions that know C*.", certain=True)
    """
    known = n_dropped_out is not None
    labels = [one.named(somebody_left=bool(n_dropped_out) or not known) for one in weightings]
    for position, one in enumerate(weightings):
        if isinstance(one, Uncensored):
            return Recommendation(
                position, f"Believe {labels[position]}: everybody's status is known at all these times."
            )
    for position, one in enumerate(weightings if known else ()):
        if isinstance(one, Administrative):
            return Recommendation(position, f"Believe {labels[position]}: {_why(n, n_dropped_out or 0)}.")
    if not any(isinstance(one, IPCW) for one in weightings):
        return Recommendation(0, f"Believe {labels[0]} as far as it fits these data.", certain=False)
    if known:
        none = f"Believe none of these, but the administrative score: {_why(n, n_dropped_out or 0)}."
        return Recommendation(0, none, certain=False)
    position = next(k for k, one in enumerate(weightings) if isinstance(one, IPCW))
    return Recommendation(
        position,
        f"Believe {labels[position]} only if predictions can't tell C*, which is unknown here; if the data end on a "
        "known date, everybody's C* makes an administrative score possible, which is not fooled.",
        certain=False,
    )


def _why(n: int, n_dropped_out: int) -> str:
    dropped_out = f", weights for the {n_dropped_out:,} of {n:,} who dropped out before it" if n_dropped_out else ""
    return (
        f"everybody's C* is known, and it counts those whose data reach a time{dropped_out}, while IPCW scores reward "
        "predictions that know C*"
    )
