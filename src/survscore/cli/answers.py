"""Scores and comparisons in the terminal: the answer first, on one screen; everything where it is asked for."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from survscore._validation import plural
from survscore._validation import shown as printable
from survscore.metrics import cause_label, metric_label
from survscore.results.printing import caption, legend, short_names, verdict_of, with_short_names
from survscore.results.rounding import Number, p_text
from survscore.results.tables import Line, Part, Tables, as_text

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from survscore.analysis.assumptions import DropoutTest
    from survscore.io import Study
    from survscore.reports.comparing import Findings
    from survscore.reports.segments import SegmentFindings
    from survscore.results.comparison import Comparison
    from survscore.weighting import Weighting

MOST_TIMES = 20  # of more, some are printed, and means
MOST_BESIDE = 4  # so many times that were asked for stand beside the mean on the first screen
SHOWN = 4  # of many times
MEAN = "mean"
PARTS = ("share_observed", "observed", "projected")
PARTS_LEGEND = "observed: of those with C* >= t; projected: of those with C* < t; in brackets, their proportions."
ELSEWHERE = 160  # columns, where there is no terminal that need be narrow
Row = dict[str, Any]
Cell = tuple[str, str]  # weighting, model


@dataclass(frozen=True, eq=False)
class Block:
    """The rows of a table that are about one time, or about the mean over time: a metric's, by weighting and model."""

    label: str
    scores: Mapping[Cell, Row]
    contrasts: Mapping[Cell, Row]


@dataclass(frozen=True)
class View:
    """How results are printed."""

    full: bool = False  # all times, metrics and weightings, each with all columns, instead of the answer
    unit: str | None = None  # what times are counted in: days
    times_asked: bool = False  # whether times and metrics were named, and are to be shown for that reason
    metrics_asked: bool = False

    def labelled(self, time: float) -> str:
        """Return a time with its unit."""
        return plain_number(time) if self.unit is None else f"{plain_number(time)} {self.unit}"


def width() -> int:
    """Return how many columns there are: those of a terminal; elsewhere nothing need be narrow."""
    is_narrow = sys.stdout.isatty() or "COLUMNS" in os.environ
    return shutil.get_terminal_size().columns if is_narrow else ELSEWHERE


def paragraphs(sentences: Sequence[str]) -> str:
    """Return sentences as paragraphs of the terminal's width."""
    return as_text(Tables("", [], [printable(one, most=4000) for one in sentences]), width()).rstrip("\n")


def compared_text(findings: Findings, view: View, *, advice: Sequence[str] = (), weighting: str | None = None) -> str:
    """Return a comparison: the recommendation, one table, and notes; or, if `view` says so, everything.

    `advice` comes after all tables; `weighting` is that by which to conclude, where there is no recommendation by two.
    """
    compared = findings.comparison
    metrics = compared.metrics if view.full or view.metrics_asked else compared.metrics[:1]
    sentences = findings.disagreements()
    names = short_names(compared.weightings)
    lead: list[str] = []
    parts, notes = list[Part](), list[str]()
    for metric in metrics:
        concluded, conditions = _conclusions(findings, metric, view, weighting or compared.weightings[0])
        lead += concluded
        lead += [f"Weightings contradict each other: {one}" for one in sentences["contradictions"][metric]]
        lead += sentences["unclear"][metric]
        notes += conditions
        parts += _parts(findings, metric, view)
    rest = [metric for metric in compared.metrics if metric not in metrics]
    notes += [_by_another(findings, metrics[0], metric) for metric in rest]
    notes += dropout_sentences(compared.dropout_test, compared.level)
    notes += advice
    if not view.full:
        notes.append("--full shows all times, metrics and weightings; --csv FILE and --json FILE write them.")
    elif compared.times.size > MOST_TIMES:
        notes.append(_about_times(compared.times.size, "differences"))
    if not view.full:
        lead, notes = with_short_names(lead, names), with_short_names(notes, names)
    reference = f"; reference {printable(compared.reference)}" if len(compared.models) > 1 else ""
    settings = compared.scored[0].settings
    about_all = caption(compared.n, compared.n_dropped_out, compared.level, reference, settings=settings)
    text = as_text(Tables(about_all, parts, [printable(one, most=4000) for one in dict.fromkeys(lead)]), width())
    return f"{text}\n\n{paragraphs(list(dict.fromkeys(notes)))}"


