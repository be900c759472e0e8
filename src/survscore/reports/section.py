"""What the sections of a report have in common: data for the summary, tables for files, charts, and tables to show."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from survscore.metrics import survival_label
from survscore.reports.cells import Column, Table, between, digits_of
from survscore.reports.verdicts import short

if TYPE_CHECKING:
    from survscore.reports.study import Study

Panel = dict[str, Any]  # a chart: data about what to draw, no drawing


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


class Section:
    """A section of the page, of the plain data of a summary.

    Parameters
    ----------
    summary : dict
        From `summarise`.
    """

    doing: ClassVar[str] = "writing"  # what is said while it is computed
    files: ClassVar[Mapping[str, str]] = {}  # by the name of a file, where its table is in the summary
    charts: ClassVar[Mapping[str, Callable[[Any], list[Panel]]]] = {}
    shown: ClassVar[Mapping[str, Callable[[Any], Iterable[Display]]]] = {}

    def __init__(self, summary: dict[str, Any]) -> None:
        self.summary = summary
        self.level = f"{100 * summary['level']:g} % interval"
        self.in_unit = f" {summary['unit']}" if summary.get("unit") else ""
        self.unit = f" ({summary['unit']})" if summary.get("unit") else ""

    @classmethod
    def data(cls, study: Study, found: dict[str, Any]) -> dict[str, Any]:
        """Return what the summary holds of it, by name; `found` is what sections before it hold."""
        return {}

    def tables(self) -> dict[str, Table]:
        """Return its tables by the names of their files."""
        found = {}
        for name, path in self.files.items():
            table: Any = self.summary
            for key in path.split():
                table = (table or {}).get(key)
            found[name] = table or {}
        return found

    def panels(self) -> dict[str, list[Panel]]:
        """Return the panels of its charts, by the table whose rows they draw."""
        return {name: draw(self) for name, draw in self.charts.items()}

    def displays(self) -> dict[str, list[Display]]:
        """Return the tables that it shows, by their place; a place may have one for each metric."""
        return {place: [one for one in make(self) if one.columns and one.size] for place, make in self.shown.items()}

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
        names = dict(zip(self.summary["weightings"], self.summary["short_weightings"], strict=True))
        return str(names.get(weighting, weighting))

    def time(self, what: str = "time") -> str:
        """Return the label of an axis of time, with its unit where that is known."""
        return f"{what}{self.unit}"

    def of_weighting(self, weighting: str) -> Panel:
        """Return what a panel of a weighting is called, and whether it is the one that the answer goes by."""
        name = self.short(weighting)
        main = {"main": True} if weighting == self.summary["headline"] else {}
        return {"title": name, **({"full": weighting} if name != weighting else {}), **main}

    def by_weighting(self, table: Table, about: Callable[[str], Panel]) -> list[Panel]:
        """Return a panel for each metric and weighting with a line for each model, those that the answer goes by first.

        `about` says what else the panels of a metric have.
        """
        panels: dict[tuple[str, str], Panel] = {}
        for (metric, weighting, model), start, stop in runs(table, ("metric", "weighting", "model")):
            made = {"metric": metric, **self.of_weighting(weighting), **about(metric), "series": []}
            panels.setdefault((metric, weighting), made)["series"].append(self.series(model, start, stop))
        return sorted(panels.values(), key=lambda panel: "main" not in panel)

    def series(self, model: str, start: int, stop: int) -> Panel:
        """Return the line of a model, and which rows of the table it draws."""
        series = {"model": self.summary["models"].index(model), "label": model, "start": start, "stop": stop}
        return {**series, "null": True} if model == self.summary["null_model"] else series

    def _mean(self, metric: str) -> str:
        told = self.summary["metrics"][metric]
        if not self.summary["means"]:
            return str(told["label"])
        low, high = self.summary["time_ranges"][metric]
        return f"mean {told['label']} over {short(low)} to {short(high)}{self.in_unit}"

    def _by_metric(self, table: Table) -> Iterable[tuple[str, Table]]:
        """Yield the rows of each metric of the page that a table has, those that the answer goes by first."""
        for metric in self.summary["metrics"]:
            kept = [k for k, one in enumerate(table.get("metric", [])) if one == metric]
            if "weighting" in table:
                kept.sort(key=lambda k: table["weighting"][k] != self.summary["headline"])
            if kept:
                yield metric, {name: [column[k] for k in kept] for name, column in table.items()}

    def _bounds(self, table: Table, metric: str) -> list[Column]:
        if not self.summary["metrics"][metric]["bounded"]:
            return []
        digits = digits_of(table["lower"], table["upper"], table["bound_lower"])
        return [Column("bounds", between(table["bound_lower"], table["bound_upper"], digits), "number")]


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
