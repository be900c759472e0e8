"""One self-contained page from plain data: no request leaves it, and nothing a user names can become code."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

from survscore._files import written_whole
from survscore._validation import InputError
from survscore.comparison import NULL_MODEL
from survscore.curves import SurvivalCurves
from survscore.losses import loss_label
from survscore.outcomes import Outcomes
from survscore.reports import figures, words
from survscore.reports.comparing import Table
from survscore.reports.summary import summarise

NOTEBOOK_HEIGHT = 800


@dataclass(frozen=True, eq=False, repr=False)
class Report:
    """A report: its data and its page. In a notebook it shows itself.

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


def report(y: Outcomes, curves: Any, **options: Any) -> Report:
    """Make a report that can be shown: one interactive page, offline, with every number in it.

    Parameters
    ----------
    y : Outcomes
        What was observed.
    curves : SurvivalCurves, mapping of str to SurvivalCurves, or pairs
        What each model predicted, for the same individuals in the same order.
    **options
        As for `survscore.reports.summarise`: weightings, losses, times, range, reference, null, horizons, groups,
        level, ids, n_curves, title.

    Returns
    -------
    Report
        Which shows itself in notebooks, and has ``save(path)`` and ``summary``, the plain data.

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
    if not isinstance(y, Outcomes):
        raise InputError(f"y must be Outcomes, not {type(y).__name__}")
    if not isinstance(curves, SurvivalCurves) and not hasattr(curves, "__iter__"):
        raise InputError("curves must be SurvivalCurves, or map names to SurvivalCurves")
    return Report(summarise(y, curves, **options))


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
    environment.filters |= {"short": words.short, "lines": lines, "people": words.people, "loss_label": loss_label}
    style, script = asset("style.css"), asset("script.js")
    tables = figures.tables(summary)
    panels = {name: found for name, found in figures.panels(summary).items() if found}
    return environment.get_template("page.html").render(
        summary=summary,
        tables=tables,
        panels=panels,
        null_model=NULL_MODEL,
        data=_json({"tables": _coded(tables), "panels": panels, "losses": summary["losses"]}),
        style=style,
        script=script,
        style_hash=_hash(style),
        script_hash=_hash(script),
    )


def lines(value: Any) -> list[str]:
    """Return a setting as one or several lines."""
    if isinstance(value, dict):
        return [f"{key}: {', '.join(lines(one))}" if one not in ("", {}) else str(key) for key, one in value.items()]
    if isinstance(value, (list, tuple)):
        return [", ".join(lines(one)) for one in value]
    return [words.short(value)]


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _coded(tables: dict[str, Table]) -> dict[str, Any]:
    """Return the tables with columns of repeated texts as codes, since a name in every row takes most of the space."""
    return {name: {key: _codes(column) for key, column in table.items()} for name, table in tables.items()}


def _codes(column: list[Any]) -> Any:
    values = list(dict.fromkeys(column)) if all(isinstance(one, str) for one in column) else column
    if 2 * len(values) > len(column):
        return column
    position = {value: code for code, value in enumerate(values)}
    return {"values": values, "codes": [position[one] for one in column]}


def _json(data: Any) -> Any:
    """Return JSON that can stand in a script element: no angle bracket ends it early."""
    from markupsafe import Markup

    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))
