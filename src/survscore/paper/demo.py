"""The point of the library in one study: which of two methods each score prefers, and which of them is right."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from survscore._version import __version__
from survscore.inference.intervals import limits
from survscore.io.files import written_whole
from survscore.paper import studies as s
from survscore.paper.figures import COLOURS, line_of
from survscore.plots import save_figure, style
from survscore.plots.labels import name_at_ends
from survscore.reports import Report
from survscore.reports import report as make_report

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

LEVEL = 0.95
WEIGHTINGS = (s.UNCENSORED, s.PROJECTED, s.ADMINISTRATIVE, s.IPCW_KM, s.IPCW_TRUE)
#: How far from C* predictions are shown, of those who are so far from the first time and the last.
REACH = 30.0
DPI = 150
FALLS = 5.0  # units of time after C* over which a fall is reported
#: Of verdicts; the colour-blind can tell them apart, too.
RIGHT, WRONG, OPEN = "#00795A", "#C2185B", "#777777"
NAMES = {s.TRUTH: "the truth", s.HAZARD: "Logistic-Hazard", s.BCE: "BCE"}
SHORT = {
    s.UNCENSORED: "uncensored",
    s.PROJECTED: "projected",
    s.ADMINISTRATIVE: "administrative",
    s.IPCW_KM: "IPCW, Kaplan-Meier",
    s.IPCW_TRUE: "censored left out",
}
HEIGHT = 5.2
PHONE = style.COLUMN  # letters of a figure so wide can be read on one


@dataclass(frozen=True, eq=False)
class Demo:
    """Two methods on simulated data in which C* is a covariate."""

    #: Every score and difference.
    table: pd.DataFrame
    #: Mean predictions around each individual's own C*: model, since, survival.
    around: pd.DataFrame
    settings: dict[str, Any]
    #: On what real data would show.
    report: Report

    def falls(self, model: str) -> float:
        """Return the share by which a model's mean prediction falls right after C*."""
        rows = self.around[self.around.model == model].set_index("since").survival
        return float(1.0 - rows[FALLS] / rows[0.0])

    def against_null(self, model: str) -> float:
        """Return how much lower than Kaplan-Meier's a model's Brier score is in truth, as a share; the skill score."""
        truth = self.table[(self.table.loss == "brier") & (self.table.weighting == s.UNCENSORED)]
        value = truth[truth.kind == s.INTEGRATED].set_index("model").value
        return float(1.0 - value[model] / value[s.NULL])

    def summary(self) -> pd.DataFrame:
        """Return the integrated scores of both methods: one row per loss and weighting.

        Columns: loss, weighting, one for each method and one for its standard error, their difference with limits, and
        the preferred one; none, where the interval of the difference holds 0.
        """
        import pandas as pd

        rows = []
        for loss in s.LOSSES:
            for weighting in WEIGHTINGS:
                part = self.table[(self.table.loss == loss) & (self.table.weighting == weighting)]
                whole = part[part.kind == s.INTEGRATED].set_index("model")
                chosen = (part.kind == s.DIFFERENCE) & (part.model == s.BCE) & (part.reference == s.HAZARD)
                difference = part[chosen].iloc[0]
                lower, upper = limits(difference.value, difference.se, LEVEL)
                row = {"loss": loss, "weighting": weighting}
                for model in (s.HAZARD, s.BCE):
                    row |= {model: whole.value[model], f"{model} se": whole.se[model]}
                preferred = s.HAZARD if lower > 0 else s.BCE if upper < 0 else ""
                rows.append(
                    row | {"difference": difference.value, "lower": lower, "upper": upper, "prefers": preferred}
                )
        return pd.DataFrame(rows)

    def save(self, folder: Path) -> list[Path]:
        """Write figures, every number, settings and the report, in this order; each file whole or not at all."""
        folder.mkdir(parents=True, exist_ok=True)
        summary, scores = self.summary(), self.table[self.table.kind == s.SCORE].dropna(axis="columns", how="all")
        figures = {
            "demo": draw(self.around, summary, "brier"),
            "demo-narrow": draw(self.around, summary, "brier", width=PHONE),
            "demo-log": draw(self.around, summary, "log"),
        }
        writers: dict[str, Callable[[Path], Any]] = {
            **{f"{name}.png": partial(save_figure, figure, dpi=DPI) for name, figure in figures.items()},
            "scores.csv": lambda path: scores.to_csv(path, index=False),
            "around.csv": lambda path: self.around.to_csv(path, index=False),
            "summary.csv": lambda path: summary.to_csv(path, index=False),
            "settings.json": lambda path: path.write_text(json.dumps(self.settings, indent=2) + "\n"),
            "report.html": self.report.save,
        }
        for name, write in writers.items():
            with written_whole(folder / name) as path:
                write(path)
        for figure in figures.values():
            style.pyplot().close(figure)
        return [folder / name for name in writers]


