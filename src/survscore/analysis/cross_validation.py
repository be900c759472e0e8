"""Which estimator is better, by predictions for individuals that it has not seen."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._utils.frames import collected, n_rows_of, take_rows
from survscore._utils.jobs import Progress, results_of, telling
from survscore._validation import (
    FewFollowedWarning,
    InputError,
    InterpolationWarning,
    UndefinedScoreWarning,
    check_length,
    check_whole,
    plural,
    warn,
)
from survscore._version import __version__
from survscore.analysis.compare import Request, compare
from survscore.analysis.selection import EventKFold, curves_of, innermost
from survscore.causes import Cause, takes_cause
from survscore.curves import SurvivalCurves
from survscore.engine.averaging import WhereNaN
from survscore.engine.inputs import Null, one_or_more
from survscore.incidence import IncidenceCurves
from survscore.metrics import Metric, as_metric, cause_label
from survscore.outcomes import Outcomes, as_outcomes
from survscore.results.comparison import Comparison
from survscore.results.latex import MatrixEntry
from survscore.results.long_tables import stacked
from survscore.results.printing import undefined_times
from survscore.results.score_curve import ScoreCurve
from survscore.results.tables import PrintedAsTables, Tables
from survscore.scores import score_among
from survscore.weighting import Weighting, as_weighting, default_weightings

if TYPE_CHECKING:
    import pandas as pd

#: Packages whose estimators want another target, and what makes them take ours.
WRAPPERS = {"sksurv": "ScikitSurvival", "xgboost": "XGBoost", "skpro": "Skpro"}
Split = tuple[NDArray[np.intp], NDArray[np.intp]]
Curves = SurvivalCurves | IncidenceCurves
#: The curves of a fold, and the seconds that fitting and predicting took.
Fit = tuple[Curves, float, float]


@takes_cause
def cross_validate(
    estimators: Mapping[str, Any],
    X: Any,
    y: Any,
    *,
    cv: Any = 5,
    metric: str | Metric | Sequence[str | Metric] = "brier",
    weighting: str | Weighting | Sequence[str | Weighting] | None = None,
    times: ArrayLike | None = None,
    cause: Cause | None = None,
    groups: ArrayLike | None = None,
    reference: str | None = None,
    null: Null = True,
    level: float = 0.95,
    n_jobs: int | None = None,
    seed: int = 0,
    progress: Progress | bool | None = None,
) -> CrossValidation:
    r"""Compare estimators by their predictions for individuals that they were not fitted to.

    Each is fitted on the same folds. Each individual's curve comes from the one fit that has not seen it, these curves
    are put together, and `compare` scores them once, on all individuals, paired.

    Parameters
    ----------
    estimators : mapping of str to estimator
        With ``fit(X, y)``, and curves as `make_scorer` takes them: models of this library, pipelines and searches of
        them, and other packages' estimators in the wrappers of ``survscore.adapters``. They are cloned.
    X : array_like or data frame
        Covariates.
    y : Outcomes or structured array
        What was observed. Estimators are given the same kind, with all causes under competing risks.
    cv : int, splitter or iterable of (train, test), default 5
        The folds. An int stands for `EventKFold`, shuffled by `seed`, which keeps `groups` together. Each
        individual must be tested exactly once. Other splitters that shuffle get the seed if they have none.
    metric, weighting, times, cause, reference, null, level
        As for `compare`, by default with the administrative and the projected weighting where :math:`C^*` is known.
        Values that a weighting holds for each individual (strata, curves) are cut to each fold.
    groups : array_like of shape (n,), optional
        Labels of individuals that belong together, for the folds and for the standard errors. There is a warning if
        `cv` does not keep them together: then models are tested on individuals whose like they have seen.
    n_jobs : int, optional
        How many fits at once, as for scikit-learn: in processes, or in threads within
        ``joblib.parallel_config("threading")``.
    seed : int, default 0
        Of the folds, and of every ``random_state`` that the estimators leave at None. The same seed gives the same
        result, whatever `n_jobs`.
    progress : bool or callable, optional
        Whether to show a bar; by default on a terminal. A function is called with (done, total, what).

    Returns
    -------
    CrossValidation

    Raises
    ------
    InputError
        If an argument is invalid; the message names it, the rule, and the first value that violates it.
    UnfitError
        If a metric is not defined for these predictions, or under this weighting.

    Notes
    -----
    Intervals are computed as if the fitted models were given and individuals scored independently. Neither holds, so
    the level is not exact: each individual is in the training data of all other folds, and how models vary with their
    training data is not in the variance. Cross-validation rather estimates the mean score of the procedure, over
    training data of that size, than that of the models fitted [1]_. Simulated (``benchmarks/cross_validation.py``:
    200 individuals, two logistic models, nominal 95 %, 300 replicates), intervals of the difference covered the former
    in 95 % and the latter in 82 %; on fresh individuals, the latter in 93 %. For an interval about one fitted model,
    keep a test set.

    What a weighting estimates, as IPCW does the censoring distribution, and the Kaplan-Meier null model, are of
    all individuals together. The scores of single folds (`CrossValidation.folds`) estimate it of that fold, as a scorer
    in scikit-learn's ``cross_val_score`` does, so that their mean is not the pooled score. Metrics that rank ("auc",
    "concordance") also compare individuals of different folds, and so predictions of different fits, which costs
    something where these differ in level; the table of folds has the values within folds.

    References
    ----------
    .. [1] Bates, S., Hastie, T. and Tibshirani, R. (2024). Cross-validation: what does it estimate and how well does it
       do it? Journal of the American Statistical Association 119(546), 1434-1445.

    Examples
    --------
    >>> import numpy as np
    >>> import survscore as ss
    >>> from lifelines import CoxPHFitter, WeibullAFTFitter
    >>> rng = np.random.default_rng(1)
    >>> X, end = rng.normal(size=(300, 2)), rng.uniform(1, 3, 300)
    >>> time = rng.exponential(np.exp(X[:, 0]))
    >>> y = ss.Outcomes(np.minimum(time, end), time <= end, end)
    >>> estimators = {
    ...     "Cox": ss.adapters.Lifelines(CoxPHFitter()),
    ...     "Weibull": ss.adapters.Lifelines(WeibullAFTFitter()),
    ... }
    >>> result = ss.cross_validate(estimators, X, y, weighting="administrative", times=[0.5, 1, 2])
    >>> result
    CrossValidation('Cox', 'Weibull'; 5 folds, 300 individuals, brier (lower is better), administrative, 3 times)
    >>> result.comparison.integrated().scores[["model", "score", "se"]].round(3)
              model  score     se
    0           Cox  0.151  0.009
    1       Weibull  0.151  0.009
    2  Kaplan-Meier  0.205  0.008
    """
    outcomes = as_outcomes(y) if cause is None else as_outcomes(y).for_cause(cause)
    _ = outcomes.event_of_interest  # raises, if there are several causes and none was chosen
    request = _request(metric, weighting, outcomes)  # an error in it is raised before anything is fitted
    folds = out_of_fold(estimators, X, y, cv=cv, groups=groups, n_jobs=n_jobs, seed=seed, progress=progress)
    folds = replace(folds, y=outcomes)
    curves = folds.curves()
    comparison: Comparison = compare(
        outcomes,
        curves,
        metric=request.metric,
        weighting=request.weighting,
        times=times,
        reference=reference,
        null=null,
        groups=folds.groups,
        level=level,
    )
    scored = _fold_scores(folds, request, comparison.times)
    fold = np.empty(len(outcomes), dtype=np.intp)
    for k, (_, test) in enumerate(folds.splits):
        fold[test] = k
    settings = {
        "survscore": __version__,
        "seed": seed,
        "cv": folds.described,
        "n_splits": len(folds.splits),
        "groups": groups is not None,
        "estimators": {name: repr(estimator) for name, estimator in estimators.items()},
        "metrics": comparison.metrics,
        "weightings": comparison.weightings,
        "times": comparison.times.tolist(),
        "cause": comparison.scored[0].settings.get("cause"),
        "reference": comparison.reference,
        "level": level,
        "curves": comparison.scored[0].settings["curves"],
    }
    return CrossValidation(comparison, curves, outcomes, fold, scored, settings)


def _request(metric: Any, weighting: Any, y: Outcomes) -> Request:
    """Return metrics and weightings, those of `compare` by default; raise where they do not fit these individuals."""
    metrics = [as_metric(given) for given in one_or_more(metric, Metric, "metric")]
    if weighting is None:
        return Request(metrics, default_weightings(y, metrics))
    return Request(metrics, [as_weighting(given, y) for given in one_or_more(weighting, Weighting, "weighting")])


@dataclass(frozen=True, eq=False)
class OutOfFold:
    """What estimators predict for individuals that they were not fitted to."""

    y: Outcomes
    groups: NDArray[Any] | None
    splits: list[Split]
    described: str  # the folds in words
    fits: dict[str, list[Fit]]  # by estimator, for each fold

    def curves(self) -> dict[str, Curves]:
        """Return the curves of all individuals, in the order of the data."""
        order = np.argsort(np.concatenate([test for _, test in self.splits]), kind="stable")
        parts: dict[str, list[Any]] = {name: [curves for curves, *_ in fits] for name, fits in self.fits.items()}
        return {name: type(several[0]).concatenate(several)[order] for name, several in parts.items()}


def out_of_fold(
    estimators: Mapping[str, Any],
    X: Any,
    y: Any,
    *,
    cv: Any,
    groups: ArrayLike | None,
    seed: int,
    n_jobs: int | None,
    progress: Progress | bool | None,
) -> OutOfFold:
    """Fit estimators on folds; see `cross_validate`."""
    named = _as_named(estimators)
    check_whole("seed", seed, 0)
    X = collected(X)
    outcomes = as_outcomes(y)
    check_length("y", len(outcomes), "X", n_rows_of(X))
    labels = None if groups is None else np.asarray(groups)
    if labels is not None:
        check_length("groups", len(labels), "y", len(outcomes))
    splits, described = _splits(cv, X, y, len(outcomes), labels, seed)
    # every fit has a seed of its own, which does not depend on the worker or the order
    seeds = np.random.SeedSequence(seed).generate_state(len(named) * len(splits)).reshape(len(named), -1)
    tasks = [(name, k, int(seeds[i, k]) >> 1) for i, name in enumerate(named) for k in range(len(splits))]
    calls = ((_fit_one, name, named[name], X, y, k, *splits[k], fit_seed) for name, k, fit_seed in tasks)
    fits: dict[str, list[Fit]] = {name: [] for name in named}
    with telling(progress) as report:
        report(0, len(tasks), tasks[0][0])
        with results_of(calls, n_jobs) as finished:
            for done, ((name, k, _), fit) in enumerate(zip(tasks, finished, strict=True), start=1):
                fits[name].append(fit)
                report(done, len(tasks), f"{name}, fold {k}")
    return OutOfFold(outcomes, labels, splits, described, fits)


@dataclass(frozen=True, eq=False)
class FoldScores:
    """The scores of an estimator on a fold, one `ScoreCurve` per metric and weighting, and what they took."""

    estimator: str
    fold: int
    scores: tuple[ScoreCurve, ...]
    n: int
    n_events: int
    fit_seconds: float
    score_seconds: float


def _fold_scores(folds: OutOfFold, request: Request, times: NDArray[np.float64]) -> tuple[FoldScores, ...]:
    """Score each estimator on each fold, with what the weightings hold of the fold's individuals."""
    fold_scores = []
    requests = [request.of_rows(folds.y, test) for _, test in folds.splits]
    for name, k in product(folds.fits, range(len(folds.splits))):
        y = folds.y[folds.splits[k][1]]
        _, fit_seconds, predict_seconds = folds.fits[name][k]
        curves = {each: fits[k][0] for each, fits in folds.fits.items()}
        started = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InterpolationWarning)  # which `compare` gave about all folds together
            warnings.simplefilter("ignore", FewFollowedWarning)  # which is about intervals: folds have none
            warnings.simplefilter("ignore", UndefinedScoreWarning)  # once about all folds, below
            scores = score_among(
                y, curves, name, metric=requests[k].metric, weighting=requests[k].weighting, times=times, errors=False
            )
        seconds = predict_seconds + time.perf_counter() - started
        n_events = int(y.event_of_interest.sum())
        fold_scores.append(FoldScores(name, k, tuple(scores), len(y), n_events, fit_seconds, seconds))
    _warn_about_undefined(fold_scores, len(folds.splits))
    return tuple(fold_scores)


