"""The tables that a page shows, of the plain data of a summary."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from survscore.metrics import controls_note, survival_label
from survscore.reports.cells import (
    Column,
    between,
    decimals,
    digits_of,
    even,
    fixed,
    numbers,
    p_values,
    relative,
    with_interval,
)
from survscore.reports.comparing import Table, rows_of
from survscore.reports.verdicts import missing, short


@dataclass(frozen=True)
class Display:
    """A table to show.

    Attributes
    ----------
    name : str
        Of the file that has all its digits.
    caption : str
    columns : list of Column
    models : list of str or None
        Whose rows these are, so that they go with their model; None where rows are of no model.
    metric : str or None
        With which metric of the page it is shown; None for all.
    groups : list of str
        A heading for each row, where rows are in groups; those of one group follow each other.
    tall : bool
        Whether it scrolls within a box of its own.
    """

    name: str
    caption: str
    columns: list[Column]
    models: list[str] | None = None
    metric: str | None = None
    groups: list[str] = field(default_factory=list)
    tall: bool = False

    @property
    def size(self) -> int:
        """The number of rows."""
        return len(self.columns[0].texts)


class Displays:
    """All tables that the page of a summary shows, by name."""

    def __init__(self, summary: dict[str, Any]) -> None:
        self.summary = summary
        self.level = f"{100 * summary['level']:g} % interval"
        self.in_unit = f" {summary['unit']}" if summary.get("unit") else ""
        self.unit = f" ({summary['unit']})" if summary.get("unit") else ""
        self.headline = summary["short_weightings"][summary["weightings"].index(summary["headline"])]

    def found(self) -> dict[str, list[Display]]:
        """Return the tables by their place; a place may have one for each metric."""
        places: dict[str, Callable[[], Iterable[Display]]] = {
            "score-parts": self.score_parts,
            "follow-up": self.follow_up, "counted": self.counted, "causes": self.causes,
            "means": self.means, "verdicts": self.verdicts,
            "pairs": self.pairs, "horizons": self.horizons, "falls": self.falls,
            "calibration-numbers": self.calibration, "calibration-parts": self.parts, "individuals": self.individuals,
            "segment-differences": self.segments, "segment-counts": self.segment_counts, "history": self.history,
            "backtest": self.backtest,
        }  # fmt: skip
        return {name: [one for one in make() if one.columns and one.size] for name, make in places.items()}

    def _of_cause(self, text: str) -> str:
        cause = self.summary.get("cause")
        return text if cause is None else text.replace("events", str(cause))

    def _mean(self, metric: str) -> str:
        told = self.summary["metrics"][metric]
        if not self.summary["means"]:
            return str(told["label"])
        low, high = self.summary["time_ranges"][metric]
        return f"mean {told['label']} over {short(low)} to {short(high)}{self.in_unit}"

    def _by_metric(self, table: Table) -> Iterable[tuple[str, Table]]:
        """Yield the rows of each metric of the page that a table has."""
        for metric in self.summary["metrics"]:
            kept = [k for k, one in enumerate(table.get("metric", [])) if one == metric]
            if kept:
                yield metric, {name: [column[k] for k in kept] for name, column in table.items()}

    def _bounds(self, table: Table, metric: str) -> list[Column]:
        if not self.summary["metrics"][metric]["bounded"]:
            return []
        digits = digits_of(table["lower"], table["upper"], table["bound_lower"])
        return [Column("bounds", between(table["bound_lower"], table["bound_upper"], digits), "number")]

    def score_parts(self) -> Iterable[Display]:
        """Yield the observed and the projected part of scores, and what would change the sign of differences."""
        for metric, answer in self.summary["answer"].items():
            table = answer["parts"]
            if not table:
                continue
            share = 100 * table["share_observed"][0]
            headings = {
                "observed": f"observed: C* ≥ t ({share:.0f} %)", "projected": f"projected: C* < t ({100 - share:.0f} %)"
            }  # fmt: skip
            tipping = [f"{one} times the hazard" if " than " in one else one for one in table["sign_changes"]]
            columns = [
                Column("model", table["model"], "model"),
                *(Column(text, [fixed(one, 4) for one in table[name]], "number") for name, text in headings.items()),
                Column("tipping point", tipping),
            ]
            caption = (
                f"{_capital(self._mean(metric))} in two parts. Tipping point: the hazard of those with hidden status "
                f"at which the difference to {self.summary['reference']} changes its sign"
            )
            yield Display("score-parts", caption, columns, table["model"], metric)

    def follow_up(self) -> Iterable[Display]:
        """Yield the quantiles of follow-up."""
        table = self.summary["data"]["quantiles"]
        names = {0.0: "shortest", 0.5: "median", 1.0: "longest"}
        columns = [
            Column("of all", [names.get(one, f"{100 * one:g} % at most") for one in table["quantile"]]),
            numbers(f"time to event or censoring{self.unit}", table["time"]),
        ]
        if "censoring_time" in table:
            columns.append(numbers(f"censoring time C*{self.unit}", table["censoring_time"]))
        yield Display("follow-up", "How long individuals were followed", columns)

    def causes(self) -> Iterable[Display]:
        """Yield how many events there are of each cause."""
        yield from counts_by_cause(self.summary["data"])

    def counted(self) -> Iterable[Display]:
        """Yield who is counted at some of the times."""
        table = self.summary["data"]["remaining"]
        size = len(table["time"])
        rows = sorted({round(k * (size - 1) / 5) for k in range(6)})
        at = {name: [column[k] for k in rows] for name, column in table.items()}
        n = self.summary["data"]["n"]
        columns = [numbers(f"time{self.unit}", at["time"]), numbers("still under observation", at["under_observation"]),
                   numbers(self._of_cause("events so far"), at["events"])]  # fmt: skip
        if "other_events" in at:
            columns.append(numbers("other events so far", at["other_events"]))
        if "censoring_time_at_least" in at:
            counted = at["censoring_time_at_least"]
            columns += [
                numbers("counted by the administrative score (C* >= t)", counted),
                Column("share of all", [f"{100 * one / n:.0f} %" for one in counted], "number"),
            ]
        yield Display("remaining", "Who is counted when", columns)

    def means(self) -> Iterable[Display]:
        """Yield mean scores, by metric."""
        for metric, table in self._by_metric(self.summary["means"]):
            told = self.summary["metrics"][metric]
            columns = [
                Column("model", table["model"], "model"),
                *with_interval("mean score", table["score"], table["lower"], table["upper"], self.level),
                *self._bounds(table, metric),
            ]
            if told["direction"] == "lower" and self.summary["null_model"]:
                columns.append(Column("skill", [even(one, 4) for one in table["skill"]], "number"))
            caption = f"{_capital(self._mean(metric))}, {told['direction']} is better"
            yield Display("means", caption, columns, table["model"], metric, table["weighting"])

    def verdicts(self) -> Iterable[Display]:
        """Yield differences to the reference, by metric."""
        scores = {(row["metric"], row["weighting"], row["model"]): row["score"]
                  for row in rows_of(self.summary["means"] or self.summary["scores"])}  # fmt: skip
        ratios = self.summary["ratios"]
        for metric, table in self._by_metric(self.summary["verdicts"]):
            columns = [
                Column("model", table["model"], "model"),
                *with_interval("difference", table["difference"], table["lower"], table["upper"], self.level),
            ]
            if metric in ratios:
                of = [scores[metric, weighting, self.summary["reference"]] for weighting in table["weighting"]]
                columns.append(
                    Column(
                        "in percent", [relative(d, s) for d, s in zip(table["difference"], of, strict=True)], "number"
                    )
                )
            columns += [
                *self._bounds(table, metric), p_values(table["p_value"]), Column("verdict", table["verdict"], "verdict")
            ]  # fmt: skip
            caption = f"Differences in {self._mean(metric)} to {self.summary['reference']}"
            yield Display("verdicts", caption, columns, table["model"], metric, table["weighting"])

    def pairs(self) -> Iterable[Display]:
        """Yield all pairs of models under the weighting of the answer, where that is more than the cards say."""
        for metric, table in self._by_metric(self.summary["pairs"]):
            if len(table["model"]) <= len(self.summary["models"]) - 1:
                continue
            columns = [
                Column("model", table["model"], "model"),
                Column("against", table["reference"]),
                *with_interval("difference", table["difference"], table["lower"], table["upper"], self.level),
                p_values(table["p_value"]),
                Column("verdict", table["verdict"], "verdict"),
            ]
            caption = f"Every pair of models by {self._mean(metric)}, the better one first, {self.headline}"
            yield Display("pairs", caption, columns, table["model"], metric)

    def horizons(self) -> Iterable[Display]:
        """Yield Brier score, AUC and observed/expected at the horizons, with differences and p-values."""
        table = self.summary["horizons"]
        if not table:
            return
        texts: dict[int, list[str]] = {}
        for metric in dict.fromkeys(table["metric"]):  # each with as many decimals as it needs
            kept = [k for k, one in enumerate(table["metric"]) if one == metric]
            columns = self._at_horizons({name: [column[k] for k in kept] for name, column in table.items()})
            texts |= {k: [column.texts[place] for column in columns] for place, k in enumerate(kept)}
        rows = [texts[k] for k in range(len(table["metric"]))]
        of_metric = list(zip(table["horizon"], table["metric"], strict=True))
        names = [
            f"{label} ({direction} is better)" if k == 0 or of_metric[k] != of_metric[k - 1] else ""
            for k, (label, direction) in enumerate(zip(table["label"], table["direction"], strict=True))
        ]
        first = {horizon: k for k, horizon in reversed(list(enumerate(table["horizon"])))}
        groups = [
            f"At {short(horizon)}{self.in_unit}: {fixed(table['n_counted'][first[horizon]], 0)} counted, "
            f"{fixed(table['n_events'][first[horizon]], 0)} with event"
            for horizon in table["horizon"]
        ]
        controls = controls_note(table["metric"], self.summary.get("cause") or "")
        yield Display(
            "horizons",
            ". ".join([f"Accuracy, discrimination and calibration at single times, {self.headline}", *controls]),
            [Column("measure", names), Column("model", table["model"], "model"),
             *(Column(one.heading, [row[c] for row in rows], one.kind) for c, one in enumerate(columns))],
            table["model"],
            groups=groups,
        )  # fmt: skip

    def _at_horizons(self, table: Table) -> list[Column]:
        """Return the columns of one metric; the reference has no difference to itself."""
        estimates = with_interval("estimate", table["estimate"], table["lower"], table["upper"], self.level)
        digits = digits_of(table["lower"], table["upper"], table["estimate"]) + 1
        differences = with_interval(
            f"difference to {self.summary['reference']}", table["difference"], table["difference_lower"],
            table["difference_upper"], self.level, digits,
        )  # fmt: skip
        own = [model == self.summary["reference"] for model in table["model"]]
        columns = [*differences, p_values(table["p_value"])]
        for column in columns:
            column.texts[:] = ["" if mine else text for mine, text in zip(own, column.texts, strict=True)]
        return [*estimates, *columns, Column("verdict", [one or "" for one in table["verdict"]], "verdict")]

    def falls(self) -> Iterable[Display]:
        """Yield how far predictions fall right after C*, and elsewhere."""
        around = self.summary["around_censoring"]
        table = around["falls"]
        if not table:
            return
        favour, lower, upper = (table[f"ipcw_minus_administrative{end}"] for end in ("", "_lower", "_upper"))
        columns = [
            Column("model", table["model"], "model"),
            Column("verdict", table["verdict"]),
            *(Column(heading, ["–" if missing(one) else f"{100 * one:.1f} %" for one in table[name]], "number")
              for name, heading in (("fall_after", "right after C*"), ("fall_elsewhere", "elsewhere"))),
            *(Column(heading, [even(one, 2) for one in table[name]], "number") for name, heading in (
                ("ratio", "times as steep"), ("ratio_lower", "lower limit"), ("ratio_upper", "upper limit"))),
            *with_interval("IPCW − administrative", favour, lower, upper, self.level),
        ]  # fmt: skip
        width = f"{short(around['width'])}{self.in_unit}"
        predicted = survival_label(self.summary.get("cause") or "")
        caption = f"Share of the predicted {predicted} lost over {width} right after C*, and elsewhere"
        yield Display("falls", caption, columns, table["model"])

    def calibration(self) -> Iterable[Display]:
        """Yield the numbers of calibration."""
        table = self.summary["calibration"]["numbers"]
        if not table:
            return
        columns = [
            Column("model", table["model"], "model"),
            numbers("individuals", table["n"]),
            numbers("events", table["events"]),
        ]
        for name, heading in (("observed_expected", "observed / expected"), ("slope", "slope")):
            values, lower, upper = (table[f"{name}{end}"] for end in ("", "_lower", "_upper"))
            columns += with_interval(heading, values, lower, upper, self.level)
        digits = max(2, min(4, decimals(table["ici"])))
        columns += [
            Column(heading, [even(one, places) for one in table[name]], "number")
            for name, heading, places in (
                ("miscalibration", "miscalibration", 5), ("ici", "ICI", digits),
                ("ici_if_right", "ICI expected if right", digits),
            )
        ]  # fmt: skip
        caption = (
            "Observed / expected above 1: predicted risks are too low; slope below 1: predictions are too far apart"
        )
        yield Display("calibration-numbers", caption, columns, table["model"], None, self._at(table["horizon"]))

    def parts(self) -> Iterable[Display]:
        """Yield the parts of the Brier score."""
        table = self.summary["calibration"]["parts"]
        if not table:
            return
        names = {
            "brier": "Brier score", "isotonic_miscalibration": "= miscalibration", "discrimination": "− discrimination",
            "uncertainty": "+ uncertainty", "isotonic_miscalibration_if_right": "miscalibration expected if right",
        }  # fmt: skip
        columns = [Column("model", table["model"], "model")]
        columns += [Column(heading, [even(one, 4) for one in table[name]], "number") for name, heading in names.items()]
        caption = "Parts of the Brier score; by chance alone, right predictions have some miscalibration too"
        yield Display("calibration-parts", caption, columns, table["model"], None, self._at(table["horizon"]))

    def _at(self, horizons: Sequence[float]) -> list[str]:
        return [f"At {short(horizon)}{self.in_unit}" for horizon in horizons]

    def individuals(self) -> Iterable[Display]:
        """Yield what was observed of the individuals whose curves are shown."""
        yield from people_shown(self.summary["curves"]["people"], self.unit)

    def segments(self) -> Iterable[Display]:
        """Yield differences by segment, under the weighting of the answer."""
        segments = self.summary.get("segments")
        if not segments or not segments["listed"]:
            return
        largest = f" (the {segments['n_listed']} largest segments)" if segments["n"] > segments["n_listed"] else ""
        for metric, table in self._by_metric(segments["listed"]):
            columns = [
                Column(", ".join(segments["by"]), table["segment_label"]),
                Column("model", table["model"], "model"),
                numbers("individuals", table["n"]),
                numbers("events", table["n_events"]),
                *with_interval("difference", table["difference"], table["lower"], table["upper"], self.level),
                p_values(table["p_value"]),
                p_values(table["p_adjusted"], "p, adjusted"),
                Column("verdict", table["verdict"], "verdict"),
            ]
            if "reason" in table:
                columns.append(Column("why not", [short(one) for one in table["reason"]]))
            caption = f"Differences in {self._mean(metric)} to {self.summary['reference']}, {self.headline}{largest}"
            yield Display("segment-differences", caption, columns, table["model"], metric, tall=True)

    def segment_counts(self) -> Iterable[Display]:
        """Yield how many individuals each segment has."""
        segments = self.summary.get("segments")
        if segments:
            table = segments["counts"]
            columns = [Column(", ".join(segments["by"]), table["segment_label"]), numbers("individuals", table["n"]),
                       numbers("events", table["n_events"])]  # fmt: skip
            yield Display("segment-counts", "How many there are", columns, tall=True)

    def history(self) -> Iterable[Display]:
        """Yield the mean scores of earlier runs, by metric, also those that the page does not switch to."""
        history = self.summary["history"]
        for metric, told in history["metrics"].items():
            kept = [k for k, one in enumerate(history["means"]["metric"]) if one == metric]
            table = {name: [column[k] for k in kept] for name, column in history["means"].items()}
            columns = [
                *(Column(name, [short(one) for one in table[name]]) for name in ("run", "id", "date")),
                Column("model", table["model"], "model"),
                *(numbers(name, table[name]) for name in ("from", "to")),
                *with_interval("mean score", table["score"], table["lower"], table["upper"], self.level),
            ]
            caption = f"Mean {told['label']} by run, {told['direction']} is better"
            switched = metric if metric in self.summary["metrics"] else None
            yield Display("history", caption, columns, table["model"], switched, table["weighting"], tall=True)

    def backtest(self) -> Iterable[Display]:
        """Yield how each weighting would have chosen on earlier days."""
        found = self.summary.get("backtest")
        if not found:
            return
        table = found["summary"]
        level = f"{100 * found['level']:g} % interval"
        names = ("relative_regret", "regret_lower", "regret_upper", "ordered", "ordered_lower", "ordered_upper")
        percents = {name: [None if one is None else 100 * one for one in table[name]] for name in names}
        chosen = [f"{a} of {b}" for a, b in zip(table["chose_best"], table["of"], strict=True)]
        columns = [
            Column("weighting", table["weighting"], "weighting"),
            Column("chose the best", chosen, "number"),
            *with_interval("chosen worse than best by (%)", percents["relative_regret"], percents["regret_lower"],
                           percents["regret_upper"], level),
            *with_interval("pairs in the true order (%)", percents["ordered"], percents["ordered_lower"],
                           percents["ordered_upper"], level),
        ]  # fmt: skip
        yield Display("backtest-summary", f"{found['when']}, judged by what happened since", columns)


def people_shown(table: Table, unit: str) -> Iterable[Display]:
    """Yield what was observed of the individuals whose curves are shown; `unit` is in brackets."""
    if not table["individual"]:
        return
    columns = [
        Column("individual", table["individual"]),
        numbers(f"time{unit}", table["time"]),
        Column("event", [short(one) for one in table["event"]]),
        numbers(f"C*{unit}", table["censoring_time"]),
    ]
    yield Display("individuals", "What was observed of them", columns)


def counts_by_cause(data: dict[str, Any]) -> Iterable[Display]:
    """Yield how many events there are of each cause, under competing risks."""
    table = data["causes"]
    if not table["cause"]:
        return
    shares = [f"{100 * events / data['n']:.1f} %" for events in table["events"]]
    columns = [Column("cause", table["cause"]), numbers("events", table["events"]), Column("of all", shares, "number")]
    yield Display("causes", "Events by cause", columns)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
