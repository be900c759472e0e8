"""Which of two models to use, for whom, and under which assumption: decided here, and printed wherever results are."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from survscore._validation import InputError, shown
from survscore.engine.evaluation import ScoreArrays
from survscore.metrics import metric_label
from survscore.results.estimates import Estimates
from survscore.results.rounding import decimals, p_text
from survscore.results.sensitivity import TippingPoint, when_text
from survscore.weighting import Administrative

if TYPE_CHECKING:
    import pandas as pd

    from survscore.results.comparison import Comparison

Vector = NDArray[np.float64]
Code = Literal["better", "worse", "undecided", "depends", "too few"]

ROUNDING = 1e-9  # of a difference: a smaller one is none
#: Predictions fit early and late starters so differently, in standard errors of the difference of two proportions,
#: that the entry date must be behind it.
MUCH = 3.0


@dataclass(frozen=True)
class Fit:
    """How a model's predictions fit those observed at least t, and the others: means over them, and over time.

    Attributes
    ----------
    model : str
        Which.
    observed_score, projected_score : float
        The score of those with C* >= t, and of those with C* < t.
    observed_risk, observed_proportion : float
        Of those with C* >= t, the mean predicted risk, and the proportion with event.
    projected_risk, projected_proportion : float
        Of those with C* < t, the same; what is hidden of their statuses is projected.
    z : float
        How much further apart the two are among those with C* < t than among the others, in standard errors of a
        difference of two proportions, whatever plausible hazards those not yet followed have; NaN of the null model.
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
    """What to conclude about a model and the reference.

    Attributes
    ----------
    verdict : {"better", "worse", "undecided", "depends", "too few"}
        Of the model, for all individuals: "depends" on those not yet followed; "too few" are followed.
    sentences : tuple of str
        The same in words.
    scope : str
        For whom, and under which assumption, in words.
    would_change : str
        What would change it.
    population, assumption : str
        To whom the verdict refers, and what it assumes about those not yet followed.
    encodes : tuple of str
        Which of the two models probably encode the entry date.
    p_value : float
        Of the projected difference.
    administrative, administrative_lower, administrative_upper : float
        The difference among those observed at least t.
    share_observed : float
        Of the individuals, how many were observed at least t; of a mean, on average.
    sensitivity : TippingPoint
        The projected difference, its tipping points, and the hazard ratio of late starters.
    fits : tuple of Fit
        Of the model, and of the reference.
    """

    verdict: Code
    sentences: tuple[str, ...]
    scope: str
    would_change: str
    population: str
    assumption: str
    encodes: tuple[str, ...]
    p_value: float
    administrative: float
    administrative_lower: float
    administrative_upper: float
    share_observed: float
    sensitivity: TippingPoint
    fits: tuple[Fit, Fit]

    @property
    def sentence(self) -> str:
        """All in words."""
        return " ".join(filter(None, (*self.sentences, self.scope)))


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
        """One paragraph for each model; last, for whom verdicts are, and under which assumption."""
        scopes = dict.fromkeys(one.scope for one in self.verdicts if one.scope)
        return [*(" ".join(one.sentences) for one in self.verdicts), *scopes]

    @property
    def headline(self) -> str:
        """The verdicts alone, and which models not to use."""
        told, reference = [], shown(self.verdicts[0].sensitivity.reference) if self.verdicts else ""
        for code, relation in RELATIONS.items():
            some = [shown(one.sensitivity.model) for one in self.verdicts if one.verdict == code]
            if some:
                verb = "is" if len(some) == 1 else "are"
                told.append(f"{_several(some)} {verb} {relation.format(reference)}.")
        encodes = [shown(name) for name in dict.fromkeys(name for one in self.verdicts for name in one.encodes)]
        if encodes:
            verb = "encodes" if len(encodes) == 1 else "encode"
            told.append(f"{_several(encodes)} probably {verb} the entry date: do not use for new individuals.")
        return " ".join(told)

    @property
    def certain(self) -> bool:
        """Whether all is decided, and no model encodes the entry date."""
        return all(one.verdict in ("better", "worse") and not one.encodes for one in self.verdicts)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per model: verdict, sentence, what would change it, and all numbers."""
        import pandas as pd

        rows = []
        for one in self.verdicts:
            values = {**asdict(one), **asdict(one.sensitivity), "verdict": one.verdict, "sentence": one.sentence}
            for who, fit in zip(("model", "reference"), one.fits, strict=True):
                values |= {f"{who}_{name}": number for name, number in asdict(fit).items() if name != "model"}
            rows.append({name: value for name, value in values.items() if name not in NESTED})
        return pd.DataFrame(rows).rename(columns={"first": "from", "last": "to"})

    def __str__(self) -> str:
        return "\n".join(self.sentences)

    __repr__ = __str__


#: Of models, what their verdicts say.
RELATIONS: dict[Code, str] = {
    "better": "significantly better than {}, for all individuals",
    "worse": "significantly worse than {}, for all individuals",
    "undecided": "not significantly different from {}, for all individuals",
    "depends": "better or worse than {} depending on those not yet followed",
    "too few": "not comparable with {}: too few are followed",
}
NESTED = ("sensitivity", "fits", "sentences", "scope")


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
    sensitivity, found = compared.sensitivity(lower, upper), []
    over = sensitivity.over.get(projected.metric)
    weights = None if over is None or time is not None else over[0]
    j = 0 if weights is not None or time is None else int(np.flatnonzero(compared.times == time)[0])
    r = compared.models.index(compared.reference)
    for a, model in enumerate(compared.models):
        if a == r or np.isnan(projected.scores[a]).all():
            continue
        point = sensitivity.point(model, time=time, metric=projected.metric)
        rows = [Estimates(one, compared.level, weights).difference(a, r) for one in (projected, administrative)]
        of_projected, of_administrative = ({name: column[j] for name, column in row.items()} for row in rows)
        at_times = np.eye(projected.scores.shape[1])[j] if weights is None else weights[: projected.scores.shape[1]]
        fits = (
            _fit(projected, compared, a, at_times, point.plausible),
            _fit(projected, compared, r, at_times, point.plausible),
        )
        pair = _Pair(
            point, float(of_projected["p_value"]), float(of_projected["se"]),
            tuple(float(of_administrative[name]) for name in ("estimate", "lower", "upper", "se")),
            _share(projected, at_times), fits, compared.level, "; ".join(projected.undefined),
        )  # fmt: skip
        found.append(pair.verdict())
    return Recommendation(tuple(found))


def scored_by_both(compared: Comparison, metric: str | None = None) -> tuple[ScoreArrays, ScoreArrays]:
    """Return projected and administrative scores by a loss; raise where there are none."""
    projected = [one for one in compared.scored if one.by_theta is not None and metric in (None, one.metric)]
    for one in projected:
        for other in compared.scored:
            if other.metric == one.metric and is_administrative(other.weighting):
                return one, other
    raise InputError(
        "a recommendation needs administrative and projected scores by a loss, such as 'brier': "
        "compare(..., weighting=['administrative', 'projected'])"
    )


def is_administrative(weighting: str) -> bool:
    """Whether a weighting, in words, is the administrative one."""
    return weighting.partition(" (")[0] == Administrative.name


def _share(one: ScoreArrays, weights: Vector) -> float:
    return float("nan") if one.parts is None else float(one.parts.share[weights > 0] @ weights[weights > 0])


def _fit(one: ScoreArrays, compared: Comparison, a: int, weights: Vector, plausible: tuple[float, float]) -> Fit:
    """Return means over the times with weights, each weighted by how many belong to it."""
    parts, by_theta = one.parts, one.by_theta
    if parts is None or by_theta is None:
        raise TypeError("there are no parts")
    used = weights > 0
    sizes = np.stack((parts.share, 1.0 - parts.share))[:, used] * weights[used]

    def means(values: Vector) -> Vector:
        with np.errstate(invalid="ignore", divide="ignore"):  # NaN of nobody
            return np.asarray(np.where(sizes > 0, values[:, used] * sizes, 0.0).sum(axis=1) / sizes.sum(axis=1))

    scores = means(np.stack((parts.observed[a], parts.projected[a])))
    risk, proportion = 1.0 - means(by_theta.predicted[a]), 1.0 - means(by_theta.event_free[a])
    # With hazards theta times as high, (1 - proportion)^theta of the late starters would be event-free. Either way: an
    # honest model has the hazards of early starters, while what late starters had is part of their proportion.
    factor = max(plausible[1], 1.0 / plausible[0])
    low, high = (1.0 - (1.0 - proportion[1]) ** theta for theta in (1.0 / factor, factor))
    further = max(low - risk[1], risk[1] - high, 0.0) - abs(risk[0] - proportion[0])
    n = compared.n * sizes.sum(axis=1) / weights[used].sum()
    with np.errstate(invalid="ignore", divide="ignore"):
        se = np.sqrt(np.sum(np.maximum(proportion * (1 - proportion), 1.0 / n) / n))
        z = float("nan") if compared.models[a] == compared.null else float(further / se)
    early, late = ((float(risk[k]), float(proportion[k])) for k in range(2))
    return Fit(compared.models[a], float(scores[0]), float(scores[1]), *early, *late, z)


@dataclass(frozen=True)
class _Pair:
    """A model and the reference: all numbers, from which the verdict and its words follow."""

    point: TippingPoint
    p_value: float
    se: float
    administrative: tuple[float, ...]  # difference, limits, standard error
    share: float
    fits: tuple[Fit, Fit]
    level: float
    undefined: str

    def verdict(self) -> Verdict:
        """Apply the rules in their order."""
        code, sentences = self._decide()
        estimate, lower, upper, _ = self.administrative
        encodes = tuple(fit.model for fit in self.fits if fit.encodes)
        return Verdict(
            code, tuple(sentences), "" if code == "too few" else self._scope(), self._would_change(code),
            self._population(), self._assumption(), encodes, self.p_value, estimate, lower, upper, self.share,
            self.point, self.fits,
        )  # fmt: skip

    def _decide(self) -> tuple[Code, list[str]]:
        point, (model, reference) = self.point, self.names
        if np.isnan(point.difference) or point.verdict not in ("better", "worse", "undecided"):
            why = self.undefined or "too few events, individuals without event, or groups"
            return "too few", [f"{model} and {reference} cannot be compared {self.when}: {why}."]
        if point.verdict == "undecided":
            return "undecided", [self._not_decided(), *self._suspicions()]
        winner, loser = self.names if point.difference < 0 else self.names[::-1]
        if not point.sign_holds:
            return "depends", [*self._depends(winner, loser), *self._suspicions()]
        code: Code = "better" if point.difference < 0 else "worse"
        # of those observed at least t, the loser is as good or better
        if self.administrative[0] * point.difference <= ROUNDING * point.difference**2:
            return code, [*self._contradicted(winner, loser), *self._late_starters()]
        return code, [self._better(winner, loser), *self._late_starters(), *self._suspicions()]

    @property
    def names(self) -> tuple[str, str]:
        return shown(self.point.model), shown(self.point.reference)

    @property
    def label(self) -> str:
        return metric_label(self.point.metric)

    @property
    def when(self) -> str:
        return when_text(self.point) if self.point.first == self.point.last else f"({when_text(self.point)})"

    @property
    def t(self) -> str:
        return f"{self.point.first:g}" if self.point.first == self.point.last else "t"

    @property
    def others(self) -> str:
        """Those observed for less than t."""
        average = "" if self.point.first == self.point.last else " on average"
        return f"the {_percent(1 - self.share)}{average} observed for less"

    def _population(self) -> str:
        if not self.share < 1:
            return "all individuals"
        return f"all individuals, including {self.others} than {self.t}"

    def _assumption(self) -> str:
        if not self.share < 1:
            return "none about those not yet followed: there are none"
        return f"those observed for less than {self.t} {self._assumed()}"

    def _assumed(self) -> str:
        times = "" if self.point.theta == 1 else f"{self.point.theta:g} times "
        return (
            f"are assumed to have, from their last day on, {times}the hazards of individuals of similar predicted risk "
            "who were observed longer"
        )

    def _would_change(self, code: Code) -> str:
        if code == "too few":
            return "longer follow-up"
        if code == "undecided":
            return "longer follow-up, or more individuals"
        ends = self._ends()
        return f"{ends} times the assumed hazard of those not yet followed" if ends else "no hazard that was looked at"

    def _scope(self) -> str:
        if not self.share < 1:
            return ""
        return f"All individuals include {self.others} than {self.t}, who {self._assumed()}."

    def _better(self, winner: str, loser: str) -> str:
        told = f"{winner} is significantly better than {loser} {self.when} for all individuals: its {self._by()}."
        return f"{told} {self._tipping()}" if self.share < 1 else told

    def _tipping(self) -> str:
        """Return with which hazards of those not yet followed the sign changes."""
        ends = self._ends()
        if not ends:
            return "The sign is the same for 1/32 to 32 times the assumed hazard of those not yet followed."
        return f"The sign would change with {ends} times the assumed hazard of those not yet followed."

    def _ends(self) -> str:
        low, high = self.point.tipping_lower / self.point.theta, self.point.tipping_upper / self.point.theta
        ends = [f"less than {low:.2g}"] if low > 0 else []
        return " or ".join([*ends, f"more than {high:.2g}"] if np.isfinite(high) else ends)

    def _not_decided(self) -> str:
        model, reference = self.names
        told = (
            f"Not decided: {model} is not significantly different from {reference} {self.when} for all individuals "
            f"(projected {self.label}: {self._difference()}); follow up longer."
        )
        estimate, lower, upper, _ = self.administrative
        if lower * upper > 0:
            better = model if estimate < 0 else reference
            told += (
                f" Only for individuals observed at least {self.t} is {better} significantly better "
                f"(administrative {self.label})."
            )
        return told

    def _depends(self, winner: str, loser: str) -> list[str]:
        point = self.point
        start = f"{winner} has the better projected {self.label} {self.when} ({self._difference()}), but"
        ratio = self._ratio()
        if ratio and not point.ratio_lower <= point.theta <= point.ratio_upper:
            told = f"No verdict: {ratio}, and with such hazards the sign of the difference may change."
            return [f"{start} that depends on those not yet followed.", told]
        told = f"{start} whether it is better than {loser} depends on those not yet followed. {self._tipping()}"
        return [told, *([f"{ratio[0].upper()}{ratio[1:]}."] if ratio else [])]

    def _contradicted(self, winner: str, loser: str) -> list[str]:
        fits = {shown(fit.model): fit for fit in self.fits}
        of_loser, of_winner = fits[loser], fits[winner]
        significant = self.administrative[1] * self.administrative[2] > 0
        better = "significantly better than" if significant else "as good as or better than"
        times = of_loser.projected_score / of_winner.projected_score if of_winner.projected_score > 0 else math.inf
        told = (
            f"Among individuals observed at least {self.t}, {loser} is {better} {winner}; for {self.others}, its "
            f"projected {self.label} is {times:.2g} times as high"
        )
        if of_loser.encodes:
            return [
                f"{told}: it probably encodes the entry date. Do not use it for new individuals.",
                _means(of_loser),
                self._better(winner, loser),
                *([_also(of_winner)] if of_winner.encodes else []),
            ]
        return [self._better(winner, loser), f"{told}.", *([_also(of_winner)] if of_winner.encodes else [])]

    def _suspicions(self) -> list[str]:
        return [_also(fit) for fit in self.fits if fit.encodes]

    def _late_starters(self) -> list[str]:
        """Say so if late starters have another hazard; the sign of the difference is the same there."""
        ratio, point = self._ratio(), self.point
        if not ratio or point.ratio_lower <= point.theta <= point.ratio_upper:
            return []
        return [f"{ratio[0].upper()}{ratio[1:]}; the verdict is the same with such hazards."]

    def _ratio(self) -> str:
        point = self.point
        if np.isnan(point.hazard_ratio):
            return ""
        return (
            f"late starters had {point.hazard_ratio:.2f} times the hazard of the others at the same ages "
            f"({100 * self.level:g} % interval {point.ratio_lower:.2f} to {point.ratio_upper:.2f})"
        )

    def _by(self) -> str:
        """Return by how much the score of the better model is lower."""
        return f"projected {self.label} is lower by {self._numbers(abs(self.point.difference), absolute=True)}"

    def _difference(self) -> str:
        return f"difference {self._numbers(self.point.difference, absolute=False)}"

    def _numbers(self, value: float, *, absolute: bool) -> str:
        lower, upper = self.point.lower, self.point.upper
        if absolute and self.point.difference < 0:
            lower, upper = -upper, -lower
        places = decimals([self.se], 4)
        p = p_text(self.p_value)
        shown_p = f"p {p.replace('<', '< ')}" if p.startswith("<") else f"p = {p}"
        return (
            f"{value:.{places}f} ({100 * self.level:g} % interval {lower:.{places}f} to {upper:.{places}f}, {shown_p})"
        )


def _means(fit: Fit) -> str:
    """Return mean prediction against observed proportion, of early and of late starters."""
    return (
        f"Mean predicted risk of {shown(fit.model)}: {fit.observed_risk:.2f} against {fit.observed_proportion:.2f} "
        f"observed among the former, {fit.projected_risk:.2f} against {fit.projected_proportion:.2f} projected among "
        "the latter."
    )


def _also(fit: Fit) -> str:
    return (
        f"{shown(fit.model)} probably encodes the entry date: its mean predicted risk is {fit.projected_risk:.2f} "
        f"against {fit.projected_proportion:.2f} projected among individuals observed for less, and "
        f"{fit.observed_risk:.2f} against {fit.observed_proportion:.2f} among the others. Do not use it for new "
        "individuals."
    )


def _several(names: list[str]) -> str:
    return ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else "".join(names)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if 0.01 <= share <= 0.99 else f"{100 * share:.2g} %"
