"""Scores over time: one curve, several models by weighting, and differences to a reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from survscore._utils.dates import Unit
from survscore._validation import shown as printable
from survscore.metrics import AUC, Direction, cause_label, metric_label
from survscore.plots import style
from survscore.plots.display import Display
from survscore.plots.labels import legend, name_lines, name_panels
from survscore.plots.risk_table import counts_below
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
    contrasts : pandas.DataFrame
        The numbers, as `Comparison.contrasts` gives them.
    metric, reference : str
        What was compared.
    direction : {"lower", "higher", "closer to 1", "closer to 0"}
        Which values are better.
    models : sequence of str
        All models in their order, which gives each its colour; by default those of the table.
    null : str or None
        Which of them is the null model.
    scores : pandas.DataFrame or None
        The table of scores, which has how many are counted.
    cause : str
        Under competing risks the cause that scores are of.
    ax_, figure_
        The matplotlib objects, once drawn.
    """

    contrasts: pd.DataFrame
    metric: str
    reference: str
    direction: Direction = "lower"
    models: Sequence[str] = ()
    null: str | None = None
    scores: pd.DataFrame | None = None
    cause: str = ""

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
        weightings = list(dict.fromkeys(self.contrasts["weighting"]))
        several = len(weightings) > 1
        models = self.models or list(dict.fromkeys([self.reference, *self.contrasts["model"]]))
        colours, dashes = style.colours(models, null=self.null), style.dashes(models, null=self.null)
        with style.canvas(ax, width) as on:
            lines: dict[str, Any] = {}
            for (weighting, model), part in self.contrasts.groupby(["weighting", "model"], sort=False):
                kind = style.DASHES[weightings.index(weighting) % len(style.DASHES)] if several else dashes[str(model)]
                label = f"{model}, {weighting}" if several else str(model)
                (line,) = on.ax.plot(
                    part["time"], part["difference"], color=colours[str(model)], linestyle=kind, label=label
                )
                lines.setdefault(str(model), line)
                if band:
                    alpha = 0.5 * style.BAND_ALPHA if several else style.BAND_ALPHA
                    style.shade(on.ax, line, part["time"], part["lower"], part["upper"], alpha=alpha)
            time_axis(on.ax, on.own)
            self._zero(on.ax)
            label = cause_label(metric_label(self.metric), self.cause)
            about = f"difference in {label} to {printable(self.reference, 30)}"
            style.say(
                on.ax, x=style.time_label(unit), y=about, title="" if several else "".join(weightings)
            )  # fmt: skip
            if several:
                self._legend(on.ax, lines, weightings)
            else:
                name_lines(on.ax, [(line, printable(name, 60)) for name, line in lines.items()])
            if self.scores is not None and (on.own if counts is None else counts):
                counts_below(on.ax, self._counts(self.scores, weightings))
            return self._drawn(on)

    def _zero(self, ax: Axes) -> None:
        """Mark zero, and name its sides where no line begins: each has at least a seventh of the axes."""
        style.mark(ax, y=0.0, color=style.INK)
        low, high = ax.get_ylim()
        reach = max(high, 0.0) - min(low, 0.0)
        x = float(self.contrasts["time"].iloc[0]) if len(self.contrasts) else 0.0
        style.make_room(ax, [(x, -0.16 * reach), (x, 0.16 * reach)])
        style.name_sides(ax, self.direction)

    def _legend(self, ax: Axes, lines: dict[str, Any], weightings: list[str]) -> None:
        from matplotlib.lines import Line2D

        solid = [Line2D([], [], color=line.get_color()) for line in lines.values()]
        kinds = [
            Line2D([], [], color=style.INK, linestyle=style.DASHES[place % len(style.DASHES)])
            for place in range(len(weightings))
        ]
        legend([*solid, *kinds], [*(printable(name, 60) for name in lines), *weightings], ax)

    def _counts(self, scores: pd.DataFrame, weightings: list[str]) -> dict[str, tuple[Any, Any]]:
        table = scores[scores["model"] == scores["model"].iloc[0]]  # they are the same for all models
        named = short_names(weightings)
        found = {}
        for weighting in weightings[:MOST_ROWS]:
            part = table[table["weighting"] == weighting]
            times, *numbers = (part[name].to_numpy() for name in ("time", "n_counted", "n_events", "n_effective"))
            if len(weightings) == 1:
                return rows_below(times, *numbers)
            found[named[weighting]] = (times, numbers[0])
        return found


@dataclass(eq=False, repr=False)
class ScoresDisplay(Display):
    """Drawn scores of several models, one panel per weighting, all on one scale.

    Attributes
    ----------
    scores : pandas.DataFrame
        The numbers, as `Comparison.scores` gives them, of one metric.
    metric : str
        What was computed.
    direction : {"lower", "higher", "closer to 1", "closer to 0"}
        Which values are better.
    models : sequence of str
        In their order, which gives each its colour.
    null : str or None
        Which of them is the null model.
    cause : str
        Under competing risks the cause that scores are of.
    ax_, figure_, axes_
        The matplotlib objects, once drawn: the first axes, the figure, and all axes.
    """

    scores: pd.DataFrame
    metric: str
    direction: Direction
    models: Sequence[str]
    null: str | None = None
    cause: str = ""
    axes_: Sequence[Axes] = ()

    def plot(self, *, band: bool = True, unit: Unit | str | None = None, width: float | None = None) -> Self:
        """Draw into a new figure; see `Comparison.plot_scores`."""
        weightings = list(dict.fromkeys(self.scores["weighting"]))
        inches, _ = style.figure_width(width)
        n_columns = min(len(weightings), 2 if inches < style.NARROW else 3)
        colours, dashes = style.colours(self.models, null=self.null), style.dashes(self.models, null=self.null)
        with style.applied(inches):
            figure, axes = style.panels(len(weightings), n_columns, inches)
            lines: list[dict[str, Any]] = []
            for one, weighting in zip(axes, weightings, strict=True):
                here = self.scores[self.scores["weighting"] == weighting]
                lines.append({})
                for model, part in here.groupby("model", sort=False):
                    name = str(model)
                    if part["score"].isna().all():
                        continue
                    (line,) = one.plot(
                        part["time"], part["score"], color=colours[name], linestyle=dashes[name], label=name
                    )
                    lines[-1][printable(name, 60)] = line
                    if band:
                        style.shade(one, line, part["time"], part["lower"], part["upper"])
                if self.metric == AUC.name:
                    style.mark(one, y=0.5)
                time_axis(one, own=True)
                better = f"{cause_label(metric_label(self.metric), self.cause)} ({self.direction} is better)"
                style.say(one, x=style.time_label(unit), y=better, title=weighting)
            style.label_outer(axes, n_columns)
            name_panels(axes, n_columns, lines)
            style.refit_panels(figure)
        self.ax_, self.figure_, self.axes_ = axes[0], figure, axes
        return self
