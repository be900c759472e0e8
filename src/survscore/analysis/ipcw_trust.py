"""From evidence to a verdict: whether IPCW can be trusted, and which models encode C*."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from survscore._validation import plural
from survscore.analysis.censoring_leak import CensoringLeak
from survscore.analysis.ipcw_evidence import Contrast
from survscore.inference.estimate import Estimate

if TYPE_CHECKING:
    import pandas as pd


KnowsCensoring = Literal["knows C*", "no sign", "unclear", "too few"]
Trust = Literal["can be trusted", "suspect", "can't be trusted", "not needed", "can't be told"]

#: A model knows C* if it falls after it more than this many times as steeply as elsewhere, with its interval, ...
STEEPER = 3.0
#: ... if this share of the predicted survival more is lost, with its interval, and if IPCW favours it.
MORE_LOST = 0.05
#: The fall must begin at C*, or grow there: what began earlier in the calendar is as steep right before.
ONSET = 1.2
#: Below these it shows no sign at all; between, a change of the hazard on the cut-off date would explain it, too.
SLIGHTLY_STEEPER, SLIGHTLY_MORE_LOST = 1.25, 0.02
#: Covariates tell C* from here on, with the interval of R2.
TOLD = 0.1


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
    def verdict(self) -> KnowsCensoring:
        """The rule."""
        if self.leak is None or not self.leak.ratio.known:
            return "too few"
        if self.stands_out() and self.begins and self.favour.upper < 0:
            return "knows C*"
        return "unclear" if self.stands_out(SLIGHTLY_STEEPER, SLIGHTLY_MORE_LOST) else "no sign"

    def falls(self, since: str) -> str:
        """Return by how much it falls since C* and elsewhere, in words."""
        after, elsewhere = (math.nan, math.nan) if self.leak is None else (self.leak.after.value, self.leak.elsewhere)
        return f"falls by {_percent(after)} right after {since}, against {_percent(elsewhere)} elsewhere"

    @property
    def warning(self) -> str:
        """The verdict on a model that knows C*, in few words."""
        return f"{self.model} {self.falls('C*')}: it knows when the data end, which IPCW scores reward."

    def sentence(self, level: float, why_not: str) -> str:
        """Return the verdict in words; `why_not` says why nothing can be told of anybody."""
        name, leak, verdict, untold = (
            self.model,
            self.leak,
            self.verdict,
            f"Whether {self.model} knows C* can't be told",
        )
        if leak is None or verdict == "too few":
            return f"{untold}: {why_not if leak is None else 'it predicts that nobody is left to fall'}."
        falls = f"it {self.falls('it')}"
        if verdict == "no sign":
            return f"No sign that {name} knows C*: {falls}."
        times = f"{_times(leak.ratio.value)} times as steeply, {_interval(leak.ratio, level, _times)}"
        if verdict == "knows C*":
            better = -self.favour
            return (
                f"{name} knows C*: {falls} ({times}), and IPCW rates it better by {better.value:.4f} "
                f"({_interval(better, level, '{:.4f}'.format)}) than the administrative score does."
            )
        but = "which a change of the hazard on the day on which the data end would explain, too"
        if self.stands_out() and not self.begins:
            but = "but it is about as steep right before C*, as if hazards had changed some time before"
        elif self.stands_out():
            but = "but IPCW does not rate it better than the administrative score does"
        return f"{untold}: {falls} ({times}), {but}."


def trust(
    answers: Sequence[Answer], contrasts: Sequence[Contrast], told: Estimate | None, *, weighted: bool
) -> tuple[Trust, list[str]]:
    """Return whether IPCW can be trusted on these data, and the reasons, in words."""
    if not weighted:
        return "not needed", ["nobody is censored before the last time that is scored"]
    knowing = [one.model for one in answers if one.verdict == "knows C*"]
    contradicted = [one for one in contrasts if one.contradicts]
    covariates = told is not None and told.lower > TOLD
    moved = [one.model for one in answers if one.favour.lower > 0 or one.favour.upper < 0]
    reasons = [f"{_several(knowing)} {'knows' if len(knowing) == 1 else 'know'} C*"] if knowing else []
    if contradicted:
        one = contradicted[0]
        order, opposite = ("better", "worse") if one.ipcw.upper < 0 else ("worse", "better")
        more = f", and {plural(len(contradicted) - 1, 'more such pair')}" if len(contradicted) > 1 else ""
        reasons.append(
            f"by it, {one.model} is significantly {order} than {one.reference}, and by the administrative score "
            f"significantly {opposite}{more}"
        )
    if covariates and told is not None:
        reasons.append(f"covariates tell C* (R2 {told.value:.2f})")
    if knowing or contradicted or (covariates and moved):
        return "can't be trusted", reasons
    if moved:
        reasons.append(f"it rates {_several(moved)} otherwise than the administrative score does")
    unclear = [one.model for one in answers if one.verdict == "unclear"]
    if unclear:
        reasons.append(f"{_several(unclear)} may know C*")
    if reasons:
        return "suspect", reasons
    if all(one.verdict == "too few" for one in answers) and not any(one.favour.known for one in answers):
        return "can't be told", ["there is too little to go by"]
    return "can be trusted", ["no model shows a sign of knowing C*, and the weightings agree"]


def sentences(
    answers: Sequence[Answer],
    verdict: Trust,
    reasons: Sequence[str],
    told: Estimate | None,
    weights: pd.DataFrame,
    caps: pd.DataFrame,
    level: float,
    why_not: str,
) -> tuple[str, ...]:
    """Return the answer in words: about IPCW, each model, covariates, weights and caps."""
    advice = "" if verdict in ("can be trusted", "not needed") else "; go by the administrative score"
    whether = {
        "suspect": "IPCW is suspect here",
        "not needed": "Weights are not needed here",
        "can't be told": "Whether IPCW can be trusted here can't be told",
    }
    found = [f"{whether.get(verdict, f'IPCW {verdict} here')}: {'; '.join(reasons)}{advice}."]
    found += [one.sentence(level, why_not) for one in answers]
    if told is not None:
        found.append(
            f"Covariates tell {_share(max(told.value, 0.0))} of the variance of C* ({_interval(told, level, _share)})."
            if told.known
            else "Covariates have nothing to tell: all C* are equal."
        )
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
        found.append(f"Which model IPCW likes best depends on the cap of its weights: {which}.")
    return tuple(found)


def _several(names: Sequence[str]) -> str:
    return ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else "".join(names)


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.0f} %"


def _times(ratio: float) -> str:
    return f"{ratio:.2g}" if ratio < 10 else f"{ratio:.0f}"


def _share(value: float) -> str:
    return f"{100 * value:.0f} %"


def _interval(estimate: Estimate, level: float, write: Callable[[float], str]) -> str:
    return f"{100 * level:g} % interval {write(estimate.lower)} to {write(estimate.upper)}"
