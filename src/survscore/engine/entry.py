"""Delayed entry: outcomes and predictions with time counted from entry, which is what all scores are then of.

With entry a, time u = T - a, censoring time c = C* - a, and prediction pi(a + h) / pi(a), everyone is observed from the
start, so that every weighting, metric, standard error and null model applies as it is. Scores are proper for
P(T* > a + h | x, a, T* > a), also where the event time depends on the time of entry.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._utils import arrays
from survscore._validation import InputError, InterpolationWarning, UnfitError, as_times, check_length, plural, warn
from survscore.curves import SurvivalCurves
from survscore.engine.blocks import CurveBatches, PushedCurves
from survscore.engine.times import DEFAULT_STEPS, FEW_TIMES, default_times
from survscore.incidence import IncidenceCurves
from survscore.outcomes import SINCE_ENTRY, Outcomes

Times = NDArray[np.float64]


def from_entry(
    y: Outcomes, models: Mapping[str, Any], times: ArrayLike | None, *, whole: bool, caller: str
) -> tuple[Outcomes, dict[str, Any]]:
    """Return outcomes with time counted from entry, and what models predict for those event-free then.

    Predictions are made at `times`, by default those at which scores are computed unasked, and exactly there. Curves
    are also kept between them, unless not the `whole` is needed: at as many equidistant times as there are by default.
    """
    later = y.since_entry()
    if y.entry is None or bool((y.entry == 0).all()):
        return later, dict(models)
    later, entry = later.on_clock(SINCE_ENTRY), np.asarray(arrays.to_host(y.entry))
    for name, curves in models.items():
        check_after_entry(name, curves, y, caller)
        check_length(whose(name), len(curves), "y", len(y))
    grids = grids_after_entry(later, entry, models, times, whole=whole)
    return later, {name: after_entry(name, curves, entry, grids[name]) for name, curves in models.items()}


def grids_after_entry(
    later: Outcomes, entry: Times, models: Mapping[str, Any], times: ArrayLike | None, *, whole: bool
) -> dict[str, Times]:
    """Return at which times after entry predictions of each model are made; see `from_entry`."""
    reach = {name: _reach(name, curves, entry) for name, curves in models.items()}
    kept = {name: _base_grid(curves, later, reach[name]) for name, curves in models.items()}
    if times is None:
        read: Any = {
            name: SimpleNamespace(
                times=kept[name], extrapolation=curves.extrapolation, default_interpolation=curves.default_interpolation
            )
            for name, curves in models.items()
        }
        asked = default_times(later, read)
    else:
        asked = as_times(times)
    grids = {}
    for name, curves in models.items():
        grid = np.unique(np.minimum(asked, reach[name]))  # up to where predictions end, if that is before some time
        if whole or not grid.size:
            grid = np.union1d(kept[name], grid)
        _warn_if_coarse(name, curves, entry, grid)
        grids[name] = grid
    return grids


def after_entry(name: str, curves: Any, entry: Times, grid: Times) -> Any:
    """Return a model's predictions for those event-free at entry; those that come in batches are made as they come."""
    try:
        return _since_entry(curves, entry, grid)
    except InputError as error:
        raise InputError(f"{whose(name)}, given that individuals are event-free at entry: {error}") from None


@dataclass(frozen=True, eq=False)
class CurvesAfterEntry:
    """Predictions after delayed entry that are made only of the individuals who are looked at."""

    curves: SurvivalCurves
    entry: Times
    times: Times
    device: None = None

    def __getitem__(self, rows: Any) -> SurvivalCurves:
        return self.curves[rows].since_entry(self.entry[rows], self.times)


def looked_at_after_entry(y: Outcomes, models: Mapping[str, Any], times: ArrayLike) -> dict[str, CurvesAfterEntry]:
    """Return whole curves after entry, as `from_entry` does, for checks that look at a few individuals."""
    later, entry, found = y.since_entry(), np.asarray(arrays.to_host(y.entry)), {}
    for name, curves in models.items():
        if isinstance(curves, SurvivalCurves) and curves.device is None:
            reach = _reach(name, curves, entry)
            grid = np.union1d(_base_grid(curves, later, reach), np.minimum(as_times(times), reach))
            found[name] = CurvesAfterEntry(curves, entry, grid)
    return found


