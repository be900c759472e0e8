"""Which of two models to use, for whom, and under which assumption: decided here, and printed wherever results are."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from survscore._validation import InputError, several, shown
from survscore.engine.evaluation import ScoreArrays
from survscore.engine.sensitivity import MOST_THETA
from survscore.metrics import cause_label, metric_label
from survscore.results.estimates import Estimates
from survscore.results.rounding import decimals, p_text
from survscore.results.sensitivity import TippingPoint, times_text
from survscore.weighting import Administrative

if TYPE_CHECKING:
    import pandas as pd

    from survscore.results.comparison import Comparison

Vector = NDArray[np.float64]
Code = Literal["better", "worse", "undecided", "depends", "too few"]

ROUNDING = 1e-9  # relative to a difference: a smaller one is none
#: Predictions fit early and late starters so differently, in standard errors of the difference of two proportions,
#: that the entry date must be behind it.
MUCH = 3.0


@dataclass(frozen=True)
class Fit:
    """How a model's predictions fit those with C* >= t, and those with C* < t: means over them, and over time.

    Attributes
    ----------
    model : str
        Its name.
    observed_score, projected_score : float
        The score of those with C* >= t, and of those with C* < t.
    observed_risk, observed_proportion : float
        Of those with C* >= t, the mean predicted risk, and the proportion with event.
    projected_risk, projected_proportion : float
        Of those with C* < t, the same. Hidden statuses are projected.
    z : float
        By how much risk and proportion are further apart among those with C* < t than among the others, in standard
        errors of a difference of two proportions, for each plausible hazard of those with hidden status; NaN of the
        null model, and without a score.
    """

    model: str
    observed_score: float
    projected_score: float
    observed_risk: float
    observed_proportion: float
    projected_risk: float
    projected_proportion: float
    z: float

    @property
    def encodes(self) -> bool:
        """Whether predictions fit late starters so much worse that they probably encode the entry date."""
        return self.z > MUCH


@dataclass(frozen=True)
class Verdict:
    """What to conclude about a model and the reference: the numbers, from which the verdict and its words follow.

    Attributes
    ----------
    sensitivity : TippingPoint
        The projected difference, its tipping points, and the hazard ratio of late starters.
    p_value, se : float
        Of the projected difference.
    administrative, administrative_lower, administrative_upper : float
        The difference among those with C* >= t.
    share_observed, share_dropped_out : float
        The proportions of the individuals with C* >= t, and of those among them who dropped out before t; of a mean
        over time, on average.
    fits : tuple of Fit
        Of the model, and of the reference.
    level : float
        Of intervals.
    hazards : str
        That those with hidden status are assumed to have.
    undefined : str
        Why there is no projected score at some times.
    interpolation : float
        By how much interpolation may have changed the projected difference.
    cautions : tuple of str
        At which times there is no projected score, and whether projected statuses come from few, in words.
    """

    sensitivity: TippingPoint
    p_value: float
    se: float
    administrative: float
    administrative_lower: float
    administrative_upper: float
    share_observed: float
    share_dropped_out: float
    fits: tuple[Fit, Fit]
    level: float
    hazards: str
    undefined: str
    interpolation: float
    cautions: tuple[str, ...] = ()

    @property
    def verdict(self) -> Code:
        """Of the model, for all individuals: "better", "worse", "undecided", "depends" or "too few".

        "depends": on the individuals with hidden status; "too few": individuals are followed, or events observed, for a
        projected difference.
        """
        return self._decide()[0]

    @property
    def sentences(self) -> tuple[str, ...]:
        """The same in words."""
        return tuple(self._decide()[1])

    @property
    def sentence(self) -> str:
        """All in words."""
        return " ".join(filter(None, (*self.sentences, self.scope, *self.cautions)))

    @property
    def encodes(self) -> tuple[str, ...]:
        """Which of the two models probably encode the entry date."""
        return tuple(fit.model for fit in self.fits if fit.encodes)

    def _decide(self) -> tuple[Code, list[str]]:
        """Apply the rules in their order."""
        point, (model, reference) = self.sensitivity, self.names
        if self.same:
            same = f"{model} and {reference} have the same projected {self.label} {self.when}."
            return "undecided", [same, *self._accusations()]
        if np.isnan(point.difference) or point.verdict not in ("better", "worse", "undecided"):
            why = self.undefined or "too few events, individuals without event, or groups"
            return "too few", [f"{model} and {reference} cannot be compared {self.when}: {why}."]
        if point.verdict == "undecided":
            return "undecided", [*self._not_decided(), *self._accusations()]
        winner, loser = self.names if point.difference < 0 else self.names[::-1]
        if self.hidden and not point.sign_holds:
            return "depends", [*self._depends(winner, loser), *self._accusations()]
        code: Code = "better" if point.difference < 0 else "worse"
        better = [f"{winner} is significantly better than {loser} {self.when}: {self._by()}.{self._tipping()}"]
        # among those with C* >= t, the loser is as good or better
        if self.administrative * point.difference <= ROUNDING * point.difference**2:
            first, second = better, [self._contradicted(winner, loser)]
            if next(fit for fit in self.fits if shown(fit.model) == loser).encodes:
                return code, [*second, *self._accusations(), *first, *self._late_starters()]
            better = [*first, *second]
        return code, [*better, *self._late_starters(), *self._accusations()]

    @property
    def names(self) -> tuple[str, str]:
        """The names of both models."""
        return shown(self.sensitivity.model), shown(self.sensitivity.reference)

    @property
    def label(self) -> str:
        """The name of the score."""
        return cause_label(metric_label(self.sensitivity.metric), self.sensitivity.cause)

    @property
    def single(self) -> bool:
        """Whether it is about one time, not a mean."""
        return self.sensitivity.first == self.sensitivity.last

    @property
    def when(self) -> str:
        """At which time, or over which the difference is a mean."""
        point = self.sensitivity
        return f"at {point.first:g}" if self.single else f"on average over {point.first:g} to {point.last:g}"

    @property
    def t(self) -> str:
        """The time, or t where it is a mean over several."""
        return f"{self.sensitivity.first:g}" if self.single else "t"

    @property
    def hidden(self) -> bool:
        """Whether the status of some individuals is hidden."""
        return self.share_observed < 1 or self.share_dropped_out > 0

    @property
    def same(self) -> bool:
        """Whether the difference is zero for each theta."""
        return not np.isnan(self.sensitivity.difference) and np.isnan(self.sensitivity.tipping_lower)

    @property
    def within_interpolation(self) -> bool:
        """Whether interpolation between different grids may be all that makes the difference."""
        return abs(self.sensitivity.difference) <= self.interpolation

    @property
    def _administrative_decides(self) -> bool:
        return self.administrative_lower * self.administrative_upper > 0

    def _proportion(self, share: float) -> str:
        return f"the {_percent(share)}" if self.single else f"on average {_percent(share)}"

    @property
    def population(self) -> str:
        """To whom the verdict refers."""
        groups = []
        if self.share_observed < 1:
            late = self._proportion(1 - self.share_observed)
            groups.append(f"{late} who could be observed for less than {self.t} (C* < {self.t})")
        if self.share_dropped_out > 0:
            others = f" with C* >= {self.t}" if groups else ""
            groups.append(f"{self._proportion(self.share_dropped_out)}{others} who dropped out before {self.t}")
        return f"all individuals, including {several(groups)}" if groups else "all individuals"

    @property
    def assumption(self) -> str:
        """What it assumes about those with hidden status."""
        if not self.hidden:
            return "none: the status of each individual is known"
        return f"those with hidden status have, from the end of their follow-up on, {self.hazards}"

    @property
    def scope(self) -> str:
        """For whom, and under which assumption, in words."""
        if not self.hidden or self.verdict == "too few":
            return ""
        low, high = self.sensitivity.plausible
        of_late_starters = self.share_dropped_out > 0 and not np.isnan(self.sensitivity.hazard_ratio)
        only = (
            f" Which multiples of these hazards are plausible ({low:.2f} to {high:.2f}) was estimated from those with "
            f"C* < {self.t} alone; for those who dropped out there is no such estimate."
        )
        return (
            f"Verdicts refer to {self.population}. Those with hidden status are assumed to have, from the end of "
            f"their follow-up on, {self.hazards}.{only if of_late_starters else ''}"
        )

    @property
    def would_change(self) -> str:
        """What would change it."""
        code = self.verdict
        if self.same:
            return "other predictions"
        if code == "undecided" and self.within_interpolation:
            return "predictions of both models at the same times"
        if code in ("undecided", "too few"):
            return "longer follow-up, or more individuals" if self.hidden else "more individuals"
        if not self.hidden:
            return "other data: the status of each individual is known"
        ends = self._ends()
        hazard = "the assumed hazard of those with hidden status"
        return f"{ends} times {hazard}" if ends else f"nothing from {self._looked_at} times {hazard}"

    def _tipping(self) -> str:
        """Return with which hazards of those with hidden status the sign changes."""
        if not self.hidden:
            return ""
        ends = self._ends()
        start = f"The sign would change with {ends}" if ends else f"The sign is the same for {self._looked_at}"
        return f" {start} times the assumed hazard of those with hidden status."

    @property
    def _looked_at(self) -> str:
        theta = self.sensitivity.theta
        if theta == 1:
            return f"1/{MOST_THETA:g} to {MOST_THETA:g}"
        return f"{1 / MOST_THETA / theta:.2g} to {MOST_THETA / theta:.2g}"

    @property
    def tipping(self) -> str:
        """With how many times the assumed hazards the sign of the difference changes; "none" of those looked at."""
        return "" if self.same or np.isnan(self.sensitivity.difference) else self._ends() or "none"

    def _ends(self) -> str:
        point = self.sensitivity
        low, high = point.tipping_lower / point.theta, point.tipping_upper / point.theta
        ends = [f"less than {low:.2g}"] if low > 0 else []
        return " or ".join([*ends, f"more than {high:.2g}"] if np.isfinite(high) else ends)

    def _not_decided(self) -> list[str]:
        model, reference = self.names
        needed = f"{'Longer follow-up or more' if self.hidden else 'More'} individuals would be needed."
        if self.within_interpolation:
            needed = (
                "The models predict at different times, and the difference is within the error of interpolation "
                f"({self._number(self.interpolation)})."
            )
        sentences = [
            f"Not decided: {model} is not significantly different from {reference} {self.when} "
            f"({self._difference()}). {needed}"
        ]
        if self._administrative_decides:
            better = model if self.administrative < 0 else reference
            sentences.append(
                f"Only among individuals with C* >= {self.t} is {better} significantly better, by the administrative "
                f"{self.label}."
            )
        return sentences

    def _depends(self, winner: str, loser: str) -> list[str]:
        point, ratio = self.sensitivity, self._ratio()
        start = f"{winner} has the better projected {self.label} {self.when} ({self._difference()}), but"
        if ratio and not point.ratio_lower <= point.theta <= point.ratio_upper:
            no_verdict = f"No verdict: {ratio}, and with such hazards the sign of the difference may change."
            return [f"{start} that depends on the individuals with hidden status.", no_verdict]
        whether = f"whether it is better than {loser} depends on the individuals with hidden status."
        return [f"{start} {whether}{self._tipping()}", *([f"{ratio[0].upper()}{ratio[1:]}."] if ratio else [])]

    def _contradicted(self, winner: str, loser: str) -> str:
        """Return whom the administrative score prefers the other model for."""
        better = "significantly better than" if self._administrative_decides else "not significantly different from"
        start = f"Among individuals with C* >= {self.t}, by the administrative score, {loser} is {better} {winner}"
        of_loser, of_winner = (
            next(fit.projected_score for fit in self.fits if shown(fit.model) == name) for name in (loser, winner)
        )
        if not self.share_observed < 1 or not of_winner > 0:
            return f"{start}."
        proportion = self._proportion(1 - self.share_observed).removeprefix("the ")
        others = f"among those with C* < {self.t} ({proportion})"
        return f"{start}; {others}, its projected {self.label} is {of_loser / of_winner:.2g} times as high."

    def _accusations(self) -> list[str]:
        """Say which models probably encode the entry date, with mean predicted risks of early and late starters."""
        return [
            f"{shown(fit.model)} probably encodes the entry date: among individuals with C* < {self.t} its mean "
            f"predicted risk is {fit.projected_risk:.2f} against a projected proportion of "
            f"{fit.projected_proportion:.2f}, among the others {fit.observed_risk:.2f} against "
            f"{fit.observed_proportion:.2f}. Do not use it for new individuals."
            for fit in self.fits
            if fit.encodes
        ]

    def _late_starters(self) -> list[str]:
        """Say so if late starters have another hazard; the sign of the difference is the same there."""
        ratio, point = self._ratio(), self.sensitivity
        if not ratio or point.ratio_lower <= point.theta <= point.ratio_upper:
            return []
        return [f"{ratio[0].upper()}{ratio[1:]}; the verdict is the same with such hazards."]

    def _ratio(self) -> str:
        point = self.sensitivity
        if np.isnan(point.hazard_ratio):
            return ""
        return (
            f"late starters had {point.hazard_ratio:.2f} times the hazard of the others at the same ages "
            f"({100 * self.level:g} % interval {point.ratio_lower:.2f} to {point.ratio_upper:.2f})"
        )

    def _by(self) -> str:
        """Return by how much the score of the better model is lower."""
        low, high = sorted((abs(self.sensitivity.lower), abs(self.sensitivity.upper)))
        size = self._number(abs(self.sensitivity.difference))
        return f"its projected {self.label} is lower by {size} ({self._interval(low, high)})"

    def _difference(self) -> str:
        point = self.sensitivity
        interval = self._interval(point.lower, point.upper)
        return f"difference in projected {self.label} {self._number(point.difference)}, {interval}"

    def _interval(self, lower: float, upper: float) -> str:
        p = p_text(self.p_value)
        shown_p = f"p {p.replace('<', '< ')}" if p.startswith("<") else f"p = {p}"
        return f"{100 * self.level:g} % interval {self._number(lower)} to {self._number(upper)}, {shown_p}"

    def _number(self, value: float) -> str:
        return f"{value:z.{decimals([self.se], 4)}f}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if 0.01 <= share <= 0.99 else f"{100 * share:.2g} %"


@dataclass(frozen=True, repr=False)
class Recommendation:
    """What to conclude about each model and the reference, from administrative and projected scores; prints as text.

    Attributes
    ----------
    verdicts : tuple of Verdict
        One for each model beside the reference, the null model last.
    """

    verdicts: tuple[Verdict, ...]

    @property
    def sentences(self) -> list[str]:
        """One paragraph for each model; last, to whom verdicts refer, and under which assumption. None comes twice."""
        paragraphs: list[str] = []
        printed: set[str] = set()
        for verdict in self.verdicts:
            new = [sentence for sentence in verdict.sentences if sentence not in printed]
            printed.update(new)
            paragraphs += [" ".join(new)] if new else []
        return [*paragraphs, *self.conditions]

    @property
    def conditions(self) -> list[str]:
        """To whom verdicts refer, under which assumption, and what to be cautious about."""
        scopes = [verdict.scope for verdict in self.verdicts if verdict.scope]
        cautions = [caution for verdict in self.verdicts for caution in verdict.cautions]
        return list(dict.fromkeys([*scopes, *cautions]))

    def answer(self, null: str | None = None) -> str:
        """Return the verdicts in short, and what would change those on models other than the null model."""
        changes: dict[str, list[str]] = {}
        of_models = [verdict for verdict in self.verdicts if verdict.sensitivity.model != null] or self.verdicts
        for verdict in of_models:
            changes.setdefault(verdict.would_change, []).append(shown(verdict.sensitivity.model))
        change = "; ".join(f"for {several(models)}, {what}" for what, models in changes.items() if what)
        return f"{self.headline} What would change this: {change}." if change else self.headline

    @property
    def headline(self) -> str:
        """The verdicts alone, and which models not to use."""
        sentences, reference = [], shown(self.verdicts[0].sensitivity.reference) if self.verdicts else ""
        for code, relation in RELATIONS.items():
            models = [shown(verdict.sensitivity.model) for verdict in self.verdicts if verdict.verdict == code]
            if models:
                verb = "is" if len(models) == 1 else "are"
                sentences.append(f"{several(models)} {verb} {relation.format(reference)}.")
        encoding = [shown(name) for name in self.encodes]
        if encoding:
            verb, them = ("encodes", "it") if len(encoding) == 1 else ("encode", "them")
            use = f"do not use {them} for new individuals"
            sentences.append(f"{several(encoding)} probably {verb} the entry date: {use}.")
        return " ".join(sentences)

    @property
    def encodes(self) -> tuple[str, ...]:
        """Which models probably encode the entry date."""
        return tuple(dict.fromkeys(name for verdict in self.verdicts for name in verdict.encodes))

    @property
    def certain(self) -> bool:
        """Whether all is decided, and no model encodes the entry date."""
        decided = all(verdict.verdict in ("better", "worse") for verdict in self.verdicts)
        return bool(self.verdicts) and decided and not self.encodes

    def to_frame(self) -> pd.DataFrame:
        """Return one row per model: verdict, sentence, what would change it, and all numbers."""
        import pandas as pd

        rows = []
        for verdict in self.verdicts:
            values = {name: getattr(verdict, name) for name in COLUMNS} | verdict.sensitivity.columns()
            values |= {"verdict": verdict.verdict, "sentence": verdict.sentence}
            for whose, fit in zip(("model", "reference"), verdict.fits, strict=True):
                values |= {f"{whose}_{name}": number for name, number in asdict(fit).items() if name != "model"}
            rows.append(values)
        return pd.DataFrame(rows).rename(columns={"first": "from", "last": "to"})

    def __str__(self) -> str:
        return "\n".join(self.sentences)

    __repr__ = __str__


#: Of models, what their verdicts say.
RELATIONS: dict[Code, str] = {
    "better": "significantly better than {}, for all individuals",
    "worse": "significantly worse than {}, for all individuals",
    "undecided": "not significantly different from {}, for all individuals",
    "depends": "better or worse than {} depending on the individuals with hidden status",
    "too few": "not comparable with {}: too few are followed",
}
#: Of a verdict, what stands in the table.
ADMINISTRATIVE = ("administrative", "administrative_lower", "administrative_upper")
COLUMNS: tuple[str, ...] = ("verdict", "would_change", "population", "assumption", "encodes", "p_value")
COLUMNS += (*ADMINISTRATIVE, "share_observed", "share_dropped_out")


def recommend(
    compared: Comparison,
    lower: float | None = None,
    upper: float | None = None,
    *,
    metric: str | None = None,
    time: float | None = None,
) -> Recommendation:
    """Return what to conclude; see `Comparison.recommendation`."""
    projected, administrative = scored_by_both(compared, metric)
    sensitivity = compared.sensitivity(lower, upper)
    over = sensitivity.over.get(projected.metric) if time is None else None
    row = 0  # of the mean, or of one time
    if over is None:
        row = compared.usable_place(projected.metric) if time is None else compared.place(time)
    parts, by_theta = projected.parts, projected.by_theta
    if parts is None or by_theta is None:
        raise TypeError("there are no parts, or no scores by theta")
    m, mean_weights = projected.scores.shape[1], None if over is None else over[0]
    weights = np.eye(m)[row] if mean_weights is None else mean_weights[:m]
    cautions = _cautions(compared, projected, weights, (lower, upper) if time is None else (time, time))
    r, verdicts = compared.models.index(compared.reference), []
    for a, model in enumerate(compared.models):
        if a == r:
            continue
        point = sensitivity.point(model, time=time, metric=projected.metric)
        both = [Estimates(scored, compared.level, mean_weights) for scored in (projected, administrative)]
        of_projected, of_administrative = (
            {name: column[row] for name, column in estimates.difference(a, r).items()} for estimates in both
        )
        verdict = Verdict(
            point,
            float(of_projected["p_value"]),
            float(of_projected["se"]),
            float(of_administrative["estimate"]),
            float(of_administrative["lower"]),
            float(of_administrative["upper"]),
            float(parts.share @ weights),
            float(parts.dropped_out @ weights),
            (_fit(projected, compared, a, weights, point), _fit(projected, compared, r, weights, point)),
            compared.level,
            by_theta.hazards,
            "; ".join(projected.undefined),
            float(both[0].interpolation(a, r)[row]),
            cautions,
        )
        verdicts.append(verdict)
    return Recommendation(tuple(verdicts))


def _cautions(
    compared: Comparison, projected: ScoreArrays, weights: Vector, asked: tuple[float | None, float | None]
) -> tuple[str, ...]:
    """Return at which of the times asked for there is no projected score, and whether statuses come from few."""
    times, m = compared.times, projected.scores.shape[1]
    missing = np.ones(times.size, dtype=np.bool_)
    missing[:m] = np.isnan(projected.scores).any(axis=0)
    low, high = (times[0] if asked[0] is None else asked[0]), (times[-1] if asked[1] is None else asked[1])
    inside = (times >= low) & (times <= high)
    messages = []
    if inside.sum() > 1 and (missing & inside).any():
        when, why = times_text(times[missing & inside]), "; ".join(projected.undefined)
        messages.append(f"There is no projected {projected.label} at {when}: {why}.")
    last = int(np.flatnonzero(weights > 0)[-1])
    if not missing[last]:
        few = projected.support.few_followed(last, f"at {times[last]:g},")
        messages += [f"{message[0].upper()}{message[1:]}." for message in few]
    return tuple(messages)


def scored_by_both(compared: Comparison, metric: str | None = None) -> tuple[ScoreArrays, ScoreArrays]:
    """Return projected and administrative scores by a loss; raise where there are none."""
    for projected in compared.scored:
        if projected.by_theta is None or metric not in (None, projected.metric):
            continue
        for other in compared.scored:
            if other.metric == projected.metric and is_administrative(other.weighting):
                return projected, other
    raise InputError(
        "a recommendation needs administrative and projected scores by a loss, such as 'brier': "
        "compare(..., weighting=['administrative', 'projected'])"
    )


def is_administrative(weighting: str) -> bool:
    """Whether a weighting, in words, is the administrative one."""
    return weighting.partition(" (")[0] == Administrative.name


def _fit(scored: ScoreArrays, compared: Comparison, a: int, weights: Vector, point: TippingPoint) -> Fit:
    """Return means over the times with weights, each weighted by how many belong to it."""
    parts, by_theta = scored.parts, scored.by_theta
    if parts is None or by_theta is None:
        raise TypeError("there are no parts")
    scores = parts.mean(parts.scores, weights)[a]
    risk, proportion = (1.0 - parts.mean(of, weights)[a] for of in (by_theta.predicted, by_theta.event_free))
    # With hazards theta times as high, (1 - proportion)^theta of the late starters would be event-free. Either way: an
    # model without a leak has the hazards of early starters, while what late starters had is part of their proportion.
    # Of one of several causes the range is narrower than that: other events leave fewer who could have its.
    factor = max(point.plausible[1], 1.0 / point.plausible[0])
    low, high = (1.0 - (1.0 - proportion[1]) ** theta for theta in (1.0 / factor, factor))
    further = max(low - risk[1], risk[1] - high, 0.0) - abs(risk[0] - proportion[0])
    early = float(parts.share @ weights)
    n = compared.n * np.array([early, 1.0 - early])
    with np.errstate(invalid="ignore", divide="ignore"):
        se = np.sqrt(np.sum(np.maximum(proportion * (1 - proportion), 1.0 / n) / n))
        z = float(further / se)
    if compared.models[a] == compared.null or np.isnan(scored.scores[a, weights > 0]).any():
        z = math.nan
    numbers = (scores[0], scores[1], risk[0], proportion[0], risk[1], proportion[1], z)
    return Fit(compared.models[a], *map(float, numbers))
