"""A comparison and its means over time, as tables and in words."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from survscore._utils.parallel import cached_property
from survscore._validation import (
    FewFollowedWarning,
    FewGroupsWarning,
    InputError,
    UndefinedScoreWarning,
    UnequalWeightsWarning,
    plural,
    several,
)
from survscore.engine.averaging import Range
from survscore.engine.inputs import about_interpolation
from survscore.inference.support import FEW_FOR_DIFFERENCE
from survscore.metrics import Direction, cause_label, metric_label
from survscore.reports.section import Table
from survscore.results.comparison import Comparison, IntegratedComparison
from survscore.results.printing import undefined_times, verdict_of
from survscore.results.recommendation import Recommendation, is_administrative
from survscore.results.rounding import LEAST_P, fixed, interval_decimals, missing, short

if TYPE_CHECKING:
    import pandas as pd

Row = Mapping[str, Any]
WHOLE: Range = (None, None)
#: What the notes of a page say, and no warning repeats.
SHOWN_AS_NOTES = (UndefinedScoreWarning, FewFollowedWarning, FewGroupsWarning, UnequalWeightsWarning)


@dataclass(frozen=True, eq=False)
class Findings:
    """A comparison, and its means over a range of time; None with one time only, or where too few times have scores."""

    comparison: Comparison
    means: IntegratedComparison | None
    time_range: Range = WHOLE

    @classmethod
    def of(cls, comparison: Comparison, time_range: Range = WHOLE) -> Findings:
        """Take the means over the range, as far as there are scores; single times, where none was asked for."""
        return cls(comparison, means_of(comparison, time_range), time_range)

    @cached_property
    def places(self) -> dict[str, int]:
        """By metric, which row conclusions go by: the only one of means, or that of a time."""
        compared = self.comparison
        return {name: compared.usable_place(name) if self.means is None else 0 for name in compared.metrics}

    @cached_property
    def recommendations(self) -> dict[str, Recommendation]:
        """By metric, what to conclude from administrative and projected scores; of metrics that have both."""
        compared = self.comparison
        if not compared.has_recommendation:
            return {}
        metrics = [one.metric for one in compared.scored if one.by_theta is not None]
        return {name: compared.recommendation(*self.time_range, metric=name) for name in dict.fromkeys(metrics)}

    @cached_property
    def projected(self) -> str | None:
        """The projected weighting that conclusions are based on, in words; None where there is none."""
        some = [verdict for concluded in self.recommendations.values() for verdict in concluded.verdicts]
        return some[0].sensitivity.weighting if some else None

    @property
    def directions(self) -> dict[str, Direction]:
        """Which values are better, by metric."""
        return {scored.metric: scored.direction for scored in self.comparison.scored}

    @property
    def bounded(self) -> set[str]:
        """The metrics of which is known what those who dropped out could change."""
        return {scored.metric for scored in self.comparison.scored if scored.bounds is not None}

    @cached_property
    def time_ranges(self) -> dict[str, tuple[float, float]]:
        """Over which time the means are, by metric; empty where there are none."""
        if self.means is None:
            return {}
        first = self.means.scores.drop_duplicates("metric")
        return {row["metric"]: (float(row["from"]), float(row["to"])) for row in records(first)}

    @cached_property
    def mean_scores(self) -> pd.DataFrame:
        """The means with their skill, missing where there is none; an empty table, where there are no means."""
        import pandas as pd

        if self.means is None:
            return pd.DataFrame()
        scores: pd.DataFrame = self.means.scores
        if self.means.skill is None:
            return scores.assign(skill=math.nan)
        keys = ["metric", "weighting", "model"]
        return scores.merge(self.means.skill[[*keys, "skill"]], on=keys, how="left")

    @cached_property
    def judged(self) -> pd.DataFrame:
        """What verdicts go by: the contrasts of the means, or those at one time, each with its sentence."""
        of_means = None if self.means is None else self.means.contrasts
        contrasts = self.comparison.contrasts if of_means is None else of_means
        if of_means is None:
            contrasts = at_one_time(contrasts, self.comparison)
        # one model alone has no contrasts of means, and by time an empty table
        return contrasts.assign(sentence=[self._sentence(row) for row in records(contrasts)])

    def _sentence(self, row: dict[str, Any]) -> str:
        concluded = self.recommendations.get(row["metric"])
        for verdict in () if concluded is None else concluded.verdicts:
            if (verdict.sensitivity.model, verdict.sensitivity.weighting) == (row["model"], row["weighting"]):
                return verdict.sentence
        about_bounds = self.bounds_sentence(row)
        observed = concluded is not None and is_administrative(row["weighting"])
        whose = " for individuals with C* ≥ t only" if observed else ""
        sentence = verdict_sentence(row, self.comparison.level, whose, self.comparison.scored[0].cause)
        return sentence if about_bounds is None else f"{sentence} {about_bounds}"

    def bounds_sentence(self, row: Mapping[str, Any]) -> str | None:
        """Return what those who dropped out could change about a contrast; None where that is not known."""
        compared = self.comparison
        return bounds_sentence(row, compared.n_dropped_out or 0, compared.n, compared.level)

    def frames(self) -> dict[str, pd.DataFrame]:
        """Return scores and contrasts by time, means with skill, and verdicts, with their marks."""
        marks = [mark_of(row, self.comparison.encodes) for row in records(self.judged)]
        return {
            "scores": self.comparison.scores,
            "contrasts": self.comparison.contrasts,
            "means": self.mean_scores,
            "verdicts": self.judged.assign(mark=marks),
        }

    def disagreements(self) -> dict[str, dict[str, Any]]:
        """Return, by metric, where weightings contradict each other, and what is significant under some only."""
        metrics, reference = self.comparison.metrics, self.comparison.reference
        contradictions: dict[str, list[str]] = {metric: [] for metric in metrics}
        unclear: dict[str, list[str]] = {metric: [] for metric in metrics}
        unknown: dict[str, bool] = dict.fromkeys(metrics, False)
        for (metric, model), rows in by_name(self.judged, "metric", "model"):
            verdicts = dict(zip(rows["weighting"], rows["verdict"], strict=True))
            if metric in self.recommendations:  # which says where administrative scores differ, and for whom they hold
                verdicts = {name: verdict for name, verdict in verdicts.items() if not is_administrative(name)}
            contradictions[metric] += filter(None, [contradiction(model, reference, verdicts)])
            unclear[metric] += filter(None, [only_under_some(model, reference, verdicts)])
            unknown[metric] |= "unknown" in verdicts.values()
        return {"contradictions": contradictions, "unclear": unclear, "unknown": unknown}

    def notes(self, time_range: Range) -> list[str]:
        """Return in sentences at which times there is no score, and what that means for the means."""
        by_sentence: dict[str, list[str]] = {}
        for metric in self.comparison.metrics:
            sentence = undefined_times(scored for scored in self.comparison.scored if scored.metric == metric)
            if sentence:
                by_sentence.setdefault(sentence, []).append(metric)
        notes = [self._about(metrics, sentence) for sentence, metrics in by_sentence.items()]
        upper = float(self.comparison.times[-1]) if time_range[1] is None else float(time_range[1])
        by_stop: dict[float, list[str]] = {}
        for metric, (_, stop) in self.time_ranges.items():
            if stop < upper:
                by_stop.setdefault(stop, []).append(metric)
        for stop, metrics in by_stop.items():
            stopped = f"means stop at {short(stop)} instead of {short(upper)}: then some score is missing"
            notes.append(self._about(metrics, stopped))
        cautions = dict.fromkeys(
            caution
            for one in self.comparison.scored
            for caution in [*one.support.cautions(), *one.support.few_followed(), *one.support.unequal_weights()]
        )
        read = [sentence for one in self.comparison.scored for sentence in about_interpolation(one.settings["curves"])]
        notes += [self._about([], sentence) for sentence in dict.fromkeys([*read, *cautions])]
        contrasts = self.comparison.contrasts
        few = contrasts.loc[~contrasts["reliable"] & contrasts["difference"].notna(), "time"].unique()
        if few.size:
            notes.append(
                f"At {few.size} of {plural(self.comparison.times.size, 'time')}, fewer than {FEW_FOR_DIFFERENCE} "
                "individuals with event, or without, are counted, or groups are too few: intervals of differences are "
                "not reliable there."
            )
        return notes

    def _about(self, metrics: Sequence[str], sentence: str) -> str:
        """Return a sentence about some of the metrics, or about all."""
        some = metrics if len(metrics) < len(self.comparison.metrics) else []
        about = f"{', '.join(map(metric_label, some))}: {sentence}" if some else sentence
        return f"{about[0].upper()}{about[1:]}."


def means_of(result: Any, time_range: Range) -> Any:
    """Return the means of a comparison over a range of time; None where none was asked for and none can be made."""
    if time_range == WHOLE:
        with suppress(InputError):  # one time, or too few with a score
            return result.integrated(nan="stop")
        return None
    return result.integrated(*time_range, nan="stop")


def at_one_time(table: pd.DataFrame, compared: Comparison) -> pd.DataFrame:
    """Return the rows of the one time that conclusions go by where there is no mean, by metric."""
    if table.empty:  # one model alone
        return table
    times = {name: compared.times[compared.usable_place(name)] for name in compared.metrics}
    return table[table["time"] == table["metric"].map(times)].reset_index(drop=True)


def mark_of(row: Mapping[str, Any], encodes: Collection[str]) -> str:
    """Return the mark behind a verdict of the administrative score on a model that encodes C*; else nothing."""
    return verdict_of(row, encodes).removeprefix(row["verdict"]) if row["verdict"] else ""


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table."""
    rows: list[Any] = frame.to_dict("records")
    return rows