def whose(name: str) -> str:
    """Return what predictions are called in messages."""
    return "the curves" if name == "curves" else f"the curves of {name!r}"


def check_after_entry(name: str, curves: Any, y: Outcomes, caller: str) -> None:
    """Raise unless conditional predictions can be made of what was given."""
    if curves is None or isinstance(curves, PushedCurves):
        raise UnfitError(
            f"{caller} does not count time from entry: pass y.since_entry(), and of each batch "
            "curves.conditional_on(entry, times=...) of its individuals"
        )
    if not isinstance(curves, (SurvivalCurves, IncidenceCurves, CurveBatches)):
        raise InputError(f"{whose(name)} must be SurvivalCurves or IncidenceCurves, not {type(curves).__name__}")
    first = curves.first if isinstance(curves, CurveBatches) else curves
    if len(y.causes) > 1 and len(getattr(first, "causes", ())) < len(y.causes):
        raise InputError(
            f"{whose(name)} must be IncidenceCurves of all {len(y.causes)} causes: with delayed entry, those of one "
            "cause do not tell what is predicted for individuals who are event-free at entry"
        )


def _reach(name: str, curves: Any, entry: Times) -> float:
    """Return how long after entry predictions reach for everyone."""
    if curves.extrapolation == "hold":
        return np.inf
    end, last = float(curves.times[-1]), float(entry.max())
    if last >= end:
        beyond = entry >= end
        raise InputError(
            f"{whose(name)} must reach beyond entry: they end at {end:g}, and "
            f"{plural(int(beyond.sum()), 'individual')} of {entry.size} entered then or later, the first at position "
            f"{int(np.argmax(beyond))} ({entry[np.argmax(beyond)]:g}); leave them out, or predict further"
        )
    return end - last


def _base_grid(curves: Any, later: Outcomes, reach: float) -> Times:
    """Return where predictions after entry are kept beside the evaluation times.

    Where models predict at few times, at these, if they reach any: a classifier's horizons remain what they were.
    """
    own = curves.times[curves.times > 0]
    within = own[own <= reach]
    if own.size <= FEW_TIMES and within.size:
        return np.asarray(within)
    follow_up = arrays.to_host(later.time if later.censoring_time is None else later.censoring_time)
    last = float(follow_up.max())
    last = min(last if np.isfinite(last) else float(later.time.max()), reach)
    return np.linspace(0.0, last, max(min(DEFAULT_STEPS, own.size), 1) + 1)[1:]


def _warn_if_coarse(name: str, curves: Any, entry: Times, grid: Times) -> None:
    """Warn where predictions at few times are read between them, and the user did not choose how."""
    own = curves.times[curves.times > 0]
    if not curves.default_interpolation or not 0 < own.size <= FEW_TIMES:
        return
    start = np.unique(entry)
    known = np.isin(start[start > 0], own).all() and np.isin(np.unique(start[:, None] + grid), own).all()
    if not known:
        who = "the predictions are" if name == "curves" else f"the predictions of {name!r} are"
        warn(
            f"{who} at {plural(own.size, 'time')} ({own[0]:g} to {own[-1]:g}), and with delayed entry they are read at "
            "each individual's entry and after it, between these by straight lines that start from S(0) = 1. Say how "
            "to read between predicted times (`interpolation`)",
            InterpolationWarning,
        )


def _since_entry(curves: Any, entry: Times, grid: Times) -> Any:
    """Return conditional predictions; those that come in batches are made as they come."""
    if not isinstance(curves, CurveBatches):
        return curves.since_entry(entry, grid)

    def made() -> Iterator[Any]:
        start = 0
        for batch in curves:
            yield batch.since_entry(entry[start : start + len(batch)], grid)
            start += len(batch)

    return CurveBatches(made, curves.n)
