"""Differences of projected scores over the hazard of those with hidden status."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from survscore._validation import shown as printable
from survscore.metrics import Direction, cause_label, metric_label
from survscore.plots import style
from survscore.plots.display import Display
from survscore.plots.labels import name_lines
from survscore.results.sensitivity import TippingPoint, when_text

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

TICKS = (1 / 32, 1 / 8, 1 / 2, 1, 2, 8, 32)


@dataclass(eq=False, repr=False)
class SensitivityDisplay(Display):
    """Drawn differences over theta, with tipping points and the hazard ratio of late starters.

    Attributes
    ----------
    points : mapping of str to TippingPoint
        By model, the numbers at one time, or of the mean over time.
    curves : mapping of str to pandas.DataFrame
        By model, theta and difference.
    direction : {"lower", "higher", "closer to 1", "closer to 0"}
        Which values are better.
    models : sequence of str
        All models in their order, which gives each its colour.
    null : str or None
        Which of them is the null model.
    ax_, figure_
        The matplotlib objects, once drawn.
    """

    points: Mapping[str, TippingPoint]
    curves: Mapping[str, pd.DataFrame]
    direction: Direction
    models: Sequence[str]
    null: str | None = None

    def plot(self, ax: Axes | None = None, *, width: float | None = None) -> Self:
        """Draw one line per model into `ax`, or a new figure; see `Sensitivity.plot`."""
        colours, dashes = style.colours(self.models, null=self.null), style.dashes(self.models, null=self.null)
        first = next(iter(self.points.values()))
        with style.canvas(ax, width) as on:
            on.ax.set_xscale("log")
            lines = []
            for model, point in self.points.items():
                colour, curve = colours[model], self.curves[model]
                (line,) = on.ax.plot(
                    curve["theta"], curve["difference"], color=colour, linestyle=dashes[model], label=model
                )
                lines.append((line, printable(model, 60)))
                tipping = [at for at in (point.tipping_lower, point.tipping_upper) if 0 < at < np.inf]
                on.ax.plot(tipping, [0.0] * len(tipping), "o", color=colour, markersize=5, zorder=3)
                on.ax.plot([point.theta] * 2, [point.lower, point.upper], color=colour, linewidth=2)
                on.ax.plot(point.theta, point.difference, "D", color=colour, markersize=4.5)
            if not np.isnan(first.hazard_ratio):
                on.ax.axvspan(first.ratio_lower, first.ratio_upper, color=style.INK, alpha=0.08, linewidth=0)
                on.ax.axvline(first.hazard_ratio, color=style.SOFT, linewidth=0.9, linestyle=style.DASHES[1])
            style.mark(on.ax, y=0.0, color=style.INK)
            style.name_sides(on.ax, self.direction)
            if on.own:
                on.ax.margins(x=0.0, y=0.16)  # room for the words at both sides of zero
            on.ax.set_xticks(TICKS, [f"{at:g}" if at >= 1 else f"1/{1 / at:.0f}" for at in TICKS])
            on.ax.minorticks_off()
            ratio = "" if np.isnan(first.hazard_ratio) else "; shaded: estimated for late starters, with interval"
            label = cause_label(metric_label(first.metric), first.cause)
            about = f"difference in {label} to {printable(first.reference, 30)}"
            style.say(
                on.ax, x=f"theta: hazard of those with hidden status, as a multiple{ratio}", y=about,
                title=f"{when_text(first)}; {first.weighting}",
            )  # fmt: skip
            name_lines(on.ax, lines)
            return self._drawn(on)