def _warn_about_undefined(fold_scores: Sequence[FoldScores], n_folds: int) -> None:
    """Warn once about all folds that lack scores at some times, with the reasons in the first of them."""
    messages = ((result.fold, undefined_times(score.scored for score in result.scores)) for result in fold_scores)
    lacking = {fold: message for fold, message in messages if message is not None}
    if lacking:
        first = min(lacking)
        warn(
            f"{len(lacking)} of {plural(n_folds, 'fold')} lack scores; in fold {first}, {lacking[first]}",
            UndefinedScoreWarning,
        )


@dataclass(frozen=True, eq=False, repr=False)
class CrossValidation(PrintedAsTables):
    """Result of `cross_validate`.

    Attributes
    ----------
    comparison : Comparison
        Of all estimators on all individuals.
    curves, y
        What each estimator predicted for those it had not seen, and what was observed, in the order of the data: for
        `report`, `calibration`, `score_table` and whatever else takes predictions.
    fold : ndarray of shape (n,)
        In which fold, from 0, each individual was tested.
    fold_scores : tuple of FoldScores
        Of every estimator on every fold.
    settings : dict
        Plain data: version, seed, folds, estimators, and what was computed.
    """

    comparison: Comparison
    curves: dict[str, Curves]
    y: Outcomes
    fold: NDArray[np.intp]
    fold_scores: tuple[FoldScores, ...]
    settings: dict[str, Any]

    @property
    def folds(self) -> pd.DataFrame:
        """Long table: estimator, fold, metric, weighting, time, score, n, n_events, fit_seconds, score_seconds.

        Scores are NaN at times at which a fold has none. Seconds of scoring include those of predicting.
        """
        return self._table(lambda score: {"time": score.times, "score": score.scores})

    def integrated_folds(
        self, lower: float | None = None, upper: float | None = None, *, nan: WhereNaN = "raise"
    ) -> pd.DataFrame:
        """Return the same for the scores' mean over a range of time; see `ScoreCurve.integrated`.

        A fold that has no mean by some metric is NaN there; if none has one, the reason is raised.
        """
        scores = [score for result in self.fold_scores for score in result.scores]
        failed: list[InputError] = []

        def mean(score: ScoreCurve) -> dict[str, Any]:
            try:
                integrated = score.integrated(lower, upper, nan=nan)
            except InputError as error:
                failed.append(error)
                if len(failed) == len(scores):
                    raise
                return dict.fromkeys(("from", "to", "score"), math.nan)
            return {"from": integrated.range[0], "to": integrated.range[1], "score": integrated.value}

        return self._table(mean)

    def _table(self, columns: Callable[[ScoreCurve], dict[str, Any]]) -> pd.DataFrame:
        parts = []
        for result in self.fold_scores:
            after = {name: getattr(result, name) for name in ("n", "n_events", "fit_seconds", "score_seconds")}
            for score in result.scores:
                of = {"metric": score.metric, "weighting": score.weighting, **columns(score)}
                parts.append({"estimator": result.estimator, "fold": result.fold, **of, **after})
        return stacked(parts)

    def _printed(self) -> Tables:
        tables = self.comparison._printed()
        caption = f"{self.settings['n_splits']} folds, predictions out of fold; {tables.caption}"
        return Tables(caption, tables.parts, tables.lead)

    def _entries(self, unit: str | None) -> tuple[list[MatrixEntry], Sequence[str]]:
        return self.comparison._entries(unit)

    def __repr__(self) -> str:
        directions = dict.fromkeys(
            f"{cause_label(scored.metric, scored.cause)} ({scored.direction} is better)"
            for scored in self.comparison.scored
        )
        return (
            f"CrossValidation({', '.join(map(repr, self.curves))}; {self.settings['n_splits']} folds, "
            f"{plural(len(self.y), 'individual')}, {', '.join(directions)}, {'; '.join(self.comparison.weightings)}, "
            f"{plural(self.comparison.times.size, 'time')})"
        )


