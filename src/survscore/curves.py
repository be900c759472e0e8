"""What was predicted: survival curves on a grid, and how they are read between its points."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._config import config
from survscore._utils import arrays
from survscore._utils.parallel import each, row_blocks
from survscore._utils.probabilities import (
    HAZARDS,
    ROUNDING,
    as_matrix,
    check_probabilities,
    has_bad_probabilities,
    looks_like_masses,
    survival_of_hazards,
    survival_of_masses,
    survival_of_quantiles,
)
from survscore._validation import (
    FloatArray,
    InputError,
    as_array,
    as_list,
    as_times,
    as_vector,
    check_choice,
    check_length,
    plural,
    warn,
)
from survscore.interpolation import OnGrid, blend, of_step_functions

InterpolationKind = Literal["linear", "step", "constant-hazard"]
ExtrapolationKind = Literal["nan", "hold"]
Monotone = Literal["check", "keep", "enforce"]
Predicts = Literal["survival", "event"]
Hazards = Literal["probability", "rate", "cumulative"]
INTERPOLATIONS = ("linear", "step", "constant-hazard")
EXTRAPOLATIONS = ("nan", "hold")
MONOTONE = ("check", "keep", "enforce")
PREDICTS = ("survival", "event")


def check_reading(interpolation: Any, extrapolation: Any, monotone: Any) -> InterpolationKind:
    """Return the interpolation, linear if none was given, or raise if one of these is not a choice."""
    read: InterpolationKind = "linear" if interpolation is None else interpolation
    check_choice("interpolation", read, INTERPOLATIONS)
    check_choice("extrapolation", extrapolation, EXTRAPOLATIONS)
    check_choice("monotone", monotone, MONOTONE)
    return read


def check_columns(matrix: FloatArray, times: NDArray[np.float64], name: str = "probabilities") -> None:
    """Raise unless a matrix has one column per time."""
    if matrix.shape[1] != times.size:
        hint = "; it looks transposed" if matrix.shape[0] == times.size else ""
        raise InputError(
            f"{name} has {matrix.shape[1]} columns, but times has length {times.size} "
            f"(rows are individuals, columns are times{hint})"
        )


class AroundLandmark(NamedTuple):
    """Survival at a landmark and after it, individual by individual."""

    landmark: NDArray[np.float64]
    #: Shape (n,).
    at: NDArray[np.float64]
    #: Shape (n, times).
    later: NDArray[np.float64]
    #: Counted from the landmark.
    times: NDArray[np.float64]

    def observed_from_start(self) -> AroundLandmark:
        """Return the same where landmark 0 stands for no landmark: those who are followed from there may end then."""
        started = arrays.beside(np.broadcast_to(self.landmark > 0, len(self.at)), self.at)
        return self._replace(at=arrays.where(started, self.at, 1.0))

    def check(self, kept: NDArray[np.bool_], rule: str) -> None:
        """Raise unless a rule is kept for all individuals."""
        broken = ~kept
        count = arrays.count_true(broken)
        if not count:
            return
        first = arrays.first_true(broken)
        where = self.landmark[first if self.landmark.size > 1 else 0]
        raise InputError(
            f"survival must be {rule}: that of {plural(count, 'individual')} of {len(broken)} is not, the first at "
            f"position {first} (landmark {where:g}, survival {float(self.at[first]):g})"
        )


@dataclass(frozen=True, eq=False, repr=False)
class SurvivalCurves(OnGrid):
    r"""Predicted survival probabilities :math:`\pi_i(t) = P(T^*_i > t)` on a grid of times.

    Parameters
    ----------
    probabilities : array_like of shape (n, m)
        One row per individual, one column per time. Float32 and float64 are used as they are, without
        a copy if rows are contiguous; torch tensors share their memory too. Tensors on a CUDA device (also CuPy's and
        JAX's arrays, by DLPack) stay there, half precision included, and are scored there; see `to` and `numpy`.
        Probabilities of the event go to `from_event_probabilities`.
    times : array_like of shape (m,)
        The grid: strictly increasing, zero or later.
    interpolation : {"linear", "step", "constant-hazard"}, optional
        How to read between grid points. ``"linear"``, as by default: survival is linear there, that is, the density is
        constant. ``"step"``: survival falls at grid points only. ``"constant-hazard"``: the logarithm of
        survival is linear. Left of the first grid point all start from S(0) = 1. If it is not given, scores between the
        points of a grid of at most 20 times come with an `InterpolationWarning`.
    extrapolation : {"nan", "hold"}, default "nan"
        What is predicted after the last grid point: nothing, or the last value for ever.
    monotone : {"check", "keep", "enforce"}, default "check"
        Survival can't rise with time. ``"check"`` refuses curves that do by more than rounding (four units
        in the last place of the number type); ``"keep"`` takes them as they are, for example from a net with one
        classifier per time; ``"enforce"`` replaces every value by the smallest so far, in a copy.

    Examples
    --------
    >>> import survscore as ss
    >>> curves = ss.SurvivalCurves([[0.8, 0.4], [0.9, 0.9]], times=[1, 3])
    >>> curves.at([0.5, 2, 3])
    array([[0.9 , 0.6 , 0.4 ],
           [0.95, 0.9 , 0.9 ]])
    >>> curves
    SurvivalCurves(2 individuals, 2 times from 1 to 3, interpolation='linear', extrapolation='nan', float64)
    """

    probabilities: FloatArray
    times: NDArray[np.float64]
    interpolation: InterpolationKind = "linear"
    extrapolation: ExtrapolationKind = "nan"
    #: Whether `interpolation` was left to the library.
    default_interpolation: bool = False

    def __init__(
        self,
        probabilities: ArrayLike,
        times: ArrayLike,
        *,
        interpolation: InterpolationKind | None = None,
        extrapolation: ExtrapolationKind = "nan",
        monotone: Monotone = "check",
    ) -> None:
        self._take(probabilities, times, interpolation, extrapolation, monotone, "survival")

    # Other ways in

    @classmethod
    def from_event_probabilities(
        cls,
        probabilities: ArrayLike,
        times: ArrayLike,
        *,
        interpolation: InterpolationKind | None = None,
        extrapolation: ExtrapolationKind = "nan",
        monotone: Monotone = "check",
    ) -> Self:
        r"""Take probabilities that the event has happened, :math:`P(T^*_i \le t) = 1 - \pi_i(t)`.

        That is what classifiers give, one per time, and cumulative incidence. At a single time, the numbers alone do
        not distinguish them from survival probabilities: if one is passed as the other, the opposite of what was
        predicted is scored.

        Parameters
        ----------
        probabilities : array_like of shape (n, m)
            One row per individual, one column per time. Survival is kept in double precision, also if these are not:
            float32 has room for a small probability of the event, and not for one minus it.
        times, interpolation, extrapolation
            As for `SurvivalCurves`.
        monotone : {"check", "keep", "enforce"}, default "check"
            The probability that the event has happened can't fall with time. ``"check"`` refuses those that do by more
            than rounding, ``"keep"`` takes them as they are, ``"enforce"`` replaces every value by the largest so far.

        Returns
        -------
        SurvivalCurves

        Examples
        --------
        >>> import survscore as ss
        >>> ss.SurvivalCurves.from_event_probabilities([[0.25, 0.5]], times=[1, 3]).probabilities
        array([[0.75, 0.5 ]])
        """
        return object.__new__(cls)._take(probabilities, times, interpolation, extrapolation, monotone, "event")

    @classmethod
    def from_pmf(
        cls,
        masses: ArrayLike,
        times: ArrayLike,
        *,
        interpolation: InterpolationKind | None = None,
        extrapolation: ExtrapolationKind = "nan",
    ) -> Self:
        r"""Take probability masses: in column j the probability of an event after time j - 1 and up to time j.

        That is what networks with a softmax over intervals give (DeepHit, N-MTLR). Survival is
        :math:`\pi(t_j) = 1 - \sum_{k \le j} p_k`.

        Parameters
        ----------
        masses : array_like of shape (n, m) or (n, m + 1)
            One row per individual, each summing to at most 1. One more column than there are times is the probability
            of an event after the last, or of none.
        times : array_like of shape (m,)
            Where the intervals end; the first begins at 0.
        interpolation, extrapolation
            As for `SurvivalCurves`.

        Returns
        -------
        SurvivalCurves

        Examples
        --------
        >>> import survscore as ss
        >>> ss.SurvivalCurves.from_pmf([[0.125, 0.25, 0.5]], times=[1, 2, 3]).probabilities
        array([[0.875, 0.625, 0.125]])
        """
        grid = as_times(times)
        return cls(
            survival_of_masses(masses, grid.size), grid, interpolation=interpolation, extrapolation=extrapolation
        )

    @classmethod
    def from_hazards(
        cls,
        hazards: ArrayLike,
        times: ArrayLike,
        *,
        interpolation: InterpolationKind | None = None,
        kind: Hazards = "probability",
        extrapolation: ExtrapolationKind = "nan",
    ) -> Self:
        r"""Take hazards of the intervals that end at `times`, the first of which begins at 0.

        Parameters
        ----------
        hazards : array_like of shape (n, m)
            One row per individual, one column per interval.
        times : array_like of shape (m,)
            Where the intervals end.
        interpolation : {"linear", "step", "constant-hazard"}, optional
            As for `SurvivalCurves`; of rates ``"constant-hazard"``, which is what they are.
        kind : {"probability", "rate", "cumulative"}, default "probability"
            ``"probability"``: of an event in the interval, given that there was none before,
            :math:`\pi(t_j) = \prod_{k \le j} (1 - h_k)`, as in discrete time. ``"rate"``: per unit of time,
            :math:`\pi(t_j) = \exp(-\sum_{k \le j} h_k (t_k - t_{k-1}))`. ``"cumulative"``: the cumulative hazard at
            each time, :math:`\pi(t_j) = \exp(-H_j)`.
        extrapolation : {"nan", "hold"}, default "nan"
            As for `SurvivalCurves`.

        Returns
        -------
        SurvivalCurves

        Examples
        --------
        >>> import survscore as ss
        >>> ss.SurvivalCurves.from_hazards([[0.5, 0.25]], times=[1, 3]).probabilities
        array([[0.5  , 0.375]])
        >>> ss.SurvivalCurves.from_hazards([[0.1, 0.2]], times=[1, 3], kind="rate").probabilities.round(4)
        array([[0.9048, 0.6065]])
        """
        check_choice("kind", kind, HAZARDS)
        grid = as_times(times)
        if kind == "rate" and interpolation is None:
            interpolation = "constant-hazard"
        return cls(
            survival_of_hazards(hazards, grid, kind), grid, interpolation=interpolation, extrapolation=extrapolation
        )

    @classmethod
    def from_quantiles(
        cls,
        quantiles: ArrayLike,
        levels: ArrayLike,
        times: ArrayLike,
        *,
        interpolation: InterpolationKind | None = None,
        extrapolation: ExtrapolationKind = "nan",
    ) -> Self:
        r"""Take quantiles of the event time, such as those of quantile regression or conformal prediction.

        Between an individual's quantiles, and from 0 to the first, the distribution function is linear.

        Parameters
        ----------
        quantiles : array_like of shape (n, q)
            In column j the time by which the event happens with the probability of level j; infinite where that is
            never reached.
        levels : array_like of shape (q,)
            Increasing, above 0 and at most 1.
        times : array_like of shape (m,)
            The grid on which survival is kept, the same for all individuals.
        interpolation : optional
            How to read between the times of the grid, as for `SurvivalCurves`.
        extrapolation : {"nan", "hold"}, default "nan"
            After an individual's last quantile nothing is known, unless its level is 1, and times there are refused;
            ``"hold"`` keeps its survival.

        Returns
        -------
        SurvivalCurves

        Examples
        --------
        >>> import survscore as ss
        >>> ss.SurvivalCurves.from_quantiles([[2, 4], [4, 12]], levels=[0.5, 0.75], times=[1, 2, 4]).probabilities
        array([[0.75 , 0.5  , 0.25 ],
               [0.875, 0.75 , 0.5  ]])
        """
        check_choice("extrapolation", extrapolation, EXTRAPOLATIONS)
        grid = as_times(times)
        survival = survival_of_quantiles(quantiles, levels, grid, hold=extrapolation == "hold")
        return cls(survival, grid, interpolation=interpolation, extrapolation=extrapolation)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        interpolation: InterpolationKind | None = None,
        extrapolation: ExtrapolationKind = "nan",
        monotone: Monotone = "check",
    ) -> Self:
        """Take a pandas frame with one row per time and one column per individual, the index holding the times.

        That is what pycox's ``predict_surv_df`` and lifelines' ``predict_survival_function`` return. The
        curves of lifelines are step functions: say ``interpolation="step"`` for them.

        Examples
        --------
        >>> import pandas as pd
        >>> import survscore as ss
        >>> frame = pd.DataFrame({"a": [1.0, 0.7], "b": [1.0, 0.5]}, index=[0.0, 2.0])
        >>> ss.SurvivalCurves.from_frame(frame).at([1])
        array([[0.85],
               [0.75]])
        """
        if not hasattr(frame, "index") or not hasattr(frame, "to_numpy"):
            raise InputError(f"frame must be a pandas data frame, not {type(frame).__name__}")
        times = as_times(frame.index, "the index of frame")
        return cls(
            frame.to_numpy().T, times, interpolation=interpolation, extrapolation=extrapolation, monotone=monotone
        )

    @classmethod
    def from_step_functions(cls, functions: Iterable[Any], *, extrapolation: ExtrapolationKind = "nan") -> Self:
        """Take scikit-survival's step functions, as ``predict_survival_function`` returns them.

        Each has its jump times in ``x`` and its values in ``y``. Where the jump times differ, the grid is
        their union, and `extrapolation` decides what a function says after its own last one.

        Examples
        --------
        >>> from types import SimpleNamespace
        >>> import survscore as ss
        >>> functions = [SimpleNamespace(x=[1, 2], y=[0.9, 0.5]), SimpleNamespace(x=[1, 2], y=[0.8, 0.7])]
        >>> ss.SurvivalCurves.from_step_functions(functions).at([1.5])
        array([[0.9],
               [0.8]])
        """
        check_choice("extrapolation", extrapolation, EXTRAPOLATIONS)
        several = as_list(functions, "functions", "step functions with attributes x and y")
        values, grid = of_step_functions(several, extrapolation)
        return cls(values, grid, interpolation="step", extrapolation=extrapolation)

    # Predictions and properties

    def at(self, times: ArrayLike) -> FloatArray:
        """Return the predictions at `times`, shape (n, len(times)); NaN after the grid where `extrapolation` says so.

        A tensor, if the curves are held as one.

        Examples
        --------
        >>> import survscore as ss
        >>> ss.SurvivalCurves([[0.64, 0.16]], times=[1, 2], interpolation="constant-hazard").at([0.5, 1.5, 2.5])
        array([[0.8 , 0.32,  nan]])
        """
        return self._read(as_times(times), self.probabilities, 1.0)

    def conditional_on(self, s: ArrayLike, *, times: ArrayLike | None = None) -> Self:
        r"""Return what the curves predict for those event-free at `s`, with time counted from there.

        .. math:: \pi_i(u \mid s) = P(T^*_i > s + u \mid T^*_i > s) = \frac{\pi_i(s + u)}{\pi_i(s)}

        Parameters
        ----------
        s : float or array_like of shape (n,)
            The landmark, or one for each individual.
        times : array_like, optional
            The new grid, counted from the landmark. By default it is what is left of the old one, which loses nothing;
            landmarks that differ by individual need one.

        Returns
        -------
        SurvivalCurves
            In double precision, read between and after its times as before.

        Notes
        -----
        Of curves of one of several causes, :math:`1 - F_k`, this is not the conditional probability: that is
        :math:`1 - [F_k(s + u) - F_k(s)] / S(s)`, with S of all causes.

        Examples
        --------
        >>> import survscore as ss
        >>> curves = ss.SurvivalCurves([[0.8, 0.4, 0.2]], times=[1, 2, 4])
        >>> later = curves.conditional_on(1)
        >>> later.times, later.probabilities
        (array([1., 3.]), array([[0.5 , 0.25]]))
        """
        return self._conditional(self.around(s, times))

    def since_entry(self, entry: ArrayLike, times: ArrayLike) -> Self:
        """Return what the curves predict for those event-free at delayed entry, with time counted from there.

        As `conditional_on`, but for those who entered at 0, who were observed from the start: nothing is known of them
        there, not even that they are event-free.
        """
        return self._conditional(self.around(entry, times).observed_from_start())

    def around(self, s: ArrayLike, times: ArrayLike | None = None) -> AroundLandmark:
        """Return the predictions at a landmark and after it; see `conditional_on`."""
        landmark = as_vector(np.atleast_1d(as_array(s, "s")), "s")
        if landmark.size != 1:
            check_length("s", landmark.size, "the curves", len(self))
            if times is None:
                raise InputError("times are needed where landmarks differ by individual: the grid after the landmark")
        last, end = float(landmark.max()), float(self.times[-1])
        ends = self.extrapolation == "nan"
        if ends and (last >= end if times is None else last > end):
            raise InputError(f"s must be before the curves end, at {end:g}, not {last:g}")
        own = arrays.beside(np.broadcast_to(landmark, len(self)), self.probabilities)
        if times is not None:
            grid = as_times(times)
            if ends and last + grid[-1] > end * (1.0 + ROUNDING):
                raise InputError(
                    f"times must end where the curves do: {end - last:g} after the landmark, not {grid[-1]:g}"
                )
            values = self._after(own, np.append(0.0, grid), end if ends else np.inf)
            return AroundLandmark(landmark, values[:, 0], values[:, 1:], grid)
        at_landmark, later = self.at_own(own), self.times > landmark[0]
        if not later.any():  # held for ever
            return AroundLandmark(landmark, at_landmark, at_landmark[:, None], np.zeros(1))
        values = arrays.as_float64(self.probabilities[:, self.times.size - int(later.sum()) :])
        return AroundLandmark(landmark, at_landmark, values, self.times[later] - landmark[0])

    def _conditional(self, around: AroundLandmark) -> Self:
        """Return later survival divided by that at the landmark."""
        around.check(around.at > 0, "above 0 at the landmark, since these individuals are event-free then")
        ratio: Any = around.later / around.at[:, None]
        around.check((ratio <= 1.0 + ROUNDING).all(1), "no larger after the landmark than at it")
        # rounding may leave more than 1
        return self._with(arrays.contiguous(ratio.clip(None, 1.0)), times=around.times)

    def only_at(self, times: NDArray[np.float64]) -> Self:
        """Return the curves on a grid of these times alone, all of which they reach."""
        values = self.interpolate(times)(self.probabilities)
        # rows stay contiguous: columns that were picked are not
        return self._with(arrays.contiguous(values), times=times)

    def thinned(self, times: NDArray[np.float64], first: int) -> Self:
        """Return the curves for reading at `times` from every second grid point alone, from `first` on, and the last.

        Only the columns that are read are copied.
        """
        last = self.times.size - 1
        kept = np.union1d(np.arange(first, last, 2), last)
        lower = np.searchsorted(self.times[kept], times, side="right") - 1
        columns = np.unique(kept[np.concatenate((lower, lower + 1)).clip(0, kept.size - 1)])
        values = self.probabilities[:, arrays.beside(columns, self.probabilities)]
        return self._with(arrays.contiguous(values), times=self.times[columns])

    def before(self, time: NDArray[np.float64]) -> NDArray[np.float64]:
        r"""Return every row's left limit :math:`\pi_i(t_i-)` at its own time :math:`t_i`.

        Only a ``"step"`` curve jumps, and any curve at time 0, before which nothing has happened; elsewhere this
        is the value at :math:`t_i`.
        """
        return self._own(time, inclusive=False)

    def at_own(self, time: NDArray[np.float64]) -> NDArray[np.float64]:
        r"""Return every row's value :math:`\pi_i(t_i)` at its own time :math:`t_i`."""
        return self._own(time, inclusive=True)

    def _own(self, time: Any, *, inclusive: bool) -> NDArray[np.float64]:
        if getattr(time, "shape", None) != (len(self),) or getattr(time.dtype, "kind", "f") not in "biuf":
            raise InputError(f"time must be an array of {len(self)} times, one for each row")
        values = self._at_cells(slice(None), time[:, None], inclusive=inclusive)[:, 0]
        if self.extrapolation == "nan":
            values = arrays.where(time > float(self.times[-1]), np.nan, values)
        return values

    def _at_cells(self, rows: slice, time: Any, *, inclusive: bool = True) -> NDArray[np.float64]:
        """Return some rows' values at times of their own, (rows, times); the last value holds after the grid."""
        probabilities = self.probabilities[rows]
        grid, last = arrays.beside(self.times, probabilities), self.times.size - 1
        lower = arrays.count_below(grid, time, inclusive=inclusive) - 1
        own, inside = arrays.columns(len(probabilities), probabilities)[:, None], lower.clip(0)
        left = arrays.as_float64(arrays.where(lower < 0, 1.0, probabilities[own, inside]))
        if self.interpolation == "step":
            return left  # type: ignore[no-any-return]
        upper = (lower + 1).clip(0, last)
        start = arrays.where(lower < 0, 0.0, grid[inside])
        # the weight is 0 after the grid, and at time 0 when the grid starts there
        weight = arrays.ratio(time - start, grid[upper] - start)
        return blend(left, probabilities[own, upper], weight, self.interpolation == "constant-hazard")

    def _after(self, start: Any, steps: NDArray[np.float64], end: float) -> Any:
        """Return every row's values at its own `start` plus each of the steps, but not after `end`."""
        if arrays.is_tensor(self.probabilities):
            ends = start[:, None] + arrays.beside(steps, start)
            return self._at_cells(slice(None), ends.clip(None, end))
        n = len(self)
        compiles, result = config.compiles(n * steps.size), np.empty((n, steps.size))
        kind, values = INTERPOLATIONS.index(self.interpolation), np.ascontiguousarray(self.probabilities)

        def work(rows: slice) -> None:
            if compiles:
                from survscore._utils.kernels import read_after

                read_after(values[rows], self.times, start[rows], steps, end, kind, result[rows])
            else:
                result[rows] = self._at_cells(rows, np.minimum(start[rows, None] + steps, end))

        each(work, row_blocks(n, steps.size), threads=True)
        return result

    def increases(self) -> bool:
        """Whether some curve increases with time by more than rounding."""
        return has_bad_probabilities(self.probabilities, 4.0 * arrays.rounding_unit(self.probabilities))

    @property
    def shape(self) -> tuple[int, int]:
        """``(n, m)``."""
        return (self.probabilities.shape[0], self.probabilities.shape[1])

    def __repr__(self) -> str:
        return f"SurvivalCurves({plural(len(self), 'individual')}, {self._described()})"

    def _take(
        self,
        probabilities: ArrayLike,
        times: ArrayLike,
        interpolation: InterpolationKind | None,
        extrapolation: ExtrapolationKind,
        monotone: Monotone,
        predicts: Predicts,
    ) -> Self:
        read = check_reading(interpolation, extrapolation, monotone)
        grid = as_times(times)
        matrix = as_matrix(probabilities)
        check_columns(matrix, grid)
        survival = matrix if predicts == "survival" else 1.0 - arrays.as_float64(matrix)
        check_probabilities(survival, matrix, grid, predicts, check_monotone=monotone == "check")
        if predicts == "survival" and looks_like_masses(survival):
            warn(
                "probabilities look like a probability mass function: those of each individual sum to at most 1, and "
                f"none is above {float(survival[:, 0].max()):.2g} at the first time. SurvivalCurves takes the "
                "probability of being event-free at each time; SurvivalCurves.from_pmf takes masses"
            )
        if monotone == "enforce":
            survival = arrays.smallest_so_far(survival)
        return self._set(
            survival,
            times=grid,
            interpolation=read,
            extrapolation=extrapolation,
            default_interpolation=interpolation is None,
        )
