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
from survscore.paper import demo_figure
from survscore.paper import studies as s
from survscore.reports import Report
from survscore.reports import report as make_report

if TYPE_CHECKING:
    import pandas as pd

LEVEL = 0.95
WEIGHTINGS = (s.UNCENSORED, s.PROJECTED, s.ADMINISTRATIVE, s.IPCW_KM, s.IPCW_TRUE)
#: How far from C* predictions are shown, of those who are so far from the first time and the last.
REACH = 30.0
DPI = 150
FALLS = 5.0  # units of time after C* over which a fall is told


@dataclass(frozen=True, eq=False)
class Demo:
    """Two methods on simulated data in which C* is a covariate.

    Attributes
    ----------
    table : DataFrame
        Every score and difference.
    around : DataFrame
        Mean predictions around each individual's own C*: model, since, survival.
    settings : dict
        How it was made.
    report : Report
        On what real data would show.
    """

    table: pd.DataFrame
    around: pd.DataFrame
    settings: dict[str, Any]
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
        from survscore.plots import save_figure
        from survscore.plots.style import pyplot

        folder.mkdir(parents=True, exist_ok=True)
        summary, scores = self.summary(), self.table[self.table.kind == s.SCORE].dropna(axis="columns", how="all")
        figures = {"demo": demo_figure.draw(self.around, summary, "brier"),
                   "demo-narrow": demo_figure.draw(self.around, summary, "brier", width=demo_figure.PHONE),
                   "demo-log": demo_figure.draw(self.around, summary, "log")}  # fmt: skip
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
            pyplot().close(figure)
        return [folder / name for name in writers]


def run(*, size: s.Size = s.DEMO_SIZES["demo"], seed: int = 1, report: s.Report = lambda what: None) -> Demo:
    """Simulate administrative censoring, fit both methods of the paper with C* as a covariate, and score.

    Parameters
    ----------
    size : Size
        How many individuals, and how long to train.
    seed : int
        The same seed gives the same numbers.
    report : callable
        Called with what is being done.
    """
    fitted = s.fit_told(size, s.Seeds.of(seed, 0), report)
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
