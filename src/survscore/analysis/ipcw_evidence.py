"""Signs that IPCW is misled: its agreement with the administrative score, its weights, covariates that predict C*."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from survscore._utils.frames import columns_of
from survscore._utils.parallel import row_blocks
from survscore._validation import InputError, check_length, plural, several
from survscore.analysis.censoring_leak import CensoringLeak
from survscore.curves import SurvivalCurves
from survscore.engine.averaging import averaging_weights
from survscore.engine.evaluation import Evaluation
from survscore.engine.inputs import NULL_MODEL
from survscore.inference.estimate import Estimate
from survscore.inference.units import Groups
from survscore.outcomes import Outcomes
from survscore.results.long_tables import stacked
from survscore.weighting import IPCW, Administrative, Weighting
from survscore.weighting.interval_weights import TimeIndex

if TYPE_CHECKING:
    import pandas as pd


LeakVerdict = Literal["encodes C*", "no sign", "unclear", "too few"]
IPCWVerdict = Literal["no sign of a leak", "suspect", "misleading", "not needed", "too few"]

#: A model encodes C* if it falls after it more than this many times as steeply as elsewhere, with its interval, ...
STEEPER = 3.0
#: ... if this share of the predicted survival more is lost, with its interval, and if IPCW favours it.
MORE_LOST = 0.05
#: The fall must begin at C*, or grow there: what began earlier in the calendar is as steep right before.
ONSET = 1.2
#: Below these it shows no sign at all; between, a change of the hazard on the cut-off date would explain it, too.
SLIGHTLY_STEEPER, SLIGHTLY_MORE_LOST = 1.25, 0.02
#: Covariates predict C* from here on, with the interval of R2.
PREDICTED = 0.1


@dataclass(frozen=True, eq=False)
class Contrast:
    """A model against another, by the mean Brier score under both weightings, and how these differ."""

    model: str
    reference: str
    ipcw: Estimate
    administrative: Estimate
    difference: Estimate

    @property
    def contradicts(self) -> bool:
        """Whether both weightings are sure which is better, and disagree."""
        first, second = self.ipcw, self.administrative
        return (first.upper < 0 < second.lower) or (second.upper < 0 < first.lower)


def contrasts_of(
    y: Outcomes,
    models: Mapping[str, SurvivalCurves],
    weighting: Weighting,
    times: NDArray[np.float64] | None,
    groups: Groups | None,
    level: float,
) -> tuple[list[Contrast], tuple[float, float]]:
    """Return every model against the null model, then all other pairs, and the range of time."""
    both, null = [weighting, Administrative()], NULL_MODEL not in models
    evaluation = Evaluation.of(y, models, weighting=both, times=times, null=null, level=level, needs_numpy="diagnose")
    scored, time_range = evaluation.mean_influences()
    names = evaluation.names
    km = names.index(NULL_MODEL)
    others = [a for a in range(len(names)) if a != km]

    def contrast(a: int, b: int) -> Contrast:
        values = [float(one.scores[a] - one.scores[b]) for one in scored]
        influences = [one.values[a] - one.values[b] for one in scored]
        # the variance of a G that was fitted to others
        added = [float(one.steps @ np.square(one.moved[a] - one.moved[b])) for one in scored]
        parts = [*zip(values, influences, added, strict=True)]
        parts.append((values[0] - values[1], influences[0] - influences[1], sum(added)))
        found = [Estimate.of(value, own, groups, level, added_variance=more) for value, own, more in parts]
        return Contrast(names[a], names[b], *found)

    return [contrast(a, b) for a, b in [*((a, km) for a in others), *combinations(others, 2)]], time_range


CAPS = (1.0, 2.0, 5.0, 10.0, None)
MOST_TIMES = 21


def weights_over_time(y: Outcomes, weighting: IPCW, times: NDArray[np.float64]) -> pd.DataFrame:
    """Return how many have a weight at each time, Kish's effective number, and the largest weight with its share."""
    some = times[np.unique(np.linspace(0, times.size - 1, min(times.size, MOST_TIMES)).round().astype(np.intp))]
    index = TimeIndex(y, some)
    stretches = weighting.prepare(index)
    count, total, squares, largest = np.zeros((4, some.size))
    for rows in row_blocks(len(y), some.size):
        with np.errstate(invalid="ignore", over="ignore"):
            cells = sum(stretches.rows(rows).cells(some), np.zeros(()))
            count += (cells > 0).sum(axis=0)
            total += cells.sum(axis=0)
            squares += np.square(cells).sum(axis=0)
        largest = np.maximum(largest, cells.max(axis=0))
    undefined = ~np.isfinite(total) | (total == 0)
    if stretches.support_end is not None:
        undefined[stretches.support_end :] = True
    with np.errstate(invalid="ignore", divide="ignore"):
        columns = {"n_effective": total**2 / squares, "largest_weight": largest, "largest_share": largest / total}
    table = {name: np.where(undefined, np.nan, values) for name, values in columns.items()}
    return stacked([{"time": some, "n_weighted": count.astype(np.int64), **table}])


