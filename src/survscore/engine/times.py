"""At which times scores are computed, where none were asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survscore._utils import arrays
from survscore._validation import InputError
from survscore.engine.blocks import Predictions
from survscore.outcomes import Outcomes

DEFAULT_STEPS = 100
DEFAULT_QUANTILE = 0.95
DEFAULT_NUMBER = 20
#: Models that predict at no more times than these are evaluated where they predict. Between m equidistant times, a
#: straight line misses a curve of constant hazard by up to (H / m)^2 / 8, with H the cumulative hazard at the last: for
#: H = 1 that is 0.008 with 4 times, which changes verdicts, and 0.0003 with 20, which does not.
FEW_TIMES = 20


def default_horizon(y: Outcomes, models: Mapping[str, Predictions]) -> NDArray[np.float64]:
    """Return the one time up to which histories are looked at: the median of follow-up, within the curves' reach.

    Half of the individuals could be followed so far; a later one would leave out more of them, an earlier one events.
    Of models that predict at few times, it is the last that they share up to then.
    """
    y = y.numpy()
    follow_up = y.time if y.censoring_time is None else y.censoring_time
    median = _in_order(follow_up, lambda n: int(0.5 * (n - 1)), y)
    median = median if np.isfinite(median) else float(y.time.max())
    end = min(median, _reach(models))
    shared = shared_times(models, end)
    return np.array([end]) if shared is None else shared[-1:]


def default_times(y: Outcomes, models: Mapping[str, Predictions]) -> NDArray[np.float64]:
    """Return the predicted times that models share where these are few, else equidistant times from 0.

    Up to where enough individuals are still followed, within the curves' reach: 5 %, and 20 or, of few, a quarter.
    Further out there are too few for an interval; name the times to get a score there.
    """
    follow_up: Any = y.time if y.censoring_time is None else y.censoring_time

    def place_of(n: int) -> int:
        return min(n - max(min(DEFAULT_NUMBER, n // 4), 1), int(DEFAULT_QUANTILE * (n - 1)))

    last = _in_order(follow_up, place_of, y)
    last = last if np.isfinite(last) else float(y.time.max())
    last = min(last, _reach(models))
    if last <= 0:
        return np.zeros(1)
    shared = shared_times(models, last)
    return np.linspace(0.0, last, DEFAULT_STEPS + 1) if shared is None else shared


def _in_order(values: Any, place_of: Callable[[int], int], y: Outcomes) -> float:
    """Return the value at a place in order, which depends on how many there are; frequency weights are counted."""
    if y.weight_kind == "frequency":
        order, weights = arrays.to_host(values.argsort()), arrays.to_host(y.weights)
        until = np.cumsum(weights[order])
        return float(values[order[int(np.searchsorted(until, place_of(int(until[-1])), side="right"))]])
    place = place_of(len(values))
    return float(values.kthvalue(place + 1).values if arrays.is_tensor(values) else np.partition(values, place)[place])


def _reach(models: Mapping[str, Predictions]) -> float:
    """Return the last time at which all models say something."""
    return min([np.inf, *(float(curves.times[-1]) for curves in models.values() if curves.extrapolation == "nan")])


def shared_times(models: Mapping[str, Predictions], end: float) -> NDArray[np.float64] | None:
    """Return the times up to `end` that all models with few predicted times share; None where all have many.

    Curves with many are read at these as well, which changes next to nothing. If the models share none up to `end`, it
    is the first after it; if they share none at all, None where all say how they are read between their times.
    """
    grids = {name: curves.times[curves.times > 0] for name, curves in models.items()}
    few = {name: own for name, own in grids.items() if 0 < own.size <= FEW_TIMES}
    if not few:  # of many times there may be few up to `end`
        within = [own[own <= end] for own in grids.values()]
        same = all(np.array_equal(own, within[0]) for own in within)
        return within[0] if within and same and 0 < within[0].size <= FEW_TIMES else None
    reach = _reach(models)
    shared = reduce(np.intersect1d, few.values())
    shared = shared[shared <= reach]
    if shared.size:
        return shared[shared <= end] if shared[0] <= end else shared[:1]
    if not any(models[name].default_interpolation for name in few):
        return None
    listed = "; ".join(f"{name!r} at {_listed(own)}" for name, own in few.items())
    raise InputError(
        f"models that predict at few times are compared at the times they share, and these share none"
        f"{f' up to {reach:g}' if np.isfinite(reach) else ''}: {listed}. Name the times (`times or horizons`), and "
        "say how to read between predicted times (`interpolation`)"
    )


def _listed(times: NDArray[np.float64], most: int = 6) -> str:
    listed = ", ".join(f"{time:g}" for time in times[:most])
    return listed if times.size <= most else f"{listed} and {times.size - most} more"
