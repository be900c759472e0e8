"""The predicted incidences of single individuals, of all causes one upon the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from survscore._utils.dates import Unit
from survscore._validation import InputError, check_length
from survscore._validation import shown as printable
from survscore.incidence import IncidenceCurves
from survscore.outcomes import Outcomes
from survscore.plots import style
from survscore.plots.display import Display
from survscore.plots.labels import outside_legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_INDIVIDUALS = 24
STACK_ALPHA = 0.45


@dataclass(eq=False, repr=False)
class IncidenceDisplay(Display):
    r"""Drawn incidences of some individuals, stacked, with the event and the censoring time :math:`C^*` marked.

    What is left above the highest line is the probability of no event.

    Attributes
    ----------
    curves : IncidenceCurves
        Of at most 24 individuals: ``curves[[3, 17, 40]]``.
    y : Outcomes, optional
        What was observed of them: ``y[[3, 17, 40]]``.
    labels : sequence of str, optional
        What to call them; by default individual 0, 1, ...
    axes_
        All axes, once drawn.
    ax_, figure_
        The first of them, and the figure.

    Examples
    --------
    >>> import survscore as ss
    >>> from survscore.plots import IncidenceDisplay
    >>> y = ss.Outcomes([2, 4], [1, 0], [6, 4], causes=["relapse", "death"])
    >>> curves = ss.IncidenceCurves({"relapse": [[0.2, 0.5], [0.1, 0.2]], "death": [[0.1, 0.2], [0.1, 0.3]]}, [2, 6])
    >>> display = IncidenceDisplay(curves, y, labels=["Ada", "Bob"]).plot(unit="year")
    >>> [ax.get_title() for ax in display.axes_]
    ['Ada', 'Bob']
    """

    curves: IncidenceCurves
    y: Outcomes | None = None
    labels: Sequence[Any] | None = None
    axes_: Sequence[Axes] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.curves, IncidenceCurves):
            raise InputError(f"curves must be IncidenceCurves, not {type(self.curves).__name__}")
        if not 1 <= len(self.curves) <= MOST_INDIVIDUALS:
            raise InputError(
                f"curves must be of 1 to {MOST_INDIVIDUALS} individuals, not {len(self.curves)}: pick some, "
                "curves[[3, 17, 40]]"
            )
        for name, given in (("y", self.y), ("labels", self.labels)):
            if given is not None:
                check_length(name, len(given), "curves", len(self.curves))

    def plot(self, *, unit: Unit | str | None = None, width: float | None = None) -> Self:
        """Draw a panel for each individual into a new figure.

        Parameters
        ----------
        unit : str, optional
            Of the times, for the label of their axis: "month".
        width : float, optional
            Of the figure in inches.

        Returns
        -------
        IncidenceDisplay
            Itself.
        """
        inches, _ = style.figure_width(width)
        n_columns = min(len(self.curves), 2 if inches < style.NARROW else 3)
        with style.applied(inches):
            figure, axes = style.panels(len(self.curves), n_columns, inches)
            for row, ax in enumerate(axes):
                bands = self._stack(ax, row)
                self._marks(ax, row)
                ax.set_ylim(0.0, 1.0)
                name = f"individual {row}" if self.labels is None else printable(self.labels[row], 60)
                style.say(ax, x=style.time_label(unit), y="predicted probability", title=name)
            last = [
                float(self.curves.times[-1]),
                *(float(np.asarray(line.get_xdata())[0]) for ax in axes for line in ax.lines),
            ]
            axes[0].set_xlim(0.0, 1.02 * max(last))  # shared by all
            style.label_outer(axes, n_columns)
            outside_legend(figure, bands, [printable(cause, 60) for cause in self.curves.causes])
            style.refit_panels(figure)
        self.ax_, self.figure_, self.axes_ = axes[0], figure, axes
        return self

    def _stack(self, ax: Axes, row: int) -> list[Any]:
        """Draw one individual's incidences, each upon those before it."""
        times = np.union1d([0.0], self.curves.times)
        incidences = np.asarray(self.curves.numpy()[row].at(times))[0]
        up_to = np.cumsum(incidences, axis=0)
        step: Any = "post" if self.curves.interpolation == "step" else None
        colours = style.colours(self.curves.causes)
        bands = []
        for cause, below, above in zip(self.curves.causes, up_to - incidences, up_to, strict=True):
            bands.append(
                ax.fill_between(times, below, above, step=step, color=colours[cause], alpha=STACK_ALPHA, linewidth=0)
            )
            ax.plot(times, above, color=colours[cause], drawstyle="default" if step is None else "steps-post")
        return bands

    def _marks(self, ax: Axes, row: int) -> None:
        """Mark when the event was, or when the individual was last seen, and C*; each is named."""
        if self.y is None:
            return
        y = self.y.numpy()
        happened, end = bool(y.event[row]), None if y.censoring_time is None else float(y.censoring_time[row])
        seen = float(y.time[row])
        marks: dict[float, str] = {} if end is None or not np.isfinite(end) else {end: "C*"}
        if happened or end is None or seen < end:
            event = "event" if y.cause is None else printable(y.causes[int(y.cause[row]) - 1], 30)
            marks[seen] = ", ".join([event if happened else "last seen", *([marks[seen]] if seen in marks else [])])
        middle = float(self.curves.times[-1]) / 2
        for k, (time, text) in enumerate(sorted(marks.items())):
            style.mark(ax, x=time, color=style.INK, linestyle=(0, (1, 1.5)) if text == "C*" else "-", zorder=3)
            ax.annotate(
                text, (time, 0.97 - 0.12 * k), (3 if time < middle else -3, 0), textcoords="offset points",
                ha="left" if time < middle else "right", va="top", fontsize=style.small(ax), parse_math=False,
            )  # fmt: skip
