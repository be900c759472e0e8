"""Whether the times of predictions and of outcomes can be of one unit."""

from __future__ import annotations

import numpy as np

from survscore._utils.dates import WORDS, Unit, named_in, word
from survscore._validation import warn
from survscore.io.predictions import PredictedFile
from survscore.outcomes import Outcomes

FAR = 10.0  # predictions that end so many times before, or after, all follow-up does are of another unit, or odd


def warn_if_times_do_not_fit(y: Outcomes, unit: Unit | None, predicted: PredictedFile) -> None:
    """Warn if the unit of the predictions' times seems to be another than that of the outcomes.

    That is so if the columns are named by another unit, or if predictions end long before or long after follow-up
    does; unless somebody said what the unit is.
    """
    form = predicted.form
    if form.unit is not None:
        return
    named = named_in(form.columns) if form.columns else None
    advice = f"`predictions_unit={word(named)!r}`" if named else f"`predictions_unit` ({', '.join(WORDS)})"
    if named and unit and named != unit:
        warn(
            f"{predicted.path}: columns are named like {form.columns!r}, but outcomes are in {word(unit)}s, and so are "
            f"the predictions taken to be; {advice} converts them",
        )
        return
    longest = longest_follow_up(y)
    for model, curves in predicted.models.items():
        last = float(curves.times[-1])
        if longest > 0 and last > 0 and not 1 / FAR <= last / longest <= FAR:
            warn(
                f"{predicted.path}: predictions of {model!r} end at {last:g}, but the longest follow-up is "
                f"{longest:g}: are both in the same unit of time? If not, {advice} converts them",
            )
            return


def longest_follow_up(y: Outcomes) -> float:
    """Return the largest censoring time, or the largest time where these are not known."""
    ends = y.time if y.censoring_time is None else y.censoring_time
    finite = ends[np.isfinite(ends)]
    return float(finite.max() if finite.size else y.time.max())
