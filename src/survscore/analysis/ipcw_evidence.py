"""Signs that IPCW is misled: its agreement with the administrative score, its weights, covariates that predict C*."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from survscore._utils.parallel import row_blocks
from survscore._validation import InputError, plural, several
from survscore.analysis.censoring_leak import CensoringLeak
from survscore.curves import SurvivalCurves
from survscore.engine.averaging import averaging_weights
from survscore.engine.evaluation import Evaluation
from survscore.engine.inputs import null_name
from survscore.engine.second_moments import MeanInfluences
from survscore.inference.estimate import Estimate
from survscore.inference.units import Groups, SampleWeights
from survscore.outcomes import Outcomes
from survscore.results.long_tables import stacked
from survscore.weighting import IPCW, Administrative, Projected, Weighting
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
class PairContrast:
    """A model against another, by the mean Brier score under each weighting, and how the first two differ."""

    model: str
    reference: str
    ipcw: Estimate
    administrative: Estimate
    difference: Estimate
    projected: Estimate = field(default_factory=Estimate)  # over as much of the time as there are projected scores

    @property
    def contradicted_by(self) -> str | None:
        """Which score is significant with the opposite sign of IPCW, itself significant; first that of all."""
        for name, other in (("projected", self.projected), ("administrative", self.administrative)):
            if (self.ipcw.upper < 0 < other.lower) or (other.upper < 0 < self.ipcw.lower):
                return name
        return None


def contrasts_of(
    y: Outcomes,
    models: Mapping[str, SurvivalCurves],
    weighting: Weighting,
    times: NDArray[np.float64],
    groups: Groups | None,
    level: float,
    *,
    with_projected: bool = False,
) -> tuple[list[PairContrast], tuple[float, float]]:
    """Return every model against the null model, then all other pairs, and the range of time.

    Projected contrasts, if asked for, are over as much of that range as there are projected scores. Scores have the
    sample weights of the outcomes; who has weight zero has no part.
    """

    def scored_by(weightings: Sequence[Weighting], times: NDArray[np.float64]) -> tuple[Evaluation, Any, Any]:
        evaluation = Evaluation.of(
            y,
            models,
            weighting=weightings,
            times=times,
            null=null_name(True, y) not in models,
            groups=None if groups is None else groups.codes,
            level=level,
            needs_numpy="diagnose",
        )
        return evaluation, *evaluation.mean_influences()

    evaluation, scored, time_range = scored_by([weighting, Administrative()], times)
    projected: list[MeanInfluences] = []
    if with_projected:
        with suppress(InputError):  # too few are followed
            _, projected, _ = scored_by([Projected()], times[times <= time_range[1]])
    names, of_groups = evaluation.names, evaluation.groups
    sample = SampleWeights.of(evaluation.index.outcomes)
    null = names.index(null_name(True, y))
    others = [a for a in range(len(names)) if a != null]

    def contrast(a: int, b: int) -> PairContrast:
        (ipcw, *_), (administrative, *_) = parts = [_part(influences, a, b) for influences in scored]
        both = (ipcw - administrative, parts[0][1] - parts[1][1], parts[0][2] + parts[1][2])
        estimates = [
            Estimate.of(value, own, of_groups, level, added_variance=more, sample=sample)
            for value, own, more in (*parts, both, *(_part(influences, a, b) for influences in projected))
        ]
        return PairContrast(names[a], names[b], *estimates)

    return [contrast(a, b) for a, b in [*((a, null) for a in others), *combinations(others, 2)]], time_range


def _part(scored: MeanInfluences, a: int, b: int) -> tuple[float, NDArray[np.float64], float]:
    """Return a difference, its influences, and the variance of a G that was fitted to others."""
    added = float(scored.steps @ np.square(scored.censoring_gradient[a] - scored.censoring_gradient[b]))
    return float(scored.scores[a] - scored.scores[b]), scored.values[a] - scored.values[b], added


CAPS = (1.0, 2.0, 5.0, 10.0, None)
MOST_TIMES = 21


def weights_over_time(y: Outcomes, weighting: Weighting, times: NDArray[np.float64]) -> pd.DataFrame:
    """Return how many have a weight at each time, Kish's effective number, and the largest weight with its share.

    With sample weights, the number and the share are of both weights together, and the largest is that of IPCW alone.
    """
    if y.weights is not None and not (y.weights > 0).all():
        kept = np.flatnonzero(y.weights)
        y, weighting = y[kept], weighting.of_rows(kept)
    chosen = times[np.unique(np.linspace(0, times.size - 1, min(times.size, MOST_TIMES)).round().astype(np.intp))]
    index = TimeIndex(y, chosen)
    weights = weighting.prepare(index)
    count, total, squares, largest, largest_mass = np.zeros((5, chosen.size))
    ones = np.ones(len(y))
    sample = SampleWeights.of(y) or SampleWeights(ones, frequency=True)
    each = ones if sample.counts is None else sample.counts  # how many individuals a row stands for
    for rows in row_blocks(len(y), chosen.size):
        with np.errstate(invalid="ignore", over="ignore"):
            cells = sum(weights.rows(rows).cells(chosen), np.zeros(()))
            count += each[rows] @ (cells > 0)
            total += sample.values[rows] @ cells
            squares += sample.squares[rows] @ np.square(cells)
            of_one = cells * (sample.values / each)[rows, None]
        largest = np.maximum(largest, cells.max(axis=0))
        largest_mass = np.maximum(largest_mass, of_one.max(axis=0))
    undefined = ~np.isfinite(total) | (total == 0)
    if weights.support_end is not None:
        undefined[weights.support_end :] = True
    with np.errstate(invalid="ignore", divide="ignore"):
        columns = {"n_effective": total**2 / squares, "largest_weight": largest, "largest_share": largest_mass / total}
    table = {name: np.where(undefined, np.nan, values) for name, values in columns.items()}
    return stacked([{"time": chosen, "n_weighted": count.astype(np.int64), **table}])


def scores_by_cap(
    y: Outcomes, models: Mapping[str, SurvivalCurves], weighting: IPCW, times: NDArray[np.float64] | None
) -> pd.DataFrame:
    """Return every model's mean Brier score under each cap, and its rank; empty where there is no score."""
    import pandas as pd

    weightings = [replace(weighting, max_weight=cap) for cap in CAPS]
    evaluation = Evaluation.of(y, models, weighting=weightings, times=times, errors=False, needs_numpy="diagnose")
    scored = evaluation.run()
    worst = np.full(evaluation.times.size, np.nan)
    worst[: evaluation.index.times.size] = sum(arrays.scores.sum(axis=0) for arrays in scored)
    try:
        mean, _ = averaging_weights(evaluation.times, worst, None, None, "stop", scored[0].undefined)
    except InputError:  # at no time is there a score
        return pd.DataFrame(columns=["max_weight", "model", "score", "rank"])
    used, parts = np.flatnonzero(mean), []
    for cap, arrays in zip(CAPS, scored, strict=True):
        scores = arrays.scores[:, used] @ mean[used]
        ranks = 1 + (scores[:, None] > scores).sum(axis=1)
        limit = np.inf if cap is None else cap
        parts.append({"max_weight": limit, "model": evaluation.names, "score": scores, "rank": ranks})
    return stacked(parts)


