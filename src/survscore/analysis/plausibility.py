"""Whether predictions may be the opposite of what they were taken for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._validation import InputError, warn
from survscore.curves import SurvivalCurves
from survscore.engine.evaluation import Evaluation
from survscore.metrics import Brier
from survscore.outcomes import Outcomes
from survscore.results.comparison import Comparison

FAR_WORSE = 1.5  # so many times the Brier score of the null model
MOST_TIMES = 5
FEW = 50  # individuals, whom chance alone may put on the wrong side


def warn_if_reversed(
    y: Outcomes,
    models: Mapping[str, Any] | Iterable[tuple[str, Any]],
    *,
    weighting: Any,
    times: ArrayLike,
) -> None:
    r"""Warn about models that look as if probabilities of the event had been taken for survival, or otherwise.

    Their mean Brier score is more than 1.5 times that of Kaplan-Meier, which is the same for everybody, and that of
    :math:`1 - \pi_i` is smaller than theirs, and not far worse than Kaplan-Meier. A few times are enough to see it,
    fewer than 50 individuals are not.

    Parameters
    ----------
    y : Outcomes
        What was observed.
    models : mapping of str to SurvivalCurves
        What was predicted; those that come in batches are not looked at.
    weighting : str or Weighting
        Whom to count.
    times : array_like
        The evaluation times, of which up to five are taken.
    """
    if len(y) < FEW:
        return
    every = np.atleast_1d(np.asarray(times, dtype=np.float64))
    some = every[np.unique(np.linspace(0, every.size - 1, MOST_TIMES).round().astype(np.intp))]
    for name, curves in dict(models).items():
        if not isinstance(curves, SurvivalCurves):
            continue
        scores = _both_ways(y, curves, weighting, some)
        if scores is None:
            continue
        given, opposite, null = scores
        if given > FAR_WORSE * null and opposite < min(given, FAR_WORSE * null):
            warn(
                f"predictions of {name!r} are far worse than Kaplan-Meier: their mean Brier score is {given:.2g}, that "
                f"of Kaplan-Meier {null:.2g}, and that of one minus the predictions {opposite:.2g}. Were probabilities "
                "of the event taken for those of survival, or otherwise? SurvivalCurves.from_event_probabilities takes "
                "the former, SurvivalCurves the latter",
            )


def looks_far_worse(comparison: Comparison) -> bool:
    """Whether any model's Brier score, over all times that have one, is far above the null model's."""
    if comparison.null is None:
        return False
    null = comparison.models.index(comparison.null)
    for scored in comparison.scored:
        if scored.metric == Brier.name:
            defined = np.isfinite(scored.scores).all(axis=0)
            means = scored.scores[:, defined].mean(axis=1) if defined.any() else np.zeros(len(comparison.models))
            if (means > FAR_WORSE * means[null]).any():
                return True
    return False


def _both_ways(
    y: Outcomes, curves: SurvivalCurves, weighting: Any, times: NDArray[np.float64]
) -> tuple[float, float, float] | None:
    """Return the mean Brier scores of curves, of their opposite and of Kaplan-Meier; None, where there are none."""
    reached = times[curves.reaches(times) & (times > 0)]
    if reached.size == 0:
        return None
    # the opposite starts from S(0) = 1 as well, so it is made of the grid, of which few columns are read
    lower = curves.interpolate(reached).lower
    columns = np.unique(np.concatenate([lower, lower + 1]).clip(0, curves.times.size - 1))
    values, grid = curves.probabilities[:, columns], curves.times[columns]
    both = {
        name: SurvivalCurves(some, grid, curves.interpolation, extrapolation=curves.extrapolation, monotone="keep")
        for name, some in (("given", values), ("opposite", 1 - values))
    }
    try:
        evaluation = Evaluation.of(y, both, weighting=weighting, times=reached, null=True, errors=False)
        (found,) = evaluation.run()
    except InputError:  # whoever asked for scores is told
        return None
    scores = found.scores
    defined = np.isfinite(scores).all(axis=0)
    if not defined.any():
        return None
    given, opposite, null = scores[:, defined].mean(axis=1)
    return float(given), float(opposite), float(null)
