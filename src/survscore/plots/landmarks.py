"""A heat map of scores, or differences, over landmarks and horizons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from survscore._utils.dates import Unit, plural_word
from survscore._validation import shown as printable
from survscore.inference.intervals import sides
from survscore.metrics import Direction
from survscore.plots import style
from survscore.plots.display import Display
from survscore.results.rounding import typical_decimals

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROW = 0.34  # inches
LIGHT = 0.55  # luminance, from which on letters are dark


@dataclass(eq=False, repr=False)
class LandmarksDisplay(Display):
    """A drawn heat map over landmarks and horizons.

    Attributes
    ----------
    landmarks : tuple of str
        The rows, from early to late; the mean over them last, where there is one.
    horizons : tuple of float
        The columns: times after the landmark.
    values : ndarray of shape (3, landmarks, horizons)
        Scores, or differences to the reference, and the limits of their intervals.
    reliable : ndarray of bool
        Whether there is enough for an interval.
    label, direction, weighting, model : str
        What is drawn.
    reference : str or None
        What the model is compared with, where differences are drawn.
    level : float
        Of the intervals.
    unit : str or None
        Of times.
    ax_, figure_
        The matplotlib objects, once drawn.
    """

    landmarks: tuple[str, ...]
    horizons: tuple[float, ...]
    values: NDArray[np.float64]
    reliable: NDArray[np.bool_]
    label: str
    direction: Direction
    weighting: str
    model: str
    reference: str | None
    level: float = 0.95
    unit: Unit | str | None = None

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
        known = values[np.isfinite(values)]
        extreme = float(np.abs(known).max(initial=0.0)) or 1.0
        if self.reference is not None:
            name = {"better": "RdBu_r", "worse": "RdBu"}.get(sides(self.direction)[0], "PuOr")
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
            colour = (style.INK if self.reliable[i, j] else style.SOFT) if dark else "white"
            excludes = self.reference is not None and (lower[i, j] > 0 or upper[i, j] < 0)
            ax.text(
                j, i, f"{values[i, j]:{sign}.{places}f}", ha="center", va="center", color=colour,
                fontsize=style.small(ax), fontweight="bold" if excludes and self.reliable[i, j] else "normal",
            )  # fmt: skip
        ax.set_xticks(range(len(self.horizons)), labels=[f"{time:g}" for time in self.horizons])
        ax.set_yticks(range(len(self.landmarks)), labels=list(self.landmarks), parse_math=False)
        ax.tick_params(length=0)
        ax.grid(False)
        for side in ax.spines.values():
            side.set_visible(False)
        if self.landmarks[-1] == "mean":
            ax.axhline(len(self.landmarks) - 1.5, color=style.INK, linewidth=1.2)
        unit = f" ({plural_word(self.unit)})" if self.unit else ""
        ax.set_xlabel(f"horizon after the landmark{unit}")
        ax.set_ylabel(f"landmark{unit}")
        style.say(ax, x=ax.get_xlabel() + self._told())

    def _told(self) -> str:
        what = f"{self.label} of {printable(self.model)}"
        if self.reference is not None:
            below, above = sides(self.direction)
            what = (
                f"{self.label}, {printable(self.model)} minus {printable(self.reference)}: below zero {below}, above "
                f"{above}; bold where the {100 * self.level:g} % interval excludes zero"
            )
        return f"\n{what}; {self.weighting}"
