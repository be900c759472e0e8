"""Predictions made at several landmarks, and who they are for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._utils.frames import as_frame
from survscore._validation import InputError, as_array, as_labels, check_length, plural, shown
from survscore.curves import ExtrapolationKind, InterpolationKind, Monotone, SurvivalCurves
from survscore.incidence import IncidenceCurves

Landmark = float | np.datetime64
Rows = NDArray[np.intp]
MOST_LANDMARKS = 200
GIVEN = (SurvivalCurves, IncidenceCurves)


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
        table = _columns(frame, {"id": id, "landmark": landmark, "horizon": horizon, "p": survival or event})
        places = _places(table.pop("id"), ids, id)
        keys, of_landmark = _landmarks_of(table["landmark"], landmark)
        horizons = np.asarray(as_array(table["horizon"], "horizon"), dtype=np.float64)
        if not (horizons > 0).all():
            raise InputError(f"column {horizon!r} must hold times after the landmark, above 0")
        probabilities = np.asarray(as_array(table["p"], "probabilities"), dtype=np.float64)
        read = {"extrapolation": extrapolation, "monotone": monotone}
        make: Any = SurvivalCurves if survival is not None else SurvivalCurves.from_event_probabilities
        curves, rows = {}, {}
        for k, key in enumerate(keys):
            chosen = np.flatnonzero(of_landmark == k)
            who, matrix, times = _matrix(
                places[chosen], horizons[chosen], probabilities[chosen], key, as_array(ids, "ids")
            )
            curves[key], rows[key] = make(matrix, times, interpolation=interpolation, **read), who
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


def _columns(frame: Any, named: Mapping[str, Any]) -> dict[str, Any]:
    """Return columns of a data frame."""
    table = as_frame(frame)
    if table is None:
        raise InputError(f"frame must be a data frame, not {type(frame).__name__}")
    found = {}
    for argument, column in named.items():
        if column not in table.columns:
            raise InputError(f"there is no column {column!r}; the columns are {table.columns}")
        if table[column].is_null().any():
            raise InputError(f"column {column!r} has {int(table[column].is_null().sum())} missing values")
        found[argument] = table[column].to_numpy()
    return found


def _places(given: Any, ids: ArrayLike, column: str) -> Rows:
    """Return the position of each row's individual."""
    import pandas as pd

    known = pd.Index(as_labels(ids, "ids"))
    if not known.is_unique:
        twice = known[known.duplicated()][0]
        raise InputError(f"ids must be those of different individuals: {shown(twice)!r} is there more than once")
    places = known.get_indexer(pd.Index(given))
    if (places < 0).any():
        first = int(np.argmax(places < 0))
        raise InputError(
            f"column {column!r} has {plural(int((places < 0).sum()), 'row')} of individuals who are not in ids, the "
            f"first {shown(given[first])!r} in row {first}"
        )
    return np.asarray(places, dtype=np.intp)


def _landmarks_of(values: Any, column: str) -> tuple[list[Any], Rows]:
    """Return the landmarks of a column, and which each row has."""
    import pandas as pd

    codes, keys = pd.factorize(as_array(values, "landmark"), sort=True)
    if len(keys) > MOST_LANDMARKS:
        raise InputError(
            f"column {column!r} has {len(keys)} different landmarks, and at most {MOST_LANDMARKS} are scored: at each "
            "of a few times, take each individual's latest prediction (see the guide to landmarks)"
        )
    return list(keys), codes.astype(np.intp)


def _matrix(
    places: Rows, horizons: NDArray[np.float64], values: NDArray[np.float64], landmark: Any, ids: NDArray[Any]
) -> tuple[Rows, NDArray[np.float64], NDArray[np.float64]]:
    """Return individuals, a matrix of their probabilities, and the horizons, of one landmark."""
    who, row = np.unique(places, return_inverse=True)
    times, column = np.unique(horizons, return_inverse=True)
    count = np.zeros((who.size, times.size), dtype=np.intp)
    np.add.at(count, (row, column), 1)
    for what, wrong in (("more than once", count > 1), ("not", count == 0)):
        if wrong.any():
            i, j = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
            cells = "individual and horizon" if what == "not" else "pair of id and landmark"
            raise InputError(
                f"at landmark {shown(landmark)} every {cells} must be there once: {int(wrong.sum())} "
                f"{'is' if wrong.sum() == 1 else 'are'} {what}, the first is id {shown(ids[who[i]])!r} at horizon "
                f"{times[j]:g}"
            )
    matrix = np.empty(count.shape)
    matrix[row, column] = values
    return who, matrix, times