def _conclusions(findings: Findings, metric: str, view: View, weighting: str) -> tuple[list[str], list[str]]:
    """Return what to conclude by a metric; and to whom that refers, under which assumption, where that is not in it."""
    concluded = findings.recommendations.get(metric)
    rows = findings.judged[findings.judged["metric"] == metric]
    if concluded is None:
        of_weighting = rows if view.full else rows[rows["weighting"] == weighting]
        return of_weighting["sentence"].tolist(), []
    if view.full:
        first, *others = concluded.sentences
        return [f"Recommendation: {first}", *others], []
    return [f"Recommendation: {concluded.answer(findings.comparison.null)}"], concluded.conditions


def _by_another(findings: Findings, first: str, metric: str) -> str:
    """Say whether another metric says the same as the first, and if not, what."""
    verdicts: dict[str, dict[Cell, str]] = {first: {}, metric: {}}
    encodes = findings.comparison.encodes
    for row in findings.judged.to_dict("records"):
        if row["metric"] in verdicts:
            verdicts[row["metric"]][row["weighting"], row["model"]] = verdict_of(row, encodes)
    cause = findings.comparison.scored[0].cause
    label = cause_label(metric_label(metric), cause)
    differing = [
        f"{printable(model)} is {verdict} ({weighting})"
        for (weighting, model), verdict in verdicts[metric].items()
        if verdicts[first].get((weighting, model)) != verdict
    ]
    if not differing:
        return f"By the {label}, all verdicts are the same."
    return f"By the {label}, some verdicts differ: {', '.join(differing)}."


def _parts(findings: Findings, metric: str, view: View) -> list[Part]:
    """Return the tables of a metric: one with all weightings, or one for each where everything is to be shown."""
    compared = findings.comparison
    (scored, *_) = [one for one in compared.scored if one.metric == metric]
    means = (None, None) if findings.means is None else (findings.means.scores, findings.means.contrasts)
    chosen = _times_shown(compared.times, view, has_mean=findings.means is not None)
    tables = [_of(table, metric, chosen) for table in (compared.scores, compared.contrasts)]
    blocks = blocks_of(*tables, *(_of(table, metric) for table in means))
    label = cause_label(metric_label(metric), scored.cause)
    title = f"{label[0].upper()}{label[1:]} ({scored.direction} is better)"
    if means[0] is not None and len(means[0]):
        first = _of(means[0], metric).iloc[0]
        title += f", mean over {plain_number(first['from'])} to {view.labelled(float(first['to']))}"
    elif len(blocks) == 1:
        title += f", at {view.labelled(float(chosen[0]))}"
    if not view.full:
        return [_side_by_side(compared, blocks, title, view)]
    return [_whole(findings, metric, name, blocks, f"{title}; {name}", view) for name in compared.weightings]


def _times_shown(times: NDArray[np.float64], view: View, *, has_mean: bool) -> list[float]:
    """Return the times that are printed beside the mean: those that were asked for, if these are few; or some."""
    if times.size <= (MOST_TIMES if view.full else MOST_BESIDE):
        return times.tolist() if view.full or view.times_asked or not has_mean else []
    return some_of(times) if view.full or not has_mean else []


def _of(table: pd.DataFrame | None, metric: str, times: Sequence[float] | None = None) -> Any:
    """Return the rows of a metric, at some times; None where there is no table."""
    if table is None:
        return None
    rows = table[table["metric"] == metric]
    return rows if times is None else rows[rows["time"].isin(list(times))]


def _side_by_side(compared: Comparison, blocks: Sequence[Block], title: str, view: View) -> Part:
    """Return one table in which a model's scores under all weightings stand below each other."""
    names = short_names(compared.weightings)
    several_times, several_weightings = len(blocks) > 1, len(names) > 1
    lines, encodes = [], compared.encodes
    for block in blocks:
        first = block.label
        for model in compared.models:
            name = printable(model)
            for weighting, short in names.items():
                row, contrast = block.scores[weighting, model], block.contrasts.get((weighting, model))
                if missing(row["score"]) and model == compared.null:  # as where order is all
                    continue
                words = (*([first] if several_times else []), name, *([short] if several_weightings else []))
                numbers = (_score(row), None if contrast is None else _difference(contrast))
                lines.append(Line(words, numbers, _judged(contrast, encodes, reference=bool(name))))
                first = name = ""
    named = [*([_time_header(view)] if several_times else []), "model", *(["weighting"] if several_weightings else [])]
    header = (*named, "score", f"difference to {printable(compared.reference, 24)}", "p", "verdict")
    title = title if several_weightings else f"{title}; {next(iter(names))}"
    return Part.of(title, header, lines, [], "l" * len(named) + "rrrl", len(named) + 1)


