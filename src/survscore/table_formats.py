"""How a table of scores is shown: as text, Markdown, LaTeX, HTML and JSON, all from the same cells."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import groupby
from typing import TYPE_CHECKING, Any

from survscore._validation import plural, shown
from survscore.score_tables import DISTRIBUTION
from survscore.segment_labels import ALL

if TYPE_CHECKING:
    from survscore.score_tables import ScoreTable, TableRow

NOTHING = ""
DOUBT = " ?"  # behind an interval that is not reliable
LEAST_P = 0.001
MOST_DECIMALS = 6
LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"} | {
    sign: "\\" + sign for sign in "&%$#_{}"
}


@dataclass(frozen=True)
class Part:
    """One of the tables: what is known at one horizon, or over all time, of everybody or of a segment.

    Attributes
    ----------
    title : str
    header : tuple of str
    rows : list of tuple
        Cells as text, the first two are words.
    notes : tuple of str
    """

    title: str
    header: tuple[str, ...]
    rows: list[tuple[str, ...]]
    notes: tuple[str, ...]


def caption(table: ScoreTable) -> str:
    """Return of whom the tables speak."""
    lost = f", {table.n_dropped_out} dropped out" if table.n_dropped_out else ""
    return f"{plural(table.n, 'individual')}{lost}; {100 * table.level:g} % intervals"


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
    cells, notes = [], []
    for _, several in groupby(rows, key=lambda row: row.metric):
        same = list(several)
        decimals = _decimals(row.se for row in same)
        finer = max(decimals, _decimals(row.difference_se for row in same))
        for place, row in enumerate(same):
            better = f" ({row.direction})" if place == 0 and row.direction.startswith("closer") else ""
            words = (row.label + better if place == 0 else "", shown(row.model))
            estimate = _number(row.estimate, row.lower, row.upper, decimals) + _doubt(row.estimate, row.reliable)
            difference = _number(row.difference, row.difference_lower, row.difference_upper, finer, sign="+")
            difference += _doubt(row.difference, row.difference_reliable)
            verdict = row.verdict if row.verdict not in ("unknown", "") else ""
            more = (_p(row.p_value),) if tests else (difference, _p(row.p_value), verdict) if compares else ()
            cells.append((*words, estimate, *more))
            if row.note:
                notes.append(f"{row.label}, {shown(row.model)}: {row.note}")
    if any(cell.endswith(DOUBT) for line in cells for cell in line[2:]):
        notes.append(f"{DOUBT.strip()} rests on too few for its interval to hold what it says")
    return Part(title, header, cells, tuple(dict.fromkeys(notes)))


def _counts(row: TableRow) -> str:
    lost = f", {row.n_lost:.0f} lost" if row.n_lost >= 0.5 else ""
    groups = f", {row.n_groups:.0f} groups" if not math.isnan(row.n_groups) else ""
    return f"{row.n_counted:.0f} counted, {row.n_events:.0f} with event{lost}{groups}"


def _decimals(errors: Iterable[float]) -> int:
    """Return so many decimals that the smallest standard error shows two digits."""
    known = [se for se in errors if se > 0 and math.isfinite(se)]
    return min(max(1 - math.floor(math.log10(min(known))), 0), MOST_DECIMALS) if known else 2


def _number(value: float, lower: float, upper: float, decimals: int, sign: str = "") -> str:
    if math.isnan(value):
        return NOTHING
    text, *limits = (f"{number:{how}z.{decimals}f}" for number, how in ((value, sign), (lower, ""), (upper, "")))
    return text if math.isnan(lower) or math.isnan(upper) else f"{text} ({', '.join(limits)})"


def _doubt(value: float, reliable: bool) -> str:
    return "" if reliable or math.isnan(value) else DOUBT


def _p(value: float) -> str:
    if math.isnan(value):
        return NOTHING
    return f"<{LEAST_P:g}" if value < LEAST_P else f"{value:.3f}"


def as_text(table: ScoreTable) -> str:
    """Return the tables for a terminal."""
    found = [caption(table)]
    for part in parts(table):
        lines = [part.header, *part.rows]
        widths = [max(len(line[column]) for line in lines) for column in range(len(part.header))]

        def padded(line: Sequence[str], widths: list[int] = widths) -> str:
            words = (
                cell.rjust(width) if place in (2, 3, 4) else cell.ljust(width)
                for place, (cell, width) in enumerate(zip(line, widths, strict=True))
            )
            return "  ".join(words).rstrip()

        rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
        found += ["", part.title, padded(part.header), rule, *map(padded, part.rows), *part.notes]
    return "\n".join(found)


def as_markdown(table: ScoreTable) -> str:
    """Return the tables as Markdown."""

    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(cell.replace("\\", "\\\\").replace("|", "\\|") for cell in cells) + " |"

    found = [_plain_markdown(caption(table))]
    for part in parts(table):
        sides = [":---", ":---", *["---:"] * (len(part.header) - 2)]
        found += ["", f"**{_plain_markdown(part.title)}**", "", line(part.header), "| " + " | ".join(sides) + " |"]
        found += [line(row) for row in part.rows]
        found += ["", *(f"- {_plain_markdown(note)}" for note in part.notes)] if part.notes else []
    return "\n".join(found) + "\n"


def _plain_markdown(text: str) -> str:
    """Return text in which nothing is a mark."""
    return "".join(f"\\{sign}" if sign in "\\`*_[]<>" else sign for sign in text)


def as_latex(table: ScoreTable) -> str:
    """Return the tables as LaTeX."""

    def line(cells: Iterable[str]) -> str:
        return " & ".join(map(_latex, cells)) + r" \\"

    found = [f"% {caption(table)}"]
    for part in parts(table):
        columns = "ll" + "r" * (len(part.header) - 2)
        found += [
            r"\begin{table}", rf"\caption{{{_latex(part.title)}; {_latex(caption(table))}}}",
            rf"\begin{{tabular}}{{{columns}}}", r"\toprule", line(part.header), r"\midrule", *map(line, part.rows),
            r"\bottomrule", r"\end{tabular}", *(rf"\par {_latex(note)}" for note in part.notes), r"\end{table}", "",
        ]  # fmt: skip
    return "\n".join(found)


def _latex(text: str) -> str:
    return "".join(LATEX.get(sign, sign) for sign in text)


def as_html(table: ScoreTable) -> str:
    """Return the tables as HTML."""

    def line(cells: Sequence[str], tag: str) -> str:
        made = []
        for place, cell in enumerate(cells):
            side = "left" if place < 2 or place == 5 else "right"
            made.append(f'<{tag} style="text-align:{side}">{html.escape(cell)}</{tag}>')
        return f"<tr>{''.join(made)}</tr>"

    found = [f"<div class='survscore-table'><p>{html.escape(caption(table))}</p>"]
    for part in parts(table):
        found.append(f"<table><caption style='text-align:left'>{html.escape(part.title)}</caption>")
        found += [f"<thead>{line(part.header, 'th')}</thead>", "<tbody>", *(line(row, "td") for row in part.rows)]
        found.append("</tbody></table>")
        found += [f"<p><small>{html.escape(note)}</small></p>" for note in part.notes]
    return "\n".join([*found, "</div>"])


def as_json(table: ScoreTable) -> str:
    """Return all numbers with the settings; what is not there is null."""

    def plain(value: Any) -> Any:
        return None if isinstance(value, float) and not math.isfinite(value) else value

    rows = [{name: plain(value) for name, value in asdict(row).items()} for row in table.rows]
    others = {one.name: getattr(table, one.name) for one in fields(table) if one.name != "rows"}
    return json.dumps({**others, "rows": rows}, indent=1, ensure_ascii=False)
