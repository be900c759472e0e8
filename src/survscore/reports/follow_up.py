"""The data of a report: follow-up, who is lost, and who is counted when."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore.analysis.populations import counted_population
from survscore.curves import SurvivalCurves
from survscore.outcomes import Outcomes
from survscore.reports import verdicts
from survscore.reports.comparing import Table, plain
from survscore.weighting import Administrative, Weighting

QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


def follow_up(y: Outcomes, times: NDArray[np.float64], groups: ArrayLike | None) -> dict[str, Any]:
    """Describe follow-up: whom there is, how long, and how many are left at each time."""
    end = y.censoring_time
    columns = {"time": y.time, **({} if end is None else {"censoring_time": end})}
    quantiles: Table = {"quantile": list(QUANTILES)}
    for name, values in columns.items():
        quantiles[name] = [plain(value) for value in np.quantile(values, QUANTILES, method="inverted_cdf")]
    remaining: Table = {"time": times.tolist(), "under_observation": _at_least(y.time, times)}
    remaining["events"] = _by(y.time[y.event_of_interest], times)
    if y.interest > 0:
        remaining["other_events"] = _by(y.time[y.event & ~y.event_of_interest], times)
    if end is not None:
        remaining["censoring_time_at_least"] = _at_least(end, times)
    return {
        "n": len(y),
        **({"clock": y.clock} if y.clock else {}),
        "events": int(y.event.sum()),
        "causes": {"cause": list(y.n_by_cause), "events": list(y.n_by_cause.values())},
        "censoring_times_known": end is not None,
        "dropped_out": y.n_dropped_out,
        "groups": None if groups is None else len(set(np.asarray(groups).tolist())),
        "quantiles": quantiles,
        "remaining": remaining,
    }


def _by(values: NDArray[np.float64], times: NDArray[np.float64]) -> list[int]:
    """Return how many values are at most each of the times."""
    return [values.size - later for later in _at_least(values, times, strictly=True)]


def _at_least(values: NDArray[np.float64], times: NDArray[np.float64], *, strictly: bool = False) -> list[int]:
    """Return how many values are at least, or more than, each of the times."""
    ordered = np.sort(values)
    counts: list[int] = (values.size - np.searchsorted(ordered, times, side="right" if strictly else "left")).tolist()
    return counts


def for_whom(
    y: Outcomes, models: Mapping[str, SurvivalCurves], times: NDArray[np.float64], weighting: Weighting
) -> list[str]:
    """Say to whom the headline refers at the last time, and how they differ from all who started."""
    if not isinstance(weighting, Administrative) or weighting.population is not None:
        return []
    last = float(times[-1])
    horizon = min(last, *(float(curves.times[-1]) for curves in models.values()))
    table = counted_population(y, models, times=[0.0, last], horizon=horizon)
    share = float(table["share"].iloc[-1])
    if not 0 < share < 1:
        return []
    risks = []
    for model, column in zip(models, table.columns[3:], strict=True):
        of_all, of_counted = (verdicts.number(float(risk), 3) for risk in table[column])
        risks.append(f"{of_counted} by {model} (all individuals: {of_all})")
    return [
        f"At {verdicts.short(last)} the administrative score refers to the {100 * share:.0f} % with C* >= "
        f"{verdicts.short(last)}: their mean predicted risk by {verdicts.short(horizon)} is {'; '.join(risks)}."
    ]