def by_name(frame: pd.DataFrame, *columns: str) -> Iterator[tuple[tuple[str, ...], pd.DataFrame]]:
    """Yield the parts of a table that have the same names in some columns, in the order of the table."""
    for names, part in frame.groupby(list(columns), sort=False):
        yield tuple(str(name) for name in names), part


def as_table(frame: pd.DataFrame) -> Table:
    """Return a data frame as lists of plain values, None for NaN."""
    return {str(name): [plain(value) for value in frame[name].tolist()] for name in frame.columns}


def extend(table: Table, columns: Mapping[str, NDArray[Any]], **repeated: Any) -> None:
    """Add rows to a table: columns of numbers, beside values that are the same in all these rows."""
    for name, values in columns.items():
        table.setdefault(name, []).extend(plain(value) for value in values.tolist())
    for name, value in repeated.items():
        table.setdefault(name, []).extend([value] * len(next(iter(columns.values()))))


def plain(value: Any) -> Any:
    """Return a number that JSON knows, or None where there is none."""
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def rows_of(table: Table) -> list[dict[str, Any]]:
    """Return the rows of a table of plain data."""
    return [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]


# In words, the same in the terminal and on the page


def share(part: int, whole: int) -> str:
    """Return how many of how many."""
    return f"{part:,} of {whole:,}"


