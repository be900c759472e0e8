"""The forest plot: by how much more pairs of models the administrative score put in the true order, set by set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from survscore.experiments.atlas.models import FAMILIES
from survscore.experiments.atlas.scores import ADMINISTRATIVE, KAPLAN_MEIER

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from survscore.experiments.atlas.results import Atlas

ROW = 0.21  # inches, of each set


def forest(atlas: Atlas, path: Path, against: str = KAPLAN_MEIER, *, width: float | None = None) -> None:
    """Draw the forest plot, and write it whole; see `draw`."""
    from survscore.plots import PAGE, pyplot, save_figure

    figure = draw(atlas, against, width=PAGE if width is None else width)
    save_figure(figure, path, dpi=150)
    pyplot().close(figure)


def draw(atlas: Atlas, against: str = KAPLAN_MEIER, *, width: float) -> Any:
    """Return a matplotlib figure: a panel for each family of models, a row for each set, and their mean below.

    Parameters
    ----------
    atlas : Atlas
        The numbers.
    against : str
        The score with which the administrative one is compared.
    width : float
        In inches; two panels beside each other, where four are too narrow.
    """
    from survscore.plots import style

    table = atlas.sets[atlas.sets["score"] == against]
    names = list(dict.fromkeys(table["set"]))
    n_columns = 2 if width < style.NARROW else len(FAMILIES)
    n_rows = -(-len(FAMILIES) // n_columns)
    with style.applied(width):
        figure, axes = style.pyplot().subplots(
            n_rows, n_columns, sharex=True, sharey=True, squeeze=False, layout="constrained",
            figsize=(width, n_rows * (0.6 + ROW * (len(names) + 1)) + 0.5),
        )  # fmt: skip
        for ax, family in zip(axes.flat, FAMILIES, strict=True):
            some = table[table["family"] == family].set_index("set").loc[names]
            _panel(ax, some, atlas.of_summary(family, against))
            style.say(ax, title=family)
        axes[0, 0].set_yticks(range(len(names) + 1), [*names, "mean over sets"])
        axes[0, 0].set_ylim(len(names) + 0.6, -0.6)
        axes[0, 0].locator_params(axis="x", nbins=5, steps=[1, 2, 5, 10])
        better = f"pairs of models in the true order: {ADMINISTRATIVE} minus {against}, percentage points"
        style.put(figure.supxlabel("", fontsize=style.font_size(width)), better, 70.0 * width)
        style.refit(figure, None)
    return figure


def _panel(ax: Axes, sets: pd.DataFrame, mean: pd.Series[Any]) -> None:
    from survscore.plots import style

    rows = [*((row, style.PALETTE[0], "s", 3.5) for _, row in sets.iterrows()), (mean, style.INK, "D", 5.5)]
    for place, (row, colour, marker, size) in enumerate(rows):
        ax.plot([100 * row["gain_lower"], 100 * row["gain_upper"]], [place, place], color=colour)
        ax.plot(100 * row["gain"], place, marker, color=colour, markersize=size)
    style.dress(ax)
    ax.grid(False, axis="y")
    style.mark(ax, x=0.0, color=style.INK, linestyle="-")
    style.mark(ax, y=len(sets) - 0.5, linestyle="-", color=style.RULE)
