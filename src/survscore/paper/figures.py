"""The figures of the paper: which study each shows, what is claimed about it, and how it is drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from survscore.inference.intervals import limits
from survscore.metrics import metric_label
from survscore.paper import claims as c
from survscore.paper import studies as s
from survscore.plots import style
from survscore.plots.labels import name_panels
from survscore.plots.scores import time_axis

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

#: Of the confidence intervals of one replicate, and the share of several between the limits of a band.
LEVEL, BAND = 0.95, 0.9
SCORES_3 = (s.UNCENSORED, s.IPCW_KM, s.IPCW_TRUE, s.ADMINISTRATIVE)
SCORES_45 = (s.UNCENSORED, s.ADMINISTRATIVE, s.IPCW_KM, s.IPCW_TRUE, s.IPCW_100, s.IPCW_1000)
ALL_IPCW = (s.IPCW_KM, s.IPCW_TRUE, s.IPCW_100, s.IPCW_1000)


COLOURS = style.colours([s.HAZARD, s.BCE, s.BCE_TOLD, s.TRUTH], null=s.TRUTH)


def line_of(method: str) -> dict[str, Any]:
    """Return matplotlib's options for a method's line, the same in all figures of the studies."""
    if method == s.TRUTH:  # dashed, and above others, which show between its dashes
        return {"color": COLOURS[method], "linestyle": style.DASHES[1], "zorder": 2.5}
    return {"color": COLOURS[method]}


@dataclass(frozen=True)
class Figure:
    """One figure: which rows of a study's replicates it shows, and what the paper says about it."""

    name: str
    title: str
    study: str
    #: Which rows of the tables.
    kind: str
    #: What distinguishes the panels, in reading order: the paper's, and after them the projected score.
    panels: tuple[Any, ...]
    #: One drawing for each.
    losses: tuple[str, ...]
    claims: tuple[c.Claim, ...]

    def draw(self, numbers: pd.DataFrame, loss: str, *, about: str = "", width: float = style.PAGE) -> Any:
        """Return a matplotlib figure, so many inches wide; `about` says below the title what must not be missed."""
        of_survival = self.kind == s.SURVIVAL
        shown = numbers if of_survival else numbers[numbers.loss == loss]
        of_panel = shown["censoring_time" if of_survival else "weighting"]
        y_label = "survival" if of_survival else f"{metric_label(loss)} (lower is better)"
        n_columns = 4 if len(self.panels) == 7 else 3
        if width < style.NARROW or len(self.panels) in (2, 4):
            n_columns = 2
        n = numbers.replicate.nunique()
        title = self.title + (f", mean and {100 * BAND:.0f} % of {n} replicates" if n > 1 else "")
        with style.applied(width):
            figure, axes = style.panels(len(self.panels), n_columns, width)
            lines = []
            for ax, panel in zip(axes, self.panels, strict=True):
                rows = shown[of_panel == panel]
                lines.append(
                    {str(model): _line(ax, some, str(model)) for model, some in rows.groupby("model", sort=False)}
                )
                time_axis(ax, own=True)
                style.say(ax, title=f"C* = {panel:g}" if of_survival else str(panel), x="time", y=y_label)
            if of_survival:
                for ax, panel in zip(axes, self.panels, strict=True):
                    style.mark(ax, x=panel, color=style.INK)
            style.label_outer(axes, n_columns)
            name_panels(axes, n_columns, lines)
            style.put(figure.suptitle(""), f"{title}\n{about}" if about else title, 70.0 * width)
            style.refit_panels(figure)
        return figure


