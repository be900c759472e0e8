"""What of a table of scores is shown, as tables by horizon; and all of it as JSON."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, fields
from itertools import groupby
from typing import TYPE_CHECKING, Any

from survscore._validation import plural, shown
from survscore.analysis.score_tables import DISTRIBUTION
from survscore.results.rounding import DOUBT, Number, decimals, p_text
from survscore.results.segment_labels import ALL
from survscore.results.tables import Cell, Part, Tables

if TYPE_CHECKING:
    from survscore.analysis.score_tables import ScoreTable, TableRow


def caption(table: ScoreTable) -> str:
    """Return of whom the tables speak."""
    lost = f", {table.n_dropped_out} dropped out" if table.n_dropped_out else ""
    return f"{plural(table.n, 'individual')}{lost}; {100 * table.level:g} % intervals"


def tables(table: ScoreTable) -> Tables:
    """Return what is shown."""
    return Tables(caption(table), parts(table))


def parts(table: ScoreTable) -> list[Part]:
    """Return the tables in the order in which they are read."""

    def where(row: TableRow) -> tuple[Any, ...]:
        return (row.segment, row.weighting, row.over_time, row.time)

    first: dict[tuple[Any, ...], int] = {}
    for row in table.rows:
        first.setdefault((row.segment, row.weighting), len(first))
    ordered = sorted(
        table.rows, key=lambda row: (first[row.segment, row.weighting], row.over_time, row.time)
    )  # stable: metrics stay in the order asked for
    return [_part(table, list(rows)) for _, rows in groupby(ordered, key=where)]


def _part(table: ScoreTable, rows: list[TableRow]) -> Part:
    one = rows[0]
    when = "over all follow-up"
    if not math.isinf(one.time):
        when = " ".join(
            ["up to" if one.over_time else "at", f"{one.time:g}", *filter(None, [table.settings.get("unit")])]
        )
    of = ", ".join(f"{name} {shown(label)}" for name, label in zip(table.by, one.segment, strict=False) if label != ALL)
    counts = "" if one.over_time or math.isnan(one.n_counted) else _counts(one)
    title = "; ".join(filter(None, (of or ("everybody" if table.by else ""), when, one.weighting, counts)))
    compares = any(row.model != row.reference for row in rows)
    header = ("", "", "estimate", *((f"difference to {shown(one.reference)}", "p", "") if compares else ()))
    tests = all(row.metric == DISTRIBUTION for row in rows)
    if tests:
        header = ("", "", "chi-square", "p")
    cells: list[tuple[Cell, ...]] = []
    notes = []
    for _, several in groupby(rows, key=lambda row: row.metric):
        same = list(several)
        places = decimals(row.se for row in same)
        finer = max(places, decimals(row.difference_se for row in same))
        for place, row in enumerate(same):
            better = f" ({row.direction})" if place == 0 and row.direction.startswith("closer") else ""
            words = (row.label + better if place == 0 else "", shown(row.model))
            estimate = Number.of(row.estimate, row.lower, row.upper, decimals=places, reliable=row.reliable)
            difference = Number.of(
                row.difference, row.difference_lower, row.difference_upper, decimals=finer, sign="+",
                reliable=row.difference_reliable,
            )  # fmt: skip
            verdict = row.verdict if row.verdict not in ("unknown", "") else ""
            more: tuple[Cell, ...] = ()
            if tests:
                more = (p_text(row.p_value),)
            elif compares:
                more = (difference, p_text(row.p_value), verdict)
            cells.append((*words, estimate, *more))
            if row.note:
                notes.append(f"{row.label}, {shown(row.model)}: {row.note}")
    if any(isinstance(cell, Number) and cell.doubtful for line in cells for cell in line):
        notes.append(f"{DOUBT.strip()} rests on too few for its interval to hold what it says")
    align = "llrr" if tests else "llrrrl" if compares else "llr"
    return Part(title, header, cells, tuple(dict.fromkeys(notes)), align, split=3)


def _counts(row: TableRow) -> str:
    lost = f", {row.n_lost:.0f} lost" if row.n_lost >= 0.5 else ""
    groups = f", {row.n_groups:.0f} groups" if not math.isnan(row.n_groups) else ""
    return f"{row.n_counted:.0f} counted, {row.n_events:.0f} with event{lost}{groups}"


def as_json(table: ScoreTable) -> str:
    """Return all numbers with the settings; what is not there is null."""

    def plain(value: Any) -> Any:
        return None if isinstance(value, float) and not math.isfinite(value) else value

    rows = [{name: plain(value) for name, value in asdict(row).items()} for row in table.rows]
    others = {one.name: getattr(table, one.name) for one in fields(table) if one.name != "rows"}
    return json.dumps({**others, "rows": rows}, indent=1, ensure_ascii=False)