def run(*, size: s.Size = s.DEMO_SIZES["demo"], seed: int = 1, report: s.Report = lambda what: None) -> Demo:
    """Simulate administrative censoring, fit both methods of the paper with C* as a covariate, and score.

    The same seed gives the same numbers.
    """
    fitted = s.fit_given_censoring(size, s.Seeds.of(seed, 0), report)
    report("scoring")
    table = fitted.scores(references=(s.HAZARD,))
    settings = {
        "survscore": __version__,
        "study": "hazards constant in time, by two covariates; C* a third",
        "size": asdict(size),
        "seed": seed,
    }
    report("making the report")
    page = make_report(
        fitted.test.outcomes,
        {name: fitted.curves[name] for name in (s.HAZARD, s.BCE)},
        weighting=list(fitted.weightings.values()),
        times=fitted.times,
        reference=s.HAZARD,
        title="Two networks given C* as a covariate",
        settings={"seed": seed, "size": asdict(size)},
    )
    return Demo(table, _around(fitted), settings, page)


def _around(fitted: s.Fitted) -> pd.DataFrame:
    """Return mean predictions around each individual's C*, of those whose predictions reach as far on both sides."""
    import pandas as pd

    end = np.asarray(fitted.test.outcomes.censoring_time)
    since = np.arange(-REACH, REACH + 1.0)
    shown = np.flatnonzero((end - REACH >= 0.0) & (end + REACH <= fitted.times[-1]))
    grid = np.arange(fitted.times[-1] + 1.0)
    tables = []
    for name in (s.TRUTH, s.HAZARD, s.BCE):
        curves = np.asarray(fitted.curves[name][shown].at(grid), dtype=np.float64)
        own = [np.interp(end[i] + since, grid, curve) for i, curve in zip(shown, curves, strict=True)]
        tables.append(pd.DataFrame({"model": name, "since": since, "survival": np.mean(own, axis=0)}))
    return pd.concat(tables, ignore_index=True)


# The picture


def draw(around: pd.DataFrame, summary: pd.DataFrame, loss: str, *, width: float = style.PAGE) -> Any:
    """Return a figure of a demo, `width` inches wide: above predictions around C*, below a row for each score."""
    with style.applied(width):
        figure = style.pyplot().figure(figsize=(width, HEIGHT), layout="constrained")
        above, below = figure.subfigures(2, 1)  # each with the margins that its own words take
        _predictions(above.add_subplot(), around)
        _verdicts(below.add_subplot(), summary[summary.loss == loss])
        style.refit(figure, None)
        return figure


def _predictions(ax: Axes, around: pd.DataFrame) -> None:
    lines = []
    for name, rows in around.groupby("model", sort=False):
        lines += ax.plot(rows.since, rows.survival, linewidth=2.2, **line_of(str(name)))
    ax.margins(x=0.0)
    ax.set_ylim(0, 1)
    ax.axvline(0, color=style.INK, linewidth=1)
    for side, text in (("right", "seen "), ("left", " not seen yet")):
        ax.text(0, 0.94, text, ha=side, fontsize=style.small(ax))
    name_at_ends(ax, [(line, NAMES[str(name)]) for line, name in zip(lines, around.model.unique(), strict=True)])
    style.say(ax, x="time since C*", y="mean predicted survival", title="What two methods predict")


def _verdicts(ax: Axes, rows: pd.DataFrame) -> None:
    names, preferred = list(rows.weighting), list(rows.prefers)
    difference, lower, upper = (rows[column].to_numpy(float) for column in ("difference", "lower", "upper"))
    size = style.small(ax)
    for place, name in enumerate(names):
        colour, word = verdict(name, preferred[place], preferred[names.index(s.UNCENSORED)])
        ax.plot([lower[place], upper[place]], [place, place], color=colour, linewidth=5, solid_capstyle="butt")
        ax.plot(difference[place], place, "|", color=colour, markersize=13, markeredgewidth=2)
        at: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "xytext": (6, 0), "textcoords": "offset points"}
        ax.annotate(word, (1.0, place), color=colour, va="center", fontsize=size, fontweight="bold", **at)
    reach = 1.15 * float(np.abs([lower, upper]).max())
    ax.set_xlim(min(-0.55 * reach, 1.15 * float(lower.min())), reach)
    ax.axvline(0, color=style.INK, linewidth=1)
    ax.set_yticks(range(len(names)), [SHORT[name] for name in names])
    ax.grid(False, axis="y")
    ax.set_ylim(len(names) - 0.4, -1.2)
    for model, side, text in ((s.BCE, "right", "BCE ◂ "), (s.HAZARD, "left", " ▸ Logistic-Hazard")):
        ax.text(0, -0.75, text, ha=side, va="center", fontsize=size, color=COLOURS[model])
    difference_label = "score of BCE minus that of Logistic-Hazard, with 95 % interval"
    style.say(ax, x=difference_label, title="Which of them each score prefers")


def verdict(weighting: str, prefers: str, truth: str) -> tuple[str, str]:
    """Return the colour of what a score prefers, and whether that is right, in a word."""
    if not truth:
        return OPEN, "not significant"
    if weighting == s.UNCENSORED:
        return RIGHT, "truth"
    if not prefers:
        return OPEN, "unclear"
    return (RIGHT, "right") if prefers == truth else (WRONG, "wrong")
