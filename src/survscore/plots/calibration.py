"""Calibration at one horizon, and of whole distributions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from survscore._utils.dates import Unit
from survscore._validation import check_choice
from survscore.analysis.calibration import Calibration
from survscore.analysis.distribution_calibration import DistributionCalibration
from survscore.inference.estimate import Estimate
from survscore.metrics import cause_label
from survscore.plots import style
from survscore.plots.display import Display
from survscore.plots.labels import counts_below, name_lines, note_below

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

Curve = Literal["smooth", "isotonic"]
HARDLY_ANYBODY = 10  # a curve ends where fewer have predictions further out
HARDLY_ANY_SHARE = 0.01
NEAR = 0.05  # in risk
TELLS_NOTHING = 0.5  # the width of a band
MOST_LINES = 6  # of numbers below a picture


@dataclass(eq=False, repr=False)
class CalibrationDisplay(Display):
    """Drawn calibration at one horizon.

    Attributes
    ----------
    calibration : Calibration
        The numbers.
    ax_, histogram_ax_, figure_, line_
        The matplotlib objects, once drawn; the histogram of the predictions has axes of its own.
    """

    calibration: Calibration
    histogram_ax_: Axes | None = None
    line_: Any = None

    def to_frame(self) -> pd.DataFrame:
        """Return the smooth curve."""
        return self.calibration.to_frame()

    def plot(
        self,
        ax: Axes | None = None,
        *,
        curve: Curve = "smooth",
        unit: Unit | str | None = None,
        width: float | None = None,
        **line: Any,
    ) -> Self:
        """Draw into `ax`, or a new figure; see `Calibration.plot`."""
        check_choice("curve", curve, ("smooth", "isotonic"))
        shown = self.calibration
        with style.canvas(ax, width, per_width=0.75 if width is not None and width < style.NARROW else 0.55) as on:
            ax = on.ax
            ax.plot([0, 1], [0, 1], color=style.SOFT, linewidth=0.9, linestyle=(0, (4, 2)))
            top = self._curve(ax, curve, line)
            groups = shown.groups
            ax.vlines(groups.predicted, groups.lower, groups.upper, color=self.line_.get_color(), linewidth=1)
            ax.plot(groups.predicted, groups.observed, "o", color=self.line_.get_color(), markersize=3.5)
            reached = [*groups.predicted, *groups.observed, *groups.upper, top]
            end = style.nice_top(max((value for value in reached if math.isfinite(value)), default=1.0))
            ax.set(xlim=(-0.02 * end, 1.02 * end), ylim=(-0.02 * end, 1.02 * end))
            ax.locator_params(axis="both", nbins=5 if style.points(ax)[0] > 144 else 2)
            title = f"{style.at_time(shown.time, unit)}, {shown.weighting}"
            risk, observed = (cause_label(label, shown.cause) for label in ("predicted risk", "observed proportion"))
            style.say(ax, x=risk, y=observed, title=title)
            self._histogram(ax, end)
            if line.get("label") is not None:
                name_lines(ax, [(self.line_, str(line["label"]))])
            self._numbers(ax)
            return self._drawn(on)

    def _curve(self, ax: Axes, curve: Curve, line: dict[str, Any]) -> float:
        """Draw the curve where there are predictions, and return how high it reaches."""
        drawn: Any = self.calibration.curve if curve == "smooth" else self.calibration.isotonic
        single = drawn.predicted.size == 1
        marker: dict[str, Any] = {"marker": "_", "markersize": 12} if single else {}
        inside = np.array([True]) if single else self._supported(drawn.predicted)
        if not single:  # a band over most of all risks says that the curve tells nothing there
            inside &= ~(drawn.upper - drawn.lower > TELLS_NOTHING)
        observed, lower, upper = (
            np.where(inside, values, np.nan) for values in (drawn.observed, drawn.lower, drawn.upper)
        )
        steps: dict[str, Any] = {"drawstyle": "steps-mid"} if curve == "isotonic" else {}
        (self.line_,) = ax.plot(drawn.predicted, observed, **(marker | steps | line))
        style.shade(ax, self.line_, drawn.predicted, lower, upper)
        return float(np.nanmax(observed, initial=0.0))

    def _supported(self, predicted: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return where a curve says more than chance: between all but a handful, and where predictions are near."""
        counts, edges = self.calibration.histogram
        enough = 0.25 * counts.sum()
        few = min(max(HARDLY_ANYBODY, HARDLY_ANY_SHARE * counts.sum()), enough)
        low = edges[int(np.searchsorted(np.cumsum(counts), few))]
        high = edges[len(counts) - int(np.searchsorted(np.cumsum(counts[::-1]), few))]
        near = np.array([counts[(edges[1:] > p - NEAR) & (edges[:-1] < p + NEAR)].sum() for p in predicted])
        return np.asarray((predicted >= low) & (predicted <= high) & (near >= min(HARDLY_ANYBODY, enough)))

    def _histogram(self, ax: Axes, end: float) -> None:
        counts, edges = self.calibration.histogram
        self.histogram_ax_ = ax.twinx()
        self.histogram_ax_.stairs(counts, edges, fill=True, color=style.SOFT, alpha=0.35)
        self.histogram_ax_.set(ylim=(0, 8 * max(counts.max(), 1)), yticks=[], xlim=(-0.02 * end, 1.02 * end))
        self.histogram_ax_.grid(False)
        self.histogram_ax_.spines["right"].set_visible(ax.spines["right"].get_visible())
        self.histogram_ax_.spines["top"].set_visible(ax.spines["top"].get_visible())

    def _numbers(self, ax: Axes) -> None:
        """Write the numbers that say the most below the axes, or within, where there is no room."""
        shown = self.calibration
        numbers = [
            f"observed/expected {_with_limits(shown.observed_expected)}",
            f"slope {_with_limits(shown.slope)}",
            f"miscalibration {shown.miscalibration.value:.4f}",
        ]
        words = style.folded("\n".join(numbers), 0.94 * style.points(ax)[0], style.small(ax))
        if words.count("\n") >= MOST_LINES:  # in panels so small, they would be all that is seen
            return
        if style.has_room(ax):
            note_below(ax, "\n".join(numbers))
        else:
            ax.text(0.03, 0.97, words, transform=ax.transAxes, va="top", fontsize=style.small(ax))


