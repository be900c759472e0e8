"""Model selection with scikit-learn: scores as scorers, and folds with an even share of events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._validation import InputError, as_times, check_choice, check_length, check_whole
from survscore.causes import Cause, takes_cause
from survscore.curves import SurvivalCurves
from survscore.incidence import IncidenceCurves
from survscore.metrics import Metric, as_metric
from survscore.outcomes import as_outcomes
from survscore.scores import score_all
from survscore.weighting import WEIGHTINGS, Weighting


@dataclass(frozen=True, eq=False)
class CurveScorer:
    """A score, or minus one of which lower values are better: scikit-learn maximises. Made by `make_scorer`."""

    metric: Metric
    weighting: str | Weighting
    times: NDArray[np.float64]
    cause: Cause | None = None

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Return the mean score over the times, or the score at the only one; minus it, where lower is better.

        `sample_weight` are the sample weights of the individuals (`Outcomes.weighted`), of kind "probability"; those of
        another kind are part of the outcomes. Where there is no score, that is an `InputError`.
        """
        outcomes = as_outcomes(y)
        if sample_weight is not None:
            if outcomes.weights is not None:
                raise InputError("sample_weight: y has sample weights already; give them once")
            outcomes = outcomes.weighted(sample_weight)
        curves = curves_of(estimator, X)
        check_length("the predictions", len(curves), "y", len(outcomes))
        (score,) = score_all(
            outcomes,
            curves,
            metric=self.metric,
            weighting=self.weighting,
            times=self.times,
            errors=False,
            cause=self.cause,
        )
        value = score.integrated().value if self.times.size > 1 else float(score.scores[0])
        if np.isnan(value):
            raise InputError(f"there is no score at {self.times[0]:g}: {'; '.join(score.undefined)}")
        return -value if self.metric.direction == "lower" else value

    def get_metadata_routing(self) -> Any:
        """Request from scikit-learn, where it routes metadata, the sample weights, if there are any."""
        from sklearn.utils.metadata_routing import MetadataRequest

        request = MetadataRequest(owner=self)
        request.score.add_request(param="sample_weight", alias=True)
        return request


@takes_cause
def make_scorer(
    metric: str | Metric = "brier", *, weighting: str | Weighting, times: ArrayLike, cause: Cause | None = None
) -> CurveScorer:
    """Make a scorer for scikit-learn's ``cross_val_score`` and ``GridSearchCV``.

    It takes `Outcomes` as ``y``, or structured arrays as scikit-survival's, with the censoring times in a third field
    if the weighting needs them (`Outcomes.to_structured`). Estimators need a method ``predict_curves(X)`` that returns
    `SurvivalCurves` or `IncidenceCurves`, as the models and the adapters of this library have it, or scikit-survival's
    ``predict_survival_function(X)``. They may be the last step of a ``Pipeline``, or what a search has found.

    Parameters
    ----------
    metric : str or Metric
        As for `compare`, but not what should be close to a target.
    weighting : str or Weighting
        As for `brier_score`; what it estimates is of the outcomes scored, fold by fold. Individual censoring curves do
        not fit, since each fold has other individuals.
    times : array_like
        One horizon, or several: then the score is the mean over the range they span. The same for all folds.
    cause : str or int, optional
        As for `brier_score`; required under competing risks, unless the outcomes say it (`Outcomes.for_cause`).

    Returns
    -------
    CurveScorer
        Gives minus the score where lower values are better, since scikit-learn maximises.

    Raises
    ------
    InputError
        If an argument is invalid; the message names it, the rule, and the first value that violates it.

    Notes
    -----
    Where there is no score, because a model's curves or the follow-up of a fold end before the times, that is an
    error. scikit-learn makes NaN and a warning of errors: say ``error_score="raise"`` to see them. Groups change only
    standard errors, so scorers don't ask for them; splitters such as `EventKFold` do.

    Examples
    --------
    >>> import survscore as ss
    >>> ss.make_scorer("brier", weighting="administrative", times=[10, 20, 30])
    CurveScorer(metric=Brier(), weighting='administrative', times=array([10., 20., 30.]), cause=None)
    """
    chosen = as_metric(metric)
    if chosen.direction not in ("lower", "higher"):
        raise InputError(
            f"metric must be one of which lower or higher values are better, to choose models by, not {chosen.name!r}"
        )
    if not isinstance(weighting, Weighting):
        check_choice("weighting", weighting, tuple(WEIGHTINGS))  # refuse an unknown name now, not in the first fold
    return CurveScorer(chosen, weighting, as_times(times), cause)


