"""Scores over time: one curve, several models by weighting, and differences to a reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from survscore._utils.dates import Unit
from survscore._validation import shown as printable
from survscore.metrics import AUC
from survscore.plots import style
from survscore.plots.display import Display
from survscore.plots.labels import counts_below, legend, name_lines, name_panels
from survscore.results.comparison import Comparison
from survscore.results.printing import short_names
from survscore.results.score_curve import ScoreCurve

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

#: Below, so many weightings have a row of their own for those who are counted.
MOST_ROWS = 4


def time_axis(ax: Axes, own: bool) -> None:
    """Have lines of our own figure begin and end with the axes; at zero, if that is near."""
    if own:
        ax.margins(x=0.0)
        first, last = ax.dataLim.intervalx
        if 0.0 < first <= 0.1 * last:
            ax.set_xlim(left=0.0)
        ax.locator_params(axis="x", nbins=6 if style.points(ax)[0] < 72 * style.NARROW * 0.7 else 9)
        ax.locator_params(axis="y", nbins=7)


def rows_below(times: Any, counted: Any, events: Any, effective: Any) -> dict[str, tuple[Any, Any]]:
    """Return how many are counted and have the event; under weights also Kish's effective number of individuals."""
    rows = {"counted": (times, counted), "with event": (times, events)}
    weighted = bool(np.any(np.asarray(effective) < np.asarray(counted) - 0.5))
    return rows | ({"effective n": (times, effective)} if weighted else {})


@dataclass(eq=False, repr=False)
class ScoreCurveDisplay(Display):
    """A drawn score curve.

    Attributes
    ----------
    score : ScoreCurve
        The numbers.
    ax_, figure_, line_
        The matplotlib objects, once drawn.
    """

    score: ScoreCurve
    line_: Any = None

    def to_frame(self) -> pd.DataFrame:
        """Return the score at each time."""
        return self.score.to_frame()

    def plot(
        self,
        ax: Axes | None = None,
        *,
        band: bool = True,
        counts: bool | None = None,
        unit: Unit | str | None = None,
        width: float | None = None,
        **line: Any,
    ) -> Self:
        """Draw into `ax`, or a new figure; see `ScoreCurve.plot`."""
        score = self.score
        with style.canvas(ax, width) as on:
            (self.line_,) = on.ax.plot(score.times, score.scores, **line)
            time_axis(on.ax, on.own)
            if band:
                style.shade(on.ax, self.line_, score.times, score.lower, score.upper)
            better = f"{score.scored.label} ({score.direction} is better)"
            style.say(on.ax, x=style.time_label(unit), y=better, title=score.weighting)
            if score.metric == AUC.name:
                style.mark(on.ax, y=0.5)
            if line.get("label") is not None:
                name_lines(on.ax, [(self.line_, str(line["label"]))])
            if on.own if counts is None else counts:
                counts_below(on.ax, rows_below(score.times, score.n_counted, score.n_events, score.n_effective))
            return self._drawn(on)


