"""A forest plot: differences to a reference by segment."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from survscore._validation import check_whole
from survscore._validation import shown as printable
from survscore.inference.intervals import sides
from survscore.metrics import Direction, cause_label, metric_label
from survscore.plots import style
from survscore.plots.display import Display

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


@dataclass(eq=False, repr=False)
class SegmentsDisplay(Display):
    """A drawn forest plot: differences to a reference by segment.

    Attributes
    ----------
    contrasts : pandas.DataFrame
        The numbers, one row for the total, which comes first, and one for each segment: as
        `SegmentedComparison.contrasts` gives them, of one metric, weighting, model and time, with n and n_events.
    by : tuple of str
        The segmenting columns.
    metric, weighting, model, reference : str
        What was compared.
    direction : {"lower", "higher", "closer to 1", "closer to 0"}
        Which values are better.
    level : float
        Of the intervals.
    over : str
        At which time, or over which.
    models : sequence of str
        All models in their order, which gives each its colour.
    null : str or None
        Which of them is the null model.
    cause : str
        Under competing risks the cause that scores are of.
    ax_, figure_
        The matplotlib objects, once drawn.
    """

    contrasts: pd.DataFrame
    by: tuple[str, ...]
    metric: str
    weighting: str
    model: str
    reference: str
    direction: Direction = "lower"
    level: float = 0.95
    over: str = ""
    models: Sequence[str] = ()
    null: str | None = None
    cause: str = ""

    def plot(self, ax: Axes | None = None, *, most: int = 50, width: float | None = None) -> Self:
        """Draw into `ax`, or a new figure: one row per segment, the total below as a diamond, counts at the right.

        Of more than `most` segments, those with the largest differences are drawn, and a note says so. Without interval
        there is only a mark, hollow; without difference, nothing.
        """
        check_whole("most", most, 1)
        rows, note = self._rows(most)
        with style.canvas(ax, width, height=0.24 * (len(rows) + 3)) as on:
            self._draw(on.ax, rows, note)
            return self._drawn(on)

    def _draw(self, ax: Axes, rows: pd.DataFrame, note: str) -> None:
        colour = style.colours(self.models or [self.reference, self.model], null=self.null)[self.model]
        ax.xaxis.label.set_fontsize(style.small(ax))  # as all that stands beside
        place = [float(k) for k in range(len(rows) + 1, 1, -1)]  # from top to bottom, and the total below a gap
        for y, row in zip(place, rows.to_dict("records"), strict=True):
            known = not math.isnan(row["lower"])
            if known:
                ax.hlines(y, row["lower"], row["upper"], color=colour, linewidth=1.5)
            face = colour if known else "none"
            ax.plot(row["difference"], y, "s", color=colour, markersize=4.5, markerfacecolor=face)
        total = self.contrasts.iloc[0]
        self._diamond(ax, total)
        ax.vlines(0.0, -0.4, len(rows) + 1.6, color=style.INK, linewidth=0.9, linestyle=(0, (4, 2)), zorder=0)
        ax.axhline(1.15, color=style.RULE, linewidth=0.8)
        labels = [segment_label(row[name] for name in self.by) for row in rows.to_dict("records")]
        ax.set_yticks([*place, 0.4], labels=[*labels, "all"], parse_math=False)
        ax.tick_params(axis="y", length=0)
        ax.grid(False, axis="y")
        ax.set_ylim(-0.4, len(rows) + 2.6)
        ax.margins(x=0.05)
        ax.locator_params(axis="x", nbins=5 if style.points(ax)[0] > 72 * 3 else 3)
        every: list[dict[Any, Any]] = [*rows.to_dict("records"), dict(total)]
        digits = max(len(f"{row['n']:,}") for row in every)
        for y, row in zip([*place, 0.4], every, strict=True):
            self._at_right(ax, y, f"{row['n']:,}", f"{row['n_events']:,}", digits)
        self._at_right(ax, len(rows) + 2.05, "n", "events", digits, color=style.SOFT)
        self._sides(ax, len(rows))
        if any(math.isnan(row["lower"]) and not math.isnan(row["difference"]) for row in every):
            note += "\nhollow: too few for an interval"
        style.say(ax, x=self._told() + note)
        for side in ("top", "right", "left"):
            ax.spines[side].set_visible(False)

    def _rows(self, most: int) -> tuple[pd.DataFrame, str]:
        """Return the segments to draw, in their order, and a note where some are left out."""
        parts = self.contrasts.iloc[1:]
        if len(parts) <= most:
            return parts, ""
        size = parts["difference"].abs().where(parts["lower"].notna(), -1.0).fillna(-2.0)
        kept = size.sort_values(ascending=False, kind="stable").index[:most]
        return parts.loc[sorted(kept)], f"\nthe {most} of {len(parts)} segments with the largest differences"

    def _diamond(self, ax: Axes, total: Any) -> None:
        middle, lower, upper = (float(total[name]) for name in ("difference", "lower", "upper"))
        if math.isnan(lower):
            ax.plot(middle, 0.4, "D", color=style.INK, markerfacecolor="none")
            return
        ax.fill([lower, middle, upper, middle], [0.4, 0.72, 0.4, 0.08], color=style.INK, linewidth=0.8)

    def _at_right(self, ax: Axes, y: float, n: str, events: str, digits: int, color: str = style.INK) -> None:
        across = ax.get_yaxis_transform()  # x by the axes, y by the data
        letter = 0.53 * style.size_of(ax.xaxis.label)
        first = letter * (digits + 2)
        second = first + letter * (max(digits, 6) + 1.5)
        for distance, text in ((first, n), (second, events)):
            ax.annotate(
                text, (1.0, y), xycoords=across, xytext=(distance, 0), textcoords="offset points", ha="right",
                va="center", fontsize=style.size_of(ax.xaxis.label), color=color, annotation_clip=False,
            )  # fmt: skip

    def _sides(self, ax: Axes, n_rows: int) -> None:
        """Name the sides of zero, each at its end of the axis."""
        left, right = sides(self.direction)
        across = ax.get_yaxis_transform()
        for x, text, align in ((0.0, f"← {left}", "left"), (1.0, f"{right} →", "right")):
            ax.text(
                x,
                n_rows + 2.05,
                text,
                transform=across,
                ha=align,
                va="center",
                fontsize=style.size_of(ax.xaxis.label),
                color=style.SOFT,
            )

    def _told(self) -> str:
        what = (
            f"difference in {cause_label(metric_label(self.metric), self.cause)}, {printable(self.model, 40)} to "
            f"{printable(self.reference, 40)}"
        )
        how = f"{self.over}, {printable(self.weighting, 60)}, {100 * self.level:g} % intervals"
        return f"{what}\n{how}"


def segment_label(labels: Iterable[str], most: int = 34) -> str:
    """Return a segment's labels on one line, and not too long to stand beside a plot."""
    every = list(labels)
    return ", ".join(printable(label, most // len(every)) if label else "''" for label in every)
