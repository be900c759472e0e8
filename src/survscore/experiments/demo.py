"""The point of the library in one study: which of two methods each score prefers, and which of them is right."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from survscore._files import written_whole
from survscore._version import __version__
from survscore.experiments import studies as s
from survscore.experiments.figures import FIGURES
from survscore.inference import limits
from survscore.reports import Report
from survscore.reports import report as make_report

if TYPE_CHECKING:
    import pandas as pd

FIGURE = FIGURES["figure-5"]
LEVEL = 0.95


@dataclass(frozen=True, eq=False)
class Demo:
    """One replicate of the study with simple censoring, how it was made, and a report on what real data would show."""

    table: pd.DataFrame
    settings: dict[str, Any]
    report: Report

    def summary(self) -> pd.DataFrame:
        """Return the integrated scores of both methods: one row per loss and weighting.

        Columns: loss, weighting, one for each method and one for its standard error, their difference with limits, and
        the preferred one; none, where the interval of the difference holds 0.
        """
        import pandas as pd

        rows = []
        for loss in s.LOSSES:
            for weighting in FIGURE.panels:
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
        from survscore.plots import pyplot

        folder.mkdir(parents=True, exist_ok=True)
        numbers = FIGURE.numbers([self.table])
        figures = {loss: FIGURE.draw(numbers, loss) for loss in s.LOSSES}
        writers: dict[str, Callable[[Path], Any]] = {
            "demo.png": lambda path: figures["brier"].savefig(path, dpi=120),
            "demo-log.png": lambda path: figures["log"].savefig(path, dpi=120),
            "scores.csv": lambda path: numbers.to_csv(path, index=False),
            "summary.csv": lambda path: self.summary().to_csv(path, index=False),
            "settings.json": lambda path: path.write_text(json.dumps(self.settings, indent=2) + "\n"),
            "report.html": self.report.save,
        }
        for name, write in writers.items():
            with written_whole(folder / name) as path:
                write(path)
        for figure in figures.values():
            pyplot().close(figure)
        return [folder / name for name in writers]


def run(*, size: s.Size = s.DEMO_SIZE, seed: int = 1, report: s.Report = lambda what: None) -> Demo:
    """Simulate administratively censored data, fit both methods of the paper and a censoring model, and score.

    Parameters
    ----------
    size : Size
        How many individuals, and how long to train.
    seed : int
        The same seed gives the same numbers.
    report : callable
        Is told what is being done.
    """
    fitted = s.fit_mixture("simple", size, s.Seeds.of(seed, 0), report)
    report("scoring")
    table = fitted.scores(references=(s.TRUTH, s.HAZARD))
    settings = {"survscore": __version__, "study": "simple", "size": asdict(size), "seed": seed}
    report("making the report")
    page = make_report(
        fitted.test.outcomes,
        {name: fitted.curves[name] for name in (s.HAZARD, s.BCE)},
        weighting=list(fitted.weightings.values()),
        times=s.TIMES,
        reference=s.HAZARD,
        title="Two methods on simulated data whose covariates tell C*",
        settings={"seed": seed, "size": asdict(size)},
    )
    return Demo(table, settings, page)
