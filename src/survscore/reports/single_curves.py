"""The curves of some individuals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survscore.curves import SurvivalCurves
from survscore.outcomes import Outcomes
from survscore.reports.comparing import Table, plain

MOST_CURVE_POINTS = 200


def single_curves(
    y: Outcomes,
    models: Mapping[str, SurvivalCurves],
    times: NDArray[np.float64],
    n_curves: int,
    ids: Sequence[Any] | None,
) -> dict[str, Any]:
    """Return the curves of some individuals, spread evenly over the order of follow-up."""
    by = y.time if y.censoring_time is None else y.censoring_time
    ranks = np.unique(((np.arange(n_curves) + 0.5) / max(n_curves, 1) * len(y)).astype(np.intp))
    rows = np.argsort(by, kind="stable")[ranks]
    last = max(float(times[-1]), float(y.time[rows].max(initial=0.0)))
    people: Table = {"individual": [], "time": [], "event": [], "censoring_time": []}
    drawn: Table = {"individual": [], "model": [], "time": [], "survival": []}
    names = [str(row if ids is None else ids[row]) for row in rows.tolist()]
    for row, name in zip(rows.tolist(), names, strict=True):
        label = name if names.count(name) == 1 else f"{name} (row {row})"
        while label in people["individual"]:  # whatever others are called
            label += "'"
        people["individual"].append(label)
        people["time"].append(float(y.time[row]))
        people["event"].append(bool(y.event[row]))
        people["censoring_time"].append(None if y.censoring_time is None else plain(float(y.censoring_time[row])))
        for model, curves in models.items():
            grid = _drawn_times(curves, last)
            drawn["individual"] += [label] * grid.size
            drawn["model"] += [model] * grid.size
            drawn["time"] += grid.tolist()
            drawn["survival"] += [plain(value) for value in curves[row].at(grid)[0].tolist()]
    return {"people": people, "curves": drawn}


def _drawn_times(curves: SurvivalCurves, last: float) -> NDArray[np.float64]:
    """Return the times at which to draw a curve: its own, if they are not too many."""
    own = curves.times[curves.times <= last]
    end = min(last, float(curves.times[-1]))
    return np.union1d([0.0, end], own) if own.size <= MOST_CURVE_POINTS else np.linspace(0.0, end, MOST_CURVE_POINTS)
