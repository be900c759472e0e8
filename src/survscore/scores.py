"""Scores: a loss under a weighting."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore import _loops
from survscore._validation import InputError, UndefinedScoreWarning, as_times, check_length, plural
from survscore._version import __version__
from survscore.curves import SurvivalCurves
from survscore.inference import Groups, normal_quantile
from survscore.influence import Influence, ScoredModel
from survscore.losses import DEFAULT_EPSILON, Brier, Log, Loss, as_loss
from survscore.outcomes import Outcomes
from survscore.results import ScoreCurve, ScoreTerms
from survscore.weighting import IPCW, RowWeights, TimeIndex, Weighting, as_weighting

DEFAULT_STEPS = 100
DEFAULT_QUANTILE = 0.95


@overload
def brier_score(
    y: Outcomes,
    curves: SurvivalCurves,
    *,
    weighting: str | Weighting | None = ...,
    times: ArrayLike | None = ...,
    groups: ArrayLike | None = ...,
    level: float = ...,
    reduce: Literal[True] = ...,
) -> ScoreCurve: ...
@overload
def brier_score(
    y: Outcomes,
    curves: SurvivalCurves,
    *,
    weighting: str | Weighting | None = ...,
    times: ArrayLike | None = ...,
    groups: ArrayLike | None = ...,
    level: float = ...,
    reduce: Literal[False],
) -> ScoreTerms: ...
def brier_score(
    y: Outcomes,
    curves: SurvivalCurves,
    *,
    weighting: str | Weighting | None = None,
    times: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    level: float = 0.95,
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
    groups : array_like of shape (n,), optional
        Labels of individuals that belong together, such as a customer's several subscriptions. Standard errors then
        allow for any dependence within groups.
    level : float, default 0.95
        Of the confidence intervals.
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
    is so only if the censoring distribution is right, given all that the predictions use, and positive.

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
    return _one_score(y, curves, Brier(), weighting, times, reduce, groups, level)


@overload
def log_loss(
    y: Outcomes,
    curves: SurvivalCurves,
    *,
    weighting: str | Weighting | None = ...,
    times: ArrayLike | None = ...,
    epsilon: float = ...,
    groups: ArrayLike | None = ...,
    level: float = ...,
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
    groups: ArrayLike | None = ...,
    level: float = ...,
    reduce: Literal[False],
) -> ScoreTerms: ...
def log_loss(
    y: Outcomes,
    curves: SurvivalCurves,
    *,
    weighting: str | Weighting | None = None,
    times: ArrayLike | None = None,
    epsilon: float = DEFAULT_EPSILON,
    groups: ArrayLike | None = None,
    level: float = 0.95,
    reduce: bool = True,
) -> ScoreCurve | ScoreTerms:
    r"""Logarithmic loss of survival predictions: minus the binomial log-likelihood of what happened.

    .. math:: \mathrm{LL}(t) = -\frac{1}{\sum_i w_i(t)} \sum_i w_i(t)
        \left(1\{T^*_i > t\} \log \pi_i(t) + 1\{T^*_i \le t\} \log[1 - \pi_i(t)]\right)

    Parameters
    ----------
    y, curves, weighting, times, groups, level, reduce
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
    return _one_score(y, curves, Log(epsilon), weighting, times, reduce, groups, level)


def score_all(
    y: Outcomes,
    curves: SurvivalCurves,
    *,
    losses: Sequence[str | Loss] = ("brier", "log"),
    weightings: Sequence[str | Weighting],
    times: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    level: float = 0.95,
) -> list[ScoreCurve]:
    """Every loss under every weighting, in one pass over the predictions.

    Parameters
    ----------
    y, curves, times, groups, level
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
    check_inputs(y, curves)
    if isinstance(losses, (str, Loss)) or isinstance(weightings, (str, Weighting)):
        raise InputError("losses and weightings are sequences; put a single one into a list")
    if not losses or not weightings:
        raise InputError("losses and weightings must not be empty")
    chosen = [as_weighting(weighting, y) for weighting in weightings]
    return _score(y, curves, [as_loss(loss) for loss in losses], chosen, times, groups, level, stacklevel=4)


def default_times(y: Outcomes, several: Iterable[SurvivalCurves]) -> NDArray[np.float64]:
    """Return equidistant times from 0 to where 5 % of the individuals are still followed, within the curves' reach.

    A score further out rests on few individuals; whoever wants it names the times.
    """
    follow_up = y.time if y.censoring_time is None else y.censoring_time
    last = float(np.quantile(follow_up, DEFAULT_QUANTILE, method="lower"))
    last = last if np.isfinite(last) else float(y.time.max())
    last = min([last, *(float(curves.times[-1]) for curves in several if curves.beyond == "nan")])
    return np.linspace(0.0, last, DEFAULT_STEPS + 1) if last > 0 else np.zeros(1)


def check_inputs(y: Outcomes, curves: SurvivalCurves, name: str = "curves") -> None:
    """Raise unless these are outcomes and curves of the same number of individuals."""
    if not isinstance(y, Outcomes):
        raise InputError(f"y must be Outcomes, not {type(y).__name__}")
    if not isinstance(curves, SurvivalCurves):
        raise InputError(f"{name} must be SurvivalCurves, not {type(curves).__name__}")
    check_length(name, len(curves), "y", len(y))
    if len(y) == 0:
        raise InputError("y is empty: there is nobody to score")


@dataclass(frozen=True, eq=False)
class WeightingSums:
    """Sums under one weighting at the times that the predictions reach, and where they give no score."""

    weighting: Weighting
    weights: RowWeights
    sums: NDArray[np.float64]  # (2 statuses, losses, times)
    weight_sums: NDArray[np.float64]  # (2 statuses, times)
    n_effective: NDArray[np.float64]
    undefined: dict[str, int]

    def divisor(self, n: int) -> NDArray[np.float64]:
        """Return what the weighted sum of losses is divided by; NaN where the score is undefined."""
        total = self.weight_sums.sum(axis=0)
        return total if self.weighting.normalize == "weights" else np.where(np.isnan(total), np.nan, n)

    def scored_model(self, curves: SurvivalCurves, loss: Loss, sums: NDArray[np.float64], n: int) -> ScoredModel:
        """Return what the influences on one model's score need; `sums` are by status."""
        ratio = self.weighting.normalize == "weights"
        return ScoredModel.from_sums(curves, loss, sums, self.weight_sums, self.divisor(n), ratio=ratio)


