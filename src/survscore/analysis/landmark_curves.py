"""Predictions made at several landmarks, and all that is scored at one: who is at risk, and what happened to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._utils import arrays
from survscore._utils.frames import as_frame
from survscore._validation import InputError, as_array, as_labels, check_choice, check_length, plural, shown
from survscore.curves import ExtrapolationKind, InterpolationKind, Monotone, SurvivalCurves
from survscore.incidence import IncidenceCurves
from survscore.inference.units import SampleWeights, coded
from survscore.outcomes import Outcomes
from survscore.weighting import Administrative, Weighting

Landmark = float | np.datetime64
Missing = Literal["raise", "drop"]
Rows = NDArray[np.intp]
Times = NDArray[np.float64]
MOST_LANDMARKS = 200
GIVEN = (SurvivalCurves, IncidenceCurves)
ANEW = "weights are made anew at each landmark, of those at risk"


def as_landmark(value: Any) -> Landmark:
    """Return a landmark: an age, or a date."""
    if isinstance(value, (bool, np.bool_, np.timedelta64)):
        raise InputError(f"landmarks must be times or dates, not {value!r}")
    if isinstance(value, (int, float, np.number)):
        return float(value)
    from survscore._utils.dates import as_dates

    return np.asarray(as_dates([value], "landmarks").tz_localize(None).to_numpy())[0]  # type: ignore[no-any-return]


def landmark_label(landmark: Landmark) -> str:
    """Return what a landmark is called in a table."""
    if isinstance(landmark, float):
        return f"{landmark:g}"
    return str(landmark.astype("datetime64[s]")).replace("T00:00:00", "")


class MadeAt(NamedTuple):
    """What was predicted at one landmark: for whom, by position, and a curve for each of them."""

    rows: Rows
    curves: Any  # SurvivalCurves, or IncidenceCurves


@dataclass(frozen=True, eq=False, repr=False)
class LandmarkCurves:
    r"""Predictions made at several landmarks, with time counted from each: :math:`P(T^*_i > s + u \mid T^*_i > s)`.

    Parameters
    ----------
    curves : mapping of landmark to SurvivalCurves or IncidenceCurves
        Landmarks are times since the start (ages), or dates. The curves of each have one row for every individual.
    rows : mapping of landmark to array_like of int, optional
        For whom the rows are, where they are not for all: positions of these individuals in the outcomes.

    Examples
    --------
    >>> import survscore as ss
    >>> made = ss.LandmarkCurves(
    ...     {0: ss.SurvivalCurves([[0.9], [0.8]], [6]), 12: ss.SurvivalCurves([[0.95]], [6])}, rows={12: [1]}
    ... )
    >>> made
    LandmarkCurves(2 landmarks from 0 to 12, 3 predictions)
    """

    #: By landmark, in order of time.
    made: Mapping[Landmark, MadeAt]

    def __init__(self, curves: Mapping[Any, Any], rows: Mapping[Any, ArrayLike] | None = None) -> None:
        if not isinstance(curves, Mapping) or not curves:
            raise InputError("curves must map landmarks to SurvivalCurves")
        named = {} if rows is None else {as_landmark(key): value for key, value in rows.items()}
        made: dict[Landmark, MadeAt] = {}
        for key, given in curves.items():
            landmark = as_landmark(key)
            if not isinstance(given, GIVEN):
                raise InputError(f"curves at landmark {shown(key)} must be SurvivalCurves, not {type(given).__name__}")
            places = np.asarray(as_array(named[landmark], "rows") if landmark in named else np.arange(len(given)))
            if places.ndim != 1 or places.dtype.kind not in "iu" or (places < 0).any():
                raise InputError(f"rows at landmark {shown(key)} must be positions of individuals")
            check_length(f"rows at landmark {shown(key)}", places.size, "its curves", len(given))
            if np.unique(places).size < places.size:
                raise InputError(f"rows at landmark {shown(key)} must name each individual once")
            made[landmark] = MadeAt(places.astype(np.intp), given)
        if len({type(landmark) for landmark in made}) > 1:
            raise InputError("landmarks must be all times, or all dates")
        unknown = [key for key in named if key not in made]
        if unknown:
            raise InputError(f"rows are given for landmark {landmark_label(unknown[0])}, which has no curves")
        object.__setattr__(self, "made", {key: made[key] for key in sorted(made)})

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        ids: ArrayLike,
        *,
        id: str,
        landmark: str,
        horizon: str,
        survival: str | None = None,
        event: str | None = None,
        interpolation: InterpolationKind | None = None,
        extrapolation: ExtrapolationKind = "nan",
        monotone: Monotone = "check",
    ) -> Self:
        """Take a long table: one row for each individual, landmark and horizon.

        Parameters
        ----------
        frame : data frame
            Of any library that narwhals knows.
        ids : array_like of shape (n,)
            Who the individuals of the outcomes are, in their order.
        id, landmark, horizon : str
            The columns of the individual, of the time or date at which the prediction was made, and of how far ahead it
            looks: time since the landmark.
        survival, event : str, optional
            The column of the probability of being event-free at the horizon, or of the event by then: one of the two.
        interpolation, extrapolation, monotone
            As for `SurvivalCurves`.

        Returns
        -------
        LandmarkCurves

        Examples
        --------
        >>> import pandas as pd
        >>> import survscore as ss
        >>> frame = pd.DataFrame(
        ...     {"customer": ["a", "b", "b"], "age": [0, 0, 12], "months": [6, 6, 6], "churn": [0.1, 0.2, 0.05]}
        ... )
        >>> ss.LandmarkCurves.from_frame(
        ...     frame, ["a", "b"], id="customer", landmark="age", horizon="months", event="churn"
        ... )
        LandmarkCurves(2 landmarks from 0 to 12, 3 predictions)
        """
        if (survival is None) == (event is None):
            raise InputError("name one column of probabilities: survival=, or event=")
        places, keys, of_landmark, horizons, probabilities = _long_table(
            frame, ids, {"id": id, "landmark": landmark, "horizon": horizon, "p": survival or event}
        )
        make: Any = SurvivalCurves if survival is not None else SurvivalCurves.from_event_probabilities
        read: Any = {"interpolation": interpolation, "extrapolation": extrapolation, "monotone": monotone}
        curves, rows = {}, {}
        for k, key in enumerate(keys):
            chosen = of_landmark == k
            rows[key], row = np.unique(places[chosen], return_inverse=True)
            times, column = np.unique(horizons[chosen], return_inverse=True)
            count = np.zeros((rows[key].size, times.size), dtype=np.intp)
            np.add.at(count, (row, column), 1)
            _check_complete(key, count, as_labels(ids, "ids")[rows[key]], times)
            matrix = np.empty(count.shape)
            matrix[row, column] = probabilities[chosen]
            curves[key] = make(matrix, times, **read)
        return cls(curves, rows)

    @property
    def landmarks(self) -> tuple[Landmark, ...]:
        """In order of time."""
        return tuple(self.made)

    def __repr__(self) -> str:
        n = sum(part.rows.size for part in self.made.values())
        first, last = (landmark_label(self.landmarks[k]) for k in (0, -1))
        extent = f" from {first} to {last}" if len(self.made) > 1 else f" at {first}"
        return f"LandmarkCurves({plural(len(self.made), 'landmark')}{extent}, {plural(n, 'prediction')})"


def _long_table(
    frame: Any, ids: ArrayLike, named: Mapping[str, Any]
) -> tuple[Rows, list[Any], Rows, Times, NDArray[np.float64]]:
    """Return the columns of a long table: whose rows they are, all landmarks and that of each row, horizons, and p."""
    import pandas as pd

    table = as_frame(frame)
    if table is None:
        raise InputError(f"frame must be a data frame, not {type(frame).__name__}")
    for column in named.values():
        if column not in table.columns:
            raise InputError(f"there is no column {column!r}; the columns are {table.columns}")
        if table[column].is_null().any():
            raise InputError(f"column {column!r} has {int(table[column].is_null().sum())} missing values")
    given = table[named["id"]].to_numpy()
    known = pd.Index(as_labels(ids, "ids"))
    if not known.is_unique:
        twice = known[known.duplicated()][0]
        raise InputError(f"ids must be those of different individuals: {shown(twice)!r} is there more than once")
    places = np.asarray(known.get_indexer(pd.Index(given)), dtype=np.intp)
    if (places < 0).any():
        first = int(np.argmax(places < 0))
        raise InputError(
            f"column {named['id']!r} has {plural(int((places < 0).sum()), 'row')} of individuals who are not in ids, "
            f"the first {shown(given[first])!r} in row {first}"
        )
    codes, keys = pd.factorize(as_array(table[named["landmark"]].to_numpy(), "landmark"), sort=True)
    if len(keys) > MOST_LANDMARKS:
        raise InputError(
            f"column {named['landmark']!r} has {len(keys)} different landmarks, and at most {MOST_LANDMARKS} are "
            "scored: at each of a few times, take each individual's latest prediction (see the guide to landmarks)"
        )
    horizons, probabilities = (
        np.asarray(as_array(table[named[argument]].to_numpy(), name), dtype=np.float64)
        for argument, name in (("horizon", "horizon"), ("p", "probabilities"))
    )
    if not (horizons > 0).all():
        raise InputError(f"column {named['horizon']!r} must hold times after the landmark, above 0")
    return places, list(keys), codes.astype(np.intp), horizons, probabilities


def _check_complete(landmark: Any, count: NDArray[np.intp], ids: NDArray[Any], times: Times) -> None:
    """Raise unless each individual and horizon has one row at a landmark; `count` is how many they have."""
    for what, cells, wrong in (
        ("more than once", "pair of id and landmark", count > 1),
        ("not", "individual and horizon", count == 0),
    ):
        if wrong.any():
            i, j = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
            raise InputError(
                f"at landmark {shown(landmark)} every {cells} must be there once: {int(wrong.sum())} "
                f"{'is' if wrong.sum() == 1 else 'are'} {what}, the first is id {shown(ids[i])!r} at horizon "
                f"{times[j]:g}"
            )


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
    for name, given in models.items():
        if isinstance(given, GIVEN):
            check_length(f"the curves of {name!r}", len(given), "y", len(y))
        elif not isinstance(given, LandmarkCurves):
            raise InputError(
                f"the curves of {name!r} must be SurvivalCurves, or LandmarkCurves, not {type(given).__name__}"
            )
    wanted = _landmarks(landmarks, {name: made for name, made in models.items() if isinstance(made, LandmarkCurves)})
    return [_part(y, models, landmark, horizons, missing) for landmark in wanted]


def _landmarks(given: Any, made: Mapping[str, LandmarkCurves]) -> list[Landmark]:
    """Return the landmarks: those asked for, or those at which predictions were made."""
    if given is None:
        if not made:
            raise InputError("landmarks are needed: at which times predictions are scored")
        wanted = list(next(iter(made.values())).landmarks)
    else:
        several = not isinstance(given, str) and np.ndim(given) > 0
        values = list(given) if several else [given]
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


def _ages_at(y: Outcomes, landmark: Landmark) -> Times:
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
    label, ages = landmark_label(landmark), _ages_at(y, landmark)
    try:
        at_risk, _ = y.at_landmark(ages)
    except InputError as error:
        raise InputError(f"landmark {label}: {error}") from None
    rows = at_risk
    for name, given in models.items():
        if not isinstance(given, LandmarkCurves):
            continue
        places = given.made[landmark].rows
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


def how_many(individuals: Sequence[NDArray[np.int32]], sample: SampleWeights | None) -> int:
    """Return how many different individuals these are, with frequency weights the sum of these."""
    different = np.unique(np.concatenate(individuals))
    return int(different.size if sample is None or sample.counts is None else sample.counts[different].sum())
