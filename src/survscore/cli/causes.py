"""Which cause of events a command is about, where several compete."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from survscore._validation import InputError, several
from survscore.causes import ALL_CAUSES, ALL_STATUSES, Causes

if TYPE_CHECKING:
    from survscore.io import Study
    from survscore.outcomes import Outcomes


def with_cause(study: Study, cause: str | None, times: Any = None) -> Study:
    """Return a study with one cause as the event of interest: the one that was named, or the event of reasons.

    Its predictions are then of this cause alone, or of all, for multi-class scores. With delayed entry they are made
    for `times` after it, those at which the command scores them. Raise where there are several causes and none is
    known.
    """
    from survscore.engine.inputs import of_cause

    y = study.outcomes
    if cause is not None and not y.causes:
        raise InputError(f"--cause {cause} is for competing causes: these outcomes have events of one kind")
    if cause is None and y.causes and not y.interest:
        raise InputError(f"{listed_causes(y)}: --cause says which one scores are of")
    wanted = None if cause is None else _named(y, cause)
    y, models = of_cause(y, study.models, wanted, times=times, multiclass=True)
    return replace(study, outcomes=y, models=models)


def with_each_cause(study: Study, cause: str | None, times: Any = None) -> list[Study]:
    """Return a study for each cause that is to be shown: the one that was named, or all, if models predict all.

    The last is then of all causes together, for multi-class scores.
    """
    from survscore.reports.study import causes_shown

    if cause is not None:
        return [with_cause(study, cause, times)]
    causes = causes_shown(study.outcomes, study.models, None)
    shown = [*causes, ALL_CAUSES] if causes else [None]
    return [with_cause(study, name, times) for name in shown]


def listed_causes(y: Outcomes) -> str:
    """Return in words which causes there are, and how many events of each."""
    counts = several([f"{name!r} ({count:,})" for name, count in y.n_by_cause.items()])
    return f"events have {len(y.causes)} causes, {counts}"


def _named(y: Outcomes, cause: str) -> str:
    """Return a cause that is given by its name or its number, or "all", as the library takes it."""
    by_number = cause not in y.causes and cause.isdigit()
    number = Causes(y.causes, y.cause_codes).number(int(cause) if by_number else cause, "--cause")
    return ALL_CAUSES if number == ALL_STATUSES else y.causes[number - 1]