def scores_by_cap(
    y: Outcomes, models: Mapping[str, SurvivalCurves], weighting: IPCW, times: NDArray[np.float64] | None
) -> pd.DataFrame:
    """Return every model's mean Brier score under each cap, and its rank; empty where there is no score."""
    import pandas as pd

    weightings = [replace(weighting, max_weight=cap) for cap in CAPS]
    evaluation = Evaluation.of(y, models, weighting=weightings, times=times, errors=False, needs_numpy="diagnose")
    scored = evaluation.run()
    worst = np.full(evaluation.times.size, np.nan)
    worst[: evaluation.index.times.size] = sum(one.scores.sum(axis=0) for one in scored)
    try:
        mean, _ = averaging_weights(evaluation.times, worst, None, None, "stop", scored[0].undefined)
    except InputError:  # at no time is there a score
        return pd.DataFrame(columns=["max_weight", "model", "score", "rank"])
    used, parts = np.flatnonzero(mean), []
    for cap, one in zip(CAPS, scored, strict=True):
        scores = one.scores[:, used] @ mean[used]
        ranks = 1 + (scores[:, None] > scores).sum(axis=1)
        limit = np.inf if cap is None else cap
        parts.append({"max_weight": limit, "model": evaluation.names, "score": scores, "rank": ranks})
    return stacked(parts)


MOST_ROWS = 20_000
N_FOLDS = 5
#: More categories than the trees can tell apart are taken by their order, as numbers given in order are.
MOST_CATEGORIES = 255


def explained_variance(
    X: Any, censoring_time: NDArray[np.float64], groups: Groups | None, level: float, seed: int
) -> Estimate:
    r"""Return the cross-validated R2 of C* predicted from covariates by gradient boosting.

    :math:`R^2 = 1 - \sum_i (C^*_i - \hat C_i)^2 / \sum_i (C^*_i - \bar C)^2`, with :math:`\hat C_i` from the folds
    without i (and without its group). It is negative where the predictions are worse than the mean. Its standard error
    is that of a ratio of two means.
    """
    try:
        from sklearn.ensemble import HistGradientBoostingRegressor
        from sklearn.model_selection import GroupKFold, KFold, cross_val_predict
    except ImportError:
        raise ImportError("X needs scikit-learn: pip install 'survscore[models]'") from None
    features, categorical = as_features(X)
    check_length("X", len(features), "y", censoring_time.size)
    rows = np.flatnonzero(np.isfinite(censoring_time))
    rows = np.random.default_rng(seed).permutation(rows)[:MOST_ROWS]
    if rows.size < 2 * N_FOLDS:
        raise InputError(f"X: {plural(rows.size, 'individual')} with a finite censoring_time are too few to learn from")
    features, target = features[rows], censoring_time[rows]
    if np.ptp(target) == 0:
        return Estimate()  # nothing varies that could be predicted
    of_rows = None if groups is None else Groups.of(groups.codes[rows], rows.size)
    if of_rows is not None and of_rows.n_groups < N_FOLDS:
        raise InputError(f"X: {plural(of_rows.n_groups, 'group')} are too few for {N_FOLDS} folds")
    folds = KFold(N_FOLDS) if of_rows is None else GroupKFold(N_FOLDS)
    model = HistGradientBoostingRegressor(categorical_features=categorical, random_state=seed)
    predicted = cross_val_predict(model, features, target, groups=None if of_rows is None else of_rows.codes, cv=folds)
    errors, spread = np.square(target - predicted), np.square(target - target.mean())
    missed = float(errors.sum() / spread.sum())
    influence = -(errors - missed * spread) / spread.sum()
    return Estimate.of(1.0 - missed, influence, of_rows, level)


