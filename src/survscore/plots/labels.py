"""What stands beside curves and below axes: names of lines, how many are counted at which time, and notes.

Lines are named at their ends where that fits, and in a legend where it does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.transforms import Bbox, IdentityTransform
from numpy.typing import NDArray

from survscore.plots.style import INK, LETTER, SOFT, folded, has_room, points, rc, root_figure, size_of, small

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_AT_ENDS = 7  # more are found sooner in a legend
WIDEST = 0.3  # a label may take so much of the axes' width
LONGEST = 20  # letters on one line of a label
AWAY = 7.0  # points between the axes and the labels
INTERPOLATIONS = 1.0  # points between two labels
BESIDE_PANELS = 0.16  # names beside small multiples may take so much of the figure's width
KEY = 4.0  # sizes of letters: what a legend takes beside its names

Vector = NDArray[np.float64]


def spread(wanted: Vector, heights: Vector, low: float, high: float) -> Vector:
    """Return places along a line, as near as can be to those wanted, at which things of some heights do not overlap.

    The least sum of squared moves, by isotonic regression of what is left if all touch; within `low` and `high`, if
    all fit there. `wanted` are middles, in any order, and `heights` how much room each takes.
    """
    from scipy.optimize import isotonic_regression  # slow to import

    order = np.argsort(wanted, kind="stable")
    tall = heights[order]
    offsets = np.concatenate(([0.0], np.cumsum((tall[1:] + tall[:-1]) / 2)))  # of touching neighbours
    levels = isotonic_regression(wanted[order] - offsets).x
    levels = np.maximum(np.minimum(levels, high - tall[-1] / 2 - offsets[-1]), low + tall[0] / 2)
    places: Vector = np.empty(levels.size)
    places[order] = levels + offsets
    return places


class EndLabels(Artist):
    """Names at the right ends of lines, each in its line's colour, which move apart where they would overlap.

    They are placed whenever the figure is drawn, so that they stay right if it is resized or lines are added.
    """

    def __init__(self) -> None:
        super().__init__()
        self.entries: list[tuple[Line2D, str, Text, Line2D]] = []
        self.set_clip_on(False)
        self.set_zorder(5)

    @classmethod
    def of(cls, ax: Axes) -> EndLabels:
        """Return those of axes, which have them once."""
        for artist in ax.artists:
            if isinstance(artist, cls):
                return artist
        made = cls()
        ax.add_artist(made)
        made.set_clip_path(None)
        made.set_clip_on(False)
        return made

    def add(self, line: Line2D, name: str) -> None:
        """Name one more line."""
        looks: dict[str, Any] = {"va": "center", "ha": "left", "linespacing": 1.05, "color": line.get_color()}
        looks |= {"fontsize": small(self.axes), "parse_math": False, "transform": IdentityTransform()}  # type: ignore[arg-type]
        text = Text(0, 0, folded(name, LONGEST * LETTER, 1.0), **looks)
        leader = Line2D([], [], color=line.get_color(), linewidth=0.6, alpha=0.7, transform=IdentityTransform())
        for child in (text, leader):
            child.axes = self.axes
            child.set_figure(self.axes.figure)  # type: ignore[union-attr]
            child.set_clip_on(False)
        self.entries.append((line, name, text, leader))

    def get_children(self) -> list[Artist]:
        """Return the texts, for searches over all texts of a figure."""
        return [text for _, _, text, _ in self.entries]

    def _place(self, renderer: Any) -> None:
        shown = [(*_end_of(line), text, leader) for line, _, text, leader in self.entries]
        shown = [one for one in shown if np.isfinite(one[1])]
        box, point = self.axes.bbox, renderer.points_to_pixels(1.0)  # type: ignore[union-attr]
        for _, _, text, leader in self.entries:
            text.set_visible(any(text is one[2] for one in shown))
            leader.set_data([], [])
        if not shown:
            return
        heights = np.array([text.get_window_extent(renderer).height for *_, text, _ in shown]) + INTERPOLATIONS * point
        wanted = np.clip([y for _, y, *_ in shown], box.y0, box.y1)
        places = spread(wanted, heights, box.y0 - 0.5 * heights.min(), box.y1 + 0.5 * heights.min())
        left = box.x1 + AWAY * point
        for (x, _, text, leader), y_line, y in zip(shown, wanted, places, strict=True):
            text.set_position((left, y))
            leader.set_data([x, left - 1.5 * point], [y_line, y])

    def get_window_extent(self, renderer: Any = None) -> Bbox:
        """Return what the labels cover."""
        renderer = self.axes.figure._get_renderer() if renderer is None else renderer  # type: ignore[union-attr]
        self._place(renderer)
        boxes = [text.get_window_extent(renderer) for _, _, text, _ in self.entries if text.get_visible()]
        return Bbox.union(boxes) if boxes else Bbox.null()

    def get_tightbbox(self, renderer: Any = None) -> Bbox | None:
        """Return the same, for the layout."""
        return self.get_window_extent(renderer) if self.entries else None

    def draw(self, renderer: Any) -> None:
        """Place and draw."""
        if not self.get_visible():
            return
        self._place(renderer)
        for _, _, text, leader in self.entries:
            if text.get_visible():
                leader.draw(renderer)
                text.draw(renderer)
        self.stale = False


def _end_of(line: Line2D) -> tuple[float, float]:
    """Return where a line's last point lies in pixels; NaN for a line without points."""
    x, y = (np.asarray(one, dtype=np.float64) for one in line.get_data())
    known = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    if known.size == 0:
        return np.nan, np.nan
    place = line.get_transform().transform((x[known[-1]], y[known[-1]]))
    return float(place[0]), float(place[1])


