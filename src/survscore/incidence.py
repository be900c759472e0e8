"""What was predicted under competing risks: cumulative incidences of each cause on a grid."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._utils import arrays
from survscore._utils.probabilities import ROUNDING, as_matrix, check_incidences
from survscore._validation import FloatArray, InputError, as_list, as_times, check_choice, plural, several
from survscore.causes import ALL_STATUSES, Cause, Causes, check_names
from survscore.curves import (
    AroundLandmark,
    ExtrapolationKind,
    Monotone,
    SurvivalCurves,
    check_columns,
    check_reading,
)
from survscore.interpolation import OnGrid

IncidenceInterpolation = Literal["linear", "step"]
First = Literal["event-free", "total-risk", "cause"]
FIRSTS = ("event-free", "total-risk", "cause")
AXES = ("individuals", "causes", "times")
#: What index 0 says may differ from what the causes say by so much: it is the meaning that is checked.
CLAIMED = 1e-3
WAYS = "first='event-free', first='total-risk' (the risk of any event), or first='cause'"
#: So many individuals are looked at before all are.
FIRST_LOOK = 64


@dataclass(frozen=True, eq=False, repr=False)
class IncidenceCurves(OnGrid):
    r"""Predicted cumulative incidences :math:`F_{ik}(t) = P(T^*_i \le t, \text{cause } k)` on a grid of times.

    That is, the probability of having had an event of cause `k` by `t`, where events of the other causes may come
    first. One minus the incidences of all causes is the probability of having had no event.

    Parameters
    ----------
    probabilities : array_like of shape (n, K, m), or mapping of cause to array_like of shape (n, m)
        One row per individual, in it one per cause, one column per time. Float32 and float64 arrays are used as they
        are, without a copy if rows are contiguous; torch tensors share their memory and stay on their device, as in
        `SurvivalCurves`. Those of a mapping are copied. Those of one cause may not decrease with time, and those of all
        causes may not sum to more than 1.
    times : array_like of shape (m,)
        The grid: strictly increasing, zero or later.
    causes : sequence of str, optional
        The names of the causes, in the order of the second axis, by default ``"1"``, ``"2"``, ... Not with a mapping,
        which has them.
    interpolation : {"linear", "step"}, optional
        How to read between grid points. ``"linear"``, as by default: incidences are linear there. ``"step"``: events
        happen at grid points only. Left of the first grid point all start from F(0) = 0. There is no
        ``"constant-hazard"``: between grid points, an incidence would depend on the hazards of all causes, so that the
        curve of one cause would have no meaning by itself. Such models predict on a finer grid instead.
    extrapolation : {"nan", "hold"}, default "nan"
        What is predicted after the last grid point: nothing, or the last value for ever.
    monotone : {"check", "keep", "enforce"}, default "check"
        Incidences can't fall with time. ``"check"`` refuses curves that do by more than rounding, ``"keep"`` takes them
        as they are, ``"enforce"`` replaces every value by the largest so far, in a copy. Sums are checked in any case.
    first : {"event-free", "total-risk", "cause"}, optional
        What index 0 of the axis of causes is, where it is not a cause: the probability of having had no event, or the
        risk of an event of any cause. The other indices are the causes, and index 0 is checked against them, to three
        digits, and left out. ``"cause"`` says that index 0 is a cause like the others. Without this, an axis with one
        more index than there are `causes` is refused.

    See Also
    --------
    SurvivalCurves : For events of one kind.

    Notes
    -----
    What other packages return goes in like this:

    ============================================= ================================== ====================
    from                                          probabilities                      first
    ============================================= ================================== ====================
    hazardous, ``predict_cumulative_incidence``   as it is                           ``"event-free"``
    pycox, ``cif = DeepHit.predict_cif(X)``       ``cif.transpose(2, 0, 1)``
    SurvivalEVAL, comprisk                        as it is
    scikit-survival, array of one group           ``array[None]``                    ``"total-risk"``
    lifelines, fitted ``AalenJohansenFitter``     ``{1: [fitter.predict(times)]}``
    a frame per cause, individuals in columns     ``{1: frame.to_numpy().T}``
    ============================================= ================================== ====================

    Examples
    --------
    >>> import survscore as ss
    >>> curves = ss.IncidenceCurves({"relapse": [[0.2, 0.4]], "death": [[0.1, 0.3]]}, times=[1, 3])
    >>> curves  # doctest: +NORMALIZE_WHITESPACE
    IncidenceCurves(1 individual, 2 causes ('relapse' and 'death'), 2 times from 1 to 3, interpolation='linear',
                    extrapolation='nan', float64)
    >>> curves.at([2])
    array([[[0.3],
            [0.2]]])
    >>> curves.for_cause("relapse").at([2])
    array([[0.7]])
    >>> curves.event_free().at([2])
    array([[0.5]])
    """

    probabilities: FloatArray
    times: NDArray[np.float64]
    #: The names of the causes, in the order of the second axis.
    causes: tuple[str, ...]
    interpolation: IncidenceInterpolation = "linear"
    extrapolation: ExtrapolationKind = "nan"
    #: Whether `interpolation` was left to the library.
    default_interpolation: bool = False

    def __init__(
        self,
        probabilities: ArrayLike | Mapping[str, ArrayLike],
        times: ArrayLike,
        *,
        causes: Sequence[str] | None = None,
        interpolation: IncidenceInterpolation | None = None,
        extrapolation: ExtrapolationKind = "nan",
        monotone: Monotone = "check",
        first: First | None = None,
    ) -> None:
        read = check_reading(interpolation, extrapolation, monotone)
        if read == "constant-hazard":
            raise InputError(
                "interpolation must be one of 'linear', 'step' for incidences: with constant hazards, that of one "
                "cause depends on the hazards of all. Predict on a finer grid instead"
            )
        grid = as_times(times)
        if isinstance(probabilities, Mapping):
            if causes is not None or first is not None:
                raise InputError("causes and first are for arrays: a mapping names its causes")
            names, array = tuple(map(str, probabilities)), _of_causes(probabilities, grid)
            check_names(names)
        else:
            array = as_matrix(probabilities, AXES)
            _check_times(array, grid)
            names, array = _causes_of(array, causes, first, grid)
        if monotone == "enforce":
            array = arrays.largest_so_far(array.reshape(-1, grid.size)).reshape(array.shape)
        check_incidences(array, grid, names, check_monotone=monotone == "check")
        self._set(
            array,
            times=grid,
            causes=names,
            interpolation=read,
            extrapolation=extrapolation,
            default_interpolation=interpolation is None,
        )

    def _check_alike(self, other: Self) -> None:
        super()._check_alike(other)
        if other.causes != self.causes:
            raise InputError(
                f"parts must be of the same causes: {_listed(self.causes)}, and not {_listed(other.causes)}"
            )

    # Predictions and properties

    def at(self, times: ArrayLike) -> FloatArray:
        """Return the incidences at `times`, shape (n, K, len(times)); NaN after the grid where `extrapolation` says so.

        A tensor, if the curves are held as one.

        Examples
        --------
        >>> import survscore as ss
        >>> ss.IncidenceCurves([[[0.2, 0.4], [0.1, 0.3]]], times=[1, 3]).at([0, 1, 5])
        array([[[0. , 0.2, nan],
                [0. , 0.1, nan]]])
        """
        n, n_causes, m = self.shape
        values = self._read(as_times(times), self.probabilities.reshape(n * n_causes, m), 0.0)
        return values.reshape(n, n_causes, -1)

    def for_cause(self, cause: Cause) -> SurvivalCurves:
        r"""Return the probabilities :math:`1 - F_{ik}(t)` of not having had an event of a cause, by name or number.

        These include individuals who had an event of another cause. They are read between grid points as the
        incidences are, and held in double precision.

        Examples
        --------
        >>> import survscore as ss
        >>> ss.IncidenceCurves([[[0.25, 0.5], [0.1, 0.3]]], times=[1, 3]).for_cause(1).probabilities
        array([[0.75, 0.5 ]])
        """
        number = Causes(self.causes).number(cause)
        if number == ALL_STATUSES:
            raise InputError("cause must be one cause, not 'all': event_free() is of all causes together")
        return self._survival(1.0 - arrays.as_float64(self.probabilities[:, number - 1]))

    def event_free(self) -> SurvivalCurves:
        r"""Return the probabilities :math:`1 - \sum_k F_{ik}(t)` of having had no event of any cause.

        Examples
        --------
        >>> import survscore as ss
        >>> ss.IncidenceCurves([[[0.25, 0.5], [0.25, 0.25]]], times=[1, 3]).event_free().probabilities
        array([[0.5 , 0.25]])
        """
        # rounding may have taken the sum above 1
        return self._survival((1.0 - arrays.sum_of_causes(self.probabilities)).clip(0.0))

    def conditional_on(self, s: ArrayLike, *, times: ArrayLike | None = None) -> Self:
        r"""Return what the curves predict for those event-free at `s`, with time counted from there.

        .. math:: F_k(u \mid s) = \frac{F_k(s + u) - F_k(s)}{1 - \sum_l F_l(s)}

        Parameters
        ----------
        s, times
            As for `SurvivalCurves.conditional_on`.

        Returns
        -------
        IncidenceCurves

        Examples
        --------
        >>> import survscore as ss
        >>> curves = ss.IncidenceCurves([[[0.25, 0.5], [0.25, 0.25]]], times=[1, 3])
        >>> curves.conditional_on(1).at([2])
        array([[[0.5],
                [0. ]]])
        """
        return self._conditional(self._around(s, times))

    def since_entry(self, entry: ArrayLike, times: ArrayLike) -> Self:
        """Return what the curves predict for those event-free at delayed entry; see `SurvivalCurves.since_entry`."""
        return self._conditional([one.observed_from_start() for one in self._around(entry, times)])

    def _around(self, s: ArrayLike, times: ArrayLike | None) -> list[AroundLandmark]:
        """Return the probabilities of no event, and of none of each cause, at a landmark and after it."""
        several = [self._survival(arrays.as_float64(1.0 - self.probabilities[:, k])) for k in range(self.shape[1])]
        return [curves.around(s, times) for curves in (self.event_free(), *several)]

    def _conditional(self, around: Sequence[AroundLandmark]) -> Self:
        """Return incidences after the landmark, of what `_around` returns."""
        free, *of_causes = around
        free.check(free.at > 0, "above 0 at the landmark, since these individuals are event-free then")
        causes = tuple((one.at[:, None] - one.later) / free.at[:, None] for one in of_causes)
        return self._with(arrays.namespace(free.at).stack(causes, 1).clip(0.0, 1.0), times=free.times)

    def _survival(self, probabilities: FloatArray) -> SurvivalCurves:
        return object.__new__(SurvivalCurves)._set(
            probabilities,
            times=self.times,
            interpolation=self.interpolation,
            extrapolation=self.extrapolation,
            default_interpolation=self.default_interpolation,
        )

    @property
    def shape(self) -> tuple[int, int, int]:
        """``(n, K, m)``."""
        n, n_causes, m = self.probabilities.shape
        return (n, n_causes, m)

    def __repr__(self) -> str:
        return (
            f"IncidenceCurves({plural(len(self), 'individual')}, {plural(len(self.causes), 'cause')} "
            f"({_listed(self.causes)}), {self._described()})"
        )


def _listed(causes: Sequence[str]) -> str:
    return several([repr(name) for name in causes])


def _of_causes(probabilities: Mapping[str, ArrayLike], times: NDArray[np.float64]) -> FloatArray:
    """Return the matrices of all causes as one array."""
    for cause, given in probabilities.items():
        if isinstance(given, OnGrid):
            raise InputError(
                f"probabilities of cause {str(cause)!r} must be a matrix of incidences, (individuals, times), not "
                f"{type(given).__name__}: of survival curves of one cause these are 1 - curves.probabilities"
            )
    names = {cause: f"probabilities of cause {str(cause)!r}" for cause in probabilities}
    matrices = {cause: as_matrix(matrix, name=names[cause]) for cause, matrix in probabilities.items()}
    if not matrices:
        raise InputError("probabilities is empty: name at least one cause")
    (one, first), *_ = matrices.items()
    for cause, matrix in matrices.items():
        check_columns(matrix, times, names[cause])
        if len(matrix) != len(first):
            raise InputError(f"{names[cause]} has {len(matrix)} rows, and those of cause {str(one)!r} {len(first)}")
        if arrays.device_of(matrix) != arrays.device_of(first):
            raise InputError(f"{names[cause]} must be in one place with those of cause {str(one)!r}")
    return arrays.namespace(first).stack(tuple(matrices.values()), 1)  # type: ignore[no-any-return]


def _check_times(array: FloatArray, times: NDArray[np.float64]) -> None:
    if array.shape[2] == times.size:
        return
    hint = "; transpose it" if times.size in array.shape else ""
    raise InputError(
        f"probabilities has {array.shape[2]} columns, but times has length {times.size} (axes are individuals, causes, "
        f"times, and this is of shape {tuple(array.shape)}{hint})"
    )


def _causes_of(
    array: FloatArray, causes: Sequence[str] | None, first: First | None, times: NDArray[np.float64]
) -> tuple[tuple[str, ...], FloatArray]:
    """Return the names of the causes, and the incidences of these alone."""
    if first is None:
        if causes is None:  # names given for each index say that each is a cause
            _check_unsaid(array)
    else:
        check_choice("first", first, FIRSTS)
        if first != "cause":
            _check_first(array, first, times)
            array = arrays.contiguous(array[:, 1:])
    found = array.shape[1]
    if isinstance(causes, str):
        raise InputError(f"causes must be a sequence of names, not {causes!r}")
    given = range(1, found + 1) if causes is None else as_list(causes, "causes", "a sequence of names")
    names = tuple(map(str, given))
    check_names(names)
    if len(names) != found:
        more = found == len(names) + 1 and first is None
        raise InputError(
            f"causes has {plural(len(names), 'name')}, and probabilities {found} along the axis of causes"
            f"{f'. Say what index 0 is: {WAYS}' if more else ''}"
        )
    return names, array


def _away(array: FloatArray, first: First) -> Any:
    """Return how far index 0 is from what it is said to be."""
    total = arrays.sum_of_causes(array[:, 1:])
    return abs(array[:, 0] - (1.0 - total if first == "event-free" else total))


def _check_unsaid(array: FloatArray) -> None:
    """Raise if index 0 looks like something else than a cause, and nothing was said.

    One of two causes is always their sum, if the other is zero; with more, that is no coincidence.
    """
    few = array[:FIRST_LOOK]
    falls = array.shape[1] > 1 and bool((few[:, 0, -1] < few[:, 0, 0]).any())
    if falls and bool((_away(few, "event-free") <= CLAIMED).all() and (_away(array, "event-free") <= CLAIMED).all()):
        raise InputError(f"index 0 falls with time, and is one minus the sum of the others. Say what it is: {WAYS}")
    sums = array.shape[1] > 2 and bool((few[:, 0] > 0).any()) and bool((_away(few, "total-risk") <= ROUNDING).all())
    if sums and bool((_away(array, "total-risk") <= ROUNDING).all()):
        raise InputError(f"index 0 is the sum of the others. Say what it is: {WAYS}")


def _check_first(array: FloatArray, first: First, times: NDArray[np.float64]) -> None:
    """Raise unless index 0 is what it is said to be."""
    if array.shape[1] < 2:
        raise InputError(f"first={first!r} says that index 0 is no cause, and there is no other index")
    away = arrays.to_host(_away(array, first))
    broken = ~(away <= CLAIMED)
    if not broken.any():
        return
    row, column = (int(place) for place in np.unravel_index(int(np.argmax(broken)), broken.shape))
    claim, other = {
        "event-free": ("one minus the sum of the causes", "total-risk"),
        "total-risk": ("the sum of the causes", "event-free"),
    }[first]
    value, *rest = (float(part) for part in arrays.to_host(arrays.as_float64(array[row, :, column])))
    count = int(np.count_nonzero(broken))
    fits = bool((_away(array, other) <= CLAIMED).all())  # type: ignore[arg-type]
    raise InputError(
        f"first={first!r} says that index 0 is {claim}: {plural(count, 'value')} {'is' if count == 1 else 'are'} not, "
        f"the first in row {row} at time {times[column]:g} ({value:.4g}, and the causes sum to {sum(rest):.4g}); "
        + (f"first={other!r} fits" if fits else "if the causes are right, pass these alone")
    )


#: What models predict, by name.
NamedCurves = Mapping[str, SurvivalCurves | IncidenceCurves] | Iterable[tuple[str, SurvivalCurves | IncidenceCurves]]
