"""Losses of a training, epoch by epoch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from survscore.plots import style
from survscore.plots.display import Display
from survscore.plots.labels import outside_legend

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


@dataclass(eq=False, repr=False)
class TrainingDisplay(Display):
    """Drawn losses of a training; `history` holds the numbers, `ax_` and `figure_` the matplotlib objects.

    `scores` are the columns that hold validation scores.
    """

    history: pd.DataFrame
    best_epoch: int | None = None
    scores: Sequence[str] = ()

    def plot(self, ax: Axes | None = None, *, width: float | None = None) -> Self:
        """Draw into `ax`, or a new figure: losses by epoch, the ends of cycles, and the epoch that was kept."""
        shown = self.history
        with style.canvas(ax, width) as on:
            ax = on.ax
            ax.plot(shown["epoch"], shown["train_loss"], label="training (with dropout)", color=style.PALETTE[0])
            if shown["validation_loss"].notna().all():
                ax.plot(shown["epoch"], shown["validation_loss"], label="validation", color=style.PALETTE[1])
            lines = self._draw_scores(ax)
            cycle_ends = shown["epoch"][shown["cycle"].diff(-1) != 0]
            if len(cycle_ends) < len(shown):  # not where every epoch is a cycle
                for end in cycle_ends:
                    ax.axvline(end, color=style.RULE, linewidth=1.2, zorder=0)
                ax.grid(False, axis="x")  # which would look like cycles
            if self.best_epoch is not None:
                style.mark(ax, x=self.best_epoch, color=style.INK, label="kept")
            style.say(ax, x="epoch", y="loss per individual")
            ax.locator_params(axis="x", integer=True)
            handles = [*ax.get_legend_handles_labels()[0], *lines]
            names = [str(one.get_label()) for one in handles]
            if on.own:
                outside_legend(style.root_figure(ax), handles, names)
            else:
                ax.legend(handles=handles, fontsize=style.small(ax))
            return self._drawn(on)

    def _draw_scores(self, ax: Axes) -> list[Any]:
        """Draw the validation scores that were recorded, on a scale of their own to the right."""
        if not self.scores:
            return []
        right = ax.twinx()
        right.tick_params(labelsize=ax.yaxis.get_tick_params().get("labelsize"))
        right.spines["right"].set_visible(True)
        right.grid(False)
        right.set_ylabel("score")
        return [
            line
            for k, column in enumerate(self.scores)
            for line in right.plot(
                self.history["epoch"], self.history[column], label=column,
                color=style.PALETTE[(k + 2) % len(style.PALETTE)],
            )
        ]  # fmt: skip