def name_at_ends(ax: Axes, lines: Iterable[tuple[Line2D, str]]) -> EndLabels:
    """Name lines at their ends, in a figure whose layout makes room there; return all names of the axes."""
    labels = EndLabels.of(ax)
    for line, name in lines:
        labels.add(line, name)
    return labels


def name_lines(ax: Axes, lines: Sequence[tuple[Line2D, str]]) -> None:
    """Name lines at their ends, together with those of the axes that are named already; or all in a legend.

    At the ends, if the layout makes room there, and the names are few and short enough for it.
    """
    if not lines:
        return
    if has_room(ax):
        labels = name_at_ends(ax, lines)
        every = [(line, name) for line, name, *_ in labels.entries]
        if _fit_beside([name for _, name in every], ax, max(WIDEST * points(ax)[0], 50.0)):
            return
        labels.entries.clear()
        lines = every
    legend([line for line, _ in lines], [name for _, name in lines], ax)


def _fit_beside(names: Sequence[str], ax: Axes, available: float) -> bool:
    """Return whether names fit beside axes: few enough for the height of these, in a column so many points wide."""
    size = small(ax)
    rows = [line for name in names for line in folded(name, LONGEST * LETTER, 1.0).split("\n")]
    letters = max(map(len, rows))
    return (
        len(names) <= MOST_AT_ENDS and 1.3 * size * len(rows) <= points(ax)[1] and letters * LETTER * size <= available
    )


def name_panels(axes: Sequence[Axes], n_columns: int, lines: Sequence[Mapping[str, Line2D]]) -> None:
    """Name the lines of small multiples once: in the place that a last row leaves over, at the right, or below.

    `lines` are those of each of the axes, by name.
    """
    figure = root_figure(axes[0])
    named: dict[str, Line2D] = {}
    for those in lines:
        named = {**those, **named}
    names = list(named)
    left_over = figure.axes[len(axes) :]
    width = 72.0 * float(figure.get_size_inches()[0])
    if left_over and _fit_beside(names, axes[0], width / n_columns - KEY * small(axes[0])):
        alone = left_over[0]
        alone.set_visible(True)
        alone.set_axis_off()
        words = [folded(name, LONGEST * LETTER, 1.0) for name in names]
        _plain(alone.legend(named.values(), words, loc="center", fontsize=small(alone)))
    elif not left_over and _fit_beside(names, axes[0], BESIDE_PANELS * width):
        for ax, those in list(zip(axes, lines, strict=True))[n_columns - 1 :: n_columns]:
            name_at_ends(ax, ((line, name) for name, line in those.items()))
    else:
        outside_legend(figure, list(named.values()), names)


def legend(handles: Sequence[Any], names: Sequence[str], ax: Axes) -> None:
    """Name lines in a legend: below a figure whose layout makes room for it, within the axes of others."""
    figure = root_figure(ax)
    if has_room(ax) and len(figure.axes) == 1:
        outside_legend(figure, handles, names)
        return
    # axes of one figure have names of their own
    handles, names = _after(ax.get_legend(), handles, names)
    _plain(ax.legend(handles, names, loc="best", fontsize=small(ax), framealpha=0.8))