def _as_named(estimators: Any) -> dict[str, Any]:
    if not isinstance(estimators, Mapping):
        raise InputError(f"estimators must be a mapping of names to estimators, not {type(estimators).__name__}")
    if not estimators:
        raise InputError("estimators is empty")
    named = {str(name): estimator for name, estimator in estimators.items()}
    for name, estimator in named.items():
        if not hasattr(estimator, "fit") or not hasattr(estimator, "get_params"):
            raise InputError(
                f"estimator {name!r} must be a scikit-learn estimator, with fit and get_params, not "
                f"{type(estimator).__name__}; survscore.adapters has wrappers"
            )
    return named


def _splits(cv: Any, X: Any, y: Any, n: int, groups: NDArray[Any] | None, seed: int) -> tuple[list[Split], str]:
    """Return the folds, and what they are in words."""
    from sklearn.model_selection import check_cv

    if isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
        cv = EventKFold(int(cv), shuffle=True, random_state=seed)
    elif getattr(cv, "shuffle", True) and getattr(cv, "random_state", seed) is None:
        cv = copy(cv)
        object.__setattr__(cv, "random_state", seed)  # ours is frozen
    try:
        splitter = check_cv(cv)
    except ValueError as error:
        raise InputError(f"cv must be a number of folds, a splitter or pairs (train, test): {error}") from None
    splits = [(np.arange(n)[train], np.arange(n)[test]) for train, test in splitter.split(X, y, groups)]
    tested = np.zeros(n, dtype=np.intp)
    for k, (train, test) in enumerate(splits):
        np.add.at(tested, test, 1)
        shared = np.intersect1d(train, test)
        if shared.size:
            raise InputError(
                f"cv: fold {k} tests {plural(shared.size, 'individual')} that it trains on, the first {shared[0]}"
            )
    if (tested != 1).any():
        never, often = np.count_nonzero(tested == 0), np.count_nonzero(tested > 1)
        raise InputError(
            f"cv must test each individual exactly once, so that each has one prediction: of {n}, {never} are not "
            f"tested and {often} more than once"
        )
    if groups is not None:
        torn = [np.unique(groups[test][np.isin(groups[test], groups[train])]) for train, test in splits]
        count = np.unique(np.concatenate(torn)).size
        if count:
            warn(
                f"cv does not keep groups together: of {np.unique(groups).size}, {count} are in the training and the "
                "test data of a fold, so scores may be too good; EventKFold keeps them together"
            )
    return splits, repr(cv) if hasattr(cv, "split") else f"{len(splits)} given folds"


