"""What the sections of a report have in common: data for the summary, tables for files, charts, and tables to show."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from survscore.inference.intervals import sides
from survscore.metrics import survival_label
from survscore.results.rounding import (
    MISSING,
    MOST_DECIMALS,
    between,
    digits_of,
    evenly,
    fixed,
    missing,
    p_text,
    short,
)
from survscore.results.tables import ON_SCOPED, Part, html_rows

if TYPE_CHECKING:
    from survscore.reports.study import Study

Table = dict[str, list[Any]]
Panel = dict[str, Any]  # a chart: data about what to draw, no drawing

# Kinds of columns beside "l" and "r", texts and numbers
MODEL, WEIGHTING, VERDICT = "mwv"


class Column(NamedTuple):
    """A column of texts, and its kind."""

    heading: str
    texts: list[str]
    kind: str = "l"


def numbers(heading: str, values: Sequence[Any], digits: int | None = None) -> Column:
    """Return a column of numbers with as many decimals."""
    return Column(heading, evenly(values, digits), "r")


def p_values(values: Sequence[Any], heading: str = "p") -> Column:
    """Return p-values as papers print them."""
    return Column(heading, [MISSING if missing(p) else p_text(p) for p in values], "r")


def judged(table: Table) -> list[Column]:
    """Return p-values and verdicts of differences, with their marks."""
    verdicts = [f"{verdict or ''}{mark}" for verdict, mark in zip(table["verdict"], table["mark"], strict=True)]
    return [p_values(table["p_value"]), Column("verdict", verdicts, VERDICT)]


def scope(table: Table) -> str:
    """Return what the mark of verdicts says, to follow a caption; nothing where there is none."""
    return f". {ON_SCOPED}" if any(table["mark"]) else ""


@dataclass(frozen=True, kw_only=True)
class PageTable(Part):
    """A table to show; its title is the caption.

    `name` is that of the file that has all digits. With `models`, of each row, rows are hidden with their model; with
    `metric` the table is shown with that metric of the page. `groups` are headings of rows, of which those of one group
    follow each other. A tall table scrolls within a box of its own.
    """

    name: str
    models: Sequence[str] = ()
    metric: str | None = None
    groups: Sequence[str] = ()
    tall: bool = False

    def rows_html(self, summary: Mapping[str, Any], short_names: Mapping[str, str]) -> str:
        """Return the head and the body as HTML."""

        def cell(tag: str, kind: str, text: str) -> str:
            inside = html.escape(text)
            if tag == "th":
                number = ' class="n"' if kind == "r" else ""
                return f'<th scope="col"{number}>{inside}</th>'
            if kind == MODEL:
                return f'<th scope="row">{inside}</th>'
            if kind == WEIGHTING:
                return f"<td>{weighting_html(text, short_names)}</td>"
            if kind == VERDICT:
                return f'<td><span class="word {inside}">{inside}</span></td>' if text else "<td></td>"
            number = ' class="n"' if kind == "r" else ""
            return f"<td{number}>{inside}</td>"

        places = {name: place for place, name in enumerate(summary["models"])}
        starts = [k for k, group in enumerate(self.groups) if k == 0 or group != self.groups[k - 1]]
        return html_rows(
            self,
            cell,
            [f' data-model-row="{places.get(model, -1)}"' for model in self.models],
            {
                k: f'<tr class="group"><th scope="rowgroup" colspan="{len(self.header)}">'
                f"<span>{html.escape(self.groups[k])}</span></th></tr>"
                for k in starts
            },
        )


def weighting_html(name: str, short_names: Mapping[str, str]) -> str:
    """Return the short name of a weighting, with all of it for who points at it and for screen readers."""
    whole, brief = html.escape(name), html.escape(short_names.get(name, name))
    if brief == whole:
        return whole
    return (
        f'<span class="brief" tabindex="0" data-full="{whole}">{brief}<span class="sr">, in full {whole}</span></span>'
    )


class Section:
    """A section of the page, of the plain data of a summary."""

    doing: ClassVar[str] = "writing"  # what is said while it is computed
    files: ClassVar[Mapping[str, str]] = {}  # by the name of a file, where its table is in the summary
    charts: ClassVar[Mapping[str, Callable[[Any], list[Panel]]]] = {}  # by the table whose rows they draw
    shown: ClassVar[Mapping[str, Callable[[Any], Iterable[PageTable]]]] = {}  # by their place

    def __init__(self, summary: dict[str, Any]) -> None:
        self.summary = summary
        self.level = f"{100 * summary['level']:g} % interval"
        self.in_unit = f" {summary['unit']}" if summary.get("unit") else ""
        self.unit = f" ({summary['unit']})" if summary.get("unit") else ""

    @classmethod
    def data(cls, study: Study, before: dict[str, Any]) -> dict[str, Any]:
        """Return what the summary holds of it, by name; `before` is what sections before it hold."""
        return {}

    def tables(self) -> dict[str, Table]:
        """Return its tables by the names of their files."""
        tables = {}
        for name, path in self.files.items():
            table: Any = self.summary
            for key in path.split():
                table = (table or {}).get(key)
            tables[name] = table or {}
        return tables

    def panels(self) -> dict[str, list[Panel]]:
        """Return the panels of its charts, by the table whose rows they draw."""
        return {name: draw(self) for name, draw in self.charts.items()}

    def page_tables(self) -> dict[str, list[PageTable]]:
        """Return the tables that it shows, by their place; a place may have one for each metric."""
        return {place: [table for table in make(self) if table.rows] for place, make in self.shown.items()}

    # Tables

    def page_table(self, name: str, caption: str, columns: Iterable[Column], **more: Any) -> PageTable:
        """Return a table of columns; the models of its rows, where they have some, are in the column of that kind."""
        headings, texts, kinds = zip(*columns, strict=True)
        models = texts[kinds.index(MODEL)] if MODEL in kinds else ()
        rows = list(zip(*texts, strict=True))
        return PageTable(caption, headings, rows, (), "".join(kinds), name=name, models=models, **more)

    def estimates(
        self, heading: str, table: Table, value: str, prefix: str = "", most: int = MOST_DECIMALS
    ) -> list[Column]:
        """Return a column of a table and one of its intervals, with as many decimals, and no more than `most`."""
        lower, upper = table[f"{prefix}lower"], table[f"{prefix}upper"]
        return self.with_interval(heading, table[value], lower, upper, most)

    def with_interval(
        self, heading: str, values: Sequence[Any], lower: Sequence[Any], upper: Sequence[Any], most: int = MOST_DECIMALS
    ) -> list[Column]:
        """Return a column of estimates and one of their intervals; see `estimates`."""
        digits = min(most, digits_of(lower, upper, values))
        texts = [fixed(value, digits) for value in values]
        return [Column(heading, texts, "r"), Column(self.level, between(lower, upper, digits), "r")]

    def bounds(self, table: Table, metric: str) -> list[Column]:
        """Return a column of bounds, of metrics that have some."""
        if not self.summary["metrics"][metric]["bounded"]:
            return []
        digits = digits_of(table["lower"], table["upper"], table["bound_lower"])
        return [Column("bounds", between(table["bound_lower"], table["bound_upper"], digits), "r")]

    def by_metric(self, table: Table) -> Iterable[tuple[str, Table]]:
        """Yield the rows of each metric of the page that a table has, those that the answer goes by first."""
        for metric in self.summary["metrics"]:
            kept = rows_where(table, "metric", metric)
            if kept and "weighting" in kept:
                order = [weighting != self.summary["headline"] for weighting in kept["weighting"]]
                places = sorted(range(len(order)), key=order.__getitem__)
                kept = {name: [column[k] for k in places] for name, column in kept.items()}
            if kept:
                yield metric, kept

    # Charts

    def panel(self, title: str, x: str, y: str | None, labels: tuple[str, str], **more: Any) -> Panel:
        """Return a panel without lines: the columns of both axes, and how these are labelled."""
        axes = {"title": title, "x": x, **({} if y is None else {"y": y}), "xlabel": labels[0], "ylabel": labels[1]}
        return {**axes, **more, "series": []}

    def by_weighting(self, table: Table, about: Callable[[str], Panel]) -> list[Panel]:
        """Return a panel for each metric and weighting with a line for each model, those that the answer goes by first.

        `about` says what else the panels of a metric have.
        """
        panels: dict[tuple[str, str], Panel] = {}
        for (metric, weighting, model), start, stop in runs(table, ("metric", "weighting", "model")):
            panel = {"metric": metric, **self.of_weighting(weighting), **about(metric), "series": []}
            panels.setdefault((metric, weighting), panel)["series"].append(self.series(model, start, stop))
        return sorted(panels.values(), key=lambda panel: "main" not in panel)

    def series(self, model: str, start: int, stop: int) -> Panel:
        """Return the line of a model, and which rows of the table it draws."""
        series = {"model": self.summary["models"].index(model), "label": model, "start": start, "stop": stop}
        return {**series, "null": True} if model == self.summary["null_model"] else series

    def of_weighting(self, weighting: str) -> Panel:
        """Return what a panel of a weighting is called, and whether it is the one that the answer goes by."""
        name = self.short(weighting)
        main = {"main": True} if weighting == self.summary["headline"] else {}
        return {"title": name, **({"full": weighting} if name != weighting else {}), **main}

    def sides(self, metric: str) -> list[str]:
        """Return what the sides of zero mean for differences by a metric."""
        return [*sides(self.summary["metrics"][metric]["direction"])]

    # Words

    @property
    def headline(self) -> str:
        """The short name of the weighting that the answer goes by."""
        return self.short(self.summary["headline"])

    @property
    def predicted(self) -> str:
        """What curves are of, in words."""
        return survival_label(self.summary.get("cause") or "")

    def short(self, weighting: str) -> str:
        """Return the short name of a weighting; of an earlier run it may be one that is not of this page."""
        return short_names_of(self.summary).get(weighting, weighting)

    def at(self, horizons: Iterable[float]) -> list[str]:
        """Return headings that say at which time rows are."""
        return [f"At {short(horizon)}{self.in_unit}" for horizon in horizons]

    def mean(self, metric: str) -> str:
        """Return what conclusions by a metric go by: its mean over which time, or the metric."""
        label = str(self.summary["metrics"][metric]["label"])
        if not self.summary["means"]:
            return label
        low, high = self.summary["time_ranges"][metric]
        return f"mean {label} over {short(low)} to {short(high)}{self.in_unit}"


def short_names_of(summary: Mapping[str, Any]) -> dict[str, str]:
    """Return the short names of the weightings of a summary."""
    return dict(zip(summary.get("weightings", []), summary.get("short_weightings", []), strict=True))


def rows_where(table: Table, key: str, value: Any) -> Table:
    """Return the rows of a table that have a value; nothing where there are none."""
    kept = [k for k, other in enumerate(table.get(key, [])) if other == value]
    return {name: [column[k] for k in kept] for name, column in table.items()} if kept else {}


def runs(table: Table, keys: Sequence[str]) -> Iterator[tuple[tuple[Any, ...], int, int]]:
    """Yield each run of rows with the same keys, and where it starts and stops."""
    rows = list(zip(*(table.get(key, []) for key in keys), strict=True))
    start = 0
    for stop in range(1, len(rows) + 1):
        if stop == len(rows) or rows[stop] != rows[start]:
            yield rows[start], start, stop
            start = stop


def capital(text: str) -> str:
    """Return a text that begins a sentence."""
    return text[:1].upper() + text[1:]
