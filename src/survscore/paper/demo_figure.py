"""The demo's picture: what two methods predict around C*, and which of them each score prefers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from survscore.paper import studies as s
from survscore.paper.method_lines import COLOURS, line_of
from survscore.plots import style
from survscore.plots.labels import name_at_ends

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

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


def draw(around: pd.DataFrame, summary: pd.DataFrame, loss: str, *, width: float = style.PAGE) -> Any:
    """Return a matplotlib figure of a demo: above predictions around C*, below a row for each score.

    Parameters
    ----------
    around : DataFrame
        As `Demo.around`.
    summary : DataFrame
        As `Demo.summary()` returns it.
    loss : str
        Of which the rows below are.
    width : float
        In inches.
    """
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
        colour, told = verdict(name, preferred[place], preferred[names.index(s.UNCENSORED)])
        ax.plot([lower[place], upper[place]], [place, place], color=colour, linewidth=5, solid_capstyle="butt")
        ax.plot(difference[place], place, "|", color=colour, markersize=13, markeredgewidth=2)
        ax.annotate(told, (1.0, place), xycoords=("axes fraction", "data"), xytext=(6, 0), textcoords="offset points",
                    color=colour, va="center", fontsize=size, fontweight="bold")  # fmt: skip
    reach = 1.15 * float(np.abs([lower, upper]).max())
    ax.set_xlim(min(-0.55 * reach, 1.15 * float(lower.min())), reach)
    ax.axvline(0, color=style.INK, linewidth=1)
    ax.set_yticks(range(len(names)), [SHORT[name] for name in names])
    ax.grid(False, axis="y")
    ax.set_ylim(len(names) - 0.4, -1.2)
    for model, side, text in ((s.BCE, "right", "BCE ◂ "), (s.HAZARD, "left", " ▸ Logistic-Hazard")):
        ax.text(0, -0.75, text, ha=side, va="center", fontsize=size, color=COLOURS[model])
    style.say(
        ax, x="score of BCE minus that of Logistic-Hazard, with 95 % interval",
        title="Which of them each score prefers",
    )  # fmt: skip


def verdict(weighting: str, prefers: str, truth: str) -> tuple[str, str]:
    """Return the colour of what a score prefers, and whether that is right, in a word."""
    if not truth:
        return OPEN, "not significant"
    if weighting == s.UNCENSORED:
        return RIGHT, "truth"
    if not prefers:
        return OPEN, "unclear"
    return (RIGHT, "right") if prefers == truth else (WRONG, "wrong")
