"""The house style: colours, sizes and fonts of figures. Only this package imports matplotlib.

Nothing global changes: settings hold while a figure of our own is drawn, and those that a user has set stay. Axes that
a user gives keep their fonts, frame and grid.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from survscore._utils.dates import Unit, plural_word
from survscore._validation import InputError, check_number
from survscore.inference.intervals import sides
from survscore.metrics import Direction

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text

COLUMN, PAGE = 3.4, 7.0  # inches: one column of a journal, and its whole page
NARROW = 5.0  # inches; below, letters are smaller
LEAST_WIDTH = 2.0
#: The colours of models, in their order: those of the report, so that a model looks the same everywhere.
PALETTE = ("#0068b5", "#c44500", "#00805f", "#a3357f", "#7a6200", "#17749f", "#5b4fc7", "#8a4b32")
NULL_COLOUR, INK, SOFT, RULE = "#555d66", "#1b1f24", "#57606a", "#d5dae0"
#: Of weightings in one picture; and of models beyond the fourth, whose colours are less far apart.
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5)))
FAR_APART = 4
PANEL_SHAPE = 0.8  # the height of one of several panels, by its width
AXES_SHARE = 0.75  # of a figure's height that axes take, before it is laid out
LETTER = 0.56  # the mean width of a letter, as a share of the size of the font
BAND_ALPHA = 0.15
SMALL = 0.85  # of the size of labels: what stands at lines and below axes
#: What was said in titles and labels, before it was folded.
WORDS: WeakKeyDictionary[Text, str] = WeakKeyDictionary()


def rc() -> Any:
    """Return matplotlib's settings that hold now."""
    import matplotlib as mpl

    return mpl.rcParams


def size_of(text: Text) -> float:
    """Return the size of a text's letters in points."""
    return float(text.get_fontsize())


def root_figure(ax: Axes) -> Figure:
    """Return the figure that axes are in, also if they are in a part of it; of any version of matplotlib."""
    figure: Any = ax.figure
    root: Figure = figure.figure
    return root


def pyplot() -> Any:
    """Return matplotlib's pyplot, or say what to install."""
    try:
        from matplotlib import pyplot as plt
    except ImportError:
        raise ImportError("plots need matplotlib: pip install 'survscore[plots]'") from None
    return plt


def colours(models: Iterable[str], *, null: str | None = None) -> dict[str, str]:
    """Return the colour of each model, by their order; a null model is grey.

    Figures of a comparison, and the report, use these. For figures of your own:

    Parameters
    ----------
    models : iterable of str
        All models, also those that a figure does not show, in the same order for every figure.
    null : str, optional
        Which of them is the null model.

    Returns
    -------
    dict of str to str

    Examples
    --------
    >>> from survscore.plots import colours
    >>> colours(["net", "Cox", "Kaplan-Meier"], null="Kaplan-Meier")
    {'net': '#0068b5', 'Cox': '#c44500', 'Kaplan-Meier': '#555d66'}
    """
    others = [name for name in models if name != null]
    by_model = {name: PALETTE[place % len(PALETTE)] for place, name in enumerate(others)}
    return by_model if null is None else by_model | {null: NULL_COLOUR}


