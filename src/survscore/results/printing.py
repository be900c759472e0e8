"""What of a comparison is printed: scores, paired differences and verdicts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from survscore._validation import InputError, plural, shown
from survscore.metrics import metric_label
from survscore.results.rounding import p_text
from survscore.results.tables import Line, Part, Tables, Value, spread_over

if TYPE_CHECKING:
    import pandas as pd

    from survscore.results.comparison import Comparison, IntegratedComparison
    from survscore.results.segments import IntegratedSegments

MOST_TIMES = 4  # beside the mean over all
MOST_SEGMENTS = 31  # with that of all individuals


class Block(NamedTuple):
    """Rows of both tables that stand side by side: when, the scores, and the differences of all but the reference."""

    when: str
    scores: pd.DataFrame
    contrasts: pd.DataFrame | None


def caption(n: int, n_dropped_out: int | None, level: float | None, reference: str = "") -> str:
    """Return what holds for all tables of a result; without level, there are no intervals."""
    lost = f", {n_dropped_out} dropped out" if n_dropped_out else ""
    known = "" if level is None else f"; {100 * level:g} % intervals"
    return f"{plural(n, 'individual')}{lost}{reference}{known}"


def verdict_text(verdict: str) -> str:
    """Return a verdict; nothing where there is none."""
    return "" if verdict == "unknown" else str(verdict)


def of_comparison(found: Comparison) -> Tables:
    """Return the tables of a comparison, one for each metric and weighting: means over time, and some of the times.

    Intervals are those of the differences, which are what a comparison is about.
    """
    scores, contrasts, means = found.scores, found.contrasts, _means(found)
    parts = []
    for one in found.scored:
        here = {"metric": one.metric, "weighting": one.weighting}
        defined = ~np.isnan(one.scores).all(axis=0)
        # where all individuals have the same status, as at time 0, there is nothing to see
        differ = defined & (np.ptp(np.nan_to_num(one.scores), axis=0) > 0)
        chosen = spread_over(np.flatnonzero(differ if differ.any() else defined), MOST_TIMES)
        blocks = [] if means is None else [_of_mean(means, here)]
        for time in found.times[chosen]:
            at = {**here, "time": time}
            blocks.append(Block(f"at {time:g}", _rows(scores, at), _rows(contrasts, at)))
        notes = []
        if len(chosen) < found.times.size:
            notes.append(f"{len(chosen)} of {plural(found.times.size, 'time')}; .contrasts has all")
        missing = found.times.size - int(defined.sum())
        if missing:
            notes.append(f"no score at {plural(missing, 'time')}: {'; '.join(one.undefined)}")
        title = f"{metric_label(one.metric)} ({one.direction} is better); {one.weighting}"
        parts.append(_part(title, blocks, found.reference, found.models, notes))
    reference = f"; reference {shown(found.reference)}" if len(found.models) > 1 else ""
    return Tables(caption(found.n, found.n_dropped_out, found.level, reference), parts)


def of_means(found: IntegratedComparison) -> Tables:
    """Return the tables of mean scores, one for each metric and weighting."""
    parts = []
    models = list(dict.fromkeys(found.scores["model"]))
    for metric, weighting in dict.fromkeys(zip(found.scores["metric"], found.scores["weighting"], strict=True)):
        block = _of_mean(found, {"metric": metric, "weighting": weighting})
        reference = str(models[0] if block.contrasts is None else block.contrasts["reference"].iloc[0])
        title = f"{metric_label(metric)}, {block.when}; {weighting}"
        parts.append(_part(title, [block._replace(when="")], reference, models, []))
    return Tables(f"{100 * found.level:g} % intervals", parts)


def of_segments(found: IntegratedSegments) -> Tables:
    """Return the tables of mean scores by segment, one for each metric, weighting and model but the reference."""
    total, by = found.segmented.total, found.segmented.by
    contrasts = found.contrasts
    table: Any = found.scores if contrasts is None else contrasts
    name, sign = ("score", "") if contrasts is None else ("difference", "+")
    parts = []
    for (metric, weighting, model), rows in table.groupby(["metric", "weighting", "model"], sort=False):
        when = f"mean over {rows['from'].iloc[0]:g} to {rows['to'].iloc[0]:g}"
        who = shown(model) if contrasts is None else f"{shown(model)} to {shown(total.reference)}"
        lines = []
        for row in rows.head(MOST_SEGMENTS).to_dict("records"):
            label = ", ".join(shown(row[column]) or "''" for column in by)
            judged = () if contrasts is None else (p_text(float(row["p_adjusted"])), verdict_text(row["verdict"]))
            lines.append(Line((label,), (_value(row, name, sign),), judged))
        notes = []
        if len(rows) > len(lines):
            every = "scores" if contrasts is None else "contrasts"
            notes.append(f"{len(lines) - 1} of {plural(len(rows) - 1, 'segment')}; .{every} has all")
        if contrasts is not None:
            notes.append("p is adjusted for the number of segments")
        header = (", ".join(map(shown, by)), name, *(() if contrasts is None else ("p", "")))
        title = f"{metric_label(metric)}, {who}; {when}; {weighting}"
        parts.append(Part.of(title, header, lines, notes, "lr" if contrasts is None else "lrrl", 1))
    return Tables(caption(total.n, total.n_dropped_out, total.level), parts)


def _means(found: Comparison) -> IntegratedComparison | None:
    """Return means over as much time as all have scores; None where that is no range."""
    try:
        return found.integrated(nan="stop")
    except InputError:
        return None


def _of_mean(means: IntegratedComparison, here: dict[str, Any]) -> Block:
    scores = _rows(means.scores, here)
    contrasts = None if means.contrasts is None else _rows(means.contrasts, here)
    return Block(f"mean over {scores['from'].iloc[0]:g} to {scores['to'].iloc[0]:g}", scores, contrasts)


def _rows(table: pd.DataFrame, here: dict[str, Any]) -> pd.DataFrame:
    chosen = np.ones(len(table), dtype=np.bool_)
    for name, value in here.items():
        chosen &= (table[name] == value).to_numpy()
    return table[chosen]


def _part(title: str, blocks: Sequence[Block], reference: str, models: Sequence[str], notes: list[str]) -> Part:
    compares = any(block.contrasts is not None and len(block.contrasts) for block in blocks)
    interval = not (compares and len(blocks) > 1)  # of one block, which the title tells, scores have theirs, too
    lines = []
    for block in blocks:
        scores = {row["model"]: row for row in block.scores.to_dict("records")}
        contrasts = {} if block.contrasts is None else {row["model"]: row for row in block.contrasts.to_dict("records")}
        when = block.when
        for model in models:
            if np.isnan(scores[model]["score"]) and model != reference:  # as the null model where order is all
                continue
            words = (when, shown(model)) if block.when else (shown(model),)
            numbers: tuple[Value | None, ...] = (_value(scores[model], "score", interval=interval),)
            rest: tuple[str, ...] = ()
            if compares:
                row = contrasts.get(model)
                numbers += (None if row is None else _value(row, "difference", "+"),)
                rest = ("", "") if row is None else (p_text(float(row["p_value"])), verdict_text(row["verdict"]))
            lines.append(Line(words, numbers, rest))
            when = ""
    n_words = len(lines[0].words) if lines else 2
    header = (*[""] * n_words, "score", *((f"difference to {shown(reference, 24)}", "p", "") if compares else ()))
    align = "l" * n_words + ("rrrl" if compares else "r")
    return Part.of(title, header, lines, notes, align, n_words + 1)


def _value(row: Mapping[Any, Any], name: str, sign: str = "", *, interval: bool = True) -> Value:
    limits = (float(row["lower"]), float(row["upper"])) if interval else (math.nan, math.nan)
    return Value(float(row[name]), float(row["se"]), *limits, bool(row["reliable"]), sign)
