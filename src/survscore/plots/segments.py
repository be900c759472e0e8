"""Tables as pictures: differences by segment as a forest plot, scores over landmarks and horizons as a heat map."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from survscore._utils.dates import plural_word
from survscore._utils.parallel import cached_property
from survscore._validation import check_whole
from survscore._validation import shown as printable
from survscore.engine.evaluation import ScoreArrays
from survscore.inference.intervals import sides
from survscore.metrics import Direction, cause_label
from survscore.plots import style
from survscore.plots.display import Display
from survscore.results.comparison import Comparison
from survscore.results.long_tables import ALL
from survscore.results.rounding import typical_decimals
from survscore.results.score_table import MEAN, LandmarkTable, TableRow

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


@dataclass(eq=False, repr=False)
class SegmentsDisplay(Display):
    """A drawn forest plot: differences to a reference by segment.

    Attributes
    ----------
    total : Comparison
        Of all individuals.
    contrasts : pandas.DataFrame
        The numbers, one row for the total, which comes first, and one for each segment: as
        `SegmentedComparison.contrasts` gives them, of one metric, weighting, model and time, with n and n_events.
    by : tuple of str
        The segmenting columns.
    metric, weighting, model : str
        What is drawn.
    over : str
        At which time, or over which.
    ax_, figure_
        The matplotlib objects, once drawn.
    """

    total: Comparison
    contrasts: pd.DataFrame
    by: tuple[str, ...]
    metric: str
    weighting: str
    model: str
    over: str = ""

    def to_frame(self) -> pd.DataFrame:
        """Return the differences of all individuals and of each segment."""
        return self.contrasts

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
        colour = style.colours(self.total.models, null=self.total.null)[self.model]
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
        top = len(rows) + 2.05
        self._at_right(ax, top, "n", "events", digits, color=style.SOFT)
        small, across = style.size_of(ax.xaxis.label), ax.get_yaxis_transform()
        left, right = sides(self._scored.direction)
        for x, text, align in ((0.0, f"← {left}", "left"), (1.0, f"{right} →", "right")):
            ax.text(x, top, text, transform=across, ha=align, va="center", fontsize=small, color=style.SOFT)
        if any(math.isnan(row["lower"]) and not math.isnan(row["difference"]) for row in every):
            note += "\nhollow: too few for an interval"
        style.say(ax, x=self._about() + note)
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
        across, size = ax.get_yaxis_transform(), style.size_of(ax.xaxis.label)  # x by the axes, y by the data
        letter = 0.53 * size
        first = letter * (digits + 2)
        looks: dict[str, Any] = {"ha": "right", "va": "center", "fontsize": size, "color": color}
        looks |= {"xycoords": across, "textcoords": "offset points", "annotation_clip": False}
        for distance, text in ((first, n), (first + letter * (max(digits, 6) + 1.5), events)):
            ax.annotate(text, (1.0, y), xytext=(distance, 0), **looks)

    @property
    def _scored(self) -> ScoreArrays:
        return self.total.of_metric(self.metric)[0]

    def _about(self) -> str:
        names = f"{printable(self.model, 40)} to {printable(self.total.reference, 40)}"
        how = f"{self.over}, {printable(self.weighting, 60)}, {100 * self.total.level:g} % intervals"
        return f"difference in {self._scored.label}, {names}\n{how}"


def segment_label(labels: Iterable[str], most: int = 34) -> str:
    """Return a segment's labels on one line, and not too long to stand beside a plot."""
    every = list(labels)
    return ", ".join(printable(label, most // len(every)) if label else "''" for label in every)


ROW = 0.34  # inches, of a heat map
LIGHT = 0.55  # luminance, from which on letters are dark


@dataclass(eq=False, repr=False)
class LandmarksDisplay(Display):
    """A drawn heat map over landmarks and horizons.

    Attributes
    ----------
    table : LandmarkTable
        The numbers.
    metric, weighting, model : str
        What is drawn.
    reference : str or None
        What the model is compared with, where differences are drawn.
    ax_, figure_
        The matplotlib objects, once drawn.
    """

    table: LandmarkTable
    metric: str
    weighting: str
    model: str
    reference: str | None

    @cached_property
    def rows(self) -> list[TableRow]:
        """The rows of the table that are drawn."""
        wanted = (self.metric, self.weighting, self.model)
        return [row for row in self.table.rows if (row.metric, row.weighting, row.model) == wanted]

    @cached_property
    def landmarks(self) -> list[str]:
        """The landmarks from early to late; the mean over them last, where there is one."""
        mean = any(row.segment[0] == ALL and not math.isnan(self._numbers(row)[0]) for row in self.rows)
        return [*(landmark.label for landmark in self.table.landmarks), *([ALL] if mean else [])]

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """Scores, or differences to the reference, and the limits of their intervals: (3, landmarks, horizons)."""
        values = np.full((3, len(self.landmarks), len(self.table.settings["horizons"])), np.nan)
        for place, row in self._cells():
            values[:, *place] = self._numbers(row)
        return values

    def _cells(self) -> Iterable[tuple[tuple[int, int], TableRow]]:
        """Yield each row that is drawn, and where."""
        horizons = list(self.table.settings["horizons"])
        for row in self.rows:
            if row.segment[0] in self.landmarks:
                yield (self.landmarks.index(row.segment[0]), horizons.index(row.time)), row

    def _numbers(self, row: TableRow) -> tuple[float, float, float]:
        if self.reference is None:
            return row.estimate, row.lower, row.upper
        return row.difference, row.difference_lower, row.difference_upper

    def to_frame(self) -> pd.DataFrame:
        """Return the rows of the table that are drawn."""
        frame = self.table.to_frame()
        wanted = (frame["metric"] == self.metric) & (frame["weighting"] == self.weighting)
        return frame[wanted & (frame["model"] == self.model)]

    def plot(self, ax: Axes | None = None, *, width: float | None = None) -> Self:
        """Draw into `ax`, or a new figure: one row for each landmark, the earliest on top, a column for each horizon.

        Differences are blue where the model is better, and red where it is worse (of values that should be close to a
        target: violet and orange, by sign); bold where the interval excludes zero, and grey where there are too few
        events for one.
        """
        with style.canvas(ax, width, height=ROW * len(self.landmarks)) as on:
            self._draw(on.ax)
            return self._drawn(on)

    def _draw(self, ax: Axes) -> None:
        import matplotlib as mpl

        values, lower, upper = self.values
        direction: Any = self.rows[0].direction
        reliable = {
            place: row.reliable if self.reference is None else row.difference_reliable for place, row in self._cells()
        }
        known = values[np.isfinite(values)]
        extreme = float(np.abs(known).max(initial=0.0)) or 1.0
        if self.reference is not None:
            name = {"better": "RdBu_r", "worse": "RdBu"}.get(sides(direction)[0], "PuOr")
            colours, limits = mpl.colormaps[name], (-extreme, extreme)
        else:
            colours = mpl.colormaps["Blues"]
            limits = (float(known.min(initial=np.inf)), float(known.max(initial=-np.inf))) if known.size else (0.0, 1.0)
        image = ax.imshow(np.ma.masked_invalid(values), cmap=colours, vmin=limits[0], vmax=limits[1], aspect="auto")
        # half the widths of the intervals say how many digits there are
        places = typical_decimals(((upper - lower) / 4.0).ravel().tolist())
        sign = "+" if self.reference is not None else ""
        for i, j in np.ndindex(values.shape):
            if np.isnan(values[i, j]):
                ax.text(j, i, "–", ha="center", va="center", color=style.SOFT)
                continue
            red, green, blue, _ = image.to_rgba(values[i, j])
            dark = 0.3 * red + 0.59 * green + 0.11 * blue > LIGHT
            colour = (style.INK if reliable[i, j] else style.SOFT) if dark else "white"
            excludes = self.reference is not None and (lower[i, j] > 0 or upper[i, j] < 0)
            weight = "bold" if excludes and reliable[i, j] else "normal"
            looks: dict[str, Any] = {"fontsize": style.small(ax), "fontweight": weight, "color": colour}
            ax.text(j, i, f"{values[i, j]:{sign}.{places}f}", ha="center", va="center", **looks)
        horizons, landmarks = self.table.settings["horizons"], self.landmarks
        ax.set_xticks(range(len(horizons)), labels=[f"{time:g}" for time in horizons])
        names = [MEAN if label == ALL else label for label in landmarks]
        ax.set_yticks(range(len(landmarks)), labels=names, parse_math=False)
        ax.tick_params(length=0)
        ax.grid(False)
        for side in ax.spines.values():
            side.set_visible(False)
        if landmarks[-1] == ALL:
            ax.axhline(len(landmarks) - 1.5, color=style.INK, linewidth=1.2)
        given = self.table.settings.get("unit")
        unit = f" ({plural_word(given)})" if given else ""
        ax.set_ylabel(f"landmark{unit}")
        style.say(ax, x=f"horizon after the landmark{unit}\n{self._about(direction)}; {self.weighting}")

    def _about(self, direction: Direction) -> str:
        label = cause_label(self.rows[0].label, self.table.settings.get("cause", ""))
        if self.reference is None:
            return f"{label} of {printable(self.model)}"
        below, above = sides(direction)
        return (
            f"{label}, {printable(self.model)} minus {printable(self.reference)}: below zero {below}, above {above}; "
            f"bold where the {100 * self.table.level:g} % interval excludes zero"
        )