def as_features(X: Any) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return numbers, NaN where missing, and which columns are codes of categories; from an array or any data frame."""
    columns = columns_of(X)
    if not columns:
        raise InputError("X has no columns")
    encoded = [_encode(values, name) for name, values in columns.items()]
    return np.stack([values for values, _ in encoded], axis=1), np.array([category for _, category in encoded])


def _encode(values: NDArray[Any], name: str) -> tuple[NDArray[np.float64], bool]:
    """Return a column as numbers, and whether these are codes of categories."""
    import pandas as pd

    if values.dtype.kind in "biuf":
        numbers = values.astype(np.float64)
        return np.where(np.isinf(numbers), np.sign(numbers) * 1e300, numbers), False
    if values.dtype.kind in "mM":  # dates predict C* better than anything
        return np.where(np.isnat(values), np.nan, values.astype(np.int64).astype(np.float64)), False
    if values.dtype.kind not in "OUST":
        raise InputError(
            f"X: column {name!r} must hold numbers, booleans, text, categories or dates, not {values.dtype}"
        )
    column = pd.Series(values.tolist(), dtype=object)
    there = column.dropna()
    if all(isinstance(value, (bool, int, float, np.number)) for value in there):
        return column.to_numpy(np.float64, na_value=np.nan), False
    # in the order of the values, for dates and numbers given in order; as text where they can't be compared
    comparable = len({type(value) for value in there}) == 1 and hasattr(there.iloc[0], "__lt__")
    codes, labels = pd.factorize(column if comparable else there.map(str).reindex(column.index), sort=True)
    return np.where(codes < 0, np.nan, codes.astype(np.float64)), isinstance(labels[0], str) and len(
        labels
    ) <= MOST_CATEGORIES


@dataclass(frozen=True, eq=False)
class Answer:
    """What is known about one model."""

    model: str
    leak: CensoringLeak | None
    contrast: Contrast | None

    @property
    def favour(self) -> Estimate:
        """By how much IPCW rates it otherwise than the administrative score does, against Kaplan-Meier."""
        return Estimate() if self.contrast is None else self.contrast.difference

    @property
    def begins(self) -> bool:
        """Whether its fall is steeper right after C* than right before."""
        return self.leak is not None and self.leak.onset.lower > ONSET

    def stands_out(self, ratio: float = STEEPER, excess: float = MORE_LOST) -> bool:
        """Whether its fall at C* stands out."""
        return self.leak is not None and self.leak.ratio.lower > ratio and self.leak.excess.lower > excess

    @property
    def verdict(self) -> LeakVerdict:
        """The rule."""
        if self.leak is None or not self.leak.ratio.known:
            return "too few"
        if self.stands_out() and self.begins and self.favour.upper < 0:
            return "encodes C*"
        return "unclear" if self.stands_out(SLIGHTLY_STEEPER, SLIGHTLY_MORE_LOST) else "no sign"

    def falls(self, since: str) -> str:
        """Return by how much it falls since C* and elsewhere, in words."""
        after, elsewhere = (math.nan, math.nan) if self.leak is None else (self.leak.after.value, self.leak.elsewhere)
        return f"falls by {_percent(after)} right after {since}, against {_percent(elsewhere)} elsewhere"

    @property
    def warning(self) -> str:
        """The verdict on a model that encodes C*, in few words."""
        return f"{self.model} {self.falls('C*')}: it encodes the censoring time, which IPCW scores reward."

    def sentence(self, level: float, why_not: str) -> str:
        """Return the verdict in words; `why_not` says why no model can be assessed."""
        name, leak, verdict = self.model, self.leak, self.verdict
        whether = f"Whether {name} encodes the censoring time"
        if leak is None or verdict == "too few":
            reason = why_not if leak is None else "its predicted survival is zero before C*"
            return f"{whether} cannot be assessed: {reason}."
        falls = f"it {self.falls('it')}"
        if verdict == "no sign":
            return f"No sign was found that {name} encodes the censoring time: {falls}."
        times = f"{_times(leak.ratio.value)} times as steeply, {_interval(leak.ratio, level, _times)}"
        if verdict == "encodes C*":
            better = -self.favour
            return (
                f"{name} encodes the censoring time: {falls} ({times}), and IPCW rates it better by {better.value:.4f} "
                f"({_interval(better, level, '{:.4f}'.format)}) than the administrative score does."
            )
        but = "which a change of the hazard on the cut-off date would explain, too"
        if self.stands_out() and not self.begins:
            but = "but it is about as steep right before C*, as if hazards had changed some time before"
        elif self.stands_out():
            but = "but IPCW does not rate it better than the administrative score does"
        return f"{whether} is unclear: {falls} ({times}), {but}."


def ipcw_verdict(
    answers: Sequence[Answer], contrasts: Sequence[Contrast], r2: Estimate | None, *, weighted: bool
) -> tuple[IPCWVerdict, list[str]]:
    """Return whether there are signs that IPCW is misled on these data, and the reasons, in words.

    That there are none is no proof: drop-out that depends on the risk, for one, leaves none of these signs.
    """
    if not weighted:
        return "not needed", ["nobody is censored before the last time that is scored"]
    leaking = [one.model for one in answers if one.verdict == "encodes C*"]
    contradicted = [one for one in contrasts if one.contradicts]
    covariates = r2 is not None and r2.lower > PREDICTED
    moved = [one.model for one in answers if one.favour.lower > 0 or one.favour.upper < 0]
    encodes = "encodes" if len(leaking) == 1 else "encode"
    reasons = [f"{several(leaking)} {encodes} the censoring time"] if leaking else []
    if contradicted:
        one = contradicted[0]
        order, opposite = ("better", "worse") if one.ipcw.upper < 0 else ("worse", "better")
        more = f", and {plural(len(contradicted) - 1, 'more such pair')}" if len(contradicted) > 1 else ""
        reasons.append(
            f"by it, {one.model} is significantly {order} than {one.reference}, and by the administrative score "
            f"significantly {opposite}{more}"
        )
    if covariates and r2 is not None:
        reasons.append(f"covariates predict C* (R2 {r2.value:.2f})")
    if leaking or contradicted or (covariates and moved):
        return "misleading", reasons
    if moved:
        reasons.append(f"its rating of {several(moved)} differs significantly from that of the administrative score")
    unclear = [one.model for one in answers if one.verdict == "unclear"]
    if unclear:
        reasons.append(f"{several(unclear)} may encode the censoring time")
    if reasons:
        return "suspect", reasons
    if all(one.verdict == "too few" for one in answers) and not any(one.favour.known for one in answers):
        return "too few", ["neither falls at C* nor differences between the weightings can be assessed"]
    return "no sign of a leak", [
        "no model's predictions fall at C* more than elsewhere, and IPCW does not differ significantly from the "
        "administrative score; informative drop-out would not show in this"
    ]


def sentences(
    answers: Sequence[Answer],
    verdict: IPCWVerdict,
    reasons: Sequence[str],
    r2: Estimate | None,
    weights: pd.DataFrame,
    caps: pd.DataFrame,
    level: float,
    why_not: str,
) -> tuple[str, ...]:
    """Return the answer in words: about IPCW, each model, covariates, weights and caps."""
    advice = "" if verdict in ("no sign of a leak", "not needed") else "; use the administrative score"
    heading = {
        "no sign of a leak": "No sign of a leak was found",
        "suspect": "IPCW is suspect here",
        "misleading": "IPCW is misleading here",
        "not needed": "Weights are not needed here",
        "too few": "Too few data to assess IPCW",
    }
    found = [f"{heading[verdict]}: {'; '.join(reasons)}{advice}."]
    found += [one.sentence(level, why_not) for one in answers]
    if r2 is not None:
        found.append(_about_covariates(r2, level))
    defined = weights[weights["n_effective"].notna()]
    if len(defined):
        last = defined.iloc[-1]
        found.append(
            f"At {last['time']:.4g}, IPCW has an effective sample size of {last['n_effective']:.0f}; "
            f"the largest weight has {100 * last['largest_share']:.2g} % of all."
        )
    best = caps[caps["rank"] == 1].drop_duplicates("max_weight")
    if best["model"].nunique() > 1:
        caps_of = best["max_weight"].map("{:g}".format).replace("inf", "none")
        which = ", ".join(best["model"] + " with " + caps_of)
        found.append(f"The best model under IPCW depends on the cap of its weights: {which}.")
    return tuple(found)


def _about_covariates(r2: Estimate, level: float) -> str:
    """Return how well covariates predict C*, in words: a share of its variance only where that is positive."""
    if not r2.known:
        return "Covariates cannot predict C*: all C* are equal."
    if r2.value <= 0:
        write = "{:.2f}".format
        return f"Covariates do not predict C*: R2 {write(r2.value)} ({_interval(r2, level, write)}), cross-validated."
    return f"Covariates predict {_share(r2.value)} of the variance of C* ({_interval(r2, level, _share)})."


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.0f} %"


def _times(ratio: float) -> str:
    return f"{ratio:.2g}" if ratio < 10 else f"{ratio:.0f}"


def _share(value: float) -> str:
    return f"{100 * value:.0f} %"


def _interval(estimate: Estimate, level: float, write: Callable[[float], str]) -> str:
    return f"{100 * level:g} % interval {write(estimate.lower)} to {write(estimate.upper)}"
