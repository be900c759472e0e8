"""Displays: numbers that can be drawn. Only this module imports matplotlib."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from survscore.results import ScoreCurve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


LOSS_LABELS = {"brier": "Brier score", "log": "logarithmic loss"}


def pyplot() -> Any:
    """Return matplotlib's pyplot, or say what to install."""
    try:
        from matplotlib import pyplot as plt
    except ImportError:
        raise ImportError("plots need matplotlib: pip install 'survscore[report]'") from None
    return plt


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
            ax = pyplot().subplots(layout="constrained")[1]
        (self.line_,) = ax.plot(self.score.times, self.score.scores, **line)
        label = LOSS_LABELS.get(self.score.loss, f"{self.score.loss} loss")
        ax.set(xlabel="time", ylabel=f"{label} (lower is better)", title=self.score.weighting)
        if "label" in line:
            ax.legend()
        self.ax_ = ax
        self.figure_ = ax.get_figure(root=True)
        return self


def draw_comparison(curves: Mapping[str, Sequence[ScoreCurve]], *, title: str = "") -> Figure:
    """Draw the scores of several models, one panel per weighting, all on one scale.

    Parameters
    ----------
    curves : mapping of str to sequence of ScoreCurve
        For each model its curves, under the same weightings in the same order.
    title : str
        Set above the panels.

    Returns
    -------
    matplotlib.figure.Figure
    """
    n_panels = len(next(iter(curves.values())))
    n_columns = min(n_panels, 3)
    n_rows = -(-n_panels // n_columns)
    figure: Figure
    figure, axes = pyplot().subplots(
        n_rows, n_columns, sharex=True, sharey=True, squeeze=False, layout="constrained",
        figsize=(4.2 * n_columns, 3.4 * n_rows),
    )  # fmt: skip
    lines = {}
    for model, several in curves.items():
        for ax, curve in zip(axes.flat, several, strict=False):
            lines[model] = ScoreCurveDisplay(curve).plot(ax=ax).line_
            ax.set_title(textwrap.fill(curve.weighting, 34), fontsize="medium")
            ax.label_outer()
    for ax in axes.flat[n_panels:]:
        ax.set_visible(False)
    for ax in axes.flat[n_panels - n_columns : n_panels]:  # the lowest panel of each column
        ax.xaxis.set_tick_params(labelbottom=True)
        ax.set_xlabel("time")
    figure.legend(list(lines.values()), list(lines), loc="outside lower center", ncols=len(lines))
    figure.suptitle(title)
    return figure
