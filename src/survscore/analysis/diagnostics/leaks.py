"""Which models know C*, by the rule of `diagnose`, for those who did not ask: cheap where there is nothing to tell."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from survscore._validation import InputError
from survscore.analysis.diagnostics.answer import MORE_LOST, ONSET, Answer
from survscore.analysis.diagnostics.cliff import Windows
from survscore.analysis.diagnostics.diagnosis import default_width, drawn
from survscore.analysis.diagnostics.two_weightings import contrasts_of
from survscore.curves import SurvivalCurves
from survscore.engine.inputs import NULL_MODEL, default_times
from survscore.inference.units import Groups
from survscore.outcomes import Outcomes
from survscore.weighting import IPCW

MOST_ROWS = 2_000


def leaking_models(
    y: Outcomes, models: Mapping[str, Any], *, groups: ArrayLike | None = None, level: float = 0.95, seed: int = 0
) -> list[Answer]:
    """Return the models that know C*, by the rule of `diagnose` on up to 2 000 individuals.

    The comparisons of that rule are made only for models that lose more than a twentieth of their survival right after
    C*, and clearly more than right before.

    Parameters
    ----------
    y : Outcomes
        What was observed.
    models : mapping of str to SurvivalCurves
        What was predicted; those that are not in the processor's memory are not looked at.
    groups : array_like, optional
        Who belongs together.
    level : float
        Of the intervals that the rule goes by.
    seed : int
        Of the draw.

    Returns
    -------
    list of Answer
        Empty where C* is unknown, or the same for all, or no model knows it.
    """
    named = {
        name: curves
        for name, curves in models.items()
        if isinstance(curves, SurvivalCurves) and curves.device is None and name != NULL_MODEL
    }
    if y.censoring_time is None or not named or not np.ptp(y.censoring_time) > 0:
        return []
    grouping = None if groups is None else Groups.of(groups, len(y))
    last = min(float(curves.times[-1]) for curves in named.values())
    width = default_width(np.asarray(y.censoring_time), last)
    some, curves_of, weighting, groups_of = drawn(y, named, IPCW(), grouping, seed, MOST_ROWS)
    windows = None if some.censoring_time is None else Windows.of(np.asarray(some.censoring_time), width, last)
    if windows is None:
        return []
    suspects = {name: curves for name, curves in curves_of.items() if _falls(windows, curves)}
    if not suspects:
        return []
    with suppress(InputError):  # without a score under both weightings there is no second witness
        contrasts, _ = contrasts_of(some, suspects, weighting, default_times(some, suspects.values()), groups_of, level)
        against_null = {one.model: one for one in contrasts if one.reference == NULL_MODEL}
        answers = [
            Answer(name, windows.cliff(curves, groups_of, level), against_null.get(name))
            for name, curves in suspects.items()
        ]
        return [one for one in answers if one.verdict == "knows C*"]
    return []


def _falls(windows: Windows, curves: SurvivalCurves) -> bool:
    """Whether a model falls after C* at all, and more than right before: without that it can't know it."""
    own = curves[windows.order[windows.own]]
    at_end, before = windows.starts[:2]
    start, end, later = (float(own.before(ages).sum()) for ages in (before, at_end, at_end + windows.width))
    if end <= 0:
        return False
    after = 1.0 - later / end
    return after > MORE_LOST and -np.log1p(-min(after, 0.99)) > -ONSET * np.log(max(end / start, 0.01))