def sum_up(
    curves: SurvivalCurves, index: TimeIndex, losses: Sequence[Loss], weightings: Sequence[Weighting]
) -> list[WeightingSums]:
    """Pass over the predictions once, for all losses and weightings."""
    _loops.load_compiled_if_large(len(curves) * index.times.size)
    for weighting in sorted(weightings, key=lambda one: one.name != IPCW.name):
        index.weights_of(weighting)  # Kaplan-Meier takes the most memory while it is made, so it is made first
    weights = [index.weights_of(weighting) for weighting in weightings]
    sums, weight_sums, squares = _loops.weighted_sums(curves, index.times, losses, weights)
    results = []
    for q, (weighting, w) in enumerate(zip(weightings, weights, strict=True)):
        undefined, reasons = _undefined(w, index.times, weight_sums[:, q].sum(axis=0))
        sums[:, :, q, undefined] = np.nan
        weight_sums[:, q, undefined] = np.nan
        with np.errstate(invalid="ignore"):
            n_effective = weight_sums[:, q].sum(axis=0) ** 2 / squares[q]
        results.append(WeightingSums(weighting, w, sums[:, :, q], weight_sums[:, q], n_effective, reasons))
    return results


def _one_score(
    y: Outcomes,
    curves: SurvivalCurves,
    loss: Loss,
    weighting: str | Weighting | None,
    times: ArrayLike | None,
    reduce: bool,
    groups: ArrayLike | None,
    level: float,
) -> ScoreCurve | ScoreTerms:
    check_inputs(y, curves)
    chosen = as_weighting(weighting, y)
    if reduce:
        return _score(y, curves, [loss], [chosen], times, groups, level, stacklevel=5)[0]
    if groups is not None:
        raise InputError("groups matter for standard errors, which individual terms (reduce=False) do not have")
    return _terms(y, curves, loss, chosen, times)


def _score(
    y: Outcomes,
    curves: SurvivalCurves,
    losses: Sequence[Loss],
    weightings: Sequence[Weighting],
    times: ArrayLike | None,
    groups: ArrayLike | None,
    level: float,
    *,
    stacklevel: int,
) -> list[ScoreCurve]:
    normal_quantile(level)  # refuse an impossible level now, not when intervals are asked for
    grouping = None if groups is None else Groups.of(groups, len(y))
    wanted = default_times(y, [curves]) if times is None else as_times(times)
    scored = wanted[curves.reaches(wanted)]  # from the first time on
    missing = wanted.size - scored.size
    far = {f"the predictions end at {curves.times[-1]:g}": missing} if missing else {}
    index = TimeIndex(y, scored)
    found = sum_up(curves, index, losses, weightings) if scored.size else []

    def curve(loss: Loss, weighting: Weighting, values: Sequence[NDArray[np.float64]], **others: Any) -> ScoreCurve:
        scores, n_effective, weight_sums = (np.concatenate((v, np.full(missing, np.nan))) for v in values)
        return ScoreCurve(
            times=wanted,
            scores=scores,
            n_effective=n_effective,
            weight_sums=weight_sums,
            n=len(y),
            loss=loss.name,
            weighting=str(weighting),
            default_times=times is None,
            level=level,
            settings=_settings(loss, weighting, curves),
            **others,
        )

    results = []
    for k, loss in enumerate(losses):
        for under in found:
            model = under.scored_model(curves, loss, under.sums[:, k], len(y))
            values = (model.scores, under.n_effective, under.weight_sums.sum(axis=0))
            influence = Influence(index, under.weights, [model], grouping)
            undefined = {**under.undefined, **far}
            results.append(curve(loss, under.weighting, values, undefined=undefined, _influence=influence))
    if not found:
        nothing = (np.zeros(0),) * 3
        results = [curve(loss, weighting, nothing, undefined=far) for loss in losses for weighting in weightings]
    warn_undefined({result.weighting: result.undefined for result in results}, stacklevel)
    return results


def _settings(loss: Loss, weighting: Weighting, curves: SurvivalCurves) -> dict[str, object]:
    settings: dict[str, object] = {
        "survscore": __version__,
        "loss": loss.name,
        "weighting": str(weighting),
        "max_weight": getattr(weighting, "max_weight", None),
        "normalize": weighting.normalize,
        "variance": getattr(weighting, "variance", None),
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


def warn_undefined(reasons: Mapping[str, Mapping[str, int]], stacklevel: int) -> None:
    """Warn once, at the user's line, about all times without score, by weighting."""
    told = [
        f"{weighting}: " + ", ".join(f"{plural(count, 'time')} where {reason}" for reason, count in counts.items())
        for weighting, counts in reasons.items()
        if counts
    ]
    if told:
        warnings.warn(f"scores are NaN under {'; '.join(told)}", UndefinedScoreWarning, stacklevel=stacklevel)


def _terms(
    y: Outcomes, curves: SurvivalCurves, loss: Loss, weighting: Weighting, times: ArrayLike | None
) -> ScoreTerms:
    wanted = default_times(y, [curves]) if times is None else as_times(times)
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