def _fit_one(
    name: str, estimator: Any, X: Any, y: Any, k: int, train: NDArray[np.intp], test: NDArray[np.intp], seed: int
) -> Fit:
    from sklearn.base import clone

    # a seed wherever the estimator leaves its random state open, and no bar inside our bar
    settled = {"random_state": seed, "progress": False}
    try:
        started = time.perf_counter()
        estimator = clone(estimator)
        names = {full: full.rsplit("__", 1)[-1] for full, value in estimator.get_params().items() if value is None}
        estimator.set_params(**{full: settled[last] for full, last in names.items() if last in settled})
        fitted = estimator.fit(take_rows(X, train), y[train])
        fitted_at = time.perf_counter()
        history = getattr(innermost(fitted)[0], "history_", None)
        if getattr(history, "stopped", None) == "interrupted":  # by whom a network stops its training: here, all stops
            raise KeyboardInterrupt
        curves = curves_of(fitted, take_rows(X, test))
        check_length("the predictions", len(curves), "the fold", test.size)
    except Exception as error:
        wrapper = WRAPPERS.get(type(estimator).__module__.split(".")[0])
        hint = "" if wrapper is None else f" (survscore.adapters.{wrapper} makes it take Outcomes)"
        raise InputError(f"estimator {name!r} failed in fold {k}: {type(error).__name__}: {error}{hint}") from error
    return curves, fitted_at - started, time.perf_counter() - fitted_at