def p_value(value: float | None, relation: str = "=") -> str:
    """Return a p-value as it is printed in papers."""
    if value is None or math.isnan(value):
        return "p unknown"
    return f"p < {LEAST_P:g}" if value < LEAST_P else f"p {relation} {value:.3f}"


def digits_for(lower: float, upper: float) -> int:
    """Return with how many digits to tell an interval, so that half its length has two of its own."""
    return interval_decimals([lower], [upper], least=4) or 4


def verdict_sentence(row: Row, level: float, population: str = "", cause: str = "") -> str:
    """Return one sentence about a difference of mean scores, or of scores at a time if the row has one.

    `population` says for whom it holds, and `cause` of which cause of events scores are.
    """
    label = cause_label(metric_label(row["metric"]), cause)
    score = f"mean {label}" if row.get("time") is None else f"{label} at {short(row['time'])}"
    if row["verdict"] == "unknown":
        return f"{row['model']} and {row['reference']} cannot be compared: their difference has no interval."
    digits = digits_for(row["lower"], row["upper"])
    lower, upper = fixed(row["lower"], digits), fixed(row["upper"], digits)
    interval = f"{100 * level:g} % interval {lower} to {upper}, {p_value(row['p_value'])}"
    relation = _relation(row["model"], row["verdict"], row["reference"])
    sentence = f"{relation}{population}: its {score} differs by {fixed(row['difference'], digits)} ({interval})."
    if row.get("reliable", True):
        return sentence
    return f"{sentence} There are too few events, individuals without event, or groups for a reliable interval."


