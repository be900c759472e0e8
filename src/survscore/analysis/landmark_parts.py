"""Everything that is scored at one landmark: who is at risk, what happened to them afterwards, what was predicted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from survscore._utils import arrays
from survscore._validation import InputError, as_array, check_choice, check_length, plural, shown
from survscore.analysis.landmark_curves import (
    GIVEN,
    Landmark,
    LandmarkCurves,
    MadeAt,
    Rows,
    as_landmark,
    landmark_label,
)
from survscore.curves import SurvivalCurves
from survscore.inference.units import SampleWeights, coded
from survscore.outcomes import Outcomes
from survscore.weighting import Administrative, Weighting

Missing = Literal["raise", "drop"]
Times = NDArray[np.float64]
ANEW = "weights are made anew at each landmark, of those at risk"


@dataclass(frozen=True, eq=False)
class LandmarkPart:
    """Those at risk at one landmark."""

    landmark: Landmark
    #: Positions in the outcomes that were given.
    rows: Rows
    #: Who they are: numbers from 0 on, the same at all landmarks.
    individuals: NDArray[np.int32]
    y: Outcomes
    #: With time counted from the landmark.
    models: dict[str, Any]
    #: How many were at risk, and left out since some model has no prediction for them.
    n_left_out: int = 0

    @property
    def label(self) -> str:
        """What it is called in tables."""
        return landmark_label(self.landmark)

    def with_weight(self) -> LandmarkPart:
        """Return those whose sample weight is not zero."""
        weights = self.y.weights
        if weights is None or bool((weights > 0).all()):
            return self
        kept = np.flatnonzero(arrays.to_host(weights))
        if not kept.size:
            raise InputError(f"landmark {self.label}: weights of all individuals at risk are zero")
        models = {name: curves[kept] for name, curves in self.models.items()}
        rows, individuals = self.rows[kept], self.individuals[kept]
        return replace(self, rows=rows, individuals=individuals, y=self.y[kept], models=models)


def parts_of(
    y: Outcomes, models: Mapping[str, Any], landmarks: Any, horizons: Times, missing: Missing
) -> list[LandmarkPart]:
    """Return who is at risk at each landmark, of outcomes and predictions with one row for each individual."""
    check_choice("missing", missing, ("raise", "drop"))
    made = {name: given for name, given in models.items() if isinstance(given, LandmarkCurves)}
    for name, given in models.items():
        if name not in made:
            if not isinstance(given, GIVEN):
                raise InputError(
                    f"the curves of {name!r} must be SurvivalCurves, or LandmarkCurves, not {type(given).__name__}"
                )
            check_length(f"the curves of {name!r}", len(given), "y", len(y))
    wanted = _landmarks(landmarks, made)
    return [_part(y, models, landmark, horizons, missing) for landmark in wanted]


def _landmarks(given: Any, made: Mapping[str, LandmarkCurves]) -> list[Landmark]:
    """Return the landmarks: those asked for, or those at which predictions were made."""
    if given is None:
        if not made:
            raise InputError("landmarks are needed: at which times predictions are scored")
        wanted = list(next(iter(made.values())).landmarks)
    else:
        values = [given] if isinstance(given, str) or not hasattr(given, "__len__") else list(given)
        wanted = [as_landmark(value) for value in values]
        if not wanted:
            raise InputError("landmarks is empty")
        if len(set(wanted)) < len(wanted):
            raise InputError("landmarks must be different; for stacked rows, one landmark for each, give id=, too")
    for name, curves in made.items():
        absent = [landmark for landmark in wanted if landmark not in curves.made]
        if absent:
            raise InputError(
                f"the curves of {name!r} have no predictions made at landmark {landmark_label(absent[0])}; they have "
                f"{shown(', '.join(map(landmark_label, curves.landmarks)))}"
            )
    if len({type(landmark) for landmark in wanted}) > 1:
        raise InputError("landmarks must be all times, or all dates")
    return sorted(wanted)


def ages_at(y: Outcomes, landmark: Landmark) -> Times:
    """Return how old each individual is at a landmark; NaN for those who have not started by then."""
    if isinstance(landmark, float):
        return np.array([landmark])
    if y.dates is None or y.dates.since_entry:
        raise InputError("landmarks are dates, and y has none: make it by Outcomes.from_dates, or give ages")
    from survscore._utils.dates import ages_on

    return ages_on(y.dates, landmark)


def _part(
    y: Outcomes, models: Mapping[str, Any], landmark: Landmark, horizons: Times, missing: Missing
) -> LandmarkPart:
    label, ages = landmark_label(landmark), ages_at(y, landmark)
    try:
        at_risk, _ = y.at_landmark(ages)
    except InputError as error:
        raise InputError(f"landmark {label}: {error}") from None
    rows, named = at_risk, [name for name, given in models.items() if isinstance(given, LandmarkCurves)]
    for name in named:
        places = models[name].made[landmark].rows
        if places.max(initial=0) >= len(y):
            raise InputError(
                f"the curves of {name!r} are for an individual at position {places.max()}, and y has {len(y)}"
            )
        absent = np.setdiff1d(at_risk, places)
        if absent.size and missing == "raise":
            raise InputError(
                f"the curves of {name!r} have no prediction at landmark {label} for "
                f"{plural(absent.size, 'individual')} of {at_risk.size} at risk, the first at position {absent[0]}; "
                "missing='drop' leaves them out"
            )
        rows = np.intersect1d(rows, places)
    if not rows.size:
        raise InputError(f"landmark {label}: no individual at risk has predictions of all models")
    own = np.full(len(y), np.nan)
    own[rows] = ages[rows] if ages.size > 1 else ages[0]
    later = y.at_landmark(own).outcomes
    curves = {}
    for name, given in models.items():
        try:
            curves[name] = _at(given, landmark, rows, own[rows], horizons, later, several=ages.size > 1)
        except InputError as error:
            raise InputError(f"landmark {label}, {name!r}: {error}") from None
    return LandmarkPart(landmark, rows, rows.astype(np.int32), later, curves, int(at_risk.size - rows.size))


def _at(given: Any, landmark: Landmark, rows: Rows, ages: Times, horizons: Times, y: Outcomes, *, several: bool) -> Any:
    """Return what a model predicts for those at risk, with time counted from the landmark."""
    if isinstance(given, LandmarkCurves):
        made: MadeAt = given.made[landmark]
        order = np.argsort(made.rows)
        return made.curves[order[np.searchsorted(made.rows[order], rows)]]
    if y.causes and isinstance(given, SurvivalCurves) and (ages > 0).any():
        raise InputError(
            "curves of one cause from the start do not say what is predicted for those event-free at a landmark: "
            "give IncidenceCurves of all causes, or LandmarkCurves"
        )
    if not several:
        return given[rows].conditional_on(ages[0])
    reach = np.inf if given.extrapolation == "hold" else given.times[-1] - ages.max()
    within = horizons[horizons <= reach]
    if not within.size:
        raise InputError(f"the curves end {reach:g} after the landmark, before the first horizon")
    return given[rows].conditional_on(ages, times=within)


def stacked_parts(y: Outcomes, models: Mapping[str, Any], landmarks: Any, id: Any) -> list[LandmarkPart]:
    """Return the same of rows that are stacked: one for each individual and landmark, with times counted from there."""
    if landmarks is None:
        raise InputError("landmarks are needed: with id=, one for each row")
    codes, _ = coded(id, "id")
    check_length("id", codes.size, "y", len(y))
    given = as_array(landmarks, "landmarks")
    check_length("landmarks", given.size, "y", len(y))
    for name, curves in models.items():
        if not isinstance(curves, GIVEN):
            raise InputError(f"the curves of {name!r} must be SurvivalCurves where rows are stacked (id=)")
        check_length(f"the curves of {name!r}", len(curves), "y", len(y))
    import pandas as pd

    place, keys = pd.factorize(given, sort=True)
    if (place < 0).any():
        raise InputError(
            f"landmarks must be given for each row: the one at position {int(np.argmax(place < 0))} is missing"
        )
    pairs = place.astype(np.int64) * (int(codes.max()) + 1) + codes
    order = np.argsort(pairs, kind="stable")
    again = order[1:][pairs[order[1:]] == pairs[order[:-1]]]
    if again.size:
        first = int(again.min())
        raise InputError(
            f"every pair of id and landmark must be there once: {plural(again.size, 'row')} "
            f"{'repeats' if again.size == 1 else 'repeat'} one, the first at position {first} "
            f"(id {shown(as_array(id, 'id')[first])!r}, landmark {shown(given[first])})"
        )
    # those whose time is 0 were not at risk any more
    gone = arrays.to_host(y.time) <= 0
    if gone.any():
        raise InputError(
            f"stacked rows must be of those at risk, with times counted from their landmark: "
            f"{plural(int(gone.sum()), 'row')} ended at it (time 0), the first at position {int(np.argmax(gone))}"
        )
    parts = []
    for k, key in enumerate(keys):
        rows = np.flatnonzero(place == k)
        curves = {name: given_curves[rows] for name, given_curves in models.items()}
        parts.append(LandmarkPart(as_landmark(key), rows, codes[rows], y[rows], curves))
    return parts


def refuse_stacked(y: Outcomes, landmarks: Any) -> None:
    """Raise if rows look stacked, but nothing says which of them are of one individual."""
    if landmarks is None or isinstance(landmarks, str) or not hasattr(landmarks, "__len__"):
        return
    values = np.asarray(as_array(landmarks, "landmarks"))
    if values.size == len(y) and np.unique(values).size < values.size:
        raise InputError(
            "id is needed where there is one landmark for each row: rows of one individual depend on each other, and "
            "standard errors that take them as independent are too small (id=)"
        )


def check_weighting(weighting: Weighting) -> None:
    """Raise unless weights can be made of those at risk at a landmark, whose clock starts there."""
    fixed = isinstance(weighting, Administrative) and weighting.population is not None
    for outside in (*weighting.on_own_clock, *(["population"] if fixed else [])):
        raise InputError(f"weighting {weighting}: {outside} can't be given for landmarks: {ANEW}")


def individual_weights(parts: Sequence[LandmarkPart]) -> SampleWeights | None:
    """Return the sample weight of each individual, by its number; 0 of numbers that no one has. None without."""
    kind = parts[0].y.weight_kind
    if kind is None:
        return None
    values = np.zeros(1 + max(int(part.individuals.max()) for part in parts))
    for part in parts:
        own = arrays.to_host(part.y.weights)
        known = values[part.individuals]
        differs = np.flatnonzero((known > 0) & (known != own))
        if differs.size:
            first = differs[0]
            raise InputError(
                f"weights must be the same in all rows of an individual: at landmark {part.label}, those of "
                f"{differs.size} are not, the first at position {part.rows[first]} ({own[first]:g}, and "
                f"{known[first]:g} before)"
            )
        values[part.individuals] = own
    return SampleWeights(values, kind == "frequency")


def individuals_of(parts: Sequence[LandmarkPart]) -> int:
    """Return how many different individuals there are."""
    return _how_many(np.concatenate([part.individuals for part in parts]), parts)


def n_dropped_out_of(parts: Sequence[LandmarkPart]) -> int | None:
    """Return how many individuals dropped out."""
    if parts[0].y.censoring_time is None:
        return None
    return _how_many(np.concatenate([part.individuals[part.y.dropped_out] for part in parts]), parts)


def _how_many(individuals: NDArray[np.int32], parts: Sequence[LandmarkPart]) -> int:
    """Return how many different individuals these are, with frequency weights the sum of these."""
    different, sample = np.unique(individuals), individual_weights(parts)
    return int(different.size if sample is None or sample.counts is None else sample.counts[different].sum())