def curves_of(estimator: Any, X: Any) -> SurvivalCurves | IncidenceCurves:
    """Return a fitted estimator's predictions as curves, those of whatever predicts inside pipelines and searches.

    scikit-survival's step functions say nothing after their last time, which is the last of the training data.
    """
    inner, X = innermost(estimator, X)
    if hasattr(inner, "predict_curves"):
        curves = inner.predict_curves(X)
        if not isinstance(curves, (SurvivalCurves, IncidenceCurves)):
            raise InputError(
                f"predict_curves must return SurvivalCurves or IncidenceCurves, not {type(curves).__name__}"
            )
        return curves
    if hasattr(inner, "predict_survival_function"):
        return SurvivalCurves.from_step_functions(inner.predict_survival_function(X))
    inside = "" if inner is estimator else f", inside {type(estimator).__name__},"
    raise InputError(
        f"{type(inner).__name__}{inside} has neither predict_curves nor predict_survival_function, so it can't be "
        "scored; survscore.adapters has wrappers for other packages' estimators, and searches need refit=True"
    )


def innermost(estimator: Any, X: Any = None) -> tuple[Any, Any]:
    """Return what predicts inside pipelines, searches and other wrappers, and the covariates as they reach it.

    By scikit-learn's conventions: a pipeline has ``steps``, a fitted search a ``best_estimator_``, another wrapper an
    ``estimator_``, and a ``transform`` of its own if it picks columns.
    """
    while not hasattr(estimator, "predict_curves"):
        # before predict_survival_function, which scikit-survival lends to every Pipeline
        if hasattr(estimator, "steps"):
            X = estimator[:-1].transform(X) if X is not None and len(estimator.steps) > 1 else X
            estimator = estimator[-1]
        elif hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        elif hasattr(estimator, "estimator_") and not hasattr(estimator, "predict_survival_function"):
            X = estimator.transform(X) if X is not None and hasattr(estimator, "transform") else X
            estimator = estimator.estimator_
        else:
            break
    return estimator, X


@dataclass(frozen=True)
class EventKFold:
    """K folds with about the same proportion of events, for each cause; groups are kept together.

    A splitter as scikit-learn's, for its searches and for `cross_validate`. It reads the event out of `Outcomes` or a
    structured array, which ``StratifiedKFold`` can't. With groups it is ``StratifiedGroupKFold``.

    Parameters
    ----------
    n_splits : int, default 5
        The number of folds, at least 2.
    shuffle, random_state
        Whether individuals are shuffled first, and the seed of that.

    Examples
    --------
    >>> import numpy as np
    >>> import survscore as ss
    >>> y = ss.Outcomes(time=[1, 2, 3, 4, 5, 6], event=[1, 1, 1, 0, 0, 0])
    >>> for train, test in ss.EventKFold(3).split(np.zeros((6, 1)), y):
    ...     print(test, y[test].event)
    [0 3] [ True False]
    [1 4] [ True False]
    [2 5] [ True False]
    """

    n_splits: int = 5
    shuffle: bool = False
    random_state: int | None = None

    def __post_init__(self) -> None:
        check_whole("n_splits", self.n_splits, 2)

    def split(
        self, X: Any, y: Any, groups: ArrayLike | None = None
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Yield the positions of those to train on, and of those to test; groups are kept whole, X is not looked at."""
        from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

        outcomes = as_outcomes(y).numpy()
        event = outcomes.event if outcomes.cause is None else outcomes.cause
        if groups is not None:
            groups = np.asarray(groups)
            check_length("groups", len(groups), "y", event.size)
        kind = StratifiedKFold if groups is None else StratifiedGroupKFold
        splitter = kind(self.n_splits, shuffle=self.shuffle, random_state=self.random_state)
        yield from splitter.split(np.zeros((event.size, 1)), event, groups)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds; the arguments are not looked at."""
        return self.n_splits

    def get_metadata_routing(self) -> Any:
        """Request from scikit-learn, where it routes metadata, the groups for `split`, if there are any."""
        from sklearn.utils.metadata_routing import MetadataRequest

        request = MetadataRequest(owner=self)
        request.split.add_request(param="groups", alias=True)
        return request
