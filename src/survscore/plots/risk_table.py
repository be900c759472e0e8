"""What stands below axes: how many are counted at which time, and notes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from survscore.plots.style import INK, SOFT, folded, points, rc, size_of, small

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def counts_below(ax: Axes, rows: Mapping[str, tuple[Any, Any]], *, at: Any = None) -> None:
    """Write below an axis of time how many there are: one row for each name, at times that have a number.

    `rows` are (times, numbers) by name, of which those that are NaN are left out. Numbers stand at the very times that
    they are of: those nearest to `at`, by default the ticks.
    """
    size = small(ax)
    widest = max((len(f"{number:,.0f}") for _, counts in rows.values() for number in _known(counts)), default=1)
    ticks = _thinned(ax, _ticks(ax) if at is None else list(at), 0.6 * size * (widest + 1))
    for place, (name, (times, counts)) in enumerate(rows.items()):
        down = -(_below_axis(ax) + 1.35 * size * place)
        _write(ax, (0.0, 0.0), "axes fraction", (-0.8 * size - 0.3 * size * widest, down), name, size, "right", SOFT)
        for x, number in _nearest(np.asarray(times, dtype=np.float64), np.asarray(counts, dtype=np.float64), ticks):
            told = f"{number:,.0f}"
            across = ax.get_xaxis_transform()
            _write(ax, (x, 0.0), across, (0.0, down), told, size, "center", INK)


def _known(counts: Any) -> list[float]:
    values = np.asarray(counts, dtype=np.float64)
    return [float(value) for value in values[np.isfinite(values)]]


def _nearest(times: Any, counts: Any, ticks: list[float]) -> list[tuple[float, float]]:
    """Return for each tick the nearest time that has a number, unless another tick is as near."""
    known = np.isfinite(counts)
    times, counts = times[known], counts[known]
    if not times.size or not ticks:
        return []
    close = 0.25 * (min(np.diff(ticks)) if len(ticks) > 1 else np.inf)
    found = {}
    for tick in ticks:
        place = int(np.argmin(np.abs(times - tick)))
        if abs(times[place] - tick) <= close:
            found[float(times[place])] = float(counts[place])
    return list(found.items())


def _ticks(ax: Axes) -> list[float]:
    """Return the ticks in view."""
    low, high = sorted(ax.get_xlim())
    slack = 0.001 * (high - low)
    return [float(tick) for tick in ax.get_xticks() if low - slack <= tick <= high + slack]


def _thinned(ax: Axes, ticks: list[float], room: float) -> list[float]:
    """Return every tick, or every second, third ... of them, so that numbers so many points wide fit."""
    fit = max(int(points(ax)[0] / room), 1)
    return ticks[:: -(-len(ticks) // fit)] if ticks else []


def note_below(ax: Axes, text: str) -> None:
    """Write a note below the label of the x axis, folded to the width of the axes."""
    size = small(ax)
    told = folded(text, points(ax)[0], size)
    found = _write(ax, (0.0, 0.0), "axes fraction", (0.0, -_below_axis(ax)), told, size, "left", INK)
    found.set_va("top")
    found.set_linespacing(1.25)


def _below_axis(ax: Axes) -> float:
    """Return how many points below the axes the label of the x axis ends, and a bit more."""
    lines = ax.get_xlabel().count("\n") + 1
    label = size_of(ax.xaxis.label)
    return 8.0 + _tick_size(ax) + ax.xaxis.labelpad + 1.35 * label * lines + 0.9 * small(ax)


def _tick_size(ax: Axes) -> float:
    from matplotlib.font_manager import FontProperties

    told = ax.xaxis.get_tick_params().get("labelsize", rc()["xtick.labelsize"])
    return float(FontProperties(size=told).get_size_in_points())


def _write(ax: Axes, at: Any, coordinates: Any, offset: tuple[float, float], text: str, size: float, side: str,
           colour: str) -> Any:  # fmt: skip
    return ax.annotate(
        text, at, xycoords=coordinates, xytext=offset, textcoords="offset points", ha=side, va="center", fontsize=size,
        color=colour, annotation_clip=False, parse_math=False,
    )  # fmt: skip
