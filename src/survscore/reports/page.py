"""One self-contained page from plain data: no request leaves it, and nothing a user names can become code."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from survscore._utils.parallel import cached_property
from survscore._validation import InputError
from survscore.causes import takes_cause
from survscore.io.files import written_whole
from survscore.metrics import metric_label
from survscore.reports.individuals import CurvesSection
from survscore.reports.section import Section, Table, short_names_of, weighting_html
from survscore.reports.study import ReportRequest, called_with
from survscore.reports.summary import SECTIONS, page_tables_of, panels_of, summarise_request, tables_of
from survscore.results.rounding import short

NOTEBOOK_HEIGHT = 800


@dataclass(frozen=True, eq=False, repr=False)
class Report:
    """A report: its data and its HTML page, which notebooks display.

    Attributes
    ----------
    summary : dict
        Plain data, as `summarise` gives them.
    """

    summary: dict[str, Any]

    @cached_property
    def html(self) -> str:
        """The page, self-contained."""
        return render(self.summary)

    def save(self, path: Path | str) -> Path:
        """Write the page, whole or not at all, and return where.

        Parameters
        ----------
        path : path
            Ending in .html.
        """
        path = Path(path)
        if not path.name.lower().endswith((".html", ".htm")):
            raise InputError(f"path must end in .html, not {path.name!r}")
        page = self.html
        with written_whole(path) as temporary:
            temporary.write_text(page, encoding="utf-8", errors="backslashreplace", newline="\n")
        return path

    def _repr_html_(self) -> str:
        # A frame of its own keeps the page's style and script away from the notebook's. Without line breaks nobody can
        # indent it, which would change the script that its policy allows.
        source = html.escape(self.html).replace("\n", "&#10;")
        return (
            f'<iframe title="survscore report" srcdoc="{source}" '
            f'sandbox="allow-scripts allow-downloads" style="width:100%;height:{NOTEBOOK_HEIGHT}px;border:0"></iframe>'
        )

    def __repr__(self) -> str:
        models = ", ".join(map(repr, self.summary["models"]))
        return f"Report({self.summary['title']!r}, models {models}; save(path) writes the page)"


@takes_cause
@called_with(ReportRequest)
def report(request: ReportRequest) -> Report:
    """Make a report: one interactive HTML page that works offline and contains all numbers.

    Parameters
    ----------
    y : Outcomes
        What was observed. Sample weights are in everything but the checks of predictions around :math:`C^*`; with
        frequency weights there is no calibration.
    models : SurvivalCurves, mapping of str to SurvivalCurves, or pairs
        What each model predicted, for the same individuals in the same order.
    metric : {"brier", "log", "auc"} or Metric, or several
        What to compute; the page begins with the first.
    weighting : str, Weighting, or several, optional
        By default those that the data allow. The headline goes by the one to trust if it is among them, by the first
        otherwise.
    times, reference, null, groups, by, level
        As for `compare`; `by` adds a section on segments.
    correction : {"holm", "benjamini-hochberg", "none"}
        How p-values of segments allow for their number.
    time_range : tuple of float, optional
        Over which time mean scores are taken; by default over all of `times`, up to the first without score.
    horizons : array_like, optional
        At which times to show calibration.
    ids, n_curves
        What to call individuals, and of how many to show the curves.
    title : str
        Of the page.
    settings : mapping, optional
        More to say about how this was made.
    history : path, optional
        Earlier runs that ``survscore check --history`` has stored, to show their mean scores over time.
    backtest : Backtest, optional
        Made by `backtest`: adds a section that says which score would have chosen the best model on earlier days.
    unit : {"D", "W", "M", "Y", "h", "min", "s"}, or a word such as "month", optional
        What times are counted in, for the labels of axes and tables.
    cause : str or int, optional
        Under competing risks the cause of events to report on. By default all causes, of which the page shows one at a
        time, if all models are `IncidenceCurves` of several.
    progress : callable, optional
        Called with (done, total, what is being done).

    Returns
    -------
    Report
        Which shows itself in notebooks, and has ``save(path)`` and ``summary``, the plain data.

    Raises
    ------
    InputError
        If an argument is invalid; the message names it, the rule, and the first value that violates it.
    UnfitError
        If a metric is not defined for these predictions, or under this weighting.

    Examples
    --------
    >>> import survscore as ss
    >>> from survscore.simulate import ConstantHazardStudy
    >>> sample = ConstantHazardStudy().sample(500, seed=1)
    >>> report = ss.report(sample.outcomes, {"truth": sample.survival(range(1, 91))}, times=range(10, 81, 10))
    >>> report
    Report('How good are the predictions?', models 'truth', 'Kaplan-Meier'; save(path) writes the page)
    >>> len(report.html) < 2_000_000
    True
    """
    return Report(summarise_request(request))


def render(summary: dict[str, Any]) -> str:
    """Return the page of a summary.

    Parameters
    ----------
    summary : dict
        From `summarise`, or from JSON that was made of one.

    Returns
    -------
    str
        HTML. The content security policy in it lets run only the page's own script, and lets nothing be loaded.

    Examples
    --------
    >>> from survscore.reports import render, summarise
    >>> from survscore.simulate import ConstantHazardStudy
    >>> sample = ConstantHazardStudy().sample(200, seed=1)
    >>> page = render(summarise(sample.outcomes, sample.survival(range(1, 91)), title="A & B"))
    >>> "<h1>A &amp; B</h1>" in page
    True
    """
    try:
        from jinja2 import Environment, FunctionLoader, StrictUndefined
    except ImportError:
        raise ImportError("reports need jinja2: pip install 'survscore[report]'") from None

    def asset(name: str) -> str:
        return files("survscore.reports").joinpath("assets", name).read_text(encoding="utf-8")

    environment = Environment(
        loader=FunctionLoader(asset), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"short": short, "lines": lines, "people": people}
    style, script = asset("style.css"), asset("script.js")
    several = "causes" in summary
    # what is about one cause among several has its number in all names: of tables, charts, sections
    parts = {f"cause-{k}-": part for k, part in enumerate(summary["causes"], start=1)} if several else {"": summary}
    common = [_Part(summary, "", environment, (CurvesSection,))] if several else []
    has_common = any(part.panels for part in common)
    pages = [_Part(part, prefix, environment, SECTIONS, common=has_common) for prefix, part in parts.items()]
    drawn = [*pages, *common]
    tables = {f"{part.prefix}{name}": table for part in drawn for name, table in part.tables.items()}
    panels = {f"{part.prefix}{name}": some for part in drawn for name, some in part.panels.items()}
    metrics = pages[0].summary["metrics"]
    return environment.get_template("page.html").render(
        **{name: summary[name] for name in ("title", "survscore", "models", "null_model", "level")},
        subject=summary["data"],
        cause=summary.get("cause"),
        several=several,
        pages=pages,
        curves=common[0].rendered("curves.html") if common else "",
        metrics={name: metric_label(name) for name in metrics},
        data=_json({"tables": _coded(tables), "panels": panels, "metrics": list(metrics)}),
        style=style,
        script=script,
        style_hash=_hash(style),
        script_hash=_hash(script),
    )


class _Part:
    """A part of a page, about one cause of events or all of it: its tables and charts, and its names."""

    def __init__(
        self,
        summary: dict[str, Any],
        prefix: str,
        environment: Any,
        of: Sequence[type[Section]],
        *,
        common: bool = False,
    ) -> None:
        self.summary, self.prefix, self.environment = summary, prefix, environment
        self.common = common  # whether curves of individuals are in a part of their own
        self.tables, self.panels = tables_of(summary, of), panels_of(summary, of)
        self.page_tables = page_tables_of(summary, of)

    @property
    def name(self) -> str:
        return "all causes" if self.summary["all_causes"] else str(self.summary["cause"])

    def rendered(self, template: str) -> Any:
        """Return a template, with all that templates of parts use."""
        from markupsafe import Markup

        summary, short_names = self.summary, short_names_of(self.summary)
        context = {name: getattr(self, name) for name in ("tables", "panels", "page_tables", "common")}
        context |= {name: summary.get(name) for name in ("segments", "backtest")}
        page = self.environment.get_template(template).render(
            summary=summary,
            p=self.prefix,
            null_model=summary["null_model"],
            in_unit=f" {summary['unit']}" if summary.get("unit") else "",
            html_of=lambda table: Markup(table.rows_html(summary, short_names)),
            weighting_name=lambda name: Markup(weighting_html(name, short_names)),
            **context,
        )
        return Markup(page)


def people(count: int) -> str:
    """Return how many individuals there are, in words."""
    return f"{count:,} individual{'' if count == 1 else 's'}"


def lines(value: Any) -> list[str]:
    """Return a setting as one or several lines."""
    if isinstance(value, dict):
        return [f"{key}: {', '.join(lines(one))}" if one not in ("", {}) else str(key) for key, one in value.items()]
    if isinstance(value, (list, tuple)):
        return [", ".join(lines(one)) for one in value]
    return [short(value)]


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _coded(tables: dict[str, Table]) -> dict[str, Any]:
    """Return the tables with columns of repeated values as codes, since a name in every row takes most of the space."""
    return {name: {key: _codes(column) for key, column in table.items()} for name, table in tables.items()}


def _codes(column: list[Any]) -> Any:
    """Return a column as it is, or as codes where values of one kind come again and again."""
    kinds = {type(one) for one in column if one is not None}
    values = list(dict.fromkeys(column)) if len(kinds) == 1 else column
    if 2 * len(values) > len(column):
        return column
    position = {value: code for code, value in enumerate(values)}
    return {"values": values, "codes": [position[one] for one in column]}


def _json(data: Any) -> Any:
    """Return JSON that can stand in a script element: no angle bracket ends it early."""
    from markupsafe import Markup

    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))