def _whole(findings: Findings, metric: str, weighting: str, blocks: Sequence[Block], title: str, view: View) -> Part:
    """Return the table of one weighting with all columns, and notes on its parts and on drop-outs."""
    from survscore.reports.comparing import has_bounds, records
    from survscore.results.printing import part_notes

    compared = findings.comparison
    scored = next(one for one in compared.scored if (one.metric, one.weighting) == (metric, weighting))
    relative = scored.has_ratios and scored.direction in ("lower", "higher")  # nothing of what is to be close to one
    bounded = any(
        has_bounds(row) for block in blocks for (name, _), row in block.contrasts.items() if name == weighting
    )
    lines, encodes = [], compared.encodes
    for block in blocks:
        first = block.label
        of_reference = block.scores[weighting, compared.reference]["score"]
        for model in compared.models:
            row, contrast = block.scores[weighting, model], block.contrasts.get((weighting, model))
            rest: list[str] = []
            if relative:
                rest.append("" if contrast is None else relative_cell(contrast["difference"], of_reference))
            if bounded:
                rest.append("" if contrast is None else bounds_cell("{:+.4f}", contrast))
            words = (*([first] if len(blocks) > 1 else []), printable(model))
            numbers = (_score(row), None if contrast is None else _difference(contrast))
            lines.append(Line(words, numbers, (*rest, *_judged(contrast, encodes, reference=contrast is None))))
            first = ""
    named = [*([_time_header(view)] if len(blocks) > 1 else []), "model"]
    beside = [*(["relative"] if relative else []), *(["bounds"] if bounded else []), "p", "verdict"]
    header = (*named, "score", f"difference to {printable(compared.reference, 24)}", *beside)
    place = compared.usable_place(metric)
    mean = None if findings.means is None else findings.means.over[metric]
    when = f"at {compared.times[place]:g}" if mean is None else MEAN
    notes = part_notes(scored, compared.models, when, np.eye(compared.times.size)[place] if mean is None else mean[0])
    rows = findings.judged[(findings.judged["metric"] == metric) & (findings.judged["weighting"] == weighting)]
    for judged in records(rows):
        sentence = findings.bounds_sentence(judged) if has_bounds(judged) else None
        notes += [f"{printable(judged['model'])}: {sentence}"] if sentence else []
    return Part.of(title, header, lines, notes, "l" * len(named) + "r" * (len(beside) + 1) + "l", len(named) + 1)


def _score(row: Row) -> Number:
    return Number(row["score"], se=row["se"])


def _difference(row: Row) -> Number:
    return Number(row["difference"], row["lower"], row["upper"], se=row["se"], reliable=bool(row["reliable"]), sign="+")


def _judged(contrast: Row | None, encodes: Collection[str], *, reference: bool) -> tuple[str, str]:
    """Return the cells of p and of the verdict."""
    if contrast is None:
        return "", "reference" if reference else ""
    return p_text(contrast["p_value"]), verdict_of(contrast, encodes)


def _time_header(view: View) -> str:
    return "time" if view.unit is None else f"time ({view.unit})"


def score_text(means: pd.DataFrame, by_time: pd.DataFrame, settings: dict[str, Any], view: View) -> str:
    """Return each model's scores with their intervals, by time and as a mean: a table for each metric."""
    from survscore.metrics import as_metric
    from survscore.reports.comparing import by_name

    times = [float(time) for time in by_time["time"].unique()]
    every = len(times) <= MOST_TIMES or means.empty
    parts, notes = [], list[str]()
    names = short_names(by_time["weighting"].unique())
    for (metric,), of_metric in by_name(by_time, "metric"):
        of_mean = means[means["metric"] == metric] if len(means) else None
        shown_rows = of_metric if every else of_metric[of_metric["time"].isin(some_of(times))]
        blocks = blocks_of(shown_rows, None, of_mean, None)
        label = cause_label(metric_label(metric), settings.get("cause", ""))
        title = f"{label[0].upper()}{label[1:]} ({as_metric(metric).direction} is better)"
        if of_mean is not None and len(of_mean):
            first = of_mean.iloc[0]
            title += f", mean over {plain_number(first['from'])} to {view.labelled(float(first['to']))}"
        elif len(times) == 1:
            title += f", at {view.labelled(times[0])}"
        parts.append(_of_scores(blocks, names, title, view))
    if "bound_lower" in by_time:
        who = f"the {settings['dropped_out']:,} of {settings['individuals']:,} who dropped out"
        notes.append(f"Whatever happened to {who}, scores lie within their bounds.")
    if "observed" in by_time:
        notes.append(PARTS_LEGEND)
    notes += legend(names)
    notes += [] if every else [_about_times(len(times), "scores")]
    about_all = caption(settings["individuals"], settings["dropped_out"], settings["level"], settings=settings)
    text = as_text(Tables(about_all, parts), width())
    return f"{text}\n\n{paragraphs(notes)}" if notes else text


