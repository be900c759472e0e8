"""Scores: a loss under a weighting."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore import _loops
from survscore._validation import InputError, UndefinedScoreWarning, as_times, check_length, plural
from survscore._version import __version__
from survscore.curves import SurvivalCurves
from survscore.losses import DEFAULT_EPSILON, Brier, Log, Loss, as_loss
from survscore.outcomes import Outcomes
from survscore.results import ScoreCurve, ScoreTerms
from survscore.weighting import RowWeights, TimeIndex, Weighting, as_weighting

DEFAULT_STEPS = 100
DEFAULT_QUANTILE = 0.95


@overload
def brier_score(
    y: Outcomes,
    curves: SurvivalCurves,
    *,
    weighting: str | Weighting | None = ...,
    times: ArrayLike | None = ...,
    reduce: Literal[True] = ...,
) -> ScoreCurve: ...
@overload
def brier_score(
    y: Outcomes,
    curves: SurvivalCurves,
    *,
    weighting: str | Weighting | None = ...,
    times: ArrayLike | None = ...,
    reduce: Literal[False],
) -> ScoreTerms: ...
def brier_score(
    y: Outcomes,
    curves: SurvivalCurves,
    *,
    weighting: str | Weighting | None = None,
    times: ArrayLike | None = None,
    reduce: bool = True,
) -> ScoreCurve | ScoreTerms:
    r"""Brier score of survival predictions: their squared distance to what happened.

    .. math:: \mathrm{BS}(t) = \frac{1}{\sum_i w_i(t)} \sum_i w_i(t) \left[1\{T^*_i > t\} - \pi_i(t)\right]^2

    Parameters
    ----------
    y : Outcomes
        What was observed.
    curves : SurvivalCurves
        What was predicted, for the same individuals in the same order.
    weighting : {"administrative", "uncensored", "ipcw"} or Weighting
        Whom to count, and how much: see `Administrative`, `Uncensored` and `IPCW`. There is no default for
        censored data.
    times : array_like, optional
        The evaluation times, strictly increasing. By default 101 equidistant times from 0 to the 95 % quantile of
        follow-up (C*, or T where C* is unknown), or to the end of the predictions if that comes first.
    reduce : bool, default True
        False returns each individual's loss and weight instead of their weighted mean.

    Returns
    -------
    ScoreCurve or ScoreTerms

    Warns
    -----
    UndefinedScoreWarning
        If some times have no score: nobody has a weight there, the censoring probability is zero, or the
        predictions do not reach them. Their scores are NaN.

    Notes
    -----
    The administrative score is eq:bs_admin of [1]_, the IPCW score eq:bs_ipcw, the uncensored score eq:full_bs. The
    expectation of the administrative and the uncensored score is smallest for the true survival; that of an IPCW score
    is so only if the censoring distribution is right and positive.

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
    >>> ss.brier_score(y, curves, weighting=ss.IPCW(max_weight=1), times=[2, 4]).scores
    array([0.1, 0.2])
    """
    return _one_score(y, curves, Brier(), weighting, times, reduce)


@overload
def log_loss(
    y: Outcomes,
    curves: SurvivalCurves,
    *,
    weighting: str | Weighting | None = ...,
    times: ArrayLike | None = ...,
    epsilon: float = ...,
    reduce: Literal[True] = ...,
) -> ScoreCurve: ...
@overload
def log_loss(
    y: Outcomes,
    curves: SurvivalCurves,
    *,
    weighting: str | Weighting | None = ...,
    times: ArrayLike | None = ...,
    epsilon: float = ...,
    reduce: Literal[False],
) -> ScoreTerms: ...
def log_loss(
    y: Outcomes,
    curves: SurvivalCurves,
    *,
    weighting: str | Weighting | None = None,
    times: ArrayLike | None = None,
    epsilon: float = DEFAULT_EPSILON,
    reduce: bool = True,
) -> ScoreCurve | ScoreTerms:
    r"""Logarithmic loss of survival predictions: minus the binomial log-likelihood of what happened.

    .. math:: \mathrm{LL}(t) = -\frac{1}{\sum_i w_i(t)} \sum_i w_i(t)
        \left(1\{T^*_i > t\} \log \pi_i(t) + 1\{T^*_i \le t\} \log[1 - \pi_i(t)]\right)

    Parameters
    ----------
    y, curves, weighting, times, reduce
        As for `brier_score`.
    epsilon : float, default 1e-7
        Probabilities are clipped to [epsilon, 1 - epsilon] first, so that one impossible prediction does not make the
        score infinite. The result names it.

    Returns
    -------
    ScoreCurve or ScoreTerms

    Examples
    --------
    >>> import survscore as ss
    >>> y = ss.Outcomes(time=[1, 3], event=[1, 0], censoring_time=[4, 3])
    >>> curves = ss.SurvivalCurves([[0.5], [0.5]], times=[2])
    >>> ss.log_loss(y, curves, weighting="administrative", times=[2]).scores.round(6)
    array([0.693147])
    """
    return _one_score(y, curves, Log(epsilon), weighting, times, reduce)


def score_all(
    y: Outcomes,
    curves: SurvivalCurves,
    *,
    losses: Sequence[str | Loss] = ("brier", "log"),
    weightings: Sequence[str | Weighting],
    times: ArrayLike | None = None,
) -> list[ScoreCurve]:
    """Every loss under every weighting, in one pass over the predictions.

    Parameters
    ----------
    y, curves, times
        As for `brier_score`.
    losses : sequence of {"brier", "log"} or Loss
        What a prediction costs.
    weightings : sequence of {"administrative", "uncensored", "ipcw"} or Weighting
        Whom to count, and how much.

    Returns
    -------
    list of ScoreCurve
        For the first loss under each weighting, then the second loss, and so on.

    Examples
    --------
    >>> import survscore as ss
    >>> y = ss.Outcomes(time=[1, 3, 4], event=[1, 0, 1], censoring_time=[4, 3, 6])
    >>> curves = ss.SurvivalCurves([[0.5, 0.2], [0.9, 0.7], [0.8, 0.6]], times=[2, 4])
    >>> for score in ss.score_all(y, curves, losses=["brier"], weightings=["administrative", "ipcw"], times=[2, 4]):
    ...     print(score.weighting, score.scores)
    administrative [0.1 0.2]
    ipcw (Kaplan-Meier of the scored outcomes) [0.1        0.25333333]
    """
    _check_inputs(y, curves)
    if isinstance(losses, (str, Loss)) or isinstance(weightings, (str, Weighting)):
        raise InputError("losses and weightings are sequences; put a single one into a list")
    if not losses or not weightings:
        raise InputError("losses and weightings must not be empty")
    return _score(y, curves, [as_loss(loss) for loss in losses], [as_weighting(w, y) for w in weightings], times, 4)


def default_times(y: Outcomes, curves: SurvivalCurves) -> NDArray[np.float64]:
    """Return equidistant times from 0 to where 5 % of the individuals are still followed, within the curves' reach.

    A score further out rests on few individuals; whoever wants it names the times.
    """
    follow_up = y.time if y.censoring_time is None else y.censoring_time
    finite = follow_up[np.isfinite(follow_up)]
    last = float(np.quantile(finite, DEFAULT_QUANTILE)) if finite.size else float(y.time.max())
    if curves.beyond == "nan":
        last = min(last, float(curves.times[-1]))
    return np.linspace(0.0, last, DEFAULT_STEPS + 1) if last > 0 else np.zeros(1)


def _one_score(
    y: Outcomes,
    curves: SurvivalCurves,
    loss: Loss,
    weighting: str | Weighting | None,
    times: ArrayLike | None,
    reduce: bool,
) -> ScoreCurve | ScoreTerms:
    _check_inputs(y, curves)
    chosen = as_weighting(weighting, y)
    if reduce:
        return _score(y, curves, [loss], [chosen], times, 5)[0]
    return _terms(y, curves, loss, chosen, times)


def _check_inputs(y: Outcomes, curves: SurvivalCurves) -> None:
    if not isinstance(y, Outcomes):
        raise InputError(f"y must be Outcomes, not {type(y).__name__}")
    if not isinstance(curves, SurvivalCurves):
        raise InputError(f"curves must be SurvivalCurves, not {type(curves).__name__}")
    check_length("curves", len(curves), "y", len(y))


def _score(
    y: Outcomes,
    curves: SurvivalCurves,
    losses: Sequence[Loss],
    weightings: Sequence[Weighting],
    times: ArrayLike | None,
    stacklevel: int,
) -> list[ScoreCurve]:
    wanted = default_times(y, curves) if times is None else as_times(times)
    reached = curves.reaches(wanted)  # a range from the first time on
    scored = wanted[reached]
    shape = (len(weightings), wanted.size)
    sums = np.full((len(losses), *shape), np.nan)
    weight_sums, n_effective = np.full(shape, np.nan), np.full(shape, np.nan)
    reasons: list[dict[str, int]] = [{} for _ in weightings]
    if scored.size:
        _loops.load_compiled_if_large(len(y) * scored.size)
        index = TimeIndex(y, scored)
        weights = [weighting.prepare(index) for weighting in weightings]
        by_status, weights_by_status, found_squares = _loops.weighted_sums(curves, scored, losses, weights)
        found, found_weights = by_status.sum(axis=0), weights_by_status.sum(axis=0)
        for q, w in enumerate(weights):
            undefined, reasons[q] = _undefined(w, scored, found_weights[q])
            found[:, q, undefined] = found_weights[q, undefined] = np.nan
        sums[..., reached], weight_sums[:, reached] = found, found_weights
        with np.errstate(invalid="ignore"):
            n_effective[:, reached] = found_weights**2 / found_squares
    if not reached.all():
        far = {f"the predictions end at {curves.times[-1]:g}": int((~reached).sum())}
        reasons = [{**reason, **far} for reason in reasons]
    _warn(reasons, weightings, stacklevel)
    return [
        ScoreCurve(
            times=wanted,
            scores=sums[k, q] / (weight_sums[q] if weighting.normalize == "weights" else len(y)),
            n_effective=n_effective[q],
            weight_sums=weight_sums[q],
            n=len(y),
            loss=loss.name,
            weighting=str(weighting),
            default_times=times is None,
            undefined=reasons[q],
            settings=_settings(loss, weighting, curves),
        )
        for k, loss in enumerate(losses)
        for q, weighting in enumerate(weightings)
    ]


def _settings(loss: Loss, weighting: Weighting, curves: SurvivalCurves) -> dict[str, object]:
    settings: dict[str, object] = {
        "survscore": __version__,
        "loss": loss.name,
        "weighting": str(weighting),
        "max_weight": getattr(weighting, "max_weight", None),
        "normalize": weighting.normalize,
        "between": curves.between,
        "beyond": curves.beyond,
    }
    if loss.epsilon:
        settings["epsilon"] = loss.epsilon
    return settings


def _undefined(
    weights: RowWeights, times: NDArray[np.float64], weight_sums: NDArray[np.float64]
) -> tuple[NDArray[np.bool_], dict[str, int]]:
    """Return at which times a weighting has nothing to say, and why."""
    unreached = np.zeros(times.size, dtype=np.bool_)
    if weights.censoring is not None:
        unreached = ~weights.censoring.reaches(times)
    infinite = ~np.isfinite(weight_sums) & ~unreached
    if weights.free_weight is not None:
        infinite |= ~np.isfinite(weights.free_weight)
    empty = (weight_sums == 0) & ~unreached & ~infinite
    found = {
        "the censoring curves end before": unreached,
        "the censoring survival is zero (a max_weight would bound the weights)": infinite,
        "nobody has a weight": empty,
    }
    return unreached | infinite | empty, {reason: int(at.sum()) for reason, at in found.items() if at.any()}


def _warn(reasons: Sequence[dict[str, int]], weightings: Sequence[Weighting], stacklevel: int) -> None:
    """Warn once about all times without score, at the user's line."""
    told = [
        f"{weighting}: "
        + ", ".join(f"{plural(count, 'time')} where {reason}" for reason, count in reason_counts.items())
        for weighting, reason_counts in zip(weightings, reasons, strict=True)
        if reason_counts
    ]
    if told:
        warnings.warn(f"scores are NaN under {'; '.join(told)}", UndefinedScoreWarning, stacklevel=stacklevel)


def _terms(
    y: Outcomes, curves: SurvivalCurves, loss: Loss, weighting: Weighting, times: ArrayLike | None
) -> ScoreTerms:
    wanted = default_times(y, curves) if times is None else as_times(times)
    scored = wanted[curves.reaches(wanted)]
    if scored.size == 0:
        raise InputError(f"times start at {wanted[0]:g}, after the predictions' last time, {curves.times[-1]:g}")
    weights = weighting.prepare(TimeIndex(y, scored))
    survival = None if weights.censoring is None else weights.censoring.at(scored)
    values = curves.at(scored)
    return ScoreTerms(
        times=scored,
        losses=loss(values, _loops.event_free([weights], scored.size)),
        weights=weights.cells(scored.size, survival),
        loss=loss.name,
        weighting=str(weighting),
    )