def outside_legend(figure: Any, handles: Sequence[Any], names: Sequence[str]) -> None:
    """Put a legend below a figure, in as many columns as fit; it takes the place of an earlier one."""
    for earlier in figure.legends[:]:
        handles, names = _after(earlier, handles, names)
        earlier.remove()
    width = 72.0 * figure.get_size_inches()[0]
    size = small(figure.axes[0])
    words = [folded(name, width - 7 * size, size, break_words=True) for name in names]
    longest = max(len(line) for name in words for line in name.split("\n"))
    columns = max(min(int(width / (LETTER * size * longest + 4.5 * size)), len(words)), 1)
    _plain(figure.legend(handles, words, loc="outside lower center", ncols=columns, fontsize=size))


def _plain(drawn: Any) -> None:
    """Have signs of names in a legend be no formulas."""
    for text in drawn.get_texts():
        text.set_parse_math(False)


def _after(earlier: Any, handles: Sequence[Any], names: Sequence[str]) -> tuple[list[Any], list[str]]:
    """Return lines and their names after those of an earlier legend, where there is one."""
    if earlier is None:
        return [*handles], [*names]
    return [*earlier.legend_handles, *handles], [*(text.get_text() for text in earlier.get_texts()), *names]


# Below axes


def counts_below(ax: Axes, rows: Mapping[str, tuple[Any, Any]], *, at: Any = None) -> None:
    """Write below an axis of time how many there are: one row for each name, at times that have a number.

    `rows` are (times, numbers) by name, of which those that are NaN are left out. Numbers stand at the very times that
    they are of: those nearest to `at`, by default the ticks.
    """
    size = small(ax)
    numbers = np.concatenate([np.asarray(counts, dtype=np.float64) for _, counts in rows.values()])
    widest = max((len(f"{number:,.0f}") for number in numbers[np.isfinite(numbers)]), default=1)
    ticks = _ticks(ax) if at is None else list(at)
    fit = max(int(points(ax)[0] / (0.6 * size * (widest + 1))), 1)
    ticks = ticks[:: -(-len(ticks) // fit)] if ticks else []  # every one, or every second, third ... so that they fit
    for place, (name, (times, counts)) in enumerate(rows.items()):
        down = -(_below_axis(ax) + 1.35 * size * place)
        left = -0.8 * size - 0.3 * size * widest
        _write(ax, (0.0, 0.0), "axes fraction", (left, down), name, ha="right", color=SOFT)
        for x, number in _nearest(np.asarray(times, dtype=np.float64), np.asarray(counts, dtype=np.float64), ticks):
            _write(ax, (x, 0.0), ax.get_xaxis_transform(), (0.0, down), f"{number:,.0f}", ha="center", color=INK)


def _nearest(times: Any, counts: Any, ticks: list[float]) -> list[tuple[float, float]]:
    """Return for each tick the nearest time that has a number, unless another tick is as near."""
    known = np.isfinite(counts)
    times, counts = times[known], counts[known]
    if not times.size or not ticks:
        return []
    close = 0.25 * (min(np.diff(ticks)) if len(ticks) > 1 else np.inf)
    numbers = {}
    for tick in ticks:
        place = int(np.argmin(np.abs(times - tick)))
        if abs(times[place] - tick) <= close:
            numbers[float(times[place])] = float(counts[place])
    return list(numbers.items())


def _ticks(ax: Axes) -> list[float]:
    """Return the ticks in view."""
    low, high = sorted(ax.get_xlim())
    slack = 0.001 * (high - low)
    return [float(tick) for tick in ax.get_xticks() if low - slack <= tick <= high + slack]


def note_below(ax: Axes, text: str) -> None:
    """Write a note below the label of the x axis, folded to the width of the axes."""
    words, down = folded(text, points(ax)[0], small(ax)), -_below_axis(ax)
    _write(ax, (0.0, 0.0), "axes fraction", (0.0, down), words, ha="left", va="top", linespacing=1.25, color=INK)


def _below_axis(ax: Axes) -> float:
    """Return how many points below the axes the label of the x axis ends, and a bit more."""
    from matplotlib.font_manager import FontProperties

    ticks = FontProperties(size=ax.xaxis.get_tick_params().get("labelsize", rc()["xtick.labelsize"]))
    label = 1.35 * size_of(ax.xaxis.label) * (ax.get_xlabel().count("\n") + 1)
    return 8.0 + float(ticks.get_size_in_points()) + ax.xaxis.labelpad + label + 0.9 * small(ax)


def _write(ax: Axes, at: Any, coordinates: Any, offset: tuple[float, float], text: str, **looks: Any) -> Any:
    fixed: dict[str, Any] = {"fontsize": small(ax), "annotation_clip": False, "parse_math": False}
    looks = {"va": "center"} | looks | fixed
    return ax.annotate(text, at, xycoords=coordinates, xytext=offset, textcoords="offset points", **looks)