@dataclass(eq=False, repr=False)
class DistributionCalibrationDisplay(Display):
    """Drawn calibration of whole distributions: observed by expected events along the predicted risk.

    Attributes
    ----------
    calibration : DistributionCalibration
        The numbers.
    ax_, figure_, line_
        The matplotlib objects, once drawn.
    """

    calibration: DistributionCalibration
    line_: Any = None

    def to_frame(self) -> pd.DataFrame:
        """Return the bins along the predicted risk."""
        return self.calibration.to_frame()

    def plot(self, ax: Axes | None = None, *, width: float | None = None, **line: Any) -> Self:
        """Draw into `ax`, or a new figure; `line` goes to `Axes.plot`.

        One mark per bin with its interval, below it how many events were seen and expected, and the line at one. The
        scale ends at four times too many.
        """
        shown, bins = self.calibration, self.calibration.bins
        with style.canvas(ax, width) as on:
            ax = on.ax
            middle = (bins.risk_from + bins.risk_to) / 2
            marks: dict[str, Any] = {"marker": "o", "markersize": 4.5, "linestyle": "none"}
            (self.line_,) = ax.plot(middle, bins.ratio, **(marks | line))
            ax.vlines(middle, bins.lower, bins.upper, color=self.line_.get_color(), linewidth=1.5)
            style.mark(ax, y=1.0)
            reach = [value for value in (*bins.ratio, *bins.upper) if math.isfinite(value)]
            top = min(max([2.0, *(1.08 * value for value in reach)]), 4.0)
            ax.set(xlim=(0, 1), ylim=(0, top))
            p_value = "" if math.isnan(shown.p_value) else f", p = {shown.p_value:.2g}"
            title = f"{shown.test} test{p_value}: {shown.conclusion}"
            style.say(ax, x="predicted risk at the event", y="observed / expected", title=title)
            there = bins.expected > 0
            if style.has_room(ax) and there.any():
                seen, expected = (np.where(there, one, np.nan) for one in (bins.observed, bins.expected))
                counts_below(ax, {"seen": (middle, seen), "expected": (middle, expected)}, at=middle)
            if line.get("label") is not None:
                name_lines(ax, [(self.line_, str(line["label"]))])
            return self._drawn(on)


def _with_limits(estimate: Estimate) -> str:
    """Return a number with its interval, or that there is none."""
    if math.isnan(estimate.value):
        return "undefined"
    if math.isnan(estimate.lower):
        return f"{estimate.value:.2f}"
    return f"{estimate.value:.2f} ({estimate.lower:.2f} to {estimate.upper:.2f})"
