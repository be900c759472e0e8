"""What users are warned about: times without a score, and standard errors from few groups."""

from __future__ import annotations

from collections.abc import Iterable

from survscore._validation import FewGroupsWarning, UndefinedScoreWarning, plural, warn
from survscore.engine.evaluation import Scored


def undefined_times(found: Iterable[Scored]) -> str | None:
    """Say which times have no score, and why, by weighting; None where all have one."""
    told: dict[str, list[str]] = {}
    for one in found:
        if one.undefined:
            reasons = ", ".join(f"{plural(count, 'time')} where {reason}" for reason, count in one.undefined.items())
            told.setdefault(f"{one.weighting}: {reasons}", []).append(one.metric)
    metrics = {metric for some in told.values() for metric in some}
    sentences = [
        why if len(some) == len(metrics) else f"{why} ({', '.join(some)})"  # where metrics differ, of which
        for why, some in told.items()
    ]
    return f"scores are NaN under {'; '.join(sentences)}" if sentences else None


def warn_about(found: Iterable[Scored]) -> None:
    """Warn once about times without a score, and about standard errors from few groups."""
    several = list(found)
    told = undefined_times(several)
    if told:
        warn(told, UndefinedScoreWarning)
    cautions = [caution for one in several if one.moments is not None for caution in one.support.cautions()]
    for caution in dict.fromkeys(cautions):
        warn(caution, FewGroupsWarning)
