"""Scores: a metric under a weighting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from survscore._utils import arrays
from survscore._validation import InputError, check_flag
from survscore.causes import Cause, takes_cause
from survscore.curves import SurvivalCurves
from survscore.engine.averaging import Ranges
from survscore.engine.blocks import GivenPredictions
from survscore.engine.evaluation import Evaluation
from survscore.engine.inputs import of_cause, one_or_more, reads_whole_curves
from survscore.engine.prepared import model_weights
from survscore.engine.sums import loss_cells
from survscore.incidence import IncidenceCurves
from survscore.inference.units import SampleWeights
from survscore.metrics import AUC, DEFAULT_EPSILON, Brier, Log, Loss, Metric, as_metric
from survscore.metrics.discrimination import Controls
from survscore.outcomes import Outcomes
from survscore.results.printing import warn_about
from survscore.results.score_curve import ScoreCurve, ScoreTerms
from survscore.weighting import Weighting


@takes_cause
def brier_score(
    y: Outcomes,
    curves: GivenPredictions,
    *,
    weighting: str | Weighting | None = None,
    times: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    level: float = 0.95,
    ranges: Ranges = None,
    cause: Cause | None = None,
    errors: bool = True,
) -> ScoreCurve:
    r"""Brier score of survival predictions: their squared distance to what happened.

    .. math:: \mathrm{BS}(t) = \frac{1}{\sum_i w_i(t)} \sum_i w_i(t) \left[1\{T^*_i > t\} - \pi_i(t)\right]^2

    Parameters
    ----------
    y : Outcomes
        What was observed.
    curves : SurvivalCurves or CurveBatches
        What was predicted, for the same individuals in the same order.
    weighting : {"administrative", "projected", "uncensored", "ipcw"} or Weighting
        Which individuals count, with which weights: see `Administrative`, `Projected`, `Uncensored` and `IPCW`. There
        is no default for censored data.
    times : array_like, optional
        The evaluation times, strictly increasing. By default the predicted times, if these are few (at most 20), up to
        the 95 % quantile of follow-up (C*, or T where C* is unknown), or to the end of the predictions if that comes
        first. Curves at more times are evaluated at 101 equidistant times from 0 to there.
    groups : array_like of shape (n,), optional
        Labels of individuals that depend on each other, such as the subscriptions of a customer. Standard errors then
        allow for any dependence within groups.
    level : float, default 0.95
        Level of the confidence intervals.
    ranges : list of (lower, upper), or "any", optional
        Ranges of time for means with standard errors (`ScoreCurve.integrated`). By default all times, and
        any range where that is cheap: up to about a thousand million products, such as 100 000 individuals at 101
        times. ``"any"`` computes the covariances over time for any size.
    errors : bool, default True
        Whether to compute standard errors. Scores alone take half the time or less.
    cause : str or int, optional
        Under competing risks, the cause to score, by its name or number; see `Outcomes`. The
        status of an individual is then whether it has had an event of this cause. Predictions are `IncidenceCurves`,
        or survival curves of one minus the incidence of this cause. ``"all"``: the multi-class score over event-free
        and all causes (see the notes), of `IncidenceCurves`.
        ``event_of_interest=`` is the same argument.

    Returns
    -------
    ScoreCurve

    Raises
    ------
    InputError
        If an argument is invalid; the message names it, the rule, and the first value that violates it.
    UnfitError
        If a metric is not defined for these predictions, or under this weighting.

    Warns
    -----
    UndefinedScoreWarning
        If some times have no score: no individual has a weight there, the censoring probability is zero, or the
        predictions do not reach them. Their scores are NaN.
    InterpolationWarning
        If predictions at few times are read between these, and `SurvivalCurves` was given no `interpolation`.

    Notes
    -----
    The administrative score is eq:bs_admin of [1]_, the IPCW score eq:bs_ipcw, the uncensored score eq:full_bs. The
    expectation of the uncensored score is smallest for the true survival; that of the administrative score, too, if C*
    is independent of the event time given the covariates (and with drop-outs, see `Administrative`); that of an IPCW
    score only if the censoring distribution is right, given all that the predictions use, and positive.

    The multi-class score sums over the statuses k, event-free and each cause, with predicted probabilities
    :math:`p_{ik}(t)`:

    .. math:: \frac{1}{\sum_i w_i(t)} \sum_i w_i(t) \sum_k \left[1\{\text{status } k\} - p_{ik}(t)\right]^2

    It is at most 2; of one cause alone it is twice the ordinary score. Under ``"projected"`` each status has strata of
    its own, by the ranks of its predicted probabilities, and tipping points (`Comparison.sensitivity`) are those of a
    factor on the hazards of all causes.

    References
    ----------
    .. [1] Kvamme, H. and Borgan, Ø. (2023). The Brier Score under Administrative Censoring: Problems and Solutions.
       Journal of Machine Learning Research 24(2), 1-26.

    Examples
    --------
    >>> import survscore as ss
    >>> y = ss.Outcomes(time=[1, 3, 4], event=[1, 0, 1], censoring_time=[4, 3, 6])
    >>> curves = ss.SurvivalCurves([[0.5, 0.2], [0.9, 0.7], [0.8, 0.6]], times=[2, 4])
    >>> ss.brier_score(y, curves, weighting="administrative", times=[2, 4]).scores
    array([0.1, 0.2])
    >>> ss.brier_score(y, curves, weighting="ipcw", times=[2, 4]).scores.round(4)
    array([0.1   , 0.2533])
    """
    return _single(
        y,
        curves,
        Brier(),
        weighting,
        times=times,
        groups=groups,
        level=level,
        ranges=ranges,
        errors=errors,
        cause=cause,
    )


@takes_cause
def log_loss(
    y: Outcomes,
    curves: GivenPredictions,
    *,
    weighting: str | Weighting | None = None,
    times: ArrayLike | None = None,
    epsilon: float = DEFAULT_EPSILON,
    groups: ArrayLike | None = None,
    level: float = 0.95,
    ranges: Ranges = None,
    cause: Cause | None = None,
    errors: bool = True,
) -> ScoreCurve:
    r"""Logarithmic loss of survival predictions: minus the binomial log-likelihood of what happened.

    .. math:: \mathrm{LL}(t) = -\frac{1}{\sum_i w_i(t)} \sum_i w_i(t)
        \left(1\{T^*_i > t\} \log \pi_i(t) + 1\{T^*_i \le t\} \log[1 - \pi_i(t)]\right)

    The multi-class loss (``cause="all"``) is minus the logarithm of what was predicted for the status, event-free or
    one of the causes.

    Parameters
    ----------
    y, curves, weighting, times, groups, level, ranges, errors, cause
        As for `brier_score`.
    epsilon : float, default 1e-7
        Probabilities are clipped to [epsilon, 1 - epsilon] first, so that one impossible prediction does not make the
        score infinite. The result names it.

    Returns
    -------
    ScoreCurve

    Raises
    ------
    InputError
        If an argument is invalid; the message names it, the rule, and the first value that violates it.
    UnfitError
        If a metric is not defined for these predictions, or under this weighting.

    Examples
    --------
    >>> import survscore as ss
    >>> y = ss.Outcomes(time=[1, 3], event=[1, 0], censoring_time=[4, 3])
    >>> curves = ss.SurvivalCurves([[0.5], [0.5]], times=[2])
    >>> ss.log_loss(y, curves, weighting="administrative", times=[2]).scores.round(6)
    array([0.693147])
    """
    return _single(
        y,
        curves,
        Log(epsilon),
        weighting,
        times=times,
        groups=groups,
        level=level,
        ranges=ranges,
        errors=errors,
        cause=cause,
    )


@takes_cause
def auc(
    y: Outcomes,
    curves: GivenPredictions,
    *,
    weighting: str | Weighting | None = None,
    times: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    level: float = 0.95,
    ranges: Ranges = None,
    cause: Cause | None = None,
    controls: Controls = "not-case",
    errors: bool = True,
) -> ScoreCurve:
    r"""AUC at each time: the proportion of pairs in which the individual with the event had the higher predicted risk.

    .. math:: \mathrm{AUC}(t) = P(\pi_i(t) < \pi_k(t) \mid T^*_i \le t < T^*_k) \quad\text{(ties count half)}

    over pairs of those who are counted, weighted by both their weights; see `metrics.AUC`.

    Parameters
    ----------
    y, curves, weighting, times, groups, level, ranges, errors, cause
        As for `brier_score`; by default without time 0, and `curves` not in batches.
    controls : {"not-case", "event-free"}, default "not-case"
        Under competing risks, whether those with an event of another cause are among those without; see `metrics.AUC`.

    Returns
    -------
    ScoreCurve
        Higher is better; 0.5 is a coin. Without drop-outs, administrative standard errors are DeLong's.

    Raises
    ------
    InputError
        If an argument is invalid; the message names it, the rule, and the first value that violates it.
    UnfitError
        If a metric is not defined for these predictions, or under this weighting.

    Examples
    --------
    >>> import survscore as ss
    >>> y = ss.Outcomes(time=[1, 3, 4, 5], event=[1, 0, 1, 0], censoring_time=[4, 3, 6, 5])
    >>> curves = ss.SurvivalCurves([[0.5], [0.6], [0.4], [0.9]], times=[2])
    >>> ss.auc(y, curves, weighting="administrative", times=[2]).scores.round(4)
    array([0.6667])
    """
    return _single(
        y,
        curves,
        AUC(controls),
        weighting,
        times=times,
        groups=groups,
        level=level,
        ranges=ranges,
        errors=errors,
        cause=cause,
    )


@takes_cause
def score_all(
    y: Outcomes,
    curves: GivenPredictions,
    *,
    metric: str | Metric | Sequence[str | Metric] = ("brier", "log"),
    weighting: str | Weighting | Sequence[str | Weighting] | None = None,
    times: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    level: float = 0.95,
    ranges: Ranges = None,
    cause: Cause | None = None,
    errors: bool = True,
) -> list[ScoreCurve]:
    """Every metric under every weighting, in one pass over the predictions.

    Parameters
    ----------
    y, curves, times, groups, level, ranges, errors, cause
        As for `brier_score`.
    metric : str or Metric, or several
        What to compute, as for `compare`: "brier", "log", "auc", "slope", "net_benefit@0.1", and so on. Those of all
        that happened up to a time (`Concordance`, `CRPS`, `LogScore`) have one time by default, for all metrics: the
        median of follow-up (C*, or T where C* is unknown), or the end of the predictions if that comes first; of
        predictions at few times, the last of these up to then.
    weighting : {"administrative", "projected", "uncensored", "ipcw"} or Weighting, or several
        Which individuals count, with which weights.

    Returns
    -------
    list of ScoreCurve
        For the first metric under each weighting, then the second metric, and so on.

    Raises
    ------
    InputError
        If an argument is invalid; the message names it, the rule, and the first value that violates it.
    UnfitError
        If a metric is not defined for these predictions, or under this weighting.

    Examples
    --------
    >>> import survscore as ss
    >>> y = ss.Outcomes(time=[1, 3, 4], event=[1, 0, 1], censoring_time=[4, 3, 6])
    >>> curves = ss.SurvivalCurves([[0.5, 0.2], [0.9, 0.7], [0.8, 0.6]], times=[2, 4])
    >>> for score in ss.score_all(y, curves, metric="brier", weighting=["administrative", "ipcw"], times=[2, 4]):
    ...     print(score.weighting, score.scores)
    administrative [0.1 0.2]
    ipcw (Kaplan-Meier of the scored outcomes) [0.1        0.25333333]
    """
    settings = {"groups": groups, "level": level, "ranges": ranges, "errors": errors, "cause": cause}
    return _scored(y, {"curves": curves}, metric=metric, weighting=weighting, times=times, **settings)


def score_among(
    y: Outcomes, models: Mapping[str, GivenPredictions], name: str, *, weighting: Sequence[Weighting], **settings: Any
) -> list[ScoreCurve]:
    """Return what `score_all` does for one of several models; the others serve weightings that depend on them."""
    alone = not any(chosen.depends_on_other_models for chosen in weighting)
    scored_models = {"curves": models[name]} if alone else {name: models[name], **models}
    return _scored(y, scored_models, weighting=weighting, **settings)


def _scored(
    y: Outcomes, models: Mapping[str, GivenPredictions], *, times: Any, cause: Any = None, **settings: Any
) -> list[ScoreCurve]:
    """Score the first of some models."""
    check_flag("errors", settings.get("errors", True))
    metrics = [as_metric(given) for given in one_or_more(settings["metric"], Metric, "metric")]
    whole = times is None or reads_whole_curves(metrics)
    y, models = of_cause(y, models, cause, times=times, whole=whole, multiclass=True)
    evaluation = Evaluation.of(y, models, times=times, **settings)
    results = evaluation.run()
    warn_about(results)
    return [ScoreCurve.of(evaluation, scored, default_times=times is None) for scored in results]


@takes_cause
def score_terms(
    y: Outcomes,
    curves: SurvivalCurves | IncidenceCurves,
    *,
    metric: str | Loss = "brier",
    weighting: str | Weighting | None = None,
    times: ArrayLike | None = None,
    cause: Cause | None = None,
) -> ScoreTerms:
    """Return each individual's loss and weight at each time, before they are summed.

    The weight is that of the weighting, times the individual's sample weight where outcomes have these.

    Parameters
    ----------
    y, curves, weighting, times, cause
        As for `brier_score`, but of one cause at a time.
    metric : {"brier", "log"} or Loss
        What a prediction costs.

    Returns
    -------
    ScoreTerms

    Raises
    ------
    InputError
        If an argument is invalid; the message names it, the rule, and the first value that violates it.
    UnfitError
        If a metric is not defined for these predictions, or under this weighting.

    Examples
    --------
    >>> import survscore as ss
    >>> y = ss.Outcomes(time=[1, 3], event=[1, 0], censoring_time=[4, 3])
    >>> curves = ss.SurvivalCurves([[0.5, 0.2], [0.9, 0.7]], times=[2, 4])
    >>> terms = ss.score_terms(y, curves, weighting="administrative", times=[2, 4])
    >>> terms.weights
    array([[1., 1.],
           [1., 0.]])
    """
    loss = as_metric(metric)
    if not isinstance(loss, Loss):
        raise InputError(f"metric must be a loss, which is known for each individual, not {loss.name!r}")
    y, models = of_cause(y, {"curves": curves}, cause, times=times, whole=times is None, caller="score_terms")
    if y.weights is not None and not bool((y.weights > 0).all()):
        raise InputError("weights must be above zero for score_terms: leave out the others, who have no part in scores")
    evaluation = Evaluation.of(
        y, models, metric=loss, weighting=weighting, times=times, errors=False, needs_numpy="score_terms"
    )
    index = evaluation.index
    if index.times.size == 0:
        raise InputError(
            f"times start at {evaluation.times[0]:g}, after the predictions' last time, {models['curves'].times[-1]:g}"
        )
    weights, m = model_weights(evaluation, evaluation.weightings[0])[0], index.times.size
    event_free = np.arange(m) < weights.event_from(index.before_time, m)[:, None]
    # the own weights also where they are all equal, which scores leave out
    early, late = replace(weights, sample=SampleWeights.of(y)).cells(index.times)
    return ScoreTerms(
        times=index.times,
        losses=loss_cells(
            loss,
            arrays.as_float64(models["curves"].at(index.times)),
            weights.event_free(event_free, index.times, slice(0, m)),
            projected=weights.hidden_share is not None,
        ),
        weights=early + late,
        metric=loss.name,
        weighting=evaluation.labels[0],
    )


def _single(y: Outcomes, curves: GivenPredictions, metric: Metric, weighting: Any, **settings: Any) -> ScoreCurve:
    if isinstance(weighting, (list, tuple)):
        raise InputError("weighting must be one weighting here; score_all takes several")
    (score,) = _scored(y, {"curves": curves}, metric=metric, weighting=weighting, **settings)
    return score
