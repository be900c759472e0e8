"""What of a comparison is printed: scores, paired differences and verdicts, rounded by their standard errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from survscore._validation import InputError, plural, shown
from survscore.metrics import metric_label
from survscore.results.rounding import DOUBT, Number, p_text, typical_decimals
from survscore.results.tables import Cell, Part, Tables, spread_over

if TYPE_CHECKING:
    import pandas as pd

    from survscore.results.comparison import Comparison, IntegratedComparison
    from survscore.results.segments import IntegratedSegments

MOST_TIMES = 4  # beside the mean over all
MOST_SEGMENTS = 31  # with that of everybody
ON_TOO_FEW = f"{DOUBT.strip()} rests on too few for its interval to hold what it says"
#: Rows of both tables that stand side by side: when, the scores, and the differences of all but the reference.
Look = tuple[str, "pd.DataFrame", "pd.DataFrame | None"]


def of_comparison(found: Comparison) -> Tables:
    """Return the tables of a comparison, one for each metric and weighting: means over time, and some of the times.

    Intervals are those of the differences, which are what a comparison is about.
    """
    reference = f"; reference {shown(found.reference)}" if len(found.models) > 1 else ""
    lost = f", {found.n_dropped_out} dropped out" if found.n_dropped_out else ""
    caption = f"{plural(found.n, 'individual')}{lost}{reference}; {100 * found.level:g} % intervals"
    scores, contrasts = found.scores, found.contrasts
    means = _means(found)
    parts = []
    for one in found.scored:
        here = {"metric": one.metric, "weighting": one.weighting}
        defined = ~np.isnan(one.scores).all(axis=0)
        # where everybody has the same status, as at time 0, there is nothing to see
        differ = defined & (np.ptp(np.nan_to_num(one.scores), axis=0) > 0)
        chosen = spread_over(np.flatnonzero(differ if differ.any() else defined), MOST_TIMES)
        looks: list[Look] = [_of_mean(means, here)] if means is not None and found.times.size > 1 else []
        for j in chosen:
            at = {**here, "time": found.times[j]}
            looks.append((f"at {found.times[j]:g}", _rows(scores, at), _rows(contrasts, at)))
        notes = []
        if len(chosen) < found.times.size:
            notes.append(f"{len(chosen)} of {plural(found.times.size, 'time')}; .contrasts has all")
        missing = found.times.size - int(defined.sum())
        if missing:
            notes.append(f"no score at {plural(missing, 'time')}: {'; '.join(one.undefined)}")
        title = f"{metric_label(one.metric)} ({one.direction} is better); {one.weighting}"
        parts.append(_part(title, looks, found.reference, found.models, notes))
    return Tables(caption, parts)


def of_means(found: IntegratedComparison) -> Tables:
    """Return the tables of mean scores, one for each metric and weighting."""
    parts = []
    models = list(dict.fromkeys(found.scores["model"]))
    for metric, weighting in dict.fromkeys(zip(found.scores["metric"], found.scores["weighting"], strict=True)):
        when, scores, contrasts = _of_mean(found, {"metric": metric, "weighting": weighting})
        reference = str(models[0] if contrasts is None or contrasts.empty else contrasts["reference"].iloc[0])
        looks: list[Look] = [("", scores, contrasts)]
        parts.append(_part(f"{metric_label(metric)}, {when}; {weighting}", looks, reference, models, []))
    return Tables(f"{100 * found.level:g} % intervals", parts)


def _means(found: Comparison) -> IntegratedComparison | None:
    """Return means over as much time as all have scores; None where that is no range."""
    try:
        return found.integrated(nan="stop")
    except InputError:
        return None


def _of_mean(means: IntegratedComparison, here: dict[str, Any]) -> Look:
    scores = _rows(means.scores, here)
    contrasts = None if means.contrasts is None else _rows(means.contrasts, here)
    return f"mean over {scores['from'].iloc[0]:g} to {scores['to'].iloc[0]:g}", scores, contrasts


def _rows(table: pd.DataFrame, here: dict[str, Any]) -> pd.DataFrame:
    chosen = np.ones(len(table), dtype=np.bool_)
    for name, value in here.items():
        chosen &= (table[name] == value).to_numpy()
    return table[chosen]


def _part(title: str, looks: Sequence[Look], reference: str, models: Sequence[str], notes: list[str]) -> Part:
    compares = any(contrasts is not None and len(contrasts) for _, _, contrasts in looks)
    places = typical_decimals(se for _, scores, _ in looks for se in scores["se"])
    finer = max(places, typical_decimals(se for _, _, some in looks if some is not None for se in some["se"]))
    rows: list[tuple[Cell, ...]] = []
    for when, scores, contrasts in looks:
        numbers = scores.set_index("model")
        others = None if contrasts is None else contrasts.set_index("model")
        told = when
        for model in models:
            score = _number(numbers.loc[model], "score", places, interval=not (compares and len(looks) > 1))
            if not score.value and model != reference:  # as the null model where order is all
                continue
            row: tuple[Cell, ...] = (told, shown(model), score)
            if compares:
                row += _difference(None if others is None or model not in others.index else others.loc[model], finer)
            rows.append(row)
            told = ""
    if any(isinstance(cell, Number) and cell.doubtful for row in rows for cell in row):
        notes = [*notes, ON_TOO_FEW]
    header = ("", "", "score", *((f"difference to {shown(reference, 24)}", "p", "") if compares else ()))
    align = "llrrrl" if compares else "llr"
    if not any(row[0] for row in rows):  # of one look, which the title tells
        rows, header, align = [row[1:] for row in rows], header[1:], align[1:]
    return Part(title, header, rows, tuple(notes), align, split=align.count("l", 0, 2) + 1)


def _number(row: Any, name: str, places: int, sign: str = "", *, interval: bool = True) -> Number:
    lower, upper = (float(row["lower"]), float(row["upper"])) if interval else (math.nan, math.nan)
    reliable = bool(row["reliable"]) or math.isnan(lower)
    return Number.of(float(row[name]), lower, upper, decimals=places, sign=sign, reliable=reliable)


def _difference(row: Any, places: int) -> tuple[Cell, Cell, Cell]:
    if row is None:
        return "", "", ""
    return _number(row, "difference", places, "+"), p_text(float(row["p_value"])), _verdict(row["verdict"])


def _verdict(told: str) -> str:
    return "" if told == "unknown" else str(told)


def of_segments(found: IntegratedSegments) -> Tables:
    """Return the tables of mean scores by segment, one for each metric, weighting and model but the reference."""
    total, by = found.segmented.total, found.segmented.by
    lost = f", {total.n_dropped_out} dropped out" if total.n_dropped_out else ""
    caption = f"{plural(total.n, 'individual')}{lost}; {100 * total.level:g} % intervals"
    table: Any = found.scores if found.contrasts is None else found.contrasts
    compares = found.contrasts is not None
    parts = []
    for (metric, weighting, model), rows in table.groupby(["metric", "weighting", "model"], sort=False):
        when = f"mean over {rows['from'].iloc[0]:g} to {rows['to'].iloc[0]:g}"
        who = f"{shown(model)} to {shown(total.reference)}" if compares else shown(model)
        title = f"{metric_label(metric)}, {who}; {when}; {weighting}"
        value, sign = ("difference", "+") if compares else ("score", "")
        places = typical_decimals(rows["se"])
        cells: list[tuple[Cell, ...]] = []
        for row in rows.head(MOST_SEGMENTS).to_dict("records"):
            label = ", ".join(shown(row[name]) or "''" for name in by)
            number = _number(row, value, places, sign)
            verdict = () if not compares else (p_text(float(row["p_adjusted"])), _verdict(row["verdict"]))
            cells.append((label, number, *verdict))
        notes = [ON_TOO_FEW] if any(isinstance(row[1], Number) and row[1].doubtful for row in cells) else []
        if len(rows) > len(cells):
            name = "contrasts" if compares else "scores"
            notes.insert(0, f"{len(cells) - 1} of {plural(len(rows) - 1, 'segment')}; .{name} has all")
        if compares:
            notes.append("p is adjusted for the number of segments")
        header = (", ".join(map(shown, by)), value, *(("p", "") if compares else ()))
        parts.append(Part(title, header, cells, tuple(notes), "lrrl" if compares else "lr", split=1))
    return Tables(caption, parts)