def _of_scores(blocks: Sequence[Block], names: Mapping[str, str], title: str, view: View) -> Part:
    rows = [row for block in blocks for row in block.scores.values()]
    bounded = any(not missing(row.get("bound_lower")) for row in rows)
    split = any(not missing(row.get("observed")) for row in rows)
    several_times, several_weightings = len(blocks) > 1, len(names) > 1
    lines = []
    for block in blocks:
        first = block.label
        for model in dict.fromkeys(model for _, model in block.scores):
            name = printable(model)
            for weighting, short in names.items():
                row = block.scores.get((weighting, model))
                if row is None:
                    continue
                words = (*([first] if several_times else []), name, *([short] if several_weightings else []))
                rest = (*([bounds_cell("{:.4f}", row)] if bounded else []), *(part_cells(row) if split else []))
                score = Number(row["score"], row["lower"], row["upper"], se=row["se"])
                lines.append(Line(words, (score,), rest))
                first = name = ""
    named = [*([_time_header(view)] if several_times else []), "model", *(["weighting"] if several_weightings else [])]
    beside = [*(["bounds"] if bounded else []), *(["observed", "projected"] if split else [])]
    title = title if several_weightings else f"{title}; {next(iter(names))}"
    return Part.of(title, (*named, "score", *beside), lines, [], "l" * len(named) + "r" * (len(beside) + 1), len(named))


def part_cells(row: Row) -> list[str]:
    """Return the parts of a projected score, each with its proportion of the individuals."""
    share, *scores = (row.get(name) for name in PARTS)
    return [
        "" if missing(score) else f"{score:.4f} ({100 * proportion:.0f} %)"
        for score, proportion in zip(scores, (share, 1 - share) if share is not None else ("", ""), strict=True)
    ]


def dropout_sentences(test: DropoutTest | None, level: float) -> list[str]:
    """Return whether drop-out depends on predicted risk or on C*, in sentences."""
    return [f"{one[0].upper()}{one[1:]}." for one in (() if test is None else test.sentences(level))]


def blocks_of(
    scores: pd.DataFrame | None,
    contrasts: pd.DataFrame | None,
    mean_scores: pd.DataFrame | None = None,
    mean_contrasts: pd.DataFrame | None = None,
) -> list[Block]:
    """Return the blocks of a table: one for each of the times, one for the means, where there are such tables."""

    def cells(table: pd.DataFrame | None) -> dict[Cell, Row]:
        rows: list[Any] = [] if table is None else table.to_dict("records")
        return {(row["weighting"], row["model"]): row for row in rows}

    def at(table: pd.DataFrame | None, time: float) -> pd.DataFrame | None:
        return None if table is None else table[table["time"] == time]

    times = [] if scores is None else scores["time"].unique().tolist()
    blocks = [Block(plain_number(time), cells(at(scores, time)), cells(at(contrasts, time))) for time in times]
    if mean_scores is not None and len(mean_scores):
        blocks.append(Block(MEAN, cells(mean_scores), cells(mean_contrasts)))
    return blocks


def relative_cell(difference: float, reference: float) -> str:
    """Return a difference in percent of the reference's score, where that is positive."""
    if missing(difference) or missing(reference) or reference <= 0:
        return ""
    percent = 100 * difference / reference
    return f"{percent:+.1f} %" if abs(percent) < 1000 else f"{percent:+.0f} %"


def bounds_cell(form: str, row: Row) -> str:
    """Return between which values a number lies whatever happened to those who dropped out; nothing if not known."""
    from survscore.reports.comparing import has_bounds

    return f"{form.format(row['bound_lower'])} to {form.format(row['bound_upper'])}" if has_bounds(row) else ""


def missing(value: float | None) -> bool:
    """Whether there is no number."""
    return value is None or value != value  # noqa: PLR0124 - NaN


def plain_number(value: float) -> str:
    """Return a time in few digits."""
    return f"{value:.4g}" if abs(value) < 1000 else f"{value:.6g}"


def some_of(times: Sequence[float] | NDArray[np.float64]) -> list[float]:
    """Return some of many times, from early to the last."""
    return [float(times[round(k * (len(times) - 1) / SHOWN)]) for k in range(1, SHOWN + 1)]


def _about_times(count: int, what: str) -> str:
    return f"There are {what} at {count} times: --csv FILE writes all, -t 90,180,365 prints those at some."