def has_bounds(row: Row) -> bool:
    """Whether bounds are known that assume nothing about those who dropped out."""
    return not (missing(row.get("bound_lower")) or missing(row.get("bound_upper")))


def bounds_sentence(row: Row, n_dropped_out: int, n: int, level: float) -> str | None:
    """Return what those who dropped out could change about a difference; None where that is not known.

    It says nothing about those whose follow-up ended at C* < t.
    """
    if not has_bounds(row):
        return None
    of_interval = 4 if row["verdict"] == "unknown" else digits_for(row["lower"], row["upper"])
    digits = max(of_interval, digits_for(row["bound_lower"], row["bound_upper"]))
    between = f"{fixed(row['bound_lower'], digits)} and {fixed(row['bound_upper'], digits)}"
    who = f"whatever happened to the {share(n_dropped_out, n)} who dropped out"
    lies = f"among those with C* ≥ t, the difference lies between {between}"
    # better or worse wherever within the bounds it lies
    sign = all(row[bound] * row["difference"] > 0 for bound in ("bound_lower", "bound_upper"))
    p, sign = row["bound_p_value"], sign and row["verdict"] in ("better", "worse")
    if sign and not missing(p) and p < 1.0 - level:
        sentence = f"The verdict holds {who}: {lies}, with {p_value(p, 'at most')}."
    elif sign:
        may_be = "" if missing(p) else f", significance does not (p up to {p:.3f})"
        sentence = f"The sign holds {who}{may_be}: {lies}."
    else:
        sentence = f"{who[0].upper()}{who[1:]}, {lies}."
    rounding = 1e-9 * abs(row["difference"])
    if row["bound_lower"] - rounding <= row["difference"] <= row["bound_upper"] + rounding:
        return sentence
    outside = "The weighted estimate lies outside these bounds: those who dropped out differ from those who stayed."
    return f"{sentence} {outside}"


def contradiction(model: str, reference: str, by_weighting: Mapping[str, str]) -> str | None:
    """Return a sentence where some weightings call a model better and others worse; None elsewhere."""
    better, worse = (_under(by_weighting, verdict) for verdict in ("better", "worse"))
    if not better or not worse:
        return None
    return f"{model} is significantly better than {reference} under {better}, and significantly worse under {worse}."


def only_under_some(model: str, reference: str, by_weighting: Mapping[str, str]) -> str | None:
    """Return a sentence where a difference is significant under some weightings only; None elsewhere."""
    verdicts = set(by_weighting.values()) - {"unknown"}
    if "undecided" not in verdicts or len(verdicts) != 2:
        return None
    (significant,) = verdicts - {"undecided"}
    return f"{model} is significantly {significant} than {reference} only under {_under(by_weighting, significant)}."


def _under(by_weighting: Mapping[str, str], verdict: str) -> str:
    return several([weighting for weighting, theirs in by_weighting.items() if theirs == verdict])


def _relation(model: str, verdict: str, reference: str) -> str:
    if verdict == "undecided":
        return f"{model} is not significantly different from {reference}"
    return f"{model} is significantly {verdict} than {reference}"
