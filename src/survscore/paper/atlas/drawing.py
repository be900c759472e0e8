"""The forest plot: how many more pairs of models than the administrative score others put in the true order, by set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from survscore.paper.atlas.models import FAMILIES
from survscore.paper.atlas.scores import ADMINISTRATIVE, KAPLAN_MEIER, PROJECTED

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from survscore.paper.atlas.results import Atlas

ROW = 0.28  # inches, of each set
#: Of each score: its place within a row, and its marker for a set.
SHOWN = {PROJECTED: (-0.17, "o"), KAPLAN_MEIER: (0.17, "s")}


def forest(atlas: Atlas, path: Path, *, width: float | None = None) -> None:
    """Draw the forest plot, and write it whole; see `draw`."""
    from survscore.plots import PAGE, save_figure
    from survscore.plots.style import pyplot

    figure = draw(atlas, width=PAGE if width is None else width)
    save_figure(figure, path, dpi=150)
    pyplot().close(figure)


def draw(atlas: Atlas, *, width: float) -> Any:
    """Return a matplotlib figure: a panel for each family of models, a row for each set, and their mean below.

    In each row the projected score and IPCW, as differences to the administrative score.

    Parameters
    ----------
    atlas : Atlas
        The numbers.
    width : float
        In inches; two panels beside each other, where four are too narrow.
    """
    from survscore.plots import style

    names = list(dict.fromkeys(atlas.sets["set"]))
    n_columns = 2 if width < style.NARROW else len(FAMILIES)
    n_rows = -(-len(FAMILIES) // n_columns)
    with style.applied(width):
        figure, axes = style.pyplot().subplots(
            n_rows,
            n_columns,
            sharex=True,
            sharey=True,
            squeeze=False,
            layout="constrained",
            figsize=(width, n_rows * (0.6 + ROW * (len(names) + 1)) + 0.7),
        )
        for ax, family in zip(axes.flat, FAMILIES, strict=True):
            for score, colour in zip(SHOWN, style.PALETTE, strict=False):
                table = atlas.sets[(atlas.sets["family"] == family) & (atlas.sets["score"] == score)]
                _points(ax, table.set_index("set").loc[names], atlas.of_summary(family, score), score, colour)
            style.dress(ax)
            ax.grid(False, axis="y")
            style.mark(ax, x=0.0, color=style.INK, linestyle="-")
            style.mark(ax, y=len(names) - 0.5, linestyle="-", color=style.RULE)
            style.say(ax, title=family)
        axes[0, 0].set_yticks(range(len(names) + 1), [*names, "mean over sets"])
        axes[0, 0].set_ylim(len(names) + 0.6, -0.6)
        axes[0, 0].locator_params(axis="x", nbins=5, steps=[1, 2, 5, 10])
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=len(SHOWN), fontsize=style.font_size(width))
        better = f"pairs of models in the true order: difference to the {ADMINISTRATIVE} score, percentage points"
        style.put(figure.supxlabel("", fontsize=style.font_size(width)), better, 70.0 * width)
        style.refit(figure, None)
    return figure


def _points(ax: Axes, sets: pd.DataFrame, mean: pd.Series[Any], score: str, colour: str) -> None:
    offset, marker = SHOWN[score]
    rows = [*((row, marker, 3.5) for _, row in sets.iterrows()), (mean, "D", 5.5)]
    for place, (row, shape, size) in enumerate(rows):
        y = place + offset
        ax.plot([-100 * row["gain_lower"], -100 * row["gain_upper"]], [y, y], color=colour, linewidth=1)
        ax.plot(-100 * row["gain"], y, shape, color=colour, markersize=size, label=score if place == 0 else None)