def dashes(models: Iterable[str], *, null: str | None = None) -> dict[str, Any]:
    """Return the kind of line of each model: the fifth and later ones are dashed, since their colours are near others.

    So is a null model in its own way: to some, its grey is that of the fourth.
    """
    by_model = {
        name: DASHES[(place // FAR_APART) % len(DASHES)] for place, name in enumerate(colours(models, null=null))
    }
    return by_model if null is None else by_model | {null: DASHES[-1]}


def looks(models: Iterable[str], *, null: str | None = None) -> dict[str, dict[str, Any]]:
    """Return how the line of each model is drawn: its colour, and its kind."""
    names = list(models)
    kinds = dashes(names, null=null)
    return {name: {"color": colour, "linestyle": kinds[name]} for name, colour in colours(names, null=null).items()}


def font_size(width: float) -> float:
    """Return the size of letters, in points, of a figure so many inches wide."""
    return 8.0 if width < NARROW else 9.0


def settings(width: float) -> dict[str, Any]:
    """Return matplotlib's settings for a figure so many inches wide."""
    from matplotlib.rcsetup import cycler

    size = font_size(width)
    return {
        "font.size": size,
        "axes.titlesize": size,
        "axes.labelsize": size,
        "xtick.labelsize": size - 1,
        "ytick.labelsize": size - 1,
        "legend.fontsize": size - 1,
        "figure.titlesize": size + 1,
        "axes.prop_cycle": cycler(color=PALETTE),
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": SOFT,
        "axes.linewidth": 0.8,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": RULE,
        "grid.linewidth": 0.6,
        "lines.linewidth": 1.5,
        "legend.frameon": False,
        "xtick.color": SOFT,
        "ytick.color": SOFT,
        "xtick.labelcolor": INK,
        "ytick.labelcolor": INK,
        "figure.constrained_layout.h_pad": 0.06,
        "figure.constrained_layout.w_pad": 0.06,
    }


@contextmanager
def applied(width: float) -> Iterator[None]:
    """Apply the house style within a block, except for what the user has set."""
    import matplotlib as mpl

    default: Any = mpl.rcParamsDefault
    unset: Any = {name: value for name, value in settings(width).items() if rc()[name] == default[name]}
    with mpl.rc_context(unset):
        yield


class Canvas(NamedTuple):
    """Where to draw: axes, and whether their figure is ours."""

    ax: Axes
    own: bool


@contextmanager
def canvas(
    ax: Axes | None, width: float | None, *, height: float | None = None, per_width: float | None = None
) -> Iterator[Canvas]:
    """Give the axes of the user, as they are, or those of a new figure in the house style, so many inches wide.

    A new figure is as high as what is drawn takes: the axes have their height, in inches or as a share of the width,
    whatever stands above and below.
    """
    if ax is not None:
        if width is not None:
            raise InputError("width is that of a new figure: ax, which was given too, has a figure already")
        yield Canvas(ax, own=False)
        return
    inches, is_set = figure_width(width)
    if per_width is None:
        per_width = 0.62 if inches < NARROW else 0.42
    tall = inches * per_width if height is None else height
    with applied(inches):
        size = rc()["figure.figsize"] if is_set else (inches, tall / AXES_SHARE)
        figure = pyplot().figure(figsize=size, layout="constrained")
        made = figure.add_subplot()
        dress(made)
        yield Canvas(made, own=True)
        refit(figure, None if is_set else tall)


def figure_width(width: float | None) -> tuple[float, bool]:
    """Return the width of a new figure, and whether it comes from what the user has set for all figures."""
    if width is not None:
        check_number("width", width, f"at least {LEAST_WIDTH:g} inches", lambda inches: inches >= LEAST_WIDTH)
        return float(width), False
    import matplotlib as mpl

    user_width = float(rc()["figure.figsize"][0])
    is_set = list(rc()["figure.figsize"]) != list(mpl.rcParamsDefault["figure.figsize"])
    return (user_width, True) if is_set else (PAGE, False)


def refit(figure: Figure, height: float | None) -> None:
    """Lay out a figure of our own: fold words to what room there is, and give the axes their height in inches."""
    figure.draw_without_rendering()
    for ax in figure.axes:
        _fold_again(ax, height)
    if height is None:
        return
    for _ in range(2):  # words that are folded anew may take another line
        figure.draw_without_rendering()
        missing = height - figure.axes[0].get_position().height * figure.get_size_inches()[1]
        figure.set_size_inches(figure.get_size_inches()[0], figure.get_size_inches()[1] + missing)


def refit_panels(figure: Figure) -> None:
    """Lay out small multiples of our own: each has its shape, however many lines the titles above take."""
    grid: Any = figure.axes[0].get_subplotspec()
    for _ in range(2):  # what is higher has room for longer lines
        refit(figure, None)
        figure.draw_without_rendering()
        width, height = figure.get_size_inches()
        panel = figure.axes[0].get_position()
        missing = PANEL_SHAPE * panel.width * width - panel.height * height
        figure.set_size_inches(width, height + grid.get_gridspec().nrows * missing)
    refit(figure, None)


def _fold_again(ax: Axes, tall: float | None) -> None:
    alone = tall is not None or len(ax.figure.axes) == 1
    box = ax.get_position()
    width, height = (72.0 * float(inches) for inches in root_figure(ax).get_size_inches())
    middle = (box.x0 + box.x1) / 2
    # words centred on axes may be wider than these, if nothing stands beside them
    across = width * (2 * min(middle, 1.0 - middle) - 0.04 if alone else box.width)
    up = 1.12 * (height * box.height if tall is None else 72.0 * tall)  # it may stand out a bit
    for text, available in ((ax.title, across), (ax.xaxis.label, across), (ax.yaxis.label, up)):
        if text in WORDS and text.get_text():  # outer labels of panels may be gone
            put(text, WORDS[text], available)


def dress(ax: Axes) -> None:
    """Put the settings that hold now on axes for good: ticks are made when they are drawn, by what holds then."""
    settings_now = rc()
    for which in ("x", "y"):
        tick = f"{which}tick"
        looks = {name: settings_now[f"{tick}.{name}"] for name in ("labelsize", "color", "labelcolor")}
        ax.tick_params(axis=which, **looks)
    if settings_now["axes.grid"]:
        ax.grid(True, color=settings_now["grid.color"], linewidth=settings_now["grid.linewidth"])


def panels(n_panels: int, n_columns: int, width: float) -> tuple[Figure, list[Axes]]:
    """Return a figure of small multiples on one scale; call within `applied`, and `refit_panels` in the end.

    Labels of axes stand at the left, and below the lowest panel of each column.
    """
    n_rows = -(-n_panels // n_columns)
    height = n_rows * (width / n_columns + 1.0)  # too much, so that all has room before it is refitted
    figure, axes = pyplot().subplots(
        n_rows, n_columns, sharex=True, sharey=True, squeeze=False, layout="constrained", figsize=(width, height)
    )
    for ax in axes.flat:
        dress(ax)
    for ax in axes.flat[n_panels:]:
        ax.set_visible(False)
    return figure, list(axes.flat[:n_panels])


def label_outer(axes: list[Axes], n_columns: int) -> None:
    """Leave the labels of small multiples at the left and below only; also below a gap in the last row."""
    for place, ax in enumerate(axes):
        label = ax.get_xlabel()
        ax.label_outer()
        if place >= len(axes) - n_columns:
            ax.xaxis.set_tick_params(labelbottom=True)
            ax.set_xlabel(label)


def has_room(ax: Axes) -> bool:
    """Return whether the layout makes room for what stands beside axes, as constrained layout does."""
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    return isinstance(root_figure(ax).get_layout_engine(), ConstrainedLayoutEngine)


# Words that fit


def points(ax: Axes) -> tuple[float, float]:
    """Return the width and the height of axes in points, as far as they are known before all is laid out."""
    box, figure = ax.get_position(original=True), root_figure(ax)
    width, height = figure.get_size_inches()
    return 72.0 * box.width * width, 72.0 * box.height * height


def folded(text: str, available: float, size: float, *, break_words: bool = False) -> str:
    """Return text on lines that are at most so many points wide, in letters of a size, also within words if need be.

    Lines are about as long as each other: a last word does not stand alone.
    """
    width = max(int(available / (LETTER * size)), 8)
    return "\n".join(_balanced(line, width, break_words) for line in text.split("\n"))


def _balanced(text: str, width: int, break_words: bool) -> str:
    """Return a text on as few lines as a width takes, and these as short as they can be without another one."""

    def wrap(letters: int) -> list[str]:
        return textwrap.wrap(text, letters, break_on_hyphens=False, break_long_words=break_words)

    lines = wrap(width)
    longest = max(map(len, text.split()), default=width)  # no word is broken for the sake of balance
    narrower = map(wrap, range(min(longest, width), width))
    return "\n".join(next((shorter for shorter in narrower if len(shorter) == len(lines)), lines))


def put(text: Text, words: str, available: float) -> None:
    """Set a title or a label, folded to the points that are there; signs of a name are no formula."""
    WORDS[text] = words
    text.set_parse_math(False)
    text.set_text(folded(words, available, size_of(text)))


def small(ax: Axes) -> float:
    """Return the size of small letters beside axes, by that of their labels."""
    return SMALL * size_of(ax.xaxis.label)


def say(ax: Axes, *, x: str | None = None, y: str | None = None, title: str | None = None) -> None:
    """Label axes in words that fit."""
    width, height = points(ax)
    if x is not None:
        put(ax.xaxis.label, x, 1.05 * width)
    if y is not None:
        put(ax.yaxis.label, y, 0.95 * height)
    if title is not None:
        put(ax.title, title, 1.05 * width)


def time_label(unit: Unit | str | None, what: str = "time") -> str:
    """Return the label of an axis of time, with the unit where it is said."""
    return what if unit is None else f"{what} ({plural_word(unit)})"


def at_time(time: float, unit: Unit | str | None) -> str:
    """Return a time in words."""
    return f"at {time:g}" if unit is None else f"at {time:g} {plural_word(unit)}"


# Lines, bands, limits


def shade(ax: Axes, line: Any, x: Any, lower: Any, upper: Any, *, alpha: float = BAND_ALPHA) -> None:
    """Fill between limits, in the colour of the line.

    The axes make room for the line and its usual band, not for limits that run away, as at times with hardly anybody:
    there the band leaves the axes.
    """
    before = ax.dataLim.frozen()
    ax.fill_between(x, lower, upper, color=line.get_color(), alpha=alpha, linewidth=0)
    ax.dataLim.set(before)
    values, low, high = (np.asarray(one, dtype=np.float64) for one in (line.get_ydata(), lower, upper))
    known = np.isfinite(values) & np.isfinite(low) & np.isfinite(high) if values.shape == low.shape else np.array(False)
    if not known.any():
        return
    values, low, high = values[known], low[known], high[known]
    reach = max(float(np.ptp(values)), float(np.median(high - low)))
    ends = max(values.min() - reach, low.min()), min(values.max() + reach, high.max())
    make_room(ax, [(float(np.asarray(x, dtype=np.float64)[known][0]), end) for end in ends])


def make_room(ax: Axes, at: list[tuple[float, float]]) -> None:
    """Have the axes reach to some points."""
    ax.update_datalim(at)
    ax.autoscale_view()


def mark(ax: Axes, *, x: float | None = None, y: float | None = None, **line: Any) -> None:
    """Draw a thin line across the axes, without making room for it."""
    style: dict[str, Any] = {"color": SOFT, "linewidth": 0.9, "linestyle": (0, (4, 2)), "zorder": 1.5} | line
    before = ax.dataLim.frozen()
    if x is not None:
        ax.axvline(x, **style)
    if y is not None:
        ax.axhline(y, **style)
    ax.dataLim.set(before)


def name_sides(ax: Axes, direction: Direction) -> None:
    """Name the sides of zero on the y axis: which is better."""
    below, above = sides(direction)
    for y, words, side in ((0.985, f"↑ {above}", "top"), (0.015, f"↓ {below}", "bottom")):
        ax.text(0.015, y, words, transform=ax.transAxes, ha="left", va=side, fontsize=small(ax), color=SOFT)


def nice_top(value: float) -> float:
    """Return the end of an axis of probabilities that starts at zero: one, unless all is far below."""
    if not math.isfinite(value) or value > 0.6:
        return 1.0
    step = 10.0 ** math.floor(math.log10(max(value, 1e-6)))
    return min(next(step * k for k in (1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if step * k >= value), 1.0)
