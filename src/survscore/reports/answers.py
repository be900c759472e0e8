"""The first screen of a report: which model, by how much, how certain, and whether to rely on it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from survscore._validation import several
from survscore.engine.averaging import Range
from survscore.engine.evaluation import ScoreArrays
from survscore.inference.intervals import sides
from survscore.reports.comparing import Findings, Row, as_table, digits_for, mark_of, p_value, plain
from survscore.reports.section import (
    MODEL,
    Column,
    PageTable,
    Panel,
    Section,
    capital,
    judged,
    scope,
)
from survscore.results.estimates import Estimates
from survscore.results.printing import with_short_names
from survscore.results.recommendation import Recommendation
from survscore.results.rounding import fixed, missing
from survscore.weighting import IPCW, Administrative, Projected, Uncensored, Weighting

if TYPE_CHECKING:
    import pandas as pd

    from survscore.reports.study import Study

Trust = Literal["yes", "with care", "no"]
FEW_MODELS = 3  # up to so many, every pair has a card
#: What a verdict says of a model and what it is compared with.
RELATIONS = {
    "better": "is significantly better than",
    "worse": "is significantly worse than",
    "lower": "has a lower value than",
    "higher": "has a higher value than",
    "undecided": "is not significantly different from",
    "unknown": "cannot be compared with",
}


class Answers:
    """What can be said about all pairs of models under one weighting, by metric; `time_range` is that of the means."""

    def __init__(self, findings: Findings, time_range: Range, weighting: str) -> None:
        self.findings, self.weighting = findings, weighting
        compared = findings.comparison
        over = None if findings.means is None else compared.means_over(*time_range, nan="stop")
        self.scored: dict[str, ScoreArrays] = {one.metric: one for one in compared.scored if one.weighting == weighting}
        self.estimates = {
            metric: Estimates(one, compared.level, None if over is None else over[metric][0])
            for metric, one in self.scored.items()
        }

    def score(self, metric: str, model: str) -> float:
        """Return the mean score of a model, or that at one time."""
        place = self.findings.places[metric]
        return float(self.estimates[metric].scores[self.findings.comparison.models.index(model), place])

    def contrast(self, metric: str, model: str, reference: str) -> dict[str, Any]:
        """Return the difference of two models, with interval, p-value, verdict, and bounds where some dropped out."""
        compared, seen = self.findings.comparison, self.estimates[metric]
        a, b = compared.models.index(model), compared.models.index(reference)
        columns = {**seen.difference(a, b), **seen.bounds(a, b)}
        columns["difference"] = columns.pop("estimate")
        place = self.findings.places[metric]
        values = {name: plain(np.asarray(column).reshape(-1)[place]) for name, column in columns.items()}
        row = {"metric": metric, "weighting": self.weighting, "model": model, "reference": reference, **values}
        return row | {"mark": mark_of(row, compared.encodes)}

    def models(self, metric: str) -> list[str]:
        """Return the models that have a score by a metric, the null model last."""
        compared = self.findings.comparison
        some = [name for name in compared.models if not np.isnan(self.score(metric, name))]
        if not self.scored[metric].has_null and compared.null in some:
            some.remove(str(compared.null))
        return sorted(some, key=lambda name: name == compared.null)

    def ranked(self, metric: str) -> list[str]:
        """Return the models that have a score, the best first; nothing where no value is better than another."""
        direction = self.scored[metric].direction
        if direction not in ("lower", "higher"):
            return []
        sign = 1 if direction == "lower" else -1
        return sorted(self.models(metric), key=lambda name: sign * self.score(metric, name))

    def pairs(self) -> pd.DataFrame:
        """Return the contrasts of all pairs, of each the better one first; of most metrics and models, a long table."""
        import pandas as pd

        rows = []
        for metric in self.scored:
            ranked = self.ranked(metric) or self.models(metric)
            rows += [self.contrast(metric, a, b) for a, b in combinations(ranked, 2)]
        return pd.DataFrame(rows)

    def sentence(self, metric: str) -> str:
        """Say in a sentence or two which model is best, and from which it does not differ significantly."""
        compared, label = self.findings.comparison, self.scored[metric].label
        every, ranked = self.models(metric), self.ranked(metric)
        real = [name for name in ranked if name != compared.null]
        if len(every) < 2:
            return "There is one model, and nothing to compare it with."
        if not ranked:
            closer = self.scored[metric].direction
            return f"The {label} is better the {closer} it is: a difference says only which is higher."
        if not real:
            return f"No model has a {label}."
        best, *others = real
        against = {name: self.contrast(metric, best, name)["verdict"] for name in every if name != best}
        worse, same = ([name for name in others if against[name] == verdict] for verdict in ("better", "undecided"))
        about_models = ""
        if len(others) == 1 and same:
            about_models = f"No winner: {best} and {same[0]} do not differ significantly."
        elif same:  # what holds of the best and each of these need not hold of two of these
            about_models = f"No single winner: {best} is not significantly different from {several(same)}"
            about_models += f"; it is significantly better than {several(worse)}." if worse else "."
        elif others and len(worse) == len(others):
            about_models = f"{best} is best: it is significantly better than {several(worse)}."
        elif others:
            about_models = f"{best} has the best {label}, but its differences to others have no interval."
        winner = not same and len(worse) == len(others)
        about_null = self._against_null(best, against, alone=not others, winner=winner)
        return " ".join(part for part in (about_models, about_null) if part)

    def _against_null(self, best: str, against: dict[str, str], *, alone: bool, winner: bool) -> str:
        null = self.findings.comparison.null
        if null is None or null not in against or (against[null] == "better" and not alone):
            return ""
        if against[null] not in ("better", "worse", "undecided"):
            return ""
        who = best if alone else "But it" if winner else f"{best}, the best of them,"
        return f"{who} {RELATIONS[against[null]]} {null}, the same curve for all individuals."

    def cards(self, metric: str) -> list[dict[str, Any]]:
        """Return what to say about pairs of models: of few models all, of many each against the reference.

        A null model is what others are compared with; of many models, only the best is.
        """
        compared = self.findings.comparison
        some, ranked = self.models(metric), self.ranked(metric)
        real = [name for name in some if name != compared.null]
        reference = compared.reference
        pairs = [(name, reference) for name in real if name != reference and reference in real]
        in_order = [name for name in ranked or real if name != compared.null]
        if len(real) <= FEW_MODELS:
            pairs += list(combinations([name for name in in_order if name != reference], 2))
        if compared.null in some:
            pairs += [(name, str(compared.null)) for name in in_order[: None if len(real) < FEW_MODELS else 1]]
        return [self._concluded(self._card(self.contrast(metric, *pair)), metric) for pair in pairs]

    def parts(self, metric: str) -> dict[str, list[Any]]:
        """Return what was observed of a projected score and what is projected, and with which hazards signs change.

        The reference comes first. Nothing where there are no projected scores, or no status is hidden.
        """
        concluded = self.findings.recommendations.get(metric)
        verdicts = () if concluded is None else concluded.verdicts
        if not verdicts or not verdicts[0].hidden:
            return {}
        reference = verdicts[0].fits[1]
        rows = [(reference, None), *((one.fits[0], one) for one in verdicts)]
        hidden = [None if one is None else one.sensitivity for _, one in rows]
        return {
            "model": [fit.model for fit, _ in rows],
            "observed": [plain(fit.observed_score) for fit, _ in rows],
            "projected": [plain(fit.projected_score) for fit, _ in rows],
            "share_observed": [plain(verdicts[0].share_observed)] * len(rows),
            "tipping_lower": [None if point is None else plain(point.tipping_lower) for point in hidden],
            "tipping_upper": [None if point is None else plain(point.tipping_upper) for point in hidden],
            "sign_changes": ["" if one is None else one.tipping for _, one in rows],
        }

    def _concluded(self, card: dict[str, Any], metric: str) -> dict[str, Any]:
        """Return a card with what the recommendation adds to it, where there is one."""
        if metric not in self.findings.recommendations or card["verdict"] not in RELATIONS:
            return card
        compared = self.findings.comparison.against(card["reference"])
        verdicts = compared.recommendation(*self.findings.time_range, metric=metric).verdicts
        verdict = next(verdict for verdict in verdicts if verdict.sensitivity.model == card["model"])
        if verdict.verdict == "depends":
            relation = "is better or worse, depending on the individuals with hidden status, than"
            notes = [f"The sign would change with {verdict.would_change}.", *card["notes"]]
            card = card | {"verdict": "undecided", "relation": relation, "notes": notes}
        encoding = [f"{name} probably encodes the entry date." for name in verdict.encodes]
        return card | {"notes": [*card["notes"], *encoding]}

    def _card(self, row: Row) -> dict[str, Any]:
        compared, one = self.findings.comparison, self.scored[row["metric"]]
        words = sides(one.direction)
        card: dict[str, Any] = {name: row[name] for name in ("model", "reference", "verdict")}
        card |= {"relation": RELATIONS[row["verdict"]], "amount": None, "percent": None, "interval": None, "p": None}
        card["notes"] = []
        if missing(row["lower"]) or missing(row["upper"]):
            return card | {"notes": ["Their difference has no interval."]}
        digits = digits_for(row["lower"], row["upper"])
        reference = self.score(row["metric"], row["reference"])
        size, side = _sided(row["difference"], digits, words)
        nothing = not _value(size)
        card["amount"] = "no difference" if nothing else f"{size} {side}"
        if not nothing and one.has_ratios and one.direction in ("lower", "higher") and reference > 0:
            part = abs(row["difference"]) / reference
            percent = f"{100 * part:.1f} %" if part >= 0.01 else f"{100 * part:.2g} %"
            card["percent"] = f"{percent} of {row['reference']}'s {fixed(reference)}"
        between = _between(row["lower"], row["upper"], digits, words, side)
        card["interval"], card["p"] = f"{100 * compared.level:g} % interval {between}", p_value(row["p_value"])
        if not row.get("reliable", True):
            card["notes"].append("Too few events, individuals without event, or groups for a reliable interval.")
        bounds = self.findings.bounds_sentence(row)
        card["notes"] += [] if bounds is None else [bounds]
        return card


def _sided(value: float, digits: int, words: tuple[str, str]) -> tuple[str, str]:
    """Return the size of a difference, and on which side of zero it lies."""
    return fixed(abs(value), digits), words[0] if value < 0 else words[1]


def _between(lower: float, upper: float, digits: int, words: tuple[str, str], first: str) -> str:
    """Return between which differences, in words; the end on the side of the estimate first."""
    ends = [_sided(value, digits, words) for value in (lower, upper)]
    if ends[0][1] == ends[1][1]:
        nearer, farther = sorted((size for size, _ in ends), key=_value)
        return f"{nearer} to {farther} {ends[0][1]}"
    ends.sort(key=lambda end: end[1] != first)
    return f"from {' '.join(ends[0])} to {' '.join(ends[1])}"


def _value(size: str) -> float:
    return float(size.replace(",", ""))


def recommendation(
    sentence: str,
    caution: str | None,
    contradictions: Sequence[str],
    unclear: Sequence[str],
    *,
    certain: bool,
    leaking: Sequence[str] = (),
    concluded: Recommendation | None = None,
) -> dict[str, Any]:
    """Return whether to rely on the answer, and why.

    With `concluded`, from administrative and projected scores, its sentences and no others. Otherwise `sentence` says
    which weighting to use and `certain` whether it is known to fit; `caution` what to beware of where the only one is
    known to mislead; the others where weightings disagree, and which models encode C*, which some weightings prefer.
    """
    trust: Trust = "with care"
    heading, sentences = "interpret with care", [sentence, *unclear]
    if concluded is not None:
        encoding = concluded.encodes
        heading = f"do not use {several(list(encoding))} for new individuals" if encoding else heading
        if concluded.certain:
            trust, heading = "yes", "rely on this"
        sentences = [*concluded.sentences, *contradictions]
    elif caution is not None:
        trust, heading = "no", "do not rely on this, since the only weighting is known to mislead"
        sentences = [caution, *contradictions]
    elif contradictions:
        heading, sentences = f"{heading}, since weightings contradict each other", [*contradictions, sentence]
    elif certain and leaking:
        heading = f"rely on this, but not on IPCW scores of {several(leaking)}"
    elif certain:
        trust, heading = "yes", "rely on this"
    return {"trust": trust, "heading": heading, "sentences": sentences}


@dataclass(frozen=True)
class WeightingChoice:
    """Which weighting to use, and why; its place among those given, or that of the first if it is not among them.

    It is certain if these data allow what it needs, as far as can be known.
    """

    position: int
    sentence: str
    certain: bool = True


def recommended_weighting(weightings: Sequence[Weighting], *, n: int, n_dropped_out: int | None) -> WeightingChoice:
    """Return which of some weightings to use.

    If the status of all individuals is known, no weights are needed. If C* is known for all, the administrative
    weighting counts those with C* >= t, whether or not predictions encode C*; an IPCW score prefers predictions that
    fall to zero after C*. Drop-out before C* is accounted for by weights. IPCW is for data without C*.

    `n_dropped_out` is None where C* is not known.

    Examples
    --------
    >>> import survscore as ss
    >>> from survscore.reports.answers import recommended_weighting
    >>> recommended_weighting([ss.IPCW(), ss.Administrative()], n=500, n_dropped_out=0)
    WeightingChoice(position=1, sentence='Use administrative: C* is known for each individual, and at each time t it
    counts those with C* >= t, while IPCW scores reward predictions that encode C*.', certain=True)
    """
    known = n_dropped_out is not None
    labels = [one.named(somebody_left=bool(n_dropped_out) or not known) for one in weightings]
    for position, one in enumerate(weightings):
        if isinstance(one, Uncensored):
            return WeightingChoice(
                position, f"Use {labels[position]}: the status of each individual is known at all these times."
            )
    for position, one in enumerate(weightings if known else ()):
        if isinstance(one, Administrative) and any(isinstance(other, Projected) for other in weightings):
            return WeightingChoice(
                position,
                "Use administrative and projected together: the former needs no assumption about those with C* < t and "
                "refers to those with C* >= t, the latter refers to all individuals.",
            )
        if isinstance(one, Administrative):
            return WeightingChoice(position, f"Use {labels[position]}: {_why(n, n_dropped_out or 0)}.")
    if not any(isinstance(one, IPCW) for one in weightings):
        return WeightingChoice(0, f"Use {labels[0]} as far as it fits these data.", certain=False)
    if known:
        none = f"Use the administrative score instead of these: {_why(n, n_dropped_out or 0)}."
        return WeightingChoice(0, none, certain=False)
    position = next(k for k, one in enumerate(weightings) if isinstance(one, IPCW))
    return WeightingChoice(
        position,
        f"Use {labels[position]} only if predictions do not encode C*, which is unknown here; if follow-up ends on a "
        "known date, C* of each individual makes an administrative score possible, which is not misled.",
        certain=False,
    )


def _why(n: int, n_dropped_out: int) -> str:
    dropped_out = (
        f", with weights for the {n_dropped_out:,} of {n:,} who dropped out before C*" if n_dropped_out else ""
    )
    return (
        f"C* is known for each individual, and at each time t it counts those with C* >= t{dropped_out}, while IPCW "
        "scores reward predictions that encode C*"
    )


class AnswerSection(Section):
    """The first screen: what to conclude, by how much, how certain, and what would change it."""

    files = {"pairs": "pairs", "score-parts": "score_parts", "disagreements": "disagreements table"}

    @classmethod
    def data(cls, study: Study, before: dict[str, Any]) -> dict[str, Any]:
        findings, answers, weightings = study.findings, study.answers, study.comparison.weightings
        disagreements = findings.disagreements()
        preferred = any(isinstance(one, IPCW) for one in study.weightings)
        leaking = [leak["model"] for leak in before["leaks"] if leak["verdict"] == "encodes C*" and preferred]
        answer: dict[str, dict[str, Any]] = {}
        for metric in study.comparison.metrics:
            concluded = findings.recommendations.get(metric)
            advice = recommendation(
                study.recommended.sentence,
                study.caution,
                with_short_names(disagreements["contradictions"][metric], weightings),
                with_short_names(disagreements["unclear"][metric], weightings),
                certain=study.recommended.certain,
                leaking=leaking,
                concluded=concluded,
            )
            answer[metric] = {
                "sentence": answers.sentence(metric) if concluded is None else concluded.headline,
                "cards": answers.cards(metric),
                "parts": answers.parts(metric),
                "recommendation": advice,
            }
        table = as_table(study.comparison.disagreements())
        parts = {metric: one["parts"] for metric, one in answer.items() if one["parts"]}
        columns: dict[str, list[Any]] = next(iter(parts.values()), {})
        joined = {name: [value for one in parts.values() for value in one[name]] for name in columns}
        return {
            "score_parts": {"metric": [name for name, one in parts.items() for _ in one["model"]], **joined},
            "recommended": study.recommended.sentence if len(study.weightings) > 1 else None,
            "caution": study.caution,
            "answer": answer,
            "pairs": as_table(answers.pairs()),
            "disagreements": {**disagreements, "table": table},
        }

    def _differences(self) -> list[Panel]:
        """Return the differences to the reference by metric: models in groups, in each the weightings.

        Rows say where in the table of verdicts they stand; what has no difference is left out.
        """
        table, panels = self.summary["verdicts"], []
        for metric in self.summary["metrics"]:
            rows: dict[str, list[Panel]] = {}
            for k, model in enumerate(table.get("model", [])):
                if table["metric"][k] == metric and table["difference"][k] is not None:
                    row = {"at": k, **self.of_weighting(table["weighting"][k])}
                    rows.setdefault(model, []).append(row)
            groups = [
                {**self.series(model, 0, 0), "rows": sorted(rows[model], key=lambda row: "main" not in row)}
                for model in sorted(rows, key=lambda model: model == self.summary["null_model"])
            ]
            if groups:
                label = f"{'mean ' if self.summary['means'] else ''}{self.summary['metrics'][metric]['label']}"
                title = f"Difference in {label} to {self.summary['reference']}"
                panel = {"kind": "answer", "metric": metric, "title": title, "xlabel": f"difference in {label}"}
                panels.append({**panel, "sides": self.sides(metric), "groups": groups})
        return panels

    def _score_parts(self) -> Iterable[PageTable]:
        """Yield the observed and the projected part of scores, and what would change the sign of differences."""
        for metric, answer in self.summary["answer"].items():
            table = answer["parts"]
            if not table:
                continue
            share = 100 * table["share_observed"][0]
            changes = table["sign_changes"]
            columns = [
                Column("model", table["model"], MODEL),
                Column(f"observed: C* ≥ t ({share:.0f} %)", [fixed(one) for one in table["observed"]], "r"),
                Column(f"projected: C* < t ({100 - share:.0f} %)", [fixed(one) for one in table["projected"]], "r"),
                Column("tipping point", [f"{one} times the hazard" if " than " in one else one for one in changes]),
            ]
            caption = (
                f"{capital(self.mean(metric))} in two parts. Tipping point: the hazard of those with hidden status "
                f"at which the difference to {self.summary['reference']} changes its sign"
            )
            yield self.page_table("score-parts", caption, columns, metric=metric)

    def _pairs(self) -> Iterable[PageTable]:
        """Yield all pairs of models under the weighting of the answer, where that is more than the cards say."""
        for metric, table in self.by_metric(self.summary["pairs"]):
            if len(table["model"]) <= len(self.summary["models"]) - 1:
                continue
            columns = [Column("model", table["model"], MODEL), Column("against", table["reference"])]
            columns += [*self.estimates("difference", table, "difference"), *judged(table)]
            better_first = f"Every pair of models by {self.mean(metric)}, the better one first"
            yield self.page_table("pairs", f"{better_first}, {self.headline}{scope(table)}", columns, metric=metric)

    charts = {"answer": _differences}
    shown = {"score-parts": _score_parts, "pairs": _pairs}
