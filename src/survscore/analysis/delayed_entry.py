"""A sign that individuals came under observation late, and that nobody said so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survscore._validation import DelayedEntryWarning, warn
from survscore.curves import SurvivalCurves
from survscore.engine.times import FEW_TIMES
from survscore.outcomes import Outcomes

#: So many events must be expected before the first one: by chance, there are none with probability exp(-8) = 0.0003.
FEWEST_EXPECTED = 8.0
#: Which share of the expected events is early, as nearly as predicted times allow, and how far the ratio of observed
#: to expected must fall short there.
EARLY, FURTHEST = 0.25, 0.1
LOWEST_RATIO = 0.85
LOWEST_Z = -3.0
MOST_ROWS, MOST_TIMES = 5_000, 100  # that are looked at: a few milliseconds for each model, however large the data
LATTICE = 1.5  # times the usual step between times of events: a first one so early is as early as rounding lets it be
SMALLEST_SURVIVAL = 1e-6  # whose logarithm counts


def warn_if_entry_is_late(y: Outcomes, models: Mapping[str, Any]) -> None:
    r"""Warn if all models expect events early that nobody had, as where entry is delayed and was not given.

    With :math:`H_i = -\log \pi_i`, a model expects :math:`E(t) = \sum_i H_i(\min(T_i, t))` events up to t, here
    multiplied by the ratio of all observed to all expected events: it is the shape that counts. Either 8 events are
    expected before the first one; or, among the first quarter of the expected events, observed/expected is below 0.85
    of what it is later, with z < -3.
    """
    in_memory = [curves for curves in models.values() if isinstance(curves, SurvivalCurves)]
    if y.competing or y.clock or not in_memory or len(in_memory) < len(models):
        return
    rows = slice(None, None, -(-len(y) // MOST_ROWS))
    some = y[rows].numpy()
    first = ""
    for curves in in_memory:
        sign = _sign(some, curves[rows].numpy())
        if not sign:  # most data: one model is enough
            return
        first = first or sign
    warn(
        f"entries may be delayed, or predicted risks come too early: {first}. Where individuals came under "
        "observation after the start of their clock, and those with an earlier event are not in the data, give "
        "Outcomes(entry=), or scores are biased",
        DelayedEntryWarning,
    )


def _sign(y: Outcomes, curves: SurvivalCurves) -> str:
    """Return what is missing early, in words; nothing where the numbers of events have the predicted shape."""
    grid = curves.times[curves.times > 0]
    times = np.sort(y.time[y.event & (y.time <= grid[-1])]) if grid.size else grid
    if times.size == 0:
        return ""
    # Between few predicted times nothing is known of the shape. Else it is looked at when events happened: where times
    # were rounded up, there are none in between.
    distinct = np.unique(times)
    looked_at = grid if grid.size <= FEW_TIMES else distinct[_spread(distinct.size)]
    expected, n_events = _expected(y, curves, looked_at), times.size
    if not expected[-1] > 0:
        return ""
    scaled = expected * min(1.0, n_events / expected[-1])
    first = looked_at <= times[0] if looked_at is not grid else looked_at < times[0]
    step = np.median(np.diff(distinct)) if distinct.size > 1 else np.inf
    if first.any() and scaled[first][-1] >= FEWEST_EXPECTED and times[0] > LATTICE * step:
        return f"{scaled[first][-1]:.0f} events are expected before {times[0]:g}, and there are none"
    share = expected / expected[-1]
    place = int(np.argmin(np.abs(share - EARLY)))
    early, fraction = int(np.searchsorted(times, looked_at[place], side="right")), float(share[place])
    if abs(fraction - EARLY) > FURTHEST:  # predicted times are too few to tell
        return ""
    usual = n_events * fraction
    ratio = (early / fraction) / ((n_events - early) / (1 - fraction)) if early < n_events else np.inf
    z = (early - usual) / np.sqrt(usual * (1 - fraction))
    if ratio >= LOWEST_RATIO or z >= LOWEST_Z:
        return ""
    return f"{usual:.0f} of {n_events} events are expected by {looked_at[place]:g}, and there are {early}"


def _spread(n: int) -> NDArray[np.intp]:
    """Return positions that are spread over so many, the first and the last among them."""
    return np.unique(np.linspace(0, n - 1, MOST_TIMES).round().astype(np.intp))


def _expected(y: Outcomes, curves: SurvivalCurves, grid: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how many events are expected up to each time, of those who are still followed."""
    at_start = _hazard(curves.at([0.0]))  # what is predicted for time 0 itself is no shape
    at_end = _hazard(curves.at_own(np.minimum(y.time, grid[-1]))) - at_start[:, 0]
    order = np.argsort(y.time)
    left = np.concatenate([[0.0], np.cumsum(at_end[order])])[np.searchsorted(y.time[order], grid, side="left")]
    staying = y.time[:, None] >= grid
    expected: NDArray[np.float64] = left + ((_hazard(curves.at(grid)) - at_start) * staying).sum(axis=0)
    return expected


def _hazard(survival: Any) -> NDArray[np.float64]:
    """Return the cumulative hazard."""
    hazard: NDArray[np.float64] = -np.log(np.maximum(np.asarray(survival, dtype=np.float64), SMALLEST_SURVIVAL))
    return hazard
