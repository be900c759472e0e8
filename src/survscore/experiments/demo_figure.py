"""The demo's picture: what two methods predict around C*, and which of them each score prefers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from survscore.experiments import studies as s
from survscore.plots import colours, pyplot

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

COLOURS = colours([s.HAZARD, s.BCE, s.TRUTH], null=s.TRUTH)
#: Of verdicts; the colour-blind can tell them apart, too.
RIGHT, WRONG, OPEN = "#00795A", "#C2185B", "#777777"
NAMES = {s.TRUTH: "the truth", s.HAZARD: "Logistic-Hazard", s.BCE: "BCE"}
SHORT = {
    s.UNCENSORED: "uncensored",
    s.ADMINISTRATIVE: "administrative",
    s.IPCW_KM: "IPCW, Kaplan-Meier",
    s.IPCW_TRUE: "censored left out",
}
WIDTH, HEIGHT = 7.0, 5.4
APART = 0.08  # labels at the ends of lines
ROOM = 1.9  # for these, in inches
NARROW = 5.0


def draw(around: pd.DataFrame, summary: pd.DataFrame, loss: str, *, width: float = WIDTH) -> Any:
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
        In inches; a narrow one is for phones.
    """
    plt = pyplot()
    figure, (above, below) = plt.subplots(
        2, 1, figsize=(width, HEIGHT), height_ratios=[1.15, 1.0], layout="constrained"
    )
    _predictions(above, around)
    _verdicts(below, summary[summary.loss == loss])
    return figure


def _predictions(ax: Axes, around: pd.DataFrame) -> None:
    ends = {}
    for name in (s.TRUTH, s.HAZARD, s.BCE):
        rows = around[around.model == name]
        since, survival = rows.since.to_numpy(), rows.survival.to_numpy()
        ax.plot(since, survival, color=COLOURS[name], linewidth=2.2, linestyle=(0, (4, 2)) if name == s.TRUTH else "-")
        ends[name] = survival[-1]
    below = 0.0
    for name in sorted(ends, key=lambda one: ends[one]):  # labels one above the other
        below = max(ends[name], below + APART)
        ax.annotate(NAMES[name], (since[-1], below), xytext=(5, 0), textcoords="offset points", color=COLOURS[name],
                    va="center", fontsize=9, fontweight="bold")  # fmt: skip
    ax.axvline(0, color="black", linewidth=1)
    ax.set_ylim(0, 1)
    ax.set_xlim(since[0], since[-1] + ROOM / _inches(ax) * (since[-1] - since[0]))
    ax.set_xticks(np.linspace(since[0], since[-1], 7 if _inches(ax) > NARROW else 3))
    ax.text(-0.7, 0.94, "seen", ha="right", fontsize=9)
    ax.text(0.7, 0.94, "not seen yet", ha="left", fontsize=9)
    ax.set_xlabel("time since everybody's own C*")
    ax.set_ylabel("mean predicted survival")
    ax.set_title("What two methods predict", loc="left", fontsize=11, fontweight="bold")
    _bare(ax)


def _verdicts(ax: Axes, rows: pd.DataFrame) -> None:
    names, preferred = list(rows.weighting), list(rows.prefers)
    difference, lower, upper = (rows[column].to_numpy(float) for column in ("difference", "lower", "upper"))
    for place, name in enumerate(names):
        colour, told = verdict(name, preferred[place], preferred[names.index(s.UNCENSORED)])
        ax.plot([lower[place], upper[place]], [place, place], color=colour, linewidth=5, solid_capstyle="butt")
        ax.plot(difference[place], place, "|", color=colour, markersize=13, markeredgewidth=2)
        ax.annotate(told, (1.0, place), xycoords=("axes fraction", "data"), xytext=(6, 0),
                    textcoords="offset points", color=colour, va="center", fontsize=9, fontweight="bold")  # fmt: skip
    reach = 1.15 * float(np.abs([lower, upper]).max())
    ax.set_xlim(min(-0.55 * reach, 1.15 * float(lower.min())), reach)
    ax.axvline(0, color="black", linewidth=1)
    shown = [SHORT[name].replace(", ", ",\n" if _inches(ax) <= NARROW else ", ") for name in names]
    ax.set_yticks(range(len(names)), shown)
    ax.set_ylim(len(names) - 0.4, -1.2)
    ax.text(-0.01 * reach, -0.75, "better: BCE ◂", ha="right", va="center", fontsize=9, color=COLOURS[s.BCE])
    ax.text(0.01 * reach, -0.75, "▸ Logistic-Hazard", ha="left", va="center", fontsize=9,
            color=COLOURS[s.HAZARD])  # fmt: skip
    ax.set_xlabel(
        "score of BCE minus that of Logistic-Hazard" + (", with 95 % interval" if _inches(ax) > NARROW else "")
    )
    ax.set_title("Which of them each score prefers", loc="left", fontsize=11, fontweight="bold")
    _bare(ax)


def verdict(weighting: str, prefers: str, truth: str) -> tuple[str, str]:
    """Return the colour of what a score prefers, and whether that is right, in a word."""
    if not truth:
        return OPEN, "can't be told"
    if weighting == s.UNCENSORED:
        return RIGHT, "truth"
    if not prefers:
        return OPEN, "can't tell"
    return (RIGHT, "right") if prefers == truth else (WRONG, "wrong")


def _inches(ax: Axes) -> float:
    width: float = ax.get_figure(root=True).get_figwidth()  # type: ignore[union-attr]
    return width


def _bare(ax: Axes) -> None:
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.grid(axis="x", color="#e5e5e5", linewidth=0.8)
    ax.set_axisbelow(True)
