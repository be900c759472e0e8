"""Scores as scikit-learn scorers, for cross-validation and searches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._validation import InputError, as_times, check_choice
from survscore.curves import SurvivalCurves
from survscore.metrics import Metric, as_metric
from survscore.outcomes import Outcomes
from survscore.scores import score_all
from survscore.weighting import WEIGHTINGS, Weighting


@dataclass(frozen=True, eq=False)
class CurveScorer:
    """A score, or minus one of which lower values are better: scikit-learn maximises. Made by `make_scorer`."""

    metric: Metric
    weighting: str | Weighting
    times: NDArray[np.float64]

    def __call__(self, estimator: Any, X: Any, y: Outcomes) -> float:
        """Return the mean score over the times, or the score at the only one; minus it, where lower is better."""
        curves = curves_of(estimator, X)
        sign = -1.0 if self.metric.direction == "lower" else 1.0
        (score,) = score_all(y, curves, metric=self.metric, weighting=self.weighting, times=self.times, errors=False)
        if self.times.size > 1:
            return sign * score.integrated().value
        if np.isnan(score.scores[0]):
            raise InputError(f"there is no score at {self.times[0]:g}: {'; '.join(score.undefined)}")
        return sign * float(score.scores[0])


def make_scorer(metric: str | Metric = "brier", *, weighting: str | Weighting, times: ArrayLike) -> CurveScorer:
    """Make a scorer for scikit-learn's ``cross_validate`` and ``GridSearchCV``, with `Outcomes` as ``y``.

    The estimator needs a method ``predict_curves(X)`` that returns `SurvivalCurves`, or scikit-survival's
    ``predict_survival_function(X)``.

    Parameters
    ----------
    metric : str or Metric
        What to compute, such as "brier", "log", "auc", "net_benefit@0.1"; not what should be close to a target.
    weighting : str or Weighting
        As for `brier_score`. Individual censoring curves do not fit, since each fold has other individuals.
    times : array_like
        One horizon, or several: then the score is the mean over the range they span. The same for all folds.

    Returns
    -------
    CurveScorer
        Gives minus the score where lower values are better, since scikit-learn maximises.

    Examples
    --------
    >>> import survscore as ss
    >>> ss.make_scorer("brier", weighting="administrative", times=[10, 20, 30])
    CurveScorer(metric=Brier(), weighting='administrative', times=array([10., 20., 30.]))
    """
    chosen = as_metric(metric)
    if chosen.direction not in ("lower", "higher"):
        raise InputError(
            f"metric must be one of which lower or higher values are better, to choose models by, not {chosen.name!r}"
        )
    if not isinstance(weighting, Weighting):
        check_choice("weighting", weighting, tuple(WEIGHTINGS))  # refuse an unknown name now, not in the first fold
    return CurveScorer(chosen, weighting, as_times(times))


def curves_of(estimator: Any, X: Any) -> SurvivalCurves:
    """Return an estimator's predictions as curves."""
    if hasattr(estimator, "predict_curves"):
        curves = estimator.predict_curves(X)
        if not isinstance(curves, SurvivalCurves):
            raise InputError(f"predict_curves must return SurvivalCurves, not {type(curves).__name__}")
        return curves
    if hasattr(estimator, "predict_survival_function"):
        return SurvivalCurves.from_step_functions(estimator.predict_survival_function(X), beyond="hold")
    raise InputError(
        f"{type(estimator).__name__} has neither predict_curves nor predict_survival_function, so it can't be scored"
    )