def rows_of(kind: str, replicates: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the rows of one kind of all replicates, without the columns that it has no use for."""
    import pandas as pd

    table = pd.concat(
        [table[table.kind == kind].assign(replicate=k) for k, table in enumerate(replicates)], ignore_index=True
    )
    return table.drop(columns=[column for column in table if table[column].isna().all()])


def _line(ax: Axes, rows: pd.DataFrame, model: str) -> Any:
    """Draw one model: the mean over replicates with a band over them, or one replicate with confidence intervals."""
    by_time = rows.groupby("time").value
    mean = by_time.mean()
    (line,) = ax.plot(mean.index, mean, **line_of(model))
    if rows.replicate.nunique() > 1:
        style.shade(ax, line, mean.index, by_time.quantile((1 - BAND) / 2), by_time.quantile((1 + BAND) / 2))
    elif "se" in rows:
        style.shade(ax, line, rows.time, *limits(rows.value.to_numpy(), rows.se.to_numpy(), LEVEL))
    return line


def _for_losses(make: Callable[[str], list[c.Claim]]) -> tuple[c.Claim, ...]:
    return tuple(claim for loss in s.LOSSES for claim in make(loss))


def _claims_3(loss: str) -> list[c.Claim]:
    study = "constant-hazard"
    return [
        c.better(study, s.TRUTH, s.BCE, s.UNCENSORED, loss),
        c.better(study, s.TRUTH, s.BCE_TOLD, s.UNCENSORED, loss),
        c.better(study, s.BCE_TOLD, s.TRUTH, s.IPCW_KM, loss),
        c.better(study, s.BCE_TOLD, s.BCE, s.IPCW_KM, loss),
        c.better(study, s.BCE_TOLD, s.TRUTH, s.IPCW_TRUE, loss),
        c.better(study, s.BCE_TOLD, s.BCE, s.IPCW_TRUE, loss),
        c.better(study, s.BCE, s.TRUTH, s.IPCW_TRUE, loss),
        c.better(study, s.TRUTH, s.BCE, s.ADMINISTRATIVE, loss),
        c.better(study, s.TRUTH, s.BCE_TOLD, s.ADMINISTRATIVE, loss),
        c.closer(study, s.ADMINISTRATIVE, loss),
    ]


def _claims_4(loss: str) -> list[c.Claim]:
    study = "complicated"
    others = [weighting for weighting in SCORES_45 if weighting != s.IPCW_TRUE]
    return [
        *(c.better(study, s.TRUTH, method, weighting, loss) for weighting in SCORES_45 for method in (s.HAZARD, s.BCE)),
        *(c.better(study, s.HAZARD, s.BCE, weighting, loss) for weighting in others),
        c.better(study, s.BCE, s.HAZARD, s.IPCW_TRUE, loss),
    ]


def _claims_5(loss: str) -> list[c.Claim]:
    study = "simple"
    return [
        c.worse_with_simple_censoring(loss),
        c.better(study, s.HAZARD, s.BCE, s.UNCENSORED, loss),
        *(c.better(study, s.BCE, s.HAZARD, weighting, loss) for weighting in ALL_IPCW),
        c.better(study, s.HAZARD, s.BCE, s.ADMINISTRATIVE, loss),
    ]


SCORES_1 = (s.IPCW_KM, s.IPCW_1000)
SCORES_6 = (s.IPCW_KM, s.ADMINISTRATIVE, *(s.capped(cap) for cap in s.CAPS), s.IPCW_UNCAPPED)


def _claims_1(loss: str) -> list[c.Claim]:
    late = {"kind": s.LATE, "when": " at the highest times (last third)"}
    return [
        c.better(s.CHURN, s.BCE, s.HAZARD, s.IPCW_KM, loss, **late),
        c.better(s.CHURN, s.HAZARD, s.BCE, s.IPCW_1000, loss),
        c.better(s.CHURN, s.BCE, s.HAZARD, s.IPCW_1000, loss, **late),
    ]


def _claims_6(loss: str) -> list[c.Claim]:
    return [
        c.better(s.CHURN, s.BCE, s.HAZARD, s.IPCW_KM, loss),
        c.better(s.CHURN, s.HAZARD, s.BCE, s.ADMINISTRATIVE, loss),
        c.better(s.CHURN, s.BCE, s.HAZARD, s.capped(1), loss),
        c.better(s.CHURN, s.HAZARD, s.BCE, s.IPCW_1000, loss),
        c.moves_with_the_cap(loss),
    ]


FIGURES = {
    figure.name: figure
    for figure in (
        Figure("figure-1", "KKBox: IPCW scores", s.CHURN, s.SCORE, SCORES_1, s.LOSSES, _for_losses(_claims_1)),
        Figure(
            "figure-2",
            "Survival estimates of the BCE method",
            "constant-hazard",
            s.SURVIVAL,
            s.SHOWN_CENSORING_TIMES,
            ("",),
            c.about_survival(),
        ),
        Figure(
            "figure-3",
            "Constant hazard, uniform censoring",
            "constant-hazard",
            s.SCORE,
            (*SCORES_3, s.PROJECTED),
            s.LOSSES,
            _for_losses(_claims_3),
        ),
        Figure(
            "figure-4",
            "Complicated administrative censoring",
            "complicated",
            s.SCORE,
            (*SCORES_45, s.PROJECTED),
            s.LOSSES,
            _for_losses(_claims_4),
        ),
        Figure(
            "figure-5",
            "Simple administrative censoring",
            "simple",
            s.SCORE,
            (*SCORES_45, s.PROJECTED),
            s.LOSSES,
            _for_losses(_claims_5),
        ),
        Figure(
            "figure-6",
            "KKBox: all scores",
            s.CHURN,
            s.SCORE,
            (*SCORES_6, s.PROJECTED),
            s.LOSSES,
            (c.further_from_the_truth(), *_for_losses(_claims_6)),
        ),
    )
}
