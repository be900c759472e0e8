"""Reports on several causes of events: one after the other, and the curves of individuals of all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from survscore.engine.inputs import check_outcomes, of_cause
from survscore.incidence import IncidenceCurves
from survscore.outcomes import Outcomes
from survscore.reports.single_curves import single_curves


def causes_shown(y: Any, models: Mapping[str, Any], cause: Any) -> tuple[str, ...]:
    """Return the causes to report on one after the other; nothing where there is one, or one was chosen.

    All causes, if all models predict several: predictions of one cause need to be told which one it is.
    """
    check_outcomes(y, entry=True)
    chosen = cause is not None or bool(y.interest) or not y.causes
    return () if chosen or not incidences_of(models) else tuple(y.causes)


def incidences_of(models: Mapping[str, Any]) -> dict[str, IncidenceCurves]:
    """Return the models, if all of them predict several causes; nothing otherwise."""
    several = [isinstance(curves, IncidenceCurves) and len(curves.causes) > 1 for curves in models.values()]
    return dict(models) if all(several) else {}


def single_incidences(
    y: Outcomes, models: Mapping[str, Any], part: dict[str, Any], n_curves: int, ids: Sequence[Any] | None
) -> dict[str, Any]:
    """Return the incidences of some individuals, up to the last time of the report on a cause."""
    y, named = of_cause(y, models, y.causes[0])
    times = np.array(part["data"]["remaining"]["time"])
    return single_curves(y, named, times, n_curves, ids, incidences_of(models))


def joined(parts: Sequence[dict[str, Any]], curves: dict[str, Any]) -> dict[str, Any]:
    """Return the summaries of several causes as one; what they share is there once."""
    shared = ("survscore", "title", "models", "null_model", "unit", "level")
    first = parts[0]
    return {**{name: first[name] for name in shared}, "data": first["data"], "causes": list(parts), "curves": curves}
