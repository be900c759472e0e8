"""Which of two models to use, for whom, and under which assumption: decided here, and printed wherever results are."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from survscore._validation import InputError, several, shown
from survscore.engine.evaluation import ScoreArrays
from survscore.results.estimates import Estimates
from survscore.results.sensitivity import times_text
from survscore.results.verdicts import Code, Fit, Verdict
from survscore.weighting import Administrative

if TYPE_CHECKING:
    import pandas as pd

    from survscore.results.comparison import Comparison

Vector = NDArray[np.float64]


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
COLUMNS = (
    "verdict",
    "would_change",
    "population",
    "assumption",
    "encodes",
    "p_value",
    "administrative",
    "administrative_lower",
    "administrative_upper",
    "share_observed",
    "share_dropped_out",
)


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
            (
                _fit(projected, compared, a, weights, point.plausible),
                _fit(projected, compared, r, weights, point.plausible),
            ),
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


def _fit(scored: ScoreArrays, compared: Comparison, a: int, weights: Vector, plausible: tuple[float, float]) -> Fit:
    """Return means over the times with weights, each weighted by how many belong to it."""
    parts, by_theta = scored.parts, scored.by_theta
    if parts is None or by_theta is None:
        raise TypeError("there are no parts")
    scores = parts.mean(parts.scores, weights)[a]
    risk, proportion = (1.0 - parts.mean(of, weights)[a] for of in (by_theta.predicted, by_theta.event_free))
    # With hazards theta times as high, (1 - proportion)^theta of the late starters would be event-free. Either way: an
    # model without a leak has the hazards of early starters, while what late starters had is part of their proportion.
    # Of one of several causes the range is narrower than that: other events leave fewer who could have its.
    factor = max(plausible[1], 1.0 / plausible[0])
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