@dataclass(eq=False, repr=False)
class DifferenceDisplay(Display):
    """Drawn differences of scores to a reference.

    Attributes
    ----------
    compared : Comparison
        The numbers.
    metric : str
        Which of its metrics is drawn.
    ax_, figure_
        The matplotlib objects, once drawn.
    """

    compared: Comparison
    metric: str

    def to_frame(self) -> pd.DataFrame:
        """Return the differences, as `Comparison.contrasts` gives them."""
        contrasts = self.compared.contrasts
        return contrasts[contrasts["metric"] == self.metric]

    def plot(
        self,
        ax: Axes | None = None,
        *,
        band: bool = True,
        counts: bool | None = None,
        unit: Unit | str | None = None,
        width: float | None = None,
    ) -> Self:
        """Draw one line per model and weighting into `ax`, or a new figure; see `Comparison.plot`.

        A model has its colour, and a weighting its kind of line. The sides of zero say which is better.
        """
        compared, contrasts = self.compared, self.to_frame()
        weightings = list(dict.fromkeys(contrasts["weighting"]))
        several = len(weightings) > 1
        looks = style.looks(compared.models, null=compared.null)
        first = compared.of_metric(self.metric)[0]
        with style.canvas(ax, width) as on:
            lines: dict[str, Any] = {}
            for (weighting, model), part in contrasts.groupby(["weighting", "model"], sort=False):
                look, label = looks[str(model)], str(model)
                if several:
                    look = look | {"linestyle": style.DASHES[weightings.index(weighting) % len(style.DASHES)]}
                    label = f"{model}, {weighting}"
                (line,) = on.ax.plot(part["time"], part["difference"], label=label, **look)
                lines.setdefault(str(model), line)
                if band:
                    alpha = 0.5 * style.BAND_ALPHA if several else style.BAND_ALPHA
                    style.shade(on.ax, line, part["time"], part["lower"], part["upper"], alpha=alpha)
            time_axis(on.ax, on.own)
            style.mark(on.ax, y=0.0, color=style.INK)
            # the sides of zero are named where no line begins: each has at least a seventh of the axes
            low, high = on.ax.get_ylim()
            reach = max(high, 0.0) - min(low, 0.0)
            x = float(contrasts["time"].iloc[0]) if len(contrasts) else 0.0
            style.make_room(on.ax, [(x, -0.16 * reach), (x, 0.16 * reach)])
            style.name_sides(on.ax, first.direction)
            about = f"difference in {first.label} to {printable(compared.reference, 30)}"
            style.say(on.ax, x=style.time_label(unit), y=about, title="" if several else "".join(weightings))
            if several:
                self._legend(on.ax, lines, weightings)
            else:
                name_lines(on.ax, [(line, printable(name, 60)) for name, line in lines.items()])
            if on.own if counts is None else counts:
                counts_below(on.ax, self._counts(weightings))
            return self._drawn(on)

    def _legend(self, ax: Axes, lines: dict[str, Any], weightings: list[str]) -> None:
        from matplotlib.lines import Line2D

        kinds = [style.DASHES[place % len(style.DASHES)] for place in range(len(weightings))]
        handles = [Line2D([], [], color=line.get_color()) for line in lines.values()]
        handles += [Line2D([], [], color=style.INK, linestyle=kind) for kind in kinds]
        legend(handles, [*(printable(name, 60) for name in lines), *weightings], ax)

    def _counts(self, weightings: list[str]) -> dict[str, tuple[Any, Any]]:
        scores = self.compared.scores
        scores = scores[scores["metric"] == self.metric]
        table = scores[scores["model"] == scores["model"].iloc[0]]  # they are the same for all models
        named, rows = short_names(weightings), {}
        for weighting in weightings[:MOST_ROWS]:
            part = table[table["weighting"] == weighting]
            times, *numbers = (part[name].to_numpy() for name in ("time", "n_counted", "n_events", "n_effective"))
            if len(weightings) == 1:
                return rows_below(times, *numbers)
            rows[named[weighting]] = (times, numbers[0])
        return rows


@dataclass(eq=False, repr=False)
class ScoresDisplay(Display):
    """Drawn scores of several models, one panel per weighting, all on one scale.

    Attributes
    ----------
    compared : Comparison
        The numbers.
    metric : str
        Which of its metrics is drawn.
    ax_, figure_, axes_
        The matplotlib objects, once drawn: the first axes, the figure, and all axes.
    """

    compared: Comparison
    metric: str
    axes_: Sequence[Axes] = ()

    def to_frame(self) -> pd.DataFrame:
        """Return the scores, as `Comparison.scores` gives them."""
        scores = self.compared.scores
        return scores[scores["metric"] == self.metric]

    def plot(self, *, band: bool = True, unit: Unit | str | None = None, width: float | None = None) -> Self:
        """Draw into a new figure; see `Comparison.plot_scores`."""
        scores, compared = self.to_frame(), self.compared
        weightings = list(dict.fromkeys(scores["weighting"]))
        inches, _ = style.figure_width(width)
        n_columns = min(len(weightings), 2 if inches < style.NARROW else 3)
        looks = style.looks(compared.models, null=compared.null)
        first = compared.of_metric(self.metric)[0]
        with style.applied(inches):
            figure, axes = style.panels(len(weightings), n_columns, inches)
            lines: list[dict[str, Any]] = []
            for ax, weighting in zip(axes, weightings, strict=True):
                lines.append({})
                for model, part in scores[scores["weighting"] == weighting].groupby("model", sort=False):
                    name = str(model)
                    if part["score"].isna().all():
                        continue
                    (line,) = ax.plot(part["time"], part["score"], label=name, **looks[name])
                    lines[-1][printable(name, 60)] = line
                    if band:
                        style.shade(ax, line, part["time"], part["lower"], part["upper"])
                if self.metric == AUC.name:
                    style.mark(ax, y=0.5)
                time_axis(ax, own=True)
                better = f"{first.label} ({first.direction} is better)"
                style.say(ax, x=style.time_label(unit), y=better, title=weighting)
            style.label_outer(axes, n_columns)
            name_panels(axes, n_columns, lines)
            style.refit_panels(figure)
        self.ax_, self.figure_, self.axes_ = axes[0], figure, axes
        return self
