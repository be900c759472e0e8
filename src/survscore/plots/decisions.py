"""What comes of decisions: net benefit over thresholds, and the regret of choices in a backtest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from survscore._utils.dates import Unit
from survscore._validation import shown as printable
from survscore.analysis.backtest_results import Backtest
from survscore.analysis.decision_curves import TREAT_ALL, TREAT_NONE, DecisionCurve
from survscore.metrics import cause_label
from survscore.plots import style
from survscore.plots.display import Display
from survscore.plots.labels import name_lines

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


@dataclass(eq=False, repr=False)
class DecisionCurveDisplay(Display):
    """Drawn net benefit over thresholds.

    Attributes
    ----------
    curve : DecisionCurve
        The numbers.
    ax_, figure_
        The matplotlib objects, once drawn.
    """

    curve: DecisionCurve

    def to_frame(self) -> pd.DataFrame:
        """Return the net benefit of each strategy over thresholds."""
        return self.curve.to_frame()

    def plot(
        self,
        ax: Axes | None = None,
        *,
        band: bool = True,
        unit: Unit | str | None = None,
        width: float | None = None,
    ) -> Self:
        """Draw one line per strategy into `ax`, or a new figure; see `DecisionCurve.plot`."""
        curve, table = self.curve, self.curve.to_frame()
        plain: dict[str, dict[str, Any]] = {
            TREAT_ALL: {"color": style.SOFT, "linestyle": (0, (5, 2))},
            TREAT_NONE: {"color": style.SOFT, "linestyle": (0, (1, 1.5))},
        }
        looks = plain | style.looks(name for name in curve.strategies if name not in plain)
        with style.canvas(ax, width) as on:
            lines = []
            for name, part in table.groupby("strategy", sort=False):
                (line,) = on.ax.plot(part["threshold"], part["net_benefit"], label=str(name), **looks[str(name)])
                lines.append((line, printable(name, 60)))
                if band and name not in plain:
                    style.shade(on.ax, line, part["threshold"], part["band_lower"], part["band_upper"])
            top = max(float(curve.net_benefit.max()), 1e-3)
            on.ax.set_ylim(-0.2 * top, 1.15 * top)  # acting on all falls without bound
            if on.own:
                on.ax.margins(x=0.0)
            benefit = f"{cause_label('net benefit', curve.cause)} {style.at_time(curve.time, unit)} (higher is better)"
            style.say(on.ax, x="threshold probability", y=benefit, title=curve.weighting)
            name_lines(on.ax, lines)
            return self._drawn(on)


@dataclass(eq=False, repr=False)
class BacktestDisplay(Display):
    """Drawn regrets: how much worse than the best, in truth, the models were that each weighting chose.

    Attributes
    ----------
    result : Backtest
        The numbers.
    ax_, figure_
        The matplotlib objects, once drawn.
    """

    result: Backtest

    def to_frame(self) -> pd.DataFrame:
        """Return the mean regrets, with intervals, by weighting."""
        return self.result.summary

    def plot(self, ax: Axes | None = None, *, width: float | None = None) -> Self:
        """Draw one row per weighting into `ax`, or a new figure."""
        summary, by_day = self.result.summary, 100 * self.result.regrets()
        with style.canvas(ax, width, height=0.5 * len(summary) + 0.3) as on:
            for q, row in enumerate(summary.to_dict("records")):
                colour = style.PALETTE[q % len(style.PALETTE)]
                on.ax.plot(by_day[:, q], [q] * len(by_day), "o", color=colour, alpha=0.35, markersize=4.5)
                limits = [100 * row["regret_lower"], 100 * row["regret_upper"]]
                on.ax.plot(limits, [q, q], color=colour, linewidth=2)
                on.ax.plot(100 * row["relative_regret"], q, "D", color=colour, markersize=6)
            on.ax.axvline(0.0, color=style.INK, linewidth=0.9)
            size, (across, _) = style.size_of(on.ax.xaxis.label), style.points(on.ax)
            names = [style.folded(name, 0.38 * across, size) for name in summary["weighting"]]
            on.ax.set_yticks(range(len(summary)), names, parse_math=False)
            on.ax.tick_params(axis="y", length=0)
            on.ax.grid(False, axis="y")
            on.ax.set_ylim(len(summary) - 0.5, -0.5)
            title = f"{self.result.label}: diamonds are means, dots single days"
            style.say(on.ax, x="chosen model worse than the best, in truth (%)", title=title)
            return self._drawn(on)