MOST_PRINTED = 50


def scored_segments(study: Study, weightings: list[Weighting], arguments: dict[str, Any]) -> SegmentFindings:
    """Return the scores of all individuals and of every segment, by the arguments of a command."""
    from survscore.analysis.compare import compare as compare_models
    from survscore.reports.segments import SegmentFindings

    segmented = compare_models(
        study.outcomes,
        study.models,
        metric=arguments["metrics"],
        weighting=weightings,
        times=arguments["times"],
        null=False,
        groups=study.groups,
        level=arguments["level"],
        ranges=[arguments["time_range"]],
        by=study.by,
    )
    return SegmentFindings.of(segmented, arguments["time_range"])


def segments_text(findings: SegmentFindings, view: View, *, weighting: str | None = None) -> str:
    """Return the differences to the reference by segment, and what they say in words.

    By the first metric and one weighting, unless `view` is of all.
    """
    total = findings.segmented.total
    metrics = total.metrics if view.full or view.metrics_asked else total.metrics[:1]
    weightings = total.weightings if view.full or weighting is None else [weighting]
    parts: list[Part] = []
    for metric, name in product(metrics, weightings):
        rows = findings.judged[(findings.judged["metric"] == metric) & (findings.judged["weighting"] == name)]
        sentences = [printable(sentence, most=1000) for sentence in findings.sentences(metric, name)]
        for k, (model, part) in enumerate(rows.groupby("model", sort=False)):
            title = f"{_title(findings, metric, view)}; {printable(model)} to {printable(total.reference)}; {name}"
            parts.append(_segment_part(findings, title, {"difference": part}, sentences[k : k + 1], judged=True))
    return f"{as_text(Tables('', parts), width())}\n\n{paragraphs(findings.notes())}"


def segment_scores_text(findings: SegmentFindings, view: View) -> str:
    """Return the scores by segment, one column for each model."""
    parts = []
    for (metric, weighting), rows in findings.scored.groupby(["metric", "weighting"], sort=False):
        columns = {printable(model): part for model, part in rows.groupby("model", sort=False)}
        parts.append(_segment_part(findings, f"{_title(findings, str(metric), view)}; {weighting}", columns, []))
    return as_text(Tables("", parts), width())


def _title(findings: SegmentFindings, metric: str, view: View) -> str:
    total = findings.segmented.total
    (scored, *_) = [one for one in total.scored if one.metric == metric]
    over = f"at {view.labelled(float(total.times[total.usable_place(metric)]))}"
    if findings.means is not None:
        first, last = findings.means.over[metric][1]
        over = f"mean over {plain_number(first)} to {view.labelled(last)}"
    label = cause_label(metric_label(metric), scored.cause)
    names = ", ".join(printable(name) for name in findings.by)
    return f"{label[0].upper()}{label[1:]} ({scored.direction} is better) by {names}, {over}"


def _segment_part(
    findings: SegmentFindings,
    title: str,
    columns: Mapping[str, pd.DataFrame],
    notes: list[str],
    *,
    judged: bool = False,
) -> Part:
    """Return a table of scores or judged differences by segment; of many, the total and the largest are in it."""
    first, number, sign = next(iter(columns.values())), "difference" if judged else "score", "+" if judged else ""
    largest = np.argsort(-first["n"].to_numpy()[1:], kind="stable")[:MOST_PRINTED] + 1
    lines = []
    for rows in zip(*(frame.iloc[[0, *sorted(largest)]].to_dict("records") for frame in columns.values()), strict=True):
        row = rows[0]
        words = (*(printable(row[name]) or "''" for name in findings.by), f"{row['n']:,}", f"{row['n_events']:,}")
        numbers = tuple(
            Number(row[number], row["lower"], row["upper"], se=row["se"], reliable=bool(row["reliable"]), sign=sign)
            for row in rows
        )
        encodes = findings.segmented.total.leak_warnings.keys()
        rest = (p_text(row["p_value"]), p_text(row["p_adjusted"]), verdict_of(row, encodes)) if judged else ()
        lines.append(Line(words, numbers, rest))
    left_out = len(first) - 1 - MOST_PRINTED
    if left_out > 0:
        shown = f"{plural(left_out, 'smaller segment')} not shown: --csv, --json and --parquet write all"
        notes = [shown, *notes]
    header = (*map(printable, findings.by), "individuals", "events", *columns)
    header += ("p", "p adjusted", "verdict") if judged else ()
    align = "l" * len(findings.by) + "rr" + ("rrrl" if judged else "r" * len(columns))
    return Part.of(title, header, lines, notes, align, len(findings.by))
