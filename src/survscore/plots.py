"""Displays: numbers that can be drawn. Only this module imports matplotlib."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from survscore.results import ScoreCurve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def new_axes() -> Axes:
    """Return the axes of a new figure, or say what to install."""
    try:
        from matplotlib import pyplot as plt
    except ImportError:
        raise ImportError("plots need matplotlib: pip install 'survscore[report]'") from None
    return plt.subplots(layout="constrained")[1]


@dataclass(eq=False)
class ScoreCurveDisplay:
    """A drawn score curve.

    Attributes
    ----------
    score : ScoreCurve
        The numbers.
    ax_, figure_, line_
        The matplotlib objects, once drawn.
    """

    score: ScoreCurve
    ax_: Axes | None = None
    figure_: Figure | None = None
    line_: Any = None

    def plot(self, ax: Axes | None = None, **line: Any) -> Self:
        """Draw into `ax`, or a new figure; `line` goes to `Axes.plot`."""
        if ax is None:
            ax = new_axes()
        (self.line_,) = ax.plot(self.score.times, self.score.scores, **line)
        ax.set(xlabel="time", ylabel=f"{self.score.loss} score (lower is better)", title=self.score.weighting)
        if "label" in line:
            ax.legend()
        self.ax_ = ax
        self.figure_ = ax.get_figure(root=True)
        return self