@dataclass(frozen=True, eq=False)
class Answer:
    """What is known about one model."""

    model: str
    leak: CensoringLeak | None
    contrast: PairContrast | None

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
    answers: Sequence[Answer], contrasts: Sequence[PairContrast], r2: Estimate | None, *, weighted: bool
) -> tuple[IPCWVerdict, list[str]]:
    """Return whether there are signs that IPCW is misled on these data, and the reasons, in words.

    That there are none is no proof: drop-out that depends on the risk, for one, leaves none of these signs.
    """
    if not weighted:
        return "not needed", ["no individual is censored before the last evaluation time"]
    leaking = [answer.model for answer in answers if answer.verdict == "encodes C*"]
    contradicted = [contrast for contrast in contrasts if contrast.contradicted_by is not None]
    covariates = r2 is not None and r2.lower > PREDICTED
    differing = [answer.model for answer in answers if answer.favour.lower > 0 or answer.favour.upper < 0]
    encodes = "encodes" if len(leaking) == 1 else "encode"
    reasons = [f"{several(leaking)} {encodes} the censoring time"] if leaking else []
    if contradicted:
        contrast = contradicted[0]
        order, opposite = ("better", "worse") if contrast.ipcw.upper < 0 else ("worse", "better")
        more = f", and {plural(len(contradicted) - 1, 'more such pair')}" if len(contradicted) > 1 else ""
        reasons.append(
            f"by IPCW, {contrast.model} is significantly {order} than {contrast.reference}, and by the "
            f"{contrast.contradicted_by} score significantly {opposite}{more}"
        )
    if covariates and r2 is not None:
        reasons.append(f"covariates predict C* (R2 {r2.value:.2f})")
    if leaking or contradicted or (covariates and differing):
        return "misleading", reasons
    if differing:
        reasons.append(
            f"its rating of {several(differing)} differs significantly from that of the administrative score"
        )
    unclear = [answer.model for answer in answers if answer.verdict == "unclear"]
    if unclear:
        reasons.append(f"{several(unclear)} may encode the censoring time")
    if reasons:
        return "suspect", reasons
    if all(answer.verdict == "too few" for answer in answers) and not any(answer.favour.known for answer in answers):
        return "too few", ["neither falls at C* nor differences between the weightings can be assessed"]
    return "no sign of a leak", [
        "no model's predictions fall at C* more than elsewhere, and IPCW does not differ significantly from the "
        "administrative score; informative drop-out would not show in this"
    ]


HEADINGS = {
    "no sign of a leak": "No sign of a leak was found",
    "suspect": "IPCW is suspect here",
    "misleading": "IPCW is misleading here",
    "not needed": "Weights are not needed here",
    "too few": "Too few data to assess IPCW",
}


def about_weights(weights: pd.DataFrame, caps: pd.DataFrame) -> list[str]:
    """Return in words what weights over time and scores by cap say."""
    result = []
    defined = weights[weights["n_effective"].notna()]
    if len(defined):
        last = defined.iloc[-1]
        result.append(
            f"At {last['time']:.4g}, IPCW has an effective sample size of {last['n_effective']:.0f}; "
            f"the largest weight has {100 * last['largest_share']:.2g} % of all."
        )
    best = caps[caps["rank"] == 1].drop_duplicates("max_weight")
    if best["model"].nunique() > 1:
        caps_of = best["max_weight"].map("{:g}".format).replace("inf", "none")
        which = ", ".join(best["model"] + " with " + caps_of)
        result.append(f"The best model under IPCW depends on the cap of its weights: {which}.")
    return result


def advice(contrasts: Sequence[PairContrast]) -> str:
    """Return which scores to use where IPCW is suspect."""
    if any(contrast.projected.known for contrast in contrasts):
        return (
            "Use the projected score, which counts all individuals; the administrative score refers to those with "
            "C* >= t alone, and does not depend on what models predict for the others."
        )
    return (
        "The administrative score does not reward that, but it refers to those with C* >= t alone, whatever "
        "models predict for the others; too few are followed for a projected score."
    )


def about_covariates(r2: Estimate, level: float) -> str:
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
